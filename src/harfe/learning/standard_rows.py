"""Rows prepared for learning a law: distinct, clipped, warped, in units of their deviation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harfe.features.units import InputMap, InputUnits, find_map, measure_units
from harfe.model.link import Link, find_link

#: Of more rows, this many are drawn at random.
MOST_ROWS = 20_000


@dataclass(frozen=True)
class StandardRows:
    """Distinct rows with weights, and inputs and targets of mean 0 and deviation 1.

    Equal rows are merged and their weights added, so that a row of weight 2 and a row given twice
    are the same data, bit for bit. The rows are sorted, so their order does not matter either.

    Attributes
    ----------
    Z : array of shape (rows, inputs)
        Clipped, warped and in units; a constant input is 0.
    t : array of shape (rows, targets)
    weights : array of shape (rows,)
    map, units : InputMap, InputUnits
    centre, unit : arrays of shape (targets,)
        Predictions are t · unit + centre, on the scale of the link.
    link : Link or None
        Scale on which the targets were standardised, if it is not their own.
    """

    Z: NDArray[np.float64]
    t: NDArray[np.float64]
    weights: NDArray[np.float64]
    map: InputMap
    units: InputUnits
    centre: NDArray[np.float64]
    unit: NDArray[np.float64]
    link: Link | None = None

    @classmethod
    def of(
        cls,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        weights: NDArray[np.float64],
        *,
        input_scale: str,
        input_clip: float | None,
        input_warp: str = "none",
        rng: np.random.Generator,
        link: str = "none",
    ) -> StandardRows:
        """Standardise rows of real targets, shape (rows, targets), with positive weights.

        A `link` other than "none" is for a single target; it is found on the rows that are used.
        """
        if len(X) > MOST_ROWS:
            drawn = rng.permutation(len(X))[:MOST_ROWS]
            X, y, weights = X[drawn], y[drawn], weights[drawn]
        # Before any sum, whose last bits would depend on the order of the rows.
        X, y, weights = _distinct(X, y, weights)
        scale = None if link == "none" else find_link(y, weights, link)
        if scale is not None:
            y = scale.forward(y)
        found = find_map(X, weights, input_clip, input_warp, keep_tails=True)
        X = found.apply(X)
        units = measure_units(X, weights, input_scale)
        share = weights / weights.sum()
        largest = np.abs(y).max(axis=0)
        largest[largest == 0] = 1.0
        centre = (share @ (y / largest)) * largest
        unit = np.sqrt(share @ ((y - centre) / largest) ** 2) * largest
        unit = np.where(unit > 1e-13 * largest, unit, 1.0)
        # The map may have made rows equal.
        X, y, weights = _distinct(X, y, weights)
        Z = (X - units.centre) / units.spread
        t = (y - centre) / unit
        return cls(Z, t, weights, found, units, centre, unit, scale)

    @property
    def varying(self) -> NDArray[np.intp]:
        """Inputs that are not constant."""
        return np.flatnonzero(np.isfinite(self.units.spread))

    def subset(self, n: int, rng: np.random.Generator) -> StandardRows:
        """Return at most n of the rows, drawn at random."""
        if len(self.Z) <= n:
            return self
        rows = np.sort(rng.permutation(len(self.Z))[:n])
        return replace(self, Z=self.Z[rows], t=self.t[rows], weights=self.weights[rows])

    def standardise(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Clip and warp other rows and convert them to the same units."""
        return np.asarray((self.map.apply(X) - self.units.centre) / self.units.spread)

    def to_targets(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert predictions to the user's units."""
        predicted = values * self.unit + self.centre
        return predicted if self.link is None else self.link.mean(predicted)


def _distinct(
    X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Sort the rows, and merge equal ones with the sum of their weights."""
    d = X.shape[1]
    rows, place = np.unique(np.hstack([X, y]), axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=weights).astype(float)
    return rows[:, :d], rows[:, d:], total
