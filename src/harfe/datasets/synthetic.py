"""The functions of the paper's synthetic tables, and random additive functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe.datasets._shared import (
    FloatArray,
    RandomState,
    bunch,
    noise_level,
    streams,
    unknown_name,
    whole,
)

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def inverse_norm(X: ArrayLike) -> FloatArray:
    """Return 1 / sqrt(1 + ‖x‖₂²) for every row x of X (Table 1, first function)."""
    return 1 / norm(X)


def norm(X: ArrayLike) -> FloatArray:
    """Return sqrt(1 + ‖x‖₂²) for every row x of X (Table 1, second function)."""
    return np.sqrt(1 + np.sum(_table(X, 1, "norm") ** 2, axis=1))


def ratio(X: ArrayLike) -> FloatArray:
    """Return x₁x₂ / (1 + x₃⁶) for every row x of X (Table 1, third function).

    Inputs from the fourth on have no effect.
    """
    x1, x2, x3 = _table(X, 3, "ratio").T[:3]
    return x1 * x2 / (1 + x3**6)


def laplace_sum(X: ArrayLike) -> FloatArray:
    """Return Σᵢ exp(-|xᵢ|) for every row x of X (Table 1, fourth function)."""
    return np.sum(np.exp(-np.abs(_table(X, 1, "laplace_sum"))), axis=1)


def friedman1(X: ArrayLike) -> FloatArray:
    """Return 10 sin(π x₁x₂) + 20 (x₃ - 1/2)² + 10 x₄ + 5 x₅ for every row x of X in [0, 1]^d.

    The paper's f₁ for d = 10 and its g for d = 20; inputs from the sixth on have no effect.
    """
    x1, x2, x3, x4, x5 = _table(X, 5, "friedman1").T[:5]
    return 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5


def friedman2(X: ArrayLike, *, as_printed: bool = False) -> FloatArray:
    """sqrt( (100x₁)² + ( x₃ω - 1/(ω(10x₄ + 1)) )² ),  ω = 520πx₂ + 40π,  rows x of X in [0, 1]⁴.

    This is the usual definition. The paper prints 520πx₂ + π for the ω in the denominator, but
    520πx₂ + 40π in f₃; ``as_printed=True`` uses the printed form. The values differ by less than
    0.32, while the noise has a standard deviation of 125. Inputs from the fifth on have no effect.
    """
    x1, x2, x3, x4 = _table(X, 4, "friedman2").T[:4]
    offset = np.pi if as_printed else 40 * np.pi
    return np.hypot(100 * x1, _reactance(x2, x3, x4, offset))


def friedman3(X: ArrayLike) -> FloatArray:
    """arctan( (x₃ω - 1/(ω(10x₄ + 1))) / (100x₁) ),  ω = 520πx₂ + 40π,  rows x of X in [0, 1]⁴.

    At x₁ = 0 the value is the limit ±π/2 from the right. Inputs from the fifth on have no effect.
    """
    x1, x2, x3, x4 = _table(X, 4, "friedman3").T[:4]
    # arctan2 returns the limit at x₁ = 0; the sign makes it equal to arctan for x₁ < 0.
    sign = np.where(x1 < 0, -1.0, 1.0)
    return np.arctan2(sign * _reactance(x2, x3, x4, 40 * np.pi), np.abs(100 * x1))


def _reactance(x2: FloatArray, x3: FloatArray, x4: FloatArray, offset: float) -> FloatArray:
    """Return x₃ω - 1/((520πx₂ + offset)(10x₄ + 1)), the part that f₂ and f₃ share."""
    return x3 * (520 * np.pi * x2 + 40 * np.pi) - 1 / ((520 * np.pi * x2 + offset) * (10 * x4 + 1))


@dataclass(frozen=True)
class FunctionSpec:
    """Definition of a function of the paper."""

    evaluate: Callable[[ArrayLike], FloatArray]  # rows of X to noise-free values
    formula: str
    n_features: int  # the dimension d
    box: tuple[float, float]  # inputs are independent and uniform between these bounds
    noise: float  # standard deviation of the Gaussian noise


_SYMMETRIC, _UNIT = (-1.0, 1.0), (0.0, 1.0)
_F1 = "10 sin(π x1 x2) + 20 (x3 - 1/2)² + 10 x4 + 5 x5"
_F2 = "sqrt((100 x1)² + (x3 (520π x2 + 40π) - 1/((520π x2 + {}π)(10 x4 + 1)))²)"
_F3 = "arctan((x3 (520π x2 + 40π) - 1/((520π x2 + 40π)(10 x4 + 1))) / (100 x1))"

#: All functions of the paper's synthetic examples by name.
FUNCTIONS: dict[str, FunctionSpec] = {
    "inverse_norm": FunctionSpec(inverse_norm, "1 / sqrt(1 + |x|²)", 5, _SYMMETRIC, 0.0),
    "norm": FunctionSpec(norm, "sqrt(1 + |x|²)", 5, _SYMMETRIC, 0.0),
    "ratio": FunctionSpec(ratio, "x1 x2 / (1 + x3⁶)", 5, _SYMMETRIC, 0.0),
    "laplace_sum": FunctionSpec(laplace_sum, "Σ exp(-|xi|)", 100, _SYMMETRIC, 0.0),
    "friedman1": FunctionSpec(friedman1, _F1, 10, _UNIT, 1.0),
    "friedman2": FunctionSpec(friedman2, _F2.format("40"), 4, _UNIT, 125.0),
    "friedman2_as_printed": FunctionSpec(
        partial(friedman2, as_printed=True), _F2.format(""), 4, _UNIT, 125.0
    ),
    "friedman3": FunctionSpec(friedman3, _F3, 4, _UNIT, 0.1),
    "friedman_g": FunctionSpec(friedman1, _F1, 20, _UNIT, 1.0),
}


def make_function(
    name: str,
    n_samples: int = 500,
    *,
    noise: float | None = None,
    random_state: RandomState = None,
    n_features: int | None = None,
) -> Bunch:
    """Draw y = f(x) + σ·N(0, 1) for a function f of the paper, x uniform on its box.

    Parameters
    ----------
    name : str
        A key of `FUNCTIONS`: "inverse_norm", "norm", "ratio", "laplace_sum" (Table 1),
        "friedman1", "friedman2", "friedman2_as_printed", "friedman3", "friedman_g" (g with 20
        inputs, five of which matter).
    n_samples : int, default=500
        Number of rows.
    noise : float, optional
        Standard deviation σ. None takes the paper's: 0 for Table 1; 1, 125 and 0.1 for the three
        Friedman functions; 1 for g, where the paper gives none.
    random_state : int, RandomState or None
        Inputs and noise come from separate streams: for the same seed, X does not depend on
        `noise`, and a smaller sample is the beginning of a larger one.
    n_features : int, optional
        Dimension d; None takes the paper's.

    Returns
    -------
    Bunch
        `X` (n, d), `y` (n,), `y_clean` = f(X), `feature_names` x1..xd, `noise` = σ, `DESCR`.

    Examples
    --------
    >>> data = make_function("friedman1", 200, random_state=0)
    >>> data.X.shape, data.noise
    ((200, 10), 1.0)
    """
    if name not in FUNCTIONS:
        raise unknown_name(name, FUNCTIONS)
    spec = FUNCTIONS[name]
    n_rows = whole("n_samples", n_samples)
    d = spec.n_features if n_features is None else whole("n_features", n_features)
    deviation = spec.noise if noise is None else noise_level(noise)
    input_stream, noise_stream = streams(random_state, 2)
    X = input_stream.uniform(*spec.box, size=(n_rows, d))
    y_clean = spec.evaluate(X)
    y = y_clean + deviation * noise_stream.standard_normal(n_rows)
    low, high = spec.box
    description = (
        f"{name}: f(x) = {spec.formula}, x uniform on [{low:g}, {high:g}]^{d}, "
        f"Gaussian noise of standard deviation {deviation:g}."
    )
    names = [f"x{j + 1}" for j in range(d)]
    return bunch(X=X, y=y, y_clean=y_clean, feature_names=names, noise=deviation, DESCR=description)


# --- Order-q additive functions ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AdditiveFunction:
    """f(x) = (1/K) Σⱼ gⱼ(x|Sⱼ), an order-q additive function with K terms (Definition 2.1).

    Each term is a short sum of plane waves in its own q inputs,
    gⱼ(z) = Σₗ aⱼₗ φ(⟨ωⱼₗ, z⟩ + bⱼₗ), with φ = sin, or φ = exp(i·) if f is complex.
    """

    n_features: int
    index_sets: tuple[tuple[int, ...], ...]  # the Sⱼ, sorted, counted from 0
    frequencies: FloatArray  # ω, shape (K, waves, q)
    phases: FloatArray  # b, shape (K, waves)
    amplitudes: FloatArray  # a, shape (K, waves)
    complex_valued: bool

    def __call__(self, X: ArrayLike) -> NDArray[Any]:
        """Return the noise-free values f(x) for every row x of X, shape (n, d)."""
        rows = _table(X, self.n_features, "this additive function")
        if rows.shape[1] > self.n_features:
            raise ValueError(f"X has {rows.shape[1]} columns: pass exactly {self.n_features}.")
        total = np.zeros(len(rows), dtype=np.complex128 if self.complex_valued else np.float64)
        terms = zip(self.index_sets, self.frequencies, self.phases, self.amplitudes, strict=True)
        for index_set, omega, phase, amplitude in terms:
            angle = rows[:, index_set] @ omega.T + phase
            total += (np.exp(1j * angle) if self.complex_valued else np.sin(angle)) @ amplitude
        return total / len(self.index_sets)


def make_additive(
    n_samples: int,
    n_features: int,
    *,
    order: int,
    n_terms: int,
    noise: float = 0.0,
    noise_kind: Literal["gaussian", "bounded"] = "gaussian",
    complex_valued: bool = False,
    random_state: RandomState = None,
) -> Bunch:
    """Draw y = f(x) + e for a random f(x) = (1/K) Σⱼ gⱼ(x|Sⱼ) of order q, x uniform on [-1, 1]^d.

    The K index sets are drawn uniformly without replacement from all C(d, q). Every gⱼ depends on
    all of its q inputs and has a root mean square of about 1, so that of f is about 1/√K.

    Parameters
    ----------
    n_samples, n_features : int
        Number of rows, and dimension d.
    order, n_terms : int
        The size q <= d of every index set, and the number of terms K <= C(d, q).
    noise : float, default=0.0
        "gaussian": the standard deviation sqrt(E|e|²). "bounded": the bound E in |e| <= E.
    noise_kind : {"gaussian", "bounded"}, default="gaussian"
        Bounded noise is uniform on [-E, E], or on the disc of radius E if complex. Complex Gaussian
        noise has independent real and imaginary parts of equal size.
    complex_valued : bool, default=False
        Whether f and the noise are complex.
    random_state : int, RandomState or None
        Index sets, terms, inputs and noise come from separate streams: for the same seed, the
        function does not depend on `n_samples`, `noise` or `noise_kind`.

    Returns
    -------
    Bunch
        `X`, `y`, `y_clean`, `index_sets` (the truth: sorted tuples counted from 0, in
        lexicographic order), `noise`, `function` (an `AdditiveFunction`, for y_clean at new X),
        `feature_names`, `DESCR`.

    Examples
    --------
    >>> data = make_additive(50, 10, order=2, n_terms=3, random_state=0)
    >>> data.index_sets
    [(1, 9), (3, 6), (7, 9)]
    >>> bool((data.function(data.X) == data.y).all())
    True
    """
    n_rows, d = whole("n_samples", n_samples), whole("n_features", n_features)
    q, n_sets = whole("order", order), whole("n_terms", n_terms)
    if q > d:
        raise ValueError(f"order={q} exceeds n_features={d}: type an order from 1 to {d}.")
    if n_sets > math.comb(d, q):
        raise ValueError(
            f"n_terms={n_sets} exceeds the {math.comb(d, q)} sets of order={q} among "
            f"n_features={d}: type n_terms from 1 to {math.comb(d, q)}."
        )
    if noise_kind not in ("gaussian", "bounded"):
        raise ValueError(f"noise_kind={noise_kind!r}: type 'gaussian' or 'bounded'.")
    level = noise_level(noise)
    set_stream, term_stream, input_stream, noise_stream = streams(random_state, 4)
    index_sets = _draw_index_sets(d, q, n_sets, set_stream)
    function = AdditiveFunction(
        d, index_sets, *_draw_waves(n_sets, q, complex_valued, term_stream), complex_valued
    )
    X = input_stream.uniform(-1, 1, size=(n_rows, d))
    y_clean = function(X)
    y = y_clean + level * _unit_noise(noise_stream, n_rows, noise_kind, complex_valued)
    description = (
        f"Order-{q} additive {'complex' if complex_valued else 'real'} function with {n_sets} "
        f"terms, x uniform on [-1, 1]^{d}, {noise_kind} noise of level {level:g}."
    )
    return bunch(
        X=X,
        y=y,
        y_clean=y_clean,
        index_sets=list(index_sets),
        noise=level,
        function=function,
        feature_names=[f"x{j + 1}" for j in range(d)],
        DESCR=description,
    )


def _draw_waves(
    n_terms: int, q: int, complex_valued: bool, stream: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw frequencies, phases and amplitudes of three waves per term, of total mean square 1."""
    # Frequencies and amplitudes stay away from 0, so that every input of a set matters.
    size = (n_terms, 3, q)
    frequencies = stream.uniform(1, 3, size) * stream.choice([-1.0, 1.0], size)
    phases = stream.uniform(0, 2 * np.pi, size[:2])
    amplitudes = stream.uniform(0.5, 1.5, size[:2])
    mean_square_of_wave = 1.0 if complex_valued else 0.5
    amplitudes /= np.sqrt(mean_square_of_wave * np.sum(amplitudes**2, axis=1, keepdims=True))
    return frequencies, phases, amplitudes


