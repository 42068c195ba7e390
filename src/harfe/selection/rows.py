"""Scores of scikit-learn for predictions that are already there."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring

from harfe.selection.race import Data, Scoring


class _Fixed(RegressorMixin, BaseEstimator):
    """Stands in for an estimator whose prediction is known, for scorers of scikit-learn."""

    def __init__(self, prediction: NDArray[Any]) -> None:
        self._prediction = prediction

    def predict(self, X: Any) -> NDArray[Any]:
        return self._prediction


@dataclass(frozen=True)
class Score:
    """A scorer of scikit-learn, bound to the rows."""

    scorer: Any
    data: Data
    flat: bool
    weighted: bool

    def __call__(self, prediction: NDArray[Any], rows: NDArray[np.intp]) -> float:
        """Score of a prediction for these rows, larger is better."""
        y = self.data.y[rows]
        if self.flat:
            y, prediction = y[:, 0], prediction[:, 0]
        extra = {"sample_weight": self.data.weights[rows]} if self.weighted else {}
        return float(self.scorer(_Fixed(prediction), self.data.X[rows], y, **extra))


def make_scoring(estimator: Any, data: Data, y_ndim: int) -> Scoring | None:
    """What `scoring` of an estimator asks for; None is the mean squared error."""
    if estimator.scoring is None:
        return None
    scorer = check_scoring(estimator, estimator.scoring)
    takes = inspect.signature(scorer).parameters
    weighted = bool(np.any(data.weights != 1)) and "sample_weight" in takes
    return Score(scorer, data, y_ndim == 1, weighted)
