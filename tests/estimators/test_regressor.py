"""HARFERegressor: dense twins, relations, the scikit-learn API, bad input."""

import pickle
import re
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from shared import estimator_checks
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harfe import HARFERegressor, SparseRandomFeatures, StopReason
from harfe._core.sklearn_compat import HAS_CALLBACKS
from harfe.cli.commands import demo
from harfe.datasets import make_additive, make_function
from harfe.features.activations import ACTIVATIONS
from harfe.features.law_parameters import WEIGHT_LAWS
from harfe.solvers.homes import RecomputedProblem, StoredProblem

SMALL = {"n_components": 300, "n_nonzero_coefs": 20, "random_state": 0}


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 200, random_state=0)


def dense(model, X, which=None):
    """Raw features from the public W and b."""
    W, b = model.weights_.toarray(), model.bias_
    A = np.sin(X @ W + b)
    return A if which is None else A[:, which]


# --- scikit-learn's contract ---------------------------------------------------------------------


@pytest.mark.slow
def test_every_estimator_check_passes_with_warnings_as_errors():
    results = estimator_checks("HARFERegressor()")
    assert len(results) >= 50
    assert [result for result in results if result[1] != "passed"] == []


@pytest.mark.slow
@pytest.mark.parametrize("link", ["log", "yeo-johnson"])
def test_estimator_checks_pass_with_a_link(link):
    results = estimator_checks(f"HARFERegressor(link={link!r})")
    assert len(results) >= 45
    # A column of y stays a column here too; scikit-learn wants a warning and an array without it.
    failed = [result[0] for result in results if result[1] != "passed"]
    assert failed == ["check_supervised_y_2d"]


