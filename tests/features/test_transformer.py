"""SparseRandomFeatures: scikit-learn's contract, types, names, seeds and refusals."""

import re

import numpy as np
import pytest
from shared import FORMULAS, estimator_checks
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from harfe import FeatureLaw, SparseRandomFeatures


def inputs(rows=20, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (rows, d))


def table(kind, X, columns=("age", "bmi", "bp")):
    frames = pytest.importorskip(kind)
    return frames.DataFrame({name: X[:, k] for k, name in enumerate(columns)})


# --- scikit-learn's own checks ---


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", ["(n_components=5)", "(n_components=3, order=1, activation='relu', bias='none')"]
)
def test_check_estimator_in_full(variant):
    results = estimator_checks(f"SparseRandomFeatures{variant}")
    names = {name for name, _, _ in results}
    assert {"check_transformer_general", "check_n_features_in", "check_dict_unchanged"} <= names
    assert len(results) >= 40
    assert [result for result in results if result[1] != "passed"] == []


# --- What it computes ---


@pytest.mark.parametrize("activation", FORMULAS)
@pytest.mark.parametrize("order", ["auto", 1, 3, (1, 2)])
def test_transform_is_the_activation_of_x_w_plus_b(activation, order):
    X = inputs()
    features = SparseRandomFeatures(50, order=order, activation=activation, random_state=0)
    A = features.fit_transform(X)
    truth = FORMULAS[activation](X @ features.weights_.toarray() + features.bias_)
    np.testing.assert_allclose(A, truth, rtol=0, atol=5e-15)


@pytest.mark.parametrize(
    ("activation", "given", "result"),
    [
        ("sin", np.float32, np.float32),
        ("sin", np.float64, np.float64),
        ("sin", np.int32, np.float64),
        ("exp", np.float32, np.complex64),
        ("exp", np.float64, np.complex128),
    ],
)
def test_types(activation, given, result):
    X = (3 * inputs()).astype(given)
    features = SparseRandomFeatures(30, activation=activation, random_state=0).fit(X)
    A = features.transform(X)
    assert A.dtype == result
    z = X.astype(float) @ features.weights_.toarray() + features.bias_
    tolerance = 20 * np.finfo(result).eps
    np.testing.assert_allclose(A, FORMULAS[activation](z), rtol=0, atol=tolerance)


def test_attributes_are_the_papers_w_and_b():
    features = SparseRandomFeatures(40, order=(1, 2), random_state=0).fit(inputs(d=4))
    assert features.weights_.shape == (4, 40)
    assert features.bias_.shape == (40,)
    sizes = np.count_nonzero(features.weights_.toarray(), axis=0)
    np.testing.assert_array_equal(sizes, np.tile([1, 2], 20))
    assert np.all((features.bias_ >= 0) & (features.bias_ <= 2 * np.pi))
    assert features.n_features_in_ == 4


def test_parameters_become_the_law():
    features = SparseRandomFeatures(
        5,
        order=(1, 2),
        activation="cos",
        weights="uniform",
        scale=[1, 2, 3],
        bias="none",
        interaction_cst=[["age", "bp"]],
        variable_weights=[1, 2, 0],
        random_state=0,
    ).fit(table("pandas", inputs()))
    assert features.law_ == FeatureLaw(
        3,
        (1, 2),
        "uniform",
        (1.0, 2.0, 3.0),
        "none",
        "cos",
        (1.0, 2.0, 0.0),
        ((0, 2), (1,)),
    )
    assert len(features.pool_) == 5


def test_rows_play_no_part_in_the_draw():
    a = SparseRandomFeatures(30, random_state=0).fit(inputs(20, seed=1))
    b = SparseRandomFeatures(30, random_state=0).fit(1e6 + inputs(7, seed=2))
    np.testing.assert_array_equal(a.weights_.toarray(), b.weights_.toarray())
    np.testing.assert_array_equal(a.bias_, b.bias_)


def test_equal_seeds_give_equal_features():
    X = inputs()
    a, b, other = (SparseRandomFeatures(30, random_state=s).fit(X) for s in (5, 5, 6))
    np.testing.assert_array_equal(a.transform(X), b.transform(X))
    np.testing.assert_array_equal(clone(a).fit_transform(X), a.transform(X))
    assert np.all(a.bias_ != other.bias_)


