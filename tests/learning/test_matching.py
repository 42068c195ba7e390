"""Matching a reference: the points, brute-force selection, planted expansions."""

from itertools import pairwise

import numpy as np
import pytest

from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.learning.matching import Columns, Points, forward_order, make_points, match


class Sum:
    """A reference whose value at a row is the sum of its inputs, and their largest."""

    def predict(self, Z):
        return np.column_stack([Z.sum(axis=1), Z.max(axis=1)])


def points_of(Z, weights=None, used=None, seed=0, noise=0.01):
    weights = np.ones(len(Z)) if weights is None else weights
    used = np.ones(Z.shape[1], dtype=bool) if used is None else used
    return make_points(Sum(), Z, weights, used, noise, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(scope="module")
def drawn():
    """Unrelated features and points."""
    rng = np.random.default_rng(1)
    pool = FeatureLaw(3, (1, 2), scale=(1.5,)).draw(40, rng)
    weights = rng.uniform(0.2, 2, 300)
    values = rng.normal(size=(300, 1))
    return pool, Points(rng.normal(size=(300, 3)), values, weights / weights.mean(), 1e-3)


def dense_columns(pool, points):
    """Weighted standardised features by definition, (points, features)."""
    raw = pool.evaluate(points.Z)
    share = points.weights / points.weights.sum()
    mean = share @ raw
    scale = np.sqrt(share @ (raw - mean) ** 2)
    return (raw - mean) / scale, mean, scale


# --- the points ----------------------------------------------------------------------------------


def test_the_rows_come_first_and_the_reference_is_asked_everywhere(rows):
    points = points_of(rows)
    np.testing.assert_array_equal(points.Z[:60], rows)
    assert len(points.Z) == 2000
    np.testing.assert_array_equal(points.values, Sum().predict(points.Z))
    assert points.noise == 0.01


@pytest.mark.parametrize(
    ("m", "expected"), [(1, 2000), (240, 2000), (275, 2200), (900, 3900), (5000, 6000)]
)
def test_there_are_eight_points_a_row_within_bounds(m, expected):
    assert len(points_of(np.random.default_rng(0).normal(size=(m, 2))).Z) == expected


def test_of_very_many_rows_some_are_taken_with_their_weights():
    Z = np.random.default_rng(0).normal(size=(6100, 1))
    points = points_of(Z, weights=np.exp(Z[:, 0]))
    assert len(points.Z) == 6000
    assert set(points.Z[:, 0]) < set(Z[:, 0])
    np.testing.assert_allclose(
        points.weights,
        np.exp(points.Z[:, 0]) * points.weights.mean() / np.exp(points.Z[:, 0]).mean(),
    )


def test_points_between_lie_on_segments_to_one_of_the_five_nearest_rows(rows):
    points = points_of(rows)
    between = points.Z[60 : 60 + 970]
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    near = np.argsort(distance, axis=1)[:, 1:6]
    one = np.repeat(np.arange(60), 5)
    start, step = rows[one], rows[near.ravel()] - rows[one]
    share = np.sum((between[:, None] - start) * step, axis=-1) / np.sum(step**2, axis=-1)
    share = np.clip(share, 0, 1)
    off = np.linalg.norm(start + share[..., None] * step - between[:, None], axis=-1)
    assert off.min(axis=1).max() < 1e-12
    inside = share[np.arange(970), off.argmin(axis=1)]
    assert 0.4 < inside.mean() < 0.6
    # and not at the rows themselves
    assert np.linalg.norm(between[:, None] - rows, axis=-1).min(axis=1).min() > 0


def test_near_is_measured_in_the_inputs_that_are_used():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.arange(40.0), 1000 * rng.permutation(40)])
    between = points_of(Z, used=np.array([True, False])).Z[40:1020]
    # neighbours of the first input only: the segment ends at most five steps further
    left = np.floor(between[:, 0]).astype(int)
    reach = [
        min(
            abs(a - b)
            for a in range(max(k - 5, 0), k + 1)
            for b in range(k, min(k + 6, 40))
            if a != b and abs(Z[a, 1] + (z[0] - a) / (b - a) * (Z[b, 1] - Z[a, 1]) - z[1]) < 1e-6
        )
        for z, k in zip(between, left, strict=True)
    ]
    assert max(reach) <= 5


