"""HARFERegressorCV: every setting chosen by cross-validation on the training rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from harfe._core.arguments import check_choice, is_number
from harfe._core.compiling import announce_compiling
from harfe._core.folds import Fold, make_folds
from harfe._core.progress import SearchProgress
from harfe._core.sklearn_compat import CallbackSupportMixin, with_callbacks
from harfe._core.threads import one_blas_thread
from harfe._core.validation import check_inputs, check_targets, count_distinct, row_weights
from harfe.estimators._grid_values import (
    candidate_alphas,
    candidate_orders,
    candidate_scales,
    candidate_sizes,
    largest_size,
)
from harfe.estimators.base import ExpansionRegressor
from harfe.estimators.regressor import HARFERegressor, check_scales, pool_size
from harfe.features.law import FeatureLaw
from harfe.features.law_parameters import CAPS
from harfe.features.mixed_law import Law, MixedLaw
from harfe.features.transformer import seed_of
from harfe.features.units import find_map, varies
from harfe.learning.candidates import CANDIDATES, WARPED, LawSettings, sampling_notes
from harfe.learning.likelihood import Prior
from harfe.learning.standard_rows import MOST_ROWS
from harfe.model.uncertainty import Uncertainty
from harfe.selection.engine.limited import LimitedPlan
from harfe.selection.engine.search import Search
from harfe.selection.law_search import LawSearch
from harfe.selection.learn_law import LawRace
from harfe.selection.link_choice import choose_link
from harfe.selection.race import Pool, Race
from harfe.selection.recipe import Template
from harfe.selection.results import SearchOutcome, cell_params, params_of_choice, results_of
from harfe.selection.rows import FEW_ROWS, Data, Scoring, make_scoring
from harfe.selection.sparse_models import KINDS, SparseSettings, pool_within

SELECTIONS = ("best", "one_se")
LAWS = ("auto", "learned", "grid")

_N_SPLITS = 5
# With few rows, the folds of a grid are repeated this many times.
_REPEATS = 3

# Replaced in tests.
_clock = time.monotonic

# Number of features that "auto" draws from a learned law: it favours useful ones, so few suffice.
_LEARNED_POOL = 3000


# Above this number of rows, features are chosen on y only if none are trained.
_MOST_ON_Y = 2000


class HARFERegressorCV(CallbackSupportMixin, ExpansionRegressor):
    """Hard-ridge random feature expansion with every setting learned or cross-validated.

    Minimises the error on held-out rows over laws of the features, kinds of fit and sizes (numbers
    of features), then fits all rows with the best. With a learned law (the default),

    - candidates for the law are fitted by penalised likelihood without each fold, then compared or
      stacked by the error of their dense references on that fold (:func:`learn_law`);
    - under the winning law, four kinds of sparse models are tried: features chosen on y (the
      objective of :class:`HARFERegressor`; up to 2000 rows), features chosen to match the
      reference, the latter with their weights refined to match it, and many features trained by
      first-order steps: to match the reference at many points on up to 4000 rows, to fit all rows
      beyond.

    With ``law="grid"``, pools of features for every (order, scale) are compared, each fitted by the
    objective of :class:`HARFERegressor`: all of them on the first fold or two, the best third on
    the others; with few rows, the folds are repeated for the best.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of features drawn, N. "auto" is 3000 with a learned law, fewer if `memory_budget`
        requires it; in a grid, it is ten times the sum of the sample weights or the number of
        inputs, whichever is larger, but at least 1000 and at most 10 000.
    law : {"auto", "learned", "grid"}, FeatureLaw or MixedLaw, default="auto"
        "learned" learns orders, inputs and scales from the data. "grid" treats all inputs alike and
        compares `orders` and `scales`. "auto" learns unless that is not possible: complex y, sets
        of inputs in `interaction_cst`, `variable_weights`, `weights` or `bias` other than the
        default, or only constant inputs. A given law is used as it is.
    refine : bool, default=True
        Whether to also try models with trained weights, the kinds "refined" and "trained". Their
        weights are no longer random: they start from drawn features and are trained, so far fewer
        features suffice. False keeps every weight as drawn.
    orders : int or sequence, default=4
        Only for the grid: candidates for `order`, each a number of inputs, or several for a mixed
        pool, e.g. ``[1, 2, (1, 2)]``. An int takes that many of 2, 1, (1, 2), 3, ...
    scales : int or array, default=4
        Only for the grid: candidates for `scale`. An int takes that many from 0.2 to 4.
    n_nonzero_coefs : int or array, default=20
        Candidates for the size s, the number of features kept. An int takes that many from 2 to
        the largest: 80 times the cube root of the rows with a learned law (but 400 at least and
        2000 at most), 400 in a grid, and never more than distinct rows in a training fold.
    alphas : int or array, default=14
        Candidates for `alpha`. An int takes that many from 1e-12 to 10.
    cv : int, splitter, iterable or None, default=None
        Folds. None is five; in a grid, five in each of three shuffles if the sample weights sum to
        less than 300. An int gives that many shuffled folds that keep equal rows together; with
        groups, GroupKFold is used. A scikit-learn splitter or pairs of (training rows, held-out
        rows) are also accepted.
    scoring : str, callable or None, default=None
        Score to maximise, as in scikit-learn. None is the negative mean squared error, with several
        targets in units of their standard deviation. Sample weights are used if the scorer accepts
        them.
    selection : {"best", "one_se"}, default="best"
        The best mean score, or the fewest features within one standard error of it. With a learned
        law and without `scoring`, models that match the reference are ranked by held-out error plus
        their distance from the reference on those rows, "best" takes the fewest features within
        1 % of the best (less from 1000 rows on, in proportion to the root of their number), and
        fits on y must beat the matches by two standard errors. After the first fold, fits on y go
        on only if they are ahead, and other kinds and sizes only if they are near the best.
    input_warp : {"auto", "none", "log", "rank"}, default="auto"
        Warp of the inputs, as in :class:`HARFERegressor`. With "auto", laws of inputs as they are,
        of their logarithms and of their ranks compete; in a grid it is "none".
    link : {"auto", "none", "log", "yeo-johnson"}, default="auto"
        Scale of the target, as in :class:`HARFERegressor`. With "auto", a skewed target is fitted
        on the scale of its logarithm (if it is positive) or of a power if that clearly lowers the
        error on held-out rows; in a grid, with several targets or with `scoring` it is "none". With
        a link, errors and scores of the search are those on its scale, unless `scoring` is given,
        which sees the units of y.
    activation, weights, bias, interaction_cst, variable_weights, max_iter, tol, fit_intercept, \
