"""One fit, from rows to a fitted function: every setting resolved, every part called once.

A `Recipe` says which features are drawn (`Sampling`), how rows become a problem (`Framing`) and how
features are chosen (`PursuitSettings`, a start). It does the same for a fit, for a fold of
cross-validation and for out-of-fold residuals. A `Template` is what all candidates of a search
share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import one_blas_thread
from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.features.units import InputMap, InputUnits, find_map, measure_units
from harfe.model.expansion import Expansion
from harfe.model.link import Link
from harfe.model.uncertainty import Posterior
from harfe.solvers.homes import RecomputedProblem, choose_home, make_problem
from harfe.solvers.path import Reduced, find_core, largest_system, working_numbers
from harfe.solvers.problem import Problem
from harfe.solvers.pursuit import PursuitResult, Round, StopReason, pursue
from harfe.solvers.ridge import RestrictedRidge
from harfe.solvers.settings import PursuitSettings


@dataclass(frozen=True)
class Posed:
    """A pool of features, in the user's units, and the problem it makes of some rows."""

    pool: FeaturePool
    map: InputMap
    problem: Problem
    columns: tuple[str, ...]
    complex_output: bool
    units: InputUnits | None = None

    def expansion(self, S: NDArray[np.intp], c: NDArray[Any]) -> Expansion:
        """The function that coefficients of the scaled problem stand for."""
        coef, intercept = self.problem.to_raw(S, c)
        if not self.complex_output:
            intercept = intercept.real
        kept = None if self.map.is_identity else self.map
        features = self.pool.take(S)
        return Expansion(features, coef, intercept, self.columns, self.complex_output, kept)

    def find_core(self, largest: int) -> Reduced:
        """Prune to the features worth a choice, at least `largest` of them."""
        return find_core(self.problem, largest)

    def scaled_features(self, S: NDArray[np.intp], X: NDArray[np.float64]) -> NDArray[Any]:
        """A_S at other rows, centred and scaled like the problem's."""
        raw = self.pool.take(S).evaluate(self.map.apply(X))
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
class Sampling:
    """Which features are drawn: N of them, from a law, with a seed."""

    law: Law
    seed: int
    n_components: int

    def draw(self) -> FeaturePool:
        """Features on inputs in the units of the law."""
        return self.law.draw(self.n_components, np.random.default_rng(self.seed))


@dataclass(frozen=True)
class Fit:
    """A fitted function and how it came about.

    Attributes
    ----------
    expansion : Expansion
    sampling : Sampling
    pool : FeaturePool
        All features that were drawn, in the user's units.
    map : InputMap
    problem : Problem
        The least-squares problem that holds the kept features, at these places.
    places : int array of shape (s,)
    n_nonzero_coefs : int
        Features asked for.
    alpha : float
        Ridge weight.
    summary : FitSummary
    units : InputUnits or None
        Those that `pool` was drawn in; None if it was taken from an earlier fit.
    """

    expansion: Expansion
    sampling: Sampling
    pool: FeaturePool
    map: InputMap
    problem: Problem
    places: NDArray[np.intp]
    n_nonzero_coefs: int
    alpha: float
    summary: FitSummary
    units: InputUnits | None = None

    def with_link(self, link: Link | None) -> Fit:
        """The same fit, of targets that are on the scale of this link."""
        return replace(self, expansion=replace(self.expansion, link=link))

    def posterior(self) -> Posterior:
        """Ridge posterior of the kept coefficients."""
        return Posterior.of(self.problem, self.places, self.alpha, self.expansion)

    def with_posterior(self) -> tuple[Expansion, Posterior]:
        """The function and the posterior of its coefficients."""
        return self.expansion, self.posterior()


