"""The experiments: config to tasks, tasks to rows, rows to tables."""

import csv
import math
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if (ROOT / "PKG-INFO").exists():
    pytest.skip("experiments are not in the source archive", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from experiments.__main__ import main  # noqa: E402
from experiments.config import Task, load_study  # noqa: E402
from experiments.results import COLUMNS, ResultsError, ResultsFile, Row  # noqa: E402
from experiments.runner import run, select  # noqa: E402
from experiments.show import draw, markdown, write_all  # noqa: E402
from experiments.summary import Cell, mean_ranks, relative_errors, table  # noqa: E402
from experiments.tables import ConfigError  # noqa: E402
from harfe.datasets import make_function  # noqa: E402

# A method that leaves a trace of every call, as workers are other processes.
FAKE = """
import os
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from experiments.methods import Fitted

class Mean:
    def __init__(self, value):
        self.value = value
    def predict(self, X):
        return np.full(len(X), self.value)

@dataclass(frozen=True)
class Fake:
    trace: str
    shift: float = 0.0
    def fit(self, X, y, seed, paper):
        trace = Path(self.trace)
        with trace.open("a") as file:
            file.write(f"{seed} {os.environ.get('NUMBA_NUM_THREADS')}\\n")
        if self.shift == 13 and not trace.with_suffix(".mended").exists():
            raise ValueError("it is\\n broken, today")
        if self.shift == 14:
            return Fitted(Mean(np.nan), 1, {})
        noise = np.random.default_rng(seed).normal()
        return Fitted(Mean(y.mean() + self.shift + noise), 1, {"shift": self.shift})
"""

CONFIG = """
title = "Fakes"

[parts.small]
title = "Small"
source = "functions"
source_settings = {{ n_train = 20, n_test = 10 }}
problems = ["friedman1", "friedman3"]
methods = ["plain", "shifted"]
repetitions = 2
measures = ["error", "error_clean"]

[methods.plain]
label = "Plain"
adapter = "{module}:Fake"
draws = true
settings = {{ trace = '{trace}' }}

[methods.shifted]
label = "Shifted"
adapter = "{module}:Fake"
draws = true
settings = {{ trace = '{trace}', shift = {shift} }}
"""


@pytest.fixture(scope="session")
def fake_module(tmp_path_factory):
    """A module with a fake method, importable here and (by sys.path) in workers."""
    folder = tmp_path_factory.mktemp("fakes")
    (folder / "harfe_fake_methods.py").write_text(FAKE, encoding="utf-8")
    sys.path.append(str(folder))
    yield "harfe_fake_methods"
    sys.path.remove(str(folder))


class Bench:
    """A study in a folder of its own."""

    def __init__(self, home, module):
        self.home, self.module = home, module
        self.folder = home / "fakes"
        self.folder.mkdir()
        self.results = ResultsFile(self.folder / "results.csv")
        self.trace = self.folder / "trace.txt"
        self.configure()

    def configure(self, shift=5.0, edit=lambda text: text):
        text = CONFIG.format(module=self.module, trace=self.trace.as_posix(), shift=shift)
        (self.folder / "config.toml").write_text(edit(text), encoding="utf-8")

    def study(self):
        return load_study(self.folder / "config.toml")

    def run(self, **options):
        return run(self.study(), self.results, **options)

    def calls(self):
        return self.trace.read_text().splitlines() if self.trace.exists() else []


@pytest.fixture
def bench(tmp_path, fake_module):
    return Bench(tmp_path, fake_module)


# --- the config ---


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("repetitions =", "repetition =", r"fakes/config\.toml\.parts\.small: unknown key "
         r"'repetition'\. Did you mean 'repetitions'\?"),
        ("n_train = 20", "n_trains = 20", r"source_settings: unknown key 'n_trains'.*'n_train'"),
        ("shift =", "shifd =", r"methods\.shifted\.settings: unknown key 'shifd'.*'shift'"),
        ("draws = true", "", r"methods\.plain: the key 'draws' is missing"),
        ("repetitions = 2", "repetitions = 2.0", r"small\.repetitions: must be int, but is 2\.0"),
        ("repetitions = 2", "repetitions = true", r"must be int, but is True"),
        ("repetitions = 2", "repetitions = 0", r"must be at least 1, not 0"),
        ('["plain", "shifted"]', '["plane"]', r"unknown method 'plane'. Did you mean 'plain'\?"),
        ('["plain", "shifted"]', "[]", r"the list is empty"),
        ('["plain", "shifted"]', '"plain"', r"must be a list, but is 'plain'"),
        ('"friedman3"]', '"friedman4"]', r"unknown problem 'friedman4'\. Did you mean 'friedman"),
        ('"functions"', '"function"', r"unknown source 'function'. Did you mean 'functions'\?"),
        (":Fake", ":Fakes", r"plain\.adapter: .* cannot be imported"),
        ("title = \"Small\"", "title =", r"fakes/config\.toml: Invalid value"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused_by_name(bench, old, new, message):
    bench.study()
    bench.configure(edit=lambda text: text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        bench.study()


def test_early_repetitions_come_first(bench):
    order = [(task.repetition, task.problem, task.method) for task in bench.study().tasks()]
    assert len(order) == 8
    assert [repetition for repetition, _, _ in order] == [0] * 4 + [1] * 4
    assert order[:3] == [
        (0, "friedman1", "plain"),
        (0, "friedman1", "shifted"),
        (0, "friedman3", "plain"),
    ]


def test_what_would_not_differ_runs_once():
    study = load_study(ROOT / "experiments" / "accuracy" / "config.toml")
    assert study.repetitions("paper_rows", "housing", "lasso") == 1
    assert study.repetitions("paper_rows", "ccpp", "lasso") == 5  # its noise inputs differ
    assert study.repetitions("paper_rows", "housing", "forest") == 5
    assert study.repetitions("random_splits", "housing", "lasso") == 5
    tasks = list(study.tasks())
    assert len(set(tasks)) == len(tasks)
    part = study.parts["friedman"]
    count = len(part.problems) * len(part.methods) * part.repetitions
    assert sum(task.part == "friedman" for task in tasks) == count


def test_a_slow_method_may_run_less_often(bench):
    def edit(text, count="1"):
        return text.replace('label = "Plain"', f'label = "Plain"\nrepetitions = {count}')

    bench.configure(edit=edit)
    study = bench.study()
    assert study.repetitions("small", "friedman1", "plain") == 1
    assert study.repetitions("small", "friedman1", "shifted") == 2
    assert sum(task.method == "plain" for task in study.tasks()) == 2
    bench.configure(edit=lambda text: edit(text, "9"))
    assert bench.study().repetitions("small", "friedman1", "plain") == 2
    bench.configure(edit=lambda text: edit(text, "0"))
    with pytest.raises(ConfigError, match=r"methods.plain.repetitions: must be at least 1, not 0"):
        bench.study()


def test_the_hash_covers_settings_and_nothing_else(bench):
    task, other = (Task("small", name, "shifted", 0) for name in ("friedman1", "friedman3"))

    def after(old, new, task=task):
        bench.configure(edit=lambda text: text.replace(old, new))
        return bench.study().fingerprint(task)

    first = bench.study().fingerprint(task)
    assert after('"Shifted"', '"Other"') == first
    assert after("repetitions = 2", "repetitions = 3") == first
    assert after("n_test = 10", "n_test = 11") != first
    assert after("shift = 5.0", "shift = 6") != first
    assert after("draws = true", "draws = true\nrevision = 2") != first
    second = after("", "", other)
    assert second != first
    own = "[methods.shifted.by_problem]\nfriedman3 = { shift = 1 }\n"
    bench.configure(edit=lambda text: text + own)
    assert bench.study().adapters["shifted", "friedman3"].shift == 1.0
    assert bench.study().fingerprint(task) == first
    assert bench.study().fingerprint(other) != second


# --- running ---


@pytest.mark.slow
def test_nothing_is_computed_twice_and_jobs_do_not_matter(bench, tmp_path, fake_module):
    def interrupt(progress):
        if progress.done == 3:
            raise KeyboardInterrupt

    outcome = bench.run(report=interrupt)
    assert (outcome.reason, outcome.computed, outcome.left) == ("interrupted", 3, 5)
    first = bench.results.read()
    assert [row.task for row in first] == list(bench.study().tasks())[:3]
    bench.trace.unlink()  # a fourth may have begun
    seen = []
    outcome = bench.run(jobs=2, report=seen.append)
    assert (outcome.computed, outcome.failed, outcome.left) == (5, 0, 0)
    assert len(bench.calls()) == 5
    assert bench.results.read()[:3] == first
    assert [progress.done for progress in seen] == [4, 5, 6, 7, 8]
    assert seen[-1].at_work == ()
    assert {call.split()[1] for call in bench.calls()} == {"1"}  # threads of numba
    assert bench.run().computed == 0
    assert len(bench.calls()) == 5

    (tmp_path / "again").mkdir()
    alone = Bench(tmp_path / "again", fake_module)
    alone.run(jobs=1)

    def numbers(rows):
        return {row.task: (row.error, row.error_clean, row.seed) for row in rows}

    rows = bench.results.read()
    assert numbers(rows) == numbers(alone.results.read())
    assert {row.task for row in rows} == set(bench.study().tasks())
    assert len({row.error for row in rows}) == 8  # problems, methods and seeds all count
    assert all(row.n_train == 20 and row.n_test == 10 and row.n_terms == 1 for row in rows)

    # The errors are those of the test rows, and the seed is the repetition's.
    row = next(row for row in rows if row.task == Task("small", "friedman3", "plain", 1))
    data = make_function("friedman3", 30, random_state=1)
    value = data.y[:20].mean() + np.random.default_rng(row.seed).normal()
    assert row.error == pytest.approx(np.mean((data.y[20:] - value) ** 2), rel=1e-8)
    assert row.error_clean == pytest.approx(np.mean((data.y_clean[20:] - value) ** 2), rel=1e-8)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows goes without the lock")
def test_a_second_run_at_the_same_time_is_refused(bench):
    import fcntl

    with (bench.folder / "config.toml").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ResultsError, match="Another run of fakes is in progress"):
            bench.run()
    assert bench.calls() == []


def test_no_task_begins_after_the_time_limit(bench):
    outcome = bench.run(max_time=0)
    assert (outcome.computed, outcome.left, outcome.reason) == (0, 8, "time is up")
    assert bench.calls() == []


def test_changed_settings_are_refused_until_redo(bench):
    bench.results.rewrite(known_rows(bench.study()))
    bench.configure(shift=6.0)
    with pytest.raises(ResultsError, match=r"4 rows .* shifted on friedman1 \(small\).*--redo"):
        bench.run()
    assert bench.run(only={"method": ["plain"]}).computed == 0  # these still fit
    kept = {row.task: row for row in bench.results.read() if row.method == "plain"}
    assert bench.run(redo=True).computed == 4
    rows = bench.results.read()
    assert len(rows) == 8
    assert {row.task: row for row in rows if row.method == "plain"} == kept
    assert {row.chosen for row in rows if row.method == "shifted"} == {"shift=6"}


@pytest.mark.slow
def test_a_failure_is_a_row_and_is_retried_on_demand(bench):
    own = "[methods.shifted.by_problem]\nfriedman3 = { shift = 14 }\n"
    bench.configure(shift=13, edit=lambda text: text + own)
    only = {"repetition": ["0"]}
    outcome = bench.run(only=only)
    assert (outcome.computed, outcome.failed) == (4, 2)
    failed = {row.problem: row for row in bench.results.read() if row.failure}
    assert failed["friedman1"].failure == "ValueError: it is broken, today"
    assert failed["friedman1"].error is None
    assert failed["friedman3"].failure == "ValueError: predictions are not finite"
    page = markdown(bench.study(), bench.results.read())
    assert "| failed (1 of 2) |" in page
    assert "| failures | 0 | 2 |" in page
    assert "- shifted on friedman1, repetition 0: ValueError: it is broken, today" in page

    bench.trace.with_suffix(".mended").touch()
    assert bench.run(only=only).computed == 0
    outcome = bench.run(only=only, retry=True)
    assert (outcome.computed, outcome.failed) == (2, 1)
    assert [row.problem for row in bench.results.read() if row.failure] == ["friedman3"]
    assert len(bench.results.read()) == 4


def test_unknown_selections_are_refused(bench):
    tasks = list(bench.study().tasks())
    assert len(select(tasks, {"method": ["plain"], "repetition": ["0", "1"]})) == 4
    with pytest.raises(ConfigError, match=r"--only method=plane: unknown. Did you mean 'plain'"):
        select(tasks, {"method": ["plane"]})
    with pytest.raises(ConfigError, match=r"--only methods=.*Did you mean 'method'"):
        select(tasks, {"methods": ["plain"]})


# --- the file of results ---


def made_row(problem="a", method="x", repetition=0, error=1.0, **fields):
    return Row("p", problem, method, repetition, "0" * 8, 0, 5, 5, error=error, **fields)


def test_rows_come_back_as_they_went(tmp_path):
    results = ResultsFile(tmp_path / "results.csv")
    assert results.read() == []
    rows = [
        made_row(error=0.1234567891, n_terms=3, fit_seconds=1.5, chosen="a=1 b=2"),
        made_row(repetition=1, error=None, failure='ValueError: "quoted", with commas'),
    ]
    for row in rows:
        results.append(row)
    assert results.read() == rows
    results.rewrite(rows[1:])
    assert results.read() == rows[1:]
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_what_a_killed_run_left_of_a_line_is_dropped(tmp_path, keep):
    results = ResultsFile(tmp_path / "results.csv")
    results.append(made_row())
    whole = results.path.read_bytes()
    results.append(made_row(repetition=1))
    last = results.path.read_bytes()[len(whole) :]
    results.path.write_bytes(whole + last[: int(keep * len(last))])
    assert results.read() == [made_row()]
    results.append(made_row(repetition=2))
    assert results.read() == [made_row(), made_row(repetition=2)]


def test_a_header_that_was_not_finished_is_no_header(tmp_path):
    results = ResultsFile(tmp_path / "results.csv")
    results.path.write_text("part,prob")
    assert results.read() == []
    results.append(made_row())
    assert results.read() == [made_row()]


def test_damaged_results_are_refused(tmp_path):
    results = ResultsFile(tmp_path / "results.csv")
    results.append(made_row())
    good = results.path.read_text()
    results.path.write_text(good + "p,a\n")
    with pytest.raises(ResultsError, match="line 3 is damaged"):
        results.read()
    results.path.write_text(good + good.splitlines()[1] + "\n")
    with pytest.raises(ResultsError, match="lines 2 and 3 are both for p/a/x/0"):
        results.read()
    results.path.write_text("a,b\n1,2\n")
    with pytest.raises(ResultsError, match="first line does not list the columns"):
        results.read()


# --- tables and figures ---

#: Errors by problem and method, two repetitions; mean ranks and ratios by hand below.
KNOWN = {
    ("friedman1", "plain"): (1.0, 3.0),
    ("friedman1", "shifted"): (3.0, 5.0),
    ("friedman3", "plain"): (0.5, 0.5),
    ("friedman3", "shifted"): (0.125, 0.375),
}


def known_rows(study, leave_out=()):
    for (problem, method), errors in KNOWN.items():
        for repetition, error in enumerate(errors):
            task = Task("small", problem, method, repetition)
            if task not in leave_out:
                numbers = {"error": error, "error_clean": error / 2, "n_terms": 7}
                times = {"fit_seconds": 1.0 + repetition, "predict_seconds": 0.25}
                yield Row(*task, study.fingerprint(task), 0, 20, 10, **numbers, **times)


def test_known_rows_give_known_means_and_ranks(bench):
    with_spread = "repetitions = 2\nshow_spread = true"
    bench.configure(edit=lambda text: text.replace("repetitions = 2", with_spread))
    study = bench.study()
    rows = list(known_rows(study))
    cells = table(study, "small", rows, "error")
    assert cells["friedman1"]["plain"].mean == 2.0
    assert cells["friedman1"]["plain"].spread == pytest.approx(math.sqrt(2))
    assert mean_ranks(cells) == ({"plain": 1.5, "shifted": 1.5}, 2)
    assert relative_errors(cells) == [
        ("friedman1", "plain", 1.0),
        ("friedman1", "shifted", 2.0),
        ("friedman3", "plain", 2.0),
        ("friedman3", "shifted", 1.0),
    ]
    page = markdown(study, rows)
    assert "8 of 8 repetitions are done, 0 of them failed." in page
    assert "| friedman1 | **2.00 ± 1.4** | 4.00 ± 1.4 |" in page
    assert "| friedman3 | 0.500 ± 0 | **0.250 ± 0.18** |" in page
    assert "| friedman1 | **1.00 ± 0.71** | 2.00 ± 0.71 |" in page  # against the noise-free one
    assert "| mean rank (2 problems) | 1.50 | 1.50 |" in page
    assert "| geometric mean of error / best | 1.41 | 1.41 |" in page
    assert "| failures | 0 | 0 |" in page
    assert "| friedman1 | 7 / 1.5 / 0.25 | 7 / 1.5 / 0.25 |" in page


def test_ties_share_their_rank_and_incomplete_problems_do_not_count(bench):
    study = bench.study()
    missing = Task("small", "friedman3", "plain", 1)
    rows = list(known_rows(study, leave_out=[missing]))
    cells = table(study, "small", rows, "error")
    assert mean_ranks(cells) == ({"plain": 1.0, "shifted": 2.0}, 1)
    assert "| friedman3 | 0.500 (1 of 2) | **0.250** |" in markdown(study, rows)
    one, two = Cell((1.0,), 0, 1), Cell((2.0,), 0, 1)
    ranks = mean_ranks({"a": {"x": two, "y": one, "z": two}})
    assert ranks == ({"x": 2.5, "y": 1.0, "z": 2.5}, 1)


def test_a_variant_takes_no_place_in_the_ranks(bench):
    as_variant = '[methods.shifted]\nvariant_of = "plain"'
    bench.configure(edit=lambda text: text.replace("[methods.shifted]", as_variant))
    study = bench.study()
    page = markdown(study, list(known_rows(study)))
    assert "| mean rank (2 problems) | 1.00 | - |" in page
    assert "| geometric mean of error / best | 1.41 | 1.41 |" in page
    bench.configure(
        edit=lambda text: text.replace("[methods.shifted]", as_variant.replace("plain", "plane"))
    )
    with pytest.raises(ConfigError, match=r"variant_of: unknown method 'plane'"):
        bench.study()


def test_show_writes_the_same_files_each_time(bench, capsys):
    study = bench.study()
    bench.results.rewrite([*known_rows(study), made_row()])
    written = write_all(study, bench.results.read(), bench.folder)
    names = ["table.md", "small.csv", "small.png", "small_clean.csv", "small_clean.png"]
    assert [path.name for path in written] == names
    before = [path.read_bytes() for path in written]
    assert main(["show", "fakes"], bench.home) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("/fakes/table.md")
    assert [path.read_bytes() for path in written] == before
    assert b"1 rows that no longer match the config are not shown" in before[0]
    numbers = list(csv.DictReader(before[1].decode().splitlines()))
    assert numbers[1] == {"problem": "friedman1", "method": "shifted", "relative_error": "2"}
    assert before[2].startswith(b"\x89PNG")


def test_what_others_printed_stands_beside_ours(bench):
    def edit(text):
        printed = '[parts.small.references."paper: P"]\nfriedman1 = 2.0\n\n[methods.plain]'
        text = text.replace("[methods.plain]", printed, 1)
        return text.replace('label = "Plain"', 'label = "Plain"\nreference = "paper: P"')

    bench.configure(edit=edit)
    bench.run()
    study, rows = bench.study(), bench.results.read()
    mine = [row.error for row in rows if (row.method, row.problem) == ("plain", "friedman1")]
    page = markdown(study, rows)
    ours = sum(mine) / len(mine)
    line = next(
        text for text in page.split("Against published")[1].splitlines() if "friedman1" in text
    )
    here, printed, ratio = re.match(r"\| friedman1 \| (\S+) / (\S+) = (\S+) \|", line).groups()
    assert float(here) == pytest.approx(ours, rel=1e-2)
    assert printed == "2.00"
    assert float(ratio) == pytest.approx(ours / 2.0, rel=5e-2)
    assert re.search(r"\| friedman3 \| \S+ / - \|", page)
    bench.configure()
    assert "Against published" not in markdown(bench.study(), bench.results.read())


def test_a_figure_shows_what_its_numbers_say(bench, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: drawn.append(figure))
    study = bench.study()
    relative = relative_errors(table(study, "small", known_rows(study), "error"))
    draw(study, "small", "error", relative, bench.folder / "unused.png")
    marks = {line.get_label(): list(line.get_xdata()) for line in drawn[0].axes[0].get_lines()}
    assert marks["Plain"] == pytest.approx([1, 2, math.sqrt(2)])
    assert marks["Shifted"] == pytest.approx([2, 1, math.sqrt(2)])


# --- the command line ---


def test_run_and_list_on_the_command_line(bench, capsys):
    assert main(["run", "fakes", "--only", "method=plain", "problem=friedman1"], bench.home) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("[1/2] small 0: plain on friedman1: ")
    assert "running: plain on friedman1" in told[0]
    assert " left" in told[0]
    assert told[-1] == "finished: 2 computed, 0 of them failed, 0 left"
    assert main(["list"], bench.home) == 0
    assert capsys.readouterr().out == "fakes: Fakes (2 of 8 repetitions done)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "fake"], "There is no study 'fake'. Did you mean 'fakes'?"),
        (["run", "fakes", "--only", "plain"], "--only plain: type FIELD=NAME"),
        (["run", "fakes", "--jobs", "0"], "--jobs 0: type 1 or more"),
    ],
)
def test_wrong_arguments_get_a_message(bench, capsys, arguments, message):
    assert main(arguments, bench.home) == 1
    assert message in capsys.readouterr().err


