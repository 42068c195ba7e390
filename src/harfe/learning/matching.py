"""Few features that match a dense reference: compression, not regression.

    minimise over S and c with |S| = s   Σ_i w_i |f(x_i) - (A c)_i|² + α‖c‖²

The reference f is smooth and free of noise, and it can be evaluated anywhere: at the training rows
and at as many points between and around them as needed. Features are screened by ridge to a core,
from which forward selection takes, one by one, the feature that lowers the objective most given
the previous ones (orthogonal least squares): nested supports of every size at the cost of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from harfe._core.threads import blocks, run_blocks
from harfe.features import kernels
from harfe.features.pool import FeaturePool, Rows
from harfe.learning import cholesky
from harfe.learning.reference import Reference
from harfe.solvers.ridge import smallest_safe_shift
from harfe.solvers.threshold import largest_rows

# Points at which a reference is matched: eight times the rows, within these bounds; and the most
# that are not rows.
_POINTS_PER_ROW, _FEWEST_POINTS, _MOST_POINTS = 8, 2000, 6000
_MOST_BETWEEN = 3000
_NEIGHBOURS = 5

# Share of the rows in the total weight of the points.
_ROW_SHARE = 0.5

# An input with fewer distinct values than this share of the rows is not interpolated.
_CONTINUOUS = 0.5

# Size of the core for forward selection, and number of points for the screening before it.
_CORE = 800
_SCREENING_POINTS = 600

# Ridge weight of the matching, for columns of unit mean square: the noise of the reference in units
# of the target's variance, within these bounds. A smaller weight gains nothing. The screening uses
# a multiple, to avoid features that only correct others.
_ALPHA = (1e-9, 1e-6)
_SCREENING_MULTIPLE = 100

_FILL_BLOCK = 64

# Rows predicted at a time: features of all rows would not fit in memory.
_PREDICT_BLOCK = 4096

# A feature is dependent if the chosen ones leave less than this share of its power.
_DEPENDENT = 1e-9


@dataclass(frozen=True)
class Points:
    """Points at which a reference is matched.

    Attributes
    ----------
    Z : array of shape (points, inputs), standardised
    values : array of shape (points, targets)
    weights : array of shape (points,), of mean 1
    noise : float
        Variance of the noise in the fit of the reference.
    """

    Z: NDArray[np.float64]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    noise: float


def most_points(n_rows: int) -> int:
    """Number of points at which a reference fitted to `n_rows` rows is matched."""
    wanted = np.clip(_POINTS_PER_ROW * n_rows, _FEWEST_POINTS, n_rows + _MOST_BETWEEN)
    return int(min(wanted, _MOST_POINTS))


def match_memory(n_features: int, n_points: int) -> int:
    """Bytes that `match` needs in the larger of its two steps."""
    some, core = min(n_points, _SCREENING_POINTS), min(n_features, _CORE)
    screening = 2 * n_features * some + some**2
    selection = core * n_points + 3 * core**2
    return 8 * max(screening, selection)


def make_points(
    reference: Reference,
    Z: NDArray[np.float64],
    weights: NDArray[np.float64],
    used: NDArray[np.bool_],
    noise: float,
    rng: np.random.Generator,
    n_points: int | None = None,
) -> Points:
    """Return the rows, points between neighbouring rows, and mixtures of two rows' coordinates.

    Neighbours are found by the `used` inputs. Of more rows than points, `most_points` by default,
    the points are a sample.
    """
    m = len(Z)
    n_points = most_points(m) if n_points is None else n_points
    extra = n_points - m
    if extra <= 0:
        rows = np.sort(rng.permutation(m)[:n_points])
        Z, weights = Z[rows], weights[rows]
        new = np.empty((0, Z.shape[1]))
    else:
        between = _between(Z, used, extra - extra // 2, rng)
        new = np.concatenate([between, _mixed(Z, extra // 2, rng)])
    where = np.concatenate([Z, new])
    total = np.ones(len(where))
    total[: len(Z)] = weights / weights.mean()
    if len(new):
        total[len(Z) :] = (1 / _ROW_SHARE - 1) * len(Z) / len(new)
    return Points(where, reference.predict(where), total / total.mean(), noise)


def _between(
    Z: NDArray[np.float64], used: NDArray[np.bool_], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    k = min(_NEIGHBOURS, len(Z) - 1)
    if k < 1:
        return np.repeat(Z, n, axis=0)
    _, near = cKDTree(Z[:, used]).query(Z[:, used], k=k + 1)
    one = rng.integers(len(Z), size=n)
    other = near[one, rng.integers(1, k + 1, size=n)]
    share = np.repeat(rng.random((n, 1)), Z.shape[1], axis=1)
    # Between recurring values (classes, counts, persons) there may be nothing: every second point
    # only takes values that occur.
    discrete = np.array([len(np.unique(column)) for column in Z.T]) < _CONTINUOUS * len(Z)
    share[::2, discrete] = np.rint(share[::2, discrete])
    return np.asarray(Z[one] + share * (Z[other] - Z[one]))


def _mixed(Z: NDArray[np.float64], n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    one, other = rng.integers(len(Z), size=(2, n))
    from_one = rng.random((n, Z.shape[1])) < 0.5
    return np.where(from_one, Z[one], Z[other])


@dataclass(frozen=True)
class Matched:
    """A sparse expansion on standardised inputs that matches a reference.

    Attributes
    ----------
    support : int array of shape (s,), sorted
        Places in the pool.
    features : FeaturePool
        The features, as in the pool or trained.
    coef : array of shape (targets, s), of the raw features
    intercept : array of shape (targets,)
    gap : float
        Mean square of the residual, summed over targets.
    """

    support: NDArray[np.intp]
    features: FeaturePool
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    gap: float

    def predict(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at standardised rows, shape (rows, targets)."""
        out = np.empty((len(Z), len(self.intercept)))
        for rows in blocks(len(Z), _PREDICT_BLOCK):
            out[rows] = self.features.evaluate(Z[rows]) @ self.coef.T + self.intercept
        return out