def test_importing_harfe_does_not_import_scikit_learn():
    code = (
        "import sys, harfe; assert 'sklearn' not in sys.modules; harfe.HARFERegressor; dir(harfe)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_public_name_is_an_attribute_error():
    import harfe

    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = harfe.nothing_of_that_name
    assert {"HARFERegressor", "datasets", "metrics"} <= set(dir(harfe))
    assert harfe.metrics.mean_squared_error([1.0], [3.0]) == 4.0


def test_parameters_are_not_changed_by_fit(friedman):
    model = HARFERegressor(random_state=0)
    before = model.get_params()
    model.fit(friedman.X, friedman.y)
    assert model.get_params() == before


def test_clone_and_pickle_predict_the_same(friedman):
    model = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    again = clone(model).fit(friedman.X, friedman.y)
    thawed = pickle.loads(pickle.dumps(model))
    expected = model.predict(friedman.X)
    np.testing.assert_array_equal(again.predict(friedman.X), expected)
    np.testing.assert_array_equal(thawed.predict(friedman.X), expected)
    assert thawed.stop_reason_ is model.stop_reason_


def test_unfitted_model_says_so(friedman):
    with pytest.raises(NotFittedError):
        HARFERegressor().predict(friedman.X)


def test_pipeline_grid_search_and_cross_validation(friedman):
    pipeline = make_pipeline(StandardScaler(), HARFERegressor(**SMALL))
    search = GridSearchCV(pipeline, {"harferegressor__n_nonzero_coefs": [1, 30]}, cv=3)
    search.fit(friedman.X, friedman.y)
    assert search.best_params_ == {"harferegressor__n_nonzero_coefs": 30}
    assert cross_val_score(HARFERegressor(**SMALL), friedman.X, friedman.y, cv=3).mean() > 0.6


def test_select_from_model_keeps_the_true_variables():
    data = make_function("friedman_g", 500, random_state=0)
    selector = SelectFromModel(
        HARFERegressor(random_state=0),
        importance_getter="feature_importances_",
        max_features=5,
        threshold=-np.inf,
    )
    selected = selector.fit(data.X, data.y).transform(data.X)
    np.testing.assert_array_equal(selected, data.X[:, :5])


def test_sample_weight_is_routed(friedman):
    weights = np.arange(len(friedman.y)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        model = HARFERegressor(**SMALL).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(friedman.X, friedman.y, sample_weight=weights)
    scaled = pipeline[0].transform(friedman.X)
    direct = HARFERegressor(**SMALL).fit(scaled, friedman.y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
    assert not np.array_equal(HARFERegressor(**SMALL).fit(scaled, friedman.y).coef_, direct.coef_)


# --- callbacks -----------------------------------------------------------------------------------

needs_callbacks = pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn before 1.9")


class Recorder:
    """A callback that follows the fit, and stops it after some rounds."""

    def __init__(self, stop_after=10**9):
        self.stop_after, self.scores, self.begun, self.ended = stop_after, [], 0, 0

    def setup(self, estimator, context):
        self.max_subtasks = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.ended += 1
        if context.task_name == "round" and fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
            return len(self.scores) >= self.stop_after
        return False


@needs_callbacks
def test_callbacks_see_every_round_as_a_fitted_model(friedman):
    recorder = Recorder()
    model = HARFERegressor(**SMALL).set_callbacks(recorder).fit(friedman.X, friedman.y)
    assert len(recorder.scores) == model.n_iter_
    best = int(np.argmin(model.history_["objective"]))
    assert recorder.scores[best] == pytest.approx(model.score(friedman.X, friedman.y), abs=1e-12)
    assert recorder.begun == recorder.ended
    assert recorder.torn_down


@needs_callbacks
def test_a_callback_can_stop_the_fit(friedman):
    model = HARFERegressor(**SMALL).set_callbacks(Recorder(stop_after=2))
    model.fit(friedman.X, friedman.y)
    assert model.n_iter_ == 2
    assert model.stop_reason_ is StopReason.CALLBACK


@needs_callbacks
def test_scikit_learns_own_monitor_works(friedman):
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="r2")
    model = HARFERegressor(**SMALL).set_callbacks(monitor).fit(friedman.X, friedman.y)
    scores = [row["r2"] for row in monitor.get_logs().data if row.get("r2") is not None]
    assert max(scores) == pytest.approx(model.score(friedman.X, friedman.y), abs=1e-12)
    assert len(scores) >= model.n_iter_ > 1


# --- the fitted function -------------------------------------------------------------------------


@pytest.mark.parametrize("input_scale", ["standard", "robust", "none"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_prediction_is_the_sum_that_the_attributes_spell(friedman, input_scale, fit_intercept):
    model = HARFERegressor(**SMALL, input_scale=input_scale, fit_intercept=fit_intercept)
    model.fit(friedman.X, friedman.y)
    A = dense(model, friedman.X)
    np.testing.assert_allclose(
        model.predict(friedman.X), A @ model.coef_ + model.intercept_, rtol=1e-10, atol=1e-10
    )
    assert np.flatnonzero(model.coef_).tolist() == model.support_.tolist()
    assert len(model.support_) == model.n_nonzero_coefs_ == 20
    assert model.weights_.shape == (10, 300)
    assert model.bias_.shape == (300,)
    if not fit_intercept:
        assert model.intercept_ == 0
    assert len(model.expansion_.names()) == 20


def test_history_and_rounds_agree(friedman):
    model = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    assert set(model.history_) == {"objective", "relative_residual"}
    assert all(len(values) == model.n_iter_ >= 1 for values in model.history_.values())
    A = dense(model, friedman.X, model.support_)
    c = model.coef_[model.support_] * A.std(axis=0)
    residual = friedman.y - model.predict(friedman.X)
    objective = np.mean(residual**2) + model.alpha * np.sum(c**2)
    best = np.argmin(model.history_["objective"])
    assert model.history_["objective"][best] == pytest.approx(objective, rel=1e-9)
    relative = np.sqrt(np.mean(residual**2)) / friedman.y.std()
    assert model.history_["relative_residual"][best] == pytest.approx(relative, rel=1e-9)


def test_all_features_kept_is_plain_ridge(friedman):
    model = HARFERegressor(150, 150, alpha=0.05, random_state=1).fit(friedman.X, friedman.y)
    A = dense(model, friedman.X)
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    ridge = Ridge(alpha=0.05 * len(A), solver="svd").fit(A, friedman.y)
    np.testing.assert_allclose(model.predict(friedman.X), ridge.predict(A), atol=1e-8)


def test_without_penalty_it_is_least_squares_of_minimum_norm(friedman):
    X, y = friedman.X[:40], friedman.y[:40]
    model = HARFERegressor(60, 60, alpha=0.0, scale=3.0, fit_intercept=False, random_state=0).fit(
        X, y
    )
    A = dense(model, X)
    rms = np.sqrt(np.mean(A**2, axis=0))
    c = np.linalg.lstsq(A / rms, y, rcond=3e-8)[0]
    np.testing.assert_allclose(model.coef_ * rms, c, rtol=1e-4, atol=1e-4 * np.abs(c).max())
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_negating_y_negates_the_coefficients(friedman):
    plus = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    minus = HARFERegressor(**SMALL).fit(friedman.X, -friedman.y)
    np.testing.assert_array_equal(plus.coef_, -minus.coef_)
    assert plus.intercept_ == -minus.intercept_


@pytest.mark.parametrize("input_scale", ["standard", "robust"])
def test_units_of_the_inputs_do_not_matter(friedman, input_scale):
    factor = 10.0 ** np.arange(-5, 5)
    shifted = friedman.X * factor + 3 * factor
    model = HARFERegressor(**SMALL, input_scale=input_scale).fit(friedman.X, friedman.y)
    other = HARFERegressor(**SMALL, input_scale=input_scale).fit(shifted, friedman.y)
    np.testing.assert_array_equal(model.support_, other.support_)
    np.testing.assert_allclose(other.predict(shifted), model.predict(friedman.X), rtol=1e-7)
    np.testing.assert_allclose(other.feature_importances_, model.feature_importances_, atol=1e-7)


@pytest.mark.parametrize("input_scale", ["standard", "robust", "none"])
def test_a_row_of_weight_two_is_the_row_twice(friedman, input_scale):
    weights = np.array([1.0, 2.0, 0.0, 3.0] * 50)
    repeated = np.repeat(np.arange(200), weights.astype(int))
    settings = {**SMALL, "input_scale": input_scale}
    weighted = HARFERegressor(**settings).fit(friedman.X, friedman.y, sample_weight=weights)
    copied = HARFERegressor(**settings).fit(friedman.X[repeated], friedman.y[repeated])
    np.testing.assert_array_equal(weighted.support_, copied.support_)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        weighted.feature_importances_, copied.feature_importances_, rtol=1e-8
    )


def test_auto_sizes_count_distinct_rows(friedman):
    rows = np.repeat(np.arange(200), 2)
    copied = HARFERegressor(random_state=0).fit(friedman.X[rows], friedman.y[rows])
    weighted = HARFERegressor(random_state=0)
    weighted.fit(friedman.X, friedman.y, sample_weight=np.full(200, 2.0))
    single = HARFERegressor(random_state=0).fit(friedman.X, friedman.y)
    half = HARFERegressor(random_state=0).fit(friedman.X[:100], friedman.y[:100])
    assert weighted.n_components_ == copied.n_components_ == single.n_components_ == 2000
    assert weighted.n_nonzero_coefs_ == copied.n_nonzero_coefs_ == single.n_nonzero_coefs_ == 20
    assert (half.n_components_, half.n_nonzero_coefs_) == (1000, 10)


def test_a_larger_pool_extends_a_smaller_one(friedman):
    small = HARFERegressor(100, 10, random_state=3).fit(friedman.X, friedman.y)
    large = HARFERegressor(200, 10, random_state=3).fit(friedman.X, friedman.y)
    np.testing.assert_array_equal(large.weights_.toarray()[:, :100], small.weights_.toarray())
    np.testing.assert_array_equal(large.bias_[:100], small.bias_)


def test_the_transformer_draws_the_same_features(friedman):
    model = HARFERegressor(100, 10, input_scale="none", random_state=3)
    model.fit(friedman.X, friedman.y)
    features = SparseRandomFeatures(100, random_state=3).fit(friedman.X)
    np.testing.assert_array_equal(features.weights_.toarray(), model.weights_.toarray())


def test_the_same_bits_for_one_and_two_threads(friedman):
    available = numba.get_num_threads()
    if available < 2:
        pytest.skip("this machine has one core")
    models = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        models.append(HARFERegressor(2000, 100, random_state=0).fit(friedman.X, friedman.y))
    numba.set_num_threads(available)
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].feature_importances_, models[1].feature_importances_)


def test_a_small_memory_budget_recomputes_and_agrees(friedman, monkeypatch):
    made = []
    for home in (StoredProblem, RecomputedProblem):
        original = home.__init__

        def spy(self, *args, _original=original, **kwargs):
            made.append(type(self))
            _original(self, *args, **kwargs)

        monkeypatch.setattr(home, "__init__", spy)
    stored = HARFERegressor(5000, 50, random_state=0).fit(friedman.X, friedman.y)
    tight = HARFERegressor(5000, 50, random_state=0, memory_budget=5e6)
    tight.fit(friedman.X, friedman.y)
    assert made == [StoredProblem, RecomputedProblem]
    np.testing.assert_array_equal(stored.support_, tight.support_)
    np.testing.assert_allclose(stored.coef_, tight.coef_, atol=1e-10, rtol=1e-8)


def test_a_fit_that_cannot_fit_says_what_to_change(friedman):
    model = HARFERegressor(5000, 200, memory_budget=1000)
    with pytest.raises(MemoryError, match=r"of 200 features.*memory_budget is 1e\+03 bytes"):
        model.fit(friedman.X, friedman.y)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_learns(friedman, activation):
    model = HARFERegressor(1000, 60, activation=activation, alpha=1e-2, random_state=0)
    model.fit(friedman.X, friedman.y)
    prediction = model.predict(friedman.X)
    assert prediction.dtype == np.float64
    assert model.score(friedman.X, friedman.y) > 0.8
    assert np.iscomplexobj(model.coef_) == (activation == "exp")


def test_exp_features_with_real_y_predict_the_real_part(friedman):
    model = HARFERegressor(**SMALL, activation="exp").fit(friedman.X, friedman.y)
    z = np.exp(1j * (friedman.X @ model.weights_.toarray() + model.bias_))
    expected = (z @ model.coef_).real + model.intercept_
    np.testing.assert_allclose(model.predict(friedman.X), expected, atol=1e-10)


@pytest.mark.parametrize("activation", ["sin", "exp"])
def test_complex_targets(activation):
    data = make_additive(
        400, 5, order=2, n_terms=3, complex_valued=True, noise=0.01, random_state=0
    )
    model = HARFERegressor(1500, 150, activation=activation, alpha=1e-5, random_state=0)
    model.fit(data.X, data.y)
    prediction = model.predict(data.X)
    assert np.iscomplexobj(prediction)
    error = np.sum(np.abs(data.y - prediction) ** 2)
    spread = np.sum(np.abs(data.y - data.y.mean()) ** 2)
    assert model.score(data.X, data.y) == pytest.approx(1 - error / spread)
    assert model.score(data.X, data.y) > 0.95


def test_complex_score_counts_rows_by_weight():
    data = make_additive(60, 3, order=1, n_terms=2, complex_valued=True, random_state=0)
    model = HARFERegressor(**SMALL).fit(data.X, data.y)
    weights = np.arange(60) % 3
    rows = np.repeat(np.arange(60), weights)
    assert model.score(data.X, data.y, sample_weight=weights) == pytest.approx(
        model.score(data.X[rows], data.y[rows])
    )


def test_several_targets_share_the_support(friedman):
    Y = np.column_stack([friedman.y, 1000 * friedman.X[:, 3], -friedman.y])
    model = HARFERegressor(**SMALL).fit(friedman.X, Y)
    assert model.coef_.shape == (3, 300)
    assert model.intercept_.shape == (3,)
    assert model.predict(friedman.X).shape == (200, 3)
    np.testing.assert_array_equal(np.flatnonzero(np.any(model.coef_ != 0, axis=0)), model.support_)
    np.testing.assert_allclose(model.coef_[0], -model.coef_[2], rtol=1e-9)
    scaled = HARFERegressor(**SMALL).fit(friedman.X, Y * [1, 1e-6, 1])
    np.testing.assert_array_equal(scaled.support_, model.support_)
    assert model.score(friedman.X, Y) > 0.8


def test_one_target_in_a_column_keeps_its_column(friedman):
    flat = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    column = HARFERegressor(**SMALL).fit(friedman.X, friedman.y[:, None])
    assert column.predict(friedman.X).shape == (200, 1)
    np.testing.assert_array_equal(column.coef_[0], flat.coef_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_give_names(friedman, frame):
    names = [f"age{j}" for j in range(10)]
    table = frame({name: friedman.X[:, j] for j, name in enumerate(names)})
    model = HARFERegressor(**SMALL, interaction_cst=[{"age0", "age1"}, {"age2"}])
    model.fit(table, friedman.y)
    assert model.feature_names_in_.tolist() == names
    assert model.expansion_.columns == tuple(names)
    assert all("age" in name for name in model.expansion_.names())
    plain = HARFERegressor(**SMALL, interaction_cst=[{0, 1}, {2}]).fit(friedman.X, friedman.y)
    np.testing.assert_array_equal(model.predict(table), plain.predict(friedman.X))
    used = [set(row[row >= 0]) for row in model.expansion_.features.indices]
    assert all(s <= {0, 1} or s == {2} or s <= set(range(3, 10)) for s in used)


def test_warm_start_from_coefficients_stays_where_it_is(friedman):
    first = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    second = HARFERegressor(**SMALL, init=first.coef_).fit(friedman.X, friedman.y)
    assert first.stop_reason_ is StopReason.FIXED_POINT
    np.testing.assert_array_equal(second.support_, first.support_)
    assert second.n_iter_ == 1


def test_too_few_rounds_warn_with_advice(friedman):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        model = HARFERegressor(**SMALL, max_iter=1).fit(friedman.X, friedman.y)
    assert model.stop_reason_ is StopReason.MAX_ITER


def test_noise_level_stops_the_pursuit(friedman):
    model = HARFERegressor(**SMALL, noise_level=friedman.y.std()).fit(friedman.X, friedman.y)
    assert model.stop_reason_ is StopReason.RESIDUAL
    assert model.n_iter_ == 1


def test_fraction_and_auto_sizes(friedman):
    model = HARFERegressor(400, 0.05).fit(friedman.X, friedman.y)
    assert model.n_nonzero_coefs_ == 20
    everything = HARFERegressor(50, 1.0).fit(friedman.X, friedman.y)
    assert everything.n_nonzero_coefs_ == 50
    least = HARFERegressor(50, 1e-9).fit(friedman.X, friedman.y)
    assert least.n_nonzero_coefs_ == 1
    tiny = HARFERegressor(5).fit(friedman.X, friedman.y)
    assert 1 <= tiny.n_nonzero_coefs_ <= 5


def test_importances_find_the_inputs_and_their_order():
    """Of the variance 10 x4 has 35 %, 20 (x3 - 1/2)² 9 %, although its slope is twice as steep."""
    data = make_function("friedman1", 500, random_state=1)
    model = HARFERegressor(random_state=0).fit(data.X, data.y)
    shares = model.feature_importances_
    assert set(np.argsort(-shares)[:5]) == {0, 1, 2, 3, 4}
    assert shares[3] == pytest.approx(0.35, abs=0.05)
    assert shares[2] == pytest.approx(0.09, abs=0.04)
    np.testing.assert_array_equal(shares, model.explain().sobol["total"])
    assert np.argsort(-shares, kind="stable")[0] == 3
    assert model.explain().ranking["variable"][0] == "x3"


def test_importances_belong_to_the_latest_fit(friedman):
    model = HARFERegressor(**SMALL)
    assert not hasattr(model, "feature_importances_")
    model.fit(friedman.X, np.sin(3 * friedman.X[:, 0]))
    assert model.feature_importances_.argmax() == 0
    model.fit(friedman.X, np.sin(3 * friedman.X[:, 7]))
    assert model.feature_importances_.argmax() == 7


def test_importances_of_dependent_inputs_give_no_warning(friedman):
    X = np.column_stack([friedman.X[:, 0], friedman.X[:, 0] + 1e-9, friedman.X[:, 1]])
    model = HARFERegressor(**SMALL).fit(X, friedman.y)
    shares = model.feature_importances_
    with pytest.warns(UserWarning, match="correlated"):
        np.testing.assert_array_equal(shares, model.explain().sobol["total"])


@pytest.mark.parametrize("activation", ["sin", "tanh", "relu", "exp"])
def test_importances_of_several_targets_are_the_mean(friedman, activation):
    y = np.column_stack([friedman.y, 1e3 * friedman.X[:, 6], np.full(200, 7.0)])
    model = HARFERegressor(**SMALL, activation=activation).fit(friedman.X, y)
    totals = [model.explain(target=t).sobol["total"] for t in (0, 1)]
    np.testing.assert_allclose(model.feature_importances_, np.mean(totals, axis=0), rtol=1e-12)


# --- input that must just work -------------------------------------------------------------------


@pytest.mark.parametrize("input_scale", ["standard", "robust", "none"])
@pytest.mark.parametrize("activation", ["sin", "relu", "exp"])
@pytest.mark.parametrize(
    "column",
    [
        np.zeros(200),
        np.full(200, 7.25),
        np.full(200, 1e300),
        np.linspace(-1e300, 1e300, 200),
        np.linspace(1e-300, 2e-300, 200),
        1e12 + np.linspace(0, 1e-3, 200),
        np.r_[np.zeros(199), 1.0],
    ],
    ids=["zeros", "constant", "huge constant", "huge", "tiny", "offset", "one value"],
)
def test_odd_columns_give_finite_predictions(friedman, column, activation, input_scale):
    X = np.column_stack([friedman.X[:, :4], column, friedman.X[:, 0]])
    model = HARFERegressor(**SMALL, activation=activation, input_scale=input_scale)
    prediction = model.fit(X, friedman.y).predict(X)
    assert np.all(np.isfinite(prediction))
    assert np.all(np.isfinite(model.feature_importances_))
    assert model.score(X, friedman.y) > 0.3


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_other_number_types(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (100, 3)).astype(dtype)
    y = X[:, 0].astype(float) - 2 * X[:, 1]
    model = HARFERegressor(**SMALL, alpha=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_targets_of_any_size(friedman, size):
    plain = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    scaled = HARFERegressor(**SMALL).fit(friedman.X, friedman.y * size)
    np.testing.assert_allclose(
        scaled.predict(friedman.X) / size, plain.predict(friedman.X), rtol=1e-7
    )


def test_constant_inputs_and_constant_target(friedman):
    flat = HARFERegressor(**SMALL).fit(np.ones((50, 3)), friedman.y[:50])
    np.testing.assert_allclose(flat.predict(np.ones((2, 3))), friedman.y[:50].mean())
    assert len(flat.support_) == 0
    assert flat.n_iter_ >= 1
    constant = HARFERegressor(**SMALL).fit(friedman.X, np.full(200, 3.0))
    np.testing.assert_allclose(constant.predict(friedman.X), 3.0)


@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(2, 40),
    columns=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
def test_any_finite_table_gives_finite_predictions(rows, columns, seed, data):
    numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.int64]))
    X = data.draw(arrays(np.float64, (rows, columns), elements=numbers)).astype(dtype)
    y = data.draw(arrays(np.float64, rows, elements=numbers))
    model = HARFERegressor(40, 5, random_state=seed).fit(X, y)
    prediction = model.predict(X)
    assert prediction.shape == (rows,)
    assert np.all(np.isfinite(prediction))
    assert np.mean((y - prediction) ** 2) <= np.var(y) * (1 + 1e-9) + 1e-9