# --- the real methods ---


@pytest.mark.slow
def test_a_small_real_slice(tmp_path):
    folder = tmp_path / "slice"
    folder.mkdir()
    config = """
    title = "Slice"
    [parts.friedman]
    title = "Friedman 1"
    source = "functions"
    source_settings = { n_train = 60, n_test = 200 }
    problems = ["friedman1"]
    methods = ["lasso", "algorithm1"]
    repetitions = 1
    [methods.lasso]
    label = "lasso"
    adapter = "lasso"
    draws = false
    settings = { n_alphas = 20 }
    [methods.algorithm1]
    label = "Algorithm 1"
    adapter = "algorithm1"
    draws = true
    settings = { step_size = 0.1, column_scale = "rms", max_iter = 5, n_components = 200, \
n_nonzero_coefs = 20, order = 2, alpha = 1e-3 }
    """
    (folder / "config.toml").write_text(textwrap.dedent(config), encoding="utf-8")
    results = ResultsFile(folder / "results.csv")
    assert run(load_study(folder / "config.toml"), results).failed == 0
    rows = {row.method: row for row in results.read()}
    assert rows["algorithm1"].n_terms == 20
    assert 1 <= rows["lasso"].n_terms <= 10
    for row in rows.values():
        assert 0.2 < row.error_clean < 24  # the variance of f is about 24
        assert row.fit_seconds > 0
    assert COLUMNS[:4] == Task._fields
