"""The group lasso against closed forms and other solvers; SpAM's backfitting and its splines."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from harfe._core.folds import make_folds
from harfe.datasets import make_function
from harfe.rivals import SpAMRegressor
from harfe.rivals.additive.spam import InputSplines, spline_knots, spline_values
from harfe.rivals.solvers.group_lasso import group_lasso_path, orthonormal, rotated

SIZES = (3, 1, 0, 5, 2)


@pytest.fixture(scope="module")
def blocks():
    """Blocks with orthogonal columns of several lengths, correlated with each other."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(40, 1))
    raw = [rng.normal(size=(40, n)) + common for n in SIZES]
    return [rotated(block)[0] if block.shape[1] else block for block in raw]


@pytest.fixture(scope="module")
def target(blocks):
    rng = np.random.default_rng(1)
    return blocks[0] @ [1.0, -1.0, 0.5] + blocks[4] @ [0.0, 1.0] + rng.normal(size=40)


def split(beta):
    return np.split(beta, np.cumsum(SIZES)[:-1])


def proximal_gradient(blocks, y, penalty, weights, steps=3000):
    """FISTA: another algorithm for the same minimum."""
    F, m = np.concatenate(blocks, axis=1), len(y)
    length = m / np.linalg.norm(F, 2) ** 2
    beta = point = np.zeros(F.shape[1])
    t = 1.0
    for _ in range(steps):
        moved = point - length * F.T @ (F @ point - y) / m
        parts = []
        for part, w in zip(split(moved), weights, strict=True):
            norm = np.linalg.norm(part)
            parts.append(part * max(0.0, 1 - length * penalty * w / norm) if norm else part)
        new = np.concatenate(parts)
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        point = new + (before - 1) / t * (new - beta)
        beta = new
    return beta


@pytest.mark.compiled
def test_one_orthonormal_block_is_the_group_soft_threshold():
    rng = np.random.default_rng(2)
    F, _ = orthonormal(rng.normal(size=(30, 4)), 1e-9)
    y = rng.normal(size=30)
    g = F.T @ y / 30
    path = group_lasso_path([F], y, np.array([0.3, 2.0]))
    np.testing.assert_allclose(path.penalties, np.array([0.3, 2.0]) * np.linalg.norm(g))
    np.testing.assert_allclose(path.coefficients, [0.7 * g, 0 * g], atol=1e-12)


@pytest.mark.compiled
def test_orthonormal_blocks_do_not_disturb_each_other():
    rng = np.random.default_rng(3)
    F, _ = orthonormal(rng.normal(size=(30, 6)), 1e-9)
    y = rng.normal(size=30)
    parts = [F[:, :2], F[:, 2:]]
    norms = [np.linalg.norm(part.T @ y / 30) for part in parts]
    path = group_lasso_path(parts, y, np.array([0.5]))
    truth = [
        max(0.0, 1 - 0.5 * max(norms) / norm) * part.T @ y / 30
        for part, norm in zip(parts, norms, strict=True)
    ]
    np.testing.assert_allclose(path.coefficients[0], np.concatenate(truth), atol=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 1.0, 0.5, 1.5)])
def test_it_agrees_with_proximal_gradient_and_meets_the_conditions(blocks, target, weights):
    w = np.ones(5) if weights is None else np.array(weights)
    path = group_lasso_path(blocks, target, np.array([0.5, 0.1, 0.01]), weights, tol=1e-12)
    assert np.all(path.gaps <= 1e-12 * np.mean(target**2))
    for beta, penalty in zip(path.coefficients, path.penalties, strict=True):
        truth = proximal_gradient(blocks, target, penalty, w)
        np.testing.assert_allclose(beta, truth, atol=1e-6)
        residual = target - np.concatenate(blocks, axis=1) @ beta
        for block, part, weight in zip(blocks, split(beta), w, strict=True):
            g = block.T @ residual / 40
            if np.any(part):
                unit = part / np.linalg.norm(part)
                np.testing.assert_allclose(g, penalty * weight * unit, atol=1e-6)
            else:
                assert np.linalg.norm(g) <= penalty * weight * (1 + 1e-6)
    assert 0 < np.count_nonzero(path.coefficients[0]) < sum(SIZES)


