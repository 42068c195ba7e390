"""A solution of the sparse ridge problem: its support, and its coefficients in both scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harfe.solvers.problem import Problem


@dataclass(frozen=True)
class SparseSolution:
    """Coefficients with few non-zeros: ``A @ coef.T + intercept`` predicts y.

    Attributes
    ----------
    support : int array of shape (s,)
        The columns with a coefficient, sorted.
    scaled_coef : array of shape (s, targets)
        Coefficients on the support in the scaled problem, with centred and scaled columns: those
        of the objective.
    coef_on_support : array of shape (s,), or (targets, s) if y is a matrix
        Coefficients on the support for the columns as given.
    intercept : number, or array of shape (targets,) if y is a matrix
        For the columns as given; 0 if none is fitted.
    n_columns : int
        Number of columns, N.
    """

    support: NDArray[np.intp]
    scaled_coef: NDArray[Any]
    coef_on_support: NDArray[Any]
    intercept: Any
    n_columns: int

    @classmethod
    def of(cls, problem: Problem, S: NDArray[np.intp], c: NDArray[Any], **others: Any) -> Self:
        """Make the solution from coefficients c of the scaled problem on S."""
        coef, intercept = problem.to_raw(S, c)
        if problem.y_is_vector:
            coef, intercept = coef[0], intercept[0]
        return cls(S, c, coef, intercept, problem.shape[1], **others)

    @property
    def coef(self) -> NDArray[Any]:
        """All N coefficients for the columns as given: shape (N,), or (targets, N)."""
        shape = (*self.coef_on_support.shape[:-1], self.n_columns)
        full = np.zeros(shape, self.coef_on_support.dtype)
        full[..., self.support] = self.coef_on_support
        return full
