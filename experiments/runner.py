"""Run a study: compute the missing rows in worker processes and save each one at once."""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.config import Study, Task, study_name
from experiments.results import ResultsError, ResultsFile, Row
from experiments.tables import ConfigError, nearest
from experiments.worker import Job, measure, prepare

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

Selection = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Progress:
    """What a run reports after each task."""

    done: int  # tasks of the selection with a row, including earlier runs
    total: int
    row: Row
    at_work: tuple[Task, ...]
    seconds_left: float | None  # None until every method has been timed


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    computed: int
    failed: int
    left: int
    reason: str  # "finished", "time is up" or "interrupted"
    skipped: tuple[str, ...] = ()  # methods of the selection whose package is not installed


def run(
    study: Study,
    results: ResultsFile,
    *,
    jobs: int = 1,
    only: Selection | None = None,
    max_time: float | None = None,
    redo: bool = False,
    retry: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Run all tasks of the selection that have no row yet.

    Parameters
    ----------
    study : Study
        What to run.
    results : ResultsFile
        Where rows are looked up and appended. Only this process writes to it.
    jobs : int
        Number of worker processes of one thread each; results do not depend on it.
    only : mapping, optional
        Names of the parts, problems, methods or repetitions to run.
    max_time : float, optional
        No task starts after this many seconds.
    redo : bool
        Whether to drop rows whose settings have changed. Otherwise they raise an error.
    retry : bool
        Whether to rerun failed tasks.
    report : callable
        Called with a `Progress` after every task.
    """
    with _alone(study.path):
        tasks = select(study.tasks(), only)  # rejects a wrong selection before dropping rows
        rows = _prune(study, results, only, redo, retry)
        skipped = _not_installed(study, tasks)
        tasks = [task for task in tasks if task.method not in skipped]
        outcome = _work(study, results, tasks, rows, jobs, max_time, report)
        return replace(outcome, skipped=skipped)


def _work(
    study: Study,
    results: ResultsFile,
    tasks: Sequence[Task],
    rows: Sequence[Row],
    jobs: int,
    max_time: float | None,
    report: Callable[[Progress], None],
) -> Outcome:
    """Run the tasks that have no row."""
    start = time.monotonic()
    known = {row.task for row in rows}
    todo = [task for task in tasks if task not in known]
    done, failed = len(tasks) - len(todo), 0
    clock = _Clock(rows)
    running: dict[Future[Row], Task] = {}
    reason, computed = "finished", 0
    before = set(multiprocessing.active_children())
    # Spawned even for one job: this process and its forks have already started their threads.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=prepare)
    try:
        while todo or running:
            finished = []
            # The first round only starts tasks.
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                row = future.result()
                del running[future]
                results.append(row)
                clock.learn(row)
                finished.append(row)
            if max_time is not None and time.monotonic() - start >= max_time and todo:
                reason, todo = "time is up", []
            while todo and len(running) < jobs:
                task = todo.pop(0)
                running[pool.submit(measure, job_of(study, task))] = task
            for row in finished:
                computed, done, failed = computed + 1, done + 1, failed + bool(row.failure)
                at_work = tuple(running.values())
                left = clock.seconds([*todo, *at_work])
                report(Progress(done, len(tasks), row, at_work, left and left / jobs))
    except KeyboardInterrupt:
        reason = "interrupted"
    finally:
        pool.shutdown(wait=reason != "interrupted" and not running, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()  # only those still running after an interrupt or an error
            child.join()
    return Outcome(computed, failed, len(tasks) - done, reason)


def select(tasks: Iterable[Task], only: Selection | None) -> list[Task]:
    """The tasks whose names are among those given; unknown names are an error."""
    chosen = list(tasks)
    for field, names in (only or {}).items():
        if field not in Task._fields:
            raise ConfigError(f"--only {field}=...: unknown. {nearest(field, Task._fields)}")
        there = {str(getattr(task, field)) for task in chosen}
        for name in names:
            if name not in there:
                raise ConfigError(f"--only {field}={name}: unknown. {nearest(name, there)}")
    return [task for task in chosen if _selected(task, only)]


def _not_installed(study: Study, tasks: Iterable[Task]) -> tuple[str, ...]:
    """The methods of these tasks whose package is missing."""
    needs = {task.method: study.methods[task.method].needs for task in tasks}
    return tuple(
        method
        for method, package in needs.items()
        if package and importlib.util.find_spec(package) is None
    )


def stale_rows(study: Study, rows: Iterable[Row]) -> list[Row]:
    """Rows that do not belong to the study, or whose settings have changed."""
    current = set(study.tasks())
    return [
        row for row in rows if row.task not in current or row.hash != study.fingerprint(row.task)
    ]


def _selected(task: Task, only: Selection | None) -> bool:
    return all(str(getattr(task, field)) in names for field, names in (only or {}).items())


@contextlib.contextmanager
def _alone(config: Path) -> Iterator[None]:
    """Reject a concurrent run of the same study: both would append the same rows."""
    with config.open("rb") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ResultsError(
                    f"Another run of {study_name(config)} is in progress. Wait for it, or stop it."
                ) from None
        yield


def _prune(
    study: Study, results: ResultsFile, only: Selection | None, redo: bool, retry: bool
) -> list[Row]:
    """The rows to keep, after dropping those to rerun."""
    rows = results.read()
    stale = [row for row in stale_rows(study, rows) if _selected(row.task, only)]
    if stale and not redo:
        pairs = sorted({f"{row.method} on {row.problem} ({row.part})" for row in stale})
        shown = "; ".join(pairs[:5]) + (f"; and {len(pairs) - 5} more" if len(pairs) > 5 else "")
        raise ResultsError(
            f"{len(stale)} rows of {results.path.name} were computed with other settings than "
            f"those of the config: {shown}. Run with --redo to drop and recompute them."
        )
    again = {row.task for row in stale}
    if retry:
        again |= {row.task for row in rows if row.failure and _selected(row.task, only)}
    if again:
        rows = [row for row in rows if row.task not in again]
        results.rewrite(rows)
    return rows


def job_of(study: Study, task: Task) -> Job:
    """Everything that a worker needs for a task of the study."""
    adapter = study.adapters[task.method, task.problem]
    keep = study.parts[task.part].keep_predictions
    return Job(task, study.sources[task.part], adapter, study.fingerprint(task), keep)


class _Clock:
    """Estimates the time of a task from its method on that problem, or else on any problem."""

    def __init__(self, rows: Iterable[Row]):
        self._times: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for row in rows:
            self.learn(row)

    def learn(self, row: Row) -> None:
        if row.fit_seconds is not None and row.predict_seconds is not None:
            for key in ((row.method,), (row.method, row.part, row.problem)):
                self._times[key].append(row.fit_seconds + row.predict_seconds)

    def seconds(self, tasks: Iterable[Task]) -> float | None:
        """One-thread seconds for all of these; None if a method has not been timed yet."""
        total = 0.0
        for task in tasks:
            own = self._times.get((task.method, task.part, task.problem))
            times = own or self._times.get((task.method,))
            if not times:
                return None
            total += statistics.fmean(times)
        return total
