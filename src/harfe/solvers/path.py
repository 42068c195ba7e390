"""Pruning all features to a few: solve ridge, drop the smallest coefficients, solve again.

    minimise over c   (1/M) Σ_k w_k |y_k - (A c)_k|² + α‖c‖²   subject to ‖c‖₀ <= s, for many s

Algorithm 1 builds a support from the features that correlate best with the residual, round by
round; a pruned path starts from the ridge solution on all features, which accounts for how they
overlap, and ends lower in most problems (``benchmarks/objective.py``). Every solve is on the
smaller side: that of the rows while there are more features, then that of the features, where the
Gram matrix is computed once and then only cut. So the whole path costs a few ridge solves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import check_alpha, is_whole
from harfe._core.threads import blocks, n_threads, one_blas_thread, run_blocks
from harfe.solvers.matrix import as_problem
from harfe.solvers.problem import ROW_BLOCK, Problem
from harfe.solvers.ridge import RestrictedRidge, smallest_safe_shift, solve_shifted
from harfe.solvers.solution import SparseSolution
from harfe.solvers.threshold import largest_rows

# Ridge weight with which features are ranked until the core is reached. Measured: whatever the α of
# the fit, cores found with 0.1 predict better than cores found with a small α, which fit noise
# (docs/decisions/0017). It also makes the core the same for every α.
_RANKING_ALPHA = 0.1

# Number of features in the core; from there on every α prunes by its own solutions.
_CORE = 600
_SMALLEST_CORE = 50

# Share of the features kept: above the core, where the cost of a level grows with its features, and
# within it, where levels are cheap.
_KEEP_ABOVE_CORE = 0.5
_KEEP = 0.75

# No larger system is solved: if there are more rows and more features than this, features are first
# screened by their correlation with the residual.
LARGEST_SIDE = 3000
_SCREENING_ROUNDS = 4

# Factor that keeps a shift safe despite the rounding of the bound itself.
_JUST_SAFE = 1.01

# Number of ridge weights that one thread sweeps together.
_ALPHA_BLOCK = 7


@dataclass(frozen=True)
class PathLevel(SparseSolution):
    """One sparsity level: the ridge solution on a support, and its objective."""

    objective: float


@dataclass(frozen=True)
class SparsityPath:
    """The levels of a path, from the largest support to the smallest; supports are nested.

    Attributes
    ----------
    alpha : float
        Ridge weight of every level.
    levels : tuple of PathLevel
        Each with `support`, `objective`, and `coef` (N or targets × N numbers) and `intercept` for
        the columns as given; ``A @ level.coef.T + level.intercept`` predicts y.
    """

    alpha: float
    levels: tuple[PathLevel, ...]

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of kept features at every level, decreasing."""
        return np.array([len(level.support) for level in self.levels], dtype=np.intp)

    @property
    def objectives(self) -> NDArray[np.float64]:
        """Value of the objective at every level."""
        return np.array([level.objective for level in self.levels])


