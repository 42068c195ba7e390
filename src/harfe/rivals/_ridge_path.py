"""Ridge regression for all ridge weights and all folds from one eigendecomposition.

    minimise over b and v   ‖y - b - K v‖² + a vᵀK v

for a kernel K (or K = FFᵀ, with coefficients Fᵀv of the features F). Its solution is v = M̃y with
M = (K + a)⁻¹, M̃ = M - M11ᵀM/(1ᵀM1), and b = 1ᵀMy/(1ᵀM1). If the rows of a fold are left out and
the ridge weight a stays, their residuals are

    e_F = (M̃_FF)⁻¹ v_F:

the fit without them is the fit of all rows in which y_F is such that v_F = 0. This is the
leave-one-out formula for blocks; it is exact.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe.machine import one_blas_thread


class RidgePath:
    """All ridge fits of some rows.

    Parameters
    ----------
    U : array of shape (m, r)
        Orthonormal eigenvectors of K; those of eigenvalue 0 may be left out.
    values : array of shape (r,)
        Their eigenvalues.
    y : array of shape (m,)
    intercept : bool, default=True
        Whether a constant b is fitted; it is not penalised.
    """

    def __init__(
        self,
        U: NDArray[np.float64],
        values: NDArray[np.float64],
        y: NDArray[np.float64],
        intercept: bool = True,
    ) -> None:
        self._U, self._values, self._y = U, np.maximum(values, 0.0), y
        self._square = U.shape[1] == len(U)
        self._intercept = intercept
        self._ones = np.ones(len(y))

    @classmethod
    def of_kernel(
        cls, K: NDArray[np.float64], y: NDArray[np.float64], intercept: bool = True
    ) -> RidgePath:
        """From the kernel of the rows, m × m."""
        with one_blas_thread():
            values, U = sla.eigh(K, driver="evd", check_finite=False)
        return cls(U, values, y, intercept)

    @classmethod
    def of_features(
        cls, F: NDArray[np.float64], y: NDArray[np.float64], intercept: bool = True
    ) -> RidgePath:
        """From features of the rows, m × N, on the smaller side."""
        with one_blas_thread():
            if F.shape[1] >= len(F):
                return cls.of_kernel(F @ F.T, y, intercept)
            values, V = sla.eigh(F.T @ F, driver="evd", check_finite=False)
            # What rounding makes of zero would give directions that are not orthonormal.
            kept = values > 1e-13 * values[-1]
            U = (F @ V[:, kept]) / np.sqrt(values[kept])
        return cls(U, values[kept], y, intercept)

    def dual(self, a: float) -> tuple[NDArray[np.float64], float]:
        """Weights v of the rows and the constant b, for the ridge weight a > 0."""
        by_y, by_one = self._inverse(a, self._y), self._inverse(a, self._ones)
        if not self._intercept:
            return by_y, 0.0
        b = float(by_y.sum() / by_one.sum())
        return by_y - b * by_one, b

    def held_out(self, out: NDArray[np.intp], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions of rows `out` by the fits of all other rows, (ridge weights, rows)."""
        predicted = np.empty((len(weights), len(out)))
        U = self._U[out]
        with one_blas_thread():
            for place, a in enumerate(weights):
                v, _ = self.dual(a)
                block = (U * self._shrinkage(a)) @ U.T
                if not self._square:
                    block[np.diag_indices(len(out))] += 1 / a
                if self._intercept:
                    by_one = self._inverse(a, self._ones)
                    block -= np.outer(by_one[out], by_one[out] / by_one.sum())
                residual = sla.solve(block, v[out], assume_a="sym", check_finite=False)
                predicted[place] = self._y[out] - residual
        return predicted

    def _shrinkage(self, a: float) -> NDArray[np.float64]:
        """M = U diag(this) Uᵀ, plus 1/a where eigenvectors of eigenvalue 0 are left out."""
        if self._square:
            return 1 / (self._values + a)
        return -self._values / (self._values + a) / a

    def _inverse(self, a: float, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        product: NDArray[np.float64] = self._U @ (self._shrinkage(a) * (self._U.T @ vector))
        return product if self._square else product + vector / a
