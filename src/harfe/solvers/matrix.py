"""The sparse ridge problem of a plain matrix: checks arguments and standardises columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import check_choice
from harfe._core.threads import one_blas_thread
from harfe.solvers.homes import COLUMN_SCALES, StoredProblem
from harfe.solvers.problem import Problem


def sparse_ridge_problem(
    A: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    fit_intercept: bool = True,
    column_scale: str = "rms",
) -> Problem:
    """Set up (1/M) Σ_k w_k |y_k - ȳ - (A c)_k|² + α‖c‖² for a matrix, to minimise it repeatedly.

    :func:`hard_ridge_pursuit` and :func:`sparsity_path` accept the result in place of A and y, so
    that the columns are centred and scaled only once for several sparsities or ridge weights.

    Parameters
    ----------
    A : array of shape (m, N)
        Real or complex. It is copied.
    y : array of shape (m,) or (m, targets)
        Real or complex. Several targets share the support; each is divided by its deviation.
    sample_weight : array of shape (m,), default=None
        How often each row counts, w: 2 is like two copies of the row, 0 like none. M = Σ w.
    fit_intercept : bool, default=True
        Centre the columns and y; the paper does not.
    column_scale : {"rms", "none"}, default="rms"
        Scale the columns to unit root-mean-square after centring, or not at all; "none" with
        ``alpha=λ`` and ``step_size=m*μ`` is the paper's literal form.

    Returns
    -------
    Problem
        The matrix, the targets and the weights as the solvers see them.

    Examples
    --------
    >>> import numpy as np
    >>> from harfe import hard_ridge_pursuit, sparse_ridge_problem
    >>> A = np.random.default_rng(0).normal(size=(50, 200))
    >>> problem = sparse_ridge_problem(A, 3 * A[:, 7] - A[:, 60] + 1)
    >>> for s in (1, 2):
    ...     print(hard_ridge_pursuit(problem, n_nonzero_coefs=s, alpha=1e-6).support)
    [7]
    [ 7 60]
    """
    matrix = _numbers("A", A)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"A has shape {matrix.shape}; pass a matrix with a row for each observation and at "
            "least one column, e.g. A.reshape(-1, 1) for a single column"
        )
    if y is None:
        raise ValueError("y=None; pass a target value for each row of A, e.g. y=A[:, 0]")
    targets = _numbers("y", y)
    m = len(matrix)
    if targets.ndim not in (1, 2) or len(targets) != m or 0 in targets.shape:
        raise ValueError(
            f"y has shape {targets.shape} but A has {m} rows; pass y of shape ({m},) or "
            f"({m}, targets)"
        )
    weights = _weights(sample_weight, m)
    if not isinstance(fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept={fit_intercept!r} must be True or False")
    check_choice("column_scale", column_scale, COLUMN_SCALES)
    counted = weights > 0
    # Sums over rows must not depend on the number of BLAS threads.
    with one_blas_thread():
        return StoredProblem.from_matrix(
            matrix[counted],
            targets[counted],
            weights[counted],
            fit_intercept=bool(fit_intercept),
            column_scale=column_scale,
        )


def as_problem(
    A: ArrayLike | Problem,
    y: ArrayLike | None,
    *,
    sample_weight: ArrayLike | None,
    fit_intercept: bool,
    column_scale: str,
) -> Problem:
    """Return A if it is already a problem, otherwise the problem of A and y."""
    if not isinstance(A, Problem):
        return sparse_ridge_problem(
            A,
            y,  # type: ignore[arg-type]  # None is rejected there
            sample_weight=sample_weight,
            fit_intercept=fit_intercept,
            column_scale=column_scale,
        )
    given = {
        "y": y is not None,
        "sample_weight": sample_weight is not None,
        "fit_intercept": fit_intercept is not True,
        "column_scale": column_scale != "rms",
    }
    if any(given.values()):
        name = next(name for name, passed in given.items() if passed)
        raise ValueError(
            f"{name} was passed along with a problem, which has its own; leave {name} out, or "
            "pass it to sparse_ridge_problem"
        )
    return A


def _numbers(name: str, values: Any) -> NDArray[Any]:
    """Return the values as finite doubles, real or complex."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} has rows of different length ({error}); pass an array of numbers"
        ) from error
    if array.dtype.kind not in "biufc":
        raise ValueError(
            f"{name} has type {array.dtype} and shape {array.shape}; pass a dense array of "
            f"numbers, e.g. np.asarray({name}, dtype=float), or {name}.toarray() if it is sparse"
        )
    array = array.astype(complex if array.dtype.kind == "c" else float, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"{name} holds {array[place]} at {place if len(place) > 1 else place[0]}; drop or "
            "fill rows that are not finite"
        )
    return array


def _weights(sample_weight: Any, m: int) -> NDArray[np.float64]:
    if sample_weight is None:
        sample_weight = 1.0
    weights = _numbers("sample_weight", sample_weight)
    if weights.ndim == 0:
        weights = np.full(m, weights)
    if weights.shape != (m,) or weights.dtype.kind == "c":
        raise ValueError(
            f"sample_weight has shape {weights.shape} and type {weights.dtype}; pass one real "
            f"weight for each of the {m} rows of A"
        )
    if np.any(weights < 0):
        raise ValueError(
            f"sample_weight holds the negative value {float(weights.min())!r}; weights count how "
            "often a row was seen, pass numbers >= 0"
        )
    if np.count_nonzero(weights) < 2:
        raise ValueError(
            f"{np.count_nonzero(weights)} rows of A have a weight above 0; at least 2 are needed"
        )
    return weights