def test_discrete_inputs_keep_values_that_occur_at_every_second_point_between():
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=60), rng.integers(0, 3, 60), rng.normal(size=60)])
    between = points_of(Z).Z[60:1030]
    occurs = np.isin(between[:, 1], [0.0, 1.0, 2.0])
    assert occurs[::2].all()
    assert not occurs[1::2].all()
    for j in (0, 2):
        assert not np.isin(between[:, j], Z[:, j]).any()


def test_mixed_points_take_every_coordinate_from_one_of_two_rows(rows):
    mixed = points_of(rows).Z[60 + 970 :]
    assert len(mixed) == 970
    place = np.stack([(mixed[:, None, j] == rows[None, :, j]).argmax(axis=1) for j in range(3)])
    for j in range(3):
        np.testing.assert_array_equal(mixed[:, j], rows[place[j], j])
    number = np.array([len(set(p)) for p in place.T])
    assert number.max() == 2
    assert np.mean(number == 2) > 0.6  # three coins fall alike once in four


@pytest.mark.parametrize("m", [1, 7, 60])
def test_rows_have_half_of_the_weight_and_share_it_by_their_weights(m):
    Z = np.random.default_rng(0).normal(size=(m, 2))
    weights = np.arange(m) + 1.0
    points = points_of(Z, weights)
    assert points.weights.mean() == pytest.approx(1, rel=1e-12)
    assert points.weights[:m].sum() == pytest.approx(points.weights.sum() / 2, rel=1e-12)
    np.testing.assert_allclose(points.weights[:m] / points.weights[0], weights, rtol=1e-12)
    assert np.ptp(points.weights[m:]) == 0


def test_weights_in_other_units_are_the_same_weights(rows):
    weights = np.arange(60) % 4 + 0.5
    a, b = points_of(rows, weights), points_of(rows, 7 * weights)
    np.testing.assert_array_equal(a.Z, b.Z)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-13)


def test_weights_do_not_move_the_points(rows):
    np.testing.assert_array_equal(points_of(rows).Z, points_of(rows, np.arange(60) + 1.0).Z)


def test_equal_seeds_give_equal_points(rows):
    np.testing.assert_array_equal(points_of(rows, seed=3).Z, points_of(rows, seed=3).Z)
    other = points_of(rows, seed=4).Z
    assert np.all(points_of(rows, seed=3).Z[60:1030] != other[60:1030])


def test_a_single_row_is_repeated():
    Z = np.array([[1.5, -2.0]])
    points = points_of(Z)
    np.testing.assert_array_equal(points.Z, np.repeat(Z, 2000, axis=0))


# --- columns -------------------------------------------------------------------------------------


