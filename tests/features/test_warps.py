"""Warps of the inputs: by hand, as functions, as repetitions of rows, at any magnitude."""

import numpy as np
import pytest
from scipy import stats

from harfe import HARFERegressor, learn_law
from harfe.features.units import Asinh, InputMap, Log, Rank, find_map

RANK = Rank(np.array([-1.0, 0.0, 3.0]), np.array([0.1, 0.4, 0.9]))
MAP = InputMap(
    np.array([0.5, -np.inf, -1.0, -2.0]),
    np.array([np.inf, np.inf, 3.0, 4.0]),
    (Log(), Asinh(1.0, 2.0), RANK, None),
)


def found(x, warp, weights=None, clip=5.0):
    X = np.asarray(x, dtype=float)[:, None]
    return find_map(X, np.ones(len(X)) if weights is None else weights, clip, warp)


def warp_of(x, warp, weights=None, clip=5.0):
    return found(x, warp, weights, clip).warp_of(0)


def same(one, other):
    assert type(one) is type(other)
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, vars(other)[name], err_msg=name)


def lognormal(n=200, seed=0):
    return np.exp(np.random.default_rng(seed).normal(size=n) * 1.5)


# --- The map as a function ---


def test_the_map_by_hand():
    X = np.array([[0.1, 1.0, -9.0, 9.0], [np.e, 1 + 2 * np.sinh(1), 1.5, 0.5]])
    expected = [[np.log(0.5), 0.0, 0.1, 4.0], [1.0, 1.0, 0.65, 0.5]]
    np.testing.assert_allclose(MAP.apply(X), expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(MAP.apply(X), MAP.warp(MAP.clip(X)))
    slopes = [[0, 1 / 2, 0, 0], [1 / np.e, 1 / (2 * np.cosh(1)), 0.5 / 3, 1]]
    np.testing.assert_allclose(MAP.slope(X), slopes, rtol=1e-15)
    assert MAP.finite.tolist() == [True, False, True, True]
    assert MAP.warped.tolist() == [True, True, True, False]
    assert not MAP.is_identity


def test_some_columns_are_those_columns_of_all():
    X = np.random.default_rng(0).normal(size=(30, 4)) * 3
    Z, columns = MAP.apply(X), np.array([2, 0, 3])
    np.testing.assert_array_equal(MAP.apply(X[:, columns], columns), Z[:, columns])
    np.testing.assert_array_equal(MAP.take(columns).apply(X[:, columns]), Z[:, columns])
    np.testing.assert_array_equal(MAP.inverse(Z[:, columns], columns), MAP.inverse(Z)[:, columns])


def test_the_inverse_and_the_slope_fit_the_map():
    rng = np.random.default_rng(1)
    X = rng.uniform([0.6, -20, -0.9, -1.9], [30, 20, 2.9, 3.9], (200, 4))
    np.testing.assert_allclose(MAP.inverse(MAP.apply(X)), X, rtol=1e-13, atol=1e-13)
    step = 1e-6
    difference = (MAP.apply(X + step) - MAP.apply(X - step)) / (2 * step)
    near = np.abs(X[:, 2]) < 1e-5  # a knot
    np.testing.assert_allclose(MAP.slope(X)[~near], difference[~near], rtol=1e-7)


def test_where_nothing_is_done_rows_are_not_copied():
    X = np.zeros((3, 4))
    assert InputMap.identity(4).is_identity
    assert InputMap.identity(4).apply(X) is X
    assert InputMap.identity(4).inverse(X) is X
    one = InputMap(np.full(2, -np.inf), np.full(2, np.inf), (None, Asinh(0, 1)))
    assert one.apply(X[:, :1], np.array([0])).base is X
    assert not one.is_identity


def test_labels():
    names = [MAP.label(k, "age") for k in range(4)]
    assert names == ["log(age)", "asinh((age - 1) / 2)", "rank(age)", "clip(age, -2, 4)"]
    both = InputMap(np.array([1.0, 0.0]), np.array([9.0, 7.0]), (Log(), Asinh(-3.0, 0.5)))
    assert both.label(0, "a") == "log(clip(a, 1, 9))"
    assert both.label(1, "a") == "asinh((clip(a, 0, 7) + 3) / 0.5)"
    assert InputMap.identity(1).label(0, "a") == "a"
    assert Asinh(0.0, 2.0).label("a") == "asinh(a / 2)"


# --- Which warp an input gets ---


def test_no_warp_unless_asked_for():
    assert found(lognormal(), "none").warps == ()


def test_logarithms_are_for_positive_inputs_of_a_wide_range():
    x = lognormal()
    assert isinstance(warp_of(x, "log"), Log)
    assert found(x, "log").lower[0] == x.min()
    # a range below a factor of 10, and one that the logarithm would skew more
    narrow = 1 + 8.9 * np.linspace(0, 1, 50) ** 5
    assert found(narrow, "log", clip=None).is_identity
    assert found(np.linspace(0.1, 10, 100), "log").is_identity
    assert abs(stats.skew(np.log(np.linspace(0.1, 10, 100)))) > 0.1


def test_asinh_is_for_skewed_inputs_that_are_not_positive():
    x = lognormal() - 1
    warp = warp_of(x, "log", clip=None)
    assert isinstance(warp, Asinh)
    ranked = np.sort(x)
    assert warp.centre == ranked[99]
    quartiles = stats.norm.ppf(0.75) - stats.norm.ppf(0.25)
    assert warp.scale == pytest.approx((ranked[149] - ranked[49]) / quartiles, rel=1e-11)
    assert abs(stats.skew(warp.apply(x))) < abs(stats.skew(x))
    assert found(np.random.default_rng(0).normal(size=200), "log").is_identity


def test_the_skewness_goes_by_weight():
    x = np.array([0.0, 1, 2, 3, 4, 50])
    assert isinstance(warp_of(x, "log", np.array([5.0, 5, 5, 5, 5, 1]), None), Asinh)
    assert warp_of(x, "log", np.array([1.0, 1, 1, 1, 1, 5]), None) is None


def test_outliers_of_a_logarithm_are_those_of_the_warped_values():
    x = np.append(lognormal(), 1e30)
    bounds, warped = found(x, "log"), found(np.log(x), "none")
    assert bounds.upper[0] == pytest.approx(np.exp(warped.upper[0]), rel=1e-12)
    assert np.sort(x)[-2] < bounds.upper[0] < 1e30
    assert bounds.lower[0] == x.min()
    # an outlier of the values themselves, but not of their logarithms
    tail = np.append(lognormal(), 300.0)
    assert np.isfinite(found(tail, "none").upper[0])
    assert np.isinf(found(tail, "log").upper[0])


def test_warps_are_measured_on_the_clipped_rows():
    y = np.append(lognormal() - 1, -1e30)
    lower, upper = found(y, "none").lower, found(y, "none").upper
    same(warp_of(y, "log"), warp_of(np.clip(y, lower, upper), "log", clip=None))


# --- Ranks ---


def test_few_values_have_their_mid_ranks():
    warp = warp_of([3, 1, 1, 7, 1, 3], "rank")
    assert warp.knots.tolist() == [1, 3, 7]
    np.testing.assert_allclose(warp.values, [3 / 12, 8 / 12, 11 / 12], rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_values_are_ranked_to_the_distance_of_knots(weighted):
    rng = np.random.default_rng(0)
    x = np.round(lognormal(500), 2)
    weights = rng.integers(1, 4, 500).astype(float) if weighted else np.ones(500)
    warp = warp_of(x, "rank", weights)
    assert len(warp.knots) <= 33
    assert [warp.knots[0], warp.knots[-1]] == [x.min(), x.max()]
    assert set(warp.knots) <= set(x)
    assert np.all(np.diff(warp.knots) > 0)
    truth = [(weights @ (x < v) + weights @ (x <= v)) / 2 / weights.sum() for v in x]
    np.testing.assert_allclose(warp.apply(x), truth, rtol=0, atol=1.5 / 32)
    at = np.isin(x, warp.knots)
    np.testing.assert_allclose(warp.apply(x)[at], np.array(truth)[at], rtol=0, atol=1e-12)
    assert np.max(np.diff(warp.values)) < 1.5 / 32


def test_ranks_are_constant_beyond_the_range():
    x = lognormal()
    kept = found(x, "rank")
    assert [kept.lower[0], kept.upper[0]] == [x.min(), x.max()]
    far = kept.apply(np.array([[-1e9], [x.min()], [x.max()], [1e9]]))[:, 0]
    assert far[0] == far[1] < far[2] == far[3]
    assert kept.slope(np.array([[-1e9], [1e9]])).tolist() == [[0], [0]]


@pytest.mark.parametrize("warp", ["log", "rank"])
def test_constant_and_two_valued_inputs_are_not_warped(warp):
    for x in ([4.0] * 9, [0.0] * 8 + [1.0], [1.0] * 8 + [100.0], [1e300] * 9):
        assert found(x, warp, clip=None).is_identity


# --- Rows and weights ---


@pytest.mark.parametrize("warp", ["log", "rank"])
@pytest.mark.parametrize("shift", [0.0, -1.0])
def test_weight_two_is_the_row_twice_and_order_and_unit_of_weights_do_not_matter(warp, shift):
    rng = np.random.default_rng(3)
    x = np.round(lognormal(256), 3) + shift
    times = rng.integers(1, 4, len(x))
    shuffled = rng.permutation(len(x))
    truth = found(x, warp, times.astype(float), None)
    assert truth.warps
    others = [
        found(np.repeat(x, times), warp, clip=None),
        found(x[shuffled], warp, times[shuffled].astype(float), None),
        found(x, warp, times * 0.1, None),
        found(x, warp, times / 3e200, None),
    ]
    for other in others:
        same(truth.warps[0], other.warps[0])
        np.testing.assert_array_equal([truth.lower, truth.upper], [other.lower, other.upper])


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("shift", [0.0, -1.0])
@pytest.mark.parametrize("warp", ["log", "rank"])
def test_any_magnitude(size, shift, warp):
    x = lognormal() / 100 + shift / 100
    kept, scaled = found(x, warp, clip=None), found(x * size, warp, clip=None)
    Z, other = kept.apply(x[:, None]), scaled.apply(x[:, None] * size)
    assert kept.warps
    moved = Z + np.log(size) if isinstance(kept.warps[0], Log) else Z
    np.testing.assert_allclose(other, moved, rtol=1e-10, atol=1e-11)
    assert np.all(np.isfinite(scaled.slope(x[:, None] * size)))


def test_values_as_close_as_numbers_get():
    x = np.nextafter(1.0, 2.0) ** np.arange(3)
    assert found(x, "rank").is_identity
    tiny = 5e-324 * np.arange(1.0, 5)
    assert found(tiny, "rank").is_identity
    with_gap = np.array([0, 5e-324, 1.0, 2.0, 3.0])
    assert found(with_gap, "rank").is_identity


# --- In a fit ---


@pytest.mark.parametrize("warp", ["log", "rank"])
def test_the_fit_is_that_of_the_mapped_inputs(warp):
    X = np.column_stack([lognormal(), lognormal(seed=1) - 1, np.linspace(-1, 1, 200)])
    y = np.sin(2 * np.log(X[:, 0])) + X[:, 2]
    settings = {"n_components": 200, "n_nonzero_coefs": 15, "random_state": 0}
    model = HARFERegressor(**settings, input_warp=warp).fit(X, y)
    kept = find_map(X, np.ones(200), 5.0, warp)
    assert model.expansion_.map.warped.tolist() == kept.warped.tolist()
    plain = HARFERegressor(**settings, input_clip=None).fit(kept.apply(X), y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(kept.apply(X)))


def test_a_warp_helps_where_the_truth_has_it():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(400, 3)) * 2)
    y = np.sin(np.log(X[:, 0])) + np.log(X[:, 1])

    def error(**settings):
        model = HARFERegressor(500, 40, random_state=0, **settings).fit(X[:200], y[:200])
        return 1 - model.score(X[200:], y[200:])

    assert error(input_warp="log", input_clip=None) < 0.1 * error()
    assert error(input_warp="rank") < 0.5 * error()


def test_unknown_warps_are_refused():
    X, y = lognormal()[:, None], lognormal()
    text = "input_warp='sqrt' is not known; choose one of none, log, rank"
    with pytest.raises(ValueError, match=text):
        HARFERegressor(input_warp="sqrt").fit(X, y)
    with pytest.raises(ValueError, match=text):
        learn_law(X, y, input_warp="sqrt")
