"""Strictly increasing functions of one input: logarithm, asinh, and rank.

A warp evens out a skewed input before sines of it are taken: a sine has the same wavelength
everywhere, so it cannot be fine where values crowd and coarse where they are sparse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe.features.units.affine import NORMAL_IQR, measure_units

# A logarithm of positive values whose range is narrower than this factor is almost affine.
_LEAST_RATIO = 10.0

# Beyond this skewness an input that is not positive is worth an asinh.
_SKEWED = 1.0

# Most knots of a rank.
MOST_KNOTS = 33

# Sums of weights are rounded to this many digits: their last bits depend on the order of the rows
# and on the unit of the weights, and which values become knots or quartiles must not.
_DIGITS = 12


@dataclass(frozen=True)
class Log:
    """log x, for inputs that are clipped to positive values."""

    def apply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Warp values."""
        return np.log(x)

    def slope(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivative at these values."""
        return 1 / x

    def inverse(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values with these warps."""
        return np.exp(z)

    def label(self, name: str) -> str:
        """Readable name of the warped input."""
        return f"log({name})"


@dataclass(frozen=True)
class Asinh:
    """asinh((x - centre) / scale): a logarithm of both tails, affine near the centre."""

    centre: float
    scale: float

    def apply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Warp values."""
        return np.arcsinh((x - self.centre) / self.scale)

    def slope(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivative at these values."""
        return np.asarray(1 / np.hypot(x - self.centre, self.scale))

    def inverse(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values with these warps."""
        return np.asarray(self.centre + self.scale * np.sinh(z))

    def label(self, name: str) -> str:
        """Readable name of the warped input."""
        if self.centre:
            name = f"({name} {'+' if self.centre < 0 else '-'} {abs(self.centre):.6g})"
        return f"asinh({name} / {self.scale:.6g})"


@dataclass(frozen=True)
class Rank:
    """The share of the rows below a value: linear between knots, constant beyond them."""

    knots: NDArray[np.float64]
    values: NDArray[np.float64]

    def apply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Warp values."""
        return np.interp(x, self.knots, self.values)

    def slope(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivative at these values; at a knot that of the segment to its right."""
        segment = np.searchsorted(self.knots, x, side="right") - 1
        slopes = np.diff(self.values) / np.diff(self.knots)
        inside = (self.knots[0] <= x) & (self.knots[-1] >= x)
        return np.where(inside, slopes[np.clip(segment, 0, len(slopes) - 1)], 0.0)

    def inverse(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values with these warps; the outer knots beyond their ranks."""
        return np.interp(z, self.values, self.knots)

    def label(self, name: str) -> str:
        """Readable name of the warped input."""
        return f"rank({name})"


Warp = Log | Asinh | Rank


def even_out(x: NDArray[np.float64], weights: NDArray[np.float64]) -> Log | Asinh | None:
    """Logarithm or asinh of a column that varies, if it makes the column less skewed."""
    x, weights = _distinct(x, weights)
    before = abs(_skewness(x, weights))
    warp: Log | Asinh
    if x.min() > 0:
        if x.max() / _LEAST_RATIO <= x.min():
            return None
        warp = Log()
    elif before > _SKEWED:
        warp = _asinh(x, weights)
    else:
        return None
    return warp if abs(_skewness(warp.apply(x), weights)) < before else None


def rank(x: NDArray[np.float64], weights: NDArray[np.float64]) -> Rank | None:
    """Mid-ranks at values that are evenly spaced by rank; all values of a column that has few.

    The mid-rank of a value is the share of the rows below it plus half the share of those with it.
    """
    values, counts = _distinct(x, weights)
    ranks = np.round((np.cumsum(counts) - counts / 2) / counts.sum(), _DIGITS)
    if len(values) > MOST_KNOTS:
        wanted = np.round(np.linspace(ranks[0], ranks[-1], MOST_KNOTS), _DIGITS)
        chosen = np.searchsorted(ranks, wanted)
        values, ranks = values[chosen], ranks[chosen]
    # Rows that weigh next to nothing do not raise the rank.
    ranks, first = np.unique(ranks, return_index=True)
    values = values[first]
    with np.errstate(over="ignore", divide="ignore"):
        steps = np.diff(values)
        # Differences near the limits of floating point have no slope.
        smooth = np.isfinite(steps).all() and np.isfinite(np.diff(ranks) / steps).all()
    return Rank(values, ranks) if len(values) > 1 and smooth else None


def _asinh(values: NDArray[np.float64], counts: NDArray[np.float64]) -> Asinh:
    """Median and interquartile range, or standard deviation if the quartiles are equal."""
    shares = np.round(np.cumsum(counts) / counts.sum(), _DIGITS)
    low, middle, high = values[np.searchsorted(shares, [0.25, 0.5, 0.75])].tolist()
    spread = high / NORMAL_IQR - low / NORMAL_IQR
    if spread == 0:
        spread = float(measure_units(values[:, None], counts, "standard").spread[0])
    return Asinh(middle, float(f"{spread:.{_DIGITS}g}"))


def _distinct(
    x: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct values, ascending, and the weight of each."""
    values, place = np.unique(x, return_inverse=True)
    return values, np.bincount(place.ravel(), weights).astype(float)


def _skewness(x: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Third standardised moment; the column must vary."""
    share = weights / weights.sum()
    z = x / np.abs(x).max()
    z = z - share @ z
    return float(share @ z**3 / (share @ z**2) ** 1.5)
