"""Components of a sum of waves under independent inputs, in closed form.

Every real output of a sum of sin, cos or exp features is

    f(x) = intercept + Re Σ_j A_j e^{i<w_j, x>},

and the mean of a wave given some of its variables is the wave in these times χ_k(w_k) for each of
the others. The component of f on a set u of variables is therefore

    f_u(x_u) = Re Σ_{j: u ⊆ S_j} A_j Π_{k∈S_j-u} χ_k(w_jk) Π_{k∈u} (e^{i w_jk x_k} - χ_k(w_jk)),

where S_j are the variables of feature j. Each factor of the last product has mean zero, so
components are orthogonal and E f_u² is a sum over the nodes of the inputs in u alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from harfe.explain.inputs.distribution import InputDistribution
from harfe.explain.subsets import Members, members_of, subsets_of
from harfe.features.activations import ACTIVATIONS
from harfe.model.expansion import Expansion
from harfe.model.terms import IndexSet

# Up to this many points a component is summed over the grid of its nodes: sums over pairs of
# features would square the loss of digits when large coefficients cancel.
_LARGEST_GRID = 100_000

# Features per block in sums over pairs of features.
_PAIR_BLOCK = 512


class Waves:
    """Components of one target of an expansion of waves.

    Parameters
    ----------
    expansion : Expansion
        With sin, cos or exp features. The caller handles its intercept and its map.
    distribution : InputDistribution
    target : int

    Attributes
    ----------
    mean : array of shape (parts,)
        Mean of each real output: one, or real and imaginary part; without the intercept.
    sets : tuple of sets of variables
        Sets with a component: fewer variables first, then by number.
    """

    exact = True

    def __init__(self, expansion: Expansion, distribution: InputDistribution, target: int) -> None:
        pool = expansion.features
        self._members = members_of(pool)
        self.sets = tuple(self._members)
        self._distribution = distribution
        self._inputs: dict[int, _Input] = {}
        chi = np.ones(pool.indices.shape, dtype=complex)
        present = pool.present
        for k in np.unique(pool.indices[present]).tolist():
            at = np.nonzero(present & (pool.indices == k))
            waves = distribution.waves(k, pool.values[at])
            chi[at] = waves @ distribution.weights[k]
            centred = waves - chi[at][:, None]
            self._inputs[k] = _Input(at[0], pool.values[at], chi[at], centred)
        # Column v: the product of χ over the variables of a feature that are not in v.
        others = np.ones((len(pool), 1), dtype=complex)
        for factor in chi.T:
            others = np.concatenate([others * factor[:, None], others], axis=1)
        self._others = others
        self._amplitudes = wave_amplitudes(expansion, target)
        self.mean = (self._amplitudes @ others[:, 0]).real

    def variance(self, u: IndexSet) -> float:
        """Mean square of the component on u, summed over the real outputs."""
        return self._mean_square(u, self._members[u])

    def term_variance(self, u: IndexSet, places: NDArray[np.intp]) -> float:
        """Variance of the sum of the features at these places, which all have the variables u."""
        return sum(self._mean_square(v, self._members[v].among(places)) for v in subsets_of(u)[1:])

    def values(self, u: IndexSet, x: Mapping[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Evaluate the component on u at rows, shape (parts, rows); x has a column per variable."""
        return self._component(u, {k: self._inputs[k].at(x[k]) for k in u})

    def all_values(self, x: Mapping[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Evaluate all components at rows, shape (sets, parts, rows)."""
        waves = {k: own.at(x[k]) for k, own in self._inputs.items()}
        return np.stack([self._component(u, waves) for u in self.sets])

    def _component(
        self, u: IndexSet, waves: Mapping[int, NDArray[np.complex128]]
    ) -> NDArray[np.float64]:
        mine = self._members[u]
        factors = (waves[k][self._inputs[k].rows_of(mine.features)] for k in u)
        return np.asarray((self._weights(mine) @ reduce(np.multiply, factors)).real)

    def _weights(self, mine: Members) -> NDArray[np.complex128]:
        """A_j Π_{k∉u} χ_k, shape (parts, members)."""
        return self._amplitudes[:, mine.features] * self._others[mine.features, mine.masks]

    def _mean_square(self, u: IndexSet, mine: Members) -> float:
        factors = [self._inputs[k].waves[self._inputs[k].rows_of(mine.features)] for k in u]
        shares = [self._distribution.weights[k] for k in u]
        points = np.prod([len(share) for share in shares], dtype=float)
        mean_square = over_grid if points <= _LARGEST_GRID else over_pairs
        return mean_square(self._weights(mine), factors, shares)


@dataclass(frozen=True)
class _Input:
    """One input: the features that use it, their frequencies, and centred waves at its nodes."""

    features: NDArray[np.intp]
    frequencies: NDArray[np.float64]
    means: NDArray[np.complex128]
    waves: NDArray[np.complex128]

    def rows_of(self, features: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(self.features, features)

    def at(self, x: NDArray[np.float64]) -> NDArray[np.complex128]:
        return np.exp(1j * np.multiply.outer(self.frequencies, x)) - self.means[:, None]


def wave_amplitudes(expansion: Expansion, target: int) -> NDArray[np.complex128]:
    """A of f = intercept + Re Σ A e^{i<w, x>} for every real output, shape (parts, features)."""
    pool, coef = expansion.features, expansion.coef[target]
    turn = ACTIVATIONS[pool.activation].turn * np.exp(1j * pool.phases)
    # The imaginary part of z is the real part of -iz.
    parts = [coef, -1j * coef] if pool.is_complex else [coef.real, coef.imag]
    return np.array(parts[: 1 + expansion.complex_output]) * turn


def over_grid(
    weights: NDArray[np.complex128],
    factors: list[NDArray[np.complex128]],
    shares: list[NDArray[np.float64]],
) -> float:
    """Σ_parts E (Re Σ_j a_j Π_k F_kj)² over the grid of all nodes.

    Parameters
    ----------
    weights : array of shape (parts, features)
        a.
    factors : list of arrays of shape (features, nodes)
        F of each variable at its nodes.
    shares : list of arrays of shape (nodes,)
        Probabilities of the nodes.
    """
    # As one matrix product: half of the variables against the others.
    half = (len(factors) + 1) // 2
    left, left_share = _product_grid(factors[:half], shares[:half], weights.shape[1])
    right, right_share = _product_grid(factors[half:], shares[half:], weights.shape[1])
    grids = (((a[:, None] * left).T @ right).real for a in weights)
    return sum(float(left_share @ values**2 @ right_share) for values in grids)


def _product_grid(
    factors: list[NDArray[np.complex128]], shares: list[NDArray[np.float64]], n_features: int
) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
    """Products of the factors on the grid of their nodes, and the probabilities of its points."""
    grid, share = np.ones((n_features, 1), dtype=complex), np.ones(1)
    for factor, weight in zip(factors, shares, strict=True):
        grid = (grid[:, :, None] * factor[:, None, :]).reshape(n_features, -1)
        share = np.multiply.outer(share, weight).ravel()
    return grid, share


def over_pairs(
    weights: NDArray[np.complex128],
    factors: list[NDArray[np.complex128]],
    shares: list[NDArray[np.float64]],
) -> float:
    """Compute the same as `over_grid` by sums over pairs of features, for grids of any size.

    E (Re Z)² = (E|Z|² + Re E Z²)/2 for Z = Σ_j a_j Π_k F_kj, and the mean of a product of waves
    factorises: E|Z|² = Σ_jl a_j a_l* Π_k E F_kj F_kl*.
    """
    total = 0.0
    for start in range(0, weights.shape[1], _PAIR_BLOCK):
        rows = slice(start, start + _PAIR_BLOCK)
        pairs = [(own[rows] * share, own) for own, share in zip(factors, shares, strict=True)]
        squares = reduce(np.multiply, (block @ factor.T for block, factor in pairs))
        moduli = reduce(np.multiply, (block @ factor.conj().T for block, factor in pairs))
        for a in weights:
            total += (a[rows] @ (squares @ a + moduli @ a.conj())).real / 2
    # Rounding may make a zero component slightly negative.
    return max(float(total), 0.0)
