"""The fitted function as a formula: text, LaTeX, or a sympy expression.

    f(x) = intercept + Σ_j c_j φ(<x, w_j> + b_j), the largest |c_j| first.

Text and LaTeX are for reading and have `precision` digits; with 17 the text equals the function up
to rounding. Real parts are written out: Re c·exp(iz) = |c|·cos(z + arg c).
"""

from __future__ import annotations

import cmath
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from harfe._core.arguments import check_choice, check_count, is_whole
from harfe.features.activations import ACTIVATIONS
from harfe.features.units import Asinh, InputMap, Log, Rank, Warp
from harfe.model.expansion import Expansion

KINDS = ("text", "latex", "sympy")

# Names used by the formula itself, and by clips and warps in the code that sympy generates.
_TEXT_WORDS = {*ACTIVATIONS, "clip", "minimum", "maximum", "log", "asinh", "rank", "interp"}
_CLIP_WORDS = {"reduce", "minimum", "maximum", "Min", "Max"}
_WARP_WORDS = {"log", "asinh", "arcsinh", "select", "less", "nan", "Piecewise"}

# Powers of ten between which numbers are written out.
_PLAIN = range(-4, 6)

# Characters that are special in LaTeX or matplotlib, and replacements that both understand.
_LATEX_ESCAPES = {c: f"\\{c}" for c in "_%#$&{}"}
_LATEX_SYMBOLS = {"\\": r"\backslash", "^": r"\wedge", "~": r"\sim"}


def formula(expansion: Expansion, kind: str = "text", precision: int = 3, target: int = 0) -> Any:
    """Return a fitted function as a formula.

    Parameters
    ----------
    expansion : Expansion
    kind : {"text", "latex", "sympy"}, default="text"
        Text such as ``y = 0.52 + 1.3*sin(0.31*age - 1.2*bmi + 0.5)``, with names that are not
        identifiers in backquotes; LaTeX without dollar signs; or a sympy.Expr with all digits and
        the symbols of :func:`input_symbols`. Inputs that are warped by rank appear as
        ``rank(age)``, which is piecewise linear; text and LaTeX end with its knots.
    precision : int, default=3
        Significant digits of text and LaTeX.
    target : int, default=0
        Which target.

    Returns
    -------
    str or sympy.Expr
    """
    check_choice("kind", kind, KINDS)
    check_count("precision", precision, 3)
    n_targets = len(expansion.coef)
    if not is_whole(target) or not 0 <= target < n_targets:
        raise ValueError(
            f"target={target!r} must be a whole number from 0 to {n_targets - 1}, as the model has "
            f"{n_targets} target{'s' if n_targets > 1 else ''}; e.g. target=0"
        )
    if kind == "sympy":
        return _as_sympy(expansion, int(target))
    style = (_text if kind == "text" else _latex)(int(precision))
    left = style.left(_left(expansion, int(target)))
    ranks = _ranks(expansion, int(target), style)
    return style.below.join([f"{left} = {_sum(expansion, int(target), style)}", *ranks])


def input_symbols(expansion: Expansion) -> tuple[Any, ...]:
    """Symbols of the inputs in the sympy expression, in the order of the columns.

    They have the names of the columns, made into identifiers: other characters become ``_``,
    keywords and names of functions get another ``_``, and names that then agree are numbered.
    ``sympy.lambdify(input_symbols(expansion), formula(expansion, "sympy"))(*X.T)`` predicts.
    """
    sympy = _sympy()
    taken = _functions(sympy)
    names: list[str] = []
    for column in expansion.columns:
        name = _identifier(column, taken)
        tries = [name, *(f"{name}_{k}" for k in range(2, len(expansion.columns) + 2))]
        names.append(next(name for name in tries if name not in names))
    return tuple(sympy.Symbol(name) for name in names)


@dataclass(frozen=True)
class _Addend:
    """c·φ(Σ w_k x_k + b)."""

    coef: Any
    activation: str
    weights: tuple[tuple[int, float], ...]
    phase: float


def _addends(expansion: Expansion, target: int) -> list[_Addend]:
    """Features with non-zero coefficients, the largest first; real if the output is real."""
    features, coefs = expansion.features, expansion.coef[target]
    addends, present = [], features.present
    for j in np.argsort(-np.abs(coefs), kind="stable"):
        c, activation, phase = coefs[j].item(), features.activation, float(features.phases[j])
        if c == 0:
            continue
        if not expansion.complex_output:
            if features.is_complex:
                activation, phase, c = "cos", phase + cmath.phase(c), abs(c)
            c = c.real
        weights = tuple(
            (int(k), float(w))
            for k, w in zip(
                features.indices[j][present[j]], features.values[j][present[j]], strict=True
            )
        )
        addends.append(_Addend(c, activation, weights, phase))
    return addends


@dataclass(frozen=True)
class _Style:
    """How numbers, names, products and functions are written."""

    number: Callable[[float], str]
    name: Callable[[str], str]
    left: Callable[[str], str]
    times: str
    imaginary: str
    call: Callable[[str, str], str]
    clip: Callable[[str, str | None, str | None], str]
    warp: Callable[[str, Warp], str]
    knots: Callable[[str, Iterable[str], Iterable[str]], str]
    below: str


