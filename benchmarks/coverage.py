"""Do 90 % intervals cover 90 % of new observations? On rows that no part of a fit has seen.

    python benchmarks/coverage.py [--level 0.9] [--jobs 2] [--only friedman1 housing ...]

HARFERegressorCV with no arguments. Friedman 1-3 with noise: 200 rows, 5 draws, 1000 new rows each.
Real data (with HARFE_DATA): five outer folds of training rows, each predicted by a model selected
and fitted on the other four; no test row of the paper is read. Printed: the share of observations
inside ``predict(X, interval=level)``, the mean width over the standard deviation of y, and the root
mean square of (y - prediction) / std, which is 1 if ``return_std`` is right.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold

from harfe import HARFERegressorCV
from harfe.datasets import load_real, make_function

REAL = ("forestfire", "insulin", "housing", "speech", "airfoil", "telemonitor_sex1", "ccpp_rest")
MOST_ROWS = 750


def tasks() -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]]:
    """Name, training rows, new rows and seed of every fit."""
    found = []
    for name in ("friedman1", "friedman2", "friedman3"):
        for draw in range(5):
            data = make_function(name, 1200, random_state=50 + draw)
            found.append((name, data.X[:200], data.y[:200], data.X[200:], data.y[200:], draw))
    if os.environ.get("HARFE_DATA"):
        for name in REAL:
            split = 0 if name in ("telemonitor_sex1", "ccpp_rest") else "paper"
            data = load_real(name, split=split)
            X, y = data.X_train[:MOST_ROWS], data.y_train[:MOST_ROWS]
            for fold, (train, new) in enumerate(KFold(5, shuffle=True, random_state=0).split(X)):
                found.append((name, X[train], y[train], X[new], y[new], fold))
    return found


def one(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    X_new: np.ndarray,
    y_new: np.ndarray,
    seed: int,
    level: float,
) -> tuple[str, np.ndarray]:
    """Whether covered, width and standardised residual of every new row."""
    model = HARFERegressorCV(random_state=seed).fit(X, y)
    prediction, lower, upper = model.predict(X_new, interval=level)
    _, std = model.predict(X_new, return_std=True)
    inside = (lower <= y_new) & (y_new <= upper)
    return name, np.array([inside, (upper - lower) / y.std(), (y_new - prediction) / std])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="names of problems; all by default")
    options = parser.parse_args()
    rows: dict[str, list[np.ndarray]] = {}
    found = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(one)(*task, options.level)
        for task in tasks()
        if not options.only or task[0] in options.only
    )
    for name, values in found:
        rows.setdefault(name, []).append(values)
    print("data               coverage  width/sd(y)  rms of (y - f)/std")
    for name, parts in rows.items():
        inside, width, residual = np.hstack(parts)
        print(
            f"{name:17s}  {inside.mean():8.3f}  {width.mean():11.3g}  "
            f"{np.sqrt(np.mean(residual**2)):18.2f}"
        )


if __name__ == "__main__":
    main()
