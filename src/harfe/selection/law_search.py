"""Selection under a learned law: which law, how its features are found, and how many.

First the candidates for the law are raced (`harfe.selection.learn_law`). Under the winner, refitted
without each fold and to all rows, three kinds of sparse models are tried at every size:

- "data": features of the law chosen to fit y (the paper's objective), for every ridge weight;
- "matched": features chosen to match the reference;
- "refined": those with weights and phases trained to match it.

All of them are judged by their error on held-out rows of y, not by the likelihood or by the gap to
the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harfe.learning.candidates import LawFit
from harfe.learning.matching import Matched
from harfe.selection.choosing import CellTable, Choice
from harfe.selection.engine.plan import Cost, Digest, Stage, Task
from harfe.selection.learn_law import LawRace
from harfe.selection.race import path_cost, path_memory
from harfe.selection.recipe import Fit, Template
from harfe.selection.results import SearchOutcome
from harfe.selection.rows import Data, extent_of_sample, sample_fold
from harfe.selection.sparse_models import (
    SparseSettings,
    close_model,
    fit_sparse,
    match_cost,
    matches_memory,
    sparse_on_fold,
    sparse_paths,
)

# Folds on which fits on y run; on the others only if they are ahead.
_FIRST_FOLDS = 1

# All rows, where others are named by the fold that they leave out.
_ALL = None


@dataclass(frozen=True)
class AllRows:
    """The law fitted to all rows, and its matches by kind, the smallest first."""

    law: LawFit
    paths: Mapping[str, Sequence[Matched]]


def sparse_on_all(
    race: LawRace, weights: Mapping[int, float], template: Template, settings: SparseSettings
) -> AllRows:
    """Fit the winner of a race to all rows, and match it at every size."""
    law = race.fit_all(weights)
    paths = sparse_paths(template, law, settings.kinds, settings.sizes, settings.visible)
    return AllRows(law, paths)


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
    data_fits: dict[int | None, Fit] = field(default_factory=dict)
    _over: bool = False

    def __post_init__(self) -> None:
        kinds = self.settings.kinds
        self.cells = CellTable(kinds, self.settings.sizes, self.settings.alphas)
        matches = tuple(kind for kind in kinds if kind != "data")
        # Kinds that are tried together; without the first part nothing can be chosen.
        self._parts = [part for part in (matches, ("data",) * ("data" in kinds)) if part]
        self._matches = bool(matches)

    @property
    def most_tasks(self) -> int:
        """Number of tasks if all candidates and the sparse models run on all folds."""
        n = len(self.race.folds)
        return self.race.most_tasks + (len(self._parts) + 1) * n + 2

    def stages(self) -> Iterator[Stage]:
        """Yield the race of the laws, the sparse models under the winner, the fits on y."""
        yield from self.race.stages(self._reserve())
        if not self.race.judged:
            return
        self.weights = self.race.stacked()
        self.settings = replace(self.settings, visible=self.race.held_out_error())
        yield Stage(self._sparse_tasks, needed=True)
        if self._data_may_win():
            yield Stage(self._more_data_tasks)
        if self._judged:
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

    def _sparse_tasks(self) -> list[Task]:
        race, base = self.race, self.race.digest()
        folds = range(len(race.folds))
        run = [f for f in folds if all((k, f) in race.judged for k in self.weights)]
        tasks = [self._all_rows_task(base)] if self.whole else []
        for f in run:
            tasks.append(self._sparse_task(f, self._parts[0], base, "first" if f == run[0] else f))
        for part in self._parts[1:]:
            tasks += [self._sparse_task(f, part, base, "data") for f in run[:_FIRST_FOLDS]]
        return tasks

    def _data_may_win(self) -> bool:
        """Whether fits on y are ahead of the matches on the first folds, and there are others."""
        tried = self.cells.folds("data")
        more = len(tried) < len(self._judged)
        return self._matches and bool(tried) and more and self.cells.data_ahead(tried)

    def _more_data_tasks(self) -> list[Task]:
        """Fits on y on the other folds: they compete only if they have run on all."""
        base, tried = self.race.digest(), self.cells.folds("data")
        folds = [f for f in self._judged if f not in tried]
        return [self._sparse_task(f, ("data",), base, "data") for f in folds]

    def _all_rows_task(self, base: Digest) -> Task:
        return Task(
            ("all rows",),
            "all rows",
            sparse_on_all,
            (self.race, self.weights, self.template, self.settings),
            base.key("all rows", *self._key_parts(self.settings)),
            self._all_rows_costs(len(self.weights)),
            "first",
            self._memory(self._parts[0], len(self.race.data.X)),
        )

    def _sparse_task(self, f: int, part: tuple[str, ...], base: Digest, group: Any) -> Task:
        race, fold, settings = self.race, self.race.folds[f], replace(self.settings, kinds=part)
        return Task(
            ("sparse", f, part),
            "fits on y" if part == ("data",) else "sparse models",
            sparse_on_fold,
            (self.template, self._law(f), settings, race.data, fold, race.scoring),
            base.key(*fold, *self._key_parts(settings)),
            (self._cost(part, len(fold[0])),),
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
                    Task(("fit", where), "fits on y", fit_sparse, call, b"", costs, None, memory)
                )
        return tasks

    def _cost(self, part: tuple[str, ...], n_rows: int) -> Cost:
        if part == ("data",):
            return path_cost(n_rows, self.template.n_components)
        return match_cost(n_rows, part)

    def _memory(self, part: tuple[str, ...], n_rows: int) -> float:
        if part == ("data",):
            return path_memory(self.template, n_rows)
        return matches_memory(n_rows, self.template.n_components)

    def _all_rows_costs(self, n_laws: int) -> tuple[Cost, ...]:
        m = len(self.race.data.X)
        laws = [self.race.cost(m)] * n_laws
        return (*laws, match_cost(m, self._parts[0])) if self._matches else tuple(laws)

    def _reserve(self) -> list[Cost]:
        """What must follow the race: a law of all rows, its models, and those of a fold."""
        train = len(self.race.folds[0][0])
        costs = [self._cost(self._parts[0], train)]
        if self.whole:
            costs += self._all_rows_costs(1)
        if not self._matches:
            m = len(self.race.data.X) if self.whole else train
            costs.append(path_cost(m, self.template.n_components, "fit"))
        return costs

    def later(self) -> list[Cost]:
        """Costs of the tasks expected after the current stage."""
        if self.weights:
            return []
        rows = [len(train) for train, _ in self.race.folds]
        folds = [self._cost(self._parts[0], n) for n in rows]
        folds += [self._cost(part, n) for part in self._parts[1:] for n in rows[:_FIRST_FOLDS]]
        # One task, although of two kinds.
        whole = Cost("match", sum(cost.seconds for cost in self._all_rows_costs(1)))
        return [*self.race.later(), *[whole] * self.whole, *folds]

    # --- Results ---

    def take(self, name: Any, result: Any) -> None:
        """Accept the result of a task."""
        match name:
            case ("sparse", f, part):
                table, models = result
                self.cells.add(f, part, table)
                self.models[f] = self.models.get(f, {}) | models
            case ("all rows",):
                self.all_rows = result
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
        """Folds that the choice is made on."""
        return self.cells.folds(self._parts[0][0])

    @property
    def _model(self) -> int | None:
        """What the model is fitted to: all rows, or those outside the first fold."""
        return _ALL if self.whole else 0

    @property
    def usable(self) -> bool:
        """Whether there is a model of the rows that are wanted, and one for the uncertainty."""
        fitted = self.all_rows is not None or not self.whole
        return bool(self._judged) and fitted and (self._matches or self._model in self.data_fits)

    def choose(
        self, selection: str, folds: Sequence[int] | None = None, *, on_data: bool = True
    ) -> Choice:
        """Pick a kind, size and ridge weight by these folds, all by default."""
        wanted = self._judged if folds is None else sorted(folds)
        scored = self.race.scoring is not None
        return self.cells.choose(wanted, selection, scored=scored, on_data=on_data)

    def _choice(self, where: int | None) -> Choice:
        """The settings chosen by all folds, or by those other than one."""
        others = [f for f in self._judged if f != where] or None
        choice = self.choose(self.selection, others)
        if self._is_data(choice) and self._matches and self._over and where not in self.data_fits:
            # There was no time for this fit.
            return self.choose(self.selection, others, on_data=False)
        return choice

    def _is_data(self, choice: Choice) -> bool:
        return self.settings.kinds[choice.pool] == "data"

    def outcome(self) -> SearchOutcome:
        """Put together the choice, and the fits with it of all rows and without folds."""
        choice, law = self._choice(self._model), self._law(self._model)
        errors, scores, _ = self.cells.table(range(len(self.race.folds)))
        kinds = self.settings.kinds
        return SearchOutcome(
            errors,
            scores,
            choice,
            candidates=list(kinds),
            params=[{"fit": kind} for kind in kinds],
            chosen_params={"law": law.law},
            order=law.law.orders,
            scale=np.array(law.law.scale),
            kind=kinds[choice.pool],
            sizes=list(self.settings.sizes),
            fit=self._fit(self._model, choice),
            held_out=[(self.race.folds[f], self._fit(f, self._choice(f))) for f in self._judged],
            extent=self._extent(),
            learned_law=self.race.learned(law, self.template.framing.columns),
        )

    def _extent(self) -> str:
        if not self.whole:
            return extent_of_sample(self.race.folds[0], self.race.data)
        laws, sizes, n = len(self.race.shared_folds()), len(self._judged), len(self.race.folds)
        text = f"laws were compared on {laws} of {n} folds and sizes on {sizes}"
        if self._parts[1:] and not self.cells.folds("data"):
            text += ", and features chosen on y were not tried"
        return text

    def _law(self, where: int | None) -> LawFit:
        if where is not _ALL:
            return self.race.fit_without(where, self.weights)
        assert self.all_rows is not None
        return self.all_rows.law

    def _rows(self, where: int | None) -> Data:
        data = self.race.data
        return data if where is _ALL else data.take(self.race.folds[where][0])

    def _fit(self, where: int | None, choice: Choice) -> Fit:
        """The fit of all rows, or of those outside a fold, with these settings."""
        if self._is_data(choice):
            return self.data_fits[where]
        kind, s = self.settings.kinds[choice.pool], self.settings.sizes[choice.size]
        model = None
        if where is not _ALL:
            # Where training started from fewer features, more would not have gained.
            known = {t: m for (k, t), m in self.models[where].items() if k == kind and t <= s}
            model = known[max(known)] if known else None
        elif self.all_rows is not None:
            models = [self.models[f] for f in self._judged]
            gaps = [known[kind, s].gap for known in models if (kind, s) in known]
            # Training ends early if features become dependent.
            path = self.all_rows.paths[kind] or self.all_rows.paths.get("matched")
            model = close_model(path, s, max(gaps, default=np.inf)) if path else None
        return fit_sparse(
            self.template, self._law(where), self.settings, choice, self._rows(where), model
        )
