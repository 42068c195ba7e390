"""The table of laws that weights are drawn from, the only place that lists them.

The kernel of a law of the features is built from the characteristic function of its weights: that
of Student's t with 1, 3 and 5 degrees of freedom is the Matérn function of order 1/2, 3/2 and 5/2,
for functions that are rougher than those of normal weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WeightLaw:
    """A law of the weights with all of its parts.

    Attributes
    ----------
    code : int
        Its branch in `harfe.features.law_kernels`.
    draw : callable
        (generator, shape) -> weights at scale 1, filled row by row.
    rates : callable
        Scales -> the factors of differences, or of their squares, in the characteristic function.
    """

    code: int
    draw: Callable[[np.random.Generator, tuple[int, int]], Array]
    rates: Callable[[Array], Array]


def _student(code: int, freedom: int) -> WeightLaw:
    return WeightLaw(
        code,
        lambda rng, shape: rng.standard_t(freedom, shape),
        lambda scales: np.sqrt(freedom) * scales,
    )


WEIGHT_LAWS = {
    "normal": WeightLaw(
        0, lambda rng, shape: rng.standard_normal(shape), lambda scales: scales**2 / 2
    ),
    "uniform": WeightLaw(
        1, lambda rng, shape: rng.uniform(-1.0, 1.0, shape), lambda scales: scales
    ),
    "cauchy": _student(2, 1),
    "t3": _student(3, 3),
    "t5": _student(4, 5),
}
