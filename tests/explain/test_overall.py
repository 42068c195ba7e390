"""Explanations of fitted models: tables by hand and by brute force, distributions, warnings."""

import dataclasses
import itertools
import json
import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from harfe import Explanation, HARFERegressor, HARFERegressorCV, InputDistribution
from harfe.datasets import load_real, make_function
from harfe.explain.anova import anova
from harfe.explain.inputs.distribution import largest_frequencies
from harfe.explain.inputs.summary import InputSummary
from harfe.explain.overall import explain, total_indices
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion
from harfe.model.terms import term_values

SMALL = {"n_components": 400, "n_nonzero_coefs": 30, "random_state": 0}
PARTS = ("variables", "terms", "interactions", "sobol", "components")


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 300, random_state=0)


@pytest.fixture(scope="module")
def model(friedman):
    return HARFERegressor(**SMALL).fit(friedman.X, friedman.y)


def by_hand():
    """Three features of three inputs, in a pool of five; the third input is not used."""
    pool = FeaturePool(
        3,
        np.array([[0, 1], [0, -1], [0, 1], [1, 2], [2, -1]]),
        np.array([[1.0, 2.0], [0.5, 0.0], [-1.0, 0.3], [1.0, 1.0], [2.0, 0.0]]),
        np.zeros(5),
    )
    coef = np.array([[3.0, -1.0, 4.0], [0.0, 1.0, 1.0]])
    return Expansion(pool.take(np.arange(3)), coef, np.array([0.5, 0.0]), tuple("abc")), pool


# --- Tables --------------------------------------------------------------------------------------


def test_shares_by_hand():
    expansion, pool = by_hand()
    kept = InputSummary.of(expansion, np.random.default_rng(0).random((50, 3)))
    told = explain(expansion, kept, pool=pool)
    variables = told.variables
    assert variables["variable"].tolist() == ["a", "b", "c"]
    assert variables["count"].tolist() == [3, 2, 0]
    np.testing.assert_allclose(variables["share"], [1, 2 / 3, 0])
    np.testing.assert_allclose(variables["pool_share"], [3 / 5, 3 / 5, 2 / 5])
    np.testing.assert_allclose(variables["weighted_share"], [1, 7 / 8, 0])
    np.testing.assert_allclose(variables["mean_square_gradient"], kept.mean_square_gradient[0])
    assert np.isnan(variables["learned_usage"]).all()
    assert np.isnan(variables["learned_scale"]).all()
    terms = told.terms
    assert terms["term"].tolist() == ["a", "a : b"]
    assert terms["variables"].tolist() == [("a",), ("a", "b")]
    assert terms["order"].tolist() == [1, 2]
    assert terms["count"].tolist() == [1, 2]
    np.testing.assert_allclose(terms["share"], [1 / 3, 2 / 3])
    np.testing.assert_allclose(terms["pool_share"], [1 / 5, 2 / 5])
    np.testing.assert_allclose(terms["weighted_share"], [1 / 8, 7 / 8])
    other = explain(expansion, kept, pool=pool, target=1)
    np.testing.assert_allclose(other.variables["weighted_share"], [1, 1 / 2, 0])
    assert explain(expansion, kept).variables["pool_share"].tolist() == [1, 2 / 3, 0]


def test_shares_of_a_law_that_was_given():
    expansion, _ = by_hand()
    kept = InputSummary.of(expansion, np.random.default_rng(0).random((50, 3)))
    law = FeatureLaw(3, orders=(1,), scale=(1.0, 2.0, 3.0), variable_weights=(1.0, 3.0, 0.0))
    variables = explain(expansion, kept, feature_law=law).variables
    np.testing.assert_allclose(variables["learned_usage"], [0.25, 0.75, 0])
    assert variables["learned_scale"].tolist() == [1, 2, 3]
    overlapping = FeatureLaw(3, orders=(1,), groups=((0, 1), (1, 2)))
    variables = explain(expansion, kept, feature_law=overlapping).variables
    assert np.isnan(variables["learned_usage"]).all()
    assert variables["learned_scale"].tolist() == [1, 1, 1]


