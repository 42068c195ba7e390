"""Blocks, threads, forks and memory."""

import multiprocessing
import os
import sys
import threading

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from harfe._core import threads as machine
from harfe._core.threads import available_memory, blocks, n_threads, one_blas_thread, run_blocks

MORE_THAN_ONE = pytest.mark.skipif(
    numba.config.NUMBA_NUM_THREADS < 2, reason="numba offers a single thread on this machine"
)


@pytest.fixture
def set_threads():
    """Set numba's number of threads for one test."""
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


# --- Blocks ---


@given(n=st.integers(0, 3000), size=st.integers(1, 700))
@settings(deadline=None, max_examples=200)
def test_blocks_cover_the_range_exactly(n, size):
    parts = blocks(n, size)
    covered = [i for part in parts for i in range(n)[part]]
    assert covered == list(range(n))
    assert all(part.stop - part.start == size for part in parts[:-1])
    assert all(0 < part.stop - part.start <= size for part in parts[-1:])
    assert all(part.stop <= n for part in parts)


@pytest.mark.parametrize(
    ("n", "size", "edges"),
    [
        (0, 5, []),
        (5, 5, [(0, 5)]),
        (6, 5, [(0, 5), (5, 6)]),
        (4, 5, [(0, 4)]),
        (3, 1, [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_blocks_by_hand(n, size, edges):
    assert [(part.start, part.stop) for part in blocks(n, size)] == edges


# --- Threads ---


def test_the_number_of_threads_is_numbas(set_threads):
    for n in {1, numba.config.NUMBA_NUM_THREADS}:
        set_threads(n)
        assert n_threads() == n


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=MORE_THAN_ONE)])
@pytest.mark.parametrize("n", [0, 1, 2, 57])
def test_every_part_runs_exactly_once(threads, n, set_threads):
    set_threads(threads)
    seen, lock = [], threading.Lock()

    def work(part):
        with lock:
            seen.append((part.start, part.stop))

    run_blocks(work, iter(blocks(n, 1)))
    assert sorted(seen) == [(i, i + 1) for i in range(n)]


def test_one_thread_runs_in_order_and_in_the_caller(set_threads):
    set_threads(1)
    seen = []
    run_blocks(lambda part: seen.append((part.start, threading.get_ident())), blocks(9, 2))
    assert seen == [(start, threading.get_ident()) for start in range(0, 9, 2)]


@MORE_THAN_ONE
def test_several_threads_work_at_the_same_time(set_threads):
    set_threads(2)
    meeting = threading.Barrier(2, timeout=30)  # passes only if both parts are running
    names = [None, None]

    def work(part):
        meeting.wait()
        names[part.start] = threading.current_thread().name

    run_blocks(work, blocks(2, 1))
    assert len(set(names)) == 2
    assert all(name.startswith("harfe") for name in names)


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=MORE_THAN_ONE)])
@pytest.mark.parametrize("bad", [0, 3, 9])
def test_exceptions_reach_the_caller(threads, bad, set_threads):
    set_threads(threads)

    def work(part):
        if part.start == bad:
            raise ZeroDivisionError(f"part {bad}")

    with pytest.raises(ZeroDivisionError, match=f"part {bad}"):
        run_blocks(work, blocks(10, 1))
    done = []
    run_blocks(lambda part: done.append(part.start), blocks(10, 1))  # the threads are not lost
    assert sorted(done) == list(range(10))


@MORE_THAN_ONE
def test_no_part_starts_after_an_exception_has_reached_the_caller(set_threads):
    # parts write to arrays that the caller may free or reuse once run_blocks is over
    set_threads(2)
    both_run, over, finished = threading.Barrier(2), threading.Event(), threading.Event()
    late = []

    def work(part):
        if part.start == 0:
            both_run.wait(timeout=30)
            raise ZeroDivisionError
        if part.start == 1:
            both_run.wait(timeout=30)
            over.wait(timeout=0.3)
        elif over.is_set():
            late.append(part.start)
        if part.start == 9:
            finished.set()

    with pytest.raises(ZeroDivisionError):
        run_blocks(work, blocks(10, 1))
    over.set()
    finished.wait(timeout=0.3)
    assert late == []


def test_callers_on_several_threads_do_not_disturb_each_other():
    results = {}

    def caller(number):
        out = np.zeros(400)

        def work(part):
            out[part] += number

        run_blocks(work, blocks(400, 3))
        results[number] = out

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(1, 5)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(timeout=60)
    assert sorted(results) == [1, 2, 3, 4]
    for number, out in results.items():
        np.testing.assert_array_equal(out, number)


def _squares_in_child(queue):
    out = np.zeros(50)

    def work(part):
        out[part] = np.arange(50.0)[part] ** 2

    run_blocks(work, blocks(50, 3))
    queue.put((os.getpid(), out.tolist()))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 dislikes threads
