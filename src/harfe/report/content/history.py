"""How a model was found: rounds of the pursuit, error by number of features, laws tried."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.report.content.rows import ReportRows
from harfe.selection.recipe import Posed, recipe_of, refit
from harfe.solvers.path import sparsity_path

KINDS = {
    "data": "chosen on the data",
    "matched": "matched to the dense reference",
    "refined": "matched, with trained weights",
}

# Pools of a search that a drawing can hold as lines of their own.
_MOST_LINES = 4

# Rows on which a path is computed anew.
_PATH_ROWS = 5000


def convergence(model: Any) -> dict[str, Any]:
    """Objective and residual of every round."""
    # A match has no objective, only one round.
    objective = np.asarray(model.history_.get("objective", ()), dtype=float)
    return {
        "objective": objective.tolist(),
        "relative_residual": np.asarray(model.history_["relative_residual"], float).tolist(),
        "best_round": int(np.argmin(objective)) + 1 if len(objective) else 1,
        "stop_reason": model.stop_reason_.name,
        "advice": model.stop_reason_.value,
    }


def laws(model: Any) -> list[dict[str, Any]]:
    """Candidates for the law of the features and the held-out error of their dense solutions."""
    learned = getattr(model, "learned_law_", None)
    if learned is None:
        return []
    used = learned.candidate.split(" + ")
    return [
        {"candidate": name, "rmse": float(np.sqrt(error)), "used": name in used}
        for name, error in sorted(learned.errors.items(), key=lambda item: item[1])
    ]


def error_path(
    model: Any, rows: ReportRows, holdout: ReportRows | None, target: int
) -> dict[str, Any] | None:
    """Root mean square error against the number of features.

    A search has its own table of held-out errors. For a single fit the kept features are pruned one
    after the other, each time with a ridge solution on those that stay.
    """
    if hasattr(model, "mse_path_"):
        return _searched(model)
    if len(model.expansion_.coef) > 1 or len(model.expansion_.features) < 2:
        return None
    return _pruned(model, rows, holdout)


def _searched(model: Any) -> dict[str, Any]:
    mse = np.asarray(model.mse_path_, dtype=float)
    # Cells that ran on fewer folds than others cannot be compared with them.
    folds = np.isfinite(mse).sum(axis=3)
    complete = folds == folds.max()
    mean = np.where(complete, _nanmean(mse), np.nan)
    spread = np.where(complete, _nanstd(mse), np.nan) / np.sqrt(max(int(folds.max()), 1))
    chosen = _chosen_pool(model)
    lines = [_line(model, mean[p], spread[p], name) for p, name in enumerate(_pool_names(model))]
    if len(lines) > _MOST_LINES:
        others = [p for p in range(len(lines)) if p != chosen]
        best = _line(model, *_best_of(mean[others], spread[others]), "best of the other pools")
        lines, chosen = [lines[chosen], best], 0
    return {
        "rows": "held-out folds",
        "several_targets": len(model.expansion_.coef) > 1,
        "lines": [{**line, "chosen": p == chosen} for p, line in enumerate(lines) if line["size"]],
        "chosen_size": int(model.n_nonzero_coefs_),
        "n_folds": int(folds.max()),
    }


def _pool_names(model: Any) -> list[str]:
    if getattr(model, "learned_law_", None) is not None:
        return [KINDS.get(kind, str(kind)) for kind in model.pools_]
    return [f"order {order}, scale {_scale(scale)}" for order, scale in model.pools_]


def _scale(scale: Any) -> str:
    return f"{scale:.3g}" if np.ndim(scale) == 0 else "of the law"


def _chosen_pool(model: Any) -> int:
    if getattr(model, "learned_law_", None) is not None:
        return list(model.pools_).index(model.fit_)
    for p, (order, scale) in enumerate(model.pools_):
        if np.array_equal(order, model.order_) and np.array_equal(scale, model.scale_):
            return p
    return 0


def _line(
    model: Any, mean: NDArray[np.float64], spread: NDArray[np.float64], name: str
) -> dict[str, Any]:
    """The best ridge weight at every size."""
    sizes, values, deviations = [], [], []
    for size, row, deviation in zip(model.sizes_, mean, spread, strict=True):
        if np.isfinite(row).any():
            best = int(np.nanargmin(row))
            root = float(np.sqrt(row[best]))
            sizes.append(int(size))
            values.append(root)
            # Of the root, to first order.
            deviations.append(float(deviation[best] / (2 * root)) if root > 0 else 0.0)
    return {"name": name, "size": sizes, "rmse": values, "standard_error": deviations}


def _best_of(
    mean: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For every size and ridge weight the best of several pools."""
    filled = np.where(np.isfinite(mean), mean, np.inf)
    place = np.argmin(filled, axis=0)[None]
    return (
        np.take_along_axis(mean, place, axis=0)[0],
        np.take_along_axis(spread, place, axis=0)[0],
    )


def _nanmean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    count = np.isfinite(values).sum(axis=3)
    return np.asarray(np.nansum(values, axis=3) / np.maximum(count, 1))


def _nanstd(values: NDArray[np.float64]) -> NDArray[np.float64]:
    gap = values - _nanmean(values)[..., None]
    count = np.isfinite(values).sum(axis=3)
    return np.sqrt(np.nansum(gap**2, axis=3) / np.maximum(count - 1, 1))


def _pruned(model: Any, rows: ReportRows, holdout: ReportRows | None) -> dict[str, Any]:
    some = rows.sample(_PATH_ROWS)
    judged = some if holdout is None else holdout.sample(_PATH_ROWS)
    s = len(model.expansion_.features)
    recipe = recipe_of(model, s)
    posed: Posed
    posed, _, _ = refit(
        model.expansion_,
        np.arange(s),
        some.X,
        some.y[:, None],
        some.weights,
        alpha=recipe.alpha,
        memory_budget=recipe.memory_budget,
        fit_intercept=recipe.fit_intercept,
        column_scale=recipe.column_scale,
    )
    path = sparsity_path(posed.problem, recipe.alpha)
    sizes, values = [], []
    for level in reversed(path.levels):
        function = posed.expansion(level.support, level.coef)
        gap = judged.y - function.predict(judged.X)[:, 0]
        sizes.append(len(level.support))
        values.append(float(np.sqrt(judged.share @ gap**2)))
    return {
        "rows": "training rows" if holdout is None else "held-out rows",
        "several_targets": False,
        "lines": [
            {
                "name": "kept features, pruned",
                "size": sizes,
                "rmse": values,
                "standard_error": None,
                "chosen": True,
            }
        ],
        "chosen_size": s,
        "n_folds": 0,
    }
