"""A fitted function in a form that suits graphs of low precision.

Inputs are centred at their means and scaled by powers of two, weights and phases are adapted
accordingly, and phases of waves are reduced to one turn: floats then lose as little as possible. A
tanh or sigmoid that is close to its limit is written as the limit minus the difference,

    tanh z = 1 - 2 g(2z),   sigmoid z = 1 - g(z),   g(u) = 1 / (1 + exp u),

so that large coefficients of such features multiply small numbers; the limits are constants, which
are summed beforehand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.explain.inputs.summary import InputSummary
from harfe.features.activations import ACTIVATIONS
from harfe.features.units import InputMap
from harfe.model.expansion import Expansion

# Relative rounding error of predictions above which a warning is issued.
_VISIBLE = 1e-4

_QUARTER_TURN = np.pi / 2


@dataclass(frozen=True)
class Sum:
    """Σ_j coef_j h(z_j + phase_j) + constant_j over the features.

    Attributes
    ----------
    nodes : callable
        Adds the nodes of h to a graph, as `Activation.onnx` does.
    phases : array of shape (s,)
    coef, constants : arrays of shape (targets, s)
    """

    nodes: Callable[[Any, str], str]
    phases: NDArray[np.float64]
    coef: NDArray[Any]
    constants: NDArray[Any]


@dataclass(frozen=True)
class StatedFunction:
    """A fitted function of u = (map(x) - centre) / spread, for the inputs in use.

    Attributes
    ----------
    used : int array
        The inputs in use; the other fields refer to these.
    map : InputMap or None
        How they are clipped and warped, if any is.
    centre, spread : arrays
    indices, values : arrays of shape (s, q)
        z_j = Σ_k values_jk u_k over the inputs of a feature; values are 0 where padded.
    sums : tuple of Sum
        They and `intercept` add up to the function.
    intercept : array of shape (targets,)
    """

    used: NDArray[np.intp]
    map: InputMap | None
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    indices: NDArray[np.intp]
    values: NDArray[np.float64]
    sums: tuple[Sum, ...]
    intercept: NDArray[Any]

    @property
    def constants(self) -> NDArray[Any]:
        """What each feature adds to the constant, shape (targets, s)."""
        return np.sum([part.constants for part in self.sums], axis=0)

    @property
    def constant(self) -> NDArray[Any]:
        """All constants together, shape (targets,)."""
        return self.intercept + self.constants.sum(axis=1)

    @classmethod
    def of(cls, expansion: Expansion, kept: InputSummary, dtype: np.dtype[Any]) -> StatedFunction:
        """Restate a function for numbers of this type, which holds the centres exactly."""
        pool = expansion.features
        present = pool.indices >= 0
        used = np.unique(pool.indices[present])
        if not len(used):
            used = np.zeros(1, dtype=np.intp)
        indices = np.where(present, np.searchsorted(used, pool.indices), 0)
        mean, deviation = (moment[used] for moment in kept.mapped_moments(expansion))
        centre = mean.astype(dtype).astype(float)
        ordinary = np.isfinite(deviation) & (deviation > 0)
        spread = np.where(ordinary, 2.0 ** np.round(np.log2(np.where(ordinary, deviation, 1))), 1)
        values = np.where(present, pool.values, 0.0)
        phases = pool.phases + np.sum(values * centre[indices], axis=1)
        own = None if expansion.map is None else expansion.map.take(used)
        plain = cls(
            used,
            None if own is None or own.is_identity else own,
            centre,
            spread,
            indices,
            values * spread[indices],
            (),
            expansion.intercept,
        )
        return _with_sums(plain, pool.activation, phases, expansion.coef)


def _with_sums(
    plain: StatedFunction, activation: str, phases: NDArray[np.float64], coef: NDArray[Any]
) -> StatedFunction:
    phi, nothing = ACTIVATIONS[activation], np.zeros_like(coef)
    if phi.logistic is not None:
        lower, upper, steepness = phi.logistic
        # The side whose limit is closer at the mean of the inputs.
        side = np.where(phases > 0, 1.0, -1.0)
        limit, rest = np.where(side > 0, upper, lower), (lower - upper) * side
        slope = steepness * side
        falling = Sum(_falling, slope * phases, coef * rest, coef * limit)
        return replace(plain, values=plain.values * slope[:, None], sums=(falling,))
    if phi.onnx is not None:
        return replace(plain, sums=(Sum(phi.onnx, phases, coef, nothing),))
    # Re κe^{iz} = |κ| sin(z + π/2 + arg κ), and c·exp(iz) = c·cos z + ic·sin z.
    shift = _QUARTER_TURN + float(np.angle(phi.turn))
    waves = [(shift, coef)] + ([(0.0, 1j * coef)] if phi.is_complex else [])
    sums = tuple(
        Sum(_sine, np.remainder(phases + shift, 2 * np.pi), c, nothing) for shift, c in waves
    )
    return replace(plain, sums=sums)


def _sine(graph: Any, z: str) -> str:
    name: str = graph.op("Sin", z)
    return name


def _falling(graph: Any, z: str) -> str:
    """g(u) = 1 / (1 + exp u)."""
    one = graph.constant(1.0)
    name: str = graph.op("Div", one, graph.op("Add", one, graph.op("Exp", z)))
    return name


def warn_of_cancelling(
    function: StatedFunction, expansion: Expansion, kept: InputSummary, dtype: np.dtype[Any]
) -> None:
    """Warn if features cancel so far that rounding in this type becomes visible."""
    features = expansion.evaluate_features(kept.quantiles).T
    summands = np.abs(expansion.coef[..., None] * features - function.constants[..., None])
    total = summands.max(axis=2, initial=0.0).sum(axis=1) + np.abs(function.constant)
    typical = np.abs(kept.mean_prediction) + np.sqrt(kept.variance_joint)
    lost = float(np.max(np.finfo(dtype).eps * total / np.maximum(typical, np.finfo(float).tiny)))
    if lost > _VISIBLE:
        warnings.warn(
            f"Features of this model cancel: in {dtype} predictions may be off by {lost:.1g} times "
            'their size; export with dtype="float64", or fit with a larger alpha',
            UserWarning,
            stacklevel=4,
        )
