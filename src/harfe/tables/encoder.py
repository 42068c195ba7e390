"""Encode the columns of a table as the inputs of a model.

A column of numbers is one input. A column of categories is one input per level, named
``color=red``: 1 in the rows that have this level and 0 in the others. If there are two levels,
only the second gets an input. Levels and medians are learned from the training rows and kept, so
that new tables are encoded in the same way.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_choice
from harfe.tables.checks import (
    check_names,
    finite_numbers,
    missing_error,
    places_of,
    read_targets,
    unseen_text,
)
from harfe.tables.columns import Column, TableError, as_frame, is_missing, level, place_of, without
from harfe.tables.inference import learn_columns

MISSING = ("error", "drop", "median")
KINDS = ("number", "category")

# Limit on cached texts, so that a column of names cannot fill the memory.
_MOST_REMEMBERED = 10_000
_MISSING_CODE, _UNSEEN_CODE = -1, -2


@dataclass(frozen=True)
class InputColumn:
    """A column of the table that the model uses.

    Attributes
    ----------
    name : str
    kind : {"number", "category"}
    levels : tuple of str
        Sorted levels of a category.
    fill : float or str
        Replaces missing values on request: the median, or the most frequent level.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    fill: float | str = 0.0

    @property
    def shown(self) -> tuple[str, ...]:
        """Levels that have an input of their own."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the inputs that this column becomes."""
        if self.kind == "number":
            return (self.name,)
        return tuple(f"{self.name}={shown}" for shown in self.shown)


