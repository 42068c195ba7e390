"""Explanations of functions of warped inputs, against sums over all combinations of values."""

import itertools

import numpy as np
import pytest

from harfe import HARFERegressor, HARFERegressorCV
from harfe.display import ComponentDisplay
from harfe.explain.inputs.seen import SeenInput
from harfe.explain.inputs.warped import warped_normal, warped_uniform
from harfe.explain.overall import explain
from harfe.features.units import Asinh, InputMap, Log, Rank

SMALL = {"n_components": 150, "n_nonzero_coefs": 15, "random_state": 0}
both_warps = pytest.mark.parametrize("warp", ["log", "rank"])
waves_and_others = pytest.mark.parametrize("activation", ["sin", "exp", "tanh"])


def table(m=40, seed=0):
    """A wide positive input, a skewed one of both signs, one with few values, an even one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    X[:, 0] = np.exp(1.5 * X[:, 0])
    X[:, 1] = np.exp(X[:, 1]) - 1
    X[:, 2] = rng.choice([1.0, 3.0, 30.0], m)
    return X, np.sin(np.log(X[:, 0])) + np.arcsinh(X[:, 1]) * np.log(X[:, 2]) + X[:, 3]


def fitted(warp, activation="sin", **settings):
    X, y = table()
    bias = "uniform" if activation == "tanh" else "phase"
    settings = {**SMALL, "activation": activation, "bias": bias, **settings}
    model = HARFERegressor(**settings, input_warp=warp).fit(X, y)
    warped = model.expansion_.map.warped.tolist()
    assert warped == [True, True, True, warp == "rank"]
    return model, X


@both_warps
@waves_and_others
def test_the_gradient_is_the_slope_of_the_prediction(warp, activation):
    model, X = fitted(warp, activation)
    # Away from knots and bounds.
    X = X + 1e-3 * np.abs(X)
    step = 1e-7 * np.abs(X)
    gradient = model.gradient(X)
    for k in range(4):
        up, down = X.copy(), X.copy()
        up[:, k] += step[:, k]
        down[:, k] -= step[:, k]
        slope = (model.predict(up) - model.predict(down)) / (2 * step[:, k])
        np.testing.assert_allclose(gradient[:, k], slope, rtol=1e-5, atol=1e-5)


@both_warps
@waves_and_others
def test_sobol_indices_are_those_of_all_combinations_of_the_rows(warp, activation):
    model, X = fitted(warp, activation, n_components=60, n_nonzero_coefs=8)
    X = X[:12]
    values = [np.unique(X[:, k], return_counts=True) for k in range(4)]
    points = np.array(list(itertools.product(*(v for v, _ in values))))
    f = model.predict(points).reshape([len(v) for v, _ in values])
    shares = [counts / 12 for _, counts in values]

    def mean_over(f, axes):
        for k in sorted(axes, reverse=True):
            f = np.tensordot(f, shares[k], axes=(k, 0))
        return f

    def variance(f, axes):
        return mean_over(mean_over((f - mean_over(f, axes)) ** 2, axes), ())

    mean = mean_over(f, range(4))
    total = mean_over((f - mean) ** 2, range(4))
    found = explain(model.expansion_, model.inputs_, X=X)
    assert found.mean == pytest.approx(mean, abs=1e-10)
    assert found.variance == pytest.approx(total, rel=1e-10)
    for k in range(4):
        others = [j for j in range(4) if j != k]
        alone = mean_over(f, others) - mean
        first = shares[k] @ alone**2 / total
        rest = mean_over(f, [k])
        without = (rest - mean) ** 2
        for j in reversed(others):
            without = np.tensordot(without, shares[j], axes=(others.index(j), 0))
        assert found.sobol["first_order"][k] == pytest.approx(first, abs=1e-10)
        assert found.sobol["total"][k] == pytest.approx(1 - without / total, abs=1e-10)
    assert sum(found.sobol["shapley"]) == pytest.approx(1, abs=1e-12)


@both_warps
def test_the_summary_of_a_fit_explains_like_its_rows(warp):
    model, X = fitted(warp)
    kept, rows = model.explain(), model.explain(X=X)
    np.testing.assert_allclose(kept.sobol["total"], rows.sobol["total"], atol=1e-3)
    np.testing.assert_allclose(model.inputs_.mean, model.expansion_.map.clip(X).mean(axis=0))


WARPS = {
    "log": InputMap(np.array([0.01]), np.array([50.0]), (Log(),)),
    "asinh": InputMap(np.array([-np.inf]), np.array([np.inf]), (Asinh(0.5, 0.05),)),
    "rank": InputMap(
        np.array([-1.0]),
        np.array([40.0]),
        (Rank(np.array([-1.0, 0.0, 0.2, 40.0]), np.array([0.1, 0.3, 0.8, 0.95])),),
    ),
}


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_uniform_and_normal_inputs_are_so_in_the_users_units(name, kind):
    own, n = WARPS[name], 2_000_001
    u = (np.arange(n) + 0.5) / n
    if kind == "uniform":
        lower, upper = own.clip(np.array([[-3.0], [60.0]]))[:, 0]
        x, rule = lower + (upper - lower) * u, warped_uniform(own, lower, upper, 6.0)
    else:
        # equally spaced in deviations, to 9 of them
        t = 18 * u - 9
        x, rule = 2 + 3 * t, warped_normal(own, 2.0, 3.0, 6.0)
    weights = np.ones(n) if kind == "uniform" else np.exp(-(t**2) / 2)
    z = own.apply(x[:, None])[:, 0]
    nodes, shares = rule
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    assert len(nodes) < 100
    for frequency in (0.5, 2.0, 6.0):
        truth = weights @ np.exp(1j * frequency * z) / weights.sum()
        assert abs(shares @ np.exp(1j * frequency * nodes) - truth) < 1e-7


@both_warps
@waves_and_others
@pytest.mark.parametrize("inputs", ["uniform", "normal"])
def test_explanations_under_uniform_and_normal_inputs_by_monte_carlo(warp, activation, inputs):
    model, _ = fitted(warp, activation)
    kept, rng = model.inputs_, np.random.default_rng(0)
    if inputs == "uniform":
        low, high = model.expansion_.map.clip(np.stack([kept.lower, kept.upper]))
        X = rng.uniform(low, high, (400_000, 4))
    else:
        X = rng.normal(kept.mean, kept.deviation, (400_000, 4))
    found, f = model.explain(inputs=inputs), model.predict(X)
    assert found.mean == pytest.approx(f.mean(), abs=5 * f.std() / np.sqrt(len(f)))
    assert found.variance == pytest.approx(f.var(), rel=0.02)


@both_warps
@pytest.mark.parametrize("features", [0, (0, 2), (1, 3)])
def test_partial_dependence_is_the_mean_over_rows(warp, features):
    model, X = fitted(warp)
    given = [features] if isinstance(features, int) else list(features)
    for rows in (None, X):
        found = model.partial_dependence(features, grid=4, X=rows)
        points = np.array(list(itertools.product(*found.grid_values)))
        for point, average in zip(points, found.average.ravel(), strict=True):
            changed = X.copy()
            changed[:, given] = point
            assert average == pytest.approx(model.predict(changed).mean(), abs=1e-10)


@both_warps
@waves_and_others
def test_every_way_to_add_up_gives_the_prediction(warp, activation):
    model, X = fitted(warp, activation)
    new = table(seed=1)[0]
    local, prediction = model.explain_local(new), model.predict(new)
    for parts in (local.components, local.variables):
        total = local.baseline + parts.sum(axis=1)
        np.testing.assert_allclose(total, prediction, rtol=0, atol=1e-9 * np.abs(X).max())
    total = model.intercept_ + model.eval_terms(new).sum(axis=1)
    np.testing.assert_allclose(total, prediction, rtol=0, atol=1e-10)


@both_warps
def test_inputs_are_seen_in_the_users_units(warp):
    model, X = fitted(warp)
    seen = [SeenInput.of(model.expansion_, model.inputs_, k) for k in range(3)]
    assert seen[2].values.tolist() == [1, 3, 30]
    np.testing.assert_allclose(seen[2].shares, [np.mean(X[:, 2] == v) for v in (1, 3, 30)])
    assert seen[0].values is None
    assert seen[0].lower == X[:, 0].min()
    shown = ComponentDisplay.from_estimator(model, 0)
    (grid,) = shown.grids
    assert X[:, 0].min() <= grid.min() < grid.max() <= X[:, 0].max()


@both_warps
def test_terms_intervals_and_draws_go_by_the_mapped_inputs(warp):
    X, y = table(120)
    settings = {**SMALL, "residual_cv": 3, "input_warp": warp}
    model = HARFERegressor(**settings).fit(X, y)
    fewer = model.keep_terms(2, X, y)
    assert fewer.expansion_.map.warped.tolist() == model.expansion_.map.warped.tolist()
    assert len(fewer.eval_terms(X)[0]) == 2
    mapped = model.expansion_.map.apply(X)
    plain = HARFERegressor(**{**settings, "input_warp": "none"}, input_clip=None)
    again = plain.fit(mapped, y).keep_terms(2, mapped, y)
    np.testing.assert_allclose(fewer.predict(X), again.predict(mapped), rtol=0, atol=1e-9)
    _, deviation = model.predict(X, return_std=True)
    edge, far = X[:2].copy(), X[:2].copy()
    edge[:, 0], far[:, 0] = X[:, 0].min(), -1e9
    np.testing.assert_array_equal(
        model.predict(edge, return_std=True), model.predict(far, return_std=True)
    )
    assert np.all(deviation > 0)
    assert len(model.stability(X, y, n_draws=2, random_state=0).draws) == 2


@both_warps
def test_a_search_under_a_learned_law_warps_too(warp):
    X, y = table(150)
    model = HARFERegressorCV(150, n_nonzero_coefs=[20], cv=3, random_state=0, input_warp=warp)
    model.fit(X, y)
    assert model.expansion_.map.warped.any()
    assert model.score(X, y) > 0.8
    assert any(f"{warp}(" in name for name in model.expansion_.names())
