"""Sparse models under a law that was learned: on the data, matched to the reference, or trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe._core.threads import one_blas_thread
from harfe.learning.candidates import LawFit, LawSettings, fit_candidate, standardise
from harfe.learning.likelihood import Prior
from harfe.learning.matching import Matched, make_points, match, most_points
from harfe.learning.reference import EXACT_ROWS
from harfe.learning.refining import refine
from harfe.model.expansion import Expansion
from harfe.selection.race import Data, Scoring, errors_on_fold
from harfe.selection.recipe import Fit, Recipe
from harfe.solvers.homes import make_problem
from harfe.solvers.pursuit import PursuitResult, StopReason

KINDS = ("data", "matched", "refined")

# Training starts from so many features at most: a step costs the square of their number.
_MOST_REFINED = 200


@dataclass(frozen=True)
class SparseSettings:
    """What is tried under a law."""

    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    alphas: tuple[float, ...]


def check_memory(n_rows: int, n_components: int, memory_budget: float) -> None:
    """Refuse what would not fit, before anything is taken."""
    exact = min(n_rows, EXACT_ROWS)
    # The covariance and its factor; the features at all points and what the screening takes of it.
    needed = 8 * (3 * exact**2 + 2 * n_components * most_points(n_rows))
    if needed > memory_budget:
        raise MemoryError(
            f"learning the law of the features takes {needed / 1e6:.0f} MB, and memory_budget is "
            f"{memory_budget / 1e6:.0f} MB; raise it, lower n_components={n_components}, or pass "
            "law='grid', which can work in blocks"
        )


def fit_law(recipe: Recipe, prior: Prior, data: Data, rows: NDArray[np.intp]) -> LawFit:
    """Fit a candidate to some rows."""
    settings = LawSettings(
        recipe.seed, recipe.input_scale, recipe.input_clip, activation=recipe.law.activation
    )
    with one_blas_thread():
        standard = standardise(data.X[rows], data.y[rows], data.weights[rows], settings)
        return fit_candidate(prior, standard, settings)


def sparse_paths(
    recipe: Recipe, law: LawFit, kinds: Sequence[str], sizes: Sequence[int]
) -> dict[str, list[Matched]]:
    """Match the reference of a law by its features, at every size, plainly or with training."""
    kinds = [kind for kind in kinds if kind != "data"]
    if not kinds:
        return {}
    rng = np.random.default_rng(recipe.seed)
    data = law.data
    small = [s for s in sizes if s <= _MOST_REFINED]
    paths = {}
    with one_blas_thread():
        points = make_points(
            law.reference, data.Z, data.weights, law.law.usage() > 0, law.noise, rng
        )
        wanted = sizes if "matched" in kinds else [max(small)]
        plain = match(replace(recipe, law=law.law).draw(), points, wanted)
        if "matched" in kinds:
            paths["matched"] = plain
        if "refined" in kinds and small:
            start = [model for model in plain if len(model.support) <= max(small)][-1]
            paths["refined"] = refine(start, points, small)
    return paths


def sparse_on_fold(
    recipe: Recipe,
    law: LawFit,
    settings: SparseSettings,
    data: Data,
    fold: Fold,
    scoring: Scoring | None,
) -> tuple[NDArray[np.float64], dict[tuple[str, int], Matched]]:
    """Held-out error, score and straying of every kind, size and ridge weight; and the matches.

    The table has the shape (3, kinds, sizes, alphas). Straying is the mean square of what lies
    between a match and its reference on the held-out rows. Kinds that match a reference have no
    ridge weight of their own and fill the first column.
    """
    train, test = fold
    sizes = list(settings.sizes)
    table = np.full((3, len(settings.kinds), len(sizes), len(settings.alphas)), np.nan)
    models = {}
    Z = law.data.standardise(data.X[test])
    dense = law.predict(data.X[test])
    paths = sparse_paths(recipe, law, settings.kinds, sizes)
    for k, kind in enumerate(settings.kinds):
        if kind == "data":
            # More terms than rows have nothing to hold on to but the ridge.
            fewer = [s for s in sizes if s <= data.weights[train].sum()] or sizes[:1]
            own = replace(recipe, law=law.law)
            table[:2, k, : len(fewer)] = errors_on_fold(
                own, own.draw(), fewer, settings.alphas, data, fold, scoring
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
    """Ridge weight that the law stands for, on s features of unit mean square."""
    M = float(law.data.weights.sum())
    return law.noise * s / (law.variance * M)


def matched_fit(
    recipe: Recipe, law: LawFit, model: Matched, data: Data, rows: NDArray[np.intp]
) -> Fit:
    """State a matched model in the user's units, with all that is known after a fit."""
    standard = law.data
    coef = model.coef * standard.unit[:, None]
    intercept = standard.to_targets(model.intercept)
    features = model.features.in_user_units(standard.units)
    bounds = standard.bounds
    kept = bounds if bounds.finite.any() else None
    expansion = Expansion(features, coef, intercept, recipe.columns, False, kept)
    X, y, weights = data.X[rows], data.y[rows], data.weights[rows]
    problem = make_problem(
        features,
        bounds.clip(X),
        y,
        weights,
        largest_support=len(features),
        memory_budget=recipe.memory_budget,
        fit_intercept=recipe.fit_intercept,
        column_scale="rms",
    )
    residual = np.sum(weights @ (y - expansion.predict(X)) ** 2 / standard.unit**2)
    result = PursuitResult(
        support=model.support,
        scaled_coef=model.coef.T,
        coef_on_support=expansion.coef,
        intercept=expansion.intercept,
        n_columns=recipe.n_components,
        objective=np.array([model.gap]),
        relative_residual=np.array([np.sqrt(residual / (weights.sum() * y.shape[1]))]),
        best_round=0,
        reason=StopReason.MATCHED,
    )
    pool = recipe.draw().in_user_units(standard.units).replaced(model.support, features)
    places = np.arange(len(features))
    return Fit(pool, bounds, problem, places, result, expansion, standard.units)