def sparsity_path(
    A: ArrayLike | Problem,
    y: ArrayLike | None = None,
    *,
    alpha: float,
    n_nonzero_coefs: int | Sequence[int] = 1,
    sample_weight: ArrayLike | None = None,
    fit_intercept: bool = True,
    column_scale: str = "rms",
) -> SparsityPath:
    """Minimise (1/M) Σ_k w_k |y_k - ȳ - (A c)_k|² + α‖c‖² approximately, for many sparsities.

    Prunes from the ridge solution on all columns to a few, with a ridge solution at every level.
    Here the columns of A are centred and scaled to unit root-mean-square, and M = Σ w; the
    coefficients returned are for the columns as given.

    Parameters
    ----------
    A : array of shape (m, N), or problem
        Real or complex; or the result of :func:`sparse_ridge_problem`, in which case y,
        sample_weight, fit_intercept and column_scale are left out.
    y : array of shape (m,) or (m, targets)
        Real or complex. Several targets share the supports; each is divided by its deviation.
    alpha : float
        Ridge weight of the scaled problem, >= 0. Where rounding would decide the solution, it is
        raised to the smallest weight for which it does not.
    n_nonzero_coefs : int or sequence of int, default=1
        Sizes that the path must visit; it ends at the smallest. It visits others in between, each
        with three quarters (half while there are many) of the previous columns.
    sample_weight : array of shape (m,), default=None
        How often each row counts, w: 2 is like two copies of the row, 0 like none.
    fit_intercept : bool, default=True
        Centre the columns and y.
    column_scale : {"rms", "none"}, default="rms"
        Scale the columns to unit root-mean-square, or not at all.

    Returns
    -------
    SparsityPath

    See Also
    --------
    hard_ridge_pursuit : Algorithm 1 for one sparsity; ``init="graded"`` continues from a path.

    Examples
    --------
    >>> import numpy as np
    >>> from harfe import sparsity_path
    >>> A = np.random.default_rng(0).normal(size=(50, 200))
    >>> y = 3 * A[:, 7] - A[:, 60] + 2 * A[:, 150] + 1
    >>> path = sparsity_path(A, y, alpha=1e-6, n_nonzero_coefs=[3, 1])
    >>> for level in path.levels[-3:]:
    ...     print(level.support, round(level.objective, 3))
    [  7  60 150] 0.0
    [  7 150] 0.745
    [7] 5.566
    """
    check_alpha(alpha)
    problem = as_problem(
        A, y, sample_weight=sample_weight, fit_intercept=fit_intercept, column_scale=column_scale
    )
    sizes: list[Any] = list(np.atleast_1d(np.asarray(n_nonzero_coefs, dtype=object)))
    if not sizes or not all(is_whole(s) and 1 <= s <= problem.shape[1] for s in sizes):
        raise ValueError(
            f"n_nonzero_coefs={n_nonzero_coefs!r} must be whole numbers from 1 to the number of "
            f"columns, {problem.shape[1]}, e.g. n_nonzero_coefs=[{problem.shape[1]}, 1]"
        )
    with one_blas_thread():
        levels = [
            PathLevel.of(problem, S, c, objective=_objective(problem, S, c, alpha))
            for S, c in _levels(problem, alpha, sizes)
        ]
    return SparsityPath(alpha, tuple(levels))


def _objective(problem: Problem, S: NDArray[np.intp], c: NDArray[Any], alpha: float) -> float:
    return float(np.sum(problem.rss(S, c)) + alpha * np.sum(np.abs(c) ** 2))


def largest_system(n_rows: int, n_features: int, s: int) -> int:
    """Largest support or number of rows that a path down to s solves for."""
    return max(s, min(n_rows, n_features, LARGEST_SIDE))


def working_numbers(n_rows: int, n_features: int, s: int) -> int:
    """Numbers that a path stores in addition to its systems: blocks of all features, a sweep."""
    blocks_of_features = 4 * min(n_features, ROW_BLOCK) * n_rows
    core = max(min(_CORE, n_features), s)
    return blocks_of_features + 2 * n_threads() * _ALPHA_BLOCK * core**2


