"""The functional ANOVA decomposition of a fitted function under independent inputs.

    f(x) = f_∅ + Σ_u f_u(x_u),   E f_u | x_{u-k} = 0 for every k in u,

so that f_∅ is the mean, components are orthogonal and Var f = Σ_u Var f_u. In closed form for
features that are waves (`waves.py`), by quadrature for others (`grids.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import is_whole
from harfe._core.threads import blocks
from harfe.explain.grids import Tensors
from harfe.explain.inputs.distribution import InputDistribution
from harfe.explain.inputs.seen import grid_points
from harfe.explain.waves import Waves
from harfe.model.expansion import Expansion
from harfe.model.terms import IndexSet, group_features

_ROW_BLOCK = 512


@dataclass(frozen=True)
class Anova:
    """Components of one target of a fitted function.

    Attributes
    ----------
    mean : float or complex
        f_∅, the mean of f.
    variance : float
        Variance of f; E|f - f_∅|² if f is complex.
    sets : tuple of sets of variables
        Sets on which f has a component: all non-empty subsets of the variables of one feature;
        fewer variables first, then by number.
    variances : array of shape (sets,)
    shares : array of shape (sets,)
        Of the variance; all 0 if f is constant.
    exact : bool
        Whether the components are closed forms, not quadratures.
    expansion : Expansion
    distribution : InputDistribution
    target : int
    """

    mean: Any
    variance: float
    sets: tuple[IndexSet, ...]
    variances: NDArray[np.float64]
    shares: NDArray[np.float64]
    exact: bool
    expansion: Expansion = field(repr=False)
    distribution: InputDistribution = field(repr=False)
    target: int
    _parts: Waves | Tensors = field(repr=False, compare=False)
    _unit: float = field(repr=False, compare=False)

    def component(self, u: IndexSet, X_u: ArrayLike) -> NDArray[Any]:
        """Evaluate the component on u.

        Parameters
        ----------
        u : tuple of int
            One of `sets`.
        X_u : array of shape (rows, len(u))
            Values of the variables of u, in the user's units, not mapped.

        Returns
        -------
        array of shape (rows,)
        """
        if tuple(u) not in self.sets:
            raise ValueError(
                f"u={tuple(u)!r} has no component; choose one of sets, e.g. {self.sets[:3]}"
            )
        X_u = np.asarray(X_u, dtype=float)
        if X_u.ndim != 2 or X_u.shape[1] != len(u):
            raise ValueError(f"X_u has shape {X_u.shape}; pass a column for each of {tuple(u)!r}")
        x = self._columns(X_u, list(u))
        return self._output(self._parts.values(tuple(u), x))

    def component_on_grid(self, u: IndexSet, grids: Sequence[NDArray[np.float64]]) -> NDArray[Any]:
        """Values of the component on u at all points of a grid.

        Parameters
        ----------
        u : tuple of int
            One of `sets`.
        grids : sequence of arrays
            Values of each variable of u, in the user's units.

        Returns
        -------
        array of shape (values of the first, values of the second, ...)
        """
        return self.component(u, grid_points(grids)).reshape([len(values) for values in grids])

    def evaluate(self, X: ArrayLike) -> NDArray[Any]:
        """Evaluate all components at rows of all inputs, shape (rows, sets).

        Their sum is f - f_∅.
        """
        X = np.asarray(X, dtype=float)
        dtype = complex if self.expansion.complex_output else float
        out = np.zeros((len(X), len(self.sets)), dtype)
        used = sorted({k for u in self.sets for k in u})
        for rows in blocks(len(X), _ROW_BLOCK) if used else ():
            x = self._columns(X[rows][:, used], used)
            out[rows] = self._output(self._parts.all_values(x).transpose(1, 2, 0))
        return out

    def first_order(self) -> NDArray[np.float64]:
        """Share of the variance due to each input alone, shape (inputs,)."""
        return self._sums(lambda u: 1.0 if len(u) == 1 else 0.0)

    def total(self) -> NDArray[np.float64]:
        """Share of the variance that involves each input, shape (inputs,): total Sobol indices."""
        return self._sums(lambda _: 1.0)

    def shapley(self) -> NDArray[np.float64]:
        """Shapley effects: each component's share split equally between its variables; sum 1."""
        return self._sums(lambda u: 1 / len(u))

    def interaction(
        self,
    ) -> tuple[tuple[IndexSet, ...], NDArray[np.float64], NDArray[np.float64]]:
        """Strength of every pair of variables that share a feature.

        Returns
        -------
        pairs : tuple of pairs
        second_order : array of shape (pairs,)
            Share of the variance due to the component of the pair.
        total : array of shape (pairs,)
            Share due to all components that contain both variables.
        """
        pairs = tuple(u for u in self.sets if len(u) == 2)
        place = {pair: i for i, pair in enumerate(pairs)}
        second, total = np.zeros(len(pairs)), np.zeros(len(pairs))
        for u, share in zip(self.sets, self.shares, strict=True):
            if len(u) == 2:
                second[place[u]] = share
            for i, k in enumerate(u):
                for other in u[i + 1 :]:
                    total[place[k, other]] += share
        return pairs, second, total

    def term_variances(self) -> NDArray[np.float64]:
        """Variance of the raw terms, in the order of `group_features`."""
        groups = group_features(self.expansion)
        variances = [self._parts.term_variance(u, places) for u, places in groups.items()]
        with np.errstate(over="ignore"):
            return np.array(variances, dtype=float) * self._unit * self._unit

    def _sums(self, factor: Any) -> NDArray[np.float64]:
        out = np.zeros(self.expansion.features.n_variables)
        for u, share in zip(self.sets, self.shares, strict=True):
            out[list(u)] += factor(u) * share
        return out

    def _columns(
        self, X: NDArray[np.float64], variables: list[int]
    ) -> dict[int, NDArray[np.float64]]:
        if self.expansion.map is not None:
            X = self.expansion.map.apply(X, np.array(variables, dtype=np.intp))
        return {k: X[:, i] for i, k in enumerate(variables)}

    def _output(self, parts: NDArray[np.float64]) -> NDArray[Any]:
        """Combine real outputs, the first axis, into values like those of f."""
        values = parts * self._unit
        return values[0] + 1j * values[1] if len(values) == 2 else values[0]


