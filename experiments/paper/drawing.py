"""The pictures of the figures, each drawn from its numbers into a file.

Only this module needs matplotlib. It computes nothing: everything shown is in the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.paper.figure_numbers import (
    FUNCTIONS,
    PRINTED_RATIO,
    PRINTED_STEP,
    TIMED,
    TRUE_INPUTS,
    Numbers,
)

_LINES = {"harfe": "-", "srfe": "--", "spgl1": ":"}
_MARKERS = "oD^svP*X<>pdh"
_GREY = {"color": "0.5", "linewidth": 0.9}


def draw_parity(numbers: Numbers, path: Path) -> None:
    """A panel for every function: predicted against true values, and the diagonal."""
    panels = numbers.groups("problem")
    figure, grid = _panels(len(panels), 3, 3.4, 3.5)
    for axes, (problem, own) in zip(grid, panels.items(), strict=True):
        axes.plot(own.column("truth"), own.column("predicted"), "o", markersize=2, alpha=0.6)
        axes.axline((0, 0), slope=1, **_GREY)
        axes.set_aspect("equal", "datalim")
        error = own.column("relative_error")[0]
        axes.set_title(
            f"{FUNCTIONS.get(problem, problem)}: relative RMS error {error:.3f}", fontsize="medium"
        )
        axes.set_xlabel("true value, without noise")
    grid[0].set_ylabel("predicted value")
    _save(figure, path)


def draw_run_times(numbers: Numbers, path: Path) -> None:
    """Seconds against N: on the left d = 100 and a colour for every m, on the right m = 500."""
    figure, grid = _time_panels(numbers, "seconds")
    grid[0].set_ylabel("seconds of one processor (median)")
    _save(figure, path)


def draw_ratios(numbers: Numbers, path: Path) -> None:
    """Seconds / seconds of HARFE against N, with the same panels and colours."""
    printed = ("0.3", "-.", f"{PRINTED_RATIO:g}, as the paper says")
    figure, grid = _time_panels(numbers, "ratio", printed)
    for axes in grid:
        axes.axhline(PRINTED_RATIO, color=printed[0], linestyle=printed[1], linewidth=1)
    grid[0].set_ylabel("seconds / seconds of HARFE")
    _save(figure, path)


def draw_inputs_of_g(numbers: Numbers, path: Path) -> None:
    """A panel for every method: bars of the share of each input, those that matter in colour."""
    panels = numbers.groups("method")
    figure, grid = _panels(len(panels), 3, 3.3, 2.2, sharey=True)
    for place, (axes, (label, own)) in enumerate(zip(grid, panels.items(), strict=True)):
        inputs = own.column("input")
        colors = ["C1" if number <= TRUE_INPUTS else "C0" for number in inputs]
        _bars(axes, own, colors)
        leads, draws = own.column("leads")[0], own.column("draws")[0]
        axes.set_title(f"{label}\nthe five lead in {leads} of {draws} draws", fontsize="small")
        axes.set_xticks([1, 5, 10, 15, 20])
        if place % 3 == 0:
            axes.set_ylabel("kept features, %")
        if place + 3 >= len(panels):
            axes.set_xlabel("input")
    entries = [("C1", "bar", "inputs 1 to 5, which matter"), ("C0", "bar", "inputs that do not")]
    _legend(figure, [*entries, ("black", "-", "share in the pool as drawn")])
    _save(figure, path)


def draw_inputs_of_real_data(numbers: Numbers, path: Path) -> None:
    """A panel for every dataset: bars of the share of each input, with 10-90 % over the draws."""
    panels = numbers.groups("problem")
    figure, grid = _panels(len(panels), 2, 4.6, 2.6)
    for place, (axes, (problem, own)) in enumerate(zip(grid, panels.items(), strict=True)):
        inputs = own.column("input")
        _bars(axes, own, ["C0"] * len(inputs))
        axes.vlines(inputs, own.column("p10"), own.column("p90"), color="C1", linewidth=2)
        axes.set_title(problem, fontsize="medium")
        axes.set_xticks(inputs)
        axes.tick_params(axis="x", labelsize="x-small")
        if place % 2 == 0:
            axes.set_ylabel("kept features, %")
        if place + 2 >= len(panels):
            axes.set_xlabel("input")
    entries = [("C0", "bar", "mean over the draws"), ("C1", "|", "10-90 % over the draws")]
    _legend(figure, [*entries, ("black", "-", "share in the pool as drawn")])
    _save(figure, path)


def draw_steps(numbers: Numbers, path: Path) -> None:
    """Relative median error against μ, a line for every problem."""
    figure, grid = _panels(1, 1, 6.4, 4.0)
    axes = grid[0]
    axes.axhline(1, **_GREY, zorder=0)
    for place, ((part, problem), own) in enumerate(_by(numbers, "part", "problem").items()):
        style = {"marker": _MARKERS[place % len(_MARKERS)], "color": f"C{place % 10}"}
        line = "--" if part == "friedman" else "-"
        x, y = own.column("mu"), own.column("relative")
        axes.plot(x, y, linestyle=line, label=problem, markersize=5, **style)
    axes.set_xlabel("step size μ")
    axes.set_ylabel(f"median error / median error at μ = {PRINTED_STEP:g}")
    _log_x(axes, sorted(set(numbers.column("mu"))))
    _log_y(axes, numbers.column("relative"))
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    _save(figure, path)


def draw_spoilt(numbers: Numbers, path: Path) -> None:
    """A panel for every function: median error for each corruption of the training rows."""
    panels = numbers.groups("problem")
    places = {part: place for place, part in enumerate(numbers.groups("part"))}
    methods = {method: place for place, method in enumerate(numbers.groups("method"))}
    labels = [
        _spoiling(own.column("kind")[0], own.column("amount")[0])
        for own in numbers.groups("part").values()
    ]
    figure, grid = _panels(len(panels), 3, 3.6, 4.0)
    for axes, (problem, own) in zip(grid, panels.items(), strict=True):
        for method, line in own.groups("method").items():
            number = methods[method]
            style = {"marker": _MARKERS[number % len(_MARKERS)], "color": f"C{number % 10}"}
            # Noise and outliers are different scales: no line connects them.
            for kinds in (("as is", "noise"), ("outliers",)):
                shown = line.among("kind", kinds)
                x = [places[part] for part in shown.column("part")]
                axes.plot(x, shown.column("median"), linewidth=1, markersize=5, **style)
        axes.set_xticks(range(len(labels)), labels, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.5, len(labels) - 0.5)
        axes.set_title(FUNCTIONS.get(problem, problem), fontsize="medium")
        _log_y(axes, own.column("median"))
    grid[0].set_ylabel("median test MSE against f")
    _legend(
        figure,
        [(f"C{n % 10}", _MARKERS[n % len(_MARKERS)], method) for method, n in methods.items()],
    )
    _save(figure, path)


def draw_tickets(numbers: Numbers, path: Path) -> None:
    """A panel for every function: error of kept, all and random features against N/m."""
    panels = numbers.groups("problem")
    colors = {"kept": "C0", "all": "C1", "random": "0.5"}
    figure, grid = _panels(len(panels), 3, 3.6, 3.5)
    for axes, (problem, own) in zip(grid, panels.items(), strict=True):
        for method, line in own.groups("method").items():
            median, low, high = (line.column(name) for name in ("median", "p10", "p90"))
            if method == "random":
                axes.axhspan(low[0], high[0], color="0.5", alpha=0.15, linewidth=0)
                axes.axhline(median[0], color="0.5", linestyle="--")
            else:
                x, color = line.column("N_per_m"), colors.get(method, "C2")
                axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
                axes.plot(x, median, color=color, marker="o", markersize=4)
        axes.set_title(FUNCTIONS.get(problem, problem), fontsize="medium")
        axes.set_xlabel("N/m, features drawn / training rows")
        _log_x(axes, [0.5, 1, 2, 5, 10, 20, 50])
        _log_y(axes, own.column("p10") + own.column("p90"))
    grid[0].set_ylabel("test MSE against f (median, 10-90 %)")
    entries = []
    for method, own in numbers.groups("method").items():
        if method == "random":
            entries.append((colors[method], "--", f"{own.column('N')[0]} drawn at random"))
        else:
            text = {"kept": "kept of N by HARFE", "all": "all N"}.get(method, method)
            entries.append((colors.get(method, "C2"), "-", text))
    _legend(figure, entries)
    _save(figure, path)


# --- panels, axes, legends ---


def _by(numbers: Numbers, first: str, second: str) -> dict[tuple[Any, Any], Numbers]:
    return {
        (outer, inner): own
        for outer, some in numbers.groups(first).items()
        for inner, own in some.groups(second).items()
    }


def _spoiling(kind: str, amount: float) -> str:
    if kind == "noise":
        return f"noise +{amount:g}"
    return f"outliers {100 * amount:g} %" if kind == "outliers" else kind


def _panels(count: int, across: int, width: float, height: float, **options: Any) -> Any:
    """A figure and the list of its panels, `across` in a row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(across, count)
    lines = math.ceil(count / across)
    figure = Figure(figsize=(width * across, height * lines), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(lines, across, squeeze=False, **options).ravel()
    for axes in grid[count:]:
        axes.remove()
    return figure, list(grid[:count])


def _time_panels(numbers: Numbers, column: str, *more: tuple[str, str, str]) -> Any:
    """Panels against N as in the paper: d fixed on the left, m on the right."""
    figure, grid = _panels(2, 2, 4.3, 4.0, sharey=True)
    sizes = {part: _sizes(part) for part in numbers.groups("part")}
    # The curves of d = 100 and m = 500 are in both panels, in the same colour.
    colors = ({250: "C0", 500: "C1", 1000: "C2"}, {50: "C3", 100: "C1", 200: "C4"})
    panels = (("d = 100", "m", 0, 100), ("m = 500", "d", 1, 500))
    for axes, known, (title, symbol, fixed, value) in zip(grid, colors, panels, strict=True):
        seen = {}
        for (part, method), own in _by(numbers, "part", "method").items():
            varied = sizes[part][1 - fixed]
            if sizes[part][fixed] == value:
                seen[varied] = known.get(varied, "black")
                style = {"color": seen[varied], "linestyle": _LINES[method]}
                axes.plot(own.column("N"), own.column(column), marker="o", markersize=4, **style)
        entries = [(seen[size], "-", f"{symbol} = {size}") for size in sorted(seen)]
        # Above the panel, where there are no curves.
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "ncols": 3, "frameon": False}
        axes.legend(handles=_handles(entries), title=title, fontsize="small", **place)
        axes.set_xlabel("number of features N")
        _log_x(axes, sorted(set(numbers.column("N"))))
    _log_y(grid[0], numbers.column(column))
    used = numbers.column("method")
    styles = [("black", _LINES[m], text) for m, text in TIMED.items() if m in used]
    _legend(figure, [*styles, *more])
    return figure, grid


