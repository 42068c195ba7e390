"""Features as a value: their variables, weights and phases, and how to evaluate them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from harfe._core.threads import blocks, run_blocks
from harfe.features import kernels
from harfe.features.activations import ACTIVATIONS, CODES
from harfe.features.units import InputUnits

_FEATURE_BLOCK = 128


@dataclass(frozen=True)
class FeaturePool:
    """Features φ(<x, w_j> + b_j) with weights kept as (indices, values), never dense.

    Attributes
    ----------
    n_variables : int
        Number of inputs d.
    indices : int array of shape (N, q)
        The variables of each feature, ascending; -1 pads features of lower order.
    values : float array of shape (N, q)
        Their weights; 0 where padded.
    phases : float array of shape (N,)
    activation : str
        Name of φ in `harfe.features.activations`.
    """

    n_variables: int
    indices: NDArray[np.intp]
    values: NDArray[np.float64]
    phases: NDArray[np.float64]
    activation: str = "sin"

    def __len__(self) -> int:
        return int(self.phases.shape[0])

    @property
    def is_complex(self) -> bool:
        """Whether the features are exp(i·)."""
        return ACTIVATIONS[self.activation].is_complex

    @property
    def is_wave(self) -> bool:
        """Whether the features are waves, for which explanations have closed forms."""
        return ACTIVATIONS[self.activation].is_wave

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which entries of `indices` are inputs in use: neither padding nor of weight 0."""
        return (self.indices >= 0) & (self.values != 0)

    def take(self, chosen: NDArray[np.intp] | slice) -> FeaturePool:
        """Pool of the chosen features, in the order given."""
        return FeaturePool(
            self.n_variables,
            np.ascontiguousarray(self.indices[chosen]),
            np.ascontiguousarray(self.values[chosen]),
            np.ascontiguousarray(self.phases[chosen]),
            self.activation,
        )

    def join(self, other: FeaturePool) -> FeaturePool:
        """Features of this pool, then those of the other, which has the same activation."""
        widest = max(self.indices.shape[1], other.indices.shape[1])
        room = [((0, 0), (0, widest - pool.indices.shape[1])) for pool in (self, other)]
        return FeaturePool(
            self.n_variables,
            np.concatenate(
                [
                    np.pad(pool.indices, pad, constant_values=-1)
                    for pool, pad in zip((self, other), room, strict=True)
                ]
            ),
            np.concatenate(
                [np.pad(pool.values, pad) for pool, pad in zip((self, other), room, strict=True)]
            ),
            np.concatenate([self.phases, other.phases]),
            self.activation,
        )

    def replaced(self, places: NDArray[np.intp], features: FeaturePool) -> FeaturePool:
        """The same pool with other features, of no higher order, at these places."""
        width = features.indices.shape[1]
        indices, values, phases = self.indices.copy(), self.values.copy(), self.phases.copy()
        indices[places], values[places] = -1, 0.0
        indices[places, :width], values[places, :width] = features.indices, features.values
        phases[places] = features.phases
        return FeaturePool(self.n_variables, indices, values, phases, self.activation)

    def in_user_units(self, units: InputUnits) -> FeaturePool:
        """Return the same functions in terms of x, for a pool drawn on (x - centre) / spread.

        <(x - centre)/spread, v> + b = <x, v/spread> + (b - <centre/spread, v>).
        """
        present = self.indices >= 0
        spread = np.where(present, units.spread[self.indices], np.inf)
        values = self.values / spread
        shift = np.where(np.isfinite(spread), units.centre[self.indices] / spread, 0.0)
        phases = self.phases - np.sum(self.values * shift, axis=1)
        return FeaturePool(self.n_variables, self.indices, values, phases, self.activation)

    def weights(self) -> sp.csc_array:
        """Return the paper's W, a sparse array of shape (d, N)."""
        present = self.indices >= 0
        columns = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        shape = (self.n_variables, len(self))
        return sp.csc_array((self.values[present], self.indices[present], columns), shape=shape)

    def write(self, rows: Rows, start: int, out: NDArray[Any]) -> None:
        """Write φ of rows start .. start + out.shape[1] to `out`, feature-major."""
        arguments = (rows.transposed, rows.largest, self.indices, self.values, self.phases)
        if self.is_complex:
            kernels.complex_features(*arguments, start, out)
        else:
            kernels.features(*arguments, CODES[self.activation], start, out)

    def evaluate(self, X: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
        """Feature matrix of shape (rows, N): A of the paper, before any centring or scaling."""
        rows = Rows.of(X)
        out = np.empty((len(self), rows.n_rows), self.result_type(dtype))
        run_blocks(
            lambda part: self.take(part).write(rows, 0, out[part]),
            blocks(len(self), _FEATURE_BLOCK),
        )
        return out.T

    def result_type(self, dtype: Any) -> np.dtype[Any]:
        """Type of the features: that of the inputs, complex for exp."""
        return np.result_type(dtype, np.complex64) if self.is_complex else np.dtype(dtype)

    def names(self, columns: Sequence[str]) -> list[str]:
        """Readable names like ``sin(0.31*age - 1.20*bmi + 0.50)``, with more digits if equal."""
        names = [self._name(j, columns, 2) for j in range(len(self))]
        for digits in (4, 8, 16):
            count = Counter(names)
            names = [
                self._name(j, columns, digits) if count[name] > 1 else name
                for j, name in enumerate(names)
            ]
        return names

    def _name(self, j: int, columns: Sequence[str], digits: int) -> str:
        parts = [
            (value, f"*{columns[index]}")
            for index, value in zip(self.indices[j], self.values[j], strict=True)
            if index >= 0 and value != 0
        ]
        if self.phases[j] != 0 or not parts:
            parts.append((self.phases[j], ""))
        text = ""
        for value, factor in parts:
            sign = " - " if value < 0 else " + "
            if not text:
                sign = "-" if value < 0 else ""
            text += f"{sign}{_short(abs(value), digits)}{factor}"
        return f"exp(i*({text}))" if self.is_complex else f"{self.activation}({text})"


def _short(value: float, digits: int) -> str:
    plain = value == 0 or 0.01 <= value < 1e4
    return f"{value:.{digits}f}" if plain else f"{value:.{digits}e}"


@dataclass(frozen=True)
class Rows:
    """Inputs as the loops need them: transposed, with the largest magnitude of every variable."""

    transposed: NDArray[Any]
    largest: NDArray[np.float64]

    @classmethod
    def of(cls, X: ArrayLike) -> Rows:
        """Lay out X of shape (rows, variables)."""
        transposed = np.ascontiguousarray(np.asarray(X).T)
        return cls(transposed, np.abs(transposed).max(axis=1, initial=0.0).astype(np.float64))

    @property
    def n_rows(self) -> int:
        """Number of data rows."""
        return int(self.transposed.shape[1])
