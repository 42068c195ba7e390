"""COSSO: the kernel by its series, splines and garrote by other solvers, planted components."""

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.optimize import nnls

from harfe._core.folds import make_folds
from harfe.datasets import make_function
from harfe.rivals import COSSORegressor
from harfe.rivals.additive import cosso
from harfe.rivals.additive.cosso import cosso_path, strongest_inputs
from harfe.rivals.additive.spline_kernels import (
    Components,
    component_values,
    equal_kernel,
    equal_spline,
    weighted_kernel,
    weighted_spline,
)
from harfe.rivals.solvers.garrote import garrote_path


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 100, random_state=0)


def single(s, t):
    """The kernel of one input by its Fourier series and polynomial parts."""
    k = np.arange(1, 1001)[:, None, None]
    gap = s[:, None] - t[None, :]
    series = np.sum(2 * np.cos(2 * np.pi * k * gap) / (2 * np.pi * k) ** 4, axis=0)
    second = [((x - 0.5) ** 2 - 1 / 12) / 2 for x in (s, t)]
    return np.outer(s - 0.5, t - 0.5) + np.outer(*second) + series


def of_one_input(s, t):
    return weighted_kernel(
        s[None], t[None], Components(np.ones(1), np.empty((0, 2), int), np.empty(0))
    )


