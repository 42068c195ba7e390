"""Methods that explain a fitted estimator: thin calls to `harfe.explain`."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from harfe._core.threads import one_blas_thread
from harfe._core.validation import check_inputs, check_weights
from harfe.explain.inputs.distribution import InputDistribution
from harfe.explain.inputs.summary import InputSummary
from harfe.explain.local import LocalExplanation, explain_local
from harfe.explain.overall import Explanation, check_distribution, explain, total_indices
from harfe.explain.partial import PartialDependence, partial_dependence
from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import Law, MixedLaw
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion


class Explainable:
    """Explanations of a fitted function; `inputs_` is the summary of X that the fit keeps."""

    expansion_: Expansion
    inputs_: InputSummary
    law_: Law
    _y_ndim: int

    @property
    @abstractmethod
    def _pool(self) -> FeaturePool:
        """All features that were drawn."""

    @cached_property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Total Sobol index of each input: the share of the prediction's variance that involves it.

        The `total` of :meth:`explain` with its defaults, computed when first used. Interactions
        count for each of their inputs, so the sum may exceed 1. For several targets, the mean over
        those whose prediction is not constant; all zero if every one is.
        """
        check_is_fitted(self, "inputs_")
        with one_blas_thread():
            return total_indices(self.expansion_, self.inputs_)

    def explain(
        self,
        X: Any = None,
        inputs: str | InputDistribution = "independent",
        sample_weight: Any = None,
        target: int = 0,
    ) -> Explanation:
        """Measure which inputs and which interactions matter.

        Sobol indices, Shapley effects and interaction strengths are exact for sin, cos and exp
        features and computed by quadrature for others. They assume independent inputs; a
        UserWarning is issued if dependence between the inputs makes them misleading.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), default=None
            Explain over these rows; None for the summary of the training rows.
        inputs : {"independent", "uniform", "normal"} or InputDistribution, default="independent"
            Distribution of the inputs, always independent: the marginals of the rows, uniform on
            their ranges, normal, or a given one, of the inputs as the function clips and warps
            them.
        sample_weight : array of shape (n_samples,), default=None
            How often each row of X counts.
        target : int, default=0
            Which target, if there are several.

        Returns
        -------
        Explanation
            With the parts `variables`, `terms`, `interactions`, `sobol` and `components`.

        Examples
        --------
        >>> from harfe import HARFERegressor
        >>> from harfe.datasets import make_function
        >>> data = make_function("friedman1", 300, random_state=0)
        >>> model = HARFERegressor(random_state=0).fit(data.X, data.y)
        >>> explanation = model.explain()
        >>> explanation.interactions["variables"][0]
        ('x0', 'x1')
        """
        check_is_fitted(self, "inputs_")
        check_distribution(inputs)
        rows, weights = self._rows(X, sample_weight)
        with one_blas_thread():
            explanation = explain(
                self.expansion_,
                self.inputs_,
                inputs=inputs,
                X=rows,
                weights=weights,
                pool=self._pool,
                feature_law=self._learned_law(),
                target=target,
            )
        if explanation.dependence:
            warnings.warn("; ".join(explanation.dependence), UserWarning, stacklevel=2)
        return explanation

    def explain_local(
        self, X: Any, inputs: str | InputDistribution = "independent", target: int = 0
    ) -> LocalExplanation:
        """Split the prediction of each row into what inputs, components and terms add to it.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows to explain.
        inputs : {"independent", "uniform", "normal"} or InputDistribution, default="independent"
            Distribution of the inputs under which components are centred.
        target : int, default=0
            Which target, if there are several.

        Returns
        -------
        LocalExplanation
            Also flags rows outside the range of the training data.
        """
        check_is_fitted(self, "inputs_")
        X = check_inputs(self, X, reset=False)
        with one_blas_thread():
            return explain_local(self.expansion_, self.inputs_, X, inputs=inputs, target=target)

    def partial_dependence(
        self,
        inputs: int | str | Sequence[int | str],
        X: Any = None,
        grid: Any = None,
        target: int = 0,
        sample_weight: Any = None,
    ) -> PartialDependence:
        """Average the prediction over rows, with some inputs set to the values of a grid.

        The same as scikit-learn's brute force, but for sin, cos and exp features the cost is
        grid × features, whatever the number of rows; other activations average over X.

        Parameters
        ----------
        inputs : int, str or sequence of them
            The inputs that vary, by number or by name.
        X : array of shape (n_samples, n_features), default=None
            Average over these rows; None for the summary of the training rows.
        grid : int, array or list of arrays, default=None
            Number of values per input, or the values; None for 50.
        target : int, default=0
            Which target, if there are several.
        sample_weight : array of shape (n_samples,), default=None
            How often each row of X counts.

        Returns
        -------
        PartialDependence
        """
        check_is_fitted(self, "inputs_")
        rows, weights = self._rows(X, sample_weight)
        with one_blas_thread():
            return partial_dependence(
                self.expansion_, self.inputs_, inputs, grid, rows, weights, target
            )

    def gradient(self, X: Any) -> NDArray[Any]:
        """Return the partial derivatives of the prediction.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features), or (n_samples, n_features, n_targets)
            0 where an input is clipped.
        """
        check_is_fitted(self, "inputs_")
        X = check_inputs(self, X, reset=False)
        gradient = self.expansion_.gradient(X)
        return gradient[0] if self._y_ndim == 1 else np.moveaxis(gradient, 0, -1)

    def _rows(
        self, X: Any, sample_weight: Any
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Rows with positive weight and their weights; None if X is not given."""
        if X is None:
            if sample_weight is not None:
                raise ValueError(
                    "sample_weight weights the rows of X, but X is None; pass both, or neither for "
                    "the training rows and their weights"
                )
            return None, None
        X = check_inputs(self, X, reset=False)
        if sample_weight is None:
            return X, np.ones(len(X))
        weights = check_weights(sample_weight, X)
        return X[weights > 0], weights[weights > 0]

    def _learned_law(self) -> Law | None:
        """The law of the features, if it was learned or given."""
        given = isinstance(getattr(self, "law", None), FeatureLaw | MixedLaw)
        learned = getattr(self, "learned_law_", None) is not None
        return self.law_ if given or learned else None
