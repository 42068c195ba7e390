"""What a model is and how good it is, as text for people. Imported by commands at work only."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import make_folds
from harfe.cli.common import bars, percent
from harfe.compare.methods import METHODS
from harfe.explain.overall import Explanation
from harfe.features.activations import ACTIVATIONS
from harfe.tables import TableModel, TrainingRows


def measured(
    model: Any,
    rows: TrainingRows,
    held_out: TrainingRows | None,
    share: float | None,
    folds: int,
) -> dict[str, Any]:
    """Error on rows that the model has not seen, beside that of the mean and of a linear model."""
    if held_out is not None:
        residual = held_out.y - model.predict(held_out.X)
        square = _mean_square(residual, held_out.weights)
        linear = held_out.y - _linear(rows).predict(held_out.X)
        null = held_out.y - np.average(rows.y, weights=rows.weights)
        rivals = [_mean_square(r, held_out.weights) for r in (null, linear)]
        spread = _variance(held_out.y, held_out.weights)
        how: dict[str, Any] = {"kind": "holdout", "share": share, "rows": len(held_out.y)}
    else:
        square = float(model.uncertainty_.mean_square[0])
        rivals = _rivals_out_of_fold(rows, folds)
        spread = _variance(rows.y, rows.weights)
        how = {"kind": "out-of-fold", "folds": folds, "rows": len(rows.y)}
        how["chosen"] = hasattr(model, "cv_results_")
    return {
        **how,
        "rmse": float(np.sqrt(square)),
        "r2": float(1 - square / spread) if spread > 0 else None,
        "null_rmse": float(np.sqrt(rivals[0])),
        "linear_rmse": float(np.sqrt(rivals[1])),
    }


def _rivals_out_of_fold(rows: TrainingRows, folds: int) -> list[float]:
    null, linear = np.empty(len(rows.y)), np.empty(len(rows.y))
    for train, out in make_folds("cv", folds, rows.X, rows.y, 0):
        weights = None if rows.weights is None else rows.weights[train]
        if weights is not None and not weights.any():
            weights = None
        part = TrainingRows(rows.X[train], rows.y[train], weights, train)
        null[out] = np.average(part.y, weights=weights)
        linear[out] = _linear(part).predict(rows.X[out])
    return [_mean_square(rows.y - guess, rows.weights) for guess in (null, linear)]


def _linear(rows: TrainingRows) -> Any:
    model = METHODS["linear"].make(0, len(rows.y))
    with warnings.catch_warnings():
        # Inputs that are constant in a fold, or more inputs than rows: not the user's concern.
        warnings.simplefilter("ignore")
        return model.fit(rows.X, rows.y, ridgecv__sample_weight=rows.weights)


def _mean_square(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(np.average(values**2, weights=weights))


def _variance(y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return _mean_square(y - np.average(y, weights=weights), weights)


def error_lines(meta: dict[str, Any]) -> list[str]:
    """The held-out error, and where it comes from."""
    error = meta.get("error")
    if not error:
        return ["Error    not known: this model was not fitted by harfe fit"]
    if error["kind"] == "holdout":
        how = f"on {error['rows']} rows that were set aside ({percent(error['share'])})"
    else:
        made = "chosen and fitted" if error.get("chosen") else "fitted"
        how = f"each of {error['folds']} folds predicted by a model {made} without it"
    r2 = "" if error["r2"] is None else f"   R² {error['r2']:.3f}"
    lines = [
        f"Error on new rows ({how})",
        f"  this model         {error['rmse']:.4g}   (root mean square){r2}",
        f"  a linear model     {error['linear_rmse']:.4g}",
        f"  always the mean    {error['null_rmse']:.4g}",
    ]
    if error["rmse"] >= error["null_rmse"]:
        lines.append(
            "  It predicts no better than the mean: these inputs do not tell the target, or the "
            "rows are too few."
        )
    elif error["rmse"] > 1.02 * error["linear_rmse"]:
        lines.append("  A linear model predicts better here: prefer it.")
    return lines


def head_lines(model: TableModel) -> list[str]:
    """What predicts what from what."""
    meta, expansion = model.meta, model.expansion_
    target = model.encoder.target or "y"
    came = f", fitted to {meta['rows']} rows of {meta['source']}" if "source" in meta else ""
    used = np.unique(expansion.features.indices[expansion.features.indices >= 0])
    indices = expansion.features.indices
    order = int((indices >= 0).sum(axis=1).max()) if len(indices) else 0
    terms = _plural(len(indices), ACTIVATIONS[expansion.features.activation].noun)
    columns, inputs = len(model.encoder.columns), len(expansion.columns)
    encoded = f" ({_plural(inputs, 'input')})" if inputs != columns else ""
    return [
        f"Model    {target} from {_plural(columns, 'column')}{encoded}{came}",
        f"Terms    {terms} of at most {_plural(order, 'input')} each, "
        f"{len(used)} of {len(expansion.columns)} inputs in use",
    ]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def explanation_of(model: TableModel) -> Explanation:
    """What the commands tell of a model: what its report page tells."""
    with warnings.catch_warnings():
        # What the warning says stands among the notes.
        warnings.simplefilter("ignore", UserWarning)
        return model.explain()


def _what_matters(explanation: Explanation, most: int) -> list[str]:
    ranking = explanation.ranking
    return [
        "Which inputs matter (share of the variance of the prediction, interactions counted)",
        *bars(ranking["variable"].tolist(), ranking["total"].tolist(), most),
    ]


def fit_account(model: TableModel, path: str) -> str:
    """The fit in a dozen lines."""
    explanation = explanation_of(model)
    return "\n".join(
        [
            *head_lines(model),
            "",
            *error_lines(dict(model.meta)),
            "",
            *_what_matters(explanation, 8),
            *(f"Note: {note}" for note in explanation.dependence),
            "",
            f"Saved    {path}   (next: harfe predict {path} new.csv, harfe explain {path})",
        ]
    )


def explain_account(model: TableModel, explanation: Explanation, most: int) -> str:
    """The model for someone who has not seen it."""
    ranking, pairs = explanation.ranking, explanation.interactions
    lines = [
        *head_lines(model),
        "",
        *error_lines(dict(model.meta)),
        "",
        *_what_matters(explanation, most),
    ]
    joint = [row for row in ranking.rows() if row["total"] - row["first_order"] > 0.01]
    if joint:
        told = ", ".join(
            f"{row['variable']} {percent(max(row['first_order'], 0.0))}" for row in joint[:most]
        )
        lines.append(f"  alone, without interactions: {told}")
    if len(pairs):
        strongest = [" : ".join(pair) for pair in pairs["variables"]]
        lines += ["", "Which pairs act together", *bars(strongest, pairs["total"].tolist(), most)]
    notes = [*model.encoder.notes, *explanation.notes]
    if notes:
        lines += ["", *(f"Note: {note}" for note in notes)]
    return "\n".join(lines)