def test_fitting_twice_is_fitting_once():
    features = SparseRandomFeatures(30, random_state=5)
    first = features.fit_transform(inputs())
    np.testing.assert_array_equal(features.fit_transform(inputs()), first)


def test_without_a_seed_features_are_new():
    features = SparseRandomFeatures(30)
    assert np.all(features.fit(inputs()).bias_ != features.fit(inputs()).bias_)


def test_a_random_state_is_used_up():
    shared = np.random.RandomState(0)
    features = SparseRandomFeatures(30, random_state=shared)
    first, second = features.fit(inputs()).bias_, features.fit(inputs()).bias_
    assert np.all(first != second)
    again = SparseRandomFeatures(30, random_state=np.random.RandomState(0)).fit(inputs()).bias_
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("order", [2, (1, 3)])
def test_more_components_extend_the_pool(order):
    X = inputs(d=5)
    small, large = (
        SparseRandomFeatures(n, order=order, random_state=0).fit_transform(X) for n in (37, 260)
    )
    np.testing.assert_array_equal(large[:, :37], small)


def test_pipeline_with_ridge_learns_what_its_features_span():
    X = inputs(300)
    model = make_pipeline(SparseRandomFeatures(80, random_state=0), Ridge(alpha=1e-9))
    A = clone(model[0]).fit_transform(X)
    y = 3 * A[:, 4] - 2 * A[:, 17] + 0.5
    model.fit(X[:200], y[:200])
    np.testing.assert_allclose(model.predict(X[200:]), y[200:], rtol=0, atol=1e-5)
    twin = Ridge(alpha=1e-9).fit(A[:200], y[:200])
    np.testing.assert_allclose(model.predict(X), twin.predict(A), rtol=0, atol=1e-9)
    names = model[:-1].get_feature_names_out()
    assert names.tolist() == model[0].get_feature_names_out().tolist()


# --- Names and tables ---


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_names_speak_of_the_columns(kind):
    X = table(kind, inputs())
    features = SparseRandomFeatures(6, order=2, random_state=0).fit(X)
    assert features.feature_names_in_.tolist() == ["age", "bmi", "bp"]
    names = features.get_feature_names_out()
    assert names.dtype == object
    W = features.weights_.toarray()
    for text, w, b in zip(names, W.T, features.bias_, strict=True):
        first, second = np.flatnonzero(w)
        columns = ["age", "bmi", "bp"]
        sign = "-" if w[second] < 0 else "+"
        assert text == (
            f"sin({w[first]:.2f}*{columns[first]} {sign} {abs(w[second]):.2f}*{columns[second]}"
            f" + {b:.2f})"
        )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_tables_and_arrays_give_the_same_numbers(kind):
    X = inputs()
    features = SparseRandomFeatures(6, random_state=0)
    np.testing.assert_array_equal(features.fit_transform(table(kind, X)), features.fit_transform(X))


def test_names_without_columns():
    features = SparseRandomFeatures(4, order=1, random_state=0).fit(inputs())
    indices = features.pool_.indices[:, 0]
    for text, given, k in zip(
        features.get_feature_names_out(),
        features.get_feature_names_out(["p", "q", "r"]),
        indices,
        strict=True,
    ):
        assert f"*x{k} " in text
        assert given == text.replace(f"x{k}", "pqr"[k])


def test_input_names_must_fit():
    features = SparseRandomFeatures(4, random_state=0)
    with pytest.raises(ValueError, match="input_features"):
        features.fit(inputs()).get_feature_names_out(["p", "q"])
    features.fit(table("pandas", inputs()))
    with pytest.raises(ValueError, match="input_features"):
        features.get_feature_names_out(["p", "q", "r"])
    same = features.get_feature_names_out(["age", "bmi", "bp"])
    assert same.tolist() == features.get_feature_names_out().tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_tables_come_out_on_request(kind):
    frames = pytest.importorskip(kind)
    X = table(kind, inputs())
    plain = SparseRandomFeatures(6, random_state=0)
    out = clone(plain).set_output(transform=kind).fit_transform(X)
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == plain.fit(X).get_feature_names_out().tolist()
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(X))
    if kind == "pandas":
        assert out.index.equals(X.index)


def test_names_of_many_features_of_one_input_are_unique_as_polars_needs():
    pytest.importorskip("polars")
    features = SparseRandomFeatures(1000, random_state=0).set_output(transform="polars")
    assert features.fit_transform(inputs(d=1)).shape == (20, 1000)


