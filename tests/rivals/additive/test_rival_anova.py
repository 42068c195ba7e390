"""ANOVA approximation: orthonormal basis, planted terms, kernel and features, folds by hand."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from harfe._core.folds import make_folds
from harfe.datasets import make_function
from harfe.rivals import ANOVARegressor
from harfe.rivals.additive.anova import _TwoSteps, active_set
from harfe.rivals.additive.cosines import Cosines, all_terms, sensitivity_indices
from harfe.rivals.solvers.centred_ridge import CentredRidge

REFIT = {"threshold": 0.01, "bandwidth": 8, "interaction_bandwidth": 4}


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 200, random_state=0)


def uniform(rows, inputs, seed=0):
    """Rows whose range is the unit cube itself, so that scaling changes nothing."""
    X = np.random.default_rng(seed).uniform(size=(rows, inputs))
    X[0], X[1] = 0.0, 1.0
    return X


def wave(k, x):
    return np.sqrt(2) * np.cos(np.pi * k * x)


def dense(X, terms, bandwidths, smoothness):
    """Functions over √w, and √w, written out one by one."""
    columns, roots = [], []
    for u in terms:
        grids = np.meshgrid(*[np.arange(1, bandwidths[len(u) - 1])] * len(u), indexing="ij")
        for k in zip(*(grid.ravel() for grid in grids), strict=True):
            roots.append(np.prod([(1 + kj**2) ** (smoothness / 2) for kj in k]))
            columns.append(np.prod([wave(kj, X[:, j]) for kj, j in zip(k, u, strict=True)], axis=0))
    return np.array(columns).T / roots, np.array(roots)


def test_the_basis_is_orthonormal():
    nodes, weights = np.polynomial.legendre.leggauss(40)
    x, weights = (nodes + 1) / 2, weights / 2
    grid = np.column_stack([np.repeat(x, 40), np.tile(x, 40)])
    both = np.outer(weights, weights).ravel()
    cosines = Cosines.of(grid, (6, 4), 0.0)
    terms = all_terms(2, 2)
    F = np.hstack([np.ones((1600, 1)), *(cosines.features(u) for u in terms)])
    assert F.shape[1] == 1 + 5 + 5 + 9 == 1 + cosines.count(terms)
    np.testing.assert_allclose(F.T @ (both[:, None] * F), np.eye(F.shape[1]), atol=1e-12)


def test_all_terms_are_all_small_sets():
    assert all_terms(3, 2) == ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    assert all_terms(2, 3) == ((0,), (1,), (0, 1))
    assert len(all_terms(6, 3)) == 6 + 15 + 20


@pytest.mark.parametrize("superposition", [1, 2, 3])
def test_functions_and_kernel_are_the_formula(superposition):
    X, bandwidths = uniform(20, 5), (7, 4, 3)[:superposition]
    terms = [u for u in all_terms(5, superposition) if u not in ((1,), (0, 2), (1, 2, 4))]
    F, roots = dense(X, terms, bandwidths, 1.5)
    cosines = Cosines.of(X, bandwidths, 1.5)
    np.testing.assert_allclose(np.hstack([cosines.features(u) for u in terms]), F, atol=1e-13)
    np.testing.assert_allclose(cosines.kernel(terms), F @ F.T, atol=1e-12)
    v = np.random.default_rng(1).normal(size=20)
    parts = cosines.pull_back(terms, v)
    np.testing.assert_allclose(np.concatenate(parts), F.T @ v, atol=1e-12)
    coef = [cosines.unweighted(u, c) for u, c in zip(terms, parts, strict=True)]
    assert [c.ndim for c in coef] == [len(u) for u in terms]
    np.testing.assert_allclose(
        np.concatenate([c.ravel() for c in coef]), F.T @ v / roots, atol=1e-12
    )


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("n_functions", [5, 50])
def test_ridge_and_leave_one_out_are_those_done_by_hand(n_functions, by_rows):
    rng = np.random.default_rng(2)
    F, y = 1 + rng.normal(size=(25, n_functions)), 3 + rng.normal(size=25)
    train, out = np.arange(4, 25), np.arange(4)
    weights = np.array([1e-6, 0.3, 20.0])
    ridge = CentredRidge(F @ F.T if by_rows else F, by_rows, y, train)
    predicted, errors = ridge.predict(out, weights), ridge.leave_one_out(weights)
    for place, weight in enumerate(weights):
        truth = Ridge(alpha=weight, solver="svd").fit(F[train], y[train])
        np.testing.assert_allclose(predicted[place], truth.predict(F[out]), rtol=1e-6)
        left_out = []
        for row in train:
            others = train[train != row]
            fit = Ridge(alpha=weight, solver="svd").fit(F[others], y[others])
            left_out.append(y[row] - fit.predict(F[[row]])[0])
        assert errors[place] == pytest.approx(np.mean(np.square(left_out)), rel=1e-5)


def test_leave_one_out_is_not_fooled_by_rounding():
    """Where a kernel interpolates, both parts of the quotient are tiny; the quotient is not."""
    X = uniform(60, 6)
    y = np.random.default_rng(3).normal(size=60)
    kernel = Cosines.of(X, (12, 6), 1.0).kernel(all_terms(6, 2))
    ridge = CentredRidge(kernel, True, y, np.arange(60))
    errors = ridge.leave_one_out(np.array([1e-7, 1e-5, 1e-4]))
    np.testing.assert_allclose(errors, errors[1], rtol=0.01)


@pytest.mark.parametrize("rows", [60, 400])
def test_a_planted_polynomial_is_recovered(rows):
    """Fewer rows than functions, and more; exact coefficients, and indices in closed form."""
    X = uniform(rows, 4)
    y = 5 + 2 * wave(1, X[:, 0]) - wave(3, X[:, 2]) + 1.5 * wave(1, X[:, 0]) * wave(2, X[:, 3])
    settings = {"superposition": 2, "bandwidth": 4, "interaction_bandwidth": 4}
    model = ANOVARegressor(threshold=0.01, alpha=1e-12, **settings).fit(X, y)
    assert model.active_set_ == ((0,), (2,), (0, 3))
    np.testing.assert_allclose(model.coef_[0], [2, 0, 0], atol=1e-6)
    np.testing.assert_allclose(model.coef_[1], [0, 0, -1], atol=1e-6)
    pair = np.zeros((3, 3))
    pair[0, 1] = 1.5
    np.testing.assert_allclose(model.coef_[2], pair, atol=1e-6)
    assert model.intercept_ == pytest.approx(5, abs=1e-6)
    variances = np.array([4, 1, 2.25])
    np.testing.assert_allclose(model.sensitivities_, variances / 7.25, atol=1e-6)
    np.testing.assert_allclose(
        model.total_sensitivities_, np.array([6.25, 0, 1, 2.25]) / 7.25, atol=1e-6
    )
    assert model.bandwidths_ == (4, 4)
    assert model.cv_results_ is None
    np.testing.assert_allclose(model.predict(X), y, atol=1e-5)


def test_indices_of_a_known_function():
    """Of x² + 2y + (x - 1/2)(y - 1/2): variances 4/45, 1/3, 1/144 in closed form.

    The first is of x² + x·0: the product has no part in main effects.
    """
    X = uniform(3000, 2)
    y = X[:, 0] ** 2 + 2 * X[:, 1] + (X[:, 0] - 0.5) * (X[:, 1] - 0.5)
    settings = {"superposition": 2, "threshold": 0.0, "bandwidth": 40, "interaction_bandwidth": 10}
    model = ANOVARegressor(alpha=1e-9, **settings).fit(X, y)
    variances = np.array([4 / 45, 1 / 3, 1 / 144])
    assert model.active_set_ == ((0,), (1,), (0, 1))
    np.testing.assert_allclose(model.sensitivities_, variances / variances.sum(), rtol=5e-3)


@pytest.mark.parametrize("superposition", [1, 2, 3])
@pytest.mark.parametrize("rows", [15, 150])
def test_it_is_ridge_regression_on_the_dense_basis(superposition, rows):
    X = uniform(rows, 4, seed=1)
    y = X[:, 0] * X[:, 1] * X[:, 2] + np.sin(5 * X[:, 3])
    model = ANOVARegressor(
        superposition, threshold=0.0, bandwidth=6, interaction_bandwidth=3, alpha=1e-3
    ).fit(X, y)
    F, roots = dense(X, all_terms(4, superposition), (6, 3, 3), 1.5)
    truth = Ridge(alpha=1e-3 * rows, solver="svd").fit(F, y)
    fresh = np.random.default_rng(5).uniform(size=(50, 4))
    at_fresh, _ = dense(fresh, all_terms(4, superposition), (6, 3, 3), 1.5)
    np.testing.assert_allclose(model.predict(fresh), truth.predict(at_fresh), rtol=1e-7)
    coef = np.concatenate([c.ravel() for c in model.coef_])
    np.testing.assert_allclose(coef, truth.coef_ / roots, rtol=1e-6, atol=1e-10)
    assert model.size_ == F.shape[1]


def test_an_infinite_weight_gives_the_mean(friedman):
    model = ANOVARegressor(2, **REFIT, alpha=1e15).fit(friedman.X, friedman.y)
    np.testing.assert_allclose(model.predict(friedman.X), friedman.y.mean(), rtol=1e-8)


def test_the_terms_of_friedman_1_are_found():
    data = make_function("friedman1", 300, random_state=1)
    model = ANOVARegressor(random_state=0).fit(data.X, data.y_clean)
    largest = sorted(zip(model.sensitivities_, model.active_set_, strict=True))[-6:]
    assert {u for _, u in largest} == {(0,), (1,), (2,), (3,), (4,), (0, 1)}
    assert model.superposition_ == 2


@pytest.mark.parametrize("seed", [0, 1])
def test_errors_on_friedman_1(seed):
    data = make_function("friedman1", 200, random_state=seed)
    fresh = make_function("friedman1", 1000, random_state=100 + seed)
    model = ANOVARegressor(random_state=seed).fit(data.X, data.y)
    assert np.mean((model.predict(fresh.X) - fresh.y_clean) ** 2) < 1.5
    assert set(model.active_set_) >= {(0,), (1,), (3,), (4,), (0, 1)}


def test_held_out_rows_are_predicted_by_both_steps_on_the_others(friedman):
    X, y = friedman.X[:60, :4], friedman.y[:60]
    alphas = [0.01, 1e-4]
    model = ANOVARegressor(
        2,
        threshold=[0.05, 0.005],
        bandwidth=6,
        interaction_bandwidth=3,
        alpha=alphas,
        cv=3,
        random_state=0,
    ).fit(X, y)
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    z = (y - y.mean()) / y.std()
    terms = all_terms(4, 2)
    first, roots = dense(Z, terms, (6, 4), 1.5)
    ends = np.cumsum([5] * 4 + [9] * 6)[:-1]
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    scores = np.array([model.cv_results_[f"split{k}_test_score"] for k in range(3)])
    for fold, (train, out) in enumerate(make_folds("cv", 3, X, y, seed)):
        # The first step uses the weight with the smallest leave-one-out error, by the hat matrix.
        F, t = first[train] - first[train].mean(axis=0), z[train] - z[train].mean()
        errors = {}
        for weight in np.geomspace(10, 1e-9, 21)[:14] * 60:
            hat = F @ np.linalg.solve(F.T @ F + weight * np.eye(F.shape[1]), F.T)
            left = 1 - 1 / len(train) - np.diag(hat)
            errors[weight] = np.mean(((t - hat @ t) / left) ** 2)
        best = min(errors, key=errors.get)
        fit = Ridge(alpha=best).fit(first[train], z[train])
        variances = np.array([np.sum(c**2) for c in np.split(fit.coef_ / roots, ends)])
        truth = []
        for threshold in (0.05, 0.005):
            chosen = [
                u for u, v in zip(terms, variances / variances.sum(), strict=True) if v > threshold
            ]
            F, _ = dense(Z, chosen, (6, 3), 1.5)
            for alpha in alphas:
                refit = Ridge(alpha=alpha * 60).fit(F[train], z[train])
                truth.append(-np.mean((refit.predict(F[out]) - z[out]) ** 2))
        np.testing.assert_allclose(scores[fold], truth, rtol=1e-6)
    assert model.best_params_ == model.cv_results_["params"][int(np.argmax(scores.mean(axis=0)))]


def test_the_ranking_does_not_see_held_out_rows(friedman):
    X, y, train = friedman.X, friedman.y, np.arange(150)
    other = y.copy()
    other[150:] = 1e3
    first, second = (_TwoSteps(X, t, 2, (6, 4), 1.5, []).sensitivities(train) for t in (y, other))
    np.testing.assert_array_equal(first, second)


def test_the_active_set_is_what_exceeds_the_threshold():
    terms = ((0,), (1,), (0, 1))
    indices = np.array([0.2, 0.7, 0.1])
    assert active_set(terms, indices, 0.0) == terms
    assert active_set(terms, indices, 0.1) == ((0,), (1,))
    assert active_set(terms, indices, 0.9) == ((1,),)
    np.testing.assert_allclose(sensitivity_indices([np.array([3e200]), np.array([4e200])])[0], 0.36)
    np.testing.assert_array_equal(sensitivity_indices([np.zeros(2), np.zeros(1)]), [0, 0])


def test_constant_and_equal_inputs_and_rows_outside():
    X = uniform(80, 3)
    wide = np.column_stack([np.full(80, 7.0), X[:, 0], X[:, 0], 1e300 * X[:, 2]])
    y = 1e200 * (wave(1, X[:, 0]) + wave(1, X[:, 2]))
    model = ANOVARegressor(random_state=0, cv=2).fit(wide, y)
    assert {j for u in model.active_set_ for j in u} == {1, 2, 3}
    np.testing.assert_allclose(model.predict(wide), y, atol=1e198)
    low, end = np.array([[7.0, -9, -9, -1e308]]), np.array([[7.0, 0, 0, 0]])
    np.testing.assert_array_equal(model.predict(low), model.predict(end))


def test_more_inputs_than_rows_and_two_rows():
    X = np.random.default_rng(0).normal(size=(20, 40))
    assert np.isfinite(ANOVARegressor(random_state=0).fit(X, X[:, 0]).predict(X)).all()
    assert np.isfinite(ANOVARegressor(random_state=0).fit(X[:2], [1.0, 2.0]).predict(X)).all()


def test_a_constant_target_has_no_terms():
    model = ANOVARegressor().fit(np.eye(4), np.full(4, 3.0))
    assert model.active_set_ == ()
    assert model.coef_ == ()
    assert len(model.sensitivities_) == 0
    assert model.total_sensitivities_.tolist() == [0.0] * 4
    assert model.intercept_ == 3.0
    assert model.size_ == 1


def test_too_many_pairs_are_left_out_unless_asked_for(monkeypatch):
    monkeypatch.setattr("harfe.rivals.additive.anova._MOST_TERMS", 5)
    X = uniform(12, 4)
    auto = ANOVARegressor(cv=2, random_state=0, **REFIT).fit(X, X[:, 0])
    assert {params["superposition"] for params in auto.cv_results_["params"]} == {1}
    given = ANOVARegressor(2, alpha=0.1, **REFIT).fit(X, X[:, 0])
    assert given.superposition_ == 2


def test_memory_is_checked_before_it_is_taken():
    with pytest.raises(MemoryError, match=r"a fit of 50 rows needs about .* allows"):
        ANOVARegressor(memory_budget=1e4).fit(uniform(50, 4), np.arange(50.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"superposition": 4}, "superposition=4 is larger than the number of variables that a te"),
        ({"superposition": 0}, "superposition=0 must be 'auto', a whole number"),
        ({"threshold": -0.1}, "threshold=-0.1 must be 'auto', a finite number of at least 0"),
        ({"threshold": [0.1, 1.0]}, r"threshold=\[0.1, 1.0\] must be below 1"),
        ({"bandwidth": 1}, "bandwidth=1 must be at least 2"),
        ({"interaction_bandwidth": 2.5}, "interaction_bandwidth=2.5 must be 'auto', a whole"),
        ({"bandwidth": 2000}, "bandwidth=2000 is larger than the number of allowed frequencies"),
        ({"alpha": 0.0}, "alpha=0.0 must be 'auto', a finite number above 0"),
        ({"smoothness": -1}, "smoothness=-1 must be a finite number of at least 0"),
        ({"smoothness": "auto"}, "smoothness='auto' must be a finite number"),
    ],
)
def test_bad_arguments_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ANOVARegressor(**settings).fit(uniform(10, 5), np.arange(10.0))
