"""One fit, from rows to a fitted function: every setting resolved, every part called once.

Estimators check what the user passed and write a `Recipe`; what the recipe does with rows is the
same for a fit, for a fold of cross-validation and for out-of-fold residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import memory_bytes, one_blas_thread
from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.features.units import InputBounds, InputUnits, find_bounds, measure_units
from harfe.model.expansion import Expansion
from harfe.model.uncertainty import Posterior
from harfe.solvers.homes import make_problem
from harfe.solvers.path import Reduced, find_core, largest_system, working_numbers
from harfe.solvers.problem import Problem
from harfe.solvers.pursuit import PursuitResult, Round, StopReason, hard_ridge_pursuit
from harfe.solvers.ridge import RestrictedRidge


@dataclass(frozen=True)
class Posed:
    """A pool of features, in the user's units, and the problem it makes of some rows."""

    pool: FeaturePool
    bounds: InputBounds
    problem: Problem
    columns: tuple[str, ...]
    complex_output: bool
    units: InputUnits | None = None

    def expansion(self, S: NDArray[np.intp], c: NDArray[Any]) -> Expansion:
        """The function that coefficients of the scaled problem stand for."""
        coef, intercept = self.problem.to_raw(S, c)
        if not self.complex_output:
            intercept = intercept.real
        bounds = self.bounds if self.bounds.finite.any() else None
        features = self.pool.take(S)
        return Expansion(features, coef, intercept, self.columns, self.complex_output, bounds)

    def find_core(self, largest: int) -> Reduced:
        """Prune to the features worth a choice, at least `largest` of them."""
        return find_core(self.problem, largest)

    def scaled_features(self, S: NDArray[np.intp], X: NDArray[np.float64]) -> NDArray[Any]:
        """A_S at other rows, centred and scaled like the problem's."""
        raw = self.pool.take(S).evaluate(self.bounds.clip(X))
        return (raw - self.problem.mean[S]) / self.problem.scale[S]

    def to_targets(self, values: NDArray[Any]) -> NDArray[Any]:
        """Predictions in the user's units, from A_S c."""
        predicted = values * self.problem.targets.unit + self.problem.targets.centre
        return predicted if self.complex_output else predicted.real


@dataclass(frozen=True)
class FitSummary:
    """How the features of a fit were found.

    Attributes
    ----------
    support : int array of shape (s,)
        Which of the features drawn are kept.
    history : mapping of str to arrays
        "relative_residual" and "objective" of every round of a pursuit; a match has its "gap" to
        the reference instead of an objective.
    reason : StopReason
    """

    support: NDArray[np.intp]
    history: Mapping[str, NDArray[np.float64]]
    reason: StopReason

    @classmethod
    def of(cls, result: PursuitResult) -> FitSummary:
        """What a pursuit returned."""
        history = {"objective": result.objective, "relative_residual": result.relative_residual}
        return cls(result.support, history, result.reason)

    @property
    def n_iter(self) -> int:
        """Number of rounds."""
        return len(self.history["relative_residual"])


@dataclass(frozen=True)
class Fit:
    """What a recipe made of some rows.

    Attributes
    ----------
    pool : FeaturePool
        All features that were drawn, in the user's units.
    bounds : InputBounds
    problem : Problem
        The least-squares problem that holds the kept features, at these places.
    places : int array of shape (s,)
    summary : FitSummary
    expansion : Expansion
    units : InputUnits or None
        Those that `pool` was drawn in; None if it was taken from an earlier fit.
    """

    pool: FeaturePool
    bounds: InputBounds
    problem: Problem
    places: NDArray[np.intp]
    summary: FitSummary
    expansion: Expansion
    units: InputUnits | None = None

    def posterior(self, alpha: float) -> Posterior:
        """Ridge posterior of the kept coefficients."""
        return Posterior.of(self.problem, self.places, alpha, self.expansion)


