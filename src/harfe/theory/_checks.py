"""Argument checks shared by the functions of the theory."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from harfe._core.arguments import check_count, is_number

#: The theorems require an isometry constant below this.
LARGEST_DELTA = 1 / sqrt(3)


def check_counts(**values: Any) -> None:
    """Raise unless every value is a whole number of at least 1."""
    for name, value in values.items():
        check_count(name, value, 10)


def check_sizes(**values: Any) -> None:
    """Raise unless every value is a finite number of at least 0."""
    for name, value in values.items():
        if not is_number(value) or not 0 <= value < inf:
            raise ValueError(f"{name}={value!r} must be a finite number >= 0, e.g. {name}=1.0")


def check_positive(**values: Any) -> None:
    """Raise unless every value is a finite number above 0."""
    for name, value in values.items():
        if not is_number(value) or not 0 < value < inf:
            raise ValueError(f"{name}={value!r} must be a positive number, e.g. {name}=1.0")


def check_lam(lam: Any) -> None:
    """Raise unless `lam` is a valid ridge weight."""
    if not is_number(lam) or not 0 <= lam < inf:
        raise ValueError(f"lam={lam!r} must be a finite number >= 0, e.g. lam=1e-3")


def check_delta(delta: Any) -> None:
    """Raise unless `delta` is an isometry constant to which the theorems apply."""
    if not is_number(delta) or not 0 <= delta < LARGEST_DELTA:
        raise ValueError(
            f"delta={delta!r} must be an isometry constant from 0 to below 1/√3 = 0.577, where "
            "the theorem applies; more rows, fewer features or a larger lam make it smaller"
        )


def check_failure(failure: Any, most: float = 1.0) -> None:
    """Raise unless `failure` is a probability above 0 and below `most`."""
    if not is_number(failure) or not 0 < failure < most:
        raise ValueError(
            f"failure={failure!r} must be a probability above 0 and below {most:g}, e.g. "
            "failure=0.01"
        )
