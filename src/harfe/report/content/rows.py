"""Rows of a report, checked once: inputs, one target, weights, what the model predicts for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.validation import check_inputs, check_targets, check_weights
from harfe.explain.inputs.summary import InputSummary

# Rows that are looked at where a sample tells as much: means of terms, paths, clouds of points.
_SAMPLE = 20_000


@dataclass(frozen=True)
class ReportRows:
    """Rows with one target.

    Attributes
    ----------
    X : array of shape (rows, inputs)
    y : array of shape (rows,)
    weights : array of shape (rows,)
        Positive: rows of weight 0 are left out.
    prediction : array of shape (rows,)
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    prediction: NDArray[np.float64]

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, sample_weight: Any, target: int) -> ReportRows:
        """Check what the user passed, and predict."""
        X = check_inputs(model, X, reset=False)
        y = check_targets(y, len(X))
        n_targets = len(model.expansion_.coef)
        if y.dtype.kind == "c" or model.expansion_.complex_output:
            raise ValueError("a report page is for real targets; this model or y is complex")
        y = y.reshape(len(y), -1)
        if y.shape[1] != n_targets:
            raise ValueError(
                f"y has {y.shape[1]} targets, but the model was fitted to {n_targets}; pass those"
            )
        weights = check_weights(sample_weight, X) if sample_weight is not None else np.ones(len(X))
        counted = weights > 0
        X, y, weights = X[counted], y[counted, target], weights[counted]
        return cls(X, y, weights, model.expansion_.predict(X)[:, target])

    def __len__(self) -> int:
        return len(self.y)

    @property
    def residual(self) -> NDArray[np.float64]:
        """Observed minus predicted."""
        return self.y - self.prediction

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """Weights that sum to one."""
        return np.asarray(self.weights / self.weights.sum())

    def take(self, rows: NDArray[np.intp]) -> ReportRows:
        """Some of the rows."""
        return ReportRows(self.X[rows], self.y[rows], self.weights[rows], self.prediction[rows])

    def sample(self, most: int = _SAMPLE) -> ReportRows:
        """At most so many rows, the same ones every time, in their order."""
        if len(self) <= most:
            return self
        chosen = np.random.default_rng(0).choice(len(self), most, replace=False)
        return self.take(np.sort(chosen))

    def fingerprint(self, columns: Sequence[str]) -> str:
        """Sixteen hexadecimal digits that change with any number, weight or name."""
        digest = hashlib.sha256(json.dumps([self.X.shape, list(columns)]).encode())
        for array in (self.X, self.y, self.weights):
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()[:16]

    def are_those_of(self, kept: InputSummary, target: int) -> bool:
        """Whether these can be the rows that a fit has seen: same weight, ranges and mean."""
        unit = float(np.sqrt(kept.variance_joint[target])) or 1.0
        mean = float(self.share @ self.prediction)
        return bool(
            np.isclose(self.weights.sum(), kept.total_weight)
            and np.allclose(self.X.min(axis=0), kept.lower)
            and np.allclose(self.X.max(axis=0), kept.upper)
            and abs(mean - float(np.real(kept.mean_prediction[target]))) < 1e-6 * unit
        )
