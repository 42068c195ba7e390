"""Links: inverses, smearing, ranges, likelihoods; then models that are fitted on their scale."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import make_scorer, mean_absolute_error

from harfe import HARFERegressor, HARFERegressorCV
from harfe.features.activations import ACTIVATIONS
from harfe.learning.standard_rows import StandardRows
from harfe.model.formula import input_symbols
from harfe.model.link import LINKS, Link, find_link

KINDS = LINKS[1:]
SMALL = {"n_components": 300, "n_nonzero_coefs": 15, "alpha": 1e-2, "random_state": 0}
GRID = {
    "n_components": 150,
    "law": "grid",
    "orders": [1],
    "scales": [0.5, 1.0],
    "n_nonzero_coefs": [6, 12],
    "alphas": [1e-2],
    "cv": 4,
    "random_state": 0,
}
NOISE = 0.5


def truth(X):
    return np.sin(2 * X[:, 0]) + X[:, 1]


def make(m=300, seed=0, unit=1.0):
    """Lognormal noise around a function of two of three inputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 3))
    return X, unit * np.exp(truth(X) + NOISE * rng.normal(size=m))


@pytest.fixture(scope="module")
def xy():
    return make()


@pytest.fixture(scope="module", params=KINDS)
def model(request, xy):
    return HARFERegressor(**SMALL, link=request.param, residual_cv=5).fit(*xy)


def skewed(m=400, seed=1):
    return np.exp(np.random.default_rng(seed).normal(1, 1.2, m))


# --- the map -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("kind", KINDS)
def test_the_inverse_takes_back_what_forward_does(kind, unit):
    y = unit * skewed()
    link = find_link(y, np.ones(len(y)), kind)
    np.testing.assert_allclose(link.inverse(link.forward(y)), y, rtol=1e-9)
    assert np.all(np.diff(link.forward(np.sort(y))) > 0)


@pytest.mark.parametrize("power", [-2.0, -0.5, 0.0, 0.7, 2.0, 3.5])
def test_yeo_johnson_is_that_of_scipy(power):
    link = Link("yeo-johnson", -50, 50, power, 3.0, 2.0)
    y = np.linspace(-5, 9, 31)
    expected = scipy.stats.yeojohnson((y - 3) / 2, power)
    np.testing.assert_allclose(link.forward(y), expected, rtol=1e-12, atol=1e-14)
    limited = Link("yeo-johnson", expected[0], expected[-1], power, 3.0, 2.0)
    np.testing.assert_allclose(limited.inverse(expected), y, rtol=1e-10, atol=1e-12)


def test_the_power_maximises_the_likelihood():
    y = skewed()
    link = find_link(y, np.ones(len(y)), "yeo-johnson")
    z = (y - link.centre) / link.unit
    best = scipy.stats.yeojohnson_llf(link.power, z)
    for power in np.linspace(-2, 2, 41):
        assert scipy.stats.yeojohnson_llf(power, z) <= best + 1e-3
    assert find_link(y * 1e6, np.ones(len(y)), "yeo-johnson").power == link.power


def test_a_symmetric_target_stays_as_it_is_and_a_constant_is_no_failure():
    y = np.random.default_rng(0).normal(size=4000)
    assert find_link(y, np.ones(4000), "yeo-johnson").power == pytest.approx(1, abs=0.05)
    for kind in KINDS:
        link = find_link(np.full(5, 7.0), np.ones(5), kind)
        np.testing.assert_allclose(link.inverse([-1e9, 0, 1e9]), 7.0)


@pytest.mark.parametrize("outlier", [1e15, 1e100])
def test_an_absurd_outlier_leaves_a_finite_link(outlier):
    y = np.append(skewed(), outlier)
    link = find_link(y, np.ones(len(y)), "yeo-johnson")
    eta = link.forward(y)
    assert np.all(np.isfinite([link.lower, link.upper, *eta]))
    np.testing.assert_allclose(link.inverse(eta)[:-1], y[:-1], rtol=1e-9)
    assert link.inverse(eta[-1]) > y[:-1].max()


@pytest.mark.parametrize("kind", KINDS)
def test_weight_two_is_the_row_twice_and_a_common_factor_is_nothing(kind):
    y, r = skewed(60), np.random.default_rng(0).normal(size=60)
    w = np.random.default_rng(2).integers(1, 4, 60).astype(float)
    twice = np.repeat(np.arange(60), w.astype(int))
    link = find_link(y, w, kind)
    repeated = find_link(y[twice], np.ones(len(twice)), kind)
    assert link.power == repeated.power
    assert (link.centre, link.unit) == pytest.approx((repeated.centre, repeated.unit), rel=1e-12)
    assert find_link(y, 8 * w, kind) == link
    np.testing.assert_allclose(
        link.with_residuals(r, w).residuals,
        repeated.with_residuals(r[twice], np.ones(len(twice))).residuals,
        rtol=1e-9,
    )
    assert link.with_residuals(r, 8 * w) == link.with_residuals(r, w)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smeared", [False, True])
