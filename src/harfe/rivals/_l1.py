"""The l1 problem on random features: paths of the lasso, and basis pursuit denoising.

    minimise over c   (1/2M) Σ_k w_k |y_k - (A c)_k|² + λ‖c‖₁

for real and complex c, with |c_j| the modulus. Random features are so much alike that their Gram
matrix is nearly singular, and coordinate descent crawls. A working set grows by the features that
violate the optimality conditions most. On it real problems are solved by homotopy: c is optimal
for penalties of its own, one for each feature, and these are moved to λ in a line; c follows in
straight pieces, and a feature enters or leaves between two of them. Complex problems have no
straight pieces: there Newton steps on what is not zero, where the penalty is smooth, alternate
with coordinate descent, which finds out what is zero; where these crawl, a smoothed modulus leads
to the neighbourhood of the solution. The same steps clean up after a homotopy if rounding asks for
it. The end is judged over all N features, with g = A*W(y - A c)/M:

    |g_j| <= λ where c_j = 0,   g_j = λ c_j/|c_j| elsewhere,   both up to a share of λ.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from numba import njit
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from harfe.machine import one_blas_thread
from harfe.problem import Problem

#: Violation of the optimality conditions that is left, as a share of λ.
TOLERANCE = 1e-6

#: Smallest λ that is tried, as a share of the one at which c = 0: below, rounding rules.
SMALLEST = 1e-6

# Passes over all features for one λ, steps on one working set, events of a homotopy for each of its
# features: the first and the last are not met unless rounding rules.
_ROUNDS, _STEPS, _EVENTS = 100, 20, 20

# Smoothing of the modulus: steps, slope that is left as a share of λ before μ falls, μ at the end
# as a share of the largest coefficient.
_SMOOTH_STEPS, _SMOOTH_SLOPE, _SMOOTH_END = 200, 0.03, 1e-9

# What rounding leaves of g, as a share of ‖c‖₁.
_ROUNDING = 16 * np.finfo(float).eps

# Rounds without a smaller objective after which nothing but rounding is left.
_IDLE = 3

# Added to the curvatures during a homotopy, as a share: of two equal features one can leave.
_SHIFT = 1e-12

# On the way to a λ that is far from the last one, λ falls by this factor, at this tolerance.
_STRIDE, _COARSE = 0.5, 0.05

# The first λ in the search for a residual, as a share of the one at which c = 0.
_FIRST = 0.8

# Sweeps of coordinate descent between two Newton steps.
_SWEEPS = 10

# Features that enter the working set at least, if so many violate; beyond, as many as are in use.
_ENTER = 50

# A path is left at this share of the λ that has been best.
_PATIENCE = 0.2

# Error of the residual's norm in basis pursuit denoising, as a share; steps to get there.
_RESIDUAL, _ROOT_STEPS = 1e-7, 60

# Sums may be reordered: without that, loops over a row would not vectorise.
_FLAGS = {"reassoc", "contract", "nsz"}


@dataclass(frozen=True)
class L1Fit:
    """A solution and its certificate.

    Attributes
    ----------
    support : int array of shape (s,)
        Features that are not zero, ascending.
    coef : array of shape (s, 1)
    penalty : float
        λ.
    power : float
        Σ w|y - A c|²/M.
    violation : float
        Largest violation of the optimality conditions over all features, as a share of λ.
    converged : bool
        Whether this is within the tolerance, or below what rounding leaves of g.
    reached : bool
        Whether λ, or the residual in basis pursuit denoising, is as small as was asked for.
    """

    support: NDArray[np.intp]
    coef: NDArray[Any]
    penalty: float
    power: float
    violation: float
    converged: bool
    reached: bool = True

    @property
    def objective(self) -> float:
        """Half the power of the residual plus λ‖c‖₁."""
        return self.power / 2 + self.penalty * float(np.abs(self.coef).sum())


@njit(cache=True)
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


@njit(cache=True, fastmath=_FLAGS)
def _append(factor, size, row, corner):  # type: ignore[no-untyped-def]
    """Grow the Cholesky factor by a row of the matrix; False if that is not positive definite."""
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


@njit(cache=True, fastmath=_FLAGS)
def _remove(factor, size, place):  # type: ignore[no-untyped-def]
    """Shrink the Cholesky factor by one row and column, by rotations."""
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


@njit(cache=True, fastmath=_FLAGS)
def _follow(gram, g, c, factor, penalty, shift, most):  # type: ignore[no-untyped-def]
    """Homotopy in place, from c with g = b - (G + shift)c; `factor` is that of what is not zero.

    Feature j has the penalty have[j], with which c is optimal, and it changes at rate[j] until all
    are `penalty`. Returns whether the end was reached.
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
        # The first to reach zero, or to reach its penalty.
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
    """By how much each feature violates the optimality conditions."""
    size = np.abs(c)
    unit = np.divide(c, size, out=np.zeros_like(c), where=size > 0)
    broken: NDArray[np.float64] = np.abs(g - penalty * unit)
    return np.where(size > 0, broken, np.maximum(np.abs(g) - penalty, 0.0))


