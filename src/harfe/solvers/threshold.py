"""The hard threshold: which s features are the largest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def largest_rows(
    c: NDArray[Any], s: int, usable: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Sorted indices of the s usable rows with the largest ℓ2 norm, ties to the lower index."""
    size = _sizes(c, usable)
    if s == 0:
        return np.empty(0, dtype=np.intp)
    threshold = np.partition(size, len(size) - s)[len(size) - s]
    above = np.flatnonzero(size > threshold)
    level = np.flatnonzero(size == threshold)[: s - len(above)]
    return np.sort(np.concatenate([above, level]))


def split_largest(
    c: NDArray[Any], s: int, usable: NDArray[np.bool_], gap: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows larger by `gap` than the smallest of the s largest, and usable rows within the gap."""
    size = _sizes(c, usable)
    if s == 0:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    threshold = np.partition(size, len(size) - s)[len(size) - s]
    near = (np.abs(size - threshold) <= gap) & usable
    return np.flatnonzero((size > threshold) & ~near), np.flatnonzero(near)


def _sizes(c: NDArray[Any], usable: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """ℓ2 norms of the rows up to a monotone function; -1 for rows that are not usable."""
    size = np.sum(c.real**2 + c.imag**2, axis=1) if c.shape[1] > 1 else np.abs(c[:, 0])
    return size if usable is None else np.where(usable, size, -1.0)
