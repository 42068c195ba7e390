"""Infer from the training rows what each column holds: numbers or categories, levels, medians.

Columns that would harm the model (names, dates, numbers with a unit) are rejected with an error
that says what to do. Columns without information are left out with a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.tables.columns import (
    Column,
    Frame,
    Hint,
    TableError,
    is_missing,
    level,
    numbers,
    without,
)

# A text column with more levels than this, or than half of the rows, is taken to hold names.
MOST_LEVELS = 50

# Whole numbers that rise by one over at least this many rows look like row numbers.
_COUNTED_ROWS = 10

_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b.*")
_WITH_UNIT = re.compile(r"([$€£¥]?)\s*[+-]?\d[\d.,]*\s*([^\d\s]{0,4})")
_MOST_UNITS = 3


@dataclass(frozen=True)
class Learned:
    """Columns as keyword arguments of `InputColumn`, and the columns left out."""

    columns: tuple[dict[str, Any], ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]


def learn_columns(
    frame: Frame,
    inputs: Sequence[int],
    categories: Collection[int],
    present: NDArray[np.bool_],
    drops: bool,
    na: Sequence[str],
) -> Learned:
    """Describe the columns that can serve as inputs.

    Parameters
    ----------
    frame : Frame
    inputs, categories : places of columns
        All possible inputs, and those that hold categories even if they look like numbers.
    present : array of bool, shape (rows,)
        Rows that have a target.
    drops : bool
        Whether to leave out rows with missing values.
    na : sequence of str
    """
    values = _readable(frame, inputs, categories, na)
    left_out: dict[str, str] = {}
    rows = present
    # Twice: empty columns must not cost rows, and dropping rows may leave a column constant.
    for _ in range(2):
        for j in list(values):
            reason = _why_useless(values[j], rows, na)
            if reason:
                left_out[frame.names[j]] = reason
                del values[j]
        if drops:
            rows = present & ~np.logical_or.reduce(
                [_absent(values[j], na) for j in values] or [~present]
            )
            if not rows.any() and values:
                raise _no_complete_rows(frame, values, present, na)
    columns, notes = [], [f"column {name!r} is left out: {why}" for name, why in left_out.items()]
    for j, column in values.items():
        columns.append(_described(frame.names[j], column, rows, na))
        if isinstance(column, np.ndarray) and _counts_rows(column):
            drop = Hint("drop", [frame.names[j]])
            notes.append(
                f"column {frame.names[j]!r} numbers the rows; if it is not an input, leave it out: "
                f"{drop.typed()}, or in Python {drop}"
            )
    if not rows.all():
        kept, every = int(rows.sum()), len(rows)
        what = "values are" if drops else "the target is"
        notes.append(f"{every - kept} of {every} rows are left out because {what} missing")
    return Learned(tuple(columns), left_out, tuple(notes))


def _readable(
    frame: Frame, inputs: Sequence[int], categories: Collection[int], na: Sequence[str]
) -> dict[int, Column]:
    """Return columns as numbers, or as texts that are categories; reject others."""
    values: dict[int, Column] = {}
    names: list[int] = []
    for j in inputs:
        column = frame.columns[j]
        if j in categories:
            texts = column if isinstance(column, tuple) else tuple(map(_text, without(column, na)))
            values[j] = texts
        elif isinstance(column, tuple):
            read, odd = numbers(column, frame.decimal, na)
            if not odd:
                values[j] = read
                continue
            if np.count_nonzero(np.isfinite(read)) > len(odd):
                raise _odd_numbers(frame, j, odd)
            values[j] = column
            count = len({level(text) for text in column if not is_missing(text, na)})
            if count > MOST_LEVELS or 2 * count > len(column):
                names.append(j)
        else:
            values[j] = without(column, na)
    if names:
        raise _too_many_levels(frame, names, na)
    for j, column in values.items():
        if isinstance(column, np.ndarray) and np.isinf(column).any():
            raise TableError(
                f"column {frame.names[j]!r} is infinite in "
                f"{frame.where(int(np.argmax(np.isinf(column))))}: correct it, or pass {{na}} if "
                "this marks a missing value",
                na=Hint("na", ["inf", "-inf"]),
            )
    return values


def _text(value: float) -> str:
    return "" if np.isnan(value) else level(float(value))


def _odd_numbers(frame: Frame, j: int, odd: Sequence[int]) -> TableError:
    name, column = frame.names[j], frame.columns[j]
    texts = list(dict.fromkeys(str(column[place]) for place in odd))
    more = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
    return TableError(
        f"column {name!r} holds numbers, but {texts[0]!r} in {frame.where(odd[0])}{more} is not "
        "one: correct it, pass {na} if it marks a missing value, or {categories} if the column "
        "holds categories",
        na=Hint("na", texts[:3]),
        categories=Hint("categories", [name]),
    )


def _too_many_levels(frame: Frame, places: Sequence[int], na: Sequence[str]) -> TableError:
    """Return one error for all columns, so that the user can fix them at once."""
    names = [frame.names[j] for j in places]
    texts = [text for text in map(str, frame.columns[places[0]]) if not is_missing(text, na)]
    count = len({level(text) for text in texts})
    drop, keep = Hint("drop", names), Hint("categories", names)
    if len(names) > 1:
        what = f"columns {', '.join(map(repr, names))} hold text with too many different values"
    elif all(_DATE.fullmatch(text.strip()) for text in texts):
        return TableError(
            f"column {names[0]!r} holds dates, e.g. {texts[0]!r}, which are not numbers: pass "
            "{drop} to leave it out, or put the year, the month or the days since a start date "
            "in columns of their own",
            drop=drop,
        )
    elif _have_units(texts):
        return TableError(
            f"column {names[0]!r} holds numbers with a symbol or a unit, e.g. {texts[0]!r}: write "
            "the bare numbers, or pass {drop} to leave it out",
            drop=drop,
        )
    else:
        what = (
            f"column {names[0]!r} holds text with {count} different values in {len(texts)} rows, "
            f"e.g. {texts[0]!r}"
        )
    return TableError(
        f"{what}: pass {{drop}} to leave out text that only names the rows, or {{keep}} to treat "
        "it as categories",
        drop=drop,
        keep=keep,
    )


def _have_units(texts: Sequence[str]) -> bool:
    """Whether these are numbers with one of a few symbols or units, not codes like 12A, 12B."""
    found = [_WITH_UNIT.fullmatch(text.strip()) for text in texts]
    units = {match.groups() if match else None for match in found}
    return None not in units and len(units) <= _MOST_UNITS


def _no_complete_rows(
    frame: Frame, values: dict[int, Column], present: NDArray[np.bool_], na: Sequence[str]
) -> TableError:
    gaps = {j: int(np.count_nonzero(_absent(values[j], na)[present])) for j in values}
    worst = max(gaps, key=lambda j: gaps[j])
    return TableError(
        f"no row of {frame.source} has a value in every column (column {frame.names[worst]!r} "
        f"lacks {gaps[worst]} of {int(present.sum())}): pass {{median}}, or {{drop}} to leave the "
        "column out",
        median=Hint("missing", "median"),
        drop=Hint("drop", [frame.names[worst]]),
    )


def _absent(column: Column, na: Sequence[str]) -> NDArray[np.bool_]:
    if isinstance(column, tuple):
        return np.array([is_missing(text, na) for text in column], dtype=bool)
    return np.isnan(column)


def _why_useless(column: Column, rows: NDArray[np.bool_], na: Sequence[str]) -> str | None:
    """Return why a column carries no information; None if it does."""
    if isinstance(column, tuple):
        found: list[Any] = sorted(_levels(column, rows, na))
    else:
        kept = column[rows & ~np.isnan(column)]
        found = [] if not len(kept) else list({float(kept.min()), float(kept.max())})
    if not found:
        return "it has no values"
    return f"it is {_shown(found[0])} in every row" if len(found) == 1 else None


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else f"{value:.6g}"


def _levels(column: tuple[str, ...], rows: NDArray[np.bool_], na: Sequence[str]) -> Counter[str]:
    return Counter(
        level(text)
        for text, kept in zip(column, rows.tolist(), strict=True)
        if kept and not is_missing(text, na)
    )


def _described(
    name: str, column: Column, rows: NDArray[np.bool_], na: Sequence[str]
) -> dict[str, Any]:
    if isinstance(column, tuple):
        counts = _levels(column, rows, na)
        levels = tuple(sorted(counts))
        # Ties go to the first level in sorted order, so that the order of the rows is irrelevant.
        fill: Any = max(levels, key=lambda text: counts[text])
        return {"name": name, "kind": "category", "levels": levels, "fill": fill}
    return {"name": name, "kind": "number", "fill": float(np.nanmedian(column[rows]))}


def _counts_rows(column: NDArray[np.float64]) -> bool:
    return len(column) >= _COUNTED_ROWS and bool(np.all(np.diff(column) == 1))
