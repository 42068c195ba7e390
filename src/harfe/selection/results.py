"""Results of a search: scikit-learn's table, the choice as parameters, error paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from harfe._core.folds import Fold
from harfe.learning.candidates import LearnedLaw
from harfe.selection.choosing import Choice
from harfe.selection.recipe import Fit, Template


@dataclass(frozen=True)
class SearchOutcome:
    """Result of a search: the table of everything tried, the choice, and its fit.

    Attributes
    ----------
    errors, scores : arrays of shape (candidates, sizes, alphas, folds)
        Held-out errors, and what was maximised; NaN where nothing was run.
    choice : Choice
    candidates : list
        Entries along the first axis of the table.
    params : list of dict
        The same as parameters.
    chosen_params : dict
        Law, or order and scale, with which one fit reproduces the choice.
    order, scale
        Order and scale of the chosen law.
    kind : {"data", "matched", "refined"}
        How the features were found.
    sizes : list of int
        Entries along the second axis of the table.
    fit : Fit
        Fit of all rows.
    held_out : list of (Fold, Fit)
        Folds, and fits of the rows outside them with the settings chosen by the other folds.
    extent : str
        How far the search came, as a clause.
    refused : tuple of str
        Laws and kinds of models of all rows that were not what the folds had promised.
    learned_law : LearnedLaw or None
    """

    errors: NDArray[np.float64]
    scores: NDArray[np.float64]
    choice: Choice
    candidates: list[Any]
    params: list[dict[str, Any]]
    chosen_params: dict[str, Any]
    order: Any
    scale: Any
    kind: str
    sizes: list[int]
    fit: Fit
    held_out: list[tuple[Fold, Fit]]
    extent: str
    refused: tuple[str, ...] = ()
    learned_law: LearnedLaw | None = None


def cell_params(
    candidates: Sequence[Mapping[str, Any]], sizes: NDArray[np.int_], alphas: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Parameters of every cell of a table (candidates, sizes, alphas), in its order."""
    return [
        {**candidate, "n_nonzero_coefs": int(s), "alpha": float(a)}
        for candidate in candidates
        for s in sizes
        for a in alphas
    ]


def results_of(params: list[dict[str, Any]], scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return scores (candidates, folds) in the layout of scikit-learn's ``cv_results_``."""
    count = np.sum(np.isfinite(scores), axis=1)
    mean = np.full(len(scores), np.nan)
    std = np.full(len(scores), np.nan)
    run = count > 0
    mean[run], std[run] = np.nanmean(scores[run], axis=1), np.nanstd(scores[run], axis=1)
    complete = count == count.max()
    rank = np.zeros(len(scores), dtype=int)
    rank[complete] = rankdata(-mean[complete], method="min").astype(int)
    results: dict[str, Any] = {"params": params}
    for name in params[0]:
        column = np.empty(len(params), dtype=object)
        column[:] = [p[name] for p in params]
        kind = {type(p[name]) for p in params}
        results[f"param_{name}"] = column.astype(kind.pop()) if kind in ({int}, {float}) else column
    for f in range(scores.shape[1]):
        results[f"split{f}_test_score"] = scores[:, f]
    results |= {"mean_test_score": mean, "std_test_score": std, "rank_test_score": rank}
    results["n_splits"] = count
    return results


def params_of_choice(
    given: Mapping[str, Any], plain: Mapping[str, Any], final: Fit, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the choice as parameters of one fit.

    Parameters
    ----------
    given : dict
        Parameters of the search.
    plain : dict
        Parameters of one fit with their defaults; those that differ are passed on.
    final : Fit
        Fit of all rows.
    own : dict
        Order and scale, or the law.
    """
    passed = {
        name: value
        for name, value in given.items()
        if name in plain and value is not plain[name] and name not in ("random_state", "law")
    }
    chosen = {
        "n_components": final.sampling.n_components,
        "n_nonzero_coefs": final.n_nonzero_coefs,
        "alpha": final.alpha,
        "init": Template.INIT,
        "selection_rows": None,
    }
    return passed | chosen | dict(own)


@dataclass(frozen=True)
class ErrorPaths:
    """Held-out mean squared error against the number of features, one path for each pool.

    Attributes
    ----------
    sizes : int array of shape (sizes,)
        Numbers of features.
    names : tuple of str
        Names of the pools: kinds of fits, or orders and scales of a grid.
    errors : array of shape (pools, sizes, folds)
        With the best ridge weight of each size; NaN where a fold was not run.
    chosen : (int, int)
        Indices of the pool and of the size that won.
    """

    sizes: NDArray[np.int_]
    names: tuple[str, ...]
    errors: NDArray[np.float64]
    chosen: tuple[int, int]

    @cached_property
    def n_folds(self) -> NDArray[np.int_]:
        """Number of folds that were run, shape (pools, sizes)."""
        return np.sum(np.isfinite(self.errors), axis=2)

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """Mean over the folds, shape (pools, sizes); NaN where none was run."""
        return _mean_of_known(self.errors)

    @cached_property
    def standard_error(self) -> NDArray[np.float64]:
        """Standard error of `mean`, shape (pools, sizes); NaN with fewer than two folds."""
        gap = np.where(np.isfinite(self.errors), self.errors - self.mean[..., None], 0.0)
        variance = np.sum(gap**2, axis=2) / np.where(self.n_folds > 1, self.n_folds - 1.0, np.nan)
        return np.asarray(np.sqrt(variance / np.maximum(self.n_folds, 1)))


def error_paths(model: Any) -> ErrorPaths:
    """Return the error paths of a fitted HARFERegressorCV."""
    table = model.mse_path_
    n_folds = np.sum(np.isfinite(table), axis=3)
    # Ridge weights that ran on fewer folds cannot be compared with the others.
    comparable = (n_folds > 0) & (n_folds == n_folds.max(axis=2, keepdims=True))
    mean = np.where(comparable, _mean_of_known(table), np.inf)
    best = np.argmin(mean, axis=2)[:, :, None, None]
    return ErrorPaths(
        np.asarray(model.sizes_, dtype=int),
        tuple(_pool_name(pool) for pool in model.pools_),
        np.take_along_axis(table, best, axis=2)[:, :, 0],
        _chosen_places(model),
    )


def _mean_of_known(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the finite values along the last axis; NaN if there are none."""
    known = np.isfinite(errors)
    count = known.sum(axis=-1)
    total = np.where(known, errors, 0.0).sum(axis=-1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


def _pool_name(pool: Any) -> str:
    if isinstance(pool, str):
        return pool
    order, scale = pool
    return f"order {order}" if np.ndim(scale) else f"order {order}, scale {scale:.3g}"


def _chosen_places(model: Any) -> tuple[int, int]:
    """Indices in `mse_path_` of the pool and of the size that the search chose."""
    shape = model.mse_path_.shape[:3]
    # best_score_ is one of the means; those of other sizes and ridge weights are farther from it.
    gap = np.abs(model.cv_results_["mean_test_score"] - model.best_score_).reshape(shape)
    gap = np.where(np.isfinite(gap), gap, np.inf)
    for p, pool in enumerate(model.pools_):
        if not _is_chosen(pool, model):
            gap[p] = np.inf
    pool, size, _ = np.unravel_index(np.argmin(gap), shape)
    return int(pool), int(size)


def _is_chosen(pool: Any, model: Any) -> bool:
    if isinstance(pool, str):
        return bool(pool == model.fit_)
    order, scale = pool
    return np.array_equal(order, model.order_) and np.array_equal(scale, model.scale_)
