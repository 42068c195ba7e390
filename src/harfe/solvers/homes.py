"""The homes of a problem: where its features are kept, and which home fits into memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.threads import blocks, n_threads, run_blocks
from harfe.features import kernels
from harfe.features.pool import FeaturePool, Rows
from harfe.solvers.problem import ROW_BLOCK, Problem
from harfe.solvers.threshold import largest_rows, split_largest

COLUMN_SCALES = ("rms", "none")

# Features that one call writes, measures and standardises; with fewer, threads wait for the GIL.
_FILL_BLOCK = 512


class StoredProblem(Problem):
    """The home that stores A, feature-major: N·rows numbers, filled and standardised in place.

    A second copy in single precision, for steps of the pursuit, halves the memory that they read.
    """

    feature_block = 1024
    _single: NDArray[np.float32] | None = None

    def __init__(
        self,
        pool: FeaturePool,
        X: NDArray[Any],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        *,
        fit_intercept: bool = True,
        column_scale: str = "rms",
    ) -> None:
        super().__init__(y, weights, fit_intercept, len(pool), pool.result_type(np.float64))
        rows = Rows.of(X)
        self._A = np.empty((len(pool), self.n_rows), self.mean.dtype)
        self._fill(lambda part: pool.take(part).write(rows, 0, self._A[part]), column_scale)

    @classmethod
    def from_matrix(
        cls,
        A: ArrayLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        fit_intercept: bool = True,
        column_scale: str = "rms",
    ) -> StoredProblem:
        """Return the problem of a given matrix (rows, N) instead of features and data."""
        A, y = np.asarray(A), np.asarray(y)
        weights = np.ones(len(A)) if weights is None else np.asarray(weights, dtype=float)
        self = cls.__new__(cls)
        dtype = np.result_type(A.dtype, np.float64)
        columns = y.reshape(len(A), -1)
        Problem.__init__(self, columns, weights, fit_intercept, A.shape[1], dtype)
        self.y_is_vector = y.ndim == 1
        self._A = np.array(A.T, dtype=dtype, order="C")
        self._fill(lambda part: None, column_scale)
        return self

    def _fill(self, write: Callable[[slice], None], column_scale: str) -> None:
        root_weights = np.sqrt(self.weights)
        # The bound on its rounding errors below is for columns of norm 1.
        if column_scale == "rms" and self.dtype == np.float64:
            self._single = np.empty(self._A.shape, np.float32)

        def work(part: slice) -> None:
            write(part)
            block = self._A[part]
            mean = np.empty(len(block), block.dtype)
            squares = np.empty(len(block))
            kernels.moments(block, self.weights, mean, squares)
            inverse = self._adopt_moments(part, mean, squares, column_scale == "rms")
            kernels.standardise(block, self.mean[part], inverse, root_weights)
            if self._single is not None:
                self._single[part] = block

        run_blocks(work, blocks(len(self._A), _FILL_BLOCK))

    def _tile(self, features: NDArray[np.intp] | slice, rows: slice) -> NDArray[Any]:
        return self._A[features, rows]

    def _gather(self, S: NDArray[np.intp], rows: slice) -> NDArray[Any]:
        return self._A[S, rows]

    def step(
        self, S: NDArray[np.intp], c: NDArray[Any], mu: float, alpha: float, s: int
    ) -> tuple[NDArray[np.intp], Any]:
        """The same features as those of `Problem.step`, mostly ranked in single precision.

        Features so near to the threshold that rounding may decide are ranked in double precision.
        """
        single = self._single
        if single is None:
            return super().step(S, c, mu, alpha, s)
        M, N, T = self.shape
        residual = self._residual(S, c)
        rss = np.sum(residual**2, axis=0) / M
        unit = np.sqrt(np.where(rss > 0, rss, 1.0))
        scaled = (residual / unit).astype(np.float32)
        shrunk = np.zeros((N, T))
        shrunk[S] = (1 - mu * alpha) * c
        stepped = np.empty((N, T))

        def work(features: slice) -> None:
            total = np.zeros((features.stop - features.start, T))
            for rows in blocks(self.n_rows, ROW_BLOCK):
                total += single[features, rows] @ scaled[rows]
            stepped[features] = shrunk[features] + total * (mu * unit / M)

        run_blocks(work, blocks(N, 2 * self.feature_block))
        # Of a sum of n products, rounding changes at most (n + 3) u Σ|a||r|, u half an epsilon.
        error = (ROW_BLOCK + 3) * np.finfo(np.float32).eps / 2 * mu * np.sqrt(np.sum(rss))
        surely, maybe = split_largest(stepped, s, self.usable, 2 * error)
        exact = shrunk[maybe] + mu * self.pull_back(maybe, residual)
        near = maybe[largest_rows(exact, s - len(surely))]
        return np.sort(np.concatenate([surely, near])), rss


class RecomputedProblem(Problem):
    """The home that never stores A: every pass recomputes its features, tile by tile."""

    def __init__(
        self,
        pool: FeaturePool,
        X: NDArray[Any],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        *,
        fit_intercept: bool = True,
        column_scale: str = "rms",
    ) -> None:
        super().__init__(y, weights, fit_intercept, len(pool), pool.result_type(np.float64))
        self._pool = pool
        self._rows = Rows.of(X)
        self._root_weights = np.sqrt(weights)
        self._inverse = np.empty(len(pool))
        self._normal: tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]] | None = None

        def work(part: slice) -> None:
            mean, squares = self._moments(part)
            self._inverse[part] = self._adopt_moments(part, mean, squares, column_scale == "rms")

        run_blocks(work, blocks(len(pool), self.feature_block))

    def normal(
        self,
        S: NDArray[np.intp],
        known: tuple[NDArray[np.intp], NDArray[Any]] | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """`Problem.normal`; the last result is kept: the posterior of a fit needs it again."""
        if self._normal is None or not np.array_equal(self._normal[0], S):
            self._normal = (S.copy(), *super().normal(S, known))
        return self._normal[1].copy(), self._normal[2].copy()

    def _raw(self, pool: FeaturePool, rows: slice) -> NDArray[Any]:
        out = np.empty((len(pool), rows.stop - rows.start), self.mean.dtype)
        pool.write(self._rows, rows.start, out)
        return out

    def _moments(self, part: slice) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Mean and Σ w|φ - mean|², merged over blocks of rows by Chan's update."""
        pool = self._pool.take(part)
        mean = np.zeros(len(pool), self.mean.dtype)
        squares = np.zeros(len(pool))
        seen = 0.0
        block_mean, block_squares = np.empty_like(mean), np.empty_like(squares)
        for rows in blocks(self.n_rows, ROW_BLOCK):
            weights = self.weights[rows]
            if not weights.any():
                continue
            kernels.moments(self._raw(pool, rows), weights, block_mean, block_squares)
            total = seen + weights.sum()
            gap = block_mean - mean
            mean = mean + gap * (weights.sum() / total)
            with np.errstate(over="ignore", invalid="ignore"):  # such a feature is not usable
                squares += block_squares + np.abs(gap) ** 2 * (seen * weights.sum() / total)
            seen = total
        return mean, squares

    def _tile(self, features: NDArray[np.intp] | slice, rows: slice) -> NDArray[Any]:
        tile = self._raw(self._pool.take(features), rows)
        kernels.standardise(
            tile, self.mean[features], self._inverse[features], self._root_weights[rows]
        )
        return tile


