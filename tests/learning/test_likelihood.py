"""The penalised likelihood against its dense transcription, differences and planted problems."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harfe.learning.candidates import CANDIDATES
from harfe.learning.likelihood import KernelSettings, Likelihood, Prior, variance_shares

PRIORS = [
    *CANDIDATES.values(),
    Prior("three", 3, scale=2.0, spread=0.3, strength=2.0, sparsity=0.1),
    Prior("isotropic fours", 4, isotropic=True, scale=0.2, spread=2.0, sparsity=3.0),
    Prior("noisy", 2, smallest_noise=0.5),
    Prior("smooth t", 1, full=True, weights="t3", scale=0.2, spread=2.0, strength=3.0),
    Prior("isotropic t", 1, full=True, isotropic=True, weights="t5"),
    Prior("rough pairs", 2, weights="cauchy"),
]

# E cos(g w) for weights w at scale 1.
CHARACTERISTIC = {
    "normal": lambda g: np.exp(-(g**2) / 2),
    "cauchy": lambda g: np.exp(-np.abs(g)),
    "t3": lambda g: (1 + np.sqrt(3) * np.abs(g)) * np.exp(-np.sqrt(3) * np.abs(g)),
    "t5": lambda g: (1 + np.sqrt(5) * np.abs(g) + 5 * g**2 / 3) * np.exp(-np.sqrt(5) * np.abs(g)),
}


def make(prior, m=25, d=4, targets=1, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.3, 3.0, m) if weighted else np.ones(m)
    return Likelihood(rng.normal(size=(d, m)), rng.normal(size=(m, targets)), weights, prior)


def somewhere(likelihood, seed=0):
    """Parameters off the start, all different."""
    start = likelihood.start()
    return start + np.random.default_rng(seed).normal(0, 0.4, len(start))


def symmetric(p, q):
    """The elementary symmetric polynomial e_q by its definition."""
    return sum(np.prod([p[k] for k in S], axis=0) for S in itertools.combinations(range(len(p)), q))


def brute_kernel(scales, p, eta, XT, ZT, weights="normal"):
    gap = XT[:, :, None] - ZT[:, None, :]
    u = p[:, None, None] * CHARACTERISTIC[weights](scales[:, None, None] * gap)
    return sum(eta[q] * symmetric(u, q) for q in range(1, len(eta)))


def dense_value(likelihood, theta):
    """The formula at the head of the module, term by term."""
    prior, d, T = likelihood.prior, len(likelihood.XT), likelihood.y.shape[1]
    own = 1 if prior.isotropic else d
    Q = min(prior.max_order, d)
    sigma, noise = np.exp(theta[:own]), np.exp(theta[-1])
    every = np.ones(d)
    if prior.full:
        # one order, that of all inputs, whose weight is free; p is 1 and free of charge
        assert len(theta) == own + 2
        eta, p = np.exp(theta[own : own + 1]), np.zeros(1)
        orders, included = [*[0.0] * d, *eta], every
    else:
        assert len(theta) == 2 * own + Q
        p, eta = np.exp(theta[own : 2 * own]), np.exp(theta[2 * own : 2 * own + Q - 1])
        orders, included = [0.0, 1.0, *eta], p * every
    X = likelihood.XT
    K = brute_kernel(sigma * every, included, orders, X, X, prior.weights)
    C = K + 1 + noise * np.diag(1 / likelihood.weights)
    sign, log_det = np.linalg.slogdet(C)
    assert sign == 1
    value = 0.5 * np.trace(likelihood.y.T @ np.linalg.solve(C, likelihood.y)) + 0.5 * T * log_det
    # a row of weight w counts as w equal rows, whose scatter has w - 1 dimensions
    value += 0.5 * T * np.sum(likelihood.weights - 1) * np.log(noise)
    value += prior.strength / 2 * np.sum((np.log(sigma / prior.scale) / prior.spread) ** 2)
    value += prior.sparsity * np.sum(p * every)
    return value + np.sum(np.log(eta) ** 2) / 8


def differences(function, theta, h=2e-3):
    """Central differences of fourth order."""
    gradient = np.empty(len(theta))
    for k, step in enumerate(h * np.eye(len(theta))):
        near = function(theta + step) - function(theta - step)
        far = function(theta + 2 * step) - function(theta - 2 * step)
        gradient[k] = (8 * near - far) / (12 * h)
    return gradient


# --- Value and gradient ---


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
def test_the_value_is_the_formula_written_out(prior, targets):
    likelihood = make(prior, targets=targets)
    for seed in range(3):
        theta = somewhere(likelihood, seed)
        np.testing.assert_allclose(likelihood(theta)[0], dense_value(likelihood, theta), rtol=1e-11)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
def test_the_gradient_is_that_of_the_value(prior, targets):
    likelihood = make(prior, targets=targets)
    for theta in (likelihood.start(), somewhere(likelihood)):
        gradient = likelihood(theta)[1]
        truth = differences(lambda t: dense_value(likelihood, t), theta)
        np.testing.assert_allclose(gradient, truth, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("prior", [Prior("three", 3), CANDIDATES["rough"]], ids=["three", "rough"])
@pytest.mark.parametrize("m", [1, 2, 15, 16, 17, 65, 80])
def test_the_gradient_counts_every_pair_of_rows_in_every_block(m, prior):
    likelihood = make(prior, m=m)
    theta = somewhere(likelihood)
    truth = differences(lambda t: likelihood(t)[0], theta)
    np.testing.assert_allclose(likelihood(theta)[1], truth, rtol=1e-7, atol=1e-7)


@given(
    d=st.integers(1, 4),
    order=st.integers(1, 5),
    isotropic=st.booleans(),
    full=st.booleans(),
    weights=st.sampled_from(list(CHARACTERISTIC)),
    targets=st.integers(1, 2),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=40)
def test_value_and_gradient_of_any_size(d, order, isotropic, full, weights, targets, seed):
    prior = Prior("any", order, isotropic=isotropic, full=full, weights=weights)
    likelihood = make(prior, 9, d, targets, seed)
    assert likelihood.max_order == min(d, order)
    theta = somewhere(likelihood, seed)
    value, gradient = likelihood(theta)
    np.testing.assert_allclose(value, dense_value(likelihood, theta), rtol=1e-10)
    truth = differences(lambda t: dense_value(likelihood, t), theta)
    np.testing.assert_allclose(gradient, truth, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
def test_the_order_of_the_rows_does_not_matter(prior):
    likelihood = make(prior)
    rows = np.random.default_rng(1).permutation(25)
    other = Likelihood(
        np.ascontiguousarray(likelihood.XT[:, rows]),
        likelihood.y[rows],
        likelihood.weights[rows],
        prior,
    )
    theta = somewhere(likelihood)
    np.testing.assert_allclose(other(theta)[0], likelihood(theta)[0], rtol=1e-12)
    np.testing.assert_allclose(other(theta)[1], likelihood(theta)[1], rtol=1e-9, atol=1e-10)


def test_isotropic_is_all_variables_alike_but_for_the_penalty_on_the_scale():
    d = 4
    alike = make(Prior("alike", 3, isotropic=True, strength=0.0))
    apart = replace(alike, prior=replace(alike.prior, isotropic=False))
    theta = somewhere(alike)
    full = np.concatenate([np.repeat(theta[:2], d), theta[2:]])
    (a, by_a), (b, by_b) = alike(theta), apart(full)
    np.testing.assert_allclose(a, b, rtol=1e-13)
    truth = [by_b[:d].sum(), by_b[d : 2 * d].sum(), *by_b[2 * d :]]
    np.testing.assert_allclose(by_a, truth, rtol=1e-10, atol=1e-12)


def test_targets_add_up():
    both = make(Prior("pairs", 2, strength=0.0, sparsity=0.0), targets=2)
    one, two = (replace(both, y=both.y[:, [k]]) for k in (0, 1))
    theta = both.start()  # order weights of 1 cost nothing
    np.testing.assert_allclose(both(theta)[0], one(theta)[0] + two(theta)[0], rtol=1e-12)
    np.testing.assert_allclose(both(theta)[1], one(theta)[1] + two(theta)[1], rtol=1e-9, atol=1e-11)


def test_a_covariance_that_is_not_positive_is_made_so():
    likelihood = Likelihood(np.ones((2, 30)), np.ones((30, 1)), np.ones(30), Prior("pairs", 2))
    theta = likelihood.start()
    theta[-1] = -800.0  # no noise, and all rows are equal
    value, gradient = likelihood(theta)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
    settings = likelihood.settings(theta)
    L = np.tril(settings.factor(likelihood.XT, likelihood.weights))
    C = settings.kernel(likelihood.XT) + 1.0
    np.testing.assert_allclose(L @ L.T, C, rtol=1e-10)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
def test_the_value_alone_and_the_parameters_of_settings(prior):
    likelihood = make(prior)
    theta = likelihood.start() + np.random.default_rng(0).normal(size=len(likelihood.start())) / 5
    assert likelihood.value(theta) == likelihood(theta)[0]
    np.testing.assert_allclose(likelihood.parameters(likelihood.settings(theta)), theta, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_survives_a_long_gradient(seed):
    """Rows with equal inputs: a step as long as the gradient leads where there is no factor."""
    XT, y = planted(150, 6, seed)
    likelihood = Likelihood(np.rint(XT), y, np.ones(150), CANDIDATES["fours"])
    values = []
    for noise in (0.02, 0.06, 0.2, 2.0):
        theta = likelihood.start()
        theta[-1] = np.log(noise)
        values.append(likelihood.descend(theta, 60)[1])
    np.testing.assert_allclose(values, min(values), atol=0.5)


# --- Weights ---


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
def test_weight_two_is_the_row_twice(prior, targets):
    plain = make(prior, m=20, targets=targets, weighted=False)
    counts = np.random.default_rng(1).integers(1, 4, 20)
    twice = np.repeat(np.arange(20), counts)
    weighted = replace(plain, weights=counts.astype(float))
    repeated = Likelihood(
        np.ascontiguousarray(plain.XT[:, twice]), plain.y[twice], np.ones(len(twice)), prior
    )
    # det of w equal rows: ν^(w - 1) (w A + ν) = w ν^(w - 1) (A + ν/w)
    constant = targets / 2 * np.sum(np.log(counts))
    for seed in range(3):
        theta = somewhere(plain, seed)
        (a, by_a), (b, by_b) = weighted(theta), repeated(theta)
        assert b - a == pytest.approx(constant, rel=1e-9)
        np.testing.assert_allclose(by_a, by_b, rtol=1e-9, atol=1e-9)


# --- Parameters ---


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
def test_the_search_starts_with_all_variables_alike(prior):
    likelihood = make(prior)
    settings = likelihood.settings(likelihood.start())
    # the scales of a product shrink with the root of their number
    scale, included = (0.75 / 2, 1.0) if prior.full else (0.5, 0.25)
    orders = [1.0] if prior.full else [0.0, *[1.0] * prior.max_order]
    np.testing.assert_allclose(settings.scales, np.full(4, scale), rtol=1e-14)
    np.testing.assert_allclose(settings.inclusion, np.full(4, included), rtol=1e-15)
    np.testing.assert_array_equal(settings.order_weights, orders)
    assert (settings.weights, settings.full) == (prior.weights, prior.full)
    assert settings.noise == pytest.approx(max(0.1, 2 * prior.smallest_noise))


def test_settings_know_kernel_and_variance():
    rng = np.random.default_rng(0)
    p, eta = np.array([0.5, 0.0, 2.0, 1.0]), np.array([0.0, 1.0, 0.3, 0.7])
    settings = KernelSettings(rng.uniform(0.2, 2, 4), p, eta, 0.1)
    XT, ZT = rng.normal(size=(4, 9)), rng.normal(size=(4, 5))
    for Z in (XT, ZT):
        truth = brute_kernel(settings.scales, p, eta, XT, Z)
        np.testing.assert_allclose(settings.kernel(XT, Z), truth, rtol=1e-13)
    np.testing.assert_array_equal(settings.kernel(XT), settings.kernel(XT, XT))
    # e_1 = 3.5, e_2 = 1 + 0.5 + 2, e_3 = 1
    assert settings.variance() == pytest.approx(3.5 + 0.3 * 3.5 + 0.7, rel=1e-14)
    used = settings.used()
    np.testing.assert_array_equal(used.inclusion, [0.5, 2.0, 1.0])
    np.testing.assert_array_equal(used.scales, settings.scales[[0, 2, 3]])
    np.testing.assert_allclose(
        used.kernel(XT[[0, 2, 3]], ZT[[0, 2, 3]]), settings.kernel(XT, ZT), rtol=1e-14
    )
    assert used.variance() == pytest.approx(settings.variance(), rel=1e-14)


@pytest.mark.parametrize("weights", CHARACTERISTIC)
def test_settings_of_a_joint_law_know_kernel_and_variance(weights):
    rng = np.random.default_rng(0)
    scales, used = rng.uniform(0.2, 2, 4), np.array([1.0, 0.0, 1.0, 1.0])
    settings = KernelSettings(scales, used, np.array([0.6]), 0.1, weights, full=True)
    XT, ZT = rng.normal(size=(4, 9)), rng.normal(size=(4, 5))
    truth = brute_kernel(scales, used, [0.0, 0.0, 0.0, 0.6], XT, ZT, weights)
    np.testing.assert_allclose(settings.kernel(XT, ZT), truth, rtol=1e-13)
    np.testing.assert_array_equal(settings.kernel(XT), settings.kernel(XT, XT))
    assert settings.variance() == pytest.approx(0.6, rel=1e-14)
    np.testing.assert_array_equal(settings.strengths(), scales)
    some = settings.used()
    np.testing.assert_allclose(
        some.kernel(XT[[0, 2, 3]], ZT[[0, 2, 3]]), settings.kernel(XT, ZT), rtol=1e-14
    )


def test_parameters_without_some_inputs_are_those_of_the_others():
    likelihood = make(Prior("three", 3), d=5)
    theta, kept = somewhere(likelihood), np.array([0, 3, 4])
    small, left = likelihood.restricted(kept), likelihood.without(theta, kept)
    np.testing.assert_array_equal(small.XT, likelihood.XT[kept])
    whole, part = likelihood.settings(theta), small.settings(left)
    np.testing.assert_array_equal(part.scales, whole.scales[kept])
    np.testing.assert_array_equal(part.inclusion, whole.inclusion[kept])
    np.testing.assert_array_equal(part.order_weights, whole.order_weights)
    assert part.noise == whole.noise
    np.testing.assert_allclose(small(left)[0], dense_value(small, left), rtol=1e-11)


def test_isotropic_parameters_stay_when_inputs_go():
    likelihood = make(Prior("alike", 2, isotropic=True), d=5)
    theta = somewhere(likelihood)
    kept = np.array([1, 2])
    np.testing.assert_array_equal(likelihood.without(theta, kept), theta)
    assert len(likelihood.restricted(kept).settings(theta).scales) == 2


# --- The search ---


def planted(m=60, d=7, seed=0, noise=0.1):
    """y depends on the inputs 1, 4 and 5: an additive term and a product."""
    rng = np.random.default_rng(seed)
    XT = rng.normal(size=(d, m))
    y = np.sin(2 * XT[1]) + XT[4] * XT[5] + noise * rng.normal(size=m)
    return XT, ((y - y.mean()) / y.std())[:, None]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
def test_a_descent_lowers_the_value_within_the_bounds(prior):
    XT, y = planted(40)
    likelihood = Likelihood(XT, y, np.ones(40), prior)
    start = likelihood.start()
    few, high = likelihood.descend(start, 3)
    more, low = likelihood.descend(start, 30)
    assert low < high < likelihood(start)[0]
    for theta, value in ((few, high), (more, low)):
        assert value == pytest.approx(likelihood(theta)[0], rel=1e-12)
        found = likelihood.settings(theta)
        assert prior.smallest_noise * (1 - 1e-12) <= found.noise <= 10 * (1 + 1e-12)


def test_the_end_of_a_long_descent_is_a_minimum():
    XT, y = planted(40)
    likelihood = Likelihood(
        np.ascontiguousarray(XT[[1, 4, 5]]), y, np.ones(40), Prior("pairs", 2, sparsity=0.1)
    )
    theta, low = likelihood.descend(likelihood.start(), 500)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=len(theta))
        assert likelihood(theta + 0.05 * step / np.linalg.norm(step))[0] > low - 1e-3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["pairs", "fours"])
def test_inputs_of_noise_are_dropped_and_true_ones_kept(name, seed):
    XT, y = planted(seed=seed)
    likelihood = Likelihood(XT, y, np.ones(60), CANDIDATES[name])
    theta, value = likelihood.descend(likelihood.start(), 25)
    kept = likelihood.worth_keeping(theta, value)
    # at least as many stay as the largest order
    assert {1, 4, 5} <= set(kept.tolist())
    assert len(kept) <= max(4, likelihood.max_order)


def test_what_is_kept_is_worth_its_price():
    XT, y = planted(50, 8, seed=8)
    weights = np.random.default_rng(0).uniform(0.5, 3, 50)
    likelihood = Likelihood(XT, y, weights, CANDIDATES["pairs"])
    theta, value = likelihood.descend(likelihood.start(), 25)
    kept = likelihood.worth_keeping(theta, value)
    found = likelihood.settings(theta)
    order = np.argsort(variance_shares(found.inclusion, found.order_weights))

    def is_cheap(n):
        rest = np.sort(order[n:])
        cost = dense_value(likelihood.restricted(rest), likelihood.without(theta, rest)) - value
        return cost <= math.log(weights.sum()) + 0.25 * n

    n = 8 - len(kept)
    assert 0 < n < 6
    np.testing.assert_array_equal(kept, np.sort(order[n:]))
    assert is_cheap(n)
    assert not is_cheap(n + 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["joint", "rough"])
def test_a_joint_law_drops_noise_and_keeps_what_is_true(name, seed):
    XT, y = planted(150, 7, seed=seed)
    likelihood = Likelihood(XT, y, np.ones(150), CANDIDATES[name])
    theta, value = likelihood.descend(likelihood.start(), 30)
    kept = likelihood.worth_keeping(theta, value)
    assert {1, 4, 5} <= set(kept.tolist())
    assert len(kept) <= 4
    small, left = likelihood.restricted(kept), likelihood.without(theta, kept)
    np.testing.assert_array_equal(left, theta[[*kept, 7, 8]])
    np.testing.assert_allclose(small(left)[0], dense_value(small, left), rtol=1e-11)
    # dropping one of those costs more than they are worth
    rest = np.array([4, 5])
    cost = likelihood.restricted(rest).value(likelihood.without(theta, rest)) - value
    assert cost > math.log(150) + 0.25 * 5


def test_a_joint_law_of_pure_noise_keeps_a_single_input():
    rng = np.random.default_rng(0)
    likelihood = Likelihood(
        rng.normal(size=(6, 50)), rng.normal(size=(50, 1)), np.ones(50), CANDIDATES["joint"]
    )
    theta, value = likelihood.descend(likelihood.start(), 25)
    assert len(likelihood.worth_keeping(theta, value)) == 1


def test_where_nothing_may_go_all_inputs_are_kept():
    XT, y = planted(30)
    XT = XT[[1, 4, 5]]
    for prior, inputs in [
        (Prior("alike", 2, isotropic=True), XT),
        (Prior("one", 1), XT[:1]),
        (Prior("all", 3), XT),
        (Prior("joint", 1, full=True), XT[:1]),
        (Prior("alike and joint", 1, full=True, isotropic=True), XT),
    ]:
        likelihood = Likelihood(np.ascontiguousarray(inputs), y, np.ones(30), prior)
        start = likelihood.start()
        kept = likelihood.worth_keeping(start, likelihood(start)[0])
        np.testing.assert_array_equal(kept, np.arange(len(inputs)))


def test_pure_noise_leaves_as_few_inputs_as_the_order_needs():
    rng = np.random.default_rng(0)
    likelihood = Likelihood(
        rng.normal(size=(6, 50)), rng.normal(size=(50, 1)), np.ones(50), CANDIDATES["additive"]
    )
    theta, value = likelihood.descend(likelihood.start(), 25)
    assert len(likelihood.worth_keeping(theta, value)) == 1


# --- Shares of the variance ---


@given(d=st.integers(1, 6), order=st.integers(1, 7), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=50)
def test_shares_of_the_variance_are_those_of_the_sets_with_the_variable(d, order, seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0, 2, d) * (rng.random(d) > 0.2)
    eta = np.concatenate([[0.0], rng.uniform(0, 2, order)])
    truth = np.zeros(d)
    for q in range(1, min(order, d) + 1):
        for S in itertools.combinations(range(d), q):
            truth[list(S)] += eta[q] * math.prod(p[k] for k in S)
    np.testing.assert_allclose(variance_shares(p, eta), truth, rtol=1e-13, atol=1e-300)


def test_shares_of_the_variance_by_hand():
    # sets 0, 1, 2 and 01, 02, 12, the pairs by 1/2
    p, eta = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 0.5])
    np.testing.assert_allclose(variance_shares(p, eta), [4.0, 7.0, 10.0], rtol=1e-15)


# --- Threads ---


@pytest.mark.parametrize("prior", [Prior("three", 3), CANDIDATES["rough"]], ids=["three", "rough"])
def test_threads_change_no_bit_of_value_and_gradient(on_threads, prior):
    likelihood = make(prior, m=70, targets=2)
    theta = somewhere(likelihood)
    (a, by_a), (b, by_b) = (on_threads(n, lambda: likelihood(theta)) for n in (1, 2))
    assert a == b
    np.testing.assert_array_equal(by_a, by_b)
