"""The kernel of a law against sums over all index sets and against draws; laws side by side."""

import itertools
import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from harfe import HARFERegressor, SparseRandomFeatures
from harfe.features.index_sets import IndexSets
from harfe.features.law import BIASES, FeatureLaw
from harfe.features.law_kernels import _SMALLEST, KernelSum, _exponentials
from harfe.features.law_parameters import WEIGHT_LAWS
from harfe.features.mixed_law import MixedLaw
from harfe.features.pool import FeaturePool

# Seeds are fixed, so these are not chances of failure: they say what counts as agreement.
AGREE = 1e-3


WEIGHTS = tuple(WEIGHT_LAWS)

# E cos(g w) for weights w at scale 1: of Student's t, Matérn functions of |g| √freedom.
CHARACTERISTIC = {
    "normal": lambda g: np.exp(-(g**2) / 2),
    "uniform": lambda g: np.sinc(g / np.pi),
    "cauchy": lambda g: np.exp(-np.abs(g)),
    "t3": lambda g: (1 + np.sqrt(3) * np.abs(g)) * np.exp(-np.sqrt(3) * np.abs(g)),
    "t5": lambda g: (1 + np.sqrt(5) * np.abs(g) + 5 * g**2 / 3) * np.exp(-np.sqrt(5) * np.abs(g)),
}


def draw(law, n, seed=0):
    return law.draw(n, np.random.default_rng(seed))


def rows(m=7, d=4, seed=1):
    return np.random.default_rng(seed).normal(size=(m, d))


def shares_of(law):
    eta = law.order_weights or (1.0,) * len(law.orders)
    return [v / math.fsum(eta) for v in eta]


def probabilities(law):
    """(index set, probability) by brute force, the orders one after the other."""
    p = law.variable_weights or (1.0,) * law.n_variables
    p = [v / max(p) for v in p]
    for q, share in zip(law.orders, shares_of(law), strict=True):
        mass = {}
        for group in law.groups or [range(law.n_variables)]:
            members = [k for k in sorted(group) if p[k] > 0]
            for S in itertools.combinations(members, min(q, len(members))):
                mass[S] = math.prod(p[k] for k in S)
        mass.pop((), None)
        total = math.fsum(mass.values())
        for S, value in mass.items():
            yield S, share * value / total


def mean_cosine(law, X, Z):
    """E cos<x - z, w>: the sum over all index sets."""
    scale = np.broadcast_to(law.scale, law.n_variables)
    gap = (X[:, None, :] - Z[None, :, :]) * scale
    chi = CHARACTERISTIC[law.weights](gap)
    return sum(P * np.prod(chi[:, :, S], axis=2) for S, P in probabilities(law))


def brute_kernel(law, X, Z):
    """Mean product of features: sin a sin b = (cos(a - b) - cos(a + b)) / 2, and so on."""
    K = mean_cosine(law, X, Z)
    if law.activation != "exp":
        # E cos(2b), E sin(2b) = 0
        mean = {"phase": 0.0, "uniform": math.sin(2) / 2, "none": 1.0}[law.bias]
        sign = -1 if law.activation == "sin" else 1
        K = (K + sign * mean * mean_cosine(law, X, -Z)) / 2
    if law.tempering:
        K = (1 - law.tempering) * K + law.tempering * brute_kernel(law.tempered(), X, Z)
    return K


def assert_is_mean_product(law, n=30_000):
    """Means of products of drawn features are the kernel, to within 4.5 standard errors."""
    X = rows(5, law.n_variables)
    A = draw(law, n).evaluate(X)
    products = A[:, None, :] * A[None, :, :].conj()
    gap = products.mean(axis=2) - law.kernel(X)
    for part in (np.real, np.imag):
        error = part(products).std(axis=2) / math.sqrt(n)
        assert np.all(np.abs(part(gap)) <= 4.5 * error + 1e-12)


# --- The kernel is the mean product of drawn features ---

