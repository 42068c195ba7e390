"""Every private or version-dependent scikit-learn name, in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.utils.validation import (
    _check_feature_names_in,
    validate_data,
)

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    HAS_CALLBACKS = True
except ImportError:  # pragma: no cover

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Placeholder for scikit-learn versions without callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method

    HAS_CALLBACKS = False

__all__ = [
    "HAS_CALLBACKS",
    "CallbackSupportMixin",
    "FitProgress",
    "boosted_leaves",
    "check_feature_names_in",
    "validate_data",
    "with_callbacks",
]

check_feature_names_in = _check_feature_names_in


def boosted_leaves(boosting: Any) -> int:
    """Leaves of all trees of a fitted HistGradientBoostingRegressor."""
    return sum(tree.get_n_leaf_nodes() for trees in boosting._predictors for tree in trees)


class FitProgress:
    """Reports every round of a fit to scikit-learn's callbacks, and whether one asks to stop.

    Does nothing in scikit-learn versions without callbacks.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, *, max_rounds: int
    ) -> None:
        self._context: Any = None
        self._round: Any = None
        if not HAS_CALLBACKS:  # pragma: no cover
            return
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._task = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        # One more than the rounds: the task opened after the last round is closed empty.
        self._context = estimator._init_callback_context(max_subtasks=max_rounds + 1)
        self._context.call_on_fit_task_begin(**self._task)
        self._open()

    def _open(self) -> None:
        self._round = self._context.subcontext(task_name="round")
        self._round.call_on_fit_task_begin(**self._task)

    def end_round(self, attributes: Callable[[], Mapping[str, Any]] | None) -> bool:
        """Close a round; `attributes` returns the fitted attributes if there is a model."""
        if self._context is None:  # pragma: no cover
            return False
        stop = self._round.call_on_fit_task_end(**self._task, reconstruction_attributes=attributes)
        self._open()
        return bool(stop)

    def close(self) -> None:
        """End the fit."""
        if self._context is not None:
            self._round.call_on_fit_task_end(estimator=self._task["estimator"])
            self._context.call_on_fit_task_end(**self._task, reconstruction_attributes={})
