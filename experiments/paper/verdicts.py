"""Published against measured values: the rule for verdicts, cell by cell."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np

from experiments.config import Study
from experiments.results import Row
from experiments.runner import stale_rows
from experiments.summary import Cell, table
from experiments.tables import ConfigError, build

NEAR = 0.1  # a median within this share of the published value reproduces it
MANY = 20  # number of draws from which the range over draws counts
WIDEST = 0.3  # largest half width of a range that counts, as a share of the median


class Verdict(StrEnum):
    """How a measurement compares with the published value."""

    REPRODUCED = "reproduced"
    BETTER = "better"
    WORSE = "worse"
    NOT_COMPARABLE = "not comparable"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Judgement:
    """A verdict and its reason."""

    verdict: Verdict
    reason: str


def judge(values: Sequence[float], printed: float) -> Judgement:
    """Compare measured errors, one per draw, with a published one.

    Reproduced: the median is within 10 % of the published value; or the published value is between
    the 10 % and the 90 % quantile over at least 20 draws, and these are no wider than ±30 % of the
    median. Otherwise better or worse, by the median.
    """
    if not values:
        return Judgement(Verdict.NOT_RUN, "no draw has been run")
    median = statistics.median(values)
    if abs(median - printed) <= NEAR * printed * (1 + 1e-12):  # rounding must not decide
        return Judgement(Verdict.REPRODUCED, "the median is within 10 % of the published value")
    low, high = spread(values)
    if len(values) >= MANY and low <= printed <= high and high - low <= 2 * WIDEST * median:
        reason = "the published value is inside the 10-90 % range over draws"
        return Judgement(Verdict.REPRODUCED, reason)
    ratio = median / printed
    verdict = Verdict.BETTER if ratio < 1 else Verdict.WORSE
    return Judgement(verdict, f"the median is {ratio:.3g} times the published value")


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The 10 % and the 90 % quantile."""
    low, high = np.quantile(values, [0.1, 0.9])
    return float(low), float(high)


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper: errors by row and column, and what to compare them with."""

    title: str
    part: str
    measure: str
    rows: dict[str, dict[str, float]]
    unit: dict[str, float] = field(default_factory=dict)  # of a column, if it is not 1
    measures: dict[str, str] = field(default_factory=dict)  # of a row, if it differs from `measure`

    def value(self, row: str, column: str) -> float:
        """The published value in the units of the data."""
        return self.rows[row][column] * self.unit.get(column, 1.0)

    def measure_of(self, row: str) -> str:
        """The column of results that a row is compared with."""
        return self.measures.get(row, self.measure)


@dataclass(frozen=True)
class PrintedSizes:
    """The table of the datasets: sizes that can be counted, and settings."""

    title: str
    measured: tuple[str, ...]
    settings: tuple[str, ...]
    rows: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Printed:
    """All published numbers."""

    table1: PrintedTable
    table2: PrintedTable
    table4: PrintedTable
    table3: PrintedSizes

    @property
    def tables(self) -> dict[str, PrintedTable]:
        """The tables of errors, by the name of their study."""
        return {"table1": self.table1, "table2": self.table2, "table4": self.table4}


def load_printed(path: Path) -> Printed:
    """Read paper.toml; unknown keys are errors."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path.name}: {error}.") from error
    return build(Printed, content, path.name)


@dataclass(frozen=True)
class Reading:
    """One reading of a row of the paper: a method of ours with its results."""

    method: str
    label: str
    cell: Cell
    judgement: Judgement


@dataclass(frozen=True)
class PrintedCell:
    """A number of the paper with everything that was measured for it."""

    table: str
    row: str
    column: str
    printed: float
    readings: tuple[Reading, ...]

    @property
    def nearest(self) -> Reading:
        """The reading nearest to the published value, among those that reproduce it if any does."""
        run = [r for r in self.readings if r.cell.values]
        if not run:
            return self.readings[0]
        hits = [r for r in run if r.judgement.verdict is Verdict.REPRODUCED]
        return min(hits or run, key=lambda r: abs(math.log(r.cell.median / self.printed)))

    @property
    def judgement(self) -> Judgement:
        """That of the nearest reading."""
        return self.nearest.judgement


def judged_cells(
    name: str, printed: PrintedTable, study: Study, rows: Sequence[Row]
) -> Iterator[PrintedCell]:
    """All cells of a published table, row by row, with their readings in the study."""
    entry = study.parts[printed.part]
    measured = {
        measure: table(study, printed.part, rows, measure)
        for measure in {printed.measure, *printed.measures.values()}
    }
    for row, columns in printed.rows.items():
        own = [method for method in entry.methods if study.methods[method].reference == row]
        for column in columns:
            if column not in entry.problems or not own:
                continue  # a quick run omits some
            value = printed.value(row, column)
            cells = {m: measured[printed.measure_of(row)][column][m] for m in own}
            readings = tuple(
                Reading(m, study.methods[m].label, cell, judge(cell.values, value))
                for m, cell in cells.items()
            )
            yield PrintedCell(name, row, column, value, readings)


@dataclass(frozen=True)
class SizeCell:
    """A number of the table of datasets."""

    dataset: str
    name: str
    printed: float
    found: float | None
    judgement: Judgement


def judged_sizes(printed: PrintedSizes, found: Mapping[str, Mapping[str, float]]) -> list[SizeCell]:
    """Judge sizes counted on the data; settings are not measurements."""
    cells = []
    for dataset, values in printed.rows.items():
        for name, value in values.items():
            own = found.get(dataset, {}).get(name)
            if own is None:
                judgement = Judgement(Verdict.NOT_RUN, "not run")
            elif name in printed.settings:
                judgement = Judgement(Verdict.NOT_COMPARABLE, "a setting, used as printed")
            elif own == value:
                judgement = Judgement(Verdict.REPRODUCED, "counted on the data")
            else:
                judgement = Judgement(Verdict.WORSE, f"the data have {own:g}")
            cells.append(SizeCell(dataset, name, value, own, judgement))
    return cells


def current_rows(study: Study, rows: Sequence[Row]) -> list[Row]:
    """The rows that match the present settings of the study."""
    outdated = set(stale_rows(study, rows))
    return [row for row in rows if row not in outdated]
