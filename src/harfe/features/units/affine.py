"""Units of the inputs, (x - centre) / spread, and bounds beyond which values are outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

INPUT_SCALES = ("standard", "robust", "none")

# Interquartile range of a normal variable with standard deviation 1.
NORMAL_IQR = 1.3489795003921634

# Below this share of its largest magnitude a column's spread is rounding, not signal.
_CONSTANT = 1e-13

# Spreads below this have no finite inverse to fold into the weights.
_SMALLEST_SPREAD = 1e-305

# Share of the rows that may lie outside the bulk of an input on each side, and how many times
# farther than the bulk they may.
_TAIL, _TAIL_REACH = 0.01, 3.0


@dataclass(frozen=True)
class InputUnits:
    """Centre and spread of every input; the spread of a constant column is infinite.

    An infinite spread means weight zero: a constant column carries no information, and a feature
    that drew it keeps its other variables.
    """

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]


def find_bounds(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    spreads: float | None,
    keep_tails: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds far outside the bulk of the rows, for the inputs that exceed them.

    They are `spreads` robust spreads from the median. To `keep_tails` of skewed inputs, they are no
    nearer than three times as far as all rows but the outermost hundredth (at least two) on each
    side. An input with all values inside gets infinite ones; with `spreads`
    None, every input does.
    """
    infinite = np.full(X.shape[1], np.inf)
    if spreads is None:
        return -infinite, infinite
    units = measure_units(X, weights, "robust")
    with np.errstate(over="ignore", invalid="ignore"):  # such bounds are never exceeded
        below = above = spreads * units.spread
        if keep_tails:
            share = min(max(_TAIL, 2 / weights.sum()), 0.5)
            ends = [share, 1 - share]
            low, high = np.quantile(X, ends, axis=0, weights=weights, method="inverted_cdf")
            below = np.maximum(below, _TAIL_REACH * (units.centre - low))
            above = np.maximum(above, _TAIL_REACH * (high - units.centre))
        lower, upper = units.centre - below, units.centre + above
    exceeded = np.any((lower > X) | (upper < X), axis=0) & np.isfinite(units.spread)
    return np.where(exceeded, lower, -np.inf), np.where(exceeded, upper, np.inf)


def measure_units(X: NDArray[np.float64], weights: NDArray[np.float64], kind: str) -> InputUnits:
    """Measure the units of the rows of `X`, each counted `weights` times.

    Parameters
    ----------
    X : array of shape (rows, variables)
    weights : array of shape (rows,)
        Positive. A row of weight 2 counts like two copies of it.
    kind : {"standard", "robust", "none"}
        Mean and standard deviation; median and interquartile range (divided by that of a standard
        normal variable; columns with equal quartiles take the standard deviation); or the user's
        own units.
    """
    d = X.shape[1]
    if kind == "none":
        return InputUnits(np.zeros(d), np.ones(d))
    centre, spread = _mean_and_deviation(X, weights)
    if kind == "robust":
        low, middle, high = np.quantile(
            X, [0.25, 0.5, 0.75], axis=0, weights=weights, method="inverted_cdf"
        )
        quartiles = (high / NORMAL_IQR) - (low / NORMAL_IQR)
        centre = middle
        # Not the column's largest: next to a huge outlier the quartiles would look constant.
        constant = _is_constant(quartiles, np.abs([low, middle, high]).max(axis=0))
        spread = np.where(constant | ~np.isfinite(spread), spread, quartiles)
    return InputUnits(centre, spread)


def varies(X: NDArray[np.float64], weights: NDArray[np.float64]) -> bool:
    """Whether any input varies by more than rounding errors."""
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