def _draw_index_sets(
    d: int, q: int, count: int, stream: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """Draw `count` distinct q-subsets of range(d) uniformly, in at most about 2·count steps."""
    if 2 * count > math.comb(d, q):
        subsets = list(itertools.combinations(range(d), q))
        chosen = {subsets[i] for i in stream.choice(len(subsets), count, replace=False)}
    else:
        # At least half of all sets are unused at every draw, so few draws repeat one.
        chosen = set()
        while len(chosen) < count:
            chosen.add(tuple(sorted(stream.choice(d, q, replace=False).tolist())))
    return tuple(sorted(chosen))


def _unit_noise(
    stream: np.random.Generator, n_rows: int, kind: str, complex_valued: bool
) -> NDArray[Any]:
    """Draw noise with E|e|² = 1 ("gaussian") or |e| <= 1 ("bounded")."""
    if kind == "gaussian" and complex_valued:
        real, imaginary = stream.standard_normal((n_rows, 2)).T / np.sqrt(2)
        return real + 1j * imaginary
    if kind == "gaussian":
        return stream.standard_normal(n_rows)
    if complex_valued:
        area, turn = stream.uniform(size=(n_rows, 2)).T
        return np.sqrt(area) * np.exp(2j * np.pi * turn)
    return stream.uniform(-1, 1, size=n_rows)


def _table(X: ArrayLike, least: int, reader: str) -> FloatArray:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < least:
        raise ValueError(
            f"X has shape {rows.shape}: {reader} needs rows of at least {least} columns; "
            f"pass an array of shape (n, d) with d = n_features >= {least}."
        )
    return rows
