"""Figures of the reproduction: rows to numbers, numbers to pictures."""

import csv
import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if (ROOT / "PKG-INFO").exists():
    pytest.skip("experiments are not in the source archive", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from experiments.config import Method, Part, Study, load_study  # noqa: E402
from experiments.paper import drawing, figure_numbers  # noqa: E402
from experiments.paper.figure_numbers import Numbers, growth_exponents, ratios  # noqa: E402
from experiments.paper.figures import write_figures  # noqa: E402
from experiments.results import ResultsError, ResultsFile, Row  # noqa: E402

COUNTS = (1000, 2000, 4000)
STEPS = (0.01, 0.1, 1.0)


def a_study(parts, methods):
    """A study that is only shown: parts as (problems, measure, source settings), no sources."""
    names = tuple(methods)
    return Study(
        Path("made/config.toml"),
        "Made by hand",
        "",
        {
            part: Part(part, "made", problems, names, 20, (measure,), source_settings=settings)
            for part, (problems, measure, settings) in parts.items()
        },
        {name: Method(f"<{name}>", "made", True, settings=own) for name, own in methods.items()},
        {},
        {},
    )


def a_row(part, problem, method, repetition=0, n_train=200, details=None, **values):
    text = json.dumps(details) if details else ""
    facts = (part, problem, method, repetition, "hash", 1000 + repetition, n_train, 100)
    return Row(*facts, details=text, **values)


def timed():
    """Seconds N^1.5 for HARFE, a constant multiple of them, and N^2, each the median of three."""
    parts = ("d100_m250", "d100_m500", "d50_m500")
    laws = {"harfe": lambda n: n**1.5, "srfe": lambda n: 4 * n**1.5, "spgl1": lambda n: n**2.0}
    methods = {f"{name},N={count}": {"N": count} for name in laws for count in COUNTS}
    study = a_study({part: (("norm",), "fit_seconds", {}) for part in parts}, methods)
    rows = [
        a_row(part, "norm", f"{name},N={count}", draw, fit_seconds=1e-6 * law(count) * factor)
        for part in parts
        for name, law in laws.items()
        for count in COUNTS
        for draw, factor in enumerate((50.0, 1.0, 0.1))
    ]
    return study, rows


def shares(*, problem="friedman_g", draws, methods=("unit", "raw")):
    """Five inputs that matter and one that does not; `draws` holds the kept shares of each draw."""
    study = a_study({"g": ((problem,), "error", {})}, {name: {} for name in methods})
    rows = [
        a_row(
            "g",
            problem,
            "unit",
            number,
            details={"inputs": 6, "kept": kept, "weighted": kept[::-1], "drawn": [0.1] * 6},
        )
        for number, kept in enumerate(draws)
    ]
    return study, rows


def lottery():
    methods = {"kept,N=100": {"N": 100}, "kept,N=400": {"N": 400}, "random": {"N": 50}}
    study = a_study({"functions": (("friedman1",), "error_clean", {})}, methods)
    rows = [
        a_row("functions", "friedman1", method, draw, error_clean=start + draw)
        for method, start in (("kept,N=100", 5.0), ("kept,N=400", 1.0), ("random", 20.0))
        for draw in range(11)
    ]
    return study, rows


def spoilt():
    settings = {"clean": {}, "noise50": {"noise": 0.5}, "outliers05": {"outliers": 0.05}}
    parts = {part: (("friedman1",), "error_clean", own) for part, own in settings.items()}
    study = a_study(parts, {"harfe": {}, "srfe": {}})
    errors = {"clean": (1.0, 2.0, 30.0), "noise50": (3.0, 4.0, 5.0), "outliers05": (6.0, 9.0, 70.0)}
    rows = [
        a_row(part, "friedman1", "harfe", draw, error=1e9, error_clean=error)
        for part, found in errors.items()
        for draw, error in enumerate(found)
    ]
    return study, [*rows, a_row("clean", "friedman1", "srfe", error_clean=8.0)]


def stepped():
    study = a_study(
        {"real": (("housing",), "error", {}), "friedman": (("friedman1",), "error_clean", {})},
        {f"harfe,mu={step}": {"mu": step} for step in STEPS},
    )
    rows = [
        a_row("real", "housing", f"harfe,mu={step}", draw, error=error, error_clean=1.0)
        for step, median in zip(STEPS, (6.0, 4.0, 1.0), strict=True)
        for draw, error in enumerate((100.0, median, 0.1))
    ]
    rows += [
        a_row("friedman", "friedman1", f"harfe,mu={step}", error=1.0, error_clean=error)
        for step, error in zip(STEPS, (10.0, 20.0, 50.0), strict=True)
    ]
    return study, rows


def drawn_figure(monkeypatch, draw, numbers):
    """The figure that would be saved."""
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: drawn.append(figure))
    draw(numbers, Path("unused.png"))
    return drawn[0]