# --- input that must be refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_components": 0}, ["n_components=0", "at least 1", "n_components=1000"]),
        ({"n_components": "many"}, ["n_components='many'", "auto"]),
        ({"n_components": 10, "n_nonzero_coefs": 11}, ["n_nonzero_coefs=11", "n_components=10"]),
        ({"n_nonzero_coefs": 0}, ["n_nonzero_coefs=0", "at least 1"]),
        ({"n_nonzero_coefs": 1.5}, ["n_nonzero_coefs=1.5", "at most 1"]),
        ({"n_nonzero_coefs": -0.5}, ["n_nonzero_coefs=-0.5", "above 0"]),
        ({"n_nonzero_coefs": "few"}, ["n_nonzero_coefs='few'"]),
        ({"order": 11}, ["order=11", "10", "order=10"]),
        ({"order": 0}, ["order=0", "order=2"]),
        ({"order": (1, 2.5)}, ["order=2.5"]),
        ({"alpha": -1.0}, ["alpha=-1.0", ">= 0"]),
        ({"alpha": np.nan}, ["alpha=nan"]),
        ({"activation": "sine"}, ["activation='sine'", ", ".join(ACTIVATIONS)]),
        ({"weights": "gauss"}, ["weights='gauss'", ", ".join(WEIGHT_LAWS)]),
        ({"bias": True}, ["bias=True", "phase, uniform, none"]),
        ({"scale": 0.0}, ["scale=0.0", "positive"]),
        ({"scale": [1.0, 2.0]}, ["scale=[1.0, 2.0]", "10 inputs"]),
        ({"scale": "wide"}, ["scale='wide'", "number"]),
        ({"variable_weights": [-1.0] * 10}, ["variable_weights", "-1.0", ">= 0"]),
        ({"variable_weights": [0.0] * 10}, ["variable_weights", "leaves 0 inputs"]),
        ({"variable_weights": [1.0] * 3}, ["variable_weights", "10 inputs"]),
        ({"interaction_cst": [{"age"}]}, ["interaction_cst", "'age'", "no column names"]),
        ({"interaction_cst": [{12}]}, ["interaction_cst", "12", "0 to 9"]),
        ({"interaction_cst": "triples"}, ["interaction_cst='triples'", "pairwise"]),
        ({"interaction_cst": 3}, ["interaction_cst=3", "[{0, 1}, {2}]"]),
        ({"init": "random"}, ["init='random'", "zero"]),
        ({"init": np.zeros(7)}, ["init", "(7,)"]),
        ({"init": ["a"] * 2000}, ["init", "type", "zero"]),
        ({"init": np.full(2000, 1j)}, ["init", "complex128", "float64"]),
        ({"init": np.full(2000, np.nan)}, ["init", "finite"]),
        ({"step_size": 0}, ["step_size=0", "normalized"]),
        ({"step_size": "large"}, ["step_size='large'", "normalized"]),
        ({"max_iter": 0}, ["max_iter=0"]),
        ({"tol": -1e-3}, ["tol=-0.001"]),
        ({"noise_level": -1}, ["noise_level=-1"]),
        ({"input_scale": "minmax"}, ["input_scale='minmax'", "standard, robust, none"]),
        ({"column_scale": "l2"}, ["column_scale='l2'", "rms, none"]),
        ({"memory_budget": 0}, ["memory_budget=0", "bytes"]),
        ({"memory_budget": "lots"}, ["memory_budget='lots'", "auto"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_settings_are_refused_before_any_work(friedman, monkeypatch, settings, words):
    def no_work(*_args, **_kwargs):
        raise AssertionError("the fit began to work")

    if not np.iscomplexobj(settings.get("init")):  # whether that is wrong, the problem knows
        monkeypatch.setattr("harfe.selection.recipe.make_problem", no_work)
    with pytest.raises(ValueError, match=r".") as error:
        HARFERegressor(**settings).fit(friedman.X, friedman.y)
    for word in words:
        assert word in str(error.value)


def spoil(X, value):
    X = X.astype(object) if isinstance(value, str) else X.copy()
    X[3, 1] = value
    return X


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: (spoil(X, np.nan), y), ["X contains NaN"]),
        (lambda X, y: (spoil(X, np.inf), y), ["X contains infinity"]),
        (lambda X, y: (spoil(X, "red"), y), ["X holds text in column 1", "'red'", "OneHotEncoder"]),
        (lambda X, y: (X[:, 0], y), ["Expected 2D array", "reshape"]),
        (lambda X, y: (X, y[:-1]), ["X has 200 rows but y has 199"]),
        (lambda X, y: (X[:0], y[:0]), ["0 sample(s)", "minimum of 2"]),
        (lambda X, y: (X[:1], y[:1]), ["1 sample(s)", "minimum of 2"]),
        (lambda X, y: (X[:, :0], y), ["0 feature(s)"]),
        (lambda X, y: (X, np.where(y > 20, np.nan, y)), ["y contains NaN"]),
        (lambda X, y: (X, np.where(y > 20, np.inf, y) + 0j), ["y contains infinity"]),
        (lambda X, y: (X, y.reshape(50, 2, 2)), ["dim 3"]),
        (lambda X, y: (X, None), ["y is None"]),
        (lambda X, y: (X, y, -np.ones(200)), ["sample_weight", "-1.0", ">= 0"]),
        (lambda X, y: (X, y, np.zeros(200)), ["sample_weight", "0 rows", "None"]),
        (lambda X, y: (X, y, np.eye(200)[0]), ["sample_weight", "1 rows"]),
        (lambda X, y: (X, y, np.ones(5)), ["sample_weight.shape == (5,)", "(200,)"]),
    ],
)
def test_impossible_data_are_refused(friedman, make, words):
    with pytest.raises(ValueError, match=r".") as error:
        HARFERegressor(**SMALL).fit(*make(friedman.X, friedman.y))
    for word in words:
        assert word in str(error.value)


