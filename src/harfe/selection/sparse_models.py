"""Sparse models under a learned law: fitted to data, matched to the reference, or trained.

"matched" and "refined" models compress the reference. "trained" ones are larger, and are trained by
first-order steps: to match the reference at many points where it knows all rows, otherwise to fit
the rows themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe._core.threads import one_blas_thread
from harfe._core.validation import count_distinct
from harfe.features.pool import FeaturePool
from harfe.learning.candidates import LawFit
from harfe.learning.matching import (
    Matched,
    Points,
    make_points,
    match,
    match_memory,
    most_points,
)
from harfe.learning.reference import EXACT_ROWS
from harfe.learning.refining import refine
from harfe.learning.training import train
from harfe.model.expansion import Expansion
from harfe.selection.choosing import Choice
from harfe.selection.engine.plan import Cost
from harfe.selection.race import errors_on_fold
from harfe.selection.recipe import Fit, FitSummary, Template
from harfe.selection.rows import Data, Scoring
from harfe.solvers.homes import RecomputedProblem
from harfe.solvers.pursuit import StopReason
from harfe.solvers.ridge import RestrictedRidge

KINDS = ("data", "matched", "refined", "trained")

# A gap to the reference below this share of its held-out error counts as none.
_INVISIBLE = 0.01

# Maximum number of features to refine: a step costs the square of the number of parameters, of
# which there may be so many. More if even the largest match is no closer to the reference than the
# reference is to new rows.
_MOST_REFINED, _MOST_PARAMETERS = 140, 600
_MOST_IF_PRECISE, _PARAMETERS_IF_PRECISE = 200, 1000

# Trained sizes are the largest and thirds of it down to this one.
_SMALLEST_TRAINED, _TRAINED_RATIO = 30, 2.8

# Points at which trained features match a reference, the share of rows among them, and passes
# over them; over rows themselves,
# passes are so many that about this many rows are visited, within bounds.
_TRAINING_POINTS, _ROW_SHARE, _PASSES = 18_000, 1 / 3, 40
_VISITS, _FEWEST_PASSES, _MOST_PASSES = 3_000_000, 8, 100

# Explanations need all sets of inputs within features, and refuse more than this.
_MOST_SUBSETS = 2**18

# Seconds that training takes for a feature at a point.
_TRAINING_COST = 3e-9

# Matches of the reference have at most this many features: forward selection and its pool are made
# for few.
_MOST_MATCHED = 400

# If memory limits a pool to fewer features than this, it is not worth drawing.
_FEWEST_FEATURES = 500

# The gap of a model of all rows to its reference may be this many times the largest in a fold.
_LARGEST_GAP = 2.0


@dataclass(frozen=True)
class SparseSettings:
    """Kinds of models, sizes and ridge weights to try under a law.

    Attributes
    ----------
    visible : float
        Held-out error of the reference in units of the target's variance. Distances from the
        reference far below it do not show in the errors of sparse models.
    matched, trained : tuples of int
        The sizes among them to match a reference with, and to train by first-order steps; those
        that are worth trying if empty.
    """

    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    alphas: tuple[float, ...]
    visible: float = 0.0
    matched: tuple[int, ...] = ()
    trained: tuple[int, ...] = ()

    @property
    def to_match(self) -> tuple[int, ...]:
        """The sizes to match a reference with."""
        few = tuple(s for s in self.sizes if s <= _MOST_MATCHED)
        return self.matched or few or self.sizes[:1]

    @property
    def to_train(self) -> tuple[int, ...]:
        """The sizes to train by first-order steps."""
        return self.trained or trained_sizes(self.sizes)


def pool_within(memory_budget: float, n_rows: int, n_components: int, *, free: bool) -> int:
    """Number of features to draw so that learning a law stays within the memory budget.

    Parameters
    ----------
    memory_budget : float
        In bytes.
    n_components : int
        Features wanted.
    free : bool
        Whether fewer will do; if not, or if too few fit, a MemoryError says what to change.
    """
    points = most_points(n_rows)
    # The covariance of the reference and its factors.
    fixed = 8 * 3 * min(n_rows, EXACT_ROWS) ** 2
    sizes = range(n_components + 1)
    fitting = bisect_right(sizes, memory_budget - fixed, key=lambda n: match_memory(n, points)) - 1
    if fitting >= n_components:
        return n_components
    if free and fitting >= _FEWEST_FEATURES:
        return fitting
    needed = fixed + match_memory(n_components, points)
    smaller = f"pass n_components={fitting}" if fitting >= _FEWEST_FEATURES else "use fewer rows"
    raise MemoryError(
        f"learning the law of the features needs {needed / 1e6:.0f} MB, but memory_budget is "
        f"{memory_budget / 1e6:.0f} MB; raise it, {smaller}, or pass law='grid', which works in "
        "blocks"
    )


def matches_memory(n_rows: int, n_features: int) -> float:
    """Bytes that a law and its matches need: the system of the reference, features at points."""
    reference = 8 * 3 * min(n_rows, EXACT_ROWS) ** 2
    return max(reference, match_memory(n_features, most_points(n_rows)))


def match_cost(n_rows: int, kinds: Sequence[str]) -> Cost:
    """Expected cost of `sparse_paths`: in proportion to the points, training above all."""
    return Cost("match", most_points(n_rows) * (5e-5 + 1e-4 * ("refined" in kinds)))


def trained_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes to train: the largest, and smaller ones of about a third of the one above."""
    out: list[int] = []
    for s in sorted(sizes, reverse=True):
        if not out or _SMALLEST_TRAINED <= s <= out[-1] / _TRAINED_RATIO:
            out.append(s)
    return tuple(out[::-1])


