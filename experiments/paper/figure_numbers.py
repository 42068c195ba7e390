"""The numbers of the figures: tables computed from the rows of a study.

All computation for a figure, and the names of its values, are here. Nothing is drawn.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from experiments.config import Study
from experiments.paper.verdicts import spread
from experiments.results import Row, csv_text

PRINTED_RATIO = 2.5  # seconds of SRFE / seconds of HARFE, as the paper states
PRINTED_STEP = 0.1  # μ of the paper
TRUE_INPUTS = 5  # of g: the first ones
FUNCTIONS = {"friedman1": "f1", "friedman2": "f2", "friedman3": "f3"}
TIMED = {"harfe": "HARFE", "srfe": "SRFE", "spgl1": "SRFE by spgl1"}


@dataclass(frozen=True)
class Numbers:
    """The numbers of a figure: named columns, a tuple for every row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def groups(self, name: str) -> dict[Any, Numbers]:
        """The rows by their value in a column, in order of first appearance."""
        return {value: self.among(name, [value]) for value in dict.fromkeys(self.column(name))}

    def among(self, name: str, wanted: Collection[Any]) -> Numbers:
        """The rows whose value in a column is one of these."""
        pairs = zip(self.column(name), self.rows, strict=True)
        return Numbers(self.columns, tuple(row for value, row in pairs if value in wanted))

    def text(self) -> str:
        """The numbers as CSV, floats with five digits."""
        lines = [[f"{v:.5g}" if isinstance(v, float) else v for v in row] for row in self.rows]
        return csv_text([self.columns, *lines])


# --- figures of the paper ---


def parity(study: Study, rows: Sequence[Row]) -> Numbers:
    """Figure 2: true and predicted values of repetition 0, and its relative error."""
    found = []
    for group in _groups(study, rows):
        first = [row for row in group.rows if row.repetition == 0 and row.details]
        for row in first:
            kept = json.loads(row.details)
            for truth, predicted in zip(kept["truth"], kept["predicted"], strict=True):
                found.append((group.problem, float(truth), float(predicted), row.error_relative))
    return Numbers(("problem", "truth", "predicted", "relative_error"), tuple(found))


def run_times(study: Study, rows: Sequence[Row]) -> Numbers:
    """Figure 3: median seconds over the repetitions, by part, method (without its N) and N."""
    found = []
    for group in _groups(study, rows):
        seconds = group.median("fit_seconds")
        if seconds > 0:
            count = study.methods[group.method].settings["N"]
            found.append((group.part, group.method.split(",")[0], count, seconds))
    return Numbers(("part", "method", "N", "seconds"), tuple(found))


def ratios(study: Study, rows: Sequence[Row]) -> Numbers:
    """Median seconds of the other methods / median seconds of HARFE, in the same part at equal N.

    Cases without a time of HARFE are omitted, and so is HARFE itself.
    """
    times = run_times(study, rows).rows
    harfe = {(part, count): seconds for part, method, count, seconds in times if method == "harfe"}
    found = [
        (part, method, count, seconds, seconds / harfe[part, count])
        for part, method, count, seconds in times
        if method != "harfe" and (part, count) in harfe
    ]
    return Numbers(("part", "method", "N", "seconds", "ratio"), tuple(found))


def growth_exponents(study: Study, rows: Sequence[Row]) -> Numbers:
    """Least-squares slope of log(median seconds) against log(N), for two or more N."""
    found = []
    for part, in_part in run_times(study, rows).groups("part").items():
        for method, own in in_part.groups("method").items():
            if len(own.rows) > 1:
                x, y = np.log(own.column("N")), np.log(own.column("seconds"))
                x = x - x.mean()
                found.append((part, method, float(x @ y / (x @ x))))
    return Numbers(("part", "method", "exponent"), tuple(found))


def inputs_of_g(study: Study, rows: Sequence[Row]) -> Numbers:
    """Figure 4: percent of the features that use each input, mean over the draws.

    `leads` counts the `draws` in which every input that matters is in more of the kept features
    than any that does not.
    """
    found = []
    for group in _groups(study, rows):
        shares = group.details("kept")
        if shares:
            kept = [share["kept"] for share in shares]
            leads = sum(min(own[:TRUE_INPUTS]) > max(own[TRUE_INPUTS:]) for own in kept)
            label = study.methods[group.method].label
            for number in range(len(kept[0])):
                means = [
                    float(np.mean([100 * share[what][number] for share in shares]))
                    for what in ("kept", "weighted", "drawn")
                ]
                found.append((label, number + 1, *means, leads, len(kept)))
    columns = ("method", "input", "kept", "weighted", "drawn", "leads", "draws")
    return Numbers(columns, tuple(found))