def _sum(expansion: Expansion, target: int, style: _Style) -> str:
    intercept = expansion.intercept[target].item()
    inputs = [_input(expansion, k, style) for k in range(len(expansion.columns))]
    parts = [(intercept, "")] if intercept != 0 else []
    for addend in _addends(expansion, target):
        phase = addend.phase
        if ACTIVATIONS[addend.activation].is_wave and abs(phase) > math.pi:
            # Weights in the user's units may come with a phase of many turns.
            phase = math.remainder(phase, 2 * math.pi)
        inner: list[tuple[Any, str]] = [(w, inputs[k]) for k, w in addend.weights]
        if phase != 0 or not inner:
            inner.append((phase, ""))
        parts.append((addend.coef, style.call(addend.activation, _joined(inner, style))))
    return _joined(parts or [(0.0, "")], style)


def _joined(parts: Iterable[tuple[Any, str]], style: _Style) -> str:
    """Sum of numbers times factors, with the signs as operators."""
    text = ""
    for value, factor in parts:
        if isinstance(value, complex):
            sign, imaginary = ("-" if value.imag < 0 else "+"), style.number(abs(value.imag))
            real = f"{'-' if value.real < 0 else ''}{style.number(abs(value.real))}"
            negative, number = False, f"({real} {sign} {imaginary}{style.imaginary})"
        else:
            negative, number = value < 0, style.number(abs(value))
        if text:
            text += " - " if negative else " + "
        elif negative:
            text += "-"
        text += number + (style.times + factor if factor else "")
    return text


def _input(expansion: Expansion, k: int, style: _Style) -> str:
    name = style.name(expansion.columns[k])
    if expansion.map is None:
        return name
    warp = expansion.map.warp_of(k)
    ends = (float(expansion.map.lower[k]), float(expansion.map.upper[k]))
    lower, upper = (_signed(end, style) if math.isfinite(end) else None for end in ends)
    # A rank is constant beyond its outer knots.
    if not isinstance(warp, Rank) and not (lower is None and upper is None):
        name = style.clip(name, lower, upper)
    return name if warp is None else style.warp(name, warp)


def _ranks(expansion: Expansion, target: int, style: _Style) -> list[str]:
    """The knots of all ranks in the formula."""
    used = {k for addend in _addends(expansion, target) for k, _ in addend.weights}
    lines = []
    for k in sorted(used):
        warp = None if expansion.map is None else expansion.map.warp_of(k)
        if isinstance(warp, Rank):
            knots = [_signed(knot, style) for knot in warp.knots.tolist()]
            values = [_signed(value, style) for value in warp.values.tolist()]
            lines.append(style.knots(style.name(expansion.columns[k]), knots, values))
    return lines


def _shifted(name: str, warp: Asinh, number: Callable[[float], str]) -> str:
    """Numerator of asinh((x - centre) / scale)."""
    sign = "+" if warp.centre < 0 else "-"
    return f"{name} {sign} {number(abs(warp.centre))}" if warp.centre else name


def _signed(value: float, style: _Style) -> str:
    return f"{'-' if value < 0 else ''}{style.number(abs(value))}"


def _left(expansion: Expansion, target: int) -> str:
    """Name of the target: y, or another letter if an input has that name."""
    number = str(target) if len(expansion.coef) > 1 else ""
    letters = ("y", "f", "prediction", "predicted_value")
    return next(
        (letter + number for letter in letters if letter + number not in expansion.columns),
        "output" + number,
    )


def _rounded(value: float, precision: int) -> Decimal:
    """Round to `precision` significant digits, fewer if those are exact."""
    text = f"{value:.{precision}g}"
    return Decimal(repr(value) if float(text) == value else text).normalize()


def _mantissa(number: Decimal) -> tuple[str, int]:
    """Digits and power of ten; the power is 0 if the number is written out."""
    if number == 0 or number.adjusted() in _PLAIN:
        return f"{number:f}", 0
    return f"{number.scaleb(-number.adjusted()):f}", number.adjusted()


def _text(precision: int) -> _Style:
    def number(value: float) -> str:
        mantissa, power = _mantissa(_rounded(value, precision))
        return f"{mantissa}e{power}" if power else mantissa

    def name(column: str) -> str:
        plain = column.isidentifier() and not keyword.iskeyword(column)
        if plain and column not in _TEXT_WORDS:
            return column
        return "`" + column.replace("`", "'") + "`"

    def call(activation: str, inner: str) -> str:
        is_complex = ACTIVATIONS[activation].is_complex
        return f"{activation}(1j*({inner}))" if is_complex else f"{activation}({inner})"

    def clip(name: str, lower: str | None, upper: str | None) -> str:
        if lower is not None and upper is not None:
            return f"clip({name}, {lower}, {upper})"
        return f"minimum({name}, {upper})" if lower is None else f"maximum({name}, {lower})"

    def warp(name: str, warp: Warp) -> str:
        if isinstance(warp, Asinh):
            inner = _shifted(name, warp, number)
            return f"asinh({f'({inner})' if warp.centre else inner}/{number(warp.scale)})"
        return f"log({name})" if isinstance(warp, Log) else f"rank({name})"

    def knots(name: str, at: Iterable[str], values: Iterable[str]) -> str:
        return f"rank({name}) = interp({name}, [{', '.join(at)}], [{', '.join(values)}])"

    return _Style(number, name, str, "*", "j", call, clip, warp, knots, "\n")


