"""Restoring all N features that a fit drew, without storing them.

Feature j is a function of the seed, j and the law, converted to the user's units. So a few numbers
describe all features except those with trained weights.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.features.units import InputUnits

# Rounding of sums on another machine, in units of the sum of magnitudes.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PoolOrigin:
    """What it takes, besides law and seed, to restore a pool.

    Attributes
    ----------
    units : InputUnits
        Units in which it was drawn.
    places : int array of shape (trained,)
        Places of the features that differ from those drawn, ascending.
    features : FeaturePool
        The features at these places.
    index_digest : str
        SHA-256 of the drawn index sets.
    totals : array of shape (4,)
        Sums of the drawn weights and phases, and of their magnitudes.
    """

    units: InputUnits
    places: NDArray[np.intp]
    features: FeaturePool
    index_digest: str
    totals: NDArray[np.float64]

    @classmethod
    def of(cls, pool: FeaturePool, law: Law, seed: int, units: InputUnits) -> PoolOrigin:
        """Compare a pool with the one drawn by law and seed."""
        drawn = _draw(law, len(pool), seed, units)
        same = (
            np.all(pool.indices == drawn.indices, axis=1)
            & np.all(pool.values == drawn.values, axis=1)
            & (pool.phases == drawn.phases)
        )
        places = np.flatnonzero(~same)
        return cls(units, places, pool.take(places), _digest(drawn), _totals(drawn))

    def draw(self, law: Law, n: int, seed: int) -> FeaturePool:
        """Draw the pool again; warns if the result differs from the original."""
        drawn = _draw(law, n, seed, self.units)
        totals = _totals(drawn)
        near = np.abs(totals - self.totals)[:2] <= _ROUNDING * totals[2:]
        if _digest(drawn) != self.index_digest or not np.all(near):
            warnings.warn(
                "The features drawn for this model cannot be reproduced: this version of NumPy or "
                "harfe draws others. Predictions do not depend on them; weights_, bias_ and pool "
                "shares are correct for the kept features only",
                UserWarning,
                stacklevel=2,
            )
        return drawn.replaced(self.places, self.features)


def _draw(law: Law, n: int, seed: int, units: InputUnits) -> FeaturePool:
    return law.draw(n, np.random.default_rng(seed)).in_user_units(units)


def _digest(pool: FeaturePool) -> str:
    return hashlib.sha256(pool.indices.astype("<i8").tobytes()).hexdigest()


def _totals(pool: FeaturePool) -> NDArray[np.float64]:
    numbers = (pool.values, pool.phases)
    return np.array([v.sum() for v in numbers] + [np.abs(v).sum() for v in numbers])
