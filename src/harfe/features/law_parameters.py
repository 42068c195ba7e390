"""Resolves the plain parameters of the estimators that describe a law: orders, numbers, groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harfe._core.arguments import check_choice, check_count, is_whole

#: Inputs that features may combine under each named constraint, in scikit-learn's words.
CAPS = {"no_interactions": 1, "pairwise": 2}


def resolve_orders(order: Any, n_variables: int) -> tuple[int, ...]:
    """Resolve the orders of a pool; "auto" is 2, or 1 for a single input."""
    if isinstance(order, str):
        check_choice("order", order, ("auto",))
        return (min(2, n_variables),)
    orders = tuple(order) if np.ndim(order) else (order,)
    for q in orders:
        check_count("order", q, 2)
    return orders


def resolve_numbers(name: str, value: Any) -> tuple[float, ...]:
    """Return one number or several as a tuple."""
    try:
        array = np.atleast_1d(np.asarray(value))
    except ValueError:  # ragged lists
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise ValueError(f"{name}={value!r} must be a number or a list of numbers")
    return tuple(array.astype(float).tolist())


def resolve_groups(
    constraint: Any, n_variables: int, names: Sequence[str] | None
) -> tuple[tuple[int, ...], ...]:
    """Resolve sets of indices or names; variables in no set form another set."""
    lookup = {name: index for index, name in enumerate(names or ())}
    groups = []
    try:
        listed = list(constraint)
        flat = any(isinstance(members, str) for members in listed)
        sets = [tuple(members) for members in listed]
    except TypeError:
        flat = True
    if flat:
        raise ValueError(
            f"interaction_cst={constraint!r} must be 'pairwise', 'no_interactions' or a list of "
            "sets, e.g. [{0, 1}, {2}]"
        )
    for members in sets:
        group = set()
        for member in members:
            if isinstance(member, str):
                if member not in lookup:
                    known = ", ".join(lookup) if lookup else "none: X has no column names"
                    raise ValueError(
                        f"interaction_cst names the column {member!r}, which X does not have; "
                        f"its columns are {known}"
                    )
                group.add(lookup[member])
            elif is_whole(member) and 0 <= int(member) < n_variables:
                group.add(int(member))
            else:
                raise ValueError(
                    f"interaction_cst names the input {member!r}; use column names or indices "
                    f"from 0 to {n_variables - 1}"
                )
        if group:
            groups.append(tuple(sorted(group)))
    rest = set(range(n_variables)).difference(*groups)
    if rest:
        groups.append(tuple(sorted(rest)))
    return tuple(dict.fromkeys(groups))
