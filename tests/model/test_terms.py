"""Terms: grouping, values that sum to the prediction, a budget of terms."""

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from shared import FORMULAS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from harfe import Expansion, HARFERegressor, HARFERegressorCV
from harfe.features.pool import FeaturePool
from harfe.features.units import InputMap
from harfe.model.terms import (
    eval_terms,
    feature_sets,
    group_features,
    index_sets,
    term_names,
    term_strengths,
    term_values,
)

# Sets: {1}, {0, 2}, {1} (the other weight is 0), none, {0, 1, 2}, {0, 2}, {0}
INDICES = [[1, -1, -1], [0, 2, -1], [1, 2, -1], [0, 1, -1], [0, 1, 2], [0, 2, -1], [0, -1, -1]]
VALUES = [[2, 0, 0], [1, -1, 0], [0.5, 0, 0], [0, 0, 0], [1, 2, 3], [0.1, 0.2, 0], [3, 0, 0]]
TERMS = {(): [3], (0,): [6], (1,): [0, 2], (0, 2): [1, 5], (0, 1, 2): [4]}


def by_hand(activation="sin", targets=1, complex_output=False, bounds=None):
    rng = np.random.default_rng(0)
    pool = FeaturePool(3, np.array(INDICES), np.array(VALUES, float), np.arange(7.0), activation)
    coef, intercept = rng.normal(size=(targets, 7)), rng.normal(size=targets)
    if complex_output or activation == "exp":
        coef = coef + 1j * rng.normal(size=coef.shape)
    if complex_output:
        intercept = intercept + 1j
    return Expansion(pool, coef, intercept, ("age", "bmi", "s"), complex_output, bounds)


def test_grouping_by_hand():
    expansion = by_hand()
    assert feature_sets(expansion.features) == [(1,), (0, 2), (1,), (), (0, 1, 2), (0, 2), (0,)]
    assert index_sets(expansion.features) == list(TERMS)
    groups = group_features(expansion)
    assert list(groups) == list(TERMS)
    assert [places.tolist() for places in groups.values()] == list(TERMS.values())
    assert term_names(expansion) == ["constant", "age", "bmi", "age : s", "age : bmi : s"]


