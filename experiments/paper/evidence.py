"""Everything that was measured: the studies of the paper with their rows, by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.config import Study
from experiments.paper.verdicts import Printed, PrintedCell, judged_cells
from experiments.results import Row
from experiments.summary import Cell, table


class NotRunError(Exception):
    """The requested result has no row yet; the message names it."""


@dataclass(frozen=True)
class Evidence:
    """Studies by name, their rows, and the published numbers."""

    studies: Mapping[str, Study]
    rows: Mapping[str, Sequence[Row]]  # of each study, those that match its settings
    printed: Printed

    def problems(self, study: str, part: str) -> tuple[str, ...]:
        """The problems of a part."""
        return self.studies[study].parts[part].problems

    def cell(self, study: str, part: str, problem: str, method: str, column: str) -> Cell:
        """The values of a method on a problem.

        Raises
        ------
        NotRunError
            If there are none.
        """
        known = self.studies[study].parts[part]
        if problem in known.problems and method in known.methods:
            own = [row for row in self.rows[study] if row.problem == problem]
            found = table(self.studies[study], part, own, column)[problem][method]
            if found.values:
                return found
        raise NotRunError(f"{method} on {problem} ({study}) has not been run")

    def median(self, study: str, part: str, problem: str, method: str, column: str) -> float:
        """The median over the repetitions."""
        return self.cell(study, part, problem, method, column).median

    def details(self, study: str, problem: str, method: str) -> list[dict[str, Any]]:
        """The details of a method on a problem, one dictionary per draw."""
        rows = [
            row
            for row in self.rows[study]
            if (row.problem, row.method) == (problem, method) and row.details
        ]
        if not rows:
            raise NotRunError(f"{method} on {problem} ({study}) has not been run")
        return [json.loads(row.details) for row in sorted(rows, key=lambda row: row.repetition)]

    def cells(self, name: str) -> Iterator[PrintedCell]:
        """The cells of a printed table, judged."""
        return judged_cells(name, self.printed.tables[name], self.studies[name], self.rows[name])

    def found_sizes(self) -> dict[str, dict[str, float]]:
        """Sizes and settings of Table 3 as found in the rows."""
        found: dict[str, dict[str, float]] = {}
        for row in self.rows["table3"]:
            chosen = dict(word.split("=", 1) for word in row.chosen.split())
            found[row.problem] = {
                "dim": json.loads(row.details)["inputs"],
                "train": row.n_train,
                "val": row.n_test,
                "N": float(chosen["n_components"]),
                "s": float(chosen["n_nonzero_coefs"]),
                "m_lambda": float(chosen["alpha"]),
                "q": float(chosen["order"]),
            }
        return found
