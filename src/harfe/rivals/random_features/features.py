"""The base class of rivals on random features: the features of harfe, in the same problem."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_choice
from harfe._core.threads import memory_bytes
from harfe._core.validation import input_names
from harfe.estimators.base import complex_r2
from harfe.estimators.regressor import pool_size
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.features.units import INPUT_SCALES
from harfe.model.expansion import Expansion
from harfe.rivals._base import Constant, Rival
from harfe.rivals._search import Family, Fits, brief
from harfe.rivals._settings import counts, numbers
from harfe.selection.recipe import Framing, Posed, Sampling
from harfe.solvers.homes import COLUMN_SCALES
from harfe.solvers.problem import Problem

#: Coefficients c, one target a column, of the features S of the scaled problem.
Sparse = tuple[NDArray[np.intp], NDArray[Any]]


@dataclass(frozen=True)
class ExpansionFunction:
    """An expansion of one target as a function."""

    expansion: Expansion

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        """Values at the rows of X."""
        return self.expansion.predict(X)[:, 0]


class FeatureRival(Rival):
    """A rival on the features φ(<x, w_j> + b_j) of harfe; subclasses write `_path` and `_knobs`.

    Every such rival has the parameters `n_components`, `order`, `scale`, `activation`, `weights`,
    `bias`, `fit_intercept`, `input_scale`, `column_scale` and `memory_budget`.
    """

    takes_complex = True
    standardises_target = False  # the problem scales its targets

    #: Candidates of "auto".
    orders: Sequence[int] = (2, 1, 3)
    scales: Sequence[float] = (0.5, 1.0, 2.0)

    function_: ExpansionFunction | Constant

    @abstractmethod
    def _knobs(self, m: int, N: int) -> list[dict[str, Any]]:
        """Return the settings along a path of fits on one pool of N features and m rows."""

    @abstractmethod
    def _path(self, problem: Problem, knobs: Sequence[dict[str, Any]]) -> list[Sparse]:
        """Return the fit of every setting."""

    def _largest_system(self, m: int, N: int) -> int:
        """Number of features in the largest system to be solved, for the check of memory."""
        return min(m, N)

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        check_choice("input_scale", self.input_scale, INPUT_SCALES)
        check_choice("column_scale", self.column_scale, COLUMN_SCALES)
        m, d = X.shape
        N = pool_size(self.n_components, max(m, d))
        knobs = self._knobs(m, N)
        families = []
        for order in counts("order", self.order, self.orders, most=d, of="inputs"):
            for scale in numbers("scale", self.scale, self.scales):
                sampling = self._sampling(order, scale, N, seed)
                shared = {"order": order, "scale": scale}
                families.append(
                    Family(
                        ", ".join(f"{name} {brief(value)}" for name, value in shared.items()),
                        [{**shared, **knob} for knob in knobs],
                        partial(self._fits, sampling, X, y, knobs),
                    )
                )
        return families

    def _fits(
        self,
        sampling: Sampling,
        X: NDArray[np.float64],
        y: NDArray[Any],
        knobs: list[dict[str, Any]],
    ) -> Fits:
        return FeatureFits(self, sampling.draw(), X, y, knobs)

    def _sampling(self, order: int, scale: float, N: int, seed: int) -> Sampling:
        law = FeatureLaw.from_settings(
            self.n_features_in_,
            order=order,
            scale=scale,
            weights=self.weights,
            bias=self.bias,
            activation=self.activation,
        )
        return Sampling(law, seed, N)

    def _framing(self) -> Framing:
        return Framing(
            columns=input_names(self),
            memory_budget=memory_bytes(self.memory_budget),
            fit_intercept=self.fit_intercept,
            input_scale=self.input_scale,
            column_scale=self.column_scale,
        )

    def _count_size(self) -> int:
        return int(np.count_nonzero(self.expansion_.coef))

    @property
    def expansion_(self) -> Expansion:
        """The fitted function as a value: the kept features, in the user's units."""
        if isinstance(self.function_, Constant):
            raise AttributeError(
                "expansion_ does not exist: X or y was constant, so the model is the mean of y"
            )
        found = self.function_.expansion
        if self._unit == 1:
            return found
        return replace(found, coef=found.coef * self._unit, intercept=found.intercept * self._unit)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the prediction; for complex y 1 - Σ w|y - f|² / Σ w|y - ȳ|².

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        if np.asarray(y).dtype.kind == "c":
            return complex_r2(y, self.predict(X), sample_weight)
        return float(super().score(X, y, sample_weight))


@dataclass(frozen=True)
class FeatureFits:
    """Fits on one pool; the problem is stated for the training rows of each fold."""

    rival: FeatureRival
    pool: FeaturePool
    X: NDArray[np.float64]
    y: NDArray[Any]
    knobs: list[dict[str, Any]]

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        posed = self._pose(self.X[train], self.y[train])
        fits = self.rival._path(posed.problem, self.knobs)
        return predictions(posed, fits, self.X[out])

    def pose_all(self) -> Posed:
        """State the problem of all rows."""
        return self._pose(self.X, self.y)

    def fit(self, which: int) -> ExpansionFunction:
        """Fit all rows with one of the settings."""
        posed = self.pose_all()
        ((S, c),) = self.rival._path(posed.problem, self.knobs[which : which + 1])
        return ExpansionFunction(posed.expansion(S, c))

    def _pose(self, X: NDArray[np.float64], y: NDArray[Any]) -> Posed:
        largest = self.rival._largest_system(len(self.y), len(self.pool))
        return self.rival._framing().pose(self.pool, X, y, np.ones(len(y)), largest_support=largest)


def predictions(posed: Posed, fits: Sequence[Sparse], X: NDArray[np.float64]) -> NDArray[Any]:
    """Values of several fits at the rows of X, (fits, rows); each feature is computed once."""
    used = np.unique(np.concatenate([S for S, _ in fits]))
    full = np.zeros((len(used), len(fits)), np.result_type(*(c.dtype for _, c in fits)))
    for place, (S, c) in enumerate(fits):
        full[np.searchsorted(used, S), place] = c[:, 0]
    values = posed.scaled_features(used, X) @ full
    return np.stack([posed.to_targets(column[:, None])[:, 0] for column in values.T])