def test_text_in_a_frame_is_named_by_its_column():
    table = pd.DataFrame({"size": [1.0, 2.0, 3.0], "city": ["Ulm", "Bonn", "Trier"]})
    with pytest.raises(ValueError, match=r"column 'city', e\.g\. 'Ulm'"):
        HARFERegressor().fit(table, [1.0, 2.0, 3.0])


def test_text_as_target_is_refused(friedman):
    with pytest.raises(ValueError, match=r"y holds text .*'low'.*numbers"):
        HARFERegressor().fit(friedman.X, ["low"] * 200)


def test_an_unknown_column_name_lists_the_columns(friedman):
    table = pd.DataFrame(friedman.X[:, :2], columns=["age", "bmi"])
    with pytest.raises(ValueError, match="'agee', which X does not have; its columns are age, bmi"):
        HARFERegressor(interaction_cst=[{"agee"}]).fit(table, friedman.y)


def test_other_columns_at_prediction_are_refused(friedman):
    names = [f"v{j}" for j in range(10)]
    table = pd.DataFrame(friedman.X, columns=names)
    model = HARFERegressor(**SMALL).fit(table, friedman.y)
    with pytest.raises(ValueError, match="9 features"):
        HARFERegressor(**SMALL).fit(friedman.X, friedman.y).predict(friedman.X[:, :9])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.rename(columns={"v0": "w0"}))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(table.assign(v0=np.nan))


