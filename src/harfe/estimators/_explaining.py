"""Methods of a fitted estimator that explain it: one-line calls to the parts that know how."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from harfe._core.threads import one_blas_thread
from harfe._core.validation import check_inputs, check_weights
from harfe.explain.inputs.distribution import InputLaw
from harfe.explain.inputs.summary import KeptInputs
from harfe.explain.local import LocalExplanation, explain_local
from harfe.explain.overall import Explanation, check_law, explain
from harfe.explain.partial import PartialDependence, partial_dependence
from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import Law, MixedLaw
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion


class Explainable:
    """What a fitted function says about its variables; `inputs_` is what the fit kept of X."""

    expansion_: Expansion
    inputs_: KeptInputs
    law_: Law
    _pool: FeaturePool
    _y_ndim: int

    def explain(
        self,
        X: Any = None,
        law: str | InputLaw = "independent",
        sample_weight: Any = None,
        target: int = 0,
    ) -> Explanation:
        """Tell which variables and which interactions matter.

        Sobol indices, Shapley effects and interaction strengths are exact for sin, cos and exp
        features, and quadratures for others. They are those of independent inputs; where inputs
        depend on each other so much that this misleads, a UserWarning says so.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), default=None
            Explain over these rows; None for what the fit kept of its own.
        law : {"independent", "uniform", "normal"} or InputLaw, default="independent"
            Law of the inputs: the marginals of the rows, uniform on their ranges, normal, or one's
            own.
        sample_weight : array of shape (n_samples,), default=None
            How often each row of X counts.
        target : int, default=0
            Which of several targets.

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
        check_law(law)
        rows, weights = self._rows(X, sample_weight)
        with one_blas_thread():
            explanation = explain(
                self.expansion_,
                self.inputs_,
                law=law,
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
        self, X: Any, law: str | InputLaw = "independent", target: int = 0
    ) -> LocalExplanation:
        """Tell what each variable, component and term adds to the prediction of each row.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows to explain.
        law : {"independent", "uniform", "normal"} or InputLaw, default="independent"
            Law of the inputs that components are centred under.
        target : int, default=0
            Which of several targets.

        Returns
        -------
        LocalExplanation
            Also flags rows that lie outside the data seen in training.
        """
        check_is_fitted(self, "inputs_")
        X = check_inputs(self, X, reset=False)
        with one_blas_thread():
            return explain_local(self.expansion_, self.inputs_, X, law=law, target=target)

    def partial_dependence(
        self,
        features: int | str | Sequence[int | str],
        X: Any = None,
        grid: Any = None,
        target: int = 0,
        sample_weight: Any = None,
    ) -> PartialDependence:
        """Mean prediction over rows, with some inputs set to the values of a grid.

        The same as scikit-learn's brute force, at a cost of grid × features for sin, cos and exp
        features, whatever the number of rows; other activations average over X.

        Parameters
        ----------
        features : int, str or sequence of them
            The inputs that vary, by number or by name.
        X : array of shape (n_samples, n_features), default=None
            Average over these rows; None for what the fit kept of its own.
        grid : int, array or list of arrays, default=None
            How many values of each input, or the values; None for 50.
        target : int, default=0
            Which of several targets.
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
                self.expansion_, self.inputs_, features, grid, rows, weights, target
            )

    def gradient(self, X: Any) -> NDArray[Any]:
        """Partial derivatives of the prediction.

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
        """Rows that count and their weights; None where X is not given."""
        if X is None:
            if sample_weight is not None:
                raise ValueError(
                    "sample_weight counts the rows of X, but X is None; pass both, or neither for "
                    "the rows of the fit and their weights"
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
