"""The reference: the ridge solution on infinitely many features of a law.

    minimise over f   Σ_k w_k (t_k - f(x_k))² / ν + ‖f‖²

in the space of the law's kernel with a constant added; this is the mean of the Gaussian process.
Its value at x is Σ_k β_k (1 + k(x, x_k)), with one β per row: exact and smooth, but as expensive as
it is large. Sparse expansions are matched to it. If there are too many rows for that system, the
ridge solution on a large pool of features takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import available_memory, blocks, one_blas_thread
from harfe.features.pool import FeaturePool
from harfe.learning import cholesky
from harfe.learning.likelihood import KernelSettings
from harfe.learning.standard_rows import StandardRows
from harfe.solvers.homes import make_problem
from harfe.solvers.ridge import RestrictedRidge

# Up to this number of rows the system is solved exactly.
EXACT_ROWS = 3000

# Number of features in the pool that is used for more rows.
POOL = 3000

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
class PoolReference:
    """Ridge solution on a large pool drawn from the law."""

    pool: FeaturePool
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]

    @classmethod
    def fit(cls, settings: KernelSettings, data: StandardRows, pool: FeaturePool) -> PoolReference:
        """Solve the ridge problem that has the prior of the kernel."""
        problem = make_problem(
            pool,
            data.Z,
            data.t,
            data.weights,
            largest_support=len(pool),
            memory_budget=available_memory() / 2,
            column_scale="none",
        )
        # Features have mean square 1/2, coefficients the variance 2V/N.
        alpha = settings.noise * len(pool) / (2 * settings.variance() * data.weights.sum())
        S = np.flatnonzero(problem.usable)
        with one_blas_thread():
            coef, intercept = problem.to_raw(S, RestrictedRidge(problem, alpha).solve(S))
        return cls(pool.take(S), coef, intercept)

    def predict(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of all features of the pool."""
        return np.asarray(self.pool.evaluate(Z) @ self.coef.T + self.intercept)


@dataclass(frozen=True)
class StackedReference:
    """Weighted sum of references."""

    parts: tuple[Reference, ...]
    weights: tuple[float, ...]

    def predict(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted sum of the references' values."""
        values = [w * part.predict(Z) for part, w in zip(self.parts, self.weights, strict=True)]
        return np.asarray(sum(values))