def make_problem(
    pool: FeaturePool,
    X: NDArray[Any],
    y: NDArray[Any],
    weights: NDArray[np.float64],
    *,
    largest_support: int,
    memory_budget: float,
    working_numbers: int = 0,
    fit_intercept: bool = True,
    column_scale: str = "rms",
) -> Problem:
    """State the problem in the home that `choose_home` picks for its size."""
    home = choose_home(
        len(y),
        len(pool),
        X.shape[1],
        y.shape[1],
        itemsize=pool.result_type(np.float64).itemsize,
        largest_support=largest_support,
        memory_budget=memory_budget,
        working_numbers=working_numbers,
    )
    return home(pool, X, y, weights, fit_intercept=fit_intercept, column_scale=column_scale)


def choose_home(
    n_rows: int,
    n_features: int,
    n_inputs: int,
    n_targets: int,
    *,
    itemsize: int,
    largest_support: int,
    memory_budget: float,
    working_numbers: int = 0,
) -> type[StoredProblem | RecomputedProblem]:
    """Choose the home by the memory it needs, before allocating any.

    A is stored if rows × N numbers, those of its copy in single precision (of real features), and
    the working space of the solves fit into `memory_budget` bytes; otherwise every pass recomputes
    it in tiles, which takes longer (how much: ``benchmarks/speed.py``). If not even the tiles and
    the restricted systems fit, a MemoryError says what to change. `largest_support` is the size of
    the largest system that will be solved: s, or more with a graded start; `working_numbers` is how
    many more numbers that start stores.
    """
    m, N, s = n_rows, n_features, largest_support
    side = min(s, m)
    # Gram matrix, its factor and one copy; the features of a support, on all rows if there are few;
    # the inputs, transposed; residual and targets; gradient and moments.
    solve = 3 * side**2 + 2 * s * min(m, max(s, ROW_BLOCK)) + working_numbers
    vectors = m * (n_inputs + 4 * n_targets) + N * (4 * n_targets + 4)
    tiles = n_threads() * RecomputedProblem.feature_block * min(m, ROW_BLOCK)
    single = 4 * m * N if itemsize == 8 else 0
    stored = itemsize * (m * N + solve + vectors) + single
    recomputed = itemsize * (tiles + solve + vectors)
    if stored <= memory_budget:
        return StoredProblem
    if recomputed <= memory_budget:
        return RecomputedProblem
    raise MemoryError(
        f"The fit needs {_bytes(recomputed)} even without storing the features (rows={m}, "
        f"n_components={N}, systems of {s} features), but memory_budget is "
        f"{_bytes(memory_budget)}; raise memory_budget, lower n_nonzero_coefs or n_components, use "
        "fewer rows, or use HARFERegressor(init='zero')"
    )


def _bytes(n: float) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = min(int(math.log(max(n, 1), 1024)), len(units) - 1)
    return f"{n / 1024**power:.3g} {units[power]}"
