"""The whole content of a report as one dictionary; `harfe.report.page.page` renders it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from harfe._core.table import jsonable
from harfe.explain.stability import Stability
from harfe.features.activations import ACTIVATIONS
from harfe.model.formula import formula, link_formula
from harfe.report.content.cautions import cautions
from harfe.report.content.components import drawn_components, explanation
from harfe.report.content.errors import GIVEN, HELD_OUT, TRAINING, distribution, errors, scatter
from harfe.report.content.history import KINDS, convergence, error_path, laws, samples
from harfe.report.content.rows import Evidence, ReportRows
from harfe.report.content.whatif import what_if

FORMAT = "harfe report 1"

_DIGITS = 4


def summarise(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    X_holdout: Any = None,
    y_holdout: Any = None,
    target_name: str | None = None,
    target: int = 0,
    stability: Stability | None = None,
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Collect the content of a report about a fitted model.

    Parameters
    ----------
    model : HARFERegressor, HARFERegressorCV, or a table model that wraps one
        Fitted to real targets.
    X, y : arrays of shape (rows, inputs) and (rows,)
        The rows of the fit, or new ones. For a table model, X may be a table, and with y=None the
        target is one of its columns. If it is the table of the fit, the rows of the fit are
        recognised, and the errors are those that the fit measured.
    sample_weight : array of shape (rows,), default=None
        Weights of these rows in the fit.
    X_holdout, y_holdout : arrays, default=None
        Rows that the model has not seen. Without them, and if X are the rows of the fit, errors
        come from its out-of-fold residuals or, failing that, from its own rows; the page says
        which.
    target_name : str, default=None
        None means the target of a table model, or "y".
    target : int, default=0
        Index of the target, if there are several.
    stability : Stability, default=None
        Result of ``model.stability(X, y)``, to warn of terms that are rarely kept.
    meta : dict, default=None
        Further facts to show: source, command, ... None takes those of a table model. The entry
        ``created`` replaces the current time.

    Returns
    -------
    dict
        Only strings, numbers, None, lists and dictionaries; no NaN.
    """
    found = Evidence.of(model, X, y, sample_weight, X_holdout, y_holdout, target)
    rows, holdout, fitted = found.rows, found.holdout, found.fitted
    encoder = getattr(model, "encoder", None)
    if encoder is not None:
        target_name = encoder.target if target_name is None else target_name
        meta = _facts(model.meta) if meta is None else meta
        model = model.model
    judged, where = (holdout, HELD_OUT) if holdout is not None else (rows, TRAINING)
    if holdout is None and not fitted:
        where = GIVEN
    measured = errors(model, rows, holdout, target, fitted=fitted, measured=found.measured)
    explained = explanation(model, target)
    target_name = "y" if target_name is None else str(target_name)
    expansion, link = model.expansion_, model.expansion_.link
    facts = dict(meta or {})
    summary = {
        "format": FORMAT,
        "target": target_name,
        "scale": target_name if link is None else link.label(target_name),
        "from_scale": None if link is None else link_formula(link, target_name, _DIGITS),
        "created": str(facts.pop("created", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))),
        "model": _model(model, target),
        "data": _data(model, rows, holdout)
        | {"fitted": fitted, "n_fitted": float(model.inputs_.total_weight)},
        "errors": measured,
        "scatter": scatter(judged, where),
        "distribution": distribution(judged, where),
        "convergence": convergence(model),
        "laws": laws(model),
        "samples": samples(model, rows if fitted else None),
        "path": error_path(model, rows, holdout, target),
        "explanation": explained,
        "drawn": drawn_components(model, rows, target),
        "what_if": what_if(model, rows, target, encoder),
        # With a link, that of the sum, which `from_scale` turns into the prediction.
        "formula": formula(replace(expansion, link=None), "text", _DIGITS, target),
        "inputs": _inputs(model),
        "stability": None if stability is None else stability.to_dict(),
        "cautions": cautions(
            model,
            rows,
            holdout,
            fitted=fitted,
            errors=measured,
            dependence=explained["dependence"],
            stability=stability,
            target=target,
        ),
        "settings": _settings(model),
        "versions": {
            name: version(name) for name in ("harfe", "numpy", "scipy", "scikit-learn", "numba")
        }
        | {"python": platform.python_version()},
        "meta": {str(name): _plain(value) for name, value in facts.items()},
    }
    return _finite(summary)


