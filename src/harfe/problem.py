"""The least-squares problem as the pursuit sees it, and its homes.

    minimise over c with at most s non-zeros   (1/M) Σ_k w_k |y_k - ȳ - (A c)_k|² + α‖c‖²,

M = Σ w, A = (φ - ā)/σ: raw features φ, centred with the row weights (ā = 0 without an intercept) and
scaled to unit root-mean-square (σ = 1 for the paper's literal columns). Divided by M, nothing depends
on the number of rows; α is the "mλ" of the paper's table of real data.

What the pursuit may ask (the contract of every home):

- ``shape`` -> (M, N, targets), ``usable`` -> which features are not constant;
- ``gradient(S, c)`` -> A*W(y - ȳ - A c)/M over all N features, and the residual sum of squares over M,
  a target each, at the point c supported on S: the expensive verb, one pass over the features;
- ``normal(S, known)`` -> (A_S*WA_S/M, A_S*Wy/M); of a Gram matrix known for an earlier support only
  the rows of new features are computed;
- ``kernel(S)`` -> (A_S A_S*/M, y), of the size of the rows, and ``pull_back(S, v)`` -> A_S*v/M, where
  ``offers_kernel``; rows come multiplied by √w.

No matrix of N columns crosses this line, so that another home costs one class and no new loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe import kernels
from harfe.machine import blocks, n_threads, run_blocks
from harfe.pool import FeaturePool, Rows

COLUMN_SCALES = ("rms", "none")

# A feature whose deviation is below this share of its root-mean-square counts as constant.
_CONSTANT = 1e-6

# Tiles of features × rows: large enough for BLAS, small enough for the cache. Never a function of
# the number of threads, or the bits would be.
_FEATURE_BLOCK = 128
_ROW_BLOCK = 1024

# A single target keeps its units unless its squares would leave the range of doubles.
_PLAIN_UNITS = (1e-100, 1e100)


def _dot(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """a @ b; a real `a` is never copied to complex for the sake of a complex `b`."""
    if np.iscomplexobj(b) and not np.iscomplexobj(a):
        b = np.ascontiguousarray(b)
        return (a @ b.view(b.real.dtype)).view(b.dtype)
    return a @ b


@dataclass(frozen=True)
class Targets:
    """Centred targets in comparable units, times √w, and the way back.

    Several targets are divided by their own deviation, so that each counts alike in the choice of
    the shared support.
    """

    values: NDArray[Any]
    centre: NDArray[Any]
    unit: NDArray[np.float64]

    @classmethod
    def of(cls, y: NDArray[Any], weights: NDArray[np.float64], fit_intercept: bool) -> Targets:
        """Centre `y` of shape (rows, targets) where an intercept is fitted, and scale it."""
        largest = np.abs(y).max(axis=0)
        extreme = (largest > 0) & ((largest < _PLAIN_UNITS[0]) | (largest > _PLAIN_UNITS[1]))
        coarse = np.where(extreme, largest, 1.0)
        share = weights / weights.sum()
        scaled = y / coarse
        centre = share @ scaled if fit_intercept else np.zeros(y.shape[1])
        scaled = scaled - centre
        rms = np.sqrt(share @ np.abs(scaled) ** 2)
        comparable = (rms > 0) & (extreme | (y.shape[1] > 1))
        fine = np.where(comparable, rms, 1.0)
        values = scaled / fine * np.sqrt(weights)[:, None]
        return cls(values, centre * coarse, fine * coarse)


class Problem(ABC):
    """Everything of a home but where its features come from: `_tile` supplies those."""

    offers_kernel = True

    def __init__(
        self,
        y: NDArray[Any],
        weights: NDArray[np.float64],
        fit_intercept: bool,
        n_features: int,
        dtype: np.dtype[Any],
    ) -> None:
        self.weights = weights
        self.total_weight = float(weights.sum())
        self.fit_intercept = fit_intercept
        self.targets = Targets.of(y, weights, fit_intercept)
        self.n_rows = len(weights)
        self.shape = (self.total_weight, n_features, y.shape[1])
        self.dtype = np.result_type(dtype, self.targets.values.dtype)
        self.mean = np.zeros(n_features, dtype)
        self.scale = np.ones(n_features)
        self.usable = np.ones(n_features, dtype=bool)

    @abstractmethod
    def _tile(self, features: NDArray[np.intp] | slice, rows: slice) -> NDArray[Any]:
        """Return (A - ā)/σ·√w of these features (first axis) on these rows; not to be written to."""

    def _gather(self, S: NDArray[np.intp], rows: slice) -> NDArray[Any]:
        """Tile of a whole support, made by all threads."""
        out = np.empty((len(S), rows.stop - rows.start), self.mean.dtype)

        def work(part: slice) -> None:
            out[part] = self._tile(S[part], rows)

        run_blocks(work, blocks(len(S), _FEATURE_BLOCK))
        return out

    def gradient(self, S: NDArray[np.intp], c: NDArray[Any]) -> tuple[NDArray[Any], Any]:
        """A*W(y - A c)/M over all N features, and Σ w|y - A c|²/M of each target, at c on S."""
        M, N, T = self.shape
        residual = self._residual(S, c)
        conjugate = residual.conj()
        g = np.empty((N, T), self.dtype)

        def work(features: slice) -> None:
            total = np.zeros((features.stop - features.start, T), self.dtype)
            for rows in blocks(self.n_rows, _ROW_BLOCK):
                total += _dot(self._tile(features, rows), conjugate[rows])
            g[features] = total.conj() / M

        run_blocks(work, blocks(N, _FEATURE_BLOCK))
        g[~self.usable] = 0
        return g, np.sum(np.abs(residual) ** 2, axis=0) / M

    def _residual(self, S: NDArray[np.intp], c: NDArray[Any]) -> NDArray[Any]:
        residual = self.targets.values.astype(self.dtype)
        if len(S):

            def work(rows: slice) -> None:
                for part in blocks(len(S), _ROW_BLOCK):
                    residual[rows] -= _dot(self._tile(S[part], rows).T, c[part])

            run_blocks(work, blocks(self.n_rows, _ROW_BLOCK))
        return residual

    def normal(
        self,
        S: NDArray[np.intp],
        known: tuple[NDArray[np.intp], NDArray[Any]] | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """A_S*WA_S/M and A_S*Wy/M; `known` is an earlier support, sorted, and its Gram matrix."""
        M, _, T = self.shape
        s = len(S)
        old = np.zeros(s, dtype=bool) if known is None else np.isin(S, known[0])
        # Kept features first, new ones after: row blocks of new features then need only the columns
        # up to themselves, half of the work when all are new.
        order = np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)])
        n_old = int(old.sum())
        gram = np.zeros((s, s), self.mean.dtype)
        if known is not None:
            places = np.searchsorted(known[0], S[order[:n_old]])
            gram[:n_old, :n_old] = known[1][np.ix_(places, places)]
        moment = np.zeros((s, T), self.dtype)
        for rows in blocks(self.n_rows, _ROW_BLOCK):
            tile = self._gather(S[order], rows)
            moment += _dot(tile, self.targets.values[rows].conj())

            def work(part: slice, tile: NDArray[Any] = tile) -> None:
                new = slice(n_old + part.start, n_old + part.stop)
                gram[new, : new.stop] += tile[new].conj() @ tile[: new.stop].T / M

            run_blocks(work, blocks(s - n_old, _FEATURE_BLOCK))
        lower = np.tril(gram)
        gram = lower + np.tril(gram, -1).conj().T
        back = np.argsort(order)
        return gram[np.ix_(back, back)], moment.conj()[back] / M

    def kernel(self, S: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[Any]]:
        """A_S A_S*/M, a row and a column for each data row, and the targets, all times √w."""
        kernel = np.zeros((self.n_rows, self.n_rows), self.mean.dtype)
        everything = slice(0, self.n_rows)
        for part in blocks(len(S), _ROW_BLOCK):
            tile = self._gather(S[part], everything)

            def work(rows: slice, tile: NDArray[Any] = tile) -> None:
                kernel[rows, : rows.stop] += (
                    tile[:, rows].T @ tile[:, : rows.stop].conj() / self.total_weight
                )

            run_blocks(work, blocks(self.n_rows, _FEATURE_BLOCK))
        lower = np.tril(kernel)
        return lower + np.tril(kernel, -1).conj().T, self.targets.values

    def pull_back(self, S: NDArray[np.intp], v: NDArray[Any]) -> NDArray[Any]:
        """A_S*v/M of vectors v over the rows."""
        out = np.zeros((len(S), v.shape[1]), self.dtype)

        def work(part: slice) -> None:
            for rows in blocks(self.n_rows, _ROW_BLOCK):
                out[part] += _dot(self._tile(S[part], rows), v[rows].conj())

        run_blocks(work, blocks(len(S), _FEATURE_BLOCK))
        return out.conj() / self.total_weight

    def to_raw(self, S: NDArray[np.intp], c: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Coefficients (targets, s) of the raw features, and the intercept of each target."""
        coef = (c / self.scale[S, None] * self.targets.unit).T
        intercept = self.targets.centre - coef @ self.mean[S]
        return coef, intercept

    def from_raw(self, S: NDArray[np.intp], coef: NDArray[Any]) -> NDArray[Any]:
        """Coefficients of the scaled problem for raw ones of shape (targets, s)."""
        return np.asarray(coef.T / self.targets.unit * self.scale[S, None], self.dtype)

    def _adopt_moments(
        self, features: slice, mean: NDArray[Any], squares: NDArray[np.float64], scaled: bool
    ) -> NDArray[np.float64]:
        """Keep means and scales of some features; return 1/σ, 0 for what is never chosen."""
        with np.errstate(over="ignore"):
            rms = np.sqrt(squares / self.total_weight + np.abs(mean) ** 2)
        deviation = np.sqrt(squares / self.total_weight) if self.fit_intercept else rms
        usable = (deviation > _CONSTANT * rms) & np.isfinite(rms)
        self.usable[features] = usable
        if self.fit_intercept:
            self.mean[features] = np.where(usable, mean, 0)
        scale = np.where(usable & scaled, deviation, 1.0)
        self.scale[features] = scale
        return usable / scale