def anova(expansion: Expansion, distribution: InputDistribution, target: int = 0) -> Anova:
    """Decompose a fitted function under independent inputs.

    Parameters
    ----------
    expansion : Expansion
    distribution : InputDistribution
        Distribution of the inputs as the function maps them: clipped and warped.
    target : int, default=0

    Returns
    -------
    Anova
    """
    check_target(expansion, target)
    if distribution.n_variables != expansion.features.n_variables:
        raise ValueError(
            f"distribution has {distribution.n_variables} inputs but the function has "
            f"{expansion.features.n_variables}; pass one with all inputs"
        )
    # In units of the largest coefficient, squares do not overflow.
    unit = float(np.abs(expansion.coef[target]).max(initial=0.0)) or 1.0
    scaled = replace(expansion, coef=expansion.coef / unit)
    parts = (Waves if expansion.features.is_wave else Tensors)(scaled, distribution, target)
    squares = np.array([parts.variance(u) for u in parts.sets])
    total = float(squares.sum())
    means = parts.mean * unit
    mean = expansion.intercept[target] + (complex(*means) if len(means) == 2 else means[0])
    with np.errstate(over="ignore"):
        return Anova(
            mean=complex(mean) if expansion.complex_output else float(mean.real),
            variance=float(np.float64(total) * unit * unit),
            sets=parts.sets,
            variances=squares * unit * unit,
            shares=squares / total if total > 0 else np.zeros(len(squares)),
            exact=expansion.features.is_wave,
            expansion=expansion,
            distribution=distribution,
            target=target,
            _parts=parts,
            _unit=unit,
        )


def check_target(expansion: Expansion, target: Any) -> None:
    """Reject what is not a target of the function."""
    n = len(expansion.coef)
    if not is_whole(target) or not 0 <= target < n:
        raise ValueError(f"target={target!r} must be a whole number from 0 to {n - 1}")
