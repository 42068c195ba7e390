"""Components of the fitted function: shares of the variance, curves and maps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import Table, jsonable
from harfe.explain.anova import Anova, anova
from harfe.explain.inputs.seen import SeenInput
from harfe.explain.inputs.summary import InputSummary
from harfe.model.terms import IndexSet, name_of
from harfe.report.content.errors import rounded
from harfe.report.content.posterior import ComponentPosterior
from harfe.report.content.rows import ReportRows

# Components that explain less of the variance are listed, not drawn.
_SMALLEST_SHARE = 1e-3
_MOST_CURVES, _MOST_MAPS = 24, 9
_CURVE_POINTS, _MAP_POINTS = 61, 25
# Inputs with at most this many values are drawn as points.
_FEW_VALUES = 12
_MAP_DOTS = 150


def explanation(model: Any, target: int) -> dict[str, Any]:
    """Return the tables of the explanation as rows."""
    with warnings.catch_warnings():
        # The page shows the warning among its caveats.
        warnings.simplefilter("ignore", UserWarning)
        found = model.explain(target=target)
    variables = [
        {**sobol, **usage}
        for sobol, usage in zip(_rows(found.sobol), _rows(found.variables), strict=True)
    ]
    return {
        "inputs": found.inputs,
        "mean": jsonable(found.mean),
        "variance": jsonable(found.variance),
        "variance_ratio": jsonable(found.variance_ratio),
        "dependence": list(found.dependence),
        "notes": list(found.notes),
        "variables": variables,
        "terms": _rows(found.terms),
        "interactions": _rows(found.interactions),
        "components": _rows(found.components),
    }


def _rows(table: Table) -> list[dict[str, Any]]:
    return [{name: jsonable(value) for name, value in row.items()} for row in table.rows()]


def drawn_components(model: Any, rows: ReportRows, target: int) -> dict[str, Any]:
    """Evaluate the strongest components on grids: curves of one input, maps of two."""
    expansion, kept = model.expansion_, model.inputs_
    parts = anova(expansion, kept.distribution, target)
    order = [i for i in np.argsort(-parts.shares, kind="stable") if parts.shares[i] > 0]
    posterior = ComponentPosterior.of(model, parts)
    strong = [int(i) for i in order if parts.shares[i] >= _SMALLEST_SHARE]
    single = [i for i in strong if len(parts.sets[i]) == 1]
    pairs = [i for i in strong if len(parts.sets[i]) == 2]
    some = rows.sample(_MAP_DOTS)
    return {
        "curves": [_curve(parts, kept, posterior, i) for i in single[:_MOST_CURVES]],
        "maps": [_map(parts, kept, i, some.X) for i in pairs[:_MOST_MAPS]],
        "not_drawn": {
            "curves": len(single[_MOST_CURVES:]),
            "maps": len(pairs[_MOST_MAPS:]),
            "higher": sum(len(parts.sets[i]) > 2 for i in strong),
            "higher_share": float(sum(parts.shares[i] for i in order if len(parts.sets[i]) > 2)),
        },
    }


def _curve(
    parts: Anova, kept: InputSummary, posterior: ComponentPosterior | None, i: int
) -> dict[str, Any]:
    (k,) = parts.sets[i]
    seen = SeenInput.of(parts.expansion, kept, k)
    few = seen.values_if_at_most(_FEW_VALUES)
    x = np.linspace(seen.lower, seen.upper, _CURVE_POINTS) if few is None else few
    unsure = None if posterior is None else rounded(posterior.deviation((k,), x[:, None]), 4)
    return {
        "component": seen.name,
        "share": float(parts.shares[i]),
        "x": rounded(x, 6),
        "y": rounded(np.real(parts.component_on_grid((k,), [x]))),
        "deviation": unsure,
        "few_values": few is not None,
        "quantiles": rounded(seen.quantiles),
    }


def _map(parts: Anova, kept: InputSummary, i: int, X: NDArray[np.float64]) -> dict[str, Any]:
    u: IndexSet = parts.sets[i]
    inputs = [SeenInput.of(parts.expansion, kept, k) for k in u]
    x, y = (np.linspace(seen.lower, seen.upper, _MAP_POINTS) for seen in inputs)
    values = np.real(parts.component_on_grid(u, [x, y]))
    at_rows = np.abs(np.real(parts.component(u, X[:, list(u)])))
    dots = [np.clip(X[:, k], seen.lower, seen.upper) for k, seen in zip(u, inputs, strict=True)]
    return {
        "component": name_of(u, parts.expansion.columns),
        "variables": [seen.name for seen in inputs],
        "share": float(parts.shares[i]),
        "x": rounded(x),
        "y": rounded(y),
        "values": [rounded(row, 3) for row in values],
        "limit": float(np.quantile(at_rows, 0.98)),
        "dots": [rounded(line, 4) for line in dots],
    }
