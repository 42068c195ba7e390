"""SpAM: sparse additive models, a group lasso on splines of single inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from sklearn.utils.validation import check_is_fitted

from harfe._core.threads import memory_bytes
from harfe._core.validation import check_inputs
from harfe.rivals._base import Constant, Rival
from harfe.rivals._scaling import Scaling
from harfe.rivals._search import Family
from harfe.rivals._settings import counts, numbers
from harfe.rivals.solvers.group_lasso import group_lasso_path, orthonormal

# Shares of λ_max. Noise-free targets choose the last, and smaller shares gain little.
_ALPHAS = np.geomspace(1.0, 1e-4, 33)
_BASES = (4, 6, 10, 16)

_DEGREE = 3

# Directions of a basis that hardly vary over the rows (a gap before an outlier) would be scaled up
# to unit variance and be wild inside the gap. Cross-validation on the paper's training rows cannot
# distinguish 1e-6 from 1e-2; this lies between.
_CUT = 1e-3

# Duality gaps as shares of the objective: of fits that are compared, and of the final fit.
_TOL, _FINAL_TOL = 1e-3, 1e-7
_FINAL_SWEEPS = 10_000


def spline_knots(values: NDArray[np.float64], n_basis: int) -> NDArray[np.float64]:
    """Knots on [0, 1], inner ones at quantiles, for at most `n_basis` splines (cubic if >= 4).

    Equal quantiles, as integers have them, give one knot; quantiles at an end give none.
    """
    degree = min(_DEGREE, n_basis - 1)
    inner = np.quantile(values, np.linspace(0.0, 1.0, n_basis - degree + 1)[1:-1])
    inner = np.unique(inner[(inner > 0.0) & (inner < 1.0)])
    return np.concatenate([np.zeros(degree + 1), inner, np.ones(degree + 1)])


def spline_values(values: NDArray[np.float64], knots: NDArray[np.float64]) -> NDArray[np.float64]:
    """B-splines at values in [0, 1], (values, splines)."""
    degree = int(np.count_nonzero(knots == 0.0)) - 1
    dense: NDArray[np.float64] = BSpline.design_matrix(values, knots, degree).toarray()
    return dense


@dataclass(frozen=True)
class InputSplines:
    """Spline functions of one scaled input, centred and orthonormal on some rows."""

    knots: NDArray[np.float64]
    centre: NDArray[np.float64]
    transform: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64], n_basis: int) -> InputSplines:
        """At most `n_basis` functions, fewer if there are few distinct values."""
        knots = spline_knots(values, n_basis)
        raw = spline_values(values, knots)
        centre = raw.mean(axis=0)
        return cls(knots, centre, orthonormal(raw - centre, _CUT)[1])

    def apply(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the functions, (values, functions)."""
        return (spline_values(values, self.knots) - self.centre) @ self.transform