def inputs_of_real_data(study: Study, rows: Sequence[Row]) -> Numbers:
    """Figure 5: percent of the features that use each input, mean and 10-90 % over the draws."""
    found = []
    for group in _groups(study, rows):
        shares = group.details("kept")
        for number in range(len(shares[0]["kept"]) if shares else 0):
            over = {
                what: [100 * share[what][number] for share in shares]
                for what in ("kept", "weighted", "drawn")
            }
            means = {what: float(np.mean(values)) for what, values in over.items()}
            told = (means["kept"], *spread(over["kept"]), means["weighted"], means["drawn"])
            found.append((group.problem, number + 1, *told, len(shares)))
    columns = ("problem", "input", "kept", "p10", "p90", "weighted", "drawn", "draws")
    return Numbers(columns, tuple(found))


# --- figures beyond the paper ---


def steps(study: Study, rows: Sequence[Row]) -> Numbers:
    """Median error (the part's measure) at every μ, also divided by that at the paper's μ."""
    medians: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
    for group in _groups(study, rows):
        error = group.median(study.parts[group.part].measures[0])
        if error > 0:
            step = float(study.methods[group.method].settings["mu"])
            medians[group.part, group.problem][step] = error
    found = [
        (part, problem, step, error, error / own[PRINTED_STEP])
        for (part, problem), own in medians.items()
        if PRINTED_STEP in own
        for step, error in sorted(own.items())
    ]
    return Numbers(("part", "problem", "mu", "median", "relative"), tuple(found))


def spoilt(study: Study, rows: Sequence[Row]) -> Numbers:
    """Median error against the noise-free function, by corruption of the training rows."""
    found = []
    for group in _groups(study, rows):
        settings = study.parts[group.part].source_settings
        amounts = [
            (kind, float(settings[kind])) for kind in ("noise", "outliers") if kind in settings
        ]
        error = group.median("error_clean")
        if error > 0:
            label = study.methods[group.method].label
            spoiling = amounts[0] if amounts else ("as is", 0.0)
            found.append((group.part, *spoiling, group.problem, label, error))
    return Numbers(("part", "kind", "amount", "problem", "method", "median"), tuple(found))


def tickets(study: Study, rows: Sequence[Row]) -> Numbers:
    """Median and 10-90 % range over the draws of the noise-free error, by N/m."""
    found = []
    for group in _groups(study, rows):
        errors = group.values("error_clean")
        if errors and min(errors) > 0:
            count = int(study.methods[group.method].settings["N"])
            where = (
                group.problem,
                group.method.split(",")[0],
                count,
                count / group.rows[0].n_train,
            )
            found.append((*where, group.median("error_clean"), *spread(errors)))
    return Numbers(("problem", "method", "N", "N_per_m", "median", "p10", "p90"), tuple(found))


# --- repetitions ---


def repetition_counts(study: Study, rows: Sequence[Row]) -> set[int]:
    """All numbers of repetitions that a method has on a problem, without zero."""
    return {len(group.rows) for group in _groups(study, rows)}


class _Group(NamedTuple):
    """The successful repetitions of a method on a problem, in order."""

    part: str
    problem: str
    method: str
    rows: list[Row]

    def values(self, column: str) -> list[float]:
        found = [getattr(row, column) for row in self.rows]
        return [float(value) for value in found if value is not None]

    def median(self, column: str) -> float:
        """The median; nan if there are no values."""
        values = self.values(column)
        return float(np.median(values)) if values else math.nan

    def details(self, key: str) -> list[dict[str, Any]]:
        """The details of the rows that have this key."""
        found = [json.loads(row.details) for row in self.rows if row.details]
        return [details for details in found if key in details]


def _groups(study: Study, rows: Sequence[Row]) -> Iterator[_Group]:
    """The rows of the study in its order, without failures."""
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.repetition):
        if not row.failure:
            found[row.part, row.problem, row.method].append(row)
    for part, entry in study.parts.items():
        for problem in entry.problems:
            for method in entry.methods:
                if found[part, problem, method]:
                    yield _Group(part, problem, method, found[part, problem, method])
