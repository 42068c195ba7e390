"""A mixture of laws: the result of stacking learned laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool


@dataclass(frozen=True)
class MixedLaw:
    """Features drawn from several laws by shares, over the same inputs.

    Parameters
    ----------
    parts : tuple of FeatureLaw
        With the same number of inputs and the same activation.
    shares : tuple of float
        How often each is drawn from; positive, summing to 1.
    """

    parts: tuple[FeatureLaw, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        same = {(law.n_variables, law.activation) for law in self.parts}
        if len(same) != 1 or len(self.shares) != len(self.parts):
            raise ValueError(
                "MixedLaw needs laws with the same inputs and activation, and a share for each"
            )
        if not (min(self.shares) > 0 and abs(sum(self.shares) - 1) <= 1e-9):
            raise ValueError(f"shares={self.shares!r} must be positive and sum to 1")

    @property
    def n_variables(self) -> int:
        """Number of inputs."""
        return self.parts[0].n_variables

    @property
    def activation(self) -> str:
        """Activation of all features."""
        return self.parts[0].activation

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders of all laws, ascending."""
        return tuple(sorted({q for law in self.parts for q in law.orders}))

    @property
    def scale(self) -> tuple[float, ...]:
        """Scales of the law with the largest share."""
        return self.parts[int(np.argmax(self.shares))].scale

    def draw(self, n: int, rng: np.random.Generator) -> FeaturePool:
        """Draw n features; the first ones do not depend on n."""
        stream, *streams = rng.spawn(1 + len(self.parts))
        edges = np.cumsum(self.shares)
        part = np.searchsorted(edges / edges[-1], stream.random(n), side="right")
        place = np.empty(n, dtype=np.intp)
        place[np.argsort(part, kind="stable")] = np.arange(n)
        pool = None
        for k, (law, own) in enumerate(zip(self.parts, streams, strict=True)):
            drawn = law.draw(int(np.sum(part == k)), own)
            pool = drawn if pool is None else pool.join(drawn)
        assert pool is not None
        return pool.take(place)

    def kernel(self, X: ArrayLike, Z: ArrayLike | None = None) -> NDArray[np.float64]:
        """Mean product of a feature at the rows of X and of Z (or of X again), exactly."""
        kernels = [
            share * law.kernel(X, Z) for law, share in zip(self.parts, self.shares, strict=True)
        ]
        return np.asarray(sum(kernels))

    def usage(self) -> NDArray[np.float64]:
        """Share of the features that depend on each variable; without the tempered copies."""
        used = [share * law.usage() for law, share in zip(self.parts, self.shares, strict=True)]
        return np.asarray(sum(used))

    def summary(self, names: Sequence[str] | None = None, most: int = 20) -> str:
        """Return a table of the variables for every law."""
        return "\n".join(
            f"{share:.0%} of the features:\n{law.summary(names, most)}"
            for law, share in sorted(
                zip(self.parts, self.shares, strict=True), key=lambda pair: -pair[1]
            )
        )


Law = FeatureLaw | MixedLaw
