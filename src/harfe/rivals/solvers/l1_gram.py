"""The l1 problem on a Gram matrix: minimise c*Gc/2 - Re b*c + λ‖c‖₁, real or complex.

Random features are so similar that their Gram matrix is nearly singular, and coordinate descent is
slow. Real problems are solved by homotopy: the start c is optimal for certain penalties, one per
feature, which are moved to λ along a line; c follows a piecewise linear path, and a feature enters
or leaves between two pieces. Complex paths are not piecewise linear: there, Newton steps on the
non-zero coefficients, where the penalty is smooth, alternate with coordinate descent, which finds
the zeros; if these are slow, a smoothed modulus leads close to the solution. The same steps correct
a homotopy for rounding errors if necessary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe._core.compiling import compiled

# Maximum number of steps on one working set, and of homotopy events per feature; the latter is
# reached only if rounding errors dominate.
_STEPS, _EVENTS = 20, 20

# Smoothing of the modulus: maximum number of steps, slope as a share of λ below which μ decreases,
# and final μ as a share of the largest coefficient.
_SMOOTH_STEPS, _SMOOTH_SLOPE, _SMOOTH_END = 200, 0.03, 1e-9

# Relative shift of the curvatures during a homotopy, so that one of two equal features can leave.
_SHIFT = 1e-12

# Sweeps of coordinate descent between two Newton steps.
_SWEEPS = 10

# Allow reordered sums: without that, loops over a row would not vectorise.
_FLAGS = {"reassoc", "contract", "nsz"}


@compiled()
def _sweep(gram, g, c, penalty, tolerance, sweeps):  # type: ignore[no-untyped-def]
    """Coordinate descent in place, g = b - G c kept up to date; real or complex."""
    for _ in range(sweeps):
        worst = 0.0
        for j in range(len(c)):
            curvature = gram[j, j].real
            if curvature <= 0.0:
                continue
            z = g[j] + curvature * c[j]
            size = abs(z)
            new = z * (1.0 - penalty / size) / curvature if size > penalty else 0.0 * z
            delta = new - c[j]
            if delta == 0.0:
                continue
            c[j] = new
            for k in range(len(c)):
                g[k] -= delta * np.conj(gram[j, k])
            worst = max(worst, abs(delta) * curvature)
        if worst <= tolerance * penalty:
            break


@compiled(fastmath=_FLAGS)
def _append(factor, size, row, corner):  # type: ignore[no-untyped-def]
    """Append a row of the matrix to its Cholesky factor; False if not positive definite."""
    for i in range(size):
        total = row[i]
        for k in range(i):
            total -= factor[i, k] * factor[size, k]
        factor[size, i] = total / factor[i, i]
    for k in range(size):
        corner -= factor[size, k] ** 2
    if not corner > 0.0:
        return False
    factor[size, size] = np.sqrt(corner)
    return True


@compiled(fastmath=_FLAGS)
def _remove(factor, size, place):  # type: ignore[no-untyped-def]
    """Remove one row and column from the Cholesky factor, by rotations."""
    for i in range(place, size - 1):
        for k in range(i + 2):
            factor[i, k] = factor[i + 1, k]
    for i in range(place, size - 1):
        a, b = factor[i, i], factor[i, i + 1]
        r = np.hypot(a, b)
        cosine, sine = a / r, b / r
        factor[i, i] = r
        factor[i, i + 1] = 0.0
        for k in range(i + 1, size - 1):
            a, b = factor[k, i], factor[k, i + 1]
            factor[k, i] = cosine * a + sine * b
            factor[k, i + 1] = cosine * b - sine * a


@compiled(fastmath=_FLAGS)
def _follow(gram, g, c, factor, penalty, shift, most):  # type: ignore[no-untyped-def]
    """Homotopy in place from c, with g = b - (G + shift)c and the factor for the non-zeros of c.

    Feature j has the penalty have[j], for which c is optimal; it changes at rate[j] until all are
    `penalty`. Returns whether the end was reached.
    """
    n = len(c)
    active = np.empty(n, np.int64)
    place = np.full(n, -1)
    row, step, dg = np.empty(n), np.empty(n), np.empty(n)
    sign = np.sign(c)
    have = np.maximum(np.abs(g), penalty)
    size = 0
    for j in range(n):
        if c[j] != 0.0:
            have[j] = g[j] * sign[j]
            active[size], place[j] = j, size
            size += 1
    rate = penalty - have
    left = 1.0
    for _ in range(most):
        # g = sign · have stays true on the active features: (G + shift) step = -sign · rate.
        for i in range(size):
            total = -sign[active[i]] * rate[active[i]]
            for k in range(i):
                total -= factor[i, k] * step[k]
            step[i] = total / factor[i, i]
        for i in range(size - 1, -1, -1):
            step[i] /= factor[i, i]
            for k in range(i):
                step[k] -= factor[i, k] * step[i]
        dg[:] = 0.0
        for i in range(size):
            line = gram[active[i]]
            for j in range(n):
                dg[j] -= line[j] * step[i]
        # The first active feature to reach zero, or inactive one to reach its penalty.
        length, which = left, -1
        for j in range(n):
            if place[j] >= 0:
                towards = -step[place[j]] * sign[j]
                if towards > 0.0:
                    t = abs(c[j]) / towards
                    if t < length:
                        length, which = t, j
            else:
                for s in (1.0, -1.0):
                    gain = s * dg[j] - rate[j]
                    if gain > 0.0:
                        t = max(have[j] - s * g[j], 0.0) / gain
                        if t < length:
                            length, which = t, j
        for i in range(size):
            c[active[i]] += length * step[i]
        for j in range(n):
            have[j] += length * rate[j]
            g[j] = g[j] + length * dg[j] if place[j] < 0 else sign[j] * have[j]
        left -= length
        if which < 0:
            return True
        if place[which] >= 0:
            gone = place[which]
            c[which] = 0.0
            _remove(factor, size, gone)
            for i in range(gone, size - 1):
                active[i] = active[i + 1]
                place[active[i]] = i
            size -= 1
            place[which] = -1
        else:
            for i in range(size):
                row[i] = gram[which, active[i]]
            if not _append(factor, size, row, gram[which, which] + shift):
                return False
            sign[which] = 1.0 if g[which] > 0 else -1.0
            active[size] = which
            place[which] = size
            size += 1
    return False


def violations(g: NDArray[Any], c: NDArray[Any], penalty: float) -> NDArray[np.float64]:
    """The amount by which each feature violates the optimality conditions."""
    size = np.abs(c)
    unit = np.divide(c, size, out=np.zeros_like(c), where=size > 0)
    broken: NDArray[np.float64] = np.abs(g - penalty * unit)
    return np.where(size > 0, broken, np.maximum(np.abs(g) - penalty, 0.0))


def _change(
    gram: NDArray[Any], g: NDArray[Any], c: NDArray[Any], step: NDArray[Any], penalty: float
) -> float:
    """Change of the objective with a step."""
    quadratic = np.vdot(step, gram @ step).real / 2 - np.vdot(g, step).real
    grown = np.sum(np.abs(c + step) - np.abs(c))
    return float(quadratic + penalty * grown)


def _as_real(gram: NDArray[Any]) -> NDArray[np.float64]:
    """The matrix that acts on Re c, then Im c."""
    return np.block([[gram.real, -gram.imag], [gram.imag, gram.real]])


def newton_step(
    gram: NDArray[Any], g: NDArray[Any], c: NDArray[Any], penalty: float
) -> NDArray[Any]:
    """Newton step on non-zero coefficients, with the curvatures raised by about a rounding."""
    slope = g - penalty * c / np.abs(c)
    if not np.iscomplexobj(c):
        return _solve(gram, slope)
    # The modulus is curved only across its direction.
    s, size = len(c), np.abs(c)
    hessian = _as_real(gram)
    across = (1j * c / size).view(np.float64).reshape(-1, 2).T
    places = np.arange(s)
    for a in range(2):
        for b in range(2):
            hessian[a * s + places, b * s + places] += penalty / size * across[a] * across[b]
    step = _solve(hessian, np.concatenate([slope.real, slope.imag]))
    return step[:s] + 1j * step[s:]


def _solve(matrix: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve with the diagonal raised by the smallest share that makes the matrix definite."""
    (potrf,) = sla.get_lapack_funcs(("potrf",), (matrix,))
    # Scaled to unit diagonal: the huge curvature of a modulus near zero would swamp the others.
    root = np.sqrt(np.diagonal(matrix))
    matrix = matrix / root / root[:, None]
    for share in 1e-15 * len(matrix) * 30.0 ** np.arange(12):
        matrix[np.diag_indices(len(matrix))] = 1 + share
        factor, info = potrf(matrix.T, lower=True, clean=False)
        if info == 0:
            break
    solution: NDArray[np.float64] = sla.cho_solve((factor, True), b / root, check_finite=False)
    return solution / root


