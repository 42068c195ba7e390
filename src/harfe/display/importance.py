"""Components or terms by their share of the variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import check_choice
from harfe._core.table import Table
from harfe._core.wording import percent
from harfe.display._drawing import (
    BLUE,
    INK,
    LIGHT_BLUE,
    MID_GREY,
    NOTHING,
    VERMILLION,
    check_axes,
    check_fitted,
    check_most,
    dependence_note,
    joined,
    legend_above,
    name_rows,
    one_axes,
    room_for_names,
    say_empty,
    set_title,
    tidy,
    under,
    write_note,
)
from harfe.explain.overall import Explanation

KINDS = ("components", "terms")

# Colour, hatch, hatch colour and label for no, one, two, and three or more inputs.
_ORDERS = (
    (MID_GREY, "", INK, "none"),
    (BLUE, "", INK, "one input"),
    (VERMILLION, "////", "white", "two"),
    (LIGHT_BLUE, "....", INK, "three or more"),
)


class TermImportanceDisplay:
    """Components, or terms, by their share of the variance of the fitted function.

    Parameters
    ----------
    variables : sequence of tuples of str
        Inputs of each component or term.
    share : array of shape (components,)
        Share of the variance of the function.
    kind : {"components", "terms"}, default="components"
        Purified components, whose shares sum to 1; or raw terms, which overlap, so their shares
        need not.
    distribution : str, default="independent"
        Distribution of the inputs that the variances refer to.
    note : str, default=""
        Caveat, written below the figure.

    Attributes
    ----------
    ax_, figure_
        Matplotlib objects; set by `plot`.
    bars_ : BarContainer
    """

    def __init__(
        self,
        variables: Any,
        share: ArrayLike,
        *,
        kind: str = "components",
        distribution: str = "independent",
        note: str = "",
    ) -> None:
        self.variables = tuple(tuple(names) for names in variables)
        self.share = np.asarray(share, dtype=float)
        self.kind = kind
        self.distribution = distribution
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        kind: str = "components",
        inputs: Any = "independent",
        target: int = 0,
    ) -> TermImportanceDisplay:
        """Explain a fitted model.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted.
        X, inputs, target
            As in ``model.explain``.
        kind : {"components", "terms"}, default="components"
        """
        check_fitted(model)
        return cls.from_explanation(model.explain(X, inputs=inputs, target=target), kind=kind)

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, kind: str = "components"
    ) -> TermImportanceDisplay:
        """Use the result of ``model.explain()``."""
        check_choice("kind", kind, KINDS)
        table = getattr(explanation, kind)
        variance = table["variance"].astype(float)
        whole = explanation.variance if explanation.variance > 0 else 1.0
        return cls(
            table["variables"].tolist(),
            table["share"] if kind == "components" else variance / whole,
            kind=kind,
            distribution=explanation.inputs,
            note=dependence_note(explanation),
        )

    def plot(self, ax: Any = None, *, most: int = 15) -> TermImportanceDisplay:
        """Draw a bar for each component or term, the largest at the top.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        most : int, default=15
            Maximum number of bars; the remaining components, and those below 0.05 %, are combined
            into one more.

        Returns
        -------
        self
        """
        shown, left = self._leading(check_most(most))
        check_axes(ax)
        # A pair may take more room than a single name.
        names = [joined(self.variables[k], int(1.4 * room_for_names(ax))) for k in shown]
        share = self.share[shown]
        orders = [min(len(self.variables[k]), 3) for k in shown]
        if len(left) and self.kind == "components":
            names.append(f"{len(left)} others")
            share = np.append(share, self.share[left].sum())
            orders.append(0)
        n = len(names)
        ax = self.ax_ = one_axes(ax, 6.8, 1.3 + 0.26 * max(n, 3))
        self.figure_ = ax.figure
        tidy(ax)
        ax.set_xlabel(f"share of the variance{under(self.distribution)} (%)")
        if not np.any(self.share > 0):
            self.bars_ = ax.barh([], [])
            say_empty(ax, "The fitted function is constant.")
            return self
        self.bars_ = ax.barh(
            np.arange(n),
            100 * share,
            height=0.74,
            color=[_ORDERS[order][0] for order in orders],
            linewidth=0,
        )
        for bar, order in zip(self.bars_, orders, strict=True):
            # The edge has the colour of the hatch.
            bar.set(hatch=_ORDERS[order][1], edgecolor=_ORDERS[order][2])
        name_rows(ax, names)
        labels = ax.bar_label(self.bars_, [percent(s) for s in share], padding=3)
        for label in labels:
            label.set(fontsize="x-small", color=INK)
        ax.set(ylim=(max(n, 3) - 0.4, -0.6), xlim=(0, 115 * max(share.max(), 1e-3)))
        self._name_orders(ax, orders)
        what = "components" if self.kind == "components" else "terms"
        note = self.note
        if len(left) and self.kind == "terms":
            largest = percent(self.share[left[0]])
            note = f"{len(left)} more terms, the largest {largest}. {note}"
        title = f"{len(self.share)} {what}" if len(self.share) > 1 else f"1 {what[:-1]}"
        set_title(ax, title, above_legend=ax.get_legend() is not None)
        write_note(ax, note)
        return self

    def _leading(self, most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The largest, to be drawn, and the others."""
        order = np.argsort(-self.share, kind="stable")
        number = min(most, max(int(np.sum(self.share >= NOTHING)), 1))
        # A single one left over takes no more room than "1 others".
        number += len(order) == number + 1
        return order[:number], order[number:]

    def _name_orders(self, ax: Any, orders: list[int]) -> None:
        from matplotlib.patches import Patch

        present = sorted(set(orders) - {0})
        if len(present) > 1:
            legend_above(
                ax,
                [
                    Patch(
                        facecolor=_ORDERS[order][0],
                        hatch=_ORDERS[order][1],
                        edgecolor=_ORDERS[order][2],
                        linewidth=0,
                        label=_ORDERS[order][3],
                    )
                    for order in present
                ],
            )

    def table(self) -> Table:
        """Return a row for each, in the given order: `variables`, `order`, `share`."""
        return Table(
            {
                "variables": self.variables,
                "order": [len(names) for names in self.variables],
                "share": self.share,
            }
        )
