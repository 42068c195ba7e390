"""One purified component of a fitted function: a curve, or a map."""

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
    dependence_note,
    inches,
    joined,
    letters_along,
    one_axes,
    part_of,
    real_part,
    set_title,
    shorten,
    tidy,
    under,
    write_note,
)
from harfe.display._grids import model_anova, resolve_component
from harfe.display._seen import SeenInput
from harfe.explain.anova import Anova
from harfe.explain.overall import Explanation
from harfe.explain.partial import grid_points
from harfe.model.terms import IndexSet

# Points along an axis of a curve and of a map.
_CURVE, _MAP = 200, 60

# The density of the rows takes this part of the height, and curves stay above it.
_DENSITY_HEIGHT = 0.14

# Letters of a name that go into a title.
_TITLE_LENGTH = 22

# Contour lines of a map, about.
_LEVELS = 8


class ComponentDisplay:
    """A purified component of one variable as a curve, of two as a map.

    What the variables do together beyond what fewer of them do: it averages to zero over each of
    them under the law of the inputs. Beneath a curve is the density of the rows of the fit; a map
    has their quantiles, 32 parts of equal share, as ticks along its edges.

    Parameters
    ----------
    inputs : sequence of one or two SeenInput
        The variables, where they are drawn, and their rows.
    values : array of shape (values of the first,) or (of the first, of the second)
        Of the component.
    share : float
        Of the variance of the function.
    law : str, default="independent"
        Law of the inputs.
    part : {"real", "imag"}, default="real"
        Which part of complex values is drawn.
    note : str, default=""
        What to mind, below the figure.

    Attributes
    ----------
    ax_, figure_
        Of matplotlib; after `plot`.
    line_ : Line2D
        The curve; None for a map.
    mesh_ : QuadMesh
        The map, the second variable upwards; None for a curve.
    """

    def __init__(
        self,
        inputs: Sequence[SeenInput],
        values: NDArray[Any],
        share: float,
        *,
        law: str = "independent",
        part: str = "real",
        note: str = "",
    ) -> None:
        self.inputs = tuple(inputs)
        self.values = np.asarray(values)
        self.share = share
        self.law = law
        self.part = part
        self.note = note

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(seen.name for seen in self.inputs)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        component: Any,
        *,
        law: Any = "independent",
        target: int = 0,
        part: str = "real",
    ) -> ComponentDisplay:
        """Evaluate a component of a fitted model, over the range that its rows had.

        Parameters
        ----------
        model : HARFERegressor or HARFERegressorCV
            Fitted.
        component : str, int or sequence of them
            Its variable or variables, by name or number: ``"age"``, ``("age", "bmi")``, or the name
            ``"age : bmi"``.
        law, target
            As in ``model.explain``.
        part : {"real", "imag"}, default="real"
            Which part of complex values is drawn.
        """
        check_fitted(model)
        columns = model.expansion_.columns
        explanation = model.explain(law=law, target=target)
        u = resolve_component(component, columns, explanation)
        return cls.of_model(model, u, explanation, model_anova(model, law, target), part)

    @classmethod
    def of_model(
        cls, model: Any, u: IndexSet, explanation: Explanation, parts: Anova, part: str
    ) -> ComponentDisplay:
        """Evaluate the component on u, given all that is known of a model."""
        columns, bounds = model.expansion_.columns, model.expansion_.bounds
        number = _CURVE if len(u) == 1 else _MAP
        inputs = [SeenInput.of(columns[k], model.inputs_, bounds, k, number) for k in u]
        points = grid_points([seen.values for seen in inputs])
        values = parts.component(u, points).reshape([len(seen.values) for seen in inputs])
        real_part(values, part)
        share = float(parts.shares[parts.sets.index(u)])
        note = dependence_note(explanation)
        return cls(inputs, values, share, law=explanation.law, part=part, note=note)

    @property
    def drawn(self) -> NDArray[np.float64]:
        """The values that are drawn: real ones, or a part of complex ones."""
        return real_part(self.values, self.part)

    def plot(
        self, ax: Any = None, *, limits: tuple[float, float] | None = None
    ) -> ComponentDisplay:
        """Draw the curve or the map.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        limits : (float, float), optional
            Smallest and largest effect that there is room for, of a map that there are colours for;
            None takes those of the component.

        Returns
        -------
        self
        """
        curve = len(self.inputs) == 1
        ax = one_axes(ax, 4.8 if curve else 5.2, 3.6 if curve else 4.2)
        self.draw(ax, limits)
        rows = ""
        if curve:
            rows = "Grey: where the rows of the fit lie."
        elif not all(seen.discrete for seen in self.inputs):
            rows = "Ticks inside cut the rows of the fit into 32 equal parts."
        write_note(ax, " ".join(filter(None, [rows, self.note])))
        return self

    def draw(self, ax: Any, limits: tuple[float, float] | None) -> None:
        """Draw into these axes, without the small print."""
        self.ax_, self.figure_ = ax, ax.figure
        self.line_ = self.mesh_ = None
        tidy(ax)
        if len(self.inputs) == 1:
            self._plot_curve(ax, limits)
        else:
            self._plot_map(ax, limits)
        name = joined(self.variables)
        # The axes have the names, too: where they are long that is enough.
        share = f"{percent(self.share)} of the variance{under(self.law)}"
        set_title(ax, share if len(name) > _TITLE_LENGTH else f"{name}: {share}")

    def _plot_curve(self, ax: Any, limits: tuple[float, float] | None) -> None:
        (seen,), effect = self.inputs, self.drawn
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
        if seen.discrete:
            style = {"marker": "o", "markersize": 6, "linewidth": 0.8, "linestyle": ":"}
        else:
            style = {"linewidth": 2.0}
        (self.line_,) = ax.plot(seen.values, effect, color=BLUE, zorder=3, **style)
        low, high = (effect.min(), effect.max()) if limits is None else limits
        if not low < high:
            low, high = low - 1.0, high + 1.0
        margin = 0.06 * (high - low)
        bottom = low - margin - _DENSITY_HEIGHT * (high - low) / (1 - _DENSITY_HEIGHT)
        ax.set_ylim(bottom, high + margin)
        self._draw_density(ax, seen)
        ax.set_xlabel(_label(seen.name, inches(ax)[0]))
        ax.set_ylabel(part_of("effect", self.values, self.part))

    @staticmethod
    def _draw_density(ax: Any, seen: SeenInput) -> None:
        """Where the rows of the fit lie, along the lower edge."""
        transform = ax.get_xaxis_transform()
        height = _DENSITY_HEIGHT * seen.shares / max(seen.shares.max(initial=0.0), 1e-300)
        if seen.discrete:
            ax.vlines(
                seen.edges, 0, height, transform=transform, color=MID_GREY, linewidth=5, zorder=2
            )
            if len(seen.values) <= 8:
                ax.set_xticks(seen.values)
            return
        ax.stairs(height, seen.edges, transform=transform, fill=True, color=LIGHT_GREY, zorder=0)
        ax.stairs(height, seen.edges, transform=transform, color=MID_GREY, linewidth=0.8, zorder=2)
        ax.set_xlim(seen.edges[0], seen.edges[-1])

    def _plot_map(self, ax: Any, limits: tuple[float, float] | None) -> None:
        first, second = self.inputs
        effect = self.drawn.T
        highest = float(np.abs(effect if limits is None else limits).max())
        highest = highest if highest > 0 else 1.0
        self.mesh_ = ax.pcolormesh(
            first.values,
            second.values,
            effect,
            cmap="PuOr",
            vmin=-highest,
            vmax=highest,
            shading="nearest",
            rasterized=True,
        )
        bar = ax.figure.colorbar(self.mesh_, ax=ax, pad=0.02)
        bar.set_label(part_of("effect", self.values, self.part), fontsize="small")
        bar.ax.tick_params(labelsize="small")
        bar.outline.set_visible(False)
        # Lines between the values of a factor would mean nothing.
        if not (first.discrete or second.discrete) and np.ptp(effect) > 0:
            self._draw_contours(ax, highest)
        self._draw_quantiles(ax)
        width, height = inches(ax)
        ax.set(xlabel=_label(first.name, width), ylabel=_label(second.name, height))

    def _draw_contours(self, ax: Any, highest: float) -> None:
        from matplotlib.ticker import MaxNLocator

        levels = np.asarray(MaxNLocator(_LEVELS, symmetric=True).tick_values(-highest, highest))
        lines = ax.contour(
            self.inputs[0].values,
            self.inputs[1].values,
            self.drawn.T,
            levels=levels,
            colors=INK,
            linewidths=np.where(np.isclose(levels, 0), 1.4, 0.7),
            linestyles=np.where(levels < 0, "dashed", "solid").tolist(),
        )
        ax.clabel(lines, fontsize="x-small", fmt="%g")

    def _draw_quantiles(self, ax: Any) -> None:
        """Short ticks inside the lower and the left edge."""
        style = {"color": INK, "linewidth": 0.8}
        for seen, transform, draw in (
            (self.inputs[0], ax.get_xaxis_transform(), ax.vlines),
            (self.inputs[1], ax.get_yaxis_transform(), ax.hlines),
        ):
            if not seen.discrete:
                low, high = seen.values[0], seen.values[-1]
                inside = seen.quantiles[(seen.quantiles >= low) & (seen.quantiles <= high)]
                draw(inside, 0, 0.025, transform=transform, **style)
        first, second = self.inputs
        for seen, ticks in ((first, ax.set_xticks), (second, ax.set_yticks)):
            if seen.discrete and len(seen.values) <= 8:
                ticks(seen.values)

    def table(self) -> Table:
        """A row for each point drawn: the variables, and the `effect`."""
        points = grid_points([seen.values for seen in self.inputs])
        effect = "effect"
        while effect in self.variables:
            effect += "_"
        columns = dict(zip(self.variables, points.T, strict=True))
        return Table({**columns, effect: self.values.ravel()})


def _label(name: str, length: float) -> str:
    """A name that fits along an axis of so many inches."""
    return shorten([name], min(letters_along(length), NAME_LENGTH))[0]
