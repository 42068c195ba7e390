"""Pairs of inputs by their share of the variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import check_choice
from harfe._core.table import Table
from harfe._core.wording import percent
from harfe.display._drawing import (
    INK,
    NOTHING,
    check_axes,
    check_fitted,
    check_most,
    colour_bar,
    dependence_note,
    inches,
    letters_along,
    name_rows,
    one_axes,
    room_for_names,
    say_empty,
    set_title,
    shorten,
    tidy,
    under,
    write_note,
)
from harfe.explain.overall import Explanation

MEASURES = ("total", "second_order")

# Minimum number of rows and columns of a matrix, if there are that many.
_SMALLEST_MATRIX = 5

# Approximate width of a letter on an axis, in inches.
_LETTER_WIDTH = 0.085

# A pair below this share is never drawn dark, however small the others are.
_FAINT = 0.01


class InteractionDisplay:
    """Share of the variance that is due to each pair of inputs, as a matrix.

    Parameters
    ----------
    variables : sequence of str
        Names of the inputs.
    strength : array of shape (inputs, inputs)
        Symmetric; NaN for two inputs that never share a feature.
    measure : {"total", "second_order"}, default="total"
        All components that contain both inputs, or the component of the pair alone.
    distribution : str, default="independent"
        Distribution of the inputs that the variances refer to.
    note : str, default=""
        Caveat, written below the figure.

    Attributes
    ----------
    ax_, figure_
        Matplotlib objects; set by `plot`.
    image_ : AxesImage
        The lower half in percent, masked elsewhere; None if no two inputs interact.
    """

    def __init__(
        self,
        variables: Any,
        strength: ArrayLike,
        *,
        measure: str = "total",
        distribution: str = "independent",
        note: str = "",
    ) -> None:
        self.variables = tuple(variables)
        self.strength = np.asarray(strength, dtype=float)
        self.measure = measure
        self.distribution = distribution
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        measure: str = "total",
        inputs: Any = "independent",
        target: int = 0,
    ) -> InteractionDisplay:
        """Explain a fitted model.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted.
        X, inputs, target
            As in ``model.explain``.
        measure : {"total", "second_order"}, default="total"
        """
        check_fitted(model)
        return cls.from_explanation(model.explain(X, inputs=inputs, target=target), measure=measure)

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, measure: str = "total"
    ) -> InteractionDisplay:
        """Use the result of ``model.explain()``."""
        check_choice("measure", measure, MEASURES)
        variables = explanation.sobol.columns["variable"]
        place = {name: k for k, name in enumerate(variables)}
        strength = np.full((len(variables),) * 2, np.nan)
        table = explanation.interactions
        for (one, other), share in zip(table.columns["variables"], table[measure], strict=True):
            i, j = place[one], place[other]
            strength[i, j] = strength[j, i] = share
        note = dependence_note(explanation)
        return cls(variables, strength, measure=measure, distribution=explanation.inputs, note=note)

    def plot(self, ax: Any = None, *, most: int = 15) -> InteractionDisplay:
        """Draw the pairs of the inputs that interact most, the strongest first.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        most : int, default=15
            Maximum number of inputs; a note counts the others.

        Returns
        -------
        self
        """
        shown, left = self._leading(check_most(most))
        n = len(shown)
        side = min(0.45 * max(n - 1, 5), 6.3)
        check_axes(ax)
        names = shorten([self.variables[k] for k in shown], room_for_names(ax))
        letters = max(map(len, names), default=0)
        width = side if ax is None else inches(ax)[0]
        upright = n * (letters + 1) <= letters_along(width)
        longest = _LETTER_WIDTH * letters
        ax = self.ax_ = one_axes(ax, side + 1.6 + longest, side + 1.2 + (0 if upright else longest))
        self.figure_ = ax.figure
        tidy(ax)
        self.image_ = None
        if n < 2 or not np.nanmax(self.strength) > 0:
            say_empty(ax, "No two inputs interact.")
            return self
        percents = 100 * self.strength[np.ix_(shown, shown)]
        # The lower half without the diagonal holds every pair once.
        lower = np.ma.masked_invalid(np.where(np.tri(n, k=-1) > 0, percents, np.nan)[1:, :-1])
        highest = max(lower.max(), 100 * _FAINT)
        self.image_ = ax.imshow(lower, cmap="Blues", vmin=0, vmax=highest, aspect="auto")
        name_rows(ax, names[1:])
        ax.set_xticks(range(n - 1), names[:-1], rotation=0 if upright else 90)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        self._write_numbers(ax, lower, highest)
        colour_bar(
            self.image_, ax, f"share of the variance{under(self.distribution)} (%)", shrink=0.75
        )
        words = {
            "total": "Interactions of any order",
            "second_order": "Interactions of the pair alone",
        }
        set_title(ax, words[self.measure])
        blank = "No number: below 0.05 %." if np.any(lower < 100 * NOTHING) else ""
        write_note(ax, " ".join(filter(None, [blank, left, self.note])))
        return self

    def _leading(self, most: int) -> tuple[NDArray[np.intp], str]:
        """Inputs by their strongest pairs, and a note on the others."""
        known = np.where(np.isfinite(self.strength), self.strength, -1.0)
        np.fill_diagonal(known, -1.0)
        strongest = known.max(axis=1, initial=-1.0)
        meets = np.flatnonzero(strongest >= 0)
        order = meets[np.lexsort((-known[meets].clip(0).sum(axis=1), -strongest[meets]))]
        number = max(int(np.sum(strongest >= NOTHING)), _SMALLEST_MATRIX)
        shown, rest = order[: min(number, most)], order[min(number, most) :]
        if not len(rest):
            return shown, ""
        largest = percent(max(strongest[rest].max(), 0.0))
        return shown, f"{len(rest)} more inputs; their strongest pair has {largest}."

    @staticmethod
    def _write_numbers(ax: Any, lower: Any, highest: float) -> None:
        for (i, j), value in np.ndenumerate(lower.filled(0.0)):
            if value >= 100 * NOTHING:
                color = "white" if value > 0.6 * highest else INK
                text = f"{value:.1f}"
                ax.text(j, i, text, ha="center", va="center", fontsize="x-small", color=color)

    def table(self) -> Table:
        """Return a row for each pair that shares a feature, the strongest first."""
        i, j = np.nonzero(np.triu(np.isfinite(self.strength), k=1))
        share = self.strength[i, j]
        order = np.argsort(-share, kind="stable")
        return Table(
            {
                "variables": [(self.variables[i[k]], self.variables[j[k]]) for k in order],
                "share": share[order],
            }
        )
