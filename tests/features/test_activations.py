"""Every part of every row in the table of activations against one formula in plain NumPy."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser
from shared import FORMULAS

from harfe import Expansion, FeatureLaw, HARFERegressor, SparseRandomFeatures
from harfe.features.activations import ACTIVATIONS, Activation
from harfe.features.pool import FeaturePool
from harfe.model.formula import formula, input_symbols
from harfe.report.page.page import _functions

every_activation = pytest.mark.parametrize("name", ACTIVATIONS)

# No multiple of the step of a finite difference lies at 0, where relu has a corner.
Z = np.linspace(-6, 6, 98)


def single(name, column="x"):
    """The function φ(x) of one input as an expansion."""
    pool = FeaturePool(1, np.zeros((1, 1), np.intp), np.ones((1, 1)), np.zeros(1), name)
    is_complex = ACTIVATIONS[name].is_complex
    coef = np.ones((1, 1), complex if is_complex else float)
    return Expansion(pool, coef, np.zeros(1, coef.dtype), (column,), is_complex)


def test_tests_know_every_activation():
    assert set(FORMULAS) == set(ACTIVATIONS)


@every_activation
def test_compiled_value(name):
    values = single(name).predict(Z[:, None])[:, 0]
    assert np.iscomplexobj(values) == ACTIVATIONS[name].is_complex
    np.testing.assert_allclose(values, FORMULAS[name](Z), rtol=0, atol=1e-15)


@every_activation
def test_derivative_by_finite_differences(name):
    slope = single(name).gradient(Z[:, None])[0, :, 0]
    step = 1e-5
    truth = (FORMULAS[name](Z + step) - FORMULAS[name](Z - step)) / (2 * step)
    np.testing.assert_allclose(slope, truth, rtol=0, atol=1e-9)


@every_activation
def test_text(name):
    words = {**FORMULAS, "exp": np.exp, "x": Z}
    text = formula(single(name), "text", 17).removeprefix("y = ")
    np.testing.assert_allclose(eval(text, {}, words), FORMULAS[name](Z), rtol=0, atol=1e-15)


@every_activation
def test_sympy(name):
    sympy = pytest.importorskip("sympy", reason="sympy is not installed")
    plain = sympy.lambdify(input_symbols(single(name)), formula(single(name), "sympy"))
    # A column may have the name of a function in the code that sympy generates.
    for column in ("x", *plain.__code__.co_names):
        expansion = single(name, column)
        function = sympy.lambdify(input_symbols(expansion), formula(expansion, "sympy"))
        np.testing.assert_allclose(function(Z), FORMULAS[name](Z), rtol=0, atol=1e-14)


@every_activation
def test_latex(name):
    text = formula(single(name), "latex").removeprefix("y = ")
    assert text.endswith(ACTIVATIONS[name].latex % r"1\,x")
    assert MathTextParser("path").parse(f"${text}$").width > 0


@every_activation
def test_onnx(name):
    pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X = Z[:, None]
    model = HARFERegressor(30, 3, activation=name, random_state=0).fit(X, np.cos(Z) + Z)
    session = onnxruntime.InferenceSession(
        model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, {"X": X})
    features = model.expansion_.features
    phi = FORMULAS[name](X @ features.weights().toarray() + features.phases)
    truth = (phi @ model.expansion_.coef[0] + model.expansion_.intercept[0]).real
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-11 * np.abs(truth).max())


@every_activation
def test_script_of_the_page(name):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on PATH to run the script of the page")
    code = (
        f"const functions = {{{_functions()}}}; "
        f"const z = {json.dumps(Z.tolist())}; "
        f"console.log(JSON.stringify([[1, 0], [0, 1], [2, -3]].map("
        f"([a, b]) => z.map((z) => functions.{name}(z, a, b)))))"
    )
    done = subprocess.run([node, "-e", code], capture_output=True, text=True, check=True)
    phi = FORMULAS[name](Z)
    truth = [a * phi.real + b * phi.imag for a, b in ([1, 0], [0, 1], [2, -3])]
    np.testing.assert_allclose(json.loads(done.stdout), truth, rtol=0, atol=1e-14)


@every_activation
def test_closed_forms(name):
    row, phi = ACTIVATIONS[name], FORMULAS[name](Z)
    if row.is_wave:
        wave = row.turn * np.exp(1j * Z)
        np.testing.assert_allclose(wave if row.is_complex else wave.real, phi, rtol=0, atol=1e-15)
        law = FeatureLaw(1, orders=(1,), bias="none", activation=name)
        # E φ(w)φ(w)* for w ~ N(0, 1) by quadrature.
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        truth = weights @ np.abs(FORMULAS[name](nodes)) ** 2 / weights.sum()
        assert law.kernel(np.ones((1, 1)))[0, 0] == pytest.approx(truth, rel=1e-12)
    if row.logistic is not None:
        lower, upper, steepness = row.logistic
        curve = lower + (upper - lower) / (1 + np.exp(-steepness * Z))
        np.testing.assert_allclose(curve, phi, rtol=0, atol=1e-15)


@pytest.mark.parametrize("documented", [FeatureLaw, SparseRandomFeatures, HARFERegressor])
def test_docstrings_list_every_activation(documented):
    listed = ", ".join(f'"{name}"' for name in ACTIVATIONS)
    assert f"activation : {{{listed}}}" in documented.__doc__


@pytest.mark.parametrize("forms", [{}, {"turn": 1, "onnx": lambda graph, z: z}])
def test_a_row_states_its_graph_exactly_once(forms):
    with pytest.raises(TypeError, match="exactly one of turn, logistic and onnx"):
        Activation("bump", 9, ("bump", 1), "%s", lambda sympy, z: z, ("z",), **forms)
