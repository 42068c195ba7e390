"""Sparse models under a learned law: fitted to data, matched to the reference, or trained."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe._core.threads import one_blas_thread
from harfe.learning.candidates import LawFit
from harfe.learning.matching import Matched, make_points, match, match_memory, most_points
from harfe.learning.reference import EXACT_ROWS, POOL
from harfe.learning.refining import refine
from harfe.learning.standard_rows import MOST_ROWS
from harfe.model.expansion import Expansion
from harfe.selection.choosing import Choice
from harfe.selection.engine.plan import Cost
from harfe.selection.race import errors_on_fold
from harfe.selection.recipe import Fit, FitSummary, Template
from harfe.selection.rows import Data, Scoring
from harfe.solvers.homes import make_problem
from harfe.solvers.pursuit import StopReason

KINDS = ("data", "matched", "refined")

# A gap to the reference below this share of its held-out error counts as none.
_INVISIBLE = 0.01

# Maximum number of features to train: a step costs the square of their number. More if even the
# largest match is no closer to the reference than the reference is to new rows.
_MOST_REFINED, _MOST_IF_PRECISE = 140, 200

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
    """

    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    alphas: tuple[float, ...]
    visible: float = 0.0


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
    reference = 8 * (3 * n_rows**2 if n_rows <= EXACT_ROWS else POOL * min(n_rows, MOST_ROWS))
    return max(reference, match_memory(n_features, most_points(n_rows)))


def match_cost(n_rows: int, kinds: Sequence[str]) -> Cost:
    """Expected cost of `sparse_paths`: in proportion to the points, training above all."""
    return Cost("match", most_points(n_rows) * (5e-5 + 1e-4 * ("refined" in kinds)))


def sparse_paths(
    template: Template,
    law: LawFit,
    kinds: Sequence[str],
    sizes: Sequence[int],
    visible: float = 0.0,
) -> dict[str, list[Matched]]:
    """Match the reference of a law by its features at every size, with or without training.

    Training starts from the smallest match that is as good as the reference, for all that held-out
    rows can tell: larger ones cannot gain by it.
    """
    kinds = [kind for kind in kinds if kind != "data"]
    if not kinds:
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
        most = _MOST_REFINED if plain[-1].gap < visible else _MOST_IF_PRECISE
        small = [s for s in sizes if s <= most]
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
    dense = law.predict(data.X[test])
    paths = sparse_paths(template, law, settings.kinds, sizes, settings.visible)
    for k, kind in enumerate(settings.kinds):
        if kind == "data":
            # More features than rows are determined by nothing but the ridge penalty.
            fewer = [s for s in sizes if s <= data.weights[train].sum()] or sizes[:1]
            drawn = template.sampling(law.law).draw()
            table[:2, k, : len(fewer)] = errors_on_fold(
                template.framing, drawn, fewer, settings.alphas, data, fold, scoring
            )
            continue
        for model in paths.get(kind, []):
            s = len(model.support)
            if s in sizes:
                models[kind, s] = model
                prediction = law.data.to_targets(model.predict(Z))
                error = float(data.errors(prediction[:, None], test)[0])
                score = -error if scoring is None else scoring(prediction, test)
                straying = float(data.mean_squares((prediction - dense)[:, None], test)[0])
                table[:, k, sizes.index(s), 0] = error, score, straying
    return table, models


def prior_alpha(law: LawFit, s: int) -> float:
    """Ridge weight that the law implies for s features of unit mean square."""
    M = float(law.data.weights.sum())
    return law.noise * s / (law.variance * M)


def fit_sparse(
    template: Template,
    law: LawFit,
    settings: SparseSettings,
    choice: Choice,
    data: Data,
    model: Matched | None = None,
) -> Fit:
    """Fit the rows that a law was fitted to with the kind, size and ridge weight of a choice.

    `model` is the match of that kind and size, if it is known.
    """
    kind, s = settings.kinds[choice.pool], settings.sizes[choice.size]
    if kind == "data":
        recipe = template.recipe(law.law, s, settings.alphas[choice.alpha])
        return recipe.fit(data.X, data.y, data.weights)
    if model is None:
        sizes = [t for t in settings.sizes if t >= s]
        path = sparse_paths(template, law, [kind], sizes, settings.visible)[kind]
        # Training ends early if features become dependent.
        if not path:
            path = sparse_paths(template, law, ["matched"], sizes, settings.visible)["matched"]
        model = close_model(path, s, np.inf)
    return matched_fit(template, law, model, prior_alpha(law, s), data)


def close_model(path: Sequence[Matched], s: int, usual_gap: float) -> Matched:
    """The smallest model with s features or more that is as close to its reference as in the folds.

    Training can end in a poor optimum, which the gap to the reference reveals; the next size ends
    elsewhere.
    """
    large = [model for model in path if len(model.support) >= s] or path[-1:]
    return next((model for model in large if model.gap <= _LARGEST_GAP * usual_gap), large[-1])


def matched_fit(template: Template, law: LawFit, model: Matched, alpha: float, data: Data) -> Fit:
    """Return a matched model as a fit in the user's units."""
    standard = law.data
    coef = model.coef * standard.unit[:, None]
    intercept = standard.to_targets(model.intercept)
    features = model.features.in_user_units(standard.units)
    kept = None if standard.map.is_identity else standard.map
    expansion = Expansion(features, coef, intercept, template.framing.columns, False, kept)
    X, y, weights = data.X, data.y, data.weights
    problem = make_problem(
        features,
        standard.map.apply(X),
        y,
        weights,
        largest_support=len(features),
        memory_budget=template.framing.memory_budget,
        fit_intercept=template.framing.fit_intercept,
        column_scale="rms",
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
        alpha=alpha,
        summary=summary,
        units=standard.units,
    )
