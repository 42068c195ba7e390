"""Learning the law of the features: candidates race, and the best one or a stack of them wins.

Each candidate is fitted without a fold and predicts the rows of that fold by its reference: all
candidates on the first folds, the best two on the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_choice, check_clip
from harfe._core.folds import Fold, make_folds
from harfe._core.progress import ProgressLine
from harfe._core.threads import one_blas_thread
from harfe._core.validation import check_table, check_targets, check_weights
from harfe.features.transformer import seed_of
from harfe.features.units import INPUT_SCALES, varies
from harfe.learning.candidates import (
    CANDIDATES,
    MOST_ROWS,
    LawFit,
    LawSettings,
    LearnedLaw,
    fit_candidate,
    sampling_notes,
    stack,
    standardise,
)
from harfe.learning.likelihood import Prior
from harfe.learning.stacking import stack_weights
from harfe.selection.rows import FEW_ROWS, Data, Scoring
from harfe.selection.search import Digest, Search, Stage, Task

# Folds on which all candidates run, and how many run on the others; all of them if rows are few.
_FIRST_FOLDS, _FINALISTS = 2, 2


def fit_law(prior: Prior, settings: LawSettings, data: Data, rows: NDArray[np.intp]) -> LawFit:
    """Fit a candidate to some rows."""
    with one_blas_thread():
        standard = standardise(data.X[rows], data.y[rows], data.weights[rows], settings)
        return fit_candidate(prior, standard, settings)


@dataclass
class LawRace:
    """Candidates for the law against each other, fold by fold; a plan of `harfe.selection.search`.

    Attributes
    ----------
    fits : dict
        (candidate, fold) -> LawFit.
    scores : dict
        (candidate, fold) -> (error, score) of the reference on the held-out rows.
    """

    priors: Sequence[Prior]
    settings: LawSettings
    data: Data
    folds: Sequence[Fold]
    scoring: Scoring | None = None
    fits: dict[tuple[int, int], LawFit] = field(default_factory=dict)
    scores: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    _later: int = 0

    @property
    def most_tasks(self) -> int:
        """Number of tasks if all candidates run on all folds."""
        return len(self.priors) * len(self.folds)

    def stages(self) -> Iterator[Stage]:
        """Yield all candidates on the first folds, then the best on the others."""
        n_first = min(_FIRST_FOLDS, len(self.folds))
        few = self.data.weights.sum() < FEW_ROWS
        finalists = len(self.priors) if few else min(_FINALISTS, len(self.priors))
        self._later = finalists * (len(self.folds) - n_first)
        base = self.digest()
        every = range(len(self.priors))
        yield Stage(partial(self._tasks, every, range(n_first), base), needed=True)

        def last() -> list[Task]:
            self._later = 0
            ranked = sorted(self._mean_scores(n_first), key=lambda pair: -pair[1])
            best = sorted(k for k, _ in ranked[:finalists])
            return self._tasks(best, range(n_first, len(self.folds)), base)

        if len(self.folds) > n_first:
            yield Stage(last)

    def digest(self) -> Digest:
        """Digest of what all results depend on."""
        scorer = None if self.scoring is None else self.scoring.scorer  # type: ignore[attr-defined]
        return Digest(self.data.X, self.data.y, self.data.weights, self.settings, scorer)

    def _tasks(self, candidates: Sequence[int], folds: range, base: Digest) -> list[Task]:
        return [
            Task(
                (k, f),
                f"law {self.priors[k].name}",
                fit_law,
                (self.priors[k], self.settings, self.data, self.folds[f][0]),
                base.key(*self.folds[f], self.priors[k]),
            )
            for f in folds
            for k in candidates
        ]

    def take(self, name: tuple[int, int], result: LawFit) -> None:
        """Store a law fitted without a fold, and score it on that fold."""
        self.fits[name] = result
        test = self.folds[name[1]][1]
        prediction = result.predict(self.data.X[test])
        error = float(self.data.errors(prediction[:, None], test)[0])
        score = -error if self.scoring is None else self.scoring(prediction, test)
        self.scores[name] = error, score

    def tasks_later(self) -> int:
        """Number of tasks expected after the current stage."""
        return self._later

    def best_so_far(self) -> tuple[float, str]:
        """Best mean score so far, and the law that has it."""
        best, score = self._best()
        return score, f"law {self.priors[best].name}"

    def _best(self) -> tuple[int, float]:
        """The candidate with the best mean score among those run on the most folds."""
        return max(self._mean_scores(len(self.folds)), key=lambda pair: pair[1])

    def _mean_scores(self, n_folds: int) -> list[tuple[int, float]]:
        """Mean scores over the first folds of the candidates run on the most of them."""
        scores = {
            k: [s for (j, f), (_, s) in self.scores.items() if j == k and f < n_folds]
            for k in range(len(self.priors))
        }
        most = max(len(s) for s in scores.values())
        return [(k, float(np.mean(s))) for k, s in scores.items() if len(s) == most]

    def stacked(self) -> dict[int, float]:
        """Weights of the candidates in the reference: one for the best alone, or several.

        Always found by least squares on what the candidates predict for held-out rows, even with a
        user-defined `scoring`.
        """
        best, _ = self._best()
        folds = [f for f in range(len(self.folds)) if (best, f) in self.fits]
        full = [k for k in range(len(self.priors)) if all((k, f) in self.fits for f in folds)]
        if len(full) < 2 or len(folds) < len(self.folds):
            return {best: 1.0}
        predicted, wanted = [], []
        for f in folds:
            test = self.folds[f][1]
            rows, root = self.data.X[test], np.sqrt(self.data.weights[test])[:, None]
            # Targets in units of their deviation, about their means on the training rows.
            base = self.fits[best, f].data
            wanted.append((root * (self.data.y[test] - base.centre) / base.unit).ravel())
            predicted.append(
                np.stack(
                    [
                        (root * (self.fits[k, f].predict(rows) - base.centre) / base.unit).ravel()
                        for k in full
                    ],
                    axis=1,
                )
            )
        weights = stack_weights(predicted, wanted, full.index(best))
        return {k: float(w) for k, w in zip(full, weights, strict=True) if w > 0}

    def fit_without(self, fold: int, weights: Mapping[int, float]) -> LawFit:
        """Return the law, or the stack, fitted to the rows outside a fold."""
        train = self.folds[fold][0]
        # If time ran out, a candidate may not have been fitted without this fold yet.
        fits = [
            self.fits.get((k, fold)) or fit_law(self.priors[k], self.settings, self.data, train)
            for k in weights
        ]
        return stack(fits, list(weights.values()))

    def fit_all(self, weights: Mapping[int, float]) -> LawFit:
        """Return the law, or the stack, fitted to all rows."""
        rows = np.arange(len(self.data.X))
        fits = [fit_law(self.priors[k], self.settings, self.data, rows) for k in weights]
        return stack(fits, list(weights.values()))

    def learned(self, law: LawFit, columns: tuple[str, ...]) -> LearnedLaw:
        """Return what was learned from all rows, for the user."""
        errors = {
            prior.name: float(np.mean([e for (j, _), (e, _) in self.scores.items() if j == k]))
            for k, prior in enumerate(self.priors)
            if any(j == k for j, _ in self.scores)
        }
        n_rows = min(len(law.data.Z), MOST_ROWS)
        return LearnedLaw(law.law, law.name, errors, law.noise, law.variance, n_rows, columns)


def learn_law(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    candidates: Sequence[str] = tuple(CANDIDATES),
    cv: Any = 5,
    input_scale: str = "standard",
    input_clip: float | None = 5.0,
    verbose: bool = False,
    random_state: Any = None,
) -> LearnedLaw:
    """Learn the law of the features: which inputs they use, how many at once, at which scales.

    For each candidate, minimises -log N(y; 0, K + 1 + noise) + penalties over the parameters of the
    law, where K is the kernel of its features (see :mod:`harfe.learning.likelihood`). The candidate
    whose Gaussian process predicts held-out folds best wins, or a stack of several if that is
    clearly better.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        NumPy array, or pandas or polars frame with column names.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Real. Several targets share the law.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts: weight 2 repeats the row.
    candidates : sequence of str, default=("additive", "pairs", "fours", "isotropic")
        Priors to try: one input per feature; one or two, with similar scales; one to four, with
        free scales; one or two, with all inputs alike.
    cv : int, splitter or iterable, default=5
        Folds. All candidates run on two of them, the best two on the others.
    input_scale, input_clip
        Units in which the law draws, as in :class:`HARFERegressor`.
    verbose : bool, default=False
        Report progress on standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the samples of rows.

    Returns
    -------
    LearnedLaw
        Pass its ``law`` to ``HARFERegressor(law=...)`` or ``SparseRandomFeatures(law=...)``.

    Notes
    -----
    Large tables are sampled at random: the likelihood is computed on at most 500 distinct rows (300
    in its first steps, which find the inputs), and the dense references are fitted to at most
    20 000 rows. With more than 100 inputs, the 100 to which the likelihood is most sensitive are
    kept. Inputs that hardly raise the likelihood are then left out.

    Examples
    --------
    >>> from harfe import HARFERegressor, learn_law
    >>> from harfe.datasets import make_function
    >>> data = make_function("friedman1", 200, random_state=0)
    >>> learned = learn_law(data.X, data.y, candidates=["pairs"], random_state=0)
    >>> sorted(int(j) for j in learned.law.usage().argsort()[-5:])
    [0, 1, 2, 3, 4]
    >>> model = HARFERegressor(law=learned.law, random_state=0).fit(data.X, data.y)
    """
    X, columns = check_table(X, min_rows=2)
    y = check_targets(y, len(X))
    if y.dtype.kind == "c":
        raise ValueError("y is complex, and a law is learned from real targets; pass y.real")
    weights = check_weights(sample_weight, X)
    if isinstance(candidates, str):
        candidates = [candidates]
    for name in candidates:
        check_choice("candidates", name, tuple(CANDIDATES))
    if not len(candidates):
        raise ValueError(f"candidates=() names none; pass some of {tuple(CANDIDATES)}")
    counted = weights > 0
    check_choice("input_scale", input_scale, INPUT_SCALES)
    check_clip(input_clip)
    if not varies(X[counted], weights[counted]):
        raise ValueError("X has no input that varies; there is nothing to learn a law from")
    seed = seed_of(random_state)
    folds = make_folds("cv", cv, X, y, seed, counted=counted)
    data = Data(X[counted], y[counted].reshape(int(counted.sum()), -1), weights[counted])
    priors = [CANDIDATES[name] for name in candidates]
    race = LawRace(priors, LawSettings(seed, input_scale, input_clip), data, folds)
    search, line = Search(race), ProgressLine("fits of laws") if verbose else None

    def after_task(done: int, planned: int) -> bool:
        if line is not None:
            line.update(done, planned, lambda: f"best {race.best_so_far()[1]}")
        return False

    if line is not None:
        for note in sampling_notes(len(data.X)):
            line.say(note)
    search.run(after_task)
    if line is not None:
        line.close()
    return race.learned(race.fit_all(race.stacked()), columns)
