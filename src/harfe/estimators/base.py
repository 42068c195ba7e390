"""What all fitted estimators of this package share: one-line calls to their parts."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from harfe._core.arguments import is_number
from harfe._core.threads import memory_bytes
from harfe._core.validation import check_inputs, check_targets, check_weights, input_names
from harfe.estimators._explaining import Explainable
from harfe.estimators._saving import Saving
from harfe.estimators._terms import TermMethods
from harfe.explain.inputs.summary import InputSummary
from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import Law, MixedLaw
from harfe.features.transformer import resolve_law
from harfe.model.expansion import Expansion
from harfe.model.link import Link, find_link
from harfe.model.uncertainty import Uncertainty
from harfe.selection.recipe import Fit, Framing, Posed
from harfe.solvers.pursuit import StopReason


class ExpansionRegressor(
    Saving, Explainable, TermMethods, MultiOutputMixin, RegressorMixin, BaseEstimator
):
    """Predictions, scores and attributes that all fitted estimators of this package share."""

    expansion_: Expansion
    uncertainty_: Uncertainty | None

    def predict(self, X: Any, return_std: bool = False, interval: float | None = None) -> Any:
        """Evaluate the fitted function; on request, also return its uncertainty.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return the standard deviation of a new observation, noise and uncertainty of the
            fitted function combined, learned from out-of-fold residuals.
        interval : float, default=None
            Also return conformal bounds that contain a new observation with this probability, e.g.
            0.9, from the same residuals.

        Returns
        -------
        prediction : array of shape (n_samples,) or (n_samples, n_targets)
        std : array like `prediction`
            Only with `return_std`: ``prediction, std = model.predict(X, return_std=True)``.
        lower, upper : arrays like `prediction`
            Only with `interval`: ``prediction, lower, upper = model.predict(X, interval=0.9)``.
        """
        check_is_fitted(self, "expansion_")
        if interval is not None and not (is_number(interval) and 0 < interval < 1):
            raise ValueError(
                f"interval={interval!r} must be a probability between 0 and 1, e.g. interval=0.9"
            )
        if return_std and interval is not None:
            raise ValueError(
                "return_std=True and interval are mutually exclusive; call predict once for each"
            )
        X = check_inputs(self, X, reset=False)
        prediction = self._shaped(self.expansion_.predict(X))
        if return_std:
            return prediction, self._shaped(self._uncertainty().std(X))
        if interval is not None:
            if self.expansion_.complex_output:
                raise ValueError(
                    "interval is for real targets; for complex ones pass return_std=True, which "
                    "returns the deviation of the modulus of the residual"
                )
            lower, upper = self._uncertainty().interval(X, float(interval))
            return prediction, self._shaped(lower), self._shaped(upper)
        return prediction

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[:, 0] if self._y_ndim == 1 else values

    def _find_link(self, kind: str, y: NDArray[Any], weights: NDArray[np.float64]) -> Link | None:
        """The link of this kind for these targets; None without one."""
        if kind == "none":
            return None
        if y.dtype.kind == "c" or y.size != len(y):
            found = "is complex" if y.dtype.kind == "c" else f"has {y.shape[1]} targets"
            raise ValueError(
                f"link={kind!r} is for one real target, but y {found}; pass link='none'"
            )
        return find_link(y, weights, kind)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.link in ("none", "auto")
        tags.target_tags.positive_only = self.link == "log"
        return tags

    def _uncertainty(self) -> Uncertainty:
        if self.uncertainty_ is None:
            raise ValueError(
                "This model has no out-of-fold residuals, from which the uncertainty is learned; "
                "fit with residual_cv=5, or use HARFERegressorCV (models from keep_terms have none)"
            )
        return self.uncertainty_

    def _adopt(
        self,
        fit: Fit,
        X: NDArray[np.float64],
        y_ndim: int,
        weights: NDArray[np.float64],
    ) -> None:
        """Store the result of a fit under the names that users expect."""
        self.expansion_ = fit.expansion
        self.law_, self.seed_ = fit.sampling.law, fit.sampling.seed
        self._drawn = fit.pool
        if fit.units is not None:
            self._pool_units = fit.units
        self._y_ndim = y_ndim
        self.support_ = fit.summary.support
        self.n_components_ = fit.sampling.n_components
        self.n_nonzero_coefs_ = fit.n_nonzero_coefs
        self.n_iter_ = fit.summary.n_iter
        self.history_ = dict(fit.summary.history)
        self._stop_reason = fit.summary.reason.name
        # Cached for the previous fit.
        self.__dict__.pop("feature_importances_", None)
        self.inputs_ = InputSummary.of(fit.expansion, X, weights)
        if fit.summary.reason is StopReason.MAX_ITER:
            warnings.warn(fit.summary.reason.value, ConvergenceWarning, stacklevel=3)

    def _law(self, given: Law | None, order: Any, scale: Any) -> Law:
        """The law that was given, or the one of these orders and scales."""
        return resolve_law(
            given,
            self.n_features_in_,
            order=order,
            scale=scale,
            weights=self.weights,
            bias=self.bias,
            activation=self.activation,
            interaction_cst=self.interaction_cst,
            variable_weights=self.variable_weights,
            names=getattr(self, "feature_names_in_", None),
        )

    def _refit(
        self,
        places: NDArray[np.intp],
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
    ) -> tuple[Posed, NDArray[Any], Expansion]:
        """Ridge solution on some of the kept features, framed and penalised as in the fit."""
        alpha, column_scale = self._ridge()
        framing = replace(self._framing(), column_scale=column_scale)
        return framing.refit(self.expansion_, places, X, y, weights, alpha)

    @abstractmethod
    def _ridge(self) -> tuple[float, str]:
        """Ridge weight of the fit, and the scale of the columns that it is for."""

    def _framing(self) -> Framing:
        """How rows become a problem."""
        return Framing(
            columns=input_names(self),
            memory_budget=memory_bytes(self.memory_budget),
            fit_intercept=self.fit_intercept,
            input_scale=self.input_scale,
            input_clip=self.input_clip,
            column_scale=self.column_scale,
            # A given law has scales of its own for each input, as if it were learned.
            keep_tails=isinstance(self.law, FeatureLaw | MixedLaw),
            # A search that is free to choose one replaces this.
            input_warp="none" if self.input_warp == "auto" else self.input_warp,
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the prediction; for complex y, 1 - Σ w|y - f|² / Σ w|y - ȳ|².

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        if np.asarray(y).dtype.kind != "c":
            return super().score(X, y, sample_weight)
        return complex_r2(y, self.predict(X), sample_weight)

    @property
    def coef_(self) -> NDArray[Any]:
        """Coefficients of the raw features; zero outside `support_`."""
        coef = self.expansion_.coef
        full = np.zeros((len(coef), self.n_components_), coef.dtype)
        full[:, self.support_] = coef
        return full[0] if self._y_ndim == 1 else full

    @property
    def intercept_(self) -> Any:
        """Intercept of the fitted function."""
        intercept = self.expansion_.intercept
        return intercept[0] if self._y_ndim == 1 else intercept

    @property
    def weights_(self) -> sp.csc_array:
        """The paper's W for all N features, in the user's units."""
        return self._pool.weights()

    @property
    def bias_(self) -> NDArray[np.float64]:
        """The paper's b for all N features, in the user's units."""
        return self._pool.phases


def complex_r2(y: Any, prediction: NDArray[Any], sample_weight: Any = None) -> float:
    """1 - Σ w|y - f|² / Σ w|y - ȳ|², averaged over the targets."""
    y = check_targets(y, len(prediction))
    w = check_weights(sample_weight, prediction.reshape(len(y), -1))
    error = w @ np.abs((y - prediction).reshape(len(y), -1)) ** 2
    y = y.reshape(len(y), -1)
    spread = w @ np.abs(y - w @ y / w.sum()) ** 2
    return float(np.mean(1 - error / spread))
