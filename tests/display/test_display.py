"""Figures show the numbers of the model, use the given axes and reject bad arguments clearly."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.colors import to_hex

from harfe import HARFERegressor, HARFERegressorCV, display
from harfe._core.wording import percent
from harfe.datasets import load_real, make_function
from harfe.display._drawing import BLUE, joined, shorten
from harfe.explain.anova import anova
from harfe.explain.inputs.seen import SeenInput
from harfe.explain.inputs.summary import InputSummary
from harfe.metrics import mean_squared_error
from harfe.selection.results import ErrorPaths

ROOT = Path(__file__).resolve().parents[2]
LONG = (
    "Gas turbine compressor decay state coefficient [-]",
    "Gas turbine decay state coefficient [-]",
    "cost in $ per unit of $ spent",
    "x",
    "age",
)


@pytest.fixture(autouse=True)
def _close_figures():
    """What `plot` opens stays open for the user; tests have seen it."""
    before = mpl.rcParams.copy()
    yield
    plt.close("all")
    assert mpl.rcParams == before


@pytest.fixture(scope="module")
def data():
    drawn = make_function("friedman1", 200, random_state=0)
    return pd.DataFrame(drawn.X, columns=drawn.feature_names), drawn.y


@pytest.fixture(scope="module")
def model(data):
    return HARFERegressor(500, 25, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def third_order(data):
    return HARFERegressor(300, 20, order=3, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def two_targets(data):
    X, y = data
    return HARFERegressor(300, 20, random_state=0).fit(X, np.column_stack([y, 100 * X["x6"]]))


@pytest.fixture(scope="module")
def complex_model(data):
    X, y = data
    return HARFERegressor(300, 20, random_state=0).fit(X, y + 1j * X["x1"].to_numpy())


@pytest.fixture(scope="module")
def constant(data):
    X, _ = data
    return HARFERegressor(100, 10, random_state=0).fit(X, np.full(len(X), 3.0))


@pytest.fixture(scope="module")
def one_term(data):
    X, y = data
    return HARFERegressor(100, 1, order=1, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def long_names(data):
    X, y = data
    return HARFERegressor(300, 20, random_state=0).fit(X.iloc[:, :5].set_axis(LONG, axis=1), y)


@pytest.fixture(scope="module")
def selected(data):
    """A search under a learned law, whose features match a reference."""
    X, y = data
    return HARFERegressorCV(n_nonzero_coefs=[2, 5, 10, 20], cv=3, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def grid(data):
    X, y = data
    settings = {"orders": [1, 2], "scales": [0.5, 1.0, 2.0], "n_nonzero_coefs": [5, 10, 20]}
    return HARFERegressorCV(300, law="grid", cv=3, random_state=0, **settings).fit(X, y)


@pytest.fixture(scope="module")
def repeated():
    """Two inputs that are nearly equal."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    X = np.hstack([x, x + 0.01 * rng.normal(size=(200, 1))])
    return HARFERegressor(200, 10, random_state=0).fit(X, np.sin(x[:, 0])), X


def every_display(model, X, y):
    """One of each display that a fit by a pursuit supports."""
    return [
        display.VariableHistogramDisplay.from_estimator(model),
        display.TermImportanceDisplay.from_estimator(model),
        display.InteractionDisplay.from_estimator(model),
        display.ComponentDisplay.from_estimator(model, "x4"),
        display.ComponentDisplay.from_estimator(model, "x1 : x2"),
        display.ComponentsDisplay.from_estimator(model, most=4),
        display.ParityDisplay.from_estimator(model, X, y),
        display.ConvergenceDisplay.from_estimator(model),
        display.WaterfallDisplay.from_estimator(model, X),
    ]


@pytest.mark.parametrize("name", display.__all__)
def test_every_display_is_tested_and_keeps_the_pattern(name, model, selected, data):
    kind = getattr(display, name)
    drawn = [*every_display(model, *data), display.SparsityPathDisplay.from_estimator(selected)]
    own = [one for one in drawn if type(one) is kind]
    assert own, f"add {name} to every_display"
    assert kind.__doc__.strip().partition("\n")[0].endswith(".")
    for one in own:
        assert len(one.table()) > 0
        assert one.plot() is one
        assert one.figure_ is not None


def texts(ax):
    return [text.get_text() for text in ax.texts]


def overlaps(labels, renderer):
    """Pairs of visible labels whose boxes share more than a sliver."""
    boxes = [label.get_window_extent(renderer) for label in labels if label.get_text()]
    shrunk = [box.expanded(0.97, 0.8) for box in boxes]
    return sum(a.overlaps(b) for i, a in enumerate(shrunk) for b in shrunk[i + 1 :])


