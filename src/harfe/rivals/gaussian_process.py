"""A Gaussian process with one length scale per input, fast enough for 90 inputs.

scikit-learn's gradient with respect to d length scales builds an m × m × d array at every step;
here the same gradient costs one product of an m × m and an m × d matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from harfe._core.arguments import check_count
from harfe._core.threads import blocks
from harfe.rivals._base import Rival
from harfe.rivals._scaling import Scaling
from harfe.rivals._search import Family, OnlyFit
from harfe.rivals._settings import numbers

# Rows predicted at a time, to limit memory.
_ROW_BLOCK = 2048

# Logarithms; so wide that only useless inputs (length scale) or noise-free data reach them.
_VARIANCE_BOUNDS = (np.log(1e-3), np.log(1e4))
_LENGTH_BOUNDS = (np.log(1e-2), np.log(1e4))
_NOISE_BOUNDS = (np.log(1e-8), np.log(1e1))


def squared_distances(X: NDArray[np.float64], Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """‖x - z‖² for every row x of X and z of Z; never below 0."""
    product = X @ Z.T
    product *= -2
    product += np.sum(X**2, axis=1)[:, None]
    product += np.sum(Z**2, axis=1)
    return np.maximum(product, 0, out=product)


def negative_log_likelihood(
    theta: NDArray[np.float64], X: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """½ yᵀC⁻¹y + ½ log|C| + ½ m log 2π, and its gradient, for C = v·exp(-½ Σ (Δx/l)²) + σ² I.

    Parameters
    ----------
    theta : array of d + 2 numbers
        Logarithms of v, of the d length scales l and of σ².
    X, y : arrays (m, d) and (m,)
        Inputs and centred target.
    """
    variance, lengths, noise = np.exp(theta[0]), np.exp(theta[1:-1]), np.exp(theta[-1])
    m, Z = len(X), X / lengths
    signal = squared_distances(Z, Z)
    signal *= -0.5
    np.exp(signal, out=signal)
    signal *= variance
    C = signal.copy()
    C[np.diag_indices(m)] += noise
    try:
        L = cholesky(C, lower=True, check_finite=False, overwrite_a=True)
    except np.linalg.LinAlgError:  # far too little noise: makes the line search step back
        return 1e25, np.zeros_like(theta)
    alpha = cho_solve((L, True), y, check_finite=False)
    value = 0.5 * y @ alpha + np.log(np.diag(L)).sum() + 0.5 * m * np.log(2 * np.pi)
    inverse, _ = dpotri(L, lower=1)  # the lower triangle only
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    # d value / d parameter = ½ tr((C⁻¹ - ααᵀ) dC/d parameter)
    trace_noise = noise * (np.trace(inverse) - alpha @ alpha)
    inverse -= np.outer(alpha, alpha)
    inverse *= signal
    # Σᵢⱼ Hᵢⱼ (zᵢₖ - zⱼₖ)² = 2 (Σᵢ zᵢₖ² Σⱼ Hᵢⱼ - zₖᵀ H zₖ) for a symmetric H, for all k at once
    per_length = 2 * (inverse.sum(axis=1) @ Z**2 - np.sum(Z * (inverse @ Z), axis=0))
    return value, 0.5 * np.concatenate([[inverse.sum()], per_length, [trace_noise]])


@dataclass(frozen=True)
class Process:
    """The posterior mean of a Gaussian process conditioned on some rows.

    Attributes
    ----------
    scaling : Scaling
    theta : array of d + 2 numbers
        Logarithms of variance, length scales and noise, in the units of `scaling`.
    Z : array of shape (rows, d)
        Inputs of the rows, in units of the length scales.
    dual_coef : array of shape (rows,)
    log_likelihood : float
    n_iter : int
        Number of steps from the best start.
    """

    scaling: Scaling
    theta: NDArray[np.float64]
    Z: NDArray[np.float64]
    dual_coef: NDArray[np.float64]
    log_likelihood: float
    n_iter: int

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Posterior mean at every row of X."""
        mean = np.empty(len(X))
        for rows in blocks(len(X), _ROW_BLOCK):
            scaled = self.scaling.apply(X[rows]) / np.exp(self.theta[1:-1])
            with np.errstate(over="ignore"):  # overflow means covariance 0, which is right
                distances = squared_distances(scaled, self.Z)
            mean[rows] = np.exp(self.theta[0] - 0.5 * distances) @ self.dual_coef
        return mean


