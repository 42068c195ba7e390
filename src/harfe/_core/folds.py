"""Cross-validation folds: which rows are held out together.

The default folds keep equal rows together: a row that occurs twice must not be trained on and held
out at once, and a row of weight 2 is split like two copies of it. They do not depend on the order
of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, check_cv

from harfe._core.arguments import is_whole

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def make_folds(
    name: str,
    cv: Any,
    X: NDArray[np.float64],
    y: NDArray[Any],
    seed: int,
    *,
    counted: NDArray[np.bool_] | None = None,
    groups: Any = None,
    repeats: int = 1,
) -> list[Fold]:
    """Return (training rows, held-out rows) of every fold, numbered among the rows that count.

    Parameters
    ----------
    name : str
        The user's name for `cv`, for messages.
    cv : int, splitter or iterable
        A number of folds of shuffled rows, `repeats` times (with `groups`: GroupKFold), or what
        scikit-learn accepts: an object with ``split``, or pairs of row arrays.
    X, y : arrays
    seed : int
        Seed of the shuffle.
    counted : array of shape (rows,), optional
        Rows of positive weight. Splitters and pairs of row arrays refer to all rows, from which
        the others are then dropped; a number of folds splits only the rows that count.
    groups : array of shape (rows,), optional
    repeats : int, default=1
        How often the rows are shuffled anew if `cv` is a number.
    """
    if counted is None:
        counted = np.ones(len(X), dtype=bool)
    if is_whole(cv):
        X, y, groups = X[counted], y[counted], None if groups is None else groups[counted]
        counted = np.ones(len(X), dtype=bool)
        if cv < 2:
            raise ValueError(f"{name}={cv!r} must be at least 2 folds, e.g. {name}=5")
        if groups is None:
            return _shuffled(X, y, int(cv), seed, repeats)
        cv = GroupKFold(int(cv))
    elif isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise ValueError(
            f"{name}={cv!r} must be a number of folds, a scikit-learn splitter or a list of "
            f"(training rows, held-out rows), e.g. {name}=5"
        )
    splits = check_cv(cv).split(X, y if y.dtype.kind != "c" else None, groups)
    folds = [_as_rows(name, train, test, counted) for train, test in splits]
    if not folds:
        raise ValueError(f"{name}={cv!r} yields no folds; pass e.g. {name}=5")
    return folds


def _as_rows(name: str, train: Any, test: Any, counted: NDArray[np.bool_]) -> Fold:
    train, test = (_numbered(name, rows, counted) for rows in (train, test))
    if len(train) < 2 or not len(test):
        raise ValueError(
            f"{name} yields a fold with {len(train)} training and {len(test)} held-out rows; "
            "at least 2 and 1 are needed"
        )
    return train, test


def _numbered(name: str, rows: Any, counted: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Row numbers among the rows that count; masks and negative numbers are accepted."""
    rows = np.asarray(rows)
    if not rows.size:
        rows = rows.astype(np.intp)
    try:
        rows = np.arange(len(counted))[rows]
    except IndexError as error:
        raise ValueError(
            f"{name} refers to rows that do not exist ({error}); X has {len(counted)} rows"
        ) from error
    place = np.cumsum(counted) - 1
    numbered: NDArray[np.intp] = place[rows[counted[rows]]]
    return numbered


def _shuffled(
    X: NDArray[np.float64], y: NDArray[Any], n_splits: int, seed: int, repeats: int
) -> list[Fold]:
    y = y.reshape(len(y), -1)
    parts = [y.real, y.imag] if y.dtype.kind == "c" else [y]
    table = np.hstack([X, *parts])
    _, group = np.unique(table, axis=0, return_inverse=True)
    group = group.ravel()
    n_groups = int(group.max()) + 1
    if n_groups < 2:
        raise ValueError("All rows are equal, so none can be held out; pass rows that differ")
    n_splits = min(n_splits, n_groups)
    folds = []
    for stream in np.random.default_rng(seed).spawn(repeats):
        number = np.empty(n_groups, dtype=np.intp)
        number[stream.permutation(n_groups)] = np.arange(n_groups) % n_splits
        held_out = number[group]
        folds += [
            (np.flatnonzero(held_out != k), np.flatnonzero(held_out == k)) for k in range(n_splits)
        ]
    return folds
