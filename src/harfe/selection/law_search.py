"""Selection under a learned law: which law, how its features are found, and how many.

First the candidates for the law are raced (`harfe.selection.learn_law`). Under the winner, refitted
without each fold, three kinds of sparse models are tried at every size:

- "data": features of the law chosen to fit y (the paper's objective), for every ridge weight;
- "matched": features chosen to match the reference;
- "refined": those with weights and phases trained to match it.

All of them are judged by their error on held-out rows of y, not by the likelihood or by the gap to
the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.learning.matching import Matched
from harfe.model.expansion import Expansion
from harfe.model.uncertainty import Posterior
from harfe.selection.choosing import Choice, choose_cell, fewest_features
from harfe.selection.learn_law import LawRace
from harfe.selection.recipe import Template
from harfe.selection.results import SearchOutcome
from harfe.selection.search import Stage, Task
from harfe.selection.sparse_models import SparseSettings, fit_sparse, sparse_on_fold

FoldTable = tuple[NDArray[np.float64], dict[tuple[str, int], Matched]]


@dataclass
class LawSearch:
    """A plan: the race of the laws, then the sparse models under the winner.

    Attributes
    ----------
    race : LawRace
    template : Template
        What all sparse models share.
    settings : SparseSettings
    tables : dict
        Fold -> what `sparse_on_fold` returned.
    weights : dict
        Candidate -> its weight in the reference; empty until the race is over.
    """

    race: LawRace
    template: Template
    settings: SparseSettings
    tables: dict[int, FoldTable] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)

    @property
    def most_tasks(self) -> int:
        """Number of tasks if all candidates and the sparse models run on all folds."""
        return self.race.most_tasks + len(self.race.folds)

    def stages(self) -> Iterator[Stage]:
        """Yield the race of the laws, then the sparse models without each fold."""
        yield from self.race.stages()
        self.weights = self.race.stacked()
        yield Stage(self._tasks, needed=True)

    def _tasks(self) -> list[Task]:
        race = self.race
        base = race.digest()
        stacked = {race.priors[k]: w for k, w in self.weights.items()}
        what = (self.template, stacked, self.settings)
        return [
            Task(
                f,
                "sparse models",
                sparse_on_fold,
                (
                    self.template,
                    race.fit_without(f, self.weights),
                    self.settings,
                    race.data,
                    fold,
                    race.scoring,
                ),
                base.key(*fold, what),
            )
            for f, fold in enumerate(race.folds)
            if all((k, f) in race.fits for k in self.weights)
        ]

    def take(self, name: Any, result: Any) -> None:
        """Accept a law without a fold, or the sparse models under it."""
        if isinstance(name, tuple):
            self.race.take(name, result)
        else:
            self.tables[name] = result

    def tasks_later(self) -> int:
        """Number of tasks expected after the current stage."""
        return 0 if self.weights else self.race.tasks_later() + len(self.race.folds)

    def best_so_far(self) -> tuple[float, str]:
        """Best mean score so far, and the model that has it."""
        score, law = self.race.best_so_far()
        if not self.tables:
            return score, law
        choice = self.choose("best")
        kind, s = self.settings.kinds[choice.pool], self.settings.sizes[choice.size]
        return choice.score, f"{law}, {kind}, {s} features"

    def table(self) -> NDArray[np.float64]:
        """Errors, scores and straying, shape (3, kinds, sizes, alphas, folds)."""
        settings, n_folds = self.settings, len(self.race.folds)
        shape = (len(settings.kinds), len(settings.sizes), len(settings.alphas), n_folds)
        out = np.full((3, *shape), np.nan)
        for f, (cells, _) in self.tables.items():
            out[..., f] = cells
        return out

    def choose(self, selection: str, folds: Sequence[int] | None = None) -> Choice:
        """Pick a kind, size and ridge weight by these folds, all by default.

        With a user-defined `scoring`, its scores alone decide.
        """
        wanted = sorted(self.tables if folds is None else folds)
        _, scores, straying = self.table()[..., wanted]
        sizes = self.settings.sizes
        if self.race.scoring is not None:
            slack = None if selection == "one_se" else 0.0
            return fewest_features(scores, scores, sizes, slack)
        on_data = np.array([kind == "data" for kind in self.settings.kinds])
        return choose_cell(scores, straying, on_data, sizes, selection)

    def outcome(self, selection: str) -> SearchOutcome:
        """Choose, then fit all rows with the law and the choice."""
        choice = self.choose(selection)
        errors, scores, _ = self.table()
        law = self.race.fit_all(self.weights)
        kind, s = self.settings.kinds[choice.pool], self.settings.sizes[choice.size]
        gaps = [models[kind, s].gap for _, models in self.tables.values() if (kind, s) in models]
        usual_gap = max(gaps, default=np.inf)
        fit = fit_sparse(
            self.template, law, self.settings, choice, self.race.data, usual_gap=usual_gap
        )
        return SearchOutcome(
            errors,
            scores,
            choice,
            candidates=list(self.settings.kinds),
            params=[{"fit": kind} for kind in self.settings.kinds],
            chosen_params={"law": law.law},
            order=law.law.orders,
            scale=np.array(law.law.scale),
            kind=kind,
            fit=fit,
            fit_without=lambda fold: self._fit_without(fold, selection),
            learned_law=self.race.learned(law, self.template.framing.columns),
        )

    def _fit_without(self, fold: int, selection: str) -> tuple[Expansion, Posterior]:
        """Fit the rows outside a fold with the settings chosen by the other folds."""
        others = [f for f in self.tables if f != fold]
        choice = self.choose(selection, others or None)
        law = self.race.fit_without(fold, self.weights)
        known = self.tables[fold][1] if fold in self.tables else {}
        rows = self.race.folds[fold][0]
        fit = fit_sparse(
            self.template, law, self.settings, choice, self.race.data.take(rows), known
        )
        return fit.expansion, fit.posterior()
