"""How much faster harfe predicts than a Gaussian process on the same data.

    python benchmarks/prediction.py [--rows 100000] [--only airfoil galaxy telemonitor]

Both are fitted on the paper's training rows (the process of `experiments`, one length scale per
input, at most 500 rows) and predict the same rows, drawn from the training rows with replacement;
the time is the best of three, on all threads. No test row is read; the study `accuracy` measures
the errors. Needs HARFE_DATA.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.methods import GaussianProcess, HarfeCV
from harfe.datasets import load_real


def seconds(model, X: np.ndarray) -> float:  # type: ignore[no-untyped-def]
    """Time of the fastest of three predictions."""
    found = []
    for _ in range(3):
        started = time.perf_counter()
        model.predict(X)
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=["airfoil", "galaxy", "telemonitor"])
    given = parser.parse_args()
    print("dataset    features  harfe  process  ratio")
    for name in given.only:
        data = load_real(name)
        drawn = np.random.default_rng(0).integers(len(data.X_train), size=given.rows)
        X = data.X_train[drawn]
        ours = HarfeCV().fit(data.X_train, data.y_train, 0, {})
        rival = GaussianProcess(500, False, 100, (1.0,)).fit(data.X_train, data.y_train, 0, {})
        a, b = seconds(ours.model, X), seconds(rival.model, X)
        print(f"{name:12s}  {ours.n_terms:5d}  {a:.3f}  {b:7.3f}  {b / a:5.1f}", flush=True)


if __name__ == "__main__":
    main()
