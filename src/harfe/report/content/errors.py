"""Errors in a report: those of `harfe.tables.judging`, and the residuals behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.report.content.rows import ReportRows
from harfe.tables.judging import (
    GIVEN,
    HELD_OUT,
    LINEAR,
    NULL,
    OUT_OF_FOLD,
    THIS,
    TRAINING,
    judge,
    judge_on,
    judge_training,
)

_MOST_POINTS = 400
_MOST_BINS = 30
_GROUPS = 10
_LEVEL = 0.9


def errors(
    model: Any,
    rows: ReportRows,
    holdout: ReportRows | None,
    target: int,
    *,
    fitted: bool = True,
    measured: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Collect the errors of the model, of a linear model and of the mean, on all available rows.

    Parameters
    ----------
    model : estimator
    rows, holdout : ReportRows
    target : int
    fitted : bool, default=True
        Whether `rows` are those of the fit. If not, and nothing is held out, all three models
        predict unseen rows: the simple ones are cross-validated.
    measured : mapping, default=None
        Result of `harfe.tables.judging.judge` from the fit; None computes it now.
    """
    if not fitted and holdout is None:
        given = {GIVEN: judge_on(model, rows, target)}
        return _collected(given, GIVEN, _coverage(model, rows, target))
    table = {TRAINING: judge_training(model, rows, target)}
    error = measured or judge(model, rows, holdout, target)
    judged = TRAINING if error is None else error["kind"]
    if error is not None:
        table[judged] = error["models"]
    return _collected(table, judged, None if holdout is None else _coverage(model, holdout, target))


def _collected(
    table: dict[str, dict[str, dict[str, float | None]]],
    judged: str,
    interval: dict[str, Any] | None,
) -> dict[str, Any]:
    mine, linear, null = (table[judged][name]["rmse"] for name in (THIS, LINEAR, NULL))
    return {
        "judged_on": judged,
        "table": [
            {"rows": where, "model": name, **values}
            for where in (GIVEN, HELD_OUT, OUT_OF_FOLD, TRAINING)
            if where in table
            for name, values in table[where].items()
        ],
        "interval": interval,
        "share_of_null": _quotient(mine, null),
        "share_of_linear": _quotient(mine, linear),
    }


def pick(found: dict[str, Any], rows: str, model: str) -> dict[str, Any] | None:
    """Return one line of the table of errors."""
    lines = (line for line in found["table"] if line["rows"] == rows and line["model"] == model)
    return next(lines, None)


def scatter(rows: ReportRows, where: str) -> dict[str, Any]:
    """Return observed and predicted values of a sample of the rows, and of all rows by groups."""
    some = rows.sample(_MOST_POINTS)
    return {
        "rows": where,
        "n_rows": len(rows),
        "observed": rounded(some.y),
        "predicted": rounded(some.prediction),
        "groups": _groups(rows),
    }


def distribution(rows: ReportRows, where: str) -> dict[str, Any]:
    """Return the histogram and quantiles of the residuals."""
    residual = rows.residual
    edges = np.histogram_bin_edges(residual, "auto")
    if len(edges) > _MOST_BINS + 1:
        edges = np.linspace(residual.min(), residual.max(), _MOST_BINS + 1)
    counts, _ = np.histogram(residual, edges)
    levels = (0.5, 0.8, 0.9, 0.95, 1.0)
    return {
        "rows": where,
        "n_rows": len(rows),
        "edges": rounded(edges),
        "counts": counts.tolist(),
        "mean": float(residual.mean()),
        "sizes": [
            {"share": level, "within": float(np.quantile(np.abs(residual), level))}
            for level in levels
        ],
    }


def rounded(values: NDArray[np.float64], digits: int = 5) -> list[float]:
    """Round numbers to the digits that a drawing can show."""
    return [float(f"{value:.{digits}g}") for value in np.asarray(values, dtype=float)]


def _quotient(value: float | None, unit: float | None) -> float | None:
    return value / unit if value is not None and unit else None


def _coverage(model: Any, rows: ReportRows, target: int) -> dict[str, Any] | None:
    """Return the share of rows within the 90 % intervals of the model."""
    if model.uncertainty_ is None:
        return None
    try:
        half = model.uncertainty_.half_width(rows.X, _LEVEL)[:, target]
        lower, upper = (end[:, target] for end in model.uncertainty_.interval(rows.X, _LEVEL))
    except ValueError:  # too few residuals for this level
        return None
    inside = (lower <= rows.y) & (rows.y <= upper)
    return {
        "level": _LEVEL,
        "inside": float(inside.mean()),
        # Half the width in the units of the target, and on the scale of the link.
        "half_width": float(np.median(upper - lower) / 2),
        "half_width_linear": float(np.median(half)),
        "n_rows": len(rows),
    }


def _groups(rows: ReportRows) -> list[dict[str, Any]]:
    """Group rows by prediction, with the mean predicted and observed value of each group."""
    order = np.argsort(rows.prediction, kind="stable")
    groups = []
    for places in np.array_split(order, min(_GROUPS, len(rows))):
        y, prediction = rows.y[places], rows.prediction[places]
        groups.append(
            {
                "n_rows": len(places),
                "from": float(prediction.min()),
                "to": float(prediction.max()),
                "predicted": float(prediction.mean()),
                "observed": float(y.mean()),
                "residual": float((y - prediction).mean()),
                "rmse": float(np.sqrt(np.mean((y - prediction) ** 2))),
            }
        )
    return groups
