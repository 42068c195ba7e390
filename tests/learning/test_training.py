"""Training features: planted sums of sines, slopes by differences, relations that must hold."""

from dataclasses import replace

import numpy as np
import pytest

from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.learning import training
from harfe.learning.training import train


def planted(m=3000, targets=1, seed=0):
    """Points, and at each of them sums of six sines of one or two of three inputs."""
    rng = np.random.default_rng(seed)
    truth = FeatureLaw(3, (1, 2), scale=(1.5,)).draw(6, rng)
    coef = rng.uniform(1, 2, (6, targets))
    Z = rng.normal(size=(m, 3))
    return Z, truth.evaluate(Z) @ coef / np.sqrt(np.sum(coef**2, axis=0) / 2)


def start(s=40, seed=1, **law):
    return FeatureLaw(3, (1, 2), **law).draw(s, np.random.default_rng(seed))


def trained(pool, Z, t, weights=None, passes=100, seed=0):
    weights = np.ones(len(Z)) if weights is None else weights
    return train(pool, Z, t, weights, passes=passes, seed=seed)


def errors(pool, m=1000, targets=1):
    """Mean squared error of the ridge solution on these features, at points not trained on."""
    Z, t = planted(m + 3000, targets)
    A = np.column_stack([pool.evaluate(Z), np.ones(len(Z))])
    lhs = A[:3000].T @ A[:3000] + 1e-6 * np.eye(A.shape[1])
    gap = A[3000:] @ np.linalg.solve(lhs, A[:3000].T @ t[:3000]) - t[3000:]
    return np.mean(gap**2, axis=0)


def assert_same(a, b):
    for name in ("indices", "values", "phases"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


# --- What training is for ---


@pytest.mark.parametrize("activation", ["sin", "cos"])
def test_training_comes_close_to_planted_sines(activation):
    Z, t = planted()
    pool = start(activation=activation)
    found = trained(pool, Z, t)
    assert found.activation == activation
    assert errors(found)[0] < errors(pool)[0] / 15


def test_several_targets_share_their_features():
    Z, t = planted(targets=3)
    pool = start()
    assert np.all(errors(trained(pool, Z, t), targets=3) < errors(pool, targets=3) / 10)


def test_each_feature_keeps_its_variables():
    Z, t = planted(500)
    pool = start()
    pool.values[5, 0] = 0.0  # an input that is not in use, such as a constant one
    found = trained(pool, Z, t, passes=5)
    np.testing.assert_array_equal(found.indices, pool.indices)
    np.testing.assert_array_equal(found.present, pool.present)
    assert np.all(found.values[pool.present] != pool.values[pool.present])
    assert found.n_variables == 3


def test_inputs_of_no_feature_do_not_matter():
    Z, t = planted(500)
    far = np.insert(Z, [0, 2], 1e30, axis=1)
    pool = start()
    places = np.array([1, 2, 4])
    moved = FeaturePool(5, np.where(pool.indices < 0, -1, places[pool.indices]), *parts(pool))
    one, two = trained(pool, Z, t, passes=3), trained(moved, far, t, passes=3)
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.phases, two.phases)


def parts(pool):
    return pool.values, pool.phases, pool.activation


def test_cosines_are_sines_with_another_phase():
    Z, t = planted(500)
    cosines = start(activation="cos")
    sines = replace(cosines, phases=cosines.phases + np.pi / 2, activation="sin")
    one, two = trained(cosines, Z, t, passes=3), trained(sines, Z, t, passes=3)
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_allclose(one.evaluate(Z), two.evaluate(Z), rtol=0, atol=1e-12)


# --- The same every time ---


def test_equal_seeds_are_equal_features():
    Z, t = planted(500)
    one, two, other = (trained(start(), Z, t, passes=3, seed=seed) for seed in (0, 0, 1))
    assert_same(one, two)
    assert not np.array_equal(one.values, other.values)


def test_threads_change_no_bit(on_threads):
    Z, t = planted(1000)
    one, two = (on_threads(n, lambda: trained(start(), Z, t, passes=3)) for n in (1, 2))
    assert_same(one, two)


def test_points_of_no_weight_have_no_influence():
    Z, t = planted(500)
    weights = np.ones(500)
    weights[::3] = 0
    wrong = t.copy()
    wrong[::3] = 1e3
    one, two = (trained(start(), Z, values, weights, passes=3) for values in (t, wrong))
    assert_same(one, two)
    assert not np.array_equal(one.values, trained(start(), Z, wrong, passes=3).values)


