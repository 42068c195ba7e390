"""A small immutable table of named columns, for printing, JSON and pandas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """Named columns of equal length.

    ``table["share"]`` is a column as an array, ``table.rows()`` yields dictionaries,
    ``print(table)`` shows the whole table.

    Parameters
    ----------
    columns : mapping of str to sequence
        Kept as tuples of plain Python values: numbers, strings, tuples of them, None.
    """

    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        plain = {
            str(name): tuple(_plain(value) for value in values)
            for name, values in self.columns.items()
        }
        lengths = {name: len(values) for name, values in plain.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns have different lengths, {lengths}; pass equal lengths")
        object.__setattr__(self, "columns", plain)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column as an array, of objects if any entry is a tuple or missing."""
        if column not in self.columns:
            raise KeyError(f"{column!r} is not a column; choose one of {', '.join(self.columns)}")
        values = self.columns[column]
        if any(isinstance(value, tuple) or value is None for value in values):
            array = np.empty(len(values), dtype=object)
            array[:] = values
            return array
        return np.array(values)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every row as a dictionary."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with these columns."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                'to_frame needs pandas: pip install pandas; or use to_dict() or table["column"]'
            ) from error
        return pd.DataFrame({name: list(values) for name, values in self.columns.items()})

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns as lists for JSON: None for NaN and infinities, pairs if complex."""
        return {
            name: [jsonable(value) for value in values] for name, values in self.columns.items()
        }

    def __str__(self) -> str:
        """Columns side by side; numbers have four digits and are right-aligned."""
        cells = {name: [_cell(value) for value in values] for name, values in self.columns.items()}
        parts = []
        for name, texts in cells.items():
            width = max(map(len, [name, *texts]))
            left = any(isinstance(value, str | tuple) for value in self.columns[name])
            side = "<" if left else ">"
            parts.append([f"{text:{side}{width}}" for text in [name, *texts]])
        return "\n".join("  ".join(line).rstrip() for line in zip(*parts, strict=True))


def jsonable(value: Any) -> Any:
    """Convert a value for JSON: None for NaN and infinities, [real, imaginary] if complex."""
    value = _plain(value)
    if isinstance(value, tuple):
        return [jsonable(entry) for entry in value]
    if isinstance(value, complex):
        return [jsonable(value.real), jsonable(value.imag)]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _plain(value: Any) -> Any:
    """Convert NumPy numbers to Python's, and lists and arrays to tuples."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list | np.ndarray):
        return tuple(_plain(entry) for entry in value)
    return value


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_cell, value))
    if isinstance(value, float | complex):
        return f"{value:.4g}"
    return "" if value is None else str(value)