def _levels(
    problem: Problem, alpha: float, sizes: Sequence[int]
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    above = _screened(problem, max(sizes))
    while (smaller := above.step_to_core(max(sizes))) is not above:
        yield above.support, above.solve(alpha)
        above = smaller
    yield from above.prune(alpha, sizes)


def find_core(problem: Problem, largest: int) -> Reduced:
    """Prune all features to a core of at least `largest` features, if there are that many.

    The result can be pruned further for any number of α, without another pass over all features.
    """
    reduced = _screened(problem, largest)
    while (smaller := reduced.step_to_core(largest)) is not reduced:
        reduced = smaller
    return reduced


@dataclass(frozen=True)
class Reduced:
    """The problem on a support, on its smaller side: all that further pruning needs.

    Attributes
    ----------
    problem : Problem
    support : int array of shape (s,), sorted
    matrix, right : arrays
        A_S*A_S/M with A_S*y/M, or A_S A_S*/M with y if there are fewer rows.
    """

    problem: Problem
    support: NDArray[np.intp]
    matrix: NDArray[Any]
    right: NDArray[Any]
    by_rows: bool

    @classmethod
    def of(cls, problem: Problem, S: NDArray[np.intp]) -> Reduced:
        """Reduce a problem to a support."""
        by_rows = problem.offers_kernel and problem.n_rows < len(S)
        matrix, right = problem.kernel(S) if by_rows else problem.normal(S)
        return cls(problem, S, matrix, right, by_rows)

    def solve(self, alpha: float) -> NDArray[Any]:
        """Ridge solution on the support, shape (s, targets); α is raised if rounding requires."""
        shift = max(alpha, _JUST_SAFE * float(smallest_safe_shift(self.matrix)))
        v = solve_shifted(self.matrix, shift, self.right)
        assert v is not None
        return self.problem.pull_back(self.support, v) if self.by_rows else v

    def keep(self, places: NDArray[np.intp]) -> Reduced:
        """Reduce further, to the features at these sorted places of the support."""
        S = self.support[places]
        if self.by_rows:
            return Reduced.of(self.problem, S)
        return Reduced(
            self.problem, S, self.matrix[np.ix_(places, places)], self.right[places], False
        )

    def step_to_core(self, largest: int) -> Reduced:
        """Drop features with small coefficients; return itself once no larger than the core."""
        # By weight, not by rows: a row of weight 2 counts as two rows.
        core = max(min(_CORE, int(self.problem.shape[0])), _SMALLEST_CORE, largest)
        size = len(self.support)
        if size <= core:
            return self
        kept = max(core, int(_KEEP_ABOVE_CORE * size))
        return self.keep(largest_rows(self.solve(_RANKING_ALPHA), kept))

    def prune(
        self, alpha: float, sizes: Sequence[int]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield supports of decreasing size, with ridge solutions; all `sizes` are visited."""
        reduced = self
        wanted = sorted({min(s, len(self.support)) for s in sizes}, reverse=True)
        while True:
            c = reduced.solve(alpha)
            yield reduced.support, c
            size = len(reduced.support)
            wanted = [s for s in wanted if s < size]
            if not wanted:
                return
            kept = max(wanted[0], int(_KEEP * size))
            reduced = reduced.keep(largest_rows(c, kept))


def prune_for_all(core: Reduced, alphas: Sequence[float], sizes: Sequence[int]) -> NDArray[Any]:
    """Coefficients on the core for every α and size: `Reduced.prune` for each α, in one sweep.

    Returns an array of shape (sizes, alphas, core, targets). Hundreds of small systems are solved
    in a few calls, which makes cross-validation over all of them cheap.
    """
    problem, S = core.problem, core.support
    gram, moment = problem.normal(S) if core.by_rows else (core.matrix, core.right)
    sizes = [min(s, len(S)) for s in sizes]
    out = np.zeros((len(sizes), len(alphas), len(S), problem.shape[2]), problem.dtype)

    def work(part: slice) -> None:
        shifts = np.asarray(alphas[part])
        places = np.tile(np.arange(len(S)), (len(shifts), 1))
        mine = np.arange(len(shifts))[:, None]
        wanted = sorted(set(sizes), reverse=True)
        while True:
            systems = gram[places[:, :, None], places[:, None, :]]
            shift = np.maximum(shifts, _JUST_SAFE * smallest_safe_shift(systems))
            diagonal = np.arange(places.shape[1])
            systems[:, diagonal, diagonal] += shift[:, None]
            c = np.linalg.solve(systems, moment[places])
            size = places.shape[1]
            for i, s in enumerate(sizes):
                if s == size:
                    out[i, part][mine, places] = c
            wanted = [s for s in wanted if s < size]
            if not wanted:
                return
            kept = max(wanted[0], int(_KEEP * size))
            # Stable: among equal coefficients the lower index stays, as in `largest_rows`.
            order = np.argsort(-np.sum(np.abs(c) ** 2, axis=2), axis=1, kind="stable")
            places = np.sort(np.take_along_axis(places, order[:, :kept], axis=1), axis=1)

    run_blocks(work, blocks(len(alphas), _ALPHA_BLOCK))
    return out


def _screened(problem: Problem, largest: int) -> Reduced:
    """All usable features, or those found by correlation if both sides are too large to solve.

    Each round adds the features that correlate best with the residual of the ridge solution on
    those found before.
    """
    S = np.flatnonzero(problem.usable)
    limit = max(LARGEST_SIDE, largest)
    # The weight matters too: a row of weight 2 counts as two rows.
    rows_solvable = problem.offers_kernel and max(problem.n_rows, problem.shape[0]) <= limit
    if len(S) <= limit or rows_solvable:
        return Reduced.of(problem, S)
    ridge = RestrictedRidge(problem, _RANKING_ALPHA)
    found = np.empty(0, dtype=np.intp)
    c = np.empty((0, problem.shape[2]), problem.dtype)
    for part in range(1, _SCREENING_ROUNDS + 1):
        gradient, _ = problem.gradient(found, c)
        new = problem.usable.copy()
        new[found] = False
        size = limit * part // _SCREENING_ROUNDS - len(found)
        found = np.sort(np.concatenate([found, largest_rows(gradient, size, new)]))
        if part < _SCREENING_ROUNDS:
            c = ridge.solve(found)
    return Reduced.of(problem, found)
