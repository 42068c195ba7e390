"""The search engine with plans whose truth is known: order, deadlines, resumption, jobs."""

from types import SimpleNamespace

import pytest

from harfe.selection import search as engine
from harfe.selection.search import Digest, Search, Stage, Task


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

    def tasks_later(self):
        return 0 if self.made else 2

    def best_so_far(self):
        return max((result, f"square {name}") for name, result in self.taken)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_all_stages_run_in_order_and_later_ones_see_earlier_results(n_jobs):
    plan = Squares()
    told = []
    search = Search(plan, n_jobs=n_jobs)
    assert search.run(lambda *counts: told.append(counts)) is True
    names = [3, 1, 2, 0, 104, 109]
    assert plan.taken == [(name, name * name) for name in names]
    assert told == [(done, 6) for done in range(n_jobs, 7, n_jobs)]
    assert search.best_so_far() == (109 * 109, "square 109")


def test_what_comes_next_is_told():
    search = Search(Squares())
    coming = []
    search.run(lambda *_: coming.append(search.trying))
    assert coming[:3] == ["square 1", "square 2", "square 0"]
    assert coming[3] == ""  # the next stage is not made yet


@pytest.mark.parametrize(
    ("second", "expected"),
    [({}, 2), ({"needed": True}, 3), ({"needed": True, "whole": True}, 4)],
    ids=["skipped", "needed", "whole"],
)
def test_a_stop_ends_the_stage_and_later_ones_run_as_far_as_they_are_needed(second, expected):
    plan = Squares(**second)
    assert Search(plan).run(lambda done, planned: done == 2) is False
    assert len(plan.taken) == expected
    assert plan.made == int(bool(second))


def test_no_task_begins_after_the_deadline_but_the_first(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    plan = Squares()
    assert Search(plan, deadline=1.5).run() is False
    assert [name for name, _ in plan.taken] == [3, 1, 2]
    first = Squares()
    assert Search(first, deadline=-1.0).run() is False
    assert [name for name, _ in first.taken] == [3]


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
