"""Summaries of a model as text. Imported only when a command prints one."""

from __future__ import annotations

import warnings

import numpy as np

from harfe._core.wording import percent, plural
from harfe.cli.common import IMPORTANCE, bars
from harfe.explain.overall import Explanation
from harfe.features.activations import ACTIVATIONS
from harfe.tables import TableModel
from harfe.tables.judging import HELD_OUT, LINEAR, NULL, THIS, no_better_than, stored


def fit_account(model: TableModel, path: str) -> str:
    """Summarise a fit in a dozen lines."""
    explanation = explanation_of(model)
    return "\n".join(
        [
            *_head_lines(model),
            "",
            *_error_lines(model),
            "",
            *_importance_lines(explanation, 8),
            *(f"Note: {note}" for note in explanation.dependence),
            "",
            f"Saved    {path}   (next: harfe predict {path} new.csv, harfe explain {path})",
        ]
    )


def explain_account(model: TableModel, explanation: Explanation, most: int) -> str:
    """Describe a model to someone who has not seen it."""
    ranking, pairs = explanation.ranking, explanation.interactions
    lines = [
        *_head_lines(model),
        "",
        *_error_lines(model),
        "",
        *_importance_lines(explanation, most),
    ]
    joint = [row for row in ranking.rows() if row["total"] - row["first_order"] > 0.01]
    if joint:
        alone = ", ".join(
            f"{row['variable']} {percent(max(row['first_order'], 0.0))}" for row in joint[:most]
        )
        lines.append(f"  alone, without interactions: {alone}")
    if len(pairs):
        strongest = [" : ".join(pair) for pair in pairs["variables"]]
        lines += ["", "Which pairs interact", *bars(strongest, pairs["total"].tolist(), most)]
    notes = [*model.encoder.notes, *explanation.notes]
    if notes:
        lines += ["", *(f"Note: {note}" for note in notes)]
    return "\n".join(lines)


def explanation_of(model: TableModel) -> Explanation:
    """Return the explanation that the commands print, which is also that of the report page."""
    with warnings.catch_warnings():
        # The notes repeat the warning.
        warnings.simplefilter("ignore", UserWarning)
        return model.explain()


def _head_lines(model: TableModel) -> list[str]:
    """State the target, the inputs, the rows and the size."""
    meta, expansion = model.meta, model.expansion_
    source = meta.get("source")
    complete = getattr(model.model, "search_complete_", True)
    made = "fitted to" if complete else "from"
    came = f", {made} {plural(meta['rows'], 'row')} of {source}" if source else ""
    present = expansion.features.indices >= 0
    used = np.unique(expansion.features.indices[present])
    order = int(present.sum(axis=1).max()) if len(present) else 0
    columns, inputs = len(model.encoder.columns), len(expansion.columns)
    encoded = f" ({plural(inputs, 'input')})" if inputs != columns else ""
    size = plural(len(present), ACTIVATIONS[expansion.features.activation].noun)
    lines = [
        f"Model    {model.encoder.target or 'y'} from {plural(columns, 'column')}{encoded}{came}",
        f"Size     {size} of at most {plural(order, 'input')} each; {len(used)} of "
        f"{plural(inputs, 'input')} used",
    ]
    if expansion.link is not None:
        scale = expansion.link.label(model.encoder.target or "y")
        lines.append(f"Scale    {scale}: shares below are of its variance, errors of the target")
    if not complete:
        lines.append("Search   cut short: with more time, the model may predict better")
    return lines


def _error_lines(model: TableModel) -> list[str]:
    """State the error on unseen rows and how the fit measured it."""
    error = stored(model.meta)
    if error is None:
        return ["Error    not measured: fit the model with harfe fit, or with residual_cv=5"]
    if error["kind"] == HELD_OUT:
        share = percent(model.meta["holdout"], places=0)
        how = f"on {plural(error['rows'], 'row')} set aside, {share}"
    else:
        made = "chosen and fitted" if hasattr(model.model, "cv_results_") else "fitted"
        folds = error["folds"]
        which = (
            f"each of {folds} folds" if folds > 1 else f"{plural(error['rows'], 'row')} of a fold"
        )
        how = f"{which} predicted by a model {made} without it"
    models = error["models"]
    r2 = "" if models[THIS]["r2"] is None else f"   R² {models[THIS]['r2']:.3f}"
    lines = [
        f"Error on new rows ({how})",
        f"  this model         {models[THIS]['rmse']:.4g}   (root mean square){r2}",
        f"  a linear model     {models[LINEAR]['rmse']:.4g}",
        f"  always the mean    {models[NULL]['rmse']:.4g}",
    ]
    beaten_by = no_better_than(models)
    if beaten_by == NULL:
        lines.append(
            "  It predicts no better than the mean: these inputs do not determine the target, or "
            "there are too few rows."
        )
    elif beaten_by == LINEAR:
        lines.append("  A linear model predicts as well or better here: prefer it.")
    return lines


def _importance_lines(explanation: Explanation, most: int) -> list[str]:
    ranking = explanation.ranking
    return [IMPORTANCE, *bars(ranking["variable"].tolist(), ranking["total"].tolist(), most)]
