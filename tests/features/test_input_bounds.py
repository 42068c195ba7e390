"""Bounds of the inputs: by hand, as repetitions, under affine maps, and what they save."""

import dataclasses
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from shared import FORMULAS

from harfe import HARFERegressor, datasets
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.features.units import InputMap, find_map
from harfe.model.expansion import Expansion

NORMAL_IQR = stats.norm.ppf(0.75) - stats.norm.ppf(0.25)


def column(*values):
    return np.array(values, dtype=float)[:, None]


def bounds_of(X, spreads=5.0, weights=None, keep_tails=False):
    weights = np.ones(len(X)) if weights is None else weights
    return find_map(X, weights, spreads, keep_tails=keep_tails)


def assert_infinite(bounds, d=1):
    assert bounds.lower.tolist() == [-np.inf] * d
    assert bounds.upper.tolist() == [np.inf] * d
    assert not bounds.finite.any()


# --- Finding them, by hand ---


@pytest.mark.parametrize("keep_tails", [False, True])
@pytest.mark.parametrize("spreads", [5.0, 2.5, 2, 1.5])
def test_bounds_are_robust_spreads_about_the_median(spreads, keep_tails):
    # ranks 1 .. 8 of 8: quartiles are the 2nd and 6th value, the median the 4th; without two values
    # on each side, the bulk ends at the quartiles
    bounds = bounds_of(column(70, 10, 30, 20, 60, 40, 1e6, 50), spreads, keep_tails=keep_tails)
    half = max(spreads * (60 - 20) / NORMAL_IQR, 3 * (60 - 40) * keep_tails)
    assert bounds.lower[0] == pytest.approx(40 - half, rel=1e-14)
    assert bounds.upper[0] == pytest.approx(40 + half, rel=1e-14)
    assert bounds.finite.tolist() == [True]


@pytest.mark.parametrize("outlier", [1e6, -1e6])
def test_an_outlier_on_either_side_bounds_both(outlier):
    bounds = bounds_of(column(1, 2, 3, 4, 5, 6, 7, outlier))
    assert np.isfinite([bounds.lower, bounds.upper]).all()
    assert bounds.lower[0] < 1
    assert bounds.upper[0] > 7


def test_only_inputs_with_outliers_are_bounded():
    X = np.random.default_rng(0).uniform(size=(100, 3))
    assert_infinite(bounds_of(X), 3)
    X[17, 1] = 40
    bounds = bounds_of(X)
    assert bounds.finite.tolist() == [False, True, False]
    np.testing.assert_array_equal(np.isfinite(bounds.lower), [False, True, False])
    np.testing.assert_array_equal(np.isfinite(bounds.upper), [False, True, False])


# ranks 3, 5 and 7 of 9 are quartiles and median; the bulk ends at rank 7
@pytest.mark.parametrize(
    ("spreads", "keep_tails", "upper"),
    [
        (2, False, 5 + 2 * (7 - 3) / NORMAL_IQR),
        (2, True, 11.0),
        (3, True, 5 + 3 * (7 - 3) / NORMAL_IQR),
    ],
)
def test_values_just_within_are_no_outliers(spreads, keep_tails, upper):
    body = np.arange(1.0, 9.0)
    within, beyond = (column(*body, upper * (1 + sign * 1e-12)) for sign in (-1, 1))
    assert_infinite(bounds_of(within, spreads, keep_tails=keep_tails))
    bounds = bounds_of(beyond, spreads, keep_tails=keep_tails)
    assert bounds.upper[0] == pytest.approx(upper, rel=1e-14)


