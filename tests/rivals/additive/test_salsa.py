"""SALSA and KAM: kernels against all subsets, twins in scikit-learn, folds by hand, the stop."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import TimeSeriesSplit

from harfe._core.folds import make_folds
from harfe.datasets import make_function
from harfe.rivals import KAMRegressor, SALSARegressor
from harfe.rivals.additive.salsa import factor_weight, in_widths, subset_kernel


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 80, random_state=0)


def standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def gaussians(Z, width):
    """Kernels of the single inputs, (inputs, rows, rows)."""
    return np.exp(-((Z.T[:, :, None] - Z.T[:, None, :]) ** 2) / (2 * width**2))


def ridge_twin(K, y, weight):
    """Kernel ridge regression with a constant that is not penalised, by the bordered system."""
    m = len(y)
    system = np.block(
        [[K + weight * np.eye(m), np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(system, np.append(y, 0.0))
    return solution[:m], solution[m]


@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_the_kernel_is_the_mean_over_all_subsets(q):
    rng = np.random.default_rng(q)
    Z, other = rng.normal(size=(9, 6)), rng.normal(size=(5, 6))
    factors = np.exp(-((Z[:, None, :] - other[None, :, :]) ** 2))
    truth = np.mean(
        [factors[..., list(S)].prod(axis=-1) for S in combinations(range(6), q)], axis=0
    )
    kernel = subset_kernel(np.ascontiguousarray(Z.T), np.ascontiguousarray(other.T), q)
    np.testing.assert_allclose(kernel, truth, rtol=1e-12)


def test_the_kernel_is_exact_for_many_inputs_and_high_orders():
    d, q = 60, 10
    rng = np.random.default_rng(0)
    ZT = rng.normal(size=(d, 2))
    u = [Fraction(float(np.exp(-((a - b) ** 2)))) for a, b in ZT]
    polynomials = [Fraction(1)] + [Fraction(0)] * q
    for value in u:
        for r in range(q, 0, -1):
            polynomials[r] += value * polynomials[r - 1]
    kernel = subset_kernel(ZT, None, q)
    assert kernel[1, 0] == pytest.approx(float(polynomials[q] / comb(d, q)), rel=1e-11)
    np.testing.assert_allclose(np.diag(kernel), 1.0, rtol=1e-12)


def test_a_thousand_inputs_stay_in_range():
    kernel = subset_kernel(np.zeros((1000, 2)), None, 10)
    np.testing.assert_allclose(kernel, 1.0, rtol=1e-9)
    assert factor_weight(1000, 10) ** 10 * comb(1000, 10) == pytest.approx(1.0)


def test_of_full_order_it_is_gaussian_kernel_ridge(friedman):
    X, y = friedman.X[:, :4], friedman.y
    model = SALSARegressor(4, bandwidth=6.0, alpha=1e-3).fit(X, y)
    width = 6.0 * len(y) ** -0.2
    Z, gamma, weight = standard(X), 1 / (2 * width**2), 1e-3 * len(y)
    # KernelRidge has no constant: ours makes the dual weights sum to zero.
    by_y, by_one = (
        KernelRidge(alpha=weight, kernel="rbf", gamma=gamma).fit(Z, t) for t in (y, np.ones(len(y)))
    )
    b = by_y.dual_coef_.sum() / by_one.dual_coef_.sum()
    new = np.random.default_rng(1).uniform(size=(20, 4))
    Z = (new - X.mean(axis=0)) / X.std(axis=0)
    truth = b + by_y.predict(Z) - b * by_one.predict(Z)
    np.testing.assert_allclose(model.predict(new), truth, rtol=1e-8)
    assert model.size_ == 81


def test_of_order_one_it_is_the_additive_model(friedman):
    X, y = friedman.X, friedman.y
    settings = {"bandwidth": 20.0, "alpha": 1e-4}
    salsa, kam = SALSARegressor(1, **settings).fit(X, y), KAMRegressor(**settings).fit(X, y)
    np.testing.assert_array_equal(salsa.predict(X), kam.predict(X))
    factors = gaussians(standard(X), 20.0 * len(y) ** -0.2)
    K = factors.mean(axis=0)
    v, b = ridge_twin(K, y, 1e-4 * len(y))
    np.testing.assert_allclose(kam.predict(X), K @ v + b, rtol=1e-8)
    parts = np.array([factor @ v / 10 for factor in factors])
    np.testing.assert_allclose(kam.component_sizes_, parts.std(axis=1), rtol=1e-6)
    truth = KernelRidge(alpha=1e-4 * len(y), kernel="precomputed").fit(K, y - b)
    np.testing.assert_allclose(truth.dual_coef_, v, rtol=1e-5, atol=1e-6)
    assert kam.best_params_ == settings
    assert "order" not in kam.get_params()


def test_folds_are_those_done_by_hand(friedman):
    X, y = friedman.X, friedman.y
    model = SALSARegressor([1, 2], bandwidth=[20.0, 2.0], alpha=[1.0, 1e-3], random_state=0)
    model.fit(X, y)
    results = model.cv_results_
    assert len(results["params"]) == 8
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    folds = make_folds("cv", 5, X, y, seed)
    assert_errors_of_folds(X, y, results, 3, 2.0 * len(y) ** -0.2, 1e-3, folds)


def test_folds_need_not_cut_all_rows_in_two(friedman):
    X, y = friedman.X, friedman.y
    cv = TimeSeriesSplit(3)
    model = KAMRegressor(bandwidth=6.0, alpha=[1.0, 1e-2], cv=cv).fit(X, y)
    folds = list(cv.split(X))
    assert_errors_of_folds(X, y, model.cv_results_, 1, 6.0 * len(y) ** -0.2, 1e-2, folds)


def assert_errors_of_folds(X, y, results, place, width, alpha, folds):
    """Order 1. Units, widths and α times the number of rows are those of all rows."""
    K = gaussians(standard(X), width).mean(axis=0)
    assert results["params"][place]["alpha"] == alpha
    unit = y.std()  # errors are those of the standardised target
    errors = []
    for train, out in folds:
        v, b = ridge_twin(K[np.ix_(train, train)], y[train], alpha * len(y))
        errors.append(np.mean((K[np.ix_(out, train)] @ v + b - y[out]) ** 2))
    score = results["mean_test_score"][place]
    assert -score * unit**2 == pytest.approx(np.mean(errors), rel=1e-7)


def test_a_product_of_two_inputs_has_order_two():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    model = SALSARegressor(random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert model.order_ == 2
    new = rng.normal(size=(200, 5))
    assert model.score(new, new[:, 0] * new[:, 1]) > 0.99
    additive = SALSARegressor(1, random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert additive.score(new, new[:, 0] * new[:, 1]) < 0.5


def test_the_additive_model_knows_which_inputs_matter():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(150, 3)), np.full(150, 7.0)])
    y = 30 * np.sin(X[:, 0]) + 10 * X[:, 2]
    sizes = KAMRegressor(random_state=0).fit(X, y).component_sizes_
    np.testing.assert_allclose(
        sizes, [np.std(30 * np.sin(X[:, 0])), 0, 10 * X[:, 2].std(), 0], atol=0.5
    )
    assert sizes[3] == 0


@pytest.mark.parametrize(
    ("errors", "enough"),
    [
        ([9, 5, 6, 7], False),  # two orders after the best, the second incomplete
        ([9, 5, 6, 7, 8, 8, 6, 6], True),
        ([9, 5, 6, 7, 8, 8, 6], False),
        ([9, 5, 6, 7, 8, 8, 6, 4], False),
        ([9, 5, 6, 7, 8, 8, 6, 4, 9, 9, 9, 9, 9, 9], True),
    ],
)
def test_it_stops_after_three_orders_that_brought_nothing(errors, enough):
    model = SALSARegressor(bandwidth=[20.0, 2.0])
    assert model._enough(errors) is enough
    assert SALSARegressor([1, 2, 3], bandwidth=[20.0, 2.0])._enough(errors) is False


def test_an_additive_target_ends_the_orders_at_four():
    X = np.random.default_rng(2).normal(size=(60, 8))
    model = SALSARegressor(bandwidth=20.0, random_state=0).fit(X, np.sin(X[:, 0]) + X[:, 1])
    assert model.order_ == 1
    assert {p["order"] for p in model.cv_results_["params"]} == {1, 2, 3, 4}


def test_far_rows_and_huge_units():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = SALSARegressor(2, bandwidth=6.0, alpha=1e-2).fit(X * 1e300, y * 1e300)
    small = SALSARegressor(2, bandwidth=6.0, alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(model.predict(X * 1e300) / 1e300, small.predict(X), rtol=1e-8)
    far = small.predict(np.array([[1e308, -1e308, 1e308], [1e9, 1e9, 1e9]]))
    np.testing.assert_allclose(far, far[0], rtol=1e-12)  # only the constant remains
    assert np.isfinite(far).all()
    # Squares of distances must stay finite: the compiled loop promises that there is no infinity.
    assert np.abs(in_widths(small.function_.scaling, 1e-9, np.full((1, 3), 1e308))).max() == 1e150


def test_two_rows_and_constant_targets():
    X = np.array([[0.0, 1.0], [1.0, 3.0]])
    assert np.isfinite(SALSARegressor(alpha=1e-2).fit(X, [1.0, 2.0]).predict(X)).all()
    model = KAMRegressor().fit(X, [5.0, 5.0])
    np.testing.assert_array_equal(model.predict(X), 5.0)
    np.testing.assert_array_equal(model.component_sizes_, 0.0)
    assert model.size_ == 1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"order": 0}, ValueError, "order=0 must be 'auto', a whole number"),
        ({"order": 11}, ValueError, "order=11 is larger than the number of inputs that vary, 10"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth=-1.0 must be 'auto', a finite number above 0"),
        ({"alpha": 0.0}, ValueError, "alpha=0.0 must be 'auto', a finite number above 0"),
        ({"memory_budget": 1e5}, MemoryError, "for kernels of 80 rows, but memory_budget is 1e"),
        ({"memory_budget": "much"}, ValueError, "memory_budget='much' must be 'auto'"),
    ],
)
def test_arguments_are_refused_by_name(friedman, settings, error, message):
    with pytest.raises(error, match=message):
        SALSARegressor(**settings).fit(friedman.X, friedman.y)


def test_orders_beyond_the_range_of_doubles_are_refused():
    X = np.random.default_rng(4).normal(size=(5, 5000))
    with pytest.raises(ValueError, match="order=2500 with 5000 inputs leaves the range"):
        SALSARegressor(2500).fit(X, np.arange(5.0))


def test_sizes_need_a_fit():
    with pytest.raises(NotFittedError):
        _ = KAMRegressor().component_sizes_


@pytest.mark.parametrize("regressor", [SALSARegressor, KAMRegressor])
def test_friedman_one(regressor):
    data = make_function("friedman1", 200, random_state=1)
    new = make_function("friedman1", 1000, random_state=1001)
    model = regressor(random_state=1).fit(data.X, data.y)
    assert np.mean((model.predict(new.X) - new.y_clean) ** 2) < 5
