"""SRFE: the sparse random feature expansion, by an l1 penalty instead of hard thresholding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_choice, check_count
from harfe.rivals._settings import numbers
from harfe.rivals.random_features.features import (
    ExpansionFunction,
    FeatureFits,
    FeatureRival,
    Sparse,
)
from harfe.rivals.solvers.l1 import L1Fit, Patience, denoising_path, filled, l1_path
from harfe.selection.recipe import Sampling
from harfe.solvers.problem import Problem
from harfe.solvers.ridge import RestrictedRidge

FORMS = ("denoising", "lasso")

# The simplest first, starting from c = 0.
_LEVELS = np.geomspace(1.0, 1e-3, 37)
_ALPHAS = np.geomspace(1.0, 1e-5, 31)[1:]

# Ridge weight of the refit: least squares except in directions that the rows do not determine.
_REFIT = 1e-10


def keep_largest(problem: Problem, fit: L1Fit, count: int | None) -> Sparse:
    """The `count` largest coefficients, refitted by least squares; all as they are if None."""
    if count is None:
        return fit.support, fit.coef
    largest = np.argsort(-np.abs(fit.coef[:, 0]), kind="stable")[:count]
    S = np.sort(fit.support[largest])
    return S, RestrictedRidge(problem, _REFIT).solve(S)


def path_of(
    problem: Problem,
    form: str,
    levels: Sequence[float],
    go_on: Callable[[L1Fit], bool] | None = None,
) -> Iterator[L1Fit]:
    """Fits for several levels, in units of the target's root-mean-square; fastest if descending."""
    spread = float(np.sqrt(problem.power[0]))
    path = denoising_path if form == "denoising" else l1_path
    return path(problem, (level * spread for level in levels), go_on=go_on)


@dataclass(frozen=True)
class L1Function(ExpansionFunction):
    """The expansion from an l1 problem, with its λ and residual."""

    penalty: float
    residual: float
    reached: bool


class _L1Fits(FeatureFits):
    """Fits on one pool; a fold ends its path when its held-out error stops improving."""

    rival: SRFERegressor

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        posed = self._pose(self.X[train], self.y[train])

        def predict(fit: L1Fit) -> NDArray[Any]:
            S, c = keep_largest(posed.problem, fit, self.rival.n_nonzero_coefs)
            return posed.to_targets(posed.scaled_features(S, self.X[out]) @ c)[:, 0]

        patience = Patience(self.y[out])
        fits = path_of(
            posed.problem,
            self.rival.form,
            self.rival._levels(self.knobs),
            lambda fit: patience(fit.penalty, predict(fit)),
        )
        return filled(map(predict, fits), len(self.knobs))

    def fit(self, which: int) -> L1Function:
        """The fit on all rows with one of the settings."""
        posed = self._pose(self.X, self.y)
        problem, unit = posed.problem, float(posed.problem.targets.unit[0])
        (fit,) = path_of(
            problem, self.rival.form, self.rival._levels(self.knobs[which : which + 1])
        )
        S, c = keep_largest(problem, fit, self.rival.n_nonzero_coefs)
        residual = unit * float(np.sqrt(problem.rss(S, c)[0]))
        return L1Function(posed.expansion(S, c), unit * fit.penalty, residual, fit.reached)


