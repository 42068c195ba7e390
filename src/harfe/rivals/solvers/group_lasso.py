"""The group lasso along a path of penalties, by block coordinate descent.

    minimise over β   (1/2m)‖y - Σ_j F_j β_j‖² + λ Σ_j w_j ‖β_j‖

for blocks F_j with orthogonal columns, (1/m) F_jᵀF_j = diag(d). `rotated` gives any block this form
without changing ‖β_j‖; if the penalty is on the size of F_jβ_j, `orthonormal` makes the block
orthonormal. With t = ‖β_j‖ and g_j = F_jᵀ(residual without block j)/m, the best block is 0 if
‖g_j‖ ≤ λw_j, and otherwise

    β_j = t g_j / (d t + λw_j),   where   Σ_i g_i²/(d_i t + λw_j)² = 1;

if d = 1, this is the group soft threshold [1 - λw_j/‖g_j‖]_+ g_j, and for blocks of one column the
lasso's. The duality gap bounds the distance of the objective from its minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe._core.compiling import compiled

# Allow sums in any order, so that they vectorise.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}

# Sweeps between two checks of the duality gap.
_SWEEPS_PER_LOOK = 5

# A path ends when the error on the watched rows exceeds its minimum so far by the first factor, or
# when that minimum was at a penalty larger by the second.
_RISE, _TOO_FAR = 1.5, 10.0

# Squared singular values below this share of the largest are left out of a rotated block: down to
# λ_max/1e4 the penalty sets their coefficients to practically zero.
_NEGLIGIBLE = 1e-8


@dataclass(frozen=True)
class GroupLasso:
    """Solutions along a path.

    Attributes
    ----------
    coefficients : array of shape (penalties, columns)
    penalties : array
        λ.
    gaps : array
        Duality gaps of the objective above; infinite beyond the end of a path.
    """

    coefficients: NDArray[np.float64]
    penalties: NDArray[np.float64]
    gaps: NDArray[np.float64]


def group_lasso_path(
    blocks: Sequence[NDArray[np.float64]],
    y: NDArray[np.float64],
    shares: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    *,
    by_column: bool = False,
    watched: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 1000,
) -> GroupLasso:
    """Minimise the objective above for λ = share · λ_max, each started from the next larger λ.

    Parameters
    ----------
    blocks : sequence of arrays of shape (rows, size)
        Their columns must be orthogonal; a block may be empty.
    y : array of shape (rows,)
    shares : array
        In any order; at shares of 1 and above all coefficients are zero.
    weights : array, optional
        w; 1 by default.
    by_column : bool, default=False
        Make every column its own block: the lasso. Columns then need not be orthogonal.
    watched : pair of arrays, optional
        Columns, (rows, all columns), and target of other rows. The path ends when their error
        exceeds its minimum by half, or when the minimum was at more than ten times the penalty;
        smaller penalties get the last solution. Overfitted solutions take the most sweeps and are
        never chosen.
    tol : float, default=1e-6
        Duality gap at which a penalty is solved, as a share of the objective.
    max_sweeps : int, default=1000
        Maximum number of sweeps over the blocks per penalty.

    Returns
    -------
    GroupLasso
        In the order of `shares`.
    """
    sizes = [block.shape[1] for block in blocks]
    sizes = [1] * sum(sizes) if by_column else sizes
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    w = np.ones(len(sizes)) if weights is None else np.asarray(weights, float)
    columns, target = _fewer_rows(blocks, y)
    power = np.einsum("ij,ij->i", columns, columns)
    order = np.argsort(-shares, kind="stable")
    seen = (np.zeros((0, len(columns))), np.zeros(0)) if watched is None else watched
    found, penalties, gaps = _path(
        columns,
        power,
        starts,
        w,
        target,
        shares[order],
        np.ascontiguousarray(seen[0].T),
        seen[1],
        tol,
        max_sweeps,
    )
    back = np.argsort(order)
    return GroupLasso(found[back], penalties[back], gaps[back])


def _fewer_rows(
    blocks: Sequence[NDArray[np.float64]], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns and y over √m, as rows; shortened by a rotation if m exceeds their number."""
    m, p = len(y), sum(block.shape[1] for block in blocks)
    rows = np.empty((p + 1, m))
    start = 0
    for block in (*blocks, y[:, None]):
        np.divide(block.T, np.sqrt(m), out=rows[start : start + block.shape[1]])
        start += block.shape[1]
    if p + 1 < m:
        # Only inner products of columns and y matter, and R preserves them.
        R = sla.qr(rows.T, mode="r", overwrite_a=True, check_finite=False)[0]
        rows = np.ascontiguousarray(R[: p + 1].T)
    return rows[:p], rows[p]


