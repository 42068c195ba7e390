"""The law of the features as a value, and what is drawn from it.

A feature is φ(<x, w> + b) with a weight vector w that touches only a few variables. The law says
how such features are drawn: how many variables (the order q), which ones, weights and phases. It
knows nothing of rows, targets or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.arguments import check_choice, check_count, is_number, is_whole
from harfe.pool import FeaturePool

ACTIVATIONS = ("sin", "cos", "tanh", "sigmoid", "relu", "exp")
WEIGHTS = ("normal", "uniform")
BIASES = ("phase", "uniform", "none")


@dataclass(frozen=True)
class FeatureLaw:
    """How a feature is drawn.

    Feature j takes the order ``orders[j % len(orders)]``; its index set S of that size has
    probability proportional to Π_{k in S} p_k over all sets that the constraint allows (p in units
    of the largest, which matters only if small groups make sets of unequal size); its weights
    are N(0, σ_k²) or U[-σ_k, σ_k]; its phase is U[0, 2π], U[-1, 1] or 0. Feature j is a function of
    the seed, j and the law alone: a larger pool extends a smaller one.

    Parameters
    ----------
    n_variables : int
        Number of inputs d.
    orders : tuple of int
        One q, or several for a mixed pool with equal parts.
    weights : {"normal", "uniform"}
    scale : tuple of float
        Standard deviation (normal) or half-width (uniform) of the weights; one for all variables,
        or one each.
    bias : {"phase", "uniform", "none"}
        U[0, 2π], U[-1, 1] or no bias.
    activation : {"sin", "cos", "tanh", "sigmoid", "relu", "exp"}
    variable_weights : tuple of float or None
        p_k >= 0, how often each input is drawn; None draws all alike.
    groups : tuple of tuples of int or None
        Only variables of one group may meet in a feature. From a group smaller than the order the
        whole group is drawn.
    """

    n_variables: int
    orders: tuple[int, ...] = (2,)
    weights: str = "normal"
    scale: tuple[float, ...] = (1.0,)
    bias: str = "phase"
    activation: str = "sin"
    variable_weights: tuple[float, ...] | None = None
    groups: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("weights", self.weights, WEIGHTS)
        check_choice("bias", self.bias, BIASES)
        d = self.n_variables
        for q in self.orders:
            check_count("order", q, 2)
            if q > d:
                raise ValueError(
                    f"order={q} is larger than the number of inputs, {d}; pass order={d} or less"
                )
        if not self.orders:
            raise ValueError("order=() names no order; pass e.g. order=2 or order=(1, 2)")
        if len(self.scale) not in (1, d) or not all(
            is_number(v) and 0 < v < np.inf for v in self.scale
        ):
            raise ValueError(
                f"scale={_brief(self.scale)} must be one positive number or one for each of the "
                f"{d} inputs, e.g. scale=1.0"
            )
        self._check_variable_weights()
        self._check_groups()

    def _check_groups(self) -> None:
        d, drawn = self.n_variables, np.flatnonzero(self._p())
        if self.groups is None:
            return
        for group in self.groups:
            if not all(is_whole(k) and 0 <= k < d for k in group):
                raise ValueError(f"groups={self.groups!r} must hold indices from 0 to {d - 1}")
        if not any(set(group) & set(drawn) for group in self.groups):
            raise ValueError(
                f"groups={self.groups!r} leaves no input to draw; name one of positive weight"
            )

    def _check_variable_weights(self) -> None:
        p, d = self.variable_weights, self.n_variables
        if p is None:
            return
        if len(p) != d or not all(is_number(v) and 0 <= v < np.inf for v in p):
            raise ValueError(
                f"variable_weights={_brief(p)} must hold one finite number >= 0 for each of the "
                f"{d} inputs; pass None to draw all alike"
            )
        positive = sum(v > 0 for v in p)
        if positive < max(self.orders):
            raise ValueError(
                f"variable_weights={_brief(p)} leaves {positive} inputs to draw from, but "
                f"order={max(self.orders)} needs as many; lower the order or raise some weights"
            )

    @classmethod
    def from_settings(
        cls,
        n_variables: int,
        *,
        order: Any = "auto",
        weights: str = "normal",
        scale: Any = 1.0,
        bias: str = "phase",
        activation: str = "sin",
        interaction_cst: Any = None,
        variable_weights: Any = None,
        names: Sequence[str] | None = None,
    ) -> FeatureLaw:
        """Make the law that the plain parameters of the estimators describe.

        `order` "auto" is 2, or 1 for a single input. `interaction_cst` speaks the language of
        ``HistGradientBoostingRegressor``: "no_interactions", "pairwise", or sets of indices or
        names; variables in no set form one more. A constraint caps the order.
        """
        orders = _orders(order, n_variables)
        groups = None
        if isinstance(interaction_cst, str):
            caps = {"no_interactions": 1, "pairwise": 2}
            check_choice("interaction_cst", interaction_cst, tuple(caps))
            orders = tuple(min(q, caps[interaction_cst]) for q in orders)
        elif interaction_cst is not None:
            groups = _groups(interaction_cst, n_variables, names)
        return cls(
            n_variables=n_variables,
            orders=orders,
            weights=weights,
            scale=_numbers("scale", scale),
            bias=bias,
            activation=activation,
            variable_weights=None
            if variable_weights is None
            else _numbers("variable_weights", variable_weights),
            groups=groups,
        )

    def draw(self, n: int, rng: np.random.Generator) -> FeaturePool:
        """Draw n features; the first ones do not depend on n."""
        # One stream per quantity, filled row by row, is what makes larger pools extensions.
        value_stream, phase_stream, *index_streams = rng.spawn(2 + len(self.orders))
        widest = max(self.orders)
        indices = np.full((n, widest), -1, dtype=np.intp)
        for part, (q, stream) in enumerate(zip(self.orders, index_streams, strict=True)):
            mine = slice(part, None, len(self.orders))
            sampler = _IndexSets(q, self._p(), self.groups)
            indices[mine, :q] = sampler.draw(len(indices[mine]), stream)
        if self.weights == "normal":
            values = value_stream.standard_normal((n, widest))
        else:
            values = value_stream.uniform(-1.0, 1.0, (n, widest))
        scale = np.broadcast_to(np.asarray(self.scale, dtype=float), (self.n_variables,))
        values = np.where(indices >= 0, values * scale[indices], 0.0)
        low, high = {"phase": (0.0, 2 * np.pi), "uniform": (-1.0, 1.0), "none": (0.0, 0.0)}[
            self.bias
        ]
        phases = phase_stream.uniform(low, high, n)
        return FeaturePool(self.n_variables, indices, values, phases, self.activation)

    def _p(self) -> NDArray[np.float64]:
        if self.variable_weights is None:
            return np.ones(self.n_variables)
        return np.asarray(self.variable_weights, dtype=float)


def _orders(order: Any, n_variables: int) -> tuple[int, ...]:
    if isinstance(order, str):
        check_choice("order", order, ("auto",))
        return (min(2, n_variables),)
    orders = tuple(order) if np.ndim(order) else (order,)
    for q in orders:
        check_count("order", q, 2)
    return orders


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    try:
        array = np.atleast_1d(np.asarray(value))
    except ValueError:  # ragged lists
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise ValueError(f"{name}={value!r} must be a number or a list of numbers")
    return tuple(array.astype(float).tolist())


def _brief(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return repr(values[0])
    shown = ", ".join(repr(v) for v in values[:5])
    return f"[{shown}{', ...' if len(values) > 5 else ''}]"


def _groups(
    constraint: Any, n_variables: int, names: Sequence[str] | None
) -> tuple[tuple[int, ...], ...]:
    """Resolve sets of indices or names; the variables that no set names form one more set."""
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


@dataclass(frozen=True)
class _IndexSets:
    """Draws index sets S of one size with P(S) ∝ Π_{k in S} p_k over all allowed sets.

    With e_r(>= i) the elementary symmetric polynomial of degree r of p_i, p_{i+1}, ..., the next
    member after i - 1, with r still to choose, is at j or beyond with probability
    e_r(>= j) / e_r(>= i): one uniform number and one search in a falling table for each member.
    """

    order: int
    p: NDArray[np.float64]
    groups: tuple[tuple[int, ...], ...] | None
    members: list[NDArray[np.intp]] = field(init=False)
    tables: list[NDArray[np.float64]] = field(init=False)

    def __post_init__(self) -> None:
        groups = self.groups or (tuple(range(len(self.p))),)
        members = [np.array([k for k in g if self.p[k] > 0], dtype=np.intp) for g in groups]
        members = [g for g in members if len(g)]
        # Relative to the largest: only ratios of the weights count, and none may overflow.
        top = np.log(self.p.max())
        tables = [_log_symmetric(np.log(self.p[g]) - top, min(self.order, len(g))) for g in members]
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "tables", tables)

    def draw(self, n: int, stream: np.random.Generator) -> NDArray[np.intp]:
        """Draw n index sets, ascending, padded with -1."""
        found = [np.empty((0, self.order), dtype=np.intp)]
        missing = n
        while missing > 0:
            sets, group = self._attempt(stream.random((missing, 1 + self.order)))
            kept = sets[self._is_first(sets, group)]
            found.append(kept)
            missing -= len(kept)
        return np.concatenate(found)[:n]

    def _attempt(self, u: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """One index set a row of uniform numbers, and the group it came from."""
        log_mass = np.array([table[-1, 0] for table in self.tables])
        mass = np.exp(log_mass - log_mass.max())
        edges = np.cumsum(mass) / mass.sum()
        group = np.minimum(np.searchsorted(edges, u[:, 0], side="right"), len(edges) - 1)
        sets = np.full((len(u), self.order), -1, dtype=np.intp)
        for g, (members, table) in enumerate(zip(self.members, self.tables, strict=True)):
            mine = np.flatnonzero(group == g)
            start = np.zeros(len(mine), dtype=np.intp)
            degree = table.shape[0] - 1
            for step in range(degree):
                falling = table[degree - step]
                # 1 - u is in (0, 1]: its logarithm is finite.
                level = np.log1p(-u[mine, 1 + step]) + falling[start]
                position = np.searchsorted(-falling, -level, side="right") - 1
                position = np.clip(position, start, len(members) - (degree - step))
                sets[mine, step] = members[position]
                start = position + 1
        return sets, group

    def _is_first(self, sets: NDArray[np.intp], group: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether no earlier group offers the same set: overlaps must not count twice."""
        first = np.ones(len(sets), dtype=bool)
        size = (sets >= 0).sum(axis=1)
        for g, (members, table) in enumerate(zip(self.members[:-1], self.tables, strict=False)):
            inside = np.isin(sets, np.append(members, -1)).all(axis=1)
            first &= ~((group > g) & inside & (size == table.shape[0] - 1))
        return first


def _log_symmetric(log_p: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Logarithm of e_r(p_i, p_{i+1}, ...) at [r, i] for r = 0 .. degree; stable sums."""
    d = len(log_p)
    table = np.full((degree + 1, d + 1), -np.inf)
    table[0] = 0.0
    for i in range(d - 1, -1, -1):
        table[1:, i] = np.logaddexp(table[1:, i + 1], log_p[i] + table[:-1, i + 1])
    return table
