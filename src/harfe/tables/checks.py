"""Checks of tables: what cannot be used is rejected with an error that says what to type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harfe._core.wording import plural
from harfe.tables.columns import Column, Frame, Hint, TableError, numbers, place_of, without


def places_of(
    wanted: Sequence[str], names: Sequence[str], source: str, argument: str
) -> frozenset[int]:
    """Return the places of columns given by name or number; a name that occurs twice means both."""
    places: set[int] = set()
    for name in map(str, [wanted] if isinstance(wanted, str) else wanted):
        found = [j for j, known in enumerate(names) if known == name]
        places.update(found or [place_of(name, names, source, argument)])
    return frozenset(places)


def finite_numbers(
    frame: Frame, name: str, values: Column, na: Sequence[str]
) -> NDArray[np.float64]:
    """Convert a column to numbers, NaN where missing; an error names the line of a bad value."""
    if isinstance(values, tuple):
        values, odd = numbers(values, frame.decimal, na)
        if odd:
            text = frame[name][odd[0]]
            more = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
            raise TableError(
                f"column {name!r} holds numbers, but {text!r} in {frame.where(odd[0])}{more} is "
                "not one: correct it, or pass {na} if it marks a missing value",
                na=Hint("na", [str(text)]),
            )
    else:
        values = without(values, na)
    endless = np.isinf(values)
    if endless.any():
        raise TableError(
            f"column {name!r} is infinite in {frame.where(int(np.argmax(endless)))}: correct it, "
            "or pass {na} if this marks a missing value",
            na=Hint("na", ["inf", "-inf"]),
        )
    return values


def missing_error(frame: Frame, gaps: Mapping[str, NDArray[np.bool_]]) -> TableError:
    """Return the error that counts missing values and says how to proceed."""
    hit = np.logical_or.reduce(list(gaps.values()))
    most = sorted(gaps, key=lambda name: -int(gaps[name].sum()))
    named = ", ".join(f"{name} ({gaps[name].sum()})" for name in most[:5])
    more = f" and {len(most) - 5} more columns" if len(most) > 5 else ""
    return TableError(
        f"{int(hit.sum())} of {len(frame)} rows of {frame.source} have missing values, first "
        f"{frame.where(int(np.argmax(hit)))}, by column: {named}{more}; pass {{drop}} to leave "
        "these rows out, or {median} to fill in the median of the column",
        drop=Hint("missing", "drop"),
        median=Hint("missing", "median"),
    )


def unseen_text(unseen: Mapping[tuple[str, str], int]) -> str:
    """Return the note that lists levels not seen in training."""
    most = sorted(unseen, key=lambda key: -unseen[key])
    named = ", ".join(
        f"{column}={text} ({plural(unseen[column, text], 'row')})" for column, text in most[:5]
    )
    more = f" and {len(most) - 5} more" if len(most) > 5 else ""
    return (
        f"the model has not seen {named}{more}: these rows are predicted as having none of the "
        "known levels"
    )


def check_names(names: Sequence[str], inputs: Sequence[int], source: str) -> None:
    """Reject inputs with duplicate names, which would be ambiguous in new tables."""
    for j in inputs:
        places = [k for k, name in enumerate(names) if name == names[j]]
        if len(places) > 1:
            spots = " and ".join(str(k + 1) for k in places)
            raise TableError(
                f"{source} has several columns named {names[j]!r} (columns {spots}): rename all "
                "but one, or pass {drop} to leave them out",
                drop=Hint("drop", [names[j]]),
            )


def read_targets(frame: Frame, place: int, na: Sequence[str], missing: str) -> NDArray[np.float64]:
    """Convert the target to numbers; missing values are rejected or become NaN."""
    name, values = frame.names[place], frame.columns[place]
    if isinstance(values, tuple):
        read, odd = numbers(values, frame.decimal, na)
        if len(odd) > len(values) / 2:
            raise TableError(
                f"the target {name!r} holds text, e.g. {values[odd[0]]!r} in "
                f"{frame.where(odd[0])}: harfe predicts numbers, choose a column of numbers"
            )
    single = Frame((name,), (values,), frame.source, frame.lines, frame.decimal)
    read = finite_numbers(single, name, values, na)
    absent = np.isnan(read)
    if absent.all():
        raise TableError(
            f"the target {name!r} of {frame.source} has no values: choose another column"
        )
    if absent.any() and missing == "error":
        raise TableError(
            f"the target {name!r} is missing in {int(absent.sum())} of {len(frame)} rows of "
            f"{frame.source}, first {frame.where(int(np.argmax(absent)))}; pass {{drop}} to leave "
            "these rows out",
            drop=Hint("missing", "drop"),
        )
    return read
