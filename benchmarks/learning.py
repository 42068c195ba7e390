"""How long learning a law takes: learn_law with its defaults, on Friedman 1 with noise inputs.

    python benchmarks/learning.py

Goals on 2 cores: 500 rows of 20 inputs within 15 s, 2000 of 60 within 60 s; 1000 inputs work. Also
printed: whether the five true inputs are the most used, and the times of one likelihood step, of
the Cholesky factorisation it needs, and of its exponentials alone by NumPy.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.linalg as sla

from harfe import learn_law
from harfe._core.threads import one_blas_thread
from harfe.learning.candidates import CANDIDATES
from harfe.learning.likelihood import Likelihood


def friedman(rows: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Friedman 1 with noise and the given number of inputs."""
    rng = np.random.default_rng(rows + inputs)
    X = rng.random((rows, inputs))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + rng.standard_normal(rows)


def best_of(call, times: int = 3) -> float:  # type: ignore[no-untyped-def]
    """Seconds of the fastest of several calls."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    """Print the times."""
    learn_law(*friedman(60, 5), random_state=0)  # compiles
    for rows, inputs in ((500, 20), (2000, 60), (300, 1000)):
        X, y = friedman(rows, inputs)
        started = time.perf_counter()
        learned = learn_law(X, y, random_state=0)
        seconds = time.perf_counter() - started
        lead = set(np.argsort(-learned.law.usage())[:5].tolist()) == {0, 1, 2, 3, 4}
        print(
            f"{rows} rows, {inputs} inputs: {seconds:.1f} s; {learned.candidate}, the five lead: "
            f"{lead}",
            flush=True,
        )
    X, y = friedman(500, 20)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = ((y - y.mean()) / y.std())[:, None]
    likelihood = Likelihood(np.ascontiguousarray(Z.T), t, np.ones(500), CANDIDATES["fours"])
    theta = likelihood.start()
    C = likelihood.settings(theta).kernel(likelihood.XT) + np.eye(500)
    exponents = np.random.default_rng(0).random(500 * 501 // 2 * 20) * -5
    with one_blas_thread():
        step = best_of(lambda: likelihood(theta))
        factor = best_of(lambda: sla.cholesky(C, lower=True))
    print(
        f"a step at 500 x 20, orders up to 4: {1e3 * step:.0f} ms; Cholesky {1e3 * factor:.1f} ms; "
        f"np.exp of its {len(exponents) / 1e6:.1f} million exponents alone "
        f"{1e3 * best_of(lambda: np.exp(exponents)):.0f} ms (a step computes them twice)"
    )


if __name__ == "__main__":
    main()
