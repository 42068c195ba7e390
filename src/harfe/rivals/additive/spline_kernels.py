"""Smoothing-spline ANOVA on the unit cube: kernels of main effects and pairs, and splines.

The kernel of one input is that of the second-order Sobolev space on [0, 1] without the constants,

    k(s, t) = k₁(s)k₁(t) + k₂(s)k₂(t) - k₄(|s - t|),

with k_r the Bernoulli polynomials divided by r!. No kernel of a component is stored: its rows are
computed as needed, so memory does not grow with the number of components. Inputs come transposed,
(inputs, rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe._core.compiling import compiled
from harfe._core.threads import blocks, run_blocks

# Candidates for λ₀ with all θ = 1, in units of the mean of the kernel's diagonal.
_SMOOTHINGS = np.geomspace(10.0, 1e-10, 34)

# Columns a loop handles at a time, so that its buffers stay in cache.
_COLUMNS = 64

# Rows a thread handles at a time.
_ROWS = 16


@dataclass(frozen=True)
class Components:
    """Weights θ of the components: all main effects, and some pairs.

    Attributes
    ----------
    mains : array of shape (d,)
        θ of the main effects.
    pairs : int array of shape (P, 2)
        Inputs of the pairs.
    weights : array of shape (P,)
        θ of the pairs.
    """

    mains: NDArray[np.float64]
    pairs: NDArray[np.intp]
    weights: NDArray[np.float64]

    @classmethod
    def among(cls, d: int, paired: NDArray[np.intp], thetas: NDArray[np.float64]) -> Components:
        """All d main effects, and the pairs of the inputs `paired`; θ in that order."""
        first, second = np.triu_indices(len(paired), 1)
        pairs = np.column_stack([paired[first], paired[second]])
        return cls(thetas[:d], pairs, thetas[d:])

    def kept(self) -> Components:
        """The same without pairs of weight 0."""
        kept = self.weights > 0
        return Components(self.mains, self.pairs[kept], self.weights[kept])


@compiled(inline="always")
def _first(t):  # type: ignore[no-untyped-def]
    return t - 0.5


@compiled(inline="always")
def _second(t):  # type: ignore[no-untyped-def]
    return ((t - 0.5) ** 2 - 1.0 / 12.0) / 2.0


@compiled(fastmath=True)
def _factors(s, t, n, out):  # type: ignore[no-untyped-def]
    """Set out = k(s, t) for one s and n numbers t."""
    a = _first(s)
    b = _second(s)
    for i in range(n):
        u = abs(s - t[i]) - 0.5
        square = u * u
        fourth = (square * square - 0.5 * square + 7.0 / 240.0) / 24.0
        out[i] = a * _first(t[i]) + b * _second(t[i]) - fourth


@compiled(fastmath=True)
def _add_scaled(out, weight, k, n):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] += weight * k[i]


@compiled(fastmath=True)
def _add_product(out, weight, k, other, n):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] += weight * k[i] * other[i]


@compiled(fastmath=True)
def _add_all_pairs(out, total, squares, n):  # type: ignore[no-untyped-def]
    """Σ_{j<k} k_j k_k = ((Σ k_j)² - Σ k_j²)/2."""
    for i in range(n):
        out[i] += 0.5 * (total[i] * total[i] - squares[i])


@compiled(nogil=True)
def _weighted_rows(XT, ZT, mains, pairs, weights, used, out):  # type: ignore[no-untyped-def]
    """out[i, k] = Σ_j θ_j k_j + Σ_{jl} θ_jl k_j k_l for rows i of X and k of Z."""
    k = np.empty((XT.shape[0], _COLUMNS))
    for i in range(out.shape[0]):
        for start in range(0, ZT.shape[1], _COLUMNS):
            n = min(_COLUMNS, ZT.shape[1] - start)
            row = out[i, start : start + n]
            row[:] = 0.0
            for j in range(XT.shape[0]):
                if used[j]:
                    _factors(XT[j, i], ZT[j, start : start + n], n, k[j])
                    if mains[j] != 0.0:
                        _add_scaled(row, mains[j], k[j], n)
            for p in range(pairs.shape[0]):
                _add_product(row, weights[p], k[pairs[p, 0]], k[pairs[p, 1]], n)


@compiled(nogil=True)
def _equal_rows(XT, ZT, paired, out):  # type: ignore[no-untyped-def]
    """out[i, k] = Σ_j k_j, plus all products of two inputs of `paired`."""
    k = np.empty(_COLUMNS)
    total = np.empty(_COLUMNS)
    squares = np.empty(_COLUMNS)
    for i in range(out.shape[0]):
        for start in range(0, ZT.shape[1], _COLUMNS):
            n = min(_COLUMNS, ZT.shape[1] - start)
            row = out[i, start : start + n]
            row[:] = 0.0
            total[:] = 0.0
            squares[:] = 0.0
            for j in range(XT.shape[0]):
                _factors(XT[j, i], ZT[j, start : start + n], n, k)
                _add_scaled(row, 1.0, k, n)
                if paired[j]:
                    _add_scaled(total, 1.0, k, n)
                    _add_product(squares, 1.0, k, k, n)
            _add_all_pairs(row, total, squares, n)


@compiled(nogil=True)
def _factor_rows(XT, i, ZT, out):  # type: ignore[no-untyped-def]
    """out[j, k] = k(x_ij, z_kj) for all inputs j of row i."""
    for j in range(XT.shape[0]):
        _factors(XT[j, i], ZT[j], ZT.shape[1], out[j])


def weighted_kernel(
    XT: NDArray[np.float64], ZT: NDArray[np.float64], components: Components
) -> NDArray[np.float64]:
    """K_θ between the rows of X and those of Z, using all threads."""
    kept = components.kept()
    used = kept.mains > 0
    used[kept.pairs.ravel()] = True
    out = np.empty((XT.shape[1], ZT.shape[1]))

    def work(rows: slice) -> None:
        part = np.ascontiguousarray(XT[:, rows])
        _weighted_rows(part, ZT, kept.mains, kept.pairs, kept.weights, used, out[rows])

    run_blocks(work, blocks(len(out), _ROWS))
    return out


def equal_kernel(ZT: NDArray[np.float64], paired: NDArray[np.intp]) -> NDArray[np.float64]:
    """K_θ of some rows, with θ = 1 for every main effect and all pairs of the inputs `paired`."""
    chosen = np.zeros(len(ZT), dtype=bool)
    chosen[paired] = True
    out = np.empty((ZT.shape[1], ZT.shape[1]))

    def work(rows: slice) -> None:
        _equal_rows(np.ascontiguousarray(ZT[:, rows]), ZT, chosen, out[rows])

    run_blocks(work, blocks(len(out), _ROWS))
    return out


def component_values(
    ZT: NDArray[np.float64], paired: NDArray[np.intp], c: NDArray[np.float64]
) -> NDArray[np.float64]:
    """K_a c of all components at the rows, (rows, components): main effects, then pairs.

    For one row, the values of all pairs are the entries of A diag(c) Aᵀ, with A the kernels of the
    single inputs.
    """
    d, m = ZT.shape
    upper = np.triu_indices(len(paired), 1)
    out = np.empty((m, d + len(upper[0])))

    def work(rows: slice) -> None:
        A = np.empty((d, m))
        for i in range(rows.start, rows.stop):
            _factor_rows(ZT, i, ZT, A)
            out[i, :d] = A @ c
            if len(upper[0]):
                B = A[paired]
                out[i, d:] = ((B * c) @ B.T)[upper]

    run_blocks(work, blocks(m, _ROWS))
    return out


@dataclass(frozen=True)
class Spline:
    """b + K_θ c: dual weights, constant, and the λ₀ of the fit."""

    c: NDArray[np.float64]
    b: float
    smoothing: float


def equal_spline(
    K: NDArray[np.float64], y: NDArray[np.float64], smoothings: Sequence[float] | None
) -> Spline:
    """The smoothing spline (K + mλ₀)c = y - b, 1ᵀc = 0, with the λ₀ that minimises GCV.

    The default candidates are multiples of the mean of the kernel's diagonal, from 10 to 1e-10.
    With the kernel centred, HKH = U diag(e) Uᵀ on the vectors orthogonal to 1, one decomposition
    serves all λ₀: c = U(Uᵀy/(e + a)), and GCV = m‖c‖²/(Σ 1/(e + a))², a = mλ₀.
    """
    m = len(y)
    if smoothings is None:
        smoothings = (_SMOOTHINGS * np.trace(K) / m).tolist()
    row = K.mean(axis=0)
    centred = K - row - row[:, None] + row.mean()
    e, U = sla.eigh(centred, driver="evd", check_finite=False, overwrite_a=True)
    # The vector 1 has the eigenvalue 0, which is the smallest.
    e, inner = np.maximum(e, 0.0), U.T @ (y - y.mean())
    scores = [
        m * np.sum((inner / (e + m * w)) ** 2) / np.sum(1 / (e[1:] + m * w)) ** 2
        for w in smoothings
    ]
    smoothing = smoothings[int(np.argmin(scores))]
    c = U @ (inner / (e + m * smoothing))
    c -= c.mean()
    return Spline(c, float(np.mean(y - K @ c)), smoothing)


def weighted_spline(K: NDArray[np.float64], y: NDArray[np.float64], smoothing: float) -> Spline:
    """The smoothing spline (K + mλ₀)c = y - b, 1ᵀc = 0, with a given λ₀. Overwrites K."""
    m = len(y)
    # With a smaller shift, rounding can make the Cholesky factorisation fail.
    shift = max(m * smoothing, 1e-13 * float(np.trace(K)))
    K.flat[:: m + 1] += shift
    factor = sla.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    by_y, by_one = sla.cho_solve(
        factor, np.column_stack([y, np.ones(m)]), check_finite=False, overwrite_b=True
    ).T
    b = float(by_y.sum() / by_one.sum())
    return Spline(by_y - b * by_one, b, smoothing)
