"""Columns as found in practice: numbers, texts that look like numbers, missing values.

No file is read and nothing is encoded here. A column is an array of floats, NaN where a value is
missing, or a tuple of unchanged texts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64] | tuple[str, ...]

# Texts for a missing value, in lower case; Excel writes #N/A, in German #NV.
MISSING_TEXTS = frozenset(
    ["", "na", "n/a", "<na>", "nan", "null", "#n/a", "#nv", "?", "-", "--", "."]
)
_TRUTH = {"true": 1.0, "false": 0.0}

# 1,234,567.8 and 1.234.567,8; spaces and apostrophes may also group thousands, one kind per number.
_GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}([,'’ \u00a0\u202f])\d{3}(?:\1\d{3})*(?:\.\d*)?"),
    ",": re.compile(r"[+-]?\d{1,3}([.'’ \u00a0\u202f])\d{3}(?:\1\d{3})*(?:,\d*)?"),
}
_SEPARATORS = str.maketrans("", "", "'’ \u00a0\u202f")


class Hint:
    """An argument and its value, written as in Python or as on the command line.

    Parameters
    ----------
    argument : str
    values : str, number or sequence of str
    option : str, optional
        Name of the option on the command line, if it differs from the argument.
    """

    def __init__(
        self, argument: str, values: str | float | Sequence[str], option: str | None = None
    ) -> None:
        self.argument = argument
        self.values = values
        self.option = option or argument.replace("_", "-")

    def __str__(self) -> str:
        if isinstance(self.values, str | int | float):
            return f"{self.argument}={self.values!r}"
        return f"{self.argument}={list(self.values)!r}"

    def typed(self) -> str:
        """Return the hint as command-line options."""
        single = isinstance(self.values, str | int | float)
        values: Any = [str(self.values)] if single else self.values
        # A value that begins with a dash would be taken for an option.
        return " ".join(
            f"--{self.option}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"
            for value in values
        )


class TableError(ValueError):
    """A table cannot be used as it is; the message says where, and what to type.

    Parameters
    ----------
    message : str
        With names of hints in braces.
    **hints : Hint
    """

    def __init__(self, message: str, **hints: Hint) -> None:
        self._message, self._hints = message, hints
        super().__init__(self._filled({name: str(hint) for name, hint in hints.items()}))

    def typed(self) -> str:
        """Return the message with hints as command-line options."""
        return self._filled({name: hint.typed() for name, hint in self._hints.items()})

    def _filled(self, words: Mapping[str, str]) -> str:
        # Not str.format: names from a file may contain braces.
        return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), self._message)


def number(text: str, decimal: str = ".", missing: Collection[str] = ()) -> float | None:
    """Convert a text to a number; NaN if the value is missing, None if it is not a number.

    Parameters
    ----------
    text : str
    decimal : {".", ","}, default="."
    missing : collection of str
        Further texts for a missing value.
    """
    text = text.strip()
    lower = text.lower()
    if lower in MISSING_TEXTS or text == "None" or text in missing:
        return np.nan
    if lower in _TRUTH:
        return _TRUTH[lower]
    text = text.replace("−", "-")
    if _GROUPED[decimal].fullmatch(text):
        text = text.translate(_SEPARATORS).replace("." if decimal == "," else ",", "")
    elif decimal == "," and "." in text:
        return None
    if decimal == ",":
        text = text.replace(",", ".")
    try:
        # Python reads 1_000 as a number; in a table it is a code.
        return None if "_" in text else float(text)
    except ValueError:
        return None


def numbers(
    texts: Sequence[str], decimal: str = ".", missing: Collection[str] = ()
) -> tuple[NDArray[np.float64], list[int]]:
    """Convert texts to numbers; also return the places of those that are not (NaN there)."""
    everything = "\n".join(texts)
    plain = "_" not in everything
    if decimal == ",":
        plain = plain and "." not in everything
        candidates = everything.replace(",", ".").split("\n") if plain else texts
    else:
        candidates = texts
    if plain and len(candidates) == len(texts):
        try:
            values = np.fromiter(map(float, candidates), dtype=np.float64, count=len(texts))
            return without(values, missing), []
        except ValueError:
            pass
    out, odd = np.empty(len(texts)), []
    for place, text in enumerate(texts):
        value = number(text, decimal, missing)
        if value is None:
            odd.append(place)
        out[place] = np.nan if value is None else value
    return without(out, missing), odd


def without(values: NDArray[np.float64], missing: Iterable[str]) -> NDArray[np.float64]:
    """Replace the numbers that mark a missing value, such as -999, by NaN."""
    codes = [code for text in missing if (code := number(text)) is not None]
    if codes:
        values = np.where(np.isin(values, codes), np.nan, values)
    return values


def level(value: str | float) -> str:
    """Return the name of a category: the same for 7, "7", "7.0" and "007"."""
    if isinstance(value, str):
        read = number(value)
        if read is None or not np.isfinite(read) or value.strip().lower() in _TRUTH:
            return value.strip()
        value = read
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def is_missing(text: str, missing: Collection[str] = ()) -> bool:
    """Whether a text marks a missing value."""
    text = text.strip()
    return text.lower() in MISSING_TEXTS or text == "None" or text in missing


@dataclass(frozen=True)
class Frame:
    """Rows of a table.

    Attributes
    ----------
    names : tuple of str
        One per column; a name may occur twice in a file.
    columns : tuple
        Arrays of floats, or tuples of texts.
    source : str
        Name of the table in messages.
    lines : array of int or None
        Line of the file on which each row ends; None if there are no lines.
    decimal : {".", ","}
        Decimal separator of numbers in texts.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    source: str = "the table"
    lines: NDArray[np.int64] | None = None
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        return self.columns[place_of(name, self.names, self.source)]

    def where(self, row: int) -> str:
        """Name a row for a message."""
        if self.lines is None:
            return f"row {row + 1} of {self.source}"
        return f"line {self.lines[row]} of {self.source}"