def learn_process(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    rows: NDArray[np.intp],
    *,
    condition_on_all: bool,
    max_iter: int,
    start_lengths: Sequence[float],
) -> Process:
    """Maximise the likelihood of some rows, from several starts, and factor the covariance."""
    scaling = Scaling.standard(X)
    X = scaling.apply(X)
    d = X.shape[1]
    bounds = [_VARIANCE_BOUNDS, *[_LENGTH_BOUNDS] * d, _NOISE_BOUNDS]
    ends = []
    for length in start_lengths:
        lengths = np.full(d, np.log(length * np.sqrt(d)))
        ends.append(
            minimize(
                negative_log_likelihood,
                np.concatenate([[0.0], lengths, [np.log(0.1)]]),
                args=(X[rows], y[rows]),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": max_iter},
            )
        )
    best = min(ends, key=lambda end: float(end.fun))
    theta = best.x
    used = slice(None) if condition_on_all else rows
    Z = X[used] / np.exp(theta[1:-1])
    C = np.exp(theta[0] - 0.5 * squared_distances(Z, Z))
    # The extra shift keeps the larger matrix of all rows positive definite too.
    C[np.diag_indices(len(C))] += np.exp(theta[-1]) + 1e-10
    L = cholesky(C, lower=True)
    inner = solve_triangular(L, y[used], lower=True)
    dual_coef = solve_triangular(L, inner, lower=True, trans="T")
    return Process(scaling, theta, Z, dual_coef, -float(best.fun), int(best.nit))


class ARDProcessRegressor(Rival):
    """Mean of a Gaussian process with one length scale per input, fitted by maximum likelihood.

    Maximises log N(y; 0, C) over v, l and σ, with C = v·exp(-½ Σ_j (Δx_j / l_j)²) + σ²I on
    standardised inputs and target. It is not in the paper's tables, but it is the strongest method
    that they leave out.

    Parameters
    ----------
    max_rows : int, default=500
        The likelihood is maximised on at most this many rows, drawn at random.
    condition_on_all : bool, default=False
        Whether predictions use all rows (with the settings learned on `max_rows`).
    max_iter : int, default=100
        Maximum number of L-BFGS steps from each start.
    start_lengths : float or sequence of float, default=(1.0,)
        Starting length scales, in units of √d. The start with the best result wins.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the rows.

    Attributes
    ----------
    lengths_ : array
        Length scales of the inputs that vary, in units of their standard deviations.
    theta_ : array
        Logarithms of variance, length scales and noise.
    log_likelihood_ : float
    n_iter_ : int
    size_ : int
        Number of rows a prediction needs.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning, 2006, equation 5.8
    and Section 5.1 (automatic relevance determination).

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import ARDProcessRegressor
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = ARDProcessRegressor().fit(data.X, data.y)
    >>> model.size_
    100
    """

    function_: Process

    # Nothing is chosen by cross-validation, so there is nothing to report.
    cv = None
    verbose = False

    def __init__(
        self,
        max_rows: int = 500,
        *,
        condition_on_all: bool = False,
        max_iter: int = 100,
        start_lengths: Any = (1.0,),
        random_state: Any = None,
    ) -> None:
        self.max_rows = max_rows
        self.condition_on_all = condition_on_all
        self.max_iter = max_iter
        self.start_lengths = start_lengths
        self.random_state = random_state

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        check_count("max_rows", self.max_rows, 500)
        check_count("max_iter", self.max_iter, 100)
        numbers("start_lengths", self.start_lengths, [1.0])
        return [Family("likelihood", [{}], lambda: OnlyFit(lambda: self._learn(X, y)))]

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Process:
        rows = np.arange(len(y))
        if len(y) > self.max_rows:
            drawn = check_random_state(self.random_state).permutation(len(y))
            rows = np.sort(drawn[: self.max_rows])
        return learn_process(
            X,
            y,
            rows,
            condition_on_all=self.condition_on_all,
            max_iter=self.max_iter,
            start_lengths=numbers("start_lengths", self.start_lengths, [1.0]),
        )

    def _count_size(self) -> int:
        return len(self.function_.Z)

    @property
    def theta_(self) -> NDArray[np.float64]:
        """Logarithms of variance, length scales and noise."""
        return self.function_.theta

    @property
    def lengths_(self) -> NDArray[np.float64]:
        """Length scales of the inputs that vary, in units of their standard deviations."""
        return np.exp(self.theta_[1:-1])

    @property
    def log_likelihood_(self) -> float:
        """Log likelihood of the rows used to learn the settings."""
        return self.function_.log_likelihood

    @property
    def n_iter_(self) -> int:
        """Number of L-BFGS steps; 0 if nothing could be learned."""
        return getattr(self.function_, "n_iter", 0)
