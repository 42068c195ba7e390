"""Weights of rows by their ratios, and the number of distinct rows by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harfe import HARFERegressor
from harfe._core.validation import count_distinct, row_weights


def rows(m=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, 3)), rng.normal(size=m)


# --- Weights ---


@pytest.mark.parametrize("weight", [None, 1, 0.05, 3.0, 1e-200, 1e200])
def test_rows_that_weigh_the_same_weigh_one(weight):
    X, y = rows()
    each = weight if weight is None else np.full(30, weight)
    for given_weights in (weight, each):
        np.testing.assert_array_equal(row_weights(given_weights, X, y), np.ones(30))


@pytest.mark.parametrize("factor", [2.0**-40, 0.5, 4.0, 0.3, 7.0, 1e9])
def test_a_factor_of_all_weights_changes_nothing(factor):
    X, y = rows()
    weights = np.random.default_rng(1).uniform(0.1, 3, 30)
    one, two = row_weights(weights, X, y), row_weights(factor * weights, X, y)
    # the sum is rounded to single precision, the ratios are not
    exact = np.log2(factor).is_integer()
    np.testing.assert_allclose(two, one, rtol=0 if exact else 2e-7)
    np.testing.assert_allclose(one / one[0], weights / weights[0], rtol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_weight_two_is_the_row_twice(seed):
    X, y = rows()
    counts = np.random.default_rng(seed).integers(1, 4, 30)
    often = np.repeat(np.arange(30), counts)
    weighted = row_weights(counts, X, y)
    repeated = row_weights(None, X[often], y[often])
    # bit for bit
    np.testing.assert_array_equal(np.bincount(often, repeated), weighted)
    assert weighted.sum() == pytest.approx(30, rel=1e-7)


def test_weights_that_are_inverse_variances_sum_to_the_number_of_distinct_rows():
    X, y = rows()
    X[7], y[7] = X[3], y[3]
    variance = np.random.default_rng(0).uniform(1, 9, 30) * 1e-6
    found = row_weights(1 / variance, X, y)
    assert found.sum() == pytest.approx(29, rel=1e-7)
    np.testing.assert_allclose(found * variance, found[0] * variance[0], rtol=1e-14)


def test_rows_of_no_weight_do_not_count():
    X, y = rows()
    weights = np.ones(30)
    weights[:10] = 0
    np.testing.assert_array_equal(row_weights(5 * weights, X, y), weights)
    weights[10] = 3.0
    found = row_weights(weights, X, y)
    np.testing.assert_array_equal(found[:10], 0)
    np.testing.assert_allclose(
        found, row_weights(weights[10:], X[10:], y[10:]).sum() * weights / 22
    )


def test_the_unit_of_the_weights_does_not_change_a_model():
    X, y = rows(80)
    weights = np.random.default_rng(1).uniform(0.1, 3, 80)
    one, two = (
        HARFERegressor(n_components="auto", random_state=0).fit(X, y, factor * weights)
        for factor in (1.0, 2.0**-20)
    )
    np.testing.assert_array_equal(one.support_, two.support_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


# --- Distinct rows ---


@given(m=st.integers(1, 40), targets=st.integers(0, 2), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=100)
def test_distinct_rows_are_those_of_a_set(m, targets, seed):
    rng = np.random.default_rng(seed)
    values = [-1.5, -0.0, 0.0, 1e-300, 2.0]
    X, y = rng.choice(values, (m, 2)), rng.choice(values, (m, targets) if targets else m)
    # -0 is 0 as a key, too
    truth = {(*x, *np.atleast_1d(t)) for x, t in zip(X.tolist(), y.tolist(), strict=True)}
    assert count_distinct(X, y) == len(truth)


def test_minus_zero_is_zero():
    X = np.array([[0.0], [-0.0], [1.0]])
    assert count_distinct(X, np.array([-0.0, 0.0, 0.0])) == 2
    assert count_distinct(X, np.array([0j, -0j, complex(0.0, -0.0)])) == 2


def test_both_parts_of_complex_targets_count():
    X = np.zeros((5, 1))
    assert count_distinct(X, np.array([1 + 1j, 1 - 1j, 1 + 1j, -1 + 1j, 1j])) == 4
    assert count_distinct(X, np.array([[1j, 1], [1, 1j], [1j, 1j], [1, 1], [1, 1]])) == 4


def test_which_input_holds_a_value_matters():
    assert count_distinct(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]), np.zeros(3)) == 2
    # many rows that differ in a single place
    X = np.zeros((1000, 10))
    X[np.arange(1000), np.arange(1000) % 10] = np.arange(1000)
    assert count_distinct(X, np.zeros(1000)) == 1000