def test_an_estimator_tells_of_the_law_it_was_given(friedman):
    law = FeatureLaw(10, scale=(0.5,), variable_weights=(1.0,) * 5 + (0.0,) * 5)
    variables = HARFERegressor(**SMALL, law=law).fit(friedman.X, friedman.y).explain().variables
    np.testing.assert_allclose(variables["learned_usage"], [0.4] * 5 + [0] * 5)
    assert variables["learned_scale"].tolist() == [0.5] * 10
    assert variables["count"][5:].tolist() == variables["pool_share"][5:].tolist() == [0] * 5


def test_the_tables_say_what_the_decomposition_says(model):
    told = model.explain()
    parts = anova(model.expansion_, model.inputs_.distribution)
    assert (told.inputs, told.target) == ("independent", 0)
    assert told.mean == parts.mean
    assert told.variance == parts.variance
    assert told.sobol["variable"].tolist() == [f"x{j}" for j in range(10)]
    np.testing.assert_array_equal(told.sobol["first_order"], parts.first_order())
    np.testing.assert_array_equal(told.sobol["total"], parts.total())
    np.testing.assert_array_equal(told.sobol["shapley"], parts.shapley())
    pairs, second, total = parts.interaction()
    found = {
        variables: (second_order, total)
        for variables, second_order, total in zip(*told.interactions.columns.values(), strict=True)
    }
    names = [tuple(f"x{k}" for k in pair) for pair in pairs]
    assert found == dict(zip(names, zip(second, total, strict=True), strict=True))
    for table, column in ((told.interactions, "total"), (told.components, "share")):
        assert np.all(np.diff(table[column]) <= 0)
    assert told.components["share"].sum() == pytest.approx(1, abs=1e-12)
    assert told.components["variance"].sum() == pytest.approx(told.variance, rel=1e-12)
    assert {*told.components["component"]} >= {"x0", "x1", "x0 : x1"}
    assert told.components["order"].tolist() == [len(u) for u in told.components["variables"]]


def test_what_matters_in_friedman_1_is_found(model):
    told = model.explain()
    assert {*np.argsort(-told.sobol["total"])[:5].tolist()} == {0, 1, 2, 3, 4}
    assert told.interactions["variables"][0] == ("x0", "x1")
    assert told.interactions["total"][0] > 5 * told.interactions["total"][1]
    assert 0.8 < told.variance_ratio < 1.25
    assert told.dependence == ()
    assert told.notes == ()


