"""Ridge regression with a constant on the rows of one fold, for all ridge weights."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

# Lower limit of 1 - leverage: rounding can make it zero for a row that determines its own value.
_TINY = 1e-15


class CentredRidge:
    """Ridge regression with a constant on some rows, for all ridge weights.

    Parameters
    ----------
    matrix : array of shape (rows, functions) or (rows, rows)
        Functions at all rows, or their kernel.
    by_rows : bool
        Whether `matrix` is a kernel.
    y : array of shape (rows,)
    train : int array
        Rows to fit.
    """

    def __init__(
        self,
        matrix: NDArray[np.float64],
        by_rows: bool,
        y: NDArray[np.float64],
        train: NDArray[np.intp],
    ) -> None:
        matrix = matrix[:, train] if by_rows else matrix
        matrix = matrix - matrix[train].mean(axis=0)
        if by_rows:
            matrix -= matrix.mean(axis=1)[:, None]
        self._matrix, self._by_rows, self._train = matrix, by_rows, train
        self._y, self._mean = y[train] - y[train].mean(), y[train].mean()
        fitted = matrix[train]
        # The constant has eigenvalue 0 in a centred kernel. It is raised so that its rounding error
        # does not affect leave-one-out errors; as targets are centred, nothing else changes.
        self._lift = np.trace(fitted) / len(train) if by_rows else 0.0
        if by_rows:
            system, right = fitted + self._lift / len(train), self._y
        else:
            system, right = fitted.T @ fitted, fitted.T @ self._y
        values, self._Q = sla.eigh(system, driver="evd", overwrite_a=True, check_finite=False)
        self._values, self._inner = np.maximum(values, 0.0), self._Q.T @ right

    def solve(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of the functions, or of the rows, one column per ridge weight."""
        shrunk = self._inner[:, None] / (self._values[:, None] + weights)
        solution: NDArray[np.float64] = self._Q @ shrunk
        return solution

    def predict(self, rows: NDArray[np.intp], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at rows of `matrix`, (ridge weights, rows)."""
        values: NDArray[np.float64] = self._mean + (self._matrix[rows] @ self.solve(weights)).T
        return values

    def leave_one_out(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean squared leave-one-out error over the fitted rows, for each ridge weight."""
        m, inverse = len(self._train), 1 / (self._values[:, None] + weights)
        if self._by_rows:
            # Residual and 1 - leverage, both divided by the ridge weight.
            residual = self.solve(weights)
            left = self._Q**2 @ inverse - 1 / (m * (self._lift + weights))
        else:
            fitted = self._matrix[self._train]
            residual = self._y[:, None] - fitted @ self.solve(weights)
            left = 1 - 1 / m - (fitted @ self._Q) ** 2 @ inverse
        errors: NDArray[np.float64] = np.mean((residual / np.maximum(left, _TINY)) ** 2, axis=0)
        return errors
