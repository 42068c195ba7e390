"""Resolve the component of a fitted model to draw, and the grid to draw it on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import is_whole
from harfe.display._drawing import nearest
from harfe.explain.anova import Anova, anova
from harfe.explain.inputs.seen import SeenInput
from harfe.explain.overall import Explanation, resolve_distribution
from harfe.model.terms import IndexSet, name_of

# Points along an axis of a curve and of a map.
_CURVE, _MAP = 200, 60


def drawn_grids(inputs: Sequence[SeenInput]) -> list[NDArray[np.float64]]:
    """Where to draw a component: evenly over the bulk, or at all values of an input with few."""
    number = _CURVE if len(inputs) == 1 else _MAP
    return [
        np.linspace(*seen.bulk, number) if seen.values is None else seen.values for seen in inputs
    ]


def model_anova(model: Any, inputs: Any, target: int) -> Anova:
    """Decompose the function of a fitted model into components that can be evaluated."""
    distribution = resolve_distribution(inputs, model.inputs_, model.expansion_)
    return anova(model.expansion_, distribution, target)


def resolve_component(
    component: Any, columns: tuple[str, ...], explanation: Explanation
) -> IndexSet:
    """Return the inputs of a component given by their names or numbers, or by its own name."""
    table = explanation.components
    names = table.columns["component"]
    if isinstance(component, str) and component in names:
        given: Any = table.columns["variables"][names.index(component)]
    else:
        given = component
        if isinstance(given, str) and given not in columns and " : " in given:
            given = given.split(" : ")
        if isinstance(given, str) or not isinstance(given, Iterable):
            given = [given]
    u = tuple(sorted({_place(variable, component, columns) for variable in given}))
    if len(u) > 2:
        raise ValueError(
            f"component={component!r} has {len(u)} inputs, too many to draw; choose one with one "
            f"or two, e.g. component={name_of(u[:2], columns)!r}"
        )
    if name_of(u, columns) not in names:
        drawable = [n for n, q in zip(names, table.columns["order"], strict=True) if q <= 2]
        instead = "it has no components, since it is constant"
        if drawable:
            instead = f"the largest are {', '.join(map(repr, drawable[:3]))}"
        raise ValueError(f"component={component!r} is not part of the fitted function; {instead}")
    return u


def _place(variable: Any, component: Any, columns: tuple[str, ...]) -> int:
    if isinstance(variable, str) and variable in columns:
        return columns.index(variable)
    if is_whole(variable) and 0 <= variable < len(columns):
        return int(variable)
    raise ValueError(
        f"component={component!r}: {variable!r} is not an input; the nearest names are "
        f"{nearest(variable, columns)}, and numbers go from 0 to {len(columns) - 1}"
    )
