"""Which defaults of HARFERegressor predict best: cross-validation on training rows only.

    python benchmarks/defaults.py [--quick]

Five folds of the training rows of every real dataset in HARFE_DATA (at most 600 rows each; no test
row is read) and of the Friedman functions; one setting is changed at a time, from the defaults.
Printed: geometric mean over the problems of the error divided by that of the defaults (below 1 is
better), the worst ratio, and the error of the defaults relative to the null model.
"""

from __future__ import annotations

import argparse
import ast
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from harfe import HARFERegressor
from harfe.datasets import list_real, load_real, make_function

MAX_ROWS = 600
CHANGES: list[dict[str, object]] = [
    {"alpha": 1e-1},
    {"alpha": 1e-2},
    {"alpha": 1e-3},
    {"alpha": 1e-4},
    {"n_nonzero_coefs": 0.01},
    {"n_nonzero_coefs": 0.02},
    {"n_nonzero_coefs": 0.05},
    {"n_nonzero_coefs": 0.1},
    {"scale": 0.2},
    {"scale": 0.3},
    {"scale": 0.5},
    {"scale": 1.0},
    {"order": 1},
    {"order": (1, 2)},
    {"order": 3},
    {"weights": "uniform"},
    {"bias": "uniform"},
    {"input_scale": "robust"},
    {"input_clip": None},
    {"input_clip": 3.0},
    {"init": "graded"},
    {"init": "swapped"},
    {"step_size": 0.1},
    {"n_components": 2000},
]


def problems(quick: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Training rows by name."""
    found = {}
    for name in ("friedman1", "friedman2", "friedman3"):
        data = make_function(name, 200, random_state=0)
        found[name] = (data.X, data.y)
    if not quick:
        for name in list_real()[:11]:
            data = load_real(name)
            found[name] = (data.X_train[:MAX_ROWS], data.y_train[:MAX_ROWS])
    return found


def cv_error(X: np.ndarray, y: np.ndarray, settings: dict[str, object]) -> float:
    """Mean squared error over five folds, relative to predicting the mean."""
    errors, null = 0.0, 0.0
    for fold, (train, test) in enumerate(KFold(5, shuffle=True, random_state=0).split(X)):
        model = HARFERegressor(random_state=fold).set_params(**settings).fit(X[train], y[train])
        errors += np.sum((model.predict(X[test]) - y[test]) ** 2)
        null += np.sum((y[train].mean() - y[test]) ** 2)
    return float(errors / null)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the Friedman functions only")
    parser.add_argument("--base", default="{}", help="settings to start from, as a dict")
    options = parser.parse_args()
    base = dict(ast.literal_eval(options.base))
    warnings.simplefilter("ignore", ConvergenceWarning)
    tables = problems(options.quick)
    reference = {name: cv_error(X, y, base) for name, (X, y) in tables.items()}
    print(
        "defaults", base, {name: round(value, 4) for name, value in reference.items()}, flush=True
    )
    for change in CHANGES:
        ratios = {
            name: cv_error(X, y, {**base, **change}) / reference[name]
            for name, (X, y) in tables.items()
        }
        mean = np.exp(np.mean(np.log(list(ratios.values()))))
        worst = max(ratios, key=lambda name: ratios[name])
        print(f"{change!s:32} {mean:6.3f}   worst {ratios[worst]:6.2f} ({worst})", flush=True)


if __name__ == "__main__":
    main()
