"""The model as the page computes it: inputs to change, features at full precision, contributions.

    prediction = baseline + Σ_u f_u(x)

With a link, this is the sum on its scale, from which the page computes the prediction.

For waves, the f_u are the components of `harfe.explain.anova`, which the page computes from the
features and the means χ of their factors e. However χ is rounded, the sum is the prediction,
because the product of (e - χ) + χ over the inputs of a feature is the product of e. Other features
have no such closed form; their f_u are terms as fitted, minus their means over the rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import jsonable
from harfe._core.threads import blocks
from harfe.explain.anova import anova
from harfe.explain.inputs.distribution import InputDistribution
from harfe.features.activations import ACTIVATIONS
from harfe.features.units import Warp
from harfe.model.expansion import Expansion
from harfe.model.link import Link
from harfe.model.terms import group_features, term_values
from harfe.report.content.errors import rounded
from harfe.report.content.rows import ReportRows

# With more features, a page would be too large and too slow.
_MOST_FEATURES = 5000
# With more inputs, a feature has too many components for a page.
_MOST_VARIABLES = 6
_MEAN_DIGITS = 9
_ROW_BLOCK = 2048


def what_if(
    model: Any, rows: ReportRows, target: int, encoder: Any = None
) -> dict[str, Any] | None:
    """Return what a page needs to predict; None if the model is too large for a page."""
    expansion: Expansion = model.expansion_
    if len(expansion.features) > _MOST_FEATURES:
        return None
    features = expansion.features
    present = features.present
    used = sorted(set(features.indices[present].tolist()))
    groups = [
        g for g in categories(expansion.columns, rows.X, encoder) if set(g.places) & set(used)
    ]
    # All levels of a category are shown, also those that the model does not use.
    shown = sorted({*used, *(k for g in groups for k in g.places if k is not None)})
    place = {k: i for i, k in enumerate(shown)}
    start = _most_frequent(groups, rows)
    return {
        "activation": features.activation,
        "link": None if expansion.link is None else _link(expansion.link),
        "intercept": float(np.real(expansion.intercept[target])),
        "range": [float(rows.prediction.min()), float(rows.prediction.max())],
        "inputs": [_input(model, rows.X, k, start.get(k)) for k in shown],
        "choices": [
            {
                "name": g.name,
                "levels": list(g.levels),
                "inputs": [None if k is None else place[k] for k in g.places],
            }
            for g in groups
        ],
        "features": [
            [
                [place[int(k)] for k in features.indices[j][present[j]]],
                features.values[j][present[j]].tolist(),
                float(features.phases[j]),
                *_coefficients(expansion.coef[target, j], features.is_complex),
            ]
            for j in range(len(features))
        ],
        "adds": _adds(model, rows, target, place),
    }


def _link(link: Link) -> dict[str, Any]:
    """Return what the page needs to map sums to predictions."""
    return {**asdict(link), "shifts": link.shifts, "factor": link.factor}


def _adds(model: Any, rows: ReportRows, target: int, place: dict[int, int]) -> dict[str, Any]:
    """Return the parts that add up to the prediction, and how much each varies.

    `place` maps inputs to their positions in the panel.
    """
    expansion: Expansion = model.expansion_
    pool = expansion.features
    widest = int(pool.present.sum(axis=1).max(initial=0))
    if pool.is_wave and widest <= _MOST_VARIABLES:
        return _components(expansion, model.inputs_.distribution, target, place)
    means, deviations = _term_moments(expansion, rows.sample(), target)
    terms = group_features(expansion)
    return {
        "kind": "terms",
        "sets": [[place[k] for k in u] for u in terms],
        "deviations": rounded(deviations),
        "baseline": float(np.real(expansion.intercept[target]) + means.sum()),
        "means": means.tolist(),
        "features": [places.tolist() for places in terms.values()],
    }


def _components(
    expansion: Expansion, distribution: InputDistribution, target: int, place: dict[int, int]
) -> dict[str, Any]:
    parts = anova(expansion, distribution, target)
    number = {u: i for i, u in enumerate(parts.sets)}
    features = expansion.features
    turn = complex(ACTIVATIONS[features.activation].turn)
    means, owners = [], []
    for indices, values, present in zip(
        features.indices, features.values, features.present, strict=True
    ):
        variables = indices[present].tolist()
        chi = [
            complex(distribution.characteristic(k, [w])[0])
            for k, w in zip(variables, values[present], strict=True)
        ]
        means.append([rounded(np.array([c.real, c.imag]), _MEAN_DIGITS) for c in chi])
        # Bit p of a subset says whether it contains the input at place p.
        subsets = range(1, 2 ** len(variables))
        owners.append(
            [
                number[tuple(sorted(k for p, k in enumerate(variables) if subset >> p & 1))]
                for subset in subsets
            ]
        )
    return {
        "kind": "components",
        "turn": [turn.real, turn.imag],
        "sets": [[place[k] for k in u] for u in parts.sets],
        "deviations": rounded(np.sqrt(parts.variances)),
        "baseline": float(np.real(parts.mean)),
        "means": means,
        "owners": owners,
    }


@dataclass(frozen=True)
class Category:
    """A categorical column: its levels and, for each, its input, if it has one."""

    name: str
    levels: tuple[str, ...]
    places: tuple[int | None, ...]


def categories(
    columns: tuple[str, ...], X: NDArray[np.float64], encoder: Any = None
) -> list[Category]:
    """Group inputs that are levels of one category.

    A table encoder has this information. Without one, they are recognised by names such as
    ``color=red`` and by their values (0 or 1, and at most one of them 1), so that other names that
    contain "=" do no harm.
    """
    place = {column: k for k, column in enumerate(columns)}
    if encoder is not None:
        return [
            Category(
                column.name,
                tuple(column.levels),
                tuple(place.get(f"{column.name}={level}") for level in column.levels),
            )
            for column in encoder.columns
            if column.kind == "category"
        ]
    named: dict[str, list[int]] = {}
    for k, column in enumerate(columns):
        name, equals, level = column.partition("=")
        if name and equals and level:
            named.setdefault(name, []).append(k)
    return [
        Category(name, tuple(columns[k].partition("=")[2] for k in group), tuple(group))
        for name, group in named.items()
        if len(group) > 1
        and np.isin(X[:, group], (0.0, 1.0)).all()
        and X[:, group].sum(axis=1).max() <= 1
    ]


def _coefficients(c: Any, is_complex: bool) -> list[float]:
    """Return the factor of φ, or of its two parts, as Re cφ = Re c·Re φ - Im c·Im φ."""
    return [float(c.real), -float(c.imag)] if is_complex else [float(np.real(c))]


def _most_frequent(groups: list[Category], rows: ReportRows) -> dict[int, float]:
    """Return the inputs of categories set to the most frequent level."""
    start: dict[int, float] = {}
    for group in groups:
        known = [k for k in group.places if k is not None]
        counts = {k: float(rows.share @ rows.X[:, k]) for k in known}
        other = 1 - sum(counts.values())
        for k in known:
            first = counts[k] == max(counts.values()) and counts[k] >= other
            start[k] = float(first and 1.0 not in (start.get(j) for j in known))
    return start


def _input(model: Any, X: NDArray[np.float64], k: int, start: float | None) -> dict[str, Any]:
    kept, own = model.inputs_, model.expansion_.map
    clip: list[float | None] = [None, None]
    warp = None
    if own is not None:
        ends = (float(own.lower[k]), float(own.upper[k]))
        clip = [end if np.isfinite(end) else None for end in ends]
        warp = _warp(own.warp_of(k))
    middle = len(kept.quantiles) // 2
    whole = bool(np.all(X[:, k] == np.round(X[:, k])))
    return {
        "name": model.expansion_.columns[k],
        "column": int(k),
        "lower": float(kept.lower[k]),
        "upper": float(kept.upper[k]),
        "start": float(kept.quantiles[middle, k]) if start is None else start,
        "whole": whole,
        "clip": clip,
        "warp": warp,
    }


def _warp(warp: Warp | None) -> dict[str, Any] | None:
    """Name and numbers of a warp; the page knows what to do with them."""
    if warp is None:
        return None
    numbers = {name: jsonable(value) for name, value in vars(warp).items()}
    return {"kind": type(warp).__name__.lower(), **numbers}


def _term_moments(
    expansion: Expansion, rows: ReportRows, target: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of every term as fitted over the rows."""
    n_terms = len(group_features(expansion))
    mean = np.zeros(n_terms)
    for part in blocks(len(rows), _ROW_BLOCK):
        mean += rows.share[part] @ np.real(term_values(expansion, rows.X[part])[:, :, target])
    square = np.zeros(n_terms)
    for part in blocks(len(rows), _ROW_BLOCK):
        values = np.real(term_values(expansion, rows.X[part])[:, :, target])
        square += rows.share[part] @ (values - mean) ** 2
    return mean, np.sqrt(square)
