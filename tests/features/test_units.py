"""Centre and spread of the inputs: by hand, as repetitions, at extreme sizes, under affine maps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from harfe.features.units import INPUT_SCALES, InputUnits, measure_units

NORMAL_IQR = stats.norm.ppf(0.75) - stats.norm.ppf(0.25)
MEASURED = ["standard", "robust"]


def column(*values):
    return np.array(values, dtype=float)[:, None]


def ones(X):
    return np.ones(len(X))


# --- By hand ---


def test_the_kinds_are_these():
    assert INPUT_SCALES == ("standard", "robust", "none")


def test_standard_is_mean_and_deviation():
    X = np.random.default_rng(0).uniform(-3, 5, (40, 3))
    units = measure_units(X, ones(X), "standard")
    np.testing.assert_allclose(units.centre, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(units.spread, X.std(axis=0), rtol=1e-14)


def test_robust_is_median_and_interquartile_range_by_hand():
    # ranks 1 .. 8 of 8: quartiles are the 2nd and 6th value, the median the 4th
    X = column(70, 10, 30, 20, 60, 40, 1e6, 50)
    units = measure_units(X, ones(X), "robust")
    assert units.centre[0] == 40
    assert units.spread[0] == pytest.approx((60 - 20) / NORMAL_IQR, rel=1e-14)


def test_robust_spread_of_a_normal_sample_is_its_deviation():
    grid = stats.norm.ppf((np.arange(4001) + 0.5) / 4001)
    units = measure_units(column(*(7 + 3 * grid)), np.ones(4001), "robust")
    assert units.centre[0] == pytest.approx(7, abs=1e-12)
    assert units.spread[0] == pytest.approx(3, rel=1e-3)


def test_none_leaves_the_users_units():
    X = column(5, 5, 1e300)
    units = measure_units(X, ones(X), "none")
    assert (units.centre.tolist(), units.spread.tolist()) == ([0.0], [1.0])


def test_robust_is_not_moved_by_outliers():
    X = np.random.default_rng(1).standard_normal((101, 2))
    outliers = X.copy()
    outliers[np.argmax(X, axis=0), [0, 1]] = 1e9
    a, b = (measure_units(Z, ones(Z), "robust") for Z in (X, outliers))
    np.testing.assert_array_equal(a.centre, b.centre)
    np.testing.assert_array_equal(a.spread, b.spread)


def test_robust_takes_the_deviation_where_quartiles_agree():
    X = np.column_stack([[0.0] * 9 + [10.0], np.arange(10.0)])
    robust = measure_units(X, ones(X), "robust")
    assert robust.centre[0] == 0
    assert robust.spread[0] == pytest.approx(3, rel=1e-14)  # sqrt(10 - 1)
    assert robust.spread[1] == pytest.approx((7 - 2) / NORMAL_IQR, rel=1e-14)


def test_the_value_is_frozen():
    units = InputUnits(np.zeros(1), np.ones(1))
    with pytest.raises(AttributeError):
        units.centre = np.ones(1)


# --- Weights are repetitions ---


@pytest.mark.parametrize("kind", MEASURED)
@given(
    X=arrays(np.float64, (9, 2), elements=st.integers(-50, 50)),
    times=arrays(np.int64, 9, elements=st.integers(1, 4)),
)
@settings(deadline=None, max_examples=40)
def test_a_weight_of_k_is_the_row_k_times(kind, X, times):
    weighted = measure_units(X, times.astype(float), kind)
    repeated = np.repeat(X, times, axis=0)
    plain = measure_units(repeated, ones(repeated), kind)
    np.testing.assert_allclose(weighted.centre, plain.centre, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(weighted.spread, plain.spread, rtol=1e-13)


def test_weighted_units_by_hand():
    X, weights = column(0, 4, 8), np.array([2.0, 1.0, 1.0])
    standard = measure_units(X, weights, "standard")
    assert standard.centre[0] == pytest.approx(3, rel=1e-15)
    assert standard.spread[0] == pytest.approx(np.sqrt((9 + 9 + 1 + 25) / 4), rel=1e-15)
    robust = measure_units(X, weights, "robust")  # rows 0, 0, 4, 8
    assert robust.centre[0] == 0
    assert robust.spread[0] == pytest.approx(4 / NORMAL_IQR, rel=1e-14)


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("factor", [2.0**-60, 0.5, 1024.0])
def test_only_the_ratios_of_weights_count(kind, factor):
    rng = np.random.default_rng(2)
    X, weights = rng.standard_normal((30, 2)), rng.uniform(0.2, 3, 30)
    a, b = (measure_units(X, w, kind) for w in (weights, factor * weights))
    np.testing.assert_array_equal(a.centre, b.centre)
    np.testing.assert_array_equal(a.spread, b.spread)


# --- Constant columns and extreme sizes ---


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.7, 0.1, 1e-300, 1e300, 1e-320])
def test_a_constant_column_has_infinite_spread(kind, value):
    X = np.column_stack([np.full(7, value), np.arange(7.0)])
    units = measure_units(X, np.linspace(0.1, 0.7, 7), kind)
    assert units.spread[0] == np.inf
    assert units.centre[0] == pytest.approx(value, rel=1e-14)
    assert 0 < units.spread[1] < np.inf


@pytest.mark.parametrize("kind", MEASURED)
def test_variation_by_rounding_alone_is_constant(kind):
    noise = np.arange(10) % 3
    X = np.column_stack([1e8 + 1.5e-8 * noise, 1e8 + 1e-3 * noise])
    spread = measure_units(X, ones(X), kind).spread
    assert spread[0] == np.inf
    assert 1e-4 < spread[1] < 1e-2


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_extreme_sizes_neither_underflow_nor_overflow(kind, size):
    base = np.random.default_rng(3).uniform(-1, 1, (50, 1))
    units = measure_units(np.hstack([base * size, base]), np.ones(50), kind)
    assert units.spread[0] / size == pytest.approx(units.spread[1], rel=1e-13)
    assert units.centre[0] / size == pytest.approx(units.centre[1], rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("size", [1e-304, 1e-306, 1e-310, 5e-324])
def test_a_finite_spread_has_a_finite_inverse(kind, size):
    X = column(*(size * np.arange(12)))
    spread = measure_units(X, ones(X), kind).spread[0]
    assert np.isfinite(spread) == (size == 1e-304)
    assert np.isfinite(1 / spread)


def test_robust_quartiles_without_finite_inverse_do_not_become_the_spread():
    # most of the column differs by subnormal numbers, a few rows by 1: weights v / spread overflow
    X = column(*(1e-310 * np.arange(12)), 1, 1)
    spread = measure_units(X, ones(X), "robust").spread[0]
    with np.errstate(over="ignore"):
        assert np.isfinite(1 / spread)


def test_robust_quartiles_of_rounding_size_do_not_become_the_spread():
    # the same numbers alone would be called constant; the outliers make the deviation the signal
    X = column(*(1 + 2.0**-52 * np.arange(12)), 5, 7)
    deviation = measure_units(X, ones(X), "standard").spread[0]
    assert measure_units(X, ones(X), "robust").spread[0] == pytest.approx(deviation, rel=1e-12)


# --- Relations ---

# Whole numbers of this size make every affine map below exact.
whole = arrays(np.float64, (8, 2), elements=st.integers(-100, 100))
weights8 = arrays(np.float64, 8, elements=st.integers(1, 5))


@pytest.mark.parametrize("kind", MEASURED)
@given(X=whole, weights=weights8, a=st.integers(1, 40), b=st.integers(-1000, 1000))
@settings(deadline=None, max_examples=60)
def test_affine_maps_carry_over(kind, X, weights, a, b):
    before, after = measure_units(X, weights, kind), measure_units(a * X + b, weights, kind)
    np.testing.assert_allclose(after.centre, a * before.centre + b, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(after.spread, a * before.spread, rtol=1e-11)


@given(X=whole, weights=weights8)
@settings(deadline=None, max_examples=40)
def test_mirroring_mirrors_the_standard_units(X, weights):
    before, after = (measure_units(s * X, weights, "standard") for s in (1, -1))
    np.testing.assert_array_equal(after.centre, -before.centre)
    np.testing.assert_array_equal(after.spread, before.spread)


@pytest.mark.parametrize("kind", MEASURED)
@given(X=whole, weights=weights8, order=st.permutations(range(8)))
@settings(deadline=None, max_examples=30)
def test_the_order_of_rows_plays_no_part(kind, X, weights, order):
    before, after = measure_units(X, weights, kind), measure_units(X[order], weights[order], kind)
    np.testing.assert_allclose(after.centre, before.centre, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(after.spread, before.spread, rtol=1e-12)


@pytest.mark.parametrize("kind", MEASURED)
def test_columns_do_not_know_each_other(kind):
    X = np.random.default_rng(4).standard_normal((20, 3)) * [1, 1e200, 1e-200]
    together = measure_units(X, ones(X), kind)
    alone = [measure_units(X[:, [k]], ones(X), kind) for k in range(3)]
    np.testing.assert_allclose(together.centre, [u.centre[0] for u in alone], rtol=1e-13)
    np.testing.assert_allclose(together.spread, [u.spread[0] for u in alone], rtol=1e-13)
