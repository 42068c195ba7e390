"""Measure the error of a model on unseen rows, and that of a linear model and of the mean.

Nothing else measures it: the command line prints these numbers, a table model keeps them in
``meta["error"]``, and the report page shows them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import Fold, make_folds
from harfe.tables.rows import TrainingRows

#: Rows behind an error: set aside before the fit, left out by the fit fold by fold, from another
#: table, or those of the fit.
HELD_OUT, OUT_OF_FOLD, GIVEN, TRAINING = "held-out", "out-of-fold", "given", "training"

#: Models that are compared; the null model predicts the mean of the target.
THIS, LINEAR, NULL = "this model", "linear model", "null model"

#: Default number of folds, which is also that of the estimators.
FOLDS = 5

Measures = dict[str, float | None]


class Rows(Protocol):
    """Inputs, one target and weights; None means equal weights."""

    @property
    def X(self) -> NDArray[np.float64]: ...  # noqa: D102

    @property
    def y(self) -> NDArray[np.float64]: ...  # noqa: D102

    @property
    def weights(self) -> NDArray[np.float64] | None: ...  # noqa: D102


def judge(
    model: Any, rows: Rows, held_out: Rows | None = None, target: int = 0
) -> dict[str, Any] | None:
    """Measure the error of a model on unseen rows, and that of a linear model and of the mean.

    Parameters
    ----------
    model : HARFERegressor or HARFERegressorCV
        Fitted to `rows`.
    rows, held_out : rows
        Rows of the fit, and rows set aside before it, if any. Without the latter, the out-of-fold
        residuals of the fit are used, and the simple models are fitted without the same folds
        (five folds if those of the fit cannot be recreated because it was given groups or an
        iterator).
    target : int, default=0
        Index of the model's target that `rows` holds.

    Returns
    -------
    dict or None
        Ready for JSON: ``kind`` ("held-out" or "out-of-fold"), the number of ``rows`` and, if
        out-of-fold, of ``folds``; in ``models``, the root mean square error ``rmse``, the mean
        absolute error ``mae`` (None if the fit did not keep it) and ``r2`` of each of the three
        models. None if the model was fitted without folds and no rows were held out.
    """
    if held_out is not None:
        simple = {LINEAR: fit_linear(rows), NULL: fit_mean(rows)}
        predicted = {name: fitted.predict(held_out.X) for name, fitted in simple.items()}
        models = {
            name: measures(held_out.y, prediction, held_out.weights)
            for name, prediction in {THIS: _predict(model, held_out, target), **predicted}.items()
        }
        return {"kind": HELD_OUT, "rows": len(held_out.y), "models": models}
    uncertainty = model.uncertainty_
    if uncertainty is None or uncertainty.mean_square is None:
        return None
    folds = _folds_of(model, rows)
    # A search that was cut short has residuals of the first folds only.
    sizes = np.cumsum([len(out) for _, out in folds])
    folds = folds[: 1 + int(np.searchsorted(sizes, len(uncertainty.scores)))]
    square = float(uncertainty.mean_square[target])
    spread = _mean_square(rows.y - np.average(rows.y, weights=rows.weights), rows.weights)
    mine: Measures = {"rmse": float(np.sqrt(square)), "mae": None, "r2": _r2(square, spread)}
    return {
        "kind": OUT_OF_FOLD,
        "rows": sum(len(out) for _, out in folds),
        "folds": len(folds),
        "models": {THIS: mine, **_simple_out_of_fold(rows, folds)},
    }


def stored(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the result of `judge` from the fit; None if missing or from an older version."""
    error = meta.get("error")
    return error if error and "models" in error else None


def judge_on(model: Any, rows: Rows, target: int = 0) -> dict[str, Measures]:
    """Measure errors on another table; the simple models are cross-validated there."""
    mine = measures(rows.y, _predict(model, rows, target), rows.weights)
    return {THIS: mine, **_simple_out_of_fold(rows, _folds(FOLDS, rows, model.seed_))}