def _facts(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a table model's fit that the page does not show elsewhere."""
    return {
        name: value
        for name, value in meta.items()
        if value is not None and name not in ("error", "target")
    }


def _model(model: Any, target: int) -> dict[str, Any]:
    expansion = model.expansion_
    features = expansion.features
    used = features.indices[features.present]
    orders = features.present.sum(axis=1)
    learned = getattr(model, "learned_law_", None)
    return {
        "class": type(model).__name__,
        "activation": features.activation,
        "waves": ACTIVATIONS[features.activation].noun + "s",
        "n_features": len(features),
        "n_drawn": int(model.n_components_),
        "n_terms": len(model.term_names_),
        "n_inputs_used": len(np.unique(used)),
        "orders": sorted({int(q) for q in orders}),
        "alpha": float(model._ridge()[0]),
        "fit": KINDS.get(getattr(model, "fit_", "data"), ""),
        "law": None if learned is None else learned.candidate,
        "noise_share": None if learned is None else float(learned.noise),
        "seed": int(model.seed_),
        "target": target,
        "n_targets": len(expansion.coef),
    }


def _data(model: Any, rows: ReportRows, holdout: ReportRows | None) -> dict[str, Any]:
    columns = model.expansion_.columns
    mean = float(rows.share @ rows.y)
    deviation = float(np.sqrt(rows.share @ (rows.y - mean) ** 2))
    return {
        "n_rows": len(rows),
        "total_weight": float(rows.weights.sum()),
        "weighted": bool(np.any(rows.weights != 1)),
        "n_inputs": len(columns),
        "fingerprint": rows.fingerprint(columns),
        "n_holdout": 0 if holdout is None else len(holdout),
        "fingerprint_holdout": None if holdout is None else holdout.fingerprint(columns),
        # The mean of a centred target is only rounding error.
        "target_mean": 0.0 if abs(mean) < 1e-12 * deviation else mean,
        "target_deviation": deviation,
        "target_lower": float(rows.y.min()),
        "target_upper": float(rows.y.max()),
    }


def _inputs(model: Any) -> list[dict[str, Any]]:
    kept, own = model.inputs_, model.expansion_.map
    features = model.expansion_.features
    used = set(features.indices[features.present].tolist())
    middle = len(kept.quantiles) // 2
    return [
        {
            "input": column,
            "lower": float(kept.lower[k]),
            "median": float(kept.quantiles[middle, k]),
            "upper": float(kept.upper[k]),
            "deviation": float(kept.deviation[k]),
            "used": k in used,
            "clip_lower": None if own is None else float(own.lower[k]),
            "clip_upper": None if own is None else float(own.upper[k]),
            "warp": None if own is None or not own.warped[k] else own.label(k, column),
        }
        for k, column in enumerate(model.expansion_.columns)
    ]


def _settings(model: Any) -> dict[str, str]:
    """Return the parameters that differ from the defaults, as in Python."""
    defaults = type(model)().get_params(deep=False)
    settings = {}
    for name, value in sorted(model.get_params(deep=False).items()):
        text = repr(value)
        if text != repr(defaults.get(name)):
            settings[name] = text if len(text) <= 200 else text[:197] + "..."
    return settings


def _plain(value: Any) -> Any:
    value = jsonable(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _finite(value: Any) -> Any:
    """Replace numbers that JSON does not have by None."""
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return jsonable(value)