SETTINGS = {
    "order 1": {"orders": (1,)},
    "order 2": {},
    "all": {"orders": (4,)},
    "in turn": {"orders": (1, 3)},
    "by weights": {"orders": (1, 2, 4), "order_weights": (5.0, 2.0, 1.0)},
    "an order never": {"orders": (1, 2), "order_weights": (0.0, 3.0)},
    "scales": {"scale": (0.1, 0.5, 1.0, 3.0)},
    "variables": {"orders": (1, 2), "variable_weights": (1.0, 0.3, 0.0, 0.7)},
    "groups": {"orders": (1, 3), "groups": ((0, 3), (1, 2))},
    "groups and variables": {
        "orders": (2, 1),
        "groups": ((0, 3), (1,), (2,)),
        "variable_weights": (1.0, 0.5, 0.2, 0.9),
        "order_weights": (1.0, 2.0),
    },
    "tempered": {
        "orders": (1, 2),
        "variable_weights": (1.0, 0.01, 0.5, 0.0),
        "scale": (0.2, 0.1, 1.0, 1.0),
        "order_weights": (9.0, 1.0),
        "tempering": 0.4,
    },
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_kernel_is_the_mean_product_of_drawn_features(name):
    assert_is_mean_product(FeatureLaw(4, **SETTINGS[name]))


@pytest.mark.parametrize("activation", ["sin", "cos", "exp"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_mean_product_for_every_activation_weights_and_bias(weights, bias, activation):
    law = FeatureLaw(
        3, (1, 2), weights=weights, bias=bias, activation=activation, scale=(0.5, 1.0, 2.0)
    )
    assert_is_mean_product(law)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_mean_product_of_features_of_all_inputs_in_use(weights):
    law = FeatureLaw(
        4, (3,), weights=weights, scale=(0.2, 0.4, 0.3, 0.1), variable_weights=(1.0, 3.0, 0.0, 2.0)
    )
    assert_is_mean_product(law)


def test_the_comparison_with_draws_can_fail():
    law = FeatureLaw(4, (2,))
    X = rows(5)
    A = draw(law, 30_000).evaluate(X)
    products = A[:, None, :] * A[None, :, :]
    gap = np.abs(products.mean(axis=2) - replace(law, scale=(1.1,)).kernel(X))
    assert np.any(gap > 4.5 * products.std(axis=2) / math.sqrt(30_000))


# --- The kernel is the sum over all index sets ---


@pytest.mark.parametrize(("weights", "freedom"), [("cauchy", 1), ("t3", 3), ("t5", 5)])
def test_students_t_has_the_matern_function_of_half_its_freedom(weights, freedom):
    x = np.linspace(0.01, 8, 50)
    a, order = np.sqrt(freedom) * 0.7 * x, freedom / 2
    truth = 2 * (a / 2) ** order * special.kv(order, a) / special.gamma(order)
    law = FeatureLaw(1, (1,), weights=weights, scale=(0.7,), activation="exp")
    np.testing.assert_allclose(law.kernel(x[:, None], [[0.0]])[:, 0], truth, rtol=1e-13)


@pytest.mark.parametrize("p", [(1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 5.0, 0.1)])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_features_of_all_inputs_in_use_have_the_product(weights, p):
    used = [k for k in range(4) if p[k]]
    scale = np.array([0.3, 1.0, 0.5, 2.0])
    law = FeatureLaw(
        4,
        (len(used),),
        weights=weights,
        scale=tuple(scale),
        variable_weights=p,
        activation="exp",
    )
    X, Z = rows(70), rows(50, seed=2)
    gap = (X[:, None, :] - Z[None, :, :]) * scale
    truth = np.prod(CHARACTERISTIC[weights](gap)[:, :, used], axis=2)
    np.testing.assert_allclose(law.kernel(X, Z), truth, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(law.kernel(X), law.kernel(X, X))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", SETTINGS)
def test_the_kernel_is_the_sum_over_all_index_sets(name, weights, bias):
    X, Z = rows(7), rows(5, seed=2)
    for activation in ("sin", "cos", "exp"):
        law = FeatureLaw(4, **SETTINGS[name], weights=weights, bias=bias, activation=activation)
        np.testing.assert_allclose(law.kernel(X, Z), brute_kernel(law, X, Z), rtol=0, atol=1e-14)


@pytest.mark.parametrize("order", range(1, 9))
def test_high_orders_lose_no_digits(order):
    p = (1.0, 0.9, 1e-3, 0.5, 1e-2, 0.7, 1.0, 0.2)
    law = FeatureLaw(8, (order,), variable_weights=p, scale=(0.3,), activation="exp")
    X, Z = rows(6, 8), rows(6, 8, seed=2)
    np.testing.assert_allclose(law.kernel(X, Z), brute_kernel(law, X, Z), rtol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_weights_of_wide_ratio_lose_no_digits(order):
    p = (1e60, 1.0, 1e-60, 3e-50)
    law = FeatureLaw(4, (order,), variable_weights=p, activation="exp")
    X = rows(6)
    np.testing.assert_allclose(law.kernel(X), brute_kernel(law, X, X), rtol=1e-12)


@pytest.mark.parametrize("p", [(1e300, 1e-300), (1.0, 1e-300), (1e-300, 1e-300)])
def test_the_only_set_there_is_has_probability_one_whatever_its_weights(p):
    X = rows(4, 2)
    law = FeatureLaw(2, (2,), variable_weights=p)
    np.testing.assert_allclose(law.kernel(X), FeatureLaw(2, (2,)).kernel(X), rtol=1e-12)


@st.composite
def laws(draw_from):
    d = draw_from(st.integers(1, 5))
    orders = tuple(draw_from(st.lists(st.integers(1, d), min_size=1, max_size=3)))
    positive = st.floats(0.01, 10)
    place = draw_from(st.none() | st.tuples(*[st.integers(0, 2)] * d))
    groups = None
    if place is not None:
        groups = tuple(tuple(np.flatnonzero(np.equal(place, g)).tolist()) for g in set(place))
    return FeatureLaw(
        d,
        orders,
        weights=draw_from(st.sampled_from(WEIGHTS)),
        scale=draw_from(st.tuples(positive) | st.tuples(*[positive] * d)),
        bias=draw_from(st.sampled_from(BIASES)),
        activation=draw_from(st.sampled_from(["sin", "cos", "exp"])),
        variable_weights=draw_from(st.none() | st.tuples(*[positive] * d)),
        groups=groups,
        order_weights=draw_from(st.none() | st.tuples(*[positive] * len(orders))),
        tempering=draw_from(st.just(0.0) | st.floats(0, 1)),
    )


@given(law=laws(), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=80)
def test_any_law_has_the_kernel_of_its_index_sets(law, seed):
    X, Z = rows(5, law.n_variables, seed), rows(3, law.n_variables, seed + 1)
    np.testing.assert_allclose(law.kernel(X, Z), brute_kernel(law, X, Z), rtol=0, atol=2e-14)


@given(law=laws(), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=60)
def test_a_kernel_is_symmetric_and_positive_semidefinite(law, seed):
    X = rows(12, law.n_variables, seed)
    K = law.kernel(X)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-14 * len(K)
    np.testing.assert_allclose(K, law.kernel(X, X), rtol=0, atol=1e-15)


@pytest.mark.parametrize("m", [1, 15, 16, 17, 64, 65, 130])
def test_rows_with_themselves_are_rows_with_rows_in_every_block(m):
    X = rows(m)
    law = FeatureLaw(4, (1, 3))
    np.testing.assert_array_equal(law.kernel(X), law.kernel(X, X))


def test_a_point_with_itself_has_the_mean_square_of_a_feature():
    X = rows(4)
    for activation, square in (("sin", 0.5), ("cos", 0.5), ("exp", 1.0)):
        law = FeatureLaw(4, (1, 2, 4), activation=activation, tempering=0.5)
        np.testing.assert_allclose(np.diag(law.kernel(X)), square, rtol=1e-14)


def test_no_rows_have_an_empty_kernel():
    law = FeatureLaw(4)
    none = np.empty((0, 4))
    assert law.kernel(none).shape == (0, 0)
    assert law.kernel(rows(3), none).shape == (3, 0)


def test_inputs_far_apart_share_nothing():
    X = np.array([[0.0, 0.0], [1e200, 1e-3]])
    K = FeatureLaw(2, (1, 2)).kernel(X)
    # order 1 uses the second input in half of its features
    np.testing.assert_allclose(K[0, 1], 0.5 * 0.5 * 0.5 * math.exp(-1e-6 / 2), rtol=1e-14)


def test_variables_that_are_not_drawn_do_not_matter():
    law = FeatureLaw(4, (2,), variable_weights=(1.0, 0.0, 0.5, 0.4))
    X, Y = rows(6), rows(6)
    Y[:, 1] = 1e6 * np.arange(6)
    np.testing.assert_array_equal(law.kernel(X), law.kernel(Y))


def test_lists_and_whole_numbers_are_rows():
    law = FeatureLaw(2)
    truth = law.kernel(np.array([[1.0, 2.0], [3.0, 5.0]]))
    np.testing.assert_array_equal(law.kernel([[1, 2], [3, 5]]), truth)


# --- Sums of kernels and their gradients ---


NOT_UNIFORM = [name for name in WEIGHTS if name != "uniform"]
# Products of uniform weights are sums of one order.
every_sum = pytest.mark.parametrize(
    ("weights", "full"), [("uniform", False), *itertools.product(NOT_UNIFORM, [False, True])]
)


def kernel_sum(weights, full):
    eta = np.array([0.7]) if full else np.array([0.2, 1.0, 0.5, 0.1])
    p = np.ones(4) if full else np.array([1.0, 0.2, 3.0, 0.7])
    return KernelSum(np.array([0.5, 0.1, 1.0, 0.3]), WEIGHT_LAWS[weights].code, p, eta, full)


def symmetric(m):
    G = np.random.default_rng(5).normal(size=(m, m))
    return G + G.T


@pytest.mark.compiled
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("weights", NOT_UNIFORM)
def test_the_gradient_is_a_finite_difference(weights, full):
    m, kernel = 17, kernel_sum(weights, full)
    XT, G = rows(4, m), symmetric(m)
    lower = np.where(np.tri(m, dtype=bool), G, np.nan)  # the upper triangle is not read
    h = 1e-4
    for name, gradient in zip(("rates", "p", "eta"), kernel.gradient(XT, lower), strict=True):
        value = getattr(kernel, name)
        truth = np.zeros(len(value))
        for k, step in enumerate(h * np.eye(len(value))):
            sums = [
                np.sum(G * replace(kernel, **{name: value * np.exp(t * step)}).values(XT, None))
                for t in (-2, -1, 1, 2)
            ]
            truth[k] = np.dot([1, -8, 8, -1], sums) / (12 * h)
        np.testing.assert_allclose(gradient, truth, rtol=1e-8, atol=1e-9)


@pytest.mark.compiled
@pytest.mark.parametrize("m", [1, 16, 17, 33])
@every_sum
def test_the_sum_of_orders_written_out(weights, full, m):
    kernel = kernel_sum(weights, full)
    unit = WEIGHT_LAWS[weights].rates(np.ones(4))
    scale = np.sqrt(kernel.rates / unit) if weights == "normal" else kernel.rates / unit
    XT, ZT = rows(4, 5), rows(4, m, seed=2)
    gap = (XT[:, :, None] - ZT[:, None, :]) * scale[:, None, None]
    u = kernel.p[:, None, None] * CHARACTERISTIC[weights](gap)
    orders = [4] if full else range(4)
    truth = sum(
        kernel.eta[k]
        * sum(np.prod(u[list(S)], axis=0) for S in itertools.combinations(range(4), q))
        for k, q in enumerate(orders)
    )
    np.testing.assert_allclose(kernel.values(XT, ZT), truth, rtol=1e-12, atol=1e-15)
    lower = kernel.values(ZT, None, fill=False)
    np.testing.assert_array_equal(lower, np.tril(kernel.values(ZT, ZT)))


# --- The exponential of the loops ---


def exponential(t):
    t = np.array(t, dtype=float)
    room = np.empty_like(t)
    _exponentials(t, room, room.view(np.int64))
    return t


def test_the_exponential_is_right_to_the_last_bits():
    rng = np.random.default_rng(0)
    halves = -np.arange(1000) * math.log(2) / 2  # where the reduction turns
    t = np.concatenate(
        [
            -rng.uniform(0, 700, 20_000),
            -rng.uniform(0, 1, 5000),
            -np.logspace(-300, 0, 2000),
            halves,
            np.nextafter(halves, -np.inf),
            [0.0, -0.0, -700.0],
        ]
    )
    np.testing.assert_allclose(exponential(t), np.exp(t), rtol=1e-15)
    assert exponential([0.0])[0] == 1.0


def test_below_its_range_the_exponential_stays_at_its_smallest_value():
    t = [np.nextafter(_SMALLEST, -np.inf), -701.0, -745.0, -1e4, -1e300]
    np.testing.assert_allclose(exponential(t), np.exp(_SMALLEST), rtol=1e-15)


# --- Draws with order_weights and tempering ---


def sizes(pool):
    return np.sum(pool.indices >= 0, axis=1)


def assert_equal_pools(a, b):
    for name in ("indices", "values", "phases"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.n_variables, a.activation) == (b.n_variables, b.activation)


def test_without_order_weights_orders_come_in_turn_from_streams_of_their_own():
    n, orders, p = 60, (3, 1, 2), np.array([1.0, 0.5, 2.0, 0.1, 0.7])
    pool = draw(FeatureLaw(5, orders, scale=(2.0,), variable_weights=tuple(p)), n)
    values, phases, *streams = np.random.default_rng(0).spawn(5)
    indices = np.full((n, 3), -1)
    for k, q in enumerate(orders):
        indices[k::3, :q] = IndexSets(q, p, None).draw(20, streams[k])
    np.testing.assert_array_equal(sizes(pool), np.tile(orders, 20))
    np.testing.assert_array_equal(pool.indices, indices)
    truth = np.where(indices >= 0, 2 * values.standard_normal((n, 3)), 0)
    np.testing.assert_array_equal(pool.values, truth)
    np.testing.assert_array_equal(pool.phases, phases.uniform(0, 2 * np.pi, n))


@pytest.mark.parametrize("eta", [(5.0, 3.0, 2.0), (1e-3, 7e-4, 2e-4), (1.0, 0.0, 1e200)])
def test_orders_are_drawn_as_often_as_their_weights_say(eta):
    n = 20_000
    pool = draw(FeatureLaw(5, (1, 4, 2), order_weights=eta), n)
    counts = Counter(sizes(pool).tolist())
    expected = {q: n * share / sum(eta) for q, share in zip((1, 4, 2), eta, strict=True)}
    drawn = [q for q in expected if expected[q] > 1e-9]
    assert set(counts) == set(drawn)
    if len(drawn) > 1:
        truth = np.array([expected[q] for q in drawn])
        assert stats.chisquare([counts[q] for q in drawn], truth).pvalue > AGREE


def test_only_the_ratios_of_order_weights_count():
    a, b = (
        draw(FeatureLaw(5, (1, 3), order_weights=eta), 300) for eta in ((3.0, 1.0), (0.75, 0.25))
    )
    assert_equal_pools(a, b)


def test_the_largest_order_weights_do_not_overflow():
    law = FeatureLaw(3, (1, 2), order_weights=(1.5e308, 1.5e308))
    even = FeatureLaw(3, (1, 2), order_weights=(1.0, 1.0))
    assert_equal_pools(draw(law, 50), draw(even, 50))


def test_order_weights_change_neither_weights_nor_phases():
    law = FeatureLaw(5, (2, 2), order_weights=(1.0, 2.0))
    a, b = draw(law, 100), draw(replace(law, order_weights=None), 100)
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.phases, b.phases)


def test_every_fourth_feature_is_tempered():
    law = FeatureLaw(5, (1, 3), variable_weights=(1.0, 1e-9, 1.0, 1.0, 0.0), tempering=0.25)
    pool = draw(law, 80)
    plain, tempered = np.random.default_rng(0).spawn(2)
    is_tempered = np.arange(80) % 4 == 3
    assert_equal_pools(pool.take(is_tempered), law.tempered().draw(20, tempered))
    assert_equal_pools(pool.take(~is_tempered), replace(law, tempering=0.0).draw(60, plain))
    assert np.any(pool.indices[is_tempered] == 1)
    assert not np.any(pool.indices[~is_tempered] == 1)


@pytest.mark.parametrize("share", [0.1, 1 / 3, 0.5, 0.7, 1.0])
def test_the_share_of_tempered_features_is_kept_at_every_size(share):
    law = FeatureLaw(3, (1,), tempering=share)
    _, stream = np.random.default_rng(0).spawn(2)
    is_tempered = np.isin(draw(law, 500).phases, law.tempered().draw(500, stream).phases)
    np.testing.assert_array_equal(np.cumsum(is_tempered), np.floor(np.arange(1, 501) * share))


@given(law=laws(), n=st.integers(0, 30), more=st.integers(0, 40), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=100)
def test_a_larger_pool_extends_a_smaller_one_with_order_weights_and_tempering(law, n, more, seed):
    small, large = draw(law, n, seed), draw(law, n + more, seed)
    assert (len(small), len(large)) == (n, n + more)
    assert_equal_pools(small, large.take(slice(0, n)))


def test_the_tempered_copy_by_hand():
    law = FeatureLaw(
        4,
        (1, 2),
        scale=(0.4, 1.0, 0.3, 0.0001),
        variable_weights=(1e-6, 0.0, 3.0, 1.0),
        order_weights=(5.0, 1.0),
        activation="cos",
        weights="uniform",
        bias="none",
        tempering=0.2,
    )
    copy = law.tempered()
    np.testing.assert_allclose(
        copy.scale, [0.5, math.sqrt(1.09), math.sqrt(0.18), 0.3], rtol=1e-6, atol=0
    )
    assert copy.variable_weights == (1.0, 0.0, 1.0, 1.0)
    assert copy == replace(
        law, scale=copy.scale, variable_weights=(1, 0, 1, 1), order_weights=None, tempering=0.0
    )


def test_tempering_mixes_the_two_kernels():
    law = FeatureLaw(4, (1, 2), scale=(0.2,), variable_weights=(1.0, 0.1, 0.0, 2.0))
    X = rows(5)
    one, two = law.kernel(X), law.tempered().kernel(X)
    for share in (0.3, 1.0):
        mixed = replace(law, tempering=share).kernel(X)
        np.testing.assert_allclose(mixed, (1 - share) * one + share * two, rtol=1e-14)


# --- How often a variable is used ---

NO_TEMPERING = [name for name in SETTINGS if name != "tempered"]


@pytest.mark.parametrize("name", NO_TEMPERING)
def test_usage_is_the_probability_that_a_set_holds_the_variable(name):
    law = FeatureLaw(4, **SETTINGS[name])
    truth = np.zeros(4)
    for S, P in probabilities(law):
        truth[list(S)] += P
    np.testing.assert_allclose(law.usage(), truth, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", NO_TEMPERING)
def test_usage_is_how_often_draws_look_at_a_variable(name):
    n = 20_000
    law = FeatureLaw(4, **SETTINGS[name])
    drawn = draw(law, n).indices
    share = np.array([np.mean(np.any(drawn == k, axis=1)) for k in range(4)])
    error = np.sqrt(law.usage() * (1 - law.usage()) / n)
    assert np.all(np.abs(share - law.usage()) <= 4 * error + 1e-12)


def test_usage_of_overlapping_groups_is_right_or_refused():
    # sets 01, 02, 12, 13, 23; usage is 2/5, 3/5, 3/5, 2/5
    law = FeatureLaw(4, (2,), groups=((0, 1, 2), (1, 2, 3)))
    try:
        usage = law.usage()
    except ValueError as error:
        assert "overlap" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(usage, [0.4, 0.6, 0.6, 0.4], rtol=1e-14)


def test_usage_does_not_speak_of_the_tempered_copy():
    law = FeatureLaw(3, (1,), variable_weights=(1.0, 1.0, 2.0), tempering=0.5)
    np.testing.assert_allclose(law.usage(), [0.25, 0.25, 0.5], rtol=1e-14)


# --- Summary ---


def test_the_summary_by_hand():
    law = FeatureLaw(
        4,
        (1, 2, 3),
        variable_weights=(1.0, 0.0, 2.0, 1.0),
        scale=(0.25, 1.0, 12.3456, 2.0),
        order_weights=(2.0, 2.0, 0.0),
    )
    # order 1: 1/4, 1/2, 1/4; order 2: sets 02, 03, 23 with masses 2, 1, 2
    assert law.summary() == (
        "sin features with normal weights: 50% of order 1, 50% of order 2.\n"
        "variable  in features  scale\n"
        "x2              65.0%  12.3\n"
        "x0              42.5%  0.25\n"
        "x3              42.5%  2\n"
        "not used: 1 of 4 variables"
    )


def test_the_summary_takes_names_and_shows_the_most_used():
    law = FeatureLaw(4, (1,), variable_weights=(1.0, 5.0, 2.0, 2.0), activation="cos")
    text = law.summary(names=["age", "body mass index", "sex", "blood pressure"], most=2)
    assert text == (
        "cos features with normal weights: 100% of order 1.\n"
        "variable         in features  scale\n"
        "body mass index        50.0%  1\n"
        "sex                    20.0%  1\n"
        "... and 2 variables that are used less"
    )


def test_the_summary_shows_twenty_by_default():
    text = FeatureLaw(25, (1,)).summary()
    assert text.count("\n") == 22
    assert text.endswith("... and 5 variables that are used less")


# --- Messages ---


def refused(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def test_overlapping_groups_have_no_closed_form():
    law = FeatureLaw(3, groups=((0, 1), (1, 2)))
    with refused("kernel: groups=((0, 1), (1, 2)) overlap, which has no closed form"):
        law.kernel(rows(2, 3))


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_other_activations_have_no_closed_form(activation):
    message = (
        f"kernel: activation={activation!r} has no closed form; pass a law with one of 'sin', "
        "'cos', 'exp'"
    )
    with refused(message):
        FeatureLaw(3, activation=activation).kernel(rows(2, 3))


@pytest.mark.parametrize("shape", [(3,), (5, 2), (5, 4), (2, 3, 3)])
@pytest.mark.parametrize("name", ["X", "Z"])
def test_rows_must_have_as_many_inputs_as_the_law(name, shape):
    right, wrong = rows(2, 3), np.zeros(shape)
    with refused(f"kernel: {name} has shape {shape}; pass rows of 3 inputs"):
        FeatureLaw(3).kernel(*((wrong, right) if name == "X" else (right, wrong)))


@pytest.mark.parametrize(
    ("eta", "shown"),
    [
        ((1.0,), "1.0"),
        ((1.0, 2.0, 3.0), "[1.0, 2.0, 3.0]"),
        ((1.0, -1.0), "[1.0, -1.0]"),
        ((0.0, 0.0), "[0.0, 0.0]"),
        ((1.0, math.nan), "[1.0, nan]"),
        ((1.0, math.inf), "[1.0, inf]"),
        ((1.0, True), "[1.0, True]"),
        ((), "[]"),
    ],
)
def test_order_weights_are_one_number_an_order(eta, shown):
    message = (
        f"order_weights={shown} must hold one finite number >= 0 for each of the orders (1, 2), "
        "not all 0; pass None to use each order equally often"
    )
    with refused(message):
        FeatureLaw(3, (1, 2), order_weights=eta)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, None, "half", True])
def test_tempering_is_a_share(share):
    with refused(f"tempering={share!r} must be a share from 0 to 1, e.g. tempering=0.5"):
        FeatureLaw(3, tempering=share)


# --- Threads ---


@every_sum
def test_threads_do_not_change_a_bit_of_kernel_and_gradient(on_threads, weights, full):
    XT, ZT = rows(4, 70), rows(4, 50, seed=2)
    kernel = kernel_sum(weights, full)
    for other in (None, ZT):
        one, two = (on_threads(n, lambda z=other: kernel.values(XT, z)) for n in (1, 2))
        np.testing.assert_array_equal(one, two)
    if weights != "uniform":
        G = symmetric(70)
        one, two = (on_threads(n, lambda: kernel.gradient(XT, G)) for n in (1, 2))
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


# --- Several laws side by side ---

PARTS = (
    FeatureLaw(4, (1,), scale=(0.5,)),
    FeatureLaw(4, (2, 3), variable_weights=(0.0, 1.0, 2.0, 1.0), order_weights=(1.0, 4.0)),
    FeatureLaw(4, (2,), scale=(3.0,), tempering=0.5),
)
MIXED = MixedLaw(PARTS, (0.5, 0.2, 0.3))


def test_a_mixed_law_has_the_inputs_activation_and_orders_of_its_parts():
    assert MIXED.n_variables == 4
    assert MIXED.activation == "sin"
    assert MIXED.orders == (1, 2, 3)
    assert MIXED.scale == (0.5,)


def test_the_kernel_of_a_mixed_law_is_the_mean_product_of_its_features():
    assert_is_mean_product(MIXED)


def test_kernel_and_usage_of_a_mixed_law_are_weighted_sums():
    X, Z = rows(6), rows(3, seed=2)
    K = 0.5 * PARTS[0].kernel(X, Z) + 0.2 * PARTS[1].kernel(X, Z) + 0.3 * PARTS[2].kernel(X, Z)
    np.testing.assert_allclose(MIXED.kernel(X, Z), K, rtol=1e-14)
    np.testing.assert_allclose(MIXED.kernel(X), MIXED.kernel(X, X), rtol=1e-14)
    # order 1: 1/4 each; order 2: 1/2 each; the second part by its own sets
    own = PARTS[1].usage()
    assert own[0] == 0
    np.testing.assert_allclose(MIXED.usage(), 0.5 / 4 + 0.2 * own + 0.3 / 2, rtol=1e-14)


def test_a_mixed_law_draws_from_its_parts_by_their_shares():
    n = 20_000
    parts = tuple(
        FeatureLaw(3, (1,), variable_weights=tuple(np.eye(3)[k].tolist())) for k in (2, 0, 1)
    )
    drawn = draw(MixedLaw(parts, (0.6, 0.1, 0.3)), n).indices[:, 0]
    counts = [np.sum(drawn == k) for k in (2, 0, 1)]
    assert stats.chisquare(counts, [0.6 * n, 0.1 * n, 0.3 * n]).pvalue > AGREE
    # in no order: neighbours are independent
    same = np.mean(drawn[1:] == drawn[:-1])
    assert abs(same - 0.46) < 4 * math.sqrt(0.46 * 0.54 / n)


def test_features_of_a_mixed_law_are_those_of_its_parts():
    pool = draw(MIXED, 200)
    _, *streams = np.random.default_rng(0).spawn(4)
    found = 0
    for law, stream in zip(PARTS, streams, strict=True):
        own = law.draw(200, stream)
        mine = np.isin(pool.phases, own.phases)
        n, width = int(mine.sum()), own.indices.shape[1]
        np.testing.assert_array_equal(pool.indices[mine, :width], own.indices[:n])
        np.testing.assert_array_equal(pool.values[mine, :width], own.values[:n])
        assert np.all(pool.indices[mine, width:] == -1)
        found += n
    assert found == 200
    assert pool.indices.shape == (200, 3)


@given(n=st.integers(0, 30), more=st.integers(0, 60), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_a_larger_pool_of_a_mixed_law_extends_a_smaller_one(n, more, seed):
    small, large = draw(MIXED, n, seed), draw(MIXED, n + more, seed)
    assert (len(small), len(large)) == (n, n + more)
    assert_equal_pools(small, large.take(slice(0, n)))


def test_the_summary_of_a_mixed_law_shows_the_largest_share_first():
    law = MixedLaw(PARTS[:2], (0.25, 0.75))
    names = ["a", "b", "c", "d"]
    assert law.summary(names, most=2) == (
        "75% of the features:\n"
        + PARTS[1].summary(names, 2)
        + "\n25% of the features:\n"
        + PARTS[0].summary(names, 2)
    )


@pytest.mark.parametrize(
    ("parts", "shares"),
    [
        ((), ()),
        (PARTS[:2], (1.0,)),
        ((PARTS[0], FeatureLaw(5)), (0.5, 0.5)),
        ((PARTS[0], FeatureLaw(4, activation="cos")), (0.5, 0.5)),
    ],
)
def test_laws_that_do_not_go_together_are_refused(parts, shares):
    with refused("MixedLaw needs laws with the same inputs and activation, and a share for each"):
        MixedLaw(parts, shares)


@pytest.mark.parametrize(
    "shares", [(0.5, 0.4), (1.0, 0.0), (1.5, -0.5), (math.nan, 0.5), (0.5, math.nan)]
)
def test_shares_are_positive_and_sum_to_one(shares):
    with refused(f"shares={shares!r} must be positive and sum to 1"):
        MixedLaw(PARTS[:2], shares)


# --- Pools joined and changed ---


def make_pool(n, orders, seed=0, **law):
    return draw(FeatureLaw(4, orders, **law), n, seed)


@pytest.mark.parametrize(("one", "two"), [((1,), (3,)), ((3,), (1, 2)), ((2,), (2,))])
def test_joined_pools_are_the_features_of_both_in_turn(one, two):
    a, b, X = make_pool(5, one), make_pool(7, two, 1), rows(9)
    both = a.join(b)
    assert len(both) == 12
    assert both.indices.shape[1] == max(*one, *two)
    np.testing.assert_array_equal(both.evaluate(X), np.hstack([a.evaluate(X), b.evaluate(X)]))
    np.testing.assert_array_equal(
        both.weights().toarray(), np.hstack([a.weights().toarray(), b.weights().toarray()])
    )
    np.testing.assert_array_equal(both.values == 0, both.indices < 0)


def test_joining_nothing_changes_no_feature():
    a = make_pool(5, (2,), activation="cos")
    assert_equal_pools(a.join(a.take(slice(0, 0))), a)
    assert_equal_pools(a.take(slice(0, 0)).join(a), a)


@pytest.mark.parametrize("orders", [(1,), (2,), (3,), (1, 3)])
def test_replaced_features_stand_at_their_places(orders):
    pool, new, X = make_pool(10, (1, 3)), make_pool(3, orders, 1), rows(9)
    places = np.array([7, 0, 4])
    before = pool.evaluate(X)
    changed = pool.replaced(places, new)
    truth = before.copy()
    truth[:, places] = new.evaluate(X)
    np.testing.assert_array_equal(changed.evaluate(X), truth)
    np.testing.assert_array_equal(changed.values == 0, changed.indices < 0)
    np.testing.assert_array_equal(pool.evaluate(X), before)


def test_replacing_keeps_the_activation():
    pool = make_pool(6, (2,), activation="exp")
    changed = pool.replaced(np.array([1]), make_pool(1, (1,), 1, activation="exp"))
    assert isinstance(changed, FeaturePool)
    assert changed.is_complex
    assert changed.n_variables == 4


# --- Estimators that are given a law ---

PLAIN = {"order": (1, 2), "scale": 0.7, "activation": "cos", "variable_weights": (1, 2, 0, 1)}
SAME = FeatureLaw(4, (1, 2), scale=(0.7,), activation="cos", variable_weights=(1.0, 2.0, 0.0, 1.0))


def target(X):
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 3]


def test_features_of_a_law_are_those_of_its_plain_parameters():
    X = rows(20)
    plain = SparseRandomFeatures(30, **PLAIN, random_state=3).fit(X)
    given = SparseRandomFeatures(30, law=SAME, random_state=3).fit(X)
    assert plain.law_ == given.law_ == SAME
    np.testing.assert_array_equal(plain.transform(X), given.transform(X))


def test_a_fit_with_a_law_is_that_of_its_plain_parameters():
    X = rows(40)
    settings = {"n_components": 100, "n_nonzero_coefs": 8, "random_state": 3}
    plain = HARFERegressor(**settings, **PLAIN).fit(X, target(X))
    given = HARFERegressor(**settings, law=SAME).fit(X, target(X))
    assert given.law_ == SAME
    np.testing.assert_array_equal(plain.predict(X), given.predict(X))


def test_a_given_law_overrules_the_plain_parameters():
    X = rows(20)
    given = SparseRandomFeatures(30, law=SAME, order=3, activation="relu", random_state=3).fit(X)
    alone = SparseRandomFeatures(30, law=SAME, random_state=3).fit(X)
    np.testing.assert_array_equal(given.transform(X), alone.transform(X))


def test_a_mixed_law_is_drawn_from_by_the_estimators():
    X = rows(40)
    features = SparseRandomFeatures(30, law=MIXED, random_state=3).fit(X)
    assert features.law_ == MIXED
    model = HARFERegressor(n_components=100, n_nonzero_coefs=8, law=MIXED, random_state=3)
    assert model.fit(X, target(X)).law_ == MIXED


@pytest.mark.parametrize("law", [SAME, MIXED])
@pytest.mark.parametrize("estimator", [SparseRandomFeatures, HARFERegressor])
def test_a_law_of_other_inputs_is_refused(estimator, law):
    X = rows(20, 3)
    message = "law draws from 4 inputs, but X has 3; pass a law for that many"
    with refused(message):
        estimator(law=law).fit(X, X[:, 0])


@pytest.mark.parametrize("law", ["learned", 5, (1, 2)])
@pytest.mark.parametrize("estimator", [SparseRandomFeatures, HARFERegressor])
def test_what_is_no_law_is_refused(estimator, law):
    X = rows(20)
    with pytest.raises(ValueError, match=r"^law="):
        estimator(law=law).fit(X, X[:, 0])
