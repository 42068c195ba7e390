"""Algorithm 1 of the paper: hard-thresholding pursuit on the ridge problem.

    minimise over c   (1/M) Σ_k w_k |y_k - (A c)_k|² + α‖c‖²   subject to ‖c‖₀ <= s

with A, y, w and M as `harfe.solvers.problem` defines them. In the paper's notation α is λ for
columns of unit root-mean-square. The pursuit sees only a problem: no rows, no features, no
scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.threads import one_blas_thread
from harfe.solvers.matrix import as_problem
from harfe.solvers.path import find_core
from harfe.solvers.problem import Problem
from harfe.solvers.ridge import RestrictedRidge
from harfe.solvers.settings import PursuitSettings
from harfe.solvers.solution import SparseSolution
from harfe.solvers.swaps import exchange

INITS = ("zero", "graded", "swapped")

# The step of the paper's experiments.
_PAPER_STEP = 0.1


class StopReason(Enum):
    """Why the pursuit ended; the value is advice."""

    RESIDUAL = (
        "The residual reached the tolerance: nothing is left to explain. "
        "Fewer features may be enough."
    )
    FIXED_POINT = "The support no longer changes. Another step_size or random_state may end lower."
    CYCLE = "The supports repeat in a cycle; the best of them is returned."
    MAX_ITER = (
        "The support was still changing after max_iter rounds; the best round is returned. "
        "Raise max_iter to continue."
    )
    CALLBACK = "A callback stopped the pursuit."
    MATCHED = "The features match the reference of a learned law; no pursuit was run."


@dataclass(frozen=True)
class Round:
    """State after one round, passed to a callback; `scaled_coef` is of the scaled problem."""

    n_iter: int
    support: NDArray[np.intp]
    scaled_coef: NDArray[Any]
    objective: float
    relative_residual: float


@dataclass(frozen=True)
class PursuitResult(SparseSolution):
    """The round with the lowest objective, and the history of all rounds.

    ``A @ coef.T + intercept`` predicts y; `coef` and `intercept` are for the columns as given.

    Attributes
    ----------
    support : int array of shape (s,)
        Sorted. Shorter than s only if fewer columns are usable, i.e. not constant.
    coef : array of shape (N,), or (targets, N) if y is a matrix
        Coefficients of the columns as given; zero except on the support.
    coef_on_support : array of shape (s,), or (targets, s)
        The same without the zeros.
    intercept : number, or array of shape (targets,)
        0 if none is fitted.
    scaled_coef : array of shape (s, targets)
        Coefficients on the support in the scaled problem, those of the objective.
    n_columns : int
        Number of columns, N.
    objective, relative_residual : float arrays, one entry per round
        Value of the objective and ‖A c - y‖/‖y‖. Several targets, each in units of its deviation,
        are summed.
    best_round : int
        Which entry the coefficients belong to, counted from 0.
    reason : StopReason
        Why the pursuit ended; its value is advice.
    """

    objective: NDArray[np.float64]
    relative_residual: NDArray[np.float64]
    best_round: int
    reason: StopReason

    @property
    def n_iter(self) -> int:
        """Number of rounds."""
        return len(self.objective)

    @property
    def lowest(self) -> float:
        """Objective of the returned round."""
        return float(self.objective[self.best_round])


def hard_ridge_pursuit(
    A: ArrayLike | Problem,
    y: ArrayLike | None = None,
    *,
    n_nonzero_coefs: int,
    alpha: float,
    sample_weight: ArrayLike | None = None,
    fit_intercept: bool = True,
    column_scale: str = "rms",
    init: str | ArrayLike = "zero",
    step_size: float | str = 0.1,
    max_iter: int = 50,
    tol: float = 1e-6,
    noise_level: float | None = None,
    callback: Callable[[Round], bool | None] | None = None,
) -> PursuitResult:
    """Minimise (1/M) Σ_k w_k |y_k - ȳ - (A c)_k|² + α‖c‖² over c with at most s non-zeros.

    By Algorithm 1 of the paper, hard-thresholding pursuit on the ridge problem. Here the columns of
    A are centred and scaled to unit root-mean-square, and M = Σ w; the coefficients returned are
    for the columns as given. ``fit_intercept=False`` centres nothing, as in the paper;
    the other defaults are the paper's. Always returns the round with the lowest objective.

    Parameters
    ----------
    A : array of shape (m, N), or problem
        Real or complex; or the result of :func:`sparse_ridge_problem`, in which case y,
        sample_weight, fit_intercept and column_scale are left out.
    y : array of shape (m,) or (m, targets)
        Real or complex. Several targets share the support; each is divided by its deviation.
    n_nonzero_coefs : int
        s. Exactly s columns are kept, those with the largest coefficients in magnitude (with
        several targets: in ℓ2 norm over the targets); ties go to the lower index.
    alpha : float
        Ridge weight of the scaled problem, >= 0; 0 gives least squares of minimum norm on the
        support.
    sample_weight : array of shape (m,), default=None
        How often each row counts, w: 2 is like two copies of the row, 0 like none.
    fit_intercept : bool, default=True
        Centre the columns and y; the paper does not.
    column_scale : {"rms", "none"}, default="rms"
        Scale the columns to unit root-mean-square, or not at all; "none" with ``alpha=λ`` and
        ``step_size=m*μ`` is the paper's literal form.
    init : "zero", "graded", "swapped" or array of shape (N,) or (targets, N), default="zero"
        Start c⁰; an array holds coefficients of the columns as given. "graded" prunes from the
        ridge solution on all columns to s (:func:`sparsity_path`), continues from there with the
        normalised step, also runs the zero start, with `step_size` and with the paper's 0.1, and
        returns the best: never above Algorithm 1, often far below. "swapped" then exchanges single
        columns while that lowers the objective, and continues from there: lower still, but with
        noise in y it may predict worse.
    step_size : float or "normalized", default=0.1
        μ of the gradient step; "normalized" is 1/(1+α), the unit step on the stacked matrix B of
        Theorem 3.1, whose columns then have unit norm.
    max_iter : int, default=50
        Maximum number of rounds.
    tol : float, default=1e-6
        Stop once ‖A c - y‖ <= tol·‖y‖, y centred if an intercept is fitted.
    noise_level : float, default=None
        Also stop once ‖A c - y‖₂ <= noise_level·√M for every target, in units of y.
    callback : callable, default=None
        Called with a `Round` after each round; the pursuit stops if it returns true.

    Returns
    -------
    PursuitResult

    See Also
    --------
    sparsity_path : Solutions of every sparsity, from all columns down to a few.
    HARFERegressor : Random features of the inputs as columns, with the scikit-learn API.

    Examples
    --------
    >>> import numpy as np
    >>> from harfe import hard_ridge_pursuit
    >>> A = np.random.default_rng(0).normal(size=(50, 200))
    >>> y = 3 * A[:, 7] - A[:, 60] + 2 * A[:, 150] + 1
    >>> result = hard_ridge_pursuit(A, y, n_nonzero_coefs=3, alpha=1e-6)
    >>> result.support
    array([  7,  60, 150])
    >>> print(result.coef[result.support].round(3), result.intercept.round(3))
    [ 3. -1.  2.] 1.0
    """
    settings = PursuitSettings(n_nonzero_coefs, alpha, step_size, max_iter, tol, noise_level)
    problem = as_problem(
        A, y, sample_weight=sample_weight, fit_intercept=fit_intercept, column_scale=column_scale
    )
    return pursue(problem, settings, init=init, callback=callback)


def pursue(
    problem: Problem,
    settings: PursuitSettings,
    *,
    init: str | ArrayLike = "zero",
    callback: Callable[[Round], bool | None] | None = None,
) -> PursuitResult:
    """Run :func:`hard_ridge_pursuit` on a problem in any home, with settings as one value."""
    N, s = problem.shape[1], settings.n_nonzero_coefs
    if s > N:
        raise ValueError(
            f"n_nonzero_coefs={s} is larger than the number of columns, {N}; "
            f"pass n_nonzero_coefs={N} or less"
        )
    start = _start(problem, init)
    with one_blas_thread():
        if not isinstance(init, str) or init == "zero":
            return _run(problem, settings, start, callback)
        normalised = replace(settings, step_size="normalized")
        core = find_core(problem, min(s, int(problem.usable.sum())))
        *_, (S, c) = core.prune(settings.alpha, [s])
        best = _run(problem, normalised, _Start(S, c, is_first_support=True), callback)
        stopped = best.reason is StopReason.CALLBACK
        for step in dict.fromkeys((settings.mu, _PAPER_STEP)):
            if stopped:
                break
            plain = _run(problem, replace(settings, step_size=step), start, callback)
            stopped = plain.reason is StopReason.CALLBACK
            best = plain if plain.lowest < best.lowest else best
        if init == "graded" or stopped:
            return best
        S = exchange(problem, best.support, core.support, settings.alpha)
        if np.array_equal(S, best.support):
            return best
        zeros = np.zeros((len(S), problem.shape[2]), problem.dtype)
        last = _run(problem, normalised, _Start(S, zeros, is_first_support=True), callback)
        return last if last.lowest < best.lowest else best


@dataclass(frozen=True)
class _Start:
    """Coefficients c⁰ on a support, which may also serve as the support of the first round."""

    support: NDArray[np.intp]
    coef: NDArray[Any]
    is_first_support: bool = False


def _run(
    problem: Problem,
    settings: PursuitSettings,
    start: _Start,
    callback: Callable[[Round], bool | None] | None,
) -> PursuitResult:
    """Run the loop of Algorithm 1."""
    s = min(settings.n_nonzero_coefs, int(problem.usable.sum()))
    alpha, mu, noise_level = settings.alpha, settings.mu, settings.noise_level
    ridge = RestrictedRidge(problem, alpha)
    null = np.sum(problem.power)
    objectives: list[float] = []
    residuals: list[float] = []
    seen: dict[bytes, int] = {}
    best = None

    # Algorithm 1; lines are numbered as in the paper, below its initialization:
    # start with an s-sparse c⁰, n = 0
    S, c = start.support, start.coef
    n = 0
    idx = S if start.is_first_support else problem.step(S, c, mu, alpha, s)[0]
    while True:
        S = idx
        if (earlier := seen.get(S.tobytes())) is not None:
            reason = StopReason.FIXED_POINT if earlier == n - 1 else StopReason.CYCLE
            break
        seen[S.tobytes()] = n
        # 3. Ā <- A[:, idx]; 4. cⁿ⁺¹ = 0 off idx; 5. cⁿ⁺¹ on idx <- the ridge solution with Ā
        c = ridge.solve(S)
        # 6. n = n + 1
        n += 1
        # 1. c̃ⁿ⁺¹ <- (1 - μα) cⁿ + μ A*(y - A cⁿ)/M; 2. idx <- indices of its s largest entries.
        # Before the round ends, because the residual for its history is a by-product.
        idx, rss = problem.step(S, c, mu, alpha, s)
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
        if residuals[-1] <= settings.tol or (noise_level is not None and noise <= noise_level):
            reason = StopReason.RESIDUAL
            break
        if n == settings.max_iter:
            reason = StopReason.MAX_ITER
            break
    assert best is not None
    return PursuitResult.of(
        problem,
        best.support,
        best.scaled_coef,
        objective=np.array(objectives),
        relative_residual=np.array(residuals),
        best_round=best.n_iter - 1,
        reason=reason,
    )


def _start(problem: Problem, init: str | ArrayLike) -> _Start:
    """Return the start that `init` describes."""
    _, N, T = problem.shape
    if isinstance(init, str):
        if init not in INITS:
            raise ValueError(
                f"init={init!r} is not known; pass 'zero', 'graded', 'swapped' or an array of {N} "
                "coefficients"
            )
        return _Start(np.empty(0, dtype=np.intp), np.empty((0, T), problem.dtype))
    coef = np.asarray(init)
    kinds = "iufc" if problem.dtype.kind == "c" else "iuf"
    if coef.dtype.kind not in kinds and coef.size == N * T:
        raise ValueError(
            f"init has type {coef.dtype}; pass 'zero' or numbers of type {problem.dtype}"
        )
    if coef.shape not in ((N,), (T, N)) or coef.size != N * T or not np.all(np.isfinite(coef)):
        shape = f"({N},)" if T == 1 else f"({T}, {N})"
        raise ValueError(
            f"init has shape {coef.shape}; pass 'zero' or finite coefficients of shape {shape}"
        )
    c = problem.from_raw(np.arange(N), coef.reshape(T, N))
    S = np.flatnonzero(np.any(c != 0, axis=1) & problem.usable)
    return _Start(S, c[S].astype(problem.dtype))
