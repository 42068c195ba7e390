"""Inputs scaled for rivals without random features: standardised, or to the unit cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe.features.units import measure_units


@dataclass(frozen=True)
class Scaling:
    """An affine map of the inputs that vary; constant inputs are left out.

    Attributes
    ----------
    columns : int array
        The inputs that vary, in their order.
    centre, spread : arrays like `columns`
    clips : bool
        Whether scaled values are clipped to [0, 1]: values outside the training range are moved
        to its nearest end.
    """

    columns: NDArray[np.intp]
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    clips: bool = False

    @classmethod
    def standard(cls, X: NDArray[np.float64]) -> Scaling:
        """Scale to mean 0 and standard deviation 1 on these rows."""
        units = measure_units(X, np.ones(len(X)), "standard")
        columns = np.flatnonzero(np.isfinite(units.spread))
        return cls(columns, units.centre[columns], units.spread[columns])

    @classmethod
    def unit_cube(cls, X: NDArray[np.float64]) -> Scaling:
        """Scale to [0, 1] on these rows."""
        columns = cls.standard(X).columns
        low, high = X[:, columns].min(axis=0), X[:, columns].max(axis=0)
        # Halved, so that the range of the largest doubles is finite; `apply` halves as well.
        return cls(columns, low, high / 2 - low / 2, clips=True)

    def apply(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scaled inputs, (rows, inputs that vary)."""
        X = X[:, self.columns]
        if not self.clips:
            scaled: NDArray[np.float64] = (X - self.centre) / self.spread
            return scaled
        return np.clip((X / 2 - self.centre / 2) / self.spread, 0.0, 1.0)