def _latex(precision: int) -> _Style:
    def number(value: float) -> str:
        mantissa, power = _mantissa(_rounded(value, precision))
        return rf"{mantissa} \times 10^{{{power}}}" if power else mantissa

    def call(activation: str, inner: str) -> str:
        return ACTIVATIONS[activation].latex % inner

    def clip(name: str, lower: str | None, upper: str | None) -> str:
        inner = name if lower is None else rf"\max\left({name}, {lower}\right)"
        return inner if upper is None else rf"\min\left({inner}, {upper}\right)"

    def warp(name: str, warp: Warp) -> str:
        if isinstance(warp, Asinh):
            inner = rf"\frac{{{_shifted(name, warp, number)}}}{{{number(warp.scale)}}}"
            return rf"\mathrm{{asinh}}\left({inner}\right)"
        function = r"\log" if isinstance(warp, Log) else r"\mathrm{rank}"
        return rf"{function}\left({name}\right)"

    def knots(name: str, at: Iterable[str], values: Iterable[str]) -> str:
        points = ", ".join(f"({x}, {z})" for x, z in zip(at, values, strict=True))
        return rf"\mathrm{{rank}}\left({name}\right)\text{{ is linear between }}{points}"

    below = r",\quad "
    return _Style(number, _latex_name, _latex_name, r"\,", "i", call, clip, warp, knots, below)


def _latex_name(column: str) -> str:
    """A letter with a number as x_{1}, anything else as upright text."""
    letter = re.fullmatch("([A-Za-z])([0-9]*)", column)
    if letter:
        return letter[1] + (f"_{{{letter[2]}}}" if letter[2] else "")
    # \text of matplotlib and of LaTeX agree on backslashes before these, but not on \ ^ and ~.
    pieces = re.split(r"([\\^~])", re.sub(r"\s", " ", column))
    return "".join(
        _LATEX_SYMBOLS.get(piece)
        or r"\text{" + "".join(_LATEX_ESCAPES.get(c, c) for c in piece) + "}"
        for piece in pieces
        if piece
    )


def _identifier(column: str, taken: set[str]) -> str:
    # Python treats names that agree in this form as the same.
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", column))
    if not name.isidentifier():
        name = f"x_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in taken else name


def _functions(sympy: Any) -> set[str]:
    """Names of functions in the code that sympy generates from an expression."""
    z = sympy.Symbol("z")
    kind = sympy.core.function.Application
    calls = [call for row in ACTIVATIONS.values() for call in row.sympy(sympy, z).atoms(kind)]
    return _CLIP_WORDS | _WARP_WORDS | {type(call).__name__ for call in calls}


def _as_sympy(expansion: Expansion, target: int) -> Any:
    sympy = _sympy()
    inputs = list(input_symbols(expansion))
    own = expansion.map or InputMap.identity(len(inputs))
    for k in range(len(inputs)):
        lower, upper, warp = own.lower[k], own.upper[k], own.warp_of(k)
        if math.isfinite(lower):
            inputs[k] = sympy.Max(inputs[k], float(lower))
        if math.isfinite(upper):
            inputs[k] = sympy.Min(inputs[k], float(upper))
        if warp is not None:
            inputs[k] = _warped(sympy, inputs[k], warp)
    parts = [sympy.sympify(expansion.intercept[target].item())]
    for addend in _addends(expansion, target):
        z = sympy.Add(addend.phase, *(w * inputs[k] for k, w in addend.weights))
        phi = ACTIVATIONS[addend.activation].sympy(sympy, z)
        parts.append(sympy.sympify(addend.coef) * phi)
    return sympy.Add(*parts)


def _warped(sympy: Any, x: Any, warp: Warp) -> Any:
    if isinstance(warp, Log):
        return sympy.log(x)
    if isinstance(warp, Asinh):
        return sympy.asinh((x - warp.centre) / warp.scale)
    knots, values = warp.knots.tolist(), warp.values.tolist()
    lines = [(values[0], x <= knots[0])]
    for i in range(len(knots) - 1):
        slope = (values[i + 1] - values[i]) / (knots[i + 1] - knots[i])
        lines.append((values[i] + slope * (x - knots[i]), x <= knots[i + 1]))
    return sympy.Piecewise(*lines, (values[-1], True))


def _sympy() -> Any:
    try:
        import sympy
    except ImportError as error:
        raise ImportError(
            'kind="sympy" needs sympy: pip install "harfe[formula]"; or use kind="text"'
        ) from error
    return sympy
