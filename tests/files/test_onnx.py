"""ONNX graphs against `predict` and `eval_terms`, run by onnxruntime."""

import builtins
import json
from dataclasses import replace

import numpy as np
import pytest

from harfe import HARFERegressor, HARFERegressorCV
from harfe.estimators import regressor_cv as selection
from harfe.features.activations import ACTIVATIONS
from harfe.files.onnx import to_onnx
from harfe.tables import TableEncoder, TableModel

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
SMALL = {"n_components": 200, "n_nonzero_coefs": 15, "alpha": 1e-2, "random_state": 0}

# Inputs far from zero and of sizes that differ, as in tables: floats must not lose them.
CENTRE, SPREAD = np.array([0, 2000, 0, -50, 3]), np.array([1, 10, 1e-3, 5, 1])


def make(seed=0, m=80):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, 5))
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.1 * rng.normal(size=m)
    return CENTRE + SPREAD * Z, y


def run(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def assert_agree(found, truth, dtype):
    assert found.shape == truth.shape
    assert found.dtype == dtype
    assert np.max(np.abs(found - truth)) <= TOLERANCE[dtype] * np.max(np.abs(truth))


def check(model, X, dtype, terms=True):
    """Compare at rows that are numbers of the type, so that only the graph can be off."""
    X = X.astype(dtype)
    out = run(model.to_onnx(dtype=dtype, terms=terms), {"X": X})
    truth = {"prediction": model.predict(X.astype(float))}
    if terms:
        truth["terms"] = model.eval_terms(X.astype(float))
    if model.expansion_.complex_output:
        truth = {
            f"{name}_{part}": getattr(value, part)
            for name, value in truth.items()
            for part in ("real", "imag")
        }
    assert set(out) == set(truth)
    for name, value in truth.items():
        assert_agree(out[name], value, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("case", ["one", "column", "several", "complex"])
def test_graphs_predict_what_predict_does(activation, case, dtype):
    X, y = make()
    target = {
        "one": y,
        "column": y[:, None],
        "several": np.column_stack([y, -(y**2)]),
        "complex": y + 1j * X[:, 4],
    }[case]
    model = HARFERegressor(**SMALL, activation=activation).fit(X, target)
    check(model, make(seed=1)[0], dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_clipped_inputs_are_clipped(activation, dtype):
    X, y = make()
    X[3, 1], X[4, 0] = 1e9, -1e7
    model = HARFERegressor(**SMALL, activation=activation).fit(X, y)
    assert model.expansion_.map.finite[:2].all()
    new = make(seed=1)[0]
    new[:4, :2] *= 1e6
    check(model, new, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("warp", ["log", "rank"])
def test_warped_inputs_are_warped(activation, dtype, warp):
    def table(seed):
        X = make(seed)[0]
        X[:, 3] = np.exp(X[:, 0])
        X[:, 4] = np.exp(X[:, 4] - 3) - 1
        return X

    X = table(0)
    y = X[:, 0] + np.log(X[:, 3]) ** 2 + X[:, 4]
    # A phase from U[0, 2π] is for waves: others would have coefficients of 1e4, which cancel.
    bias = "phase" if activation in ("sin", "cos", "exp") else "uniform"
    model = HARFERegressor(**SMALL, activation=activation, bias=bias, input_warp=warp).fit(X, y)
    assert model.expansion_.map.warped[3:].all()
    new = table(1)
    new[:4, 3:] *= [[0.01], [-1], [10], [1e6]]
    check(model, new, dtype)


@pytest.mark.parametrize("kind", ["matched", "refined"])
def test_models_of_a_search(kind, monkeypatch):
    monkeypatch.setattr(selection, "KINDS", (kind,))
    settings = {"n_components": 150, "n_nonzero_coefs": [6], "alphas": [1e-2], "cv": 3}
    model = HARFERegressorCV(**settings, random_state=0).fit(*make())
    check(model, make(seed=1)[0], "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_mixed_orders_and_unused_inputs(dtype):
    settings = {**SMALL, "order": (1, 3), "variable_weights": [1, 0, 2, 0, 1]}
    X, y = make()
    X[3, 1] = 1e9  # bounds of an input that no feature looks at
    model = HARFERegressor(**settings).fit(X, y)
    assert -1 in model.expansion_.features.indices
    assert model.expansion_.map is not None
    check(model, make(seed=1)[0], dtype)


def test_a_model_without_terms_is_its_constant():
    X = np.zeros((30, 2))
    model = HARFERegressor(20, 4, random_state=0).fit(X, np.arange(30.0))
    out = run(model.to_onnx(), {"X": np.ones((3, 2))})
    np.testing.assert_allclose(out["prediction"], np.full(3, 14.5), rtol=1e-12)
    nothing = replace(
        model.expansion_,
        features=model.expansion_.features.take(np.arange(0)),
        coef=np.empty((1, 0)),
    )
    model.expansion_ = nothing
    out = run(model.to_onnx(), {"X": np.ones((3, 2))})
    np.testing.assert_array_equal(out["prediction"], np.full(3, nothing.intercept[0]))


@pytest.mark.parametrize("residual_cv", [None, 5])
@pytest.mark.parametrize("link", ["log", "yeo-johnson"])
def test_links_are_in_the_graph(link, residual_cv):
    X, y = make()
    model = HARFERegressor(**SMALL, link=link, residual_cv=residual_cv).fit(X, np.exp(y))
    check(model, X, "float64")
    far = run(model.to_onnx(), {"X": 1e3 * X})["prediction"]
    np.testing.assert_allclose(far, model.predict(1e3 * X), rtol=1e-9)
    found = run(model.to_onnx(dtype="float32"), {"X": X.astype("float32")})["prediction"]
    np.testing.assert_allclose(found, model.predict(X.astype("float32")), rtol=1e-3)


def test_names_stand_in_the_graph_and_the_file_is_the_graph(tmp_path):
    X, y = make()
    model = HARFERegressor(**SMALL).fit(X, y)
    plain, full = model.to_onnx(tmp_path / "m.onnx"), model.to_onnx(terms=True)
    assert onnx.load(tmp_path / "m.onnx") == plain
    told = {prop.key: json.loads(prop.value) for prop in full.metadata_props}
    assert told == {"columns": ["x0", "x1", "x2", "x3", "x4"], "terms": model.term_names_}
    assert [value.name for value in plain.graph.output] == ["prediction"]
    assert [value.name for value in full.graph.output] == ["prediction", "terms"]
    assert plain.producer_name == "harfe"


def test_terms_that_cancel_are_told():
    X, y = make()
    # Far from zero, every tanh is 1 to several digits: the fit uses differences of such features.
    model = HARFERegressor(
        50, 5, activation="tanh", bias="uniform", alpha=0.0, scale=1e-3, order=1, random_state=0
    ).fit(X[:, :1], 1e-3 * y + 1)
    with pytest.warns(UserWarning, match="in float32 predictions may be off by"):
        model.to_onnx(dtype="float32")


def test_what_cannot_be_written_is_refused(monkeypatch):
    X, y = make()
    model = HARFERegressor(**SMALL).fit(X, y)
    with pytest.raises(ValueError, match="dtype='float16'"):
        model.to_onnx(dtype="float16")
    whole = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "onnx":
            raise ImportError(name)
        return whole(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install \"harfe\[onnx\]\""):
        model.to_onnx()


# --- tables --------------------------------------------------------------------------------------


def make_table(seed=0, m=80):
    rng = np.random.default_rng(seed)
    X, y = make(seed, m)
    color = rng.choice(["red", "green", "blue"], m)
    return {
        "size": X[:, 1],
        "weight": X[:, 3],
        "color": color.tolist(),
        "prediction": rng.choice(["yes", "no"], m).tolist(),
        "y": y + (color == "red"),
    }


def feeds_of(table, dtype):
    names = {"size": "size", "weight": "weight", "color": "color"}
    names |= {"prediction": "column prediction"}
    return {
        name: np.asarray(
            table[column], dtype=object if column in ("color", "prediction") else dtype
        )[:, None]
        for column, name in names.items()
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("missing", ["error", "median"])
def test_the_encoder_is_part_of_the_graph(missing, dtype):
    model = TableModel.fit(make_table(), "y", HARFERegressor(**SMALL), missing=missing)
    assert isinstance(model.encoder, TableEncoder)
    new = make_table(seed=1)
    for column in ("size", "weight"):
        new[column] = new[column].astype(dtype)
    out = run(model.to_onnx(dtype=dtype, terms=True), feeds_of(new, dtype))
    for column in ("size", "weight"):
        new[column] = new[column].astype(float)
    assert_agree(out["prediction"], model.predict(new), dtype)
    terms = model.model.eval_terms(model.encoder.encode(new))
    assert_agree(out["terms"], terms, dtype)


@pytest.mark.parametrize("missing", ["drop", "median"])
def test_missing_values_and_unseen_levels_are_as_in_the_encoder(missing):
    model = TableModel.fit(
        make_table(), "y", HARFERegressor(**SMALL), missing=missing, na=["-999", "unknown"]
    )
    new = make_table(seed=1)
    new["size"][:3] = [np.nan, -999, 2000]
    new["color"][2:7] = ["", "NA", "unknown", "violet", "null"]
    with pytest.warns(UserWarning, match="violet"):
        truth = model.predict(new)
    out = run(to_onnx(model, terms=True), feeds_of(new, "float64"))
    np.testing.assert_array_equal(np.isnan(out["prediction"]), np.isnan(truth))
    assert np.isnan(truth).sum() == (6 if missing == "drop" else 0)
    assert np.isnan(out["terms"]).all(axis=1).sum() == np.isnan(truth).sum()
    known = ~np.isnan(truth)
    assert_agree(out["prediction"][known], truth[known], "float64")


def test_the_graph_of_a_table_has_the_link():
    X, y = make()
    table = {"a": X[:, 0], "b": X[:, 1], "y": np.exp(y)}
    model = TableModel.fit(table, "y", HARFERegressor(**SMALL, link="log", residual_cv=3))
    feeds = {"a": X[:, [0]].copy(), "b": X[:, [1]].copy()}
    feeds["b"][3] = np.nan
    found = run(model.to_onnx(), feeds)["prediction"]
    truth = model.predict(table)
    assert np.isnan(found[3])
    kept = np.arange(len(truth)) != 3
    np.testing.assert_allclose(found[kept], truth[kept], rtol=1e-12)


def test_columns_of_a_table_are_told():
    model = TableModel.fit(make_table(), "y", HARFERegressor(**SMALL))
    proto = to_onnx(model)
    told = {prop.key: json.loads(prop.value) for prop in proto.metadata_props}
    assert told["table_columns"] == ["size", "weight", "color", "prediction"]
    assert told["columns"] == list(model.encoder.columns_out)
    assert told["target"] == "y"
    kinds = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
    number, text = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING
    assert kinds == {"size": number, "weight": number, "color": text, "column prediction": text}
