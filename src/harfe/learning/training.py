"""Training many features by first-order steps on batches of points.

    minimise over w, b, c, c₀   Σ_i w_i |f_i - c₀ - Σ_j c_j φ(<x_i, w_j> + b_j)|²

for waves φ whose features each keep their variables. A step costs batch · s · inputs, whatever the
number of points, so that hundreds of features can match a reference at many points, and thousands
can be fitted to millions of rows. Steps are those of Adam (Kingma and Ba, 2015) in single
precision, with rates that fall to zero; what is returned is the running mean of the parameters
where its error on points held back was lowest. Trained features go with coefficients of their own:
the caller solves for those once more, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harfe._core.compiling import compiled
from harfe.features.pool import FeaturePool
from harfe.learning import cholesky

Single = NDArray[np.float32]

# Not "reassoc": it would cancel the steps of the range reduction against each other.
_FLAGS = {"nnan", "ninf", "nsz", "arcp", "contract"}

_BATCH = 256

# Share of the points held back to tell when to stop, and the most of them.
_HELD_BACK, _MOST_HELD_BACK = 0.05, 4000

# Largest step of a weight in units of the input's deviation; steps are in proportion to the root
# mean square for coefficients. Rates rise during the first share of the steps, then fall as a
# cosine.
_RATE, _WARM_UP = 0.03, 0.02
_MOMENTUM, _SCALING, _AVERAGING = (np.float32(v) for v in (0.9, 0.99, 0.99))

# How often the error is checked in all, and how many checks in a row without progress end it.
_CHECKS, _PATIENCE = 30, 8

# Coefficients start as a ridge solution with this weight on so many points per feature.
_START_RIDGE, _START_POINTS = 1e-3, 4

# pi in three parts of few bits, for arguments up to about 1e4.
_PI_1, _PI_2, _PI_3 = (
    np.float32(v) for v in (3.140625, 0.0009670257568359375, 6.2771141529083e-07)
)
_INVERSE_PI = np.float32(1 / np.pi)
# Minimax polynomial of (sin(r)/r - 1) / r² in r² on [-pi/2, pi/2], for single precision.
_C1, _C2 = np.float32(-0.16666659712791443), np.float32(0.008333078585565090)
_C3, _C4 = np.float32(-0.00019810690719168633), np.float32(2.6083159809786593e-06)
_HALF, _ONE, _FOUR, _TINY = (np.float32(v) for v in (0.5, 1.0, 4.0, 1e-12))


@compiled(inline="always", fastmath=_FLAGS)
def _sine(z, shift):  # type: ignore[no-untyped-def]
    """sin(z + shift·pi) for shift 0 or 1/2 in single precision."""
    turns = np.float32(np.rint(z * _INVERSE_PI + shift))
    k = turns - shift
    r = ((z - k * _PI_1) - k * _PI_2) - k * _PI_3
    q = r * r
    p = ((_C4 * q + _C3) * q + _C2) * q + _C1
    half = turns * _HALF
    sign = _ONE - _FOUR * (half - np.float32(np.floor(half)))
    return sign * (r + r * q * p)


@compiled(nogil=True, fastmath=_FLAGS)
def _waves(z, phases, sine, cosine):  # type: ignore[no-untyped-def]
    """Sines of z + phases, and their cosines."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] += phases[j]
        for j in range(z.shape[1]):
            sine[i, j] = _sine(z[i, j], np.float32(0.0))
        for j in range(z.shape[1]):
            cosine[i, j] = _sine(z[i, j], _HALF)


@compiled(nogil=True, fastmath=_FLAGS)
def _weigh(cosine, residual, coef, total):  # type: ignore[no-untyped-def]
    """cosine[i, j] *= Σ_t residual[i, t] coef[j, t], and the sums over i."""
    for j in range(cosine.shape[1]):
        total[j] = 0.0
    for i in range(cosine.shape[0]):
        if coef.shape[1] == 1:
            for j in range(cosine.shape[1]):
                cosine[i, j] *= residual[i, 0] * coef[j, 0]
        else:
            for j in range(cosine.shape[1]):
                slope = np.float32(0.0)
                for t in range(coef.shape[1]):
                    slope += residual[i, t] * coef[j, t]
                cosine[i, j] *= slope
        for j in range(cosine.shape[1]):
            total[j] += cosine[i, j]


@compiled(nogil=True, fastmath=_FLAGS)
def _step(x, mean, gradient, first, second, rates, share, unbias_1, unbias_2):  # type: ignore[no-untyped-def]
    """One step of Adam for all parameters x, in place, and their running mean."""
    for i in range(x.size):
        g = gradient[i]
        first[i] += (_ONE - _MOMENTUM) * (g - first[i])
        second[i] += (_ONE - _SCALING) * (g * g - second[i])
        size = np.sqrt(second[i] * unbias_2) + _TINY
        x[i] -= rates[i] * share * (first[i] * unbias_1) / size
        mean[i] += (_ONE - _AVERAGING) * (x[i] - mean[i])


