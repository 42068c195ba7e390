"""How a model was fitted: rounds of the pursuit, error by number of features, laws tried."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.learning.candidates import sampling_notes
from harfe.report.content.rows import ReportRows
from harfe.selection.recipe import Posed
from harfe.selection.results import error_paths
from harfe.solvers.path import sparsity_path

KINDS = {
    "data": "chosen on the data",
    "matched": "matched to the dense reference",
    "refined": "matched, with trained weights",
}

# Up to this many pools of a search get a line each; of more, the chosen one and the best other.
_MOST_LINES = 4
_OTHERS = "best of the other pools"

# Maximum number of rows to compute a path on.
_PATH_ROWS = 5000


def convergence(model: Any) -> dict[str, Any]:
    """Return objective and residual of every round."""
    # A matched model has no objective and only one round.
    objective = np.asarray(model.history_.get("objective", ()), dtype=float)
    return {
        "objective": objective.tolist(),
        "relative_residual": np.asarray(model.history_["relative_residual"], float).tolist(),
        "best_round": int(np.argmin(objective)) + 1 if len(objective) else 1,
        "stop_reason": model.stop_reason_.name,
        "advice": model.stop_reason_.value,
    }


def laws(model: Any) -> list[dict[str, Any]]:
    """Return the candidate laws and the held-out errors of their dense solutions."""
    learned = getattr(model, "learned_law_", None)
    if learned is None:
        return []
    used = learned.candidate.split(" + ")
    return [
        {"candidate": name, "rmse": float(np.sqrt(error)), "used": name in used}
        for name, error in sorted(learned.errors.items(), key=lambda item: item[1])
    ]


def samples(model: Any, rows: ReportRows | None) -> list[str]:
    """State which parts of learning the law used a sample of the rows of the fit, if known."""
    if getattr(model, "learned_law_", None) is None:
        return []
    n_rows = round(model.inputs_.total_weight) if rows is None else len(rows)
    return sampling_notes(n_rows)


def error_path(
    model: Any, rows: ReportRows, holdout: ReportRows | None, target: int
) -> dict[str, Any] | None:
    """Return the root mean square error by number of features.

    A search has its own table of held-out errors. For a single fit, the kept features are pruned
    step by step, with a ridge solution on the remaining ones at each step.
    """
    if hasattr(model, "mse_path_"):
        return _searched(model)
    if len(model.expansion_.coef) > 1 or len(model.expansion_.features) < 2:
        return None
    return _pruned(model, rows, holdout)


def _searched(model: Any) -> dict[str, Any]:
    paths = error_paths(model)
    # Pools that ran on fewer folds than others are not comparable.
    n_folds = int(paths.n_folds.max())
    mean = np.where(paths.n_folds == n_folds, paths.mean, np.nan)
    spread = paths.standard_error
    names = [KINDS.get(name, name) for name in paths.names]
    chosen = paths.chosen[0]
    lines = [_line(paths.sizes, *line) for line in zip(mean, spread, names, strict=True)]
    if len(lines) > _MOST_LINES:
        others = np.delete(np.arange(len(lines)), chosen)
        best = _line(paths.sizes, *_best_of(mean[others], spread[others]), _OTHERS)
        lines, chosen = [lines[chosen], best], 0
    return {
        "rows": "held-out folds",
        "several_targets": len(model.expansion_.coef) > 1,
        "lines": [{**line, "chosen": p == chosen} for p, line in enumerate(lines) if line["size"]],
        "chosen_size": int(model.n_nonzero_coefs_),
        "n_folds": n_folds,
    }


def _line(
    sizes: NDArray[np.int_], mean: NDArray[np.float64], spread: NDArray[np.float64], name: str
) -> dict[str, Any]:
    """Return the root mean square error of every size that was run, with its standard error."""
    run = np.isfinite(mean)
    root = np.sqrt(mean[run])
    # To first order; 0 if unknown, as for a single fold.
    known = np.isfinite(spread[run]) & (root > 0)
    error = np.divide(spread[run], 2 * root, out=np.zeros_like(root), where=known)
    return {
        "name": name,
        "size": sizes[run].tolist(),
        "rmse": root.tolist(),
        "standard_error": error.tolist(),
    }


def _best_of(
    mean: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the best of several pools for every size."""
    place = np.argmin(np.where(np.isfinite(mean), mean, np.inf), axis=0)[None]
    return (
        np.take_along_axis(mean, place, axis=0)[0],
        np.take_along_axis(spread, place, axis=0)[0],
    )


def _pruned(model: Any, rows: ReportRows, holdout: ReportRows | None) -> dict[str, Any]:
    some = rows.sample(_PATH_ROWS)
    judged = some if holdout is None else holdout.sample(_PATH_ROWS)
    s = len(model.expansion_.features)
    posed: Posed
    link = model.expansion_.link
    y, judged_y = (r.y if link is None else link.forward(r.y) for r in (some, judged))
    posed, _, _ = model._refit(np.arange(s), some.X, y[:, None], some.weights)
    path = sparsity_path(posed.problem, alpha=model._ridge()[0])
    sizes, values = [], []
    for level in reversed(path.levels):
        function = posed.expansion(level.support, level.scaled_coef)
        gap = judged_y - function.predict(judged.X)[:, 0]
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
