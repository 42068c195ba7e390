"""Components of activations without closed forms (tanh, sigmoid, relu), by quadrature.

Under independent inputs on nodes, every mean of a term is a weighted sum over the grid of the nodes
of its variables. Gauss rules with fewer nodes keep that grid to a few thousand points: smooth
activations lose little; the error of relu is of the order of the squared distance between nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import blocks
from harfe.explain.inputs.distribution import InputDistribution
from harfe.explain.subsets import members_of, subsets_of
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion
from harfe.model.terms import IndexSet, group_features

# Most grid points of a term: 128 nodes per input for 2 variables, 25 for 3, 11 for 4.
_LARGEST_GRID = 2**14

# Points per evaluation of a term.
_POINTS = 2**18


class Tensors:
    """Components of one target of an expansion, on grids; the same methods as `Waves`."""

    exact = False

    def __init__(self, expansion: Expansion, distribution: InputDistribution, target: int) -> None:
        self.sets = tuple(members_of(expansion.features))
        groups = group_features(expansion)
        order = max([1, *map(len, groups)])
        most = int(_LARGEST_GRID ** (1 / order) + 1e-9)
        self._distribution = distribution.reduced(max(most, 2))
        self._terms = {u: _term(expansion, target, u, places) for u, places in groups.items()}
        parts = 1 + expansion.complex_output
        self.mean = np.zeros(parts)
        self._squares = dict.fromkeys(self.sets, 0.0)
        self._term_variances = dict.fromkeys(self._terms, 0.0)
        self._fill(parts)

    def _fill(self, parts: int) -> None:
        """Decompose the grid of each term and add up the components on the same variables."""
        grids: dict[IndexSet, NDArray[np.float64]] = {}
        for u, term in self._terms.items():
            shape = (parts, *(len(self._distribution.nodes[k]) for k in u))
            pieces: dict[IndexSet, NDArray[np.float64]]
            pieces = {(): term.on_grid([self._distribution.nodes[k] for k in u]).reshape(shape)}
            for k in u:
                # The axis of k is the first after the parts and the variables kept so far.
                split: dict[IndexSet, NDArray[np.float64]] = {}
                for v, grid in pieces.items():
                    axis = 1 + len(v)
                    mean = np.tensordot(grid, self._distribution.weights[k], axes=(axis, 0))
                    split[v] = mean
                    split[(*v, k)] = grid - np.expand_dims(mean, axis)
                pieces = split
            self.mean = self.mean + pieces.pop(())
            for v, grid in pieces.items():
                self._term_variances[u] += self._mean_square(v, grid)
                grids[v] = grids[v] + grid if v in grids else grid
        for v, grid in grids.items():
            self._squares[v] = self._mean_square(v, grid)

    def _mean_square(self, u: IndexSet, grid: NDArray[np.float64]) -> float:
        mean = grid**2
        for k in reversed(u):
            mean = mean @ self._distribution.weights[k]
        return float(mean.sum())

    def variance(self, u: IndexSet) -> float:
        """Mean square of the component on u, summed over the real outputs."""
        return self._squares[u]

    def term_variance(self, u: IndexSet, places: NDArray[np.intp]) -> float:
        """Variance of the term on u; `places` are those of its features."""
        return self._term_variances[u]

    def values(self, u: IndexSet, x: Mapping[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Evaluate the component on u at rows, shape (parts, rows); x has a column per variable."""
        total = np.zeros((len(self.mean), len(x[u[0]])))
        for term in self._terms:
            if set(u) <= set(term):
                for v in subsets_of(u):
                    total += (-1) ** (len(u) - len(v)) * self._conditional(term, v, x)
        return total

    def all_values(self, x: Mapping[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Evaluate all components at rows, shape (sets, parts, rows)."""
        place = {u: i for i, u in enumerate(self.sets)}
        rows = len(next(iter(x.values())))
        out = np.zeros((len(self.sets), len(self.mean), rows))
        for term in self._terms:
            pieces = {v: self._conditional(term, v, x) for v in subsets_of(term)}
            for k in term:
                # What a set adds to the same set without k.
                for v in pieces:
                    if k in v:
                        pieces[v] = pieces[v] - pieces[tuple(i for i in v if i != k)]
            for v, piece in pieces.items():
                if v:
                    out[place[v]] += piece
        return out

    def _conditional(
        self, term: IndexSet, v: IndexSet, x: Mapping[int, NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Mean of a term given the variables in v, shape (parts, rows), or (parts, 1) for none."""
        share, points = np.ones(1), np.zeros((1, max(len(term), 1)))
        for place, k in enumerate(term):
            if k not in v:
                points = np.repeat(points, len(self._distribution.nodes[k]), axis=0)
                points[:, place] = np.tile(self._distribution.nodes[k], len(share))
                share = np.multiply.outer(share, self._distribution.weights[k]).ravel()
        rows = len(x[v[0]]) if v else 1
        out = np.empty((len(self.mean), rows))
        for part in blocks(rows, max(_POINTS // len(share), 1)):
            count = part.stop - part.start
            X = np.tile(points, (count, 1))
            for place, k in enumerate(term):
                if k in v:
                    X[:, place] = np.repeat(x[k][part], len(share))
            values = self._terms[term].at(X)
            out[:, part] = values.reshape(len(out), count, len(share)) @ share
        return out


@dataclass(frozen=True)
class _Term:
    """The features of a term, as a function of its variables alone."""

    function: Expansion

    def at(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate the real outputs at rows of the variables, shape (parts, rows)."""
        values = self.function.predict(X)[:, 0]
        return np.stack([values.real, values.imag][: 1 + self.function.complex_output])

    def on_grid(self, nodes: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Evaluate the real outputs on the grid of these nodes, the last one varying fastest."""
        if not nodes:
            return self.at(np.zeros((1, 1)))
        return self.at(
            np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, len(nodes))
        )


def _term(expansion: Expansion, target: int, u: IndexSet, places: NDArray[np.intp]) -> _Term:
    pool = expansion.features.take(places)
    indices = (
        np.where(pool.present, np.searchsorted(u, pool.indices), -1)
        if u
        else np.full_like(pool.indices, -1)
    )
    d = max(len(u), 1)
    small = FeaturePool(d, indices, pool.values, pool.phases, pool.activation)
    coef = expansion.coef[target, places][None, :]
    columns = tuple(f"x{k}" for k in range(d))
    return _Term(Expansion(small, coef, np.zeros(1, coef.dtype), columns, expansion.complex_output))
