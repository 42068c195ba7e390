"""The figure of a part with `curves`: error against the number of training rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.config import MEASURES, Study
from experiments.results import csv_text
from experiments.summary import Point


def curve_numbers(points: Iterable[Point]) -> str:
    """The numbers of the figure as CSV."""
    head = ["table", "method", "rows", "error", "standard_deviation", "repetitions"]
    lines = (
        [p.table, p.method, p.rows, f"{p.error:.5g}", f"{p.spread:.3g}", p.repetitions]
        for p in points
    )
    return csv_text([head, *lines])


def draw_curves(study: Study, part: str, measure: str, points: Sequence[Point], path: Path) -> None:
    """A panel per table, a line per method, both axes logarithmic; bars are standard deviations."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    entry = study.parts[part]
    tables = list(dict.fromkeys(point.table for point in points))
    figure = Figure(figsize=(3.2 * len(tables), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, len(tables), squeeze=False)[0]
    plain = FuncFormatter(lambda value, position: f"{value:g}")
    for axes, table in zip(panels, tables, strict=True):
        for number, method in enumerate(entry.methods):
            own = [point for point in points if (point.table, point.method) == (table, method)]
            if not own:
                continue  # no entry in the legend either
            # A single repetition has no spread: nan, which draws no bar.
            axes.errorbar(
                [point.rows for point in own],
                [point.error for point in own],
                [point.spread for point in own],
                marker="osD^vP*X"[number % 8],
                color=f"C{number % 10}",
                label=study.methods[method].label,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(plain)
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("training rows")
        axes.set_title(table, fontsize="medium")
    panels[0].set_ylabel(MEASURES[measure])
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    # Without the version of matplotlib, equal numbers are more likely to give equal files.
    figure.savefig(path, dpi=120, metadata={"Software": None})
