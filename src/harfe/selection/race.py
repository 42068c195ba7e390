"""Cross-validation as a race: every pool of features on a first fold, the better ones on the rest.

For one pool and one fold, features are pruned once to a core (`harfe.solvers.path`), and from there
every ridge weight prunes to every size: a table of held-out errors at the cost of a few fits. Pools
that fall behind are not run on the remaining folds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe._core.threads import one_blas_thread
from harfe._core.wording import plural
from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.selection.choosing import Choice, choose
from harfe.selection.engine.plan import Cost, Digest, Stage, Task
from harfe.selection.recipe import Fit, Framing, Recipe, Template
from harfe.selection.results import SearchOutcome
from harfe.selection.rows import Data, Scoring, extent_of_sample, sample_fold
from harfe.solvers.path import prune_for_all

# With at least this weight of held-out rows, one fold can tell good pools from bad.
_TELLING_WEIGHT = 150

# All rows, where others are named by the fold that they leave out.
_ALL = None


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


def path_cost(n_rows: int, n_features: int, kind: str = "path") -> Cost:
    """Expected cost of `errors_on_fold`, or of one fit with a graded start (kind "fit")."""
    return Cost(kind, 0.02 + 1e-7 * n_rows * n_features)


def path_memory(template: Template, n_rows: int) -> float:
    """Bytes that `errors_on_fold` needs: all features at all rows if the budget allows that."""
    stored, budget = 8.0 * n_rows * template.n_components, template.framing.memory_budget
    return stored if stored <= budget else budget / 2


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
    """A plan of `harfe.selection.engine`: pools against each other, fold by fold.

    Pools are compared on the folds that all of them were run on: if time runs out within a fold,
    that fold does not count.

    Attributes
    ----------
    template : Template
        What all pools share.
    n_first : int
        Number of folds that cover the rows once; later folds repeat that with other shuffles.
    selection : {"best", "one_se"}
    whole : bool
        Whether all rows are fitted at the end. If not, the fit without the first fold is the model.
    errors : dict
        (pool, fold) -> what `errors_on_fold` returned.
    alive : list of int
        Pools that are still in the race.
    fits : dict
        Fold, or None for all rows -> fit with the settings chosen by the other folds.
    """

    template: Template
    pools: Sequence[Pool]
    sizes: Sequence[int]
    alphas: Sequence[float]
    data: Data
    folds: Sequence[Fold]
    n_first: int
    scoring: Scoring | None = None
    selection: str = "best"
    whole: bool = True
    errors: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict)
    alive: list[int] = field(default_factory=list)
    fits: dict[int | None, Fit] = field(default_factory=dict)
    _later: int = 0
    _fitting: bool = False

    @property
    def most_tasks(self) -> int:
        """Number of tasks if all pools run on all folds."""
        n_tables, n_fits = len(self.pools) * len(self.folds), self.n_first + 1
        return n_tables + n_fits

    def stages(self) -> Iterator[Stage]:
        """Yield all pools on some folds, the best third on the others, few on repeats; the fits."""
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
        self.alive = list(range(P))

        def tasks(folds: range, kept: int, later: Sequence[tuple[range, int]]) -> list[Task]:
            self.alive = self._best(kept)
            self._later = sum(len(f) * min(k, len(self.alive)) for f, k in later)
            return [self._task(p, f, base) for f in folds for p in self.alive]

        # The fit of all rows, and one for the uncertainty.
        rows = [len(data.X)] * self.whole + [len(self.folds[0][0])]
        reserve = [self._cost(n, "fit") for n in rows]
        for number, (folds, kept) in enumerate(parts):
            if folds:
                yield Stage(
                    partial(tasks, folds, kept, parts[number + 1 :]),
                    needed=not number,
                    reserve=reserve,
                )
        if self.errors:
            yield Stage(self._fit_tasks, needed=True)

    def small(self, n_rows: int, tiny: bool) -> Race:
        """Plan a fit of at most so many rows of the first fold, with the scale nearest to 1.

        A `tiny` one costs next to nothing.
        """
        pool = min(self.pools, key=lambda pool: abs(float(np.log(np.mean(pool.scale)))))
        fold = sample_fold(self.folds[0], n_rows, self.template.seed)
        # No more features than rows, as in the search itself.
        weight = self.data.weights[fold[0]].sum()
        sizes = [s for s in self.sizes if s <= weight] or list(self.sizes[:1])
        template, alphas = self.template, self.alphas
        if tiny:
            template = replace(template, n_components=min(200, template.n_components))
            sizes, alphas = sizes[:2], alphas[:1]
        settings = (self.data, [fold], 1, self.scoring, self.selection)
        return Race(template, [pool], sizes, alphas, *settings, whole=False)

    # --- Tasks ---

    def _task(self, p: int, f: int, base: Digest) -> Task:
        framing, fold = self.template.framing, self.folds[f]
        key = base.key(*fold, self.template.sampling(self.pools[p].law), framing)
        call = (framing, self._drawn(p), self.sizes, self.alphas, self.data, fold, self.scoring)
        n = len(fold[0])
        memory = path_memory(self.template, n)
        return Task(
            (p, f), self.pools[p].label, errors_on_fold, call, key, (self._cost(n),), f, memory
        )

    def _fit_tasks(self) -> list[Task]:
        self._fitting = True
        folds = [f for f in range(self.n_first) if f in self._judged()]
        # Without a fit of any fold there is no uncertainty.
        first = [self._fit_task(f, "first") for f in ([_ALL] * self.whole + folds[:1])]
        return first + [self._fit_task(f, f) for f in folds[1:]]

    def _fit_task(self, where: int | None, group: Any) -> Task:
        recipe = self._recipe(self._choice(where))
        data = self.data if where is _ALL else self.data.take(self.folds[where][0])
        n, memory = len(data.X), path_memory(self.template, len(data.X))
        return Task(
            ("fit", where),
            "all rows" if where is _ALL else "without a fold",
            recipe.fit,
            (data.X, data.y, data.weights),
            b"",
            (self._cost(n, "fit"),),
            group,
            memory,
        )

    def _cost(self, n_rows: int, kind: str = "path") -> Cost:
        return path_cost(n_rows, self.template.n_components, kind)

    def _drawn(self, p: int) -> FeaturePool:
        """Features of a pool, drawn once for all folds."""
        if p not in self._drawn_pools:
            self._drawn_pools[p] = self.template.sampling(self.pools[p].law).draw()
        return self._drawn_pools[p]

    _drawn_pools: dict[int, FeaturePool] = field(default_factory=dict, repr=False)

    # --- Results ---

    def take(self, name: Any, result: Any) -> None:
        """Accept the table of a pool and a fold, or a fit."""
        match name:
            case ("fit", where):
                self.fits[where] = result
            case (int(), int()):
                self.errors[name] = result

    def later(self) -> list[Cost]:
        """Costs of the tasks expected after the current stage."""
        train = len(self.folds[0][0])
        fits = 0 if self._fitting else self.n_first + self.whole
        return [self._cost(train)] * self._later + [self._cost(train, "fit")] * fits

    def best_so_far(self) -> tuple[float, str] | None:
        """Best mean score so far, and the pool that has it."""
        if not self.errors:
            return None
        choice = self._choice(_ALL)
        return choice.score, self.pools[choice.pool].label

    def _best(self, kept: int) -> list[int]:
        """The leading pools, by their best cell over the folds that all of them were run on."""
        folds = self._shared()
        if len(self.alive) <= kept or not folds:
            return self.alive
        best = {
            p: np.nanmax(np.mean([self.errors[p, f][1] for f in folds], axis=0)) for p in self.alive
        }
        return sorted(sorted(self.alive, key=lambda p: -best[p])[:kept])

    def _shared(self) -> list[int]:
        """Folds that all pools still in the race were run on."""
        folds = range(len(self.folds))
        return [f for f in folds if all((p, f) in self.errors for p in self.alive)]

    def _judged(self) -> list[int]:
        """Folds that the choice is made on: the shared ones, or else the first that was run."""
        return self._shared() or [min(f for _, f in self.errors)]

    def table(self, folds: Sequence[int]) -> NDArray[np.float64]:
        """Errors and scores, shape (2, pools, sizes, alphas, folds); NaN where nothing was run."""
        shape = (2, len(self.pools), len(self.sizes), len(self.alphas), len(folds))
        out = np.full(shape, np.nan)
        for j, f in enumerate(folds):
            for p in range(len(self.pools)):
                if (p, f) in self.errors:
                    out[:, p, :, :, j] = self.errors[p, f]
        return out

    def _choice(self, where: int | None) -> Choice:
        """The settings chosen by all folds, or by those other than one of the first pass."""
        folds = self._judged()
        if where is not _ALL:
            folds = [f for f in folds if f != where and f < self.n_first] or folds
        return choose(self.table(folds)[1], self.sizes, self.selection)

    def _recipe(self, choice: Choice) -> Recipe:
        """The settings of a cell of the table."""
        return self.template.recipe(
            self.pools[choice.pool].law, self.sizes[choice.size], self.alphas[choice.alpha]
        )

    def outcome(self) -> SearchOutcome:
        """Put together the choice, and the fits with it of all rows and without folds."""
        choice = self._choice(self._model)
        errors, scores = self.table(range(len(self.folds)))
        pool = self.pools[choice.pool]
        judged, n = len(self._judged()), len(self.folds)
        return SearchOutcome(
            errors,
            scores,
            choice,
            candidates=[(pool.order, pool.scale) for pool in self.pools],
            params=[{"order": pool.order, "scale": pool.scale} for pool in self.pools],
            chosen_params=pool.params | {"input_warp": self.template.framing.input_warp},
            order=pool.order,
            scale=pool.scale,
            kind="data",
            sizes=list(self.sizes),
            fit=self.fits[self._model],
            held_out=[(self.folds[f], fit) for f, fit in self.fits.items() if f is not _ALL],
            extent=f"pools were compared on {judged} of {plural(n, 'fold')}"
            if self.whole
            else extent_of_sample(self.folds[0], self.data),
        )

    @property
    def _model(self) -> int | None:
        """What the fit that is the model was fitted to: all rows, or those outside a fold."""
        return _ALL if self.whole else 0

    @property
    def usable(self) -> bool:
        """Whether there is a fit of all rows, and one for the uncertainty."""
        return self._model in self.fits and 0 in self.fits
