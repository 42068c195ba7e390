"""Yen et al.: l1 on random features that are drawn in rounds, with zeros dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_count
from harfe.features.pool import FeaturePool
from harfe.rivals._settings import numbers
from harfe.rivals.random_features.features import (
    ExpansionFunction,
    FeatureFits,
    FeatureRival,
    Sparse,
)
from harfe.rivals.solvers.l1 import L1Fit, L1Solver, Patience, checked, filled, l1_path
from harfe.selection.recipe import Framing, Posed, Sampling
from harfe.solvers.problem import Problem

# The simplest first, down to where the noise of most data is fitted.
_ALPHAS = np.geomspace(0.3, 1e-4, 15)


@dataclass(frozen=True)
class Round:
    """A working set after its l1 problem was solved and the zeros were dropped.

    Attributes
    ----------
    kept : int array of shape (s,)
        Features in the pool of all rounds, ascending.
    posed : Posed
        The problem on the working set; `fit` indexes its features.
    fit : L1Fit
    """

    kept: NDArray[np.intp]
    posed: Posed
    fit: L1Fit


def rounds_of(
    framing: Framing,
    pool: FeaturePool,
    per_round: int,
    X: NDArray[np.float64],
    y: NDArray[Any],
    alpha: float,
) -> Iterator[Round]:
    """Coordinate descent in Hilbert space: draw features, solve the l1 problem, drop zeros, repeat.

    λ is `alpha` times the root-mean-square of y about its mean. Columns are stored for the working
    set only: the features of the round and those kept before it.
    """
    kept: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
    coef: NDArray[Any] | None = None
    weights = np.ones(len(y))
    for start in range(0, len(pool), per_round):
        working = np.concatenate([kept, np.arange(start, min(start + per_round, len(pool)))])
        posed = framing.pose(
            pool.take(working), X, y, weights, largest_support=min(len(y), len(pool))
        )
        known = None if coef is None else (np.arange(len(kept)), coef)
        solver = L1Solver(posed.problem, start=known)
        fit = checked(solver.at(alpha * float(np.sqrt(posed.problem.power[0]))))
        kept, coef = working[fit.support], fit.coef
        yield Round(kept, posed, fit)


@dataclass(frozen=True)
class YenFunction(ExpansionFunction):
    """An expansion, with the objective and size after every round."""

    objectives: NDArray[np.float64]
    sizes: NDArray[np.intp]
    penalty: float


@dataclass(frozen=True)
class _YenFits(FeatureFits):
    """Fits on one pool; a fold stops when its held-out error stops improving."""

    per_round: int

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        return filled(self._values(train, out), len(self.knobs))

    def _values(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> Iterator[NDArray[Any]]:
        patience = Patience(self.y[out])
        for knob in self.knobs:
            *_, last = self._rounds(self.X[train], self.y[train], knob["alpha"])
            features = last.posed.scaled_features(last.fit.support, self.X[out])
            predicted = last.posed.to_targets(features @ last.fit.coef)[:, 0]
            yield predicted
            if not patience(last.fit.penalty, predicted):
                return

    def fit(self, which: int) -> YenFunction:
        """The fit on all rows with one of the settings."""
        objectives, sizes = [], []
        for each in self._rounds(self.X, self.y, self.knobs[which]["alpha"]):
            objectives.append(each.fit.objective / (each.posed.problem.power[0] / 2))
            sizes.append(len(each.kept))
        expansion = each.posed.expansion(each.fit.support, each.fit.coef)
        penalty = each.fit.penalty * float(each.posed.problem.targets.unit[0])
        return YenFunction(expansion, np.array(objectives), np.array(sizes), penalty)

    def _rounds(self, X: NDArray[np.float64], y: NDArray[Any], alpha: float) -> Iterator[Round]:
        return rounds_of(self.rival._framing(), self.pool, self.per_round, X, y, alpha)


class YenRegressor(FeatureRival):
    """Sparse random features as coordinate descent in Hilbert space: new features every round.

    Minimises λ‖w‖₁ + (1/2m) Σ_k |y_k - ȳ - Σ_j w_j φ_j(x_k)|² over functions with coefficients w
    on all features of a law. Each round draws features, adds them to the working set, solves the l1
    problem on it from the last round's solution, and drops zeros. Only the working set is stored.
    Cited in the paper's introduction, but not in its tables.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of features drawn per round, R. "auto" is ten times the number of rows or inputs,
        whichever is larger, between 1000 and 10 000, divided by `n_rounds`.
    n_rounds : int, default=10
        Number of rounds.
    order, scale : "auto", a number or a list, default="auto"
        Inputs per feature, and scale of the weights. Lists and "auto" are candidates, chosen by
        cross-validation; "auto" is (2, 1, 3) and (0.5, 1, 2).
    alpha : "auto", a number or a list, default="auto"
        λ in units of the root-mean-square of y about its mean (about zero without an intercept) on
        the fitted rows. At 1 and above, w = 0. "auto" is 15 numbers from 0.3 to 1e-4.
    activation, weights, bias, fit_intercept, input_scale, column_scale, memory_budget
        As in :class:`~harfe.HARFERegressor`.
    cv : int, splitter or iterable, default=5
        Cross-validation folds that choose the settings. A fold tries candidates from the largest
        down and stops at a fifth of the λ that is best for its held-out rows; `cv_results_` repeats
        its last error from there.
    verbose : bool, default=False
        Print progress to standard error: candidates tried, best so far, time left.
    random_state : int, RandomState instance or None, default=None
        Seed of features and folds. With more rounds, the first features stay the same.

    Attributes
    ----------
    order_, scale_, alpha_
        The chosen settings; also in `best_params_`.
    penalty_ : float
        λ in units of y.
    objectives_ : array of shape (n_rounds,)
        The objective after every round, as a share of its value for w = 0; it never increases.
    sizes_ : int array of shape (n_rounds,)
        Number of features kept after every round.
    cv_results_ : dict or None
        Results of all candidates, as in scikit-learn; None if nothing was compared.
    expansion_ : Expansion
        The fitted expansion.
    size_ : int
        Number of non-zero coefficients.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    I. E. H. Yen, T.-W. Lin, S.-D. Lin, P. Ravikumar, I. S. Dhillon: Sparse random feature algorithm
    as coordinate descent in Hilbert space, NIPS 2014.

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import YenRegressor
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = YenRegressor(n_rounds=5, order=2, scale=1.0, alpha=0.05, random_state=0)
    >>> model = model.fit(data.X, data.y)
    >>> bool(model.objectives_[-1] < model.objectives_[0])
    True
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        n_rounds: int = 10,
        order: Any = "auto",
        scale: Any = "auto",
        alpha: Any = "auto",
        activation: str = "sin",
        weights: str = "normal",
        bias: str = "phase",
        fit_intercept: bool = True,
        input_scale: str = "standard",
        column_scale: str = "rms",
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_rounds = n_rounds
        self.order = order
        self.scale = scale
        self.alpha = alpha
        self.activation = activation
        self.weights = weights
        self.bias = bias
        self.fit_intercept = fit_intercept
        self.input_scale = input_scale
        self.column_scale = column_scale
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    function_: YenFunction

    @property
    def penalty_(self) -> float:
        """λ in units of y."""
        return self.function_.penalty * self._unit

    @property
    def objectives_(self) -> NDArray[np.float64]:
        """The objective after every round, as a share of its value for w = 0."""
        return self.function_.objectives

    @property
    def sizes_(self) -> NDArray[np.intp]:
        """Number of features kept after every round."""
        return self.function_.sizes

    def _largest_system(self, m: int, N: int) -> int:
        # At most as many in use as rows, plus the features of a round.
        return min(m, N) + self._per_round(N)

    def _per_round(self, N: int) -> int:
        """R; "auto" spreads the features that other methods draw at once over the rounds."""
        return max(N // self.n_rounds, 1) if self.n_components == "auto" else N

    def _knobs(self, m: int, N: int) -> list[dict[str, Any]]:
        check_count("n_rounds", self.n_rounds, 10)
        alphas = numbers("alpha", self.alpha, _ALPHAS.tolist())
        return [{"alpha": alpha} for alpha in sorted(alphas, reverse=True)]

    def _sampling(self, order: int, scale: float, N: int, seed: int) -> Sampling:
        return super()._sampling(order, scale, self.n_rounds * self._per_round(N), seed)

    def _path(self, problem: Problem, knobs: Sequence[dict[str, Any]]) -> list[Sparse]:
        """The fits if all features are drawn in one round."""
        spread = float(np.sqrt(problem.power[0]))
        fits = l1_path(problem, (knob["alpha"] * spread for knob in knobs))
        return [(fit.support, fit.coef) for fit in fits]

    def _fits(
        self,
        sampling: Sampling,
        X: NDArray[np.float64],
        y: NDArray[Any],
        knobs: list[dict[str, Any]],
    ) -> _YenFits:
        per_round = sampling.n_components // self.n_rounds
        return _YenFits(self, sampling.draw(), X, y, knobs, per_round)
