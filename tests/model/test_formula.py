"""Formulas as text, LaTeX and sympy: each evaluates to the prediction."""

import re
from dataclasses import replace

import numpy as np
import pytest
import sympy
from matplotlib.mathtext import MathTextParser
from shared import FORMULAS

from harfe import Expansion, HARFERegressor
from harfe.features.pool import FeaturePool
from harfe.features.units import Asinh, InputMap, Log, Rank
from harfe.model.formula import formula, input_symbols

ODD = ("blood pressure", "größe", "1st", "a b", "a_b", "E", "I", "lambda", "sin", "exp", "x²", "x2")
WORDS = {
    **FORMULAS,
    "exp": np.exp,
    "clip": np.clip,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "log": np.log,
    "asinh": np.arcsinh,
    "interp": np.interp,
}


def make(activation="sin", *, targets=1, complex_output=False, columns=None, bounds=None, seed=0):
    """An expansion with features of order 0 to 3 and numbers of all sizes."""
    rng = np.random.default_rng(seed)
    d, s = len(columns) if columns else 5, 12
    indices = np.array([np.sort(rng.choice(d, 3, replace=False)) for _ in range(s)])
    values = rng.normal(size=(s, 3)) * 10.0 ** rng.integers(-6, 1, (s, 3))
    indices[:4, 2], values[:4, 2] = -1, 0
    values[2], values[3, 0] = 0, 0
    coef = rng.normal(size=(targets, s)) * 10.0 ** rng.integers(-5, 2, (targets, s))
    intercept = rng.normal(size=targets)
    if complex_output or activation == "exp":
        coef = coef * np.exp(1j * rng.uniform(0, 6, coef.shape))
    if complex_output:
        intercept = intercept + 0.5j
    pool = FeaturePool(d, indices, values, rng.normal(size=s) * 9, activation)
    names = columns or tuple(f"x{k}" for k in range(d))
    return Expansion(pool, coef, intercept, names, complex_output, bounds)


def clipping(d):
    """Bounds on both sides, one side, no side."""
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    lower[:2], upper[0], upper[2] = -0.5, 0.25, 1e-3
    return InputMap(lower, upper)


def warping(d):
    """Each warp, with and without bounds, and an input with bounds alone."""
    knots, values = np.array([-1.5, -0.2, 0.1, 2.0]), np.array([0.05, 0.3, 0.8, 1.0])
    warps = (Log(), Asinh(-0.3, 0.07), Rank(knots, values), Asinh(0.0, 2.0), None)
    lower = np.array([0.1, -1.0, -1.5, -np.inf, -1.0])
    upper = np.array([np.inf, 1.0, 2.0, np.inf, np.inf])
    return InputMap(lower, upper, warps)


def rows(expansion, n=40):
    return np.random.default_rng(1).normal(size=(n, len(expansion.columns))) * 2


def eval_text(text, columns, X):
    """Evaluate as Python does, with names in backquotes replaced by hand."""
    text, *ranks = text.partition(" = ")[2].split("\n")
    for line in ranks:
        name, _, value = line.partition(" = ")
        text = text.replace(name, value)
    names = {f"column_{k}": X[:, k] for k in range(len(columns))}
    for k, name in enumerate(columns):
        text = text.replace(f"`{name}`", f"column_{k}")
    plain = {name: X[:, k] for k, name in enumerate(columns) if name not in WORDS}
    return eval(text, {"__builtins__": {}}, {**plain, **WORDS, **names})


def eval_sympy(expansion, X, target=0):
    function = sympy.lambdify(input_symbols(expansion), formula(expansion, "sympy", target=target))
    return function(*X.T)


