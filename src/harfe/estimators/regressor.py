"""HARFERegressor: validation, composition, attributes; no algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import LINKS, check_choice, check_clip, check_count, is_number, is_whole
from harfe._core.compiling import announce_compiling
from harfe._core.folds import make_folds
from harfe._core.progress import RoundsProgress
from harfe._core.sklearn_compat import CallbackSupportMixin, FitProgress, with_callbacks
from harfe._core.threads import one_blas_thread
from harfe._core.validation import check_inputs, check_targets, row_weights
from harfe.estimators.base import ExpansionRegressor
from harfe.features.mixed_law import Law
from harfe.features.transformer import seed_of
from harfe.features.units import INPUT_SCALES, INPUT_WARPS
from harfe.model.expansion import Expansion
from harfe.model.uncertainty import Posterior, Uncertainty
from harfe.selection.recipe import Posed, Recipe, Sampling
from harfe.solvers.homes import COLUMN_SCALES
from harfe.solvers.pursuit import INITS, Round
from harfe.solvers.settings import PursuitSettings

#: Of more than `MANY_ROWS` rows, features are chosen on `SELECTION_ROWS` by default.
MANY_ROWS, SELECTION_ROWS = 20_000, 10_000


class HARFERegressor(CallbackSupportMixin, ExpansionRegressor):
    """Hard-ridge random feature expansion: a regression model of s sparse random features.

    Minimises (1/M) Σ_k w_k |y_k - ȳ - (A c)_k|² + α‖c‖² over c with at most s non-zeros. A holds N
    random features φ(<x, ω_j> + b_j) of q inputs each, centred and scaled to unit root-mean-square;
    w are the sample weights and M is their sum.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of features drawn, N. "auto" is ten times the sum of the sample weights or the number
        of inputs, whichever is larger, but at least 1000 and at most 10 000.
    n_nonzero_coefs : int, float or "auto", default="auto"
        Number of features kept, s (the size of the model): an int, or a fraction of N. "auto" is a
        tenth of the sum of the sample weights, but at least 10 and at most a tenth of N.
    order : "auto", int or sequence of int, default="auto"
        Number of inputs per feature, q; a sequence gives a mixed pool with equal parts. "auto" is
        2, or 1 if there is only one input.
    alpha : float, default=1e-3
        Ridge weight of the scaled problem; the "mλ" of the paper's table of real data.
    activation : {"sin", "cos", "tanh", "sigmoid", "relu", "exp"}, default="sin"
        The function φ. "exp" is the complex exp(i·); for real y, the real part is predicted.
    weights : {"normal", "uniform"}, default="normal"
        Law of the weights: N(0, scale²) or U[-scale, scale].
    scale : float or array of shape (n_features,), default=1.0
        Scale of the weights, for inputs in the units of `input_scale`.
    bias : {"phase", "uniform", "none"}, default="phase"
        Draw b_j from U[0, 2π] or from U[-1, 1], or use no bias.
    interaction_cst : {"pairwise", "no_interactions"} or sequence of sets, default=None
        Which inputs may appear together in a feature; sets hold column indices or names.
    variable_weights : array of shape (n_features,), default=None
        How often each input is drawn, relative to the others; None draws all equally often.
    law : FeatureLaw or MixedLaw, default=None
        Draw features from this law, e.g. a learned one (:func:`learn_law`), on inputs in the units
        of `input_scale`; order, activation, weights, scale, bias, interaction_cst and
        variable_weights are then ignored.
    init : "zero", "graded", "swapped" or array, default="zero"
        Starting point of the pursuit; an array of shape (n_components,) or
        (n_targets, n_components) holds coefficients of the raw features.
        "graded" prunes the ridge solution on all features, also runs the zero start (with
        `step_size` and with the paper's 0.1) and returns the best: the objective is never higher
        than from zero, often less than half, at several times the cost. "swapped" then exchanges
        single features as long as the objective falls: often to a third, but with noise in y it may
        predict worse.
    step_size : float or "normalized", default="normalized"
        Size μ of the gradient step; "normalized" is 1/(1+alpha). The paper uses 0.1.
    max_iter : int, default=100
        Maximum number of rounds.
    tol : float, default=1e-6
        Stop once the norm of the residual is at most this fraction of the norm of the centred y.
    noise_level : float, default=None
        Also stop once the root-mean-square residual is at most this, in units of y or on the scale
        of `link`.
    fit_intercept : bool, default=True
        Centre features and y; the paper does not.
    input_scale : {"standard", "robust", "none"}, default="standard"
        Units in which the weights are drawn: mean and standard deviation, median and interquartile
        range, or the user's units. Fitted weights, names and the formula are always in the user's
        units.
    input_clip : float or None, default=5.0
        Clip inputs that have values further than this many robust spreads (interquartile range
        over 1.349) from their median; None clips nothing, as in the paper. With a given `law`,
        which has a scale for each input, values within three times the distance at which the
        outermost hundredth of the rows begins are not clipped, so that the tail of a skewed input
        stays. The bounds are part of the fitted function and appear in names such as
        ``sin(0.31*clip(age, 18, 95))``.
    input_warp : {"none", "log", "rank"}, default="none"
        Monotone functions that even out skewed inputs before sines of them are taken. "log" takes
        the logarithm of positive inputs that range over more than a factor of 10, and asinh of
        other skewed inputs, wherever that makes them less skewed; "rank" replaces every input by
        its rank among the rows, from 0 to 1, by a piecewise linear function. Logarithms end at the
        smallest value seen, ranks at both ends of the range. All are part of the fitted function
        and appear in names such as ``sin(0.31*log(age))``; `weights_` are those of the warped
        inputs.
    column_scale : {"rms", "none"}, default="rms"
        Scale features to unit root-mean-square, or do not scale them; "none" with ``alpha=λ`` and
        ``step_size=m*μ`` is the paper's literal form.
    link : {"none", "log", "yeo-johnson"}, default="none"
        Scale on which the model is fitted, for one real target that is positive ("log") or heavy in
        its tails ("yeo-johnson", whose power is fitted to y). Predictions are in the units of y and
        cannot leave the range that the link implies; with out-of-fold residuals they are means over
        the noise (smearing), otherwise about medians. Intervals may be asymmetric. Explanations,
        terms and components stay sums, on the scale of the link.
    memory_budget : float or "auto", default="auto"
        Bytes the fit may use; if storing the features would take more, they are recomputed in every
        pass. "auto" is half of the free memory.
    selection_rows : int, "auto" or None, default="auto"
        Choose the features on this many rows, drawn at random; their coefficients are always fitted
        to all rows. "auto" is 10 000 if there are more than 20 000 rows: as accurate, and several
        times faster. None chooses on all rows, as does "auto" if there are fewer.
    residual_cv : int, splitter, iterable or None, default=None
        Folds for the held-out residuals that ``predict(X, return_std=True)`` and ``interval=0.9``
        need, at the cost of one more fit per fold. None computes no residuals.
    verbose : bool, default=False
        Report the progress of fits that take more than two seconds on standard error.
    random_state : int, RandomState instance or None, default=None
        Equal seeds give equal models for any number of threads.

    Attributes
    ----------
    coef_ : array of shape (n_components,) or (n_targets, n_components)
        Coefficients of the raw features; zero outside `support_`.
    intercept_ : float or array of shape (n_targets,)
    support_ : int array of shape (n_nonzero,)
        Indices of the kept features, sorted.
    weights_ : scipy.sparse.csc_array of shape (n_features, n_components)
        The paper's W, in the user's units.
    bias_ : array of shape (n_components,)
        The paper's b, in the user's units.
    expansion_ : Expansion
        The fitted function as a value: only the kept features.
    feature_importances_ : array of shape (n_features,)
        Total Sobol index of each input, the share of the prediction's variance that involves it:
        the ``total`` of :meth:`explain`, computed when first used. Interactions count for each of
        their inputs, so the sum may exceed 1; several targets are averaged. For
        :class:`~sklearn.feature_selection.SelectFromModel` pass
        ``importance_getter="feature_importances_"``: by default scikit-learn uses `coef_`, which
        here has an entry per random feature.
    n_components_, n_nonzero_coefs_ : int
        N and s after "auto" and fractions are resolved.
    n_iter_ : int
        Number of rounds of the pursuit.
    history_ : dict of arrays, one entry per round
        ``"objective"`` and ``"relative_residual"`` on the rows that the features were chosen on.
        The returned round has the lowest objective.
    stop_reason_ : StopReason
        Why the pursuit stopped; its value is advice.
    law_ : FeatureLaw or MixedLaw
        Law of the features, on inputs in the units of `input_scale`.
    seed_ : int
        Seed derived from `random_state`: ``law_.draw(n_components_, default_rng(seed_))`` draws the
        same pool, in the units of `input_scale`.
    inputs_ : InputSummary
        Summary of the training rows for explanations, never the rows themselves: ranges, quantiles,
        quadratures of the marginals, means of the waves in the fitted function.
    uncertainty_ : Uncertainty or None
        Posterior and out-of-fold residuals; None without `residual_cv`.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    See Also
    --------
    SparseRandomFeatures : The features alone, as a transformer.
    hard_ridge_pursuit : The algorithm alone.

    References
    ----------
    E. Saha, H. Schaeffer, G. Tran: HARFE: Hard-Ridge Random Feature Expansion, arXiv:2202.02877.

    Examples
    --------
    >>> from harfe import HARFERegressor
    >>> from harfe.datasets import make_function
    >>> data = make_function("friedman1", 300, random_state=0)
    >>> model = HARFERegressor(random_state=0).fit(data.X, data.y)
    >>> bool(model.score(data.X, data.y) > 0.9)
    True
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        n_nonzero_coefs: float | str = "auto",
        *,
        order: Any = "auto",
        alpha: float = 1e-3,
        activation: str = "sin",
        weights: str = "normal",
        scale: Any = 1.0,
        bias: str = "phase",
        interaction_cst: Any = None,
        variable_weights: ArrayLike | None = None,
        law: Law | None = None,
        init: Any = "zero",
        step_size: float | str = "normalized",
        max_iter: int = 100,
        tol: float = 1e-6,
        noise_level: float | None = None,
        fit_intercept: bool = True,
        input_scale: str = "standard",
        input_clip: float | None = 5.0,
        input_warp: str = "none",
        column_scale: str = "rms",
        link: str = "none",
        memory_budget: float | str = "auto",
        selection_rows: int | str | None = "auto",
        residual_cv: Any = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.order = order
        self.alpha = alpha
        self.activation = activation
        self.weights = weights
        self.scale = scale
        self.bias = bias
        self.interaction_cst = interaction_cst
        self.variable_weights = variable_weights
        self.law = law
        self.init = init
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.noise_level = noise_level
        self.fit_intercept = fit_intercept
        self.input_scale = input_scale
        self.input_clip = input_clip
        self.input_warp = input_warp
        self.column_scale = column_scale
        self.link = link
        self.memory_budget = memory_budget
        self.selection_rows = selection_rows
        self.residual_cv = residual_cv
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HARFERegressor:
        """Draw N features, select s of them and fit their coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            NumPy array, or pandas or polars frame with column names.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Real or complex. Several targets share the support.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts: weight 2 repeats the row, weight 0 drops it.

        Returns
        -------
        self
        """
        if self.verbose:
            announce_compiling()
        X = check_inputs(self, X, reset=True, min_rows=2)
        y = check_targets(y, len(X))
        weights = row_weights(sample_weight, X, y)
        counted = weights > 0
        recipe = self._recipe(
            weights.sum(), int(np.count_nonzero(counted)), 1 if y.ndim == 1 else y.shape[1]
        )
        folds = None
        if self.residual_cv is not None:
            folds = make_folds(
                "residual_cv", self.residual_cv, X, y, recipe.sampling.seed, counted=counted
            )
        starts = 4 if isinstance(self.init, str) and self.init != "zero" else 1
        progress = FitProgress(self, X, y, sample_weight, max_rounds=starts * self.max_iter)
        X, y, weights = X[counted], y[counted], weights[counted]
        link = self._find_link(self.link, y, weights)
        fitted = y if link is None else link.forward(y)
        line = RoundsProgress(1 + len(folds or [])) if self.verbose else None

        def after_round(posed: Posed, state: Round) -> bool:
            if line is not None:
                line.after_round(0, state.n_iter)
            return progress.end_round(
                lambda: {
                    "expansion_": replace(
                        posed.expansion(state.support, state.scaled_coef), link=link
                    ),
                    "_y_ndim": y.ndim,
                }
            )

        def fit_without(fold: int, train: NDArray[np.intp]) -> tuple[Expansion, Posterior]:
            def after_round_of_fold(_: Posed, state: Round) -> bool:
                if line is not None:
                    line.after_round(1 + fold, state.n_iter)
                return False

            fit = recipe.fit(X[train], fitted[train], weights[train], after_round_of_fold)
            return fit.expansion, fit.posterior()

        # With more BLAS threads, the last bits of sums over rows would depend on their number.
        with one_blas_thread():
            fit = recipe.fit(X, fitted, weights, after_round).with_link(link)
            self.uncertainty_ = None
            if folds is not None:
                self.uncertainty_ = Uncertainty.calibrated(
                    fit.posterior(), folds, fit_without, X, y, weights
                )
                fit = fit.with_link(self.uncertainty_.posterior.expansion.link)
            self._adopt(fit, X, y.ndim, weights)
        if line is not None:
            line.close()
        progress.close()
        return self

    def _recipe(self, total_weight: float, n_rows: int, n_targets: int) -> Recipe:
        """Check and resolve all settings."""
        N = pool_size(self.n_components, max(total_weight, self.n_features_in_))
        pursuit = self._pursuit(N, total_weight)
        check_scales(self)
        self._check_init(N, n_targets)
        sampling = Sampling(
            self._law(self.law, self.order, self.scale), seed_of(self.random_state), N
        )
        rows = self._selection_rows(n_rows)
        return Recipe(sampling, self._framing(), pursuit, self.init, rows)

    def _selection_rows(self, n_rows: int) -> int | None:
        """Resolve the number of rows to choose features on; None stands for all of them."""
        if self.selection_rows is None:
            return None
        if isinstance(self.selection_rows, str) and self.selection_rows == "auto":
            return SELECTION_ROWS if n_rows > MANY_ROWS else None
        check_count("selection_rows", self.selection_rows, SELECTION_ROWS, "None, 'auto' or ")
        return int(self.selection_rows)

    def _pursuit(self, N: int, total_weight: float) -> PursuitSettings:
        """Resolve s to a number, and check the settings of the pursuit."""
        s: Any = self.n_nonzero_coefs
        if s == "auto":
            s = int(np.clip(total_weight / 10, min(10, N), max(N // 10, 1)))
        elif is_number(s) and not is_whole(s):
            if not 0 < s <= 1:
                raise ValueError(
                    f"n_nonzero_coefs={s!r} as a fraction must be above 0 and at most 1; "
                    "pass a whole number for a count"
                )
            s = max(1, round(float(s) * N))
        settings = PursuitSettings(
            n_nonzero_coefs=s,
            alpha=self.alpha,
            step_size=self.step_size,
            max_iter=self.max_iter,
            tol=self.tol,
            noise_level=self.noise_level,
        )
        if s > N:
            raise ValueError(
                f"n_nonzero_coefs={s} is larger than n_components={N}; "
                f"pass n_nonzero_coefs={N} or less, or a larger n_components"
            )
        return settings

    def _ridge(self) -> tuple[float, str]:
        return self.alpha, self.column_scale

    def _check_init(self, N: int, n_targets: int) -> None:
        if isinstance(self.init, str):
            check_choice("init", self.init, INITS)
            return
        coef = np.asarray(self.init)
        fits = coef.size == n_targets * N and coef.shape[-1] == N
        if coef.dtype.kind not in "iufc" or not fits or not np.all(np.isfinite(coef)):
            raise ValueError(
                f"init has shape {coef.shape} and type {coef.dtype}; pass 'zero' or finite "
                f"coefficients of shape ({n_targets}, {N})"
            )


def pool_size(n_components: Any, extent: float) -> int:
    """Resolve N to a number; "auto" is ten times `extent`, between 1000 and 10 000."""
    if isinstance(n_components, str) and n_components == "auto":
        return int(np.clip(10 * extent, 1000, 10_000))
    check_count("n_components", n_components, 1000, "'auto' or ")
    return int(n_components)


def check_scales(estimator: Any, more: Sequence[str] = ()) -> None:
    """Reject unknown scales, warps and links, and bad bounds; `more` are further names."""
    check_choice("input_scale", estimator.input_scale, INPUT_SCALES)
    check_choice("column_scale", estimator.column_scale, COLUMN_SCALES)
    check_choice("link", estimator.link, (*more, *LINKS))
    check_choice("input_warp", estimator.input_warp, (*more, *INPUT_WARPS))
    check_clip(estimator.input_clip)
