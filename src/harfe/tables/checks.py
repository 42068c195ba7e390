"""Tables at the door: what cannot be used is refused with a sentence that says what to type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harfe.tables.columns import Column, Frame, Hint, TableError, numbers, place_of, without


def places_of(
    wanted: Sequence[str], names: Sequence[str], source: str, argument: str
) -> frozenset[int]:
    """Places of columns given by name or number; a name that stands twice means both."""
    places: set[int] = set()
    for name in map(str, [wanted] if isinstance(wanted, str) else wanted):
        found = [j for j, known in enumerate(names) if known == name]
        places.update(found or [place_of(name, names, source, argument)])
    return frozenset(places)


def finite_numbers(
    frame: Frame, name: str, values: Column, na: Sequence[str]
) -> NDArray[np.float64]:
    """A column as numbers, NaN where missing; what is no number is refused with its line."""
    if isinstance(values, tuple):
        values, odd = numbers(values, frame.decimal, na)
        if odd:
            text = frame[name][odd[0]]
            more = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
            raise TableError(
                f"column {name!r} holds numbers, but {text!r} in {frame.where(odd[0])}{more} is "
                "none: correct it, or pass {na} if it means that the value is missing",
                na=Hint("na", [str(text)]),
            )
    else:
        values = without(values, na)
    endless = np.isinf(values)
    if endless.any():
        raise TableError(
            f"column {name!r} is infinite in {frame.where(int(np.argmax(endless)))}: correct it, "
            "or pass {na} if that means that the value is missing",
            na=Hint("na", ["inf", "-inf"]),
        )
    return values


def missing_error(frame: Frame, gaps: Mapping[str, NDArray[np.bool_]]) -> TableError:
    """Say how many rows and columns have missing values, and how to go on."""
    hit = np.logical_or.reduce(list(gaps.values()))
    most = sorted(gaps, key=lambda name: -int(gaps[name].sum()))
    named = ", ".join(f"{name} ({gaps[name].sum()})" for name in most[:5])
    more = f" and {len(most) - 5} more columns" if len(most) > 5 else ""
    return TableError(
        f"{int(hit.sum())} of {len(frame)} rows of {frame.source} have missing values, first "
        f"{frame.where(int(np.argmax(hit)))}, by column: {named}{more}; pass {{drop}} to go on "
        "without these rows, or {median} to put in the median of the column",
        drop=Hint("missing", "drop"),
        median=Hint("missing", "median"),
    )


def unseen_text(unseen: Mapping[tuple[str, str], int]) -> str:
    """Say which levels are new."""
    most = sorted(unseen, key=lambda key: -unseen[key])
    named = ", ".join(f"{column}={text} ({unseen[column, text]} rows)" for column, text in most[:5])
    more = f" and {len(most) - 5} more" if len(most) > 5 else ""
    return (
        f"the model has not seen {named}{more}: such rows are predicted as having none of the "
        "levels that it knows"
    )


def check_names(names: Sequence[str], inputs: Sequence[int], source: str) -> None:
    """Refuse inputs whose name stands twice: new tables could not be told which is meant."""
    for j in inputs:
        places = [k for k, name in enumerate(names) if name == names[j]]
        if len(places) > 1:
            spots = " and ".join(str(k + 1) for k in places)
            raise TableError(
                f"{source} has several columns named {names[j]!r} (columns {spots}): rename all "
                "but one, or pass {drop} to go on without them",
                drop=Hint("drop", [names[j]]),
            )


def read_targets(frame: Frame, place: int, na: Sequence[str], missing: str) -> NDArray[np.float64]:
    """The target as numbers; missing ones are refused, or NaN."""
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
        raise TableError(f"the target {name!r} of {frame.source} has no values: choose another one")
    if absent.any() and missing == "error":
        raise TableError(
            f"the target {name!r} is missing in {int(absent.sum())} of {len(frame)} rows of "
            f"{frame.source}, first {frame.where(int(np.argmax(absent)))}; pass {{drop}} to go on "
            "without these rows",
            drop=Hint("missing", "drop"),
        )
    return read