def _change(
    gram: NDArray[Any], g: NDArray[Any], c: NDArray[Any], step: NDArray[Any], penalty: float
) -> float:
    """By how much the objective changes with a step."""
    quadratic = np.vdot(step, gram @ step).real / 2 - np.vdot(g, step).real
    grown = np.sum(np.abs(c + step) - np.abs(c))
    return float(quadratic + penalty * grown)


def _as_real(gram: NDArray[Any]) -> NDArray[np.float64]:
    """The matrix that acts on Re c, then Im c."""
    return np.block([[gram.real, -gram.imag], [gram.imag, gram.real]])


def _newton_step(
    gram: NDArray[Any], g: NDArray[Any], c: NDArray[Any], penalty: float
) -> NDArray[Any]:
    """Newton step on coefficients that are not zero, all curvatures raised by a rounding."""
    slope = g - penalty * c / np.abs(c)
    if not np.iscomplexobj(c):
        return _solve(gram, slope)
    # The modulus curves across its direction only.
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
    # To unit diagonal: a modulus near zero curves so much that its share would drown the others.
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
    """A Newton step that lowers the objective, or None; what would change sign becomes zero."""
    step = _newton_step(gram, g, c, penalty)
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
    """Follow c in place to the solution; where rounding gets in the way, to a point before it."""
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
    """Complex c close to the solution: |c_j| becomes r_j = √(|c_j|² + μ²), and μ falls to nothing.

    Newton steps on c and u together, with u = c/r kept as an equation r u = c of its own: this is
    the primal-dual method that Chan, Golub and Mulet found for total variation. It needs tens of
    steps however much the features are alike.
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
        # A modulus of u beyond 1 would cost the matrix its sign.
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
    """Newton steps and coordinate descent from c, and whether they came to the end."""
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
    """Minimise c*Gc/2 - Re b*c + λ‖c‖₁ from c; the objective never rises."""
    if not np.iscomplexobj(c):
        c = c.copy()
        _homotopy(gram, b, c, penalty)
    c, done = _step(gram, b, c, penalty, tolerance)
    if np.iscomplexobj(c) and not done:
        other, _ = _step(gram, b, _smoothed(gram, b, c, penalty), penalty, tolerance)
        if _change(gram, b - gram @ c, c, other - c, penalty) <= 0:
            return other
    return c


class L1Solver:
    """Solutions for one λ after the other, each from the one before.

    Parameters
    ----------
    problem : Problem
        With one target.
    tolerance : float
        See `L1Fit.violation`.
    start : pair of arrays, optional
        Features and coefficients to start from.
    """

    def __init__(
        self,
        problem: Problem,
        tolerance: float = TOLERANCE,
        start: tuple[NDArray[np.intp], NDArray[Any]] | None = None,
    ) -> None:
        self._problem, self._tolerance = problem, tolerance
        nothing = np.zeros(0, dtype=np.intp)
        self._set = nothing if start is None else start[0]
        self._c = np.zeros(len(self._set), problem.dtype)
        if start is not None:
            self._c[:] = start[1][:, 0]
        self._gram, self._moment = self._normal(self._set, None)
        #: Smallest λ at which c = 0 is a solution.
        g, power = problem.gradient(nothing, np.zeros((0, 1), problem.dtype))
        self.largest = float(np.abs(g).max(initial=0.0))
        self._penalty, self._floor = self.largest, SMALLEST * self.largest
        self._g, self._power = g[:, 0], float(power[0])
        if start is not None:
            self._penalty = 0.0
            self._look()

    def at(self, penalty: float) -> L1Fit:
        """The solution for one λ > 0; one that is too small for doubles counts as the smallest."""
        reached, penalty = penalty >= self._floor, max(penalty, self._floor)
        while penalty < _STRIDE * self._penalty:
            if not self._settle(_STRIDE * self._penalty, _COARSE).converged:
                break
        return replace(self._settle(penalty, self._tolerance), reached=reached)

    def within(self, power: float, go_on: Callable[[L1Fit], bool] | None = None) -> L1Fit:
        """The solution with the smallest ‖c‖₁ whose residual has at most this power.

        On the way down `go_on` is asked whether a smaller λ is wanted; if not, it ends there.

        The power of the residual grows with λ, and on a fixed set of signs it is ρ + κλ² with
        κ = u*H⁻¹u, u = c/|c| and H the curvature: this predicts the λ to try next.
        """
        low, high, floor = 0.0, self.largest, self._floor
        if power >= self._problem.power[0]:
            return self._settle(high, self._tolerance)
        fit = self._settle(min(max(self._penalty, floor), _FIRST * high), self._tolerance)
        for _ in range(_ROOT_STEPS):
            error = fit.power / power - 1
            if abs(error) <= 2 * _RESIDUAL:
                return fit
            if error > 0 and (
                fit.penalty <= floor or (low == 0 and go_on is not None and not go_on(fit))
            ):
                return replace(fit, reached=False)
            low, high = (low, fit.penalty) if error > 0 else (fit.penalty, high)
            square = fit.penalty**2 + (power - fit.power) / self._stiffness()
            penalty = max(np.sqrt(max(square, 0.0)), _STRIDE * fit.penalty, floor)
            if not low < penalty < high:
                penalty = np.sqrt(low * high) if low else max(_STRIDE * high, floor)
            last, fit = fit, self._settle(penalty, self._tolerance)
            if last.converged and not fit.converged and fit.power > power:
                self._floor = last.penalty  # rounding rules earlier than elsewhere
                return replace(last, reached=False)
        return replace(fit, reached=False)

    def _stiffness(self) -> float:
        """κ: by how much the power of the residual grows with λ², at the present signs."""
        used = np.flatnonzero(self._c)
        if not len(used):
            return np.inf
        c = self._c[used]
        gram = self._gram[np.ix_(used, used)]
        unit = c / np.abs(c)
        # The slope is what the Newton step is solved for: here the direction of the penalty.
        step = _newton_step(gram, unit + self._penalty * unit, c, self._penalty)
        return max(float(np.vdot(unit, step).real), np.finfo(float).tiny)

    def _settle(self, penalty: float, tolerance: float) -> L1Fit:
        """Solve for this λ from where we are."""
        with one_blas_thread():
            return self._solved(penalty, tolerance)

    def _solved(self, penalty: float, tolerance: float) -> L1Fit:
        # Without a feature that varies, any λ leaves nothing.
        penalty = penalty if self.largest > 0 else 1.0
        self._penalty = penalty
        if penalty >= self.largest:
            self._c[:] = 0
            self._look()
        idle, before = 0, np.inf
        for _ in range(_ROUNDS):
            broken = violations(self._g, self._full(), penalty)
            violation = float(broken.max(initial=0.0)) / penalty
            objective = self._power / 2 + penalty * float(np.abs(self._c).sum())
            idle = idle + 1 if objective >= before else 0
            # No digit of g is left below this: its sums have terms of the size of c.
            rounding = _ROUNDING * float(np.abs(self._c).sum()) / penalty
            limit = max(tolerance, rounding * np.diagonal(self._gram).real.max(initial=0.0))
            if violation <= limit or idle > _IDLE:
                break
            before = min(before, objective)
            self._enter(broken)
            self._c = solve_gram(self._gram, self._moment, self._c, penalty, 0.5 * limit)
            self._look()
        used = np.flatnonzero(self._c)
        used = used[np.argsort(self._set[used])]
        support, coef = self._set[used], self._c[used][:, None]
        return L1Fit(support, coef, penalty, self._power, violation, violation <= limit)

    def _enter(self, broken: NDArray[np.float64]) -> None:
        """Let the worst violators into the working set; what is zero leaves a set that is full."""
        used = int(np.count_nonzero(self._c))
        many = max(_ENTER, used)
        if len(self._set) > 2 * used + 4 * _ENTER:
            kept = np.flatnonzero(self._c)
            self._set, self._c, self._moment = self._set[kept], self._c[kept], self._moment[kept]
            self._gram = self._gram[np.ix_(kept, kept)]
        broken[self._set] = 0.0
        worst = np.argsort(-broken, kind="stable")[:many]
        worst = np.sort(worst[broken[worst] > 0])
        if not len(worst):
            return
        # The Gram matrix of the old set is known; new features stand at places of their own.
        before = np.concatenate([self._set, np.full(len(worst), -1)])
        known = np.zeros((len(before), len(before)), self._gram.dtype)
        known[: len(self._set), : len(self._set)] = self._gram
        self._set = np.concatenate([self._set, worst])
        self._c = np.concatenate([self._c, np.zeros(len(worst), self._c.dtype)])
        self._gram, self._moment = self._normal(self._set, (before, known))

    def _normal(
        self, S: NDArray[np.intp], known: tuple[NDArray[np.intp], NDArray[Any]] | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        gram, moment = self._problem.normal(S, known)
        return gram.astype(self._problem.dtype, copy=False), moment[:, 0]

    def _look(self) -> None:
        """One pass over all features: g and the power of the residual at c."""
        g, power = self._problem.gradient(self._set, self._c[:, None])
        self._g, self._power = g[:, 0], float(power[0])

    def _full(self) -> NDArray[Any]:
        full = np.zeros(self._problem.shape[1], self._c.dtype)
        full[self._set] = self._c
        return full


def l1_path(
    problem: Problem,
    penalties: Iterable[float],
    tolerance: float = TOLERANCE,
    go_on: Callable[[L1Fit], bool] | None = None,
) -> Iterator[L1Fit]:
    """Solutions for several λ > 0, each from the one before: best in descending order.

    Ends early after a fit that `go_on` says no to.
    """
    solver = L1Solver(problem, tolerance)
    for penalty in penalties:
        fit = checked(solver.at(penalty))
        yield fit
        if go_on is not None and not go_on(fit):
            return


def denoising_path(
    problem: Problem,
    noise_levels: Iterable[float],
    tolerance: float = TOLERANCE,
    go_on: Callable[[L1Fit], bool] | None = None,
) -> Iterator[L1Fit]:
    """Basis pursuit denoising for several noise levels η, in units of the problem's targets.

        minimise over c   ‖c‖₁   such that   (1/M) Σ_k w_k |y_k - (A c)_k|² <= η²

    Below the smallest residual that can be reached, the solution is the limit of a small λ, and its
    `reached` is False. With `go_on` the path ends there, or with the first λ that it says no to.
    """
    solver = L1Solver(problem, tolerance)
    for level in noise_levels:
        fit = checked(solver.within(level**2, go_on))
        yield fit
        if go_on is not None and not fit.reached:
            return


def checked(fit: L1Fit) -> L1Fit:
    """The same fit, after a warning if it is not optimal to the tolerance."""
    if not fit.converged:
        warnings.warn(
            f"The l1 solution at penalty {fit.penalty:.3g} violates the optimality conditions by "
            f"{fit.violation:.1e} of the penalty; pass a larger alpha or noise_level",
            ConvergenceWarning,
            stacklevel=2,
        )
    return fit


class Patience:
    """Whether smaller λ are worth a try, by the error on rows that are held out.

    The end of a path costs most, and a residual below the noise costs more than all the path
    before. It is left at a fifth of the λ that has been best.

    Parameters
    ----------
    y : array
        Targets of those rows.
    """

    def __init__(self, y: NDArray[Any]) -> None:
        self._y = y
        self._least, self._best = np.inf, np.inf

    def __call__(self, penalty: float, predicted: NDArray[Any]) -> bool:
        """Judge a fit: whether to go on below its λ."""
        error = float(np.mean(np.abs(predicted - self._y) ** 2))
        if error < self._least:
            self._least, self._best = error, penalty
        return penalty > _PATIENCE * self._best


def filled(rows: Iterable[NDArray[Any]], total: int) -> NDArray[Any]:
    """Rows one below the other; those that a path did not come to are like its last."""
    listed = list(rows)
    return np.stack(listed + listed[-1:] * (total - len(listed)))
