"""The graded start: never above Algorithm 1, nor above the path, and far below where one stalls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import correlated

from harfe import HARFERegressor, datasets
from harfe.features.law import FeatureLaw
from harfe.selection import recipe
from harfe.solvers.homes import RecomputedProblem, StoredProblem
from harfe.solvers.path import sparsity_path
from harfe.solvers.pursuit import StopReason, hard_ridge_pursuit


def draw(rng, shape, dtype=float):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype is complex else values


def noisy(seed=0, rows=30, features=60, targets=1, dtype=float):
    """A problem without structure."""
    rng = np.random.default_rng(seed)
    A, y = draw(rng, (rows, features), dtype), draw(rng, (rows, targets), dtype)
    return StoredProblem.from_matrix(A, y)


def dense_objective(A, y, c, alpha):
    """Objective of one target on columns of unit variance."""
    return np.mean(np.abs(y - y.mean() - A @ c[:, 0]) ** 2) + alpha * np.sum(np.abs(c) ** 2)


def graded(problem, s, alpha, **options):
    return hard_ridge_pursuit(problem, n_nonzero_coefs=s, alpha=alpha, init="graded", **options)


# --- Never above ---


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(3, 40),
    features=st.integers(1, 60),
    share=st.floats(0, 1),
    alpha=st.sampled_from([1e-6, 1e-3, 1e-1, 3.0]),
    targets=st.integers(1, 3),
    dtype=st.sampled_from([float, complex]),
    step_size=st.sampled_from([0.1, 0.7, "normalized"]),
)
def test_never_above_algorithm_1_nor_above_the_path(
    seed, rows, features, share, alpha, targets, dtype, step_size
):
    problem = noisy(seed, rows, features, targets, dtype)
    s = max(1, round(share * features))
    result = graded(problem, s, alpha, step_size=step_size)
    paper = hard_ridge_pursuit(
        problem,
        n_nonzero_coefs=s,
        alpha=alpha,
        step_size=0.1 if step_size == "normalized" else step_size,
    )
    assert result.lowest <= paper.lowest
    level = sparsity_path(problem, alpha=alpha, n_nonzero_coefs=s).levels[-1]
    # the same support solved by two routes
    assert result.lowest <= level.objective * (1 + 1e-8) + 1e-12
    assert len(result.support) == s
    assert result.scaled_coef.shape == (s, targets)


@pytest.mark.parametrize("home", [StoredProblem, RecomputedProblem])
@pytest.mark.parametrize("activation", ["sin", "exp"])
@pytest.mark.parametrize("rows", [80, 400])
def test_never_above_with_random_features_and_weighted_rows(home, activation, rows):
    rng = np.random.default_rng(0)
    pool = FeatureLaw(4, orders=(2,), activation=activation).draw(300, rng)
    X = rng.normal(size=(rows, 4))
    y = np.column_stack([np.sin(X[:, 0] * X[:, 1]), X[:, 2] ** 2])
    problem = home(pool, X, y, rng.uniform(0.5, 2, rows))
    result = graded(problem, 12, 1e-4)
    assert result.lowest < hard_ridge_pursuit(problem, n_nonzero_coefs=12, alpha=1e-4).lowest
    level = sparsity_path(problem, alpha=1e-4, n_nonzero_coefs=12).levels[-1]
    assert result.lowest <= level.objective * (1 + 1e-9)


# --- Far below ---


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_support_is_found_where_the_zero_start_stalls(seed):
    A, y, S = correlated(seed)
    problem = StoredProblem.from_matrix(A, y)
    plain = hard_ridge_pursuit(problem, n_nonzero_coefs=5, alpha=1e-4)
    result = graded(problem, 5, 1e-4)
    assert plain.reason is StopReason.FIXED_POINT
    assert not np.array_equal(plain.support, S)
    np.testing.assert_array_equal(result.support, S)
    assert result.lowest < plain.lowest / 100


def test_the_pursuit_improves_on_its_pruned_start():
    improved = 0
    for seed in range(20):
        problem = noisy(seed)
        result = graded(problem, 8, 1e-2)
        level = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=8).levels[-1]
        improved += result.lowest < level.objective * (1 - 1e-6)
    assert improved >= 5


# --- What the result says ---


@pytest.mark.parametrize("seed", range(12))
def test_the_result_is_the_round_it_names(seed):
    rng = np.random.default_rng(seed)
    A, y = rng.normal(size=(30, 60)), rng.normal(size=30)
    problem = StoredProblem.from_matrix(A, y)
    rounds = []
    result = graded(problem, 8, 1e-2, callback=rounds.append)
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    assert result.n_iter == len(result.objective) == len(result.relative_residual)
    assert result.best_round == np.argmin(result.objective)
    assert result.lowest == result.objective.min()
    expected = dense_objective(A[:, result.support], y, result.scaled_coef, 1e-2)
    assert result.lowest == pytest.approx(expected, rel=1e-12)
    A_S = A[:, result.support]
    ridge = np.linalg.solve(A_S.T @ A_S / 30 + 1e-2 * np.eye(8), A_S.T @ (y - y.mean()) / 30)
    np.testing.assert_allclose(result.scaled_coef[:, 0], ridge, rtol=0, atol=1e-11)
    residual = np.linalg.norm(y - y.mean() - A_S @ ridge) / np.linalg.norm(y - y.mean())
    assert result.relative_residual[result.best_round] == pytest.approx(residual, rel=1e-10)
    # the callback saw both runs, the pruned one first
    plain = hard_ridge_pursuit(problem, n_nonzero_coefs=8, alpha=1e-2)
    seen = [state.objective for state in rounds]
    assert seen[-plain.n_iter :] == plain.objective.tolist()
    assert len(seen) > plain.n_iter
    assert min(seen) == result.lowest


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("targets", [1, 3])
def test_the_first_round_is_the_pruned_support(dtype, targets):
    pruned_won = 0
    for seed in range(5):
        problem = noisy(seed, targets=targets, dtype=dtype)
        rounds = []
        result = graded(problem, 8, 1e-2, callback=rounds.append)
        level = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=8).levels[-1]
        np.testing.assert_array_equal(rounds[0].support, level.support)
        np.testing.assert_allclose(rounds[0].scaled_coef, level.scaled_coef, rtol=0, atol=1e-10)
        plain = hard_ridge_pursuit(problem, n_nonzero_coefs=8, alpha=1e-2)
        if result.lowest < plain.lowest:
            pruned_won += 1
            assert result.objective[0] == pytest.approx(level.objective, rel=1e-10)
        else:
            np.testing.assert_array_equal(result.objective, plain.objective)
    assert pruned_won > 0


def test_the_plain_run_is_returned_whole_where_it_is_lower():
    found = 0
    for seed in range(100):
        problem = noisy(seed)
        result, plain = (
            graded(problem, 8, 1e-2),
            hard_ridge_pursuit(problem, n_nonzero_coefs=8, alpha=1e-2),
        )
        if result.lowest == plain.lowest and np.array_equal(result.support, plain.support):
            found += 1
            np.testing.assert_array_equal(result.objective, plain.objective)
            np.testing.assert_array_equal(result.scaled_coef, plain.scaled_coef)
            assert (result.reason, result.best_round) == (plain.reason, plain.best_round)
    assert 0 < found < 50


def test_the_pruned_run_takes_the_normalized_step_and_the_plain_one_that_given():
    problem = noisy(2)
    level = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=8).levels[-1]
    # the start is the ridge solution on its support: round two on is a pursuit from there
    onward = hard_ridge_pursuit(
        problem, n_nonzero_coefs=8, alpha=1e-2, init=level.coef, step_size="normalized"
    )
    for step_size, plain_steps in [
        (0.4, (0.4, 0.1)),
        ("normalized", ("normalized", 0.1)),
        (0.1, (0.1,)),
    ]:
        rounds = []
        graded(problem, 8, 1e-2, step_size=step_size, callback=rounds.append)
        runs = [
            hard_ridge_pursuit(problem, n_nonzero_coefs=8, alpha=1e-2, step_size=step)
            for step in plain_steps
        ]
        plain = np.concatenate([run.objective for run in runs])
        pruned = [state.objective for state in rounds[: -len(plain)]]
        assert len(pruned) > 1
        np.testing.assert_allclose(pruned[1:], onward.objective, rtol=1e-10)
        assert [state.objective for state in rounds[-len(plain) :]] == plain.tolist()


# --- Stopping ---


@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_a_callback_stops_the_first_run_and_no_second_begins(stop_at):
    problem, rounds = noisy(2), []

    def stop(state):
        rounds.append(state)
        return len(rounds) == stop_at

    result = graded(problem, 8, 1e-2, callback=stop)
    assert len(rounds) == result.n_iter == stop_at
    assert result.reason is StopReason.CALLBACK
    assert result.lowest == min(state.objective for state in rounds)


def test_a_callback_stops_the_second_run_and_the_better_is_returned():
    problem = noisy(2)
    everything = []
    whole = graded(problem, 8, 1e-2, callback=everything.append)
    plain = hard_ridge_pursuit(problem, n_nonzero_coefs=8, alpha=1e-2)
    first = len(everything) - plain.n_iter
    seen = []

    def stop(state):
        seen.append(state)
        return len(seen) == first + 1

    result = graded(problem, 8, 1e-2, callback=stop)
    assert len(seen) == first + 1
    assert plain.n_iter > 1
    assert whole.lowest <= result.lowest
    assert result.lowest == min(state.objective for state in seen)


def test_max_iter_holds_for_each_run():
    problem, rounds = noisy(2), []
    result = graded(problem, 8, 1e-2, max_iter=1, callback=rounds.append)
    assert [state.n_iter for state in rounds] == [1, 1]
    assert result.n_iter == 1
    assert result.reason is StopReason.MAX_ITER


def test_an_exact_fit_stops_by_its_residual():
    A, y, S = correlated(0, noise=0.0)
    result = graded(StoredProblem.from_matrix(A, y), 5, 1e-12)
    np.testing.assert_array_equal(result.support, S)
    assert (result.reason, result.n_iter) == (StopReason.RESIDUAL, 1)


# --- At the edge ---


@pytest.mark.parametrize("alpha", [0.0, 1e-2])
def test_more_features_asked_for_than_usable(alpha):
    rng = np.random.default_rng(0)
    A = np.column_stack([rng.normal(size=(40, 7)), np.full((40, 9), 2.0)])
    y = rng.normal(size=40)
    result = graded(StoredProblem.from_matrix(A, y), 12, alpha)
    np.testing.assert_array_equal(result.support, np.arange(7))
    A = (A[:, :7] - A[:, :7].mean(axis=0)) / A[:, :7].std(axis=0)
    ridge = np.linalg.solve(A.T @ A / 40 + alpha * np.eye(7), A.T @ (y - y.mean()) / 40)
    np.testing.assert_allclose(result.scaled_coef[:, 0], ridge, rtol=0, atol=1e-12)


def test_no_usable_feature_leaves_the_mean():
    y = np.arange(10.0)
    result = graded(StoredProblem.from_matrix(np.ones((10, 4)), y), 2, 1e-2)
    assert len(result.support) == 0
    assert result.lowest == pytest.approx(y.var(), rel=1e-14)


def test_all_features_kept_are_kept_at_once():
    result = graded(noisy(features=20), 20, 1e-2)
    np.testing.assert_array_equal(result.support, np.arange(20))
    assert (result.n_iter, result.reason) == (1, StopReason.FIXED_POINT)


@pytest.mark.parametrize("rows", [30, 100])
def test_features_twice_and_no_ridge(rows):
    rng = np.random.default_rng(1)
    A = np.tile(rng.normal(size=(rows, 30)), 2)
    y = A[:, :3] @ np.ones(3) + 0.1 * rng.normal(size=rows)
    result = graded(StoredProblem.from_matrix(A, y), 10, 0.0)
    assert np.all(np.isfinite(result.scaled_coef))
    assert np.isin(np.arange(3), result.support % 30).all()
    A_S = A[:, result.support] - A[:, result.support].mean(axis=0)
    rss = np.linalg.norm(y - y.mean() - A_S @ np.linalg.pinv(A_S) @ (y - y.mean())) ** 2 / rows
    assert result.lowest == pytest.approx(rss, rel=1e-6)


def test_same_bits_for_any_number_of_threads(on_threads):
    def fit():
        rng = np.random.default_rng(0)
        pool = FeatureLaw(4, orders=(2,)).draw(1500, rng)
        X = rng.normal(size=(150, 4))
        result = graded(RecomputedProblem(pool, X, X[:, :1] * X[:, 1:2], np.ones(150)), 15, 1e-3)
        return result.support, result.scaled_coef, result.objective

    one, two = on_threads(1, fit), on_threads(2, fit)
    assert [a.tobytes() for a in one] == [a.tobytes() for a in two]


# --- As a parameter of the estimator ---


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("activation", ["sin", "exp"])
def test_the_regressor_ends_no_higher_than_the_papers_algorithm(targets, activation):
    data = datasets.make_function("friedman1", 150, random_state=0)
    y = data.y if targets == 1 else np.column_stack([data.y, data.X[:, 0]])
    options = {
        "n_components": 400,
        "n_nonzero_coefs": 20,
        "activation": activation,
        "random_state": 0,
    }
    paper = HARFERegressor(init="zero", step_size=0.1, **options).fit(data.X, y)
    for step_size in (0.1, "normalized"):
        model = HARFERegressor(init="graded", step_size=step_size, **options).fit(data.X, y)
        assert model.history_["objective"].min() < paper.history_["objective"].min()
        assert len(model.support_) == 20
        assert model.n_iter_ == len(model.history_["objective"])
        assert model.score(data.X, y) > paper.score(data.X, y)


def test_the_regressor_is_the_pursuit_on_its_own_features():
    data = datasets.make_function("friedman1", 100, random_state=0)
    options = {"n_components": 300, "n_nonzero_coefs": 15, "alpha": 1e-3, "random_state": 0}
    model = HARFERegressor(init="graded", **options).fit(data.X, data.y)
    phi = np.sin(data.X @ model.weights_.toarray() + model.bias_)
    problem = StoredProblem.from_matrix(phi, data.y)
    result = graded(problem, 15, 1e-3, step_size="normalized", max_iter=100)
    np.testing.assert_array_equal(model.support_, result.support)
    np.testing.assert_allclose(model.history_["objective"], result.objective, rtol=1e-9)
    coef, intercept = problem.to_raw(result.support, result.scaled_coef)
    prediction = intercept + phi[:, result.support] @ coef[0]
    np.testing.assert_allclose(model.predict(data.X), prediction, rtol=0, atol=1e-8)


def test_a_fit_that_recomputes_its_features_is_the_same(monkeypatch):
    data = datasets.make_function("friedman1", 200, random_state=0)
    options = {"n_components": 600, "n_nonzero_coefs": 15, "init": "graded", "random_state": 0}
    stored = HARFERegressor(**options).fit(data.X, data.y)
    homes = []

    def recomputed(*parts, largest_support, memory_budget, working_numbers, **options):
        homes.append(largest_support)
        return RecomputedProblem(*parts, **options)

    monkeypatch.setattr(recipe, "make_problem", recomputed)
    small = HARFERegressor(**options).fit(data.X, data.y)
    # the largest system is that of the rows
    assert homes == [200]
    np.testing.assert_array_equal(stored.support_, small.support_)
    np.testing.assert_allclose(
        stored.predict(data.X), small.predict(data.X), rtol=0, atol=1e-8 * np.ptp(data.y)
    )


def test_weight_two_is_the_row_twice():
    data = datasets.make_function("friedman1", 80, random_state=0)
    options = {"n_components": 400, "n_nonzero_coefs": 15, "init": "graded", "random_state": 0}
    times = np.random.default_rng(0).integers(0, 3, 80)
    weighted = HARFERegressor(**options).fit(data.X, data.y, sample_weight=times)
    repeated = HARFERegressor(**options).fit(
        np.repeat(data.X, times, axis=0), np.repeat(data.y, times)
    )
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    np.testing.assert_allclose(
        weighted.predict(data.X), repeated.predict(data.X), rtol=0, atol=1e-7
    )
