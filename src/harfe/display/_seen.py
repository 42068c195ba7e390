"""What a figure shows of an input: where curves are drawn, and where the rows of the fit lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe.explain.inputs.summary import InputSummary
from harfe.features.units import InputBounds

# Bins of the density below a curve.
_BINS = 24


@dataclass(frozen=True)
class SeenInput:
    """An input as the rows of the fit had it.

    Attributes
    ----------
    name : str
    values : array
        Where the function is drawn: evenly over the range seen, or all values of an input that has
        few. Tails far beyond the bulk of the rows are left out.
    discrete : bool
        Whether `values` are all values that the input has.
    edges : array
        Edges of the bins of the density; the values themselves if `discrete`.
    shares : array
        Share of the rows in each bin, or at each value.
    quantiles : array
        At equally spaced levels, of the (clipped) rows.
    """

    name: str
    values: NDArray[np.float64]
    discrete: bool
    edges: NDArray[np.float64]
    shares: NDArray[np.float64]
    quantiles: NDArray[np.float64]

    @classmethod
    def of(
        cls, name: str, kept: InputSummary, bounds: InputBounds | None, k: int, number: int
    ) -> SeenInput:
        """Look at what the fit kept of input k, for a curve of so many points."""
        quantiles, nodes = kept.quantiles[:, k], kept.distribution.nodes[k]
        if bounds is not None:
            quantiles = np.clip(quantiles, bounds.lower[k], bounds.upper[k])
        if len(nodes) > 1 and np.isin(quantiles, nodes).all():
            return cls(name, nodes, True, nodes, kept.distribution.weights[k], quantiles)
        low, high = _bulk(quantiles)
        edges = np.linspace(low, high, _BINS + 1)
        return cls(
            name,
            np.linspace(low, high, number),
            False,
            edges,
            np.diff(_share_below(quantiles, edges)),
            quantiles,
        )


def _bulk(quantiles: NDArray[np.float64]) -> tuple[float, float]:
    """The range seen, without tails longer than half of what lies between the outer quantiles."""
    lowest, inner_low, inner_high, highest = quantiles[[0, 1, -2, -1]]
    if inner_low == inner_high:
        return float(lowest), float(highest)
    tail = (inner_high - inner_low) / 2
    return float(max(lowest, inner_low - tail)), float(min(highest, inner_high + tail))


def _share_below(quantiles: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the rows below each edge: what the quantiles say, straight lines between them."""
    levels = np.linspace(0, 1, len(quantiles))
    below = np.interp(edges, quantiles, levels)
    # A value that many rows have belongs to the bin that begins with it.
    if edges[0] <= quantiles[0]:
        below[0] = 0.0
    return below