@pytest.mark.parametrize("activation", FORMULAS)
@pytest.mark.parametrize("complex_output", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_terms_by_formula(activation, complex_output, targets):
    lower, upper = np.array([-1.0, -np.inf, -np.inf]), np.array([0.5, np.inf, 1.0])
    expansion = by_hand(activation, targets, complex_output, InputMap(lower, upper))
    X = np.random.default_rng(1).normal(size=(30, 3)) * 2
    phi = FORMULAS[activation](
        np.clip(X, lower, upper) @ expansion.features.weights().toarray() + np.arange(7.0)
    )
    expected = np.stack(
        [phi[:, places] @ expansion.coef[:, places].T for places in TERMS.values()], axis=1
    )
    if not complex_output:
        expected = expected.real
    values = eval_terms(expansion, X)
    np.testing.assert_allclose(
        values, expected[:, :, 0] if targets == 1 else expected, rtol=0, atol=1e-12
    )
    total = term_values(expansion, X).sum(axis=1) + expansion.intercept
    np.testing.assert_allclose(total, expansion.predict(X), rtol=0, atol=1e-10)


def test_no_features_make_no_terms():
    none = replace(by_hand(), features=by_hand().features.take(slice(0)), coef=np.empty((1, 0)))
    assert term_names(none) == []
    assert eval_terms(none, np.ones((4, 3))).shape == (4, 0)


def test_strength_is_the_weighted_variance():
    expansion = by_hand(targets=2)
    rng = np.random.default_rng(2)
    X, weights = rng.normal(size=(50, 3)), rng.integers(1, 4, 50)
    unit = np.array([2.0, 5.0])
    values = np.repeat(term_values(expansion, X), weights, axis=0)
    expected = (values.var(axis=0) / unit**2).sum(axis=1)
    np.testing.assert_allclose(
        term_strengths(expansion, X, weights.astype(float), unit), expected, rtol=1e-12, atol=1e-30
    )


def additive(n=150, seed=0, noise=0.0):
    """Three of seven inputs matter, each alone; the first most."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 7))
    y = 3 * np.sin(X[:, 2]) + np.cos(2 * X[:, 5]) + 0.4 * X[:, 0]
    return X, y + noise * rng.normal(size=n)


def fitted(X, y, sample_weight=None, **settings):
    settings = {"n_components": 300, "n_nonzero_coefs": 25, "order": 1, **settings}
    return HARFERegressor(random_state=0, **settings).fit(X, y, sample_weight)


@pytest.mark.parametrize("shape", ["(n,)", "(n, 1)", "(n, 2)", "complex"])
def test_method_sums_to_the_prediction(shape):
    X, y = additive(2500)  # more rows than a block
    targets = {"(n, 1)": y[:, None], "(n, 2)": np.stack([y, X[:, 1] ** 2], 1), "complex": y * 1j}
    model = fitted(X, targets.get(shape, y), order=(1, 2))
    values = model.eval_terms(X)
    prediction = model.predict(X)
    assert values.shape == (len(X), len(model.term_names_), *prediction.shape[1:])
    total = values.sum(axis=1) + model.intercept_
    np.testing.assert_allclose(total, prediction, rtol=0, atol=1e-10)


def test_names_of_columns():
    X, y = additive()
    model = fitted(pd.DataFrame(X, columns=list("abcdefg")), y, order=2, n_nonzero_coefs=5)
    sets = feature_sets(model.expansion_.features)
    pairs = {" : ".join("abcdefg"[k] for k in u) for u in sets}
    assert set(model.term_names_) == pairs
    assert len(model.term_names_) == len(pairs)


def test_the_strongest_terms_are_kept():
    X, y = additive(noise=0.2)
    model = fitted(X, y)
    assert len(model.term_names_) > 3
    assert model.keep_terms(1, X, y).term_names_ == ["x2"]
    assert model.keep_terms(2, X, y).term_names_ == ["x2", "x5"]
    assert model.keep_terms(3, X, y).term_names_ == ["x0", "x2", "x5"]


def test_a_planted_interaction_is_kept():
    X = np.random.default_rng(0).uniform(-2, 2, size=(200, 6))
    y = np.sin(X[:, 1] * X[:, 4])
    model = fitted(X, y, order=2, n_components=1000)
    assert model.keep_terms(1, X, y).term_names_ == ["x1 : x4"]


def test_every_target_counts_in_its_own_units():
    X, _ = additive(noise=0.1)
    y = np.stack([1e6 * (np.sin(X[:, 0]) + 0.3 * np.cos(X[:, 1])), np.sin(X[:, 3])], axis=1)
    assert fitted(X, y).keep_terms(2, X, y).term_names_ == ["x0", "x3"]


def dense_ridge(phi, y, weights, alpha, fit_intercept, scaled):
    """Coefficients and intercept by a dense solve."""
    share = weights / weights.sum()
    mean = share @ phi if fit_intercept else np.zeros(phi.shape[1])
    centre = share @ y if fit_intercept else np.zeros(y.shape[1])
    A = phi - mean
    scale = np.sqrt(share @ np.abs(A) ** 2) if scaled else np.ones(phi.shape[1])
    A = A / scale
    gram = A.conj().T @ (share[:, None] * A) + alpha * np.eye(len(scale))
    c = np.linalg.solve(gram, A.conj().T @ (share[:, None] * (y - centre))) / scale[:, None]
    return c.T, centre - mean @ c


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("column_scale", ["rms", "none"])
@pytest.mark.parametrize("kind", ["real", "complex", "two"])
def test_all_terms_on_new_rows_are_a_dense_ridge(fit_intercept, column_scale, kind):
    X, y = additive(noise=0.1)
    new_X, new_y = additive(seed=1, noise=0.1)
    weights = np.random.default_rng(3).uniform(0.5, 3, len(X))
    if kind == "complex":
        y, new_y = y * (1 + 1j), new_y * (1 + 2j)
    if kind == "two":
        y, new_y = np.stack([y, y**2], 1), np.stack([new_y, new_y**2], 1)
    settings = {"fit_intercept": fit_intercept, "column_scale": column_scale, "alpha": 0.01}
    activation = "exp" if kind == "complex" else "sin"
    model = fitted(X, y, order=2, n_nonzero_coefs=9, activation=activation, **settings)
    new = model.keep_terms(1000, new_X, new_y, weights)
    coef, intercept = dense_ridge(
        model.expansion_.evaluate_features(new_X),
        new_y.reshape(len(y), -1),
        weights,
        0.01,
        fit_intercept,
        column_scale == "rms",
    )
    np.testing.assert_allclose(new.expansion_.coef, coef, rtol=1e-8)
    np.testing.assert_allclose(new.expansion_.intercept, intercept, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(new.support_, model.support_)


@pytest.mark.parametrize("outlier", [0.0, 1e5])
def test_all_terms_on_the_rows_of_the_fit_are_the_fit(outlier):
    X, y = additive(noise=0.1)
    X[0, 2] += outlier
    weights = np.random.default_rng(3).uniform(0.5, 3, len(X))
    model = fitted(X, y, weights, alpha=0.01)
    new = model.keep_terms(100, X, y, weights)
    np.testing.assert_allclose(new.coef_, model.coef_, rtol=1e-7)
    np.testing.assert_allclose(new.predict(X), model.predict(X), rtol=0, atol=1e-9)


def test_weight_two_is_the_row_twice_and_zero_is_none():
    X, y = additive(noise=0.1)
    model = fitted(X, y)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = model.keep_terms(4, X, y, weights)
    repeated = model.keep_terms(4, np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        weighted.feature_importances_, repeated.feature_importances_, rtol=1e-8
    )


def test_attributes_agree_and_the_original_stays():
    X, y = additive(noise=0.1)
    X[0, 0] = 1e5
    model = fitted(X, y)
    assert model.expansion_.map is not None
    assert np.count_nonzero(model.feature_importances_) > 3
    before = pickle.dumps(model)
    new = model.keep_terms(3, X, y)
    assert pickle.dumps(model) == before
    assert type(new) is type(model)
    assert new.get_params() == model.get_params()
    assert new.n_nonzero_coefs_ == len(new.support_) == np.count_nonzero(new.coef_)
    assert set(new.support_) < set(model.support_)
    assert new.n_components_ == model.n_components_ == len(new.coef_)
    clipped = new.expansion_.map.clip(X)
    dense = np.sin(clipped @ new.weights_.toarray() + new.bias_) @ new.coef_ + new.intercept_
    np.testing.assert_allclose(new.predict(X), dense, rtol=0, atol=1e-9)
    assert np.count_nonzero(new.feature_importances_) == 3
    again = pickle.loads(pickle.dumps(new)).keep_terms(1, X, y)
    assert again.term_names_ == ["x2"]
    assert clone(new).get_params() == model.get_params()


def test_fewer_terms_fit_no_better():
    X, y = additive(noise=0.3)
    model = fitted(X, y, alpha=0.0, init="graded")
    scores = [model.keep_terms(k, X, y).score(X, y) for k in range(1, len(model.term_names_) + 1)]
    assert scores[0] < scores[1] < scores[2]
    assert scores[-1] == pytest.approx(model.score(X, y), abs=1e-9)
    assert max(scores) <= scores[-1] + 1e-9


def test_uncertainty_is_not_taken_over():
    X, y = additive(noise=0.1)
    model = fitted(X, y, residual_cv=3)
    new = model.keep_terms(3, X, y)
    assert new.uncertainty_ is None
    assert model.uncertainty_ is not None
    with pytest.raises(ValueError, match="out-of-fold residuals"):
        new.predict(X, return_std=True)


def test_what_was_said_at_the_fit_is_not_said_again():
    X, y = additive(noise=0.1)
    with pytest.warns(ConvergenceWarning):
        model = fitted(X, y, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = model.keep_terms(3, X, y)
    assert new.stop_reason_ is model.stop_reason_
    assert new.n_iter_ == model.n_iter_ == 1


def test_constant_model_has_no_terms():
    X, y = np.ones((20, 2)), np.arange(20.0)
    model = HARFERegressor(random_state=0).fit(X, y)
    assert model.term_names_ == []
    np.testing.assert_allclose(model.keep_terms(1, X, y).predict(X[:2]), 9.5)


@pytest.fixture(scope="module")
def trained():
    """A model whose weights were trained, and its rows."""
    X, y = additive(60, noise=0.1)
    X = X[:, [0, 2, 5]]
    model = HARFERegressorCV(n_components=300, cv=2, n_nonzero_coefs=[8], random_state=0)
    return model.fit(X, y), X, y


def test_trained_features_stay_as_they_are(trained):
    model, X, y = trained
    assert model.fit_ == "refined"
    new = model.keep_terms(100, X, y)
    for name in ("indices", "values", "phases"):
        np.testing.assert_array_equal(
            getattr(new.expansion_.features, name), getattr(model.expansion_.features, name)
        )
    phi = model.expansion_.evaluate_features(X)
    coef, intercept = dense_ridge(phi, y[:, None], np.ones(len(X)), model.alpha_, True, True)
    np.testing.assert_allclose(new.expansion_.coef, coef, rtol=1e-6)
    np.testing.assert_allclose(new.expansion_.intercept, intercept, rtol=1e-6)
    fewer = model.keep_terms(2, X, y)
    assert len(fewer.term_names_) == 2
    assert set(fewer.term_names_) < set(model.term_names_)
    assert fewer.best_score_ == model.best_score_


@pytest.mark.parametrize("n_terms", [0, -1, 2.0, True, "all", None])
def test_bad_number_of_terms(n_terms):
    X, y = additive()
    message = f"n_terms={n_terms!r} must be a whole number of at least 1, e.g. n_terms=5"
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted(X, y).keep_terms(n_terms, X, y)


def test_other_targets_are_refused():
    X, y = additive()
    model = fitted(X, y)
    with pytest.raises(ValueError, match="y has 2 targets, but the model was fitted to 1"):
        model.keep_terms(2, X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="y is complex, but the model was fitted to real targets"):
        model.keep_terms(2, X, y * 1j)


def test_unfitted_models_say_so():
    X, y = additive()
    model = HARFERegressor()
    for call in (
        lambda: model.term_names_,
        lambda: model.eval_terms(X),
        lambda: model.keep_terms(1, X, y),
        lambda: model.formula(),
        lambda: model.stability(X, y),
    ):
        with pytest.raises(NotFittedError):
            call()