def explainable_size(law: LawFit) -> int:
    """Most features of a law whose components can all be gone through."""
    return _MOST_SUBSETS >> max(law.law.orders)


def _visits(n_rows: int) -> tuple[int, int]:
    """Number of points that training uses, and of passes over them."""
    if n_rows <= EXACT_ROWS:
        return max(_TRAINING_POINTS, n_rows), _PASSES
    return n_rows, int(np.clip(_VISITS // n_rows, _FEWEST_PASSES, _MOST_PASSES))


def train_cost(n_rows: int, n_inputs: int, sizes: Sequence[int]) -> Cost:
    """Expected cost of training so many features by first-order steps."""
    points, passes = _visits(n_rows)
    features = points * sum(sizes)
    solving = 1e-10 * points * sum(s**2 for s in sizes)
    return Cost("train", _TRAINING_COST * (1 + n_inputs / 20) * features * passes + solving)


def trained_models(
    template: Template, law: LawFit, sizes: Sequence[int], rows: Data
) -> list[Matched]:
    """Train features drawn from a law, at each of some sizes, from the smallest on.

    They match the reference if that knows all rows, which is free of noise and can be evaluated
    anywhere; otherwise they fit the rows.
    """
    n_points, passes = _visits(len(rows.X))
    data = law.data
    with one_blas_thread():
        if len(rows.X) <= EXACT_ROWS:
            points = _training_points(law, n_points, template.seed)
        else:
            targets = (rows.y - data.centre) / data.unit
            weights = rows.weights / rows.weights.mean()
            points = Points(data.standardise(rows.X), targets, weights, law.noise)
        most = explainable_size(law)
        sizes = [s for s in sizes if s <= most] or [min(sizes)]
        pool = template.sampling(law.law).draw()
        return [_trained(law, pool, points, s, passes, template.seed) for s in sizes]


def _training_points(law: LawFit, n_points: int, seed: int) -> Points:
    """Rows, repeated rather than weighted so that steps are even, and points between them."""
    data, rng = law.data, np.random.default_rng(seed)
    m, used = len(data.Z), law.law.usage() > 0
    points = make_points(
        law.reference,
        data.Z,
        data.weights,
        used,
        law.noise,
        rng,
        m + round((1 - _ROW_SHARE) * n_points),
    )
    repeats = np.ones(len(points.Z), dtype=int)
    repeats[:m] = max(1, round(_ROW_SHARE * n_points / m))
    return Points(
        np.repeat(points.Z, repeats, axis=0),
        np.repeat(points.values, repeats, axis=0),
        np.repeat(points.weights / repeats, repeats),
        points.noise,
    )


def _trained(
    law: LawFit, pool: FeaturePool, points: Points, s: int, passes: int, seed: int
) -> Matched:
    """Train the first s features of a pool, and solve for their coefficients."""
    every = np.arange(s)
    start = pool.take(every)
    features = train(start, points.Z, points.values, points.weights, passes=passes, seed=seed)
    problem = RecomputedProblem(features, points.Z, points.values, points.weights)
    # The prior of the law, with the noise of the reference or of the rows.
    c = RestrictedRidge(problem, law.noise * s / (law.variance * len(points.Z))).solve(every)
    coef, intercept = problem.to_raw(every, c)
    gap = float(np.sum(problem.rss(every, c) * problem.targets.unit**2))
    return Matched(every, features, coef, intercept, gap)


def sparse_paths(
    template: Template, law: LawFit, settings: SparseSettings, rows: Data
) -> dict[str, list[Matched]]:
    """Sparse models of all kinds but fits on y, from the smallest to the largest."""
    paths = _matches(template, law, settings)
    if "trained" in settings.kinds:
        paths["trained"] = trained_models(template, law, settings.to_train, rows)
    return paths


def _matches(template: Template, law: LawFit, settings: SparseSettings) -> dict[str, list[Matched]]:
    """Match the reference of a law by its features at every size, with or without training.

    Training starts from the smallest match that is as good as the reference, for all that held-out
    rows can tell: larger ones cannot gain by it.
    """
    kinds, visible = settings.kinds, settings.visible
    sizes = settings.to_match
    if not {"matched", "refined"} & set(kinds):
        return {}
    rng = np.random.default_rng(template.seed)
    data = law.data
    paths = {}
    with one_blas_thread():
        points = make_points(
            law.reference, data.Z, data.weights, law.law.usage() > 0, law.noise, rng
        )
        plain = match(template.sampling(law.law).draw(), points, sizes)
        if "matched" in kinds:
            paths["matched"] = plain
        most, parameters = _MOST_REFINED, _MOST_PARAMETERS
        if plain[-1].gap >= visible:
            most, parameters = _MOST_IF_PRECISE, _PARAMETERS_IF_PRECISE
        # A reference that is constant has no features.
        per_feature = 1 + np.sum(plain[-1].features.present) / max(1, len(plain[-1].support))
        small = [s for s in sizes if s <= min(most, parameters / per_feature)]
        if "refined" in kinds:
            paths["refined"] = []
        if "refined" in kinds and small:
            few = [model for model in plain if len(model.support) <= max(small)]
            close = [m.gap <= _INVISIBLE * visible for m in few]
            starts = few[: close.index(True) + 1] if any(close) else few
            paths["refined"] = refine(starts, points, small, visible)
    return paths


def sparse_on_fold(
    template: Template,
    law: LawFit,
    settings: SparseSettings,
    data: Data,
    fold: Fold,
    scoring: Scoring | None,
) -> tuple[NDArray[np.float64], dict[tuple[str, int], Matched]]:
    """Held-out error, score and straying of every kind, size and ridge weight; and the matches.

    The table has shape (3, kinds, sizes, alphas). Straying is the mean squared distance of a match
    from its reference on the held-out rows. Kinds that match a reference have no ridge weight of
    their own and fill the first column.
    """
    train, test = fold
    sizes = list(settings.sizes)
    table = np.full((3, len(settings.kinds), len(sizes), len(settings.alphas)), np.nan)
    models = {}
    Z = law.data.standardise(data.X[test])
    # A reference that does not know all rows is no guide.
    dense = law.predict(data.X[test]) if len(train) <= EXACT_ROWS else None
    paths = sparse_paths(template, law, settings, data.take(train))
    for k, kind in enumerate(settings.kinds):
        if kind == "data":
            # More features than rows are determined by nothing but the ridge penalty.
            rows = count_distinct(data.X[train], data.y[train])
            fewer = [s for s in sizes if s <= rows] or sizes[:1]
            drawn = template.sampling(law.law).draw()
            table[:2, k, : len(fewer)] = errors_on_fold(
                template.framing, drawn, fewer, settings.alphas, data, fold, scoring
            )
            continue
        for model in paths.get(kind, []):
            # A reference that is constant on these rows has no features: the smallest model.
            s = max(len(model.support), sizes[0])
            if s in sizes:
                models[kind, s] = model
                prediction = law.data.to_targets(model.predict(Z))
                error = float(data.errors(prediction[:, None], test)[0])
                score = -error if scoring is None else scoring(prediction, test)
                straying = 0.0
                if dense is not None:
                    straying = float(data.mean_squares((prediction - dense)[:, None], test)[0])
                table[:, k, sizes.index(s), 0] = error, score, straying
    return table, models


def prior_alpha(law: LawFit, s: int) -> float:
    """Ridge weight that the law implies for s features of unit mean square."""
    M = float(law.data.weights.sum())
    return law.noise * s / (law.variance * M)


def fit_data(
    template: Template, law: LawFit, settings: SparseSettings, choice: Choice, data: Data
) -> Fit:
    """Fit y with features of the law, with the size and ridge weight of a choice."""
    s, alpha = settings.sizes[choice.size], settings.alphas[choice.alpha]
    return template.recipe(law.law, s, alpha).fit(data.X, data.y, data.weights)


def close_model(
    path: Sequence[Matched], s: int, usual_gap: float, visible: float
) -> Matched | None:
    """The smallest model with s features or more that is as close to its target as in the folds.

    Training can end in a poor optimum, which the gap reveals; the next size ends elsewhere. If no
    model is close, the closest will do while its gap is below the `visible` error of the reference
    itself; otherwise None.
    """
    large = [model for model in path if len(model.support) >= s] or path[-1:]
    limit = _LARGEST_GAP * usual_gap
    closest = min(large, key=lambda model: model.gap)
    found = next((model for model in large if model.gap <= limit), closest)
    return found if found.gap <= max(limit, visible) else None


def matched_fit(template: Template, law: LawFit, model: Matched, data: Data) -> Fit:
    """Return a matched model as a fit in the user's units."""
    standard = law.data
    coef = model.coef * standard.unit[:, None]
    intercept = standard.to_targets(model.intercept)
    features = model.features.in_user_units(standard.units)
    kept = None if standard.map.is_identity else standard.map
    expansion = Expansion(features, coef, intercept, template.framing.columns, False, kept)
    X, y, weights = data.X, data.y, data.weights
    # A single Gram matrix is needed, for the posterior: storing the features would take longer.
    fit_intercept = template.framing.fit_intercept
    problem = RecomputedProblem(
        features, standard.map.apply(X), y, weights, fit_intercept=fit_intercept
    )
    residual = np.sum(weights @ (y - expansion.predict(X)) ** 2 / standard.unit**2)
    relative = np.sqrt(residual / (weights.sum() * y.shape[1]))
    history = {"gap": np.array([model.gap]), "relative_residual": np.array([relative])}
    summary = FitSummary(model.support, history, StopReason.MATCHED)
    sampling = template.sampling(law.law)
    pool = sampling.draw().in_user_units(standard.units).replaced(model.support, features)
    return Fit(
        expansion=expansion,
        sampling=sampling,
        pool=pool,
        map=standard.map,
        problem=problem,
        places=np.arange(len(features)),
        n_nonzero_coefs=len(features),
        alpha=prior_alpha(law, len(features)),
        summary=summary,
        units=standard.units,
    )
