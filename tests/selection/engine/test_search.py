"""The search engine with plans whose truth is known: order, threads, limits, progress."""

import threading
import time

import numba
import numpy as np
import pytest
import sklearn
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info

from harfe._core.threads import n_threads
from harfe.selection.engine.plan import Cost, Digest, Stage, Task
from harfe.selection.engine.search import Search, count_workers

TWO = pytest.mark.skipif(
    numba.config.NUMBA_NUM_THREADS < 2, reason="numba offers a single thread on this machine"
)


def square(number):
    return number * number


class Squares:
    """Two stages of squares; the second runs the best two of the first again."""

    def __init__(self, **second):
        self.taken = []
        self.second = second
        self.made = 0

    most_tasks = 6

    def stages(self):
        yield Stage(lambda: [self.task(n) for n in (3, 1, 2, 0)], needed=True)
        yield Stage(self.best, **self.second)

    def best(self):
        self.made += 1
        kept = sorted(result for _, result in self.taken)[-2:]
        return [self.task(100 + root) for root in kept]

    def task(self, number):
        return Task(number, f"square {number}", square, (number,), Digest("squares").key(number))

    def take(self, name, result):
        self.taken.append((name, result))

    def later(self):
        return [Cost()] * (0 if self.made else 2)

    def best_so_far(self):
        return max(((result, f"square {name}") for name, result in self.taken), default=None)


class Listed:
    """A plan of given stages."""

    def __init__(self, *stages):
        self._stages, self.taken, self._begun = stages, [], 0
        self.most_tasks = 100

    def stages(self):
        for stage in self._stages:
            self._begun += 1
            yield stage

    def take(self, name, result):
        self.taken.append((name, result))

    def later(self):
        return [t.costs[0] for stage in self._stages[self._begun :] for t in stage.tasks()]

    def best_so_far(self):
        return None

    @property
    def names(self):
        return [name for name, _ in self.taken]


