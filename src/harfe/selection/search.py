"""The search engine: tasks in stages, with a deadline, progress, resumption and parallel execution.

A plan says what to run; the engine runs it. Every search of the package is a plan: the race over a
grid of laws, the race of learned laws with the sparse models under the winner, and the choice of a
rival's settings.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

AfterTask = Callable[[int, int], bool]


@dataclass(frozen=True)
class Task:
    """A call whose result a plan needs.

    Attributes
    ----------
    name : hashable
        How the plan identifies the result.
    label : str
        Description of the task in messages.
    function, arguments
        The call; with several jobs it runs in another process.
    key : bytes
        Digest of everything the result depends on; empty for tasks that are never resumed.
    """

    name: Hashable
    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    key: bytes = b""


@dataclass(frozen=True)
class Stage:
    """Tasks that do not depend on each other.

    Attributes
    ----------
    tasks : callable
        Returns the tasks when the stage begins. This is where a plan drops candidates.
    needed : bool
        Whether its first tasks run even past the deadline, as nothing can be chosen without them.
    whole : bool
        Whether all of its tasks run once the first has begun.
    """

    tasks: Callable[[], Sequence[Task]]
    needed: bool = False
    whole: bool = False


class Plan(Protocol):
    """What a search runs, and how it uses the results."""

    @property
    def most_tasks(self) -> int:
        """Maximum number of tasks of the plan."""

    def stages(self) -> Iterator[Stage]:
        """Yield the stages, each once the results of the previous ones are known."""

    def take(self, name: Any, result: Any) -> None:
        """Accept the result of a task."""

    def tasks_later(self) -> int:
        """Number of tasks expected after the current stage."""

    def best_so_far(self) -> tuple[float, str]:
        """Best mean score and the settings that have it."""


class Search:
    """Runs a plan.

    Parameters
    ----------
    plan : Plan
    n_jobs : int or None
        Processes, as in joblib.
    deadline : float
        Value of time.monotonic() after which no task is started, except those that are needed.
    earlier : mapping of bytes to results
        Results of an earlier search, by the keys of its tasks, which are not run again.

    Attributes
    ----------
    trying : str
        Labels of the tasks that run next; empty if not yet known.
    finished : dict of bytes to results
        Results that a later search can reuse.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        n_jobs: int | None = 1,
        deadline: float = math.inf,
        earlier: Mapping[bytes, Any] | None = None,
    ) -> None:
        self.plan = plan
        self.trying = ""
        self.finished: dict[bytes, Any] = {}
        self._workers = effective_n_jobs(n_jobs)
        self._deadline = deadline
        self._earlier = earlier or {}
        self._done = 0
        self._stopped = False

    @property
    def most_tasks(self) -> int:
        """Maximum number of tasks of the search."""
        return self.plan.most_tasks

    def best_so_far(self) -> tuple[float, str]:
        """Best mean score and the settings that have it."""
        return self.plan.best_so_far()

    def run(self, after_task: AfterTask = lambda done, planned: False) -> bool:
        """Run all stages, until the deadline or until `after_task` returns true.

        `after_task` gets the number of tasks done and planned. Returns whether everything was run.
        """
        complete = True
        for stage in self.plan.stages():
            if self._stopped and not stage.needed:
                complete = False
                continue
            complete = self._run_stage(stage, after_task) and complete
        return complete

    def _run_stage(self, stage: Stage, after_task: AfterTask) -> bool:
        tasks = self._resume(stage.tasks())
        step = self._workers
        for start in range(0, len(tasks), step):
            if self._stopped and start and not stage.whole:
                return False
            chunk, coming = tasks[start : start + step], tasks[start + step : start + 2 * step]
            for task, result in zip(chunk, self._call(chunk), strict=True):
                self._take(task, result)
            self.trying = ", ".join(dict.fromkeys(task.label for task in coming))
            self._done += len(chunk)
            left = len(tasks) - start - len(chunk) + self.plan.tasks_later()
            asked = after_task(self._done, self._done + left)
            self._stopped = self._stopped or asked or time.monotonic() > self._deadline
        return True

    def _resume(self, tasks: Sequence[Task]) -> list[Task]:
        """Reuse the results of an earlier search, and return the other tasks."""
        for task in tasks:
            if task.key in self._earlier:
                self._take(task, self._earlier[task.key])
        return [task for task in tasks if task.key not in self._earlier]

    def _take(self, task: Task, result: Any) -> None:
        if task.key:
            self.finished[task.key] = result
        self.plan.take(task.name, result)

    def _call(self, tasks: Sequence[Task]) -> list[Any]:
        if self._workers == 1 or len(tasks) == 1:
            return [task.function(*task.arguments) for task in tasks]
        calls = (delayed(task.function)(*task.arguments) for task in tasks)
        return list(Parallel(n_jobs=self._workers)(calls))


class Digest:
    """Incremental digest of everything that results depend on."""

    def __init__(self, *parts: Any) -> None:
        self._hash = hashlib.sha256()
        for part in parts:
            self._add(part)

    def _add(self, part: Any) -> None:
        if isinstance(part, np.ndarray):
            self._hash.update(repr((part.shape, part.dtype)).encode() + part.tobytes())
        else:
            self._hash.update(repr(part).encode())

    def key(self, *parts: Any) -> bytes:
        """Return the digest with these parts added; this object does not change."""
        other = Digest()
        other._hash = self._hash.copy()
        for part in parts:
            other._add(part)
        return other._hash.digest()