def test_variances_of_the_raw_terms_and_of_the_rows():
    """Few values: the product of the marginals in full."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (80, 3)).astype(float)
    X[:, 2] = X[:, 0] * X[:, 1]
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    w = rng.integers(1, 4, 80).astype(float)
    model = HARFERegressor(n_components=200, n_nonzero_coefs=12, random_state=0)
    model.fit(X, y, sample_weight=w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        told = model.explain()
    distribution = InputDistribution.empirical(X, w)
    grid = np.array(list(itertools.product(*distribution.nodes)))
    share = np.array([np.prod(p) for p in itertools.product(*distribution.weights)])
    terms = term_values(model.expansion_, grid)[:, :, 0]
    np.testing.assert_allclose(
        told.terms["variance"], share @ (terms - share @ terms) ** 2, rtol=1e-10
    )
    f, on_rows = model.predict(grid), model.predict(X)
    variance = share @ (f - share @ f) ** 2
    assert told.mean == pytest.approx(share @ f, abs=1e-10)
    assert told.variance == pytest.approx(variance, rel=1e-10)
    joint = np.average((on_rows - np.average(on_rows, weights=w)) ** 2, weights=w)
    assert told.variance_joint == pytest.approx(joint, rel=1e-10)
    assert told.variance_ratio == pytest.approx(joint / variance, rel=1e-10)


# --- Importance ----------------------------------------------------------------------------------


def waves_of(coef, complex_output=False):
    """Sines of x0, of 2 x1 and of x0 + x2, each of mean 0 and variance 1/2 on [-π, π]³."""
    indices = np.array([[0, -1], [1, -1], [0, 2]])
    values = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    pool = FeaturePool(4, indices, values, np.zeros(3), "sin")
    coef = np.atleast_2d(coef)
    return Expansion(pool, coef, np.zeros(len(coef), coef.dtype), tuple("abcd"), complex_output)


def uniform_rows():
    """Columns whose marginals are the points of a grid on the circle."""
    rng, circle = np.random.default_rng(0), np.linspace(-np.pi, np.pi, 400, endpoint=False)
    return np.stack([rng.permutation(circle) for _ in range(4)], axis=1)


@pytest.mark.parametrize(
    ("coef", "expected"),
    [
        ([1.0, 2.0, 3.0], np.array([1 + 9, 4, 9, 0]) / 14),
        ([1.0, 2.0j, 3.0], np.array([1 + 9, 4, 9, 0]) / 14),
        ([0.0, 1e-200, 0.0], [0, 1, 0, 0]),
        ([1e300, 2e300, 3e300], np.array([1 + 9, 4, 9, 0]) / 14),
        ([0.0, 0.0, 0.0], [0, 0, 0, 0]),
        # Each target counts equally, a constant one not at all.
        ([[5.0, 0.0, 0.0], [0.0, 1e3, 0.0], [0.0, 0.0, 0.0]], [0.5, 0.5, 0, 0]),
    ],
)
def test_total_indices_of_known_waves(coef, expected):
    coef = np.array(coef)
    expansion = waves_of(coef, complex_output=coef.dtype.kind == "c")
    kept = InputSummary.of(expansion, uniform_rows())
    np.testing.assert_allclose(total_indices(expansion, kept), expected, rtol=0, atol=1e-9)


def test_features_that_cancel_do_not_matter():
    """Their coefficients are large, which says nothing about the function."""
    pool = FeaturePool(2, np.array([[0], [0], [1]]), np.ones((3, 1)), np.zeros(3), "tanh")
    expansion = Expansion(pool, np.array([[7.0, -7.0, 1e-3]]), np.zeros(1), tuple("ab"))
    kept = InputSummary.of(expansion, uniform_rows()[:, :2])
    assert total_indices(expansion, kept).tolist() == [0, 1]


# --- Distributions -------------------------------------------------------------------------------


def same(one, two, tolerance):
    for part in PARTS:
        a, b = getattr(one, part), getattr(two, part)
        assert list(a.columns) == list(b.columns)
        for name in a.columns:
            if a[name].dtype.kind == "f":
                np.testing.assert_allclose(
                    a[name], b[name], rtol=0, atol=tolerance, err_msg=f"{part} {name}"
                )


def test_what_the_fit_kept_is_as_good_as_its_rows(model, friedman):
    kept, given = model.explain(), model.explain(friedman.X)
    same(kept, given, 1e-9)
    assert kept.mean == pytest.approx(given.mean, abs=1e-10)
    assert kept.variance == pytest.approx(given.variance, rel=1e-10)
    assert kept.variance_ratio == pytest.approx(given.variance_ratio, rel=1e-10)


def test_other_rows_have_other_indices(model, friedman):
    some = friedman.X[friedman.X[:, 3] > 0.9]
    told = model.explain(some)
    assert told.sobol["total"][3] < 0.1 * model.explain().sobol["total"][3]
    assert told.variance_joint == pytest.approx(model.predict(some).var(), rel=1e-12)


def test_weight_two_is_the_row_twice(model, friedman):
    w = np.random.default_rng(0).integers(0, 4, 300)
    weighted = model.explain(friedman.X, sample_weight=w)
    repeated = model.explain(np.repeat(friedman.X, w, axis=0))
    same(weighted, repeated, 1e-9)
    assert weighted.variance == pytest.approx(repeated.variance, rel=1e-10)
    refitted = HARFERegressor(**SMALL).fit(friedman.X, friedman.y, sample_weight=w)
    same(refitted.explain(), refitted.explain(friedman.X, sample_weight=w), 1e-8)


def test_rows_of_weight_zero_are_no_rows(model, friedman):
    X, w = np.vstack([friedman.X, np.full((1, 10), 3.0)]), np.r_[np.ones(300), 0]
    with_it = model.explain(X, inputs="uniform", sample_weight=w)
    without = model.explain(friedman.X, inputs="uniform")
    assert with_it.to_dict() == without.to_dict()


def test_uniform_and_normal_inputs(model, friedman):
    uniform = model.explain(inputs="uniform")
    assert uniform.inputs == "uniform"
    expansion = model.expansion_
    distribution = InputDistribution.uniform(
        friedman.X.min(axis=0), friedman.X.max(axis=0), largest_frequencies(expansion.features)
    )
    np.testing.assert_allclose(
        uniform.sobol["total"], anova(expansion, distribution).total(), rtol=0, atol=1e-12
    )
    rng = np.random.default_rng(0)
    normal = model.explain(inputs="normal")
    f = model.predict(rng.normal(friedman.X.mean(axis=0), friedman.X.std(axis=0), (100_000, 10)))
    assert abs(f.mean() - normal.mean) < 4 * f.std() / np.sqrt(len(f))
    square = (f - f.mean()) ** 2
    assert abs(square.mean() - normal.variance) < 4 * square.std() / np.sqrt(len(f))
    # The ratio is about dependence, whatever the distribution.
    ratio = model.explain().variance_ratio
    assert uniform.variance_ratio == normal.variance_ratio == ratio


def test_a_law_of_ones_own(model):
    distribution = InputDistribution.uniform(
        np.zeros(10), np.ones(10), largest_frequencies(model.expansion_.features)
    )
    told = model.explain(inputs=distribution)
    assert told.inputs == "uniform"
    assert told.mean == anova(model.expansion_, distribution).mean


def test_the_other_sign_has_the_other_mean_and_the_same_indices(model, friedman):
    negated = HARFERegressor(**SMALL).fit(friedman.X, -friedman.y)
    told, other = model.explain(), negated.explain()
    assert other.mean == pytest.approx(-told.mean, abs=1e-9)
    np.testing.assert_allclose(other.sobol["total"], told.sobol["total"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.interactions["total"], told.interactions["total"], atol=1e-9)


# --- Dependent inputs ----------------------------------------------------------------------------


def test_a_column_that_repeats_another_is_told():
    rng = np.random.default_rng(0)
    X = rng.random((300, 4))
    X[:, 1] = 3 * X[:, 0]
    model = HARFERegressor(**SMALL).fit(
        pd.DataFrame(X, columns=["RAP", "DDP", "a", "b"]), np.sin(4 * X[:, 0]) + X[:, 2]
    )
    with pytest.warns(UserWarning, match=r"strongly correlated: RAP and DDP \(1\.00\)") as caught:
        told = model.explain()
    assert caught[0].filename == __file__
    assert told.dependence == told.notes
    assert "read them together" in told.dependence[-1]


def equal_inputs(*coef):
    """Σ c_k sin(x_k) on rows where all inputs are the same, and its explanation."""
    d = len(coef)
    pool = FeaturePool(d, np.arange(d)[:, None], np.ones((d, 1)), np.zeros(d))
    expansion = Expansion(pool, np.array([coef]), np.zeros(1), tuple("abcdef"[:d]))
    x = np.random.default_rng(0).normal(size=200)
    return explain(expansion, InputSummary.of(expansion, np.stack([x] * d, axis=1)))


def test_correlated_inputs_are_told_only_if_both_matter():
    assert "a and b (1.00)" in equal_inputs(1.0, 0.5).dependence[0]
    assert equal_inputs(1.0, 0.05).dependence == ()
    assert equal_inputs(0.05, 1.0).dependence == ()


def test_many_correlated_pairs_are_counted():
    X = np.random.default_rng(0).normal(size=(200, 5))
    X = np.hstack([X, X])
    d = X.shape[1]
    pool = FeaturePool(d, np.arange(d)[:, None], np.ones((d, 1)), np.zeros(d))
    expansion = Expansion(pool, np.ones((1, d)), np.zeros(1), tuple("abcdefghij"))
    told = explain(expansion, InputSummary.of(expansion, X))
    assert "a and f (1.00), b and g (1.00), c and h (1.00) and 2 more pairs" in told.notes[-1]


def test_a_variance_far_from_that_of_independent_inputs_is_told():
    """Var Σ c_k g(x) = (Σ c)² Var g on the rows, Σ c² Var g if the inputs were independent."""
    for coef, ratio, told in (
        ((1.0, -1.0), 0.0, True),
        ((1.0, 1.0, 1.0), 3.0, True),
        ((1.0, 0.5), 1.8, False),
        ((1.0, -0.2), 0.64 / 1.04, False),
    ):
        explanation = equal_inputs(*coef)
        assert explanation.variance_ratio == pytest.approx(ratio, rel=1e-10, abs=1e-25)
        note = "the function's variance over the rows is"
        assert any(text.startswith(note) for text in explanation.dependence) == told
        assert explanation.notes[: len(explanation.dependence)] == explanation.dependence
    assert "partial_dependence" in equal_inputs(1.0, -1.0).dependence[0]


@pytest.mark.skipif(not os.environ.get("HARFE_DATA"), reason="HARFE_DATA is not set")
def test_speech_has_inputs_that_depend_on_each_other():
    data = load_real("speech")
    model = HARFERegressor(random_state=0).fit(data.X_train, data.y_train)
    with pytest.warns(UserWarning, match="depend on each other"):
        told = model.explain()
    assert told.variance_ratio < 0.5


# --- Other activations, several targets, complex numbers, constants ------------------------------


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_other_activations_say_that_they_are_quadratures(activation, friedman):
    model = HARFERegressor(**SMALL, activation=activation).fit(friedman.X, friedman.y)
    told = model.explain()
    assert any(f"{activation} has no closed form" in note for note in told.notes)
    assert told.dependence == ()
    f = model.predict(np.random.default_rng(0).random((50_000, 10)))
    uniform = model.explain(inputs=InputDistribution.uniform(np.zeros(10), np.ones(10)))
    square = (f - f.mean()) ** 2
    # 64 nodes per input: an error of about 1e-4 of the variance for relu.
    room = 4 * square.std() / np.sqrt(len(f)) + 1e-3 * f.var()
    assert abs(square.mean() - uniform.variance) < room
    same(told, model.explain(friedman.X), 2e-3 * told.variance)


def test_several_targets_one_at_a_time(friedman):
    y = np.stack([friedman.y, 3 * friedman.X[:, 7], -friedman.y], axis=1)
    model = HARFERegressor(**SMALL).fit(friedman.X, y)
    first, second, third = (model.explain(target=t) for t in range(3))
    assert second.target == 1
    assert np.argmax(second.sobol["total"]) == 7
    assert first.sobol["total"][7] < 0.05
    assert third.mean == pytest.approx(-first.mean, abs=1e-9)
    np.testing.assert_allclose(third.sobol["total"], first.sobol["total"], atol=1e-9)
    with pytest.raises(ValueError, match="target=3 must be a whole number from 0 to 2"):
        model.explain(target=3)


@pytest.mark.parametrize("activation", ["sin", "exp", "tanh"])
def test_complex_targets(activation):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (100, 3)).astype(float)
    y = np.exp(1j * X[:, 0]) + 1j * X[:, 1]
    model = HARFERegressor(**SMALL, activation=activation).fit(X, y)
    told = model.explain()
    distribution = InputDistribution.empirical(X)
    grid = np.array(list(itertools.product(*distribution.nodes)))
    share = np.array([np.prod(p) for p in itertools.product(*distribution.weights)])
    f = model.predict(grid)
    assert told.mean == pytest.approx(share @ f, abs=1e-10)
    assert told.variance == pytest.approx(share @ np.abs(f - share @ f) ** 2, rel=1e-10)
    assert told.to_dict()["mean"] == [told.mean.real, told.mean.imag]
    json.dumps(told.to_dict(), allow_nan=False)
    assert "mean" in told.summary()


def test_a_constant_target():
    X = np.random.default_rng(0).random((30, 3))
    model = HARFERegressor(**SMALL).fit(X, np.full(30, 4.0))
    told = model.explain()
    assert told.mean == pytest.approx(4, abs=1e-12)
    assert told.variance == pytest.approx(0, abs=1e-20)
    assert told.variance_ratio == 1
    json.dumps(told.to_dict(), allow_nan=False)
    assert "mean 4" in told.summary()


def test_a_model_without_features():
    expansion, _ = by_hand()
    nothing = Expansion(
        expansion.features.take(np.arange(0)), np.zeros((1, 0)), np.array([2.5]), tuple("abc")
    )
    kept = InputSummary.of(nothing, np.random.default_rng(0).random((30, 3)))
    told = explain(nothing, kept)
    assert (told.mean, told.variance, told.variance_ratio) == (2.5, 0, 1)
    assert [len(getattr(told, part)) for part in PARTS] == [3, 0, 0, 3, 0]
    assert told.sobol["total"].tolist() == [0, 0, 0]
    json.dumps(told.to_dict(), allow_nan=False)
    assert "mean 2.5" in told.summary()


def test_constant_inputs_explain_nothing(friedman):
    X = friedman.X.copy()
    X[:, 3] = 1.0
    told = HARFERegressor(**SMALL).fit(X, friedman.y).explain()
    assert told.variables["count"][3] == 0
    assert told.sobol["total"][3] == 0


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_targets_of_any_size(friedman, size):
    told = HARFERegressor(**SMALL).fit(friedman.X, friedman.y * size).explain()
    plain = HARFERegressor(**SMALL).fit(friedman.X, friedman.y).explain()
    np.testing.assert_allclose(told.sobol["total"], plain.sobol["total"], rtol=0, atol=1e-9)
    assert told.mean == pytest.approx(plain.mean * size, rel=1e-9)
    json.dumps(told.to_dict(), allow_nan=False)


# --- Plain data ----------------------------------------------------------------------------------


def test_an_explanation_is_frozen_plain_data(model):
    told = model.explain()
    assert isinstance(told, Explanation)
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.mean = 0.0
    again = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert again["inputs"] == "independent"
    assert again["variance"] == told.variance
    assert again["sobol"]["total"] == told.sobol["total"].tolist()
    assert again["variables"]["learned_usage"] == [None] * 10
    assert again["notes"] == []
    assert {*PARTS} <= {*again}
    thawed = pickle.loads(pickle.dumps(told))
    assert thawed.to_dict() == told.to_dict()


def test_every_part_is_a_frame(model):
    told = model.explain()
    for part in PARTS:
        table = getattr(told, part)
        frame = table.to_frame()
        assert list(frame.columns) == list(table.columns)
        assert len(frame) == len(table)
    assert told.sobol.to_frame()["first_order"].tolist() == told.sobol["first_order"].tolist()


def test_names_of_columns_are_in_the_tables(friedman):
    X = pd.DataFrame(friedman.X, columns=[f"input {j}" for j in range(10)])
    told = HARFERegressor(**SMALL).fit(X, friedman.y).explain()
    assert told.sobol["variable"].tolist() == list(X.columns)
    assert told.interactions["variables"][0] == ("input 0", "input 1")
    assert "input 0 : input 1" in told.components["component"]


def test_the_summary_names_what_leads_and_the_notes(model, friedman):
    text = model.explain().summary(most=2)
    assert "independent inputs with the marginals of the rows" in text
    assert "x3" in text
    assert "x0, x1" in text
    assert "x7" not in text
    tanh = HARFERegressor(**SMALL, activation="tanh").fit(friedman.X, friedman.y)
    assert "Note: tanh has no closed form" in tanh.explain().summary()


def test_a_fitted_model_pickles_and_explains_the_same(model):
    thawed = pickle.loads(pickle.dumps(model))
    assert thawed.explain().to_dict() == model.explain().to_dict()


def test_explanations_do_not_depend_on_the_number_of_threads(friedman, on_threads):
    def told(count):
        return on_threads(
            count, lambda: HARFERegressor(**SMALL).fit(friedman.X, friedman.y).explain().to_dict()
        )

    assert told(1) == told(2)


def test_few_rows_leave_a_note():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2))
    model = HARFERegressor(**SMALL, scale=2.0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        kept, given = model.explain(), model.explain(X)
    assert any("pass X for more digits" in note for note in kept.notes)
    assert not any("pass X" in note for note in given.notes)


# --- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": "joint"}, r"inputs='joint' has no ANOVA .* partial_dependence\(inputs\)"),
        (
            {"inputs": "beta"},
            "inputs='beta' is not a known distribution; choose one of independent, uniform, normal",
        ),
        ({"inputs": 3}, "inputs=3 is not a known"),
        (
            {"inputs": InputDistribution.uniform([0], [1])},
            "distribution has 1 inputs but the function has 10",
        ),
        ({"target": 1}, "target=1 must be a whole number from 0 to 0"),
        ({"sample_weight": np.ones(300)}, "sample_weight weights the rows of X, but X is None"),
        ({"X": np.zeros((3, 2))}, "X has 2 features, but HARFERegressor is expecting 10"),
        ({"X": np.zeros((3, 10)), "sample_weight": [1, -1, 1]}, "negative value"),
    ],
)
def test_refusals(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.explain(**arguments)


def test_an_unfitted_model_says_so():
    for call in (
        lambda model: model.explain(),
        lambda model: model.explain_local(np.zeros((1, 2))),
        lambda model: model.partial_dependence(0),
        lambda model: model.gradient(np.zeros((1, 2))),
    ):
        with pytest.raises(NotFittedError):
            call(HARFERegressor())


def test_a_fit_of_three_rows_asks_for_them():
    X = np.array([[0.0], [1.0], [2.0]])
    model = HARFERegressor(20, 2, random_state=0).fit(X, [0.0, 1.0, 3.0])
    with pytest.warns(UserWarning, match="too few rows"):
        explanation = model.explain()
    assert np.isinf(explanation.variance_ratio)
    assert explanation.to_dict()["variance_ratio"] is None
    assert model.explain(X).sobol["total"].tolist() == pytest.approx([1.0])


def test_a_learned_law_is_part_of_the_explanation():
    data = make_function("friedman1", 80, random_state=0)
    model = HARFERegressorCV(300, n_nonzero_coefs=[5, 10], alphas=[1e-3], cv=2, random_state=0)
    told = model.fit(data.X, data.y).explain().variables
    np.testing.assert_allclose(told["learned_usage"], model.law_.usage(), rtol=1e-12)
    used = model.law_.usage() > 0
    assert np.isfinite(told["learned_scale"][used]).all()
    assert np.all(told["learned_scale"][used] > 0)
    grid = HARFERegressor(random_state=0).fit(data.X, data.y).explain().variables
    assert np.isnan(grid["learned_usage"]).all()
