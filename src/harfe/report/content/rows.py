"""Rows of a report, checked once, and whether the model was fitted to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.validation import check_inputs, check_targets, check_weights, count_distinct
from harfe.explain.anova import check_target
from harfe.explain.inputs.summary import InputSummary
from harfe.tables.judging import stored
from harfe.tables.rows import TrainingRows, training_rows

# Sample size where a sample is enough, as for means of terms.
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
        """Check the arguments, and predict."""
        X = check_inputs(model, X, reset=False)
        y = check_targets(y, len(X))
        n_targets = len(model.expansion_.coef)
        if y.dtype.kind == "c" or model.expansion_.complex_output:
            raise ValueError("a report page needs real targets; this model or y is complex")
        y = y.reshape(len(y), -1)
        if y.shape[1] != n_targets:
            raise ValueError(
                f"y has {y.shape[1]} targets, but the model was fitted to {n_targets}; pass y of "
                f"shape (rows, {n_targets})"
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
        """Return some of the rows."""
        return ReportRows(self.X[rows], self.y[rows], self.weights[rows], self.prediction[rows])

    def sample(self, most: int = _SAMPLE) -> ReportRows:
        """Return at most `most` rows in order, the same ones every time."""
        if len(self) <= most:
            return self
        chosen = np.random.default_rng(0).choice(len(self), most, replace=False)
        return self.take(np.sort(chosen))

    def fingerprint(self, columns: Sequence[str]) -> str:
        """Return sixteen hexadecimal digits that depend on all values, weights and names."""
        digest = hashlib.sha256(json.dumps([self.X.shape, list(columns)]).encode())
        for array in (self.X, self.y, self.weights):
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()[:16]

    def are_those_of(self, model: Any, target: int) -> bool:
        """Whether these can be the rows of the fit: same distinct rows, ranges and mean."""
        kept: InputSummary = model.inputs_
        unit = float(np.sqrt(kept.variance_joint[target])) or 1.0
        mean = float(self.share @ model.expansion_.linear(self.X)[:, target])
        return bool(
            # The fit's weights sum to the number of its rows that differ, in any target.
            count_distinct(self.X, self.y) <= round(kept.total_weight) <= len(self)
            and np.allclose(self.X.min(axis=0), kept.lower)
            and np.allclose(self.X.max(axis=0), kept.upper)
            and abs(mean - float(np.real(kept.mean_prediction[target]))) < 1e-6 * unit
        )


@dataclass(frozen=True)
class Evidence:
    """The rows behind a report.

    Attributes
    ----------
    rows : ReportRows
        Those of the fit, or new ones.
    holdout : ReportRows or None
        Rows held out from the fit, to measure the error on.
    fitted : bool
        Whether `rows` are those of the fit.
    measured : mapping or None
        Error on unseen rows as a table model measured it when it was fitted to `rows`.
    """

    rows: ReportRows
    holdout: ReportRows | None
    fitted: bool
    measured: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_holdout: Any,
        y_holdout: Any,
        target: int,
    ) -> Evidence:
        """Check the arguments: arrays, or the table of a table model."""
        encoder = getattr(model, "encoder", None)
        estimator = model if encoder is None else model.model
        if not hasattr(estimator, "inputs_"):
            raise ValueError(
                f"{type(estimator).__name__} is not fitted; call fit(X, y) before the report"
            )
        check_target(estimator.expansion_, target)
        if y is None and encoder is not None:
            if X_holdout is not None or y_holdout is not None:
                raise ValueError(
                    "X_holdout needs y; with y=None the rows held out by the fit are used"
                )
            return cls._of_table(model, X)
        if (X_holdout is None) != (y_holdout is None):
            raise ValueError("X_holdout and y_holdout belong together; pass both or neither")
        if encoder is not None:
            X, X_holdout = (_encoded(encoder, table) for table in (X, X_holdout))
        rows = ReportRows.of(estimator, X, y, sample_weight, target)
        holdout = None
        if X_holdout is not None:
            holdout = ReportRows.of(estimator, X_holdout, y_holdout, None, target)
        return cls(rows, holdout, rows.are_those_of(estimator, target))

    @classmethod
    def _of_table(cls, model: Any, table: Any) -> Evidence:
        def checked(rows: TrainingRows) -> ReportRows:
            return ReportRows.of(model.model, rows.X, rows.y, rows.weights, 0)

        known = model.rows_of_fit(table)
        if known is None:
            return cls(checked(training_rows(model.encoder, table)), None, fitted=False)
        rows, held_out = known
        holdout = None if held_out is None else checked(held_out)
        return cls(checked(rows), holdout, fitted=True, measured=stored(model.meta))


def _encoded(encoder: Any, table: Any) -> Any:
    """Encode a table; arrays are already encoded."""
    if table is None or isinstance(table, np.ndarray):
        return table
    return encoder.encode(table)
