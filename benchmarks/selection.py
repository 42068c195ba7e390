"""What the full default selection costs, in graded fits of the final size.

    python benchmarks/selection.py [--quick]

Times HARFERegressorCV with no arguments on tables of different shape, and HARFERegressor with the
settings it chose (``init="graded"``, median of three fits). The ratio is the promise, at most 60 at
1000 rows; the seconds are of this machine. --quick leaves out the larger tables.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from harfe import HARFERegressor, HARFERegressorCV
from harfe.datasets import make_function

SHAPES = ((200, 10), (300, 2000), (1000, 20), (2000, 20))


def table(rows: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Friedman 1 with further inputs that play no part."""
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
    HARFERegressorCV(orders=1, scales=1, random_state=0).fit(X, y)  # compiles
    print("rows  inputs      N     s  selection  graded fit  ratio")
    for rows, inputs in SHAPES[:1] if options.quick else SHAPES:
        X, y = table(rows, inputs)
        start = time.perf_counter()
        chosen = HARFERegressorCV(random_state=0).fit(X, y)
        selection = time.perf_counter() - start
        times = []
        for _ in range(3):
            start = time.perf_counter()
            HARFERegressor(**chosen.best_params_, random_state=0).fit(X, y)
            times.append(time.perf_counter() - start)
        fit = float(np.median(times))
        print(
            f"{rows:4d}  {inputs:6d}  {chosen.n_components_:5d}  {chosen.n_nonzero_coefs_:4d}  "
            f"{selection:7.1f} s  {fit:8.3f} s  {selection / fit:5.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
