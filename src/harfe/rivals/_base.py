"""The base class of all rivals: checks, target units, folds, choice, progress, prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from harfe._core.folds import make_folds
from harfe._core.progress import SearchProgress
from harfe._core.sklearn_compat import CallbackSupportMixin, with_callbacks
from harfe._core.threads import one_blas_thread
from harfe._core.validation import check_inputs, check_targets
from harfe.features.transformer import seed_of
from harfe.features.units import varies
from harfe.rivals._search import Family, FamilySearch, Function
from harfe.selection.engine.search import Search
from harfe.solvers.problem import Targets


@dataclass(frozen=True)
class Constant:
    """The function used where nothing can be learned: the mean of the targets."""

    value: Any

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        """The same value for every row."""
        return np.full(len(X), self.value)


class Rival(CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """A regressor that chooses its settings by cross-validation; subclasses write `_families`.

    Every rival has the parameters `cv`, `verbose` and `random_state`. Fitting sets `best_params_`
    (and each of them as an attribute with a trailing underscore), `cv_results_`, `size_` and
    `function_`, the fitted function of standardised targets.
    """

    #: Whether targets may be complex.
    takes_complex = False
    #: Whether targets are scaled to mean 0 and variance 1, as most settings assume. If not, they
    #: keep their units unless their squares would leave the range of doubles.
    standardises_target = True

    function_: Function

    @abstractmethod
    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        """Check every argument and return the settings to choose from."""

    def _enough(self, errors: Sequence[float]) -> bool:
        """Whether to stop after families with these errors."""
        return False

    @abstractmethod
    def _count_size(self) -> int:
        """Size of the fitted model: the number of non-zero coefficients."""

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Any:
        """Choose settings that are "auto" by cross-validation, then fit all rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            NumPy array, or pandas or polars frame with column names.
        y : array of shape (n_samples,)

        Returns
        -------
        self
        """
        X = check_inputs(self, X, reset=True, min_rows=2)
        y = check_targets(y, len(X))
        if y.dtype.kind == "c" and not self.takes_complex:
            raise ValueError(
                f"y is complex, which {type(self).__name__} cannot fit; fit y.real and y.imag "
                "separately, or use HARFERegressor or SRFERegressor"
            )
        y = _one_target(self, y)
        seed = seed_of(self.random_state)
        with one_blas_thread():
            families = self._families(X, self._pose_target(y), seed)
            if np.any(y != y[0]) and varies(X, np.ones(len(X))):
                search = self._search(families, X, y, seed)
                self.best_params_, self.function_ = search.choose()
                self.cv_results_ = search.results()
            else:
                self.best_params_, self.cv_results_ = dict(families[0].settings[0]), None
                self.function_ = Constant(self._pose_target(y).mean())
        for name, value in self.best_params_.items():
            setattr(self, f"{name}_", value)
        constant = isinstance(self.function_, Constant)
        self.size_ = 1 if constant else self._count_size()
        return self

    def _search(
        self, families: list[Family], X: NDArray[np.float64], y: NDArray[Any], seed: int
    ) -> FamilySearch:
        target = self._pose_target(y)
        if sum(len(family.settings) for family in families) == 1:
            return FamilySearch(families, [], X, target)
        folds = make_folds("cv", self.cv, X, y, seed)
        plan = FamilySearch(families, folds, X, target, self._enough)
        search = Search(plan)
        name = type(self).__name__
        with SearchProgress(self, search, X, y, None, self.verbose, name) as monitor:
            search.run(monitor.after_task)
        return plan

    def _pose_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Centre and scale `y` for the method; store what `predict` needs to undo it."""
        posed = Targets.of(y[:, None], np.ones(len(y)), self.standardises_target)
        values = posed.values[:, 0]
        spread = 1.0
        if self.standardises_target:
            spread = float(np.sqrt(np.mean(np.abs(values) ** 2))) or 1.0
        self._centre, self._unit = posed.centre[0], posed.unit[0] * spread
        return values / spread

    def predict(self, X: Any) -> NDArray[Any]:
        """Evaluate the fitted function.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "function_")
        X = check_inputs(self, X, reset=False)
        values: NDArray[Any] = self.function_.predict(X) * self._unit + self._centre
        return values


def _one_target(estimator: Any, y: NDArray[Any]) -> NDArray[Any]:
    if y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y has {y.shape[1]} columns, but {type(estimator).__name__} fits one target; fit each "
            "column separately, e.g. with sklearn.multioutput.MultiOutputRegressor"
        )
    # column_or_1d warns about a column vector and rejects complex numbers.
    values: NDArray[Any] = y.ravel() if y.dtype.kind == "c" else column_or_1d(y, warn=True)
    return values
