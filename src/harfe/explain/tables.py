"""Tables of an explanation: inputs, terms, pairs and components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import Table
from harfe.explain.anova import Anova
from harfe.explain.inputs.summary import InputSummary
from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion
from harfe.model.terms import feature_sets, group_features, name_of, term_names


def variables_table(
    expansion: Expansion,
    kept: InputSummary,
    pool: FeaturePool,
    feature_law: Law | None,
    target: int,
) -> Table:
    """Table of how often each input is used and how steeply the function varies with it."""
    features = expansion.features
    size = np.abs(expansion.coef[target])
    count = _uses(features)
    nothing = np.full(features.n_variables, np.nan)
    usage, scale = nothing, nothing
    if feature_law is not None:
        scale = np.broadcast_to(np.asarray(feature_law.scale, dtype=float), nothing.shape)
        try:
            usage = feature_law.usage()
        except ValueError:  # overlapping groups have no closed form
            usage = nothing
    return Table(
        {
            "variable": expansion.columns,
            "count": tuple(count.astype(int)),
            "share": tuple(count / max(len(features), 1)),
            "pool_share": tuple(_uses(pool) / max(len(pool), 1)),
            "weighted_share": tuple(_uses(features, _shares(size))),
            "mean_square_gradient": tuple(kept.mean_square_gradient[target]),
            "learned_usage": tuple(usage),
            "learned_scale": tuple(scale),
        }
    )


def _uses(features: FeaturePool, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Number of features that use each input, or the sum of their weights."""
    present = features.present
    each = np.ones(len(features)) if weights is None else weights
    every = np.broadcast_to(each[:, None], present.shape)[present]
    uses = np.bincount(features.indices[present], every, features.n_variables)
    return np.asarray(uses, dtype=float)


def _shares(size: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = size.max(initial=0.0)
    size = size / largest if largest > 0 else size
    return np.asarray(size / max(size.sum(), np.finfo(float).tiny))


def terms_table(parts: Anova, pool: FeaturePool) -> Table:
    """Table of how often each set of inputs is used and the variance of its raw term."""
    expansion = parts.expansion
    groups = group_features(expansion)
    share = _shares(np.abs(expansion.coef[parts.target]))
    drawn = dict.fromkeys(groups, 0)
    for u in feature_sets(pool):
        if u in drawn:
            drawn[u] += 1
    count = np.array([len(places) for places in groups.values()], dtype=int)
    return Table(
        {
            "term": tuple(term_names(expansion)),
            "variables": tuple(_names(u, expansion) for u in groups),
            "order": tuple(len(u) for u in groups),
            "count": tuple(count),
            "share": tuple(count / max(len(expansion.features), 1)),
            "pool_share": tuple(np.array(list(drawn.values())) / max(len(pool), 1)),
            "weighted_share": tuple(share[places].sum() for places in groups.values()),
            "variance": tuple(parts.term_variances()),
        }
    )


def sobol_table(parts: Anova) -> Table:
    """Table of the first-order and total indices and Shapley effects of each input."""
    return Table(
        {
            "variable": parts.expansion.columns,
            "first_order": tuple(parts.first_order()),
            "total": tuple(parts.total()),
            "shapley": tuple(parts.shapley()),
        }
    )


def interactions_table(parts: Anova) -> Table:
    """Table of the strength of each pair of inputs, the strongest first."""
    pairs, second, total = parts.interaction()
    order = np.argsort(-total, kind="stable")
    return Table(
        {
            "variables": tuple(_names(pairs[i], parts.expansion) for i in order),
            "second_order": tuple(second[order]),
            "total": tuple(total[order]),
        }
    )


def components_table(parts: Anova) -> Table:
    """Table of the purified components, the largest first."""
    order = np.argsort(-parts.shares, kind="stable")
    sets = [parts.sets[i] for i in order]
    return Table(
        {
            "component": tuple(name_of(u, parts.expansion.columns) for u in sets),
            "variables": tuple(_names(u, parts.expansion) for u in sets),
            "order": tuple(len(u) for u in sets),
            "variance": tuple(parts.variances[order]),
            "share": tuple(parts.shares[order]),
        }
    )


def _names(u: tuple[int, ...], expansion: Expansion) -> tuple[str, ...]:
    return tuple(expansion.columns[k] for k in u)
