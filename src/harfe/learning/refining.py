"""Training the weights and phases of few features by variable projection.

    minimise over w, b   min over c   Σ_i w_i |f(x_i) - Σ_j c_j φ(<x_i, w_j> + b_j)|² + α‖c‖²

for a fixed number of features that each keep their variables. The weights are then no longer
random: they start from a draw and are trained to fit the reference f, so that a fraction of the
features is enough. Steps are those of Levenberg and Marquardt on the problem in w and b alone, from
which the coefficients are projected out (Golub and Pereyra, in Kaufman's form).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe.features import kernels
from harfe.features.activations import ACTIVATIONS, CODES
from harfe.features.pool import FeaturePool, Rows
from harfe.learning.matching import Matched, Points

# Ridge weight in units of the mean power of a feature: the noise of the reference, within these
# bounds.
_ALPHA = (1e-9, 1e-5)

_STEPS = 12
_SMALLEST_GAIN = 1e-3
_FIRST_DAMPING, _MOST_TRIES = 1e-3, 6

# Share of the features that a pruning step keeps.
_KEEP = 0.8


@dataclass(frozen=True)
class _Projection:
    """Features at the points, and the best coefficients for them."""

    pool: FeaturePool
    A: NDArray[np.float64]  # centred, times the roots of the weights
    mean: NDArray[np.float64]
    factor: NDArray[np.float64]  # Cholesky, of A Aᵀ/P + α
    coef: NDArray[np.float64]  # (features, targets)
    residual: NDArray[np.float64]  # (targets, points)
    objective: float


class _Problem:
    """The reference at the points, as the steps need it."""

    def __init__(self, points: Points) -> None:
        self.inputs = Rows.of(points.Z)
        self.weights = points.weights
        self.roots = np.sqrt(points.weights)
        self.n_points = len(points.Z)
        self.alpha = float(np.clip(points.noise, *_ALPHA))
        self.centre = np.average(points.values, axis=0, weights=points.weights)
        self.target = np.ascontiguousarray(((points.values - self.centre) * self.roots[:, None]).T)

    def evaluate(self, pool: FeaturePool, code: str) -> NDArray[np.float64]:
        """φ or its derivative at the points, feature-major."""
        out = np.empty((len(pool), self.n_points))
        kernels.features(
            self.inputs.transposed,
            self.inputs.largest,
            pool.indices,
            pool.values,
            pool.phases,
            CODES[code],
            0,
            out,
        )
        return out

    def centred(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows minus their weighted mean, times the roots of the weights; and the mean."""
        mean = rows @ self.weights / self.n_points
        rows -= mean[:, None]
        rows *= self.roots
        return rows, mean

    def project(self, pool: FeaturePool) -> _Projection | None:
        """Solve for the coefficients; None if they are not finite."""
        A, mean = self.centred(self.evaluate(pool, pool.activation))
        gram = A @ A.T / self.n_points
        alpha = self.alpha * max(float(np.trace(gram)) / len(pool), np.finfo(float).tiny)
        gram[np.diag_indices(len(pool))] += alpha
        try:
            factor = sla.cholesky(gram, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        coef = sla.cho_solve((factor, True), A @ self.target.T / self.n_points, check_finite=False)
        residual = self.target - coef.T @ A
        objective = float(np.sum(residual**2)) / self.n_points + alpha * float(np.sum(coef**2))
        if not np.isfinite(objective):
            return None
        return _Projection(pool, A, mean, factor, coef, residual, objective)

    def slopes(self, state: _Projection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gauss-Newton matrix and descent direction, for the phases, then the weights."""
        pool, P = state.pool, self.n_points
        code, sign = ACTIVATIONS[pool.activation].derivative
        slope = self.evaluate(pool, code)
        slope *= sign.real
        n_weights = int(np.count_nonzero(pool.indices >= 0))
        jacobian = np.empty((len(pool) + n_weights, P))
        jacobian[: len(pool)] = slope
        feature, place = np.nonzero(pool.indices >= 0)
        np.multiply(
            slope[feature],
            self.inputs.transposed[pool.indices[feature, place]],
            out=jacobian[len(pool) :],
        )
        jacobian, _ = self.centred(jacobian)
        owner = np.concatenate([np.arange(len(pool)), feature])
        # All targets share the slopes; only the factor c differs.
        plain = jacobian @ jacobian.T / P
        cross = sla.solve_triangular(
            state.factor, state.A @ jacobian.T / P, lower=True, check_finite=False
        )
        plain -= cross.T @ cross
        matrix = np.zeros_like(plain)
        direction = np.zeros(len(plain))
        for c, residual in zip(state.coef.T, state.residual, strict=True):
            matrix += plain * np.outer(c[owner], c[owner])
            direction += c[owner] * (jacobian @ residual) / P
        return matrix, direction

    def descend(self, pool: FeaturePool) -> _Projection | None:
        """Run Levenberg-Marquardt from the pool."""
        state = self.project(pool)
        if state is None:
            return None
        damping = _FIRST_DAMPING
        present = pool.indices >= 0
        for _ in range(_STEPS):
            matrix, direction = self.slopes(state)
            power = np.diag(matrix)
            floor = 1e-3 * max(float(np.median(power)), np.finfo(float).tiny)
            new = None
            for _ in range(_MOST_TRIES):
                damped = matrix.copy()
                damped[np.diag_indices(len(damped))] += damping * np.maximum(power, floor)
                new = self._step(state.pool, damped, direction, present)
                if new is not None and new.objective < state.objective:
                    break
                new = None
                damping *= 4
            if new is None:
                break
            gain = 1 - new.objective / state.objective
            state, damping = new, max(damping / 3, 1e-9)
            if gain < _SMALLEST_GAIN:
                break
        return state

    def _step(
        self,
        pool: FeaturePool,
        damped: NDArray[np.float64],
        direction: NDArray[np.float64],
        present: NDArray[np.bool_],
    ) -> _Projection | None:
        try:
            step = sla.cho_solve(
                (sla.cholesky(damped, lower=True, check_finite=False), True),
                direction,
                check_finite=False,
            )
        except np.linalg.LinAlgError:
            return None
        values = pool.values.copy()
        values[present] += step[len(pool) :]
        return self.project(replace(pool, values=values, phases=pool.phases + step[: len(pool)]))


def refine(start: Matched, points: Points, sizes: Sequence[int]) -> list[Matched]:
    """Train features, drop the least important, and repeat down to the smallest size.

    Parameters
    ----------
    start : Matched
        Initial features, at least as many as the largest size wanted.
    points : Points
    sizes : sequence of int
        Sizes larger than the start's are left out.

    Returns
    -------
    list of Matched, by increasing size
        Each support lists the features of the pool from which training started.
    """
    problem = _Problem(points)
    support, pool = start.support, start.features
    out: list[Matched] = []
    for s in sorted({s for s in sizes if s <= len(support)}, reverse=True):
        while len(support) > s:
            state = problem.project(pool)
            if state is None:
                return out[::-1]
            inverse = sla.solve_triangular(
                state.factor, np.eye(len(pool)), lower=True, check_finite=False
            )
            loss = np.sum(state.coef**2, axis=1) / np.sum(inverse**2, axis=0)
            n = max(s, int(_KEEP * len(support)))
            kept = np.sort(np.argsort(-loss, kind="stable")[:n])
            support, pool = support[kept], pool.take(kept)
        state = problem.descend(pool)
        if state is None:
            return out[::-1]
        pool = state.pool
        coef = np.ascontiguousarray(state.coef.T)
        gap = float(np.sum(state.residual**2)) / problem.n_points
        out.append(Matched(support, pool, coef, problem.centre - coef @ state.mean, gap))
    return out[::-1]
