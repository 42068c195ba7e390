"""How numbers, names and functions of a formula are written: as text, or as LaTeX."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from harfe.features.activations import ACTIVATIONS
from harfe.features.units import Asinh, Log, Warp

# Names used by the formula itself with its clips and warps, and by the inverse of a link.
_TEXT_WORDS = {*ACTIVATIONS, "clip", "minimum", "maximum", "log", "asinh", "rank", "interp"}
_LINK_WORDS = {"mean", "inverse_yeo_johnson"}

# Powers of ten between which numbers are written out.
_PLAIN = range(-4, 6)

# Characters that are special in LaTeX or matplotlib, and replacements that both understand.
_LATEX_ESCAPES = {c: f"\\{c}" for c in "_%#$&{}"}
_LATEX_SYMBOLS = {"\\": r"\backslash", "^": r"\wedge", "~": r"\sim"}


@dataclass(frozen=True)
class Style:
    """How numbers, names, products and functions are written."""

    number: Callable[[float], str]
    name: Callable[[str], str]
    left: Callable[[str], str]
    times: str
    imaginary: str
    call: Callable[[str, str], str]
    clip: Callable[[str, str | None, str | None], str]
    warp: Callable[[str, Warp], str]
    # The knots of a rank, and what separates them from the lines before.
    knots: Callable[[str, Iterable[str], Iterable[str]], str]
    below: str
    # The inverses of links: a function of the sum; for Yeo-Johnson also of its power.
    exp: Callable[[str], str]
    unbend: Callable[[str, str], str]
    # The sum plus residuals, and the mean over them.
    shifted: Callable[[str, str], str]
    mean: Callable[[str, str], str]


def _rounded(value: float, precision: int) -> Decimal:
    """Round to `precision` significant digits, fewer if those are exact."""
    text = f"{value:.{precision}g}"
    return Decimal(repr(value) if float(text) == value else text).normalize()


def _mantissa(number: Decimal) -> tuple[str, int]:
    """Digits and power of ten; the power is 0 if the number is written out."""
    if number == 0 or number.adjusted() in _PLAIN:
        return f"{number:f}", 0
    return f"{number.scaleb(-number.adjusted()):f}", number.adjusted()


def _shifted(name: str, warp: Asinh, number: Callable[[float], str]) -> str:
    """Numerator of asinh((x - centre) / scale)."""
    sign = "+" if warp.centre < 0 else "-"
    return f"{name} {sign} {number(abs(warp.centre))}" if warp.centre else name


def text_style(precision: int, linked: bool) -> Style:
    """Text with this many significant digits; more names are in use if the sum has a link."""
    words = _TEXT_WORDS | _LINK_WORDS if linked else _TEXT_WORDS

    def number(value: float) -> str:
        mantissa, power = _mantissa(_rounded(value, precision))
        return f"{mantissa}e{power}" if power else mantissa

    def name(column: str) -> str:
        plain = column.isidentifier() and not keyword.iskeyword(column)
        if plain and column not in words:
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

    return Style(
        number,
        name,
        str,
        "*",
        "j",
        call,
        clip,
        warp,
        knots,
        "\n",
        exp=lambda inner: f"exp({inner})",
        unbend=lambda inner, power: f"inverse_yeo_johnson({inner}, {power})",
        shifted=lambda inner, residuals: f"{inner} + [{residuals}]",
        mean=lambda value, _: f"mean({value})",
    )


def latex_style(precision: int) -> Style:
    """LaTeX with this many significant digits."""

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

    return Style(
        number,
        _latex_name,
        _latex_name,
        r"\,",
        "i",
        call,
        clip,
        warp,
        knots,
        r",\quad ",
        exp=lambda inner: rf"\exp\left({inner}\right)",
        unbend=lambda inner, power: rf"\psi^{{-1}}_{{{power}}}\left({inner}\right)",
        shifted=lambda inner, _: f"{inner} + r",
        mean=lambda value, residuals: (
            rf"\operatorname{{mean}}_{{r \in \{{{residuals}\}}}}\," + value
        ),
    )


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
