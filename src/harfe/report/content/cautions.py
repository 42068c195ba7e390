"""Caveats of a report: each is a kind and one or two sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.explain.anova import anova
from harfe.explain.local import outside_range
from harfe.explain.stability import Stability
from harfe.model.terms import group_features, name_of
from harfe.report.content.errors import pick
from harfe.report.content.posterior import ComponentPosterior
from harfe.report.content.rows import ReportRows
from harfe.tables.judging import LINEAR, NULL, THIS, TRAINING, no_better_than

# With fewer rows than this, or than this many per feature, results depend heavily on chance.
_FEW_ROWS, _FEW_ROWS_A_FEATURE = 50, 5
# Ratio of the error on new rows to that on the rows of the fit.
_LARGE_GAP = 2.0
# Posterior deviation of a component, as a share of its own deviation over the rows.
_UNSURE = 0.5
# Share of draws that select a term.
_SELDOM = 0.5
# Components below this share of the variance are too small to warn about.
_MATTERS = 0.01
_SOME_ROWS = 500
_MOST_NAMES = 5
_OUTSIDE = 0.01


def cautions(
    model: Any,
    rows: ReportRows,
    holdout: ReportRows | None,
    *,
    fitted: bool,
    errors: dict[str, Any],
    dependence: list[str],
    stability: Stability | None,
    target: int,
) -> list[dict[str, str]]:
    """Return all caveats that apply, the most serious first."""
    found = [
        *([] if fitted else [_about_rows(model, rows, holdout)]),
        *_about_errors(errors),
        *_few_rows(model),
        *_outside(model, rows, holdout),
        *_clipped(model, rows),
        *[("dependent inputs", _sentence(text)) for text in dependence],
        *_unsure(model, rows, target),
        *_seldom(model, stability),
        *_search(model),
    ]
    return [{"kind": kind, "text": text} for kind, text in found]


Caution = tuple[str, str]


def _about_rows(model: Any, rows: ReportRows, holdout: ReportRows | None) -> Caution:
    text = (
        f"This page was made with {len(rows)} rows that are not those of the fit, which had "
        f"{model.inputs_.total_weight:.6g}. "
    )
    if holdout is None:
        return "other rows", text + (
            "Errors are measured on them; if the model was fitted to some of them, errors on new "
            "rows will be larger. The linear model and the null model are cross-validated on them."
        )
    return "other rows", text + "Training rows below are the rows given."


def _about_errors(errors: dict[str, Any]) -> list[Caution]:
    found = []
    judged = errors["judged_on"]
    if judged == TRAINING:
        found.append(
            (
                "no held-out rows",
                "All errors on this page are those of rows that the model was fitted to; errors on "
                "new rows will be larger. Pass held-out rows, or fit with residual_cv=5.",
            )
        )
    mine, linear, null = (pick(errors, judged, name) for name in (THIS, LINEAR, NULL))
    if mine is None or linear is None or null is None:
        return found
    beaten_by = no_better_than({THIS: mine, LINEAR: linear, NULL: null})
    if beaten_by == NULL:
        found.append(
            (
                "no better than the mean",
                "The model predicts no better than the mean of the target: what this page shows "
                "about inputs and terms is probably due to chance.",
            )
        )
    elif beaten_by == LINEAR:
        found.append(
            (
                "no better than a linear model",
                "A linear model predicts as well or better and is simpler: prefer it.",
            )
        )
    seen = pick(errors, TRAINING, THIS)
    if seen is not None and judged != TRAINING and mine["rmse"] > _LARGE_GAP * seen["rmse"] > 0:
        found.append(
            (
                "overfitting",
                f"The error on new rows is {mine['rmse'] / seen['rmse']:.1f} times that on the "
                "rows of the fit: the model has learned some of their noise. Fewer features may "
                "predict as well.",
            )
        )
    return found


def _few_rows(model: Any) -> list[Caution]:
    n, s = model.inputs_.total_weight, len(model.expansion_.features)
    if n >= _FEW_ROWS and n >= _FEW_ROWS_A_FEATURE * s:
        return []
    text = f"{n:.6g} rows for {s} features: curves and shares may look different with other rows."
    return [("few rows", text)]


def _outside(model: Any, rows: ReportRows, holdout: ReportRows | None) -> list[Caution]:
    """Warn of extrapolation; rows of the fit always lie inside the ranges."""
    judged, named = (rows, "rows given") if holdout is None else (holdout, "held-out rows")
    outside = outside_range(model.expansion_, model.inputs_, judged.X)
    share = float(outside.any(axis=1).mean())
    if share < _OUTSIDE:
        return []
    columns = model.expansion_.columns
    worst = [columns[k] for k in np.argsort(-outside.sum(axis=0)) if outside[:, k].any()]
    text = (
        f"{100 * share:.3g} % of the {named} lie outside the ranges seen in the fit "
        f"({_names(worst)}): predictions there are extrapolations."
    )
    return [("extrapolation", text)]


def _clipped(model: Any, rows: ReportRows) -> list[Caution]:
    kept = model.expansion_.map
    if kept is None:
        return []
    used = _used(model)
    clipped = ~kept.inside(rows.X) & used
    names = [model.expansion_.columns[k] for k in np.flatnonzero(clipped.any(axis=0))]
    if not names:
        return []
    text = (
        f"Inputs are clipped: {_names(names)}. Beyond the bounds (see the table of "
        f"inputs) the prediction no longer changes; this affects "
        f"{100 * clipped.any(axis=1).mean():.2g} % of the rows."
    )
    return [("clipped inputs", text)]


def _unsure(model: Any, rows: ReportRows, target: int) -> list[Caution]:
    """Warn of components that the posterior of the coefficients leaves uncertain."""
    parts = anova(model.expansion_, model.inputs_.distribution, target)
    posterior = ComponentPosterior.of(model, parts)
    if posterior is None:
        return []
    some = rows.sample(_SOME_ROWS)
    names = []
    for i in np.argsort(-parts.shares, kind="stable"):
        u = parts.sets[i]
        if parts.shares[i] >= _MATTERS:
            square = some.share @ posterior.deviation(u, some.X[:, list(u)]) ** 2
            if square > _UNSURE**2 * parts.variances[i]:
                names.append(name_of(u, model.expansion_.columns))
    if not names:
        return []
    text = (
        f"The data say little about what {_names(names)} "
        f"{'adds' if len(names) == 1 else 'add'}: the posterior standard deviation is more than "
        "half of the effect."
    )
    return [("unstable components", text)]


def _seldom(model: Any, stability: Stability | None) -> list[Caution]:
    if stability is None:
        return []
    own = {name_of(u, model.expansion_.columns) for u in group_features(model.expansion_)}
    selected = dict(
        zip(stability.terms["term"].tolist(), stability.terms["selected"].tolist(), strict=True)
    )
    seldom = sorted(own, key=lambda name: selected.get(name, 0.0))
    seldom = [name for name in seldom if selected.get(name, 0.0) < _SELDOM]
    if not seldom:
        return []
    rows = " and other rows" if stability.resampled else ""
    text = (
        f"Of {len(own)} terms, {len(seldom)} were kept in fewer than half of "
        f"{stability.n_draws} fits with other random features{rows}: {_names(seldom)}. Trust "
        "the predictions more than the choice of these terms."
    )
    return [("unstable terms", text)]


def _search(model: Any) -> list[Caution]:
    found = []
    if model.stop_reason_.name == "MAX_ITER":
        found.append(("not converged", model.stop_reason_.value))
    if not getattr(model, "search_complete_", True):
        found.append(
            (
                "search cut short",
                "The search for settings was stopped early; a longer one may predict better.",
            )
        )
    return found


def _used(model: Any) -> NDArray[np.bool_]:
    features = model.expansion_.features
    used = np.zeros(features.n_variables, dtype=bool)
    used[features.indices[features.present]] = True
    return used


def _names(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