def assert_drawn(figure):
    """The figure can be drawn, nothing of it is cut off, and no names overlap."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    whole = figure.get_tightbbox(renderer).padded(-0.02)
    assert whole.x0 >= 0
    assert whole.y0 >= 0
    assert whole.x1 <= figure.get_figwidth()
    assert whole.y1 <= figure.get_figheight()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            assert overlaps(axis.get_ticklabels(), renderer) == 0


# --- what every display has in common ---------------------------------------------------------


def test_displays_draw_themselves_and_use_the_axes_they_are_given(model, data):
    for drawn in every_display(model, *data):
        assert drawn.plot() is drawn
        assert_drawn(drawn.figure_)
        figure, ax = plt.subplots()
        numbers = plt.get_fignums()
        drawn.plot(ax)
        assert drawn.figure_ is figure
        assert plt.get_fignums() == numbers
        if hasattr(drawn, "axes_"):
            assert not ax.axison
            assert all(panel.figure is figure for panel in drawn.axes_)
        else:
            assert drawn.ax_ is ax


def test_displays_of_panels_take_as_many_axes_as_they_need(model):
    figure, axes = plt.subplots(2, 3)
    grid = display.ComponentsDisplay.from_estimator(model, most=4).plot(axes)
    assert list(grid.axes_) == list(axes.ravel()[:4])
    assert not axes[1, 2].axison
    with pytest.raises(ValueError, match="ax holds 2 axes, but there are 4 panels; pass 4"):
        grid.plot(axes[0, :2])
    free = figure.add_axes((0, 0, 1, 1))
    with pytest.raises(ValueError, match="has no place in a grid"):
        grid.plot(free)


def test_every_table_is_one_for_people_for_pandas_and_for_json(model, data):
    for drawn in every_display(model, *data):
        table = drawn.table()
        assert len(table) == len(table.to_frame()) > 0
        assert list(table.to_frame().columns) == list(table.columns)
        json.dumps(table.to_dict(), allow_nan=False)


def test_importing_harfe_and_its_displays_does_not_import_matplotlib():
    code = (
        "import sys, harfe; harfe.display.ParityDisplay([1.0, 2.0], [1.0, 3.0]).table();"
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "False"


def test_without_matplotlib_plot_says_what_to_install(model, data, monkeypatch):
    displays = every_display(model, *data)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for drawn in displays:
        assert len(drawn.table()) > 0
        with pytest.raises(ImportError, match=r'pip install "harfe\[plot\]"'):
            drawn.plot()


def test_what_is_no_fitted_model_or_no_axes_is_refused(model, data):
    for kind in (display.TermImportanceDisplay, display.ConvergenceDisplay):
        with pytest.raises(TypeError, match="HARFERegressor is not a fitted harfe model; pass"):
            kind.from_estimator(HARFERegressor())
    with pytest.raises(TypeError, match="ax=int is not a matplotlib axes"):
        display.VariableHistogramDisplay.from_estimator(model).plot(3)
    with pytest.raises(ValueError, match=r"most=0 must be a whole number.*e\.g\. most=10"):
        display.TermImportanceDisplay.from_estimator(model).plot(most=0)


# --- names -------------------------------------------------------------------------------------


def test_names_are_shortened_in_the_middle_and_stay_different():
    assert shorten(["age", "bmi"]) == ["age", "bmi"]
    assert shorten(["abcdefghijklmnopqrstuvwxyz"], 11) == ["abcde…vwxyz"]
    names = [f"a very long name of input number {k} of the table [kN]" for k in range(12)]
    short = shorten(names, 20)
    assert len(set(short)) == 12
    assert all(name.endswith("[kN]") for name in short)
    assert joined(()) == "constant"
    assert joined(("age", "bmi")) == "age : bmi"


def test_shares_are_written_for_people():
    assert [percent(s) for s in (0, 1e-6, 0.0005, 0.241, 1)] == [
        "0 %",
        "< 0.1 %",
        "0.1 %",
        "24.1 %",
        "100.0 %",
    ]


def test_long_names_neither_overlap_nor_become_formulas(long_names, data):
    X, _ = data
    X = X.iloc[:, :5].set_axis(LONG, axis=1)
    for drawn in (
        display.VariableHistogramDisplay.from_estimator(long_names),
        display.TermImportanceDisplay.from_estimator(long_names),
        display.InteractionDisplay.from_estimator(long_names),
        display.ComponentsDisplay.from_estimator(long_names),
        display.WaterfallDisplay.from_estimator(long_names, X),
    ):
        assert_drawn(drawn.plot().figure_)
    histogram = display.VariableHistogramDisplay.from_estimator(long_names).plot()
    shown = [label.get_text() for label in histogram.ax_.get_yticklabels()]
    assert shown[2] == r"cost in \$ per unit of \$ spent"
    assert histogram.table()["variable"].tolist() == list(LONG)


def test_many_inputs_do_not_overlap():
    rng = np.random.default_rng(0)
    X = rng.random((150, 60))
    model = HARFERegressor(600, 100, random_state=0).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    histogram = display.VariableHistogramDisplay.from_estimator(model).plot()
    assert len(histogram.bars_) == 40
    (note,) = texts(histogram.ax_)
    assert note.startswith("20 more inputs; their largest share is")
    assert_drawn(histogram.figure_)
    matrix = display.InteractionDisplay.from_estimator(model).plot()
    assert matrix.image_.get_array().shape[0] <= 14
    assert_drawn(matrix.figure_)


# --- variable histogram ------------------------------------------------------------------------


@pytest.mark.parametrize(("weighted", "column"), [(False, "share"), (True, "weighted_share")])
def test_the_histogram_has_the_shares_of_the_explanation(model, weighted, column):
    explanation = model.explain()
    for drawn in (
        display.VariableHistogramDisplay.from_estimator(model, weighted=weighted),
        display.VariableHistogramDisplay.from_explanation(explanation, weighted=weighted),
    ):
        expected = explanation.variables
        assert drawn.table()["variable"].tolist() == expected["variable"].tolist()
        np.testing.assert_array_equal(drawn.table()["share"], expected[column])
        np.testing.assert_array_equal(drawn.table()["pool_share"], expected["pool_share"])
        drawn.plot()
        heights = [bar.get_height() for bar in drawn.bars_]
        np.testing.assert_allclose(heights, 100 * expected[column], rtol=1e-12)
        (marks,) = drawn.ax_.collections
        levels = [segment[0, 1] for segment in marks.get_segments()]
        np.testing.assert_allclose(levels, 100 * expected["pool_share"], rtol=1e-12)
        often = expected[column] >= expected["pool_share"]
        dark = [to_hex(bar.get_facecolor()) == BLUE.lower() for bar in drawn.bars_]
        assert dark == often.tolist()


def test_the_histogram_counts_by_hand():
    drawn = display.VariableHistogramDisplay(
        ["a", "b"], [1.0, 0.5], [0.6, 0.6], n_kept=2, n_drawn=5
    )
    drawn.plot()
    assert [bar.get_height() for bar in drawn.bars_] == [100.0, 50.0]
    assert drawn.ax_.get_title(loc="left") == "2 features kept of 5 drawn"
    names = [label.get_text() for label in drawn.ax_.get_xticklabels()]
    assert names == ["a", "b"]


# --- importance and interactions ---------------------------------------------------------------


def test_importance_has_the_components_and_sums_up_the_rest(third_order):
    explanation = third_order.explain()
    drawn = display.TermImportanceDisplay.from_explanation(explanation)
    np.testing.assert_array_equal(drawn.table()["share"], explanation.components["share"])
    assert drawn.table()["order"].tolist() == explanation.components["order"].tolist()
    drawn.plot(most=5)
    share = explanation.components["share"]
    expected = [*(100 * share[:5]), 100 * share[5:].sum()]
    np.testing.assert_allclose([bar.get_width() for bar in drawn.bars_], expected, rtol=1e-12)
    assert sum(expected) == pytest.approx(100)
    names = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert names[:5] == explanation.components["component"][:5].tolist()
    assert names[5] == f"{len(share) - 5} others"
    hatched = [bool(bar.get_hatch()) for bar in drawn.bars_][:5]
    assert hatched == (explanation.components["order"][:5] > 1).tolist()


def test_importance_of_raw_terms_is_their_variance(model):
    explanation = model.explain()
    drawn = display.TermImportanceDisplay.from_estimator(model, kind="terms")
    expected = explanation.terms["variance"] / explanation.variance
    np.testing.assert_allclose(drawn.table()["share"], expected, rtol=1e-12)
    drawn.plot(most=3)
    widths = [bar.get_width() for bar in drawn.bars_]
    np.testing.assert_allclose(widths, 100 * np.sort(expected)[::-1][:3], rtol=1e-12)
    assert any("more terms, the largest" in text for text in texts(drawn.ax_))
    with pytest.raises(ValueError, match="kind='rows' is not known; choose one of components"):
        display.TermImportanceDisplay.from_estimator(model, kind="rows")


@pytest.mark.parametrize("measure", ["total", "second_order"])
def test_the_matrix_has_the_interactions_of_the_explanation(third_order, measure):
    table = third_order.explain().interactions
    drawn = display.InteractionDisplay.from_estimator(third_order, measure=measure)
    own = drawn.table()
    known = dict(zip(table.columns["variables"], table[measure], strict=True))
    assert dict(zip(own.columns["variables"], own["share"], strict=True)) == known
    assert (np.diff(own["share"]) <= 0).all()
    drawn.plot(most=20)
    ax, image = drawn.ax_, drawn.image_.get_array()
    rows = [label.get_text() for label in ax.get_yticklabels()]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            pair = tuple(sorted((row, column), key=lambda name: int(name[1:])))
            if j > i or pair not in known:
                assert image.mask[i, j]
            else:
                assert image[i, j] == pytest.approx(100 * known[pair], rel=1e-12)
    written = {text for text in texts(ax) if text.replace(".", "").isdigit()}
    assert f"{100 * own['share'][0]:.1f}" in written


def test_a_cut_matrix_says_what_it_left_out():
    names = [f"v{k}" for k in range(8)]
    strength = np.full((8, 8), np.nan)
    for k in range(7):
        strength[k, k + 1] = strength[k + 1, k] = 0.1 / (k + 1)
    drawn = display.InteractionDisplay(names, strength).plot(most=4)
    assert [label.get_text() for label in drawn.ax_.get_yticklabels()] == ["v0", "v2", "v3"]
    assert any("4 more inputs; their strongest pair has 2.5 %." in t for t in texts(drawn.ax_))
    # The strongest pair at the corner, v1 and v0.
    assert drawn.image_.get_array()[0, 0] == pytest.approx(10.0)


def test_a_weak_strongest_pair_is_not_drawn_dark():
    strength = np.array([[np.nan, 1e-3], [1e-3, np.nan]])
    drawn = display.InteractionDisplay(["a", "b"], strength).plot()
    assert drawn.image_.norm.vmax == 1.0


def test_models_without_interactions_or_variation_say_so(one_term, constant):
    matrix = display.InteractionDisplay.from_estimator(one_term).plot()
    assert matrix.image_ is None
    assert texts(matrix.ax_) == ["No two inputs interact."]
    assert len(matrix.table()) == 0
    assert texts(display.InteractionDisplay.from_estimator(constant).plot().ax_) == texts(
        matrix.ax_
    )
    for drawn in (
        display.TermImportanceDisplay.from_estimator(constant).plot(),
        display.ComponentsDisplay.from_estimator(constant).plot(),
    ):
        assert texts(drawn.figure_.axes[0]) == ["The fitted function is constant."]
    bar = display.TermImportanceDisplay.from_estimator(one_term).plot()
    assert [b.get_width() for b in bar.bars_] == [pytest.approx(100)]


def test_figures_say_that_inputs_depend_on_each_other(repeated):
    model, X = repeated
    makers = (
        display.TermImportanceDisplay.from_estimator,
        display.InteractionDisplay.from_estimator,
        lambda model: display.ComponentDisplay.from_estimator(model, 0),
        lambda model: display.WaterfallDisplay.from_estimator(model, X),
    )
    for maker in makers:
        with pytest.warns(UserWarning, match="correlated"):
            drawn = maker(model)
        ax = drawn.plot().ax_
        assert any("depend on each" in " ".join(text.split()) for text in texts(ax))
        assert_drawn(drawn.figure_)
    with pytest.warns(UserWarning, match="correlated"):
        several = display.ComponentsDisplay.from_estimator(model)
    assert "Inputs depend on each other" in several.plot().figure_.get_suptitle()
    # Counting features and adding raw terms do not assume independent inputs.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display.VariableHistogramDisplay.from_estimator(model)
        assert display.WaterfallDisplay.from_estimator(model, X, by="terms").note == ""


# --- components --------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", ["independent", "uniform"])
def test_a_curve_is_the_purified_component(model, distribution):
    drawn = display.ComponentDisplay.from_estimator(model, "x3", inputs=distribution).plot()
    kept = model.inputs_
    parts = anova(model.expansion_, kept.named_distribution(distribution, model.expansion_))
    x = drawn.table()["x3"]
    assert (x[0], x[-1]) == (kept.lower[2], kept.upper[2])
    np.testing.assert_array_equal(drawn.table()["effect"], parts.component((2,), x[:, None]))
    np.testing.assert_array_equal(drawn.line_.get_xydata(), np.column_stack([x, drawn.values]))
    assert drawn.share == parts.shares[parts.sets.index((2,))]
    title = drawn.ax_.get_title(loc="left")
    assert title.startswith(f"x3: {percent(drawn.share)} of the variance")
    assert ("uniform" in title) == (distribution == "uniform")
    assert drawn.ax_.get_xlabel() == "x3"


def test_a_map_is_the_purified_component(model):
    drawn = display.ComponentDisplay.from_estimator(model, ("x2", "x1")).plot()
    assert drawn.variables == ("x1", "x2")
    parts = anova(model.expansion_, model.inputs_.distribution)
    table = drawn.table()
    points = np.column_stack([table["x1"], table["x2"]])
    np.testing.assert_array_equal(table["effect"], parts.component((0, 1), points))
    # The second input is on the vertical axis; colours are symmetric about zero.
    np.testing.assert_array_equal(drawn.mesh_.get_array(), drawn.values.T)
    largest = np.abs(drawn.values).max()
    assert (drawn.mesh_.norm.vmin, drawn.mesh_.norm.vmax) == (-largest, largest)
    assert (drawn.ax_.get_xlabel(), drawn.ax_.get_ylabel()) == ("x1", "x2")


def test_components_are_named_by_name_by_number_and_by_their_own_name(model):
    show = display.ComponentDisplay.from_estimator
    values = show(model, "x1 : x2").values
    for same in (("x1", "x2"), (1, 0), ["x2", 0], "x2 : x1"):
        np.testing.assert_array_equal(show(model, same).values, values)
    np.testing.assert_array_equal(show(model, 3).values, show(model, "x4").values)


def test_unknown_components_are_refused_with_the_nearest_names(model, third_order, constant):
    show = display.ComponentDisplay.from_estimator
    with pytest.raises(ValueError, match=r"'x11' is not an input; the nearest names are 'x1"):
        show(model, "x11")
    with pytest.raises(ValueError, match=r"'nothing' is not an input; the nearest names are .*'x"):
        show(model, ("x1", "nothing"))
    for wrong in (10, -1, 2.5, None, True):
        with pytest.raises(ValueError, match=r"is not an input; .* numbers go from 0 to 9"):
            show(model, wrong)
    absent = next(
        (i, j)
        for i in range(10)
        for j in range(i)
        if tuple(sorted((i, j))) not in anova(model.expansion_, model.inputs_.distribution).sets
    )
    with pytest.raises(ValueError, match=r"is not part of the fitted function; the largest are 'x"):
        show(model, absent)
    threefold = next(u for u in third_order.explain().components["variables"] if len(u) == 3)
    with pytest.raises(ValueError, match=r"has 3 inputs, too many to draw; choose one with"):
        show(third_order, threefold)


def test_the_density_below_a_curve_has_the_shares_of_the_rows(model, data):
    X, _ = data
    drawn = display.ComponentDisplay.from_estimator(model, "x4")
    (seen,) = drawn.inputs
    edges, shares = seen.density()
    counted, _ = np.histogram(X["x4"], edges)
    # 33 quantiles give the distribution to within a few of 200 rows.
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.cumsum(shares), np.cumsum(counted) / 200, atol=0.04)


def test_a_factor_is_drawn_at_its_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([0.0, 1.0, 4.0], 300, p=[0.5, 0.3, 0.2]), rng.random(300)])
    model = HARFERegressor(200, 15, random_state=0).fit(X, X[:, 0] * X[:, 1])
    drawn = display.ComponentDisplay.from_estimator(model, 0).plot()
    assert drawn.table()["x0"].tolist() == [0.0, 1.0, 4.0]
    assert drawn.line_.get_marker() == "o"
    (seen,) = drawn.inputs
    expected = [np.mean(X[:, 0] == value) for value in (0.0, 1.0, 4.0)]
    np.testing.assert_allclose(seen.shares, expected, rtol=1e-12)
    assert drawn.ax_.get_xticks().tolist() == [0.0, 1.0, 4.0]
    both = display.ComponentDisplay.from_estimator(model, (0, 1)).plot()
    assert both.mesh_.get_array().shape == (60, 3)
    # Between the values of a factor there is nothing to draw lines through.
    assert not [c for c in both.ax_.collections if hasattr(c, "levels")]


def test_tails_far_beyond_the_bulk_are_left_out():
    X = np.linspace(-1, 1, 500)[:, None]
    X[-1] = 1000.0
    model = HARFERegressor(100, 5, input_clip=None, random_state=0).fit(X, np.sin(X[:, 0]))
    (grid,) = display.ComponentDisplay.from_estimator(model, 0).grids
    inner_low, inner_high = model.inputs_.quantiles[[1, -2], 0]
    assert grid[0] == -1
    assert grid[-1] == pytest.approx(inner_high + (inner_high - inner_low) / 2)
    clipped = HARFERegressor(100, 5, random_state=0).fit(X, np.sin(X[:, 0]))
    assert np.isfinite(clipped.expansion_.map.upper[0])
    (seen,) = display.ComponentDisplay.from_estimator(clipped, 0).inputs
    assert seen.quantiles[-1] == clipped.expansion_.map.upper[0]


def test_a_spike_of_equal_values_stays_in_its_bin(model):
    X = np.zeros((320, 10))
    X[:160, 0] = np.linspace(0.5, 1.0, 160)
    kept = InputSummary.of(model.expansion_, X)
    _, shares = SeenInput.of(model.expansion_, kept, 0).density()
    assert shares[0] == pytest.approx(0.5, abs=1 / 32)
    assert shares.sum() == pytest.approx(1)


def test_the_grid_shows_the_leading_components_to_one_scale(model):
    table = model.explain().components
    drawn = display.ComponentsDisplay.from_estimator(model, most=6)
    own = drawn.table()
    assert own.columns["variables"] == table.columns["variables"][:6]
    np.testing.assert_array_equal(own["share"], table["share"][:6])
    np.testing.assert_array_equal(own["lowest"], [d.values.min() for d in drawn.displays])
    drawn.plot()
    share = percent(sum(own["share"]))
    assert drawn.figure_.get_suptitle().startswith(f"6 of {len(table)} components, {share}")
    curves = [d for d in drawn.displays if len(d.inputs) == 1]
    assert len({d.ax_.get_ylim() for d in curves}) == 1
    drawn.plot(same_scale=False)
    assert len({d.ax_.get_ylim() for d in curves}) == len(curves)
    chosen = display.ComponentsDisplay.from_estimator(model, ["x1 : x2", 3])
    assert [d.variables for d in chosen.displays] == [("x1", "x2"), ("x4",)]
    with pytest.raises(ValueError, match=r"n_columns=0 must be a whole number"):
        chosen.plot(n_columns=0)


def test_the_grid_leaves_out_what_is_nothing_or_cannot_be_drawn(third_order):
    table = third_order.explain().components
    drawn = display.ComponentsDisplay.from_estimator(third_order, most=100)
    wanted = [
        row["variables"] for row in table.rows() if row["order"] <= 2 and row["share"] >= 0.0005
    ]
    assert [d.variables for d in drawn.displays] == wanted
    assert len(wanted) < len(table)


def test_a_column_called_effect_does_not_hide_the_effect(data):
    X, y = data
    model = HARFERegressor(100, 10, random_state=0).fit(
        X.iloc[:, :2].set_axis(["effect", "b"], axis=1), y
    )
    table = display.ComponentDisplay.from_estimator(model, "effect").table()
    assert list(table.columns) == ["effect", "effect_"]


# --- parity ------------------------------------------------------------------------------------


def test_parity_has_the_errors_in_its_corner(model, data):
    X, y = data
    drawn = display.ParityDisplay.from_estimator(model, X, y).plot()
    predicted = model.predict(X)
    assert drawn.mse == mean_squared_error(y, predicted)
    assert drawn.r2 == pytest.approx(model.score(X, y), rel=1e-12)
    np.testing.assert_array_equal(drawn.points_.get_offsets(), np.column_stack([y, predicted]))
    np.testing.assert_array_equal(drawn.table()["residual"], y - predicted)
    (corner,) = texts(drawn.ax_)
    assert corner == f"MSE {drawn.mse:.3g}\nR² {drawn.r2:.3f}\n200 rows"
    assert drawn.ax_.get_xlim() == drawn.ax_.get_ylim()


def test_parity_by_hand():
    drawn = display.ParityDisplay.from_predictions([0.0, 2.0], [0.0, 1.0])
    assert (drawn.mse, drawn.r2) == (0.5, 0.5)
    near = display.ParityDisplay.from_predictions([0.0, 2.0], [0.0, 2.0 + 1e-6]).plot()
    assert "R² 1 - 5.0e-13" in texts(near.ax_)[0]
    constant = display.ParityDisplay.from_predictions([1.0, 1.0], [1.0, 1.0]).plot()
    assert np.isnan(constant.r2)
    assert texts(constant.ax_) == ["MSE 0\n2 rows"]
    many = np.arange(6000.0)
    assert display.ParityDisplay.from_predictions(many, many).plot().points_.get_rasterized()


def test_parity_of_one_of_several_targets(two_targets, data):
    X, y = data
    both = np.column_stack([y, 100 * X["x6"]])
    drawn = display.ParityDisplay.from_estimator(two_targets, X, both, target=1).plot()
    np.testing.assert_array_equal(drawn.truth, both[:, 1])
    np.testing.assert_array_equal(drawn.prediction, two_targets.predict(X)[:, 1])
    assert drawn.ax_.get_xlabel() == "truth (target 1)"
    with pytest.raises(ValueError, match="target=2 must be a whole number from 0 to 1"):
        display.ParityDisplay.from_estimator(two_targets, X, both, target=2)
    with pytest.raises(ValueError, match=r"y has shape \(200,\) and prediction \(200, 2\); pass"):
        display.ParityDisplay.from_estimator(two_targets, X, y)
    with pytest.raises(ValueError, match=r"pass \(rows,\) or \(rows, targets\)"):
        display.ParityDisplay.from_predictions([], [])


def test_figures_of_a_model_with_a_link_say_on_which_scale_they_are(data):
    X, y = data
    model = HARFERegressor(200, 10, random_state=0, link="log").fit(X, np.exp(y / 5))
    curve = display.ComponentDisplay.from_estimator(model, "x1").plot()
    assert curve.ax_.get_ylabel() == "effect on log(y)"
    fall = display.WaterfallDisplay.from_estimator(model, X, 5).plot()
    assert fall.ax_.get_xlabel() == "prediction of log(y)"
    assert fall.prediction == model.expansion_.linear(X.to_numpy())[5, 0]
    parity = display.ParityDisplay.from_estimator(model, X, np.exp(y / 5)).plot()
    np.testing.assert_array_equal(parity.prediction, model.predict(X))


# --- complex targets and several targets ---------------------------------------------------------


def test_a_part_of_complex_values_is_drawn(complex_model, data):
    X, y = data
    truth = y + 1j * X["x1"].to_numpy()
    drawn = display.ParityDisplay.from_estimator(complex_model, X, truth, part="imag").plot()
    np.testing.assert_array_equal(drawn.prediction, complex_model.predict(X).imag)
    assert drawn.ax_.get_xlabel() == "truth (imaginary part)"
    curve = display.ComponentDisplay.from_estimator(complex_model, "x1", part="imag").plot()
    np.testing.assert_array_equal(curve.line_.get_ydata(), curve.values.imag)
    assert curve.ax_.get_ylabel() == "effect, imaginary part"
    fall = display.WaterfallDisplay.from_estimator(complex_model, X, 5, part="imag").plot()
    assert fall.prediction == complex_model.predict(X)[5].imag
    assert fall.start + fall.contributions.sum() == pytest.approx(fall.prediction, rel=1e-9)
    with pytest.raises(ValueError, match="part='phase' is not known; choose one of real, imag"):
        display.ComponentDisplay.from_estimator(complex_model, "x1", part="phase")


def test_real_values_have_no_imaginary_part(model, data):
    with pytest.raises(ValueError, match=r"part='imag' is for complex targets, .* part='real'"):
        display.ComponentDisplay.from_estimator(model, "x1", part="imag")


def test_each_target_has_its_own_figures(two_targets):
    explanation = two_targets.explain(target=1)
    drawn = display.TermImportanceDisplay.from_estimator(two_targets, target=1)
    np.testing.assert_array_equal(drawn.share, explanation.components["share"])
    assert drawn.variables[0] == ("x6",)
    curve = display.ComponentDisplay.from_estimator(two_targets, "x6", target=1)
    # 100 x6 is a straight line of this slope.
    assert np.ptp(curve.values) == pytest.approx(100, rel=0.1)
    with pytest.raises(ValueError, match="target=2 must be a whole number from 0 to 1"):
        display.ComponentDisplay.from_estimator(two_targets, "x6", target=2)


# --- how the model was found ---------------------------------------------------------------------


def test_convergence_has_the_history(model):
    drawn = display.ConvergenceDisplay.from_estimator(model).plot()
    objective = model.history_["objective"]
    rounds = np.arange(1, len(objective) + 1)
    np.testing.assert_array_equal(drawn.table()["objective"], objective)
    np.testing.assert_array_equal(
        drawn.lines_[0].get_xydata(), np.column_stack([rounds, objective])
    )
    np.testing.assert_array_equal(drawn.lines_[1].get_ydata(), model.history_["relative_residual"])
    assert objective[drawn.best_round - 1] == objective.min()
    assert drawn.axes_[0].get_legend().get_texts()[0].get_text() == (
        f"returned: round {drawn.best_round}"
    )
    assert " ".join(texts(drawn.axes_[0])[0].split()) == model.stop_reason_.value


def test_convergence_over_decades_is_logarithmic_and_zero_is_not():
    steep = display.ConvergenceDisplay([1.0, 1e-3, 1e-6], [1.0, 0.5, 0.4]).plot()
    assert [panel.get_yscale() for panel in steep.axes_] == ["log", "linear"]
    exact = display.ConvergenceDisplay([1.0, 0.0], [1.0, 0.0]).plot()
    assert exact.axes_[0].get_yscale() == "linear"
    assert exact.best_round == 2


@pytest.mark.slow
def test_a_matched_model_has_no_rounds(selected):
    assert selected.fit_ != "data"
    with pytest.raises(ValueError, match=r"no rounds to draw.*SparsityPathDisplay"):
        display.ConvergenceDisplay.from_estimator(selected)


def test_the_path_of_a_learned_law_has_the_errors_of_the_folds(selected):
    drawn = display.SparsityPathDisplay.from_estimator(selected).plot()
    path = selected.mse_path_
    assert set(drawn.lines_) <= set(selected.pools_)
    for row in drawn.table().rows():
        p = selected.pools_.index(row["pool"])
        i = selected.sizes_.tolist().index(row["n_features"])
        folds = path[p, i]
        cells = [cell for cell in folds if np.isfinite(cell).any()]
        best = min(cells, key=np.nanmean)
        assert row["mse"] == pytest.approx(np.nanmean(best), rel=1e-12)
        known = best[np.isfinite(best)]
        # Kinds that are behind after a fold are given up, and sizes far from the best there.
        assert row["n_folds"] == len(known)
        assert len(known) == 3 if row["chosen"] else len(known) in (1, 3)
        expected = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
        assert row["standard_error"] == pytest.approx(expected, rel=1e-9, nan_ok=True)
    (chosen,) = (row for row in drawn.table().rows() if row["chosen"])
    assert chosen["pool"] == selected.fit_
    assert chosen["mse"] == pytest.approx(-selected.best_score_, rel=1e-9)
    line = drawn.lines_[selected.fit_]
    mean = drawn.paths.mean[selected.pools_.index(selected.fit_)]
    np.testing.assert_array_equal(line.get_ydata(), mean[np.isfinite(mean)])
    assert_drawn(drawn.figure_)


def test_the_path_of_a_grid_shows_the_chosen_pool_and_its_rivals(grid):
    drawn = display.SparsityPathDisplay.from_estimator(grid).plot(most=2)
    paths = drawn.paths
    winner, size = paths.chosen
    assert grid.pools_[winner] == (grid.order_, grid.scale_)
    assert grid.sizes_[size] == grid.n_nonzero_coefs_
    assert paths.mean[winner, size] == pytest.approx(-grid.best_score_, rel=1e-9)
    assert len(drawn.lines_) == 2
    assert next(iter(drawn.lines_)) == f"order {grid.order_}, scale {grid.scale_:.3g}"
    corners = drawn.band_.get_paths()[0].vertices
    mean, error = paths.mean[winner], paths.standard_error[winner]
    for x, low, high in zip(grid.sizes_, mean - error, mean + error, strict=True):
        heights = corners[corners[:, 0] == x, 1]
        assert (heights.min(), heights.max()) == (pytest.approx(low), pytest.approx(high))
    assert any("4 more pools" in text for text in texts(drawn.ax_))
    labels = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert f"chosen: {grid.n_nonzero_coefs_} features" in labels


def test_a_path_by_hand():
    errors = np.full((1, 2, 2), np.nan)
    errors[0, :, 0] = [3.0, 1.0]
    paths = ErrorPaths(np.array([2, 8]), ("only",), errors, (0, 1))
    drawn = display.SparsityPathDisplay(paths, 9).plot()
    assert paths.mean.tolist() == [[3.0, 1.0]]
    assert drawn.band_ is None
    labels = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert labels == ["only", "chosen: 8 features", "fitted: 9"]


def test_a_single_fit_has_no_path(model):
    with pytest.raises(TypeError, match=r"no held-out errors to draw; fit a HARFERegressorCV"):
        display.SparsityPathDisplay.from_estimator(model)


# --- waterfall -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["variables", "components", "terms"])
def test_the_waterfall_leads_from_the_mean_to_the_prediction(model, data, by):
    X, _ = data
    local = model.explain_local(X)
    drawn = display.WaterfallDisplay.from_estimator(model, X, 7, by=by).plot(most=4)
    added = getattr(local, by)[7]
    np.testing.assert_allclose(drawn.contributions, added, rtol=1e-9, atol=1e-12)
    table = drawn.table()
    assert dict(zip(table["name"], table["added"], strict=True)) == dict(
        zip(
            getattr(local, {"variables": "variable_names"}.get(by, f"{by[:-1]}_names")),
            drawn.contributions,
            strict=True,
        )
    )
    assert (np.diff(np.abs(table["added"])) <= 0).all()
    bars = list(drawn.bars_)
    assert len(bars) == 5
    assert bars[0].get_x() == pytest.approx(drawn.start)
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    starts = [bar.get_x() for bar in bars]
    np.testing.assert_allclose(starts[1:], ends[:-1], rtol=1e-9)
    assert ends[-1] == pytest.approx(local.prediction[7])
    largest = np.sort(np.abs(added))[::-1][:4]
    np.testing.assert_allclose([abs(bar.get_width()) for bar in bars[:4]], largest, rtol=1e-9)
    names = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert names[0] == ("intercept" if by == "terms" else "baseline")
    assert names[-2].endswith(" others")
    assert names[-1] == "prediction"
    if by == "variables":
        first = int(np.argmax(np.abs(added)))
        assert names[1] == f"x{first + 1} = {X.iloc[7, first]:.4g}"
    falls = [bar.get_hatch() == "////" for bar in bars]
    assert falls == [bar.get_width() < 0 for bar in bars]


def test_a_waterfall_by_hand():
    drawn = display.WaterfallDisplay(["a", "b", "c"], [1.0, -3.0, 0.0], 10.0, 8.0).plot()
    assert [(bar.get_x(), bar.get_width()) for bar in drawn.bars_] == [(10.0, -3.0), (7.0, 1.0)]
    assert texts(drawn.ax_) == ["−3", "+1", "10", "8"]
    assert drawn.table()["name"].tolist() == ["b", "a", "c"]


def test_rows_come_from_arrays_lists_and_frames(data):
    X, y = data
    polars = pytest.importorskip("polars")
    model = HARFERegressor(100, 5, random_state=0).fit(X.to_numpy(), y)
    show = display.WaterfallDisplay.from_estimator
    expected = show(model, X.to_numpy(), 2).contributions
    np.testing.assert_array_equal(show(model, X.to_numpy().tolist(), 2).contributions, expected)
    frame = polars.DataFrame({name: X[name].to_numpy() for name in X})
    named = HARFERegressor(100, 5, random_state=0).fit(frame, y)
    np.testing.assert_array_equal(show(named, frame, 2).contributions, expected)


def test_rows_outside_the_range_seen_are_flagged(model, data):
    X, _ = data
    far = X.copy()
    far.loc[0, "x4"] = 3.0
    drawn = display.WaterfallDisplay.from_estimator(model, far, 0).plot()
    assert drawn.outside == ("x4",)
    assert texts(drawn.ax_)[-1] == "Outside the range seen in training: x4."
    assert display.WaterfallDisplay.from_estimator(model, far, 1).outside == ()


def test_unknown_rows_and_views_are_refused(model, data):
    X, _ = data
    for row in (200, -1, 1.0):
        with pytest.raises(ValueError, match=r"must be a whole number from 0 to 199, a row of X"):
            display.WaterfallDisplay.from_estimator(model, X, row)
    with pytest.raises(ValueError, match="by='rows' is not known; choose one of variables"):
        display.WaterfallDisplay.from_estimator(model, X, by="rows")


def test_a_constant_prediction_has_no_steps(constant, data):
    drawn = display.WaterfallDisplay.from_estimator(constant, data[0]).plot()
    assert len(drawn.bars_) == 0
    assert drawn.start == pytest.approx(3.0, rel=1e-12)
    assert drawn.prediction == pytest.approx(3.0, rel=1e-12)


# --- Figures 4 and 5 of the paper ----------------------------------------------------------------


def test_the_five_true_variables_lead_the_histogram_of_g(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from experiments.paper.methods import Harfe

    as_real_data = Harfe("unit", N=10_000, s=200, q=2, lam=0.5, standardise=True)
    for seed in range(5):
        g = make_function("friedman_g", 200, random_state=seed)
        model = as_real_data.fit(g.X, g.y, seed, {}).model.regressor_["model"]
        drawn = display.VariableHistogramDisplay.from_estimator(model)
        assert min(drawn.share[:5]) > max(drawn.share[5:])
        # Each of these is kept more often than drawn, and no other.
        assert ((drawn.share > drawn.pool_share) == (np.arange(20) < 5)).all()


@pytest.mark.skipif(not os.environ.get("HARFE_DATA"), reason="HARFE_DATA is not set")
@pytest.mark.parametrize(
    ("name", "most", "least"),
    [("propulsion", {2}, {13, 14}), ("speech", {12, 13}, None), ("telemonitor", {2}, None)],
)
def test_the_histograms_of_real_data_agree_with_the_text_of_the_paper(
    monkeypatch, name, most, least
):
    monkeypatch.syspath_prepend(ROOT)
    from experiments.paper.methods import Harfe

    data = load_real(name)
    model = Harfe("unit").fit(data.X_train, data.y_train, 0, data.paper).model
    share = display.VariableHistogramDisplay.from_estimator(model).share
    order = np.argsort(-share).tolist()
    assert set(order[: len(most)]) == most
    assert least is None or set(order[-2:]) == least
