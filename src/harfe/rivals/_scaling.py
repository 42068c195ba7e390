"""Inputs as a rival without random features sees them: standardised, or within the unit cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe.features.units import measure_units


@dataclass(frozen=True)
class Scaling:
    """An affine map of the inputs that vary; the others are left out.

    Attributes
    ----------
    columns : int array
        The inputs that vary, in their order.
    centre, spread : arrays like `columns`
    clips : bool
        Whether values are clipped to [0, 1] afterwards: rows outside the range that was seen are
        taken as if they stood at its end.
    """

    columns: NDArray[np.intp]
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    clips: bool = False

    @classmethod
    def standard(cls, X: NDArray[np.float64]) -> Scaling:
        """Mean 0 and deviation 1 on these rows."""
        units = measure_units(X, np.ones(len(X)), "standard")
        columns = np.flatnonzero(np.isfinite(units.spread))
        return cls(columns, units.centre[columns], units.spread[columns])

    @classmethod
    def unit_cube(cls, X: NDArray[np.float64]) -> Scaling:
        """From 0 to 1 on these rows."""
        columns = cls.standard(X).columns
        low, high = X[:, columns].min(axis=0), X[:, columns].max(axis=0)
        # Halves, so that the largest doubles have a finite difference; doubled again in `apply`.
        return cls(columns, low, high / 2 - low / 2, clips=True)

    def apply(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scaled inputs, (rows, inputs that vary)."""
        X = X[:, self.columns]
        if not self.clips:
            scaled: NDArray[np.float64] = (X - self.centre) / self.spread
            return scaled
        return np.clip((X / 2 - self.centre / 2) / self.spread, 0.0, 1.0)
