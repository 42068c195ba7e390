"""How the law of the features sees the inputs: clipped to bounds, then (x - centre) / spread.

Units are affine maps, so that they can be folded into weights and biases: the fitted function is
stated in the user's units. Bounds cannot be folded in; the fitted function carries them, and only
for inputs that have outliers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

INPUT_SCALES = ("standard", "robust", "none")

# Interquartile range of a normal variable with standard deviation 1.
_NORMAL_IQR = 1.3489795003921634

# Below this share of its largest magnitude a column's spread is rounding, not signal.
_CONSTANT = 1e-13

# Spreads below this have no finite inverse to fold into the weights.
_SMALLEST_SPREAD = 1e-305


@dataclass(frozen=True)
class InputUnits:
    """Centre and spread of every input; the spread of a constant column is infinite.

    An infinite spread means weight zero: a constant column tells nothing, and a feature that drew
    it goes on with its other variables.
    """

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]


@dataclass(frozen=True)
class InputBounds:
    """Bounds to which inputs are clipped; infinite for an input that is not."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Which inputs are clipped."""
        return np.isfinite(self.lower) | np.isfinite(self.upper)

    def clip(
        self, X: NDArray[Any], columns: NDArray[np.intp] | slice = slice(None)
    ) -> NDArray[Any]:
        """Clip rows of these columns; the same array if nothing can change."""
        lower, upper = self.lower[columns], self.upper[columns]
        if not np.any(np.isfinite(lower) | np.isfinite(upper)):
            return X
        return np.clip(X, lower, upper)

    def inside(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values are not clipped."""
        return (self.lower <= X) & (self.upper >= X)


def find_bounds(
    X: NDArray[np.float64], weights: NDArray[np.float64], spreads: float | None
) -> InputBounds:
    """Bounds `spreads` robust spreads either side of the median, for the inputs that exceed them.

    An input all of whose values lie within has no bounds; None bounds nothing.
    """
    infinite = np.full(X.shape[1], np.inf)
    if spreads is None:
        return InputBounds(-infinite, infinite)
    units = measure_units(X, weights, "robust")
    with np.errstate(over="ignore", invalid="ignore"):  # such bounds are never exceeded
        lower, upper = units.centre - spreads * units.spread, units.centre + spreads * units.spread
    exceeded = np.any((lower > X) | (upper < X), axis=0) & np.isfinite(units.spread)
    return InputBounds(np.where(exceeded, lower, -np.inf), np.where(exceeded, upper, np.inf))


def measure_units(X: NDArray[np.float64], weights: NDArray[np.float64], kind: str) -> InputUnits:
    """Find the units of the rows of `X`, each counted `weights` times.

    Parameters
    ----------
    X : array of shape (rows, variables)
    weights : array of shape (rows,)
        Positive. A row of weight 2 counts like the row twice.
    kind : {"standard", "robust", "none"}
        Mean and standard deviation; median and interquartile range (that of a normal variable with
        the same deviation; columns whose quartiles agree take the standard deviation); or the
        user's own units.
    """
    d = X.shape[1]
    if kind == "none":
        return InputUnits(np.zeros(d), np.ones(d))
    centre, spread = _mean_and_deviation(X, weights)
    if kind == "robust":
        low, middle, high = np.quantile(
            X, [0.25, 0.5, 0.75], axis=0, weights=weights, method="inverted_cdf"
        )
        quartiles = (high / _NORMAL_IQR) - (low / _NORMAL_IQR)
        centre = middle
        # Not the largest of all: a huge outlier would make rounding of the quartiles.
        constant = _is_constant(quartiles, np.abs([low, middle, high]).max(axis=0))
        spread = np.where(constant | ~np.isfinite(spread), spread, quartiles)
    return InputUnits(centre, spread)


def varies(X: NDArray[np.float64], weights: NDArray[np.float64]) -> bool:
    """Whether any input is more than a constant with rounding."""
    return bool(np.isfinite(measure_units(X, weights, "standard").spread).any())


def _mean_and_deviation(
    X: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean and deviation of each column, safe for magnitudes from 1e-300 to 1e300."""
    largest = np.abs(X).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    share = weights / weights.sum()
    scaled = X / unit
    mean = share @ scaled
    deviation = np.sqrt(share @ (scaled - mean) ** 2)
    spread = deviation * unit
    return mean * unit, np.where(_is_constant(spread, largest), np.inf, spread)


def _is_constant(spread: NDArray[np.float64], largest: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (spread <= _CONSTANT * largest) | (spread < _SMALLEST_SPREAD)
