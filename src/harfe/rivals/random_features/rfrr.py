"""RFRR: ridge regression on all random features, and its ridgeless limit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.rivals._settings import numbers
from harfe.rivals.random_features.features import (
    ExpansionFunction,
    FeatureFits,
    FeatureRival,
    Sparse,
)
from harfe.rivals.solvers.ridge_path import RidgePath, cuts_in_two
from harfe.selection.recipe import Posed, Sampling
from harfe.solvers.problem import Problem
from harfe.solvers.ridge import minimum_norm

# The paper's λ span thirteen decades; zero is tried only if requested.
_ALPHAS = np.geomspace(1e-12, 10.0, 27)


def ridge_on_all(problem: Problem, alphas: Sequence[float]) -> list[Sparse]:
    """Ridge solutions on all features for every α, from one eigendecomposition.

        minimise over c   (1/M) Σ_k w_k |y_k - (A c)_k|² + α‖c‖²

    Solved on the smaller side: of the rows, c = A*v/M with (AA*/M + α)v = y, or of the features.
    α = 0 is the limit α → 0⁺, c = A⁺y: the interpolant of least norm if N > m, with singular values
    below 3e-8 of the largest cut off.
    """
    S = np.flatnonzero(problem.usable)
    if not len(S):
        return [(S, np.zeros((0, 1), problem.dtype)) for _ in alphas]
    by_rows = problem.offers_kernel and problem.n_rows <= len(S)
    positive = [alpha for alpha in alphas if alpha > 0]
    solutions: dict[float, NDArray[Any]] = {}
    if positive:
        matrix, right = problem.kernel(S) if by_rows else problem.normal(S)
        values, U = np.linalg.eigh(matrix)
        inner = U.conj().T @ right
        for alpha in positive:
            x = U @ (inner / (np.maximum(values, 0.0) + alpha)[:, None])
            solutions[alpha] = problem.pull_back(S, x) if by_rows else x
    if len(positive) < len(alphas):
        solutions[0.0] = minimum_norm(*problem.system(S), 0.0)
    return [(S, solutions[alpha]) for alpha in alphas]


class _RidgeFits(FeatureFits):
    """Fits on one pool for real targets: all folds share the eigendecomposition of all rows."""

    @cached_property
    def _alphas(self) -> NDArray[np.float64]:
        return np.array([knob["alpha"] for knob in self.knobs])

    @cached_property
    def _posed(self) -> Posed:
        return self.pose_all()

    @cached_property
    def _ridge(self) -> RidgePath:
        problem = self._posed.problem
        S, y = np.flatnonzero(problem.usable), problem.targets.values[:, 0]
        if len(y) <= len(S):
            return RidgePath.of_kernel(problem.kernel(S)[0], y, self.rival.fit_intercept)
        features = self._posed.scaled_features(S, self.X) / np.sqrt(len(y))
        return RidgePath.of_features(features, y, self.rival.fit_intercept)

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        if not cuts_in_two(train, out, len(self.y)):
            return super().held_out(train, out)
        values = self._ridge.held_out(out, self._alphas)
        targets = self._posed.to_targets(values.reshape(-1, 1))
        return targets.reshape(values.shape)

    def fit(self, which: int) -> ExpansionFunction:
        """The fit on all rows with one of the settings."""
        ((S, c),) = ridge_on_all(self._posed.problem, [self.knobs[which]["alpha"]])
        return ExpansionFunction(self._posed.expansion(S, c))


class RFRRRegressor(FeatureRival):
    """Random feature ridge regression: all N features are kept.

    Minimises (1/m) Σ_k |y_k - ȳ - (A c)_k|² + α‖c‖² over all c: the paper's equation for RFRR
    (introduction, R(c) = λ‖c‖²) without the bound on the size. α = 0 is ridgeless regression, the
    interpolant of least norm if there are more features than rows.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of features drawn, N. "auto" is ten times the number of rows or inputs, whichever is
        larger, between 1000 and 10 000.
    order, scale, alpha : "auto", a number or a list, default="auto"
        Inputs per feature, scale of the weights, ridge weight. Lists and "auto" are candidates,
        chosen by cross-validation; "auto" is (2, 1, 3), (0.5, 1, 2) and 27 numbers from 1e-12 to
        10. In the folds, α is scaled so that α times the number of rows is the same as in the final
        fit.
    activation, weights, bias, fit_intercept, input_scale, column_scale, memory_budget
        As in :class:`~harfe.HARFERegressor`.
    cv : int, splitter or iterable, default=5
        Cross-validation folds that choose the settings.
    verbose : bool, default=False
        Print progress to standard error: candidates tried, best so far, time left.
    random_state : int, RandomState instance or None, default=None
        Seed of features and folds.

    Attributes
    ----------
    order_, scale_, alpha_
        The chosen settings; also in `best_params_`.
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
    A. Rahimi, B. Recht: Weighted sums of random kitchen sinks, NIPS 2008. S. Mei, A. Montanari:
    The generalization error of random features regression, CPAM 2022 (the ridgeless limit).

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import RFRRRegressor
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = RFRRRegressor(order=2, scale=1.0, random_state=0).fit(data.X, data.y)
    >>> model.size_
    1000
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
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

    def _knobs(self, m: int, N: int) -> list[dict[str, Any]]:
        alphas = numbers("alpha", self.alpha, _ALPHAS[::-1].tolist(), zero=True)
        return [{"alpha": alpha} for alpha in alphas]

    def _path(self, problem: Problem, knobs: Sequence[dict[str, Any]]) -> list[Sparse]:
        return ridge_on_all(problem, [knob["alpha"] for knob in knobs])

    def _fits(
        self,
        sampling: Sampling,
        X: NDArray[np.float64],
        y: NDArray[Any],
        knobs: list[dict[str, Any]],
    ) -> FeatureFits:
        real = y.dtype.kind != "c" and self.activation != "exp"
        kind = _RidgeFits if real and all(knob["alpha"] > 0 for knob in knobs) else FeatureFits
        return kind(self, sampling.draw(), X, y, knobs)
