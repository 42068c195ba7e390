"""Selection under a learned law: which law, which way to fit it, how many terms.

First the candidates for the law race: each is fitted without a fold and predicts its rows by its
reference, all candidates on the first folds, the two best on the others. Under the winner, fitted
anew without each fold, three kinds of sparse models are tried at every size:

- "data": features of the law chosen on y itself (the paper's objective), for every ridge weight;
- "matched": features chosen to match the reference;
- "refined": those with weights and phases trained to match it.

What is held out judges all of them, as rows of real y: neither the likelihood nor the gap to the
reference decides.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe.learning.candidates import MOST_ROWS, LawFit, LearnedLaw, stack
from harfe.learning.likelihood import Prior
from harfe.learning.matching import Matched
from harfe.learning.stacking import stack_weights
from harfe.model.expansion import Expansion
from harfe.model.uncertainty import Posterior
from harfe.selection.choosing import Choice, choose_cell, fewest_terms
from harfe.selection.race import Data, Scoring
from harfe.selection.recipe import Fit, Recipe
from harfe.selection.sparse_models import (
    SparseSettings,
    fit_law,
    matched_fit,
    prior_alpha,
    sparse_on_fold,
    sparse_paths,
)

# Folds on which all candidates run, and how many go on; all of them while rows are few.
_FIRST_FOLDS, _FINALISTS = 2, 2
_FEW_ROWS = 300

# A model of all rows may be so many times farther from its reference than the worst of the folds.
_LARGEST_GAP = 2.0


@dataclass
class Clock:
    """Counts tasks, tells of them, and knows whether to stop."""

    planned: int
    deadline: float
    after_task: Callable[[int, int], bool]
    done: int = 0
    stopped: bool = False

    def count(self, n: int) -> None:
        """Tell of n more tasks."""
        self.done += n
        asked = self.after_task(self.done, max(self.planned, self.done))
        self.stopped = self.stopped or asked or time.monotonic() > self.deadline


@dataclass
class LawSearch:
    """The race of the laws and the table of the sparse models under the winner.

    Attributes
    ----------
    laws : dict
        (candidate, fold) -> LawFit.
    law_scores : dict
        (candidate, fold) -> (error, score) of the reference on the held-out rows.
    tables : dict
        Fold -> what `sparse_on_fold` returned.
    trying : str
        What is run next, for whoever waits.
    """

    recipe: Recipe
    priors: Sequence[Prior]
    settings: SparseSettings
    data: Data
    folds: Sequence[Fold]
    scoring: Scoring | None = None
    earlier: dict[bytes, Any] = field(default_factory=dict)
    laws: dict[tuple[int, int], LawFit] = field(default_factory=dict)
    law_scores: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    tables: dict[int, tuple[NDArray[np.float64], dict[tuple[str, int], Matched]]] = field(
        default_factory=dict
    )
    trying: str = "laws"
    _finished: dict[bytes, Any] = field(default_factory=dict)
    _final: LawFit | None = None
    _weights: dict[int, float] | None = None

    @property
    def planned(self) -> int:
        """Most tasks that the search can have."""
        return (len(self.priors) + 1) * len(self.folds)

    def resume(self, earlier: dict[bytes, Any]) -> None:
        """Take over what an earlier search on the same rows has finished."""
        self.earlier = earlier

    def finished(self) -> dict[bytes, Any]:
        """What a later search may take over."""
        return self._finished

    def best_so_far(self) -> tuple[float, str]:
        """Best mean score and whose it is."""
        name = self.priors[self.best_law()].name
        if not self.tables:
            return max(score for _, score in self._mean_law_scores(len(self.folds))), f"law {name}"
        choice = self.choose("best")
        kind, s = self.settings.kinds[choice.pool], self.settings.sizes[choice.size]
        return choice.score, f"law {name}, {kind}, {s} terms"

    def run(
        self,
        n_jobs: int | None,
        deadline: float,
        after_task: Callable[[int, int], bool],
    ) -> bool:
        """Run until `deadline` (of time.monotonic) or until a true `after_task`.

        A law and one fold of sparse models are fitted whatever the time. Returns whether all was
        run.
        """
        clock = Clock(self.n_law_tasks + len(self.folds), deadline, after_task)
        workers = effective_n_jobs(n_jobs)
        self.race_laws(workers, clock)
        names = self._stacked()
        mine = [f for f in range(len(self.folds)) if all((k, f) in self.laws for k in names)]
        for start in range(0, len(mine), workers):
            if clock.stopped and self.tables:
                break
            self._try_sparse(mine[start : start + workers], workers)
            clock.count(len(mine[start : start + workers]))
        return len(self.tables) == len(self.folds)

    @property
    def n_law_tasks(self) -> int:
        """Fits that the race of the laws takes."""
        n_first = min(_FIRST_FOLDS, len(self.folds))
        return len(self.priors) * n_first + self._finalists * (len(self.folds) - n_first)

    @property
    def _finalists(self) -> int:
        few = self.data.weights.sum() < _FEW_ROWS
        return len(self.priors) if few else min(_FINALISTS, len(self.priors))

    def race_laws(self, workers: int, clock: Clock) -> None:
        """All candidates on the first folds, the best on the others."""
        n_first = min(_FIRST_FOLDS, len(self.folds))
        alive = list(range(len(self.priors)))
        for folds in (range(n_first), range(n_first, len(self.folds))):
            if folds.start:
                best = sorted(self._mean_law_scores(n_first), key=lambda pair: -pair[1])
                alive = sorted(k for k, _ in best[: self._finalists])
            tasks = [(k, f) for f in folds for k in alive]
            for start in range(0, len(tasks), workers):
                if clock.stopped and self.laws:
                    return
                chunk, coming = tasks[start : start + workers], tasks[start + workers :][:workers]
                self._fit_laws(chunk, workers)
                names = dict.fromkeys(self.priors[k].name for k, _ in coming)
                self.trying = f"law {', '.join(names)}" if names else "few terms"
                clock.count(len(chunk))

    def _fit_laws(self, tasks: list[tuple[int, int]], workers: int) -> None:
        calls = {
            (k, f): (self.recipe, self.priors[k], self.data, self.folds[f][0]) for k, f in tasks
        }
        found = self._all(
            fit_law, {t: (self._key(t[1], self.priors[t[0]]), c) for t, c in calls.items()}, workers
        )
        self.laws.update(found)
        for (k, f), law in found.items():
            test = self.folds[f][1]
            prediction = law.predict(self.data.X[test])
            error = float(self.data.errors(prediction[:, None], test)[0])
            score = -error if self.scoring is None else self.scoring(prediction, test)
            self.law_scores[k, f] = error, score

    def _try_sparse(self, folds: list[int], workers: int) -> None:
        stacked = {self.priors[k]: w for k, w in self._stacked().items()}
        calls = {
            f: (
                self._key(f, (stacked, self.settings)),
                (
                    self.recipe,
                    self.law_without(f),
                    self.settings,
                    self.data,
                    self.folds[f],
                    self.scoring,
                ),
            )
            for f in folds
        }
        self.tables.update(self._all(sparse_on_fold, calls, workers))

    def _all(
        self, function: Any, calls: dict[Any, tuple[bytes, tuple[Any, ...]]], workers: int
    ) -> dict[Any, Any]:
        """Call for every entry that no earlier search has finished."""
        new = {name: call for name, (key, call) in calls.items() if key not in self.earlier}
        if workers == 1 or len(new) <= 1:
            results = [function(*call) for call in new.values()]
        else:
            results = Parallel(n_jobs=workers)(delayed(function)(*call) for call in new.values())
        fresh = dict(zip(new, results, strict=True))
        out = {
            name: fresh[name] if name in fresh else self.earlier[key]
            for name, (key, _) in calls.items()
        }
        self._finished.update({key: out[name] for name, (key, _) in calls.items()})
        return out

    def _key(self, f: int, what: Any) -> bytes:
        """What the result of a task depends on, as a digest."""
        key = hashlib.sha256()
        for array in (self.data.X, self.data.y, self.data.weights, *self.folds[f]):
            key.update(repr((array.shape, array.dtype)).encode() + array.tobytes())
        scorer = None if self.scoring is None else self.scoring.scorer  # type: ignore[attr-defined]
        key.update(repr((replace(self.recipe, memory_budget=0.0), what, scorer)).encode())
        return key.digest()

    def _mean_law_scores(self, n_folds: int) -> list[tuple[int, float]]:
        """Mean score of every candidate over the first folds, of those that ran on the most."""
        scores = {
            k: [s for (j, f), (_, s) in self.law_scores.items() if j == k and f < n_folds]
            for k in range(len(self.priors))
        }
        most = max(len(s) for s in scores.values())
        return [(k, float(np.mean(s))) for k, s in scores.items() if len(s) == most]

    def best_law(self) -> int:
        """Candidate with the best mean score over the folds, of those that ran on the most."""
        return max(self._mean_law_scores(len(self.folds)), key=lambda pair: pair[1])[0]

    def _stacked(self) -> dict[int, float]:
        """Weights of the candidates that make up the reference: the best one, or several.

        By what every candidate, fitted without the fold, predicts for its rows; with a `scoring` of
        the user's own, too.
        """
        if self._weights is None:
            self._weights = self._find_weights()
        return self._weights

    def _find_weights(self) -> dict[int, float]:
        best = self.best_law()
        folds = [f for f in range(len(self.folds)) if (best, f) in self.laws]
        full = [k for k in range(len(self.priors)) if all((k, f) in self.laws for f in folds)]
        if len(full) < 2 or len(folds) < len(self.folds):
            return {best: 1.0}
        predicted, wanted = [], []
        for f in folds:
            test = self.folds[f][1]
            rows, root = self.data.X[test], np.sqrt(self.data.weights[test])[:, None]
            # Every target in its own deviation, about its mean on the rows learned from.
            base = self.laws[best, f].data
            wanted.append((root * (self.data.y[test] - base.centre) / base.unit).ravel())
            predicted.append(
                np.stack(
                    [
                        (root * (self.laws[k, f].predict(rows) - base.centre) / base.unit).ravel()
                        for k in full
                    ],
                    axis=1,
                )
            )
        weights = stack_weights(predicted, wanted, full.index(best))
        return {k: float(w) for k, w in zip(full, weights, strict=True) if w > 0}

    def law_without(self, fold: int) -> LawFit:
        """The law, or the stack, fitted to the rows outside a fold."""
        train = self.folds[fold][0]
        # Where time ran out, a candidate may not have been fitted without this fold yet.
        fits = [
            self.laws.get((k, fold)) or fit_law(self.recipe, self.priors[k], self.data, train)
            for k in self._stacked()
        ]
        return stack(fits, list(self._stacked().values()))

    def fit_best_law(self) -> LawFit:
        """The law, or the stack, fitted to all rows; once."""
        if self._final is None:
            rows = np.arange(len(self.data.X))
            fits = [fit_law(self.recipe, self.priors[k], self.data, rows) for k in self._stacked()]
            self._final = stack(fits, list(self._stacked().values()))
        return self._final

    def learned(self) -> LearnedLaw:
        """What was learned from all rows, for the user."""
        law = self.fit_best_law()
        return LearnedLaw(
            law.law,
            law.name,
            self.law_errors(),
            law.noise,
            law.variance,
            min(len(law.data.Z), MOST_ROWS),
            self.recipe.columns,
        )

    def law_errors(self) -> dict[str, float]:
        """Mean squared error of every candidate's reference over the folds it ran on."""
        return {
            prior.name: float(np.mean([e for (j, _), (e, _) in self.law_scores.items() if j == k]))
            for k, prior in enumerate(self.priors)
            if any(j == k for j, _ in self.law_scores)
        }

    def table(self) -> NDArray[np.float64]:
        """Errors and scores, shape (2, kinds, sizes, alphas, folds); NaN where nothing was run."""
        return self._cells()[:2]

    def _cells(self) -> NDArray[np.float64]:
        """Errors, scores and straying, shape (3, kinds, sizes, alphas, folds)."""
        settings = self.settings
        shape = (len(settings.kinds), len(settings.sizes), len(settings.alphas), len(self.folds))
        out = np.full((3, *shape), np.nan)
        for f, (cells, _) in self.tables.items():
            out[..., f] = cells
        return out

    def choose(self, selection: str, folds: Sequence[int] | None = None) -> Choice:
        """Pick a kind, size and ridge weight by these folds, all by default.

        With a `scoring` of the user's own its scores decide alone.
        """
        wanted = sorted(self.tables if folds is None else folds)
        _, scores, straying = self._cells()[..., wanted]
        sizes = self.settings.sizes
        if self.scoring is not None:
            slack = None if selection == "one_se" else 0.0
            return fewest_terms(scores, scores, sizes, slack)
        on_data = np.array([kind == "data" for kind in self.settings.kinds])
        return choose_cell(scores, straying, on_data, sizes, selection)

    def fit(self, choice: Choice) -> tuple[Fit, Recipe]:
        """Fit all rows with the law and the choice."""
        everything = np.arange(len(self.data.X))
        law = self.fit_best_law()
        recipe = self._recipe(choice, law)
        kind = self.settings.kinds[choice.pool]
        if kind == "data":
            data = self.data
            return recipe.fit(data.X, data.y, data.weights), recipe
        model = self._sparse_model(law, kind, recipe.n_nonzero_coefs, self._usual_gap(choice))
        recipe = replace(recipe, n_nonzero_coefs=len(model.support))
        return matched_fit(recipe, law, model, self.data, everything), recipe

    def fit_without(self, fold: int, selection: str) -> tuple[Expansion, Posterior]:
        """The model of the rows outside a fold, with the settings that the other folds choose."""
        others = [f for f in self.tables if f != fold]
        choice = self.choose(selection, others or None)
        train = self.folds[fold][0]
        law = self.law_without(fold)
        recipe = self._recipe(choice, law)
        kind, s = self.settings.kinds[choice.pool], recipe.n_nonzero_coefs
        if kind == "data":
            data = self.data
            fit = recipe.fit(data.X[train], data.y[train], data.weights[train])
        else:
            model = self.tables[fold][1].get((kind, s)) if fold in self.tables else None
            model = model or self._sparse_model(law, kind, s)
            fit = matched_fit(recipe, law, model, self.data, train)
        return fit.expansion, fit.posterior(recipe.alpha)

    def _usual_gap(self, choice: Choice) -> float:
        """Largest gap to the reference that the chosen cell had in a fold."""
        kind, s = self.settings.kinds[choice.pool], self.settings.sizes[choice.size]
        return max(models[kind, s].gap for _, models in self.tables.values() if (kind, s) in models)

    def _sparse_model(self, law: LawFit, kind: str, s: int, gap: float = np.inf) -> Matched:
        """The smallest model from s terms on that comes as close to its reference as in the folds.

        Training can end in a bad place, which the gap to the reference shows; one size up is
        another end.
        """
        sizes = [t for t in self.settings.sizes if t >= s]
        path = sparse_paths(self.recipe, law, [kind], sizes)[kind]
        # Training ends early where features can no longer be told apart.
        path = path or sparse_paths(self.recipe, law, ["matched"], sizes)["matched"]
        return next((model for model in path if model.gap <= _LARGEST_GAP * gap), path[-1])

    def _recipe(self, choice: Choice, law: LawFit) -> Recipe:
        s = self.settings.sizes[choice.size]
        alpha = self.settings.alphas[choice.alpha]
        if self.settings.kinds[choice.pool] != "data":
            alpha = prior_alpha(law, s)
        return replace(self.recipe, law=law.law, n_nonzero_coefs=s, alpha=alpha)
