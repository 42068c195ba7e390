"""The hard threshold: which s features are the largest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def largest_rows(
    c: NDArray[Any], s: int, usable: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Sorted indices of the s usable rows with the largest ℓ2 norm, ties to the lower index."""
    size = np.sum(c.real**2 + c.imag**2, axis=1) if c.shape[1] > 1 else np.abs(c[:, 0])
    if usable is not None:
        size = np.where(usable, size, -1.0)
    if s == 0:
        return np.empty(0, dtype=np.intp)
    threshold = np.partition(size, len(size) - s)[len(size) - s]
    above = np.flatnonzero(size > threshold)
    level = np.flatnonzero(size == threshold)[: s - len(above)]
    return np.sort(np.concatenate([above, level]))