def test_the_gap_bounds_the_distance_from_the_minimum(blocks, target):
    def objective(beta):
        fitted = np.concatenate(blocks, axis=1) @ beta
        size = sum(np.linalg.norm(part) for part in split(beta))
        return np.mean((target - fitted) ** 2) / 2 + penalty * size

    shares = np.array([0.02])
    rough = group_lasso_path(blocks, target, shares, tol=0.0, max_sweeps=5)
    penalty = rough.penalties[0]
    best = objective(group_lasso_path(blocks, target, shares, tol=1e-13).coefficients[0])
    assert 1e-9 < objective(rough.coefficients[0]) - best <= rough.gaps[0]


@pytest.mark.compiled
@pytest.mark.parametrize("m", [12, 60])
def test_single_columns_are_the_lasso(m):
    rng = np.random.default_rng(4)
    F, y = rng.normal(size=(m, 20)) + rng.normal(size=(m, 1)), rng.normal(size=m)
    one_by_one = group_lasso_path(list(F.T[:, :, None]), y, np.array([0.4, 0.05]), tol=1e-12)
    together = group_lasso_path([F], y, np.array([0.4, 0.05]), tol=1e-12, by_column=True)
    np.testing.assert_array_equal(one_by_one.coefficients, together.coefficients)
    for beta, penalty in zip(together.coefficients, together.penalties, strict=True):
        truth = Lasso(alpha=penalty, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(F, y)
        np.testing.assert_allclose(beta, truth.coef_, atol=1e-6)


@pytest.mark.compiled
def test_a_block_that_comes_up_late_is_found():
    # As the first column enters, the correlation of the second, favoured by its small weight, rises
    # three times as fast as the penalty falls, which the strong rule does not expect.
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(25, 2)))
    first, second = 5 * Q[:, 0], 5 * (-0.9 * Q[:, 0] + np.sqrt(0.19) * Q[:, 1])
    y = 5 * Q @ [1.0, 0.9 / np.sqrt(0.19)]
    np.testing.assert_allclose([first @ y, second @ y], [25.0, 0.0], atol=1e-10)
    blocks, weights = [first[:, None], second[:, None]], np.array([1.0, 0.3])
    path = group_lasso_path(blocks, y, np.array([0.7]), weights, tol=1e-12)
    scaled = np.column_stack([first, second / 0.3])
    truth = Lasso(alpha=0.7, fit_intercept=False, tol=1e-12).fit(scaled, y)
    assert truth.coef_[1] != 0
    np.testing.assert_allclose(path.coefficients[0] * weights, truth.coef_, atol=1e-8)


def test_a_path_does_not_depend_on_the_order_of_its_penalties(blocks, target):
    shares = np.array([0.7, 1.0, 0.02, 0.2])
    path = group_lasso_path(blocks, target, shares, tol=1e-10)
    sorted_path = group_lasso_path(blocks, target, np.sort(shares)[::-1], tol=1e-10)
    np.testing.assert_array_equal(path.coefficients, sorted_path.coefficients[[1, 0, 3, 2]])
    np.testing.assert_array_equal(np.argsort(path.penalties), np.argsort(shares))
    assert not np.any(path.coefficients[1])


@pytest.mark.compiled
def test_a_path_that_is_watched_ends_where_other_rows_have_lost(blocks, target):
    shares = np.geomspace(1.0, 1e-3, 20)
    other = np.random.default_rng(5).normal(size=(30, sum(SIZES)))
    full = group_lasso_path(blocks, target, shares)
    noise = np.random.default_rng(6).normal(size=30)
    noise -= other @ np.linalg.lstsq(other, noise, rcond=None)[0]
    # The other rows agree with the first penalties only.
    watched = (other, other @ full.coefficients[3] + 0.1 * noise)
    path = group_lasso_path(blocks, target, shares, watched=watched)
    end = int(np.argmax(np.isinf(path.gaps)))
    assert 4 <= end < 10
    np.testing.assert_array_equal(path.coefficients[:end], full.coefficients[:end])
    assert np.all(path.coefficients[end:] == path.coefficients[end - 1])
    # With more unexplained noise the error hardly rises, but its minimum was earlier.
    watched = (other, other @ full.coefficients[3] + 1e3 * noise)
    path = group_lasso_path(blocks, target, shares, watched=watched)
    assert int(np.argmax(np.isinf(path.gaps))) == np.argmax(shares < shares[3] / 10) + 1


def test_blocks_in_other_coordinates():
    rng = np.random.default_rng(6)
    block = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 5))
    F, T = orthonormal(block, 1e-9)
    assert F.shape == (20, 3)
    np.testing.assert_allclose(F.T @ F / 20, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(block @ T, F, atol=1e-10)
    F, V = rotated(block)
    assert F.shape == (20, 3)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(F @ V.T, block, atol=1e-10)
    gram = F.T @ F
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)


