"""Checks of the data passed to estimators, before any work is done.

Messages name the argument, what is wrong with it, and what to type instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from harfe._core.sklearn_compat import validate_data


def check_inputs(
    estimator: Any, X: Any, *, reset: bool, dtype: Any = np.float64, min_rows: int = 1
) -> NDArray[Any]:
    """Return X as a finite matrix; with `reset` store its columns, otherwise compare them."""
    try:
        return validate_data(estimator, X, reset=reset, dtype=dtype, ensure_min_samples=min_rows)
    except ValueError as error:
        raise _named_text(X, error) from error


def input_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns an estimator was fitted to; x0, x1, ... without names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = default_names(estimator.n_features_in_)
    return tuple(str(name) for name in names)


def default_names(n_inputs: int) -> tuple[str, ...]:
    """Return the names of columns that have none."""
    return tuple(f"x{j}" for j in range(n_inputs))


def check_table(X: Any, *, min_rows: int = 1) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the inputs as finite numbers, and their names, without an estimator to store them."""
    try:
        values = check_array(X, dtype=np.float64, ensure_min_samples=min_rows, input_name="X")
    except ValueError as error:
        raise _named_text(X, error) from error
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        names = default_names(values.shape[1])
    return values, tuple(names)


def check_rows(X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the inputs and one real target as finite numbers, without an estimator."""
    X, _ = check_table(X, min_rows=2)
    y = check_targets(y, len(X))
    if y.ndim > 1 or y.dtype.kind == "c":
        raise ValueError(
            f"y has shape {y.shape} and type {y.dtype}; pass one real target, e.g. y[:, 0] or "
            "y.real"
        )
    return X, y


def _named_text(X: Any, error: ValueError) -> ValueError:
    """Return the same error, or one that names the column that holds text."""
    if "could not convert" not in str(error):
        return error
    return ValueError(
        f"X holds text{_first_text(X)}; encode it as numbers first, e.g. with "
        "sklearn.preprocessing.OneHotEncoder, or leave the column out"
    )


def _first_text(X: Any) -> str:
    """Locate the first text, for a message; empty if X is not a table."""
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        return ""
    columns = getattr(X, "columns", range(table.shape[1]))
    texts = (
        f" in column {name!r}, e.g. {value!r}"
        for name, column in zip(columns, table.T, strict=True)
        for value in column
        if not _reads_as_number(value)
    )
    return next(texts, "")


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def check_targets(y: Any, n_rows: int) -> NDArray[Any]:
    """Return the target as finite numbers, real or complex, of shape (rows,) or (rows, targets)."""
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None; call fit(X, y)"
        )
    if np.asarray(y).dtype.kind == "c":
        # scikit-learn rejects complex numbers, so it checks the two parts.
        y = np.atleast_1d(np.asarray(y, dtype=complex))
        for part in (y.real, y.imag):
            check_array(part, ensure_2d=False, input_name="y")
    else:
        try:
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"y holds text ({error}); this is a regressor, pass numbers as the target"
            ) from error
    if len(y) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows but y has {len(y)}; pass one target value for each row of X"
        )
    return y


# Odd numbers without pattern, of 64 bits: a start, and two factors.
_HASH = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)


def check_weights(sample_weight: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return the row weights: finite, not negative, positive for at least two rows."""
    if sample_weight is None:
        return np.ones(len(X))
    if np.isscalar(sample_weight):
        sample_weight = np.full(len(X), sample_weight)
    weights: NDArray[np.float64] = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (len(X),):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(len(X),)}: "
            "pass one weight for each row of X"
        )
    if np.any(weights < 0):
        raise ValueError(
            f"sample_weight holds the negative value {float(weights.min())!r}; weights count how "
            "often a row was seen, pass numbers >= 0"
        )
    if np.count_nonzero(weights) < 2:
        raise ValueError(
            f"sample_weight is above zero for {np.count_nonzero(weights)} rows; at least 2 must "
            "count, pass sample_weight=None to weight all rows equally"
        )
    return weights


def row_weights(sample_weight: Any, X: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return weights for a fit, which sum to the number of distinct rows that count.

    Only their ratios matter, then: multiplying all weights by a constant changes nothing, and
    weight 2 is the same as a row given twice, also for rules that look at the amount of data.
    """
    weights = check_weights(sample_weight, X)
    counted = weights > 0
    if np.all(weights[counted] == weights[counted][0]):
        weights = counted.astype(float)
    # In few bits, so that sums of equal weights are exact.
    share = count_distinct(X[counted], y[counted]) / np.float64(weights.sum())
    return weights * np.float64(np.float32(share))


def count_distinct(X: NDArray[np.float64], y: NDArray[Any]) -> int:
    """Number of distinct rows of inputs and targets, by their hashes."""
    parts = [y.real, y.imag] if y.dtype.kind == "c" else [y]
    columns = [column for part in (X, *parts) for column in part.reshape(len(X), -1).T]
    found = np.full(len(X), _HASH[0], np.uint64)
    for column in columns:
        # Adding 0 turns -0 into 0, which has other bits.
        found ^= np.ascontiguousarray(column + 0.0).view(np.uint64)
        found *= _HASH[1]
        found ^= found >> np.uint64(29)
        found *= _HASH[2]
        found ^= found >> np.uint64(32)
    return len(np.unique(found))
