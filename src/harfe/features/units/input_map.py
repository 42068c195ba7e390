"""From the user's inputs to those of the sines: clipped to bounds, then warped, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.features.units.affine import find_bounds, measure_units
from harfe.features.units.warps import Log, Rank, Warp, even_out, rank

INPUT_WARPS = ("none", "log", "rank")

Columns = NDArray[np.intp] | slice


@dataclass(frozen=True)
class InputMap:
    """z_k = warp_k(min(max(x_k, lower_k), upper_k)): one non-decreasing function for each input.

    Attributes
    ----------
    lower, upper : arrays of shape (inputs,)
        Infinite for an input that is not clipped.
    warps : tuple of Log, Asinh, Rank or None
        One for each input; None for an input that is not warped, and empty if none is. Inputs with
        a logarithm have a positive lower bound.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    warps: tuple[Warp | None, ...] = ()

    @classmethod
    def identity(cls, n_inputs: int) -> InputMap:
        """The map that changes nothing."""
        infinite = np.full(n_inputs, np.inf)
        return cls(-infinite, infinite)

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Which inputs are clipped."""
        return np.isfinite(self.lower) | np.isfinite(self.upper)

    @property
    def warped(self) -> NDArray[np.bool_]:
        """Which inputs are warped."""
        return np.array([self.warp_of(k) is not None for k in range(len(self.lower))], dtype=bool)

    @property
    def is_identity(self) -> bool:
        """Whether no input is clipped or warped."""
        return not (self.finite.any() or self.warped.any())

    def warp_of(self, k: int) -> Warp | None:
        """The warp of input k, if it has one."""
        return self.warps[k] if self.warps else None

    def take(self, columns: NDArray[np.intp]) -> InputMap:
        """The map of these inputs alone."""
        warps = tuple(self.warps[k] for k in columns) if self.warps else ()
        return InputMap(self.lower[columns], self.upper[columns], warps)

    def apply(self, X: NDArray[Any], columns: Columns = slice(None)) -> NDArray[Any]:
        """Clip and warp rows of these columns; the same array if there is nothing to do."""
        return self.warp(self.clip(X, columns), columns)

    def clip(self, X: NDArray[Any], columns: Columns = slice(None)) -> NDArray[Any]:
        """Clip rows of these columns; returns the same array if none of them has bounds."""
        lower, upper = self.lower[columns], self.upper[columns]
        if not np.any(np.isfinite(lower) | np.isfinite(upper)):
            return X
        return np.clip(X, lower, upper)

    def warp(self, X: NDArray[Any], columns: Columns = slice(None)) -> NDArray[Any]:
        """Warp rows that are clipped; returns the same array if none of the columns has a warp."""
        warped = self._warped(columns)
        if not warped:
            return X
        Z = np.array(X, dtype=float)
        for place, warp in warped:
            Z[:, place] = warp.apply(Z[:, place])
        return Z

    def inverse(self, Z: NDArray[Any], columns: Columns = slice(None)) -> NDArray[Any]:
        """Values of the inputs that the map takes to Z, up to rounding."""
        warped = self._warped(columns)
        if not warped:
            return Z
        X = np.array(Z, dtype=float)
        for place, warp in warped:
            X[:, place] = warp.inverse(X[:, place])
        return X

    def slope(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Derivative of the map at every value: 0 where it is clipped, 1 if nothing is done."""
        slope = self.inside(X).astype(float)
        clipped = self.clip(X)
        for place, warp in self._warped(slice(None)):
            slope[:, place] *= warp.slope(clipped[:, place])
        return slope

    def inside(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values are not clipped."""
        return (self.lower <= X) & (self.upper >= X)

    def label(self, k: int, name: str) -> str:
        """Readable name of input k, such as ``clip(age, 0, 10)``, ``log(age)`` or ``rank(age)``.

        Bounds that only keep values where the warp is defined are left out.
        """
        warp = self.warp_of(k)
        implied = isinstance(warp, Rank) or (isinstance(warp, Log) and np.isinf(self.upper[k]))
        if self.finite[k] and not implied:
            name = f"clip({name}, {self.lower[k]:.6g}, {self.upper[k]:.6g})"
        return name if warp is None else warp.label(name)

    def _warped(self, columns: Columns) -> list[tuple[int, Warp]]:
        """Warps among these columns, and their places there."""
        if not self.warps:
            return []
        warps = [self.warps[k] for k in np.arange(len(self.lower))[columns]]
        return [(place, warp) for place, warp in enumerate(warps) if warp is not None]


def find_map(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    input_clip: float | None,
    warp: str = "none",
    keep_tails: bool = False,
) -> InputMap:
    """Find bounds of the inputs, then warps of the clipped rows.

    A row of weight 2 counts like two copies of it.

    Parameters
    ----------
    X : array of shape (rows, inputs)
    weights : array of shape (rows,)
        Positive.
    input_clip : float or None
        Inputs with values further than this many robust spreads from their median are clipped
        there; None clips none.
    keep_tails : bool, default=False
        Whether the tail of a skewed input, which several rows make up, is no outlier: for laws with
        scales learned for each input. Under one scale for all, rows far out decide too much.
    warp : {"none", "log", "rank"}
        "log" takes logarithms of positive inputs that range over more than a factor of 10, and
        asinh((x - median) / spread) of other inputs with a skewness beyond 1, where that makes them
        less skewed; "rank" replaces inputs by their ranks among the rows, from 0 to 1. Inputs with
        one or two values stay as they are. A logarithm is clipped below at the smallest value seen,
        a rank at both ends of the range, so that no value that lies beyond runs away.

    Returns
    -------
    InputMap
    """
    lower, upper = find_bounds(X, weights, input_clip, keep_tails)
    plain = InputMap(lower, upper)
    if warp == "none":
        return plain
    clipped = X if warp == "rank" else plain.clip(X)
    units = measure_units(clipped, weights, "standard")
    warps: list[Warp | None] = [None] * X.shape[1]
    for k in np.flatnonzero(np.isfinite(units.spread)).tolist():
        x = clipped[:, k]
        if not np.any((x > x.min()) & (x < x.max())):
            continue  # two values: every function of them is affine
        found = warps[k] = (rank if warp == "rank" else even_out)(x, weights)
        if isinstance(found, Rank):
            lower[k], upper[k] = x.min(), x.max()
        elif found is not None:
            # What is an outlier before a logarithm need not be one after it.
            raw = np.maximum(X[:, k], x.min()) if isinstance(found, Log) else X[:, k]
            ends = find_bounds(found.apply(raw)[:, None], weights, input_clip, keep_tails)
            with np.errstate(over="ignore"):
                lower[k], upper[k] = (found.inverse(end)[0] for end in ends)
            if isinstance(found, Log):
                lower[k] = max(lower[k], x.min())
    return InputMap(lower, upper, tuple(warps)) if any(warps) else plain
