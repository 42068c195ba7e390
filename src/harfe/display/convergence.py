"""Objective and residual over the rounds of the pursuit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from harfe._core.table import Table
from harfe.display._drawing import (
    SERIES,
    check_fitted,
    draw_ring,
    set_error_scale,
    several_axes,
    tidy,
    write_note,
)
from harfe.solvers.pursuit import StopReason


class ConvergenceDisplay:
    """Objective and relative residual after each round of the pursuit.

    Parameters
    ----------
    objective, relative_residual : arrays of shape (rounds,)
    stopped : str, default=""
        Why the pursuit stopped; written below the figure.

    Attributes
    ----------
    best_round : int
        The returned round, counted from 1: that with the lowest objective.
    axes_, figure_
        Matplotlib objects, two axes; set by `plot`.
    lines_ : tuple of two Line2D
    """

    def __init__(
        self, objective: ArrayLike, relative_residual: ArrayLike, *, stopped: str = ""
    ) -> None:
        self.objective = np.asarray(objective, dtype=float)
        self.relative_residual = np.asarray(relative_residual, dtype=float)
        self.stopped = stopped
        self.best_round = int(np.argmin(self.objective)) + 1

    @classmethod
    def from_estimator(cls, model: Any) -> ConvergenceDisplay:
        """Take the history of a fitted model.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted by a pursuit; models that match the reference of a learned law had no rounds.
        """
        check_fitted(model)
        if model.stop_reason_ is StopReason.MATCHED:
            raise ValueError(
                f"this model has no rounds to draw: its features match the reference of a learned "
                f"law (fit_={model.fit_!r}); use SparsityPathDisplay.from_estimator(model), or fit "
                "HARFERegressor(law=model.law_), which runs a pursuit"
            )
        history = model.history_
        return cls(
            history["objective"], history["relative_residual"], stopped=model.stop_reason_.value
        )

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw objective and residual over the rounds, side by side.

        Parameters
        ----------
        ax : matplotlib axes, or two of them, optional
            None makes a figure; a single one is divided.

        Returns
        -------
        self
        """
        self.axes_ = several_axes(ax, 2, 2, 3.5, 3.2)
        from matplotlib.ticker import MaxNLocator

        self.figure_ = self.axes_[0].figure
        rounds = np.arange(1, len(self.objective) + 1)
        panels = (
            ("objective", self.objective),
            ("relative residual", self.relative_residual),
        )
        lines = []
        for panel, (name, values), (color, marker, style) in zip(
            self.axes_, panels, SERIES, strict=False
        ):
            tidy(panel)
            size = 4 if len(rounds) <= 40 else 0
            (line,) = panel.plot(
                rounds, values, color=color, marker=marker, linestyle=style, markersize=size
            )
            lines.append(line)
            best = self.best_round
            draw_ring(panel, best, values[best - 1], f"returned: round {best}", size=11)
            set_error_scale(panel, values)
            panel.set(xlabel="round", ylabel=name)
            panel.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        self.lines_ = tuple(lines)
        self.axes_[0].legend(fontsize="x-small", frameon=False)
        write_note(self.axes_[0], self.stopped)
        return self

    def table(self) -> Table:
        """Return a row for each round: `round`, `objective`, `relative_residual`."""
        return Table(
            {
                "round": np.arange(1, len(self.objective) + 1),
                "objective": self.objective,
                "relative_residual": self.relative_residual,
            }
        )