def bordered(K, y, weight):
    m = len(y)
    ones = np.ones((m, 1))
    system = np.block([[K + weight * np.eye(m), ones], [ones.T, np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(y, 0.0))
    return solution[:m], solution[m]


@pytest.mark.compiled
def test_the_kernel_has_its_series_and_no_mean():
    rng = np.random.default_rng(0)
    s, t = rng.uniform(size=7), np.append(rng.uniform(size=5), [0.0, 1.0])
    np.testing.assert_allclose(of_one_input(s, t), single(s, t), atol=1e-11)
    # Polynomials of degree 4 between the points: two Gauss points more than needed.
    nodes, weights = np.polynomial.legendre.leggauss(5)
    edges = np.unique(np.concatenate([[0.0, 1.0], t]))
    half = np.diff(edges)[:, None] / 2
    points, masses = edges[:-1, None] + half * (nodes + 1), half * weights
    integral = masses.ravel() @ of_one_input(points.ravel(), t)
    np.testing.assert_allclose(integral, 0.0, atol=1e-15)


@pytest.mark.compiled
def test_kernels_of_components_are_sums_of_products():
    rng = np.random.default_rng(1)
    Z, other = rng.uniform(size=(4, 30)), rng.uniform(size=(4, 90))
    paired = np.array([0, 1, 3])
    thetas = np.array([0.5, 0.0, 2.0, 0.0, 1.5, 0.0, 3.0])  # four inputs; pairs 01, 03, 13
    components = Components.among(4, paired, thetas)
    np.testing.assert_array_equal(components.pairs, [[0, 1], [0, 3], [1, 3]])

    def dense(A, B):
        k = [single(a, b) for a, b in zip(A, B, strict=True)]
        return [*k, k[0] * k[1], k[0] * k[3], k[1] * k[3]]

    truth = sum(theta * K for theta, K in zip(thetas, dense(Z, other), strict=True))
    np.testing.assert_allclose(weighted_kernel(Z, other, components), truth, atol=1e-10)
    np.testing.assert_allclose(equal_kernel(Z, paired), sum(dense(Z, Z)), atol=1e-10)
    mains = sum(dense(Z, Z)[:4])
    np.testing.assert_allclose(equal_kernel(Z, np.arange(0)), mains, atol=1e-10)
    c = rng.normal(size=30)
    values = np.column_stack([K @ c for K in dense(Z, Z)])
    np.testing.assert_allclose(component_values(Z, paired, c), values, atol=1e-10)


def test_of_one_input_it_is_a_smoothing_spline():
    """The twin minimises Σ(y - f)²/m + λ₀((f(1) - f(0))² + ∫f''²) over cubic B-splines."""
    rng = np.random.default_rng(2)
    x = np.concatenate([[0.0, 1.0], rng.uniform(size=13)])
    y = np.sin(6 * x) + 0.1 * rng.normal(size=15)
    weight = 1e-4
    knots = np.concatenate([[0.0] * 3, np.sort(x), [1.0] * 3])
    basis = BSpline(knots, np.eye(len(knots) - 4), 3)
    ends = basis(1.0) - basis(0.0)
    nodes, masses = np.polynomial.legendre.leggauss(2)
    half = np.diff(np.sort(x))[:, None] / 2
    bends = basis.derivative(2)((np.sort(x)[:-1, None] + half * (nodes + 1)).ravel())
    roughness = np.outer(ends, ends) + bends.T @ (bends * (half * masses).ravel()[:, None])
    B = basis(x)
    coef = np.linalg.solve(B.T @ B / 15 + weight * roughness, B.T @ y / 15)
    fit = weighted_spline(of_one_input(x, x), y, weight)
    new = np.linspace(0, 1, 50)
    np.testing.assert_allclose(of_one_input(new, x) @ fit.c + fit.b, basis(new) @ coef, atol=1e-8)
    assert fit.c.sum() == pytest.approx(0.0, abs=1e-9)


def test_the_smoothing_has_the_smallest_gcv():
    rng = np.random.default_rng(3)
    x = rng.uniform(size=25)
    y, K = np.sin(6 * x) + 0.3 * rng.normal(size=25), of_one_input(x, x)
    weights = [1e-1, 1e-3, 1e-5, 1e-7]
    scores = []
    for weight in weights:
        hat = np.column_stack(
            [K @ c + b for c, b in (bordered(K, e, 25 * weight) for e in np.eye(25))]
        )
        residual = y - hat @ y
        scores.append(np.mean(residual**2) / (1 - np.trace(hat) / 25) ** 2)
    best = weights[int(np.argmin(scores))]
    assert best not in (weights[0], weights[-1])
    fit = equal_spline(K, y, weights)
    assert fit.smoothing == best
    c, b = bordered(K, y, 25 * best)
    np.testing.assert_allclose(fit.c, c, rtol=1e-6, atol=1e-8)
    assert fit.b == pytest.approx(b)


@pytest.mark.compiled
def test_the_garrote_is_non_negative_least_squares():
    rng = np.random.default_rng(4)
    G = rng.normal(size=(60, 12)) * np.geomspace(1, 1e-2, 12)
    G[:, 5] = 0.0  # a component that vanishes
    z = G @ np.maximum(rng.normal(size=12), 0) + 0.1 * rng.normal(size=60)
    shares = [1.0, 0.3, 1e-2, 1e-4]
    path = garrote_path(G, z, shares)
    assert not path[0].any()
    kept = np.delete(np.arange(12), 5)
    gram, moment = G[:, kept].T @ G[:, kept] / 60, G[:, kept].T @ z / 60
    upper = np.linalg.cholesky(gram).T
    for share, thetas in zip(shares, path, strict=True):
        truth, _ = nnls(upper, np.linalg.solve(upper.T, moment - share * moment.max()))
        np.testing.assert_allclose(G[:, kept] @ thetas[kept], G[:, kept] @ truth, atol=1e-4)
        np.testing.assert_array_equal(thetas[kept] > 0, truth > 0)
        assert thetas[5] == 0


@pytest.mark.compiled
def test_the_garrote_with_nothing_to_gain_keeps_nothing():
    G, z = np.ones((5, 2)), -np.ones(5)
    assert not garrote_path(G, z, [0.5]).any()


def test_one_fit_done_by_hand(friedman):
    X, y = friedman.X[:60, :4], friedman.y[:60]
    y = (y - y.mean()) / y.std()
    (fit,) = cosso_path(X, y, [1e-3], [0.05], 4)
    Z = ((X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))).T
    single_kernels = [single(z, z) for z in Z]
    places = [(j,) for j in range(4)] + [(j, k) for j in range(4) for k in range(j + 1, 4)]
    kernels = [np.prod([single_kernels[j] for j in place], axis=0) for place in places]
    # θ = 1, then the garrote of equation (1/m)‖z - Gθ‖² + λΣθ, then c.
    c, b = bordered(sum(kernels), y, 60 * 1e-3)
    G = np.column_stack([K @ c for K in kernels])
    target = y - b - 60 * 1e-3 / 2 * c
    gram, moment = G.T @ G / 60, G.T @ target / 60
    upper = np.linalg.cholesky(gram).T
    thetas, _ = nnls(upper, np.linalg.solve(upper.T, moment - 0.05 * moment.max()))
    np.testing.assert_allclose(
        np.append(fit.components.mains, fit.components.weights), thetas, atol=1e-3 * thetas.max()
    )
    K = sum(theta * K for theta, K in zip(thetas, kernels, strict=True))
    c, b = bordered(K, y, 60 * 1e-3)
    np.testing.assert_allclose(fit.predict(X), K @ c + b, atol=1e-4)
    # What the class reports.
    settings = {"interactions": True, "penalty": 0.05, "smoothing": 1e-3}
    model = COSSORegressor(**settings).fit(X, 7 * y + 1)
    kept = np.flatnonzero(thetas)
    assert model.components_ == tuple(places[a] for a in kept)
    norms = [7 * thetas[a] * np.sqrt(c @ kernels[a] @ c) for a in kept]
    np.testing.assert_allclose(model.component_norms_, norms, rtol=1e-2)
    np.testing.assert_allclose(model.thetas_, thetas[kept], rtol=1e-2)
    np.testing.assert_allclose(model.predict(X), 7 * fit.predict(X) + 1, rtol=1e-8)
    assert model.size_ == 61
    assert model.best_params_ == settings


def test_folds_are_fits_of_their_rows(friedman):
    X, y = friedman.X, friedman.y
    model = COSSORegressor(interactions=[False, True], penalty=[0.1, 0.01], random_state=0)
    model.fit(X, y)
    results = model.cv_results_
    assert len(results["params"]) == 4
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    target, errors = (y - y.mean()) / y.std(), []
    for train, out in make_folds("cv", 5, X, y, seed):
        (fit,) = cosso_path(X[train], target[train], None, [0.01], 0)
        errors.append(np.mean((fit.predict(X[out]) - target[out]) ** 2))
    assert -results["mean_test_score"][1] == pytest.approx(np.mean(errors), rel=1e-4)


def test_exactly_the_true_inputs_are_kept():
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(150, 8))
    y = np.sin(2 * np.pi * X[:, 1]) + 2 * X[:, 4] + 4 * (X[:, 6] - 0.5) ** 2
    y += 0.01 * rng.normal(size=150)
    model = COSSORegressor(random_state=0, penalty=[0.1, 0.03, 0.01]).fit(X, y)
    assert model.components_ == ((1,), (4,), (6,))
    assert model.interactions_ is False
    assert (model.thetas_ > 0).all()
    assert (model.component_norms_ > 0).all()
    assert model.score(X, y) > 0.999