@dataclass(frozen=True)
class TableEncoder:
    """Plain data: which columns of a table a model uses, and how they become numbers.

    Create one with :meth:`learn`.

    Attributes
    ----------
    columns : tuple of InputColumn
        In the order of the training table.
    target : str or None
        Column that is predicted.
    missing : {"error", "drop", "median"}
        How to treat missing values: raise an error; leave their rows out of a fit and predict NaN
        for them; or fill in the median of the training rows (for a category, the most frequent
        level).
    na : tuple of str
        Texts for a missing value, in addition to an empty cell, NA, NaN, null, ``?`` and ``-``.
    left_out : mapping of str to str
        Columns of the training table that are not inputs, and why.
    notes : tuple of str
        Notes for the user about the treatment of columns and rows.
    """

    columns: tuple[InputColumn, ...]
    target: str | None = None
    missing: str = "error"
    na: tuple[str, ...] = ()
    left_out: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def learn(
        cls,
        table: Any,
        target: str | None = None,
        drop: Sequence[str] = (),
        categories: Sequence[str] = (),
        missing: str = "error",
        na: Sequence[str] = (),
    ) -> TableEncoder:
        """Learn the encoding from the training table.

        Parameters
        ----------
        table : mapping of columns, pandas or polars frame, pyarrow table, or read_table(...)
        target : str, default=None
            Column to predict, by name or by its number from 1 (-1 is the last).
        drop : sequence of str
            Columns to leave out.
        categories : sequence of str
            Columns of numbers that are codes, e.g. of regions, or of texts with very many levels.
        missing : {"error", "drop", "median"}, default="error"
        na : sequence of str
            Further texts for a missing value, e.g. ``["unknown", "-999"]``.

        Returns
        -------
        TableEncoder

        Raises
        ------
        TableError
            If the table cannot be used as it is; the message says what to pass.
        """
        check_choice("missing", missing, MISSING)
        frame, na = as_frame(table), tuple(str(text) for text in na)
        names = frame.names
        goal = None
        if target is not None:
            goal = place_of(str(target), names, frame.source, "target")
        dropped = places_of(drop, names, frame.source, "drop")
        forced = places_of(categories, names, frame.source, "categories")
        inputs = [j for j in range(len(names)) if j != goal and j not in dropped]
        check_names(names, inputs, frame.source)
        present = np.ones(len(frame), dtype=bool)
        if goal is not None:
            present = np.isfinite(read_targets(frame, goal, na, missing))
        learned = learn_columns(frame, inputs, forced, present, missing == "drop", na)
        left_out = {names[j]: "dropped on request" for j in sorted(dropped)} | learned.left_out
        encoder = cls(
            tuple(InputColumn(**column) for column in learned.columns),
            None if goal is None else names[goal],
            missing,
            na,
            left_out,
            learned.notes,
        )
        if not encoder.columns:
            why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise TableError(
                f"{frame.source} has no column to predict from"
                + (f" ({why})" if why else ": it needs at least one besides the target")
            )
        if missing == "error":
            encoder.encode(frame)
        return encoder

    @property
    def columns_out(self) -> tuple[str, ...]:
        """Names of the inputs of the model."""
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def columns_in(self) -> tuple[str, ...]:
        """Names of the columns that a table must have."""
        return tuple(column.name for column in self.columns)

    def encode(self, table: Any, missing: str | None = None) -> NDArray[np.float64]:
        """Convert the rows of a table to numbers.

        Parameters
        ----------
        table : mapping of columns, pandas or polars frame, pyarrow table, or array
            Must have the columns in `columns_in`, in any order.
        missing : {"error", "drop", "median"}, default=None
            None treats missing values as in training.

        Returns
        -------
        array of shape (rows, len(columns_out))
            With "drop" it has NaN where a value is missing. A level not seen in training has 0 in
            all inputs of its column, and a UserWarning lists it.
        """
        X, unseen = self.encode_counting(table, missing)
        if unseen:
            warnings.warn(unseen_text(unseen), UserWarning, stacklevel=2)
        return X

    def encode_counting(
        self, table: Any, missing: str | None = None
    ) -> tuple[NDArray[np.float64], Counter[tuple[str, str]]]:
        """Encode as `encode` does; also count each (column, level) not seen in training."""
        missing = self.missing if missing is None else missing
        check_choice("missing", missing, MISSING)
        frame = as_frame(table, self.columns_in)
        # Column by column in memory, as the compiled prediction needs it.
        X = np.empty((len(self.columns_out), len(frame)))
        gaps: dict[str, NDArray[np.bool_]] = {}
        unseen: Counter[tuple[str, str]] = Counter()
        first = 0
        for column in self.columns:
            part = X[first : first + len(column.outputs)]
            first += len(part)
            values = frame[column.name]
            if column.kind == "number":
                part[0] = finite_numbers(frame, column.name, values, self.na)
                absent = np.isnan(part[0])
            else:
                codes = _codes(column, values, self.na, unseen)
                absent = codes == _MISSING_CODE
                for row, shown in zip(part, column.shown, strict=True):
                    np.equal(codes, column.levels.index(shown), out=row)
            if absent.any():
                gaps[column.name] = absent
                part[:, absent] = self._fill(column) if missing == "median" else np.nan
        if gaps and missing == "error":
            raise missing_error(frame, gaps)
        return X.T, unseen

    def targets(self, table: Any) -> NDArray[np.float64]:
        """Return the target of every row, NaN where it is missing."""
        if self.target is None:
            raise TableError("this encoder has no target: pass target='...' to TableEncoder.learn")
        frame = as_frame(table)
        return read_targets(
            frame, place_of(self.target, frame.names, frame.source), self.na, "drop"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as lists, numbers and strings, for JSON."""
        return {
            "columns": [
                {"name": c.name, "kind": c.kind, "levels": list(c.levels), "fill": c.fill}
                for c in self.columns
            ],
            "target": self.target,
            "missing": self.missing,
            "na": list(self.na),
            "left_out": dict(self.left_out or {}),
            "notes": list(self.notes),
        }

    def add_to(self, graph: Any) -> tuple[str, str | None]:
        """Add this encoder to an ONNX graph; see `harfe.tables.onnx_nodes.add_encoder`."""
        from harfe.tables.onnx_nodes import add_encoder

        return add_encoder(graph, self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Restore an encoder from the result of `to_dict`; TableError if the content is invalid."""
        try:
            columns = tuple(
                InputColumn(c["name"], c["kind"], tuple(c["levels"]), c["fill"])
                for c in content["columns"]
            )
            encoder = cls(
                columns,
                content["target"],
                content["missing"],
                tuple(content["na"]),
                dict(content["left_out"]),
                tuple(content["notes"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(f"this does not describe a table encoder ({error!r})") from error
        if not encoder._is_sound():
            raise TableError("this does not describe a table encoder: a field has the wrong type")
        return encoder

    def _is_sound(self) -> bool:
        texts = [*self.na, *self.notes, *self.columns_in, *(self.left_out or {}).values()]
        texts += [shown for column in self.columns for shown in column.levels]
        return (
            all(isinstance(text, str) for text in texts)
            and (self.target is None or isinstance(self.target, str))
            and self.missing in MISSING
            and bool(self.columns)
            and all(
                (c.kind == "number" and isinstance(c.fill, int | float) and not c.levels)
                or (c.kind == "category" and c.fill in c.levels)
                for c in self.columns
            )
        )

    @staticmethod
    def _fill(column: InputColumn) -> NDArray[np.float64]:
        if column.kind == "number":
            return np.full((1, 1), column.fill)
        return np.array([[float(shown == column.fill)] for shown in column.shown])


class _Codes(dict[Any, int]):
    """Map texts to level numbers, computed when a text first occurs."""

    def __init__(self, levels: Sequence[str], na: Sequence[str]) -> None:
        super().__init__()
        self._numbers = {text: code for code, text in enumerate(levels)}
        self._na = na

    def __missing__(self, value: str | float) -> int:
        absent = is_missing(value, self._na) if isinstance(value, str) else np.isnan(value)
        code = _MISSING_CODE if absent else self._numbers.get(level(value), _UNSEEN_CODE)
        if len(self) < _MOST_REMEMBERED:
            self[value] = code
        return code


def _codes(
    column: InputColumn, values: Column, na: Sequence[str], unseen: Counter[tuple[str, str]]
) -> NDArray[np.int64]:
    """Return the level number of every row, and count unseen levels."""
    known = _Codes(column.levels, na)
    plain = values if isinstance(values, tuple) else without(values, na).tolist()
    codes = np.fromiter(map(known.__getitem__, plain), dtype=np.int64, count=len(plain))
    for place in np.flatnonzero(codes == _UNSEEN_CODE):
        unseen[column.name, level(plain[place])] += 1
    return codes
