"""Figures of a report page: each function turns part of the summary into drawing and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harfe.report.page.svg import LESS, MORE, Axis, Drawing, opacity
from harfe.report.page.tables import ROWS_TEXT, Table
from harfe.report.page.text import columns_alike, number, percent

# Table rows of a curve, and rows and columns of a map.
_CURVE_ROWS, _MAP_ROWS = 13, 7
_THIRD: dict[str, Any] = {"width": 370.0, "height": 270.0}
_SMALL: dict[str, Any] = {"width": 330.0, "height": 210.0, "n_ticks": 4}


@dataclass(frozen=True)
class Figure:
    """A drawing with a heading, a note, a legend of (class, name), and tables on demand."""

    ident: str
    title: str
    note: str
    drawing: Drawing
    tables_title: str
    tables: Sequence[Table]
    legend: Sequence[tuple[str, str]] = ()


def parity(summary: dict[str, Any]) -> Figure:
    """Plot observed against predicted values."""
    part, target = summary["scatter"], summary["target"]
    xs, ys = part["predicted"], part["observed"]
    both = Axis.around([*xs, *ys])
    drawing = Drawing(
        Axis(both.low, both.high, f"predicted {target}"),
        Axis(both.low, both.high, f"observed {target}"),
        f"Observed against predicted {target}, {ROWS_TEXT[part['rows']]}",
        {"kind": "points", "x": xs, "y": ys, "names": ["predicted", "observed"]},
        **_THIRD,
    )
    drawing.line([both.low, both.high], [both.low, both.high], "guide")
    drawing.dots(xs, ys, "c1")
    columns = {"predicted": "Mean predicted", "observed": "Mean observed"}
    return Figure(
        "parity", "Observed against predicted", _sample(part), drawing, *_groups(part, columns)
    )


def residuals(summary: dict[str, Any]) -> Figure:
    """Plot residuals against predicted values."""
    part, target = summary["scatter"], summary["target"]
    xs = part["predicted"]
    ys = [y - x for x, y in zip(xs, part["observed"], strict=True)]
    drawing = Drawing(
        Axis.around(xs, f"predicted {target}"),
        Axis.around([*ys, 0.0], "observed minus predicted"),
        f"Residuals against predicted {target}, {ROWS_TEXT[part['rows']]}",
        {"kind": "points", "x": xs, "y": ys, "names": ["predicted", "residual"]},
        **_THIRD,
    )
    drawing.horizontal(0.0)
    drawing.dots(xs, ys, "c1")
    note = f"There should be no pattern. {_sample(part)}"
    columns = {"residual": "Mean residual", "rmse": "RMSE"}
    return Figure("residuals", "Residuals", note, drawing, *_groups(part, columns))


def _sample(part: dict[str, Any]) -> str:
    shown, rows = len(part["predicted"]), ROWS_TEXT[part["rows"]]
    if shown == part["n_rows"]:
        return f"{shown} {rows}"
    return f"{shown} of {part['n_rows']} {rows}, sampled at random"


def _groups(part: dict[str, Any], columns: dict[str, str]) -> tuple[str, list[Table]]:
    """Tabulate rows grouped by prediction: these entries of the summary under these titles."""
    groups = part["groups"]
    texts = {key: columns_alike([g[key] for g in groups]) for key in ("from", "to", *columns)}
    texts["n_rows"] = [str(g["n_rows"]) for g in groups]
    keys = ("from", "to", "n_rows", *columns)
    rows = list(zip(*(texts[key] for key in keys), strict=True))
    head = ["Predicted from", "to", "Rows", *columns.values()]
    return "Table: rows grouped by prediction", [Table(head, rows, "Rows grouped by prediction")]


def distribution(summary: dict[str, Any]) -> Figure:
    """Plot the histogram of the residuals."""
    part = summary["distribution"]
    edges, counts, rows = part["edges"], part["counts"], ROWS_TEXT[part["rows"]]
    middle = [(a + b) / 2 for a, b in pairwise(edges)]
    drawing = Drawing(
        Axis.around(edges, "observed minus predicted"),
        Axis(0.0, 1.08 * max(counts), "rows"),
        f"Histogram of the residuals, {rows}",
        {"kind": "curve", "x": middle, "y": counts, "names": ["residual near", "rows"]},
        **_THIRD,
    )
    drawing.columns(edges, counts, "c1")
    drawing.vertical(0.0)
    sizes = [(percent(s["share"]), number(s["within"])) for s in part["sizes"]]
    bins = [
        (number(a), number(b), str(n)) for (a, b), n in zip(pairwise(edges), counts, strict=True)
    ]
    tables = [
        Table(["Share of rows", "Within ±"], sizes, "Size of the residuals"),
        Table(["From", "to", "Rows"], bins, "Histogram of the residuals"),
    ]
    within = {s["share"]: number(s["within"], 3) for s in part["sizes"]}
    note = (
        f"Of the {part['n_rows']} {rows}, 50\u00a0% are within ±\u00a0{within[0.5]} and "
        f"90\u00a0% within ±\u00a0{within[0.9]}."
    )
    title = "Distribution of the residuals"
    return Figure("distribution", title, note, drawing, "Table: size of the residuals", tables)


def convergence(summary: dict[str, Any]) -> Figure | None:
    """Plot the objective of every round; None if there was only one."""
    part = summary["convergence"]
    objective, residual, best = part["objective"], part["relative_residual"], part["best_round"]
    if len(objective) < 2:
        return None
    rounds = list(range(1, len(objective) + 1))
    drawing = Drawing(
        Axis.around([float(r) for r in rounds], "round"),
        Axis.around(objective, "objective", log=True),
        "Objective of every round of the pursuit",
        {"kind": "curve", "x": rounds, "y": objective, "names": ["round", "objective"]},
    )
    drawing.line(rounds, objective, "c1")
    drawing.dots(rounds, objective, "c1 big")
    drawing.dots([best], [objective[best - 1]], "c2 bigger")
    rows = [
        (str(r), number(o, 5), percent(v))
        for r, o, v in zip(rounds, objective, residual, strict=True)
    ]
    head = ["Round", "Objective", "Residual, share of the standard deviation"]
    note = f"Round {best} (orange) has the lowest objective and is kept. {part['advice']}"
    tables = [Table(head, rows, "Rounds of the pursuit")]
    return Figure("convergence", "Convergence", note, drawing, "Table: rounds", tables)


def path(summary: dict[str, Any]) -> Figure | None:
    """Plot the error against the number of features."""
    part = summary["path"]
    if part is None:
        return None
    # The chosen line gets the first colour.
    lines = sorted(part["lines"], key=lambda line: not line["chosen"])
    main, size = lines[0], part["chosen_size"]
    values = [v for line in lines for v in line["rmse"]]
    # Differences that are small compared with the spread over the folds must look small.
    for s, value, spread in zip(
        main["size"], main["rmse"], main["standard_error"] or [], strict=False
    ):
        if s == size:
            values += [max(value - spread, 0.5 * value), value + spread]
    unit = ", in standard deviations" if part["several_targets"] else ""
    if summary["scale"] != summary["target"]:
        unit = f", of {summary['scale']}"
    drawing = Drawing(
        Axis.around([s for line in lines for s in line["size"]], "features", log=True),
        Axis.around(values, f"RMSE, {part['rows']}{unit}", log=max(values) > 20 * min(values)),
        f"Error on {part['rows']} by number of features",
        {"kind": "curve", "x": main["size"], "y": main["rmse"], "names": ["features", "RMSE"]},
    )
    drawing.vertical(size)
    legend = []
    for k, line in enumerate(lines):
        kind, spread = f"c{k + 1}", line["standard_error"]
        if spread is not None and line["chosen"]:
            lower = [v - e for v, e in zip(line["rmse"], spread, strict=True)]
            upper = [v + e for v, e in zip(line["rmse"], spread, strict=True)]
            drawing.band(line["size"], lower, upper, kind)
        drawing.line(line["size"], line["rmse"], kind)
        drawing.dots(line["size"], line["rmse"], f"{kind} big")
        legend.append((kind, line["name"] + (" (this model)" if line["chosen"] else "")))
    errors = [dict(zip(line["size"], line["rmse"], strict=True)) for line in lines]
    rows = [
        (str(s), *(number(one.get(s)) for one in errors))
        for s in sorted({s for line in lines for s in line["size"]})
    ]
    band = " The band is one standard error." if part["n_folds"] > 1 else ""
    return Figure(
        "path",
        "Error by number of features",
        f"The vertical line marks the size of the model, {size}.{band}",
        drawing,
        "Table: error by number of features",
        [Table(["Features", *(line["name"] for line in lines)], rows, "RMSE")],
        legend if len(lines) > 1 else (),
    )


def curves(summary: dict[str, Any]) -> list[Figure]:
    """Plot what each input adds by itself."""
    found = summary["drawn"]["curves"]
    ends = [y for curve in found for side in (-1, 1) for y in _edge(curve, side)]
    heights = [y for curve in found for y in curve["y"]]
    reach = 1.5 * max(map(abs, heights), default=1.0)
    # The wide band of an uncertain curve must not flatten all the others.
    scale = Axis.around([*heights, 0.0, *(min(max(y, -reach), reach) for y in ends)])
    return [_curve(f"curve{k}", curve, scale) for k, curve in enumerate(found)]


def _curve(ident: str, curve: dict[str, Any], scale: Axis) -> Figure:
    name, xs, ys = curve["component"], curve["x"], curve["y"]
    drawing = Drawing(
        Axis.around(xs, pad=0.02),
        scale,
        f"What {name} adds by itself",
        {"kind": "curve", "x": xs, "y": ys, "names": [name, "adds"], "signed": True},
        **_SMALL,
    )
    drawing.horizontal(0.0)
    drawing.rug(curve["quantiles"])
    if curve["deviation"] is not None:
        drawing.band(xs, _edge(curve, -1), _edge(curve, 1), "c1")
    drawing.line(xs, ys, "c1")
    if curve["few_values"]:
        drawing.dots(xs, ys, "c1 big")
    every = max(1, (len(xs) - 1) // (_CURVE_ROWS - 1))
    head = [name, "Adds"]
    columns = [columns_alike(xs[::every]), columns_alike(ys[::every], sign=True)]
    if curve["deviation"] is not None:
        head.append("Standard deviation")
        columns.append(columns_alike(curve["deviation"][::every]))
    table = Table(head, list(zip(*columns, strict=True)), f"What {name} adds")
    note = f"{percent(curve['share'])} of the variance"
    return Figure(ident, name, note, drawing, "Table", [table])


def _edge(curve: dict[str, Any], side: int) -> list[float]:
    """Return a curve plus or minus two deviations, or the curve itself if they are unknown."""
    unsure = curve["deviation"] or [0.0] * len(curve["y"])
    return [y + 2 * side * e for y, e in zip(curve["y"], unsure, strict=True)]


def maps(summary: dict[str, Any]) -> list[Figure]:
    """Plot what pairs of inputs add beyond their curves."""
    limit = map_limit(summary)
    return [_map(f"map{k}", part, limit) for k, part in enumerate(summary["drawn"]["maps"])]


def map_limit(summary: dict[str, Any]) -> float:
    """Return the value of the strongest colour, from where rows are, not from empty corners."""
    return max((part["limit"] for part in summary["drawn"]["maps"]), default=1.0) or 1.0


def map_colours() -> list[str]:
    """Return the colours of maps from lowest to highest value, as stops of a gradient."""
    steps = [k / 8 for k in range(9)]
    stops = [(LESS, size, 50 - 50 * size) for size in reversed(steps)]
    stops += [(MORE, size, 50 + 50 * size) for size in steps]
    return [
        f"rgba({','.join(map(str, colour))},{opacity(size):.2f}) {place:.1f}%"
        for colour, size, place in stops
    ]


def _map(ident: str, part: dict[str, Any], limit: float) -> Figure:
    (first, second), xs, ys, values = part["variables"], part["x"], part["y"], part["values"]
    names = [first, second, "adds"]
    drawing = Drawing(
        Axis.around(xs, first, pad=0.0),
        Axis.around(ys, second, pad=0.0),
        f"What {first} and {second} add together, beyond their curves",
        {"kind": "map", "x": xs, "y": ys, "values": values, "names": names, "signed": True},
        **{**_SMALL, "height": 260.0},
    )
    drawing.picture(values, limit)
    drawing.dots(part["dots"][0], part["dots"][1], "tiny")
    every = max(1, (len(xs) - 1) // (_MAP_ROWS - 1))
    width = len(ys[::every])
    texts = columns_alike([v for line in values[::every] for v in line[::every]], sign=True)
    rows = [
        (x, *texts[k * width : (k + 1) * width]) for k, x in enumerate(columns_alike(xs[::every]))
    ]
    head = [f"{first} \\ {second}", *columns_alike(ys[::every])]
    table = Table(head, rows, f"What {first} (down) and {second} (across) add together")
    note = f"{percent(part['share'])} of the variance"
    return Figure(ident, part["component"], note, drawing, "Table", [table])
