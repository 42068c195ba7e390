"""The reference: the ridge solution on infinitely many features of a law.

    minimise over f   Σ_k w_k (t_k - f(x_k))² / ν + ‖f‖²

in the space of the law's kernel with a constant added; this is the mean of the Gaussian process.
Its value at x is Σ_k β_k (1 + k(x, x_k)), with one β per row: exact and smooth, but as expensive as
it is large. Sparse expansions are matched to it. Of more rows than that system can hold, it sees a
sample; features are then also trained on all rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import blocks, one_blas_thread
from harfe.learning import cholesky
from harfe.learning.likelihood import KernelSettings
from harfe.learning.standard_rows import StandardRows

# Of more rows, this many are drawn at random.
EXACT_ROWS = 4000

_PREDICT_BLOCK = 2048


class Reference(Protocol):
    """A dense function of standardised inputs."""

    def predict(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at rows of standardised inputs, shape (rows, targets)."""


@dataclass(frozen=True)
class ExactReference:
    """Mean of the Gaussian process, conditioned on all rows."""

    settings: KernelSettings
    rows: NDArray[np.float64]  # transposed, of the variables in use
    beta: NDArray[np.float64]

    @classmethod
    def fit(cls, settings: KernelSettings, data: StandardRows) -> ExactReference:
        """Solve (K + 1 + ν/w) β = t."""
        used = settings.used()
        XT = np.ascontiguousarray(data.Z[:, settings.inclusion > 0].T)
        with one_blas_thread():
            L = used.factor(XT, data.weights)
            beta = cholesky.solve(L, data.t)
        return cls(settings, XT, np.ascontiguousarray(beta))

    def predict(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ_k β_k (1 + k(x, x_k))."""
        out = np.empty((len(Z), self.beta.shape[1]))
        used, columns = self.settings.used(), self.settings.inclusion > 0
        for rows in blocks(len(Z), _PREDICT_BLOCK):
            XT = np.ascontiguousarray(Z[rows][:, columns].T)
            K = used.kernel(XT, self.rows)
            out[rows] = K @ self.beta + self.beta.sum(axis=0)
        return out


@dataclass(frozen=True)
class StackedReference:
    """Weighted sum of references."""

    parts: tuple[Reference, ...]
    weights: tuple[float, ...]

    def predict(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted sum of the references' values."""
        values = [w * part.predict(Z) for part, w in zip(self.parts, self.weights, strict=True)]
        return np.asarray(sum(values))
