"""Cross-validation as a race: every pool of features on a first fold, the better ones on the rest.

For one pool and one fold, features are pruned once to a core (`harfe.solvers.path`), and from there every
ridge weight prunes to every sparsity: a table of errors on the held-out rows for the price of few
fits. Pools that fall behind are not run on the remaining folds.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe._core.threads import one_blas_thread
from harfe.features.pool import FeaturePool
from harfe.selection.choosing import Choice, fewest_terms
from harfe.selection.recipe import Recipe
from harfe.solvers.path import prune_for_all

# A prediction and the held-out rows it is for -> a score, larger is better.
Scoring = Callable[[NDArray[Any], NDArray[np.intp]], float]

# From this weight of held-out rows on, one fold tells good pools from bad.
_TELLING_WEIGHT = 150


@dataclass(frozen=True)
class Data:
    """Checked data: inputs, targets of shape (rows, targets), positive weights."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    weights: NDArray[np.float64]

    def errors(self, predictions: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Mean square of what predictions (rows, models, targets) are off by for these rows."""
        return self.mean_squares(self.y[rows, None, :] - predictions, rows)

    def mean_squares(self, gaps: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Weighted mean square of gaps (rows, models, targets) for these rows.

        Several targets are taken in units of their deviation and averaged.
        """
        unit = np.ones(1)
        if self.y.shape[1] > 1:
            share = self.weights / self.weights.sum()
            unit = np.sqrt(share @ np.abs(self.y - share @ self.y) ** 2)
            unit = np.where(unit > 0, unit, 1.0)
        squares = np.abs(gaps / unit) ** 2
        means: NDArray[np.float64] = np.average(
            squares.mean(axis=2), axis=0, weights=self.weights[rows]
        )
        return means


def errors_on_fold(
    recipe: Recipe,
    drawn: FeaturePool,
    sizes: Sequence[int],
    alphas: Sequence[float],
    data: Data,
    fold: Fold,
    scoring: Scoring | None,
) -> NDArray[np.float64]:
    """Held-out error and score of every (sparsity, ridge weight), shape (2, sizes, alphas).

    The error is the weighted mean square, several targets in units of their deviation; without
    `scoring` the score is its negative.
    """
    train, test = fold
    with one_blas_thread():
        X, y, weights = data.X[train], data.y[train], data.weights[train]
        posed = recipe.pose(X, y, weights, drawn, graded=True)
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


@dataclass
class Race:
    """Pools against each other, fold by fold.

    Attributes
    ----------
    recipes : sequence of Recipe
        One for each pool.
    errors : dict
        (pool, fold) -> what `errors_on_fold` returned.
    coming : list of int
        Pools that are run next.
    """

    recipes: Sequence[Recipe]
    sizes: Sequence[int]
    alphas: Sequence[float]
    data: Data
    folds: Sequence[Fold]
    n_first: int
    scoring: Scoring | None = None
    errors: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict)
    coming: list[int] = field(default_factory=list)

    def run(
        self,
        n_jobs: int | None,
        deadline: float,
        after_task: Callable[[int, int], bool],
    ) -> bool:
        """Run all stages, until `deadline` (of time.monotonic) or until a true `after_task`.

        `after_task` gets the number of tasks done and planned. Returns whether all were run.
        """
        workers = effective_n_jobs(n_jobs)
        alive = list(range(len(self.recipes)))
        stages = list(self._stages())
        done = 0
        for number, (folds, kept) in enumerate(stages):
            alive = self._best(alive, kept, folds.start)
            tasks = [(p, f) for f in folds for p in alive if (p, f) not in self.errors]
            later = sum(len(f) * min(k, len(alive)) for f, k in stages[number + 1 :])
            for start in range(0, len(tasks), workers):
                if done and time.monotonic() > deadline:
                    return False
                chunk = tasks[start : start + workers]
                self._run_chunk(chunk, workers)
                self.coming = [p for p, _ in tasks[start + workers :][:workers]]
                done += len(chunk)
                left = len(tasks) - start - len(chunk) + later
                if after_task(done, done + left):
                    return left == 0
        return True

    def _run_chunk(self, chunk: list[tuple[int, int]], workers: int) -> None:
        calls = [
            (
                self.recipes[p],
                self._drawn(p),
                self.sizes,
                self.alphas,
                self.data,
                self.folds[f],
                self.scoring,
            )
            for p, f in chunk
        ]
        if workers == 1:
            results = [errors_on_fold(*call) for call in calls]
        else:
            results = Parallel(n_jobs=workers)(delayed(errors_on_fold)(*call) for call in calls)
        self.errors.update(zip(chunk, results, strict=True))

    def _drawn(self, p: int) -> FeaturePool:
        """Features of a pool, drawn once for all folds."""
        if p not in self._pools:
            self._pools[p] = self.recipes[p].draw()
        return self._pools[p]

    _pools: dict[int, FeaturePool] = field(default_factory=dict, repr=False)

    def _stages(self) -> Iterator[tuple[range, int]]:
        """Folds of a stage, and how many pools take part."""
        P, n = len(self.recipes), self.n_first
        heavy = min(self.data.weights[test].sum() for _, test in self.folds) >= _TELLING_WEIGHT
        first = min(1 if heavy else 2, n)
        yield range(first), P
        yield range(first, n), max(3, math.ceil(P / 3))
        yield range(n, len(self.folds)), max(2, math.ceil(P / 8))

    def _best(self, alive: list[int], kept: int, n_folds: int) -> list[int]:
        """The pools in front, by their best cell over the first folds, which all have run."""
        if len(alive) <= kept:
            return alive
        best = {p: np.nanmax(self.mean_scores(p, n_folds)) for p in alive}
        return sorted(sorted(alive, key=lambda p: -best[p])[:kept])

    def mean_scores(self, p: int, n_folds: int | None = None) -> NDArray[np.float64]:
        """Mean score of every cell over the folds done, or over the first of them."""
        last = len(self.folds) if n_folds is None else n_folds
        scores = [table[1] for (q, f), table in self.errors.items() if q == p and f < last]
        mean: NDArray[np.float64] = np.mean(scores, axis=0)
        return mean

    def table(self) -> NDArray[np.float64]:
        """Errors and scores, shape (2, pools, sizes, alphas, folds); NaN where nothing was run."""
        shape = (2, len(self.recipes), len(self.sizes), len(self.alphas), len(self.folds))
        out = np.full(shape, np.nan)
        for (p, f), cell in self.errors.items():
            out[:, p, :, :, f] = cell
        return out