class _Network:
    """The parameters of s features in one vector: weights, phases, coefficients, intercepts.

    `parts` are views of any such vector, so that a step handles all of them at once.
    """

    def __init__(self, pool: FeaturePool, inputs: NDArray[np.intp], n_targets: int) -> None:
        d, s = len(inputs), len(pool)
        self._shapes = [(d, s), (s,), (s, n_targets), (n_targets,)]
        self._ends = np.cumsum([np.prod(shape) for shape in self._shapes])
        # Sines; a cosine is one with another phase.
        self._turn = 0.0 if pool.activation == "sin" else np.pi / 2
        self._pool = pool
        place = np.searchsorted(inputs, pool.indices)
        self._feature, self._column = np.nonzero(pool.present)
        self._row = place[self._feature, self._column]
        self.x = np.zeros(self._ends[-1], np.float32)
        W, b, _, _ = self.parts(self.x)
        W[self._row, self._feature] = pool.values[pool.present]
        b[:] = np.mod(pool.phases + self._turn, 2 * np.pi)
        self.rates = np.zeros_like(self.x)
        rates_W, rates_b, _, _ = self.parts(self.rates)
        rates_W[self._row, self._feature] = _RATE
        rates_b[:] = _RATE

    def parts(self, vector: Single) -> list[Single]:
        """W (inputs, s), b, C (s, targets) and the intercepts."""
        cut = np.split(vector, self._ends[:-1])
        return [part.reshape(shape) for part, shape in zip(cut, self._shapes, strict=True)]

    def solve(self, Z: Single, t: Single, roots: Single) -> None:
        """Set the coefficients to a ridge solution, and their rates to its size."""
        W, b, C, intercept = self.parts(self.x)
        A = np.sin(Z @ W + b)
        total = float(np.sum(roots**2))
        mean, centre = (roots**2 @ A) / total, (roots**2 @ t) / total
        A = (A - mean) * roots[:, None]
        gram = (A.T @ A).astype(np.float64)
        gram[np.diag_indices(len(gram))] += _START_RIDGE * np.trace(gram) / len(gram) + 1e-30
        factor = cholesky.factor(gram)
        assert factor is not None
        moment = (A.T @ ((t - centre) * roots[:, None])).astype(np.float64)
        C[:] = cholesky.solve(factor, moment)
        intercept[:] = centre - mean @ C
        _, _, rates, rate = self.parts(self.rates)
        rates[:] = rate[:] = _RATE * max(float(np.sqrt(np.mean(C**2))), 1e-6)

    def error(self, x: Single, Z: Single, t: Single, weights: Single) -> float:
        """Weighted mean squared error at some points."""
        W, b, C, intercept = self.parts(x)
        gap = np.sin(Z @ W + b) @ C + intercept - t
        return float(weights @ np.sum(gap**2, axis=1)) / float(weights.sum())

    def features(self, x: Single) -> FeaturePool:
        """The trained features."""
        W, b, _, _ = self.parts(x)
        values = self._pool.values.copy()
        values[self._feature, self._column] = W[self._row, self._feature]
        return replace(self._pool, values=values, phases=b.astype(np.float64) - self._turn)


def train(
    pool: FeaturePool,
    Z: NDArray[np.float64],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    passes: int,
    seed: int,
) -> FeaturePool:
    """Train features, from where they are, to fit values at points.

    Parameters
    ----------
    pool : FeaturePool
        Sines or cosines; each keeps its variables.
    Z : array of shape (points, inputs), standardised
    values : array of shape (points, targets), of about unit deviation
    weights : array of shape (points,), of mean 1
    passes : int
        Over all points.
    seed : int
        Of the order of the points, and of those held back.
    """
    rng = np.random.default_rng([seed, len(pool)])
    inputs = np.unique(pool.indices[pool.indices >= 0])
    points, t = Z[:, inputs].astype(np.float32), values.astype(np.float32)
    w = weights.astype(np.float32)
    order = rng.permutation(len(points))
    n_held = int(min(_HELD_BACK * len(points), _MOST_HELD_BACK))
    held, used = order[:n_held], order[n_held:]
    net = _Network(pool, inputs, t.shape[1])
    some = used[: max(_START_POINTS * len(pool), _BATCH)]
    net.solve(points[some], t[some], np.sqrt(w[some]))
    first, second, gradient = np.zeros((3, net.x.size), np.float32)
    mean, best = net.x.copy(), net.x.copy()
    judge = points[held], t[held], w[held]
    lowest, waited = net.error(best, *judge), 0
    size = min(_BATCH, len(used))
    steps = passes * (len(used) // size)
    waves = np.empty((2, size, len(pool)), np.float32)
    for k, rows in enumerate(_batches(used, size, steps, rng), start=1):
        _slopes(net.parts(net.x), net.parts(gradient), points[rows], t[rows], w[rows], waves)
        share = 0.5 * (1 + np.cos(np.pi * k / steps)) * min(1.0, k / (_WARM_UP * steps))
        unbias = (np.float32(1 / (1 - float(beta) ** k)) for beta in (_MOMENTUM, _SCALING))
        _step(net.x, mean, gradient, first, second, net.rates, np.float32(share), *unbias)
        if k % max(1, steps // _CHECKS) == 0:
            error = net.error(mean, *judge)
            waited = 0 if error < lowest else waited + 1
            if error < lowest:
                lowest, best = error, mean.copy()
            if waited > _PATIENCE:
                break
    return net.features(best)


def _slopes(
    now: list[Single], slopes: list[Single], Z: Single, t: Single, w: Single, waves: Single
) -> None:
    """Gradient of half the mean squared error of a batch, written to `slopes`."""
    W, b, C, intercept = now
    sine, cosine = waves
    _waves(Z @ W, b, sine, cosine)
    residual = sine @ C
    residual += intercept - t
    residual *= w[:, None] / np.float32(len(Z))
    np.matmul(sine.T, residual, out=slopes[2])
    slopes[3][:] = residual.sum(axis=0)
    _weigh(cosine, residual, C, slopes[1])
    np.matmul(Z.T, cosine, out=slopes[0])


def _batches(
    rows: NDArray[np.intp], size: int, steps: int, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Yield batches of rows, in a new order for every pass over them."""
    done = 0
    while done < steps:
        order = rng.permutation(rows)
        for start in range(0, len(rows) - size + 1, size):
            yield order[start : start + size]
            done += 1