input_scale, input_clip, column_scale, memory_budget
        As in :class:`HARFERegressor`; but under a learned law, whose scales adapt to each input,
        `input_clip` clips only beyond three times the distance at which the outermost hundredth of
        the rows begins, so that the tail of a skewed input stays.
    n_jobs : int or None, default=None
        Number of candidates and folds fitted side by side, in threads of this process. None and -1
        use all threads that numba may use (``numba.set_num_threads``; one in joblib's workers),
        n at most n of them, and 1 fits one after the other, each on all threads. The result does
        not depend on it.
    max_time : float or None, default=None
        Limit in seconds for the whole fit, with the final fit of all rows. Only what is expected to
        end in time is begun: first a model of up to 300 rows of the first fold, which is the result
        if there is no time for more; then candidates on as many folds as possible, compared on the
        folds that they share. A search that was cut short says so in a warning and in
        `search_complete_`. How far it comes depends on the speed and load of the machine, and so
        may the model. Each model is one that the same seed gives again if the search comes as far,
        and a search that completes gives the same model as without a limit.
    warm_start : bool, default=False
        Reuse the folds that an earlier fit on the same rows has finished, e.g. after `max_time` ran
        out or with more orders or scales.
    verbose : bool, default=False
        Report progress, the best result so far and the time left on standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of features and folds. Equal seeds give equal models for any number of threads and
        jobs.

    Attributes
    ----------
    law_ : FeatureLaw or MixedLaw
        The law that the features were drawn from; ``law_.summary()`` shows which inputs it uses,
        how often and at which scales, on inputs in the units of `input_scale`.
    learned_law_ : LearnedLaw or None
        How it was learned: candidate or stack, their errors, the noise; ``summary()`` as text.
    fit_ : {"data", "matched", "refined", "trained"}
        Kind of fit: features chosen on y, chosen to match the reference, with their weights refined
        to match it, or many features trained by first-order steps.
    n_nonzero_coefs_ : int
        Number of features kept, s.
    order_ : int or tuple of int
        Number of inputs per feature under the law.
    scale_ : float or array of shape (n_features,)
        Scale of the weights under the law.
    alpha_ : float
        Ridge weight. Models that match a reference have none of their own; for them it is the
        value that corresponds to the noise of the law, which the uncertainty uses.
    best_params_ : dict
        The selected settings and the fixed ones, as parameters of :class:`HARFERegressor`. If
        `fit_` is "data", they give the same model with the same `random_state`.
    best_score_ : float
        Mean score of the selected candidate over the folds.
    cv_results_ : dict of arrays, one entry per candidate
        As in scikit-learn: ``params``, ``param_fit`` (or ``param_order`` and ``param_scale``),
        ``param_n_nonzero_coefs``, ``param_alpha``, ``split0_test_score``, ...,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score``, ``n_splits``. Scores are NaN
        on folds where a candidate was not run; one not run on all folds has rank 0.
    mse_path_ : array of shape (pools, n_nonzero_coefs, alphas, folds)
        Held-out mean squared error, in the order of `pools_`; kinds that match a reference fill
        only the first alpha.
    pools_ : list
        Kinds of fit, or pairs (order, scale) of the grid.
    alphas_, sizes_ : arrays
        The candidates for alpha and s.
    n_splits_ : int
        Number of folds, including repeats.
    search_complete_ : bool
        False if `max_time` or a callback cut the search short.
    coef_, intercept_, support_, weights_, bias_, expansion_, feature_importances_, n_components_, \
n_iter_, history_, stop_reason_, seed_, inputs_, uncertainty_, n_features_in_, feature_names_in_
        As in :class:`HARFERegressor`, but if `fit_` is not "data", ``history_`` has the ``"gap"``
        to the reference instead of an objective. The out-of-fold residuals behind ``uncertainty_``
        account for the selection: the rows of a fold are predicted with a law fitted without them,
        and with the size and kind of fit chosen on the other folds. If `fit_` is "refined" or
        "trained", ``weights_`` and ``bias_`` hold the trained features in place of those they
        started from.

    See Also
    --------
    HARFERegressor : One fit with given settings.
    learn_law : The law alone.

    Notes
    -----
    On a large table, random samples of the rows decide what more rows would not change. The
    likelihood of a law is computed on at most 500 distinct rows (300 of noisy data while a fold is
    held out, 1000 for joint laws of all rows), references are fitted to at most 4000 rows, and the
    law is chosen by its errors on at most 5000 held-out rows. Trained features, their coefficients,
    the held-out errors of models and the out-of-fold residuals use all rows; models are compared on
    two folds from 10 000 rows on, and on one from 50 000. With ``verbose=True``, and on the report
    page, the sizes of the samples are stated.

    A law or model of all rows whose error is far from what held-out rows promised is refused in
    favour of the next candidate, with a warning.

    Examples
    --------
    >>> from harfe import HARFERegressorCV
    >>> from harfe.datasets import make_function
    >>> data = make_function("friedman1", 150, random_state=0)
    >>> model = HARFERegressorCV(random_state=0).fit(data.X, data.y)
    >>> bool(model.score(data.X, data.y) > 0.9)
    True
    >>> prediction, lower, upper = model.predict(data.X, interval=0.9)
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        law: Any = "auto",
        refine: bool = True,
        orders: Any = 4,
        scales: Any = 4,
        n_nonzero_coefs: Any = 20,
        alphas: Any = 14,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "best",
        activation: str = "sin",
        weights: str = "normal",
        bias: str = "phase",
        interaction_cst: Any = None,
        variable_weights: ArrayLike | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        input_scale: str = "standard",
        input_clip: float | None = 5.0,
        input_warp: str = "auto",
        column_scale: str = "rms",
        link: str = "auto",
        memory_budget: float | str = "auto",
        n_jobs: int | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.law = law
        self.refine = refine
        self.orders = orders
        self.scales = scales
        self.n_nonzero_coefs = n_nonzero_coefs
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.activation = activation
        self.weights = weights
        self.bias = bias
        self.interaction_cst = interaction_cst
        self.variable_weights = variable_weights
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.input_scale = input_scale
        self.input_clip = input_clip
        self.input_warp = input_warp
        self.column_scale = column_scale
        self.link = link
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Select all settings by cross-validation, then fit all rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            NumPy array, or pandas or polars frame with column names.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Real or complex. Several targets share the support and the settings.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts, in the fits and in the scores of the folds.
        groups : array of shape (n_samples,), default=None
            Group of each row, passed to the splitter: a group is held out as a whole.

        Returns
        -------
        self
        """
        started = _clock()
        if self.verbose:
            announce_compiling()
        X = check_inputs(self, X, reset=True, min_rows=2)
        y = check_targets(y, len(X))
        weights = row_weights(sample_weight, X, y)
        counted = weights > 0
        self._check()
        learns = self._learns_law(X[counted], y, weights[counted])
        template = self._template(weights.sum(), learns)
        folds, n_first = self._folds(X, y, weights, groups, template.seed, repeat=not learns)
        every_X, every_y = X, y
        X, y, weights = X[counted], y[counted], weights[counted]
        data = Data(X, y.reshape(len(y), -1), weights)
        link_kind = self._link_kind(data, folds, learns)
        link = self._find_link(link_kind, y, weights)
        scoring = make_scoring(self, data, y.ndim, link)
        if link is not None:
            data = replace(data, y=link.forward(data.y))
        self.alphas_ = np.array(candidate_alphas(self.alphas))
        make = self._plan_law if learns else partial(self._plan_grid, n_first=n_first)
        full: LawSearch | Race = make(template, data, folds, scoring)
        plan: LawSearch | Race | LimitedPlan = full
        deadline = np.inf
        if self.max_time is not None:
            deadline = started + float(self.max_time)
            plan = LimitedPlan(full, full.small, len(folds[0][0]))
        earlier = getattr(self, "_finished", {}) if self.warm_start else {}
        search = Search(
            plan,
            n_jobs=self.n_jobs,
            deadline=deadline,
            memory=template.framing.memory_budget,
            earlier={bytes.fromhex(key): value for key, value in earlier.items()},
            clock=_clock,
        )
        with SearchProgress(self, search, every_X, every_y, sample_weight, self.verbose) as monitor:
            monitor.begin(sampling_notes(len(X)) if learns else [])
            self.search_complete_ = search.run(monitor.after_task)
            # Results may hold rows: keep them only on request. Keys are text for skops files.
            finished = search.finished if self.warm_start else {}
            self._finished = {key.hex(): value for key, value in finished.items()}
            with one_blas_thread():
                outcome = plan.outcome()
                self._report(outcome, link_kind)
                fit = outcome.fit.with_link(link)
                self.uncertainty_ = Uncertainty.calibrated(
                    fit.posterior(),
                    [fold for fold, _ in outcome.held_out],
                    lambda number, _: outcome.held_out[number][1].with_posterior(),
                    X,
                    y,
                    weights,
                )
                fit = fit.with_link(self.uncertainty_.posterior.expansion.link)
                self._adopt(fit, X, y.ndim, weights)
        if outcome.refused:
            warnings.warn(
                f"fitted to all rows, {', '.join(outcome.refused)} ended far from what held-out "
                "rows had promised; the next best was taken, if any was left. If its error is too "
                "large, fit again with another random_state",
                ConvergenceWarning,
                stacklevel=2,
            )
        if not self.search_complete_:
            warnings.warn(self._cut_short(outcome), ConvergenceWarning, stacklevel=2)
        return self

    def _cut_short(self, outcome: SearchOutcome) -> str:
        """Say that the search ended early, how far it came, and what to do."""
        why = "by a callback" if self.max_time is None else f"by max_time={self.max_time:g}"
        return (
            f"the search was cut short {why}: {outcome.extent}; allow more time, or pass "
            "warm_start=True and fit again to go on"
        )

    def _learns_law(
        self, X: NDArray[np.float64], y: NDArray[Any], weights: NDArray[np.float64]
    ) -> bool:
        """Whether the law is learned; law="learned" raises an error if it cannot be."""
        against = None
        if y.dtype.kind == "c":
            against = "y is complex"
        elif self.interaction_cst is not None and not isinstance(self.interaction_cst, str):
            against = "interaction_cst names sets of inputs"
        elif self.variable_weights is not None:
            against = "variable_weights sets how often inputs are drawn"
        elif self.weights != "normal" or self.bias != "phase":
            against = (
                f"it needs weights='normal' and bias='phase', not weights={self.weights!r} and "
                f"bias={self.bias!r}"
            )
        elif not varies(X, weights):
            against = "all inputs are constant"
        if isinstance(self.law, str) and self.law == "learned" and against:
            raise ValueError(f"law='learned' is not possible: {against}; pass law='auto'")
        return isinstance(self.law, str) and self.law != "grid" and against is None

    def _check(self) -> None:
        check_choice("selection", self.selection, SELECTIONS)
        if not isinstance(self.law, FeatureLaw | MixedLaw):
            check_choice("law", self.law, LAWS)
        check_scales(self, ("auto",))
        if self.max_time is not None and not (is_number(self.max_time) and self.max_time > 0):
            raise ValueError(
                f"max_time={self.max_time!r} must be None or a positive number of seconds, "
                "e.g. max_time=60"
            )

    def _template(self, total_weight: float, learns: bool) -> Template:
        """Settings that all candidates share, checked."""
        N = pool_size(self.n_components, max(total_weight, self.n_features_in_))
        if learns and isinstance(self.n_components, str):
            N = max(_LEARNED_POOL, largest_size(total_weight))
        template = Template(seed_of(self.random_state), N, self._framing(), self.max_iter, self.tol)
        # What is wrong with the settings is said before the search.
        template.recipe(self._candidate(1, 1.0), 1, 0.0)
        return template

    def _candidate(self, order: Any, scale: float) -> Law:
        """The law that was given, or one of the grid."""
        return self._law(None if isinstance(self.law, str) else self.law, order, scale)

    def _folds(
        self,
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
        groups: Any,
        seed: int,
        repeat: bool,
    ) -> tuple[list[Fold], int]:
        """All folds, and how many of them form the first pass over the rows."""
        counted = weights > 0
        n_splits, repeats = _N_SPLITS, 1
        if groups is None:
            repeats = _REPEATS if weights.sum() < FEW_ROWS and repeat else 1
        else:
            groups = _check_groups(groups, counted)
            n_splits = min(n_splits, len(np.unique(groups[counted])))
        cv = self.cv
        if cv is None:
            cv = n_splits
        else:
            repeats = 1
        folds = make_folds("cv", cv, X, y, seed, counted=counted, groups=groups, repeats=repeats)
        return folds, len(folds) // repeats

    def _plan_law(
        self, template: Template, data: Data, folds: list[Fold], scoring: Scoring | None
    ) -> LawSearch:
        """Candidates for a learned law, and the sparse models to try under the winner."""
        free = isinstance(self.n_components, str)
        budget = template.framing.memory_budget
        N = pool_within(budget, len(data.X), template.n_components, free=free)
        template = replace(template, n_components=N)
        lightest = _fewest_rows(data, folds)
        largest = largest_size(lightest)
        self.sizes_ = np.array(candidate_sizes(self.n_nonzero_coefs, N, lightest, largest))
        kinds = self._kinds(len(data.X))
        if "data" in kinds:
            # They are the last to run: whether they fit in memory is checked first.
            template.framing.check_memory(
                max(len(train) for train, _ in folds),
                N,
                data.y.shape[1],
                largest_support=int(self.sizes_.max()),
                graded=True,
            )
        law = LawSettings(
            template.seed,
            self.input_scale,
            self.input_clip,
            activation=self.activation,
        )
        race = LawRace(self._priors(data), law, data, folds, scoring)
        settings = SparseSettings(kinds, tuple(self.sizes_.tolist()), tuple(self.alphas_.tolist()))
        return LawSearch(race, template, settings, self.selection)

    def _link_kind(self, data: Data, folds: list[Fold], learns: bool) -> str:
        """The link that the parameter names, or the one that held-out rows choose."""
        if self.link != "auto":
            return self.link
        one = data.y.shape[1] == 1 and data.y.dtype.kind == "f"
        if not (learns and one and self.scoring is None):
            return "none"
        seed = seed_of(self.random_state)
        return choose_link(data, folds, LawSettings(seed, self.input_scale, self.input_clip))

    def _kinds(self, n_rows: int) -> tuple[str, ...]:
        """Kinds of sparse models to try under a learned law."""
        if self.activation == "exp" or not self.fit_intercept:
            # A reference is real and has an intercept.
            return ("data",)
        left_out = set()
        if not self.refine:
            left_out |= {"refined", "trained"}
        if self.activation not in ("sin", "cos"):
            left_out |= {"trained"}
        if n_rows > _MOST_ON_Y and "trained" not in left_out:
            # Training uses all rows at a fraction of the cost.
            left_out |= {"data"}
        return tuple(kind for kind in KINDS if kind not in left_out)

    def _plan_grid(
        self,
        template: Template,
        data: Data,
        folds: list[Fold],
        scoring: Scoring | None,
        n_first: int,
    ) -> Race:
        """Every order and scale of the grid, or the given law."""
        lightest = _fewest_rows(data, folds)
        sizes = candidate_sizes(self.n_nonzero_coefs, template.n_components, lightest)
        self.sizes_ = np.array(sizes)
        alphas = self.alphas_.tolist()
        return Race(
            template,
            self._pools(),
            sizes,
            alphas,
            data,
            folds,
            n_first,
            scoring,
            self.selection,
        )

    def _pools(self) -> list[Pool]:
        if isinstance(self.law, FeatureLaw | MixedLaw):
            return [Pool(self.law.orders, self.law.scale, self._candidate(1, 1.0), given=True)]
        d = self.n_features_in_
        if self.variable_weights is not None:
            d = min(d, np.count_nonzero(self.variable_weights))
        pools, laws = [], set()
        for order in candidate_orders(self.orders, d):
            for scale in candidate_scales(self.scales):
                law: Any = self._law(None, order, scale)
                # A constraint may cap different orders to the same law.
                same = replace(law, orders=tuple(dict.fromkeys(law.orders)))
                if same not in laws:
                    laws.add(same)
                    pools.append(Pool(order, scale, law))
        return pools

    def _priors(self, data: Data) -> list[Prior]:
        """Candidates for a learned law, within the constraint and without duplicates."""
        cap = CAPS[self.interaction_cst] if self.interaction_cst else np.inf
        if self.input_warp == "auto":
            # What a law will see of many rows.
            some = slice(None, None, -(-len(data.X) // MOST_ROWS))
            logs = find_map(data.X[some], data.weights[some], self.input_clip, "log").warped.any()
            warped = [prior for prior in WARPED.values() if logs or prior.input_warp != "log"]
            candidates = [*CANDIDATES.values(), *warped]
        else:
            candidates = [replace(p, input_warp=self.input_warp) for p in CANDIDATES.values()]
        kept: dict[Prior, Prior] = {}
        for prior in candidates:
            if prior.full and cap < self.n_features_in_:
                continue
            capped = replace(prior, max_order=int(min(prior.max_order, cap)))
            kept.setdefault(replace(capped, name=""), capped)
        return list(kept.values())

    def _ridge(self) -> tuple[float, str]:
        # The ridge weight of a match is that of the reference's noise, on unit columns.
        return self.alpha_, self.column_scale if self.fit_ == "data" else "rms"

    def _report(self, outcome: SearchOutcome, link_kind: str) -> None:
        """Fill the attributes that describe the search."""
        self.mse_path_ = outcome.errors
        self.best_score_ = outcome.choice.score
        self.n_splits_ = outcome.scores.shape[-1]
        self.sizes_ = np.array(outcome.sizes)
        self.alpha_ = outcome.fit.alpha
        self.learned_law_ = outcome.learned_law
        self.pools_ = outcome.candidates
        self.fit_ = outcome.kind
        self.order_, self.scale_ = outcome.order, outcome.scale
        cells = cell_params(outcome.params, self.sizes_, self.alphas_)
        self.cv_results_ = results_of(cells, outcome.scores.reshape(len(cells), -1))
        plain = HARFERegressor().get_params()
        self.best_params_ = params_of_choice(
            self.get_params(), plain, outcome.fit, outcome.chosen_params | {"link": link_kind}
        )


def _fewest_rows(data: Data, folds: list[Fold]) -> int:
    """Number of distinct rows in the smallest training fold: models have no more features."""
    return min(count_distinct(data.X[train], data.y[train]) for train, _ in folds)


def _check_groups(groups: Any, counted: NDArray[np.bool_]) -> NDArray[Any]:
    groups = np.asarray(groups)
    if groups.shape != counted.shape:
        raise ValueError(
            f"groups has shape {groups.shape}, expected {counted.shape}: one group per row of X"
        )
    if len(np.unique(groups[counted])) < 2:
        raise ValueError("groups holds a single group; at least 2 are needed to hold one out")
    return groups
