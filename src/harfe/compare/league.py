"""A league table of harfe and other methods, on the same folds of the user's data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from harfe._core.folds import make_folds
from harfe._core.table import Table
from harfe._core.validation import check_rows
from harfe.compare.methods import METHODS, Method, named

_MANY_ROWS = 20_000


def compare_methods(
    X: ArrayLike,
    y: ArrayLike,
    methods: str | Sequence[str] = "default",
    cv: int = 5,
    seed: int = 0,
    after_fold: Callable[[str, int, float], None] | None = None,
) -> Table:
    """Compare methods by their errors on held-out folds, each fitted to the other folds.

    Parameters
    ----------
    X, y : arrays of shape (rows, inputs) and (rows,)
    methods : str or sequence of str, default="default"
        Names in `harfe.compare.METHODS`, or "default", "paper" (the methods in the paper's tables)
        or "all".
    cv : int, default=5
        Number of folds; equal rows stay together.
    seed : int, default=0
        Seed of the folds and methods.
    after_fold : callable, optional
        Called with the method, the number of the fold and its root mean square error.

    Returns
    -------
    Table
        The best first: `method`, `rmse` (mean over the folds of the root mean square error),
        `spread` (its standard deviation over the folds), `r2` over all held-out rows, `size`
        (number of features, coefficients, leaves or support vectors; None if not defined),
        `fit_seconds` (mean over the folds), `predict_microseconds` (per row), and `failure` (why a
        method has no result).

    Examples
    --------
    >>> from harfe import compare_methods
    >>> from harfe.datasets import make_function
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> compare_methods(data.X, data.y, ["mean", "linear"])["method"].tolist()
    ['linear', 'mean']
    """
    names = named(methods)
    if not names:
        raise ValueError(f"methods={methods!r} names no method; pass e.g. methods='default'")
    X, y = check_rows(X, y)
    folds = make_folds("cv", cv, X, y, seed)
    results = []
    for name in names:
        call = None if after_fold is None else _named(after_fold, name)
        results.append({"method": name, **_one(METHODS[name], X, y, folds, seed, call)})
    results.sort(key=lambda result: (np.isnan(result["rmse"]), result["rmse"]))
    return Table({column: [result[column] for result in results] for column in results[0]})


def _named(
    after_fold: Callable[[str, int, float], None], name: str
) -> Callable[[int, float], None]:
    return lambda number, error: after_fold(name, number, error)


def _one(
    method: Method,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    seed: int,
    after_fold: Callable[[int, float], None] | None,
) -> dict[str, Any]:
    """Measure errors, size and times of a method."""
    errors, sizes, fit_times, predict_times = [], [], [], []
    prediction = np.full(len(y), np.nan)
    failure = None
    for number, (train, held_out) in enumerate(folds):
        try:
            model = method.make(seed, len(train))
            with warnings.catch_warnings(), _few_threads(len(train)):
                # Whether a rival converges is its own affair; the error shows the result.
                warnings.simplefilter("ignore")
                begun = time.perf_counter()
                model.fit(X[train], y[train])
                fitted = time.perf_counter()
                prediction[held_out] = model.predict(X[held_out])
                fit_times.append(fitted - begun)
                predict_times.append((time.perf_counter() - fitted) / len(held_out))
        except ImportError as error:
            failure = f"{error}; type pip install 'harfe[rivals]'"
            break
        except (ValueError, MemoryError) as error:
            failure = str(error).strip().partition("\n")[0]
            break
        errors.append(float(np.sqrt(np.mean((y[held_out] - prediction[held_out]) ** 2))))
        sizes.append(method.size(model))
        if after_fold is not None:
            after_fold(number, errors[-1])
    failed = failure is not None
    spread = np.sum((y - y.mean()) ** 2)
    known = [size for size in sizes if size is not None]
    return {
        "rmse": np.nan if failed else float(np.mean(errors)),
        "spread": np.nan if failed else float(np.std(errors, ddof=1)),
        "r2": np.nan if failed or not spread else float(1 - np.sum((y - prediction) ** 2) / spread),
        "size": round(float(np.mean(known))) if known and not failed else None,
        "fit_seconds": np.nan if failed else float(np.mean(fit_times)),
        "predict_microseconds": np.nan if failed else float(np.mean(predict_times)) * 1e6,
        "failure": failure,
    }


def _few_threads(rows: int) -> AbstractContextManager[Any]:
    """Limit to one thread for few rows, where several wait for each other more than they work."""
    return threadpool_limits(limits=1 if rows < _MANY_ROWS else None)
