"""The compiled loops behind the kernel of a law: symmetric polynomials and their gradient.

For rows x, z the loops work on u_j = p_j χ(σ_j (x_j - z_j)), with χ the characteristic function of
the weights, and on e_q(u), the elementary symmetric polynomials. Both directions only add and
multiply numbers of one sign where the weights are normal, so nothing cancels at any order. Inputs
come transposed, (variables, rows).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from harfe._core.compiling import compiled
from harfe._core.threads import blocks, run_blocks

# Not "reassoc": it would cancel the two parts of ln 2 against each other.
_FLAGS = {"nnan", "ninf", "nsz", "arcp", "contract"}

# Columns a loop handles at a time: its buffers stay in the caches.
COLUMNS = 64

# Rows that a thread handles at a time.
ROWS = 16

_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10

# exp(-700), about 1e-304, is the smallest value that the loop below returns.
_SMALLEST = -700.0

# Adding 1.5·2^52 rounds to whole numbers and leaves them in the last bits; a conversion to integers
# would not vectorise without AVX-512.
_ROUND = 6755399441055744.0
_ONE = 1023 << 52  # the bits of 1.0


@compiled(inline="always", fastmath=_FLAGS)
def _exp_reduced(r):  # type: ignore[no-untyped-def]
    """exp(r) for |r| <= ln(2)/2 by its series, to the last bit or two."""
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    return p * r + 1.0


@compiled(fastmath=_FLAGS)
def _exp_row(t, n, room, out):  # type: ignore[no-untyped-def]
    """Out = exp(t) for t <= 0. t and room are overwritten."""
    for i in range(n):
        # The sum has no fractional bits, so its last bits are the whole number of halvings.
        room[i] = max(t[i], _SMALLEST) * _LOG2E + _ROUND
        turns = room[i] - _ROUND
        t[i] = (max(t[i], _SMALLEST) - turns * _LN2_HIGH) - turns * _LN2_LOW
    bits = room.view(np.int64)
    for i in range(n):
        bits[i] = (bits[i] << 52) + _ONE
    for i in range(n):
        out[i] = _exp_reduced(t[i]) * room[i]


@compiled(fastmath=_FLAGS)
def _normal_factors(x, z, rate, p, n, t, room, out):  # type: ignore[no-untyped-def]
    """Out = p exp(-rate (x - z)²)."""
    for i in range(n):
        gap = x - z[i]
        t[i] = -rate * gap * gap
    _exp_row(t, n, room, out)
    for i in range(n):
        out[i] *= p


@compiled()
def _uniform_factors(x, z, rate, p, n, out):  # type: ignore[no-untyped-def]
    """Out = p sin(rate (x - z)) / (rate (x - z))."""
    for i in range(n):
        a = rate * (x - z[i])
        out[i] = p * (math.sin(a) / a) if abs(a) > 1e-9 else p


@compiled(fastmath=_FLAGS)
def _next_degree(before, u, after, n):  # type: ignore[no-untyped-def]
    """Polynomials of all degrees r with one more variable u."""
    for i in range(n):
        after[0, i] = 1.0
    for r in range(1, before.shape[0]):
        for i in range(n):
            after[r, i] = before[r, i] + u[i] * before[r - 1, i]


@compiled(nogil=True)
def kernel_rows(XT, ZT, rates, p, eta, uniform, first, out, triangle):  # type: ignore[no-untyped-def]
    """out[i, k] = Σ_q eta[q] e_q(u) for rows first + i of X and rows k of Z.

    `rates` are σ²/2 for normal and σ for uniform weights. With `triangle` X and Z are the same rows
    and only k <= first + i is written.
    """
    d, Q = XT.shape[0], eta.shape[0] - 1
    before = np.empty((Q + 1, COLUMNS))
    after = np.empty((Q + 1, COLUMNS))
    t = np.empty(COLUMNS)
    u = np.empty(COLUMNS)
    room = np.empty(COLUMNS)
    for i in range(out.shape[0]):
        last = first + i + 1 if triangle else ZT.shape[1]
        for start in range(0, last, COLUMNS):
            n = min(COLUMNS, last - start)
            for q in range(Q + 1):
                for k in range(COLUMNS):
                    before[q, k] = 1.0 if q == 0 else 0.0
            for j in range(d):
                if p[j] == 0.0:
                    continue
                z = ZT[j, start : start + n]
                if uniform:
                    _uniform_factors(XT[j, first + i], z, rates[j], p[j], n, u)
                else:
                    _normal_factors(XT[j, first + i], z, rates[j], p[j], n, t, room, u)
                _next_degree(before, u, after, n)
                before, after = after, before
            row = out[i, start : start + n]
            for k in range(n):
                row[k] = eta[0]
            for q in range(1, Q + 1):
                for k in range(n):
                    row[k] += eta[q] * before[q, k]


@compiled(nogil=True, fastmath=True)
def gradient_rows(XT, rates, p, eta, G, first, last, by_rate, by_p, by_eta):  # type: ignore[no-untyped-def]
    """Gradient of Σ_{ik} G_ik k(x_i, x_k) over rows first .. last of a symmetric G.

    Adds the derivatives with respect to log(rate_j), log(p_j) and log(eta_q), for normal weights.
    Only pairs k <= i are visited, and those below the diagonal count twice: the lower triangle of
    G is enough.
    """
    d, Q = XT.shape[0], eta.shape[0] - 1
    E = np.empty((d + 1, Q + 1, COLUMNS))
    U = np.empty((d, COLUMNS))
    adjoint = np.empty((Q + 1, COLUMNS))
    t = np.empty(COLUMNS)
    D = np.empty(COLUMNS)
    g = np.empty(COLUMNS)
    room = np.empty(COLUMNS)
    for q in range(Q + 1):
        for k in range(COLUMNS):
            E[0, q, k] = 1.0 if q == 0 else 0.0
    for i in range(first, last):
        for start in range(0, i + 1, COLUMNS):
            n = min(COLUMNS, i + 1 - start)
            for k in range(n):
                g[k] = 2.0 * G[i, start + k]
            if start + n == i + 1:
                g[n - 1] *= 0.5
            for j in range(d):
                z = XT[j, start : start + n]
                _normal_factors(XT[j, i], z, rates[j], p[j], n, t, room, U[j])
                _next_degree(E[j], U[j], E[j + 1], n)
            for q in range(Q + 1):
                total = 0.0
                for k in range(n):
                    adjoint[q, k] = eta[q]
                    total += g[k] * E[d, q, k]
                by_eta[q] += eta[q] * total
            for j in range(d - 1, -1, -1):
                # D = ∂k/∂u of one variable; then the variable is removed from the adjoints.
                u, z, x = U[j], XT[j, start : start + n], XT[j, i]
                for k in range(n):
                    D[k] = 0.0
                for q in range(1, Q + 1):
                    upper, lower, before = adjoint[q], adjoint[q - 1], E[j, q - 1]
                    for k in range(n):
                        D[k] += upper[k] * before[k]
                        lower[k] += u[k] * upper[k]
                one = 0.0
                two = 0.0
                for k in range(n):
                    gap = x - z[k]
                    term = g[k] * u[k] * D[k]
                    one += term
                    two += term * gap * gap
                by_p[j] += one
                by_rate[j] -= rates[j] * two


def symmetric_kernel(
    XT: NDArray[np.float64],
    ZT: NDArray[np.float64] | None,
    rates: NDArray[np.float64],
    p: NDArray[np.float64],
    eta: NDArray[np.float64],
    *,
    uniform: bool,
    fill: bool = True,
) -> NDArray[np.float64]:
    """Σ_q η_q e_q(u) on all threads; see `kernel_rows`.

    For the rows of X with themselves (`ZT` is None) only the lower triangle is computed; without
    `fill` the upper one is zero.
    """
    same = ZT is None
    other = XT if ZT is None else ZT
    # Zeros, not uninitialised: callers may add to entries that nothing reads.
    out = np.zeros((XT.shape[1], other.shape[1]))

    def work(rows: slice) -> None:
        kernel_rows(XT, other, rates, p, eta, uniform, rows.start, out[rows], same)

    # The longest rows of a triangle first, so that threads finish together.
    run_blocks(work, reversed(blocks(len(out), ROWS)))
    if same and fill:
        upper = np.triu_indices(len(out), 1)
        out[upper] = out.T[upper]
    return out
