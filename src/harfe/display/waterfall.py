"""One prediction as a sum: from the mean of the function to the value of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from harfe._core.arguments import check_choice, is_whole
from harfe._core.table import Table
from harfe.display._drawing import (
    BLUE,
    GREY,
    INK,
    VERMILLION,
    check_axes,
    check_fitted,
    check_most,
    dependence_note,
    inches,
    name_rows,
    on_scale,
    one_axes,
    part_of,
    real_part,
    room_for_names,
    shorten,
    tidy,
    write_note,
)
from harfe.explain.local import VIEWS

# Approximate width of a number beside a bar, in inches.
_NUMBER_WIDTH = 0.6

# Steps below this share of all steps get no bar of their own.
_SMALL = 0.005


class WaterfallDisplay:
    """What each input adds to the prediction of one row.

    Parameters
    ----------
    names : sequence of str
        Names of the contributions.
    contributions : array of shape (names,)
    start : float
        What they are added to: the baseline, or the intercept for raw terms.
    prediction : float
        `start` + the sum of the contributions.
    by : {"variables", "components", "terms"}, default="variables"
    values : array of shape (names,), optional
        Values of the inputs in this row, written beside their names.
    outside : sequence of str, default=()
        Inputs of this row that lie outside the range seen in training.
    label : str, default="prediction"
        Label of the axis.
    note : str, default=""
        Caveat, written below the figure.

    Attributes
    ----------
    ax_, figure_
        Matplotlib objects; set by `plot`.
    bars_ : BarContainer
        One bar per step, from the sum before it to the sum after it.
    """

    def __init__(
        self,
        names: Sequence[str],
        contributions: ArrayLike,
        start: float,
        prediction: float,
        *,
        by: str = "variables",
        values: ArrayLike | None = None,
        outside: Sequence[str] = (),
        label: str = "prediction",
        note: str = "",
    ) -> None:
        self.names = tuple(names)
        self.contributions = np.asarray(contributions, dtype=float)
        self.start = float(start)
        self.prediction = float(prediction)
        self.by = by
        self.values = None if values is None else np.asarray(values, dtype=float)
        self.outside = tuple(outside)
        self.label = label
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        row: int = 0,
        *,
        by: str = "variables",
        inputs: Any = "independent",
        target: int = 0,
        part: str = "real",
    ) -> WaterfallDisplay:
        """Explain the prediction of a row.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted.
        X : array of shape (rows, inputs)
        row : int, default=0
            Which row of X, counted from 0.
        by : {"variables", "components", "terms"}, default="variables"
            What is added up, see ``model.explain_local``.
        inputs, target
            As in ``model.explain_local``.
        part : {"real", "imag"}, default="real"
            Which part of complex values is drawn.
        """
        check_fitted(model)
        check_choice("by", by, VIEWS)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if not is_whole(row) or not 0 <= row < n:
            raise ValueError(f"row={row!r} must be a whole number from 0 to {n - 1}, a row of X")
        one = X.iloc[[row]] if hasattr(X, "iloc") else X[row : row + 1]
        local = model.explain_local(one, inputs=inputs, target=target)
        start, names, added = {
            "variables": (local.baseline, local.variable_names, local.variables),
            "components": (local.baseline, local.component_names, local.components),
            "terms": (local.intercept, local.term_names, local.terms),
        }[by]
        # Raw terms are the same under any distribution of the inputs.
        note = "" if by == "terms" else dependence_note(model.explain(inputs=inputs, target=target))
        outside = np.flatnonzero(local.outside_inputs[0])
        real = [real_part(np.asarray(value), part) for value in (added[0], start)]
        return cls(
            names,
            real[0],
            float(real[1]),
            float(real_part(local.prediction, part)[0]),
            by=by,
            values=np.asarray(one, dtype=float)[0] if by == "variables" else None,
            outside=[local.variable_names[k] for k in outside],
            label=part_of(on_scale("prediction", local.link, "of"), local.prediction, part),
            note=note,
        )

    def plot(self, ax: Any = None, *, most: int = 10) -> WaterfallDisplay:
        """Draw the steps from top to bottom, the largest first.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        most : int, default=10
            Maximum number of steps; smaller ones, and those below half a percent of all, are
            combined into one more.

        Returns
        -------
        self
        """
        check_axes(ax)
        names, steps = self._steps(check_most(most), room_for_names(ax))
        n = len(steps)
        ends = self.start + np.cumsum(steps)
        begins = ends - steps
        ax = self.ax_ = one_axes(ax, 6.8, 1.2 + 0.3 * (n + 2))
        self.figure_ = ax.figure
        tidy(ax)
        place = np.arange(1, n + 1)
        self.bars_ = ax.barh(
            place,
            steps,
            left=begins,
            height=0.66,
            color=np.where(steps >= 0, VERMILLION, BLUE).tolist(),
            linewidth=0,
            zorder=2,
        )
        for bar, step in zip(self.bars_, steps, strict=True):
            bar.set(hatch="" if step >= 0 else "////", edgecolor="white")
        # Each step starts where the one above it ends.
        levels = np.concatenate([[self.start], ends])
        ax.vlines(
            levels, np.arange(n + 1), np.arange(1, n + 2), color=GREY, linewidth=0.8, zorder=1
        )
        first = "intercept" if self.by == "terms" else "baseline"
        for value, height in ((self.start, 0), (self.prediction, n + 1)):
            ax.plot(value, height, marker="D", color=INK, markersize=6, zorder=3)
        self._write_numbers(ax, steps, begins, ends)
        name_rows(ax, [first, *names, "prediction"])
        ax.set(ylim=(n + 1.6, -0.6), xlabel=self.label)
        outside = ""
        if self.outside:
            listed = ", ".join(shorten(self.outside[:5])) + (" ..." if self.outside[5:] else "")
            outside = f"Outside the range seen in training: {listed}."
        write_note(ax, " ".join(filter(None, [outside, self.note])))
        return self

    def _steps(self, most: int, letters: int) -> tuple[list[str], Any]:
        """Names and lengths of the steps: the largest, and the sum of the others."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        size = np.abs(self.contributions[order])
        order = order[size > 0]
        number = min(most, int(np.sum(size > _SMALL * size.sum())))
        # A single step left over takes no more room than "1 others".
        number += len(order) == number + 1
        shown, left = order[:number], order[number:]
        names = shorten([self.names[k] for k in shown], letters)
        if self.values is not None:
            pairs = zip(names, self.values[shown], strict=True)
            names = [f"{name} = {_number(value, '.4g')}" for name, value in pairs]
        steps = self.contributions[shown]
        if len(left):
            names.append(f"{len(left)} others")
            steps = np.append(steps, self.contributions[left].sum())
        return names, steps

    def _write_numbers(self, ax: Any, steps: Any, begins: Any, ends: Any) -> None:
        """Write numbers at the end of every bar, and beside start and prediction."""
        everything = np.concatenate([begins, ends, [self.start, self.prediction]])
        low, high = float(everything.min()), float(everything.max())
        width = inches(ax)[0]
        room = (high - low) * _NUMBER_WIDTH / max(width - 2 * _NUMBER_WIDTH, 0.5) or 1.0
        ax.set_xlim(low - room, high + room)
        style = {"textcoords": "offset points", "va": "center", "fontsize": "x-small", "color": INK}
        for k, (step, end) in enumerate(zip(steps, ends, strict=True)):
            side = 1 if step >= 0 else -1
            ax.annotate(
                _number(step, "+.3g"),
                (end, k + 1),
                xytext=(4 * side, 0),
                ha="left" if side > 0 else "right",
                **style,
            )
        for value, height in ((self.start, 0), (self.prediction, len(steps) + 1)):
            ax.annotate(_number(value, ".4g"), (value, height), xytext=(8, 0), ha="left", **style)

    def table(self) -> Table:
        """Return a row per contribution, the largest first: `name`, `value` if known, `added`."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        columns: dict[str, Any] = {"name": [self.names[k] for k in order]}
        if self.values is not None:
            columns["value"] = self.values[order]
        return Table({**columns, "added": self.contributions[order]})


def _number(value: float, digits: str) -> str:
    """Format a number with the same minus sign as on the axes."""
    return format(value, digits).replace("-", "−")
