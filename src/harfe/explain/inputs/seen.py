"""An input as seen in the rows of a fit: where functions of it are evaluated and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe.explain.inputs.summary import InputSummary
from harfe.model.expansion import Expansion

# Bins of the density below a curve.
_BINS = 24


@dataclass(frozen=True)
class SeenInput:
    """An input as seen in the rows of the fit, clipped but not warped.

    Attributes
    ----------
    name : str
    lower, upper : float
        Smallest and largest value.
    quantiles : array
        At equally spaced levels from 0 to 1.
    values : array or None
        All values of an input that has few, such as a factor; None for any other input.
    shares : array or None
        Share of the rows at each of `values`.
    """

    name: str
    lower: float
    upper: float
    quantiles: NDArray[np.float64]
    values: NDArray[np.float64] | None = None
    shares: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, expansion: Expansion, kept: InputSummary, k: int) -> SeenInput:
        """Read input k from the summary of a fit."""
        seen = np.concatenate([kept.quantiles[:, k], [kept.lower[k], kept.upper[k]]])
        column, nodes = np.array([k]), kept.distribution.nodes[k]
        mapped, values = seen, nodes
        if expansion.map is not None:
            seen = expansion.map.clip(seen[:, None], column)[:, 0]
            mapped = expansion.map.warp(seen[:, None], column)[:, 0]
            values = expansion.map.inverse(nodes[:, None], column)[:, 0]
        quantiles, (lower, upper) = seen[:-2], seen[-2:]
        name = expansion.columns[k]
        # A rule with a node at every quantile is the distribution itself, not a quadrature of it.
        if len(nodes) > 1 and np.isin(mapped, nodes).all():
            # The inverse is off by rounding; the quantiles are values as given.
            values = values.copy()
            values[np.searchsorted(nodes, mapped)] = seen
            return cls(name, lower, upper, quantiles, values, kept.distribution.weights[k])
        return cls(name, lower, upper, quantiles)

    def values_if_at_most(self, number: int) -> NDArray[np.float64] | None:
        """All values, if the input has few and at most this many; None otherwise."""
        return self.values if self.values is not None and len(self.values) <= number else None

    @property
    def bulk(self) -> tuple[float, float]:
        """The observed range, each tail cut at half the distance between the outer quantiles."""
        lowest, inner_low, inner_high, highest = self.quantiles[[0, 1, -2, -1]]
        if inner_low == inner_high:
            return float(lowest), float(highest)
        tail = (inner_high - inner_low) / 2
        return float(max(lowest, inner_low - tail)), float(min(highest, inner_high + tail))

    def density(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Edges of equal bins over the bulk, and the share of the rows in each bin.

        For an input with few values: the values, and the share of the rows at each.
        """
        if self.values is not None and self.shares is not None:
            return self.values, self.shares
        edges = np.linspace(*self.bulk, _BINS + 1)
        below = np.interp(edges, self.quantiles, np.linspace(0, 1, len(self.quantiles)))
        # A value shared by many rows belongs to the bin that starts with it.
        if edges[0] <= self.quantiles[0]:
            below[0] = 0.0
        return edges, np.diff(below)


def grid_points(grids: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """All points of a grid, the last input varying fastest."""
    axes = np.meshgrid(*grids, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)