def test_the_slope_is_the_derivative_and_the_mean_stays_finite(kind, smeared):
    y = skewed()
    link = find_link(y, np.ones(len(y)), kind)
    if smeared:
        link = link.with_residuals(np.random.default_rng(0).normal(size=500), np.ones(500))
    eta, step = link.forward(np.quantile(y, np.linspace(0.02, 0.98, 30))), 1e-6
    numeric = (link.mean(eta + step) - link.mean(eta - step)) / (2 * step)
    # Where a shifted value passes an end, the two differ.
    np.testing.assert_allclose(link.slope(eta), numeric, rtol=1e-4)
    far = np.array([-1e9, 1e9])
    np.testing.assert_array_equal(link.slope(far), 0)
    assert np.all(np.isfinite(link.mean(far)))


def test_smearing_of_the_logarithm_is_the_mean_of_exp():
    link = find_link(skewed(), np.ones(400), "log")
    r = np.random.default_rng(0).normal(size=300)
    w = np.random.default_rng(1).uniform(0.5, 2, 300)
    smeared = link.with_residuals(r, w)
    assert len(smeared.residuals) == 15
    assert smeared.factor == pytest.approx(np.average(np.exp(r), weights=w), rel=1e-9)
    np.testing.assert_allclose(smeared.mean(np.array([0.3])), smeared.factor * np.exp(0.3))


def test_the_deviation_is_that_of_a_lognormal():
    link = Link("log", -100, 100)
    mean, std = 1.3, 0.6
    known = np.exp(mean + std**2 / 2) * np.sqrt(np.expm1(std**2))
    assert link.deviation(np.array([mean]), np.array([std]))[0] == pytest.approx(known, rel=1e-6)


# --- models --------------------------------------------------------------------------------------


def test_the_mean_is_unbiased_where_the_median_is_not():
    X, _ = make(4000, seed=5)
    model = HARFERegressor(**SMALL, link="log", residual_cv=5).fit(*make(2000))
    median = HARFERegressor(**SMALL, link="log").fit(*make(2000))
    mean = np.exp(truth(X) + NOISE**2 / 2)
    assert np.mean(model.predict(X) / mean) == pytest.approx(1, abs=0.04)
    assert np.mean(median.predict(X) / mean) == pytest.approx(np.exp(-(NOISE**2) / 2), abs=0.04)
    np.testing.assert_allclose(model.predict(X), model.expansion_.link.factor * median.predict(X))


def test_a_fit_with_a_link_is_the_fit_of_the_transformed_target(model, xy):
    X, y = xy
    link = model.expansion_.link
    plain = HARFERegressor(**SMALL, residual_cv=5).fit(X, link.forward(y))
    np.testing.assert_array_equal(model.expansion_.linear(X)[:, 0], plain.predict(X))
    np.testing.assert_array_equal(model.uncertainty_.scores, plain.uncertainty_.scores)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_without_residuals_it_is_the_transformer_of_scikit_learn(xy):
    X, y = xy
    model = HARFERegressor(**SMALL, link="log").fit(X, y)
    twin = TransformedTargetRegressor(HARFERegressor(**SMALL), func=np.log, inverse_func=np.exp)
    np.testing.assert_allclose(model.predict(X), twin.fit(X, y).predict(X), rtol=1e-10)
    assert model.score(X, y) == pytest.approx(twin.score(X, y))


def test_intervals_cover_and_the_deviation_is_that_of_the_noise(model):
    X, y = make(3000, seed=7)
    prediction, lower, upper = model.predict(X, interval=0.9)
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.9, abs=0.04)
    assert np.all(upper - prediction > prediction - lower)
    link, linear = model.expansion_.link, model.expansion_.linear(X)
    half = model.uncertainty_.half_width(X, 0.9)
    np.testing.assert_array_equal(lower, link.inverse(linear - half)[:, 0])
    std = model.predict(X, return_std=True)[1]
    assert std.shape == (3000,)
    if link.kind == "log":
        exact = np.exp(truth(X) + NOISE**2 / 2) * np.sqrt(np.expm1(NOISE**2))
        assert np.median(std / exact) == pytest.approx(1, abs=0.15)


