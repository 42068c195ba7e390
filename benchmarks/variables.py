"""Does the learned law find the relevant inputs? Friedman 1 with pure-noise inputs added.

200 rows with the paper's noise, the ten inputs of the function (five of them irrelevant) and 90
noise inputs, all uniform on [0, 1]. For every draw: whether the five true inputs lead
`feature_importances_`, and the error against the noise-free function on 1000 other rows.

    python benchmarks/variables.py [--draws 20] [--noise-inputs 90] [--law auto|grid]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from harfe import HARFERegressorCV
from harfe.datasets import make_function


def main() -> None:
    """Print one line per draw and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first-draw", type=int, default=0)
    parser.add_argument("--noise-inputs", type=int, default=90)
    parser.add_argument("--law", choices=("auto", "grid"), default="auto")
    given = parser.parse_args()
    found, errors = [], []
    for draw in range(given.first_draw, given.first_draw + given.draws):
        data = make_function("friedman1", 1200, random_state=draw)
        rng = np.random.default_rng(10_000 + draw)
        X = np.hstack([data.X, rng.random((1200, given.noise_inputs))])
        started = time.perf_counter()
        model = HARFERegressorCV(law=given.law, random_state=draw).fit(X[:200], data.y[:200])
        seconds = time.perf_counter() - started
        lead = set(np.argsort(-model.feature_importances_)[:5].tolist())
        found.append(lead == {0, 1, 2, 3, 4})
        errors.append(np.mean((model.predict(X[200:]) - data.y_clean[200:]) ** 2))
        used = np.unique(model.expansion_.features.indices)
        print(
            f"draw {draw}: five lead {found[-1]}, error {errors[-1]:.3f}, "
            f"{model.n_nonzero_coefs_} features of {np.sum(used >= 0)} inputs, {seconds:.0f} s",
            flush=True,
        )
    print(
        f"the five true inputs lead in {sum(found)} of {len(found)} draws; noise-free error: "
        f"mean {np.mean(errors):.3f}, median {np.median(errors):.3f}"
    )


if __name__ == "__main__":
    main()