def test_columns_are_centred_and_of_unit_mean_square(drawn):
    pool, points = drawn
    columns = Columns.of(pool, points)
    expected, mean, scale = dense_columns(pool, points)
    roots = np.sqrt(points.weights)
    np.testing.assert_allclose(columns.A.T, expected * roots[:, None], atol=1e-12)
    np.testing.assert_allclose(columns.mean, mean, atol=1e-14)
    np.testing.assert_allclose(columns.scale, scale, rtol=1e-12)
    np.testing.assert_allclose(np.mean(columns.A**2, axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(columns.A @ roots, 0, atol=1e-10)


def flat_pool(activation="sin"):
    """Feature 1 is constant, feature 2 constant up to rounding; 0 and 3 are not."""
    return FeaturePool(
        2,
        np.array([[0], [1], [0], [1]]),
        np.array([[1.0], [0.0], [1e-12], [2.0]]),
        np.array([0.1, 0.7, 0.3, 0.5]),
        activation,
    )


@pytest.mark.parametrize("activation", ["sin", "cos", "tanh"])
def test_constant_features_cannot_be_used(activation):
    rng = np.random.default_rng(0)
    points = Points(rng.normal(size=(200, 2)), rng.normal(size=(200, 1)), np.ones(200), 1e-6)
    columns = Columns.of(flat_pool(activation), points)
    assert np.isfinite(columns.scale).tolist() == [True, False, False, True]
    np.testing.assert_array_equal(columns.A[1:3], 0)
    models = match(flat_pool(activation), points, [1, 2, 4])
    assert [len(model.support) for model in models] == [1, 2]
    assert models[-1].support.tolist() == [0, 3]


# --- forward selection ---------------------------------------------------------------------------


def brute_force_order(A, t, alpha, most):
    """Always add the feature that gives the lowest ridge objective, by trying every one."""
    P, n = A.shape
    order = []
    for _ in range(most):
        objective = {}
        for j in set(range(n)) - set(order):
            S = [*order, j]
            c = np.linalg.solve(A[:, S].T @ A[:, S] / P + alpha * np.eye(len(S)), A[:, S].T @ t / P)
            objective[j] = np.sum((t - A[:, S] @ c) ** 2) / P + alpha * np.sum(c**2)
        order.append(min(objective, key=objective.get))
    return order


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("alpha", [1e-9, 1e-2])
def test_the_order_is_that_of_brute_force(targets, alpha):
    rng = np.random.default_rng(targets)
    A = rng.normal(size=(50, 25)) @ (np.eye(25) + 0.5 * rng.normal(size=(25, 25)))
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    t = rng.normal(size=(50, targets))
    order = forward_order(A.T @ A / 50 + alpha * np.eye(25), A.T @ t / 50, 12)
    assert order.tolist() == brute_force_order(A, t, alpha, 12)
    whole = forward_order(A.T @ A / 50 + alpha * np.eye(25), A.T @ t / 50, 100)
    assert sorted(whole) == list(range(25))
    np.testing.assert_array_equal(whole[:12], order)


def test_features_that_cannot_be_told_from_chosen_ones_are_left_out():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 6))
    A = np.column_stack([A, A[:, 0], A[:, 1] - 2 * A[:, 2]])
    t = rng.normal(size=(50, 1))
    order = forward_order(A.T @ A / 50, A.T @ t / 50, 8)
    assert len(order) == 6
    assert np.linalg.matrix_rank(A[:, order]) == 6


# --- matching ------------------------------------------------------------------------------------


SIZES = [1, 3, 5, 10, 20]


@pytest.mark.parametrize("targets", [1, 2])
def test_supports_are_nested_and_the_gap_falls(drawn, targets):
    pool, points = drawn
    values = np.column_stack([points.values, points.Z[:, :1] ** 2])[:, :targets]
    points = Points(points.Z, values, points.weights, points.noise)
    models = match(pool, points, SIZES)
    assert [len(model.support) for model in models] == SIZES
    gaps = [model.gap for model in models]
    assert all(a > b for a, b in pairwise(gaps))
    for small, large in pairwise(models):
        assert set(small.support) < set(large.support)
        np.testing.assert_array_equal(large.support, np.sort(large.support))


