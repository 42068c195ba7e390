"""Methods of a fitted estimator that work on its terms: one-line calls to their parts."""

from __future__ import annotations

import warnings
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from harfe._core.arguments import check_count
from harfe._core.progress import ProgressLine
from harfe._core.validation import check_inputs, check_targets, check_weights
from harfe.explain.stability import Selection, Stability, assess
from harfe.features.transformer import seed_of
from harfe.model.expansion import Expansion
from harfe.model.formula import formula
from harfe.model.terms import feature_sets, strongest_terms, term_names, term_values
from harfe.selection.recipe import Fit, FitSummary, Sampling


class TermMethods:
    """Terms of a fitted estimator: names, values, pruning, formula, stability."""

    expansion_: Expansion
    _y_ndim: int

    @property
    def term_names_(self) -> list[str]:
        """Names of the terms such as ``age`` and ``age : bmi``, those with fewer inputs first."""
        check_is_fitted(self, "expansion_")
        return term_names(self.expansion_)

    def eval_terms(self, X: Any) -> NDArray[Any]:
        """Evaluate every term: the sum of the kept features on one set of inputs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_terms) or (n_samples, n_terms, n_targets)
            In the order of `term_names_`. Their sum plus `intercept_` is the prediction, on the
            scale of `link` if there is one. Terms are raw: they are not centred, and ``age : bmi``
            may contain part of the effect of ``age``.
        """
        check_is_fitted(self, "expansion_")
        values = term_values(self.expansion_, check_inputs(self, X, reset=False))
        return values[:, :, 0] if self._y_ndim == 1 else values

    def keep_terms(self, n_terms: int, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Keep the strongest terms and refit their coefficients.

        Strength is the variance of a raw term (see :meth:`eval_terms`) over the rows of X; several
        targets are measured in units of their standard deviation. The features of these terms do
        not change; their coefficients and the intercept minimise the ridge objective of the fit on
        y, with the same ridge weight (`alpha_` if it was selected).

        Parameters
        ----------
        n_terms : int
            Number of terms to keep; if the model has no more than this, all are kept and refitted.
        X : array of shape (n_samples, n_features)
            The rows of the fit, or new ones.
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        estimator of the same class
            A new one; this one does not change. Its attributes describe the new function, except
            those on how the features were found, which are copied: `history_`, `n_iter_`,
            `stop_reason_` and the results of a search. It has no out-of-fold residuals
            (`uncertainty_` is None): they would require choosing the terms without each fold.
        """
        check_is_fitted(self, "expansion_")
        check_count("n_terms", n_terms, 5)
        X = check_inputs(self, X, reset=False)
        y = self._same_targets(check_targets(y, len(X)))
        weights = check_weights(sample_weight, X)
        counted = weights > 0
        X, y, weights = X[counted], y[counted], weights[counted]
        link = self.expansion_.link
        if link is not None:
            y = link.forward(y)
        places = strongest_terms(self.expansion_, X, y, weights, int(n_terms))
        new: Any = copy(self)
        posed, c, expansion = new._refit(places, X, y, weights)
        if link is not None and link.residuals:
            # Fewer terms leave more noise: the residuals of these rows are all there is to say so.
            link = link.with_residuals(y - expansion.linear(X), weights)
        found = FitSummary(new.support_[places], new.history_, new.stop_reason_)
        fit = Fit(
            expansion=expansion,
            sampling=Sampling(new.law_, new.seed_, new.n_components_),
            pool=new._pool,
            map=posed.map,
            problem=posed.problem,
            places=np.arange(len(c)),
            n_nonzero_coefs=len(c),
            alpha=new._ridge()[0],
            summary=found,
        ).with_link(link)
        with warnings.catch_warnings():
            # The original fit has already warned if its pursuit ended early.
            warnings.simplefilter("ignore", ConvergenceWarning)
            new._adopt(fit, X, self._y_ndim, weights)
        new.uncertainty_ = None
        return new

    def formula(self, precision: int = 3, kind: str = "text", target: int = 0) -> Any:
        """Return the fitted function as a formula, the largest coefficients first.

        Parameters
        ----------
        precision : int, default=3
            Significant digits of text and LaTeX. Few digits are for reading only: if inputs are far
            from zero, a weight rounded to three digits shifts the phase. With 17, the text
            reproduces the prediction.
        kind : {"text", "latex", "sympy"}, default="text"
            Text such as ``y = 0.52 + 1.3*sin(0.31*age - 1.2*bmi + 0.5)``; LaTeX, without dollar
            signs; or a sympy expression with all digits, in the symbols returned by
            :func:`harfe.model.formula.input_symbols`.
        target : int, default=0
            Which target, if there are several.

        Returns
        -------
        str or sympy.Expr
        """
        check_is_fitted(self, "expansion_")
        return formula(self.expansion_, kind, precision, target)

    def stability(
        self,
        X: Any,
        y: Any,
        n_draws: int = 20,
        resample_rows: bool = False,
        sample_weight: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> Stability:
        """Refit with other random features and count how often each input and term is kept.

        Each draw fits a clone with another `random_state`, on all rows or on a bootstrap sample;
        with :class:`HARFERegressorCV` it repeats the whole selection. Frequencies are not p-values:
        a fit that keeps many features keeps each input now and then by chance, see ``pool_share``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        n_draws : int, default=20
            Number of fits.
        resample_rows : bool, default=False
            False measures what depends on the random features alone. True also measures what
            depends on the rows: each draw has as many rows, drawn with replacement.
        sample_weight : array of shape (n_samples,), default=None
        n_jobs : int or None, default=None
            Processes for the draws; the result does not depend on it.
        verbose : bool, default=False
            Report progress on standard error.
        random_state : int, RandomState instance or None, default=None
            None uses that of the estimator.

        Returns
        -------
        Stability
            With the tables `variables`, `terms` and `draws`.
        """
        check_is_fitted(self, "expansion_")
        check_count("n_draws", n_draws, 20)
        weights = check_weights(sample_weight, check_inputs(self, X, reset=False))
        estimator: Any = self
        changes: dict[str, Any] = {"residual_cv": None, "warm_start": False, "verbose": False}
        if effective_n_jobs(n_jobs) > 1:
            changes["n_jobs"] = None
        own = estimator.random_state
        return assess(
            partial(_select, _fresh(estimator, changes), X, y),
            self.expansion_.columns,
            weights,
            n_draws=int(n_draws),
            resample_rows=bool(resample_rows),
            seed=seed_of(own if random_state is None else random_state),
            n_jobs=n_jobs,
            after_draw=ProgressLine("draws").update if verbose else None,
        )

    def _same_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """Check that y has the fitted number and type of targets; shape (rows, targets)."""
        y = y.reshape(len(y), -1)
        n_targets = len(self.expansion_.coef)
        if y.shape[1] != n_targets:
            raise ValueError(
                f"y has {y.shape[1]} targets, but the model was fitted to {n_targets}; pass "
                "the same targets"
            )
        if self.expansion_.complex_output:
            return y.astype(complex)
        if y.dtype.kind == "c":
            raise ValueError(
                "y is complex, but the model was fitted to real targets; pass real targets"
            )
        return y


def _fresh(estimator: Any, changes: dict[str, Any]) -> Any:
    """A clone without callbacks, with those of the changes that are parameters of it."""
    settings = clone(estimator).get_params(deep=False)
    known = {name: value for name, value in changes.items() if name in settings}
    return type(estimator)(**{**settings, **known})


def _select(estimator: Any, X: Any, y: Any, seed: int, weights: NDArray[np.float64]) -> Selection:
    """Fit with another seed and return what is kept."""
    model = _fresh(estimator, {"random_state": seed})
    with warnings.catch_warnings():
        # A single draw of many that stops early does not matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weights)
    pool = model._pool
    drawn = pool.indices[pool.present]
    return Selection(
        tuple(feature_sets(model.expansion_.features)),
        np.bincount(drawn, minlength=pool.n_variables) / len(pool),
        _importances(model),
    )


def _importances(model: Any) -> NDArray[np.float64]:
    """Importances of the inputs; NaN if the order is too high for an ANOVA."""
    try:
        return np.asarray(model.feature_importances_)
    except ValueError:
        return np.full(model.n_features_in_, np.nan)