def _newton(
    gram: NDArray[Any], g: NDArray[Any], c: NDArray[Any], penalty: float
) -> NDArray[Any] | None:
    """A Newton step that lowers the objective, or None; sign changes stop at zero if possible."""
    step = newton_step(gram, g, c, penalty)
    for _ in range(20):
        turned = (np.conj(c) * (c + step)).real <= 0
        for attempt in (np.where(turned, -c, step), step) if np.any(turned) else (step,):
            if _change(gram, g, c, attempt, penalty) < 0:
                return attempt
        step = step / 2
    return None


def _homotopy(
    gram: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], penalty: float
) -> None:
    """Move c in place to the solution, or to a point before it if rounding errors interfere."""
    used = np.flatnonzero(c)
    shift = _SHIFT * np.diagonal(gram).max(initial=0.0)
    inner = gram[np.ix_(used, used)]
    inner[np.diag_indices(len(used))] += shift
    try:
        start = np.linalg.cholesky(inner)
    except np.linalg.LinAlgError:
        return
    factor = np.zeros((len(c) + 1, len(c) + 1))
    factor[: len(used), : len(used)] = start
    _follow(gram, b - gram @ c - shift * c, c, factor, penalty, shift, _EVENTS * (len(c) + 1))


def _smoothed(gram: NDArray[Any], b: NDArray[Any], c: NDArray[Any], penalty: float) -> NDArray[Any]:
    """Complex c close to the solution: |c_j| becomes r_j = √(|c_j|² + μ²), and μ tends to 0.

    Newton steps act on c and u jointly, with the equation r u = c: the primal-dual method of Chan,
    Golub and Mulet for total variation. It needs tens of steps however similar the features are.
    """
    s, places = len(c), np.arange(len(c))
    plain = _as_real(gram)
    g = b - gram @ c
    largest = max(np.abs(c).max(), np.abs(g).max() / np.diagonal(gram).real.max())
    mu = 0.1 * largest
    u = c / np.hypot(np.abs(c), mu)
    for _ in range(_SMOOTH_STEPS):
        r = np.hypot(np.abs(c), mu)
        slope = g - penalty * c / r
        if np.abs(slope).max() <= _SMOOTH_SLOPE * penalty:
            if mu <= _SMOOTH_END * largest:
                break
            mu *= 0.2
            continue
        hessian = plain.copy()
        parts, duals = (c.real, c.imag), (u.real, u.imag)
        for i in range(2):
            for j in range(2):
                mixed = (duals[i] * parts[j] + duals[j] * parts[i]) / (2 * r)
                hessian[i * s + places, j * s + places] += penalty / r * ((i == j) - mixed)
        solved = _solve(hessian, np.concatenate([slope.real, slope.imag]))
        step = solved[:s] + 1j * solved[s:]
        turn = (step - u * (np.conj(c) * step).real / r) / r + c / r - u
        # With |u| above 1, the matrix would no longer be positive definite.
        u = u + turn
        u /= np.maximum(np.abs(u), 1.0)
        length, moved = 1.0, gram @ step
        for _ in range(30):
            grown = np.sum(np.hypot(np.abs(c + length * step), mu) - r)
            bent = length * np.vdot(step, moved).real / 2 - np.vdot(g, step).real
            if length * bent + penalty * grown <= -1e-4 * length * np.vdot(slope, step).real:
                break
            length /= 2
        c = c + length * step
        g = b - gram @ c
    return np.where(np.abs(c) > 1e3 * mu, c, 0)


