"""SHRIMP: a textbook twin with pinv, planted features, the ladder, ridge on all features."""

import numpy as np
import pytest

from harfe.datasets import make_function
from harfe.rivals import RFRRRegressor, SHRIMPRegressor
from harfe.rivals.random_features.shrimp import ladder, prune
from harfe.solvers.homes import StoredProblem


def stored(A, y):
    return StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")


def textbook(A, y, alpha, pruning):
    """Every support and its coefficients, as in the paper, on dense matrices."""
    m, S, path = len(A), np.arange(A.shape[1]), {}
    while True:
        B = A[:, S]
        c = np.linalg.pinv(B) @ y
        if alpha:
            c = np.linalg.solve(B.T @ B / m + alpha * np.eye(len(S)), B.T @ y / m)
        path[len(S)] = S, c
        if len(S) == 1:
            return path
        dropped = max(1, int(pruning * len(S)))
        S = np.sort(S[np.argsort(np.abs(c), kind="stable")[dropped:]])


@pytest.mark.parametrize("pruning", [0.25, 0.6])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.5])
def test_it_is_the_textbook_loop(alpha, pruning):
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 100)), rng.normal(size=30)
    truth = textbook(A, y, alpha, pruning)
    (found,) = prune(stored(A, y), [alpha], ladder(100, pruning), pruning)
    assert found.keys() == truth.keys()
    for size, (S, c) in truth.items():
        np.testing.assert_array_equal(found[size][0], S)
        np.testing.assert_allclose(found[size][1][:, 0], c, rtol=1e-7, atol=1e-10)


def test_singular_systems_have_the_solution_of_least_norm():
    rng = np.random.default_rng(1)
    few = rng.normal(size=(20, 6)) @ rng.normal(size=(6, 50))
    for A in (few, few.T):  # of rank 6, with fewer rows than features and with more
        y = rng.normal(size=len(A))
        ((_, c),) = prune(stored(A, y), [0.0], [A.shape[1]])[0].values()
        np.testing.assert_allclose(c[:, 0], np.linalg.pinv(A, rcond=1e-8) @ y, rtol=1e-6)
        # The smallest weight that rounding allows comes close to it.
        ((_, near),) = prune(stored(A, y), [1e-300], [A.shape[1]])[0].values()
        np.testing.assert_allclose(near, c, atol=1e-5)


def test_sizes_of_the_ladder():
    assert ladder(100, 0.25)[:4] == [100, 75, 57, 43]
    assert ladder(8, 0.25) == [8, 6, 5, 4, 3, 2, 1]
    assert ladder(4, 0.9) == [4, 1]
    assert ladder(1, 0.25) == [1]


def test_a_size_does_not_depend_on_the_others():
    rng = np.random.default_rng(2)
    A, y = rng.normal(size=(20, 64)), rng.normal(size=20)
    problem = stored(A, y)
    (many,) = prune(problem, [0.01], [64, 40, 30, 13, 12, 3])
    for size, (S, c) in many.items():
        ((alone, d),) = prune(problem, [0.01], [size])[0].values()
        assert len(S) == size
        np.testing.assert_array_equal(S, alone)
        np.testing.assert_array_equal(c, d)
        B = A[:, S]
        truth = np.linalg.solve(B.T @ B / 20 + 0.01 * np.eye(size), B.T @ y / 20)
        np.testing.assert_allclose(c[:, 0], truth, rtol=1e-8)


def test_unusable_features_are_never_kept():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(25, 10))
    A[:, [2, 7]] = 3.0
    problem = StoredProblem.from_matrix(A, rng.normal(size=25))
    (found,) = prune(problem, [0.0], [10, 9, 4])
    assert [len(found[size][0]) for size in (10, 9, 4)] == [8, 8, 4]
    assert not np.isin(found[10][0], [2, 7]).any()


def test_planted_features_are_recovered():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(100, 300))
    places, values = [17, 80, 81, 250], [3.0, -2.0, 4.0, 1.5]
    ((S, c),) = prune(stored(A, A[:, places] @ values), [0.0], [4])[0].values()
    np.testing.assert_array_equal(S, places)
    np.testing.assert_allclose(c[:, 0], values, rtol=1e-10)


