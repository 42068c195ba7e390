"""Single rows explained: what each component, variable and term adds to a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.table import Table, jsonable
from harfe.explain.anova import anova
from harfe.explain.inputs.distribution import InputLaw
from harfe.explain.inputs.summary import KeptInputs
from harfe.explain.overall import resolve_law
from harfe.model.expansion import Expansion
from harfe.model.terms import name_of, term_names, term_values

VIEWS = ("variables", "components", "terms")


@dataclass(frozen=True)
class LocalExplanation:
    """What adds up to the prediction of each row, in three ways.

    `baseline` + the sum of `components` = `baseline` + the sum of `variables` = `intercept` + the
    sum of `terms` = `prediction`.

    Attributes
    ----------
    law : str
        Law of the inputs that the baseline is a mean under.
    target : int
    baseline : float
        f_∅, the mean of the function.
    components : array of shape (rows, components)
        Purified components: each averages to zero over each of its variables.
    component_names : tuple of str
    variables : array of shape (rows, inputs)
        Every component shared equally by its variables.
    variable_names : tuple of str
    intercept : float
    terms : array of shape (rows, terms)
        Features grouped by the variables they use, as they are.
    term_names : tuple of str
    prediction : array of shape (rows,)
    outside : bool array of shape (rows,)
        Whether some input in use lies outside the range seen in training.
    outside_inputs : bool array of shape (rows, inputs)
        Which ones; never an input that the function does not use.
    """

    law: str
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

    def __len__(self) -> int:
        return len(self.prediction)

    def table(self, by: str = "variables") -> Table:
        """One row for each row: where the sum starts, what is added, the prediction, `outside`.

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
        """Return the same as a pandas.DataFrame."""
        return self.table(by).to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, numbers and strings, for JSON."""
        return {name: jsonable(getattr(self, name)) for name in self.__dataclass_fields__}

    def _view(self, by: str) -> tuple[Any, tuple[str, ...], NDArray[Any]]:
        if by == "variables":
            return self.baseline, self.variable_names, self.variables
        if by == "components":
            return self.baseline, self.component_names, self.components
        if by == "terms":
            return self.intercept, self.term_names, self.terms
        raise ValueError(f"by={by!r} is not known; choose one of {', '.join(VIEWS)}")


def explain_local(
    expansion: Expansion,
    kept: KeptInputs,
    X: ArrayLike,
    *,
    law: str | InputLaw = "independent",
    target: int = 0,
) -> LocalExplanation:
    """Explain the predictions of single rows.

    Parameters
    ----------
    expansion : Expansion
    kept : KeptInputs
        What the fit kept of its rows.
    X : array of shape (rows, inputs)
        Rows to explain.
    law : {"independent", "uniform", "normal"} or InputLaw, default="independent"
        Law of the inputs that components are centred under.
    target : int, default=0

    Returns
    -------
    LocalExplanation
    """
    X = np.asarray(X, dtype=float)
    input_law = resolve_law(law, kept, expansion)
    parts = anova(expansion, input_law, target)
    components = parts.evaluate(X)
    variables = np.zeros(X.shape, components.dtype)
    for u, values in zip(parts.sets, components.T, strict=True):
        for k in u:
            variables[:, k] += values / len(u)
    intercept = expansion.intercept[target]
    outside = outside_range(expansion, kept, X)
    return LocalExplanation(
        law=input_law.kind,
        target=target,
        baseline=parts.mean,
        components=components,
        component_names=tuple(name_of(u, expansion.columns) for u in parts.sets),
        variables=variables,
        variable_names=expansion.columns,
        intercept=complex(intercept) if expansion.complex_output else float(intercept.real),
        terms=term_values(expansion, X)[:, :, target],
        term_names=tuple(term_names(expansion)),
        prediction=expansion.predict(X)[:, target],
        outside=np.asarray(outside.any(axis=1)),
        outside_inputs=outside,
    )


def outside_range(
    expansion: Expansion, kept: KeptInputs, X: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which inputs in use lie outside the range seen in training, shape (rows, inputs)."""
    features = expansion.features
    used = np.zeros(features.n_variables, dtype=bool)
    used[features.indices[features.present]] = True
    return ((kept.lower > X) | (kept.upper < X)) & used
