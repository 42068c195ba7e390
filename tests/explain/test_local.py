"""Single rows, partial dependence and gradients: sums, brute force, finite differences."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from shared import FORMULAS
from sklearn.inspection import partial_dependence as brute_force

from harfe import HARFERegressor, InputDistribution
from harfe.datasets import make_function
from harfe.explain.anova import anova
from harfe.explain.inputs.summary import InputSummary
from harfe.explain.local import explain_local
from harfe.explain.partial import partial_dependence
from harfe.features.law import FeatureLaw
from harfe.model.expansion import Expansion

SMALL = {"n_components": 400, "n_nonzero_coefs": 30, "random_state": 0}
every_activation = pytest.mark.parametrize("activation", FORMULAS)
waves_only = pytest.mark.parametrize("activation", ["sin", "cos", "exp"])


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 300, random_state=0)


@pytest.fixture(scope="module")
def model(friedman):
    return HARFERegressor(**SMALL).fit(friedman.X, friedman.y)


@pytest.fixture(scope="module")
def clipping():
    """A model whose first two inputs have outliers and are clipped, and its rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:2, 0], X[3, 1] = 50.0, -80.0
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    model = HARFERegressor(**SMALL).fit(X, y)
    assert model.expansion_.map.finite.tolist() == [True, True, False, False]
    return model, X