class StoredProblem(Problem):
    """The home that holds A, feature-major: N·rows numbers, filled and standardised in place."""

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
        """Problem of a given matrix (rows, N) instead of features and data."""
        A = np.asarray(A)
        y = np.asarray(y).reshape(len(A), -1)
        weights = np.ones(len(A)) if weights is None else np.asarray(weights, dtype=float)
        self = cls.__new__(cls)
        dtype = np.result_type(A.dtype, np.float64)
        Problem.__init__(self, y, weights, fit_intercept, A.shape[1], dtype)
        self._A = np.array(A.T, dtype=dtype, order="C")
        self._fill(lambda part: None, column_scale)
        return self

    def _fill(self, write: Any, column_scale: str) -> None:
        root_weights = np.sqrt(self.weights)

        def work(part: slice) -> None:
            write(part)
            block = self._A[part]
            mean = np.empty(len(block), block.dtype)
            squares = np.empty(len(block))
            kernels.moments(block, self.weights, mean, squares)
            inverse = self._adopt_moments(part, mean, squares, column_scale == "rms")
            kernels.standardise(block, self.mean[part], inverse, root_weights)

        run_blocks(work, blocks(len(self._A), _FEATURE_BLOCK))

    def _tile(self, features: NDArray[np.intp] | slice, rows: slice) -> NDArray[Any]:
        return self._A[features, rows]


