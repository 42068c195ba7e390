"""Links: the scale on which positive or heavy-tailed targets are fitted, and the way back.

    log:          η = log y
    yeo-johnson:  η = ψ(z, λ) - ψ(-z, 2 - λ),  z = (y - centre)/unit,
                  ψ(z, λ) = ((1 + z)^λ - 1)/λ for z > 0 (log(1 + z) for λ = 0), else 0

A sum of sines that is fitted to η predicts about the median of y when it is mapped back. The mean
is the average over the noise (Duan's smearing): mean(η) = (1/K) Σ_k inverse(η + r_k), with r_k
residuals on the scale of η. For the logarithm this is exp(η) times a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from harfe._core.arguments import LINKS as LINKS
from harfe.features.units import measure_units

# Residuals that a link keeps, each for an equal share of the weight.
_RESIDUALS = 15

# Powers of Yeo-Johnson; digits beyond the third would change nothing but the formula.
_POWERS, _DIGITS = (-2.0, 4.0), 3

# Beyond these logarithms, exp and its products with a constant may overflow.
_LARGEST_LOG = 680.0

# With a negative power η has an end; nearer to it than this share, the inverse is rounding.
_LEAST_ROOM = 1e-12

# A loss above all others with which the search can still compute.
_NEVER = 1e9

# Nodes of the quadrature over the noise.
_NODES = 20


@dataclass(frozen=True)
class Link:
    """An increasing map from targets y to the scale η of the fit.

    Attributes
    ----------
    kind : {"log", "yeo-johnson"}
    lower, upper : float
        η is clipped to these before it is mapped back. They allow for targets beyond those of the
        training rows by the whole range of these, on either side: in the user's units for
        Yeo-Johnson, on the scale of η for the logarithm.
    power, centre, unit : float
        λ, centre and unit of Yeo-Johnson.
    residuals : tuple of float
        r_k, at most 15, each for an equal share of the noise; empty if it is not known.
    """

    kind: str
    lower: float
    upper: float
    power: float = 1.0
    centre: float = 0.0
    unit: float = 1.0
    residuals: tuple[float, ...] = ()

    def forward(self, y: ArrayLike) -> NDArray[np.float64]:
        """Map targets to the scale of the fit."""
        y = np.asarray(y, dtype=float)
        if self.kind == "yeo-johnson":
            return _bend((y - self.centre) / self.unit, self.power)
        if np.any(y <= 0):
            raise ValueError(
                f"link='log' needs positive targets, but y has {y.min():.6g}; "
                "pass link='yeo-johnson', which takes any"
            )
        return np.log(y)

    def inverse(self, eta: ArrayLike) -> NDArray[np.float64]:
        """Map back to targets, after clipping: the median of y if η is that of its image."""
        eta = np.clip(eta, self.lower, self.upper)
        if self.kind == "log":
            return np.asarray(np.exp(eta))
        positive, negative = _unbend(eta, self.power), _unbend(-eta, 2 - self.power)
        return self.centre + self.unit * (positive - negative)

    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean of y around η: that of the inverse over the residuals."""
        if self.kind == "log":
            return self.factor * self.inverse(eta)
        return np.mean([self.inverse(eta + r) for r in self.shifts], axis=0)

    def slope(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivative of the mean by η; 0 where η is clipped."""
        if self.kind == "log":
            return self.mean(eta) * self._inside(eta)
        return np.mean([self._slope_of_inverse(eta + r) for r in self.shifts], axis=0)

    def deviation(self, eta: ArrayLike, std: ArrayLike) -> NDArray[np.float64]:
        """Standard deviation of y for normal η with this mean and standard deviation."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        values = self.inverse(np.expand_dims(eta, -1) + np.expand_dims(std, -1) * nodes)
        share = weights / weights.sum()
        return np.asarray(np.sqrt((values - (values @ share)[..., None]) ** 2 @ share))

    def with_residuals(self, residuals: ArrayLike, weights: ArrayLike) -> Link:
        """Return the link with the noise of these residuals on the scale of η.

        Equal shares of the sorted residuals are each replaced by the one that gives the mean of
        their inverses: exact for the logarithm, and for Yeo-Johnson around its centre.
        """
        residuals, weights = np.ravel(residuals), np.ravel(weights)
        start = (self.lower + self.upper) / 2 if self.kind == "log" else 0.0
        order = np.argsort(residuals, kind="stable")
        values = self.inverse(start + residuals[order])
        # Shares split a row if they have to, so a row of weight 2 is the same as two rows.
        total = np.concatenate([[0.0], np.cumsum(weights[order])])
        sums = np.concatenate([[0.0], np.cumsum(weights[order] * values)])
        share = total[-1] / _RESIDUALS
        means = np.diff(np.interp(share * np.arange(_RESIDUALS + 1), total, sums)) / share
        # Differences of sums may be rounding where the values are small.
        kept = self.forward(np.clip(means, values[0], values[-1])) - start
        return replace(self, residuals=tuple(kept.tolist()))

    @property
    def shifts(self) -> tuple[float, ...]:
        """The residuals, or none but 0 if they are not known."""
        return self.residuals or (0.0,)

    @property
    def factor(self) -> float:
        """The constant that turns the median of the logarithm's link into the mean."""
        return float(np.mean(np.exp(self.shifts)))

    def label(self, target: str = "y") -> str:
        """Name of η, such as ``log(price)``."""
        return f"{self.kind}({target})"

    def _inside(self, eta: NDArray[np.float64]) -> NDArray[np.bool_]:
        return (self.lower <= eta) & (eta <= self.upper)

    def _slope_of_inverse(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivative of Yeo-Johnson's inverse: (1 + |z|)^(1 - λ), with 2 - λ below the centre."""
        z = (self.inverse(eta) - self.centre) / self.unit
        power = np.where(z > 0, self.power, 2 - self.power)
        return self.unit * (1 + np.abs(z)) ** (1 - power) * self._inside(eta)


def find_link(y: ArrayLike, weights: ArrayLike, kind: str) -> Link:
    """Return the link of this kind for these targets.

    Parameters
    ----------
    y : array of shape (rows,) or (rows, 1)
    weights : array of shape (rows,)
        Positive. A row of weight 2 counts like two rows; a common factor changes nothing.
    kind : {"log", "yeo-johnson"}
        The power of Yeo-Johnson maximises the weighted likelihood of normal η, for centre and unit
        from the median and the interquartile range.
    """
    y, weights = np.ravel(np.asarray(y, dtype=float)), np.ravel(weights)
    low, high = y.min(), y.max()
    if kind == "log":
        low, high = Link("log", -np.inf, np.inf).forward([low, high])
        ends = np.clip([2 * low - high, 2 * high - low], -_LARGEST_LOG, _LARGEST_LOG)
        return Link("log", float(ends[0]), float(ends[1]))
    units = measure_units(y[:, None], weights, "robust")
    centre, unit = float(units.centre[0]), float(units.spread[0])
    if not np.isfinite(unit):
        unit = 1.0
    power = _likeliest_power((y - centre) / unit, weights / weights.sum())
    ends = _bend((np.array([2 * low - high, 2 * high - low]) - centre) / unit, power)
    ends = np.clip(ends, -_largest(2 - power), _largest(power))
    return Link(kind, float(ends[0]), float(ends[1]), power, centre, unit)


def _likeliest_power(z: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    """Maximise -log(var η)/2 + (λ - 1) mean(sign(z) log(1 + |z|)) over λ."""
    if not np.ptp(z) > 0:
        return 1.0
    jacobian = share @ (np.sign(z) * np.log1p(np.abs(z)))

    def loss(power: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # outliers to a high power
            eta = _bend(z, power)
            spread = share @ (eta - share @ eta) ** 2
        return float(0.5 * np.log(spread) - (power - 1) * jacobian) if spread < np.inf else _NEVER

    found = minimize_scalar(loss, bounds=_POWERS, method="bounded", options={"xatol": 1e-5})
    return round(float(found.x), _DIGITS)


def _bend(z: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Yeo-Johnson's map of standardised targets."""

    def psi(z: NDArray[np.float64], power: float) -> Any:
        log = np.log1p(np.maximum(z, 0.0))
        return np.expm1(power * log) / power if power else log

    return np.asarray(psi(z, power) - psi(-z, 2 - power))


def _unbend(eta: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Inverse of ψ where η > 0, else 0."""
    eta = np.maximum(eta, 0.0)
    return np.asarray(np.expm1(np.log1p(power * eta) / power if power else eta))


def _largest(power: float) -> float:
    """The largest η whose inverse is more than rounding."""
    return np.inf if power >= 0 else (1 - _LEAST_ROOM) / -power