def test_splines_sum_to_one_and_are_as_many_as_asked():
    values = np.sort(np.random.default_rng(0).uniform(size=50)) ** 3
    values = (values - values[0]) / (values[-1] - values[0])
    for size in (2, 3, 4, 7, 12):
        raw = spline_values(values, spline_knots(values, size))
        assert raw.shape == (50, size)
        np.testing.assert_allclose(raw.sum(axis=1), 1.0)
        F = InputSplines.of(values, size).apply(values)
        assert F.shape == (50, size - 1)
        np.testing.assert_allclose(F.T @ F / 50, np.eye(size - 1), atol=1e-10)
        np.testing.assert_allclose(F.mean(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("distinct", [2, 3, 5])
def test_few_distinct_values_have_few_functions(distinct):
    values = np.repeat(np.linspace(0.0, 1.0, distinct), 7)
    F = InputSplines.of(values, 10).apply(values)
    assert F.shape[1] == distinct - 1


@pytest.fixture(scope="module")
def planted():
    X = np.random.default_rng(0).uniform(-1, 1, size=(150, 8))
    noise = 0.1 * np.random.default_rng(1).normal(size=150)
    return X, np.sin(4 * X[:, 2]) + 2 * X[:, 5] ** 2 + noise


def test_the_true_inputs_are_selected(planted):
    X, y = planted
    model = SpAMRegressor(n_basis=8, alpha=0.25).fit(X, y)
    np.testing.assert_array_equal(model.selected_, [2, 5])
    np.testing.assert_array_equal(np.flatnonzero(model.component_norms_), [2, 5])
    assert model.size_ == 14
    assert model.score(X, y) > 0.7
    # Cross-validation keeps them and predicts well.
    chosen = SpAMRegressor(random_state=0).fit(X, y)
    assert {2, 5} <= set(chosen.selected_)
    assert chosen.score(X, y) > 0.97


def test_no_component_from_the_largest_penalty_on(planted):
    X, y = planted
    model = SpAMRegressor(n_basis=5, alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean())
    assert model.size_ == 0
    assert len(model.selected_) == 0
    assert SpAMRegressor(n_basis=5, alpha=0.999).fit(X, y).size_ > 0


def test_without_penalty_it_is_least_squares_on_the_splines(planted):
    X, y = planted
    model = SpAMRegressor(n_basis=6, alpha=1e-9).fit(X, y)
    unit = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    raw = [spline_values(u, spline_knots(u, 6)) for u in unit.T]
    A = np.concatenate(raw, axis=1)  # every basis contains the constant
    truth = A @ np.linalg.lstsq(A, y, rcond=1e-10)[0]
    np.testing.assert_allclose(model.predict(X), truth, atol=1e-4)


def test_the_solution_is_a_fixed_point_of_sparse_backfitting(planted):
    X, y = planted
    model = SpAMRegressor(n_basis=6, alpha=0.02).fit(X, y)
    parts = model.components(X)
    penalty = model.lambda_ * y.std()
    unit = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    assert 2 < len(model.selected_) < 8
    for j in range(8):
        left = y - y.mean() - parts.sum(axis=1) + parts[:, j]
        raw = spline_values(unit[:, j], spline_knots(unit[:, j], 6))
        raw = raw - raw.mean(axis=0)
        smooth = raw @ np.linalg.lstsq(raw, left, rcond=1e-10)[0]
        shrunk = max(0.0, 1 - penalty / np.sqrt(np.mean(smooth**2))) * smooth
        np.testing.assert_allclose(parts[:, j], shrunk, atol=2e-3)


def test_components_sum_to_the_prediction(planted):
    X, y = planted
    model = SpAMRegressor(n_basis=[4, 6], alpha=[0.3, 0.03], random_state=0).fit(X, 10 + 5 * y)
    new = np.random.default_rng(2).uniform(-1, 1, size=(9, 8))
    parts = model.components(new)
    assert parts.shape == (9, 8)
    np.testing.assert_allclose(model.intercept_ + parts.sum(axis=1), model.predict(new))
    assert model.intercept_ == pytest.approx(np.mean(10 + 5 * y))
    norms = np.sqrt(np.mean(model.components(X) ** 2, axis=0))
    np.testing.assert_allclose(model.component_norms_, norms, atol=1e-10)
    np.testing.assert_allclose(model.components(X).mean(axis=0), 0.0, atol=1e-10)


def test_beyond_the_range_that_was_seen_it_is_constant(planted):
    X, y = planted
    model = SpAMRegressor(n_basis=6, alpha=0.1).fit(X, y)
    far = np.tile(X.max(axis=0), (2, 1))
    far[1] += 1e6
    values = model.predict(far)
    assert values[0] == pytest.approx(values[1])


def test_linear_splines_of_two_values_are_the_lasso_of_standardised_dummies():
    rng = np.random.default_rng(7)
    X = rng.integers(0, 2, size=(60, 5)).astype(float)
    y = X @ [1.0, 0.0, 2.0, 0.0, -0.5] + 0.1 * rng.normal(size=60)
    model = SpAMRegressor(alpha=0.2, n_basis=10).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    truth = Lasso(alpha=model.lambda_ * y.std(), tol=1e-10).fit(Z, y)
    np.testing.assert_allclose(model.predict(X), truth.predict(Z), atol=1e-3)
    assert model.size_ == np.count_nonzero(truth.coef_)


def test_the_choice_has_the_smallest_error_of_the_folds():
    data = make_function("friedman1", 80, random_state=0)
    X, y = data.X, data.y
    settings = {"n_basis": [4, 6], "alpha": [0.5, 0.1]}
    model = SpAMRegressor(**settings, random_state=0).fit(X, y)
    results = model.cv_results_
    assert len(results["params"]) == 4
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    assert {"n_basis": model.n_basis_, "alpha": model.alpha_} == model.best_params_
    errors = []
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    for train, out in make_folds("cv", 5, X, y, seed):
        one = SpAMRegressor(n_basis=4, alpha=0.5).fit(X[train], y[train])
        errors.append(np.mean((one.predict(X[out]) - y[out]) ** 2))
    assert -results["mean_test_score"][0] * np.var(y) == pytest.approx(np.mean(errors), rel=0.01)


def test_hard_rows():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(30, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    hard = np.column_stack([X[:, 0] * 1e300, X[:, 0], X[:, 0], np.ones(30), X[:, 1] * 1e-300])
    model = SpAMRegressor(n_basis=4, alpha=[0.5, 0.01], random_state=0).fit(hard, y * 1e200)
    np.testing.assert_allclose(model.predict(hard) / 1e200, y, atol=0.5)
    assert 3 not in model.selected_
    assert np.all(np.isfinite(model.predict(hard * 1e5)))
    two = SpAMRegressor(random_state=0, cv=2).fit(X[:2], y[:2])
    assert np.all(np.isfinite(two.predict(X)))
    wide = SpAMRegressor(n_basis=4, alpha=0.1).fit(rng.normal(size=(10, 40)), rng.normal(size=10))
    assert 0 < len(wide.selected_) < 40


def test_a_constant_target_has_no_components():
    X = np.arange(12.0).reshape(6, 2)
    model = SpAMRegressor().fit(X, np.full(6, 3.0))
    np.testing.assert_array_equal(model.components(X), np.zeros((6, 2)))
    assert (model.intercept_, model.lambda_, len(model.selected_)) == (3.0, 0.0, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_basis": 1}, "n_basis=1 has a value below 2"),
        ({"n_basis": 31}, "n_basis=31 is larger than the number of rows, 30"),
        ({"n_basis": 4.5}, "n_basis=4.5 must be 'auto', a whole number"),
        ({"alpha": 0}, "alpha=0 must be 'auto', a finite number above 0"),
        ({"alpha": "small"}, "alpha='small' must be"),
        ({"memory_budget": -1}, "memory_budget=-1 must be"),
    ],
)
def test_bad_arguments_are_refused(settings, message):
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match=message):
        SpAMRegressor(**settings).fit(X, X[:, 0])


def test_memory_is_checked_before_it_is_taken():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(MemoryError, match="pass n_basis below 16"):
        SpAMRegressor(memory_budget=1000).fit(X, X[:, 0])


def test_default_settings_do_not_fail_on_friedman_1():
    data = make_function("friedman1", 200, random_state=0)
    fresh = make_function("friedman1", 1000, random_state=1000)
    model = SpAMRegressor(random_state=0).fit(data.X, data.y)
    assert np.mean((model.predict(fresh.X) - fresh.y_clean) ** 2) < 5
