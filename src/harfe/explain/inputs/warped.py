"""Distributions of a warped input that is uniform or normal in the user's units.

    E h(z(x)) = Σ_panels ∫ h(z(x)) p(x) dx + (what lies beyond the bounds) · h there

Panels are so short, in x and in z, that a few Gauss-Legendre nodes on each are exact to rounding;
the nodes of all panels are then replaced by one Gauss rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from harfe.explain.inputs.distribution import MOST_NODES, PLAIN_NODES
from harfe.explain.inputs.quadrature import NORMAL_REACH, Rule, gauss_of_points, nodes_needed
from harfe.features.units import InputMap, Rank

_PANELS, _NODES = 64, 20


def warped_uniform(
    own: InputMap, lower: float, upper: float, largest_frequency: float | None
) -> Rule:
    """Rule for an input that is uniform between two values.

    Parameters
    ----------
    own : InputMap
        Of this input alone.
    lower, upper : float
        Different; within the bounds.
    largest_frequency : float or None
        As for `InputDistribution.uniform`.
    """
    return _reduced(own, *_panels(own, lower, upper), largest_frequency)


def warped_normal(
    own: InputMap, mean: float, deviation: float, largest_frequency: float | None
) -> Rule:
    """Rule for an input that is normal before it is clipped; parameters as for `warped_uniform`."""
    reach = NORMAL_REACH * deviation
    lower, upper = own.clip(np.array([[mean - reach], [mean + reach]]))[:, 0]
    points, widths = _panels(own, lower, upper)
    density = np.exp(-(((points - mean) / deviation) ** 2) / 2) / np.sqrt(2 * np.pi)
    beyond = ndtr([(lower - mean) / deviation, (mean - upper) / deviation])
    points = np.concatenate([[lower], points, [upper]])
    weights = np.concatenate([beyond[:1], density * (widths / deviation), beyond[1:]])
    return _reduced(own, points, weights, largest_frequency)


def _panels(
    own: InputMap, lower: float, upper: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Legendre nodes and weights on panels between two values."""
    first, last = own.warp(np.array([[lower], [upper]]))[:, 0]
    even = own.inverse(np.linspace(first, last, _PANELS + 1)[:, None])[:, 0]
    warp = own.warp_of(0)
    knots = warp.knots if isinstance(warp, Rank) else np.empty(0)
    breaks = np.concatenate([np.linspace(lower, upper, _PANELS + 1), even, knots])
    breaks = np.unique(np.clip(breaks, lower, upper))
    x, w = np.polynomial.legendre.leggauss(_NODES)
    left, half = breaks[:-1, None], np.diff(breaks)[:, None] / 2
    return (left + half * (1 + x)).ravel(), (half * w).ravel()


def _reduced(
    own: InputMap,
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    largest_frequency: float | None,
) -> Rule:
    """Map points and replace them by as few nodes as the frequency needs."""
    nodes, place = np.unique(own.warp(points[:, None])[:, 0], return_inverse=True)
    shares = np.bincount(place.ravel(), weights / weights.sum()).astype(float)
    nodes, shares = nodes[shares > 0], shares[shares > 0]
    n = PLAIN_NODES
    if largest_frequency is not None:
        n = min(nodes_needed(largest_frequency * (nodes[-1] - nodes[0])), MOST_NODES)
    return gauss_of_points(nodes, shares, n)
