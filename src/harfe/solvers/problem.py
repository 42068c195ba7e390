"""The least-squares problem as the pursuit sees it.

    minimise over c with at most s non-zeros   (1/M) Σ_k w_k |y_k - ȳ - (A c)_k|² + α‖c‖²,

M = Σ w, A = (φ - ā)/σ: raw features φ, centred with the row weights (ā = 0 without an intercept)
and scaled to unit root-mean-square (σ = 1 for the paper's literal columns). Because of the division
by M, nothing depends on the number of rows; α is the "mλ" of the paper's table of real data.

The contract of every home, which is all that the pursuit may use:

- ``shape`` -> (M, N, targets); ``usable`` -> which features are not constant; ``power`` ->
  Σ w|y - ȳ|²/M of each target;
- ``gradient(S, c)`` -> A*W(y - ȳ - A c)/M over all N features, and the residual sum of squares
  over M for each target, at the point c supported on S: the expensive call, one pass over the
  features; ``step(S, c, μ, α, s)`` -> the s features that are largest after a gradient step, for
  which a home may need less than the gradient, and the same sum; ``rss(S, c)`` -> that sum alone;
- ``normal(S, known)`` -> (A_S*WA_S/M, A_S*Wy/M); rows of a Gram matrix known from an earlier
  support are reused where S has the same feature at the same place;
- ``n_rows``, and if there are fewer rows than features in the support and the home
  ``offers_kernel``, ``kernel(S)`` -> (A_S A_S*/M, y), one row per data row, with
  ``pull_back(S, v)`` -> A_S*v/M; rows are multiplied by √w;
- ``system(S)`` -> least squares on S with as few rows as possible, for the rare singular support;
- ``dtype``, and ``to_raw``, ``from_raw`` between c and coefficients of the raw features;
  ``targets.unit`` -> one unit of a target in units of y; ``y_is_vector``.

No matrix with N columns crosses this interface, so that another home takes one class and no new
loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe._core.threads import blocks, run_blocks
from harfe.solvers.threshold import largest_rows

# A feature whose deviation is below this share of its root-mean-square counts as constant.
_CONSTANT = 1e-6

# The mean of equal numbers has a rounding error: a deviation below this share counts as zero.
_CONSTANT_TARGET = 1e-14

# Units of work, measured: a tile that is computed should stay in the cache, and one that is stored
# should be worth a BLAS call. Independent of the number of threads, so that the bits are too.
ROW_BLOCK = 1024
SUPPORT_BLOCK = 128

# A single target keeps its units unless its squares would leave the range of doubles.
_PLAIN_UNITS = (1e-100, 1e100)


def _dot(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Product a @ b; a real `a` is never converted to complex because `b` is."""
    if np.iscomplexobj(b) and not np.iscomplexobj(a):
        b = np.ascontiguousarray(b)
        return (a @ b.view(b.real.dtype)).view(b.dtype)
    return a @ b


def _mirror(lower: NDArray[Any]) -> None:
    """Fill the upper triangle of a Hermitian matrix from the lower one."""
    for part in blocks(len(lower), SUPPORT_BLOCK):
        lower[: part.start, part] = lower[part, : part.start].conj().T


@dataclass(frozen=True)
class Targets:
    """Centred targets in comparable units, times √w, with the numbers that undo this.

    Several targets are each divided by their deviation, so that all count equally in the choice of
    the shared support.
    """

    values: NDArray[Any]
    centre: NDArray[Any]
    unit: NDArray[np.float64]

    @classmethod
    def of(cls, y: NDArray[Any], weights: NDArray[np.float64], fit_intercept: bool) -> Targets:
        """Centre `y` of shape (rows, targets) if an intercept is fitted, and scale it."""
        largest = np.abs(y).max(axis=0)
        extreme = (largest > 0) & ((largest < _PLAIN_UNITS[0]) | (largest > _PLAIN_UNITS[1]))
        coarse = np.where(extreme, largest, 1.0)
        share = weights / weights.sum()
        scaled = y / coarse
        centre = share @ scaled if fit_intercept else np.zeros(y.shape[1])
        scaled = scaled - centre
        rms = np.sqrt(share @ np.abs(scaled) ** 2)
        constant = rms <= _CONSTANT_TARGET * np.abs(y / coarse).max(axis=0)
        fine = np.where((extreme | (y.shape[1] > 1)) & ~constant, rms, 1.0)
        values = np.where(constant, 0.0, scaled / fine) * np.sqrt(weights)[:, None]
        return cls(values, centre * coarse, fine * coarse)