def test_the_held_out_error_is_in_the_units_of_the_target(model, xy):
    X, y = make(5000, seed=9)
    error = np.mean((y - model.predict(X)) ** 2)
    assert model.uncertainty_.mean_square[0] == pytest.approx(error, rel=0.5)
    link = model.expansion_.link
    assert model.uncertainty_.noise[0] < 0.5 * np.var(link.forward(xy[1]))


def test_predictions_never_leave_the_range(model, xy):
    y = xy[1]
    X = np.random.default_rng(0).uniform(-1e6, 1e6, (500, 3))
    answers = [*model.predict(X, interval=0.95), model.predict(X, return_std=True)[1]]
    assert np.all(np.isfinite(answers))
    if model.link == "log":
        assert np.all(np.asarray(answers[:3]) > 0)
    else:
        reach = np.ptp(y) * (1 + 1e-9)
        assert np.all(np.asarray(answers[:3]) >= y.min() - reach)
        assert np.all(np.asarray(answers[:3]) <= y.max() + reach)


def test_the_gradient_is_that_of_the_prediction(model, xy):
    X, step = xy[0][:20], 1e-6
    for k in range(3):
        shift = step * np.eye(3)[k]
        numeric = (model.predict(X + shift) - model.predict(X - shift)) / (2 * step)
        np.testing.assert_allclose(model.gradient(X)[:, k], numeric, rtol=1e-5, atol=1e-6)


def test_a_unit_of_the_target_changes_nothing_but_the_unit(xy):
    for kind in KINDS:
        first = HARFERegressor(**SMALL, link=kind, residual_cv=5).fit(*xy)
        other = HARFERegressor(**SMALL, link=kind, residual_cv=5).fit(*make(unit=1e6))
        np.testing.assert_allclose(
            other.predict(xy[0]), 1e6 * first.predict(xy[0]), rtol=1e-6, atol=1e-6
        )


def test_explanations_are_sums_on_the_scale_of_the_link(model, xy):
    X = xy[0]
    linear = model.expansion_.linear(X)[:, 0]
    np.testing.assert_allclose(model.eval_terms(X).sum(axis=1) + model.intercept_, linear)
    local = model.explain_local(X)
    np.testing.assert_array_equal(local.prediction, linear)
    np.testing.assert_allclose(local.baseline + local.components.sum(axis=1), linear)
    grid = np.array([-0.5, 0.5])
    found = model.partial_dependence(0, X, grid=grid)
    for value, average in zip(grid, found.average, strict=True):
        fixed = np.column_stack([np.full(len(X), value), X[:, 1:]])
        assert average == pytest.approx(model.expansion_.linear(fixed).mean())
    explanation = model.explain()
    assert explanation.link == local.link == found.link == model.link
    assert (
        f"Note: the model is a sum on the scale of its link, {model.link}" in explanation.summary()
    )
    assert found.to_dict()["link"] == explanation.to_dict()["link"] == model.link
    plain = HARFERegressor(**SMALL).fit(X, model.expansion_.link.forward(xy[1]))
    np.testing.assert_array_equal(model.feature_importances_, plain.feature_importances_)
    assert "scale" not in plain.explain().summary()