def test_names_in_the_constraint():
    X = table("pandas", inputs())
    named = SparseRandomFeatures(30, interaction_cst=[["bp", "age"]], random_state=0).fit(X)
    numbered = SparseRandomFeatures(30, interaction_cst=[[0, 2]], random_state=0).fit(X)
    assert named.law_ == numbered.law_
    W = named.weights_.toarray()
    assert not np.any((W[1] != 0) & ((W[0] != 0) | (W[2] != 0)))
    assert np.any(W[1] != 0)


# --- Refusals ---


@pytest.mark.parametrize("value", [0, -5, True, 1.5, "many", None])
def test_bad_n_components(value):
    message = f"n_components={value!r} must be a whole number of at least 1, e.g. n_components=1000"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        SparseRandomFeatures(value).fit(inputs())


def test_numpy_integers_are_counts():
    X = inputs()
    assert SparseRandomFeatures(np.int64(3)).fit_transform(X).shape == (20, 3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": 4}, "order=4 is larger than the number of inputs, 3; pass order=3 or less"),
        ({"activation": "sine"}, "activation='sine' is not known; choose one of sin, cos, "),
        ({"weights": "flat"}, "weights='flat' is not known; choose one of normal, uniform"),
        ({"bias": "b"}, "bias='b' is not known; choose one of phase, uniform, none"),
        ({"scale": 0}, "scale=0.0 must be one positive number or one for each of the 3 inputs"),
        ({"variable_weights": [1]}, "variable_weights=1.0 must hold one finite number >= 0 for"),
        ({"interaction_cst": [["age"]]}, "interaction_cst names the column 'age', which X does"),
    ],
)
def test_bad_parameters_are_refused_at_fit(parameters, message):
    features = SparseRandomFeatures(5, **parameters)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        features.fit(inputs())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("when", ["fit", "transform"])
def test_values_that_are_not_finite(value, when):
    X = inputs()
    features = SparseRandomFeatures(5).fit(X)
    X[3, 1] = value
    with pytest.raises(ValueError, match=f"X contains {'NaN' if np.isnan(value) else 'infinity'}"):
        getattr(features, when)(X)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_text_names_its_column(kind):
    frames = pytest.importorskip(kind)
    X = frames.DataFrame({"age": [1.0, 2.0], "smoker": ["yes", "no"]})
    with pytest.raises(ValueError, match=r"X holds text in column 'smoker', e.g. 'yes'; encode it"):
        SparseRandomFeatures(5).fit(X)


def test_text_in_lists_names_its_column():
    with pytest.raises(ValueError, match=r"X holds text in column 1, e.g. 'no'; encode it"):
        SparseRandomFeatures(5).fit([[1, "2"], [2, "no"]])


def test_text_at_transform_names_its_column():
    pandas = pytest.importorskip("pandas")
    features = SparseRandomFeatures(5).fit(pandas.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"X holds text in column 'b', e.g. 'no'"):
        features.transform(pandas.DataFrame({"a": [1.0, 2.0], "b": ["1", "no"]}))


@pytest.mark.parametrize("X", [[1.0, 2.0, 3.0], np.arange(4)])
def test_one_dimensional_inputs(X):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        SparseRandomFeatures(5).fit(X)


def test_one_dimensional_text():
    with pytest.raises(ValueError, match=r"text|Expected 2D"):
        SparseRandomFeatures(5).fit(["yes", "no"])


def test_another_number_of_columns_at_transform():
    features = SparseRandomFeatures(5).fit(inputs())
    message = "X has 2 features, but SparseRandomFeatures is expecting 3 features as input"
    with pytest.raises(ValueError, match=message):
        features.transform(inputs(d=2))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_other_columns_at_transform(kind):
    features = SparseRandomFeatures(5).fit(table(kind, inputs()))
    for columns in (("age", "bmi", "sex"), ("bmi", "age", "bp")):
        with pytest.raises(ValueError, match="feature names"):
            features.transform(table(kind, inputs(), columns))


@pytest.mark.parametrize("call", ["transform", "get_feature_names_out"])
def test_not_fitted(call):
    arguments = [inputs()] if call == "transform" else []
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(SparseRandomFeatures(5), call)(*arguments)


@pytest.mark.parametrize("attribute", ["weights_", "bias_"])
def test_attributes_appear_with_the_fit(attribute):
    features = SparseRandomFeatures(5)
    assert not hasattr(features, attribute)
    assert hasattr(features.fit(inputs()), attribute)
