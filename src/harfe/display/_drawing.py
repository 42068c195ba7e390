"""What all figures share: matplotlib itself, axes, colours, names that fit, notes, checks.

Figures must be readable in grey and by colour-blind people: colours are those of Okabe and Ito, and
whatever a colour shows is also shown by a marker, a line style, a hatch or a number. Settings go to
the artists, never to matplotlib's rcParams, which belong to the user.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import is_whole
from harfe.explain.overall import Explanation

BLUE, LIGHT_BLUE = "#0072B2", "#B9D8EA"
VERMILLION, GREEN, PURPLE = "#D55E00", "#009E73", "#CC79A7"
INK, GREY, MID_GREY, LIGHT_GREY = "#222222", "#767676", "#B5B5B5", "#DDDDDD"

# Colour, marker and line style of the first, second, ... series.
SERIES = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
)

# Longest name on an axis, in letters.
NAME_LENGTH = 32

# Shares below this are printed as 0.0 %.
NOTHING = 0.0005

# An axis of errors is logarithmic if the largest exceeds this multiple of the smallest.
_WIDE = 8.0

# Approximate letters per inch, on an axis and in small print.
_LETTERS_PER_INCH = 12
_SMALL_PER_INCH = 19


def pyplot() -> Any:
    """Import matplotlib, which only drawing needs."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'plot needs matplotlib: pip install "harfe[plot]"; table() works without it'
        ) from error
    return plt


def one_axes(ax: Any, width: float, height: float) -> Any:
    """Return the given axes, or those of a new figure of this size in inches."""
    plt = pyplot()
    check_axes(ax)
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def check_axes(ax: Any) -> None:
    """Reject what is neither axes nor None."""
    if ax is not None and not hasattr(ax, "get_subplotspec"):
        raise TypeError(
            f"ax={type(ax).__name__} is not a matplotlib axes; pass one, e.g. from "
            "figure, ax = plt.subplots(), or None"
        )


def inches(ax: Any) -> tuple[float, float]:
    """Width and height of axes, as far as they are known before the layout is done."""
    return float(ax.bbox.width / ax.figure.dpi), float(ax.bbox.height / ax.figure.dpi)


def letters_along(length: float) -> int:
    """Number of letters of the usual size that fit into this many inches."""
    return max(int(_LETTERS_PER_INCH * length), 10)


def room_for_names(ax: Any) -> int:
    """Number of letters for names beside the axes: fewer if the given axes are small."""
    if ax is None:
        return NAME_LENGTH
    return min(letters_along(0.45 * inches(ax)[0]), NAME_LENGTH)


def name_rows(ax: Any, names: Sequence[str]) -> None:
    """Write names beside rows 0, 1, ..., small enough not to overlap."""
    ax.set_yticks(range(len(names)), names)
    points = 72 * inches(ax)[1] / max(len(names), 1)
    ax.tick_params(axis="y", length=0)
    for label in ax.get_yticklabels():
        label.set_fontsize(min(label.get_fontsize(), max(0.85 * points, 3.0)))


