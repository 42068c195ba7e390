"""Explain single rows: what each component, input and term adds to a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.table import Table, jsonable
from harfe.explain.anova import anova
from harfe.explain.inputs.distribution import InputDistribution
from harfe.explain.inputs.summary import InputSummary
from harfe.explain.overall import resolve_distribution
from harfe.model.expansion import Expansion
from harfe.model.terms import name_of, term_names, term_values

VIEWS = ("variables", "components", "terms")


@dataclass(frozen=True)
class LocalExplanation:
    """The prediction of each row as a sum, in three ways.

    `baseline` + the sum of `components` = `baseline` + the sum of `variables` = `intercept` + the
    sum of `terms` = `prediction`.

    Attributes
    ----------
    inputs : str
        Distribution of the inputs under which the baseline is the mean.
    target : int
    baseline : float
        f_∅, the mean of the function.
    components : array of shape (rows, components)
        Purified components: each averages to zero over each of its inputs.
    component_names : tuple of str
    variables : array of shape (rows, inputs)
        Components, each split equally between its inputs.
    variable_names : tuple of str
    intercept : float
    terms : array of shape (rows, terms)
        Raw terms: the kept features, summed by the set of inputs they use.
    term_names : tuple of str
    prediction : array of shape (rows,)
    outside : bool array of shape (rows,)
        Whether any used input lies outside its range in training.
    outside_inputs : bool array of shape (rows, inputs)
        Which inputs do; always False for inputs that the function does not use.
    link : str
        Link of the function: "none", or that on whose scale all sums are.
    """

    inputs: str
    target: int
    baseline: Any
    components: NDArray[Any]
    component_names: tuple[str, ...]
    variables: NDArray[Any]
    variable_names: tuple[str, ...]
    intercept: Any
    terms: NDArray[Any]
    term_names: tuple[str, ...]
    prediction: NDArray[Any]
    outside: NDArray[np.bool_]
    outside_inputs: NDArray[np.bool_]
    link: str = "none"

    def __len__(self) -> int:
        return len(self.prediction)

    def table(self, by: str = "variables") -> Table:
        """Return a table with a line per row: start of the sum, parts, prediction, `outside`.

        Parameters
        ----------
        by : {"variables", "components", "terms"}, default="variables"
        """
        start, names, values = self._view(by)
        columns = {
            ("intercept" if by == "terms" else "baseline"): (start,) * len(self),
            **{name: tuple(column) for name, column in zip(names, values.T, strict=True)},
            "prediction": tuple(self.prediction),
            "outside": tuple(self.outside),
        }
        return Table(columns)

    def to_frame(self, by: str = "variables") -> Any:
        """Return `table(by)` as a pandas.DataFrame."""
        return self.table(by).to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as lists, numbers and strings, for JSON."""
        return {name: jsonable(getattr(self, name)) for name in self.__dataclass_fields__}

    def _view(self, by: str) -> tuple[Any, tuple[str, ...], NDArray[Any]]:
        if by == "variables":
            return self.baseline, self.variable_names, self.variables
        if by == "components":
            return self.baseline, self.component_names, self.components
        if by == "terms":
            return self.intercept, self.term_names, self.terms
        raise ValueError(f"by={by!r} is not a known view; choose one of {', '.join(VIEWS)}")


def explain_local(
    expansion: Expansion,
    kept: InputSummary,
    X: ArrayLike,
    *,
    inputs: str | InputDistribution = "independent",
    target: int = 0,
) -> LocalExplanation:
    """Explain the predictions of single rows.

    Parameters
    ----------
    expansion : Expansion
    kept : InputSummary
        Summary of the rows of the fit.
    X : array of shape (rows, inputs)
        Rows to explain.
    inputs : {"independent", "uniform", "normal"} or InputDistribution, default="independent"
        Distribution of the inputs under which components are centred.
    target : int, default=0

    Returns
    -------
    LocalExplanation
    """
    X = np.asarray(X, dtype=float)
    distribution = resolve_distribution(inputs, kept, expansion)
    parts = anova(expansion, distribution, target)
    components = parts.evaluate(X)
    variables = np.zeros(X.shape, components.dtype)
    for u, values in zip(parts.sets, components.T, strict=True):
        for k in u:
            variables[:, k] += values / len(u)
    intercept = expansion.intercept[target]
    outside = outside_range(expansion, kept, X)
    return LocalExplanation(
        inputs=distribution.kind,
        target=target,
        baseline=parts.mean,
        components=components,
        component_names=tuple(name_of(u, expansion.columns) for u in parts.sets),
        variables=variables,
        variable_names=expansion.columns,
        intercept=complex(intercept) if expansion.complex_output else float(intercept.real),
        terms=term_values(expansion, X)[:, :, target],
        term_names=tuple(term_names(expansion)),
        prediction=expansion.linear(X)[:, target],
        outside=np.asarray(outside.any(axis=1)),
        outside_inputs=outside,
        link=expansion.link_kind,
    )


def outside_range(
    expansion: Expansion, kept: InputSummary, X: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which used inputs lie outside their range in training, shape (rows, inputs)."""
    features = expansion.features
    used = np.zeros(features.n_variables, dtype=bool)
    used[features.indices[features.present]] = True
    return ((kept.lower > X) | (kept.upper < X)) & used
