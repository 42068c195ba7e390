"""The numbers of tables and figures, computed from rows of results; nothing is drawn here."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.config import Study
from experiments.results import Row


@dataclass(frozen=True)
class Cell:
    """The results of a method on a problem."""

    values: tuple[float, ...]  # of the repetitions that succeeded
    failed: int
    expected: int

    @property
    def mean(self) -> float:
        """Mean over the repetitions; nan without any."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def median(self) -> float:
        """Median over the repetitions; nan without any."""
        return statistics.median(self.values) if self.values else math.nan

    @property
    def spread(self) -> float:
        """Standard deviation (n - 1); nan with fewer than two repetitions."""
        return statistics.stdev(self.values) if len(self.values) > 1 else math.nan

    @property
    def done(self) -> int:
        """Repetitions with a row."""
        return len(self.values) + self.failed

    @property
    def complete(self) -> bool:
        """Whether there are repetitions, all are done and none failed."""
        return 0 < len(self.values) == self.expected


@dataclass(frozen=True)
class Standing:
    """Ratios to another method over all problems."""

    mean: float  # geometric
    error: float  # standard error of the mean, from the spread of the logarithms
    largest: float
    where: str  # the problem with the largest


@dataclass(frozen=True)
class Point:
    """A point of a curve: the error of a method with so many training rows."""

    table: str
    method: str
    rows: int
    error: float
    spread: float  # standard deviation over the repetitions
    repetitions: int


Table = Mapping[str, Mapping[str, Cell]]  # by problem and method
Ratios = Mapping[str, Mapping[str, float]]  # by problem and method


def table(study: Study, part: str, rows: Iterable[Row], column: str) -> Table:
    """One column of the results of a part, by problem and method."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.part == part:
            groups[row.problem, row.method].append(row)
    cells: dict[str, dict[str, Cell]] = {}
    for problem in study.parts[part].problems:
        cells[problem] = {}
        for method in study.parts[part].methods:
            own = sorted(groups[problem, method], key=lambda row: row.repetition)
            found = [getattr(row, column) for row in own if not row.failure]
            values = tuple(float(value) for value in found if value is not None)
            failed = sum(bool(row.failure) for row in own)
            expected = study.repetitions(part, problem, method)
            cells[problem][method] = Cell(values, failed, expected)
    return cells


def comparable(study: Study, part: str, cells: Table) -> Table:
    """The table without methods that run less often than others: their means are of fewer data."""
    most = study.parts[part].repetitions
    limits = {name: study.methods[name].repetitions or most for name in study.parts[part].methods}
    return {
        problem: {name: cell for name, cell in by_method.items() if limits[name] >= most}
        for problem, by_method in cells.items()
    }


def best_methods(cells: Mapping[str, Cell]) -> set[str]:
    """The methods with the smallest mean on a problem, without those that have failures."""
    means = {method: cell.mean for method, cell in cells.items() if cell.values and not cell.failed}
    return {method for method, mean in means.items() if mean == min(means.values())}


def mean_ranks(cells: Table) -> tuple[dict[str, float], int]:
    """Mean rank of every method, and the number of problems it is averaged over.

    Only problems on which every method is complete count, so that all methods are ranked on the
    same problems; tied methods get the mean of their ranks.
    """
    ranks: dict[str, list[float]] = defaultdict(list)
    for by_method in cells.values():
        if all(cell.complete for cell in by_method.values()):
            means = {method: cell.mean for method, cell in by_method.items()}
            for method, rank in _ranks(means).items():
                ranks[method].append(rank)
    count = len(next(iter(ranks.values()))) if ranks else 0
    return {method: statistics.fmean(values) for method, values in ranks.items()}, count


def relative_errors(cells: Table) -> list[tuple[str, str, float]]:
    """(problem, method, mean error / smallest mean error on the problem), as in the figure."""
    found = []
    for problem, by_method in cells.items():
        means = {method: cell.mean for method, cell in by_method.items() if cell.values}
        smallest = min(means.values(), default=math.nan)
        if smallest > 0:
            found += [(problem, method, mean / smallest) for method, mean in means.items()]
    return found


def geometric_means(
    relative: Sequence[tuple[str, str, float]], methods: Sequence[str]
) -> dict[str, float]:
    """Geometric mean of the relative errors of every method that has one on every problem."""
    by_method: dict[str, list[float]] = defaultdict(list)
    for _, method, ratio in relative:
        by_method[method].append(math.log(ratio))
    count = len({problem for problem, _, _ in relative})
    return {
        method: math.exp(statistics.fmean(by_method[method]))
        for method in methods
        if count and len(by_method[method]) == count
    }


def ratios(study: Study, part: str, rows: Iterable[Row], column: str) -> Ratios:
    """Errors over those of the part's `compare_to`, by problem and method.

    Each is the geometric mean over the repetitions that both methods have. Without any, there is no
    entry.
    """
    entry = study.parts[part]
    errors: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows:
        if row.part == part and (value := getattr(row, column)):
            errors[row.problem, row.method][row.repetition] = value
    found: dict[str, dict[str, float]] = {}
    for problem in entry.problems:
        base = errors[problem, entry.compare_to]
        logs = {
            method: [
                math.log(value / base[repetition])
                for repetition, value in errors[problem, method].items()
                if repetition in base
            ]
            for method in entry.methods
        }
        found[problem] = {
            name: math.exp(statistics.fmean(own)) for name, own in logs.items() if own
        }
    return {problem: by_method for problem, by_method in found.items() if by_method}


def standing(found: Ratios, method: str) -> Standing | None:
    """What the ratios of a method come to; None unless it has one on every problem."""
    own = {problem: ratio[method] for problem, ratio in found.items() if method in ratio}
    if not own or len(own) < len(found):
        return None
    logs = [math.log(ratio) for ratio in own.values()]
    mean = math.exp(statistics.fmean(logs))
    error = mean * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    where = max(own, key=lambda problem: own[problem])
    return Standing(mean, error, own[where], where)


def learning_curves(study: Study, part: str, rows: Sequence[Row], column: str) -> list[Point]:
    """Mean errors of a part whose problems are named TABLE/ROWS, in the order of the config."""
    counts = {row.problem: row.n_train for row in rows if row.part == part}
    found = []
    for problem, by_method in table(study, part, rows, column).items():
        name = problem.partition("/")[0]
        for method, cell in by_method.items():
            if cell.values:
                done = len(cell.values)
                found.append(Point(name, method, counts[problem], cell.mean, cell.spread, done))
    return found


def _ranks(values: Mapping[str, float]) -> dict[str, float]:
    ordered = sorted(values.values())
    return {
        name: ordered.index(value) + (ordered.count(value) + 1) / 2
        for name, value in values.items()
    }
