"""The distribution of the inputs as a value: independent inputs, each on a few weighted nodes.

Every mean that explanations need is then a sum over nodes,

    χ_k(ω) = E e^{iωX_k} = Σ_n w_kn e^{iω x_kn},

whether the nodes come from the rows of a table, a uniform or a normal distribution. Where a fitted
function clips or warps its inputs, the distribution is that of the mapped inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe.explain.inputs.quadrature import (
    Rule,
    gauss_of_interval,
    gauss_of_points,
    nodes_needed,
    normal_rule,
)
from harfe.features.pool import FeaturePool
from harfe.features.units import InputMap

DISTRIBUTIONS = ("independent", "uniform", "normal")

# Nodes per input if the function is not a sum of waves: no frequency says how many are needed.
PLAIN_NODES = 64

# Most nodes per input; enough for 2000 radians from the centre of the range to its end.
MOST_NODES = 2048


@dataclass(frozen=True)
class InputDistribution:
    """Distribution of independent inputs, each on finitely many nodes.

    Attributes
    ----------
    kind : str
        "independent" (marginals of rows), "uniform" or "normal".
    nodes : tuple of float arrays
        Values of each input; a single one if the input is constant or unused.
    weights : tuple of float arrays
        Their probabilities, which sum to 1.
    """

    kind: str
    nodes: tuple[NDArray[np.float64], ...]
    weights: tuple[NDArray[np.float64], ...]

    @classmethod
    def empirical(
        cls,
        X: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        map: InputMap | None = None,
    ) -> InputDistribution:
        """Exact marginals of rows: the distinct values of each column and their weights.

        Parameters
        ----------
        X : array of shape (rows, inputs)
        weights : array of shape (rows,), optional
            How often each row counts, positive.
        map : InputMap, optional
            Clip and warp the rows first.
        """
        X = np.asarray(X, dtype=float)
        mapped = X if map is None else map.apply(X)
        return cls.of_rules("independent", [marginal(column, weights) for column in mapped.T])

    @classmethod
    def uniform(
        cls, lower: ArrayLike, upper: ArrayLike, largest_frequency: ArrayLike | None = None
    ) -> InputDistribution:
        """Inputs uniform on intervals.

        Parameters
        ----------
        lower, upper : arrays of shape (inputs,)
        largest_frequency : array of shape (inputs,), optional
            Largest |ω| in use, see `largest_frequencies`: means of products of two waves up to
            it are exact to 1e-13; 0 marks an unused input. By default, each input has 64 nodes.
        """
        lower = _numbers("lower", lower)
        upper = _numbers("upper", upper, lower)
        if lower.shape != upper.shape or np.any(lower > upper):
            raise ValueError(
                f"lower={lower.tolist()} must not be above upper={upper.tolist()}; pass one "
                "interval for each input"
            )

        def rule(k: int, frequency: float | None) -> Rule:
            low, high = lower[k], upper[k]
            if low == high or frequency == 0:
                return _point(low / 2 + high / 2)
            if frequency is None:
                return gauss_of_interval(low, high, PLAIN_NODES)
            n = min(nodes_needed(2 * frequency * (high / 2 - low / 2)), MOST_NODES)
            return gauss_of_interval(low, high, n)

        return cls.of_rules("uniform", _rules(rule, len(lower), largest_frequency))

    @classmethod
    def normal(
        cls, mean: ArrayLike, deviation: ArrayLike, largest_frequency: ArrayLike | None = None
    ) -> InputDistribution:
        """Normally distributed inputs.

        Parameters
        ----------
        mean, deviation : arrays of shape (inputs,)
        largest_frequency : array of shape (inputs,), optional
            As for `uniform`.
        """
        mean = _numbers("mean", mean)
        deviation = _numbers("deviation", deviation, mean)
        if mean.shape != deviation.shape or np.any(deviation < 0):
            raise ValueError(
                f"deviation={deviation.tolist()} must hold a number >= 0 for each of the "
                f"{len(mean)} inputs"
            )

        def rule(k: int, frequency: float | None) -> Rule:
            if deviation[k] == 0 or frequency == 0:
                return _point(mean[k])
            # This frequency gives about PLAIN_NODES nodes.
            plain = 0.35 * PLAIN_NODES / deviation[k]
            return normal_rule(mean[k], deviation[k], plain if frequency is None else 2 * frequency)

        return cls.of_rules("normal", _rules(rule, len(mean), largest_frequency))

    @classmethod
    def of_rules(cls, kind: str, rules: Sequence[Rule]) -> InputDistribution:
        """Inputs with these nodes and weights."""
        return cls(kind, tuple(rule[0] for rule in rules), tuple(rule[1] for rule in rules))

    @property
    def n_variables(self) -> int:
        """Number of inputs."""
        return len(self.nodes)

    def characteristic(self, k: int, frequencies: ArrayLike) -> NDArray[np.complex128]:
        """Evaluate χ_k(ω), the characteristic function of input k, at these frequencies."""
        return self.waves(k, frequencies) @ self.weights[k]

    def waves(self, k: int, frequencies: ArrayLike) -> NDArray[np.complex128]:
        """Evaluate e^{iωx} at the nodes of input k, shape (frequencies, nodes)."""
        return np.exp(1j * np.multiply.outer(np.asarray(frequencies, dtype=float), self.nodes[k]))

    def reduced(self, most: int | Sequence[int]) -> InputDistribution:
        """Replace the nodes of each input by its Gauss rule with at most `most` nodes."""
        counts = np.broadcast_to(np.asarray(most), self.n_variables)
        rules = [
            gauss_of_points(nodes, weights, int(n))
            for nodes, weights, n in zip(self.nodes, self.weights, counts, strict=True)
        ]
        return self.of_rules(self.kind, rules)


def largest_frequencies(features: FeaturePool) -> NDArray[np.float64]:
    """Largest |weight| of each input over the features; 0 if no feature uses it."""
    largest = np.zeros(features.n_variables)
    present = features.indices >= 0
    np.maximum.at(largest, features.indices[present], np.abs(features.values[present]))
    return largest


def marginal(column: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> Rule:
    """Distinct values of a column, ascending, and the share of the rows with each."""
    if weights is None:
        values, counts = np.unique(column, return_counts=True)
        return values, counts / len(column)
    values, place = np.unique(column, return_inverse=True)
    shares = np.bincount(place, weights, len(values))
    return values, shares / shares.sum()


def _rules(rule: Any, d: int, largest_frequency: ArrayLike | None) -> list[Rule]:
    if largest_frequency is None:
        return [rule(k, None) for k in range(d)]
    largest = _numbers("largest_frequency", largest_frequency)
    if largest.shape != (d,):
        raise ValueError(
            f"largest_frequency has shape {largest.shape}; pass a number for each of the {d} inputs"
        )
    return [rule(k, float(largest[k])) for k in range(d)]


def _point(value: float) -> Rule:
    return np.array([value]), np.ones(1)


def _numbers(
    name: str, values: ArrayLike, like: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Check for one finite number per input; a single number is repeated to the shape of `like`."""
    array = np.asarray(values, dtype=float)
    if like is not None and array.ndim == 0:
        array = np.full(like.shape, float(array))
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        raise ValueError(f"{name}={values!r} must hold one finite number for each input")
    return array