class Clock:
    """A clock that only tasks move."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def task(self, name, seconds, expected=None, kind="some", **more):
        """A task that takes so many seconds."""

        def work():
            self.now += seconds
            return seconds

        return Task(name, str(name), work, costs=(Cost(kind, expected or seconds),), **more)


# --- Order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, -1, None])
def test_all_stages_run_in_order_and_later_ones_see_earlier_results(n_jobs):
    plan = Squares()
    told = []
    search = Search(plan, n_jobs=n_jobs)
    assert search.run(lambda *counts: told.append(counts)) is True
    names = [3, 1, 2, 0, 104, 109]
    assert plan.taken == [(name, name * name) for name in names]
    assert told == [(done, 6) for done in range(1, 7)]
    assert search.best_so_far() == (109 * 109, "square 109")


def test_what_comes_next_is_told():
    search = Search(Squares())
    coming = []
    search.run(lambda *_: coming.append(search.trying))
    assert coming[:3] == ["square 1", "square 2", "square 0"]
    assert coming[3] == ""  # the next stage is not made yet


@TWO
def test_results_are_taken_in_the_order_of_the_tasks_whatever_ends_first():
    second_is_over = threading.Event()

    def slow():
        assert second_is_over.wait(30)

    tasks = [Task("slow", "", slow), Task("fast", "", second_is_over.set)]
    plan = Listed(Stage(lambda: tasks))
    assert Search(plan, n_jobs=2).run() is True
    assert plan.names == ["slow", "fast"]


def test_a_later_search_computes_only_what_is_missing(monkeypatch):
    cut = Search(Squares())
    cut.run(lambda done, planned: done == 3)
    assert len(cut.finished) == 3
    calls = []
    monkeypatch.setattr(
        f"{__name__}.square", lambda number: calls.append(number) or number * number
    )
    plan = Squares()
    resumed = Search(plan, earlier=cut.finished)
    assert resumed.run() is True
    assert calls == [0, 104, 109]
    assert sorted(plan.taken) == [(n, n * n) for n in (0, 1, 2, 3, 104, 109)]
    assert len(resumed.finished) == 6


def test_what_an_earlier_stage_has_computed_is_not_computed_again():
    calls = []
    task = Task("a", "", lambda: calls.append(1), key=b"same")
    plan = Listed(Stage(lambda: [task]), Stage(lambda: [task]))
    assert Search(plan).run() is True
    assert plan.names == ["a", "a"]
    assert calls == [1]


def test_tasks_without_a_key_are_never_kept():
    plan = Squares()
    plan.task = lambda number: Task(number, "", square, (number,))
    search = Search(plan)
    assert search.run() is True
    assert search.finished == {}


def test_a_digest_knows_its_parts_and_stays_as_it_is():
    base = Digest("a", 1)
    assert base.key("b") == base.key("b") == Digest("a", 1).key("b")
    assert base.key("b") != base.key("c") != Digest("a", 2).key("c")


# --- Threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threads", "n_jobs", "workers"),
    [(4, None, 4), (4, -1, 4), (4, -2, 3), (4, 1, 1), (4, 3, 3), (4, 9, 4), (1, 2, 1), (2, -9, 1)],
)
def test_the_number_of_workers(monkeypatch, threads, n_jobs, workers):
    monkeypatch.setattr("harfe.selection.engine.search.n_threads", lambda: threads)
    assert count_workers(n_jobs) == workers


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_other_numbers_of_jobs_are_refused(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs=.* e\.g\. n_jobs=2"):
        Search(Squares(), n_jobs=n_jobs)


@TWO
def test_tasks_run_side_by_side_each_with_its_share_of_the_threads():
    meeting = threading.Barrier(2, timeout=30)

    def meet():
        meeting.wait()
        blas = {row["num_threads"] for row in threadpool_info() if row["user_api"] == "blas"}
        return n_threads(), blas

    plan = Listed(Stage(lambda: [Task(n, "", meet) for n in range(2)]))
    before = n_threads()
    assert Search(plan, n_jobs=2).run() is True
    assert [result for _, result in plan.taken] == [(max(1, before // 2), {1})] * 2
    assert n_threads() == before


def test_one_task_after_the_other_has_all_threads():
    plan = Listed(Stage(lambda: [Task(n, "", n_threads) for n in range(2)]))
    Search(plan, n_jobs=1).run()
    assert [result for _, result in plan.taken] == [n_threads()] * 2


def _workers_inside():
    names = Listed(
        Stage(lambda: [Task(n, "", lambda: threading.current_thread().name) for n in range(4)])
    )
    Search(names, n_jobs=None).run()
    return {name for _, name in names.taken}, threading.current_thread().name


def test_inside_a_worker_of_joblib_only_its_own_thread_is_used():
    count = numba.config.NUMBA_NUM_THREADS
    for names, own in Parallel(n_jobs=max(count, 2))(delayed(_workers_inside)() for _ in range(2)):
        assert names == {own}


def test_tasks_see_the_settings_of_the_caller():
    def settings():
        return np.geterr()["over"], sklearn.get_config()["assume_finite"]

    plan = Listed(Stage(lambda: [Task(n, "", settings) for n in range(2)]))
    with np.errstate(over="raise"), sklearn.config_context(assume_finite=True):
        Search(plan, n_jobs=None).run()
    assert [result for _, result in plan.taken] == [("raise", True)] * 2


@TWO
def test_tasks_that_do_not_fit_into_memory_together_run_one_after_the_other():
    running, most = [], []

    def work():
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()

    def search(memory):
        tasks = [Task(n, "", work, memory=60.0) for n in range(4)]
        Search(Listed(Stage(lambda: tasks)), n_jobs=2, memory=memory).run()
        found = max(most)
        most.clear()
        return found

    assert search(100.0) == 1
    assert search(120.0) == 2
    assert search(10.0) == 1  # too large even alone: it runs


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_reaches_the_caller_and_no_other_task_begins(n_jobs):
    begun = []

    def work(number):
        begun.append(number)
        if number == 1:
            raise ZeroDivisionError("task 1")
        time.sleep(0.05)

    plan = Listed(Stage(lambda: [Task(n, "", work, (n,)) for n in range(20)]))
    with pytest.raises(ZeroDivisionError, match="task 1"):
        Search(plan, n_jobs=n_jobs).run()
    assert len(begun) <= 4
    done = len(begun)
    time.sleep(0.1)
    assert len(begun) == done


@TWO
def test_an_interruption_does_not_wait_for_what_runs():
    go_on, over = threading.Event(), []

    def work(number):
        if number:
            go_on.wait(30)
            over.append(number)

    def interrupt(done, planned):
        raise KeyboardInterrupt

    plan = Listed(Stage(lambda: [Task(n, "", work, (n,)) for n in range(9)]))
    with pytest.raises(KeyboardInterrupt):
        Search(plan, n_jobs=2).run(interrupt)
    assert over == []
    go_on.set()


# --- Stops and limits ----------------------------------------------------------------------------


@pytest.mark.parametrize(("second", "expected"), [({}, 2), ({"needed": True}, 3)])
def test_a_stop_ends_the_stage_and_later_ones_run_as_far_as_they_are_needed(second, expected):
    plan = Squares(**second)
    assert Search(plan).run(lambda done, planned: done == 2) is False
    assert len(plan.taken) == expected
    assert plan.made == int(bool(second))


def test_a_group_that_is_needed_runs_whole():
    tasks = [Task(n, "", square, (n,), group=n // 3) for n in range(6)]
    plan = Listed(Stage(lambda: tasks, needed=True))
    assert Search(plan).run(lambda done, planned: True) is False
    assert plan.names == [0, 1, 2]


def test_only_what_is_expected_to_end_in_time_is_begun():
    clock = Clock()
    plan = Listed(Stage(lambda: [clock.task(n, 10) for n in range(9)]))
    assert Search(plan, deadline=clock() + 35, clock=clock).run() is False
    assert plan.names == [0, 1, 2]
    assert clock() == 1030


def test_with_time_for_everything_nothing_is_cut():
    clock = Clock()
    plan = Listed(Stage(lambda: [clock.task(n, 10) for n in range(9)]))
    assert Search(plan, deadline=clock() + 90, clock=clock).run() is True


def test_costs_are_learned_from_tasks_of_the_same_kind():
    clock = Clock()
    # of tasks expected to take 1 s, the first kind takes 10, the second 2
    tasks = [clock.task(("a", n), 10, 1, "a") for n in range(2)]
    tasks += [clock.task(("b", n), 2, 1, "b") for n in range(9)]
    plan = Listed(Stage(lambda: tasks))
    assert Search(plan, deadline=clock() + 35, clock=clock).run() is False
    # the first b is expected to take as long as an a: 20 + 10 < 35; the others take 2 each
    assert plan.names[2:] == [("b", n) for n in range(7)]
    assert clock() == 1034


def test_a_group_is_begun_only_if_all_of_it_fits():
    clock = Clock()
    tasks = [clock.task((fold, n), 10, group=fold) for fold in range(3) for n in range(3)]
    plan = Listed(Stage(lambda: tasks))
    assert Search(plan, deadline=clock() + 55, clock=clock).run() is False
    assert plan.names == [(0, 0), (0, 1), (0, 2)]


def test_what_must_follow_is_reserved():
    clock = Clock()
    first = Stage(lambda: [clock.task(n, 10) for n in range(9)], reserve=[Cost("some", 25)])
    last = Stage(lambda: [clock.task("last", 25)])
    plan = Listed(first, last)
    assert Search(plan, deadline=clock() + 60, clock=clock).run() is False
    assert plan.names == [0, 1, 2, "last"]
    assert clock() == 1055


def test_what_is_needed_runs_past_the_deadline():
    clock = Clock()
    stage = Stage(lambda: [clock.task(n, 10, group=n // 2) for n in range(6)], needed=True)
    plan = Listed(stage)
    assert Search(plan, deadline=clock() - 1, clock=clock).run() is False
    assert plan.names == [0, 1]


# --- Progress ------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.1, 1.0, 7.0])
def test_from_the_middle_on_the_time_left_is_right_within_a_factor_of_two(factor):
    # kinds are faster or slower than expected; the first call is slow, as it compiles
    clock, rng = Clock(), np.random.default_rng(0)

    def tasks(kind, count, expected, real):
        return [
            clock.task((kind, n), real * factor * rng.uniform(0.7, 1.4), expected, kind)
            for n in range(count)
        ]

    laws = [clock.task("compiles", 3 * factor, 0.2, "law"), *tasks("law", 7, 0.2, 0.3)]
    more, models = tasks("law", 6, 0.2, 0.3), tasks("model", 6, 2.0, 1.2)
    plan = Listed(*(Stage(lambda part=part: part) for part in (laws, more, models)))
    search = Search(plan, clock=clock)
    told = []
    search.run(lambda *_: told.append((clock(), search.seconds_left())))
    end = clock()
    half = [(end - now, left) for now, left in told if now - 1000 > (end - 1000) / 2]
    assert len(half) >= 4
    for truth, left in half:
        assert truth / 2 <= left <= truth * 2


@TWO
def test_two_workers_need_half_the_time():
    search = Search(Listed(Stage(lambda: [])), n_jobs=2)
    search.plan.later = lambda: [Cost("some", 10.0)] * 6
    assert search.seconds_left() == pytest.approx(30.0)
    search.plan.later = lambda: [Cost("some", 10.0)]
    assert search.seconds_left() == pytest.approx(10.0)


def test_while_a_task_runs_the_time_left_falls_and_never_below_what_is_plausible():
    clock, seen = Clock(), []
    search = Search(Listed(Stage(lambda: [task])), clock=clock)

    def work():
        for _ in range(4):
            seen.append(search.seconds_left())
            clock.now += 5

    task = Task("long", "long", work, costs=(Cost("some", 10.0),))
    search.run()
    assert seen == [10.0, 5.0, 2.5, 3.75]  # late after 10 s: a quarter of what it has taken


def test_the_limit_is_also_the_longest_time_left():
    clock = Clock()
    search = Search(Listed(), deadline=clock() + 7, clock=clock)
    search.plan.later = lambda: [Cost("some", 100.0)]
    assert search.seconds_left() == 7.0
