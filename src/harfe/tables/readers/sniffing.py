"""Detect the format of a CSV file from its first rows: delimiter, decimal separator, header.

None of this is certain, so each can be given instead.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harfe.tables.columns import is_missing, number

_DELIMITERS = (";", "\t", "|", ",", " ")
_ROWS = 100

# Numbers with an unambiguous decimal separator; 1,234 may be either.
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+")

# Excel may name the delimiter in a first line.
SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """Format of a CSV file."""

    delimiter: str = ","
    decimal: str = "."
    header: bool = True
    separator_line: bool = False

    def rows(self, lines: Iterable[str]) -> Any:
        """Split lines into fields with the standard library's reader."""
        return csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True)


def sniff(
    sample: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
) -> Dialect:
    """Detect what is not given from the first lines of a file.

    Parameters
    ----------
    sample : str
        Whole lines.
    delimiter, decimal : str, optional
    header : bool, optional
    """
    first, _, rest = sample.partition("\n")
    declared = SEPARATOR_LINE.fullmatch(first)
    if declared:
        sample = rest
        delimiter = declared[1] if delimiter is None else delimiter
    if delimiter is None:
        delimiter = _best_delimiter(sample)
    rows = _fields(sample, delimiter)
    if decimal is None:
        decimal = _decimal(rows, delimiter)
    if header is None:
        header = _has_header(rows, decimal)
    return Dialect(delimiter, decimal, header, declared is not None)


def _fields(sample: str, delimiter: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        # Keep line ends unchanged: one inside quotes belongs to the field.
        for row in Dialect(delimiter).rows(io.StringIO(sample, newline="")):
            if row:
                rows.append(row)
            if len(rows) == _ROWS:
                break
    except csv.Error:
        pass
    return rows


def _best_delimiter(sample: str) -> str:
    """Return the delimiter that best splits rows into equally many fields, preferably numbers."""
    best, best_merit = ",", (0.0, 0.0, 0.0)
    for delimiter in _DELIMITERS:
        rows = _fields(sample, delimiter)
        lengths = [len(row) for row in rows]
        width = max(set(lengths), key=lengths.count, default=0)
        if width < 2:
            continue
        alike = lengths.count(width) / len(lengths)
        below = [field for row in rows[1:] or rows for field in row if not is_missing(field)]
        read = sum(
            number(field, ".") is not None or number(field, ",") is not None for field in below
        )
        # Spaces also occur in text: they are the delimiter only if nothing else is.
        merit = (round(alike, 1), read / max(len(below), 1), width if delimiter != " " else 0)
        if delimiter == " " and best_merit[0] >= 0.5:
            continue
        if merit > best_merit:
            best, best_merit = delimiter, merit
    return best


def _decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """Return a comma if more numbers contain a comma than a point."""
    fields = [field.strip() for row in rows for field in row]
    points = sum(_POINT.fullmatch(field) is not None for field in fields)
    commas = sum(
        _COMMA.fullmatch(field) is not None
        and (delimiter != "," or not _THOUSANDS.fullmatch(field))
        for field in fields
    )
    return "," if commas > points else "."


def _has_header(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first row names columns: text above numbers, or text throughout."""
    if not rows:
        return True
    first, below = rows[0], rows[1:]
    if all(_is_number(field, decimal) for field in first):
        return False
    if not below:
        return True
    numeric = []
    for place, name in enumerate(first):
        fields = [row[place] for row in below if len(row) > place]
        values = [field for field in fields if not is_missing(field)]
        read = sum(_is_number(field, decimal) for field in values)
        if values and read > len(values) / 2:
            numeric.append(name)
    return not numeric or any(
        not _is_number(name, decimal) and not is_missing(name) for name in numeric
    )


def _is_number(text: str, decimal: str) -> bool:
    value = number(text, decimal)
    return value is not None and not np.isnan(value)