def _step(
    gram: NDArray[Any], b: NDArray[Any], c: NDArray[Any], penalty: float, tolerance: float
) -> tuple[NDArray[Any], bool]:
    """Newton steps and coordinate descent from c, and whether they converged."""
    c = c.copy()
    for _ in range(_STEPS):
        g = b - gram @ c
        if violations(g, c, penalty).max(initial=0.0) <= tolerance * penalty:
            return c, True
        used = np.flatnonzero(c)
        step = None
        if len(used):
            step = _newton(gram[np.ix_(used, used)], g[used], c[used], penalty)
        if step is not None:
            c[used] += step
            g = b - gram @ c
        _sweep(gram, g, c, penalty, tolerance, _SWEEPS)
    return c, False


def solve_gram(
    gram: NDArray[Any], b: NDArray[Any], c: NDArray[Any], penalty: float, tolerance: float
) -> NDArray[Any]:
    """Minimise c*Gc/2 - Re b*c + λ‖c‖₁ from c; the objective never increases."""
    if not np.iscomplexobj(c):
        c = c.copy()
        _homotopy(gram, b, c, penalty)
    c, done = _step(gram, b, c, penalty, tolerance)
    if np.iscomplexobj(c) and not done:
        other, _ = _step(gram, b, _smoothed(gram, b, c, penalty), penalty, tolerance)
        if _change(gram, b - gram @ c, c, other - c, penalty) <= 0:
            return other
    return c
