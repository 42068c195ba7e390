"""Published splits, curves over rows, methods at their defaults, and ratios to one method."""

import csv
import gzip
import math
import os
import sys
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
from experiments.curves import curve_numbers, draw_curves  # noqa: E402
from experiments.defaults import Default  # noqa: E402
from experiments.methods import HarfeCV, KernelRidge  # noqa: E402
from experiments.problems import UCI, Rows  # noqa: E402
from experiments.results import ResultsFile, Row  # noqa: E402
from experiments.runner import run  # noqa: E402
from experiments.show import markdown, write_all  # noqa: E402
from experiments.summary import Point, learning_curves, ratios, standing  # noqa: E402
from experiments.tables import ConfigError  # noqa: E402

CONFIG = """
title = "Ridges"

[parts.uci]
title = "Tables"
source = "uci"
problems = ["yacht", "pol"]
methods = ["one", "other"]
repetitions = 2
repetitions_on = { pol = 1 }
measures = ["rmse"]
compare_to = "one"

[parts.rows]
title = "Curves"
source = "rows"
source_settings = { n_test = 10 }
problems = ["friedman1/300", "friedman1/1000", "pol/300", "pol/all"]
methods = ["one", "other"]
repetitions = 2
measures = ["rmse"]
curves = true

[methods.one]
label = "One"
adapter = "experiments.defaults:Default"
draws = true
settings = { name = "ridge" }

[methods.other]
label = "Other"
adapter = "experiments.defaults:Default"
draws = true
needs = "harfe_has_no_such_package"
settings = { name = "ridge" }
"""


