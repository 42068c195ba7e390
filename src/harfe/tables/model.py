"""Models that predict from tables: an encoder, and an estimator fitted to the encoded rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import is_whole
from harfe.tables.columns import Frame, Hint, TableError, as_frame
from harfe.tables.encoder import TableEncoder
from harfe.tables.judging import FOLDS, judge
from harfe.tables.rows import TrainingRows, fingerprint, training_rows

if TYPE_CHECKING:
    from harfe.explain.local import LocalExplanation
    from harfe.explain.overall import Explanation
    from harfe.explain.partial import PartialDependence


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator that predicts from tables like the one it was fitted to.

    Attributes that end in an underscore, such as ``expansion_`` and ``feature_importances_``, are
    those of the estimator.

    Attributes
    ----------
    encoder : TableEncoder
    model : HARFERegressor or HARFERegressorCV
        Fitted to the encoded table.
    meta : mapping
        Facts about the fit, ready for JSON: name of the file, number of rows, error, and so on.

    Examples
    --------
    >>> from harfe import HARFERegressor
    >>> from harfe.tables import TableModel
    >>> table = {"size": [1, 2, 3, 4], "color": ["red", "blue", "red", "blue"], "y": [1, 3, 3, 5]}
    >>> model = TableModel.fit(table, "y", HARFERegressor(20, 4, random_state=0))
    >>> model.encoder.columns_out
    ('size', 'color=red')
    >>> len(model.predict({"size": [2.5], "color": ["red"]}))
    1
    """

    encoder: TableEncoder
    model: Any
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        table: Any,
        target: str,
        estimator: Any = None,
        *,
        drop: Sequence[str] = (),
        categories: Sequence[str] = (),
        missing: str = "error",
        na: Sequence[str] = (),
        weight: str | None = None,
        holdout: float | None = None,
        seed: int = 0,
    ) -> TableModel:
        """Learn the encoding of a table, fit a model to it, and measure its error on unseen rows.

        Parameters
        ----------
        table : mapping of columns, pandas or polars frame, pyarrow table, or read_table(...)
        target : str
            Column to predict.
        estimator : HARFERegressor or HARFERegressorCV, default=None
            Fitted in place; None means HARFERegressorCV().
        drop, categories, missing, na
            As in :meth:`TableEncoder.learn`.
        weight : str, default=None
            Column with the weight of each row.
        holdout : float, default=None
            Share of the rows to hold out from the fit and measure the error on. Without it, the
            error comes from the folds of the estimator, if it has any.
        seed : int, default=0
            Determines which rows are held out.

        Returns
        -------
        TableModel
            ``meta["error"]`` is the result of `harfe.tables.judging.judge`.

        Raises
        ------
        TableError
            If the table cannot be used as it is; the message says what to pass.
        """
        frame = as_frame(table)
        dropped = [*([drop] if isinstance(drop, str) else drop), *([weight] if weight else [])]
        encoder = TableEncoder.learn(frame, target, dropped, categories, missing, na)
        return cls.fit_with(encoder, frame, estimator, weight=weight, holdout=holdout, seed=seed)

    @classmethod
    def fit_with(
        cls,
        encoder: TableEncoder,
        table: Any,
        estimator: Any = None,
        *,
        weight: str | None = None,
        holdout: float | None = None,
        seed: int = 0,
    ) -> TableModel:
        """Fit as :meth:`fit` does, with an encoder that is already learned."""
        if estimator is None:
            from harfe.estimators.regressor_cv import HARFERegressorCV

            estimator = HARFERegressorCV()
        frame = as_frame(table)
        rows, held_out = training_rows(encoder, frame, weight).split(holdout, seed)
        _check_rows(rows, encoder.target, estimator)
        estimator.fit(rows.X, rows.y, sample_weight=rows.weights)
        meta = {
            "target": encoder.target,
            "source": None if frame.source == Frame.source else frame.source,
            "rows": len(rows.y),
            "table_rows": len(frame),
            "fingerprint": fingerprint(frame),
            "weight": weight,
            "holdout": holdout,
            "seed": seed,
            "error": judge(estimator, rows, held_out),
        }
        return cls(encoder, name_inputs(estimator, encoder.columns_out), meta)

    def rows_of_fit(self, table: Any) -> tuple[TrainingRows, TrainingRows | None] | None:
        """Return the rows fitted and the rows held out; None if this is not the fitted table."""
        frame = as_frame(table)
        if self.meta.get("fingerprint") != fingerprint(frame):
            return None
        rows = training_rows(self.encoder, frame, self.meta.get("weight"))
        return rows.split(self.meta.get("holdout"), self.meta.get("seed", 0))

    def predict(
        self,
        table: Any,
        return_std: bool = False,
        interval: float | None = None,
        missing: str | None = None,
    ) -> Any:
        """Predict every row of a table; columns that the model does not use are ignored.

        Parameters
        ----------
        table : mapping of columns, pandas or polars frame, pyarrow table, or array
        return_std, interval
            As for the estimator.
        missing : {"error", "drop", "median"}, default=None
            None treats missing values as in training; with "drop", their rows get NaN.

        Returns
        -------
        prediction : array of shape (rows,)
        std, or lower and upper : arrays like `prediction`
            Only with `return_std`, or with `interval`.
        """
        return self.predict_encoded(self.encoder.encode(table, missing), return_std, interval)

    def predict_encoded(
        self, X: NDArray[np.float64], return_std: bool = False, interval: float | None = None
    ) -> Any:
        """Predict encoded rows; those that contain NaN get NaN."""
        whole: NDArray[np.bool_] = np.asarray(~np.isnan(X).any(axis=1))
        if whole.all() and len(X):
            return self.model.predict(X, return_std=return_std, interval=interval)
        # Without any complete row, a row of zeros gives the shape of the result.
        known = X[whole] if whole.any() else np.zeros((1, X.shape[1]))
        answers = self.model.predict(known, return_std=return_std, interval=interval)
        parts = answers if isinstance(answers, tuple) else (answers,)
        filled = tuple(_spread(part, whole) for part in parts)
        return filled if isinstance(answers, tuple) else filled[0]

    def score(self, table: Any) -> float:
        """Return R² of the prediction on a table that has the target."""
        rows = training_rows(self.encoder, table)
        return float(self.model.score(rows.X, rows.y))

    def explain(self, table: Any = None, **settings: Any) -> Explanation:
        """Compute which inputs and interactions matter; see the estimator's method."""
        X = None if table is None else self._complete(table)
        explanation: Explanation = self.model.explain(X, **settings)
        return explanation

    def explain_local(self, table: Any, **settings: Any) -> LocalExplanation:
        """Compute what each input adds to each prediction; see the estimator's method."""
        X = self.encoder.encode(table)
        local: LocalExplanation = self.model.explain_local(X, **settings)
        return local

    def partial_dependence(self, inputs: Any, table: Any = None, **s: Any) -> PartialDependence:
        """Average the prediction with some inputs set to a grid; see the estimator's method."""
        X = None if table is None else self._complete(table)
        dependence: PartialDependence = self.model.partial_dependence(inputs, X, **s)
        return dependence

    def formula(self, precision: int = 3, kind: str = "text", target: int = 0) -> Any:
        """Return the fitted function as a formula; see the estimator's method."""
        return self.model.formula(precision, kind, target)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write encoder and model to a file, which `harfe.load` reads."""
        from harfe.files import save

        save(self, path)

    def to_onnx(
        self,
        path: str | os.PathLike[str] | None = None,
        dtype: str = "float64",
        terms: bool = False,
    ) -> Any:
        """Write encoder and model as an ONNX graph; see :func:`harfe.files.onnx.to_onnx`."""
        from harfe.files.onnx import to_onnx

        return to_onnx(self, path, dtype, terms)

    def _complete(self, table: Any) -> NDArray[np.float64]:
        X = self.encoder.encode(table)
        return np.ascontiguousarray(X[~np.isnan(X).any(axis=1)])

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling look up attributes before `model` is set.
        if name.endswith("_") and not name.startswith("_") and "model" in self.__dict__:
            return getattr(self.model, name)
        raise AttributeError(f"'TableModel' object has no attribute {name!r}")


def _check_rows(rows: TrainingRows, target: str | None, estimator: Any) -> None:
    """Refuse rows that nothing can be learned from."""
    if not rows.y.max() > rows.y.min():
        raise TableError(
            f"the target {target!r} is {rows.y[0]:g} in every row, so there is nothing to learn: "
            "choose another column"
        )
    argument = "cv" if hasattr(estimator, "cv") else "residual_cv"
    folds = getattr(estimator, argument)
    if folds is None and argument == "cv":
        folds = FOLDS
    if is_whole(folds) and len(rows.y) < 2 * folds:
        more = ", or pass {fewer}" if len(rows.y) >= 4 else ""
        raise TableError(
            f"{len(rows.y)} rows are too few for {folds} folds: add rows{more}",
            fewer=Hint(argument, 2, "cv"),
        )


def _spread(values: NDArray[Any], whole: NDArray[np.bool_]) -> NDArray[Any]:
    out = np.full((len(whole), *values.shape[1:]), np.nan, dtype=values.dtype)
    out[whole] = values[: np.count_nonzero(whole)]
    return out


def name_inputs(model: Any, names: Sequence[str]) -> Any:
    """Name the inputs of a model that was fitted to an array; return the model."""
    names = tuple(names)
    model.expansion_ = replace(model.expansion_, columns=names)
    if getattr(model, "learned_law_", None) is not None:
        model.learned_law_ = replace(model.learned_law_, columns=names)
    return model
