"""The fitted function as a formula: text, LaTeX, or a sympy expression.

    f(x) = intercept + Σ_j c_j φ(<x, w_j> + b_j), the largest |c_j| first.

Text and LaTeX are for reading and have `precision` digits; with 17 the text equals the function up
to rounding. Real parts are written out: Re c·exp(iz) = |c|·cos(z + arg c). With a link, the sum is
inside its inverse, averaged over residuals if it has any.
"""

from __future__ import annotations

import cmath
import keyword
import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harfe._core.arguments import check_choice, check_count, is_whole
from harfe.features.activations import ACTIVATIONS
from harfe.features.units import Asinh, InputMap, Log, Rank, Warp
from harfe.model.expansion import Expansion
from harfe.model.formula_styles import Style, latex_style, text_style
from harfe.model.link import Link

KINDS = ("text", "latex", "sympy")

# Names used by clips and warps in the code that sympy generates.
_CLIP_WORDS = {"reduce", "minimum", "maximum", "Min", "Max"}
_WARP_WORDS = {"log", "asinh", "arcsinh", "select", "less", "nan", "Piecewise"}


def formula(expansion: Expansion, kind: str = "text", precision: int = 3, target: int = 0) -> Any:
    """Return a fitted function as a formula.

    Parameters
    ----------
    expansion : Expansion
    kind : {"text", "latex", "sympy"}, default="text"
        Text such as ``y = 0.52 + 1.3*sin(0.31*age - 1.2*bmi + 0.5)``, with names that are not
        identifiers in backquotes; LaTeX without dollar signs; or a sympy.Expr with all digits and
        the symbols of :func:`input_symbols`. Inputs that are warped by rank appear as
        ``rank(age)``, which is piecewise linear; text and LaTeX end with its knots. With a
        Yeo-Johnson link, text has ``inverse_yeo_johnson(sum, power)``, and LaTeX ψ⁻¹ with the
        power as its index.
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
    digits, link = int(precision), expansion.link
    style = text_style(digits, link is not None) if kind == "text" else latex_style(digits)
    right = _sum(expansion, int(target), style)
    if link is not None:
        right = _linked(link, right, style)
    left = style.left(_left(expansion, int(target)))
    return style.below.join([f"{left} = {right}", *_ranks(expansion, int(target), style)])


def link_formula(link: Link, target: str, precision: int = 3) -> str:
    """Return how the sum on the scale of a link becomes the prediction, as text."""
    return f"{target} = {_linked(link, link.label(target), text_style(precision, linked=True))}"


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


def _sum(expansion: Expansion, target: int, style: Style) -> str:
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


def _linked(link: Link, inner: str, style: Style) -> str:
    """The link's mean of a sum."""
    ends = _signed(link.lower, style), _signed(link.upper, style)
    if link.kind == "log":
        value = style.exp(style.clip(inner, *ends))
        return value if link.factor == 1 else style.number(link.factor) + style.times + value
    residuals = ", ".join(_signed(r, style) for r in link.residuals)
    shifted = style.shifted(inner, residuals) if residuals else inner
    value = style.unbend(style.clip(shifted, *ends), _signed(link.power, style))
    if residuals:
        value = style.mean(value, residuals)
    return _joined([(link.centre, ""), (link.unit, value)], style)


def _joined(parts: Iterable[tuple[Any, str]], style: Style) -> str:
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


def _input(expansion: Expansion, k: int, style: Style) -> str:
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


def _ranks(expansion: Expansion, target: int, style: Style) -> list[str]:
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


def _signed(value: float, style: Style) -> str:
    return f"{'-' if value < 0 else ''}{style.number(abs(value))}"


def _left(expansion: Expansion, target: int) -> str:
    """Name of the target: y, or another letter if an input has that name."""
    number = str(target) if len(expansion.coef) > 1 else ""
    letters = ("y", "f", "prediction", "predicted_value")
    return next(
        (letter + number for letter in letters if letter + number not in expansion.columns),
        "output" + number,
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
    total = sympy.Add(*parts)
    return total if expansion.link is None else _sympy_of_link(expansion.link, total, sympy)


def _sympy_of_link(link: Link, total: Any, sympy: Any) -> Any:
    """The link's mean of a sum; both sides of Yeo-Johnson are 0 on the other one."""

    def clipped(eta: Any) -> Any:
        return sympy.Min(sympy.Max(eta, link.lower), link.upper)

    def unbend(eta: Any, power: float) -> Any:
        eta = sympy.Max(eta, 0)
        return ((1 + power * eta) ** (1 / power) if power else sympy.exp(eta)) - 1

    if link.kind == "log":
        return link.factor * sympy.exp(clipped(total))
    etas = [clipped(total + r) for r in link.shifts]
    values = [unbend(eta, link.power) - unbend(-eta, 2 - link.power) for eta in etas]
    return link.centre + link.unit * sympy.Add(*values) / len(values)


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