def place_of(wanted: str, names: Sequence[str], source: str, argument: str = "") -> int:
    """Return the place of a column given by name or by number from 1 (negative: from the end).

    Parameters
    ----------
    wanted : str
    names : sequence of str
    source : str
        For messages.
    argument : str
        Argument that the column was passed to; with it, numbers are accepted.
    """
    places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) == 1:
        return places[0]
    if places:
        spots = " and ".join(str(place + 1) for place in places)
        raise TableError(
            f"{source} has several columns named {wanted!r} (columns {spots}): rename all but one"
        )
    if argument and re.fullmatch(r"-?\d+", wanted):
        place = int(wanted)
        if 1 <= abs(place) <= len(names):
            return place - 1 if place > 0 else len(names) + place
    raise unknown_column(wanted, names, source, argument)


def unknown_column(
    wanted: str, names: Sequence[str], source: str, argument: str = ""
) -> TableError:
    """Return the error for a missing column; it lists the nearest names."""
    known = list(dict.fromkeys(names))
    folded = {name.lower(): name for name in known}
    near = [folded[name] for name in get_close_matches(wanted.lower(), folded, 3, 0.6)]
    message = f"{source} has no column {wanted!r}; "
    if near:
        verb = "is" if len(near) == 1 else "are"
        message += f"the nearest {verb} {', '.join(map(repr, near))}"
        if argument and argument != "drop":
            return TableError(f"{message}: pass {{near}}", near=Hint(argument, near[0]))
        return TableError(message)
    shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
    return TableError(f"{message}its columns are {shown}")


def as_frame(table: Any, names: Sequence[str] | None = None) -> Frame:
    """Convert a table in memory to a Frame.

    Parameters
    ----------
    table : Frame, mapping of columns, pandas or polars frame, pyarrow table, or array
    names : sequence of str, optional
        Names of the columns of an array.
    """
    if isinstance(table, Frame):
        return table
    if isinstance(table, Mapping):
        columns = dict(table)
    elif hasattr(table, "column_names"):  # pyarrow
        columns = _listed(table.column_names, [table.column(i) for i in range(table.num_columns)])
    elif hasattr(table, "columns") and hasattr(table, "iloc"):  # pandas
        columns = _listed(table.columns, [table.iloc[:, i] for i in range(table.shape[1])])
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # polars
        columns = {name: table[name] for name in table.columns}
    else:
        columns = _of_array(table, names)
    frame = Frame(
        tuple(str(name) for name in columns), tuple(column_of(c) for c in columns.values())
    )
    lengths = {name: len(c) for name, c in zip(frame.names, frame.columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise TableError(f"columns have different lengths, {lengths}: pass columns of equal length")
    return frame


def _listed(names: Iterable[Any], columns: Sequence[Any]) -> dict[Any, Any]:
    names = list(names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"the table has several columns named {twice!r}: rename all but one")
    return dict(zip(names, columns, strict=True))


def _of_array(table: Any, names: Sequence[str] | None) -> dict[str, Any]:
    array = np.asarray(table)
    if array.ndim != 2:
        raise TableError(
            f"a table of shape {array.shape} has no columns: pass a pandas or polars frame, a dict "
            "of columns or an array of rows and columns"
        )
    if names is None:
        names = [f"column_{j + 1}" for j in range(array.shape[1])]
    if len(names) != array.shape[1]:
        raise TableError(
            f"the array has {array.shape[1]} columns, but {len(names)} are expected: "
            f"{', '.join(names)}"
        )
    return dict(zip(names, array.T, strict=True))


def column_of(values: Any) -> Column:
    """Convert a sequence of values to floats, or to texts if some are text."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise TableError(
            f"a column has shape {array.shape}: pass a flat list of values for each column"
        )
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        return tuple("" if text == "NaT" else str(text) for text in array.astype(str).tolist())
    entries = [None if _is_none(value) else value for value in array.tolist()]
    try:
        texts = any(isinstance(value, str | bytes) for value in entries)
        if not texts:
            return np.array([np.nan if v is None else float(v) for v in entries], dtype=np.float64)
    except (TypeError, ValueError):
        pass
    return tuple("" if value is None else str(value) for value in entries)


def _is_none(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA, which cannot be compared."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
