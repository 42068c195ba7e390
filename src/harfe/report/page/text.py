"""Words and numbers of a report page: digits, escapes, tables."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

MISSING = "–"

_MINUS = "−"


class Markup(str):
    """Text that is markup already."""


def escape(text: Any) -> str:
    """Text that is no markup, also within quotes."""
    return html.escape(str(text), quote=True)


def number(value: Any, digits: int = 4) -> str:
    """So many significant digits, written out from 0.0001 to a million."""
    if value is None or not math.isfinite(value):
        return MISSING
    if isinstance(value, int) or value == 0:
        text = str(int(value))
    elif 1e-4 <= abs(value) < 1e6:
        places = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
        text = f"{value:.{places}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    else:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        text = f"{mantissa}e{int(power)}"
    return text.replace("-", _MINUS)


def aligned(values: Sequence[Any]) -> list[str]:
    """Numbers of a column with the same decimals, where one choice suits all of them."""
    sizes = [abs(v) for v in values if v]
    if not sizes or max(sizes) > 1e4 * min(sizes) or not 1e-4 <= min(sizes) <= max(sizes) < 1e6:
        return [number(value) for value in values]
    places = max(3 - math.floor(math.log10(max(sizes))), 2 - math.floor(math.log10(min(sizes))), 0)
    return [MISSING if v is None else _plain(v, places) for v in values]


def fixed(value: Any, places: int = 3) -> str:
    """A number with so many decimals."""
    return MISSING if value is None else _plain(value, places)


def _plain(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", _MINUS)


def columns_alike(values: Sequence[float], *, sign: bool = False) -> list[str]:
    """Numbers of a column with the decimals that a thousandth of the largest has."""
    largest = max(map(abs, values), default=0.0)
    if not 1e-6 <= largest < 1e6:
        return [signed(v) if sign else number(v) for v in values]
    places = max(2 - math.floor(math.log10(largest)), 0)
    texts = [_plain(v, places) for v in values]
    return [f"+{t}" if sign and v > 0 else t for t, v in zip(texts, values, strict=True)]


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign."""
    return ("+" if value > 0 else "") + number(value, digits)


def percent(share: Any) -> str:
    """A share as a percentage with two or three digits."""
    if share is None:
        return MISSING
    value = 100 * float(share)
    if abs(value) < 0.05:
        return "0\u00a0%" if value == 0 else "<\u00a00.1\u00a0%"
    return f"{value:.1f}\u00a0%".replace("-", _MINUS)


def plural(count: int, word: str, words: str = "") -> str:
    """A count and its noun."""
    return f"{count} {word if count == 1 else words or word + 's'}"


def breakable(name: Any) -> Markup:
    """A name that may go on in the next line after an underscore."""
    return Markup(escape(name).replace("_", "_<wbr>"))


def listed(names: Sequence[str], most: int = 30) -> str:
    """Names with commas, the first ones of many; escaped."""
    shown = ", ".join(escape(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    kind: str = "",
) -> str:
    """A table whose first column names its rows; numbers stand to the right.

    Cells are text (escaped), `Markup`, or numbers.
    """
    lines = [list(row) for row in rows]
    right = [
        k > 0
        and kind != "facts"
        and all(not isinstance(row[k], str) or _looks_numeric(row[k]) for row in lines)
        for k in range(len(head))
    ]
    if all(right[1:]):
        # Said once for the whole table: a page has thousands of cells.
        right, kind = [False] * len(head), f"numbers {kind}".rstrip()
    titles = "".join(
        f'<th scope="col"{_right(right[k])}>{breakable(title)}</th>' for k, title in enumerate(head)
    )
    body = []
    for row in lines:
        cells = [f'<th scope="row">{_cell(row[0])}</th>']
        cells += [f"<td{_right(right[k])}>{_cell(row[k])}</td>" for k in range(1, len(row))]
        body.append(f"<tr>{''.join(cells)}</tr>")
    name = f' class="{kind}"' if kind else ""
    above = f'<caption class="hidden">{escape(caption)}</caption>' if caption else ""
    return (
        f'<div class="scroll"><table{name}>{above}<thead><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def details(title: str, content: str) -> str:
    """Content that is shown on demand."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _cell(value: Any) -> str:
    if isinstance(value, Markup):
        return str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, int | float):
        return number(value)
    return escape(value)


def _right(right: bool) -> str:
    return ' class="number"' if right else ""


def _looks_numeric(text: str) -> bool:
    return bool(text) and text[0] in "0123456789+−–<±" and not isinstance(text, Markup)
