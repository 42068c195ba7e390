"""Summary of the rows of a fit, so that explanations need no data: nodes, ranges, means.

It never holds the rows themselves, only quadratures of the marginals, quantiles, and means over the
rows of the waves in the fitted function.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import blocks, run_blocks
from harfe.explain.inputs.distribution import InputDistribution, largest_frequencies
from harfe.explain.inputs.marginals import gauss_marginals, strongest_partners, weighted_quantiles
from harfe.explain.inputs.warped import warped_normal, warped_uniform
from harfe.features.pool import FeaturePool, Rows
from harfe.features.units import measure_units
from harfe.model.expansion import Expansion

# Most means of waves kept, 16 bytes each: features times subsets of their variables.
_MOST_MEANS = 2**17

_ROW_BLOCK = 2048
_GRADIENT_ROWS = 256


@dataclass(frozen=True)
class InputSummary:
    """Summary of the rows of a fit that explanations use instead of the rows.

    Attributes
    ----------
    distribution : InputDistribution
        Independent inputs with the marginals of the (clipped and warped) rows, as Gauss rules:
        exact to 1e-12 for the frequencies in use, see `distribution_error`. Unused inputs have a
        single node.
    lower, upper : arrays of shape (inputs,)
        Observed range, before clipping.
    quantiles : array of shape (33, inputs)
        At the levels 0, 1/32, ..., 1, before clipping; by weight.
    mean, deviation : arrays of shape (inputs,)
        Of the clipped inputs, before warping; by weight.
    partner : int array of shape (inputs,)
        For each used input the used input that it correlates with most; -1 if there is none.
    correlation : array of shape (inputs,)
        Correlation with the partner, after warping, from -1 to 1.
    joint : complex array of shape (features, 2**order), or None
        Mean over the rows, mapped, of e^{i Σ_{k in v} w_jk x_k} for every subset v of the variables
        of feature j; bit p of the column number says whether ``indices[j, p]`` is in v. None for
        activations that are not waves, and if it would hold more than 2**17 numbers.
    mean_prediction, variance_joint : arrays of shape (targets,)
        Mean and variance of the fitted function over the rows.
    mean_square_gradient : array of shape (targets, inputs)
        Mean over the rows of |∂f/∂x_k|².
    total_weight : float
        Sum of the weights of the rows.
    distribution_error : float or None
        Largest error of the characteristic functions of `distribution` at twice the largest
        frequency of each input, the highest that variances need. None for activations that are
        not waves.
    """

    distribution: InputDistribution
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    partner: NDArray[np.intp]
    correlation: NDArray[np.float64]
    joint: NDArray[np.complex128] | None
    mean_prediction: NDArray[Any]
    variance_joint: NDArray[np.float64]
    mean_square_gradient: NDArray[np.float64]
    total_weight: float
    distribution_error: float | None

    @classmethod
    def of(
        cls,
        expansion: Expansion,
        X: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        *,
        for_good: bool = True,
    ) -> InputSummary:
        """Summarise rows in one pass over blocks.

        Parameters
        ----------
        expansion : Expansion
        X : array of shape (rows, inputs)
            Not yet clipped or warped.
        weights : array of shape (rows,), optional
            How often each row counts, positive.
        for_good : bool, default=True
            Whether the summary is stored with a model: an input then gets at most half as many
            nodes as it has values, unless it is a factor with few levels. False uses as many nodes
            as exact means need.
        """
        X = np.asarray(X, dtype=float)
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
        clipped = X if expansion.map is None else expansion.map.clip(X)
        mapped = X if expansion.map is None else expansion.map.warp(clipped)
        share = weights / weights.sum()
        units = measure_units(mapped, weights, "standard")
        seen = units if mapped is clipped else measure_units(clipped, weights, "standard")
        distribution = gauss_marginals(expansion, mapped, share, units.centre, for_good)
        prediction = expansion.linear(X)
        with np.errstate(over="ignore", invalid="ignore"):  # squares of 1e200 are infinite
            mean = share @ prediction
            variance = share @ np.abs(prediction - mean) ** 2
            gradient = mean_square_gradient(expansion, X, share)
        deviation = np.where(np.isfinite(seen.spread), seen.spread, 0.0)
        used = np.flatnonzero(largest_frequencies(expansion.features) * deviation > 0)
        partner, correlation = strongest_partners(mapped, share, units, used)
        waves = expansion.features.is_wave
        return cls(
            distribution=distribution,
            lower=X.min(axis=0),
            upper=X.max(axis=0),
            quantiles=weighted_quantiles(X, weights),
            mean=seen.centre,
            deviation=deviation,
            partner=partner,
            correlation=correlation,
            joint=_joint(expansion.features, mapped, share) if waves else None,
            mean_prediction=mean,
            variance_joint=variance,
            mean_square_gradient=gradient,
            total_weight=float(weights.sum()),
            distribution_error=(
                _distribution_error(expansion.features, distribution, mapped, share)
                if waves
                else None
            ),
        )

    def named_distribution(self, name: str, expansion: Expansion) -> InputDistribution:
        """Return the distribution with this name, one of `DISTRIBUTIONS`."""
        if name == "independent":
            return self.distribution
        features, kept = expansion.features, expansion.map
        largest = largest_frequencies(features) if features.is_wave else None
        own = None if kept is None else kept.warped
        if largest is not None and own is not None:
            # Those of warped inputs are not in the user's units, and their rules are replaced.
            largest = np.where(own, 0.0, largest)
        lower, upper = self.lower, self.upper
        if kept is not None:
            lower, upper = kept.clip(np.stack([lower, upper]))
        if name == "normal":
            plain = InputDistribution.normal(self.mean, self.deviation, largest)
        else:
            plain = InputDistribution.uniform(lower, upper, largest)
        if kept is None or own is None or not own.any():
            return plain
        rules = list(zip(plain.nodes, plain.weights, strict=True))
        frequencies = largest_frequencies(features)
        for k in np.flatnonzero(own).tolist():
            column = np.array([k])
            this, frequency = kept.take(column), frequencies[k] if features.is_wave else None
            if frequencies[k] == 0 or self.deviation[k] == 0:
                rules[k] = this.apply(self.mean[column, None])[:, 0], np.ones(1)
            elif name == "normal":
                rules[k] = warped_normal(this, self.mean[k], self.deviation[k], frequency)
            else:
                rules[k] = warped_uniform(this, lower[k], upper[k], frequency)
        return InputDistribution.of_rules(name, rules)

    def mapped_moments(self, expansion: Expansion) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and deviation of the inputs as the function maps them."""
        mean, deviation = self.mean.copy(), self.deviation.copy()
        for k in np.flatnonzero([] if expansion.map is None else expansion.map.warped).tolist():
            nodes, weights = self.distribution.nodes[k], self.distribution.weights[k]
            mean[k] = weights @ nodes
            deviation[k] = np.sqrt(weights @ (nodes - mean[k]) ** 2)
        return mean, deviation