# --- When it ends ---


@pytest.mark.parametrize("best", [0, 3, 25])
def test_what_is_returned_is_where_the_error_was_lowest(monkeypatch, best):
    seen = []

    def error(net, x, *_):
        seen.append((net, x.copy()))
        return abs(len(seen) - 1 - best) + 1.0

    monkeypatch.setattr(training._Network, "error", error)
    Z, t = planted(300)
    found = trained(start(), Z, t, passes=30)
    # the start, the checks until the best one, and nine that are no better
    assert len(seen) == min(1 + best + 9, 31)
    net, x = seen[best]
    assert_same(found, net.features(x))


def test_every_pass_takes_each_row_at_most_once_in_a_new_order():
    rows = np.arange(100, 1100)
    batches = list(training._batches(rows, 256, 6, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [256] * 6
    first, second = np.concatenate(batches[:3]), np.concatenate(batches[3:])
    for taken in (first, second):
        assert len(np.unique(taken)) == 768
        assert np.isin(taken, rows).all()
    assert not np.array_equal(first, second)


# --- The loops ---


@pytest.mark.compiled
def test_the_sine_in_single_precision():
    rng = np.random.default_rng(0)
    halves = np.pi / 2 * np.arange(-40, 41)  # where the reduction turns
    z = np.concatenate([rng.uniform(-30, 30, 300), halves, [0.0]]).astype(np.float32)[None]
    phases = np.zeros(z.shape[1], np.float32)
    sine, cosine = np.empty((2, *z.shape), np.float32)
    training._waves(z.copy(), phases, sine, cosine)
    np.testing.assert_allclose(sine, np.sin(z.astype(float)), rtol=0, atol=2e-7)
    np.testing.assert_allclose(cosine, np.cos(z.astype(float)), rtol=0, atol=2e-7)
    assert sine[0, -1] == 0
    far = rng.uniform(-1e4, 1e4, z.shape).astype(np.float32)
    training._waves(far.copy(), phases, sine, cosine)
    np.testing.assert_allclose(sine, np.sin(far.astype(float)), rtol=0, atol=1e-6)
    np.testing.assert_allclose(cosine, np.cos(far.astype(float)), rtol=0, atol=1e-6)


@pytest.mark.compiled
@pytest.mark.parametrize("targets", [1, 2])
def test_the_slopes_are_those_of_half_the_weighted_error(targets):
    rng = np.random.default_rng(0)
    Z, t = planted(9, targets)
    w = rng.uniform(0, 2, 9)
    net = training._Network(start(4), np.arange(3), targets)
    net.x[:] = rng.normal(size=len(net.x))

    def half_error(x):
        W, b, C, intercept = net.parts(x)
        gap = np.sin(Z @ W + b) @ C + intercept - t
        return w @ np.sum(gap**2, axis=1) / (2 * 9)

    x, h = net.x.astype(float), 1e-5
    truth = [(half_error(x + e) - half_error(x - e)) / (2 * h) for e in h * np.eye(len(x))]
    slopes = np.zeros_like(net.x)
    batch = (values.astype(np.float32) for values in (Z, t, w))
    waves = np.empty((2, 9, 4), np.float32)
    training._slopes(net.parts(net.x), net.parts(slopes), *batch, waves)
    np.testing.assert_allclose(slopes, truth, rtol=1e-5, atol=3e-6)


@pytest.mark.compiled
def test_steps_are_those_of_adam():
    rng = np.random.default_rng(0)
    x = rng.normal(size=7).astype(np.float32)
    rates = rng.uniform(0, 0.1, 7).astype(np.float32)
    rates[2] = 0  # an entry that is no weight of its feature
    mean, (first, second) = x.copy(), np.zeros((2, 7), np.float32)
    truth, average, m, v = x.astype(float), x.astype(float), 0.0, 0.0
    for k in range(1, 6):
        g = rng.normal(size=7)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        truth = truth - rates * 0.5 * (m / (1 - 0.9**k)) / np.sqrt(v / (1 - 0.99**k))
        average = 0.99 * average + 0.01 * truth
        unbias = (np.float32(1 / (1 - beta**k)) for beta in (0.9, 0.99))
        gradient = g.astype(np.float32)
        training._step(x, mean, gradient, first, second, rates, np.float32(0.5), *unbias)
    np.testing.assert_allclose(x, truth, rtol=1e-5)
    np.testing.assert_allclose(mean, average, rtol=1e-5)
    assert x[2] == np.float32(truth[2])