@dataclass(frozen=True)
class AdditiveSplines:
    """f(x) = b + Σ_j Ψ_j(x_j) b_j.

    Attributes
    ----------
    scaling : Scaling
        To the unit cube of the rows; values outside are clipped, so that a component is constant
        beyond the training range.
    splines : sequence of InputSplines
        One per input that varies.
    coefficients : sequence of arrays
        b_j.
    intercept : float
        b.
    penalty : float
        λ.
    """

    scaling: Scaling
    splines: Sequence[InputSplines]
    coefficients: Sequence[NDArray[np.float64]]
    intercept: float
    penalty: float

    def components(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ψ_j(x_j) b_j for every input, (rows, inputs)."""
        values = np.zeros(X.shape)
        scaled = self.scaling.apply(X)
        for place, j in enumerate(self.scaling.columns):
            if np.any(self.coefficients[place]):
                basis = self.splines[place].apply(scaled[:, place])
                values[:, j] = basis @ self.coefficients[place]
        return values

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at the rows of X."""
        values: NDArray[np.float64] = self.intercept + self.components(X).sum(axis=1)
        return values


@dataclass(frozen=True)
class _SplineFits:
    """Fits with one number of splines per input."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    n_basis: int
    shares: NDArray[np.float64]

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[np.float64]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        X, y = self.X[train], self.y[train]
        scaling, splines = spline_blocks(X, self.n_basis)
        mean = y.mean()
        columns = np.concatenate(_evaluated(scaling, splines, self.X[out]), axis=1)
        path = group_lasso_path(
            _evaluated(scaling, splines, X),
            y - mean,
            self.shares,
            watched=(columns, self.y[out] - mean),
            tol=_TOL,
        )
        return mean + path.coefficients @ columns.T

    def fit(self, which: int) -> AdditiveSplines:
        """The fit on all rows with one of the settings."""
        return sparse_additive_fit(self.X, self.y, self.n_basis, float(self.shares[which]))


def spline_blocks(X: NDArray[np.float64], n_basis: int) -> tuple[Scaling, list[InputSplines]]:
    """The splines of all inputs that vary on these rows."""
    scaling = Scaling.unit_cube(X)
    return scaling, [InputSplines.of(values, n_basis) for values in scaling.apply(X).T]


def _evaluated(
    scaling: Scaling, splines: Sequence[InputSplines], X: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    return [one.apply(values) for one, values in zip(splines, scaling.apply(X).T, strict=True)]


def sparse_additive_fit(
    X: NDArray[np.float64], y: NDArray[np.float64], n_basis: int, share: float
) -> AdditiveSplines:
    """The fit for one share of λ_max."""
    scaling, splines = spline_blocks(X, n_basis)
    blocks = _evaluated(scaling, splines, X)
    mean = float(y.mean())
    # Larger penalties come first: each solution starts the next.
    shares = np.append(_ALPHAS[share < _ALPHAS], share)
    path = group_lasso_path(blocks, y - mean, shares, tol=_FINAL_TOL, max_sweeps=_FINAL_SWEEPS)
    ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
    coefficients = np.split(path.coefficients[-1], ends)
    return AdditiveSplines(scaling, splines, coefficients, mean, float(path.penalties[-1]))


class SpAMRegressor(Rival):
    """Sparse additive model: splines of single inputs, few of them kept by the penalty.

    Minimises (1/2m)‖y - ȳ - Σ_j Ψ_j b_j‖² + λ Σ_j ‖Ψ_j b_j‖/√m over the coefficients b_j of
    splines Ψ_j of the inputs: SpAM of the paper's Table 4. At its solution every component is a
    shrunken smooth of the residual of the others, f_j = [1 - λ/‖P_j‖]_+ P_j with P_j the projection
    of y - ȳ - Σ_{k≠j} f_k on the splines and ‖P_j‖ its root-mean-square: the sparse backfitting of
    the original. With splines that are orthonormal on the rows, this is a group lasso and is solved
    as one.

    Splines are cubic (of lower degree if n_basis < 4), with inner knots at quantiles and outer ones
    at the ends of the training range; values beyond it are moved to its nearest end. An input with
    few distinct values has fewer splines, one with two values a single spline. Components have mean
    zero on the training rows. The kept inputs are not refitted.

    Parameters
    ----------
    n_basis : int, "auto" or a list, default="auto"
        Splines per input, including the constant: at least 2. Lists and "auto" are candidates,
        chosen by cross-validation; "auto" is (4, 6, 10, 16).
    alpha : float, "auto" or a list, default="auto"
        λ/λ_max, where λ_max is the smallest λ at which all components are zero, computed for each
        fold. "auto" is 33 numbers from 1 to 1e-4.
    memory_budget : "auto" or float, default="auto"
        Bytes a fit may use; "auto" is half of the free memory.
    cv : int, splitter or iterable, default=5
        Cross-validation folds that choose the settings.
    verbose : bool, default=False
        Print progress to standard error: candidates tried, best so far, time left.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    Attributes
    ----------
    n_basis_, alpha_
        The chosen settings; also in `best_params_`.
    selected_ : int array
        Inputs whose component is not zero.
    component_norms_ : array of shape (n_features_in_,)
        Root-mean-square of every component on the training rows, in units of y.
    intercept_ : float
        Mean of y on the training rows.
    lambda_ : float
        λ, for y with variance 1.
    cv_results_ : dict or None
        Results of all candidates, as in scikit-learn; None if nothing was compared.
    size_ : int
        Number of non-zero coefficients.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    P. Ravikumar, H. Liu, J. Lafferty, L. Wasserman: SpAM: Sparse additive models, NIPS 2007; Sparse
    additive models, JRSSB 2009 (the sparse backfitting algorithm).

    Examples
    --------
    >>> import numpy as np
    >>> from harfe.rivals import SpAMRegressor
    >>> X = np.random.default_rng(0).uniform(size=(100, 5))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 3] ** 2
    >>> model = SpAMRegressor(n_basis=6, alpha=0.2).fit(X, y)
    >>> model.selected_
    array([0, 3])
    """

    function_: AdditiveSplines | Constant

    def __init__(
        self,
        *,
        n_basis: Any = "auto",
        alpha: Any = "auto",
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.alpha = alpha
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        m, d = X.shape
        sizes = counts("n_basis", self.n_basis, _BASES, most=max(m, 2), of="rows")
        if min(sizes) < 2:
            raise ValueError(
                f"n_basis={self.n_basis!r} has a value below 2, but one spline is a constant; "
                "pass n_basis=4 or more for cubic splines"
            )
        shares = np.array(numbers("alpha", self.alpha, _ALPHAS.tolist()))
        # The splines, a copy for the solver, and the coefficients of the path.
        need = 8.0 * d * max(sizes) * (3 * m + len(shares))
        if need > memory_bytes(self.memory_budget):
            raise MemoryError(
                f"splines of {d} inputs at {m} rows need {need:.2g} bytes, more than "
                f"memory_budget={self.memory_budget!r}; pass n_basis below {max(sizes)} or fewer "
                "rows"
            )
        return [
            Family(
                f"{size} splines",
                [{"n_basis": size, "alpha": float(share)} for share in shares],
                lambda size=size: _SplineFits(X, y, size, shares),  # type: ignore[misc]
            )
            for size in sizes
        ]

    def components(self, X: Any) -> NDArray[np.float64]:
        """Values of every component; they and `intercept_` sum to the prediction.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features)
            Zero for inputs that are not selected.
        """
        check_is_fitted(self, "function_")
        X = check_inputs(self, X, reset=False)
        if isinstance(self.function_, Constant):
            return np.zeros(X.shape)
        return self.function_.components(X) * self._unit

    @property
    def component_norms_(self) -> NDArray[np.float64]:
        """Root-mean-square of every component on the training rows, in units of y."""
        check_is_fitted(self, "function_")
        norms = np.zeros(self.n_features_in_)
        if not isinstance(self.function_, Constant):
            # The splines are orthonormal on the training rows.
            sizes = [np.linalg.norm(beta) for beta in self.function_.coefficients]
            norms[self.function_.scaling.columns] = sizes
        return norms * self._unit

    @property
    def selected_(self) -> NDArray[np.intp]:
        """Inputs whose component is not zero."""
        return np.flatnonzero(self.component_norms_)

    @property
    def intercept_(self) -> float:
        """Mean of y on the training rows."""
        check_is_fitted(self, "function_")
        if isinstance(self.function_, Constant):
            return float(self.function_.value * self._unit + self._centre)
        return float(self.function_.intercept * self._unit + self._centre)

    @property
    def lambda_(self) -> float:
        """λ, for y with variance 1."""
        check_is_fitted(self, "function_")
        return 0.0 if isinstance(self.function_, Constant) else self.function_.penalty

    def _count_size(self) -> int:
        assert isinstance(self.function_, AdditiveSplines)
        return int(sum(np.count_nonzero(beta) for beta in self.function_.coefficients))
