"""A plan with a time limit: a model of few rows first, then the plan, as far as time allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from harfe.selection.engine.plan import Cost, Plan, Stage, Task
from harfe.selection.results import SearchOutcome

# Rows of the first model. While there is time for more rows but not for all, this many times more.
FIRST_ROWS, _GROWTH = 300, 4

# Rows of a tiny model, so that what the first call compiles does not look like the cost of a call.
_WARM_UP_ROWS = 30


class ModelPlan(Plan, Protocol):
    """A plan that ends with a model."""

    @property
    def usable(self) -> bool:
        """Whether the results so far are enough for a model."""

    def outcome(self) -> SearchOutcome:
        """Choose among the results, and return the model."""


class LimitedPlan:
    """Runs a plan as far as time allows; if that is not far enough, plans of some of the rows.

    Parameters
    ----------
    full : ModelPlan
    small : callable
        (number of rows, whether any model will do) -> a plan of one candidate on one fold with at
        most so many training rows, whose fit is the model.
    n_rows : int
        Training rows of a fold: small plans have no more.
    """

    def __init__(
        self, full: ModelPlan, small: Callable[[int, bool], ModelPlan], n_rows: int
    ) -> None:
        self._full, self._small, self._n_rows = full, small, n_rows
        self._current = self._best = full

    @property
    def most_tasks(self) -> int:
        """Maximum number of tasks: those of the plan itself, and of a few small ones."""
        sizes = 2
        while FIRST_ROWS * _GROWTH ** (sizes - 2) < self._n_rows:
            sizes += 1
        return self._full.most_tasks + sizes * self._small(_WARM_UP_ROWS, True).most_tasks

    def stages(self) -> Iterator[Stage]:
        """Yield the stages of a small plan, of the full one, and if that fails of larger ones."""
        yield from self._run(self._small(_WARM_UP_ROWS, True), learn=False, needed=True)
        n = FIRST_ROWS
        yield from self._run(self._small(n, False), needed=True)
        yield from self._run(self._full)
        while self._best is not self._full and n < self._n_rows:
            n *= _GROWTH
            larger = self._small(n, False)
            yield from self._run(larger)
            if self._best is not larger:
                return

    def _run(self, plan: ModelPlan, *, learn: bool = True, needed: bool = False) -> Iterator[Stage]:
        self._current = plan
        for stage in plan.stages():
            tasks = partial(self._tasks, stage.tasks, learn)
            yield replace(stage, tasks=tasks, needed=needed)
        if plan.usable:
            self._best = plan

    def _tasks(self, tasks: Callable[[], Sequence[Task]], learn: bool) -> list[Task]:
        """The tasks; of no kind if nothing is to be learned from their times."""
        return [task if learn else replace(task, costs=(Cost(),)) for task in tasks()]

    def take(self, name: Any, result: Any) -> None:
        """Pass a result on to the plan that asked for it."""
        self._current.take(name, result)

    def later(self) -> list[Cost]:
        """Costs of the tasks expected after the current stage."""
        later = list(self._current.later())
        return later if self._current is self._full else [*later, *self._full.later()]

    def best_so_far(self) -> tuple[float, str] | None:
        """Best mean score so far, and the settings that have it."""
        return self._current.best_so_far() or self._best.best_so_far()

    def outcome(self) -> SearchOutcome:
        """The model of the plan itself, or of the most rows that there was time for."""
        return self._best.outcome()