CASES = [
    *({"activation": name} for name in FORMULAS),
    *({"activation": name, "complex_output": True} for name in ("sin", "exp", "relu")),
    *({"activation": name, "bounds": clipping(5)} for name in ("sin", "relu")),
    *({"activation": name, "bounds": warping(5)} for name in ("sin", "relu")),
    {"columns": ODD},
]
# Not for text, in which equal names cannot be told apart.
EQUAL_NAMES = {"columns": ("a", "a", "a_2", "a 2", "")}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_text_with_all_digits_evaluates_to_predict(case):
    expansion = make(**case)
    X = rows(expansion)
    text = formula(expansion, precision=17)
    np.testing.assert_allclose(
        eval_text(text, expansion.columns, X), expansion.predict(X)[:, 0], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("case", [*CASES, EQUAL_NAMES], ids=str)
def test_sympy_evaluates_to_predict(case):
    expansion = make(**case)
    X = rows(expansion)
    expected = expansion.predict(X)[:, 0]
    found = eval_sympy(expansion, X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert np.isrealobj(found) == np.isrealobj(expected)


@pytest.mark.parametrize("case", [*CASES, EQUAL_NAMES], ids=str)
def test_latex_can_be_drawn(case):
    text = formula(make(**case), "latex")
    # Text that cannot be parsed raises; parsed text has glyphs and a width.
    drawn = MathTextParser("path").parse(f"${text}$")
    assert drawn.glyphs
    assert drawn.width > 0


def test_warps_are_named_and_knots_stand_below():
    text = formula(make(bounds=warping(5)), precision=3)
    total, knots = text.split("\n")
    for name in (
        "log(maximum(x0, 0.1))",
        "asinh((clip(x1, -1, 1) + 0.3)/0.07)",
        "*rank(x2)",
        "asinh(x3/2)",
        "*maximum(x4, -1)",
    ):
        assert name in total
    assert knots == "rank(x2) = interp(x2, [-1.5, -0.2, 0.1, 2], [0.05, 0.3, 0.8, 1])"
    latex = formula(make(bounds=warping(5)), "latex")
    assert r"\log\left(\max\left(x_{0}, 0.1\right)\right)" in latex
    assert r"\mathrm{asinh}\left(\frac{x_{3}}{2}\right)" in latex
    assert latex.endswith("(-1.5, 0.05), (-0.2, 0.3), (0.1, 0.8), (2, 1)")


def test_every_target_has_its_formula():
    expansion = make(targets=3)
    X = rows(expansion)
    for t in range(3):
        text = formula(expansion, precision=17, target=t)
        assert text.startswith(f"y{t} = ")
        found = eval_text(text, expansion.columns, X)
        np.testing.assert_allclose(found, expansion.predict(X)[:, t], rtol=0, atol=1e-10)
        np.testing.assert_allclose(eval_sympy(expansion, X, t), found, rtol=0, atol=1e-10)


def by_hand(**changes):
    pool = FeaturePool(
        3,
        np.array([[0, 1], [2, -1]]),
        np.array([[0.3149, -1.2], [0.5, 0.0]]),
        np.array([0.5, -2 * np.pi - 1.0]),
        "sin",
    )
    columns = ("age", "body_mass index", "x1")
    whole = Expansion(pool, np.array([[-1.3, 2512.5]]), np.array([0.52]), columns)
    return replace(whole, **changes)


def test_text_by_hand():
    """Largest coefficient first, digits, signs, quotes, whole turns removed."""
    expected = "y = 0.52 + 2510*sin(0.5*x1 - 1) - 1.3*sin(0.315*age - 1.2*`body_mass index` + 0.5)"
    assert formula(by_hand()) == expected


def test_zeros_are_left_out():
    some = by_hand(coef=np.array([[0.0, 2.5]]), intercept=np.zeros(1))
    assert formula(some) == "y = 2.5*sin(0.5*x1 - 1)"


def test_latex_by_hand():
    expected = (
        r"y = 0.52 + 2510\,\sin\left(0.5\,x_{1} - 1\right)"
        r" - 1.3\,\sin\left(0.315\,\text{age} - 1.2\,\text{body\_mass index} + 0.5\right)"
    )
    assert formula(by_hand(), "latex") == expected


def test_sympy_by_hand():
    age, bmi, x1 = sympy.symbols("age body_mass_index x1")
    expected = (
        0.52
        + 2512.5 * sympy.sin(0.5 * x1 - 2 * np.pi - 1.0)
        - 1.3 * sympy.sin(0.3149 * age - 1.2 * bmi + 0.5)
    )
    assert formula(by_hand(), "sympy") == expected


@pytest.mark.parametrize(
    ("value", "precision", "text"),
    [
        (0.000123456, 3, "0.000123"),
        (0.0000123456, 3, "1.23e-5"),
        (123456.0, 3, "123000"),
        (1234567.0, 3, "1.23e6"),
        (1234567.0, 17, "1.234567e6"),
        (0.1, 17, "0.1"),
        (2.0, 3, "2"),
        (9.999, 3, "10"),
        (1 / 3, 5, "0.33333"),
    ],
)
def test_numbers(value, precision, text):
    none = FeaturePool(1, np.empty((0, 1), int), np.empty((0, 1)), np.empty(0))
    constant = Expansion(none, np.empty((1, 0)), np.array([-value]), ("x",))
    assert formula(constant, precision=precision) == f"y = -{text}"
    assert formula(replace(constant, intercept=np.zeros(1))) == "y = 0"
    written = formula(constant, "latex", precision=precision)
    assert float(re.sub(r" \\times 10\^{(.*)}", r"e\1", written.removeprefix("y = "))) == -float(
        text
    )


def test_constant_model_as_sympy():
    none = FeaturePool(1, np.empty((0, 1), int), np.empty((0, 1)), np.empty(0))
    assert formula(Expansion(none, np.empty((1, 0)), np.array([1.5]), ("x",)), "sympy") == 1.5


def test_target_is_not_called_like_an_input():
    assert formula(by_hand(columns=("y", "b", "c"))).startswith("f = ")
    assert formula(by_hand(columns=("y", "f", "c"))).startswith("prediction = ")


def test_latex_of_every_mark():
    """Every ASCII character can occur in a name and is drawn, two of them as similar symbols."""
    parser = MathTextParser("path")
    alike = {"^": "∧", "~": "∼"}
    for code in range(32, 127):
        text = formula(by_hand(columns=("p", f"a{chr(code)}1 b", "q")), "latex")
        drawn = {chr(glyph[2]) for glyph in parser.parse(f"${text}$").glyphs}
        assert alike.get(chr(code), chr(code)) in drawn


def test_symbols_are_named_by_columns():
    names = [str(symbol) for symbol in input_symbols(make(columns=ODD))]
    assert names == [
        *("blood_pressure", "größe", "x_1st", "a_b", "a_b_2", "E", "I"),
        *("lambda_", "sin_", "exp_", "x2", "x2_2"),
    ]


def test_sympy_can_be_derived():
    """What sympy is for: its derivative is the gradient."""
    expansion = make("sigmoid")
    X = rows(expansion, 5)
    symbols = input_symbols(expansion)
    slope = sympy.lambdify(symbols, formula(expansion, "sympy").diff(symbols[1]))
    np.testing.assert_allclose(slope(*X.T), expansion.gradient(X)[0, :, 1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "html"}, "kind='html' is not known; choose one of text, latex, sympy"),
        ({"precision": 0}, "precision=0 must be a whole number of at least 1"),
        ({"target": 1}, "target=1 must be a whole number from 0 to 0"),
        ({"target": -1}, "target=-1 must be"),
        ({"target": "y"}, "target='y' must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        formula(by_hand(), **arguments)


def test_without_sympy_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sympy", None)
    with pytest.raises(ImportError, match=re.escape('pip install "harfe[formula]"')):
        formula(by_hand(), "sympy")


def test_method_of_a_fitted_model_with_outliers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    X[0, 0] = 1e4
    model = HARFERegressor(n_components=200, n_nonzero_coefs=8, random_state=0)
    model.fit(X, np.sin(X[:, 1]))
    text = model.formula(precision=17)
    assert "clip(x0, " in text
    found = eval_text(text, ("x0", "x1", "x2"), X)
    np.testing.assert_allclose(found, model.predict(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(eval_sympy(model.expansion_, X), found, rtol=0, atol=1e-10)
