"""Figures of a report page: each takes a part of the summary, draws it and gives its table."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from harfe.report.page.svg import LESS, MORE, Axis, Drawing, opacity
from harfe.report.page.text import breakable, columns_alike, details, escape, number, percent, table

ROWS_TEXT = {
    "held-out": "held-out rows",
    "given": "rows given",
    "out-of-fold": "out-of-fold residuals",
    "training": "rows of the fit",
}

# Points of a curve, and of a side of a map, in its table.
_CURVE_ROWS, _MAP_ROWS = 13, 7
_THIRD: dict[str, Any] = {"width": 370.0, "height": 270.0}
_SMALL: dict[str, Any] = {"width": 330.0, "height": 210.0, "n_ticks": 4}


@dataclass
class Figures:
    """Figures as markup; `readings` tells the page where their values lie."""

    summary: dict[str, Any]
    readings: dict[str, Any] = field(default_factory=dict)

    def figure(self, ident: str, title: str, note: str, drawing: Drawing, below: str = "") -> str:
        """A drawing with a heading, a note, a line for values, and its table."""
        reading = drawing.reading()
        out = ""
        if reading is not None:
            self.readings[ident] = reading
            out = f'<output class="readout" id="read-{ident}"></output>'
        return (
            f'<figure class="figure"><figcaption><strong>{breakable(title)}</strong> '
            f'<span class="note">{note}</span></figcaption>'
            f'<div class="plot" data-figure="{ident}">{drawing.svg()}</div>{out}{below}</figure>'
        )

    def parity(self) -> str:
        """Observed against predicted values."""
        part, target = self.summary["scatter"], self.summary["target"]
        xs, ys = part["predicted"], part["observed"]
        both = Axis.around([*xs, *ys])
        drawing = Drawing(
            Axis(both.low, both.high, f"predicted {target}"),
            Axis(both.low, both.high, f"observed {target}"),
            f"Observed against predicted {target}, {ROWS_TEXT[part['rows']]}",
            hover={"kind": "points", "x": xs, "y": ys, "names": ["predicted", "observed"]},
            **_THIRD,
        )
        drawing.line([both.low, both.high], [both.low, both.high], "guide")
        drawing.dots(xs, ys, "c1")
        below = self._groups({"predicted": "Mean predicted", "observed": "Mean observed"})
        return self.figure(
            "parity", "Observed against predicted", self._sample(part), drawing, below
        )

    def residuals(self) -> str:
        """What is left, against the prediction."""
        part, target = self.summary["scatter"], self.summary["target"]
        xs = part["predicted"]
        ys = [y - x for x, y in zip(xs, part["observed"], strict=True)]
        drawing = Drawing(
            Axis.around(xs, f"predicted {target}"),
            Axis.around([*ys, 0.0], "observed minus predicted"),
            f"Residuals against predicted {target}, {ROWS_TEXT[part['rows']]}",
            hover={"kind": "points", "x": xs, "y": ys, "names": ["predicted", "residual"]},
            **_THIRD,
        )
        drawing.level(0.0)
        drawing.dots(xs, ys, "c1")
        note = "No pattern should be left here. " + self._sample(part)
        below = self._groups({"residual": "Mean residual", "rmse": "RMSE"})
        return self.figure("residuals", "Residuals", note, drawing, below)

    def _sample(self, part: dict[str, Any]) -> str:
        shown, rows = len(part["predicted"]), ROWS_TEXT[part["rows"]]
        if shown == part["n_rows"]:
            return f"{shown} {rows}"
        return f"{shown} of {part['n_rows']} {rows}, drawn at random"

    def _groups(self, columns: dict[str, str]) -> str:
        """Rows in groups of similar prediction: these keys of the summary under these titles."""
        groups = self.summary["scatter"]["groups"]
        parts = [
            [str(g["n_rows"]) for g in groups]
            if key == "n_rows"
            else columns_alike([g[key] for g in groups])
            for key in ("from", "to", "n_rows", *columns)
        ]
        rows = list(zip(*parts, strict=True))
        head = ["Predicted from", "to", "Rows", *columns.values()]
        caption = "Rows in groups of similar prediction"
        return details("Table: groups of similar prediction", table(head, rows, caption=caption))

    def distribution(self) -> str:
        """Histogram of the residuals."""
        part = self.summary["distribution"]
        edges, counts = part["edges"], part["counts"]
        middle = [(a + b) / 2 for a, b in pairwise(edges)]
        drawing = Drawing(
            Axis.around(edges, "observed minus predicted"),
            Axis(0.0, 1.08 * max(counts), "rows"),
            f"Histogram of the residuals, {ROWS_TEXT[part['rows']]}",
            hover={"kind": "curve", "x": middle, "y": counts, "names": ["residual near", "rows"]},
            **_THIRD,
        )
        drawing.columns(edges, counts, "c1")
        drawing.upright(0.0)
        sizes = [[percent(s["share"]), number(s["within"])] for s in part["sizes"]]
        within = table(
            ["Share of rows", "Residual at most (±)"], sizes, caption="Sizes of the residuals"
        )
        bins = table(
            ["From", "to", "Rows"],
            [[number(a), number(b), n] for a, b, n in zip(edges, edges[1:], counts, strict=False)],
            caption="Histogram of the residuals",
        )
        typical = part["sizes"][0]["within"]
        large = next(s["within"] for s in part["sizes"] if s["share"] == 0.9)
        note = (
            f"Half of the {part['n_rows']} {ROWS_TEXT[part['rows']]} are within "
            f"±\u00a0{number(typical, 3)}, nine of ten within ±\u00a0{number(large, 3)}."
        )
        below = details("Table: sizes of the residuals", within + bins)
        return self.figure("distribution", "Distribution of the residuals", note, drawing, below)

    def convergence(self) -> str:
        """Residual of every round, or a sentence where there was but one."""
        part = self.summary["convergence"]
        objective, residual = part["objective"], part["relative_residual"]
        if len(objective) < 2:
            return (
                f"<p>{escape(part['advice'])} The residual on the rows of the fit is "
                f"{percent(residual[0])} of the deviation of the target.</p>"
            )
        rounds = list(range(1, len(objective) + 1))
        drawing = Drawing(
            Axis.around([float(r) for r in rounds], "round"),
            Axis.around(objective, "objective", log=True),
            "Objective of every round of the pursuit",
            hover={"kind": "curve", "x": rounds, "y": objective, "names": ["round", "objective"]},
        )
        drawing.line(rounds, objective, "c1")
        drawing.dots(rounds, objective, "c1 big")
        best = part["best_round"]
        drawing.dots([best], [objective[best - 1]], "c2 bigger")
        rows = [
            [str(r), number(o, 5), percent(v)]
            for r, o, v in zip(rounds, objective, residual, strict=True)
        ]
        head = ["Round", "Objective", "Residual, share of the deviation"]
        below = details("Table: rounds", table(head, rows, caption="Rounds of the pursuit"))
        note = f"Round {best} (orange) has the lowest objective and is kept. {part['advice']}"
        return self.figure("convergence", "Convergence", escape(note), drawing, below)

    def path(self) -> str:
        """Error against the number of features."""
        part = self.summary["path"]
        if part is None:
            return ""
        # The first colour is the one that the eye goes to.
        lines = sorted(part["lines"], key=lambda line: not line["chosen"])
        values = [v for line in lines for v in line["rmse"]]
        # Differences that are small against the spread over the folds must look small.
        for size, value, spread in zip(
            lines[0]["size"], lines[0]["rmse"], lines[0]["standard_error"] or [], strict=False
        ):
            if size == part["chosen_size"]:
                values += [max(value - spread, 0.5 * value), value + spread]
        unit = ", in deviations" if part["several_targets"] else ""
        drawing = Drawing(
            Axis.around([s for line in lines for s in line["size"]], "features", log=True),
            Axis.around(values, f"RMSE, {part['rows']}{unit}", log=max(values) > 20 * min(values)),
            f"Error on {part['rows']} against the number of features",
        )
        drawing.upright(part["chosen_size"])
        legend = []
        for k, line in enumerate(lines):
            kind = f"c{k + 1}"
            spread = line["standard_error"]
            if spread is not None and line["chosen"]:
                lower = [v - e for v, e in zip(line["rmse"], spread, strict=True)]
                upper = [v + e for v, e in zip(line["rmse"], spread, strict=True)]
                drawing.band(line["size"], lower, upper, kind)
            drawing.line(line["size"], line["rmse"], kind)
            drawing.dots(line["size"], line["rmse"], f"{kind} big")
            legend.append(
                f'<li><svg class="swatch" viewBox="0 0 26 8" aria-hidden="true">'
                f'<path class="line {kind}" d="M0 4H26"/></svg>{escape(line["name"])}'
                f"{' (this model)' if line['chosen'] and len(lines) > 1 else ''}</li>"
            )
        main = next((line for line in lines if line["chosen"]), lines[0])
        drawing.hover = {
            "kind": "curve",
            "x": main["size"],
            "y": main["rmse"],
            "names": ["features", "RMSE"],
        }
        band = " The band is one standard error." if part["n_folds"] > 1 else ""
        note = f"The model has {part['chosen_size']} (upright line).{band}"
        sizes = sorted({s for line in lines for s in line["size"]})
        rows = [
            [
                str(s),
                *(number(dict(zip(n["size"], n["rmse"], strict=True)).get(s)) for n in lines),
            ]
            for s in sizes
        ]
        head = ["Features", *(line["name"] for line in lines)]
        below = details("Table: error by number of features", table(head, rows, caption="RMSE"))
        names = f'<ul class="legend">{"".join(legend)}</ul>' if len(lines) > 1 else ""
        title = "Error against the number of features"
        return self.figure("path", title, note, drawing, names + below)

    def curves(self) -> str:
        """What each input adds by itself."""
        curves = self.summary["drawn"]["curves"]
        ends = [y for curve in curves for side in (-1, 1) for y in _edge(curve, side)]
        heights = [y for curve in curves for y in curve["y"]]
        reach = 1.5 * max(map(abs, heights), default=1.0)
        # A curve that nobody knows anything about must not flatten all the others.
        scale = Axis.around([*heights, 0.0, *(min(max(y, -reach), reach) for y in ends)])
        return "".join(self._curve(k, curve, scale) for k, curve in enumerate(curves))

    def _curve(self, k: int, curve: dict[str, Any], scale: Axis) -> str:
        name, xs, ys = curve["component"], curve["x"], curve["y"]
        drawing = Drawing(
            Axis.around(xs, pad=0.02),
            scale,
            f"What {name} adds by itself",
            hover={"kind": "curve", "x": xs, "y": ys, "names": [name, "adds"], "signed": True},
            **_SMALL,
        )
        drawing.level(0.0)
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
            head.append("Deviation")
            columns.append(columns_alike(curve["deviation"][::every]))
        rows = list(zip(*columns, strict=True))
        below = details("Table", table(head, rows, caption=f"What {name} adds"))
        note = f"{percent(curve['share'])} of the variance"
        return self.figure(f"curve{k}", name, note, drawing, below)

    def maps(self) -> str:
        """What pairs of inputs add beyond their curves."""
        maps, limit = self.summary["drawn"]["maps"], self._limit()
        return "".join(self._map(k, part, limit) for k, part in enumerate(maps))

    def scale(self) -> str:
        """The colours of the maps."""
        limit = number(self._limit(), 3)
        steps = [k / 8 for k in range(9)]
        stops = [_stop(LESS, size, 50 - 50 * size) for size in reversed(steps)]
        stops += [_stop(MORE, size, 50 + 50 * size) for size in steps]
        return (
            f'<p class="scale"><span>−{limit} and less</span><span class="ramp" '
            f'style="background:linear-gradient(90deg,{",".join(stops)})"></span>'
            f"<span>+{limit} and more</span></p>"
        )

    def _limit(self) -> float:
        """The strongest colour: what maps come to where rows are, not in empty corners."""
        return max((part["limit"] for part in self.summary["drawn"]["maps"]), default=1.0) or 1.0

    def _map(self, k: int, part: dict[str, Any], limit: float) -> str:
        first, second = part["variables"]
        drawing = Drawing(
            Axis.around(part["x"], first, pad=0.0),
            Axis.around(part["y"], second, pad=0.0),
            f"What {first} and {second} add together, beyond their curves",
            hover={
                "kind": "map",
                "x": part["x"],
                "y": part["y"],
                "values": part["values"],
                "names": [first, second, "adds"],
                "signed": True,
            },
            **{**_SMALL, "height": 260.0},
        )
        drawing.picture(part["values"], limit)
        drawing.dots(part["dots"][0], part["dots"][1], "tiny")
        every = max(1, (len(part["x"]) - 1) // (_MAP_ROWS - 1))
        columns = list(range(0, len(part["y"]), every))
        downward = range(0, len(part["x"]), every)
        texts = columns_alike([part["values"][i][j] for i in downward for j in columns], sign=True)
        starts = columns_alike([part["x"][i] for i in downward])
        width = len(columns)
        rows = [[x, *texts[k * width : (k + 1) * width]] for k, x in enumerate(starts)]
        head = [f"{first} \\ {second}", *columns_alike([part["y"][j] for j in columns])]
        caption = f"What {first} (down) and {second} (across) add together"
        below = details("Table", table(head, rows, caption=caption))
        note = f"{percent(part['share'])} of the variance"
        return self.figure(f"map{k}", part["component"], note, drawing, below)


def _edge(curve: dict[str, Any], side: int) -> list[float]:
    """A curve plus or minus two deviations, or itself if nothing is known of them."""
    unsure = curve["deviation"] or [0.0] * len(curve["y"])
    return [y + 2 * side * e for y, e in zip(curve["y"], unsure, strict=True)]


def _stop(colour: tuple[int, int, int], size: float, place: float) -> str:
    """A point of a ramp of colours."""
    return f"rgba({','.join(map(str, colour))},{opacity(size):.2f}) {place:.1f}%"
