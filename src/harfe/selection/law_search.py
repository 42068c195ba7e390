"""Selection under a learned law: which law, how its features are found, and how many.

First the candidates for the law are raced (`harfe.selection.learn_law`). Under the winner, refitted
without each fold and to all rows, four kinds of sparse models are tried:

- "data": features of the law chosen to fit y (the paper's objective), for every ridge weight;
- "matched": features chosen to match the reference;
- "refined": those with weights and phases trained to match it;
- "trained": many features, trained by first-order steps.

All kinds run on the first fold, and those that are not far behind on the others. They are judged by
their error on held-out rows of y, not by the likelihood or by the gap to the reference. A final
model that is not what the folds promised is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harfe.learning.candidates import LawFit
from harfe.learning.matching import Matched
from harfe.learning.reference import EXACT_ROWS
from harfe.selection.choosing import CellTable, Choice, equal_errors
from harfe.selection.engine.plan import Cost, Digest, Stage, Task
from harfe.selection.learn_law import LawRace
from harfe.selection.race import path_cost, path_memory
from harfe.selection.recipe import Fit, Template
from harfe.selection.results import SearchOutcome
from harfe.selection.rows import Data, extent_of_sample, sample_fold
from harfe.selection.sparse_models import (
    SparseSettings,
    close_model,
    explainable_size,
    fit_data,
    match_cost,
    matched_fit,
    matches_memory,
    sparse_on_fold,
    sparse_paths,
    train_cost,
)

# From these numbers of rows on, models are compared on so many folds: their held-out errors are
# known well enough, and each fold takes long.
_FOLDS_OF_MANY = ((10_000, 2), (50_000, 1))

# Sizes of matches that go on differ from the best on the first fold by at most this factor.
_NEAR = 2.1

# A law of all rows is refused if its error on these rows is so many times that on held-out rows.
_BROKEN_PROMISE = 2.0

_TRAINED = ("trained",)

# All rows, where others are named by the fold that they leave out.
_ALL = None


@dataclass(frozen=True)
class AllRows:
    """The law fitted to all rows, and names of those that were refused before."""

    law: LawFit
    refused: tuple[str, ...]


def law_of_all(race: LawRace, weights: Mapping[int, float]) -> AllRows:
    """Fit the winner of a race to all rows, or the next best if it is not what the folds promised.

    A descent of the likelihood can fail on some rows and not on others.
    """
    refused: list[str] = []
    promised = race.mean_error()
    for candidates in (weights, *({k: 1.0} for k in race.ranked())):
        law = race.fit_all(candidates)
        if race.training_error(law) <= _BROKEN_PROMISE * promised:
            return AllRows(law, tuple(refused))
        if law.name not in refused:
            refused.append(law.name)
    return AllRows(race.fit_all(weights), tuple(refused))


def models_of_all(
    template: Template, law: LawFit, settings: SparseSettings, data: Data
) -> dict[str, list[Matched]]:
    """Sparse models of all rows by kind, the smallest first."""
    # This law may use more inputs than those of the folds.
    most = explainable_size(law)
    trained = tuple(sorted({min(s, most) for s in settings.to_train}))
    return sparse_paths(template, law, replace(settings, trained=trained), data)


@dataclass
class LawSearch:
    """A plan: the race of the laws, then the sparse models under the winner.

    Attributes
    ----------
    race : LawRace
    template : Template
        What all sparse models share.
    settings : SparseSettings
    selection : {"best", "one_se"}
    whole : bool
        Whether all rows are fitted. If not, the model without the first fold is the result.
    models : dict
        Fold -> its matches by kind and size.
    weights : dict
        Candidate -> its weight in the reference; empty until the race is over.
    all_rows : AllRows or None
        The law of all rows.
    paths : dict or None
        Kind -> sparse models of all rows.
    data_fits : dict
        Fold, or None for all rows -> fit on y, where that kind is chosen.
    cells : CellTable
        Held-out errors, scores and straying of everything that was tried.
    """

    race: LawRace
    template: Template
    settings: SparseSettings
    selection: str = "best"
    whole: bool = True
    models: dict[int, dict[tuple[str, int], Matched]] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    all_rows: AllRows | None = None
    paths: dict[str, list[Matched]] | None = None
    data_fits: dict[int | None, Fit] = field(default_factory=dict)
    _over: bool = False

    def __post_init__(self) -> None:
        kinds = self.settings.kinds
        equal = equal_errors(len(self.race.data.X))
        self.cells = CellTable(kinds, self.settings.sizes, self.settings.alphas, equal)
        # Kinds that are tried together.
        parts = [("matched", "refined"), _TRAINED, ("data",)]
        parts = [tuple(kind for kind in part if kind in kinds) for part in parts]
        self._parts: list[tuple[str, ...]] = [part for part in parts if part]
        self._alive = self._parts
        self._matches = kinds != ("data",)

    @property
    def most_tasks(self) -> int:
        """Number of tasks if all candidates and the sparse models run on all folds."""
        n = len(self.race.folds)
        return self.race.most_tasks + (len(self._parts) + 1) * n + 3

    def stages(self) -> Iterator[Stage]:
        """Yield the race of the laws, the sparse models under the winner, the fits on y."""
        yield from self.race.stages([*self._first_costs(), *self._other_costs(1)])
        if not self.race.judged:
            return
        self.weights = self.race.stacked()
        warp = self.race.input_warp(self.weights)
        framing = replace(self.template.framing, input_warp=warp, keep_tails=True)
        self.template = replace(self.template, framing=framing)
        self.settings = replace(self.settings, visible=self.race.held_out_error())
        self._alive = self._parts if self._fits_rows else [p for p in self._parts if p != _TRAINED]
        yield Stage(self._first_tasks, needed=True, reserve=self._other_costs(1))
        if not self._judged:
            return
        if _TRAINED in self._parts and _TRAINED not in self._alive and self._lossy():
            yield Stage(self._training_tasks, reserve=self._other_costs(1))
            if self.cells.folds("trained"):
                self._alive = self._parts
        self._narrow()
        yield Stage(self._other_tasks, needed=self.whole and self._matches)
        yield Stage(self._data_fit_tasks, needed=not self._matches)
        self._over = True

    def small(self, n_rows: int, tiny: bool) -> LawSearch:
        """Plan a model of at most so many rows of the first fold, under the most flexible law.

        A `tiny` one costs next to nothing.
        """
        race, template, settings = self.race, self.template, self.settings
        prior = max(race.priors, key=lambda prior: (not prior.isotropic, prior.max_order))
        fold = sample_fold(race.folds[0], n_rows, template.seed)
        # No more features than rows, as in the search itself. One fold cannot tell whether fits on
        # y are clearly better than matches.
        sizes = [s for s in settings.sizes if s <= race.data.weights[fold[0]].sum()]
        sizes = sizes or list(settings.sizes[:1])
        settings = replace(settings, kinds=self._parts[0], sizes=tuple(sizes))
        if tiny:
            template = replace(template, n_components=min(200, template.n_components))
            settings = replace(settings, sizes=settings.sizes[:2], alphas=settings.alphas[:1])
        small = LawRace([prior], race.settings, race.data, [fold], race.scoring)
        return LawSearch(small, template, settings, self.selection, whole=False)

    # --- Tasks ---

    @property
    def _folds(self) -> list[int]:
        """Folds to compare models on: those that the law was fitted without."""
        race = self.race
        most = [n for rows, n in _FOLDS_OF_MANY if len(race.data.X) >= rows]
        known = [
            f for f in range(len(race.folds)) if all((k, f) in race.judged for k in self.weights)
        ]
        return known[: min(most, default=None)]

    def _first_tasks(self) -> list[Task]:
        """All kinds on the first fold, and the law of all rows."""
        base = self.race.digest()
        tasks = [self._sparse_task(self._folds[0], part, base, "first") for part in self._alive]
        if self.whole:
            arguments = (self.race, self.weights)
            key = base.key("law", {self.race.priors[k]: w for k, w in self.weights.items()})
            costs = (self.race.cost(len(self.race.data.X)),) * len(self.weights)
            tasks.append(Task(("law",), "all rows", law_of_all, arguments, key, costs, "first"))
        return tasks

    @property
    def _fits_rows(self) -> bool:
        """Whether training is all there is, or fits rows that the reference does not know."""
        return len(self.race.data.X) > EXACT_ROWS or self._parts[0] == _TRAINED

    def _lossy(self) -> bool:
        """Whether matches lose against their reference; otherwise training more has no point."""
        return self.race.scoring is not None or self.cells.strays(self._parts[0], self._folds[:1])

    def _training_tasks(self) -> list[Task]:
        return [self._sparse_task(self._folds[0], _TRAINED, self.race.digest(), "first")]

    def _narrow(self) -> None:
        """Leave out kinds that are behind on the first fold, and sizes far from the best there."""
        tried = self._folds[:1]
        self._alive = [part for part in self._alive if self._may_win(part, tried)]
        for part in self._alive:
            if part == _TRAINED:
                near = self.cells.near_sizes(part, tried)
                self.settings = replace(self.settings, trained=near)
            elif part != ("data",):
                best, sizes = self.cells.best_size(part, tried), self.settings.to_match
                near = tuple(s for s in sizes if best / _NEAR <= s <= best * _NEAR)
                self.settings = replace(self.settings, matched=near)

    def _may_win(self, part: tuple[str, ...], folds: Sequence[int]) -> bool:
        if self.race.scoring is not None or not self._matches:
            return True
        if part == ("data",):
            return self.cells.data_ahead(folds)
        return self.cells.near(part, folds)

    def _other_tasks(self) -> list[Task]:
        """The kinds that may win on the other folds, and fitted to all rows."""
        base, tasks = self.race.digest(), []
        alive = [part for part in self._alive if part != ("data",)]
        if self.whole and alive:
            assert self.all_rows is not None
            kinds = tuple(kind for part in alive for kind in part)
            settings, data = replace(self.settings, kinds=kinds), self.race.data
            arguments = (self.template, self.all_rows.law, settings, data)
            key = base.key("models", *self._key_parts(settings))
            costs, memory = self._costs(kinds, len(data.X)), self._memory(kinds, len(data.X))
            tasks.append(
                Task(("models",), "all rows", models_of_all, arguments, key, costs, "all", memory)
            )
        for f in self._folds[1:]:
            tasks += [self._sparse_task(f, part, base, f) for part in self._alive]
        return tasks

    def _sparse_task(self, f: int, part: tuple[str, ...], base: Digest, group: Any) -> Task:
        race, fold, settings = self.race, self.race.folds[f], replace(self.settings, kinds=part)
        return Task(
            ("sparse", f, part),
            "fits on y" if part == ("data",) else "sparse models",
            sparse_on_fold,
            (self.template, self._law(f), settings, race.data, fold, race.scoring),
            base.key(*fold, *self._key_parts(settings)),
            self._costs(part, len(fold[0])),
            group,
            self._memory(part, len(fold[0])),
        )

    def _key_parts(self, settings: SparseSettings) -> tuple[Any, ...]:
        stacked = {self.race.priors[k]: w for k, w in self.weights.items()}
        return self.template, stacked, settings

    def _data_fit_tasks(self) -> list[Task]:
        """Fits on y, of all rows and without folds, where that kind is chosen."""
        tasks = []
        for where in [_ALL] * (self.all_rows is not None) + self._judged:
            choice = self._choice(where)
            if self._is_data(choice):
                data = self._rows(where)
                call = (self.template, self._law(where), self.settings, choice, data)
                costs = (path_cost(len(data.X), self.template.n_components, "fit"),)
                memory = self._memory(("data",), len(data.X))
                tasks.append(
                    Task(("fit", where), "fits on y", fit_data, call, b"", costs, None, memory)
                )
        return tasks

    def _costs(self, kinds: tuple[str, ...], n_rows: int) -> tuple[Cost, ...]:
        costs = []
        if "data" in kinds:
            costs.append(path_cost(n_rows, self.template.n_components))
        if "matched" in kinds or "refined" in kinds:
            costs.append(match_cost(n_rows, kinds))
        if "trained" in kinds:
            costs.append(train_cost(n_rows, self.race.data.X.shape[1], self.settings.to_train))
        return tuple(costs)

    def _memory(self, part: tuple[str, ...], n_rows: int) -> float:
        if part == ("data",):
            return path_memory(self.template, n_rows)
        return matches_memory(n_rows, self.template.n_components)

    def _first_costs(self) -> list[Cost]:
        """Costs of the first fold, and of the law of all rows."""
        train = len(self.race.folds[0][0])
        costs = [cost for part in self._parts for cost in self._costs(part, train)]
        return [*costs, *[self.race.cost(len(self.race.data.X))] * self.whole]

    def _other_costs(self, n_folds: int) -> list[Cost]:
        """Costs of so many folds, all rows being one of them."""
        kinds = self._alive[0]
        return [cost for _ in range(n_folds) for cost in self._costs(kinds, len(self.race.data.X))]

    def later(self) -> list[Cost]:
        """Costs of the tasks expected after the current stage."""
        n = len(self.race.folds) - 1 + self.whole
        if not self.weights:
            return [*self.race.later(), *self._first_costs(), *self._other_costs(n)]
        return self._other_costs(n) if len(self.models) <= 1 and self.paths is None else []

    # --- Results ---

    def take(self, name: Any, result: Any) -> None:
        """Accept the result of a task."""
        match name:
            case ("sparse", f, part):
                table, models = result
                self.cells.add(f, part, table)
                self.models[f] = self.models.get(f, {}) | models
            case ("law",):
                self.all_rows = result
            case ("models",):
                self.paths = result
            case ("fit", where):
                self.data_fits[where] = result
            case _:
                self.race.take(name, result)

    def best_so_far(self) -> tuple[float, str] | None:
        """Best mean score so far, and the model that has it."""
        best = self.race.best_so_far()
        if best is None or not self._judged:
            return best
        choice = self.choose(self.selection)
        kind, s = self.settings.kinds[choice.pool], self.settings.sizes[choice.size]
        return choice.score, f"{best[1]}, {kind}, {s} features"

    @property
    def _judged(self) -> list[int]:
        """Folds that the choice is made on: those that all kinds in the race were run on."""
        tried = [set(self.cells.folds(part[0])) for part in self._alive]
        return sorted(set.intersection(*tried))

    @property
    def _model(self) -> int | None:
        """What the model is fitted to: all rows, or those outside the first fold."""
        return _ALL if self.whole else 0

    @property
    def usable(self) -> bool:
        """Whether there is a model of the rows that are wanted, and one for the uncertainty."""
        if not self._judged:
            return False
        if not self._matches:
            return self._model in self.data_fits
        return self.paths is not None or not self.whole

    def choose(
        self, selection: str, folds: Sequence[int] | None = None, *, without: Sequence[str] = ()
    ) -> Choice:
        """Pick a kind, size and ridge weight by these folds, all by default."""
        wanted = self._judged if folds is None else sorted(folds)
        scored = self.race.scoring is not None
        return self.cells.choose(wanted, selection, scored=scored, without=without)

    def _choice(self, where: int | None, without: Sequence[str] = ()) -> Choice:
        """The settings chosen by all folds, or by those other than one."""
        others = [f for f in self._judged if f != where] or None
        choice = self.choose(self.selection, others, without=without)
        if self._is_data(choice) and self._matches and self._over and where not in self.data_fits:
            # There was no time for this fit.
            return self.choose(self.selection, others, without=[*without, "data"])
        return choice

    def _is_data(self, choice: Choice) -> bool:
        return self.settings.kinds[choice.pool] == "data"

    def outcome(self) -> SearchOutcome:
        """Put together the choice, and the fits with it of all rows and without folds."""
        choice, fit, refused = self._final()
        law = self._law(self._model)
        errors, scores, _ = self.cells.table(range(len(self.race.folds)))
        kinds = self.settings.kinds
        return SearchOutcome(
            errors,
            scores,
            choice,
            candidates=list(kinds),
            params=[{"fit": kind} for kind in kinds],
            chosen_params={"law": law.law, "input_warp": self.template.framing.input_warp},
            order=law.law.orders,
            scale=np.array(law.law.scale),
            kind=kinds[choice.pool],
            sizes=list(self.settings.sizes),
            fit=fit,
            held_out=[(self.race.folds[f], self._fit(f, self._choice(f))) for f in self._judged],
            extent=self._extent(),
            refused=tuple(refused),
            learned_law=self.race.learned(law, self.template.framing.columns),
        )

    def _final(self) -> tuple[Choice, Fit, list[str]]:
        """The choice, its fit, and what was refused because the folds had promised better."""
        refused = [] if self.all_rows is None else [f"law {n}" for n in self.all_rows.refused]
        choice = self._choice(self._model)
        if self._model is not _ALL:
            return choice, self._fit(self._model, choice), refused
        kinds, without = self.settings.kinds, list[str]()
        kept: tuple[Choice, Matched] | None = None
        while True:
            if self._is_data(choice):
                return choice, self.data_fits[_ALL], refused
            assert self.paths is not None
            kind, s = kinds[choice.pool], self.settings.sizes[choice.size]
            # Training ends early if features become dependent.
            path = self.paths.get(kind) or self.paths["matched"]
            known = [self.models[f] for f in self._judged]
            gaps = [models[kind, s].gap for models in known if (kind, s) in models]
            usual = max(gaps, default=np.inf)
            model = close_model(path, s, usual, self.settings.visible)
            closest = min(path, key=lambda model: model.gap)
            if model is not None:
                if kept is not None and kept[1].gap <= model.gap and not self._fits_rows:
                    # What was refused is still closer to the reference than this.
                    return kept[0], self._matched_fit(_ALL, kept[1]), refused
                return choice, self._matched_fit(_ALL, model), refused
            if kept is None or closest.gap < kept[1].gap:
                kept = choice, closest
            refused.append(f"{kind} features")
            without.append(kind)
            # Fits on y of all rows are only made where they are chosen at once.
            if not self.cells.any_left(self._judged, [*without, "data"]):
                return kept[0], self._matched_fit(_ALL, kept[1]), refused
            choice = self._choice(_ALL, without)

    def _extent(self) -> str:
        if not self.whole:
            return extent_of_sample(self.race.folds[0], self.race.data)
        laws, sizes, n = len(self.race.shared_folds()), len(self._judged), len(self.race.folds)
        return f"laws were compared on {laws} of {n} folds and sizes on {sizes}"

    def _law(self, where: int | None) -> LawFit:
        if where is not _ALL:
            return self.race.fit_without(where, self.weights)
        assert self.all_rows is not None
        return self.all_rows.law

    def _rows(self, where: int | None) -> Data:
        data = self.race.data
        return data if where is _ALL else data.take(self.race.folds[where][0])

    def _fit(self, where: int, choice: Choice) -> Fit:
        """The fit of the rows outside a fold with these settings."""
        if self._is_data(choice):
            return self.data_fits[where]
        kind, s = self.settings.kinds[choice.pool], self.settings.sizes[choice.size]
        # Where training started from fewer features, more would not have gained.
        known = {t: m for (k, t), m in self.models[where].items() if k == kind and t <= s}
        known = known or {t: m for (k, t), m in self.models[where].items() if k == "matched"}
        return self._matched_fit(where, known[max(known)])

    def _matched_fit(self, where: int | None, model: Matched) -> Fit:
        return matched_fit(self.template, self._law(where), model, self._rows(where))
