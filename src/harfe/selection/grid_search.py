"""Selection over a grid of laws: the race of `harfe.selection.race`, and the fits that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.model.expansion import Expansion
from harfe.model.uncertainty import Posterior
from harfe.selection.choosing import Choice
from harfe.selection.race import Race, choose, task_keys
from harfe.selection.recipe import Fit, Recipe


@dataclass
class GridSearch:
    """Orders and scales against each other.

    Attributes
    ----------
    race : Race
    pools : sequence of (order, scale)
        What the recipes of the race stand for.
    """

    race: Race
    pools: Sequence[tuple[Any, Any]]

    @property
    def planned(self) -> int:
        """Most tasks that the search can have."""
        return len(self.race.recipes) * len(self.race.folds)

    def resume(self, earlier: dict[bytes, Any]) -> None:
        """Take over what an earlier search on the same rows has finished."""
        keys = task_keys(self.race)
        self.race.errors.update(
            {task: earlier[key] for task, key in keys.items() if key in earlier},
        )

    def finished(self) -> dict[bytes, Any]:
        """What a later search may take over."""
        keys = task_keys(self.race)
        return {keys[task]: table for task, table in self.race.errors.items()}

    def run(
        self, n_jobs: int | None, deadline: float, after_task: Callable[[int, int], bool]
    ) -> bool:
        """See `Race.run`."""
        return self.race.run(n_jobs, deadline, after_task)

    def best_so_far(self) -> tuple[float, str]:
        """Best mean score and whose it is."""
        scores = {p: np.nanmax(self.race.mean_scores(p)) for p in {p for p, _ in self.race.errors}}
        best = max(scores, key=lambda p: scores[p])
        return float(scores[best]), self._label(best)

    @property
    def trying(self) -> str:
        """What is run next, for whoever waits."""
        return "; ".join(self._label(p) for p in dict.fromkeys(self.race.coming)) or "the best"

    def _label(self, p: int) -> str:
        order, scale = self.pools[p]
        return f"order {order}, scale {scale:.3g}"

    def table(self) -> NDArray[np.float64]:
        """Errors and scores, shape (2, pools, sizes, alphas, folds)."""
        return self.race.table()

    def choose(self, selection: str) -> Choice:
        """Pick a cell of the table."""
        return choose(self.table()[1], self.race.sizes, selection)

    def fit(self, choice: Choice) -> tuple[Fit, Recipe]:
        """Fit all rows with the choice."""
        recipe, data = self._recipe(choice), self.race.data
        return recipe.fit(data.X, data.y, data.weights), recipe

    def fit_without(self, fold: int, selection: str) -> tuple[Expansion, Posterior]:
        """Fit the rows outside a fold, with the settings that the other folds choose."""
        race = self.race
        scores = race.table()[1]
        run = np.isfinite(scores).any(axis=(0, 1, 2))
        others = [k for k in range(race.n_first) if k != fold and run[k]]
        # Where time ran out after a single fold, there are no others.
        choice = choose(scores[..., others] if others else scores, race.sizes, selection)
        recipe = self._recipe(choice)
        train = race.folds[fold][0]
        fit = recipe.fit(race.data.X[train], race.data.y[train], race.data.weights[train])
        return fit.expansion, fit.posterior(recipe.alpha)

    def _recipe(self, choice: Choice) -> Recipe:
        """The settings of a cell of the table."""
        return replace(
            self.race.recipes[choice.pool],
            n_nonzero_coefs=self.race.sizes[choice.size],
            alpha=self.race.alphas[choice.alpha],
        )
