"""How far a new observation may lie from the prediction.

With noise of variance σ², a prior N(0, σ²/(Mα)) on every coefficient and a flat one on the
intercept, the ridge solution on a support is the mean of its posterior, and the variance of a new
observation at x is

    σ² (1 + h(x)),   h(x) = (1 + a(x)* (A_S*WA_S/M + α)⁻¹ a(x)) / M,

with a(x) the kept features, centred and scaled as in `harfe.solvers.problem`. This takes the
support as given. Therefore σ² is estimated not from the residuals of the fit but from rows that
neither the fit nor the choice of its settings has seen: σ² = Σ w r²/(1 + h) / Σ w over out-of-fold
residuals r. The same r/√(1 + h), ranked by size, give intervals with the stated coverage whatever
the distribution of the noise (conformal prediction). With a link, all this is on its scale, and
the ends of intervals are mapped back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe._core.threads import blocks, one_blas_thread
from harfe.model.expansion import Expansion
from harfe.solvers.problem import Problem

_ROW_BLOCK = 2048

# A posterior much wider than the noise only means that nothing is known: residuals divided by it
# would vanish, and intervals elsewhere with them.
_LARGEST_LEVERAGE = 10.0

# Relative rounding error of the product of a level and a number of residuals.
_ROUNDING = 1e-12

# The Gram matrix of a support may be singular; with this share of its mean diagonal added, it is
# not.
_SMALLEST_SHIFT = 1e-10


@dataclass(frozen=True)
class Posterior:
    """Ridge posterior of the coefficients on a support, for noise of variance one."""

    expansion: Expansion
    mean: NDArray[Any]
    scale: NDArray[np.float64]
    factor: NDArray[Any]
    total_weight: float
    fit_intercept: bool

    @classmethod
    def of(
        cls, problem: Problem, S: NDArray[np.intp], alpha: float, expansion: Expansion
    ) -> Posterior:
        """Posterior of the ridge solution on the support S."""
        gram, _ = problem.normal(S)
        s = len(gram)
        shift = max(alpha, _SMALLEST_SHIFT * float(np.trace(gram).real) / max(s, 1))
        factor = sla.cholesky(gram + shift * np.eye(s), lower=True, check_finite=False)
        return cls(
            expansion,
            problem.mean[S],
            problem.scale[S],
            factor,
            problem.total_weight,
            problem.fit_intercept,
        )

    def leverage(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance h of the fitted function at the rows of X, in units of the noise variance."""
        out = np.zeros(len(X))
        with one_blas_thread():
            # Older LAPACK wrappers reject an empty triangle, which a constant model has.
            for rows in blocks(len(X) if len(self.factor) else 0, _ROW_BLOCK):
                a = (self.expansion.evaluate_features(X[rows]) - self.mean) / self.scale
                half = sla.solve_triangular(self.factor, a.conj().T, lower=True, check_finite=False)
                out[rows] = np.sum(np.abs(half) ** 2, axis=0)
        return (out + self.fit_intercept) / self.total_weight


@dataclass(frozen=True)
class Uncertainty:
    """Posterior with its noise, and the sizes of out-of-fold residuals.

    Attributes
    ----------
    posterior : Posterior
    noise : array of shape (targets,)
        Variance σ² of the noise.
    scores : array of shape (residuals, targets)
        |r|/√(1 + h), each column ascending.
    weights : array of shape (residuals, targets)
        Weights of the rows that `scores` belong to.
    mean_square : array of shape (targets,) or None
        Mean square of residuals in the user's units: the error on held-out rows, including the
        choice of settings.
    """

    posterior: Posterior
    noise: NDArray[np.float64]
    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    mean_square: NDArray[np.float64] | None = None

    @classmethod
    def calibrated(
        cls,
        posterior: Posterior,
        folds: Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]],
        fit_without: Callable[[int, NDArray[np.intp]], tuple[Expansion, Posterior]],
        X: NDArray[np.float64],
        y: NDArray[Any],
        weights: NDArray[np.float64],
    ) -> Uncertainty:
        """Estimate noise and intervals from out-of-fold residuals.

        If the model has a link, that of `posterior.expansion` in the result has the residuals too.

        Parameters
        ----------
        posterior : Posterior
            Posterior of the model that will predict.
        folds : iterable of (training rows, held-out rows)
        fit_without : callable
            (number of the fold, training rows) -> expansion and posterior of a model fitted to
            these rows, including the choice of settings.
        X, y, weights : arrays
            y in the user's units.
        """
        link = posterior.expansion.link
        sizes, counts, gaps, rows = [], [], [], []
        y = y.reshape(len(y), -1)
        fitted = y if link is None else link.forward(y)
        for number, (train, held_out) in enumerate(folds):
            expansion, fold_posterior = fit_without(number, train)
            gaps.append(fitted[held_out] - expansion.linear(X[held_out]))
            sizes.append(np.abs(gaps[-1]) / _widening(fold_posterior, X[held_out]))
            counts.append(np.repeat(weights[held_out, None], y.shape[1], axis=1))
            rows.append(held_out)
        scores, count, gap = (np.concatenate(parts) for parts in (sizes, counts, gaps))
        noise = np.sum(count * scores**2, axis=0) / np.sum(count, axis=0)
        if link is not None:
            place = np.concatenate(rows)
            link = link.with_residuals(gap, count)
            gap = y[place] - link.mean(fitted[place] - gap)
            expansion = replace(posterior.expansion, link=link)
            posterior = replace(posterior, expansion=expansion)
        mean_square = np.sum(count * np.abs(gap) ** 2, axis=0) / np.sum(count, axis=0)
        order = np.argsort(scores, axis=0, kind="stable")
        return cls(
            posterior,
            noise,
            np.take_along_axis(scores, order, axis=0),
            np.take_along_axis(count, order, axis=0),
            mean_square,
        )

    def std(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard deviation of a new observation at the rows of X, shape (rows, targets)."""
        std: NDArray[np.float64] = _widening(self.posterior, X) * np.sqrt(self.noise)
        link = self.posterior.expansion.link
        return std if link is None else link.deviation(self.posterior.expansion.linear(X), std)

    def interval(
        self, X: NDArray[np.float64], level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of intervals that contain a new observation with probability `level`."""
        expansion = self.posterior.expansion
        half, middle = self.half_width(X, level), expansion.linear(X)
        ends = middle - half, middle + half
        link = expansion.link
        return ends if link is None else (link.inverse(ends[0]), link.inverse(ends[1]))

    def half_width(self, X: NDArray[np.float64], level: float) -> NDArray[np.float64]:
        """Half the width of these intervals, on the scale of the link."""
        total = np.cumsum(self.weights, axis=0)
        # The new observation counts as one more residual, possibly the largest.
        wanted = level * (total[-1] + 1) * (1 - _ROUNDING)
        if np.any(wanted > total[-1]):
            needed = int(np.ceil(level / (1 - level) * (1 - _ROUNDING)))
            raise ValueError(
                f"interval={level!r} needs out-of-fold residuals of total weight {needed} or more, "
                f"but it is {total[-1].min():.6g}; pass a lower level"
            )
        place = [int(np.searchsorted(total[:, t], wanted[t])) for t in range(len(self.noise))]
        quantile = self.scores[place, np.arange(len(self.noise))]
        return _widening(self.posterior, X) * quantile


def _widening(posterior: Posterior, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """√(1 + h) at the rows of X, as a column."""
    h = np.minimum(posterior.leverage(X), _LARGEST_LEVERAGE)
    return np.sqrt(1 + h)[:, None]
