"""The function space of the ANOVA approximation: products of cosines of a few variables.

    f(x) ≈ c_∅ + Σ_u f_u(x_u),   f_u(x_u) = Σ_k c_{u,k} Π_{j in u} √2 cos(π k_j x_j),   1 <= k_j < N

on the unit cube. The basis is orthonormal there, so the variance of f_u is the sum of its squared
coefficients. The fit is least squares with a penalty that grows with the frequency,

    minimise over c   (1/m) Σ_i (y_i - f(x_i))² + α Σ_{u,k} w_k c_{u,k}²,   w_k = Π_j (1 + k_j²)^r,

a mixed Sobolev norm of smoothness r; c_∅ is not penalised. It is solved on the smaller side: of the
functions, or of the rows with the kernel Σ_u Π_{j in u} K_j, which never stores a function of two
variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import blocks
from harfe.rivals._scaling import Scaling

#: Variables of a term, ascending.
Term = tuple[int, ...]

_ROW_BLOCK = 4096


def all_terms(n_inputs: int, superposition: int) -> tuple[Term, ...]:
    """All sets of 1 to `superposition` inputs: smaller sets first, then by number."""
    sizes = range(1, min(superposition, n_inputs) + 1)
    return tuple(u for size in sizes for u in combinations(range(n_inputs), size))


@dataclass(frozen=True)
class Cosines:
    """Functions √2 cos(πkx)/√w_k of every input at some rows, and their products.

    Terms are in the order of `all_terms`.

    Attributes
    ----------
    tables : sequence of arrays of shape (inputs, rows, N - 1)
        For terms of one variable, of two, ...
    roots : sequence of arrays
        √w of all functions of a term of that many variables.
    """

    tables: Sequence[NDArray[np.float64]]
    roots: Sequence[NDArray[np.float64]]

    @classmethod
    def of(cls, Z: NDArray[np.float64], bandwidths: Sequence[int], smoothness: float) -> Cosines:
        """At rows Z of the unit cube, with one bandwidth N per number of variables in a term."""
        tables, roots = [], []
        for size, bandwidth in enumerate(bandwidths, start=1):
            k = np.arange(1.0, bandwidth)
            root = (1 + k**2) ** (smoothness / 2)
            tables.append(np.cos(np.pi * Z.T[:, :, None] * k) * (np.sqrt(2) / root))
            products = np.ones(1)
            for _ in range(size):
                products = np.outer(products, root).ravel()
            roots.append(products)
        return cls(tables, roots)

    def count(self, terms: Sequence[Term]) -> int:
        """Number of functions of these terms."""
        return sum(len(self.roots[len(u) - 1]) for u in terms)

    def features(self, u: Term) -> NDArray[np.float64]:
        """All functions of a term, (rows, functions)."""
        return self._products(u, len(u))

    def _products(self, variables: Term, size: int) -> NDArray[np.float64]:
        """Products over these variables, with the functions for terms of this many variables."""
        table = self.tables[size - 1]
        product = np.ones((table.shape[1], 1))
        for j in variables:
            product = (product[:, :, None] * table[j][:, None, :]).reshape(len(product), -1)
        return product

    def _groups(self, terms: Sequence[Term]) -> Iterator[tuple[Term, NDArray[np.float64]]]:
        """Group terms that differ in the last variable only: the others, and its functions.

        What is linear in the last factor then takes one matrix product per group.
        """
        for (size, first), group in groupby(terms, key=lambda u: (len(u), u[:-1])):
            yield first, np.hstack([self.tables[size - 1][u[-1]] for u in group])

    def kernel(self, terms: Sequence[Term]) -> NDArray[np.float64]:
        """Σ_u F_u F_uᵀ, (rows, rows)."""
        rows = self.tables[0].shape[1]
        kernel = np.zeros((rows, rows))
        for first, last in self._groups(terms):
            part = last @ last.T
            for j in first:
                wave = self.tables[len(first)][j]
                part *= wave @ wave.T
            kernel += part
        return kernel

    def pull_back(self, terms: Sequence[Term], v: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """F_uᵀv of every term, for a vector v over the rows."""
        parts: list[NDArray[np.float64]] = []
        for first, last in self._groups(terms):
            each = self.tables[len(first)].shape[2]
            product = (self._products(first, len(first) + 1) * v[:, None]).T @ last
            grouped = product.reshape(len(product), -1, each).transpose(1, 0, 2)
            parts.extend(grouped.reshape(len(grouped), -1))
        return parts

    def unweighted(self, u: Term, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of the orthonormal functions of a term, one axis per variable."""
        each = self.tables[len(u) - 1].shape[2]
        return (coef / self.roots[len(u) - 1]).reshape((each,) * len(u))


@dataclass(frozen=True)
class CosineFunction:
    """A sum of products of cosines of scaled inputs.

    Attributes
    ----------
    scaling : Scaling
    terms : tuple of tuples of int
        Positions among the scaled inputs.
    weighted : tuple of arrays
        Coefficients of each term's functions, which are divided by √w.
    constant : float
    bandwidths : tuple of int
    smoothness : float
    """

    scaling: Scaling
    terms: tuple[Term, ...]
    weighted: tuple[NDArray[np.float64], ...]
    constant: float
    bandwidths: tuple[int, ...]
    smoothness: float

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at the rows of X."""
        values = np.full(len(X), self.constant)
        for part in blocks(len(X), _ROW_BLOCK):
            cosines = self._cosines(X[part])
            for u, coef in zip(self.terms, self.weighted, strict=True):
                values[part] += cosines.features(u) @ coef
        return values

    def coefficients(self) -> list[NDArray[np.float64]]:
        """Coefficients of the orthonormal functions of every term, one axis per variable."""
        cosines = self._cosines(np.zeros((0, 1 + max(map(int, self.scaling.columns)))))
        return [cosines.unweighted(u, c) for u, c in zip(self.terms, self.weighted, strict=True)]

    def _cosines(self, X: NDArray[np.float64]) -> Cosines:
        return Cosines.of(self.scaling.apply(X), self.bandwidths, self.smoothness)


def sensitivity_indices(coef: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Share of the variance of every term, from coefficients of orthonormal functions."""
    # Relative to the largest, so that no square leaves the range of doubles.
    largest = max(np.abs(c).max() for c in coef) or 1.0
    variances = np.array([np.sum((c / largest) ** 2) for c in coef])
    return variances / (variances.sum() or 1.0)