def test_a_forked_child_gets_threads_of_its_own():
    run_blocks(lambda part: None, blocks(50, 3))  # the parent's threads exist now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_squares_in_child, args=(queue,))
    child.start()
    try:
        pid, out = queue.get(timeout=60)
        child.join(timeout=60)
    finally:
        if child.is_alive():
            child.kill()
    assert child.exitcode == 0
    assert pid == child.pid != os.getpid()
    assert out == [float(i**2) for i in range(50)]


# --- BLAS ---


def blas_threads():
    return {
        info["filepath"]: info["num_threads"]
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }


def test_blas_uses_one_thread_inside_and_as_before_outside():
    before = blas_threads()
    assert before, "numpy and scipy bring a BLAS"
    with one_blas_thread():
        assert set(blas_threads().values()) == {1}
        with one_blas_thread():
            assert set(blas_threads().values()) == {1}
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before


def test_blas_threads_come_back_after_an_exception():
    before = blas_threads()

    def fail_inside():
        with one_blas_thread():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert blas_threads() == before


@pytest.mark.skipif(
    all(n == 1 for n in blas_threads().values()), reason="BLAS has a single thread here anyway"
)
def test_blas_had_more_threads_to_restrict():
    before = max(blas_threads().values())
    with one_blas_thread():
        assert max(blas_threads().values()) < before


# --- Memory ---


def pretend(monkeypatch, pages, page_size=4096):
    """Let the operating system report this much free memory."""
    answers = {"SC_AVPHYS_PAGES": pages, "SC_PAGE_SIZE": page_size}
    monkeypatch.setattr(os, "sysconf", lambda name: answers[name], raising=False)


def limits(monkeypatch, tmp_path, *pairs):
    """Pretend to run in control groups with these (limit, used) texts; None means no file."""
    monkeypatch.setattr(machine, "_MEMINFO", str(tmp_path / "no such file"))
    files = []
    for number, pair in enumerate(pairs):
        paths = []
        for kind, text in zip(("limit", "used"), pair, strict=True):
            path = tmp_path / f"{number}.{kind}"
            if text is not None:
                path.write_text(text)
            paths.append(str(path))
        files.append(tuple(paths))
    monkeypatch.setattr(machine, "_CGROUP_FILES", tuple(files))


def test_memory_of_this_machine_is_a_positive_number_of_bytes():
    free = available_memory()
    assert isinstance(free, int)
    assert 2**20 < free < 2**50


def test_memory_is_what_the_system_reports(monkeypatch, tmp_path):
    limits(monkeypatch, tmp_path)
    pretend(monkeypatch, 1000, 8192)
    assert available_memory() == 8_192_000


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("3000000\n", "1000000\n")], 2_000_000),  # a limit below what is free
        ([("900000000\n", "1000\n")], 4_096_000),  # a limit above it
        ([("max\n", "1000\n")], 4_096_000),  # no limit
        ([("9223372036854771712\n", "1000\n")], 4_096_000),  # how version 1 says no limit
        ([(None, None)], 4_096_000),  # no such file
        ([("3000000\n", None)], 4_096_000),
        ([(None, None), ("2500000\n", "500000\n")], 2_000_000),  # the second version's place
        ([("3000000", "0"), ("2000000", "0")], 2_000_000),  # the tighter of two
        ([("1000", "5000")], 0),  # over the limit: nothing, not a negative number
        ([("", "")], 4_096_000),
    ],
)
def test_memory_respects_the_limit_of_a_container(monkeypatch, tmp_path, pairs, expected):
    limits(monkeypatch, tmp_path, *pairs)
    pretend(monkeypatch, 1000)
    assert available_memory() == expected


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_memory_where_the_system_does_not_tell(monkeypatch, tmp_path, error):
    def fail(name):
        raise error(name)

    limits(monkeypatch, tmp_path)
    monkeypatch.setattr(os, "sysconf", fail, raising=False)
    assert available_memory() == 2 * 2**30
    limits(monkeypatch, tmp_path, ("5000", "1000"))
    assert available_memory() == 4000


def test_memory_where_there_is_no_sysconf(monkeypatch, tmp_path):
    limits(monkeypatch, tmp_path)
    monkeypatch.delattr(os, "sysconf", raising=sys.platform != "win32")
    assert available_memory() == 2 * 2**30


def test_memory_counts_what_linux_would_give_up(monkeypatch, tmp_path):
    limits(monkeypatch, tmp_path)
    pretend(monkeypatch, 1000)
    table = tmp_path / "meminfo"
    monkeypatch.setattr(machine, "_MEMINFO", str(table))
    table.write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    5000 kB\nBuffers: 1 kB\n")
    assert available_memory() == 5000 * 1024
    table.write_text("MemTotal: 9000 kB\n")  # an old kernel
    assert available_memory() == 4_096_000