def _sizes(part: str) -> tuple[int, int]:
    """Both d and m from a name like d100_m250."""
    d, m = re.findall(r"\d+", part)
    return int(d), int(m)


def _bars(axes: Any, numbers: Numbers, colors: list[str]) -> None:
    inputs, drawn = numbers.column("input"), numbers.column("drawn")
    axes.bar(inputs, numbers.column("kept"), color=colors)
    starts, ends = [number - 0.5 for number in inputs], [number + 0.5 for number in inputs]
    axes.hlines(drawn, starts, ends, color="black", linewidth=0.9)
    axes.set_xlim(starts[0] - 0.2, ends[-1] + 0.2)


def _log_x(axes: Any, ticks: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers at these ticks."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")


def _log_y(axes: Any, values: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers, as many as suit the range of the values."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

    axes.set_yscale("log")
    span = max(values) / min(values)
    if span < 5:
        axes.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        axes.yaxis.set_minor_locator(NullLocator())
    elif span < 300:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _handles(entries: Sequence[tuple[str, str, str]]) -> list[Any]:
    """Legend handles from (colour, line style or marker or "bar", text)."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    sign: Any
    for color, sign, text in entries:
        if sign == "bar":
            handles.append(Patch(color=color, label=text))
        elif sign == "|":
            style = {"marker": sign, "markersize": 10, "markeredgewidth": 2, "linestyle": "none"}
            handles.append(Line2D([], [], color=color, label=text, **style))
        elif sign in _MARKERS:
            handles.append(Line2D([], [], color=color, marker=sign, label=text))
        else:
            handles.append(Line2D([], [], color=color, linestyle=sign, label=text))
    return handles


def _legend(figure: Any, entries: Sequence[tuple[str, str, str]]) -> None:
    """One legend below all panels."""
    place = {"loc": "outside lower center", "ncols": len(entries), "frameon": False}
    figure.legend(handles=_handles(entries), fontsize="small", **place)


def _save(figure: Any, path: Path) -> None:
    # Without the version of matplotlib, equal numbers are more likely to give equal files.
    figure.savefig(path, dpi=120, format="png", metadata={"Software": None})