def fitted(activation="sin", *, targets=None, is_complex=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    if is_complex:
        y = y + 1j * X[:, 3]
    if targets:
        y = np.stack([y, X[:, 3], y + X[:, 3]], axis=1)
    # A phase from U[0, 2π] is for waves: others would hardly bend, with coefficients of 1e6.
    bias = "phase" if activation in ("sin", "cos", "exp") else "uniform"
    return HARFERegressor(**SMALL, activation=activation, bias=bias).fit(X, y), X


# --- Local ---------------------------------------------------------------------------------------


@every_activation
@pytest.mark.parametrize("is_complex", [False, True])
def test_contributions_sum_to_the_prediction(activation, is_complex):
    model, X = fitted(activation, is_complex=is_complex)
    told = model.explain_local(X[:40])
    prediction = model.predict(X[:40])
    assert len(told) == 40
    np.testing.assert_array_equal(told.prediction, prediction)
    for total in (
        told.baseline + told.components.sum(axis=1),
        told.baseline + told.variables.sum(axis=1),
        told.intercept + told.terms.sum(axis=1),
    ):
        np.testing.assert_allclose(total, prediction, rtol=0, atol=1e-10)
    assert told.components.shape == (40, len(told.component_names))
    assert told.variables.shape == (40, 4)
    assert told.terms.shape == (40, len(told.term_names))


def test_contributions_sum_to_the_prediction_where_inputs_are_clipped(clipping):
    model, X = clipping
    told = model.explain_local(X)
    for total in (
        told.baseline + told.components.sum(axis=1),
        told.baseline + told.variables.sum(axis=1),
        told.intercept + told.terms.sum(axis=1),
    ):
        np.testing.assert_allclose(total, model.predict(X), rtol=0, atol=1e-10)
    # Beyond the bounds nothing changes.
    upper = model.expansion_.map.upper[0]
    further = np.array([[upper, 0, 0, 0], [upper + 7, 0, 0, 0]])
    values = model.explain_local(further).components
    np.testing.assert_array_equal(values[0], values[1])


def test_components_are_shared_equally_by_their_variables(model, friedman):
    X = friedman.X[:5]
    told = model.explain_local(X)
    parts = anova(model.expansion_, model.inputs_.distribution)
    assert told.baseline == parts.mean
    assert told.component_names[: len(parts.sets)][0] == "x0"
    for k in range(10):
        expected = sum(parts.component(u, X[:, list(u)]) / len(u) for u in parts.sets if k in u)
        np.testing.assert_allclose(told.variables[:, k], expected, rtol=0, atol=1e-12)


def test_several_targets_one_at_a_time():
    model, X = fitted(targets=3)
    told = [model.explain_local(X[:7], target=t) for t in range(3)]
    for t in range(3):
        assert told[t].target == t
        np.testing.assert_array_equal(told[t].prediction, model.predict(X[:7])[:, t])
        np.testing.assert_allclose(
            told[t].intercept + told[t].terms.sum(axis=1), told[t].prediction, atol=1e-10
        )
    np.testing.assert_allclose(
        told[0].variables + told[1].variables, told[2].variables, rtol=0, atol=1e-9
    )


def test_other_laws_have_another_baseline(model, friedman):
    X = friedman.X[:5]
    uniform = model.explain_local(X, inputs="uniform")
    assert uniform.inputs == "uniform"
    assert uniform.baseline == model.explain(inputs="uniform").mean
    assert uniform.baseline != model.explain_local(X).baseline
    own = InputDistribution.uniform(np.zeros(10), np.ones(10))
    assert model.explain_local(X, inputs=own).inputs == "uniform"
    np.testing.assert_allclose(
        uniform.baseline + uniform.components.sum(axis=1), model.predict(X), rtol=0, atol=1e-10
    )


def test_rows_outside_of_the_data_seen_are_flagged():
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    model = HARFERegressor(**SMALL, variable_weights=[1, 1, 0]).fit(
        X, np.sin(5 * X[:, 0]) + X[:, 1]
    )
    low, high = X.min(axis=0), X.max(axis=0)
    middle = np.full(3, 0.5)
    rows = np.array([middle, low, high, [high[0] + 1e-9, 0.5, 0.5], [0.5, low[1] - 1, 0.5]])
    rows = np.vstack([rows, [[0.5, 0.5, 99.0]]])  # the third input is not used
    told = model.explain_local(rows)
    assert told.outside.tolist() == [False, False, False, True, True, False]
    assert np.argwhere(told.outside_inputs).tolist() == [[3, 0], [4, 1]]
    assert not model.explain_local(X).outside.any()


def test_local_explanations_are_plain_data(model, friedman):
    told = model.explain_local(friedman.X[:4])
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.baseline = 0
    again = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert again["baseline"] == told.baseline
    assert again["variables"] == told.variables.tolist()
    for by, names, start in (
        ("variables", told.variable_names, "baseline"),
        ("components", told.component_names, "baseline"),
        ("terms", told.term_names, "intercept"),
    ):
        frame = told.to_frame(by)
        assert list(frame.columns) == [start, *names, "prediction", "outside"]
        total = frame[[start, *names]].sum(axis=1)
        np.testing.assert_allclose(total, frame["prediction"], rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="by='rows' is not a known view; choose one of vari"):
        told.table("rows")


def test_a_model_without_features_has_nothing_to_share():
    expansion = Expansion(
        FeatureLaw(3).draw(0, np.random.default_rng(0)),
        np.zeros((1, 0)),
        np.array([2.0]),
        tuple("abc"),
    )
    X = np.random.default_rng(0).random((5, 3))
    told = explain_local(expansion, InputSummary.of(expansion, X), X + 1)
    assert told.baseline == told.intercept == 2
    assert told.variables.tolist() == [[0, 0, 0]] * 5
    assert not told.outside.any()
    assert told.components.shape == told.terms.shape == (5, 0)


def test_local_refusals(model):
    with pytest.raises(ValueError, match="inputs='joint' has no ANOVA"):
        model.explain_local(np.zeros((1, 10)), inputs="joint")
    with pytest.raises(ValueError, match="target=1"):
        model.explain_local(np.zeros((1, 10)), target=1)
    with pytest.raises(ValueError, match="expecting 10"):
        model.explain_local(np.zeros((1, 3)))


# --- Partial dependence --------------------------------------------------------------------------


def agrees(model, X, features, **weights):
    """Against scikit-learn's brute force, from the rows and from what the fit kept."""
    expected = brute_force(
        model, X, [tuple(features)], grid_resolution=9, method="brute", kind="average", **weights
    )
    grid = list(expected["grid_values"])
    for rows, weight in ((X, weights.get("sample_weight")), (None, None)):
        found = model.partial_dependence(features, rows, grid, sample_weight=weight)
        np.testing.assert_allclose(found.average, expected["average"][0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("features", [(0,), (3,), (0, 1), (4, 2), (0, 1, 2)])
@waves_only
def test_partial_dependence_is_that_of_scikit_learn(activation, features, friedman):
    model = HARFERegressor(**SMALL, activation=activation).fit(friedman.X, friedman.y)
    agrees(model, friedman.X, features)


def test_partial_dependence_with_order_three_and_dependent_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 1] = X[:, 0] ** 2 + 0.1 * X[:, 1]
    model = HARFERegressor(**SMALL, order=(1, 2, 3)).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    for features in ((0,), (1, 3), (0, 1, 2)):
        agrees(model, X, features)


@pytest.mark.parametrize("features", [(0,), (1,), (2,), (0, 1)])
def test_partial_dependence_where_inputs_are_clipped(clipping, features):
    model, X = clipping
    agrees(model, X, features)
    # Far outside too, where only the bounds matter.
    k = features[0]
    grid = np.array([-1e3, -1.0, 0.0, 1e3])
    found = model.partial_dependence(k, grid=grid)
    for value, average in zip(grid, found.average, strict=True):
        rows = X.copy()
        rows[:, k] = value
        assert average == pytest.approx(model.predict(rows).mean(), abs=1e-10)


def test_partial_dependence_with_weights(friedman):
    w = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    model = HARFERegressor(**SMALL).fit(friedman.X, friedman.y, sample_weight=w)
    agrees(model, friedman.X, (0, 1), sample_weight=w)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_other_activations_average_over_the_rows_they_are_given(activation, friedman):
    model = HARFERegressor(**SMALL, activation=activation).fit(friedman.X, friedman.y)
    expected = brute_force(model, friedman.X, [(0, 1)], grid_resolution=5, method="brute")
    found = model.partial_dependence((0, 1), friedman.X, list(expected["grid_values"]))
    np.testing.assert_allclose(found.average, expected["average"][0], rtol=0, atol=1e-10)
    w = np.random.default_rng(0).random(300)
    rows = friedman.X.copy()
    rows[:, 3] = 0.2
    weighted = model.partial_dependence(3, friedman.X, [0.2], sample_weight=w)
    expected = np.average(model.predict(rows), weights=w)
    assert weighted.average[0] == pytest.approx(expected, abs=1e-10)
    with pytest.raises(ValueError, match=f"partial_dependence with {activation} .* pass X"):
        model.partial_dependence(0)


@every_activation
def test_partial_dependence_of_complex_targets(activation):
    model, X = fitted(activation, is_complex=True)
    grid = np.array([-1.0, 0.3])
    found = model.partial_dependence(1, X, grid)
    assert found.average.dtype == complex
    for value, average in zip(grid, found.average, strict=True):
        rows = X.copy()
        rows[:, 1] = value
        assert abs(average - model.predict(rows).mean()) < 1e-10


def test_partial_dependence_of_several_targets():
    model, X = fitted(targets=3)
    rows = X.copy()
    rows[:, 3] = 0.5
    for t in range(3):
        found = model.partial_dependence(3, grid=[0.5], target=t)
        assert found.target == t
        assert found.average[0] == pytest.approx(model.predict(rows)[:, t].mean(), abs=1e-10)
    with pytest.raises(ValueError, match="target=3"):
        model.partial_dependence(0, target=3)


def test_grids_lie_where_the_data_are(model, friedman):
    found = model.partial_dependence("x3")
    assert found.variables == ("x3",)
    (values,) = found.grid_values
    assert len(values) == len(found.average) == 50
    low, high = np.quantile(friedman.X[:, 3], [1 / 32, 31 / 32], method="inverted_cdf")
    assert (values[0], values[-1]) == (low, high)
    assert model.partial_dependence(["x3", 0], grid=4).average.shape == (4, 4)
    of_rows = model.partial_dependence(3, friedman.X[:100]).grid_values[0]
    low = np.quantile(friedman.X[:100, 3], 1 / 32, method="inverted_cdf")
    assert of_rows[0] == low


def test_an_input_of_few_values_takes_all_of_them():
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 5, 200), rng.normal(size=200)], axis=1).astype(float)
    X[:, 1] = np.where(rng.random(200) < 0.99, 0.0, X[:, 1])  # 3 and 97 % quantiles are alike
    model = HARFERegressor(**SMALL, input_clip=None).fit(X, X[:, 0] ** 2 + X[:, 1])
    assert model.partial_dependence(0).grid_values[0].tolist() == [0, 1, 2, 3, 4]
    assert len(model.partial_dependence(0, grid=3).grid_values[0]) == 3
    values = model.partial_dependence(1, grid=2).grid_values[0]
    assert values.tolist() == [X[:, 1].min(), X[:, 1].max()]


