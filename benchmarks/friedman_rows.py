"""Algorithm 1 with the paper's settings on the Friedman functions, in both column scales.

    python benchmarks/friedman_rows.py [--seeds 8]

Prints the noise-free test MSE, mean over seeds (a fresh draw of data and features each), beside the
paper's Table 2 and what a prototype of this project reached with 8 seeds.
"""

from __future__ import annotations

import argparse

import numpy as np

from harfe import HARFERegressor
from harfe.datasets import make_function
from harfe.metrics import mean_squared_error

ROWS, TEST_ROWS, SPARSITY, STEP = 200, 1000, 200, 0.1
FEATURES = {"friedman1": 10_000, "friedman2": 2000, "friedman3": 2000}
LAMBDA = {"friedman1": 1e-3, "friedman2": 5e-3, "friedman3": 1e-5}
PRINTED = {"friedman1": 1.52, "friedman2": 1310.0, "friedman3": 0.0109}
# Column scale, alpha as a multiple of λ, step as a multiple of μ, and the prototype's numbers.
SETTINGS = {
    "unit RMS columns": ("rms", 1.0, 1, (3.96, 1796, 0.0143)),
    "raw, ridge weight mλ": ("none", 1.0, ROWS, (2.26, 1304, 0.0154)),
    "raw, ridge weight λ": ("none", 1 / ROWS, ROWS, (1.55, 1984, 0.0109)),
}


def error(name: str, column_scale: str, alpha: float, step_size: float, seed: int) -> float:
    """Noise-free test error of one run."""
    train = make_function(name, ROWS, random_state=2 * seed)
    test = make_function(name, TEST_ROWS, noise=0.0, random_state=2 * seed + 1)
    model = HARFERegressor(
        FEATURES[name],
        SPARSITY,
        order=2,
        alpha=alpha,
        weights="uniform",
        bias="uniform",
        step_size=step_size,
        max_iter=50,
        fit_intercept=False,
        input_scale="none",
        input_clip=None,
        column_scale=column_scale,
        random_state=seed,
    ).fit(train.X, train.y)
    return mean_squared_error(test.y_clean, model.predict(test.X))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    seeds = range(parser.parse_args().seeds)
    print(f"{'':22} {'function':10} {'paper':>9} {'prototype':>10} {'mean':>9} {'median':>9}")
    for label, (column_scale, ridge, step, prototype) in SETTINGS.items():
        for name, before in zip(FEATURES, prototype, strict=True):
            errors = [
                error(name, column_scale, ridge * LAMBDA[name], step * STEP, seed) for seed in seeds
            ]
            print(
                f"{label:22} {name:10} {PRINTED[name]:9.4g} {before:10.4g} "
                f"{np.mean(errors):9.4g} {np.median(errors):9.4g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