def choose(scores: NDArray[np.float64], sizes: Sequence[int], selection: str) -> Choice:
    """Pick a cell of `scores` (pools, sizes, alphas, folds), of the pools with the most folds.

    "best" has the highest mean score. "one_se" has the fewest terms of all whose mean is within one
    standard error of the best, and among those the highest mean. Ties go to the fewest terms, then
    to the larger ridge weight.
    """
    counts = np.sum(np.isfinite(scores[:, 0, 0, :]), axis=-1)
    complete = np.flatnonzero(counts == counts.max())
    chosen = scores[complete]
    chosen = chosen[..., np.isfinite(chosen[0, 0, 0])]
    cell = fewest_terms(chosen, chosen, sizes, None if selection == "one_se" else 0.0)
    return replace(cell, pool=int(complete[cell.pool]))


def task_keys(race: Race) -> dict[tuple[int, int], bytes]:
    """What the result of every task depends on, as a digest: what to recognise it by."""
    data = race.data
    common = hashlib.sha256()
    for array in (data.X, data.y, data.weights):
        common.update(repr((array.shape, array.dtype)).encode() + array.tobytes())
    scorer = None if race.scoring is None else race.scoring.scorer  # type: ignore[attr-defined]
    common.update(repr((race.sizes, race.alphas, scorer)).encode())
    keys = {}
    for f, fold in enumerate(race.folds):
        with_fold = common.copy()
        for rows in fold:
            with_fold.update(repr(len(rows)).encode() + rows.tobytes())
        for p, recipe in enumerate(race.recipes):
            # The memory that is free decides where features are kept, not what comes out.
            key = with_fold.copy()
            key.update(repr(replace(recipe, memory_budget=0.0)).encode())
            keys[p, f] = key.digest()
    return keys
