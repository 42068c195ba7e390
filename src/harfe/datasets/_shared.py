"""Shared by synthetic and real data: checks of arguments, streams of random numbers."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FloatArray: TypeAlias = NDArray[np.float64]
RandomState: TypeAlias = int | np.random.RandomState | None


def whole(argument: str, value: int, least: int = 1, alternative: str = "") -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"{argument}={value!r}: type a whole number of at least {least}{alternative}."
        )
    return int(value)


def noise_level(noise: float) -> float:
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise={noise!r}: type a finite number of at least 0, e.g. noise=0.1.")
    return float(noise)


def unknown_name(name: str, known: Iterable[str]) -> ValueError:
    nearest = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)[0]
    return ValueError(f"name={name!r} is unknown: type {nearest!r}, or one of {', '.join(known)}.")


def streams(random_state: RandomState, count: int) -> list[np.random.Generator]:
    from sklearn.utils import check_random_state

    entropy = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return [np.random.default_rng(s) for s in np.random.SeedSequence(entropy.tolist()).spawn(count)]


def bunch(**fields: Any) -> Bunch:
    from sklearn.utils import Bunch

    return Bunch(**fields)
