"""The parameters that describe a law: the table of laws of the weights; orders, numbers, groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_choice, check_count, is_whole

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WeightLaw:
    """A law of the weights with all of its parts.

    The kernel of a law of the features is built from the characteristic function of its weights:
    that of Student's t with 1, 3 and 5 degrees of freedom is the Matérn function of order 1/2, 3/2
    and 5/2, for functions that are rougher than those of normal weights.

    Attributes
    ----------
    code : int
        Its branch in `harfe.features.law_kernels`.
    draw : callable
        (generator, shape) -> weights at scale 1, filled row by row.
    rates : callable
        Scales -> the factors of differences, or of their squares, in the characteristic function.
    """

    code: int
    draw: Callable[[np.random.Generator, tuple[int, int]], Array]
    rates: Callable[[Array], Array]


def _student(code: int, freedom: int) -> WeightLaw:
    return WeightLaw(
        code,
        lambda rng, shape: rng.standard_t(freedom, shape),
        lambda scales: np.sqrt(freedom) * scales,
    )


#: Laws of the weights, the only place that lists them.
WEIGHT_LAWS = {
    "normal": WeightLaw(
        0, lambda rng, shape: rng.standard_normal(shape), lambda scales: scales**2 / 2
    ),
    "uniform": WeightLaw(
        1, lambda rng, shape: rng.uniform(-1.0, 1.0, shape), lambda scales: scales
    ),
    "cauchy": _student(2, 1),
    "t3": _student(3, 3),
    "t5": _student(4, 5),
}

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
