"""How well a feature matrix preserves the length of sparse vectors.

The restricted isometry constant δ_s of A is the smallest δ with

    (1 - δ)‖x‖² <= ‖A x‖² <= (1 + δ)‖x‖²   for all x with at most s non-zeros,

the largest ‖A_S*A_S - I‖ over all sets S of s columns (Section 3 of the paper). Computing it
is a combinatorial problem: it is exact for tiny sizes and bounded from both sides otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import check_count
from harfe._core.threads import blocks, one_blas_thread
from harfe.theory._checks import check_lam, check_sizes

# Limits of the exact search, which then takes seconds: supports, and supports times s³.
_MOST_SUPPORTS = 200_000
_MOST_WORK = 300_000_000
# Supports per batch of eigenvalue problems.
_BATCH = 1024
# Columns of the Gram matrix held in memory at a time.
_COLUMNS = 1024
_POWER_STEPS = 30


@dataclass(frozen=True)
class Isometry:
    """A restricted isometry constant δ_s, exact or between two bounds.

    Attributes
    ----------
    order : int
        s.
    lower, upper : float
        δ_s lies between them; equal if `exact`.
    exact : bool
    support : int array
        Columns on which `lower` is attained.
    """

    order: int
    lower: float
    upper: float
    exact: bool
    support: NDArray[np.intp]


def coherence(A: ArrayLike) -> float:
    """Largest |<a_j, a_k>| / (‖a_j‖‖a_k‖) over pairs of different columns.

    Columns are multiplied in blocks: nothing of size N² is stored.

    Parameters
    ----------
    A : array of shape (m, N), real or complex
    """
    A = _matrix(A)
    norms = np.linalg.norm(A, axis=0)
    if not np.all(norms > 0):
        raise ValueError(f"A has the zero column {int(np.argmin(norms))}; leave it out")
    U = A / norms
    largest = 0.0
    for part in blocks(U.shape[1], _COLUMNS):
        products = np.abs(U[:, part].conj().T @ U)
        products[np.arange(len(products)), np.arange(part.start, part.stop)] = 0.0
        largest = max(largest, float(products.max()))
    return largest


def isometry_constant(A: ArrayLike, s: int, *, n_starts: int = 10, seed: int = 0) -> Isometry:
    """δ_s = max ‖A_S*A_S - I‖ over all sets S of s columns, or bounds from below and above.

    It is exact for s = 1, for s = N (one singular value decomposition), and where there are few
    enough sets to try all (at most 200 000, fewer for large s). Otherwise

    - `lower` is attained on a set found by truncated power iterations from `n_starts` random sets
      and from the `n_starts` columns with the largest discs: δ_s is at least that. It is an
      estimate that depends on `seed`.
    - `upper` is the smaller of two proven bounds: ‖A*A - I‖, and Gershgorin's largest disc,
      |‖a_j‖² - 1| plus the s - 1 largest |<a_j, a_k>|. δ_s is at most that, often far less.

    Parameters
    ----------
    A : array of shape (m, N), real or complex
        Its columns should have about unit norm: divide features by √m.
    s : int
        Number of non-zeros, from 1 to N.
    n_starts : int, default=10
    seed : int, default=0
        Seed of the random sets.
    """
    A = _matrix(A)
    N = A.shape[1]
    check_count("s", s, 2)
    check_count("n_starts", n_starts, 10)
    if s > N:
        raise ValueError(f"s={s} is larger than the number of columns, {N}; pass s={N} or less")
    with one_blas_thread():
        return _isometry(A, s, n_starts, seed)


def stacked_matrix(A: ArrayLike, lam: float) -> NDArray[Any]:
    """B = (m + mλ)^(-1/2) [A; √(mλ) I] of Theorem 3.1, of shape (m + N, N).

    ‖B z - ỹ‖² with ỹ = [y; 0] and z = (m + mλ)^(1/2) c is the ridge problem ‖A c - y‖² + mλ‖c‖²,
    and c + μ((1/m) A*(y - A c) - λc) with μ = 1/(1 + λ) is z + B*(ỹ - B z), the unit step. The
    paper's update has y where ỹ is needed. The matrix stores N² numbers for the ridge alone, so it
    is only for small N.
    """
    A = _matrix(A)
    check_lam(lam)
    m, N = A.shape
    return np.vstack([A, np.sqrt(m * lam) * np.eye(N)]) / np.sqrt(m + m * lam)


def ridge_isometry(delta: float, lam: float) -> float:
    """δ_s(B) = δ_s(A/√m) / (1 + λ): the isometry constant with the ridge.

    From the proof of Theorem 3.1: B_S*B_S - I = (A_S*A_S/m - I)/(1 + λ), for every S. So any matrix
    gets below 1/√3 once λ > √3 δ - 1, but see :func:`~harfe.theory.ridge_effects` for the cost.
    """
    check_lam(lam)
    check_sizes(delta=delta)
    return delta / (1 + lam)


def _matrix(A: ArrayLike) -> NDArray[Any]:
    A = np.asarray(A)
    if A.ndim != 2 or not A.size or A.dtype.kind not in "iufc" or not np.all(np.isfinite(A)):
        raise ValueError(
            f"A of shape {A.shape} and type {A.dtype} must be a finite matrix of numbers, e.g. the "
            "features divided by √m"
        )
    return A if A.dtype.kind == "c" else A.astype(float)


def _isometry(A: NDArray[Any], s: int, n_starts: int, seed: int) -> Isometry:
    N = A.shape[1]
    if s == N:
        delta = _spectral(A)
        return Isometry(s, delta, delta, True, np.arange(N))
    if s == 1:
        own = np.abs(np.sum(np.abs(A) ** 2, axis=0) - 1)
        return Isometry(s, float(own.max()), float(own.max()), True, np.array([np.argmax(own)]))
    if comb(N, s) <= _MOST_SUPPORTS and comb(N, s) * s**3 <= _MOST_WORK:
        # There are at most a few hundred columns here, so the whole Gram matrix is small.
        delta, S = _largest(A.conj().T @ A, combinations(range(N), s))
        return Isometry(s, delta, delta, True, S)
    discs = _discs(A, s)
    upper = min(_spectral(A), float(discs.max()))
    first = np.argsort(-discs, kind="stable")[:n_starts]
    lower, S = _climb(A, s, first, n_starts, np.random.default_rng(seed))
    # Rounding can put the lower bound above the upper.
    return Isometry(s, lower, max(lower, upper), False, S)


def _spectral(A: NDArray[Any]) -> float:
    """‖A*A - I‖."""
    m, N = A.shape
    singular = np.linalg.svd(A, compute_uv=False)
    smallest = singular[-1] if m >= N else 0.0
    return float(max(singular[0] ** 2 - 1, 1 - smallest**2, 0.0))


def _largest(
    gram: NDArray[Any], supports: Iterator[tuple[int, ...]]
) -> tuple[float, NDArray[np.intp]]:
    """Largest distance from an isometry over these supports, and where it is attained."""
    best, where = -np.inf, np.empty(0, dtype=np.intp)
    while batch := list(islice(supports, _BATCH)):
        S = np.array(batch, dtype=np.intp)
        values = np.linalg.eigvalsh(gram[S[:, :, None], S[:, None, :]])
        distance = np.maximum(values[:, -1] - 1, 1 - values[:, 0])
        place = int(np.argmax(distance))
        if distance[place] > best:
            best, where = float(distance[place]), S[place]
    return max(best, 0.0), where


def _discs(A: NDArray[Any], s: int) -> NDArray[np.float64]:
    """|‖a_j‖² - 1| plus the s - 1 largest |<a_j, a_k>|, for every column."""
    N = A.shape[1]
    discs = np.empty(N)
    for part in blocks(N, _COLUMNS):
        gram = A[:, part].conj().T @ A
        diagonal = np.arange(len(gram)), np.arange(part.start, part.stop)
        own = np.abs(gram[diagonal] - 1)
        products = np.abs(gram)
        products[diagonal] = -1.0  # below all others
        others = np.partition(products, N - s, axis=1)[:, N - s + 1 :]
        discs[part] = own + others.sum(axis=1)
    return discs


def _climb(
    A: NDArray[Any],
    s: int,
    first: NDArray[np.intp],
    n_starts: int,
    rng: np.random.Generator,
) -> tuple[float, NDArray[np.intp]]:
    """A support far from an isometry: power iterations truncated to the s largest entries."""
    N = A.shape[1]
    starts = [np.array([j]) for j in first]
    starts += [rng.choice(N, s, replace=False) for _ in range(n_starts)]
    # All starts run together, each in two columns: one for A*A, which finds supports that stretch,
    # one for I - A*A, which finds those that shrink. A shift above 1 would keep starts in place.
    X = np.zeros((N, 2 * len(starts)), A.dtype)
    for k, start in enumerate(starts):
        X[start, 2 * k : 2 * k + 2] = rng.standard_normal(len(start))[:, None]
    adjoint = A.conj().T
    kept = np.empty(0, dtype=np.intp)
    for _ in range(_POWER_STEPS):
        image = adjoint @ (A @ X)
        image[:, 1::2] = X[:, 1::2] - image[:, 1::2]
        largest = np.sort(np.argpartition(np.abs(image), N - s, axis=0)[N - s :], axis=0)
        X = np.zeros_like(X)
        np.put_along_axis(X, largest, np.take_along_axis(image, largest, axis=0), axis=0)
        X /= np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny)
        if np.array_equal(largest, kept):
            break
        kept = largest
    found = np.unique(largest, axis=1).T
    distances = [_spectral(A[:, S]) for S in found]
    best = int(np.argmax(distances))
    return distances[best], found[best]
