"""The largest components of a fitted function, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harfe._core.arguments import check_count
from harfe._core.table import Table
from harfe._core.wording import percent
from harfe.display._drawing import (
    NOTHING,
    check_fitted,
    check_most,
    say_empty,
    several_axes,
    tidy,
)
from harfe.display.components.component import ComponentDisplay
from harfe.display.components.grids import model_anova, resolve_component


class ComponentsDisplay:
    """A grid of the components with the largest shares of the variance.

    Parameters
    ----------
    displays : sequence of ComponentDisplay
    n_components : int
        Number of components of the function.

    Attributes
    ----------
    axes_, figure_
        Matplotlib objects, with one axes per component; set by `plot`.
    """

    def __init__(self, displays: Sequence[ComponentDisplay], n_components: int) -> None:
        self.displays = tuple(displays)
        self.n_components = n_components

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        components: Sequence[Any] | None = None,
        *,
        most: int = 6,
        inputs: Any = "independent",
        target: int = 0,
        part: str = "real",
    ) -> ComponentsDisplay:
        """Evaluate the leading components of a fitted model.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted.
        components : sequence, optional
            Which ones, each as in :class:`ComponentDisplay`; None takes the leading ones of one or
            two inputs, down to 0.05 % of the variance.
        most : int, default=6
            Maximum number of components, if `components` is None.
        inputs, target, part
            As in :class:`ComponentDisplay`.
        """
        check_fitted(model)
        check_most(most)
        columns = model.expansion_.columns
        explanation = model.explain(inputs=inputs, target=target)
        table = explanation.components
        if components is None:
            drawable = (table["order"] <= 2) & (table["share"] >= NOTHING)
            components = [table.columns["variables"][i] for i in np.flatnonzero(drawable)[:most]]
        parts = model_anova(model, inputs, target)
        sets = [resolve_component(component, columns, explanation) for component in components]
        return cls(
            [ComponentDisplay.of_model(model, u, explanation, parts, part) for u in sets],
            len(table),
        )

    def plot(
        self, ax: Any = None, *, n_columns: int = 3, same_scale: bool = True
    ) -> ComponentsDisplay:
        """Draw each component in its own panel.

        Parameters
        ----------
        ax : matplotlib axes or array of axes, optional
            None makes a figure; a single one is divided; of several, each gets a component.
        n_columns : int, default=3
            Panels per row.
        same_scale : bool, default=True
            Whether all curves share one scale, and all maps another: what matters more looks
            larger.

        Returns
        -------
        self
        """
        check_count("n_columns", n_columns, 3)
        n = len(self.displays)
        self.axes_ = several_axes(ax, max(n, 1), min(n_columns, max(n, 1)), 3.7, 3.1)
        self.figure_ = self.axes_[0].figure
        if not n:
            tidy(self.axes_[0])
            say_empty(self.axes_[0], "The fitted function is constant.")
            return self
        for display, panel in zip(self.displays, self.axes_, strict=True):
            display.draw(panel, self._limits(len(display.inputs)) if same_scale else None)
        if ax is None:
            share = sum(display.share for display in self.displays)
            title = f"{n} of {self.n_components} components, {percent(share)} of the variance"
            if note := self.displays[0].note:
                title += f"\n{note}"
            self.figure_.suptitle(title, x=0.01, ha="left", fontsize="medium")
        return self

    def _limits(self, order: int) -> tuple[float, float]:
        """Smallest and largest effect of all components with this many inputs."""
        alike = [display.drawn for display in self.displays if len(display.inputs) == order]
        return float(min(d.min() for d in alike)), float(max(d.max() for d in alike))

    def table(self) -> Table:
        """Return a row for each component: inputs, share, smallest and largest effect."""
        return Table(
            {
                "variables": [display.variables for display in self.displays],
                "share": [display.share for display in self.displays],
                "lowest": [display.drawn.min() for display in self.displays],
                "highest": [display.drawn.max() for display in self.displays],
            }
        )
