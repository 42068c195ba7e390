"""Which component of a fitted model a user means, and the function that it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harfe._core.arguments import is_whole
from harfe.display._drawing import nearest
from harfe.explain.anova import Anova, anova
from harfe.explain.overall import Explanation, resolve_distribution
from harfe.model.terms import IndexSet, name_of


def model_anova(model: Any, inputs: Any, target: int) -> Anova:
    """Take the function of a fitted model apart, for its components as functions."""
    distribution = resolve_distribution(inputs, model.inputs_, model.expansion_)
    return anova(model.expansion_, distribution, target)


def resolve_component(
    component: Any, columns: tuple[str, ...], explanation: Explanation
) -> IndexSet:
    """Variables of a component that is given by their names or numbers, or by its own name."""
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
            f"component={component!r} has {len(u)} variables, which no map can show; draw those of "
            f"one or two, e.g. component={name_of(u[:2], columns)!r}"
        )
    if name_of(u, columns) not in names:
        drawable = [n for n, q in zip(names, table.columns["order"], strict=True) if q <= 2]
        instead = "it has none, since it is constant"
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
        f"component={component!r}: {variable!r} is no input; the nearest names are "
        f"{nearest(variable, columns)}, and numbers go from 0 to {len(columns) - 1}"
    )
