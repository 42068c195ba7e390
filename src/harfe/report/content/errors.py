"""How far predictions are off, beside a constant and a linear model, and where.

Whatever rows the model was not fitted to are judged first: held-out rows if there are any, else the
out-of-fold residuals that the fit has kept. Errors on the rows of the fit stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.report.content.rows import ReportRows

HELD_OUT, OUT_OF_FOLD, TRAINING, GIVEN = "held-out", "out-of-fold", "training", "given"
THIS, LINEAR, NULL = "this model", "linear model", "null model"

_FOLDS = 5
_MOST_POINTS = 400
_MOST_BINS = 30
_GROUPS = 10
_LEVEL = 0.9

Predict = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def errors(
    model: Any, rows: ReportRows, holdout: ReportRows | None, target: int, *, fitted: bool = True
) -> dict[str, Any]:
    """Errors of the model, of a linear model and of the mean, on all rows there are.

    Where the rows are not those of the fit (`fitted` is false and nothing is held out), all three
    predict rows that they have not seen: the two simple models are fitted without each fold.
    """
    if not fitted and holdout is None:
        given = {
            THIS: measures(rows, rows.prediction),
            LINEAR: measures(rows, _cross_predicted(rows, fit_linear)),
            NULL: measures(rows, _cross_predicted(rows, fit_null)),
        }
        return _told({GIVEN: given}, GIVEN, _coverage(model, rows, target))
    rivals = {LINEAR: fit_linear(rows), NULL: fit_null(rows)}
    table = {
        TRAINING: {
            THIS: measures(rows, rows.prediction),
            **{name: measures(rows, predict(rows.X)) for name, predict in rivals.items()},
        }
    }
    judged = TRAINING
    if holdout is not None:
        judged = HELD_OUT
        table[HELD_OUT] = {
            THIS: measures(holdout, holdout.prediction),
            **{name: measures(holdout, predict(holdout.X)) for name, predict in rivals.items()},
        }
    elif model.uncertainty_ is not None:
        judged = OUT_OF_FOLD
        table[OUT_OF_FOLD] = {
            THIS: _out_of_fold(model, rows, target),
            LINEAR: measures(rows, _cross_predicted(rows, fit_linear)),
            NULL: measures(rows, _cross_predicted(rows, fit_null)),
        }
    return _told(table, judged, None if holdout is None else _coverage(model, holdout, target))


def _told(
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
    """One line of the table of errors."""
    lines = (line for line in found["table"] if line["rows"] == rows and line["model"] == model)
    return next(lines, None)


def scatter(rows: ReportRows, where: str) -> dict[str, Any]:
    """Observed against predicted, for a sample of the rows; and by groups, for all of them."""
    some = rows.sample(_MOST_POINTS)
    return {
        "rows": where,
        "n_rows": len(rows),
        "observed": rounded(some.y),
        "predicted": rounded(some.prediction),
        "groups": _groups(rows),
    }


def distribution(rows: ReportRows, where: str) -> dict[str, Any]:
    """Histogram of observed minus predicted, and how large it usually is."""
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


def measures(rows: ReportRows, prediction: NDArray[np.float64]) -> dict[str, float | None]:
    """Root mean square, mean size of the error, and R² about the mean of these rows."""
    gap = rows.y - prediction
    square = float(rows.share @ gap**2)
    spread = float(rows.share @ (rows.y - rows.share @ rows.y) ** 2)
    return {
        "rmse": float(np.sqrt(square)),
        "mae": float(rows.share @ np.abs(gap)),
        "r2": 1 - square / spread if spread > 0 else None,
    }


def fit_null(rows: ReportRows) -> Predict:
    """The mean of the target."""
    mean = float(rows.share @ rows.y)
    return lambda X: np.full(len(X), mean)


def fit_linear(rows: ReportRows) -> Predict:
    """Least squares on all inputs; of many solutions the smallest."""
    centre = rows.share @ rows.X
    spread = np.sqrt(rows.share @ (rows.X - centre) ** 2)
    spread = np.where(spread > 0, spread, 1.0)
    mean = float(rows.share @ rows.y)
    root = np.sqrt(rows.share)[:, None]
    A = root * (rows.X - centre) / spread
    slope = np.linalg.lstsq(A, root[:, 0] * (rows.y - mean), rcond=1e-10)[0] / spread
    return lambda X: mean + (X - centre) @ slope


def rounded(values: NDArray[np.float64], digits: int = 5) -> list[float]:
    """Numbers for a drawing, with no more digits than it can show."""
    return [float(f"{value:.{digits}g}") for value in np.asarray(values, dtype=float)]


def _quotient(value: float | None, unit: float | None) -> float | None:
    return value / unit if value is not None and unit else None


def _out_of_fold(model: Any, rows: ReportRows, target: int) -> dict[str, float | None]:
    """Mean square of the residuals that the fit has kept of rows that it left out."""
    kept = model.uncertainty_.mean_square
    if kept is None:  # a model of an older version: the noise, wider where the fit knows less
        square = float(rows.share @ model.uncertainty_.std(rows.X)[:, target] ** 2)
    else:
        square = float(kept[target])
    spread = float(rows.share @ (rows.y - rows.share @ rows.y) ** 2)
    r2 = 1 - square / spread if spread > 0 else None
    return {"rmse": float(np.sqrt(square)), "mae": None, "r2": r2}


def _cross_predicted(rows: ReportRows, fit: Callable[[ReportRows], Predict]) -> NDArray[np.float64]:
    """Prediction of every row by a model fitted without its fold."""
    n_folds = min(_FOLDS, len(rows))
    fold = np.random.default_rng(0).permutation(len(rows)) % n_folds
    out = np.empty(len(rows))
    for k in range(n_folds):
        out[fold == k] = fit(rows.take(np.flatnonzero(fold != k)))(rows.X[fold == k])
    return out


def _coverage(model: Any, rows: ReportRows, target: int) -> dict[str, Any] | None:
    """How many held-out rows lie in the 90 % intervals of the model."""
    if model.uncertainty_ is None:
        return None
    try:
        half = model.uncertainty_.half_width(rows.X, _LEVEL)[:, target]
    except ValueError:  # too few residuals for this level
        return None
    inside = np.abs(rows.residual) <= half
    return {
        "level": _LEVEL,
        "inside": float(inside.mean()),
        "half_width": float(np.median(half)),
        "n_rows": len(rows),
    }


def _groups(rows: ReportRows) -> list[dict[str, Any]]:
    """Rows in groups of similar prediction: what was predicted, what was seen."""
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