def points(axes):
    """The points of every line with data, as lists."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()]


def heights(axes):
    return [bar.get_height() for bar in axes.patches]


# --- run times ---


def test_ratios_are_of_medians_at_equal_part_and_N():
    found = ratios(*timed())
    assert found.columns == ("part", "method", "N", "seconds", "ratio")
    assert set(found.column("method")) == {"srfe", "spgl1"}
    assert len(found.rows) == 3 * 2 * len(COUNTS)
    for _, method, count, seconds, ratio in found.rows:
        assert ratio == pytest.approx(4.0 if method == "srfe" else math.sqrt(count))
        assert seconds == pytest.approx(1e-6 * (4 * count**1.5 if method == "srfe" else count**2))


def test_growth_exponents_are_those_of_the_powers():
    found = growth_exponents(*timed())
    assert found.columns == ("part", "method", "exponent")
    assert len(found.rows) == 9
    for _, method, exponent in found.rows:
        assert exponent == pytest.approx(2.0 if method == "spgl1" else 1.5)


def test_growth_is_the_slope_of_least_squares():
    study, _ = timed()
    logs = (1.0, 4.0, 4.0)  # over log N = 0, 1, 2 times log 2: slope 1.5 / log 2
    rows = [
        a_row("d100_m250", "norm", f"harfe,N={count}", fit_seconds=math.exp(log))
        for count, log in zip(COUNTS, logs, strict=True)
    ]
    assert growth_exponents(study, rows).rows == (
        ("d100_m250", "harfe", pytest.approx(1.5 / math.log(2))),
    )
    assert growth_exponents(study, rows[:1]).rows == ()


def test_what_harfe_has_no_time_for_has_no_ratio():
    study, rows = timed()
    left = [row for row in rows if row.method != "harfe,N=2000" or row.part != "d50_m500"]
    gone = {row[:3] for row in ratios(study, rows).rows} - {
        row[:3] for row in ratios(study, left).rows
    }
    assert gone == {("d50_m500", "srfe", 2000), ("d50_m500", "spgl1", 2000)}
    assert ratios(study, [row for row in rows if not row.method.startswith("harfe")]).rows == ()


@pytest.mark.parametrize("column", ["seconds", "ratio"])
def test_run_times_are_drawn_in_the_panels_of_their_sizes(monkeypatch, column):
    make, draw = {
        "seconds": (figure_numbers.run_times, drawing.draw_run_times),
        "ratio": (figure_numbers.ratios, drawing.draw_ratios),
    }[column]
    numbers = make(*timed())
    left, right = drawn_figure(monkeypatch, draw, numbers).axes
    for axes, parts in ((left, ("d100_m250", "d100_m500")), (right, ("d100_m500", "d50_m500"))):
        wanted = [
            (own.column("N"), own.column(column))
            for part in parts
            for own in numbers.groups("part")[part].groups("method").values()
        ]
        lines = [found for found in points(axes) if len(found[0]) == len(COUNTS)]
        assert lines == wanted
        levels = [found[1] for found in points(axes) if len(found[0]) == 2]
        assert levels == ([[2.5, 2.5]] if column == "ratio" else [])
        styles = [line.get_linestyle() for line in axes.get_lines()][: len(wanted)]
        assert styles == (["-", "--", ":"] if column == "seconds" else ["--", ":"]) * 2


# --- parity ---


def test_parity_takes_the_first_repetition(monkeypatch):
    study = a_study({"friedman": (("friedman1", "friedman2"), "error_clean", {})}, {"harfe": {}})
    rows = [
        a_row(
            "friedman",
            "friedman1",
            "harfe",
            draw,
            error_relative=0.25 + draw,
            details={"truth": [1.0, 2.0], "predicted": [1.5 + draw, 2.5 + draw]},
        )
        for draw in (1, 0)
    ]
    numbers = figure_numbers.parity(study, rows)
    assert numbers.columns == ("problem", "truth", "predicted", "relative_error")
    assert numbers.rows == (("friedman1", 1.0, 1.5, 0.25), ("friedman1", 2.0, 2.5, 0.25))
    (axes,) = drawn_figure(monkeypatch, drawing.draw_parity, numbers).axes
    assert points(axes)[0] == ([1.0, 2.0], [1.5, 2.5])
    assert axes.get_title() == "f1: relative RMS error 0.250"
    assert axes.get_lines()[1].get_slope() == 1


# --- shares of inputs ---


def test_shares_are_means_in_percent_and_leads_are_counted(monkeypatch):
    draws = (
        [0.3, 0.2, 0.2, 0.5, 0.2, 0.1],
        [0.5, 0.2, 0.4, 0.5, 0.1, 0.1],  # a tie is no lead
    )
    study, rows = shares(draws=draws)
    numbers = figure_numbers.inputs_of_g(study, rows)
    assert numbers.columns == ("method", "input", "kept", "weighted", "drawn", "leads", "draws")
    assert numbers.column("input") == [1, 2, 3, 4, 5, 6]
    assert numbers.column("kept") == pytest.approx([40, 20, 30, 50, 15, 10])
    assert numbers.column("weighted") == pytest.approx([10, 15, 50, 30, 20, 40])
    assert numbers.column("drawn") == pytest.approx([10] * 6)
    assert set(numbers.column("leads")) == {1}
    assert set(numbers.column("draws")) == {2}
    (axes,) = drawn_figure(monkeypatch, drawing.draw_inputs_of_g, numbers).axes
    assert heights(axes) == numbers.column("kept")
    colors = [bar.get_facecolor() for bar in axes.patches]
    assert len(set(colors[:5])) == 1
    assert colors[5] != colors[0]
    assert axes.get_title() == "<unit>\nthe five lead in 1 of 2 draws"
    (drawn,) = axes.collections
    levels = [segment[0][1] for segment in drawn.get_segments()]
    assert levels == numbers.column("drawn")


def test_shares_of_real_data_have_their_range(monkeypatch):
    draws = [[draw / 100, 0.5, 0.1, 0.1, 0.1, 0.1] for draw in range(11)]
    numbers = figure_numbers.inputs_of_real_data(*shares(problem="housing", draws=draws))
    assert numbers.columns[:5] == ("problem", "input", "kept", "p10", "p90")
    first, second = numbers.rows[:2]
    assert first[:5] == ("housing", 1, *map(pytest.approx, (5.0, 1.0, 9.0)))
    assert second[:5] == ("housing", 2, *map(pytest.approx, (50.0, 50.0, 50.0)))
    (axes,) = drawn_figure(monkeypatch, drawing.draw_inputs_of_real_data, numbers).axes
    assert heights(axes) == numbers.column("kept")
    ranges = axes.collections[1].get_segments()
    assert [segment[0][1] for segment in ranges] == numbers.column("p10")
    assert [segment[1][1] for segment in ranges] == numbers.column("p90")


# --- step, outliers, lottery ---


def test_steps_are_relative_to_the_papers_in_the_measure_of_the_part(monkeypatch):
    study, rows = stepped()
    numbers = figure_numbers.steps(study, rows)
    assert numbers.columns == ("part", "problem", "mu", "median", "relative")
    assert numbers.rows == (
        ("real", "housing", 0.01, 6.0, 1.5),
        ("real", "housing", 0.1, 4.0, 1.0),
        ("real", "housing", 1.0, 1.0, 0.25),
        ("friedman", "friedman1", 0.01, 10.0, 0.5),
        ("friedman", "friedman1", 0.1, 20.0, 1.0),
        ("friedman", "friedman1", 1.0, 50.0, 2.5),
    )
    (axes,) = drawn_figure(monkeypatch, drawing.draw_steps, numbers).axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert lines["housing"] == [1.5, 1.0, 0.25]
    assert lines["friedman1"] == [0.5, 1.0, 2.5]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    without = [row for row in rows if (row.part, row.method) != ("real", "harfe,mu=0.1")]
    assert set(figure_numbers.steps(study, without).column("problem")) == {"friedman1"}


def test_spoilt_rows_are_drawn_where_their_labels_are(monkeypatch):
    numbers = figure_numbers.spoilt(*spoilt())
    assert numbers.columns == ("part", "kind", "amount", "problem", "method", "median")
    assert numbers.rows == (
        ("clean", "as is", 0.0, "friedman1", "<harfe>", 2.0),
        ("clean", "as is", 0.0, "friedman1", "<srfe>", 8.0),
        ("noise50", "noise", 0.5, "friedman1", "<harfe>", 4.0),
        ("outliers05", "outliers", 0.05, "friedman1", "<harfe>", 9.0),
    )
    (axes,) = drawn_figure(monkeypatch, drawing.draw_spoilt, numbers).axes
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert labels == ["as is", "noise +0.5", "outliers 5 %"]
    assert [found for found in points(axes) if found[0]] == [
        ([0, 1], [2.0, 4.0]),
        ([2], [9.0]),
        ([0], [8.0]),
    ]


def test_tickets_have_median_and_range_over_N_per_row(monkeypatch):
    numbers = figure_numbers.tickets(*lottery())
    assert numbers.columns == ("problem", "method", "N", "N_per_m", "median", "p10", "p90")
    assert numbers.rows == (
        ("friedman1", "kept", 100, 0.5, 10.0, 6.0, 14.0),
        ("friedman1", "kept", 400, 2.0, 6.0, 2.0, 10.0),
        ("friedman1", "random", 50, 0.25, 25.0, 21.0, 29.0),
    )
    (axes,) = drawn_figure(monkeypatch, drawing.draw_tickets, numbers).axes
    assert points(axes) == [([0.5, 2.0], [10.0, 6.0]), ([0, 1], [25.0, 25.0])]
    corners = {tuple(map(float, corner)) for corner in axes.collections[0].get_paths()[0].vertices}
    assert corners == {(0.5, 6.0), (0.5, 14.0), (2.0, 2.0), (2.0, 10.0)}
    (band,) = axes.patches
    edges = band.get_path().transformed(band.get_patch_transform()).vertices[:, 1]
    assert sorted(set(edges.tolist())) == [21.0, 29.0]


# --- files ---


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_picture_and_numbers_are_written_and_written_alike(tmp_path):
    study, rows = timed()
    pictures = write_figures("figure3", study, rows, tmp_path)
    assert [picture.path.name for picture in pictures] == ["figure3.png", "figure3_ratio.png"]
    assert all("3 draws" in picture.caption for picture in pictures)
    assert "SRFE 4 to 4 times" in pictures[1].caption
    names = ["figure3.csv", "figure3.png", "figure3_ratio.csv", "figure3_ratio.png"]
    files = {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())}
    assert list(files) == names
    assert files["figure3.png"].startswith(b"\x89PNG")
    table = read(tmp_path / "figure3_ratio.csv")
    assert table[0] == ["part", "method", "N", "seconds", "ratio"]
    assert ["d100_m250", "spgl1", "2000", "4", "44.721"] in table
    # The order of the rows is the study's, whatever order they came in.
    write_figures("figure3", study, rows[::-1], tmp_path)
    assert {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())} == files


def test_the_folder_is_made(tmp_path):
    folder = tmp_path / "not" / "there"
    (picture,) = write_figures("step", *stepped(), folder)
    assert picture.path == folder / "step.png"
    assert sorted(path.name for path in folder.iterdir()) == ["step.csv", "step.png"]


def test_numbers_are_written_with_five_digits():
    assert Numbers(("a", "b"), (("x, y", 1 / 3), (7, 2e-9 / 3))).text() == (
        'a,b\n"x, y",0.33333\n7,6.6667e-10\n'
    )


NAMES = ("figure2", "figure3", "figure4", "figure5", "step", "outliers", "lottery")


def a_full_row(task):
    """A row with everything that a figure may ask for."""
    inputs = {"kept": [0.2] * 5 + [0.1], "weighted": [0.2] * 6, "drawn": [0.15] * 6}
    names = ("error", "error_clean", "error_relative", "fit_seconds")
    values = dict.fromkeys(names, 1.0)
    return a_row(*task, details={"truth": [1.0], "predicted": [2.0], **inputs}, **values)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_studies_have_what_their_figures_ask_for(name, quick, monkeypatch, tmp_path):
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: path.touch())
    study = load_study(ROOT / "experiments" / "paper" / f"{name}.toml", quick=quick)
    tasks = [task for task in study.tasks() if task.repetition == 0]
    rows = [a_full_row(task) for task in tasks]
    pictures = write_figures(name, study, rows, tmp_path)
    assert pictures[0].path == tmp_path / f"{name}.png"
    assert "1 draw" in pictures[0].caption
    shown = read(tmp_path / f"{name}.csv")[1:]
    each = 6 if name in ("figure4", "figure5") else 1
    assert len(shown) == each * len(tasks)


def test_a_figure_without_numbers_is_not_written(tmp_path):
    study, rows = timed()
    failed = [Row(*row.task, "hash", 1, 10, 10, failure="it broke") for row in rows]
    strange = [a_row("elsewhere", "norm", "harfe,N=1000", fit_seconds=1.0)]
    for found in ([], failed, strange):
        assert write_figures("figure3", study, found, tmp_path) == []
    assert write_figures("table3", study, rows, tmp_path) == []
    alone = [row for row in rows if row.method.startswith("harfe")]
    assert [p.path.name for p in write_figures("figure3", study, alone, tmp_path)] == [
        "figure3.png"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure3.csv", "figure3.png"]


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_give_no_pictures(name, tmp_path):
    study = load_study(ROOT / "experiments" / "paper" / f"{name}.toml")
    assert write_figures(name, study, [], tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_captions_tell_the_range_of_draws(tmp_path):
    (picture,) = write_figures("step", *stepped(), tmp_path)
    assert "1 to 3 draws" in picture.caption
    assert "from 0.25 to 2.5" in picture.caption


def test_failed_repetitions_are_no_draws(tmp_path):
    study, rows = timed()
    extra = [Row(*row.task[:3], 7, "hash", 1, 10, 10, failure="it broke") for row in rows[::3]]
    pictures = write_figures("figure3", study, [*rows, *extra], tmp_path)
    assert "median of 3 draws" in pictures[0].caption


def test_rows_are_never_replaced_by_numbers(tmp_path):
    study, rows = timed()
    results = ResultsFile(tmp_path / "figure3.csv")
    results.rewrite(rows)
    before = results.path.read_bytes()
    with pytest.raises(ResultsError, match="another folder"):
        write_figures("figure3", study, rows, tmp_path)
    assert results.path.read_bytes() == before