def test_a_skewed_tail_may_be_kept():
    X = np.exp(1.2 * np.random.default_rng(0).normal(size=(2000, 1)))
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75])
    beyond = middle + 5 * (high - low) / NORMAL_IQR < X
    assert np.mean(beyond) > 0.01
    assert bounds_of(X).finite.all()
    assert_infinite(bounds_of(X, keep_tails=True))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_typing_error_among_the_rows_of_a_skewed_input_is_an_outlier(sign):
    X = sign * np.exp(np.random.default_rng(0).normal(size=(200, 1)))
    assert_infinite(bounds_of(X, keep_tails=True))
    ranked = np.sort(np.abs(X[:, 0]))
    X[17] = sign * 1e4
    bounds = bounds_of(X, keep_tails=True)
    bound = (bounds.upper if sign > 0 else -bounds.lower)[0]
    assert ranked[-1] < bound < 100
    # three in 200 are more than a hundredth
    X[[18, 19]] = sign * 1e4
    assert_infinite(bounds_of(X, keep_tails=True))


def test_the_bulk_is_all_but_a_hundredth_of_the_rows_on_each_side():
    # of 1000 rows, ten may be far above: the eleventh is part of the bulk
    x = np.append(np.linspace(-1, 1, 989), [100.0] * 11)[:, None]
    assert_infinite(bounds_of(x, keep_tails=True))
    x[-11] = 2.0
    bounds = bounds_of(x, keep_tails=True)
    assert bounds.finite.tolist() == [True]
    median, spread = np.sort(x[:, 0])[499], np.quantile(x, 0.75) - np.quantile(x, 0.25)
    assert bounds.upper[0] == pytest.approx(median + 3 * (2 - median), rel=1e-12)
    assert bounds.upper[0] > median + 5 * spread / NORMAL_IQR


def test_none_bounds_nothing():
    assert_infinite(bounds_of(column(1, 2, 3, 4, 5, 6, 7, 1e9), None))


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0, 1e300, 1e-300])
def test_a_constant_input_is_not_bounded(value):
    assert_infinite(bounds_of(np.full((20, 1), value), 1e-3))


def test_a_rare_second_value_goes_by_the_deviation():
    # the quartiles agree: p = 1/100 has deviation √(p(1-p)), and 1 is 10 of those away
    X = np.zeros((100, 1))
    X[3] = 1
    deviation = np.sqrt(0.01 * 0.99)
    bounds = bounds_of(X)
    assert bounds.upper[0] == pytest.approx(5 * deviation, rel=1e-13)
    assert bounds.lower[0] == pytest.approx(-5 * deviation, rel=1e-13)
    # a value of one row in twenty is within five deviations
    X[:5] = 1
    assert_infinite(bounds_of(X))
    X[:50] = 1
    assert_infinite(bounds_of(X))


# --- Relations ---


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32), rows=st.integers(4, 30))
def test_a_row_of_weight_two_is_the_row_twice(seed, rows):
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy(size=(rows, 3))
    times = rng.integers(1, 4, rows)
    weighted = bounds_of(X, 2.0, times.astype(float))
    repeated = bounds_of(np.repeat(X, times, axis=0), 2.0)
    np.testing.assert_array_equal(weighted.lower, repeated.lower)
    np.testing.assert_array_equal(weighted.upper, repeated.upper)


