"""Checks of single arguments; messages name the argument, its value and what to type instead."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral, Real
from typing import Any

#: Kinds of `harfe.model.link`, here because the command line lists them before anything is loaded.
LINKS = ("none", "log", "yeo-johnson")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise ValueError unless `value` is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(allowed)}")


def check_count(name: str, value: Any, example: int, alternative: str = "") -> None:
    """Raise ValueError unless `value` is a whole number of at least 1."""
    if not is_whole(value) or value < 1:
        raise ValueError(
            f"{name}={value!r} must be {alternative}a whole number of at least 1, "
            f"e.g. {name}={example}"
        )


def is_whole(value: Any) -> bool:
    """Whether this is an integer but not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether this is a real number but not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_alpha(alpha: Any) -> None:
    """Raise ValueError unless `alpha` is a valid ridge penalty."""
    if not is_number(alpha) or not 0 <= alpha < inf:
        raise ValueError(f"alpha={alpha!r} must be a finite number >= 0, e.g. alpha=1e-3")


def check_clip(input_clip: Any) -> None:
    """Raise ValueError unless `input_clip` is None or positive and finite."""
    if input_clip is not None and not (is_number(input_clip) and 0 < input_clip < inf):
        raise ValueError(
            f"input_clip={input_clip!r} must be None or a positive number of spreads, e.g. "
            "input_clip=5"
        )
