"""A few nodes and weights that represent one input: Σ_n w_n g(x_n) = E g(X).

A Gauss rule of n nodes is exact for polynomials of degree 2n - 1, and e^{iωx} on an interval of
half-width h is a polynomial of degree a little above |ω|h to all digits (its Chebyshev coefficients
are Bessel functions J_k(ωh), which decay fast beyond k = ωh). A column with any number of rows
therefore shrinks to a few dozen numbers without changing the mean of any sum of sines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from harfe._core.compiling import compiled

Rule = tuple[NDArray[np.float64], NDArray[np.float64]]

# Reach of a normal distribution in deviations; the probability beyond it is 2e-17.
NORMAL_REACH = 8.5

# Beyond this |ω|h in radians a rule is not worth its nodes; also keeps counts finite.
_LARGEST_ARGUMENT = 1e6


def nodes_needed(argument: float) -> int:
    """Nodes of a Gauss rule that integrates e^{iωx} to 1e-14 for every |ω|h up to `argument`.

    The degree that this takes, found by summing Bessel functions for arguments from 0 to 3000, is
    below argument + 10·argument^(1/3) + 6.
    """
    z = min(abs(argument), _LARGEST_ARGUMENT)
    return math.ceil((z + 10 * np.cbrt(z) + 6) / 2)


def gauss_of_points(points: NDArray[np.float64], weights: NDArray[np.float64], n: int) -> Rule:
    """Gauss rule of a discrete distribution; the points themselves if n is at least their number.

    Parameters
    ----------
    points : array of distinct numbers
    weights : array of positive numbers that sum to 1
    n : int
        Number of nodes.
    """
    if n >= len(points):
        return points, weights
    return gauss_of_columns(points[:, None], weights, [n])[0]


def gauss_of_columns(
    X: NDArray[np.float64], weights: NDArray[np.float64], counts: Sequence[int]
) -> list[Rule]:
    """Gauss rules of the columns of a table; several columns take little longer than one.

    Parameters
    ----------
    X : array of shape (rows, columns)
        Values may repeat.
    weights : array of shape (rows,)
        Of the rows: positive, with sum 1.
    counts : sequence of int
        Nodes for each column, fewer than it has distinct values.
    """
    # Halves first: the range itself may overflow.
    low, high = X.min(axis=0) / 2, X.max(axis=0) / 2
    centre, half = low + high, high - low
    diagonals, squares = np.zeros((2, max(counts), X.shape[1]))
    points = (X / 2 - centre / 2) / (half / 2)
    _jacobi(np.ascontiguousarray(points), weights, diagonals, squares)
    rules = []
    for column, n in enumerate(counts):
        nodes, vectors = eigh_tridiagonal(diagonals[:n, column], np.sqrt(squares[1:n, column]))
        shares = vectors[0] ** 2
        inside = np.clip(nodes, -1.0, 1.0)
        rules.append((centre[column] + half[column] * inside, shares / shares.sum()))
    return rules


def gauss_of_interval(lower: float, upper: float, n: int) -> Rule:
    """Gauss rule of the uniform distribution on an interval (Gauss-Legendre)."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (lower / 2 + upper / 2) + (upper / 2 - lower / 2) * nodes, weights / 2


def normal_rule(mean: float, deviation: float, largest_frequency: float) -> Rule:
    """Equally spaced nodes of a normal distribution, for e^{iωx} up to the largest |ω|.

    By Poisson's formula the trapezoidal rule with spacing h errs by e^{-(2π/h - |ω|)²/2} in units
    of the deviation. Gauss-Hermite would need more nodes: their number grows with ω².
    """
    argument = min(abs(largest_frequency) * deviation, _LARGEST_ARGUMENT)
    spacing = 2 * math.pi / (argument + NORMAL_REACH)
    each_side = math.ceil(NORMAL_REACH / spacing)
    steps = spacing * np.arange(-each_side, each_side + 1, dtype=np.float64)
    weights = np.exp(-(steps**2) / 2)
    return mean + deviation * steps, weights / weights.sum()


@compiled(nogil=True, error_model="numpy")
def _jacobi(points, weights, diagonals, squares):  # type: ignore[no-untyped-def]
    """Recurrence coefficients of the polynomials that are orthogonal on weighted points.

    Gragg and Harwood's RKPW: points enter one at a time, each chased down the tridiagonal matrix
    by rotations. As accurate as a Lanczos iteration with full reorthogonalisation, for rows · n
    operations instead of rows · n². (W. Gautschi, Orthogonal Polynomials, 2004, section 2.2.3.2,
    routine lanczos.m; only the leading n rows of the matrix are kept, which the others never
    affect.) Each column of the arrays is one distribution; the innermost loop runs over them,
    because a single one would wait for its divisions. `squares` are the squares of the off-diagonal
    entries; the first is the total weight.
    """
    rows, columns = points.shape
    gamma, sigma = np.empty(columns), np.empty(columns)
    t, pi = np.empty(columns), np.empty(columns)
    n = diagonals.shape[0]
    for i in range(rows):
        for c in range(columns):
            gamma[c], sigma[c], t[c], pi[c] = 1.0, 0.0, 0.0, weights[i]
            if i < n:
                diagonals[i, c] = points[i, c]
        for k in range(min(i + 1, n)):
            for c in range(columns):
                square, sigma_before = squares[k, c], sigma[c]
                rho = square + pi[c]
                moved = gamma[c] * rho
                # Selections instead of branches, which would keep LLVM from vectorising.
                some = rho > 0.0
                divisor = rho if some else 1.0
                gamma[c] = square / divisor if some else 1.0
                sigma[c] = pi[c] / divisor if some else 0.0
                t_now = sigma[c] * (diagonals[k, c] - points[i, c]) - gamma[c] * t[c]
                diagonals[k, c] -= t_now - t[c]
                t[c] = t_now
                turned = sigma[c] > 0.0
                ratio = t_now * t_now / (sigma[c] if turned else 1.0)
                pi[c] = ratio if turned else sigma_before * square
                squares[k, c] = moved
