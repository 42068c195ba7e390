"""The search engine: it runs the tasks of a plan in threads, within a time limit.

A running task cannot be stopped. To hold a time limit, the engine therefore starts only what is
expected to end in time: plans state what a task should cost, and finished tasks correct that.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from sklearn import config_context, get_config

from harfe._core.arguments import is_whole
from harfe._core.threads import TaskThreads, n_threads, one_blas_thread
from harfe.selection.engine.plan import Cost, Plan, Stage, Task

AfterTask = Callable[[int, int], bool]


def count_workers(n_jobs: int | None) -> int:
    """Tasks that run side by side: None and -1 mean all threads, -2 all but one, n at most n."""
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"n_jobs={n_jobs!r} must be None or a whole number other than 0, e.g. n_jobs=2"
        )
    most = n_threads()
    wanted = most if n_jobs is None else int(n_jobs)
    return max(1, min(wanted if wanted > 0 else most + 1 + wanted, most))


class _Speed:
    """How much slower or faster tasks are than expected, learned from those that have ended."""

    def __init__(self) -> None:
        self._ratios: dict[str, list[float]] = {}

    def learn(self, task: Task, seconds: float) -> None:
        """Take in the time of a task, unless it is of several kinds or of none."""
        if len(task.costs) == 1 and task.costs[0].kind:
            cost = task.costs[0]
            self._ratios.setdefault(cost.kind, []).append(seconds / cost.seconds)

    def expect(self, costs: Sequence[Cost]) -> float:
        """Seconds; by tasks of all kinds where none of the kind has ended."""
        every = [ratio for ratios in self._ratios.values() for ratio in ratios] or [1.0]
        # The median: the first call also compiles.
        return sum(
            cost.seconds * float(np.median(self._ratios.get(cost.kind, every))) for cost in costs
        )


class Search:
    """Runs a plan.

    Parameters
    ----------
    plan : Plan
    n_jobs : int or None
        See `count_workers`. Results do not depend on it.
    deadline : float
        Value of the clock by which everything should have ended.
    memory : float
        Budget in bytes for tasks that run side by side.
    earlier : mapping of bytes to results
        Results of an earlier search, by the keys of its tasks, which are not run again.
    clock : callable
        Seconds since some moment.

    Attributes
    ----------
    finished : dict of bytes to results
        Results that a later search can reuse.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        n_jobs: int | None = 1,
        deadline: float = math.inf,
        memory: float = math.inf,
        earlier: Mapping[bytes, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan = plan
        self.finished: dict[bytes, Any] = {}
        self._workers = count_workers(n_jobs)
        self._deadline = deadline
        self._memory = memory
        self._earlier = earlier or {}
        self._clock = clock
        self._speed = _Speed()
        self._waiting: deque[tuple[int, Task]] = deque()
        self._running: dict[int, tuple[Task, float]] = {}
        self._done = 0
        self._stopped = False
        # Progress is read from another thread.
        self._lock = Lock()

    @property
    def most_tasks(self) -> int:
        """Maximum number of tasks of the search."""
        return self.plan.most_tasks

    @property
    def counts(self) -> tuple[int, int]:
        """Number of tasks done, and done and to come."""
        with self._lock:
            left = len(self._running) + len(self._waiting) + len(self.plan.later())
        return self._done, self._done + left

    @property
    def trying(self) -> str:
        """Labels of the tasks that run, or of those that run next."""
        with self._lock:
            tasks = [task for task, _ in self._running.values()]
            tasks = tasks or [task for _, task in list(self._waiting)[: self._workers]]
        return ", ".join(dict.fromkeys(task.label for task in tasks))

    def best_so_far(self) -> tuple[float, str] | None:
        """Best mean score and the settings that have it."""
        with self._lock:
            return self.plan.best_so_far()

    def seconds_left(self) -> float:
        """Expected time until the end of the search."""
        with self._lock:
            waiting = [task.costs for _, task in self._waiting]
            span = self._span([*waiting, *((cost,) for cost in self.plan.later())])
        return min(span, max(self._deadline - self._clock(), 0.0))

    def run(self, after_task: AfterTask = lambda done, planned: False) -> bool:
        """Run all stages, as far as the time limit allows and until `after_task` returns true.

        `after_task` gets the number of tasks done and planned. Returns whether everything was run.
        """
        complete = True
        with one_blas_thread(), TaskThreads(self._workers) as threads:
            for stage in self.plan.stages():
                if self._stopped and not stage.needed:
                    complete = False
                else:
                    complete = self._run_stage(stage, threads, after_task) and complete
        return complete

    def _run_stage(self, stage: Stage, threads: TaskThreads, after_task: AfterTask) -> bool:
        tasks = self._resume(stage.tasks())
        with self._lock:
            self._waiting.extend(enumerate(tasks))
        first = tasks[0].together if tasks and stage.needed else object()
        # Tasks share the threads that they do not need for running side by side.
        share = max(1, n_threads() // min(self._workers, max(len(tasks), 1)))
        results: dict[int, Any] = {}
        taken = 0
        while self._waiting or self._running:
            while self._waiting and self._has_room():
                number, task = self._waiting[0]
                if not (task.together == first or self._may_start(task.together, stage.reserve)):
                    with self._lock:
                        self._waiting.clear()
                    break
                with self._lock:
                    self._running[number] = task, self._clock()
                    self._waiting.popleft()
                # Other threads have settings of scikit-learn and numpy of their own.
                call = partial(copy_context().run, self._call, task, get_config())
                threads.start(number, call, share)
            if not self._running:
                break
            number, (result, seconds) = threads.next_result()  # type: ignore[assignment]
            with self._lock:
                task, _ = self._running.pop(number)
            self._speed.learn(task, seconds)
            results[number] = result
            while taken in results:
                self._take(tasks[taken], results.pop(taken))
                taken += 1
            self._done += 1
            self._stopped = after_task(*self.counts) or self._stopped
        return taken == len(tasks)

    def _call(self, task: Task, config: Mapping[str, Any]) -> tuple[Any, float]:
        started = self._clock()
        with config_context(**config):
            result = task.function(*task.arguments)
        return result, self._clock() - started

    def _resume(self, tasks: Sequence[Task]) -> list[Task]:
        """Reuse the results that are known, and return the other tasks."""
        left = []
        for task in tasks:
            for known in (self._earlier, self.finished):
                if task.key in known:
                    self._take(task, known[task.key])
                    break
            else:
                left.append(task)
        return left

    def _take(self, task: Task, result: Any) -> None:
        if task.key:
            self.finished[task.key] = result
        with self._lock:
            self.plan.take(task.name, result)

    def _has_room(self) -> bool:
        """Whether the next task may run beside those that do."""
        if not self._running:
            return True
        used = sum(task.memory for task, _ in self._running.values())
        fits = used + self._waiting[0][1].memory <= self._memory
        return len(self._running) < self._workers and fits

    def _may_start(self, group: Hashable, reserve: Sequence[Cost]) -> bool:
        """Whether what waits of a group is expected to end in time for what must follow."""
        if self._stopped:
            return False
        if self._deadline == math.inf:
            return True
        costs = [task.costs for _, task in self._waiting if task.together == group]
        then = self._span([(cost,) for cost in reserve], running=False)
        end = self._clock() + self._span(costs) + then
        return end <= self._deadline

    def _span(self, costs: Sequence[Sequence[Cost]], *, running: bool = True) -> float:
        """Expected time to run tasks with these costs after those that run already."""
        seconds = [self._speed.expect(cost) for cost in costs]
        if running:
            now = self._clock()
            seconds += [self._rest(task, now - at) for task, at in self._running.values()]
        return max(sum(seconds) / self._workers, max(seconds, default=0.0))

    def _rest(self, task: Task, elapsed: float) -> float:
        """Expected time until a running task ends; one that is late may well be so for longer."""
        return max(self._speed.expect(task.costs) - elapsed, elapsed / 4)