def judge_training(model: Any, rows: Rows, target: int = 0) -> dict[str, Measures]:
    """Measure errors on the rows that all three models were fitted to."""
    predictions = {
        THIS: _predict(model, rows, target),
        LINEAR: fit_linear(rows).predict(rows.X),
        NULL: fit_mean(rows).predict(rows.X),
    }
    return {name: measures(rows.y, p, rows.weights) for name, p in predictions.items()}


def measures(
    y: NDArray[np.float64],
    prediction: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> Measures:
    """Return root mean square error, mean absolute error, and R² about the mean of these rows."""
    gap = y - prediction
    square = _mean_square(gap, weights)
    spread = _mean_square(y - np.average(y, weights=weights), weights)
    return {
        "rmse": float(np.sqrt(square)),
        "mae": float(np.average(np.abs(gap), weights=weights)),
        "r2": _r2(square, spread),
    }


def no_better_than(models: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the simplest model with no larger error, `NULL` or `LINEAR`; None if this is best."""
    for name in (NULL, LINEAR):
        if models[THIS]["rmse"] >= models[name]["rmse"]:
            return name
    return None


def linear_model() -> Any:
    """Return the unfitted linear model that serves as a baseline.

    Ridge regression on standardised inputs; the penalty, from 1e-6 to 1e6, minimises the
    leave-one-out error.
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 6, 25)))


def fit_linear(rows: Rows) -> Any:
    """Fit `linear_model`, with row weights in the standardisation and the regression."""
    with warnings.catch_warnings():
        # Inputs that are constant in a fold, or more inputs than rows: not the user's concern.
        warnings.simplefilter("ignore")
        return linear_model().fit(
            rows.X,
            rows.y,
            standardscaler__sample_weight=rows.weights,
            ridgecv__sample_weight=rows.weights,
        )


def fit_mean(rows: Rows) -> Any:
    """Fit the null model: the weighted mean of the target."""
    from sklearn.dummy import DummyRegressor

    return DummyRegressor().fit(rows.X, rows.y, rows.weights)


def _simple_out_of_fold(rows: Rows, folds: Sequence[Fold]) -> dict[str, Measures]:
    """Measure the simple models, each row predicted by models fitted without its fold."""
    every = np.arange(len(rows.y))
    # Folds number only the rows of positive weight.
    rows = TrainingRows(rows.X, rows.y, rows.weights, every).take(every[_counted(rows)])
    held_out = rows.take(np.concatenate([out for _, out in folds]))
    predictions: dict[str, list[NDArray[np.float64]]] = {LINEAR: [], NULL: []}
    for train, out in folds:
        for name, fit in ((LINEAR, fit_linear), (NULL, fit_mean)):
            predictions[name].append(fit(rows.take(train)).predict(rows.X[out]))
    return {
        name: measures(held_out.y, np.concatenate(parts), held_out.weights)
        for name, parts in predictions.items()
    }


def _folds_of(model: Any, rows: Rows) -> list[Fold]:
    """Return the folds behind the out-of-fold residuals of a fit."""
    cv = getattr(model, "residual_cv", getattr(model, "cv", None))
    return _folds(FOLDS if cv is None else cv, rows, model.seed_)


def _folds(cv: Any, rows: Rows, seed: int) -> list[Fold]:
    for choice in (cv, FOLDS):
        try:
            return make_folds("cv", choice, rows.X, rows.y, seed, counted=_counted(rows))
        except ValueError:
            continue
    # All rows are equal: none can be held out.
    every = np.arange(np.count_nonzero(_counted(rows)))
    return [(every, every)]


def _counted(rows: Rows) -> NDArray[np.bool_]:
    if rows.weights is None:
        return np.ones(len(rows.y), dtype=bool)
    return np.asarray(rows.weights > 0)


def _predict(model: Any, rows: Rows, target: int) -> NDArray[np.float64]:
    prediction: NDArray[np.float64] = model.expansion_.predict(rows.X)[:, target]
    return prediction


def _mean_square(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(np.average(values**2, weights=weights))


def _r2(square: float, spread: float) -> float | None:
    return 1 - square / spread if spread > 0 else None