def test_a_pair_is_found():
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(200, 6))
    y = X[:, 0] + 6 * (X[:, 2] - 0.5) * (X[:, 5] - 0.5) + 0.01 * rng.normal(size=200)
    model = COSSORegressor(random_state=0, penalty=[0.1, 0.03, 0.01]).fit(X, y)
    assert model.interactions_ is True
    strongest = np.argsort(-model.component_norms_)[:2]
    assert {model.components_[a] for a in strongest} == {(0,), (2, 5)}
    assert model.pairs_ == "all"
    assert model.note_ == "All 15 pairs of 6 inputs were candidates."


def test_pairs_are_screened_where_they_are_too_many(monkeypatch):
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(100, 9))
    y = 3 * X[:, 2] + 2 * X[:, 7] + 5 * (X[:, 2] - 0.5) * (X[:, 7] - 0.5)
    monkeypatch.setattr(cosso, "_MOST_COMPONENTS", 12)
    model = COSSORegressor(penalty=[0.1, 0.01], random_state=0).fit(X, y)
    assert model.pairs_ == "screened"
    assert model.note_.startswith("Pairs of the 3 inputs with the largest main effects")
    assert (2, 7) in model.components_
    chosen = strongest_inputs(np.ascontiguousarray(X.T), y - y.mean(), None, 2)
    np.testing.assert_array_equal(chosen, [2, 7])


