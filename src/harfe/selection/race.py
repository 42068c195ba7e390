"""Cross-validation as a race: every pool of features on a first fold, the better ones on the rest.

For one pool and one fold, features are pruned once to a core (`harfe.solvers.path`), and from there
every ridge weight prunes to every size: a table of held-out errors at the cost of a few fits. Pools
that fall behind are not run on the remaining folds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe._core.threads import one_blas_thread
from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion
from harfe.model.uncertainty import Posterior
from harfe.selection.choosing import Choice, choose
from harfe.selection.recipe import Framing, Recipe, Template
from harfe.selection.results import SearchOutcome
from harfe.selection.rows import Data, Scoring
from harfe.selection.search import Digest, Stage, Task
from harfe.solvers.path import prune_for_all

# With at least this weight of held-out rows, one fold can tell good pools from bad.
_TELLING_WEIGHT = 150


def errors_on_fold(
    framing: Framing,
    drawn: FeaturePool,
    sizes: Sequence[int],
    alphas: Sequence[float],
    data: Data,
    fold: Fold,
    scoring: Scoring | None,
) -> NDArray[np.float64]:
    """Held-out error and score of every (sparsity, ridge weight), shape (2, sizes, alphas).

    The error is the weighted mean square, with several targets in units of their deviation;
    without `scoring` the score is its negative.
    """
    train, test = fold
    with one_blas_thread():
        X, y, weights = data.X[train], data.y[train], data.weights[train]
        posed = framing.pose(drawn, X, y, weights, largest_support=max(sizes), graded=True)
        core = posed.find_core(max(sizes))
        held_out = posed.scaled_features(core.support, data.X[test])
        coef = prune_for_all(core, alphas, sizes)
        n_cells, T = len(sizes) * len(alphas), data.y.shape[1]
        cells = np.moveaxis(coef, 2, 0).reshape(len(core.support), n_cells * T)
        values = (held_out @ cells).reshape(len(test), n_cells, T)
        predictions = posed.to_targets(values)
        errors = data.errors(predictions, test)
        scores = -errors
        if scoring is not None:
            scores = np.array([scoring(predictions[:, k], test) for k in range(len(errors))])
    return np.stack([errors, scores]).reshape(2, len(sizes), len(alphas))


@dataclass(frozen=True)
class Pool:
    """A law in the race.

    Attributes
    ----------
    order, scale
        Its values in the grid.
    law : FeatureLaw or MixedLaw
    given : bool
        Whether the user passed the law, instead of orders and scales.
    """

    order: Any
    scale: Any
    law: Law
    given: bool = False

    @property
    def label(self) -> str:
        """Name of the pool in messages."""
        return "the given law" if self.given else f"order {self.order}, scale {self.scale:.3g}"

    @property
    def params(self) -> dict[str, Any]:
        """The pool as parameters of one fit."""
        return {"law": self.law} if self.given else {"order": self.order, "scale": self.scale}


@dataclass
class Race:
    """A plan of `harfe.selection.search`: pools against each other, fold by fold.

    Attributes
    ----------
    template : Template
        What all pools share.
    n_first : int
        Number of folds that cover the rows once; later folds repeat that with other shuffles.
    errors : dict
        (pool, fold) -> what `errors_on_fold` returned.
    """

    template: Template
    pools: Sequence[Pool]
    sizes: Sequence[int]
    alphas: Sequence[float]
    data: Data
    folds: Sequence[Fold]
    n_first: int
    scoring: Scoring | None = None
    errors: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict)
    _later: int = 0

    @property
    def most_tasks(self) -> int:
        """Number of tasks if all pools run on all folds."""
        return len(self.pools) * len(self.folds)

    def stages(self) -> Iterator[Stage]:
        """Yield all pools on one or two folds, the best third on the others, few on repeats."""
        P, n = len(self.pools), self.n_first
        heavy = min(self.data.weights[test].sum() for _, test in self.folds) >= _TELLING_WEIGHT
        first = min(1 if heavy else 2, n)
        parts = [
            (range(first), P),
            (range(first, n), max(3, math.ceil(P / 3))),
            (range(n, len(self.folds)), max(2, math.ceil(P / 8))),
        ]
        scorer = None if self.scoring is None else self.scoring.scorer  # type: ignore[attr-defined]
        data = self.data
        base = Digest(data.X, data.y, data.weights, self.sizes, self.alphas, scorer)
        alive = list(range(P))

        def tasks(folds: range, kept: int, later: Sequence[tuple[range, int]]) -> list[Task]:
            alive[:] = self._best(alive, kept, folds.start)
            self._later = sum(len(f) * min(k, len(alive)) for f, k in later)
            return [self._task(p, f, base) for f in folds for p in alive]

        for number, (folds, kept) in enumerate(parts):
            if folds:
                yield Stage(partial(tasks, folds, kept, parts[number + 1 :]), needed=not number)

    def _task(self, p: int, f: int, base: Digest) -> Task:
        framing, fold = self.template.framing, self.folds[f]
        key = base.key(*fold, self.template.sampling(self.pools[p].law), framing)
        call = (framing, self._drawn(p), self.sizes, self.alphas, self.data, fold, self.scoring)
        return Task((p, f), self.pools[p].label, errors_on_fold, call, key)

    def take(self, name: tuple[int, int], result: NDArray[np.float64]) -> None:
        """Accept the table of a pool and a fold."""
        self.errors[name] = result

    def tasks_later(self) -> int:
        """Number of tasks expected after the current stage."""
        return self._later

    def best_so_far(self) -> tuple[float, str]:
        """Best mean score so far, and the pool that has it."""
        scores = {p: np.nanmax(self.mean_scores(p)) for p in {p for p, _ in self.errors}}
        best = max(scores, key=lambda p: scores[p])
        return float(scores[best]), self.pools[best].label

    def _drawn(self, p: int) -> FeaturePool:
        """Features of a pool, drawn once for all folds."""
        if p not in self._drawn_pools:
            self._drawn_pools[p] = self.template.sampling(self.pools[p].law).draw()
        return self._drawn_pools[p]

    _drawn_pools: dict[int, FeaturePool] = field(default_factory=dict, repr=False)

    def _best(self, alive: list[int], kept: int, n_folds: int) -> list[int]:
        """The leading pools, by their best cell over the first folds, on which all were run."""
        if len(alive) <= kept:
            return alive
        best = {p: np.nanmax(self.mean_scores(p, n_folds)) for p in alive}
        return sorted(sorted(alive, key=lambda p: -best[p])[:kept])

    def mean_scores(self, p: int, n_folds: int | None = None) -> NDArray[np.float64]:
        """Mean score of every cell over the finished folds, or only the first `n_folds`."""
        last = len(self.folds) if n_folds is None else n_folds
        scores = [table[1] for (q, f), table in self.errors.items() if q == p and f < last]
        mean: NDArray[np.float64] = np.mean(scores, axis=0)
        return mean

    def table(self) -> NDArray[np.float64]:
        """Errors and scores, shape (2, pools, sizes, alphas, folds); NaN where nothing was run."""
        shape = (2, len(self.pools), len(self.sizes), len(self.alphas), len(self.folds))
        out = np.full(shape, np.nan)
        for (p, f), cell in self.errors.items():
            out[:, p, :, :, f] = cell
        return out

    def outcome(self, selection: str) -> SearchOutcome:
        """Choose, then fit all rows with the choice."""
        errors, scores = self.table()
        choice = choose(scores, self.sizes, selection)
        pool, recipe, data = self.pools[choice.pool], self._chosen(choice), self.data
        return SearchOutcome(
            errors,
            scores,
            choice,
            candidates=[(pool.order, pool.scale) for pool in self.pools],
            params=[{"order": pool.order, "scale": pool.scale} for pool in self.pools],
            chosen_params=pool.params,
            order=pool.order,
            scale=pool.scale,
            kind="data",
            fit=recipe.fit(data.X, data.y, data.weights),
            fit_without=lambda fold: self._fit_without(fold, scores, selection),
        )

    def _fit_without(
        self, fold: int, scores: NDArray[np.float64], selection: str
    ) -> tuple[Expansion, Posterior]:
        """Fit the rows outside a fold with the settings chosen by the other folds."""
        run: NDArray[np.bool_] = np.any(np.isfinite(scores), axis=(0, 1, 2))
        others = [k for k in range(self.n_first) if k != fold and run[k]]
        # If time ran out after a single fold, there are no others.
        choice = choose(scores[..., others] if others else scores, self.sizes, selection)
        recipe = self._chosen(choice)
        train = self.folds[fold][0]
        fit = recipe.fit(self.data.X[train], self.data.y[train], self.data.weights[train])
        return fit.expansion, fit.posterior()

    def _chosen(self, choice: Choice) -> Recipe:
        """The settings of a cell of the table."""
        return self.template.recipe(
            self.pools[choice.pool].law, self.sizes[choice.size], self.alphas[choice.alpha]
        )