class RecomputedProblem(Problem):
    """The home that never holds A: every pass computes its features again, tile by tile."""

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

        def work(part: slice) -> None:
            mean, squares = self._moments(part)
            self._inverse[part] = self._adopt_moments(part, mean, squares, column_scale == "rms")

        run_blocks(work, blocks(len(pool), _FEATURE_BLOCK))

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
        for rows in blocks(self.n_rows, _ROW_BLOCK):
            weights = self.weights[rows]
            kernels.moments(self._raw(pool, rows), weights, block_mean, block_squares)
            total = seen + weights.sum()
            gap = block_mean - mean
            mean = mean + gap * (weights.sum() / total)
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
    n_nonzero_coefs: int,
    memory_budget: float,
    fit_intercept: bool = True,
    column_scale: str = "rms",
) -> Problem:
    """Choose the home by memory, before any is taken.

    A is stored if rows × N numbers and the working space of the solves fit into `memory_budget`
    bytes; otherwise every pass computes it again in tiles, which costs about four times as long a
    pass. If not even the tiles and the s × s system fit, MemoryError says what to change.
    """
    itemsize = pool.result_type(np.float64).itemsize
    m, N, s = len(y), len(pool), n_nonzero_coefs
    side = min(s, m)
    # Gram matrix, its factor and one copy; the support's features of one block of rows, or of all
    # rows on the m × m side; the inputs once transposed; residual and targets.
    solve = 3 * side**2 + min(s, _ROW_BLOCK) * (m if s > m else min(m, _ROW_BLOCK))
    vectors = m * (X.shape[1] + 4 * y.shape[1]) + N * (4 * y.shape[1] + 4)
    tiles = n_threads() * _FEATURE_BLOCK * min(m, _ROW_BLOCK)
    stored = itemsize * (m * N + solve + vectors)
    recomputed = itemsize * (tiles + max(s, 1) * min(m, _ROW_BLOCK) + solve + vectors)
    settings = {"fit_intercept": fit_intercept, "column_scale": column_scale}
    if stored <= memory_budget:
        return StoredProblem(pool, X, y, weights, **settings)
    if recomputed <= memory_budget:
        return RecomputedProblem(pool, X, y, weights, **settings)
    raise MemoryError(
        f"The fit needs {_bytes(recomputed)} even without storing the features (rows={m}, "
        f"n_components={N}, n_nonzero_coefs={s}), but memory_budget is {_bytes(memory_budget)}; "
        "lower n_nonzero_coefs or n_components, use fewer rows, or raise memory_budget"
    )


def _bytes(n: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024:
            break
        n /= 1024
    else:
        unit = "TiB"
    return f"{n:.3g} {unit}"