@pytest.fixture
def make_study(tmp_path):
    folder = tmp_path / "ridges"
    folder.mkdir()

    def make(edit=lambda text: text):
        (folder / "config.toml").write_text(edit(CONFIG), encoding="utf-8")
        return load_study(folder / "config.toml")

    return make


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder of data with a table whose entries tell their row and column, and its masks."""
    (tmp_path / "uci").mkdir()
    table = 100 * np.arange(400)[:, None] + np.arange(3)
    masks = np.arange(400)[:, None] % 10 == np.arange(10)
    for name, values in (("yacht", table), ("yacht.mask", masks.astype(int))):
        with gzip.open(tmp_path / "uci" / f"{name}.csv.gz", "wt") as file:
            np.savetxt(file, values, fmt="%d", delimiter=",")
    monkeypatch.setenv("HARFE_DATA", str(tmp_path))


# --- the sources ---


def test_a_published_split_has_the_rows_of_its_mask(tables):
    data = UCI().load("yacht", 3)
    held_out = np.arange(3, 400, 10)
    kept = np.setdiff1d(np.arange(400), held_out)
    for rows, X, y in (
        (held_out, data.X_test, data.y_test),
        (kept, data.X_train, data.y_train),
    ):
        assert np.array_equal(X, 100 * rows[:, None] + np.arange(2))
        assert np.array_equal(y, 100 * rows + 2)
    with pytest.raises(ConfigError, match=r"yacht: there is no split 10. Set repetitions = 10"):
        UCI().load("yacht", 10)


def test_tables_need_their_folder(monkeypatch):
    monkeypatch.delenv("HARFE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"yacht\.csv\.gz: HARFE_DATA is not set"):
        UCI().load("yacht", 0)


@pytest.mark.skipif(
    not (Path(os.environ.get("HARFE_DATA", "")) / "uci").is_dir(), reason="HARFE_DATA has no uci"
)
def test_the_tables_of_the_study_are_there():
    data = UCI().load("stock", 0)
    assert data.X_train.shape == (483, 11)
    assert data.X_test.shape == (53, 11)


def test_fewer_rows_of_a_table_are_among_the_more(tables):
    source, whole = Rows(n_test=5), UCI().load("yacht", 0)
    few, all_rows = source.load("yacht/300", 1), source.load("yacht/all", 1)
    assert np.array_equal(all_rows.X_train, whole.X_train)
    assert len(few.X_train) == len(few.y_train) == 300
    assert np.array_equal(few.X_train[:, 0] + 2, few.y_train)
    assert set(few.y_train) < set(whole.y_train)
    assert set(few.y_train) != set(source.load("yacht/300", 2).y_train)
    assert np.array_equal(few.X_test, whole.X_test)
    assert np.array_equal(few.y_test, whole.y_test)
    with pytest.raises(ConfigError, match=r"yacht/1000: there are only 360 .* Type yacht/all"):
        source.load("yacht/1000", 0)
    assert source.varies("yacht/300")
    assert not source.varies("yacht/all")


def test_a_function_is_judged_without_noise_on_the_same_rows():
    source = Rows(n_test=50, first_seed=7)
    few, more = source.load("friedman1/300", 0), source.load("friedman1/1000", 0)
    assert np.array_equal(few.X_train, more.X_train[:300])
    assert np.array_equal(few.X_test, more.X_test)

    def truth(X):
        a, b, c, d, e = X.T[:5]
        return 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e

    assert few.X_test.shape == (50, 10)
    assert few.y_test == pytest.approx(truth(few.X_test))
    assert np.std(more.y_train - truth(more.X_train)) == pytest.approx(1, rel=0.1)
    assert not np.any(np.isin(few.X_test, more.X_train))
    assert not np.array_equal(source.load("friedman1/300", 1).X_test, few.X_test)


# --- the config ---


def test_large_tables_run_less_often(make_study):
    study = make_study()
    assert study.repetitions("uci", "yacht", "one") == 2
    assert study.repetitions("uci", "pol", "one") == 1
    assert sum(task.part == "uci" for task in study.tasks()) == 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pol = 1", "poll = 1", r"repetitions_on: unknown problem 'poll'. Did you mean 'pol'"),
        ("pol = 1", "pol = 0", r"uci\.repetitions_on\.pol: must be at least 1, not 0"),
        ('to = "one"', 'to = "two"', r"uci\.compare_to: unknown method 'two'"),
        ('"pol/all"', '"pol/7"', r"unknown problem 'pol/7'"),
        ('name = "ridge"', 'name = "rigde"', r"name = 'rigde': unknown. Did you mean 'ridge'"),
    ],
)
def test_a_wrong_config_is_refused_by_name(make_study, old, new, message):
    with pytest.raises(ConfigError, match=message):
        make_study(lambda text: text.replace(old, new, 1))


def test_a_method_without_its_package_is_skipped(make_study, tables, tmp_path, capsys):
    study, results = make_study(), ResultsFile(tmp_path / "ridges" / "results.csv")
    outcome = run(study, results, only={"part": ["uci"], "problem": ["yacht"]})
    assert (outcome.computed, outcome.failed, outcome.left) == (2, 0, 0)
    assert outcome.skipped == ("other",)
    # The target is a linear function of the inputs, but for the penalty.
    assert all(row.method == "one" and row.rmse < 10 for row in results.read())
    assert main(["run", "ridges", "--only", "method=other"], tmp_path) == 0
    assert "skipped: other, which needs harfe_has_no_such_package" in capsys.readouterr().err


# --- the methods ---


def test_arguments_of_harfe_come_from_the_config(monkeypatch):
    given = []

    class Recorder:
        learned_law_, support_, order_, scale_, alpha_ = None, [1, 4], 2, 1.0, 0.1

        def __init__(self, **arguments):
            given.append(arguments)

        def fit(self, X, y):
            return self

    monkeypatch.setattr("harfe.HARFERegressorCV", Recorder)
    fitted = HarfeCV({"refine": False, "max_iter": 7}).fit(np.ones((3, 2)), np.ones(3), 5, {})
    assert given == [{"refine": False, "max_iter": 7, "random_state": 5}]
    assert fitted.n_terms == 2


def test_rows_from_before_an_argument_stay_valid():
    assert HarfeCV().facts() == {"law": "auto", "refine": True}
    assert HarfeCV({"law": "grid"}).facts() == {"law": "grid", "refine": True}
    assert HarfeCV({"max_iter": 7}).facts() == {"law": "auto", "refine": True, "max_iter": 7}
    grid = {"alpha": (0.1,), "gamma_times_d": (1.0,)}
    assert KernelRidge(**grid).facts() == grid
    assert KernelRidge(**grid, fit_rows=9).facts() == grid | {"fit_rows": 9}


def some_rows(m=60):
    X = np.random.default_rng(0).normal(size=(m, 3))
    return X, np.sin(X[:, 0]) + X[:, 1]


def test_kernel_ridge_uses_no_more_rows_than_allowed():
    from sklearn.kernel_ridge import KernelRidge as Plain
    from sklearn.preprocessing import StandardScaler

    X, y = some_rows()
    grid = {"alpha": (1e-3, 1e-1), "gamma_times_d": (0.3, 1.0)}
    whole = KernelRidge(**grid).fit(X, y, 0, {})
    wide = KernelRidge(**grid, tune_rows=60, fit_rows=60).fit(X, y, 0, {})
    assert np.array_equal(whole.model.predict(X), wide.model.predict(X))
    few = KernelRidge(**grid, tune_rows=20, fit_rows=40).fit(X, y, 0, {})
    assert (whole.n_terms, few.n_terms) == (60, 40)
    # The same by hand, on the rows that the seed draws.
    rows = np.random.default_rng(0).permutation(60)[:40]
    scale, mean, spread = StandardScaler().fit(X[rows]), y[rows].mean(), y[rows].std()
    plain = Plain(kernel="rbf", **few.chosen).fit(
        scale.transform(X[rows]), (y[rows] - mean) / spread
    )
    byhand = mean + spread * plain.predict(scale.transform(X))
    assert few.model.predict(X) == pytest.approx(byhand)


@pytest.mark.filterwarnings("ignore")  # of the libraries about themselves
@pytest.mark.parametrize("name", ["catboost", "forest", "lightgbm", "ridge"])
def test_a_method_at_its_defaults(name, tmp_path, monkeypatch):
    pytest.importorskip({"forest": "sklearn", "ridge": "sklearn"}.get(name, name))
    monkeypatch.chdir(tmp_path)
    X, y = some_rows()
    one, same = (Default(name).fit(X, y, 3, {}) for _ in range(2))
    predicted = one.model.predict(X)
    assert np.array_equal(predicted, same.model.predict(X))
    assert np.mean((predicted - y) ** 2) < 0.5 * np.var(y)
    assert not list(tmp_path.iterdir())  # catboost writes a folder unless told otherwise
    sizes = {
        "catboost": lambda model: len(model.get_leaf_values()),
        "forest": lambda model: sum(np.sum(t.tree_.feature < 0) for t in model.estimators_),
        "lightgbm": lambda model: model.booster_.trees_to_dataframe().left_child.isna().sum(),
        "ridge": lambda model: 3,
    }
    assert one.n_terms == sizes[name](one.model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ebm_at_its_defaults():
    pytest.importorskip("interpret")
    X, y = some_rows()
    fitted = Default("ebm").fit(X[:, 1:2], y, 3, {})
    assert np.mean((fitted.model.predict(X[:, 1:2]) - y) ** 2) < np.var(y)
    assert fitted.n_terms == len(fitted.model.bins_[0][0]) + 3  # one more bin, missing, unknown


# --- ratios ---

#: Mean squared errors by problem, method and repetition.
ERRORS = {
    ("yacht", "one", 0): 1.0,
    ("yacht", "one", 1): 4.0,
    ("yacht", "other", 0): 4.0,
    ("yacht", "other", 1): 64.0,
    ("pol", "one", 0): 16.0,
    ("pol", "other", 0): 1.0,
}


def rows_of(study, errors, n_train=20):
    for (problem, method, repetition), error in errors.items():
        part = "rows" if "/" in problem else "uci"
        task = Task(part, problem, method, repetition)
        size = n_train(problem) if callable(n_train) else n_train
        numbers = {"error": error, "n_terms": 7, "fit_seconds": 1.0, "predict_seconds": 1.0}
        yield Row(*task, study.fingerprint(task), 0, size, 10, **numbers)


def test_ratios_are_geometric_means_over_repetitions_and_problems(make_study):
    study = make_study()
    rows = list(rows_of(study, ERRORS))
    found = ratios(study, "uci", rows, "rmse")
    # By hand: 2/1 and 8/2 on yacht; 1/4 on pol.
    assert found["yacht"] == pytest.approx({"one": 1, "other": math.sqrt(8)})
    assert found["pol"] == pytest.approx({"one": 1, "other": 0.25})
    own = standing(found, "other")
    logs = [math.log(8) / 2, -math.log(4)]
    mean = math.exp(sum(logs) / 2)
    assert own.mean == pytest.approx(mean)
    # The standard error of two numbers is half their distance.
    assert own.error == pytest.approx(mean * (logs[0] - logs[1]) / 2)
    assert (own.largest, own.where) == (pytest.approx(math.sqrt(8)), "yacht")
    page = markdown(study, rows)
    assert "| yacht | **1.50** | 5.00 |" in page
    assert "Test RMSE / that of One, geometric mean over the repetitions" in page
    assert "| yacht | 1.00 | 2.83 |" in page
    assert "| pol | 1.00 | 0.25 |" in page
    assert "| geometric mean ± standard error | 1.000 ± 0.000 | 0.841 ± 1.020 |" in page
    assert "| largest | 1.00 (yacht) | 2.83 (yacht) |" in page
    assert "| wins | 1 | 1 |" in page


def test_only_repetitions_and_problems_that_both_have_count(make_study):
    study = make_study()
    missing = {key: error for key, error in ERRORS.items() if key != ("yacht", "one", 1)}
    found = ratios(study, "uci", list(rows_of(study, missing)), "rmse")
    assert found["yacht"]["other"] == pytest.approx(2)
    without = {key: error for key, error in ERRORS.items() if key != ("pol", "other", 0)}
    found = ratios(study, "uci", list(rows_of(study, without)), "rmse")
    assert "other" not in found["pol"]
    assert standing(found, "other") is None
    assert "that of One" not in markdown(study, [])


def test_a_method_that_runs_less_often_is_compared_but_not_ranked(make_study, tmp_path):
    def edit(text):
        return text.replace('label = "Other"', 'label = "Other"\nrepetitions = 1')

    study = make_study(edit)
    kept = {key: error for key, error in ERRORS.items() if key != ("yacht", "other", 1)}
    kept["yacht", "other", 0] = 0.25
    rows = list(rows_of(study, kept))
    page = markdown(study, rows)
    assert "| yacht | **1.50** | 0.500 |" in page
    assert "| mean rank (2 problems) | 1.00 | - |" in page
    assert "| geometric mean of error / best | 1.00 | - |" in page
    assert "| yacht | 1.00 | 0.50 |" in page
    assert "| wins | 2 | 0 |" in page
    write_all(study, rows, tmp_path)
    assert "other" not in (tmp_path / "uci.csv").read_text()


# --- curves ---

CURVES = {
    ("friedman1/300", "one", 0): 1.0,
    ("friedman1/300", "one", 1): 9.0,
    ("friedman1/1000", "one", 0): 1.0,
    ("friedman1/1000", "one", 1): 1.0,
    ("pol/300", "one", 0): 100.0,
    ("pol/all", "one", 0): 25.0,
    ("pol/all", "other", 0): 36.0,
}


def n_train(problem):
    return 13500 if problem == "pol/all" else int(problem.partition("/")[2])


def test_a_curve_has_the_mean_error_at_every_number_of_rows(make_study):
    study = make_study()
    rows = list(rows_of(study, CURVES, n_train))
    points = learning_curves(study, "rows", rows, "rmse")
    assert points[0] == Point("friedman1", "one", 300, 2.0, pytest.approx(math.sqrt(2)), 2)
    told = [(point.table, point.method, point.rows, point.error) for point in points[1:]]
    assert told == [
        ("friedman1", "one", 1000, 1.0),
        ("pol", "one", 300, 10.0),
        ("pol", "one", 13500, 5.0),
        ("pol", "other", 13500, 6.0),
    ]
    lines = list(csv.reader(curve_numbers(points).splitlines()))
    assert lines[0] == ["table", "method", "rows", "error", "standard_deviation", "repetitions"]
    assert lines[1] == ["friedman1", "one", "300", "2", "1.41", "2"]
    assert lines[-1] == ["pol", "other", "13500", "6", "nan", "1"]


def test_the_figure_of_curves_shows_what_its_numbers_say(make_study, monkeypatch, tmp_path):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: drawn.append(figure))
    study = make_study()
    points = learning_curves(study, "rows", list(rows_of(study, CURVES, n_train)), "rmse")
    draw_curves(study, "rows", "rmse", points, tmp_path / "unused.png")
    panels = {axes.get_title(): axes for axes in drawn[0].axes}
    assert list(panels) == ["friedman1", "pol"]
    for axes in panels.values():
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    lines = {
        (name, bars.get_label()): tuple(map(list, bars.lines[0].get_data()))
        for name, axes in panels.items()
        for bars in axes.containers
    }
    assert lines["friedman1", "One"] == ([300, 1000], [2.0, 1.0])
    assert lines["pol", "One"] == ([300, 13500], [10.0, 5.0])
    assert lines["pol", "Other"] == ([13500], [6.0])


def test_show_writes_curves_and_ratios(make_study, tmp_path):
    study = make_study()
    rows = [*rows_of(study, ERRORS), *rows_of(study, CURVES, n_train)]
    written = write_all(study, rows, tmp_path)
    names = ["table.md", "uci.csv", "uci.png", "rows.csv", "rows.png"]
    assert [path.name for path in written] == names
    assert written[3].read_text().startswith("table,method,rows,")
    assert written[4].read_bytes().startswith(b"\x89PNG")