class SRFERegressor(FeatureRival):
    """Sparse random feature expansion: the smallest ‖c‖₁ that fits the data to a noise level.

    Minimises ‖c‖₁ over all c with ‖A c - (y - ȳ)‖₂ <= η√m, basis pursuit denoising, as in the
    paper's Tables 1, 2 and 4 and Figure 3; or, with form="lasso",
    (1/2m) Σ_k |y_k - ȳ - (A c)_k|² + λ‖c‖₁, which has the same solutions, indexed by λ instead
    of η. Both are solved exactly: a homotopy on a working set, checked by the optimality conditions
    over all N features.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of features drawn, N. "auto" is ten times the number of rows or inputs, whichever is
        larger, between 1000 and 10 000.
    order, scale : "auto", a number or a list, default="auto"
        Inputs per feature, and scale of the weights. Lists and "auto" are candidates, chosen by
        cross-validation; "auto" is (2, 1, 3) and (0.5, 1, 2).
    form : {"denoising", "lasso"}, default="denoising"
        Whether `noise_level` or `alpha` controls the sparsity; the other is not used.
    noise_level : "auto", a number or a list, default="auto"
        η as a share of the root-mean-square of y about its mean (about zero without an intercept)
        on the fitted rows: 0.1 leaves a residual of a tenth. "auto" is 37 numbers from 1 to 0.001.
        If no c fits that closely, the closest is used.
    alpha : "auto", a number or a list, default="auto"
        λ in the same units. At 1 and above, c = 0. "auto" is 30 numbers from 0.68 to 1e-5. Values
        below a millionth of the smallest λ with c = 0 are raised to that limit: doubles cannot
        resolve them.
    n_nonzero_coefs : int, default=None
        Keep only this many of the largest coefficients and refit them by least squares. None keeps
        all non-zero coefficients unchanged.
    activation, weights, bias, fit_intercept, input_scale, column_scale, memory_budget
        As in :class:`~harfe.HARFERegressor`.
    cv : int, splitter or iterable, default=5
        Cross-validation folds that choose the settings. A fold tries candidates from the largest
        down and stops at a fifth of the λ that is best for its held-out rows; `cv_results_` repeats
        its last error from there.
    verbose : bool, default=False
        Print progress to standard error: candidates tried, best so far, time left.
    random_state : int, RandomState instance or None, default=None
        Seed of features and folds.

    Attributes
    ----------
    order_, scale_, noise_level_ or alpha_
        The chosen settings; also in `best_params_`.
    penalty_ : float
        λ of the fit on all rows, in units of y.
    residual_ : float
        Root-mean-square residual over all rows, in units of y.
    reached_ : bool
        Whether the residual, or λ for the lasso, is as small as requested.
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
    A. Hashemi, H. Schaeffer, R. Shi, U. Topcu, G. Tran, R. Ward: Generalization bounds for sparse
    random feature expansions, 2021 (arXiv:2103.03191).

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import SRFERegressor
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = SRFERegressor(order=2, scale=1.0, noise_level=0.2, random_state=0)
    >>> model = model.fit(data.X, data.y)
    >>> print(f"{model.residual_ / data.y.std():.4f}")
    0.2000
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        order: Any = "auto",
        scale: Any = "auto",
        form: str = "denoising",
        noise_level: Any = "auto",
        alpha: Any = "auto",
        n_nonzero_coefs: int | None = None,
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
        self.form = form
        self.noise_level = noise_level
        self.alpha = alpha
        self.n_nonzero_coefs = n_nonzero_coefs
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

    function_: L1Function

    @property
    def _setting(self) -> str:
        return "noise_level" if self.form == "denoising" else "alpha"

    @property
    def penalty_(self) -> float:
        """λ of the fit on all rows, in units of y."""
        return self.function_.penalty * self._unit

    @property
    def residual_(self) -> float:
        """Root-mean-square residual over all rows, in units of y."""
        return self.function_.residual * self._unit

    @property
    def reached_(self) -> bool:
        """Whether the residual, or λ for the lasso, is as small as requested."""
        return self.function_.reached

    def _largest_system(self, m: int, N: int) -> int:
        # The working set: at most as many in use as rows, and as many again may enter.
        return min(2 * m + 200, N)

    def _knobs(self, m: int, N: int) -> list[dict[str, Any]]:
        check_choice("form", self.form, FORMS)
        levels = numbers("noise_level", self.noise_level, _LEVELS.tolist())
        alphas = numbers("alpha", self.alpha, _ALPHAS.tolist())
        if self.n_nonzero_coefs is not None:
            check_count("n_nonzero_coefs", self.n_nonzero_coefs, 100, "None or ")
        candidates = levels if self.form == "denoising" else alphas
        return [{self._setting: value} for value in sorted(candidates, reverse=True)]

    def _levels(self, knobs: Sequence[dict[str, Any]]) -> list[float]:
        return [knob[self._setting] for knob in knobs]

    def _path(self, problem: Problem, knobs: Sequence[dict[str, Any]]) -> list[Sparse]:
        fits = path_of(problem, self.form, self._levels(knobs))
        return [keep_largest(problem, fit, self.n_nonzero_coefs) for fit in fits]

    def _fits(
        self,
        sampling: Sampling,
        X: NDArray[np.float64],
        y: NDArray[Any],
        knobs: list[dict[str, Any]],
    ) -> _L1Fits:
        return _L1Fits(self, sampling.draw(), X, y, knobs)
