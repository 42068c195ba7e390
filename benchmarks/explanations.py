"""The cost of explanations: interactions of all pairs, whole explanations, input summaries.

    python benchmarks/explanations.py [--repeat 5]

Goals: the strengths of all pairs of d = 100 inputs in s = 500 features within a second; summarising
the rows (`InputSummary.of`) within a few percent of the fit; partial dependence from that summary
in time that does not depend on the number of rows. Times are the best of several runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from harfe import HARFERegressor
from harfe._core.threads import n_threads, one_blas_thread
from harfe.explain.anova import anova
from harfe.explain.inputs.summary import InputSummary
from harfe.explain.local import explain_local
from harfe.explain.overall import explain
from harfe.explain.partial import partial_dependence
from harfe.features.law import FeatureLaw
from harfe.model.expansion import Expansion

# s, d, order, activation
SIZES = (
    (500, 100, 2, "sin"),
    (500, 100, 3, "sin"),
    (500, 10, 4, "sin"),
    (500, 2, 2, "sin"),
    (500, 100, 2, "tanh"),
    (500, 10, 4, "tanh"),
)


def best(work: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of several runs, after a warm-up run."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def drawn(s: int, d: int, order: int, activation: str) -> Expansion:
    """A random expansion of s features."""
    rng = np.random.default_rng(0)
    pool = FeatureLaw(d, orders=(order,), activation=activation).draw(s, rng)
    columns = tuple(f"x{j}" for j in range(d))
    return Expansion(pool, rng.normal(size=(1, s)), np.zeros(1), columns)


def show_explanations(repeat: int) -> None:
    """Print the time of every kind of explanation, by size."""
    print(
        "features, inputs, order | all pairs | explain | 100 rows | partial dependence, 50 points"
    )
    for s, d, order, activation in SIZES:
        expansion = drawn(s, d, order, activation)
        X = np.random.default_rng(1).normal(size=(1000, d))
        kept = InputSummary.of(expansion, X)
        rows = None if activation == "sin" else X
        pairs = best(lambda: anova(expansion, kept.distribution).interaction(), repeat)  # noqa: B023
        whole = best(lambda: explain(expansion, kept), repeat)  # noqa: B023
        local = best(lambda: explain_local(expansion, kept, X[:100]), 1)  # noqa: B023
        curve = best(lambda: partial_dependence(expansion, kept, 0, 50, rows), repeat)  # noqa: B023
        print(
            f"{s} {activation}, {d}, {order}: {pairs:.3f} s | {whole:.3f} s | {local:.3f} s | "
            f"{1e3 * curve:.1f} ms",
            flush=True,
        )


def show_kept(repeat: int) -> None:
    """Print the cost of the input summary relative to the fit, and its size."""
    for m, d in ((1000, 10), (1000, 100), (20_000, 20)):
        rng = np.random.default_rng(0)
        X = rng.random((m, d))
        y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
        y += 5 * X[:, 4] + rng.normal(size=m)
        model = HARFERegressor(random_state=0)
        fit = best(lambda: model.fit(X, y), min(repeat, 3))  # noqa: B023
        kept = best(lambda: InputSummary.of(model.expansion_, X, np.ones(m)), repeat)  # noqa: B023
        nodes = sum(len(nodes) for nodes in model.inputs_.distribution.nodes)
        print(
            f"fit of {m} rows, {d} inputs: {fit:.3f} s, of which summary {1e3 * kept:.1f} ms, "
            f"{kept / fit:.1%}; {nodes} nodes for {m * d} values",
            flush=True,
        )


def main() -> None:
    """Print all times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    print(f"{n_threads()} threads")
    with one_blas_thread():
        show_explanations(repeat)
        show_kept(repeat)


if __name__ == "__main__":
    main()
