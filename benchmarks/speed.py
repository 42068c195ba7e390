"""Speed as ratios measured in one run: features, fit against its floor and a textbook, predict.

    python benchmarks/speed.py [--repeat 5] [--no-textbook]

Times are the best of several runs on an otherwise idle machine; ratios carry over to other machines
better than times.
Sizes: (m, N, s) = (1000, 10 000, 500), d = 20, q = 2, Algorithm 1 with the paper's settings.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.linalg as sla
from sklearn.exceptions import ConvergenceWarning

from harfe import FeatureLaw, HARFERegressor
from harfe._core.threads import n_threads, one_blas_thread
from harfe.features import kernels
from harfe.features.pool import Rows
from harfe.solvers.homes import RecomputedProblem, StoredProblem

M_ROWS, N, S, D = 1000, 10_000, 500, 20
ALPHA, STEP, ROUNDS = 1e-3, 0.1, 50


def best(work: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of several runs, after a warm-up run."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Rows of a function with one pairwise interaction, with noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (M_ROWS, D))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * X[:, 2] ** 2 + 10 * X[:, 3]
    return X, y + rng.normal(size=M_ROWS)


def model() -> HARFERegressor:
    """The paper's algorithm at the size of this benchmark."""
    return HARFERegressor(
        N, S, order=2, alpha=ALPHA, step_size=STEP, max_iter=ROUNDS, tol=0.0, random_state=0
    )


def textbook(A: np.ndarray, y: np.ndarray, rounds: int) -> np.ndarray:
    """Textbook Algorithm 1: the whole Gram matrix, and one pseudo-inverse per round."""
    m = len(y)
    gram, moment = A.T @ A / m, A.T @ y / m
    c = np.zeros(A.shape[1])
    for _ in range(rounds):
        c_tilde = (1 - STEP * ALPHA) * c + STEP * (moment - gram @ c)
        idx = np.argsort(-np.abs(c_tilde))[:S]
        c = np.zeros(A.shape[1])
        c[idx] = np.linalg.pinv(gram[np.ix_(idx, idx)] + ALPHA * np.eye(S)) @ moment[idx]
    return c


def report_features(repeat: int) -> None:
    """Print the compiled loop against NumPy, one thread each."""
    X, _ = data()
    pool = FeatureLaw(D).draw(N, np.random.default_rng(0))
    rows, W = Rows.of(X), np.ascontiguousarray(pool.weights().toarray().T)
    out = np.empty((N, M_ROWS))
    numpy_out = np.empty((M_ROWS, N))

    def numpy_way() -> None:
        np.matmul(X, W.T, out=numpy_out)
        np.add(numpy_out, pool.phases, out=numpy_out)
        np.sin(numpy_out, out=numpy_out)

    with one_blas_thread():
        ours = best(lambda: pool.write(rows, 0, out), repeat)
        in_place = best(numpy_way, repeat)
        plain = best(lambda: np.sin(X @ W.T + pool.phases), repeat)
    per = 1e9 / (N * M_ROWS)
    print(
        f"features, one thread: {ours * per:.2f} ns per element; np.sin(X @ W.T + b) "
        f"{plain * per:.1f} ns, ratio {plain / ours:.1f}; into preallocated memory "
        f"{in_place * per:.1f} ns, ratio {in_place / ours:.1f}"
    )


def report_fit(repeat: int, with_textbook: bool) -> None:
    """Print the whole fit against the sum of its unavoidable parts, and against the textbook."""
    X, y = data()
    fitted = model().fit(X, y)
    rounds = fitted.n_iter_
    fit = best(lambda: model().fit(X, y), repeat)
    pool = fitted._pool
    weights = np.ones(M_ROWS)
    build = best(lambda: StoredProblem(pool, X, y[:, None], weights), repeat)
    problem = StoredProblem(pool, X, y[:, None], weights)
    support, c = fitted.support_, np.ones((S, 1))
    with one_blas_thread():
        one_pass = best(lambda: problem.step(support, c, STEP, ALPHA, S), repeat)
        recomputed = RecomputedProblem(pool, X, y[:, None], weights)
        again = best(lambda: recomputed.step(support, c, STEP, ALPHA, S), repeat)
        gram = best(lambda: problem.normal(support), repeat)
        system = problem.normal(support)[0] + ALPHA * np.eye(S)
        cholesky = best(lambda: sla.cho_factor(system, check_finite=False), repeat)
    floor = build + rounds * one_pass + gram + rounds * cholesky
    print(
        f"fit: {fit:.3f} s for {rounds} rounds ({fitted.stop_reason_.name}); floor {floor:.3f} s = "
        f"build {build:.3f} + {rounds} x pass {one_pass:.4f} + Gram {gram:.4f} + {rounds} x "
        f"Cholesky {cholesky:.4f}; ratio {fit / floor:.2f}"
    )
    print(f"a pass that recomputes the features: {again:.4f} s, ratio {again / one_pass:.1f}")
    for n in (5, 15, rounds) if with_textbook else ():
        ours = best(lambda n=n: model().set_params(max_iter=n).fit(X, y), repeat)
        start = time.perf_counter()
        A = np.sin(X @ fitted.weights_.toarray() + fitted.bias_)
        A = (A - A.mean(axis=0)) / A.std(axis=0)
        c_textbook = textbook(A, y - y.mean(), n)
        seconds = time.perf_counter() - start
        same = np.array_equal(np.flatnonzero(c_textbook), fitted.support_)
        print(
            f"textbook with N x N Gram and pinv, {n} rounds: {seconds:.2f} s, ours {ours:.3f} s, "
            f"ratio {seconds / ours:.0f}" + (f"; same support: {same}" if n == rounds else "")
        )


def report_predict(repeat: int) -> None:
    """Print prediction against its unavoidable sines."""
    X, y = data()
    fitted = model().fit(X, y)
    table = np.random.default_rng(1).uniform(-1, 1, (200_000, D))
    predict = best(lambda: fitted.expansion_.predict(table), repeat)
    whole = best(lambda: fitted.predict(table), repeat)
    block = np.random.default_rng(2).uniform(-5, 5, (D, 2048))
    sines, phases = np.empty((S, 2048)), np.zeros(S)
    one = np.tile(np.arange(D, dtype=np.intp), S // D)[:, None]
    arguments = (block, np.abs(block).max(axis=1), one, np.ones((S, 1)), phases, 0, 0, sines)
    alone = best(lambda: kernels.features(*arguments), 5 * repeat) / sines.size
    threads = n_threads()
    floor = alone * len(table) * S / threads
    print(
        f"predict: {len(table)} rows, s = {S}: {predict:.3f} s, sines alone on {threads} threads "
        f"{floor:.3f} s, ratio {predict / floor:.2f} (with scikit-learn's checks {whole:.3f} s)"
    )


def main() -> None:
    """Print all ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-textbook", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    report_features(options.repeat)
    report_fit(options.repeat, not options.no_textbook)
    report_predict(options.repeat)


if __name__ == "__main__":
    main()