def test_of_equal_features_the_first_is_kept():
    a = np.random.default_rng(5).normal(size=20)
    ((S, _),) = prune(stored(np.column_stack([a, a, a, a]), a), [0.1], [1])[0].values()
    assert S.tolist() == [0]


@pytest.mark.parametrize("N", [30, 200])
def test_with_all_features_it_is_ridge_regression(N):
    data = make_function("friedman1", 80, random_state=0)
    settings = {"order": 2, "scale": 1.0, "alpha": 0.01, "random_state": 1}
    ours = SHRIMPRegressor(N, n_nonzero_coefs=N, **settings).fit(data.X, data.y)
    truth = RFRRRegressor(N, **settings).fit(data.X, data.y)
    np.testing.assert_allclose(ours.expansion_.coef, truth.expansion_.coef, rtol=1e-7, atol=1e-9)
    assert ours.size_ == N
    assert ours.cv_results_ is None


def test_the_negated_target_has_negated_coefficients():
    data = make_function("friedman1", 60, random_state=0)
    settings = {"order": 2, "scale": 1.0, "n_nonzero_coefs": 20, "alpha": 0, "random_state": 0}
    plus = SHRIMPRegressor(150, **settings).fit(data.X, data.y)
    minus = SHRIMPRegressor(150, **settings).fit(data.X, -data.y)
    np.testing.assert_allclose(plus.expansion_.coef, -minus.expansion_.coef, rtol=1e-9)
    assert plus.size_ == 20


def test_the_planted_order_is_chosen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    settings = {"scale": 1.0, "alpha": 1e-10, "random_state": 0}
    alone = SHRIMPRegressor(300, **settings).fit(X, np.sin(X[:, 0]) + np.cos(2 * X[:, 3]))
    assert alone.order_ == 1
    y = np.sin(X[:, 0] + X[:, 1]) + np.cos(X[:, 2] - 1.5 * X[:, 3])
    pairs = SHRIMPRegressor(300, **settings).fit(X, y)
    assert pairs.order_ == 2
    assert pairs.score(X, y) > 0.99


def test_order_and_size_have_the_smallest_error_of_the_folds():
    data = make_function("friedman1", 80, random_state=1)
    model = SHRIMPRegressor(100, scale=1.0, cv=3, random_state=0).fit(data.X, data.y)
    results = model.cv_results_
    assert len(results["params"]) == 5 * len(ladder(100, 0.25)) * 2
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    assert model.size_ == model.n_nonzero_coefs_ < 100
    few = SHRIMPRegressor(50, cv=2, random_state=0).fit(data.X[:, :2], data.y)
    assert {params["order"] for params in few.cv_results_["params"]} == {1, 2}


def test_complex_targets():
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, size=(60, 3))
    y = np.exp(1j * X[:, 0]) + 0.5j * X[:, 1]
    model = SHRIMPRegressor(
        100, order=1, scale=1.0, alpha=1e-10, activation="exp", random_state=0
    ).fit(X, y)
    assert model.predict(X).dtype.kind == "c"
    assert model.score(X, y) > 0.999


def test_errors_on_friedman_1():
    data = make_function("friedman1", 200, random_state=0)
    fresh = make_function("friedman1", 1000, random_state=100)
    model = SHRIMPRegressor(order=2, random_state=0).fit(data.X, data.y)
    assert np.mean((model.predict(fresh.X) - fresh.y_clean) ** 2) < 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pruning": 0}, "pruning=0 must be a number between 0 and 1"),
        ({"pruning": 1.0}, "pruning=1.0 must be a number between 0 and 1"),
        ({"pruning": "auto"}, "pruning='auto' must be a number"),
        ({"n_nonzero_coefs": 60}, "n_nonzero_coefs=60 is larger than the number of features, 50"),
        ({"n_nonzero_coefs": 0}, "n_nonzero_coefs=0 must be 'auto', a whole number"),
        ({"alpha": -1.0}, "alpha=-1.0 must be 'auto', a finite number of at least 0"),
    ],
)
def test_bad_arguments_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SHRIMPRegressor(50, **settings).fit(np.eye(4), np.arange(4.0))
