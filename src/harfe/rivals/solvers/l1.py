"""The l1 problem on random features: paths of the lasso, and basis pursuit denoising.

    minimise over c   (1/2M) Σ_k w_k |y_k - (A c)_k|² + λ‖c‖₁

for real and complex c, with |c_j| the modulus. The features that violate the optimality conditions
most enter a working set, on which `l1_gram` solves the problem of the Gram matrix. Convergence is
checked over all N features, with g = A*W(y - A c)/M:

    |g_j| <= λ where c_j = 0,   g_j = λ c_j/|c_j| elsewhere,   both up to a share of λ.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from harfe._core.threads import one_blas_thread
from harfe.rivals.solvers.l1_gram import newton_step, solve_gram, violations
from harfe.solvers.problem import Problem

#: Allowed violation of the optimality conditions, as a share of λ.
TOLERANCE = 1e-6

#: Smallest λ tried, as a share of the one at which c = 0: below it, rounding errors dominate.
SMALLEST = 1e-6

# Maximum passes over all features for one λ; reached only if rounding errors dominate.
_ROUNDS = 100

# Rounding error of g, as a share of ‖c‖₁.
_ROUNDING = 16 * np.finfo(float).eps

# Stop after this many rounds without a smaller objective: only rounding errors remain.
_IDLE = 3

# A λ far below the last one is approached by this factor, at this tolerance.
_STRIDE, _COARSE = 0.5, 0.05

# First λ in the search for a residual, as a share of the one at which c = 0.
_FIRST = 0.8

# At most this many features enter the working set at a time, or as many as are in use if more.
_ENTER = 50

# Features with a correlation within this of 1 count as equal.
_TWIN = 1e-13

# A path ends at this share of the best λ so far.
_PATIENCE = 0.2

# Relative error of the residual norm in basis pursuit denoising, and maximum number of steps.
_RESIDUAL, _ROOT_STEPS = 1e-7, 60


@dataclass(frozen=True)
class L1Fit:
    """A solution and its certificate.

    Attributes
    ----------
    support : int array of shape (s,)
        Features with non-zero coefficients, ascending.
    coef : array of shape (s, 1)
    penalty : float
        λ.
    power : float
        Σ w|y - A c|²/M.
    violation : float
        Largest violation of the optimality conditions over all features, as a share of λ.
    converged : bool
        Whether `violation` is within the tolerance or the rounding error of g.
    reached : bool
        Whether λ, or the residual in basis pursuit denoising, is as small as requested.
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


def _twins(gram: NDArray[Any], first: int) -> NDArray[np.bool_]:
    """Which features from `first` on are multiples of an earlier one, and so can stay zero.

    Inputs with few distinct values give hundreds of them, each a homotopy event without effect.
    """
    sizes = np.sqrt(np.diagonal(gram).real)
    likeness = np.abs(gram[first:]) / np.maximum(sizes[first:, None] * sizes, np.finfo(float).tiny)
    alike = np.tril(likeness >= 1 - _TWIN, k=first - 1)
    twins = np.zeros(len(gram), dtype=bool)
    twins[first:] = alike.any(axis=1)
    return twins


