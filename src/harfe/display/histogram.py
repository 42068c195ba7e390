"""How often each input occurs in the kept features: Figures 4 and 5 of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from harfe._core.table import Table
from harfe._core.wording import percent
from harfe.display._drawing import (
    BLUE,
    INK,
    LIGHT_BLUE,
    check_axes,
    check_fitted,
    check_most,
    inches,
    legend_above,
    letters_along,
    name_rows,
    one_axes,
    room_for_names,
    set_title,
    shorten,
    tidy,
    write_note,
)
from harfe.explain.overall import Explanation
from harfe.explain.tables import variables_table

# Width of the axes of a new figure, in inches; if the names do not fit below, bars are horizontal.
_WIDTH = 6.2


class VariableHistogramDisplay:
    """Share of the kept features that use each input, next to its share among those drawn.

    The paper's Figures 4 and 5. A pool drawn uniformly uses all inputs equally often; the features
    that the fit keeps use those that matter.

    Parameters
    ----------
    variables : sequence of str
        Names of the inputs.
    share : array of shape (inputs,)
        Share of the kept features that use the input; a feature of q inputs counts q times.
    pool_share : array of shape (inputs,)
        The same for all drawn features.
    weighted : bool, default=False
        Whether `share` weights every feature by |coefficient|.
    n_kept, n_drawn : int, optional
        Numbers of features, for the title.

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
        pool_share: ArrayLike,
        *,
        weighted: bool = False,
        n_kept: int | None = None,
        n_drawn: int | None = None,
    ) -> None:
        self.variables = tuple(variables)
        self.share = np.asarray(share, dtype=float)
        self.pool_share = np.asarray(pool_share, dtype=float)
        self.weighted = weighted
        self.n_kept = n_kept
        self.n_drawn = n_drawn

    @classmethod
    def from_estimator(
        cls, model: Any, *, weighted: bool = False, target: int = 0
    ) -> VariableHistogramDisplay:
        """Count the features of a fitted model.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted.
        weighted : bool, default=False
            Weight every feature by |coefficient|.
        target : int, default=0
            Target whose coefficients are used.
        """
        check_fitted(model)
        # Not explain(): counts need no distribution of the inputs and no warnings about it.
        table = variables_table(model.expansion_, model.inputs_, model._pool, None, target)
        return cls(
            table["variable"],
            table["weighted_share" if weighted else "share"],
            table["pool_share"],
            weighted=weighted,
            n_kept=len(model.expansion_.features),
            n_drawn=model.n_components_,
        )

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, weighted: bool = False
    ) -> VariableHistogramDisplay:
        """Use the result of ``model.explain()``."""
        table = explanation.variables
        return cls(
            table["variable"],
            table["weighted_share" if weighted else "share"],
            table["pool_share"],
            weighted=weighted,
        )

    def plot(self, ax: Any = None, *, most: int = 40) -> VariableHistogramDisplay:
        """Draw a bar for each input, in their order.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        most : int, default=40
            Maximum number of inputs; the leading ones are drawn, and a note counts the others.

        Returns
        -------
        self
        """
        shown = np.sort(np.argsort(-self.share, kind="stable")[: check_most(most)])
        check_axes(ax)
        names = shorten([self.variables[k] for k in shown], room_for_names(ax))
        n = len(shown)
        width = _WIDTH if ax is None else inches(ax)[0]
        upright = sum(len(name) + 1 for name in names) <= 1.13 * letters_along(width)
        height = 3.4 if upright else 1.4 + 0.24 * max(n, 3)
        ax = self.ax_ = one_axes(ax, 6.8, height)
        self.figure_ = ax.figure
        place, share, drawn = np.arange(n), 100 * self.share[shown], 100 * self.pool_share[shown]
        often = share >= drawn
        style = {
            "color": np.where(often, BLUE, LIGHT_BLUE).tolist(),
            "edgecolor": BLUE,
            "linewidth": 0.6,
        }
        line = {"color": INK, "linestyles": (0, (2, 1)), "linewidth": 1.6}
        label = "kept features that use it (%)"
        if self.weighted:
            label = "kept features that use it, by |coefficient| (%)"
        if upright:
            self.bars_ = ax.bar(place, share, width=0.76, **style)
            marks = ax.hlines(drawn, place - 0.46, place + 0.46, **line)
            ax.set_xticks(place, names)
            ax.set(ylabel=label, xlim=(-0.7, n - 0.3))
        else:
            self.bars_ = ax.barh(place, share, height=0.76, **style)
            marks = ax.vlines(drawn, place - 0.46, place + 0.46, **line)
            ax.set(xlabel=label, ylim=(n - 0.3, -0.7))
        tidy(ax)
        if upright:
            ax.tick_params(axis="x", length=0)
        else:
            name_rows(ax, names)
        self._explain_colours(ax, marks, often)
        if self.n_kept is not None and self.n_drawn is not None:
            set_title(ax, f"{self.n_kept} features kept of {self.n_drawn} drawn", above_legend=True)
        rest = np.delete(self.share, shown)
        if len(rest):
            write_note(
                ax,
                f"{len(rest)} more inputs; their largest share is {percent(rest.max())}.",
            )
        return self

    def _explain_colours(self, ax: Any, marks: Any, often: Any) -> None:
        from matplotlib.patches import Patch

        words = {True: "kept (more often than drawn)", False: "kept (less often)"}
        handles = [
            Patch(facecolor=BLUE if kind else LIGHT_BLUE, edgecolor=BLUE, label=words[kind])
            for kind in (True, False)
            if np.any(often == kind)
        ]
        marks.set_label("drawn")
        legend_above(ax, [*handles, marks])

    def table(self) -> Table:
        """Return a row for each input: `variable`, `share` of the kept features, `pool_share`."""
        return Table(
            {"variable": self.variables, "share": self.share, "pool_share": self.pool_share}
        )
