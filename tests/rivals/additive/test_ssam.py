"""SSAM: its expansions against dense kernels, optimality conditions, planted index sets."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from harfe._core.folds import make_folds
from harfe.datasets import make_function
from harfe.rivals import SSAMRegressor
from harfe.rivals.additive.set_expansion import (
    fourier_features,
    frequencies,
    gaussian,
    kernel_block,
)
from harfe.rivals.additive.ssam import strongest_pairs


@pytest.fixture(scope="module")
def planted():
    X = np.random.default_rng(0).normal(size=(120, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 3]


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def sets_of(d, order):
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    return [(j,) for j in range(d)] + (pairs if order == 2 else [])


def test_the_kernel_is_gaussian():
    rng = np.random.default_rng(1)
    Z, C = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))
    truth = [[np.exp(-np.sum((z - c) ** 2) / (2 * 0.7**2)) for c in C] for z in Z]
    np.testing.assert_allclose(gaussian(Z, C, 0.7), truth)


@pytest.mark.compiled
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("bandwidth", [2.0, 0.5])
def test_a_block_is_the_centred_kernel_in_other_coordinates(k, bandwidth):
    Z = np.random.default_rng(2).normal(size=(100, k))
    K = gaussian(Z, Z, bandwidth)
    centred = K - K.mean(axis=0)
    block = kernel_block(Z, bandwidth)
    assert block.F.shape[1] < (20 if k == 1 else 90)
    # The rotation preserves norms and leaves out only directions much smaller than the largest.
    np.testing.assert_allclose(block.back.T @ block.back, np.eye(block.F.shape[1]), atol=1e-7)
    error = np.linalg.norm(centred - block.F @ block.back.T, 2)
    assert error < 2e-4 * np.linalg.norm(centred, 2)
    np.testing.assert_allclose(block.columns(K), block.F, atol=1e-4)
    gram = block.F.T @ block.F
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-8 * gram.max())


@pytest.mark.parametrize("index_set", [(0,), (1, 3)])
def test_features_approximate_the_kernel(index_set):
    Z = np.random.default_rng(3).normal(size=(40, len(index_set)))
    K = gaussian(Z, Z, 0.8)
    for n in (100, 10_000):
        phi = fourier_features(Z, frequencies(5, index_set, n), 0.8)
        assert phi.shape == (40, 2 * n)
        # A mean of n cosines has a standard deviation of at most 1/√(2n) about a positive kernel.
        assert np.sqrt(np.mean((phi @ phi.T - K) ** 2)) < 1.5 / np.sqrt(2 * n)
        assert np.max(np.abs(phi @ phi.T - K)) < 5 / np.sqrt(2 * n)
    np.testing.assert_array_equal(frequencies(5, (1, 3), 7), frequencies(5, (1, 3), 7))
    assert not np.allclose(frequencies(5, (1, 3), 7), frequencies(5, (1, 2), 7))


@pytest.mark.parametrize("penalty", ["group", "l1"])
@pytest.mark.parametrize("expansion", ["kernels", "features"])
def test_from_the_largest_penalty_on_it_is_the_mean(planted, penalty, expansion):
    X, y = planted
    settings = {"order": 1, "bandwidth": 1.0, "penalty": penalty, "expansion": expansion}
    model = SSAMRegressor(**settings, alpha=1.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean())
    assert (model.size_, model.components_, model.expansion_kind_) == (0, [], expansion)
    model = SSAMRegressor(**settings, alpha=0.99, random_state=0).fit(X, y)
    assert model.size_ > 0


def test_without_penalty_one_index_set_interpolates():
    x = np.linspace(-1, 1, 15)[:, None]
    y = np.cos(5 * x[:, 0]) + np.random.default_rng(4).normal(size=15)
    model = SSAMRegressor(order=1, bandwidth=0.15, alpha=1e-9).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, atol=1e-4)
    new = np.linspace(-1, 1, 50)[:, None]
    Z, Zn = standardised(x), (new - x.mean()) / x.std()
    # Least squares with a constant on the dense kernel; the minimum of ‖α‖ decides.
    K, Kn = gaussian(Z, Z, 0.15), gaussian(Zn, Z, 0.15)
    alpha = np.linalg.lstsq(K - K.mean(axis=0), y - y.mean(), rcond=1e-10)[0]
    truth = y.mean() + (Kn - K.mean(axis=0)) @ alpha
    np.testing.assert_allclose(model.predict(new), truth, atol=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_the_conditions_of_a_minimum_of_the_group_form(planted, order):
    X, y = planted
    model = SSAMRegressor(order=order, bandwidth=0.8, alpha=0.2).fit(X, y)
    Z, u = standardised(X), (y - y.mean()) / y.std()
    residual = u - (model.predict(X) - y.mean()) / y.std()
    kept = dict(zip(model.components_, model.function_.coefficients, strict=True))
    gradients, most = {}, 0.0
    for s in sets_of(5, order):
        K = gaussian(Z[:, list(s)], Z[:, list(s)], 0.8)
        K = K - K.mean(axis=0)
        gradients[s] = K.T @ residual / 120
        most = max(most, np.linalg.norm(K.T @ u / 120))
    assert 0 < len(kept) < len(gradients)
    for s, gradient in gradients.items():
        if s in kept:
            unit = kept[s] / np.linalg.norm(kept[s])
            np.testing.assert_allclose(gradient, 0.2 * most * unit, atol=2e-3 * most)
        else:
            assert np.linalg.norm(gradient) <= 0.2 * most * (1 + 1e-3)


@pytest.mark.parametrize("expansion", ["kernels", "features"])
def test_the_l1_form_is_the_lasso_on_the_stacked_expansions(planted, expansion):
    X, y = planted[0][:50], planted[1][:50]
    settings = {"order": 1, "bandwidth": 0.5, "penalty": "l1", "expansion": expansion}
    model = SSAMRegressor(**settings, alpha=0.05, n_components=10, random_state=0).fit(X, y)
    Z, u = standardised(X), (y - y.mean()) / y.std()
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    parts = [
        gaussian(Z[:, [j]], Z[:, [j]], 0.5)
        if expansion == "kernels"
        else fourier_features(Z[:, [j]], frequencies(seed, (j,), 10), 0.5)
        for j in range(5)
    ]
    E = np.concatenate(parts, axis=1)
    E = E - E.mean(axis=0)
    penalty = 0.05 * np.max(np.abs(E.T @ u)) / 50
    truth = Lasso(alpha=penalty, fit_intercept=False, tol=1e-9, max_iter=1_000_000).fit(E, u)
    np.testing.assert_allclose((model.predict(X) - y.mean()) / y.std(), E @ truth.coef_, atol=5e-3)
    assert model.size_ < E.shape[1] / 2
    # The optimality conditions, with columns that are nearly equal.
    residual = u - (model.predict(X) - y.mean()) / y.std()
    assert np.max(np.abs(E.T @ residual)) / 50 <= penalty * (1 + 1e-2)


def test_planted_index_sets_are_found(planted):
    X, y = planted
    model = SSAMRegressor(order=2, bandwidth=1.0, alpha=0.3).fit(X, y)
    assert set(model.components_[:2]) == {(0,), (1, 3)}
    assert model.pairs_ == "all"
    assert np.all(np.diff(model.component_norms_) <= 0)
    additive = SSAMRegressor(order=1, bandwidth=1.0, alpha=0.3).fit(X, X[:, 2] ** 2 + X[:, 4])
    assert set(additive.components_) == {(2,), (4,)}
    assert additive.pairs_ == "none"


def test_the_order_is_chosen():
    X = np.random.default_rng(5).normal(size=(100, 3))
    settings = {"bandwidth": 2.0, "alpha": [0.3, 0.03, 0.003], "random_state": 0}
    pair = SSAMRegressor(**settings).fit(X, X[:, 0] * X[:, 2])
    assert pair.order_ == 2
    assert pair.components_[0] == (0, 2)
    assert pair.component_norms_[0] == pytest.approx(np.std(X[:, 0] * X[:, 2]), rel=0.1)
    single = SSAMRegressor(**settings).fit(X, X[:, 1] ** 2 - X[:, 0])
    assert single.order_ == 1
    assert single.score(X, X[:, 1] ** 2 - X[:, 0]) > 0.95


def test_features_give_nearly_the_same_fit():
    data = make_function("friedman1", 150, noise=0.0, random_state=0)
    new = make_function("friedman1", 200, noise=0.0, random_state=1).X
    X, y = data.X[:, :4], data.y
    settings = {"order": 1, "bandwidth": 1.0, "random_state": 0}
    kernels = SSAMRegressor(expansion="kernels", **settings).fit(X, y)
    features = SSAMRegressor(expansion="features", **settings).fit(X, y)
    assert (kernels.expansion_kind_, features.expansion_kind_) == ("kernels", "features")
    gap = kernels.predict(new[:, :4]) - features.predict(new[:, :4])
    assert np.mean(gap**2) < 0.01 * np.var(y)


def test_strongest_pairs_first():
    norms = np.array([1.0, 0.0, 3.0, 2.0])
    assert strongest_pairs(norms, 10) == [(2, 3), (0, 2), (0, 3)]
    assert strongest_pairs(norms, 1) == [(2, 3)]
    assert strongest_pairs(np.array([0.0, 1.0]), 5) == []


def test_pairs_are_screened_where_they_are_too_many():
    X = np.random.default_rng(6).normal(size=(120, 8))
    y = X[:, 1] + X[:, 4] + 2 * X[:, 1] * X[:, 4]
    settings = {"order": 2, "bandwidth": 2.0, "alpha": 0.05}
    model = SSAMRegressor(max_pairs=3, **settings).fit(X, y)
    assert model.pairs_ == "screened"
    assert (1, 4) in model.components_
    assert sum(len(s) == 2 for s in model.components_) <= 3
    assert SSAMRegressor(max_pairs=28, **settings).fit(X, y).pairs_ == "all"


def test_many_numbers_make_it_features(monkeypatch):
    X = np.random.default_rng(7).normal(size=(40, 3))
    monkeypatch.setattr("harfe.rivals.additive.ssam._MOST_KERNEL_NUMBERS", 3 * 40**2)
    settings = {"bandwidth": 1.0, "alpha": 0.1, "n_components": 5, "random_state": 0}
    assert SSAMRegressor(order=1, **settings).fit(X, X[:, 0]).expansion_kind_ == "kernels"
    assert SSAMRegressor(order=2, **settings).fit(X, X[:, 0]).expansion_kind_ == "features"


def test_the_choice_has_the_smallest_error_of_the_folds():
    data = make_function("friedman1", 60, random_state=0)
    X, y = data.X, data.y
    model = SSAMRegressor(order=1, bandwidth=[2.0, 1.0], alpha=[0.3, 0.1], random_state=0)
    results = model.fit(X, y).cv_results_
    assert len(results["params"]) == 4
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    errors = []
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    for train, out in make_folds("cv", 5, X, y, seed):
        one = SSAMRegressor(order=1, bandwidth=2.0, alpha=0.3).fit(X[train], y[train])
        errors.append(np.mean((one.predict(X[out]) - y[out]) ** 2))
    assert -results["mean_test_score"][0] * np.var(y) == pytest.approx(np.mean(errors), rel=0.02)


def test_equal_seeds_give_equal_features(planted):
    X, y = planted
    settings = {"order": 1, "bandwidth": 1.0, "alpha": 0.1, "expansion": "features"}
    one, two, three = (
        SSAMRegressor(**settings, n_components=10, random_state=seed).fit(X, y).predict(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, three)


@pytest.mark.parametrize("expansion", ["kernels", "features"])
def test_hard_rows(expansion):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(30, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    hard = np.column_stack([X[:, 0] * 1e300, X[:, 0], X[:, 0], np.ones(30), X[:, 1] * 1e-290])
    few = {"bandwidth": 2.0, "alpha": [0.5, 0.01], "expansion": expansion, "random_state": 0}
    model = SSAMRegressor(**few).fit(hard, y * 1e200)
    np.testing.assert_allclose(model.predict(hard) / 1e200, y, atol=0.5)
    assert all(3 not in s for s in model.components_)
    assert np.all(np.isfinite(model.predict(hard * 1e5)))
    two = SSAMRegressor(cv=2, **few).fit(X[:2], y[:2])
    assert np.all(np.isfinite(two.predict(X)))
    flat = SSAMRegressor(order=1, bandwidth=1e9, alpha=0.1, expansion=expansion).fit(X, y)
    assert np.all(np.isfinite(flat.predict(X)))
    wide = SSAMRegressor(order=1, bandwidth=2.0, alpha=0.1, expansion=expansion)
    wide.fit(rng.normal(size=(10, 40)), rng.normal(size=10))
    assert 0 < len(wide.components_) < 40


def test_a_constant_target_has_no_components():
    model = SSAMRegressor().fit(np.arange(12.0).reshape(6, 2), np.full(6, 3.0))
    assert (model.components_, len(model.component_norms_)) == ([], 0)
    assert (model.pairs_, model.expansion_kind_, model.size_) == ("none", "none", 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": 3}, "order=3 is above 2.*pass order=2"),
        ({"order": 4}, "order=4 is larger than the number of inputs, 3"),
        ({"order": 0}, "order=0 must be 'auto', a whole number"),
        ({"bandwidth": -1.0}, "bandwidth=-1.0 must be 'auto', a finite number above 0"),
        ({"alpha": 0}, "alpha=0 must be 'auto', a finite number above 0"),
        ({"penalty": "l2"}, "penalty='l2' is not known; choose one of group, l1"),
        ({"expansion": "anchors"}, "expansion='anchors' is not known"),
        ({"n_components": 0}, "n_components=0 must be a whole number"),
        ({"max_pairs": 0}, "max_pairs=0 must be a whole number"),
        ({"memory_budget": 0}, "memory_budget=0 must be"),
    ],
)
def test_bad_arguments_are_refused(settings, message):
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match=message):
        SSAMRegressor(**settings).fit(X, X[:, 0])


def test_memory_is_checked_before_it_is_taken():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(MemoryError, match="3 index sets of features at 30 rows need"):
        SSAMRegressor(memory_budget=1000).fit(X, X[:, 0])


def test_default_settings_do_not_fail_on_friedman_1():
    data = make_function("friedman1", 100, random_state=0)
    fresh = make_function("friedman1", 1000, random_state=1000)
    model = SSAMRegressor(bandwidth=1.0, cv=3, random_state=0).fit(data.X, data.y)
    assert np.mean((model.predict(fresh.X) - fresh.y_clean) ** 2) < 6
