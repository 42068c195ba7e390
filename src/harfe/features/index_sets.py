"""Random index sets: which inputs a feature depends on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class IndexSets:
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
        tables = [log_symmetric(self._log_p(g), min(self.order, len(g))) for g in members]
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "tables", tables)

    def _log_p(self, members: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logarithm of p in units of the largest; the ratio itself could underflow."""
        return np.asarray(np.log(self.p[members]) - np.log(self.unit))

    @property
    def unit(self) -> float:
        """The largest weight: only ratios of the weights matter, and none may overflow."""
        return float(self.p.max())

    @property
    def sizes(self) -> list[int]:
        """Size of the sets from each group: the order, or the whole group."""
        return [table.shape[0] - 1 for table in self.tables]

    @property
    def log_total(self) -> float:
        """Logarithm of Σ Π p over the sets of all groups, p in units of the largest."""
        return float(np.logaddexp.reduce([table[-1, 0] for table in self.tables]))

    def inclusion(self) -> NDArray[np.float64]:
        """Probability that a set contains each variable; groups must not overlap."""
        out = np.zeros(len(self.p))
        for members, behind in zip(self.members, self.tables, strict=True):
            log_p = self._log_p(members)
            degree = len(behind) - 1
            ahead = log_symmetric(log_p[::-1], degree)[:, ::-1]
            # Sets with variable i: r members before it and degree - 1 - r after it.
            parts = [ahead[r, :-1] + behind[degree - 1 - r, 1:] for r in range(degree)]
            out[members] += np.exp(log_p + np.logaddexp.reduce(parts) - self.log_total)
        return out

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
        """One index set for each row of uniform numbers, and the group it comes from."""
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
        """Whether no earlier group contains the same set: overlaps must not count twice."""
        first = np.ones(len(sets), dtype=bool)
        size = (sets >= 0).sum(axis=1)
        for g, (members, table) in enumerate(zip(self.members[:-1], self.tables, strict=False)):
            inside = np.isin(sets, np.append(members, -1)).all(axis=1)
            first &= ~((group > g) & inside & (size == table.shape[0] - 1))
        return first


def log_symmetric(log_p: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Logarithm of e_r(p_i, p_{i+1}, ...) at [r, i] for r = 0 .. degree, summed stably."""
    d = len(log_p)
    table = np.full((degree + 1, d + 1), -np.inf)
    table[0] = 0.0
    for i in range(d - 1, -1, -1):
        table[1:, i] = np.logaddexp(table[1:, i + 1], log_p[i] + table[:-1, i + 1])
    return table
