"""RFRR: dense twins on both sides, the ridgeless limit, folds done by hand."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from harfe._core.folds import make_folds
from harfe.datasets import make_additive, make_function
from harfe.rivals import RFRRRegressor
from harfe.rivals.random_features.rfrr import ridge_on_all
from harfe.rivals.solvers.ridge_path import RidgePath
from harfe.solvers.homes import StoredProblem


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 80, random_state=0)


def scaled(model, X):
    """Features of the fitted model, centred and with unit root-mean-square."""
    A = model.expansion_.evaluate_features(X)
    A = A - A.mean(axis=0)
    return A / np.sqrt(np.mean(A**2, axis=0))


@pytest.mark.parametrize("N", [30, 200])
def test_it_is_ridge_regression_on_all_features(friedman, N):
    X, y = friedman.X, friedman.y
    model = RFRRRegressor(N, order=2, scale=1.0, alpha=0.01, random_state=1).fit(X, y)
    A = scaled(model, X)
    assert A.shape == (80, N)
    truth = Ridge(alpha=0.01 * len(y)).fit(A, y)
    np.testing.assert_allclose(model.predict(X), truth.predict(A), rtol=1e-8)
    assert model.size_ == N


def test_without_weight_it_interpolates_with_least_norm():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(12, 40)), rng.normal(size=12)
    problem = StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")
    (S, c), (_, nearly) = ridge_on_all(problem, [0.0, 1e-10])
    np.testing.assert_array_equal(S, np.arange(40))
    np.testing.assert_allclose(c[:, 0], np.linalg.pinv(A) @ y, rtol=1e-10)
    np.testing.assert_allclose(c, nearly, rtol=1e-6)
    np.testing.assert_allclose(A @ c[:, 0], y, rtol=1e-10)


def test_the_ridgeless_model_fits_its_rows_exactly(friedman):
    X, y = friedman.X, friedman.y
    model = RFRRRegressor(500, order=2, scale=2.0, alpha=0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-6)


def test_a_path_has_the_solution_of_every_weight():
    rng = np.random.default_rng(1)
    A, y = rng.normal(size=(50, 20)), rng.normal(size=50)
    problem = StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")
    for alpha, (_, c) in zip(
        (1e-6, 0.1, 3.0), ridge_on_all(problem, [1e-6, 0.1, 3.0]), strict=True
    ):
        truth = np.linalg.solve(A.T @ A / 50 + alpha * np.eye(20), A.T @ y / 50)
        np.testing.assert_allclose(c[:, 0], truth, rtol=1e-9)


@pytest.mark.parametrize("N", [8, 60])
@pytest.mark.parametrize("intercept", [True, False])
def test_folds_from_one_decomposition_are_those_done_by_hand(N, intercept):
    rng = np.random.default_rng(2)
    F, y = rng.normal(size=(30, N)), 3 + rng.normal(size=30)
    out = np.array([0, 4, 5, 29])
    train = np.setdiff1d(np.arange(30), out)
    path = RidgePath.of_features(F, y, intercept)
    weights = np.array([0.01, 1.0, 50.0])
    for a, predicted in zip(weights, path.held_out(out, weights), strict=True):
        truth = Ridge(alpha=a, fit_intercept=intercept).fit(F[train], y[train])
        np.testing.assert_allclose(predicted, truth.predict(F[out]), rtol=1e-7)


def test_weights_of_rows_are_those_of_kernel_ridge():
    rng = np.random.default_rng(3)
    F, y = rng.normal(size=(25, 40)), rng.normal(size=25)
    v, b = RidgePath.of_features(F, y, intercept=False).dual(0.3)
    truth = KernelRidge(alpha=0.3, kernel="precomputed").fit(F @ F.T, y)
    np.testing.assert_allclose(v, truth.dual_coef_, rtol=1e-8)
    assert b == 0.0


def test_the_choice_has_the_smallest_error_of_the_folds(friedman):
    X, y = friedman.X, friedman.y
    alphas = [10.0, 1e-2, 1e-8]
    model = RFRRRegressor(100, order=[1, 2], scale=1.0, alpha=alphas, random_state=0).fit(X, y)
    results = model.cv_results_
    assert len(results["params"]) == 6
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    chosen = {"order": model.order_, "scale": model.scale_, "alpha": model.alpha_}
    assert chosen == model.best_params_
    # The first candidate by hand: features scaled on all rows, ridge weight times rows kept.
    one = RFRRRegressor(100, order=1, scale=1.0, alpha=10.0, random_state=0).fit(X, y)
    A = scaled(one, X)
    errors = []
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    for train, out in make_folds("cv", 5, X, y, seed):
        truth = Ridge(alpha=10.0 * len(y)).fit(A[train], y[train])
        errors.append(np.mean((truth.predict(A[out]) - y[out]) ** 2))
    assert -results["mean_test_score"][0] == pytest.approx(np.mean(errors), rel=1e-8)


def test_folds_that_leave_rows_out_of_both_parts_are_fitted_one_by_one(friedman):
    X, y = friedman.X, friedman.y
    window = [(np.arange(40), np.arange(40, 50))]
    settings = {"order": 1, "scale": 1.0, "random_state": 0}
    model = RFRRRegressor(100, alpha=[0.1, 0.01], cv=window, **settings).fit(X, y)
    alone = RFRRRegressor(100, alpha=0.1, **settings).fit(X[:40], y[:40])
    error = np.mean((alone.predict(X[40:50]) - y[40:50]) ** 2)
    assert -model.cv_results_["mean_test_score"][0] == pytest.approx(error, rel=1e-8)


def test_complex_targets_and_features():
    data = make_additive(60, 4, order=1, n_terms=2, complex_valued=True, noise=0.0, random_state=0)
    settings = {"order": 1, "scale": 1.0, "alpha": [1e-1, 1e-6], "activation": "exp"}
    model = RFRRRegressor(300, **settings, random_state=0).fit(data.X, data.y)
    assert model.predict(data.X).dtype.kind == "c"
    assert model.alpha_ == 1e-6
    assert model.score(data.X, data.y) > 0.99