def test_memory_decides_on_pairs_before_it_is_taken():
    rng = np.random.default_rng(8)
    X, y = rng.uniform(size=(30, 40)), rng.normal(size=30)
    quick = {"penalty": [0.5, 0.1], "cv": 2, "random_state": 0}
    assert COSSORegressor(memory_budget=3e6, **quick).fit(X, y).pairs_ == "screened"
    least = 8 * (6 * 30**2 + 2 * 30 * 40 + 2 * 40**2)
    model = COSSORegressor(memory_budget=least, **quick).fit(X, y)
    assert (model.pairs_, model.interactions_) == ("none", False)
    assert model.note_.startswith("No pairs were tried: memory")
    with pytest.raises(MemoryError, match="for 30 rows and 40 inputs, but memory_budget is"):
        COSSORegressor(memory_budget=least, interactions=True).fit(X, y)
    with pytest.raises(MemoryError, match="fit fewer rows, or pass memory_budget="):
        COSSORegressor(memory_budget=1000).fit(X, y)


def test_one_input_has_no_pairs():
    X = np.random.default_rng(9).uniform(size=(40, 1))
    model = COSSORegressor(interactions=True, penalty=0.01).fit(X, np.sin(6 * X[:, 0]))
    assert model.pairs_ == "none"
    assert model.note_ == "No pairs were tried: there is one input."
    assert model.components_ == ((0,),)
    assert COSSORegressor(interactions=False, penalty=1.0).fit(X, X[:, 0]).components_ == ()


def test_duplicate_and_constant_columns_huge_units_and_far_rows():
    rng = np.random.default_rng(10)
    x = rng.uniform(size=(60, 2))
    X, y = (
        np.column_stack([x[:, 0], np.full(60, 3.0), x[:, 1], x[:, 0]]),
        2 * x[:, 0] + x[:, 1] ** 2,
    )
    quick = {"penalty": 1e-3, "interactions": True}
    model = COSSORegressor(**quick).fit(X, y)
    assert model.score(X, y) > 0.99
    assert not any(1 in inputs for inputs in model.components_)
    huge = COSSORegressor(**quick).fit(X * 1e300, y * 1e300)
    np.testing.assert_allclose(huge.predict(X * 1e300) / 1e300, model.predict(X), rtol=1e-6)
    ends = model.predict(np.array([[1e308, 3.0, -1e308, 1e308], [2.0, 3.0, -1.0, 2.0]]))
    assert ends[0] == pytest.approx(ends[1])


def test_few_rows_and_constant_targets():
    X = np.array([[0.0, 1.0], [1.0, 3.0]])
    assert np.isfinite(COSSORegressor(penalty=0.1).fit(X, [1.0, 2.0]).predict(X)).all()
    model = COSSORegressor().fit(X, [5.0, 5.0])
    assert model.components_ == ()
    assert not len(model.thetas_)
    assert not len(model.component_norms_)
    wide = np.random.default_rng(11).uniform(size=(6, 30))
    fit = COSSORegressor(penalty=[0.5, 0.1], random_state=0).fit(wide, wide[:, 3])
    assert np.isfinite(fit.predict(wide)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"interactions": "some"}, "interactions='some' must be 'auto', True, False"),
        ({"interactions": []}, r"interactions=\[\] must be 'auto'"),
        ({"penalty": 0.0}, "penalty=0.0 must be 'auto', a finite number above 0"),
        ({"smoothing": "none"}, "smoothing='none' must be 'auto', a finite number above 0"),
    ],
)
def test_arguments_are_refused_by_name(friedman, settings, message):
    with pytest.raises(ValueError, match=message):
        COSSORegressor(**settings).fit(friedman.X, friedman.y)


def test_friedman_one():
    data = make_function("friedman1", 200, random_state=0)
    new = make_function("friedman1", 1000, random_state=1000)
    model = COSSORegressor(random_state=0).fit(data.X, data.y)
    assert np.mean((model.predict(new.X) - new.y_clean) ** 2) < 1
    assert (0, 1) in model.components_
