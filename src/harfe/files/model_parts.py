"""What a model file holds, part by part: names, types and sizes, for both writing and reading.

Sizes that parts share are letters: d inputs, s features, t targets. Checks of whole parts mainly
cover what compiled loops rely on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harfe.explain.inputs.distribution import InputDistribution
from harfe.explain.inputs.summary import InputSummary
from harfe.features.activations import ACTIVATIONS
from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import MixedLaw
from harfe.features.pool import FeaturePool
from harfe.features.units import Asinh, InputMap, InputUnits, Log, Rank
from harfe.features.units.warps import MOST_KNOTS
from harfe.files.specs import (
    Array,
    ByName,
    Flag,
    Many,
    Maybe,
    Number,
    OneOf,
    Part,
    Plain,
    Ragged,
    Spec,
    Text,
    Whole,
)
from harfe.learning.candidates import LearnedLaw
from harfe.model.expansion import Expansion
from harfe.model.link import LINKS, Link
from harfe.model.pool_origin import PoolOrigin
from harfe.model.uncertainty import Posterior, Uncertainty
from harfe.solvers.pursuit import StopReason


def _pool_is_wrong(pool: FeaturePool) -> str | None:
    """Compiled loops use these indices without further checks."""
    if pool.indices.size and (pool.indices.min() < -1 or pool.indices.max() >= pool.n_variables):
        return f"uses inputs beyond the {pool.n_variables} of the model"
    contiguous = all(a.flags.c_contiguous for a in (pool.indices, pool.values, pool.phases))
    return None if contiguous else "is not stored by rows"


def _link_is_wrong(link: Link) -> str | None:
    numbers = (link.lower, link.upper, link.power, link.centre, link.unit, *link.residuals)
    if not np.all(np.isfinite(numbers)) or link.lower > link.upper or link.unit <= 0:
        return "has limits, a unit or residuals that are not possible"
    # The inverse takes logarithms of these.
    ends = (link.power * max(link.upper, 0), (2 - link.power) * max(-link.lower, 0))
    return "has limits beyond its range" if 1 + min(ends) <= 0 else None


def _expansion_is_wrong(expansion: Expansion) -> str | None:
    if expansion.link is not None and (expansion.complex_output or len(expansion.coef) != 1):
        return "has a link but not one real target"
    if expansion.complex_output or expansion.features.is_complex:
        return None
    return "is complex in a real model" if expansion.coef.dtype.kind == "c" else None


def _rank_is_wrong(rank: Rank) -> str | None:
    if not 2 <= len(rank.knots) <= MOST_KNOTS or len(rank.values) != len(rank.knots):
        return f"does not have a value for each of 2 to {MOST_KNOTS} knots"
    for numbers in (rank.knots, rank.values):
        if not np.isfinite(numbers).all() or np.any(numbers[1:] <= numbers[:-1]):
            return "has knots that do not increase"
    return None


def _asinh_is_wrong(asinh: Asinh) -> str | None:
    fine = math.isfinite(asinh.centre) and 0 < asinh.scale < math.inf
    return None if fine else "does not have a finite centre and a positive scale"


def _map_is_wrong(own: InputMap) -> str | None:
    if own.warps and len(own.warps) != len(own.lower):
        return "does not have a warp or none for each input"
    for k in range(len(own.lower)):
        if isinstance(own.warp_of(k), Log) and not own.lower[k] > 0:
            return "takes the logarithm of an input that may not be positive"
    return None


def _distribution_is_wrong(distribution: InputDistribution) -> str | None:
    same = all(
        len(n) == len(w) for n, w in zip(distribution.nodes, distribution.weights, strict=True)
    )
    return None if same else "does not have a weight for every node"


def _summary_is_wrong(kept: InputSummary) -> str | None:
    if kept.partner.min() < -1 or kept.partner.max() >= len(kept.lower):
        return "names partners that are not inputs"
    columns = 1 if kept.joint is None else kept.joint.shape[1]
    if not math.log2(max(columns, 1)).is_integer():
        return "does not have a mean for every subset"
    return None


def _origin_is_wrong(origin: PoolOrigin) -> str | None:
    places = origin.places
    if len(places) and (places.min() < 0 or np.any(np.diff(places) <= 0)):
        return "has places that are not increasing"
    return None


def _features(s: str, q: str) -> Part:
    fields: dict[str, Spec] = {
        "n_variables": Whole(letter="d"),
        "indices": Array("i", (s, q)),
        "values": Array("f", (s, q)),
        "phases": Array("f", (s,)),
        "activation": Text(tuple(ACTIVATIONS)),
    }
    return Part(FeaturePool, fields, _pool_is_wrong)


_PER_INPUT = Array("f", ("d",))
_UNITS = Part(InputUnits, {"centre": _PER_INPUT, "spread": _PER_INPUT})
_RANK = Part(Rank, {"knots": Array("f", (None,)), "values": Array("f", (None,))}, _rank_is_wrong)
_ASINH = Part(Asinh, {"centre": Number(), "scale": Number()}, _asinh_is_wrong)
_WARP = OneOf({"Log": Part(Log, {}), "Asinh": _ASINH, "Rank": _RANK})
_MAP = Part(
    InputMap,
    {"lower": _PER_INPUT, "upper": _PER_INPUT, "warps": Many(Maybe(_WARP))},
    _map_is_wrong,
    defaults={"warps": ()},
)

_LINK = Part(
    Link,
    {
        "kind": Text(LINKS[1:]),
        "lower": Number(),
        "upper": Number(),
        "power": Number(),
        "centre": Number(),
        "unit": Number(),
        "residuals": Many(Number()),
    },
    _link_is_wrong,
)

EXPANSION = Part(
    Expansion,
    {
        "features": _features("s", "q"),
        "coef": Array("fc", ("t", "s")),
        "intercept": Array("fc", ("t",)),
        "columns": Many(Text(), "d"),
        "complex_output": Flag(),
        "bounds": Maybe(_MAP),
        "link": Maybe(_LINK),
    },
    _expansion_is_wrong,
    {"bounds": "map"},
    defaults={"link": None},
)

_FEATURE_LAW = Part(
    FeatureLaw,
    {
        "n_variables": Whole(letter="d"),
        "orders": Many(Whole(1)),
        "weights": Text(),
        "scale": Many(Number()),
        "bias": Text(),
        "activation": Text(),
        "variable_weights": Maybe(Many(Number())),
        "groups": Maybe(Many(Many(Whole()))),
        "order_weights": Maybe(Many(Number())),
        "tempering": Number(),
    },
)
_MIXED_LAW = Part(MixedLaw, {"parts": Many(_FEATURE_LAW), "shares": Many(Number())})
LAW = OneOf({"FeatureLaw": _FEATURE_LAW, "MixedLaw": _MIXED_LAW})

_LEARNED_LAW = Part(
    LearnedLaw,
    {
        "law": LAW,
        "candidate": Text(),
        "errors": ByName(Number()),
        "noise": Number(),
        "variance": Number(),
        "n_rows": Whole(),
        "columns": Many(Text(), "d"),
    },
)

_DISTRIBUTION = Part(
    InputDistribution,
    {"kind": Text(), "nodes": Ragged("nodes"), "weights": Ragged("nodes")},
    _distribution_is_wrong,
)

_INPUT_SUMMARY = Part(
    InputSummary,
    {
        "law": _DISTRIBUTION,
        "lower": _PER_INPUT,
        "upper": _PER_INPUT,
        "quantiles": Array("f", (None, "d")),
        "mean": _PER_INPUT,
        "deviation": _PER_INPUT,
        "partner": Array("i", ("d",)),
        "correlation": _PER_INPUT,
        "joint": Maybe(Array("c", ("s", None))),
        "mean_prediction": Array("fc", ("t",)),
        "variance_joint": Array("f", ("t",)),
        "mean_square_gradient": Array("f", ("t", "d")),
        "total_weight": Number(),
        "law_error": Maybe(Number()),
    },
    _summary_is_wrong,
    {"law": "distribution", "law_error": "distribution_error"},
)


def _unbound_posterior(**fields: Any) -> Posterior:
    """A posterior without its expansion, which is that of the model and is stored only once."""
    return Posterior(None, **fields)  # type: ignore[arg-type]


_POSTERIOR = Part(
    _unbound_posterior,
    {
        "mean": Array("fc", ("s",)),
        "scale": Array("f", ("s",)),
        "factor": Array("fc", ("s", "s")),
        "total_weight": Number(),
        "fit_intercept": Flag(),
    },
)
_UNCERTAINTY = Part(
    Uncertainty,
    {
        "posterior": _POSTERIOR,
        "noise": Array("f", ("t",)),
        "scores": Array("f", ("residuals", "t")),
        "weights": Array("f", ("residuals", "t")),
        "mean_square": Maybe(Array("f", ("t",))),
    },
)

_ORIGIN = Part(
    PoolOrigin,
    {
        "units": _UNITS,
        "places": Array("i", ("trained",)),
        "features": _features("trained", "trained order"),
        "index_digest": Text(),
        "totals": Array("f", (None,)),
    },
    _origin_is_wrong,
)

# In the order in which they are read: the first ones define the shared sizes.
ATTRIBUTES: dict[str, Spec] = {
    "n_features_in_": Whole(letter="d"),
    "feature_names_in_": Maybe(Many(Text(), "d")),
    "expansion_": EXPANSION,
    "_y_ndim": Whole(1, 2),
    "law_": LAW,
    "seed_": Whole(),
    "n_components_": Whole(1),
    "support_": Array("i", ("s",)),
    "n_nonzero_coefs_": Whole(),
    "n_iter_": Whole(),
    "history_": ByName(Array("f", (None,))),
    "_stop_reason": Text(tuple(StopReason.__members__)),
    "inputs_": _INPUT_SUMMARY,
    "uncertainty_": Maybe(_UNCERTAINTY),
    "_pool_origin": _ORIGIN,
}
# In files written before these were computed on demand: read and dropped.
DROPPED_ATTRIBUTES: dict[str, Spec] = {"feature_importances_": _PER_INPUT}
SEARCH_ATTRIBUTES: dict[str, Spec] = {
    "learned_law_": Maybe(_LEARNED_LAW),
    "fit_": Text(),
    "alpha_": Number(),
    "order_": Plain(),
    "scale_": Plain(),
    "best_params_": Plain(),
    "best_score_": Number(),
    "cv_results_": Plain(),
    "mse_path_": Array("f", (None, None, None, None)),
    "pools_": Plain(),
    "alphas_": Array("f", (None,)),
    "sizes_": Array("i", (None,)),
    "n_splits_": Whole(),
    "search_complete_": Flag(),
}
