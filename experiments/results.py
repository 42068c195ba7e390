"""The results of a study: a CSV file that grows line by line."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.config import Task


class ResultsError(RuntimeError):
    """The results cannot be used as they are; the message says what to do."""


@dataclass(frozen=True)
class Row:
    """One finished repetition; numbers that do not apply, or of a failed one, are None."""

    part: str
    problem: str
    method: str
    repetition: int
    hash: str
    seed: int
    n_train: int
    n_test: int
    error: float | None = None
    error_clean: float | None = None
    error_relative: float | None = None
    n_terms: int | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    chosen: str = ""  # what tuning chose, as name=value
    failure: str = ""
    details: str = ""  # what figures need in addition, as JSON in one line

    @property
    def task(self) -> Task:
        """The key of the row."""
        return Task(self.part, self.problem, self.method, self.repetition)

    @property
    def rmse(self) -> float | None:
        """Root of `error`, in the units of the target."""
        return None if self.error is None else math.sqrt(self.error)


COLUMNS = tuple(field.name for field in dataclasses.fields(Row))
_INTEGERS = ("repetition", "seed", "n_train", "n_test", "n_terms")
_FLOATS = ("error", "error_clean", "error_relative", "fit_seconds", "predict_seconds")
_OPTIONAL = ("n_terms", *_FLOATS)


class ResultsFile:
    """Rows in a CSV file, appended one by one.

    Only complete lines count: a partial line left by a killed run is dropped, and its repetition is
    rerun. No value contains a line break, so every line is a row.
    """

    def __init__(self, path: Path):
        self.path = path

    def read(self) -> list[Row]:
        """All complete rows.

        Raises
        ------
        ResultsError
            If a complete line is not a row, or two rows have the same key.
        """
        lines = self._complete_text().splitlines()
        if not lines:
            return []
        if tuple(lines[0].split(",")) != COLUMNS:
            raise ResultsError(
                f"{self.path.name}: the first line does not list the columns {','.join(COLUMNS)}. "
                "Restore the file from git, or delete it to start again."
            )
        rows: list[Row] = []
        seen: dict[Task, int] = {}
        for number, values in enumerate(csv.reader(lines[1:]), start=2):
            row = self._parse(values, number)
            if row.task in seen:
                raise ResultsError(
                    f"{self.path.name}: lines {seen[row.task]} and {number} are both for "
                    f"{'/'.join(map(str, row.task))}. Delete one of them."
                )
            seen[row.task] = number
            rows.append(row)
        return rows

    def append(self, row: Row) -> None:
        """Add a row and flush it to disk."""
        kept = self._complete_text()
        if self.path.exists() and len(kept.encode()) != self.path.stat().st_size:
            os.truncate(self.path, len(kept.encode()))
        text = _line(_values(row)) if kept else _line(COLUMNS) + _line(_values(row))
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def rewrite(self, rows: Iterable[Row]) -> None:
        """Replace all rows atomically."""
        write_whole(self.path, csv_text([COLUMNS, *map(_values, rows)]))

    def _complete_text(self) -> str:
        if not self.path.exists():
            return ""
        raw = self.path.read_bytes()
        return raw[: raw.rfind(b"\n") + 1].decode()

    def _parse(self, values: list[str], number: int) -> Row:
        try:
            named = dict(zip(COLUMNS, values, strict=True))
            fields: dict[str, object] = dict(named)
            for name in _INTEGERS + _FLOATS:
                kind = int if name in _INTEGERS else float
                empty = name in _OPTIONAL and not named[name]
                fields[name] = None if empty else kind(named[name])
            return Row(**fields)  # type: ignore[arg-type]
        except ValueError as error:
            raise ResultsError(
                f"{self.path.name}: line {number} is damaged ({error}). Delete that line."
            ) from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file atomically: readers see the old file or the new one."""
    beside = path.with_name(path.name + ".new")
    with beside.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def _values(row: Row) -> list[str]:
    values = []
    for name in COLUMNS:
        value = getattr(row, name)
        if value is None:
            values.append("")
        elif name in _FLOATS:
            values.append(f"{value:.4g}" if name.endswith("seconds") else f"{value:.10g}")
        else:
            values.append(" ".join(str(value).split()))
    return values


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """Lines of a CSV file as one string."""
    return "".join(map(_line, lines))


def _line(values: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
