"""Training few features: finite differences, dense twins, planted sines, what must not change."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from shared import FORMULAS

from harfe.features.activations import ACTIVATIONS
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.learning.matching import Matched, Points, match
from harfe.learning.refining import _Problem, refine

REAL = [name for name, row in ACTIVATIONS.items() if not row.is_complex]


def target(Z):
    return np.column_stack([np.sin(Z[:, 0]) * Z[:, 1] + Z[:, 2] ** 2, np.exp(0.3 * Z[:, 1]) + 4])


def make(seed=0, n=30, P=300, d=3, targets=1, activation="sin", noise=0.0):
    """Points with weights, and features of one and two variables."""
    rng = np.random.default_rng(seed)
    Z, weights = rng.normal(size=(P, d)), rng.uniform(0.3, 2, P)
    pool = FeatureLaw(d, (1, 2), scale=(0.8,), activation=activation).draw(n, rng)
    return pool, Points(Z, target(Z)[:, :targets], weights / weights.mean(), noise)


def start_of(pool, support=None):
    """A start from these features; training uses neither coefficients nor gap."""
    s = len(pool)
    support = np.arange(s) if support is None else support
    return Matched(support, pool, np.full((1, s), np.nan), np.full(1, np.nan), np.nan)


def dense_objective(pool, points, ridge=None):
    """The projected objective by definition, its coefficients and residual."""
    share = points.weights / points.weights.sum()
    z = points.Z @ pool.weights().toarray() + pool.phases
    with np.errstate(over="ignore"):  # a sigmoid far out
        A = FORMULAS[pool.activation](z)
    A = A - share @ A
    t = points.values - share @ points.values
    gram = (A * share[:, None]).T @ A
    if ridge is None:
        ridge = np.clip(points.noise, 1e-9, 1e-5) * np.trace(gram) / len(pool)
    c = np.linalg.solve(gram + ridge * np.eye(len(pool)), (A * share[:, None]).T @ t)
    left = t - A @ c
    return float(np.sum(share @ left**2) + ridge * np.sum(c**2)), c, left


def moved(pool, place, step):
    """A phase (place < features) or a weight changed; weights are counted feature by feature."""
    phases, values = pool.phases.copy(), pool.values.copy()
    if place < len(pool):
        phases[place] += step
    else:
        feature, column = np.argwhere(pool.indices >= 0)[place - len(pool)]
        values[feature, column] += step
    return replace(pool, values=values, phases=phases)


# --- the objective and its slopes ----------------------------------------------------------------


@pytest.mark.parametrize("activation", ["sin", "cos", "tanh", "sigmoid"])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_objective_is_that_of_the_best_coefficients(activation, targets):
    pool, points = make(n=6, targets=targets, activation=activation, noise=1.0)
    state = _Problem(points).project(pool)
    objective, c, left = dense_objective(pool, points)
    assert state.objective == pytest.approx(objective, rel=1e-10)
    np.testing.assert_allclose(state.coef, c, rtol=1e-6, atol=1e-8)
    roots = np.sqrt(points.weights)
    np.testing.assert_allclose(state.residual, (left * roots[:, None]).T, atol=1e-9)


@pytest.mark.parametrize("activation", ["sin", "cos", "tanh", "sigmoid"])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_direction_is_that_of_steepest_descent_by_finite_differences(activation, targets):
    pool, points = make(n=5, targets=targets, activation=activation)
    problem = _Problem(points)
    _, direction = problem.slopes(problem.project(pool))
    n_weights = np.count_nonzero(pool.indices >= 0)
    assert len(direction) == 5 + n_weights > 10
    # the ridge weight follows the power of the features; the direction takes it as it is
    A = FORMULAS[activation](points.Z @ pool.weights().toarray() + pool.phases)
    share = points.weights / points.weights.sum()
    ridge = 1e-9 * np.mean(share @ (A - share @ A) ** 2)
    h = 1e-5
    for k, expected in enumerate(-2 * direction):
        ahead, behind = (
            dense_objective(moved(pool, k, step), points, ridge)[0] for step in (h, -h)
        )
        assert (ahead - behind) / (2 * h) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("targets", [1, 2])
def test_the_matrix_is_that_of_gauss_newton_with_coefficients_projected_out(targets):
    pool, points = make(n=4, targets=targets, noise=1e-5)
    problem = _Problem(points)
    state = problem.project(pool)
    matrix, _ = problem.slopes(state)
    _, c, _ = dense_objective(pool, points)
    share = points.weights / points.weights.sum()

    def centred(A):
        return (A - share @ A) * np.sqrt(share)[:, None]

    z = points.Z @ pool.weights().toarray() + pool.phases
    A = centred(np.sin(z))
    feature, column = np.nonzero(pool.indices >= 0)
    slopes = np.column_stack(
        [np.cos(z), np.cos(z)[:, feature] * points.Z[:, pool.indices[feature, column]]]
    )
    owner = np.concatenate([np.arange(4), feature])
    ridge = 1e-5 * np.trace(A.T @ A) / 4
    hat = A @ np.linalg.solve(A.T @ A + ridge * np.eye(4), A.T)
    expected = np.zeros_like(matrix)
    for ct in c.T:
        J = centred(slopes * ct[owner])
        expected += J.T @ J - J.T @ hat @ J
    # in single precision, as it only shapes the step
    np.testing.assert_allclose(matrix, expected, atol=3e-6 * np.abs(expected).max())
    assert np.linalg.eigvalsh(matrix).min() > -1e-6 * np.trace(matrix)


# --- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", REAL)
@pytest.mark.parametrize("targets", [1, 2])
def test_training_never_raises_the_objective_at_equal_size(activation, targets):
    gains = []
    for seed in range(4):
        pool, points = make(seed, n=8, targets=targets, activation=activation)
        (model,) = refine([start_of(pool)], points, [8])
        before, after = (dense_objective(p, points)[0] for p in (pool, model.features))
        assert after <= before * (1 + 1e-9)
        gains.append(1 - after / before)
    assert np.median(gains) > 0.2


def test_training_pays_against_matching():
    pool, points = make(n=200)
    sizes = [4, 8]
    plain = match(pool, points, [4, 8, 16])
    trained = refine(plain, points, sizes)
    for a, b in zip(plain, trained, strict=False):
        assert len(a.support) == len(b.support)
        assert b.gap < 0.1 * a.gap


@pytest.mark.parametrize("activation", ["sin", "cos", "tanh"])
def test_a_planted_feature_is_recovered_from_a_perturbed_start(activation):
    rng = np.random.default_rng(0)
    planted = FeaturePool(
        3, np.array([[0, 2]]), np.array([[1.3, -0.7]]), np.array([0.4]), activation
    )
    Z = rng.normal(size=(300, 3))
    points = Points(Z, 2 * planted.evaluate(Z) + 5, np.ones(300), 0.0)
    start = replace(
        planted, values=planted.values + np.array([[0.1, -0.15]]), phases=np.array([0.6])
    )
    (model,) = refine([start_of(start, np.array([17]))], points, [1])
    np.testing.assert_allclose(model.features.values, planted.values, atol=1e-6)
    np.testing.assert_allclose(model.features.phases, planted.phases, atol=1e-6)
    np.testing.assert_allclose(model.coef, [[2.0]], atol=1e-6)
    np.testing.assert_allclose(model.intercept, [5.0], atol=1e-6)
    assert model.gap < 1e-12
    assert model.support.tolist() == [17]


def test_planted_features_of_two_targets_are_recovered():
    rng = np.random.default_rng(1)
    planted = FeaturePool(
        2,
        np.array([[0, 1], [1, -1]]),
        np.array([[1.0, 1.5], [2.0, 0.0]]),
        np.array([0.3, 1.0]),
    )
    Z = rng.normal(size=(400, 2))
    coef = np.array([[1.0, -2.0], [3.0, 0.5]])
    points = Points(Z, planted.evaluate(Z) @ coef.T + [1.0, -1.0], np.ones(400), 0.0)
    noise = 0.1 * rng.normal(size=(2, 2)) * (planted.indices >= 0)
    start = replace(planted, values=planted.values + noise, phases=planted.phases + 0.1)
    (model,) = refine([start_of(start)], points, [2])
    np.testing.assert_allclose(model.features.values, planted.values, atol=1e-6)
    np.testing.assert_allclose(model.coef, coef, atol=1e-6)
    np.testing.assert_allclose(model.intercept, [1.0, -1.0], atol=1e-6)


# --- what comes back -----------------------------------------------------------------------------


SIZES = [1, 3, 6, 12]


@pytest.fixture(scope="module", params=[1, 2], ids=["one target", "two targets"])
def path(request):
    pool, points = make(2, n=200, targets=request.param)
    start = match(pool, points, [20])[0]
    return pool, points, start, refine([start], points, SIZES)


def test_sizes_rise_and_supports_are_nested_in_that_of_the_start(path):
    _, _, start, models = path
    assert [len(model.support) for model in models] == SIZES
    for small, large in pairwise([*models, start]):
        assert set(small.support) < set(large.support)
    for model in models:
        np.testing.assert_array_equal(model.support, np.sort(model.support))


def test_features_keep_their_variables(path):
    pool, _, _, models = path
    for model in models:
        # the inputs of a feature are known by its place in the pool
        np.testing.assert_array_equal(model.features.indices, pool.indices[model.support])
        assert np.all(model.features.values[model.features.indices < 0] == 0)
        assert model.features.activation == pool.activation
        assert np.all(model.features.phases != pool.phases[model.support])


def test_predictions_and_the_gap_are_those_of_coefficients_and_intercept(path):
    _, points, _, models = path
    for model in models:
        z = points.Z @ model.features.weights().toarray() + model.features.phases
        prediction = np.sin(z) @ model.coef.T + model.intercept
        np.testing.assert_allclose(model.predict(points.Z), prediction, rtol=1e-9, atol=1e-9)
        left = np.sum((points.values - prediction) ** 2, axis=1)
        assert model.gap == pytest.approx(np.mean(points.weights * left), rel=1e-6)


def test_every_size_improves_on_what_is_given_for_it(path):
    pool, points, _, _ = path
    plain = match(pool, points, SIZES)
    models = refine(plain, points, SIZES)
    after, before = (
        [dense_objective(m.features, points)[0] for m in path] for path in (models, plain)
    )
    assert all(new < old for new, old in zip(after, before, strict=True))
    assert after[0] > 10 * after[-1]


def test_gains_that_nobody_would_see_are_not_pursued(path):
    _, points, start, _ = path
    # the largest size starts from the same features in all cases
    plain, thorough, quick, none = (
        dense_objective(model.features, points)[0]
        for model in (
            start,
            *(refine([start], points, [20], visible)[0] for visible in (0.0, 0.01, 1e9)),
        )
    )
    assert thorough < quick < plain
    # the first step is always made, as its gain is known only then
    assert quick <= none < plain


def test_the_start_is_not_changed():
    pool, points = make(n=6)
    values, phases = pool.values.copy(), pool.phases.copy()
    refine([start_of(pool)], points, [3, 6])
    np.testing.assert_array_equal(pool.values, values)
    np.testing.assert_array_equal(pool.phases, phases)


def test_sizes_larger_than_the_start_are_left_out():
    pool, points = make(n=5)
    models = refine([start_of(pool)], points, [2, 5, 6, 100])
    assert [len(model.support) for model in models] == [2, 5]
    assert refine([start_of(pool)], points, [6]) == []


def test_the_order_of_the_sizes_does_not_matter(path):
    _, points, start, models = path
    for a, b in zip(refine([start], points, [6, 12, 1, 3, 3]), models, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_array_equal(a.coef, b.coef)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_feature_that_is_missed_least_is_dropped(seed, targets):
    pool, points = make(seed, n=6, targets=targets)
    without = [dense_objective(pool.take(np.delete(np.arange(6), j)), points)[0] for j in range(6)]
    support = np.arange(6) * 10
    (model,) = refine([start_of(pool, support)], points, [5])
    assert set(support) - set(model.support) == {10 * int(np.argmin(without))}


def test_weights_of_points_are_repeats():
    pool, points = make(n=5)
    times = np.random.default_rng(2).integers(1, 4, 300)
    every = np.repeat(np.arange(300), times)
    weighted = Points(points.Z, points.values, times / times.mean(), 0.0)
    repeated = Points(points.Z[every], points.values[every], np.ones(len(every)), 0.0)
    problems = [_Problem(p) for p in (weighted, repeated)]
    states = [problem.project(pool) for problem in problems]
    assert states[0].objective == pytest.approx(states[1].objective, rel=1e-10)
    one, two = (p.slopes(s) for p, s in zip(problems, states, strict=True))
    np.testing.assert_allclose(
        one[0], two[0], atol=3e-6 * np.abs(one[0]).max()
    )  # in single precision
    np.testing.assert_allclose(one[1], two[1], rtol=1e-8, atol=1e-10)


def test_features_that_do_not_vary_do_no_harm():
    pool, points = make(n=6)
    flat = replace(pool, values=np.where(np.arange(6)[:, None] == 2, 0.0, pool.values))
    (model,) = refine([start_of(flat)], points, [6])
    assert np.all(np.isfinite(model.predict(points.Z)))
    assert model.gap < dense_objective(flat, points)[0]


def test_a_constant_reference_stays_constant():
    pool, points = make(n=4)
    points = Points(points.Z, np.full((300, 1), 3.0), points.weights, 0.0)
    for model in refine([start_of(pool)], points, [2, 4]):
        np.testing.assert_allclose(model.predict(points.Z), 3.0, rtol=1e-12)
        assert model.gap == 0.0


def test_a_reference_that_is_not_finite_gives_no_model():
    pool, points = make(n=4)
    values = points.values.copy()
    values[3] = np.nan
    assert refine([start_of(pool)], Points(points.Z, values, points.weights, 0.0), [4]) == []
    assert refine([start_of(pool)], Points(points.Z, values, points.weights, 0.0), [2]) == []