def test_grids_of_clipped_inputs_stay_within_the_bounds(clipping):
    model, _ = clipping
    bounds = model.expansion_.map
    values = model.partial_dependence(1).grid_values[0]
    assert bounds.lower[1] <= values[0] < values[-1] <= bounds.upper[1]


def test_partial_dependence_is_plain_data(model):
    found = model.partial_dependence(("x0", "x1"), grid=3)
    frame = found.to_frame()
    assert list(frame.columns) == ["x0", "x1", "average"]
    assert frame["average"].tolist() == found.average.ravel().tolist()
    assert frame["x1"].tolist() == found.grid_values[1].tolist() * 3
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["average"] == found.average.tolist()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.target = 1


def test_names_of_a_frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((100, 2)), columns=["age", "bmi"])
    model = HARFERegressor(**SMALL).fit(X, X["age"] ** 2)
    assert model.partial_dependence("age").variables == ("age",)
    np.testing.assert_array_equal(
        model.partial_dependence("bmi").average, model.partial_dependence(1).average
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": 10}, "inputs=10: 10 is not an input; pass a number from 0 to 9 or a name"),
        ({"inputs": "age"}, "inputs='age': 'age' is not an input"),
        ({"inputs": -1}, "-1 is not an input"),
        ({"inputs": ()}, r"inputs=\(\) must name one or more inputs"),
        ({"inputs": (1, "x1")}, "each once"),
        ({"inputs": 0, "grid": 1}, "grid=1 must be at least 2 values"),
        ({"inputs": (0, 1), "grid": [[0.1, 0.2]]}, "an array of finite values for each of the 2"),
        ({"inputs": 0, "grid": [0.1, np.nan]}, "an array of finite values for each of the 1"),
        ({"inputs": (0, 1, 2, 3, 4), "grid": 100}, "has 1e.10 points"),
        ({"inputs": 0, "sample_weight": np.ones(300)}, "but X is None"),
    ],
)
def test_partial_dependence_refusals(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.partial_dependence(**arguments)


def test_too_many_subsets_need_the_rows():
    rng = np.random.default_rng(0)
    expansion = Expansion(
        FeatureLaw(20, orders=(16,)).draw(5, rng),
        rng.normal(size=(1, 5)),
        np.zeros(1),
        tuple(f"x{j}" for j in range(20)),
    )
    X = rng.normal(size=(100, 20))
    kept = InputSummary.of(expansion, X)
    with pytest.raises(ValueError, match=r"5 features with up to 16 inputs .* pass X"):
        partial_dependence(expansion, kept, 0)
    rows = X.copy()
    rows[:, 0] = 0.7
    found = partial_dependence(expansion, kept, 0, [0.7], X)
    assert found.average[0] == pytest.approx(expansion.predict(rows).mean(), abs=1e-12)


# --- Gradient ------------------------------------------------------------------------------------


@every_activation
@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("is_complex", [False, True])
def test_gradients_are_those_of_finite_differences(activation, targets, is_complex):
    model, X = fitted(activation, targets=targets, is_complex=is_complex)
    X = X[:20] + 1e-3  # off the bends of relu, which the rows of the fit may lie on
    gradient = model.gradient(X)
    assert gradient.shape == ((20, 4) if targets is None else (20, 4, 3))
    step = 1e-6
    for k in range(4):
        up, down = X.copy(), X.copy()
        up[:, k] += step
        down[:, k] -= step
        slope = (model.predict(up) - model.predict(down)) / (2 * step)
        np.testing.assert_allclose(gradient[:, k], slope, rtol=0, atol=1e-6)


def test_the_gradient_is_zero_where_an_input_is_clipped(clipping):
    model, X = clipping
    gradient = model.gradient(X[:5])
    assert gradient[:2, 0].tolist() == [0, 0]
    assert gradient[3, 1] == 0
    assert np.all(gradient[2:, 0] != 0)


def test_the_mean_square_of_the_gradient_is_in_the_table(clipping):
    model, X = clipping
    gradient = model.gradient(X)
    told = model.explain().variables["mean_square_gradient"]
    np.testing.assert_allclose(told, np.mean(gradient**2, axis=0), rtol=1e-12)
    w = np.random.default_rng(0).random(200)
    told = model.explain(X, sample_weight=w).variables["mean_square_gradient"]
    np.testing.assert_allclose(told, np.average(gradient**2, axis=0, weights=w), rtol=1e-12)