@dataclass(frozen=True)
class Framing:
    """How rows become a least-squares problem; see `HARFERegressor` for the meaning of each field.

    Attributes
    ----------
    columns : tuple of str
        Names of the inputs.
    memory_budget : float
        In bytes.
    """

    columns: tuple[str, ...]
    # Not in the repr, which keys of finished folds are made of: it decides where features are
    # kept, not what comes out.
    memory_budget: float = field(repr=False)
    fit_intercept: bool = True
    input_scale: str = "standard"
    input_clip: float | None = None
    column_scale: str = "rms"
    input_warp: str = "none"
    # Under a learned law, see `harfe.features.units.find_map`.
    keep_tails: bool = False

    def check_memory(
        self, n_rows: int, n_features: int, n_targets: int, *, largest_support: int, graded: bool
    ) -> None:
        """Raise MemoryError if a problem of real features of this size does not fit."""
        largest, working = _systems(n_rows, n_features, largest_support, graded)
        choose_home(
            n_rows,
            n_features,
            len(self.columns),
            n_targets,
            itemsize=8,
            largest_support=largest,
            memory_budget=self.memory_budget,
            working_numbers=working,
        )

    def pose(
        self,
        drawn: FeaturePool,
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        *,
        largest_support: int,
        graded: bool = False,
        sample: NDArray[np.intp] | None = None,
    ) -> Posed:
        """Find map and units of these rows, and state the problem; all weights are positive.

        The check of memory allows for supports of `largest_support` features, and for the larger
        systems of a path down to them if `graded`. With a `sample`, the problem is of these rows
        only.
        """
        found = find_map(X, weights, self.input_clip, self.input_warp, self.keep_tails)
        X = found.apply(X)
        units = measure_units(X, weights, self.input_scale)
        pool = drawn.in_user_units(units)
        if sample is not None:
            X, y, weights = X[sample], y[sample], weights[sample]
        largest, working = _systems(len(y), len(pool), largest_support, graded)
        problem = make_problem(
            pool,
            X,
            y.reshape(len(y), -1),
            weights,
            largest_support=largest,
            working_numbers=working,
            memory_budget=self.memory_budget,
            fit_intercept=self.fit_intercept,
            column_scale=self.column_scale,
        )
        return Posed(pool, found, problem, self.columns, y.dtype.kind == "c", units)

    def refit(
        self,
        expansion: Expansion,
        places: NDArray[np.intp],
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        alpha: float,
    ) -> tuple[Posed, NDArray[Any], Expansion]:
        """Ridge solution on some features of an expansion, which stay as they are.

        Minimises (1/M) Σ_k w_k |y_k - (A_S c)_k|² + α‖c‖² with A, M and scales as in
        `harfe.solvers.problem`, S the features at `places`. Returns the problem of these features
        alone, its solution c and the function that c stands for.
        """
        features = expansion.features.take(places)
        kept = expansion.map or InputMap.identity(features.n_variables)
        with one_blas_thread():
            # A single Gram matrix is needed: storing the features would take longer.
            problem = RecomputedProblem(
                features,
                kept.apply(X),
                y,
                weights,
                fit_intercept=self.fit_intercept,
                column_scale=self.column_scale,
            )
            posed = Posed(features, kept, problem, expansion.columns, expansion.complex_output)
            every = np.arange(len(features))
            c = RestrictedRidge(problem, alpha).solve(every)
            return posed, c, posed.expansion(every, c)


def _systems(n_rows: int, n_features: int, s: int, graded: bool) -> tuple[int, int]:
    """Size of the largest system of a fit, and how many more numbers a graded start stores."""
    if not graded:
        return s, 0
    size = (n_rows, n_features, s)
    return largest_system(*size), working_numbers(*size)


@dataclass(frozen=True)
class Recipe:
    """Every setting of a fit.

    Attributes
    ----------
    sampling : Sampling
    framing : Framing
    pursuit : PursuitSettings
    init : str or array
        Where the pursuit starts.
    selection_rows : int or None
        Features are chosen on this many of the rows; None stands for all of them.
    """

    sampling: Sampling
    framing: Framing
    pursuit: PursuitSettings
    init: Any = "zero"
    selection_rows: int | None = None

    def pose(self, X: NDArray[np.float64], y: NDArray[Any], weights: NDArray[np.float64]) -> Posed:
        """Draw the features and state the problem that they make of the rows to choose on."""
        sample = None
        if self.selection_rows is not None and self.selection_rows < len(y):
            rng = np.random.default_rng([self.sampling.seed, len(y)])
            sample = np.sort(rng.permutation(len(y))[: self.selection_rows])
        return self.framing.pose(
            self.sampling.draw(),
            X,
            y,
            weights,
            largest_support=self.pursuit.n_nonzero_coefs,
            graded=isinstance(self.init, str) and self.init != "zero",
            sample=sample,
        )

    def fit(
        self,
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        after_round: Callable[[Posed, Round], bool] | None = None,
    ) -> Fit:
        """Draw features and choose among them."""
        posed = self.pose(X, y, weights)
        result = pursue(
            posed.problem,
            self.pursuit,
            init=self.init,
            callback=None if after_round is None else lambda state: after_round(posed, state),
        )
        expansion = posed.expansion(result.support, result.scaled_coef)
        problem, places = posed.problem, result.support
        if problem.n_rows < len(y):
            places = np.arange(len(places))
            refit, _, expansion = self.framing.refit(
                expansion, places, X, y.reshape(len(y), -1), weights, self.pursuit.alpha
            )
            problem = refit.problem
        return Fit(
            expansion=expansion,
            sampling=self.sampling,
            pool=posed.pool,
            map=posed.map,
            problem=problem,
            places=places,
            n_nonzero_coefs=self.pursuit.n_nonzero_coefs,
            alpha=self.pursuit.alpha,
            summary=FitSummary.of(result),
            units=posed.units,
        )


@dataclass(frozen=True)
class Template:
    """What all candidates of a search share: a recipe but for law, size and ridge weight."""

    #: Where pursuits in a search start.
    INIT: ClassVar[str] = "graded"

    seed: int
    n_components: int
    framing: Framing
    max_iter: int
    tol: float

    def sampling(self, law: Law) -> Sampling:
        """Features of a candidate for the law."""
        return Sampling(law, self.seed, self.n_components)

    def recipe(self, law: Law, n_nonzero_coefs: int, alpha: float) -> Recipe:
        """The recipe of a candidate."""
        pursuit = PursuitSettings(
            n_nonzero_coefs, alpha, "normalized", max_iter=self.max_iter, tol=self.tol
        )
        return Recipe(self.sampling(law), self.framing, pursuit, self.INIT)
