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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.features import kernels
from harfe.features.activations import ACTIVATIONS, CODES
from harfe.features.pool import FeaturePool, Rows
from harfe.learning import cholesky
from harfe.learning.matching import Matched, Points

# Ridge weight in units of the mean power of a feature: the noise of the reference, within these
# bounds.
_ALPHA = (1e-9, 1e-5)

# Training ends with a step that lowers the objective by less than this share of the objective and
# of the error that models are compared by; after so many steps if the objective is below that
# error, and after so many in any case.
_SMALLEST_GAIN, _STEPS, _MOST_STEPS = 3e-4, 8, 16
_FIRST_DAMPING, _MOST_TRIES = 1e-3, 6

# The smallest ridge weight that single precision can resolve.
_SINGLE = 1e-6

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

    def __init__(self, points: Points, visible: float = 0.0) -> None:
        self.inputs = Rows.of(points.Z)
        self.weights = points.weights
        self.roots = np.sqrt(points.weights)
        self.n_points = len(points.Z)
        self.alpha = float(np.clip(points.noise, *_ALPHA))
        self.visible = visible
        self.centre = np.average(points.values, axis=0, weights=points.weights)
        # Inputs and roots of the weights in the precision of the matrices that shape steps.
        dtype = np.float32 if self.alpha >= _SINGLE else np.float64
        self.shaping: tuple[NDArray[Any], NDArray[Any]] = (
            self.inputs.transposed.astype(dtype),
            self.roots.astype(dtype),
        )
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
        factor = cholesky.factor(gram)
        if factor is None:
            return None
        coef = cholesky.solve(factor, A @ self.target.T / self.n_points)
        residual = self.target - coef.T @ A
        objective = float(np.sum(residual**2)) / self.n_points + alpha * float(np.sum(coef**2))
        if not np.isfinite(objective):
            return None
        return _Projection(pool, A, mean, factor, coef, residual, objective)

    def slopes(self, state: _Projection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gauss-Newton matrix and descent direction, for the phases, then the weights.

        The direction is exact. The matrix, which only shapes the step, is computed in single
        precision where that can resolve the ridge weight.
        """
        pool, P = state.pool, self.n_points
        s = len(pool)
        code, sign = ACTIVATIONS[pool.activation].derivative
        slope = self.evaluate(pool, code)
        slope *= sign.real
        feature, place = np.nonzero(pool.indices >= 0)
        variable = pool.indices[feature, place]
        owner = np.concatenate([np.arange(s), feature])
        # The features, then their derivatives.
        inputs, roots = self.shaping
        both = np.empty((s + len(owner), P), roots.dtype)
        both[:s] = state.A
        both[s : 2 * s] = slope
        for k, (j, v) in enumerate(zip(feature, variable, strict=True)):
            np.multiply(both[s + j], inputs[v], out=both[2 * s + k])
        both[s:] -= (both[s:] @ (roots**2 / P))[:, None]
        both[s:] *= roots
        gram = (both @ both.T / P).astype(np.float64)
        shift = self.alpha * max(float(np.trace(gram[:s, :s])) / s, 1e-30)
        factor = None
        while factor is None:
            gram[np.diag_indices(s)] += shift
            factor = cholesky.factor(gram[:s, :s].copy())
            shift *= 10
        cross = cholesky.half_solve(factor, gram[:s, s:])
        # All targets share the slopes; only the factor c differs.
        plain = gram[s:, s:] - cross.T @ cross
        matrix = np.zeros_like(plain)
        direction = np.zeros(len(plain))
        for c, residual in zip(state.coef.T, state.residual, strict=True):
            matrix += plain * np.outer(c[owner], c[owner])
            # The slopes' means do not matter: the residual, times the roots, sums to zero.
            by_phase = slope * (self.roots * residual)
            by_weight = by_phase @ self.inputs.transposed.T
            every = np.concatenate([by_phase.sum(axis=1), by_weight[feature, variable]])
            direction += c[owner] * every / P
        return matrix, direction

    def descend(self, state: _Projection) -> _Projection:
        """Run Levenberg-Marquardt."""
        damping = _FIRST_DAMPING
        present = state.pool.indices >= 0
        for n in range(_MOST_STEPS):
            if n >= _STEPS and state.objective < self.visible:
                break
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
            gain = state.objective - new.objective
            state, damping = new, max(damping / 3, 1e-9)
            if gain < _SMALLEST_GAIN * (new.objective + self.visible):
                break
        return state

    def _step(
        self,
        pool: FeaturePool,
        damped: NDArray[np.float64],
        direction: NDArray[np.float64],
        present: NDArray[np.bool_],
    ) -> _Projection | None:
        factor = cholesky.factor(damped)
        if factor is None:
            return None
        step = cholesky.solve(factor, direction[:, None])[:, 0]
        values = pool.values.copy()
        values[present] += step[len(pool) :]
        return self.project(replace(pool, values=values, phases=pool.phases + step[: len(pool)]))


def refine(
    starts: Sequence[Matched], points: Points, sizes: Sequence[int], visible: float = 0.0
) -> list[Matched]:
    """Train features, drop the least important, and repeat down to the smallest size.

    Parameters
    ----------
    starts : sequence of Matched, by increasing size
        Initial features. A size starts from the features that are left of the size above, or from
        those given for it if they are closer.
    points : Points
    sizes : sequence of int
        Sizes larger than the last start's are left out.
    visible : float
        Error that models will be compared by: gains far below it are not pursued.

    Returns
    -------
    list of Matched, by increasing size
        Each support lists the features of the pool from which training started.
    """
    problem = _Problem(points, visible)
    support, pool = starts[-1].support, starts[-1].features
    given = {len(start.support): start for start in starts}
    out: list[Matched] = []
    for s in sorted({s for s in sizes if s <= len(support)}, reverse=True):
        while len(support) > s:
            state = problem.project(pool)
            if state is None:
                return out[::-1]
            inverse = cholesky.half_solve(state.factor, np.eye(len(pool)))
            loss = np.sum(state.coef**2, axis=1) / np.sum(inverse**2, axis=0)
            n = max(s, int(_KEEP * len(support)))
            kept = np.sort(np.argsort(-loss, kind="stable")[:n])
            support, pool = support[kept], pool.take(kept)
        state = problem.project(pool)
        other = problem.project(given[s].features) if s in given else None
        if other is not None and (state is None or other.objective < state.objective):
            state, support = other, given[s].support
        if state is None:
            return out[::-1]
        state = problem.descend(state)
        pool = state.pool
        coef = np.ascontiguousarray(state.coef.T)
        gap = float(np.sum(state.residual**2)) / problem.n_points
        out.append(Matched(support, pool, coef, problem.centre - coef @ state.mean, gap))
    return out[::-1]