@pytest.mark.parametrize("residual_cv", [None, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_formulas_compute_the_prediction(xy, kind, residual_cv):
    X, y = xy
    model = HARFERegressor(**SMALL, link=kind, residual_cv=residual_cv).fit(X, y)
    names = {f"x{k}": X[:, k, None] for k in range(3)}
    link = model.expansion_.link

    def inverse_yeo_johnson(eta, power):
        assert power == link.power
        bare = Link("yeo-johnson", link.lower, link.upper, power)
        return bare.inverse(eta)

    words = {
        "exp": np.exp,
        "sin": np.sin,
        "clip": lambda a, low, high: np.clip(a, low, high),
        "inverse_yeo_johnson": inverse_yeo_johnson,
        "mean": lambda values: np.mean(values, axis=1, keepdims=True),
    }
    right = model.formula(17).removeprefix("y = ").replace("[", "array([").replace("]", "])")
    value = eval(right, {"array": np.array, **words, **names})
    np.testing.assert_allclose(value[:, 0], model.predict(X), rtol=1e-9)
    latex = model.formula(3, "latex")
    assert (r"\exp\left(" if kind == "log" else r"\psi^{-1}_{") in latex
    assert latex.count(r"\left") == latex.count(r"\right")
    sympy = pytest.importorskip("sympy")
    call = sympy.lambdify(input_symbols(model.expansion_), model.formula(kind="sympy"))
    np.testing.assert_allclose(call(*X.T), model.predict(X), rtol=1e-9)


def test_a_column_with_a_name_of_the_link_is_quoted(xy):
    X = pd.DataFrame(xy[0], columns=["mean", "b", "c"])
    formulas = [HARFERegressor(**SMALL, link=k).fit(X, xy[1]).formula() for k in ("none", "log")]
    assert ["`mean`" in text for text in formulas] == [False, True]


def test_fewer_terms_keep_the_link(model, xy):
    X, y = xy
    few = model.keep_terms(1, X, y)
    assert len(few.term_names_) == 1
    residual = few.expansion_.link.forward(y) - few.expansion_.linear(X)[:, 0]
    assert few.expansion_.link == model.expansion_.link.with_residuals(residual, np.ones(len(y)))
    if model.link == "log":
        with pytest.raises(ValueError, match="positive"):
            model.keep_terms(1, X, y - y.mean())


@pytest.mark.parametrize("law", ["grid", "learned"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_is_that_of_the_transformed_target(xy, kind, law):
    X, y = xy[0][:120], xy[1][:120]
    settings = GRID if law == "grid" else {**GRID, "law": "learned", "refine": False, "cv": 2}
    model = HARFERegressorCV(**settings, link=kind).fit(X, y)
    link = model.expansion_.link
    plain = HARFERegressorCV(**settings).fit(X, link.forward(y))
    np.testing.assert_array_equal(model.mse_path_, plain.mse_path_)
    np.testing.assert_array_equal(model.expansion_.linear(X)[:, 0], plain.predict(X))
    assert len(link.residuals) == 15
    assert model.best_params_["link"] == kind
    if model.fit_ == "data":
        again = HARFERegressor(**model.best_params_, random_state=0).fit(X, y)
        np.testing.assert_array_equal(again.expansion_.linear(X), model.expansion_.linear(X))
    Xt, yt = make(1000, seed=3)
    _, lower, upper = model.predict(Xt, interval=0.8)
    assert np.mean((lower <= yt) & (yt <= upper)) == pytest.approx(0.8, abs=0.1)


def test_a_scorer_sees_the_units_of_the_target(xy):
    X, y = xy[0][:100], xy[1][:100]
    model = HARFERegressorCV(**GRID, scoring="neg_mean_absolute_error", link="log").fit(X, y)

    def mapped_back(truth, prediction):
        return -mean_absolute_error(np.exp(truth), np.exp(prediction))

    twin = HARFERegressorCV(**GRID, scoring=make_scorer(mapped_back)).fit(X, np.log(y))
    found, known = (one.cv_results_["mean_test_score"] for one in (model, twin))
    np.testing.assert_allclose(found, known, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_standard_rows_are_those_of_the_transformed_target(xy, kind):
    X, y = xy[0], xy[1][:, None]
    settings = {"input_scale": "standard", "input_clip": None}
    rows = StandardRows.of(X, y, np.ones(300), **settings, rng=np.random.default_rng(0), link=kind)
    link = find_link(y, np.ones(300), kind)
    other = StandardRows.of(
        X, link.forward(y), np.ones(300), **settings, rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(rows.t, other.t, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.sort(rows.to_targets(rows.t)[:, 0]), np.sort(y[:, 0]))
    some = rows.subset(50, np.random.default_rng(0))
    assert some.link == rows.link
    assert len(some.t) == 50


@pytest.mark.parametrize("make_model", [HARFERegressor, HARFERegressorCV])
def test_what_a_link_cannot_do_is_refused(xy, make_model):
    X, y = xy
    shifted = y - y.mean()
    with pytest.raises(ValueError, match=r"link='log' needs positive.*link='yeo-johnson'"):
        make_model(link="log").fit(X, shifted)
    with pytest.raises(ValueError, match=r"link='log' is for one real target, but y has 2 targets"):
        make_model(link="log").fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"link='yeo-johnson' is for one real .*y is complex"):
        make_model(link="yeo-johnson").fit(X, y + 1j)
    with pytest.raises(ValueError, match=r"link='sqrt' is not known; .* none, log, yeo-"):
        make_model(link="sqrt").fit(X, y)


@pytest.mark.parametrize("activation", ["tanh", "exp"])
def test_other_activations_have_links_too(xy, activation):
    assert activation in ACTIVATIONS
    model = HARFERegressor(**SMALL, activation=activation, link="log", residual_cv=3).fit(*xy)
    assert model.score(*make(500, seed=4)) > 0.3
    assert np.isrealobj(model.predict(xy[0]))
    average = model.partial_dependence(0, xy[0], grid=3).average
    assert np.all(np.isfinite(average))
