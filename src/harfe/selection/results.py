"""A search as scikit-learn reports it: a table of what was tried, and the choice as parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from harfe.learning.candidates import LearnedLaw
from harfe.model.expansion import Expansion
from harfe.model.uncertainty import Posterior
from harfe.selection.choosing import Choice
from harfe.selection.recipe import Fit, Recipe


@dataclass(frozen=True)
class SearchOutcome:
    """What a search has found: the table of all that was tried, the choice, and its fit.

    Attributes
    ----------
    errors, scores : arrays of shape (candidates, sizes, alphas, folds)
        Held-out errors, and what was maximised; NaN where nothing was run.
    choice : Choice
    candidates : list
        What the first axis of the table stands for.
    params : list of dict
        The same as parameters.
    chosen_params : dict
        Law, or order and scale, with which one fit repeats the choice.
    order, scale
        Of the law that was chosen.
    kind : {"data", "matched", "refined"}
        How the features were found.
    recipe : Recipe
        Settings of the fit.
    fit : Fit
        Of all rows.
    fit_without : callable
        Fits the rows outside a fold with the settings that the other folds choose.
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
    recipe: Recipe
    fit: Fit
    fit_without: Callable[[int], tuple[Expansion, Posterior]]
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
    """Scores (candidates, folds) as scikit-learn lists them, a candidate an entry."""
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
    given: Mapping[str, Any], plain: Mapping[str, Any], final: Recipe, own: Mapping[str, Any]
) -> dict[str, Any]:
    """The choice as parameters of one fit.

    Parameters
    ----------
    given : dict
        Parameters of the search.
    plain : dict
        Those of one fit, with their defaults: what differs from them is passed on.
    final : Recipe
        Of the fit of all rows.
    own : dict
        Order and scale, or the law.
    """
    passed = {
        name: value
        for name, value in given.items()
        if name in plain and value is not plain[name] and name not in ("random_state", "law")
    }
    chosen = {
        "n_components": final.n_components,
        "n_nonzero_coefs": final.n_nonzero_coefs,
        "alpha": final.alpha,
        "init": final.init,
    }
    return passed | chosen | dict(own)
