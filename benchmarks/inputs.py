"""Which treatment of heavy-tailed inputs predicts best: selection on training rows only.

    python benchmarks/inputs.py [--jobs 2]

Error of HARFERegressorCV in its own folds (small grid: orders 1, 2 and both, scales 0.5 and 1.5)
for several pairs of `input_scale` and `input_clip`, over that of "standard" without clipping; at
most 500 training rows of every real dataset in HARFE_DATA, of the two extra files, and Friedman
1-3. Then a typo: one value in one row of Friedman 1 is a million times too large; printed is the
error on new rows with and without clipping, over that without the typo.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from joblib import Parallel, delayed

from harfe import HARFERegressorCV
from harfe.datasets import list_real, load_real, make_function

VARIANTS = (
    ("standard", None),
    ("robust", None),
    ("standard", 3.0),
    ("standard", 5.0),
    ("standard", 8.0),
    ("robust", 5.0),
)
GRID = {"law": "grid", "orders": [1, 2, (1, 2)], "scales": [0.5, 1.5]}


def problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Training rows by name."""
    found = {}
    for name in ("friedman1", "friedman2", "friedman3"):
        data = make_function(name, 200, random_state=7)
        found[name] = (data.X, data.y)
    if os.environ.get("HARFE_DATA"):
        for name in list_real():
            split = 0 if name in ("telemonitor_sex1", "ccpp_rest") else "paper"
            data = load_real(name, split=split)
            found[name] = (data.X_train[:500], data.y_train[:500])
    return found


def error(X: np.ndarray, y: np.ndarray, input_scale: str, input_clip: float | None) -> float:
    """Held-out error of the chosen model, geometric mean over two seeds."""
    models = (
        HARFERegressorCV(**GRID, input_scale=input_scale, input_clip=input_clip, random_state=seed)
        for seed in (0, 1)
    )
    return float(np.exp(np.mean([np.log(-model.fit(X, y).best_score_) for model in models])))


def typo() -> dict[str, float]:
    """Error on new rows with a typo, over that without."""
    data = make_function("friedman1", 200, random_state=0)
    new = make_function("friedman1", 2000, random_state=1)
    wrong = data.X.copy()
    wrong[17, 3] *= 1e6

    def new_error(X: np.ndarray, input_clip: float | None) -> float:
        model = HARFERegressorCV(**GRID, input_clip=input_clip, random_state=0).fit(X, data.y)
        return float(np.mean((model.predict(new.X) - new.y_clean) ** 2))

    right = new_error(data.X, 5.0)
    return {f"input_clip={clip}": new_error(wrong, clip) / right for clip in (None, 5.0)}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    labels = [f"{scale[:3]} {clip}" for scale, clip in VARIANTS]
    print(f"{'':17s}     error" + "".join(f"{label:>10s}" for label in labels))
    ratios = []
    for name, (X, y) in problems().items():
        errors = Parallel(n_jobs=options.jobs)(delayed(error)(X, y, *v) for v in VARIANTS)
        ratios.append(np.array(errors) / errors[0])
        print(
            f"{name:17s} {errors[0]:9.3g}" + "".join(f"{r:10.3f}" for r in ratios[-1]), flush=True
        )
    mean = np.exp(np.mean(np.log(ratios), axis=0))
    print(f"{'geometric mean':27s}" + "".join(f"{r:10.3f}" for r in mean))
    print("typo:", {key: round(value, 2) for key, value in typo().items()})


if __name__ == "__main__":
    main()
