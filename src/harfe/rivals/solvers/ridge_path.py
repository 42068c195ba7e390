"""Ridge regression for all ridge weights and all folds from one eigendecomposition.

    minimise over b and v   ‖y - b - K v‖² + a vᵀK v

for a kernel K (or K = FFᵀ, with coefficients Fᵀv of the features F). Its solution is v = M̃y with
M = (K + a)⁻¹, M̃ = M - M11ᵀM/(1ᵀM1), and b = 1ᵀMy/(1ᵀM1). If the rows of a fold are held out and
the ridge weight a is kept, their residuals are

    e_F = (M̃_FF)⁻¹ v_F:

the fit without them equals the fit on all rows with y_F changed to make v_F = 0. This is the
leave-one-out formula for blocks; it is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe._core.threads import one_blas_thread


def cuts_in_two(train: NDArray[np.intp], out: NDArray[np.intp], m: int) -> bool:
    """Whether each of m rows is in exactly one part: only then does the formula for e_F hold.

    Other folds exist, e.g. time windows that leave later rows out.
    """
    count = np.bincount(train, minlength=m) + np.bincount(out, minlength=m)
    return bool(np.all(count == 1))


class RidgePath:
    """Ridge fits on some rows for every ridge weight.

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
        with one_blas_thread():
            self._Uy, self._U1 = U.T @ y, U.T @ self._ones

    @classmethod
    def of_kernel(
        cls, K: NDArray[np.float64], y: NDArray[np.float64], intercept: bool = True
    ) -> RidgePath:
        """From the m × m kernel of the rows."""
        with one_blas_thread():
            values, U = sla.eigh(K, driver="evd", check_finite=False)
        return cls(U, values, y, intercept)

    @classmethod
    def of_features(
        cls, F: NDArray[np.float64], y: NDArray[np.float64], intercept: bool = True
    ) -> RidgePath:
        """From the m × N features of the rows, on the smaller side."""
        with one_blas_thread():
            if F.shape[1] >= len(F):
                return cls.of_kernel(F @ F.T, y, intercept)
            values, V = sla.eigh(F.T @ F, driver="evd", check_finite=False)
            # Directions of eigenvalues that are zero up to rounding would not be orthonormal.
            kept = values > 1e-13 * values[-1]
            U = (F @ V[:, kept]) / np.sqrt(values[kept])
        return cls(U, values[kept], y, intercept)

    def dual(self, a: float) -> tuple[NDArray[np.float64], float]:
        """Weights v of the rows and the constant b, for the ridge weight a > 0."""
        return self._dual(a, slice(None))

    def _dual(self, a: float, rows: Any) -> tuple[NDArray[np.float64], float]:
        """The same for some of the rows."""
        by_y = self._inverse(a, self._Uy, self._y, rows)
        if not self._intercept:
            return by_y, 0.0
        b = self._total(a, self._Uy, self._y) / self._total(a, self._U1, self._ones)
        return by_y - b * self._inverse(a, self._U1, self._ones, rows), b

    def held_out(self, out: NDArray[np.intp], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions at rows `out` from fits on all other rows, (ridge weights, rows)."""
        predicted = np.empty((len(weights), len(out)))
        U = self._U[out]
        with one_blas_thread():
            for place, a in enumerate(weights):
                v, _ = self._dual(a, out)
                block = (U * self._shrinkage(a)) @ U.T
                if not self._square:
                    block[np.diag_indices(len(out))] += 1 / a
                if self._intercept:
                    by_one = self._inverse(a, self._U1, self._ones, out)
                    block -= np.outer(by_one, by_one / self._total(a, self._U1, self._ones))
                residual = sla.solve(block, v, assume_a="sym", check_finite=False)
                predicted[place] = self._y[out] - residual
        return predicted

    def _shrinkage(self, a: float) -> NDArray[np.float64]:
        """M = U diag(this) Uᵀ, plus 1/a if eigenvectors of eigenvalue 0 are left out."""
        if self._square:
            return 1 / (self._values + a)
        return -self._values / (self._values + a) / a

    def _inverse(
        self, a: float, turned: NDArray[np.float64], vector: NDArray[np.float64], rows: Any
    ) -> NDArray[np.float64]:
        """Some rows of M times a vector, given together with Uᵀ times it."""
        product: NDArray[np.float64] = self._U[rows] @ (self._shrinkage(a) * turned)
        return product if self._square else product + vector[rows] / a

    def _total(self, a: float, turned: NDArray[np.float64], vector: NDArray[np.float64]) -> float:
        """1ᵀM times a vector, given together with Uᵀ times it."""
        total = float((self._shrinkage(a) * self._U1) @ turned)
        return total if self._square else total + float(vector.sum()) / a
