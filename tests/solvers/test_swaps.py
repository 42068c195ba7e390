from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from harfe import HARFERegressor, datasets, hard_ridge_pursuit
from harfe.solvers.homes import StoredProblem
from harfe.solvers.swaps import exchange


def dense_objective(A, y, S, alpha):
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    Y = (y - y.mean(axis=0)).reshape(len(y), -1)
    if Y.shape[1] > 1:
        Y = Y / np.sqrt(np.mean(np.abs(Y) ** 2, axis=0))
    B = A[:, S]
    c = np.linalg.solve(B.conj().T @ B / len(y) + alpha * np.eye(len(S)), B.conj().T @ Y / len(y))
    return np.sum(np.abs(Y - B @ c) ** 2) / len(y) + alpha * np.sum(np.abs(c) ** 2)


def instance(seed, targets=1, complex_features=False, rows=40, features=12):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, features)) @ rng.normal(size=(features, features))
    if complex_features:
        A = A + 1j * rng.normal(size=A.shape)
    return A, rng.normal(size=(rows, targets)) + A[:, :targets].real


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("targets", "is_complex"), [(1, False), (3, False), (1, True)])
def test_no_swap_of_cheapest_for_best_is_left(seed, targets, is_complex):
    A, y = instance(seed, targets, is_complex)
    problem = StoredProblem.from_matrix(A, y)
    S = np.array([7, 9, 10, 11])
    found = exchange(problem, S, np.arange(12), 1e-2)
    value = dense_objective(A, y, found, 1e-2)
    assert len(found) == 4
    assert value <= dense_objective(A, y, S, 1e-2) * (1 + 1e-9)
    # Brute force: drop the feature whose removal costs least, and try every other one.
    without = {j: dense_objective(A, y, np.setdiff1d(found, j), 1e-2) for j in found}
    rest = np.setdiff1d(found, min(without, key=without.get))
    others = np.setdiff1d(np.arange(12), rest)
    best = min(dense_objective(A, y, np.sort(np.append(rest, i)), 1e-2) for i in others)
    assert value <= best * (1 + 1e-6)


def test_the_best_pair_is_found_where_greedy_starts_are_wrong():
    found, best = 0, 0
    for seed in range(20):
        A, y = instance(seed, features=8)
        problem = StoredProblem.from_matrix(A, y)
        values = {S: dense_objective(A, y, list(S), 1e-3) for S in combinations(range(8), 2)}
        start = max(values, key=values.get)
        end = exchange(problem, np.array(start), np.arange(8), 1e-3)
        found += values[tuple(end)] < values[start]
        best += tuple(end) == min(values, key=values.get)
    assert found == 20
    assert best >= 10


def test_only_the_features_offered_come_in():
    A, y = instance(0)
    problem = StoredProblem.from_matrix(A, y)
    S = np.array([8, 11])
    assert set(exchange(problem, S, np.array([8, 9, 11]), 1e-2)) <= {8, 9, 11}
    np.testing.assert_array_equal(exchange(problem, S, S, 1e-2), S)
    nothing = np.empty(0, dtype=np.intp)
    assert len(exchange(problem, nothing, np.arange(12), 1e-2)) == 0


def test_duplicates_and_no_ridge_weight_are_no_trouble():
    A, y = instance(1)
    problem = StoredProblem.from_matrix(np.hstack([A, A]), y)
    end = exchange(problem, np.array([3, 15, 4]), np.arange(24), 0.0)
    assert len(np.unique(end)) == 3
    # A copy of a kept feature adds nothing, so it does not stay.
    assert len(np.unique(end % 12)) == 3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alpha", [1e-1, 1e-4, 0.0])
def test_swapped_is_never_above_graded(seed, alpha):
    A, y = instance(seed, rows=60, features=80)
    problem = StoredProblem.from_matrix(A, y)
    graded = hard_ridge_pursuit(problem, n_nonzero_coefs=10, alpha=alpha, init="graded")
    swapped = hard_ridge_pursuit(problem, n_nonzero_coefs=10, alpha=alpha, init="swapped")
    assert swapped.lowest <= graded.lowest
    expected = dense_objective(A, y, swapped.support, alpha)
    assert swapped.lowest == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_swapped_is_below_graded_where_that_stalls():
    data = datasets.make_function("friedman1", 200, random_state=0)
    lowest = {
        init: HARFERegressor(600, 20, alpha=1e-4, init=init, random_state=0)
        .fit(data.X, data.y)
        .history_["objective"]
        .min()
        for init in ("zero", "graded", "swapped")
    }
    assert lowest["swapped"] < 0.95 * lowest["graded"] < 0.95 * lowest["zero"]


def test_a_single_feature_is_exchanged_for_the_best_of_all():
    for seed in range(5):
        A, y = instance(seed)
        values = [dense_objective(A, y, [j], 1e-2) for j in range(12)]
        end = exchange(StoredProblem.from_matrix(A, y), np.array([11]), np.arange(12), 1e-2)
        assert end.tolist() == [int(np.argmin(values))]