@dataclass(frozen=True)
class Recipe:
    """Every setting of a fit as a number or a value; see `HARFERegressor` for their meaning."""

    law: Law
    seed: int
    n_components: int
    n_nonzero_coefs: int
    alpha: float
    columns: tuple[str, ...]
    memory_budget: float
    init: Any = "zero"
    step_size: float | str = "normalized"
    max_iter: int = 100
    tol: float = 1e-6
    noise_level: float | None = None
    fit_intercept: bool = True
    input_scale: str = "standard"
    input_clip: float | None = None
    column_scale: str = "rms"

    def draw(self) -> FeaturePool:
        """Features on inputs in the units of the law."""
        return self.law.draw(self.n_components, np.random.default_rng(self.seed))

    def pose(
        self,
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        drawn: FeaturePool | None = None,
        *,
        graded: bool | None = None,
    ) -> Posed:
        """Find bounds and units of these rows, and state the problem; all weights are positive."""
        bounds = find_bounds(X, weights, self.input_clip)
        X = bounds.clip(X)
        units = measure_units(X, weights, self.input_scale)
        pool = (self.draw() if drawn is None else drawn).in_user_units(units)
        if graded is None:
            graded = isinstance(self.init, str) and self.init != "zero"
        size = (len(y), len(pool), self.n_nonzero_coefs)
        problem = make_problem(
            pool,
            X,
            y.reshape(len(y), -1),
            weights,
            largest_support=largest_system(*size) if graded else self.n_nonzero_coefs,
            working_numbers=working_numbers(*size) if graded else 0,
            memory_budget=self.memory_budget,
            fit_intercept=self.fit_intercept,
            column_scale=self.column_scale,
        )
        return Posed(pool, bounds, problem, self.columns, y.dtype.kind == "c", units)

    def fit(
        self,
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        after_round: Callable[[Posed, Round], bool] | None = None,
    ) -> Fit:
        """Draw features and choose among them."""
        posed = self.pose(X, y, weights)
        result = hard_ridge_pursuit(
            posed.problem,
            self.n_nonzero_coefs,
            self.alpha,
            step_size=self.step_size,
            init=self._start(posed.problem),
            max_iter=self.max_iter,
            tol=self.tol,
            noise_level=self.noise_level,
            callback=None if after_round is None else lambda state: after_round(posed, state),
        )
        expansion = posed.expansion(result.support, result.coef)
        return Fit(
            posed.pool,
            posed.bounds,
            posed.problem,
            result.support,
            FitSummary.of(result),
            expansion,
            posed.units,
        )

    def _start(self, problem: Problem) -> Any:
        if isinstance(self.init, str):
            return self.init
        _, N, T = problem.shape
        return problem.from_raw(np.arange(N), np.asarray(self.init).reshape(T, N))


def recipe_of(estimator: Any, n_nonzero_coefs: int) -> Recipe:
    """The settings that a fitted estimator came to, for a refit of so many of its features."""
    # Terms that match a reference have the ridge weight that its noise comes to on unit columns.
    on_data = getattr(estimator, "fit_", "data") == "data"
    return Recipe(
        law=estimator.law_,
        seed=estimator.seed_,
        n_components=estimator.n_components_,
        n_nonzero_coefs=n_nonzero_coefs,
        alpha=estimator.alpha_ if hasattr(estimator, "alpha_") else estimator.alpha,
        columns=estimator.expansion_.columns,
        memory_budget=memory_bytes(estimator.memory_budget),
        fit_intercept=estimator.fit_intercept,
        input_scale=estimator.input_scale,
        input_clip=estimator.input_clip,
        column_scale=estimator.column_scale if on_data else "rms",
    )


def refit(
    expansion: Expansion,
    places: NDArray[np.intp],
    X: NDArray[np.float64],
    y: NDArray[Any],
    weights: NDArray[np.float64],
    *,
    alpha: float,
    memory_budget: float,
    fit_intercept: bool,
    column_scale: str,
) -> tuple[Posed, NDArray[Any], Expansion]:
    """Ridge solution on some features of an expansion, which stay as they are.

    Minimises (1/M) Σ_k w_k |y_k - (A_S c)_k|² + α‖c‖² with A, M and scales as in
    `harfe.solvers.problem`, S the features at `places`. Returns the problem of these features
    alone, its solution c and the function it stands for.
    """
    features = expansion.features.take(places)
    infinite = np.full(features.n_variables, np.inf)
    bounds = expansion.bounds or InputBounds(-infinite, infinite)
    with one_blas_thread():
        problem = make_problem(
            features,
            bounds.clip(X),
            y,
            weights,
            largest_support=len(features),
            memory_budget=memory_budget,
            fit_intercept=fit_intercept,
            column_scale=column_scale,
        )
        posed = Posed(features, bounds, problem, expansion.columns, expansion.complex_output)
        every = np.arange(len(features))
        c = RestrictedRidge(problem, alpha).solve(every)
        return posed, c, posed.expansion(every, c)
