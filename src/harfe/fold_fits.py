"""Whole fits without a fold: what the search would have done without those rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.expansion import Expansion
from harfe.race import Choice, Race, choose
from harfe.recipe import Recipe
from harfe.uncertainty import Posterior


def recipe_of(race: Race, choice: Choice) -> Recipe:
    """The settings of a cell of the table."""
    return replace(
        race.recipes[choice.pool],
        n_nonzero_coefs=race.sizes[choice.size],
        alpha=race.alphas[choice.alpha],
    )


def fit_without(
    race: Race, y: NDArray[Any], selection: str, fold: int
) -> tuple[Expansion, Posterior]:
    """Fit the rows outside a fold, with the settings that the other folds choose."""
    scores = race.table()[1]
    run = np.isfinite(scores).any(axis=(0, 1, 2))
    others = [k for k in range(race.n_first) if k != fold and run[k]]
    # Where time ran out after a single fold, there are no others.
    choice = choose(scores[..., others] if others else scores, race.sizes, selection)
    recipe = recipe_of(race, choice)
    train = race.folds[fold][0]
    fit = recipe.fit(race.data.X[train], y[train], race.data.weights[train])
    return fit.expansion, fit.posterior(recipe.alpha)
