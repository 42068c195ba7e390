"""A Gaussian process with one length scale per input, fast enough for 90 inputs.

scikit-learn's gradient with respect to d length scales builds an array of m × m × d numbers at
every step; here the same gradient costs one matrix product of m × m by m × d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

# Logarithms; wide enough that only a useless input (length scale) or noise-free data end there.
_VARIANCE_BOUNDS = (np.log(1e-3), np.log(1e4))
_LENGTH_BOUNDS = (np.log(1e-2), np.log(1e4))
_NOISE_BOUNDS = (np.log(1e-8), np.log(1e1))


def squared_distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """‖x - z‖² for every row x of X and z of Z; never below 0."""
    product = X @ Z.T
    product *= -2
    product += np.sum(X**2, axis=1)[:, None]
    product += np.sum(Z**2, axis=1)
    return np.maximum(product, 0, out=product)


def negative_log_likelihood(
    theta: np.ndarray, X: np.ndarray, y: np.ndarray
) -> tuple[float, np.ndarray]:
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
    except np.linalg.LinAlgError:  # far too little noise: the line search steps back
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


class ARDGaussianProcess(RegressorMixin, BaseEstimator):
    """Mean of a Gaussian process with an ARD kernel, settings by maximal likelihood.

    Inputs and target should be standardised.

    Parameters
    ----------
    max_rows : int, default=500
        The likelihood is maximised on at most so many rows, drawn at random.
    condition_on_all : bool, default=False
        Whether predictions use all rows (with the settings learned on `max_rows`).
    max_iter : int, default=100
        Most steps of L-BFGS from each start.
    start_lengths : sequence of float, default=(1.0,)
        The starts: length scales in units of √d. The best end wins.
    random_state : int or None
        Seed of the choice of rows.
    """

    def __init__(
        self,
        max_rows: int = 500,
        condition_on_all: bool = False,
        max_iter: int = 100,
        start_lengths: Sequence[float] = (1.0,),
        random_state: int | None = None,
    ) -> None:
        self.max_rows = max_rows
        self.condition_on_all = condition_on_all
        self.max_iter = max_iter
        self.start_lengths = start_lengths
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> ARDGaussianProcess:
        """Learn variance, length scales and noise, and factor the covariance."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        rows = np.arange(len(X))
        if len(X) > self.max_rows:
            drawn = check_random_state(self.random_state).permutation(len(X))
            rows = np.sort(drawn[: self.max_rows])
        d = X.shape[1]
        bounds = [_VARIANCE_BOUNDS, *[_LENGTH_BOUNDS] * d, _NOISE_BOUNDS]
        ends = []
        for length in self.start_lengths:
            lengths = np.full(d, np.log(length * np.sqrt(d)))
            ends.append(
                minimize(
                    negative_log_likelihood,
                    np.concatenate([[0.0], lengths, [np.log(0.1)]]),
                    args=(X[rows], y[rows]),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=bounds,
                    options={"maxiter": self.max_iter},
                )
            )
        best = min(ends, key=lambda end: end.fun)
        self.theta_, self.n_iter_ = best.x, int(best.nit)
        self.log_likelihood_ = -float(best.fun)
        used = slice(None) if self.condition_on_all else rows
        self.lengths_ = np.exp(self.theta_[1:-1])
        self.Z_ = X[used] / self.lengths_
        C = np.exp(self.theta_[0] - 0.5 * squared_distances(self.Z_, self.Z_))
        # A little more than the noise keeps the larger matrix of all rows definite, too.
        C[np.diag_indices(len(C))] += np.exp(self.theta_[-1]) + 1e-10
        L = cholesky(C, lower=True)
        self.dual_coef_ = solve_triangular(
            L, solve_triangular(L, y[used], lower=True), lower=True, trans="T"
        )
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Posterior mean for every row of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        signal = np.exp(self.theta_[0] - 0.5 * squared_distances(X / self.lengths_, self.Z_))
        return signal @ self.dual_coef_
