"""Learning the law of the features: candidates race, and the best one or a stack of them wins.

Each candidate is fitted without a fold and predicts the rows of that fold by its reference: all
candidates on the first folds, the best on the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_choice, check_clip
from harfe._core.folds import Fold, make_folds
from harfe._core.progress import ProgressLine
from harfe._core.threads import one_blas_thread
from harfe._core.validation import check_table, check_targets, row_weights
from harfe.features.transformer import seed_of
from harfe.features.units import INPUT_SCALES, INPUT_WARPS, varies
from harfe.learning.candidates import (
    CANDIDATES,
    JOINT_ROWS,
    MOST_ROWS,
    LawFit,
    LawSettings,
    LearnedLaw,
    fit_candidate,
    sampling_notes,
    stack,
    standardise,
)
from harfe.learning.likelihood import KernelSettings, Prior
from harfe.learning.reference import EXACT_ROWS
from harfe.learning.stacking import stack_weights
from harfe.selection.engine.plan import Cost, Digest, Stage, Task
from harfe.selection.engine.search import Search
from harfe.selection.rows import FEW_ROWS, Data, Scoring, sample_fold

# All candidates run on the first fold. The second is for the best of those whose error is at most
# _FAR times the lowest, the others for the best few if they are that close. If rows are few, all
# run on two folds, and on the others those that are not far behind.
_FAR, _SECOND, _FINALISTS, _CLOSE = 1.5, 4, 2, 1.25

# Maximum number of rows in the likelihood while candidates are compared on noisy data, and of
# joint laws on any.
_ROWS_IF_NOISY, _JOINT_ROWS = 300, 500

# Candidates are judged on at most this many held-out rows.
_MOST_JUDGED = 5000


def fit_law(
    prior: Prior,
    settings: LawSettings,
    data: Data,
    rows: NDArray[np.intp],
    starts: Sequence[KernelSettings] = (),
) -> LawFit:
    """Fit a candidate to some rows, from the likeliest of the starts if there are any."""
    with one_blas_thread():
        standard = standardise(
            data.X[rows], data.y[rows], data.weights[rows], settings, prior.input_warp
        )
        return fit_candidate(prior, standard, settings, starts)


def law_cost(n_rows: int, n_inputs: int) -> Cost:
    """Expected cost of `fit_law`: the likelihood of some rows, and the system of the reference."""
    likelihood = 3e-4 * min(n_rows, MOST_ROWS) * (0.8 + n_inputs / 40)
    return Cost("law", 0.01 + likelihood + 3e-11 * min(n_rows, EXACT_ROWS) ** 3)


@dataclass(frozen=True)
class JudgedLaw:
    """A law fitted without a fold, and its reference on the held-out rows.

    Attributes
    ----------
    fit : LawFit
    rows : int array
        Held-out rows, or a sample of them.
    prediction : array of shape (rows, targets)
    error, score : float
    """

    fit: LawFit
    rows: NDArray[np.intp]
    prediction: NDArray[np.float64]
    error: float
    score: float


def law_on_fold(
    prior: Prior, settings: LawSettings, data: Data, fold: Fold, scoring: Scoring | None
) -> JudgedLaw:
    """Fit a candidate without a fold, and judge it on the fold."""
    train, test = fold[0], sample_fold(fold, _MOST_JUDGED, settings.seed)[1]
    fit = fit_law(prior, settings, data, train)
    prediction = fit.predict(data.X[test])
    error = float(data.errors(prediction[:, None], test)[0])
    score = -error if scoring is None else scoring(prediction, test)
    return JudgedLaw(fit, test, prediction, error, score)


@dataclass
class LawRace:
    """Candidates for the law against each other, fold by fold; a plan of `harfe.selection.engine`.

    Candidates are compared on the folds that all of them were run on: if time runs out within a
    fold, that fold does not count.

    Attributes
    ----------
    judged : dict
        (candidate, fold) -> JudgedLaw.
    alive : list of int
        Candidates that are still in the race.
    """

    priors: Sequence[Prior]
    settings: LawSettings
    data: Data
    folds: Sequence[Fold]
    scoring: Scoring | None = None
    judged: dict[tuple[int, int], JudgedLaw] = field(default_factory=dict)
    alive: list[int] = field(default_factory=list)
    _later: int = 0

    @property
    def most_tasks(self) -> int:
        """Number of tasks if all candidates run on all folds."""
        return len(self.priors) * len(self.folds)

    def stages(self, reserve: Sequence[Cost] = ()) -> Iterator[Stage]:
        """Yield all candidates on the first fold, then the best on the others."""
        n, n_folds = len(self.priors), len(self.folds)
        # Folds, how many candidates run on them, and how far behind the best they may be.
        steps = [
            ((0, 1), n, np.inf),
            ((1, 2), _SECOND, _FAR),
            ((2, n_folds), _FINALISTS, _CLOSE),
        ]
        if self.data.weights.sum() < FEW_ROWS:
            steps = [((0, 2), n, np.inf), ((2, n_folds), _FINALISTS + 1, _FAR)]
        self.alive = list(range(n))
        base = self.digest()
        for i, ((first, last), most, behind) in enumerate(steps):
            # Without a fold that all have run on, none can be dropped.
            if first >= n_folds or (i and not self.shared_folds()):
                return
            self._drop(most, behind)
            later = [min(m, len(self.alive)) * (stop - start) for (start, stop), m, _ in steps]
            self._later = sum(later[i + 1 :])
            folds = range(first, min(last, n_folds))
            yield Stage(partial(self._tasks, folds, base), i == 0, reserve)

    def _drop(self, most: int, behind: float) -> None:
        """Keep the best candidates, at most so many and at most so many times the lowest error."""
        if not self.judged:
            return
        ranked = sorted(self._mean_scores(), key=lambda pair: -pair[1])[:most]
        if self.scoring is None:  # then a score is a negative error
            ranked = [pair for pair in ranked if pair[1] >= behind * ranked[0][1]]
        self.alive = sorted(k for k, _ in ranked)

    def digest(self) -> Digest:
        """Digest of what all results depend on."""
        scorer = None if self.scoring is None else self.scoring.scorer  # type: ignore[attr-defined]
        return Digest(self.data.X, self.data.y, self.data.weights, self.settings, scorer)

    def _tasks(self, folds: range, base: Digest) -> list[Task]:
        in_folds = replace(self.settings, rows_if_noisy=_ROWS_IF_NOISY, joint_rows=_JOINT_ROWS)
        return [
            Task(
                (k, f),
                f"law {self.priors[k].name}",
                law_on_fold,
                (self.priors[k], in_folds, self.data, self.folds[f], self.scoring),
                base.key(*self.folds[f], self.priors[k]),
                (self.cost(len(self.folds[f][0])),),
                group=f,
            )
            for f in folds
            # The most flexible, which take longest, first.
            for k in sorted(self.alive, key=lambda k: -self.priors[k].max_order)
        ]

    def cost(self, n_rows: int) -> Cost:
        """Expected cost of a candidate fitted to so many rows."""
        return law_cost(n_rows, self.data.X.shape[1])

    def take(self, name: tuple[int, int], result: JudgedLaw) -> None:
        """Accept a candidate without a fold."""
        self.judged[name] = result

    def later(self) -> list[Cost]:
        """Costs of the tasks expected after the current stage."""
        return [self.cost(len(self.folds[0][0]))] * self._later

    def best_so_far(self) -> tuple[float, str] | None:
        """Best mean score so far, and the law that has it."""
        if not self.judged:
            return None
        best, score = self._best()
        return score, f"law {self.priors[best].name}"

    def _best(self) -> tuple[int, float]:
        """The candidate with the best mean score."""
        return max(self._mean_scores(), key=lambda pair: pair[1])

    def ranked(self) -> list[int]:
        """Candidates that are left, the best first."""
        return [k for k, _ in sorted(self._mean_scores(), key=lambda pair: -pair[1])]

    def mean_error(self) -> float:
        """Mean held-out error of the best candidate."""
        best, _ = self._best()
        return float(np.mean([law.error for (k, _), law in self.judged.items() if k == best]))

    def training_error(self, law: LawFit) -> float:
        """Mean squared error of a law's reference on the rows, or on a sample of them."""
        rows = np.arange(len(self.data.X))
        if len(rows) > _MOST_JUDGED:
            rows = np.random.default_rng(self.settings.seed).permutation(rows)[:_MOST_JUDGED]
        return float(self.data.errors(law.predict(self.data.X[rows])[:, None], rows)[0])

    def shared_folds(self) -> list[int]:
        """Folds that all candidates still in the race were run on."""
        folds = range(len(self.folds))
        return [f for f in folds if all((k, f) in self.judged for k in self.alive)]

    def _mean_scores(self) -> list[tuple[int, float]]:
        """Candidates and their mean scores over the folds that they share."""
        alive, folds = self.alive, self.shared_folds()
        if not folds:  # stopped within the first fold
            first = min(f for _, f in self.judged)
            alive, folds = [k for k in self.alive if (k, first) in self.judged], [first]
        return [(k, float(np.mean([self.judged[k, f].score for f in folds]))) for k in alive]

    def held_out_error(self) -> float:
        """Mean held-out error of the best candidate, in units of the variance, over all targets."""
        error = self.mean_error()
        y, share = self.data.y, self.data.weights / self.data.weights.sum()
        if y.shape[1] > 1:
            return error * y.shape[1]
        return error / max(float(share @ (y[:, 0] - share @ y[:, 0]) ** 2), np.finfo(float).tiny)

    def stacked(self) -> dict[int, float]:
        """Weights of the candidates in the reference: one for the best alone, or several.

        Always found by least squares on what the candidates predict for held-out rows, even with a
        user-defined `scoring`.
        """
        best, _ = self._best()
        folds = self.shared_folds()
        # A function has one map of its inputs.
        parts = [k for k in self.alive if self.priors[k].input_warp == self.priors[best].input_warp]
        if len(parts) < 2 or len(folds) < len(self.folds):
            return {best: 1.0}
        predicted, wanted = [], []
        for f in folds:
            test = self.judged[best, f].rows
            root = np.sqrt(self.data.weights[test])[:, None]
            # Targets in units of their deviation, about their means on the training rows.
            base = self.judged[best, f].fit.data

            def posed(y: NDArray[Any], root: Any = root, base: Any = base) -> NDArray[np.float64]:
                return np.asarray((root * (y - base.centre) / base.unit).ravel())

            wanted.append(posed(self.data.y[test]))
            made = [posed(self.judged[k, f].prediction) for k in parts]
            predicted.append(np.stack(made, axis=1))
        weights = stack_weights(predicted, wanted, parts.index(best))
        return {k: float(w) for k, w in zip(parts, weights, strict=True) if w > 0}

    def input_warp(self, weights: Mapping[int, float]) -> str:
        """Warp of the inputs of the candidates in a reference."""
        return self.priors[next(iter(weights))].input_warp

    def fit_without(self, fold: int, weights: Mapping[int, float]) -> LawFit:
        """Return the law, or the stack, fitted to the rows outside a fold."""
        return stack([self.judged[k, fold].fit for k in weights], list(weights.values()))

    def fit_all(self, weights: Mapping[int, float]) -> LawFit:
        """Return the law, or the stack, fitted to all rows.

        It starts from the laws fitted without folds, so that it ends where they did, which the
        held-out errors are about.
        """
        rows = np.arange(len(self.data.X))
        fits = []
        for k in weights:
            known = [self.judged[j, f].fit.kernel for j, f in sorted(self.judged) if j == k]
            starts = [kernel for kernel in known if kernel is not None]
            fits.append(fit_law(self.priors[k], self.settings, self.data, rows, starts))
        return stack(fits, list(weights.values()))

    def learned(self, law: LawFit, columns: tuple[str, ...]) -> LearnedLaw:
        """Return what was learned from all rows, for the user."""
        errors = {
            prior.name: float(np.mean([law.error for (j, _), law in self.judged.items() if j == k]))
            for k, prior in enumerate(self.priors)
            if any(j == k for j, _ in self.judged)
        }
        joint = law.kernel is not None and law.kernel.full
        n_rows = min(len(law.data.Z), JOINT_ROWS if joint else MOST_ROWS)
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
    input_warp: str = "none",
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
        Folds. All candidates run on the first, those that are not far behind on the second, the
        best two on the others; with fewer than 300 rows, more of them run on more folds.
    input_scale, input_clip, input_warp
        Units in which the law draws, as in :class:`HARFERegressor`, which must get the same.
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
    of noisy data while a fold is held out, fewer in its first steps, which find the inputs), and
    the dense references are fitted to at most 4000 rows. With more than 100 inputs, the 100 to
    which the likelihood is most sensitive are kept. Inputs that hardly raise the likelihood are
    then left out.

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
    weights = row_weights(sample_weight, X, y)
    if isinstance(candidates, str):
        candidates = [candidates]
    for name in candidates:
        check_choice("candidates", name, tuple(CANDIDATES))
    if not len(candidates):
        raise ValueError(f"candidates=() names none; pass some of {tuple(CANDIDATES)}")
    counted = weights > 0
    check_choice("input_scale", input_scale, INPUT_SCALES)
    check_choice("input_warp", input_warp, INPUT_WARPS)
    check_clip(input_clip)
    if not varies(X[counted], weights[counted]):
        raise ValueError("X has no input that varies; there is nothing to learn a law from")
    seed = seed_of(random_state)
    folds = make_folds("cv", cv, X, y, seed, counted=counted)
    data = Data(X[counted], y[counted].reshape(int(counted.sum()), -1), weights[counted])
    priors = [replace(CANDIDATES[name], input_warp=input_warp) for name in candidates]
    race = LawRace(priors, LawSettings(seed, input_scale, input_clip), data, folds)
    search, line = Search(race, n_jobs=None), ProgressLine("fits of laws") if verbose else None

    def best() -> str:
        found = search.best_so_far()
        return "" if found is None else f"best {found[1]}"

    def after_task(done: int, planned: int) -> bool:
        if line is not None:
            line.update(done, planned, best, search.seconds_left())
        return False

    if line is not None:
        for note in sampling_notes(len(data.X)):
            line.say(note)
    search.run(after_task)
    if line is not None:
        line.close()
    with one_blas_thread():
        return race.learned(race.fit_all(race.stacked()), columns)