@compiled(fastmath=_FLAGS)
def _inner(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled(fastmath=_FLAGS)
def _add(step, a, out):  # type: ignore[no-untyped-def]
    for i in range(len(a)):
        out[i] += step * a[i]


@compiled()
def _best_block(g, d, threshold, out):  # type: ignore[no-untyped-def]
    """The minimiser of ½βᵀdiag(d)β - gᵀβ + threshold‖β‖."""
    norm = np.sqrt(_inner(g, g))
    if norm <= threshold:
        out[:] = 0.0
        return
    t = 0.0
    # Newton's method for 1/√Σ = 1, whose left side is concave and increasing: steps never
    # overshoot, and one is enough if all d are equal.
    for _ in range(100):
        square, slope = 0.0, 0.0
        for i in range(len(g)):
            below = d[i] * t + threshold
            part = (g[i] / below) ** 2
            square += part
            slope += part * d[i] / below
        size = np.sqrt(square)
        step = (size - 1.0) * square / slope
        t += step
        if step <= 1e-14 * t:
            break
    for i in range(len(g)):
        out[i] = t * g[i] / (d[i] * t + threshold)


@compiled()
def _sweep(columns, power, starts, w, penalty, working, beta, residual, room):  # type: ignore[no-untyped-def]
    """Minimise over every working block in turn, given the others."""
    for j in range(len(w)):
        first, last = starts[j], starts[j + 1]
        if not working[j] or first == last:
            continue
        n = last - first
        g, new = room[0, :n], room[1, :n]
        for k in range(n):
            g[k] = _inner(columns[first + k], residual) + power[first + k] * beta[first + k]
        _best_block(g, power[first:last], penalty * w[j], new)
        for k in range(n):
            step = beta[first + k] - new[k]
            if step != 0.0:
                _add(step, columns[first + k], residual)
                beta[first + k] = new[k]


@compiled()
def _correlations(columns, starts, w, residual, which, out):  # type: ignore[no-untyped-def]
    """‖F_jᵀ residual‖/w_j of some blocks."""
    for j in range(len(w)):
        if which[j]:
            total = 0.0
            for k in range(starts[j], starts[j + 1]):
                total += _inner(columns[k], residual) ** 2
            out[j] = np.sqrt(total) / w[j]


@compiled()
def _objective(starts, w, penalty, beta, residual):  # type: ignore[no-untyped-def]
    size = 0.0
    for j in range(len(w)):
        block = beta[starts[j] : starts[j + 1]]
        size += w[j] * np.sqrt(_inner(block, block))
    return 0.5 * _inner(residual, residual) + penalty * size


@compiled()
def _bound(penalty, residual, y, largest):  # type: ignore[no-untyped-def]
    """A lower bound of the objective: its dual at the residual, scaled to be feasible."""
    scale = min(1.0, penalty / largest) if largest > 0.0 else 1.0
    # ½‖y‖² - ½‖y - θ‖² = θᵀy - ½‖θ‖² at θ = scale · residual.
    return scale * _inner(residual, y) - 0.5 * scale * scale * _inner(residual, residual)


@compiled()
def _extrapolate(columns, starts, w, penalty, working, last, y, beta, residual):  # type: ignore[no-untyped-def]
    """Anderson extrapolation of the last sweeps, accepted only if the objective decreases."""
    n = len(last) - 1
    gram = np.empty((n, n))
    for a in range(n):
        for b in range(a + 1):
            total = 0.0
            for k in range(len(beta)):
                total += (last[a + 1, k] - last[a, k]) * (last[b + 1, k] - last[b, k])
            gram[a, b] = total
            gram[b, a] = total
    trace = np.trace(gram)
    if not trace > 0.0:
        return
    for a in range(n):
        gram[a, a] += 1e-12 * trace
    mix = np.linalg.solve(gram, np.ones(n))
    mix /= mix.sum()
    new, left = np.zeros(len(beta)), y.copy()
    for j in range(len(w)):
        if working[j]:
            for k in range(starts[j], starts[j + 1]):
                # A block that the last sweep set to zero stays there.
                if beta[k] != 0.0:
                    for a in range(n):
                        new[k] += mix[a] * last[a + 1, k]
                    _add(-new[k], columns[k], left)
    now = _objective(starts, w, penalty, beta, residual)
    if _objective(starts, w, penalty, new, left) < now:
        beta[:] = new
        residual[:] = left


@compiled()
def _error(columns, y, beta):  # type: ignore[no-untyped-def]
    left = y.copy()
    for k in range(len(beta)):
        if beta[k] != 0.0:
            _add(-beta[k], columns[k], left)
    return _inner(left, left)


@compiled()
def _path(columns, power, starts, w, y, shares, seen, seen_y, tol, max_sweeps):  # type: ignore[no-untyped-def]
    count, p = len(w), len(columns)
    found, gaps = np.zeros((len(shares), p)), np.zeros(len(shares))
    beta, residual = np.zeros(p), y.copy()
    room = np.empty((2, max(1, np.diff(starts).max()) if count else 1))
    last = np.empty((_SWEEPS_PER_LOOK + 1, p))
    all_blocks, working = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    strength = np.zeros(count)
    _correlations(columns, starts, w, residual, all_blocks, strength)
    most = strength.max() if count else 0.0
    penalties = shares * most
    before = most
    least, least_at = _inner(seen_y, seen_y), most
    for place in range(len(shares)):
        penalty = penalties[place]
        if penalty >= most:
            continue
        for j in range(count):
            # The strong rule selects blocks that may enter; those it misses are added below.
            working[j] = strength[j] >= 2.0 * penalty - before
            for k in range(starts[j], starts[j + 1]):
                working[j] = working[j] or beta[k] != 0.0
        sweeps = 0
        while True:
            while sweeps < max_sweeps:
                last[0] = beta
                for turn in range(_SWEEPS_PER_LOOK):
                    _sweep(columns, power, starts, w, penalty, working, beta, residual, room)
                    last[turn + 1] = beta
                sweeps += _SWEEPS_PER_LOOK
                _extrapolate(columns, starts, w, penalty, working, last, y, beta, residual)
                _correlations(columns, starts, w, residual, working, strength)
                largest = 0.0
                for j in range(count):
                    if working[j]:
                        largest = max(largest, strength[j])
                value = _objective(starts, w, penalty, beta, residual)
                if value - _bound(penalty, residual, y, largest) <= tol * value:
                    break
            _correlations(columns, starts, w, residual, all_blocks, strength)
            value = _objective(starts, w, penalty, beta, residual)
            gaps[place] = value - _bound(penalty, residual, y, strength.max())
            if gaps[place] <= tol * value or sweeps >= max_sweeps:
                break
            for j in range(count):
                working[j] = working[j] or strength[j] > penalty
        found[place] = beta
        before = penalty
        error = _error(seen, seen_y, beta)
        if error < least:
            least, least_at = error, penalty
        if len(seen_y) and (error > _RISE * least or penalty < least_at / _TOO_FAR):
            found[place:] = beta
            gaps[place + 1 :] = np.inf
            break
    return found, penalties, gaps


def rotated(block: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute block · V with orthogonal columns, and the rotation V, without negligible columns.

    Entries are assumed to have been of size 1 before centring. Coefficients of the block itself are
    V β, with the same norm.
    """
    values, V = sla.eigh(block.T @ block, driver="evd", check_finite=False)
    V = V[:, values > max(_NEGLIGIBLE * values[-1], 1e-29 * block.size)]
    return block @ V, V


def orthonormal(
    block: NDArray[np.float64], cut: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A block with (1/m) FᵀF = I and the map T to it, F = block · T.

    Directions with singular values below `cut` times the largest are left out.
    """
    U, values, Vt = sla.svd(block, full_matrices=False, check_finite=False)
    kept = values > max(cut * values[0], np.finfo(float).tiny)
    root = np.sqrt(len(block))
    return root * U[:, kept], root * Vt[kept].T / values[kept]