class L1Solver:
    """Solves the l1 problem for a sequence of λ, each started from the last solution.

    Parameters
    ----------
    problem : Problem
        Must have one target.
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
        """The solution for one λ > 0, raised to the smallest that doubles can resolve."""
        reached, penalty = penalty >= self._floor, max(penalty, self._floor)
        while penalty < _STRIDE * self._penalty:
            if not self._settle(_STRIDE * self._penalty, _COARSE).converged:
                break
        return replace(self._settle(penalty, self._tolerance), reached=reached)

    def within(self, power: float, go_on: Callable[[L1Fit], bool] | None = None) -> L1Fit:
        """The solution with the smallest ‖c‖₁ whose residual has at most this power.

        On the way down, the search stops if `go_on` returns False for a fit.

        The power of the residual grows with λ; for fixed signs it is ρ + κλ² with κ = u*H⁻¹u,
        u = c/|c| and H the curvature, which predicts the next λ to try.
        """
        low, high, floor = 0.0, self.largest, self._floor
        if power >= self._problem.power[0] * (1 - 2 * _RESIDUAL):
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
                self._floor = last.penalty  # rounding errors dominate earlier than usual
                return replace(last, reached=False)
        return replace(fit, reached=False)

    def _stiffness(self) -> float:
        """κ: the rate at which the power of the residual grows with λ², for the current signs."""
        used = np.flatnonzero(self._c)
        if not len(used):
            return np.inf
        c = self._c[used]
        gram = self._gram[np.ix_(used, used)]
        unit = c / np.abs(c)
        # Makes the right-hand side of the Newton step `unit`, the direction of the penalty.
        step = newton_step(gram, unit + self._penalty * unit, c, self._penalty)
        return max(float(np.vdot(unit, step).real), np.finfo(float).tiny)

    def _settle(self, penalty: float, tolerance: float) -> L1Fit:
        """Solve for this λ from the current solution."""
        with one_blas_thread():
            return self._solved(penalty, tolerance)

    def _solved(self, penalty: float, tolerance: float) -> L1Fit:
        # If no feature varies, c = 0 for any λ.
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
            # g has no correct digit below this: its sums have summands of the size of c.
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
        """Add the worst violators to the working set; drop zeros first if the set is too large."""
        used = int(np.count_nonzero(self._c))
        many = max(_ENTER, used)
        if len(self._set) > 2 * used + 4 * _ENTER:
            self._keep(self._c != 0)
        broken[self._set] = 0.0
        worst = np.argsort(-broken, kind="stable")[:many]
        worst = np.sort(worst[broken[worst] > 0])
        if not len(worst):
            return
        # The Gram matrix of the old set is reused; -1 marks the new features.
        before = np.concatenate([self._set, np.full(len(worst), -1)])
        known = np.zeros((len(before), len(before)), self._gram.dtype)
        known[: len(self._set), : len(self._set)] = self._gram
        self._set = np.concatenate([self._set, worst])
        self._c = np.concatenate([self._c, np.zeros(len(worst), self._c.dtype)])
        self._gram, self._moment = self._normal(self._set, (before, known))
        self._keep(~_twins(self._gram, len(before) - len(worst)))

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        """Reduce the working set to the kept features."""
        if not kept.all():
            self._set, self._c, self._moment = self._set[kept], self._c[kept], self._moment[kept]
            self._gram = self._gram[np.ix_(kept, kept)]

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
    """Solutions for several λ > 0, each started from the one before; fastest if descending.

    Stops after the first fit for which `go_on` returns False.
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

    If no c has a residual that small, the fit is that of the smallest λ, with `reached` False. With
    `go_on` the path ends there, or at the first λ for which it returns False.
    """
    solver = L1Solver(problem, tolerance)
    for level in noise_levels:
        fit = checked(solver.within(level**2, go_on))
        yield fit
        if go_on is not None and not fit.reached:
            return


def checked(fit: L1Fit) -> L1Fit:
    """Return the fit; warn if it has not converged."""
    if not fit.converged:
        warnings.warn(
            f"The l1 solution at penalty {fit.penalty:.3g} violates the optimality conditions by "
            f"{fit.violation:.1e} of the penalty; pass a larger alpha or noise_level",
            ConvergenceWarning,
            stacklevel=2,
        )
    return fit


class Patience:
    """Whether smaller λ are worth trying, judged by the error on held-out rows.

    The end of a path is its most expensive part: a residual below the noise costs more than the
    whole path before. The path ends at a fifth of the best λ so far.

    Parameters
    ----------
    y : array
        Targets of those rows.
    """

    def __init__(self, y: NDArray[Any]) -> None:
        self._y = y
        self._least, self._best = np.inf, np.inf

    def __call__(self, penalty: float, predicted: NDArray[Any]) -> bool:
        """Whether to continue below the λ of a fit."""
        error = float(np.mean(np.abs(predicted - self._y) ** 2))
        if error < self._least:
            self._least, self._best = error, penalty
        return penalty > _PATIENCE * self._best


def filled(rows: Iterable[NDArray[Any]], total: int) -> NDArray[Any]:
    """Stack the rows; repeat the last for those that a path did not reach."""
    listed = list(rows)
    return np.stack(listed + listed[-1:] * (total - len(listed)))
