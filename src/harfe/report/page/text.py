"""Format the numbers of a report page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harfe._core import wording

MISSING = "–"

_MINUS = "−"


def number(value: Any, digits: int = 4) -> str:
    """Format with `digits` significant digits, without an exponent from 0.0001 to a million."""
    if value is None or not math.isfinite(value):
        return MISSING
    if isinstance(value, int) or value == 0:
        text = str(int(value))
    elif 1e-4 <= abs(value) < 1e6:
        places = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
        text = _trimmed(f"{value:.{places}f}")
    else:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        text = f"{_trimmed(mantissa)}e{int(power)}"
    return text.replace("-", _MINUS)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def aligned(values: Sequence[Any]) -> list[str]:
    """Format a column with the same number of decimals if one choice suits all numbers."""
    sizes = [abs(v) for v in values if v]
    if not sizes or max(sizes) > 1e4 * min(sizes) or not 1e-4 <= min(sizes) <= max(sizes) < 1e6:
        return [number(value) for value in values]
    places = max(3 - math.floor(math.log10(max(sizes))), 2 - math.floor(math.log10(min(sizes))), 0)
    return [fixed(value, places) for value in values]


def fixed(value: Any, places: int = 3) -> str:
    """Format with a fixed number of decimals."""
    if value is None:
        return MISSING
    text = f"{value:.{places}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", _MINUS)


def columns_alike(values: Sequence[float], *, sign: bool = False) -> list[str]:
    """Format a column with enough decimals for a thousandth of the largest number."""
    largest = max(map(abs, values), default=0.0)
    if 1e-6 <= largest < 1e6:
        places = max(2 - math.floor(math.log10(largest)), 0)
        texts = [fixed(v, places) for v in values]
    else:
        texts = [number(v) for v in values]
    return [f"+{t}" if sign and v > 0 else t for t, v in zip(texts, values, strict=True)]


def percent(share: Any) -> str:
    """Format a share as a percentage without a line break."""
    if share is None:
        return MISSING
    return wording.percent(share).replace(" ", "\u00a0").replace("-", _MINUS)
