"""Rows of a search, and how predictions for held-out rows are scored."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring

from harfe._core.folds import Fold
from harfe._core.wording import plural
from harfe.model.link import Link

# A prediction and the held-out rows it is for -> a score; larger is better.
Scoring = Callable[[NDArray[Any], NDArray[np.intp]], float]


#: Below this weight of rows, luck of the folds decides too much: more of them are run.
FEW_ROWS = 300


@dataclass(frozen=True)
class Data:
    """Checked data: inputs, targets of shape (rows, targets), positive weights."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    weights: NDArray[np.float64]

    def take(self, rows: NDArray[np.intp]) -> Data:
        """Some of the rows."""
        return Data(self.X[rows], self.y[rows], self.weights[rows])

    def errors(self, predictions: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Mean squared error of predictions (rows, models, targets) for these rows."""
        return self.mean_squares(self.y[rows, None, :] - predictions, rows)

    def mean_squares(self, gaps: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Weighted mean square of gaps (rows, models, targets) for these rows.

        Several targets are taken in units of their deviation and averaged.
        """
        unit = np.ones(1)
        if self.y.shape[1] > 1:
            share = self.weights / self.weights.sum()
            unit = np.sqrt(share @ np.abs(self.y - share @ self.y) ** 2)
            unit = np.where(unit > 0, unit, 1.0)
        squares = np.abs(gaps / unit) ** 2
        means: NDArray[np.float64] = np.average(
            squares.mean(axis=2), axis=0, weights=self.weights[rows]
        )
        return means


def sample_fold(fold: Fold, most: int, seed: int) -> Fold:
    """Return a fold with at most this many training rows and as many held-out rows, at random."""
    rng = np.random.default_rng(seed)
    train, test = (
        rows if len(rows) <= most else np.sort(rng.permutation(rows)[:most]) for rows in fold
    )
    return train, test


def extent_of_sample(fold: Fold, data: Data) -> str:
    """State how many of the rows a model was fitted to, as a clause."""
    return f"the model is fitted to {len(fold[0])} of {plural(len(data.X), 'row')}"


class _Fixed(RegressorMixin, BaseEstimator):
    """Estimator with a known prediction, to be passed to scikit-learn's scorers."""

    def __init__(self, prediction: NDArray[Any]) -> None:
        self._prediction = prediction

    def predict(self, X: Any) -> NDArray[Any]:
        return self._prediction


@dataclass(frozen=True)
class Score:
    """A scikit-learn scorer, bound to the rows; with a link, of predictions on its scale."""

    scorer: Any
    data: Data
    flat: bool
    weighted: bool
    link: Link | None = None

    def __call__(self, prediction: NDArray[Any], rows: NDArray[np.intp]) -> float:
        """Score of a prediction for these rows; larger is better."""
        y = self.data.y[rows]
        if self.link is not None:
            prediction = self.link.inverse(prediction)
        if self.flat:
            y, prediction = y[:, 0], prediction[:, 0]
        extra = {"sample_weight": self.data.weights[rows]} if self.weighted else {}
        return float(self.scorer(_Fixed(prediction), self.data.X[rows], y, **extra))


def make_scoring(
    estimator: Any, data: Data, y_ndim: int, link: Link | None = None
) -> Scoring | None:
    """Return the score that an estimator's `scoring` names; None means mean squared error.

    The targets of `data` are in the user's units, predictions are on the scale of the link.
    """
    if estimator.scoring is None:
        return None
    scorer = check_scoring(estimator, estimator.scoring)
    takes = inspect.signature(scorer).parameters
    weighted = bool(np.any(data.weights != 1)) and "sample_weight" in takes
    return Score(scorer, data, y_ndim == 1, weighted, link)
