"""Candidates for the settings that cross-validation chooses: a list, or as many as requested."""

from __future__ import annotations

from typing import Any

import numpy as np

from harfe._core.arguments import is_whole

# Meaning of a number n of candidates: the first n orders; n numbers from the first to the last in
# equal ratios. Measured on training rows, docs/decisions/0018.
_ORDERS: tuple[Any, ...] = (2, 1, (1, 2), 3, (1, 2, 3), 4, (2, 3), 5)
_SCALES = (0.2, 4.0)
_ALPHAS = (1e-12, 10.0)
_SMALLEST_SIZE, _LARGEST_SIZE = 2, 400

# The largest size under a learned law grows with the cube root of the rows, up to a limit.
_SIZE_GROWTH, _LIMIT = 80, 2000


def candidate_orders(orders: Any, d: int) -> list[Any]:
    """Candidates for the order: numbers, or tuples for mixed pools."""
    if is_whole(orders):
        if orders < 1:
            raise ValueError(f"orders={orders!r} must be at least 1 candidate, e.g. orders=4")
        possible = [q for q in _ORDERS if np.max(q) <= d]
        return possible[: int(orders)]
    candidates: list[Any] = []
    if np.iterable(orders) and not isinstance(orders, str):
        candidates = [int(q) if is_whole(q) else q for q in orders]
    if not candidates:
        raise ValueError(
            f"orders={orders!r} must be a number of candidates or a list of orders, "
            "e.g. orders=[1, 2, (1, 2)]"
        )
    return [tuple(q) if np.iterable(q) and not isinstance(q, str) else q for q in candidates]


def _numbers(
    name: str, value: Any, low: float, high: float, *, middle: float, zero: bool = False
) -> list[float]:
    """Candidates as given, or `value` numbers from `low` to `high` in equal ratios."""
    if is_whole(value) and value >= 1:
        return [middle] if value == 1 else np.geomspace(low, high, int(value)).tolist()
    try:
        numbers = np.asarray(value)
    except ValueError:
        numbers = np.empty(0)
    fine = numbers.dtype.kind in "iuf" and numbers.ndim == 1 and numbers.size > 0
    if fine:
        fine = bool(np.all(np.isfinite(numbers) & ((numbers > 0) | (zero & (numbers == 0)))))
    if not fine:
        raise ValueError(
            f"{name}={value!r} must be a number of candidates or a list of "
            f"{'numbers >= 0' if zero else 'positive numbers'}, e.g. {name}=[{low:g}, {high:g}]"
        )
    return [float(v) for v in numbers]


def candidate_sizes(
    value: Any, n_components: int, lightest_fold: float, largest: int = _LARGEST_SIZE
) -> list[int]:
    """Candidates for s, ascending."""
    if is_whole(value) and value >= 1:
        top = max(min(n_components, int(lightest_fold), largest), 1)
        low = min(_SMALLEST_SIZE, top)
        if value == 1:
            return [max(top // 8, low)]
        return sorted({round(float(s)) for s in np.geomspace(low, top, int(value))})
    sizes = list(value) if np.iterable(value) and not isinstance(value, str) else []
    if not sizes or not all(is_whole(s) and 1 <= s <= n_components for s in sizes):
        raise ValueError(
            f"n_nonzero_coefs={value!r} must be a number of candidates or a list of whole numbers "
            f"from 1 to n_components={n_components}, e.g. n_nonzero_coefs=[10, 50]"
        )
    return sorted({int(s) for s in sizes})


def largest_size(n_rows: float) -> int:
    """The largest size to try under a learned law: 800 for 1000 rows, 2000 from 16 000 on."""
    return min(max(_LARGEST_SIZE, round(_SIZE_GROWTH * np.cbrt(n_rows))), _LIMIT)


def candidate_scales(scales: Any) -> list[float]:
    """Candidates for the scale of the weights."""
    return _numbers("scales", scales, *_SCALES, middle=1.0)


def candidate_alphas(alphas: Any) -> list[float]:
    """Candidates for the ridge weight, ascending."""
    return sorted(_numbers("alphas", alphas, *_ALPHAS, middle=1e-3, zero=True))
