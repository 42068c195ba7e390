"""SHRIMP: least squares on random features, repeatedly dropping the smallest quarter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import is_number
from harfe.rivals._settings import counts, numbers
from harfe.rivals.random_features.features import FeatureRival, Sparse
from harfe.solvers.problem import Problem
from harfe.solvers.ridge import smallest_safe_shift, solve_shifted
from harfe.solvers.threshold import largest_rows

# Eigenvalues of a Gram matrix below this share of the largest are rounding errors.
_EIGENVALUE_CUT = 1e-13

# Factor that keeps a shift safe despite the rounding of the bound itself.
_JUST_SAFE = 1.01

# Chosen by held-out error on training rows of Friedman 1, forestfire, housing and propulsion: noisy
# data need 0.1 or more, noise-free data almost nothing; values in between gained little.
_ALPHAS = (0.1, 1e-10)


def ladder(n_features: int, pruning: float) -> list[int]:
    """Sizes of the pruning path: all features, then a share fewer each round, down to one."""
    sizes = [n_features]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] - max(1, int(pruning * sizes[-1])))
    return sizes


def prune(
    problem: Problem, alphas: Sequence[float], sizes: Iterable[int], pruning: float = 0.25
) -> list[dict[int, Sparse]]:
    """Iterative magnitude pruning down to each of these sizes, for every α.

        c ← argmin (1/M) Σ_k w_k |y_k - (A_S c)_k|² + α‖c‖²,   S ← S without its smallest |c_j|

    α = 0 gives the solution of least norm; a positive α is raised to what rounding allows. A size
    between two rungs of the ladder is reached from the rung above and leaves the ladder unchanged,
    so a fit does not depend on the other sizes requested. If fewer features are usable than a size
    requires, all of them are used.
    """
    start = _System.of(problem, np.flatnonzero(problem.usable))
    wanted = set(sizes)
    rungs = [rung for rung in ladder(problem.shape[1], pruning) if rung >= min(wanted)]
    return [_prune_one(start, alpha, wanted, rungs) for alpha in alphas]


def _prune_one(
    start: _System, alpha: float, wanted: set[int], rungs: list[int]
) -> dict[int, Sparse]:
    found: dict[int, Sparse] = {}
    system, c = start, None
    for rung, below in zip(rungs, [*rungs[1:], 0], strict=True):
        if c is not None:
            system = system.keep_largest(c, rung)
        c = system.solve(alpha)
        for size in wanted.intersection(range(below + 1, rung + 1)):
            end = system.keep_largest(c, size)
            found[size] = end.support, c if end is system else end.solve(alpha)
    return found


@dataclass(frozen=True)
class _System:
    """The least-squares problem on a support, on its smaller side.

    `matrix` and `right` are A_S A_S*/M and y while there are more features than rows, then
    A_S*A_S/M and A_S*y/M.
    """

    problem: Problem
    support: NDArray[np.intp]
    matrix: NDArray[Any]
    right: NDArray[Any]
    by_rows: bool

    @classmethod
    def of(cls, problem: Problem, S: NDArray[np.intp]) -> _System:
        by_rows = problem.offers_kernel and problem.n_rows < len(S)
        matrix, right = problem.kernel(S) if by_rows else problem.normal(S)
        return cls(problem, S, matrix, right, by_rows)

    def keep_largest(self, c: NDArray[Any], size: int) -> _System:
        """Keep the features with the largest coefficients; return self if that is all of them."""
        if size >= len(self.support):
            return self
        places = largest_rows(c, size)
        S = self.support[places]
        if not self.by_rows:
            matrix, right = self.matrix[np.ix_(places, places)], self.right[places]
            return _System(self.problem, S, matrix, right, False)
        if len(S) <= max(self.problem.n_rows, len(self.support) // 2):
            return _System.of(self.problem, S)
        # Few are dropped: subtracting their part of the kernel is less work than a new one.
        dropped, _ = self.problem.kernel(np.delete(self.support, places))
        return _System(self.problem, S, self.matrix - dropped, self.right, True)

    def solve(self, alpha: float) -> NDArray[Any]:
        """Ridge solution on the support, shape (s, targets); of least norm if singular."""
        # An α below rounding error is raised until a Cholesky factor, which is ten times as fast as
        # eigenvalues, is reliable. Zero stays zero.
        safe = _JUST_SAFE * float(smallest_safe_shift(self.matrix))
        x = solve_shifted(self.matrix, max(alpha, safe) if alpha else 0.0, self.right)
        if x is None:
            values, U = np.linalg.eigh(self.matrix)
            kept = values > _EIGENVALUE_CUT * values[-1]
            U = U[:, kept]
            x = U @ ((U.conj().T @ self.right) / values[kept, None])
        return self.problem.pull_back(self.support, x) if self.by_rows else x


class SHRIMPRegressor(FeatureRival):
    """Sparse random features by iterative magnitude pruning.

    Minimises (1/m) Σ_k |y_k - ȳ - (A_S c)_k|² + α‖c‖² on all N features, drops the quarter with the
    smallest |c_j|, refits the others, and repeats; order and size minimise the error on held-out
    rows. SHRIMP as in the paper's introduction.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of features drawn, N. "auto" is ten times the number of rows or inputs, whichever is
        larger, between 1000 and 10 000.
    order, scale, alpha : "auto", a number or a list, default="auto"
        Inputs per feature, scale of the weights, ridge weight. Lists and "auto" are candidates,
        chosen by cross-validation; "auto" is 1 to 5, (1, 2) and (0.1, 1e-10). α = 0 is the
        original method: the solution of least norm.
    n_nonzero_coefs : "auto", an int or a list, default="auto"
        Number of features kept, s. "auto" tries all sizes on the pruning path.
    pruning : float, default=0.25
        Share of the features dropped in every round.
    activation, weights, bias, fit_intercept, input_scale, column_scale, memory_budget
        As in :class:`~harfe.HARFERegressor`.
    cv : int, splitter or iterable, default=5
        Cross-validation folds that choose the settings.
    verbose : bool, default=False
        Print progress to standard error: candidates tried, best so far, time left.
    random_state : int, RandomState instance or None, default=None
        Seed of features and folds.

    Attributes
    ----------
    order_, scale_, alpha_, n_nonzero_coefs_
        The chosen settings; also in `best_params_`.
    cv_results_ : dict or None
        Results of all candidates, as in scikit-learn; None if nothing was compared.
    expansion_ : Expansion
        The fitted expansion.
    size_ : int
        Number of non-zero coefficients.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    Y. Xie, R. Shi, H. Schaeffer, R. Ward: SHRIMP: Sparser random feature models via iterative
    magnitude pruning, 2021.

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import SHRIMPRegressor
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = SHRIMPRegressor(200, order=2, scale=1.0, n_nonzero_coefs=20, random_state=0)
    >>> model.fit(data.X, data.y).size_
    20
    """

    orders = (1, 2, 3, 4, 5)
    scales = (1.0, 2.0)

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        order: Any = "auto",
        scale: Any = "auto",
        alpha: Any = "auto",
        n_nonzero_coefs: Any = "auto",
        pruning: float = 0.25,
        activation: str = "sin",
        weights: str = "normal",
        bias: str = "phase",
        fit_intercept: bool = True,
        input_scale: str = "standard",
        column_scale: str = "rms",
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.order = order
        self.scale = scale
        self.alpha = alpha
        self.n_nonzero_coefs = n_nonzero_coefs
        self.pruning = pruning
        self.activation = activation
        self.weights = weights
        self.bias = bias
        self.fit_intercept = fit_intercept
        self.input_scale = input_scale
        self.column_scale = column_scale
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _knobs(self, m: int, N: int) -> list[dict[str, Any]]:
        if not is_number(self.pruning) or not 0 < self.pruning < 1:
            raise ValueError(
                f"pruning={self.pruning!r} must be a number between 0 and 1, the share of features "
                "dropped in every round, e.g. pruning=0.25"
            )
        rungs = ladder(N, self.pruning)[::-1]
        sizes = counts("n_nonzero_coefs", self.n_nonzero_coefs, rungs, most=N, of="features")
        alphas = numbers("alpha", self.alpha, _ALPHAS, zero=True)
        return [{"n_nonzero_coefs": size, "alpha": alpha} for size in sizes for alpha in alphas]

    def _path(self, problem: Problem, knobs: Sequence[dict[str, Any]]) -> list[Sparse]:
        sizes = [knob["n_nonzero_coefs"] for knob in knobs]
        alphas = sorted({knob["alpha"] for knob in knobs})
        paths = dict(zip(alphas, prune(problem, alphas, sizes, self.pruning), strict=True))
        return [paths[knob["alpha"]][knob["n_nonzero_coefs"]] for knob in knobs]
