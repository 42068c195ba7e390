"""Algorithm 1 of the paper: hard-thresholding pursuit on the ridge problem.

    minimise over c   (1/M) Σ_k w_k |y_k - (A c)_k|² + α‖c‖²   such that ‖c‖₀ <= s

with A, y, w and M as `harfe.solvers.problem` defines them. In the paper's letters α is λ on
columns of unit root-mean-square. The pursuit knows a problem and nothing of rows, features or
scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_alpha, check_count, is_number
from harfe._core.threads import one_blas_thread
from harfe.solvers.path import find_core
from harfe.solvers.problem import Problem
from harfe.solvers.ridge import RestrictedRidge
from harfe.solvers.swaps import exchange
from harfe.solvers.threshold import largest_rows

INITS = ("zero", "graded", "swapped")

# The step of the paper's experiments.
_PAPER_STEP = 0.1


class StopReason(Enum):
    """Why the pursuit ended; the value is advice."""

    RESIDUAL = "The residual reached the tolerance: nothing is left to explain. Fewer terms may do."
    FIXED_POINT = "The support no longer changes. Another step_size or random_state may end lower."
    CYCLE = "The supports go round in a circle; the best of them is returned."
    MAX_ITER = (
        "The support still changed after max_iter rounds; the best round is returned. "
        "Raise max_iter to go on."
    )
    CALLBACK = "A callback asked to stop."
    MATCHED = "The terms match the reference of a learned law; no pursuit was run."


@dataclass(frozen=True)
class Round:
    """State after one round, as a callback sees it."""

    n_iter: int
    support: NDArray[np.intp]
    coef: NDArray[Any]
    objective: float
    relative_residual: float


@dataclass(frozen=True)
class PursuitResult:
    """The round with the lowest objective, and how it went.

    Attributes
    ----------
    support : int array of shape (s,)
        Sorted. Shorter than s only if fewer features are usable.
    coef : array of shape (s, targets)
        Coefficients of the scaled problem on the support.
    objective, relative_residual : float arrays, one entry a round
        Value of the objective and ‖A c - y‖/‖y‖. Several targets, each in units of its deviation,
        are summed.
    best_round : int
        Which entry belongs to `coef`, counted from 0.
    reason : StopReason
    """

    support: NDArray[np.intp]
    coef: NDArray[Any]
    objective: NDArray[np.float64]
    relative_residual: NDArray[np.float64]
    best_round: int
    reason: StopReason

    @property
    def n_iter(self) -> int:
        """Number of rounds done."""
        return len(self.objective)

    @property
    def lowest(self) -> float:
        """Objective at `coef`."""
        return float(self.objective[self.best_round])


def check_settings(
    *,
    n_nonzero_coefs: Any,
    n_components: int,
    alpha: Any,
    step_size: Any,
    max_iter: Any,
    tol: Any,
    noise_level: Any,
) -> None:
    """Refuse impossible settings, naming argument, value and what to type instead."""
    s, N = n_nonzero_coefs, n_components
    check_count("n_nonzero_coefs", s, 50)
    if s > N:
        raise ValueError(
            f"n_nonzero_coefs={s} is larger than n_components={N}; "
            f"pass n_nonzero_coefs={N} or less, or a larger n_components"
        )
    check_alpha(alpha)
    named = isinstance(step_size, str) and step_size == "normalized"
    if not named and not (is_number(step_size) and 0 < step_size < np.inf):
        raise ValueError(
            f"step_size={step_size!r} must be 'normalized' or a positive number, e.g. step_size=0.1"
        )
    check_count("max_iter", max_iter, 50)
    if not is_number(tol) or not 0 <= tol < np.inf:
        raise ValueError(f"tol={tol!r} must be a finite number >= 0, e.g. tol=1e-6")
    if noise_level is not None and not (is_number(noise_level) and 0 <= noise_level < np.inf):
        raise ValueError(
            f"noise_level={noise_level!r} must be None or a finite number >= 0, in units of y"
        )


def hard_ridge_pursuit(
    problem: Problem,
    n_nonzero_coefs: int,
    alpha: float,
    *,
    step_size: float | str = 0.1,
    init: str | NDArray[Any] = "zero",
    max_iter: int = 50,
    tol: float = 1e-6,
    noise_level: float | None = None,
    callback: Callable[[Round], bool | None] | None = None,
) -> PursuitResult:
    """Minimise (1/M)‖y - A c‖² + α‖c‖² over c with at most s non-zeros, by Algorithm 1.

    With the defaults it is the paper's algorithm, step for step. Always returns the round with the
    lowest objective.

    Parameters
    ----------
    problem : Problem
        A, y and the row weights, in any home.
    n_nonzero_coefs : int
        s. Exactly s features are kept, the largest in magnitude, ties to the lower index; of
        several targets the ℓ2 norm of a feature's coefficients counts.
    alpha : float
        Ridge weight, >= 0; 0 gives least squares of minimum norm on the support.
    step_size : float or "normalized"
        μ of the gradient step; "normalized" is 1/(1+α), the unit step on the stacked matrix B of
        Theorem 3.1, whose columns then have unit norm.
    init : "zero", "graded", "swapped" or array of shape (N,) or (N, targets)
        Start c⁰, in the scale of the problem. "graded" prunes from the ridge solution on all
        features to s (:func:`sparsity_path`), goes on from there with the normalised step, runs
        the zero start too, with `step_size` and with the paper's 0.1, and returns the best: never
        above Algorithm 1, often far below. "swapped" then exchanges single features while that
        lowers the objective, and goes on from there: lower still, but with noise in y it may
        predict worse.
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop once ‖A c - y‖ <= tol·‖y‖, y centred if an intercept is fitted.
    noise_level : float, optional
        Also stop once ‖A c - y‖₂ <= noise_level·√M for every target, in units of y.
    callback : callable, optional
        Called with a `Round` after each round; a true answer stops the pursuit.

    Returns
    -------
    PursuitResult
    """
    _, N, _ = problem.shape
    check_settings(
        n_nonzero_coefs=n_nonzero_coefs,
        n_components=N,
        alpha=alpha,
        step_size=step_size,
        max_iter=max_iter,
        tol=tol,
        noise_level=noise_level,
    )
    mu = 1 / (1 + alpha) if isinstance(step_size, str) else float(step_size)
    s = min(n_nonzero_coefs, int(problem.usable.sum()))
    start = _start(problem, init)
    with one_blas_thread():
        if not isinstance(init, str) or init == "zero":
            return _pursue(problem, s, alpha, mu, start, max_iter, tol, noise_level, callback)
        core = find_core(problem, s)
        *_, pruned = core.prune(alpha, [s])
        best = _pursue(
            problem, s, alpha, 1 / (1 + alpha), pruned, max_iter, tol, noise_level, callback, True
        )
        stopped = best.reason is StopReason.CALLBACK
        for step in dict.fromkeys((mu, _PAPER_STEP)):
            if stopped:
                break
            plain = _pursue(problem, s, alpha, step, start, max_iter, tol, noise_level, callback)
            stopped = plain.reason is StopReason.CALLBACK
            best = plain if plain.lowest < best.lowest else best
        if init == "graded" or stopped:
            return best
        S = exchange(problem, best.support, core.support, alpha)
        if np.array_equal(S, best.support):
            return best
        swapped = (S, np.zeros((len(S), problem.shape[2]), problem.dtype))
        last = _pursue(
            problem, s, alpha, 1 / (1 + alpha), swapped, max_iter, tol, noise_level, callback, True
        )
        return last if last.lowest < best.lowest else best


def _pursue(
    problem: Problem,
    s: int,
    alpha: float,
    mu: float,
    start: tuple[NDArray[np.intp], NDArray[Any]],
    max_iter: int,
    tol: float,
    noise_level: float | None,
    callback: Callable[[Round], bool | None] | None,
    keep_start: bool = False,
) -> PursuitResult:
    """Run the loop; `keep_start` takes the support of the start for that of the first round."""
    ridge = RestrictedRidge(problem, alpha)
    null = np.sum(problem.power)
    objectives: list[float] = []
    residuals: list[float] = []
    seen: dict[bytes, int] = {}
    best = None

    # Algorithm 1, its lines numbered as they stand below its initialization:
    # start with an s-sparse c⁰, n = 0
    S, c = start
    n = 0
    if not keep_start:
        gradient, _ = problem.gradient(S, c)
    while True:
        if n > 0 or not keep_start:
            # 1. c̃ⁿ⁺¹ <- (1 - μα) cⁿ + μ A*(y - A cⁿ)/M
            stepped = mu * gradient
            stepped[S] += (1 - mu * alpha) * c
            # 2. idx <- indices of the s largest entries of c̃ⁿ⁺¹
            S = largest_rows(stepped, s, problem.usable)
        if (earlier := seen.get(S.tobytes())) is not None:
            reason = StopReason.FIXED_POINT if earlier == n - 1 else StopReason.CYCLE
            break
        seen[S.tobytes()] = n
        # 3. Ā <- A[:, idx]; 4. cⁿ⁺¹ = 0 off idx; 5. cⁿ⁺¹ on idx <- the ridge solution with Ā
        c = ridge.solve(S)
        # 6. n = n + 1
        n += 1
        gradient, rss = problem.gradient(S, c)
        objectives.append(float(np.sum(rss) + alpha * np.sum(np.abs(c) ** 2)))
        residuals.append(float(np.sqrt(np.sum(rss) / null)) if null > 0 else 0.0)
        state = Round(n, S, c, objectives[-1], residuals[-1])
        if best is None or state.objective < best.objective:
            best = state
        # while the relative residual is above ε and n < tot_iter (printed as "or")
        if callback is not None and callback(state):
            reason = StopReason.CALLBACK
            break
        noise = float(np.max(np.sqrt(rss) * problem.targets.unit))
        if residuals[-1] <= tol or (noise_level is not None and noise <= noise_level):
            reason = StopReason.RESIDUAL
            break
        if n == max_iter:
            reason = StopReason.MAX_ITER
            break
    assert best is not None
    return PursuitResult(
        best.support,
        best.coef,
        np.array(objectives),
        np.array(residuals),
        best.n_iter - 1,
        reason,
    )


def _nothing(problem: Problem) -> tuple[NDArray[np.intp], NDArray[Any]]:
    return np.empty(0, dtype=np.intp), np.empty((0, problem.shape[2]), problem.dtype)


def _start(problem: Problem, init: str | NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Start as (support, coefficients on it)."""
    _, N, T = problem.shape
    if isinstance(init, str):
        if init not in INITS:
            raise ValueError(
                f"init={init!r} is not known; pass 'zero', 'graded', 'swapped' or an array of {N} "
                "coefficients"
            )
        return _nothing(problem)
    c = np.asarray(init)
    kinds = "iufc" if problem.dtype.kind == "c" else "iuf"
    if c.dtype.kind not in kinds and c.size == N * T:
        raise ValueError(f"init has type {c.dtype}; pass 'zero' or numbers of type {problem.dtype}")
    if c.shape not in ((N,), (N, T)) or c.size != N * T or not np.all(np.isfinite(c)):
        raise ValueError(
            f"init has shape {c.shape}; pass 'zero' or finite numbers of shape ({N}, {T})"
        )
    c = c.reshape(N, T)
    S = np.flatnonzero(np.any(c != 0, axis=1) & problem.usable)
    return S, c[S].astype(problem.dtype)