def test_weights_matter():
    X = column(1, 2, 3, 4, 5, 6, 7, 100)
    assert bounds_of(X).finite[0]
    assert not bounds_of(X, weights=np.array([1, 1, 1, 1, 1, 1, 1, 9.0])).finite[0]


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**32),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-1e3, 1e3),
)
def test_bounds_follow_an_affine_map(seed, scale, shift):
    X = np.random.default_rng(seed).standard_cauchy(size=(40, 2))
    one, other = bounds_of(X, 3.0), bounds_of(scale * X + shift, 3.0)
    np.testing.assert_array_equal(one.finite, other.finite)
    size = scale * np.abs(X).max() + abs(shift)
    np.testing.assert_allclose(other.lower, scale * one.lower + shift, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(other.upper, scale * one.upper + shift, rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("size", [1e300, 1e-300, 1.0])
def test_inputs_of_any_size(size):
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    X[0, 0] = 90
    bounds, scaled = bounds_of(X), bounds_of(X * size)
    assert bounds.finite.tolist() == [True, False]
    np.testing.assert_allclose(scaled.lower / size, bounds.lower, rtol=1e-12)
    np.testing.assert_allclose(scaled.upper / size, bounds.upper, rtol=1e-12)


@pytest.mark.parametrize("spreads", [5.0, 1e300])
def test_bounds_beyond_the_largest_number_are_none(spreads):
    X = column(*(1e307 * np.linspace(-9, 9, 9)))
    assert_infinite(bounds_of(X, spreads))


@pytest.mark.parametrize("outlier", [1e3, 1e6, 1e12, 1e14, 1e20, 1e36, 1e300])
def test_the_size_of_an_outlier_does_not_matter(outlier):
    X = np.random.default_rng(0).normal(size=(100, 1))
    X[0] = 50
    expected = bounds_of(X)
    X[0] = outlier
    found = bounds_of(X)
    np.testing.assert_array_equal(found.upper, expected.upper)
    np.testing.assert_array_equal(found.lower, expected.lower)


# --- Clipping ---


def test_clip_and_inside_by_hand():
    bounds = InputMap(np.array([-1.0, -np.inf, 0.0]), np.array([2.0, np.inf, np.inf]))
    X = np.array([[-3.0, -1e9, -0.5], [2.0, 1e9, 7.0], [5.0, 0.0, 0.0]])
    np.testing.assert_array_equal(
        bounds.clip(X), [[-1.0, -1e9, 0.0], [2.0, 1e9, 7.0], [2.0, 0.0, 0.0]]
    )
    assert bounds.inside(X).tolist() == [
        [False, True, False],
        [True, True, True],
        [False, True, True],
    ]
    assert bounds.finite.tolist() == [True, False, True]
    np.testing.assert_array_equal(
        bounds.clip(X[:, [2, 0]], np.array([2, 0])), [[0.0, -1.0], [7.0, 2.0], [0.0, 2.0]]
    )
    np.testing.assert_array_equal(X[0], [-3.0, -1e9, -0.5])


def test_where_nothing_can_change_the_rows_are_not_copied():
    bounds = InputMap(np.array([-np.inf, 0.0]), np.array([np.inf, 1.0]))
    X = np.array([[-3.0], [5.0]])
    assert bounds.clip(X, np.array([0])) is X
    assert bounds.clip(X, np.array([1])).tolist() == [[0.0], [1.0]]


# --- The fitted function ---

BOUNDS = InputMap(np.array([-0.5, -np.inf, -1.0, -0.7]), np.array([0.5, np.inf, np.inf, 0.2]))


def some_expansion(activation="sin", complex_output=False, bounds=BOUNDS, s=9):
    rng = np.random.default_rng(0)
    pool = FeatureLaw(4, orders=(1, 2, 3), activation=activation).draw(s, rng)
    coef, intercept = rng.normal(size=(2, s)), rng.normal(size=2)
    if complex_output:
        coef = coef + 1j * rng.normal(size=coef.shape)
    return Expansion(pool, coef, intercept, ("a", "b", "c", "d"), complex_output, bounds)


def formula(expansion, X):
    """Intercept + Σ c φ(<clip(x), w> + b), dense."""
    X = np.clip(X, expansion.map.lower, expansion.map.upper)
    z = X @ expansion.features.weights().toarray() + expansion.features.phases
    f = expansion.intercept + FORMULAS[expansion.features.activation](z) @ expansion.coef.T
    return f if expansion.complex_output else f.real


every_activation = pytest.mark.parametrize("activation", FORMULAS)
real_or_complex = pytest.mark.parametrize("complex_output", [False, True])


@every_activation
@real_or_complex
def test_prediction_is_that_of_clipped_inputs(activation, complex_output):
    expansion = some_expansion(activation, complex_output)
    unbounded = dataclasses.replace(expansion, map=None)
    X = np.random.default_rng(1).normal(size=(60, 4))
    clipped = np.clip(X, BOUNDS.lower, BOUNDS.upper)
    before = X.copy()
    f = expansion.predict(X)
    np.testing.assert_allclose(f, formula(expansion, X), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(f, unbounded.predict(clipped))
    assert np.abs(f - unbounded.predict(X)).max() > 0.1
    np.testing.assert_array_equal(
        expansion.evaluate_features(X), unbounded.evaluate_features(clipped)
    )
    np.testing.assert_array_equal(X, before)


def test_bounds_belong_to_their_inputs_where_some_do_not_occur():
    # only b and d are in the features
    pool = FeaturePool(
        4, np.array([[1, 3], [3, -1]]), np.array([[1.0, 2.0], [3.0, 0.0]]), np.zeros(2)
    )
    expansion = Expansion(pool, np.ones((1, 2)), np.zeros(1), ("a", "b", "c", "d"), False, BOUNDS)
    X = np.array([[9.0, 9.0, 9.0, 9.0], [-9.0, -9.0, -9.0, -9.0]])
    expected = [np.sin(9 + 0.4) + np.sin(0.6), np.sin(-9 - 1.4) + np.sin(-2.1)]
    np.testing.assert_allclose(expansion.predict(X)[:, 0], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("rows", [0, 1, 2049])
def test_any_number_of_rows(rows):
    expansion = some_expansion()
    X = np.random.default_rng(1).normal(size=(rows, 4))
    np.testing.assert_allclose(expansion.predict(X), formula(expansion, X), rtol=0, atol=1e-13)
    gradient = expansion.gradient(X)
    assert gradient.shape == (2, rows, 4)
    np.testing.assert_array_equal(
        gradient[:, ~BOUNDS.inside(X)], np.zeros((2, np.sum(~BOUNDS.inside(X))))
    )


@pytest.mark.parametrize("activation", ["sin", "cos", "tanh", "sigmoid", "exp"])
@real_or_complex
def test_the_gradient_is_zero_beyond_and_a_finite_difference_within(activation, complex_output):
    expansion = some_expansion(activation, complex_output)
    X = np.random.default_rng(1).normal(size=(50, 4))
    gradient = expansion.gradient(X)
    h = 1e-6
    checked = {True: 0, False: 0}
    for j in range(4):
        step = h * np.eye(4)[j]
        difference = (formula(expansion, X + step) - formula(expansion, X - step)) / (2 * h)
        # a difference across a bound equals neither side's gradient
        away = (np.abs(X[:, j] - BOUNDS.lower[j]) > h) & (np.abs(X[:, j] - BOUNDS.upper[j]) > h)
        within = (BOUNDS.lower[j] < X[:, j]) & (X[:, j] < BOUNDS.upper[j])
        np.testing.assert_allclose(gradient[:, away, j].T, difference[away], rtol=0, atol=1e-7)
        np.testing.assert_array_equal(gradient[:, ~within, j], 0)
        assert np.all(np.any(gradient[:, within, j] != 0, axis=0))
        checked[True] += np.sum(within)
        checked[False] += np.sum(~within)
    assert min(checked.values()) > 50


def test_the_gradient_is_taken_at_the_clipped_inputs():
    # ∂/∂b of sin(a + b) at a = 9, clipped to 0.5
    pool = FeaturePool(4, np.array([[0, 1]]), np.ones((1, 2)), np.zeros(1))
    expansion = Expansion(pool, np.ones((1, 1)), np.zeros(1), ("a", "b", "c", "d"), False, BOUNDS)
    gradient = expansion.gradient(np.array([[9.0, 0.25, 0.0, 0.0]]))
    np.testing.assert_allclose(gradient[0, 0], [0, np.cos(0.75), 0, 0], rtol=0, atol=1e-15)


def test_names_say_which_inputs_are_clipped():
    pool = FeaturePool(
        4,
        np.array([[0, 1], [1, -1], [2, 3]]),
        np.array([[0.31, -1.2], [2.0, 0.0], [1.0, 4.0]]),
        np.array([0.5, 0.0, 0.0]),
    )
    expansion = Expansion(
        pool, np.ones((1, 3)), np.zeros(1), ("age", "bmi", "c", "d"), False, BOUNDS
    )
    assert expansion.names() == [
        "sin(0.31*clip(age, -0.5, 0.5) - 1.20*bmi + 0.50)",
        "sin(2.00*bmi)",
        "sin(1.00*clip(c, -1, inf) + 4.00*clip(d, -0.7, 0.2))",
    ]
    plain = dataclasses.replace(expansion, map=None).names()
    assert plain[0] == "sin(0.31*age - 1.20*bmi + 0.50)"


# --- The estimator ---


def friedman(rows=300):
    return datasets.make_function("friedman1", rows, random_state=0)


def model(**options):
    return HARFERegressor(n_components=300, n_nonzero_coefs=30, random_state=0, **options)


TEST = datasets.make_function("friedman1", 1000, random_state=1)


def error(fitted):
    return np.sqrt(np.mean((fitted.predict(TEST.X) - TEST.y) ** 2))


@pytest.mark.parametrize("input_scale", ["standard", "robust"])
@pytest.mark.parametrize("init", ["zero", "graded"])
def test_a_typing_error_does_not_wreck_the_fit(input_scale, init):
    data = friedman()
    options = {"input_scale": input_scale, "init": init}
    without = error(model(**options).fit(np.delete(data.X, 3, axis=0), np.delete(data.y, 3)))
    X = data.X.copy()
    X[3, 2] = 1e6
    clipped = model(**options).fit(X, data.y)
    assert clipped.expansion_.map.finite.tolist() == [j == 2 for j in range(10)]
    assert error(clipped) < 1.1 * without
    if input_scale == "standard":
        # x2 in units of the wrong value is a constant: its share of y is lost
        assert error(model(input_clip=None, **options).fit(X, data.y)) > 1.4 * without


def test_nor_does_a_wrong_value_among_new_rows():
    data = friedman()
    X = data.X.copy()
    X[3, 2] = 1e6
    fitted = model().fit(X, data.y)
    bounds = fitted.expansion_.map
    wrong, edge = TEST.X.copy(), TEST.X.copy()
    wrong[:, 2], edge[:, 2] = 1e9, bounds.upper[2]
    np.testing.assert_array_equal(fitted.predict(wrong), fitted.predict(edge))
    assert np.abs(fitted.predict(wrong) - fitted.predict(TEST.X)).max() > 0


def test_the_fit_is_that_of_clipped_inputs():
    data = friedman()
    X = data.X.copy()
    X[3, 2], X[70, 5] = 1e6, -40
    one = model(input_clip=4).fit(X, data.y)
    bounds = find_map(X, np.ones(300), 4)
    other = model(input_clip=None).fit(np.clip(X, bounds.lower, bounds.upper), data.y)
    np.testing.assert_array_equal(one.expansion_.map.lower, bounds.lower)
    np.testing.assert_array_equal(one.expansion_.map.upper, bounds.upper)
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict(TEST.X[:50]), other.predict(TEST.X[:50]))
    assert any("clip(x2, " in name for name in one.expansion_.names())


def test_held_out_rows_are_clipped_like_the_fitted_function():
    data = friedman()
    X, new = data.X.copy(), TEST.X[:40].copy()
    X[3, 2], new[:3, 2] = 1e6, [1e3, -1e3, 7]
    y = np.column_stack([data.y, data.X[:, 0]])
    posed = model().fit(X, y)._recipe(300.0, 300, 2).pose(X, y, np.ones(300))
    S = np.arange(0, 300, 3)
    c = np.random.default_rng(0).normal(size=(100, 2))
    held_out = posed.to_targets(posed.scaled_features(S, new) @ c)
    np.testing.assert_allclose(posed.expansion(S, c).predict(new), held_out, rtol=0, atol=1e-9)
    # and the rows of the problem itself are those of the clipped inputs
    A = posed.scaled_features(S, X)
    np.testing.assert_allclose(A.mean(axis=0), 0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(A.std(axis=0), 1, rtol=1e-9)


def test_importances_are_not_those_of_the_outlier():
    data = friedman()
    X = data.X.copy()
    X[3, 9] = 1e6
    clean = model().fit(np.delete(data.X, 3, axis=0), np.delete(data.y, 3))
    wrong = model().fit(X, data.y)
    np.testing.assert_allclose(
        wrong.feature_importances_, clean.feature_importances_, rtol=0, atol=0.05
    )


def test_bounds_of_a_fit_go_by_weight():
    data = friedman()
    X = data.X.copy()
    X[3, 2] = 1e6
    times = np.random.default_rng(0).integers(1, 4, 300)
    weighted = model().fit(X, data.y, sample_weight=times).expansion_.map
    repeated = model().fit(np.repeat(X, times, axis=0), np.repeat(data.y, times)).expansion_.map
    np.testing.assert_array_equal(weighted.upper, repeated.upper)
    assert weighted.upper[2] != find_map(X, np.ones(300), 5.0).upper[2]


def test_rows_without_weight_have_no_say_in_the_bounds():
    data = friedman()
    X = data.X.copy()
    X[3, 2] = 1e6
    weights = np.ones(300)
    weights[3] = 0
    assert model().fit(X, data.y, sample_weight=weights).expansion_.map is None


def test_no_outliers_no_bounds():
    data = friedman()
    assert model().fit(data.X, data.y).expansion_.map is None


def test_without_clipping_the_function_has_no_bounds():
    data = friedman()
    X = data.X.copy()
    X[3, 2] = 30
    fitted = model(input_clip=None).fit(X, data.y)
    assert fitted.expansion_.map is None
    z = X @ fitted.weights_.toarray() + fitted.bias_
    np.testing.assert_allclose(
        fitted.predict(X), fitted.intercept_ + np.sin(z) @ fitted.coef_, rtol=0, atol=1e-10
    )
    # as with bounds that nothing exceeds, and not as with those that something does
    wide = model(input_clip=1e9).fit(X, data.y)
    np.testing.assert_array_equal(wide.coef_, fitted.coef_)
    assert wide.expansion_.map is None
    assert not np.array_equal(model().fit(X, data.y).coef_, fitted.coef_)


@pytest.mark.parametrize("input_scale", ["standard", "robust"])
def test_other_units_of_the_inputs_give_the_same_predictions(input_scale):
    data = friedman()
    X = data.X.copy()
    X[3, 2] = 1e3
    scale, shift = np.geomspace(0.01, 100, 10), np.linspace(-30, 30, 10)
    one = model(input_scale=input_scale).fit(X, data.y)
    other = model(input_scale=input_scale).fit(X * scale + shift, data.y)
    np.testing.assert_array_equal(one.support_, other.support_)
    assert other.expansion_.map.finite.tolist() == [j == 2 for j in range(10)]
    new = TEST.X.copy()
    new[:5, 2] = [1e6, -1e6, 5, -5, 2]
    np.testing.assert_allclose(
        one.predict(new), other.predict(new * scale + shift), rtol=0, atol=1e-7
    )


def test_a_fit_with_bounds_can_be_stored():
    data = friedman()
    X = data.X.copy()
    X[3, 2] = 1e6
    fitted = model(residual_cv=3).fit(X, data.y)
    again = pickle.loads(pickle.dumps(fitted))
    X[4, 2] = -1e6
    for a, b in zip(
        again.predict(X, return_std=True), fitted.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(fitted.predict(X, return_std=True)[1]).all()
    assert np.isfinite(fitted.feature_importances_).all()


@pytest.mark.parametrize("value", [0, -1.0, "x", np.inf, np.nan, True, [5.0]])
def test_impossible_bounds_are_refused(value):
    text = f"input_clip={value!r} must be None or a positive number of spreads, e.g. input_clip=5"
    with pytest.raises(ValueError, match=re.escape(text)):
        model(input_clip=value).fit(TEST.X[:20], TEST.y[:20])
