"""A purified component of a fitted function: a curve or a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import Table
from harfe._core.wording import percent
from harfe.display._drawing import (
    BLUE,
    GREY,
    INK,
    LIGHT_GREY,
    MID_GREY,
    NAME_LENGTH,
    check_fitted,
    colour_bar,
    dependence_note,
    inches,
    joined,
    letters_along,
    on_scale,
    one_axes,
    part_of,
    real_part,
    set_title,
    shorten,
    tidy,
    under,
    write_note,
)
from harfe.display.components.grids import drawn_grids, model_anova, resolve_component
from harfe.explain.anova import Anova
from harfe.explain.inputs.seen import SeenInput, grid_points
from harfe.explain.overall import Explanation
from harfe.model.terms import IndexSet

# The density of the rows takes this share of the height; curves stay above it.
_DENSITY_HEIGHT = 0.14

# Longest name in a title, in letters.
_TITLE_LENGTH = 22

# For a factor with more values, matplotlib places the ticks.
_MOST_TICKS = 8

# Approximate number of contour lines of a map.
_LEVELS = 8


class ComponentDisplay:
    """A purified component of one input as a curve, of two as a map.

    It is the joint effect of the inputs beyond the effects of fewer of them: it averages to zero
    over each input under the distribution of the inputs. A curve has the density of the rows of the
    fit beneath it; a map has their quantiles, 32 parts of equal share, as ticks along its edges.

    Parameters
    ----------
    inputs : sequence of one or two SeenInput
        The inputs, as seen in the rows of the fit.
    grids : sequence of arrays
        Values of each input at which the component is drawn.
    values : array of shape (points of the first grid,) or (of the first, of the second)
        Values of the component.
    share : float
        Share of the variance of the function.
    distribution : str, default="independent"
        Distribution of the inputs that the share refers to.
    part : {"real", "imag"}, default="real"
        Which part of complex values is drawn.
    link : str, default="none"
        Link on whose scale the values are.
    note : str, default=""
        Caveat, written below the figure.

    Attributes
    ----------
    ax_, figure_
        Matplotlib objects; set by `plot`.
    line_ : Line2D
        The curve; None for a map.
    mesh_ : QuadMesh
        The map, with the second input on the vertical axis; None for a curve.
    """

    def __init__(
        self,
        inputs: Sequence[SeenInput],
        grids: Sequence[NDArray[np.float64]],
        values: NDArray[Any],
        share: float,
        *,
        distribution: str = "independent",
        part: str = "real",
        link: str = "none",
        note: str = "",
    ) -> None:
        self.inputs = tuple(inputs)
        self.grids = tuple(grids)
        self.values = np.asarray(values)
        self.share = share
        self.distribution = distribution
        self.part = part
        self.link = link
        self.note = note

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(seen.name for seen in self.inputs)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        component: Any,
        *,
        inputs: Any = "independent",
        target: int = 0,
        part: str = "real",
    ) -> ComponentDisplay:
        """Evaluate a component of a fitted model over the range of its rows.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted.
        component : str, int or sequence of them
            Its input or inputs, by name or number: ``"age"``, ``("age", "bmi")``, or the name
            ``"age : bmi"``.
        inputs, target
            As in ``model.explain``.
        part : {"real", "imag"}, default="real"
            Which part of complex values is drawn.
        """
        check_fitted(model)
        columns = model.expansion_.columns
        explanation = model.explain(inputs=inputs, target=target)
        u = resolve_component(component, columns, explanation)
        return cls.of_model(model, u, explanation, model_anova(model, inputs, target), part)

    @classmethod
    def of_model(
        cls, model: Any, u: IndexSet, explanation: Explanation, parts: Anova, part: str
    ) -> ComponentDisplay:
        """Evaluate the component on u, from the explanation and the ANOVA of a model."""
        inputs = [SeenInput.of(model.expansion_, model.inputs_, k) for k in u]
        grids = drawn_grids(inputs)
        values = parts.component_on_grid(u, grids)
        real_part(values, part)
        share = float(parts.shares[parts.sets.index(u)])
        note = dependence_note(explanation)
        return cls(
            inputs,
            grids,
            values,
            share,
            distribution=explanation.inputs,
            part=part,
            link=explanation.link,
            note=note,
        )

    @property
    def drawn(self) -> NDArray[np.float64]:
        """The values that are drawn: real ones, or a part of complex ones."""
        return real_part(self.values, self.part)

    @property
    def _effect(self) -> str:
        return part_of(on_scale("effect", self.link), self.values, self.part)

    def plot(
        self, ax: Any = None, *, limits: tuple[float, float] | None = None
    ) -> ComponentDisplay:
        """Draw the curve or the map.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        limits : (float, float), optional
            Smallest and largest effect of the vertical axis, or of the colours of a map; None takes
            those of the component.

        Returns
        -------
        self
        """
        curve = len(self.inputs) == 1
        ax = one_axes(ax, 4.8 if curve else 5.2, 3.6 if curve else 4.2)
        self.draw(ax, limits)
        rows = ""
        if curve:
            rows = "Grey: density of the rows of the fit."
        elif any(seen.values is None for seen in self.inputs):
            rows = "Inner ticks divide the rows of the fit into 32 equal parts."
        write_note(ax, " ".join(filter(None, [rows, self.note])))
        return self

    def draw(self, ax: Any, limits: tuple[float, float] | None) -> None:
        """Draw in these axes, without the small print."""
        self.ax_, self.figure_ = ax, ax.figure
        self.line_ = self.mesh_ = None
        tidy(ax)
        if len(self.inputs) == 1:
            self._plot_curve(ax, limits)
        else:
            self._plot_map(ax, limits)
        name = joined(self.variables)
        # The axes also show the names: the title leaves out long ones.
        share = f"{percent(self.share)} of the variance{under(self.distribution)}"
        set_title(ax, share if len(name) > _TITLE_LENGTH else f"{name}: {share}")

    def _plot_curve(self, ax: Any, limits: tuple[float, float] | None) -> None:
        (seen,), (grid,), effect = self.inputs, self.grids, self.drawn
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
        if seen.values is not None:
            style = {"marker": "o", "markersize": 6, "linewidth": 0.8, "linestyle": ":"}
        else:
            style = {"linewidth": 2.0}
        (self.line_,) = ax.plot(grid, effect, color=BLUE, zorder=3, **style)
        low, high = (effect.min(), effect.max()) if limits is None else limits
        if not low < high:
            low, high = low - 1.0, high + 1.0
        margin = 0.06 * (high - low)
        bottom = low - margin - _DENSITY_HEIGHT * (high - low) / (1 - _DENSITY_HEIGHT)
        ax.set_ylim(bottom, high + margin)
        self._draw_density(ax, seen)
        ax.set_xlabel(_label(seen.name, inches(ax)[0]))
        ax.set_ylabel(self._effect)

    @staticmethod
    def _draw_density(ax: Any, seen: SeenInput) -> None:
        """Draw the density of the rows of the fit along the lower edge."""
        transform = ax.get_xaxis_transform()
        edges, shares = seen.density()
        height = _DENSITY_HEIGHT * shares / max(shares.max(initial=0.0), 1e-300)
        if seen.values is not None:
            ax.vlines(edges, 0, height, transform=transform, color=MID_GREY, linewidth=5, zorder=2)
            if len(edges) <= _MOST_TICKS:
                ax.set_xticks(edges)
            return
        ax.stairs(height, edges, transform=transform, fill=True, color=LIGHT_GREY, zorder=0)
        ax.stairs(height, edges, transform=transform, color=MID_GREY, linewidth=0.8, zorder=2)
        ax.set_xlim(edges[0], edges[-1])

    def _plot_map(self, ax: Any, limits: tuple[float, float] | None) -> None:
        first, second = self.inputs
        effect = self.drawn.T
        highest = float(np.abs(effect if limits is None else limits).max())
        highest = highest if highest > 0 else 1.0
        self.mesh_ = ax.pcolormesh(
            *self.grids,
            effect,
            cmap="PuOr",
            vmin=-highest,
            vmax=highest,
            shading="nearest",
            rasterized=True,
        )
        colour_bar(self.mesh_, ax, self._effect)
        # Lines between the values of a factor would mean nothing.
        if first.values is None and second.values is None and np.ptp(effect) > 0:
            self._draw_contours(ax, highest)
        self._draw_quantiles(ax)
        width, height = inches(ax)
        ax.set(xlabel=_label(first.name, width), ylabel=_label(second.name, height))

    def _draw_contours(self, ax: Any, highest: float) -> None:
        from matplotlib.ticker import MaxNLocator

        levels = np.asarray(MaxNLocator(_LEVELS, symmetric=True).tick_values(-highest, highest))
        lines = ax.contour(
            *self.grids,
            self.drawn.T,
            levels=levels,
            colors=INK,
            linewidths=np.where(np.isclose(levels, 0), 1.4, 0.7),
            linestyles=np.where(levels < 0, "dashed", "solid").tolist(),
        )
        ax.clabel(lines, fontsize="x-small", fmt="%g")

    def _draw_quantiles(self, ax: Any) -> None:
        """Draw short ticks inside the lower and the left edge."""
        style = {"color": INK, "linewidth": 0.8}
        first, second = self.inputs
        for seen, transform, draw, set_ticks in (
            (first, ax.get_xaxis_transform(), ax.vlines, ax.set_xticks),
            (second, ax.get_yaxis_transform(), ax.hlines, ax.set_yticks),
        ):
            if seen.values is None:
                low, high = seen.bulk
                inside = seen.quantiles[(seen.quantiles >= low) & (seen.quantiles <= high)]
                draw(inside, 0, 0.025, transform=transform, **style)
            elif len(seen.values) <= _MOST_TICKS:
                set_ticks(seen.values)

    def table(self) -> Table:
        """Return a row for each point drawn: the inputs and the `effect`."""
        points = grid_points(self.grids)
        effect = "effect"
        while effect in self.variables:
            effect += "_"
        columns = dict(zip(self.variables, points.T, strict=True))
        return Table({**columns, effect: self.values.ravel()})


def _label(name: str, length: float) -> str:
    """Shorten a name to fit along an axis of this many inches."""
    return shorten([name], min(letters_along(length), NAME_LENGTH))[0]
