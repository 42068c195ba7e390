"""The functional ANOVA decomposition of a fitted function under independent inputs.

    f(x) = f_∅ + Σ_u f_u(x_u),   E f_u | x_{u-k} = 0 for every k in u,

so that f_∅ is the mean, components are orthogonal and Var f = Σ_u Var f_u. In closed form for
features that are waves (`waves.py`), by quadrature for others (`tensors.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import is_whole
from harfe._core.threads import blocks
from harfe.explain.grids import Tensors
from harfe.explain.inputs.distribution import InputLaw
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
        f_∅, the mean under the law.
    variance : float
        Of f under the law; E|f - f_∅|² if f is complex.
    sets : tuple of sets of variables
        Where f has a component: every non-empty set that lies within one of its features; fewer
        variables first, then by number.
    variances : array of shape (sets,)
    shares : array of shape (sets,)
        Of the variance; all 0 if f is constant.
    exact : bool
        Whether the components are closed forms; otherwise quadratures.
    expansion : Expansion
    law : InputLaw
    target : int
    """

    mean: Any
    variance: float
    sets: tuple[IndexSet, ...]
    variances: NDArray[np.float64]
    shares: NDArray[np.float64]
    exact: bool
    expansion: Expansion = field(repr=False)
    law: InputLaw = field(repr=False)
    target: int
    _parts: Waves | Tensors = field(repr=False, compare=False)
    _unit: float = field(repr=False, compare=False)

    def component(self, u: IndexSet, X_u: ArrayLike) -> NDArray[Any]:
        """Values of the component on u.

        Parameters
        ----------
        u : tuple of int
            One of `sets`.
        X_u : array of shape (rows, len(u))
            Values of the variables of u, in the user's units, not clipped.

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
            raise ValueError(f"X_u has shape {X_u.shape}; pass one column for each of {tuple(u)!r}")
        x = self._columns(X_u, list(u))
        return self._output(self._parts.values(tuple(u), x))

    def evaluate(self, X: ArrayLike) -> NDArray[Any]:
        """Values of all components at rows of all inputs, shape (rows, sets).

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
        """Share of the variance that each input explains alone, shape (inputs,)."""
        return self._sums(lambda u: 1.0 if len(u) == 1 else 0.0)

    def total(self) -> NDArray[np.float64]:
        """Share of the variance that each input plays a part in, shape (inputs,)."""
        return self._sums(lambda _: 1.0)

    def shapley(self) -> NDArray[np.float64]:
        """Shapley effects: every component's share divided equally by its variables; of sum 1."""
        return self._sums(lambda u: 1 / len(u))

    def interaction(
        self,
    ) -> tuple[tuple[IndexSet, ...], NDArray[np.float64], NDArray[np.float64]]:
        """Strength of every pair of variables that meet in a feature.

        Returns
        -------
        pairs : tuple of pairs
        second_order : array of shape (pairs,)
            Share of the variance that is due to the component of the pair.
        total : array of shape (pairs,)
            Share that is due to all components which hold both variables.
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
        """Variance of the raw terms under the law, in the order of `index_sets`."""
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
        if self.expansion.bounds is not None:
            X = self.expansion.bounds.clip(X, np.array(variables, dtype=np.intp))
        return {k: X[:, i] for i, k in enumerate(variables)}

    def _output(self, parts: NDArray[np.float64]) -> NDArray[Any]:
        """Real outputs, first axis, as the values of f."""
        values = parts * self._unit
        return values[0] + 1j * values[1] if len(values) == 2 else values[0]


def anova(expansion: Expansion, law: InputLaw, target: int = 0) -> Anova:
    """Take a fitted function apart under independent inputs.

    Parameters
    ----------
    expansion : Expansion
    law : InputLaw
        Of the inputs, clipped where the function clips them.
    target : int, default=0

    Returns
    -------
    Anova
    """
    check_target(expansion, target)
    if law.n_variables != expansion.features.n_variables:
        raise ValueError(
            f"law has {law.n_variables} inputs but the function has "
            f"{expansion.features.n_variables}; pass a law of all inputs"
        )
    # In units of the largest coefficient no square overflows.
    unit = float(np.abs(expansion.coef[target]).max(initial=0.0)) or 1.0
    scaled = replace(expansion, coef=expansion.coef / unit)
    parts = (Waves if expansion.features.is_wave else Tensors)(scaled, law, target)
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
            law=law,
            target=target,
            _parts=parts,
            _unit=unit,
        )


def check_target(expansion: Expansion, target: Any) -> None:
    """Refuse what is no target of the function."""
    n = len(expansion.coef)
    if not is_whole(target) or not 0 <= target < n:
        raise ValueError(f"target={target!r} must be a whole number from 0 to {n - 1}")
