"""Expansions of index sets: Gaussian kernels at the rows, or random Fourier features.

Each is transformed to coordinates in which its columns are orthogonal and the norm of the
coefficients is unchanged; see `harfe.rivals.solvers.group_lasso`. Kernels of one or two inputs are
smooth, so few such columns remain, and no kernel is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe._core.compiling import compiled
from harfe.rivals.solvers.group_lasso import rotated

IndexSet = tuple[int, ...]

# Accuracy of the entries of a kernel, which are at most 1.
_KERNEL_TOL = 1e-6

# Standardised inputs are clipped to this: the cosine of infinity is not a number.
_FURTHEST = 1e9


def gaussian(
    Z: NDArray[np.float64], centres: NDArray[np.float64], bandwidth: float
) -> NDArray[np.float64]:
    """exp(-‖z - c‖²/(2 bandwidth²)), (rows, centres)."""
    exponent = np.zeros((len(Z), len(centres)))
    for z, c in zip(Z.T, centres.T, strict=True):
        exponent -= 0.5 * ((z[:, None] - c) / bandwidth) ** 2
    return np.exp(exponent, out=exponent)


def frequencies(seed: int, index_set: IndexSet, n: int) -> NDArray[np.float64]:
    """Standard normal frequencies, (inputs, n); a set's do not depend on other sets."""
    return np.random.default_rng([seed, *index_set]).standard_normal((len(index_set), n))


def fourier_features(
    Z: NDArray[np.float64], W: NDArray[np.float64], bandwidth: float
) -> NDArray[np.float64]:
    """φ with E φφᵀ = the Gaussian kernel: cosines and sines of the frequencies."""
    angle = Z @ (W / bandwidth)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(W.shape[1])


@dataclass(frozen=True)
class SetExpansion:
    """The functions e_i^(j) of every index set.

    Attributes
    ----------
    kind : {"kernels", "features"}
    bandwidth : float
    rows : array of shape (m, inputs that vary)
        Standardised; the centres of the kernels.
    inputs_of : int array
        Column numbers of the inputs that vary.
    n_components : int
        Number of frequencies per index set.
    seed : int
    """

    kind: str
    bandwidth: float
    rows: NDArray[np.float64]
    inputs_of: NDArray[np.intp]
    n_components: int
    seed: int

    def inputs(self, index_set: IndexSet) -> NDArray[np.float64]:
        """The centres restricted to the inputs of this set."""
        return np.ascontiguousarray(self.rows[:, list(index_set)])

    def evaluate(self, index_set: IndexSet, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at standardised rows, (rows, functions)."""
        Z = np.clip(Z[:, list(index_set)], -_FURTHEST, _FURTHEST)
        if self.kind == "kernels":
            return gaussian(Z, self.inputs(index_set), self.bandwidth)
        named = tuple(int(self.inputs_of[j]) for j in index_set)
        W = frequencies(self.seed, named, self.n_components)
        return fourier_features(Z, W, self.bandwidth)


@dataclass(frozen=True)
class SetBlock:
    """An expansion E at some rows in new coordinates: E·back - mean = F, up to rounding.

    Attributes
    ----------
    F : array of shape (rows, size)
        Centred, with orthogonal columns unless `back` is None.
    back : array of shape (functions, size) or None
        Maps coefficients of the columns to those of the functions; None if they are equal.
    mean : array of shape (size,)
        Column means, subtracted to centre the columns.
    """

    F: NDArray[np.float64]
    back: NDArray[np.float64] | None
    mean: NDArray[np.float64]

    def columns(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns at other rows, from the values of the functions there."""
        return (values if self.back is None else values @ self.back) - self.mean

    def to_expansion(self, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of the functions."""
        return beta if self.back is None else self.back @ beta


def plain_block(values: NDArray[np.float64]) -> SetBlock:
    """The functions themselves, centred, for a penalty that is not invariant under rotation."""
    mean = values.mean(axis=0)
    return SetBlock(values - mean, None, mean)


def feature_block(values: NDArray[np.float64]) -> SetBlock:
    """A few functions, centred and rotated."""
    mean = values.mean(axis=0)
    F, V = rotated(values - mean)
    return SetBlock(F, V, mean @ V)


def kernel_block(Z: NDArray[np.float64], bandwidth: float) -> SetBlock:
    """The kernels at all rows, K = U diag(s) Uᵀ up to 1e-6: coefficients outside U are zero."""
    L = _pivoted_factor(Z / bandwidth, _KERNEL_TOL).T
    values, W = sla.eigh(L.T @ L, driver="evd", check_finite=False)
    kept = values > _KERNEL_TOL * values[-1]
    values = values[kept]
    U = L @ (W[:, kept] / np.sqrt(values))
    mean = U.mean(axis=0) * values
    F, V = rotated(U * values - mean)
    return SetBlock(F, U @ V, mean @ V)


@compiled()
def _pivoted_factor(Z, tol):  # type: ignore[no-untyped-def]
    """Rows Lᵀ with K ≈ LLᵀ for the Gaussian kernel: Cholesky with the largest residual as pivot."""
    m, k = Z.shape
    rows = np.empty((m, m))
    left = np.ones(m)
    n = 0
    while n < m:
        pivot = np.argmax(left)
        if left[pivot] <= tol:
            break
        row = rows[n]
        for i in range(m):
            square = 0.0
            for c in range(k):
                square += (Z[i, c] - Z[pivot, c]) ** 2
            row[i] = np.exp(-0.5 * square)
        for before in range(n):
            other, step = rows[before], rows[before, pivot]
            for i in range(m):
                row[i] -= step * other[i]
        scale = 1.0 / np.sqrt(left[pivot])
        for i in range(m):
            row[i] *= scale
            left[i] -= row[i] * row[i]
        left[pivot] = 0.0
        n += 1
    return rows[:n].copy()
