"""The error measures of the paper (section "Numerical Results on Synthetic Data").

With f the truth and f♯ the model, both real or complex, summed over rows and outputs::

    relative_error      sqrt( Σ |f - f♯|² / Σ |f|² )
    mean_squared_error  (1/n) Σ |f - f♯|²
    relative_residual   ‖A c - y‖₂ / ‖y‖₂         the first formula, on the training rows

Row weights w turn every sum over rows into Σ w(...), and n into Σ w.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["mean_squared_error", "relative_error", "relative_residual"]

NumericArray: TypeAlias = NDArray[np.float64] | NDArray[np.complex128]


def relative_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return Rel(f, f♯) = sqrt( Σ |f - f♯|² / Σ |f|² ), the paper's relative test error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, outputs)
        The target f; real or complex.
    y_pred : array-like of the same shape
        The model f♯. A column (n, 1) is not accepted for a vector (n,), because that would compare
        every row with every other.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights of the rows. None means equal weights.

    Returns
    -------
    float
        A fraction, not a percentage as in the paper's Table 1. If the truth is zero everywhere, 0.0
        for a model that is also zero, infinity for any other.

    Examples
    --------
    >>> relative_error([3.0, 4.0], [3.0, 3.0])
    0.2
    """
    truth, prediction, weight = _checked(y_true, y_pred, sample_weight)
    error_norm = _norm(truth - prediction, weight)
    truth_norm = _norm(truth, weight)
    if truth_norm == 0:
        # Unlike a plain infinity, the product keeps a NaN visible.
        return 0.0 if error_norm == 0 else error_norm * math.inf
    return error_norm / truth_norm


def mean_squared_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return MSE(f, f♯) = (1/n) Σ |f - f♯|².

    Several outputs are summed, not averaged: for k outputs this is k times what scikit-learn's
    function of the same name returns by default.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As in `relative_error`.

    Returns
    -------
    float
        The mean over the rows of the squared distance between truth and model.

    Examples
    --------
    >>> mean_squared_error([1.0, 2.0], [1.0, 4.0])
    2.0
    >>> mean_squared_error([1j], [1.0])
    2.0
    """
    truth, prediction, weight = _checked(y_true, y_pred, sample_weight)
    error = truth - prediction
    squares = (error * error.conj()).real
    return float(np.sum(weight * squares.T) / np.sum(weight))


def relative_residual(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return Res = ‖A c - y‖₂ / ‖y‖₂ on the training rows, which Algorithm 1 compares with ε.

    The formula is that of `relative_error`, applied to the training rows.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, outputs)
        The training target y.
    y_pred : array-like of the same shape
        The fitted values A c.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        0.0 for an interpolating fit, 1.0 for c = 0.

    Examples
    --------
    >>> relative_residual([1.0, -2.0], [0.0, 0.0])
    1.0
    """
    return relative_error(y_true, y_pred, sample_weight=sample_weight)


def _norm(values: NumericArray, weight: NDArray[np.float64]) -> float:
    """Return sqrt( Σ w |v|² ), scaled by the largest value to avoid overflow and underflow."""
    sizes = np.sqrt(weight) * np.abs(values).T
    largest = float(np.max(sizes))
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(float(np.sum((sizes / largest) ** 2)))


def _checked(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NumericArray, NumericArray, NDArray[np.float64]]:
    """Return truth, prediction and row weights as arrays of matching shapes."""
    truth = _numbers("y_true", y_true)
    prediction = _numbers("y_pred", y_pred)
    if truth.ndim not in (1, 2) or truth.size == 0:
        raise ValueError(
            f"y_true has shape {truth.shape}: pass at least one row, as (n,) or (n, outputs)."
        )
    if truth.shape != prediction.shape:
        raise ValueError(
            f"y_true has shape {truth.shape} and y_pred has shape {prediction.shape}: "
            "pass equal shapes, or y_pred.reshape(y_true.shape) if only the layout differs."
        )
    return truth, prediction, _weights(sample_weight, len(truth))


def _numbers(argument: str, values: ArrayLike) -> NumericArray:
    """Convert to double precision, so that unsigned integers and floats subtract safely."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "biufc":
        raise ValueError(
            f"{argument} has dtype {array.dtype}: pass real or complex numbers, "
            f"e.g. numpy.asarray({argument}, dtype=float)."
        )
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64)


def _weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}: pass one weight per row, shape ({n_rows},)."
        )
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        raise ValueError(
            f"sample_weight[{wrong.argmax()}] is {weight[wrong.argmax()]}: "
            "pass finite weights that are zero or positive."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: pass at least one positive weight.")
    return weight