def test_one_number_weighs_all_rows(friedman):
    plain = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    weighted = HARFERegressor(**SMALL).fit(friedman.X, friedman.y, sample_weight=1.0)
    np.testing.assert_array_equal(weighted.coef_, plain.coef_)


def test_bits_do_not_depend_on_the_threads_of_blas():
    # means over many rows are sums that BLAS would split by threads
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(70_000, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + rng.normal(size=70_000)
    models = []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads, user_api="blas"):
            models.append(HARFERegressor(100, 10, random_state=0).fit(X, y))
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].bias_, models[1].bias_)


# --- what a stranger runs first -------------------------------------------------------------------


@pytest.mark.slow
def test_the_demo_prints_its_account(capsys):
    demo.main()
    printed = capsys.readouterr().out
    found = "learned from the data: features of x1, x2, x3, x4, x5"
    for word in ("rows", "inputs", found, "N =", "s =", "always mean", "90 %"):
        assert word in printed
    lines = printed.splitlines()
    start = lines.index("Mean squared error") + 1
    error = {line[:14].strip(): float(line[14:]) for line in lines[start : start + 4]}
    assert error["noise alone"] < error["test"] < 0.2 * error["always mean"]
    shown = [line.split() for line in lines if line.startswith("  x")]
    assert {words[0] for words in shown[:5]} == {"x1", "x2", "x3", "x4", "x5"}
    bars = [len(words[2]) if len(words) > 2 else 0 for words in shown]
    assert bars[0] > 0
    assert all(a >= b for a, b in pairwise(bars))


