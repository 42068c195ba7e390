"""Threads, memory, and parallel work whose result does not depend on the number of threads.

Work is cut into blocks whose size never depends on the number of threads; each block is computed
by one thread with a single-threaded BLAS. So 1 and 64 threads give the same numbers, and small
factorisations avoid the cost of waking threads. Whole tasks run side by side in `TaskThreads`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any

import numba
import scipy.linalg  # noqa: F401  (loads scipy's BLAS, so that the controller below sees it)
from threadpoolctl import ThreadpoolController

from harfe._core.arguments import is_number

_FALLBACK_MEMORY = 2 * 2**30
_MEMINFO = "/proc/meminfo"
_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def n_threads() -> int:
    """Threads to use: numba's setting, which joblib lowers inside its workers."""
    return int(numba.get_num_threads())


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _BlasLimit:
    """How many callers want BLAS on one thread; the last to leave restores what was before."""

    def __init__(self) -> None:
        self.lock, self.users, self.limiter = Lock(), 0, None

    def enter(self) -> None:
        with self.lock:
            if not self.users:
                self.limiter = _blas().limit(limits=1)
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if not self.users and self.limiter is not None:
                self.limiter.restore_original_limits()


_blas_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which BLAS and LAPACK use one thread: same bits everywhere, faster when small.

    The limit is that of the process, so it holds until all threads have left the context.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


@lru_cache(maxsize=2)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Thread pool of this process; a fork has another id and so gets its own pool."""
    return ThreadPoolExecutor(workers, thread_name_prefix="harfe")


def blocks(n: int, size: int) -> list[slice]:
    """Cut range(n) into slices of `size`, the last one possibly shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def run_blocks(work: Callable[[slice], None], parts: Iterable[slice]) -> None:
    """Call `work` on every part, on all threads; parts must write to disjoint memory."""
    parts = list(parts)
    workers = min(n_threads(), len(parts))
    if workers <= 1:
        for part in parts:
            work(part)
        return
    queue, lock = deque(parts), Lock()

    def worker() -> None:
        while True:
            with lock:
                if not queue:
                    return
                part = queue.popleft()
            try:
                work(part)
            except BaseException:
                queue.clear()
                raise

    pool = _pool(os.getpid(), n_threads())
    running = [pool.submit(worker) for _ in range(workers)]
    # All workers must end before an error propagates: parts write to the caller's arrays.
    wait(running)
    for done in running:
        done.result()


class TaskThreads:
    """Threads that run calls side by side; with one worker, the caller runs them itself.

    Each call may use `threads` threads for its own blocks. The threads are daemons: a program that
    is interrupted ends without waiting for them.
    """

    def __init__(self, workers: int) -> None:
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[tuple[Hashable, Any, BaseException | None]] = SimpleQueue()
        self._threads = [
            Thread(target=self._work, name=f"harfe task {n}", daemon=True)
            for n in range(workers if workers > 1 else 0)
        ]

    def __enter__(self) -> TaskThreads:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _ in self._threads:
            self._calls.put(None)
        # An interruption does not wait for what still runs; an error does, as calls read arrays
        # that belong to the caller.
        if kind is None or issubclass(kind, Exception):
            for thread in self._threads:
                thread.join()

    def start(self, name: Hashable, call: Callable[[], Any], threads: int = 1) -> None:
        """Run a call, in one of the threads if there are several."""
        if self._threads:
            self._calls.put((name, call, threads))
        else:
            self._results.put((name, call(), None))

    def next_result(self) -> tuple[Hashable, Any]:
        """Wait for the next call to end: its name and result; an error in the call is raised."""
        name, result, error = self._wait()
        if error is not None:
            raise error
        return name, result

    def _wait(self) -> tuple[Hashable, Any, BaseException | None]:
        while True:
            # Some systems deliver Ctrl-C only between waits.
            with suppress(Empty):
                return self._results.get(timeout=0.5)

    def _work(self) -> None:
        while (given := self._calls.get()) is not None:
            name, call, threads = given
            try:
                numba.set_num_threads(threads)
                self._results.put((name, call(), None))
            except BaseException as error:
                self._results.put((name, None, error))


def available_memory() -> int:
    """Bytes that can be allocated now: the system's available memory, capped by a container's."""
    free = _system_memory()
    for limit, used in _CGROUP_FILES:
        try:
            free = min(free, int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    return max(free, 0)


def _system_memory() -> int:
    """Bytes that Linux calls available, which unlike free memory include reclaimable caches."""
    try:
        table = Path(_MEMINFO).read_text()
        return int(table.split("MemAvailable:")[1].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _FALLBACK_MEMORY


def memory_bytes(memory_budget: Any) -> float:
    """Resolve `memory_budget` to the bytes that a fit may use."""
    if isinstance(memory_budget, str) and memory_budget == "auto":
        return available_memory() / 2
    if not is_number(memory_budget) or not memory_budget > 0:
        raise ValueError(
            f"memory_budget={memory_budget!r} must be 'auto' or a positive number of bytes, "
            "e.g. 2e9"
        )
    return float(memory_budget)
