"""The cost of a full selection: in seconds, and for the grid in graded fits of the final size.

    python benchmarks/selection.py [--quick]

Times HARFERegressorCV on tables of different shapes, with no arguments (the law is learned) and
with law="grid"; for the grid also HARFERegressor with the settings it chose (``init="graded"``,
median of three fits). The goal for that ratio is at most 60 at 1000 rows; the seconds depend on the
machine. --quick leaves out the larger tables.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from harfe import HARFERegressor, HARFERegressorCV
from harfe.datasets import make_function

SHAPES = ((200, 10), (300, 2000), (1000, 20), (2000, 20))


def table(rows: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Friedman 1 with additional irrelevant inputs."""
    data = make_function("friedman1", rows, random_state=0)
    rest = np.random.default_rng(1).uniform(size=(rows, inputs - data.X.shape[1]))
    return np.hstack([data.X, rest]), data.y


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the smallest table only")
    options = parser.parse_args()
    X, y = table(100, 10)
    HARFERegressorCV(random_state=0).fit(X, y)  # compiles
    print("rows  inputs  learned (features)   grid (features)  graded fit  ratio")
    for rows, inputs in SHAPES[:1] if options.quick else SHAPES:
        X, y = table(rows, inputs)
        start = time.perf_counter()
        learned = HARFERegressorCV(random_state=0).fit(X, y)
        learning = time.perf_counter() - start
        start = time.perf_counter()
        chosen = HARFERegressorCV(law="grid", random_state=0).fit(X, y)
        selection = time.perf_counter() - start
        times = []
        for _ in range(3):
            start = time.perf_counter()
            HARFERegressor(**chosen.best_params_, random_state=0).fit(X, y)
            times.append(time.perf_counter() - start)
        fit = float(np.median(times))
        print(
            f"{rows:4d}  {inputs:6d}  {learning:7.1f} s ({learned.n_nonzero_coefs_:3d})  "
            f"{selection:7.1f} s ({chosen.n_nonzero_coefs_:3d})  {fit:8.3f} s  "
            f"{selection / fit:5.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
