"""The non-negative garrote of COSSO, along a path of penalties."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harfe._core.compiling import compiled

# Stop when no θ changes the fit by more than this share of the target, or after this many sweeps.
_TOLERANCE = 1e-6
_SWEEPS = 2000


@compiled()
def _sweep(gram, half, theta, slope):  # type: ignore[no-untyped-def]
    """Minimise over one θ at a time; returns the largest change of the fit."""
    largest = 0.0
    for a in range(len(theta)):
        if gram[a, a] > 0.0:
            step = max(0.0, theta[a] + (slope[a] - half) / gram[a, a]) - theta[a]
            if step != 0.0:
                theta[a] += step
                for b in range(len(theta)):
                    slope[b] -= step * gram[a, b]
                largest = max(largest, abs(step) * np.sqrt(gram[a, a]))
    return largest


@compiled()
def _descend(gram, moment, half, theta, tolerance, sweeps):  # type: ignore[no-untyped-def]
    """Minimise θᵀQθ - 2(r - λ/2)ᵀθ over θ ≥ 0 from a start, which is overwritten.

    Most sweeps run over the non-zero θ only, with their own Gram matrix.
    """
    slope = np.empty_like(theta)
    for _ in range(sweeps):
        slope[:] = moment
        for a in range(len(theta)):
            if theta[a] != 0.0:
                for b in range(len(theta)):
                    slope[b] -= theta[a] * gram[a, b]
        if _sweep(gram, half, theta, slope) <= tolerance:
            return
        active = np.flatnonzero(theta)
        small = np.empty((len(active), len(active)))
        for i in range(len(active)):
            small[i] = gram[active[i]][active]
        part = theta[active]
        rest = slope[active]
        for _ in range(sweeps):
            if _sweep(small, half, part, rest) <= tolerance:
                break
        theta[active] = part


def garrote_path(
    G: NDArray[np.float64], z: NDArray[np.float64], shares: Sequence[float]
) -> NDArray[np.float64]:
    """Minimise (1/m)‖z - Gθ‖² + λΣθ over θ ≥ 0, for λ as shares of the least λ with θ = 0.

    Returns θ, (shares, components). The shares should descend: each solution starts from the one
    before.
    """
    m = len(z)
    gram, moment = G.T @ G / m, G.T @ z / m
    most = max(float(moment.max()), 0.0)
    theta = np.zeros(len(moment))
    tolerance = _TOLERANCE * float(np.sqrt(np.mean(z**2)))
    path = np.empty((len(shares), len(theta)))
    for place, share in enumerate(shares):
        _descend(gram, moment, share * most, theta, tolerance, _SWEEPS)
        path[place] = theta
    return path
