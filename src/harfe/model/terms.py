"""Terms of a fitted function: its features grouped by the variables they use.

    f(x) = intercept + Σ_u f_u(x_u),   f_u = Σ {c_j φ(<x, w_j> + b_j) : w_j ≠ 0 exactly on u}.

This is the raw grouping: terms overlap (a term of two variables also contains the effects of each
alone) and do not average to zero. `harfe.explain.anova` separates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion
from harfe.solvers.problem import Targets

# Variables of a term, ascending.
IndexSet = tuple[int, ...]


def feature_sets(features: FeaturePool) -> list[IndexSet]:
    """Variables that each feature uses: those with a weight other than 0, ascending."""
    return [
        tuple(sorted(indices[present].tolist()))
        for indices, present in zip(features.indices, features.present, strict=True)
    ]


def index_sets(features: FeaturePool) -> list[IndexSet]:
    """Distinct sets of variables that features use, ordered by size, then by index.

    A feature with no weight other than 0 uses the empty set.
    """
    return sorted(set(feature_sets(features)), key=lambda u: (len(u), u))


def group_features(expansion: Expansion) -> dict[IndexSet, NDArray[np.intp]]:
    """Places of the features of each term, in the order of `index_sets`."""
    sets = feature_sets(expansion.features)
    groups: dict[IndexSet, list[int]] = {u: [] for u in index_sets(expansion.features)}
    for place, u in enumerate(sets):
        groups[u].append(place)
    return {u: np.array(places, dtype=np.intp) for u, places in groups.items()}


def name_of(variables: Sequence[int], columns: Sequence[str]) -> str:
    """Name of a set of variables, such as ``age : bmi``; the empty set is ``constant``."""
    return " : ".join(columns[k] for k in variables) if len(variables) else "constant"


def term_names(expansion: Expansion) -> list[str]:
    """Names of the terms, in the order of `index_sets`."""
    return [name_of(u, expansion.columns) for u in index_sets(expansion.features)]


def eval_terms(expansion: Expansion, X: ArrayLike) -> NDArray[Any]:
    """Values of every term at the rows of X; with the intercept they sum to `linear`.

    Returns
    -------
    array of shape (rows, terms), or (rows, terms, targets) if there are several targets
    """
    values = term_values(expansion, X)
    return values[:, :, 0] if values.shape[2] == 1 else values


def term_values(expansion: Expansion, X: ArrayLike) -> NDArray[Any]:
    """Like `eval_terms`, but always of shape (rows, terms, targets)."""
    X = np.asarray(X)
    groups = group_features(expansion)
    dtype = complex if expansion.complex_output else float
    values = np.empty((len(groups), len(X), len(expansion.coef)), dtype)
    for k, part in enumerate(_parts(expansion, groups.values())):
        values[k] = part.linear(X)
    return values.transpose(1, 0, 2)


def term_strengths(
    expansion: Expansion, X: ArrayLike, weights: NDArray[np.float64], unit: ArrayLike = 1.0
) -> NDArray[np.float64]:
    """Weighted variance of every raw term over the rows of X, shape (terms,).

    Several targets are summed, each in units of `unit`; for complex values it is the mean squared
    distance from the mean. Only one term at a time is in memory.
    """
    X = np.asarray(X)
    share = weights / weights.sum()
    strengths = []
    for part in _parts(expansion, group_features(expansion).values()):
        values = part.linear(X) / unit
        strengths.append(np.sum(share @ np.abs(values - share @ values) ** 2))
    return np.array(strengths, dtype=float)


def strongest_terms(
    expansion: Expansion,
    X: NDArray[np.float64],
    y: NDArray[Any],
    weights: NDArray[np.float64],
    n_terms: int,
) -> NDArray[np.intp]:
    """Places of the features of the strongest terms, sorted; ties go to the earlier term.

    Strength is the variance of the raw term over the rows, in units of the deviation of each of the
    targets y of shape (rows, targets).
    """
    groups = list(group_features(expansion).values())
    unit = Targets.of(y, weights, fit_intercept=True).unit
    order = np.argsort(-term_strengths(expansion, X, weights, unit), kind="stable")
    kept = [groups[k] for k in order[:n_terms]]
    return np.sort(np.concatenate([np.empty(0, dtype=np.intp), *kept]))


def _parts(expansion: Expansion, groups: Any) -> Iterator[Expansion]:
    """Yield a small expansion for each term, without an intercept."""
    zero = np.zeros_like(expansion.intercept)
    for places in groups:
        yield replace(
            expansion,
            features=expansion.features.take(places),
            coef=expansion.coef[:, places],
            intercept=zero,
        )
