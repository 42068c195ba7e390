"""Time and error of the default fit, against a Gaussian process and CatBoost, and against before.

    python benchmarks/default_fit.py [--only NAME ...] [--quick] [--record]

For every table: processor and wall seconds and test error (RMSE) of ``HARFERegressorCV()``, of
scikit-learn's Gaussian process (a length scale per input, at most 1000 rows) and of CatBoost
(``pip install "harfe[benchmark]"``; left out if missing), each with its defaults, each fitted once
after a warm-up. `default_fit.json` holds the same numbers for an earlier commit, with the seconds
that its machine took for a fixed workload of BLAS and sines (the median of those measured between
the tables); the last columns compare in units of that workload. --record writes that file.
Synthetic tables are Friedman 1 with noise, judged without it; real ones need HARFE_DATA with the
folder `uci`, split 0.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg as sla
from default_errors import load as load_case

from harfe import HARFERegressorCV, SparseRandomFeatures
from harfe._core.threads import one_blas_thread
from harfe.datasets import make_function

STORED = Path(__file__).with_suffix(".json")
SYNTHETIC = [(100, 7), (300, 10), (300, 100), (1000, 8), (1000, 20), (3000, 20)]
REAL = ["yacht", "concrete", "wine"]
PROCESS_ROWS = 1000


def tables(only: list[str] | None) -> list[str]:
    """Names of the tables that can be run."""
    names = [f"{rows} x {inputs}" for rows, inputs in SYNTHETIC]
    folder = os.environ.get("HARFE_DATA")
    if folder and (Path(folder) / "uci").is_dir():
        names += REAL
    return names if only is None else [name for name in names if name in only]


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of a table."""
    if name in REAL:
        return load_case(f"uci {name}", 0)
    rows, inputs = map(int, name.split(" x "))
    train = make_function("friedman1", rows, random_state=0)
    test = make_function("friedman1", 2000, noise=0.0, random_state=1)
    rng = np.random.default_rng(2)
    more = max(inputs - 10, 0)
    X = np.hstack([train.X[:, :inputs], rng.uniform(size=(rows, more))])
    X_new = np.hstack([test.X[:, :inputs], rng.uniform(size=(2000, more))])
    return X, train.y, X_new, test.y


def process() -> Any:
    """scikit-learn's Gaussian process with a length scale per input."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    class Process:
        def fit(self, X: np.ndarray, y: np.ndarray) -> Process:
            rows = np.random.default_rng(0).permutation(len(y))[:PROCESS_ROWS]
            kernel = ConstantKernel(1.0) * RBF(np.full(X.shape[1], 3.0)) + WhiteKernel(0.1)
            model = GaussianProcessRegressor(kernel, normalize_y=True)
            self.predict = make_pipeline(StandardScaler(), model).fit(X[rows], y[rows]).predict
            return self

    return Process()


def catboost() -> Any:
    """CatBoost with its defaults."""
    from catboost import CatBoostRegressor

    return CatBoostRegressor(verbose=False, random_seed=0, allow_writing_files=False)


METHODS: dict[str, Callable[[], Any]] = {
    "harfe": lambda: HARFERegressorCV(random_state=0),
    "process": process,
    "catboost": catboost,
}


def measure(make: Callable[[], Any], name: str) -> dict[str, float]:
    """Processor and wall seconds of a fit, and its error on the test rows."""
    X, y, X_new, y_new = load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        processor, wall = time.process_time(), time.perf_counter()
        model = make().fit(X, y)
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        error = float(np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2)))
    return {"processor": processor, "wall": wall, "rmse": error}


def calibrate() -> float:
    """Processor seconds of a fixed workload of one thread: a product, a factor, sines."""
    rng = np.random.default_rng(0)
    A, X = rng.normal(size=(1200, 1200)), rng.normal(size=(2000, 4))
    features = SparseRandomFeatures(4000, order=2, random_state=0).fit(X)
    features.transform(X[:2])
    times = []
    with one_blas_thread():
        for _ in range(5):
            start = time.process_time()
            for _ in range(3):
                sla.cholesky(A @ A.T + 1200 * np.eye(1200), check_finite=False)
                features.pool_.evaluate(X)
            times.append(time.process_time() - start)
    return float(np.median(times))


def mean(values: list[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(values)))) if values else np.nan


def show(
    found: dict[str, dict[str, Any]], methods: list[str], before: dict[str, Any] | None, unit: float
) -> None:
    """Print a row for every table, and the means of the ratios to an earlier run."""
    print("seconds of processor / seconds of wall / RMSE")
    print("| table | " + " | ".join(methods) + " | before (scaled) | processor | wall | error |")
    print("|---" * (len(methods) + 5) + "|")
    ratios: dict[str, list[float]] = {"processor": [], "wall": [], "rmse": []}
    for name, results in found.items():
        cells = [cell(results[method]) if method in results else "-" for method in methods]
        compared = ["-"] * 4
        if before is not None and name in before["tables"]:
            scale = unit / before["calibration"]
            old, new = before["tables"][name]["harfe"], results["harfe"]
            old = old | {key: old[key] * scale for key in ("processor", "wall")}
            ratios["processor"].append(new["processor"] / old["processor"])
            ratios["wall"].append(new["wall"] / new["processor"])
            ratios["rmse"].append(new["rmse"] / old["rmse"])
            compared = [cell(old), *(f"{values[-1]:.2f}" for values in ratios.values())]
        print("| " + " | ".join([name, *cells, *compared]) + " |")
    if ratios["processor"]:
        print(
            f"geometric means: processor {mean(ratios['processor']):.3f} of before, wall "
            f"{mean(ratios['wall']):.2f} of processor, error {mean(ratios['rmse']):.3f} of before"
        )


def cell(result: dict[str, float]) -> str:
    """A result as text."""
    return f"{result['processor']:.2f} / {result['wall']:.2f} / {result['rmse']:.4g}"


def main() -> None:
    """Print the table; record it on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="e.g. --only '300 x 10' yacht")
    parser.add_argument("--quick", action="store_true", help="harfe alone, no rivals")
    parser.add_argument("--record", action="store_true", help=f"write {STORED.name}")
    options = parser.parse_args()
    methods = {name: make for name, make in METHODS.items() if name == "harfe" or not options.quick}
    X, y = load("100 x 7")[:2]
    HARFERegressorCV(random_state=0).fit(X, y)  # compiles
    units = [calibrate()]
    found: dict[str, dict[str, Any]] = {}
    for name in tables(options.only):
        found[name] = {}
        for method, make in methods.items():
            print(f"{name}: {method}", file=sys.stderr, flush=True)
            with contextlib.suppress(ImportError):
                found[name][method] = measure(make, name)
        units.append(calibrate())
    before = json.loads(STORED.read_text()) if STORED.exists() and not options.record else None
    show(found, list(methods), before, float(np.median(units)))
    middle, low, high = np.median(units), min(units), max(units)
    print(f"calibration: {middle:.3f} s of one processor, {low:.3f} to {high:.3f}")
    if options.record:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        content = {"commit": commit, "calibration": float(np.median(units)), "tables": found}
        STORED.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
