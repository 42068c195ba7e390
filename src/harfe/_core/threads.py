"""Threads, memory, and parallel work whose result does not depend on the number of threads.

Work is cut into blocks whose size never depends on the number of threads; each block is computed
by one thread with a single-threaded BLAS. So 1 and 64 threads give the same numbers, and small
factorisations avoid the cost of waking threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from threading import Lock
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


def one_blas_thread() -> AbstractContextManager[object]:
    """Context in which BLAS and LAPACK use one thread: same bits everywhere, faster when small."""
    return _blas().limit(limits=1)


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