def mean_square_gradient(
    expansion: Expansion, X: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Σ share |∂f/∂x_k|² over rows, on the scale of the link, shape (targets, inputs)."""
    total = np.zeros((len(expansion.coef), X.shape[1]))
    for rows in blocks(len(X), _GRADIENT_ROWS):
        total += np.einsum(
            "r,trj->tj", share[rows], np.abs(expansion.linear_gradient(X[rows])) ** 2
        )
    return total


def subset_means(
    features: FeaturePool, X: NDArray[np.float64], share: NDArray[np.float64], masks: Iterable[int]
) -> NDArray[np.complex128]:
    """Mean over rows of e^{i Σ_{k in v} w_jk x_k}, shape (features, masks), for these subsets v."""
    masks = list(masks)
    order = features.indices.shape[1]
    pools = []
    for mask in masks:
        inside = np.array([bool(mask >> place & 1) for place in range(order)], dtype=bool)
        values = np.where(inside, features.values, 0.0)
        pools.append(
            FeaturePool(
                features.n_variables, features.indices, values, np.zeros(len(features)), "exp"
            )
        )
    return np.stack(_row_means(pools, X, share), axis=1)


def _row_means(
    pools: list[FeaturePool], X: NDArray[np.float64], share: NDArray[np.float64]
) -> list[NDArray[np.complex128]]:
    """Mean of exp features over rows, in blocks of rows; one thread per pool."""
    means = [np.zeros(len(pool), dtype=complex) for pool in pools]
    for rows in blocks(len(X), _ROW_BLOCK):
        inputs = Rows.of(X[rows])

        def work(part: slice, inputs: Rows = inputs, rows: slice = rows) -> None:
            for pool, mean in zip(pools[part], means[part], strict=True):
                values = np.empty((len(pool), inputs.n_rows), dtype=complex)
                pool.write(inputs, 0, values)
                mean += values @ share[rows]

        run_blocks(work, blocks(len(pools), 1))
    return means


def _joint(
    features: FeaturePool, X: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.complex128] | None:
    order = features.indices.shape[1]
    # By logarithms: for an order in the thousands 2**order overflows.
    if np.log2(max(len(features), 1)) + order > np.log2(_MOST_MEANS):
        return None
    joint = np.ones((len(features), 2**order), dtype=complex)
    joint[:, 1:] = subset_means(features, X, share, range(1, 2**order)) if order else 1.0
    return joint


def _distribution_error(
    features: FeaturePool,
    distribution: InputDistribution,
    X: NDArray[np.float64],
    share: NDArray[np.float64],
) -> float:
    frequencies = 2 * largest_frequencies(features)
    used = np.flatnonzero(frequencies)
    pool = FeaturePool(
        features.n_variables,
        used[:, None],
        frequencies[used, None],
        np.zeros(len(used)),
        "exp",
    )
    (exact,) = _row_means([pool], X, share)
    found = [distribution.characteristic(k, frequencies[k]) for k in used.tolist()]
    return float(np.abs(np.array(found) - exact).max(initial=0.0))