@pytest.mark.slow
def test_the_next_step_of_the_demo_runs(tmp_path, capsys):
    demo.main()
    printed = capsys.readouterr().out
    code = textwrap.dedent(printed[printed.index("    import numpy") :])
    data = make_function("friedman1", 60, random_state=0)
    table = np.column_stack([data.X, data.y])
    np.savetxt(tmp_path / "data.csv", table, delimiter=",", header="names", comments="")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "which columns matter: [0." in done.stdout


@pytest.mark.slow
def test_the_examples_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    names = {}
    for block in readme.split("```python")[1:]:
        exec(block.split("```")[0], names)
    # Training multiplies rounding: another processor ends at other digits of the same form.
    form = r"sin\((-?[\d.]+\*x\d [+-] )+[\d.]+\)"
    shown = re.search(rf"expansion_\.names\(\)\[:3\]  # '({form})'", readme)
    assert shown
    assert re.fullmatch(form, names["model"].expansion_.names()[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.harfe", "model.onnx"]


# --- Many rows ---


def test_features_are_chosen_on_some_rows_and_coefficients_fitted_to_all(friedman):
    X, y = friedman.X, friedman.y
    model = HARFERegressor(200, 15, selection_rows=60, random_state=0).fit(X, y)
    same = HARFERegressor(200, 15, selection_rows=60, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.support_, same.support_)
    assert not np.array_equal(
        model.support_, HARFERegressor(200, 15, random_state=0).fit(X, y).support_
    )
    A = model.expansion_.evaluate_features(X)
    scale = A.std(axis=0)
    B = (A - A.mean(axis=0)) / scale
    c = np.linalg.solve(B.T @ B / len(y) + 1e-3 * np.eye(15), B.T @ (y - y.mean()) / len(y))
    np.testing.assert_allclose(model.coef_[model.support_], c / scale, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), y.mean() + B @ c, rtol=1e-9)


def test_a_sample_of_all_rows_changes_nothing(friedman):
    X, y = friedman.X, friedman.y
    for rows in (None, "auto", len(y), 10 * len(y)):
        model = HARFERegressor(200, 15, selection_rows=rows, random_state=0).fit(X, y)
        np.testing.assert_array_equal(
            model.coef_, HARFERegressor(200, 15, random_state=0).fit(X, y).coef_
        )


def test_features_of_many_rows_are_chosen_on_a_sample(monkeypatch, friedman):
    X, y = friedman.X, friedman.y
    explicit = HARFERegressor(200, 15, selection_rows=60, random_state=0).fit(X, y)
    monkeypatch.setattr("harfe.estimators.regressor.MANY_ROWS", len(y) - 1)
    monkeypatch.setattr("harfe.estimators.regressor.SELECTION_ROWS", 60)
    model = HARFERegressor(200, 15, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, explicit.coef_)


@pytest.mark.parametrize("rows", [0, -1, 2.5, "all"])
def test_bad_numbers_of_selection_rows(rows, friedman):
    with pytest.raises(ValueError, match=r"selection_rows=.*None, 'auto' or a whole number"):
        HARFERegressor(selection_rows=rows).fit(friedman.X, friedman.y)


def test_progress_counts_fits_and_rounds(monkeypatch, friedman, capsys):
    settings = {"residual_cv": 2, "verbose": True, "random_state": 0}
    HARFERegressor(100, 10, **settings).fit(friedman.X, friedman.y)
    assert "fits" not in capsys.readouterr().err  # it takes less than two seconds
    clock = iter(np.arange(0.0, 1e6, 11.0))
    monkeypatch.setattr("harfe._core.progress.time.monotonic", lambda: float(next(clock)))
    HARFERegressor(100, 10, **settings).fit(friedman.X, friedman.y)
    lines = [line for line in capsys.readouterr().err.splitlines() if "fits" in line]
    assert lines[0].startswith("harfe: 0 of 3 fits, ")
    assert lines[0].endswith(" s left, round 1")
    assert any(line.startswith("harfe: 2 of 3 fits, ") for line in lines)
    assert lines[-1] == "harfe: 3 of 3 fits, 0 s left"