@dataclass(frozen=True)
class Columns:
    """Features at points, centred, of unit mean square, times the roots of the weights.

    Attributes
    ----------
    A : array of shape (features, points)
    mean, scale : arrays of shape (features,)
    """

    A: NDArray[np.float64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, pool: FeaturePool, points: Points) -> Columns:
        """Evaluate a pool of real features."""
        A = np.empty((len(pool), len(points.Z)))
        mean, squares = np.empty((2, len(pool)))
        inverse = np.empty(len(pool))
        inputs, roots = Rows.of(points.Z), np.sqrt(points.weights)

        def work(part: slice) -> None:
            block = A[part]
            pool.take(part).write(inputs, 0, block)
            kernels.moments(block, points.weights, mean[part], squares[part])
            scale = np.sqrt(squares[part] / len(points.Z))
            usable = scale > _DEPENDENT
            inverse[part] = np.where(usable, 1 / np.where(usable, scale, 1.0), 0.0)
            kernels.standardise(block, mean[part], inverse[part], roots)

        run_blocks(work, blocks(len(pool), _FILL_BLOCK))
        return cls(A, mean, np.where(inverse > 0, 1 / np.where(inverse > 0, inverse, 1.0), np.inf))


def match(pool: FeaturePool, points: Points, sizes: Sequence[int]) -> list[Matched]:
    """Return sparse expansions of the given sizes, as far as features are independent."""
    centre = np.average(points.values, axis=0, weights=points.weights)
    target = (points.values - centre) * np.sqrt(points.weights)[:, None]
    P = len(target)
    alpha = float(np.clip(points.noise, *_ALPHA))
    core = _screen(pool, points, target, max(sizes), _SCREENING_MULTIPLE * alpha)
    columns = Columns.of(pool.take(core), points)
    A = columns.A
    gram = A @ A.T / P
    shift = max(alpha, 2 * float(smallest_safe_shift(gram)))
    gram[np.diag_indices(len(core))] += shift
    moment = A @ target / P
    order = forward_order(gram, moment, max(sizes))
    power = float(np.sum(target**2)) / P
    out = []
    for s in sorted({min(s, len(order)) for s in sizes}):
        places = np.sort(order[:s])
        c = _solve(gram[np.ix_(places, places)], moment[places])
        S = core[places]
        raw = c.T / columns.scale[places]
        # The objective of the ridge solution is power - c·moment, which includes the penalty.
        gap = power - float(np.sum(c * moment[places])) - shift * float(np.sum(c**2))
        intercept = centre - raw @ columns.mean[places]
        out.append(Matched(S, pool.take(S), raw, intercept, max(gap, 0.0)))
    return out


def _screen(
    pool: FeaturePool, points: Points, target: NDArray[np.float64], largest: int, alpha: float
) -> NDArray[np.intp]:
    """Features with large coefficients in ridge solutions on some of the points, by halving."""
    # Every k-th point, so that rows, points between rows and mixtures are all included.
    some = slice(None, None, -(-len(target) // _SCREENING_POINTS))
    few = replace(points, Z=points.Z[some], weights=points.weights[some])
    columns = Columns.of(pool, few)
    S = np.flatnonzero(np.isfinite(columns.scale))
    t = target[some]
    size = max(_CORE, largest)
    while len(S) > size:
        c = _ridge_on_points(columns.A[S], t, alpha)
        S = S[largest_rows(c, max(size, len(S) // 2))]
    return S


def _ridge_on_points(
    A: NDArray[np.float64], t: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """Ridge coefficients of all features A (features, points), from a system of the points."""
    K = A.T @ A
    K /= len(t)
    K[np.diag_indices(len(t))] += alpha
    return A @ _solve(K, t)


def _solve(G: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """G⁻¹ b for a symmetric, positive definite G, which is overwritten."""
    L = cholesky.factor(G)
    if L is None:
        raise np.linalg.LinAlgError("features at the points have no positive definite Gram matrix")
    return cholesky.solve(L, b)


def forward_order(
    gram: NDArray[np.float64], moment: NDArray[np.float64], most: int
) -> NDArray[np.intp]:
    """Places in the order of forward selection by orthogonal least squares.

    `gram` includes the ridge weight on its diagonal. The next feature is the one that lowers the
    objective most given the previous ones: by |r_j|²/d_j, with r_j its correlation with the
    residual and d_j its power not yet explained. A partial Cholesky factor updates both.
    """
    n = len(gram)
    left, r = np.diag(gram).copy(), moment.copy()
    floor = _DEPENDENT * left
    factor = np.zeros((min(most, n), n))
    chosen = np.zeros(n, dtype=bool)
    order: list[int] = []
    for k in range(len(factor)):
        gain = np.where(chosen | (left <= floor), -1.0, np.sum(r**2, axis=1) / left)
        j = int(np.argmax(gain))
        if gain[j] < 0:
            break
        row = (gram[j] - factor[:k, j] @ factor[:k]) / np.sqrt(left[j])
        factor[k] = row
        r = r - np.outer(row, r[j] / np.sqrt(left[j]))
        left = np.maximum(left - row**2, np.finfo(float).tiny)
        chosen[j] = True
        order.append(j)
    return np.array(order, dtype=np.intp)
