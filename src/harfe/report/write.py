"""Write a report page to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from harfe._core.atomic_write import atomic_write
from harfe.explain.stability import Stability
from harfe.report.content.summary import summarise
from harfe.report.page.page import render


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    sample_weight: Any = None,
    X_holdout: Any = None,
    y_holdout: Any = None,
    target_name: str | None = None,
    target: int = 0,
    stability: Stability | None = None,
    meta: Mapping[str, Any] | None = None,
) -> None:
    """Write a page about a fitted model: errors, what matters, curves, a panel to try values.

    The file is replaced atomically: it is never half written.

    Parameters
    ----------
    model : HARFERegressor, HARFERegressorCV, or a table model that wraps one
        Fitted to real targets.
    X, y : arrays of shape (rows, inputs) and (rows,)
        The rows of the fit, or new ones. For a table model, X may be a table, and with y=None the
        target is one of its columns. If it is the table of the fit, the rows of the fit are
        recognised, and the errors are those that the fit measured.
    path : path
        HTML file to write; an existing file is replaced.
    sample_weight : array of shape (rows,), default=None
        Weights of these rows in the fit.
    X_holdout, y_holdout : arrays, default=None
        Rows that the model has not seen, to measure its error on.
    target_name : str, default=None
        None means the target of a table model, or "y".
    target : int, default=0
        Index of the target, if there are several.
    stability : Stability, default=None
        Result of ``model.stability(X, y)``, to warn of terms that are rarely kept.
    meta : dict, default=None
        Further facts to show: source, command, ...

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from harfe import HARFERegressor
    >>> from harfe.datasets import make_function
    >>> from harfe.report import write_report
    >>> data = make_function("friedman1", 300, random_state=0)
    >>> model = HARFERegressor(random_state=0).fit(data.X[:200], data.y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "report.html")
    ...     rows = data.X[200:], data.y[200:]
    ...     write_report(model, data.X[:200], data.y[:200], path,
    ...                  X_holdout=rows[0], y_holdout=rows[1])
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    page = render(
        summarise(
            model,
            X,
            y,
            sample_weight=sample_weight,
            X_holdout=X_holdout,
            y_holdout=y_holdout,
            target_name=target_name,
            target=target,
            stability=stability,
            meta=meta,
        )
    )
    with atomic_write(path) as file:
        file.write(page.encode())