def test_the_sizes_may_come_in_any_order_and_do_not_change_each_other(drawn):
    pool, points = drawn
    models = match(pool, points, SIZES)
    again = match(pool, points, [20, 3, 3, 1, 10, 5])
    assert len(again) == len(models)
    for a, b in zip(models, again, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_array_equal(a.coef, b.coef)
    (alone,) = match(pool, points, [5])
    np.testing.assert_array_equal(alone.support, models[2].support)
    np.testing.assert_array_equal(alone.coef, models[2].coef)


@pytest.mark.parametrize("targets", [1, 2])
def test_a_model_is_the_ridge_solution_on_its_support(drawn, targets):
    pool, points = drawn
    values = np.column_stack([points.values, 3 + points.Z[:, :1] ** 2])[:, :targets]
    points = Points(points.Z, values, points.weights, 1.0)
    A, mean, scale = dense_columns(pool, points)
    share = points.weights / points.weights.sum()
    centred = values - share @ values
    for model in match(pool, points, SIZES):
        S = model.support
        left = (A[:, S] * share[:, None]).T @ A[:, S] + 1e-6 * np.eye(len(S))
        c = np.linalg.solve(left, (A[:, S] * share[:, None]).T @ centred)
        np.testing.assert_allclose(model.coef, c.T / scale[S], rtol=1e-6, atol=1e-9)
        prediction = A[:, S] @ c + share @ values
        np.testing.assert_allclose(model.predict(points.Z), prediction, atol=1e-8)
        assert model.intercept == pytest.approx(share @ values - mean[S] / scale[S] @ c, abs=1e-8)


def test_predictions_are_those_of_coefficients_and_intercept(drawn):
    pool, points = drawn
    Z = np.random.default_rng(5).normal(size=(30, 3))
    for model in match(pool, points, SIZES):
        chosen = pool.evaluate(Z)[:, model.support]
        expected = chosen @ model.coef.T + model.intercept
        np.testing.assert_allclose(model.predict(Z), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(model.features.phases, pool.phases[model.support])


@pytest.mark.parametrize("noise", [1.0, 1e-12])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_gap_is_the_mean_square_of_what_is_left(drawn, noise, targets):
    pool, points = drawn
    values = np.column_stack([points.values, 3 + points.Z[:, :1] ** 2])[:, :targets]
    points = Points(points.Z, values, points.weights, noise)
    for model in match(pool, points, [*SIZES, 40]):
        left = np.sum((values - model.predict(points.Z)) ** 2, axis=1)
        assert model.gap == pytest.approx(np.mean(points.weights * left), rel=1e-6)


@pytest.mark.parametrize("activation", ["sin", "cos", "tanh"])
@pytest.mark.parametrize("targets", [1, 2])
def test_planted_features_of_the_pool_are_found_exactly(activation, targets):
    rng = np.random.default_rng(4)
    pool = FeatureLaw(4, (1, 2), scale=(1.5,), activation=activation).draw(200, rng)
    planted = np.array([5, 40, 77, 150])
    coef = rng.choice([-1, 1], (targets, 4)) * rng.uniform(1, 2, (targets, 4))
    Z = rng.normal(size=(500, 4))
    values = pool.take(planted).evaluate(Z) @ coef.T + 2.5
    points = Points(Z, values, np.ones(500), 0.0)
    models = match(pool, points, [2, 4])
    np.testing.assert_array_equal(models[1].support, planted)
    np.testing.assert_allclose(models[1].coef, coef, rtol=1e-5)
    np.testing.assert_allclose(models[1].intercept, 2.5, rtol=1e-5)
    left = [np.mean((values - model.predict(Z)) ** 2) for model in models]
    assert left[1] < 1e-14
    assert left[0] > 1e-2
    assert set(models[0].support) < set(planted)


def test_planted_features_are_found_among_more_than_the_core():
    rng = np.random.default_rng(6)
    pool = FeatureLaw(6, (1, 2), scale=(2.0,)).draw(2600, rng)
    planted = np.array([101, 1201, 2501])  # of two variables
    Z = rng.normal(size=(1500, 6))
    values = pool.take(planted).evaluate(Z) @ np.array([[1.0], [-2.0], [1.5]])
    (model,) = match(pool, Points(Z, values, np.ones(1500), 0.0), [3])
    np.testing.assert_array_equal(model.support, planted)
    np.testing.assert_allclose(model.coef, [[1.0, -2.0, 1.5]], rtol=1e-6)


def test_a_constant_reference_is_its_mean(drawn):
    pool, points = drawn
    points = Points(points.Z, np.full((300, 1), 4.0), points.weights, 1e-3)
    for model in match(pool, points, [1, 5]):
        np.testing.assert_allclose(model.predict(points.Z), 4.0, rtol=1e-12)
        np.testing.assert_array_equal(model.coef, 0.0)
        assert model.gap == 0.0


def test_weights_of_points_are_repeats(drawn):
    pool, points = drawn
    times = np.random.default_rng(2).integers(1, 4, 300)
    weighted = Points(points.Z, points.values, times / times.mean(), 1e-3)
    every = np.repeat(np.arange(300), times)
    repeated = Points(points.Z[every], points.values[every], np.ones(len(every)), 1e-3)
    for a, b in zip(match(pool, weighted, SIZES), match(pool, repeated, SIZES), strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-8)
        assert a.gap == pytest.approx(b.gap, rel=1e-8)


def test_the_same_bits_for_any_number_of_threads(drawn, on_threads):
    pool, points = drawn
    one, two = (on_threads(n, lambda: match(pool, points, [10])[0]) for n in (1, 2))
    np.testing.assert_array_equal(one.support, two.support)
    np.testing.assert_array_equal(one.coef, two.coef)
