"""Candidates from a rival's setting: "auto", one value, or a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harfe._core.arguments import is_number, is_whole


def numbers(
    name: str, value: Any, auto: Sequence[float], *, zero: bool = False, above: float = 0.0
) -> list[float]:
    """Candidates for a number above `above` (or zero, if allowed), in the given order."""
    if isinstance(value, str) and value == "auto":
        return [float(v) for v in auto]
    listed = _listed(value)
    if not listed or not all(
        is_number(v) and np.isfinite(v) and (v > above or (zero and v == 0)) for v in listed
    ):
        least = "of at least 0" if zero else f"above {above:g}"
        raise ValueError(
            f"{name}={value!r} must be 'auto', a finite number {least}, or a list of such numbers "
            f"to choose from, e.g. {name}={auto[0]:.3g}"
        )
    return [float(v) for v in listed]


def counts(name: str, value: Any, auto: Sequence[int], *, most: int, of: str) -> list[int]:
    """Candidates for a whole number from 1 to `most`, which is the number of `of`.

    Candidates of "auto" that are too large are left out; explicit ones raise an error.
    """
    if isinstance(value, str) and value == "auto":
        return [v for v in auto if v <= most] or [most]
    listed = _listed(value)
    if not listed or not all(is_whole(v) and v >= 1 for v in listed):
        raise ValueError(
            f"{name}={value!r} must be 'auto', a whole number of at least 1, or a list of such "
            f"numbers to choose from, e.g. {name}={min(auto[0], most)}"
        )
    if max(listed) > most:
        raise ValueError(
            f"{name}={value!r} is larger than the number of {of}, {most}; pass {name}={most} or "
            "less"
        )
    return [int(v) for v in listed]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return []
    return list(value) if np.iterable(value) else [value]