def several_axes(ax: Any, n: int, n_columns: int, width: float, height: float) -> NDArray[Any]:
    """Return axes for n panels: the given ones, parts of a given one, or those of a new figure.

    Parameters
    ----------
    ax : None, axes or sequence of axes
        A single one is hidden and replaced by the panels.
    n, n_columns : int
    width, height : float
        Size of a panel in a new figure, in inches.
    """
    plt = pyplot()
    n_rows = -(-n // n_columns)
    if ax is None:
        size = (width * n_columns, height * n_rows)
        figure = plt.figure(figsize=size, layout="constrained")
        places = figure.add_gridspec(n_rows, n_columns)
    elif hasattr(ax, "get_subplotspec"):
        figure, place = ax.figure, ax.get_subplotspec()
        if place is None:
            raise ValueError(
                "ax has no place in a grid and cannot be divided; pass one from plt.subplots(), "
                f"or an array of {n} axes, one per panel"
            )
        ax.set_axis_off()
        places = place.subgridspec(n_rows, n_columns)
    else:
        given = np.asarray(ax, dtype=object).ravel()
        if len(given) < n:
            raise ValueError(f"ax holds {len(given)} axes, but there are {n} panels; pass {n}")
        for spare in given[n:]:
            spare.set_axis_off()
        return given[:n]
    panels = np.empty(n, dtype=object)
    for i in range(n):
        panels[i] = figure.add_subplot(places[i // n_columns, i % n_columns])
    return panels


def tidy(ax: Any) -> None:
    """Remove the unused parts of the frame, and make the tick labels small."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")


def set_title(ax: Any, title: str, above_legend: bool = False) -> None:
    """Write a title on the left, in the size of the text."""
    ax.set_title(title, loc="left", fontsize="medium", pad=22 if above_legend else 6)


def legend_above(ax: Any, handles: Sequence[Any]) -> None:
    """Write a legend in one line above the axes, where it hides nothing."""
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.3,
        borderpad=0.0,
        ncols=len(handles),
        fontsize="x-small",
        frameon=False,
        columnspacing=1.2,
        handlelength=1.6,
        handletextpad=0.5,
    )


def colour_bar(artist: Any, ax: Any, label: str, shrink: float = 1.0) -> None:
    """Add the colour scale of an artist beside its axes."""
    bar = ax.figure.colorbar(artist, ax=ax, shrink=shrink, pad=0.02)
    bar.set_label(label, fontsize="small")
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)


def draw_ring(ax: Any, x: float, y: float, label: str, size: float) -> None:
    """Mark the chosen point on a line."""
    ax.plot(
        x,
        y,
        marker="o",
        markersize=size,
        markerfacecolor="none",
        markeredgecolor=INK,
        linestyle="none",
        clip_on=False,
        label=label,
    )


def write_note(ax: Any, note: str) -> None:
    """Write small print below the label of the x axis."""
    if not note:
        return
    # The layout is not done yet, but long names beside the axes will leave less room.
    longest = max((len(label.get_text()) for label in ax.get_yticklabels()), default=0)
    width = inches(ax)[0] - max(0.08 * longest - 0.6, 0.0)
    ax.annotate(
        textwrap.fill(note, max(int(_SMALL_PER_INCH * width), 30)),
        xy=(0.0, 0.0),
        xycoords=("axes fraction", ax.xaxis.label),
        xytext=(0, -5),
        textcoords="offset points",
        va="top",
        fontsize="x-small",
        color=GREY,
        annotation_clip=False,
    )


def say_empty(ax: Any, text: str) -> None:
    """Write why there is nothing to draw, in the middle of the axes."""
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=GREY, wrap=True)


def shorten(names: Sequence[str], most: int = NAME_LENGTH) -> list[str]:
    """Shorten names for the axes: still distinct, with ``$`` escaped.

    Long names lose their middle, since what distinguishes them, and the unit, is often at the end.
    """
    plain = [" ".join(str(name).split()) for name in names]
    while True:
        short = [_without_middle(name, most) for name in plain]
        if len(set(short)) == len(set(plain)):
            return [name.replace("$", r"\$") for name in short]
        most += 4


def _without_middle(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail].rstrip()}…{name[-tail:].lstrip()}"


def joined(variables: Sequence[str], most: int = NAME_LENGTH) -> str:
    """Name of a set of inputs for a figure, each of them shortened."""
    if not variables:
        return "constant"
    return " : ".join(shorten(variables, max(most // len(variables), 10)))


def check_most(most: Any) -> int:
    """Reject what is not a positive whole number."""
    if not is_whole(most) or most < 1:
        raise ValueError(f"most={most!r} must be a whole number of at least 1, e.g. most=10")
    return int(most)


def check_fitted(model: Any) -> None:
    """Reject what is not a fitted estimator of this package."""
    if not hasattr(model, "expansion_"):
        raise TypeError(
            f"{type(model).__name__} is not a fitted harfe model; pass a fitted HARFERegressor or "
            "HARFERegressorCV (of a pipeline, pass its last step, pipeline[-1])"
        )


def nearest(name: Any, known: Sequence[str], n: int = 3) -> str:
    """Known names that resemble this one, for a message."""
    found = difflib.get_close_matches(str(name), known, n=n, cutoff=0.0)
    return ", ".join(map(repr, found))


def real_part(values: NDArray[Any], part: str) -> NDArray[np.float64]:
    """Values to draw: the requested part of complex ones."""
    if part not in ("real", "imag"):
        raise ValueError(f"part={part!r} is not known; choose one of real, imag")
    if not np.iscomplexobj(values):
        if part == "imag":
            raise ValueError(
                "part='imag' is for complex targets, and this one is real; pass part='real'"
            )
        return np.asarray(values, dtype=float)
    return np.asarray(getattr(values, part), dtype=float)


def part_of(what: str, values: Any, part: str) -> str:
    """Label of values, which may be a part of complex ones."""
    words = {"real": "real", "imag": "imaginary"}
    return f"{what}, {words[part]} part" if np.iscomplexobj(values) else what


def set_error_scale(ax: Any, values: NDArray[np.float64]) -> None:
    """Use a logarithmic axis if errors differ widely, otherwise one that starts at 0."""
    known = values[np.isfinite(values)]
    if len(known) and known.min() > 0 and known.max() > _WIDE * known.min():
        from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

        few = known.max() < 1e3 * known.min()
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.set_ylim(bottom=0)


def dependence_note(explanation: Explanation) -> str:
    """Short caveat if the inputs depend on each other."""
    if not explanation.dependence:
        return ""
    return (
        "Inputs depend on each other: results that assume independence may mislead, see "
        "explain().notes."
    )


def on_scale(quantity: str, link: str, joined_by: str = "on") -> str:
    """Label of a quantity that is on the scale of a link, if there is one."""
    return quantity if link == "none" else f"{quantity} {joined_by} {link}(y)"


def under(distribution: str) -> str:
    """Suffix of a label if the distribution of the inputs is not that of the rows."""
    return "" if distribution == "independent" else f", inputs {distribution}"
