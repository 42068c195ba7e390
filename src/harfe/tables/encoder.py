"""From the columns of a table to the numbers that a model takes.

A column of numbers is one input. A column of categories is one input for each of its levels, 1 in
the rows that have it and 0 in the others, named ``color=red``; of two levels the second one alone
says it all. What was learned from the training rows (levels, medians) is kept, so that new tables
are encoded alike.
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

# Unseen texts that are remembered, so that a column of names cannot fill the memory.
_MOST_REMEMBERED = 10_000
_MISSING_CODE, _UNSEEN_CODE = -1, -2


@dataclass(frozen=True)
class InputColumn:
    """A column of the table that the model looks at.

    Attributes
    ----------
    name : str
    kind : {"number", "category"}
    levels : tuple of str
        Of a category, sorted.
    fill : float or str
        Median, or the most frequent level: what stands for a missing value on demand.
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
    """Which columns of a table a model looks at, and how they become numbers; plain data.

    Make one with :meth:`learn`.

    Attributes
    ----------
    columns : tuple of InputColumn
        In the order of the training table.
    target : str or None
        Column that is predicted.
    missing : {"error", "drop", "median"}
        What is done about missing values: they are refused; their rows are left out of a fit and
        get NaN as prediction; or the median of the training rows, of a category its most frequent
        level, stands for them.
    na : tuple of str
        Texts that mean a missing value, beside an empty cell, NA, NaN, null, ``?`` and ``-``.
    left_out : mapping of str to str
        Columns of the training table that are no inputs, and why.
    notes : tuple of str
        What a reader should know of how the columns were taken.
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
        """Look at the training table.

        Parameters
        ----------
        table : mapping of columns, frame of pandas or polars, table of pyarrow, or read_table(...)
        target : str, default=None
            Column to predict, by name or by its number from 1 (-1 is the last).
        drop : sequence of str
            Columns that are no inputs.
        categories : sequence of str
            Columns of numbers that are codes, e.g. of regions; or texts of very many levels.
        missing : {"error", "drop", "median"}, default="error"
        na : sequence of str
            Further texts that mean a missing value, e.g. ``["unknown", "-999"]``.

        Returns
        -------
        TableEncoder

        Raises
        ------
        TableError
            If the table cannot be used as it is; one sentence says what to type.
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
        left_out = {names[j]: "left out as asked" for j in sorted(dropped)} | learned.left_out
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
                + (f" ({why})" if why else ": it needs at least one beside the target")
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
        """Rows of a table as numbers.

        Parameters
        ----------
        table : mapping of columns, frame of pandas or polars, table of pyarrow, or array
            With at least the columns of the training table that are inputs, in any order.
        missing : {"error", "drop", "median"}, default=None
            Other than for training.

        Returns
        -------
        array of shape (rows, len(columns_out))
            With "drop" it holds NaN where a value is missing. A level that training has not seen
            has 0 in all inputs of its column, and a UserWarning says so.
        """
        X, unseen = self.encode_counting(table, missing)
        if unseen:
            warnings.warn(unseen_text(unseen), UserWarning, stacklevel=2)
        return X

    def encode_counting(
        self, table: Any, missing: str | None = None
    ) -> tuple[NDArray[np.float64], Counter[tuple[str, str]]]:
        """As `encode`, and how often (column, level) occurred that training has not seen."""
        missing = self.missing if missing is None else missing
        check_choice("missing", missing, MISSING)
        frame = as_frame(table, self.columns_in)
        # Column after column: the compiled prediction wants the rows of a column side by side.
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
        """The target of every row, NaN where it is missing."""
        if self.target is None:
            raise TableError("this encoder has no target: pass target='...' when it is learned")
        frame = as_frame(table)
        return read_targets(
            frame, place_of(self.target, frame.names, frame.source), self.na, "drop"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, numbers and strings, for JSON."""
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
        """The encoder that `to_dict` wrote; TableError if it cannot have written this."""
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
            raise TableError(f"this describes no encoder of a table ({error!r})") from error
        if not encoder._is_sound():
            raise TableError("this describes no encoder of a table: a field has the wrong type")
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
    """Number of the level that a text means, worked out when a text comes up first."""

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
    """Level of every row by its number; unseen ones are counted."""
    known = _Codes(column.levels, na)
    plain = values if isinstance(values, tuple) else without(values, na).tolist()
    codes = np.fromiter(map(known.__getitem__, plain), dtype=np.int64, count=len(plain))
    for place in np.flatnonzero(codes == _UNSEEN_CODE):
        unseen[column.name, level(plain[place])] += 1
    return codes