class Problem(ABC):
    """Base class of the homes: everything but the features, which `_tile` supplies."""

    offers_kernel = True
    feature_block = 128

    # Whether y was passed as a vector; solutions for the columns as given then have no target axis.
    y_is_vector = False

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
        self.power = np.sum(np.abs(self.targets.values) ** 2, axis=0) / self.total_weight
        self.shape = (self.total_weight, n_features, y.shape[1])
        self.dtype = np.result_type(dtype, self.targets.values.dtype)
        self.mean = np.zeros(n_features, dtype)
        self.scale = np.ones(n_features)
        self.usable = np.ones(n_features, dtype=bool)

    @abstractmethod
    def _tile(self, features: NDArray[np.intp] | slice, rows: slice) -> NDArray[Any]:
        """(A - ā)/σ·√w of these features (first axis) on these rows; may be a view."""

    def _gather(self, S: NDArray[np.intp], rows: slice) -> NDArray[Any]:
        """Tile of a whole support, computed on all threads."""
        out = np.empty((len(S), rows.stop - rows.start), self.mean.dtype)

        def work(part: slice) -> None:
            out[part] = self._tile(S[part], rows)

        run_blocks(work, blocks(len(S), SUPPORT_BLOCK))
        return out

    def gradient(self, S: NDArray[np.intp], c: NDArray[Any]) -> tuple[NDArray[Any], Any]:
        """A*W(y - A c)/M over all N features, and Σ w|y - A c|²/M of each target, at c on S."""
        M, N, T = self.shape
        residual = self._residual(S, c)
        conjugate = residual.conj()
        g = np.empty((N, T), self.dtype)

        def work(features: slice) -> None:
            total = np.zeros((features.stop - features.start, T), self.dtype)
            for rows in blocks(self.n_rows, ROW_BLOCK):
                total += _dot(self._tile(features, rows), conjugate[rows])
            g[features] = total.conj() / M

        run_blocks(work, blocks(N, self.feature_block))
        g[~self.usable] = 0
        return g, np.sum(np.abs(residual) ** 2, axis=0) / M

    def step(
        self, S: NDArray[np.intp], c: NDArray[Any], mu: float, alpha: float, s: int
    ) -> tuple[NDArray[np.intp], Any]:
        """The s largest of c̃ = (1 - μα) c + μ A*W(y - A c)/M, and Σ w|y - A c|²/M of each target.

        c is supported on S; "largest" is by the norm over the targets, ties to the lower index.
        """
        gradient, rss = self.gradient(S, c)
        stepped = mu * gradient
        stepped[S] += (1 - mu * alpha) * c
        return largest_rows(stepped, s, self.usable), rss

    def rss(self, S: NDArray[np.intp], c: NDArray[Any]) -> NDArray[np.float64]:
        """Σ w|y - A c|²/M of each target, at c on S."""
        power: NDArray[np.float64] = np.sum(np.abs(self._residual(S, c)) ** 2, axis=0)
        return power / self.total_weight

    def _residual(self, S: NDArray[np.intp], c: NDArray[Any]) -> NDArray[Any]:
        residual = self.targets.values.astype(self.dtype)
        if len(S):

            def work(rows: slice) -> None:
                for part in blocks(len(S), ROW_BLOCK):
                    residual[rows] -= _dot(self._tile(S[part], rows).T, c[part])

            run_blocks(work, blocks(self.n_rows, ROW_BLOCK))
        return residual

    def normal(
        self,
        S: NDArray[np.intp],
        known: tuple[NDArray[np.intp], NDArray[Any]] | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """A_S*WA_S/M and A_S*Wy/M for S in any order.

        `known` is an earlier support and its Gram matrix: where S has the same feature at the same
        place, its row is reused.
        """
        M, _, T = self.shape
        s = len(S)
        if known is not None and (len(known[0]) != s or 2 * np.sum(known[0] != S) > s):
            known = None  # if most are new, the lower triangle is less work than full rows
        fresh = np.arange(s) if known is None else np.flatnonzero(known[0] != S)
        rows_of_gram = np.zeros((len(fresh), s), self.mean.dtype)
        moment = np.zeros((s, T), self.dtype)
        for rows in blocks(self.n_rows, ROW_BLOCK):
            tile = self._gather(S, rows)
            moment += _dot(tile, self.targets.values[rows].conj())

            def work(part: slice, tile: NDArray[Any] = tile) -> None:
                columns = slice(0, part.stop if known is None else s)
                rows_of_gram[part, columns] += tile[fresh[part]].conj() @ tile[columns].T / M

            run_blocks(work, blocks(len(fresh), SUPPORT_BLOCK))
        if known is None:
            gram = rows_of_gram
            _mirror(gram)
        else:
            gram = known[1].copy()
            gram[fresh] = rows_of_gram
            gram[:, fresh] = rows_of_gram.conj().T
        return gram, moment.conj() / M

    def kernel(self, S: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[Any]]:
        """A_S A_S*/M, with a row and a column per data row, and the targets, all times √w."""
        m = self.n_rows
        kernel = np.zeros((m, m), self.mean.dtype)
        for part in blocks(len(S), ROW_BLOCK):
            tile = self._gather(S[part], slice(0, m))

            def work(rows: slice, tile: NDArray[Any] = tile) -> None:
                product = tile[:, rows].T @ tile[:, : rows.stop].conj()
                kernel[rows, : rows.stop] += product / self.total_weight

            run_blocks(work, blocks(m, SUPPORT_BLOCK))
        _mirror(kernel)
        return kernel, self.targets.values

    def pull_back(self, S: NDArray[np.intp], v: NDArray[Any]) -> NDArray[Any]:
        """A_S*v/M of vectors v over the rows."""
        out = np.zeros((len(S), v.shape[1]), self.dtype)

        def work(part: slice) -> None:
            for rows in blocks(self.n_rows, ROW_BLOCK):
                out[part] += _dot(self._tile(S[part], rows), v[rows].conj())

        run_blocks(work, blocks(len(S), SUPPORT_BLOCK))
        return out.conj() / self.total_weight

    def system(self, S: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Matrix and right-hand side of least squares on S, with as few rows as possible.

        A_S and y times √(w/M), reduced by QR block by block: the same singular values, accurate to
        the last digits of A_S and not only of its Gram matrix.
        """
        s, T = len(S), self.shape[2]
        stacked = np.empty((0, s + T), self.dtype)
        for rows in blocks(self.n_rows, max(s, ROW_BLOCK)):
            block = np.hstack([self._gather(S, rows).T, self.targets.values[rows]])
            stacked = np.vstack([stacked, block / np.sqrt(self.total_weight)])
            if len(stacked) > s + T:
                stacked = sla.qr(stacked, mode="r", check_finite=False)[0][: s + T]
        return stacked[:, :s], stacked[:, s:]

    def to_raw(self, S: NDArray[np.intp], c: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Coefficients (targets, s) of the raw features, and the intercept of each target."""
        coef = (c / self.scale[S, None] * self.targets.unit).T
        intercept = self.targets.centre - coef @ self.mean[S]
        return coef, intercept

    def from_raw(self, S: NDArray[np.intp], coef: NDArray[Any]) -> NDArray[Any]:
        """Coefficients of the scaled problem, from raw ones of shape (targets, s)."""
        return coef.T / self.targets.unit * self.scale[S, None]

    def _adopt_moments(
        self, features: slice, mean: NDArray[Any], squares: NDArray[np.float64], scaled: bool
    ) -> NDArray[np.float64]:
        """Store means and scales of some features; return 1/σ, or 0 for those never chosen."""
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
