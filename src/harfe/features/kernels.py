"""The compiled inner loops: features, their moments and scaling, prediction.

Inputs come transposed, `XT` of shape (variables, rows), so that one variable of a block of rows is
contiguous. The loops are written so that LLVM can vectorise them, and so that little is compiled:
the first fit in a new environment waits for it. Only waves are compiled; the other activations are
NumPy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.compiling import compiled

# Not "reassoc": it would cancel the steps of the range reduction against each other.
_FLAGS = {"nnan", "ninf", "nsz", "arcp", "contract"}

# Rows a loop handles at a time: its two buffers stay in the first-level cache.
_ROWS = 512

# Beyond this |argument| the three-part reduction below loses digits, and libm is used.
LARGEST_FAST_ARGUMENT = 1e5

# pi in three parts; the first two have 33 bits, so that products with multiples of 1/2 up to
# 1e5 / pi are exact (Cody and Waite).
_PI_1 = 3.1415926534682512
_PI_2 = 1.2154201012607932e-10
_PI_3 = 4.044532497591901e-21
_INVERSE_PI = 1 / math.pi

# Minimax polynomial of (sin(r)/r - 1) / r² in r² on [-pi/2, pi/2]: relative error 2.6e-19 of sin.
_C1 = -0.16666666666666666
_C2 = 0.008333333333333165
_C3 = -0.0001984126984120184
_C4 = 2.755731921015275e-06
_C5 = -2.5052106798274266e-08
_C6 = 1.6058936490360053e-10
_C7 = -7.642917806678053e-13
_C8 = 2.720479094252807e-15


@compiled(inline="always", fastmath=_FLAGS)
def _sine(z, shift):  # type: ignore[no-untyped-def]
    """sin(z + shift·pi) for shift 0 or 1/2 and |z| <= 1e5, to the last bit or two."""
    turns = np.rint(z * _INVERSE_PI + shift)
    k = turns - shift
    r = ((z - k * _PI_1) - k * _PI_2) - k * _PI_3
    t = r * r
    p = _C8
    p = p * t + _C7
    p = p * t + _C6
    p = p * t + _C5
    p = p * t + _C4
    p = p * t + _C3
    p = p * t + _C2
    p = p * t + _C1
    half = turns * 0.5
    sign = 1.0 - 4.0 * (half - np.floor(half))
    return sign * (r + r * t * p)


@compiled(fastmath=_FLAGS)
def _sine_row(z, n, out):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] = _sine(z[i], 0.0)


@compiled(fastmath=_FLAGS)
def _cosine_row(z, n, out):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] = _sine(z[i], 0.5)


@compiled()
def _wave(code, bound, z, n, out):  # type: ignore[no-untyped-def]
    """Write sin(z) (code 0), cos(z) (code 1) or z itself to out; `bound` is at least max |z|.

    z and out must not overlap.
    """
    if code > 1:
        for i in range(n):
            out[i] = z[i]
    elif bound > LARGEST_FAST_ARGUMENT:
        for i in range(n):
            out[i] = math.cos(z[i]) if code == 1 else math.sin(z[i])
    elif code == 1:
        _cosine_row(z, n, out)
    else:
        _sine_row(z, n, out)


@compiled(fastmath=_FLAGS)
def _add_multiple(out, factor, x, n):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] += factor * x[i]


@compiled()
def _argument(XT, largest, indices, values, phase, start, n, z):  # type: ignore[no-untyped-def]
    """Compute z = <x, w> + b on rows start .. start+n of one feature; padding adds 0·x[-1].

    Returns a bound of |z|.
    """
    for i in range(n):
        z[i] = phase
    bound = abs(phase)
    for k in range(indices.shape[0]):
        if values[k] != 0.0:
            _add_multiple(z, values[k], XT[indices[k], start : start + n], n)
            bound += abs(values[k]) * largest[indices[k]]
    return bound


@compiled(nogil=True)
def _waves(XT, largest, indices, values, phases, code, start, out, z):  # type: ignore[no-untyped-def]
    """Write `_wave` of rows start .. start+out.shape[1] to out[j]; z is working space."""
    for j in range(out.shape[0]):
        for first in range(0, out.shape[1], _ROWS):
            n = min(_ROWS, out.shape[1] - first)
            bound = _argument(XT, largest, indices[j], values[j], phases[j], start + first, n, z)
            _wave(code, bound, z, n, out[j, first : first + n])


@compiled(nogil=True)
def complex_features(XT, largest, indices, values, phases, start, out):  # type: ignore[no-untyped-def]
    """Write exp(i(<x, w_j> + b_j)) of rows start .. start+out.shape[1] to out[j]."""
    z = np.empty(_ROWS)
    parts = np.empty((2, _ROWS))
    for j in range(out.shape[0]):
        for first in range(0, out.shape[1], _ROWS):
            n = min(_ROWS, out.shape[1] - first)
            bound = _argument(XT, largest, indices[j], values[j], phases[j], start + first, n, z)
            for code in range(2):
                _wave(code, bound, z, n, parts[code])
            for i in range(n):
                out[j, first + i] = complex(parts[1, i], parts[0, i])


@compiled(nogil=True, fastmath=True)
def moments(block, weights, mean, squares):  # type: ignore[no-untyped-def]
    """Weighted mean of each row of `block`, and Σ w|φ - mean|² about it, in two passes."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
    for j in range(block.shape[0]):
        row = block[j]
        first = 0.0 * row[0]
        for i in range(row.shape[0]):
            first += weights[i] * row[i]
        centre = first / total
        second = 0.0
        for i in range(row.shape[0]):
            gap = row[i] - centre
            second += weights[i] * (gap.real * gap.real + gap.imag * gap.imag)
        mean[j] = centre
        squares[j] = second


@compiled(nogil=True, fastmath=_FLAGS)
def standardise(block, mean, inverse_scale, root_weights):  # type: ignore[no-untyped-def]
    """block[j] <- (block[j] - mean[j]) · inverse_scale[j] · sqrt(w), in place."""
    for j in range(block.shape[0]):
        row = block[j]
        for i in range(row.shape[0]):
            row[i] = (row[i] - mean[j]) * inverse_scale[j] * root_weights[i]


@compiled(nogil=True)
def _add_waves(XT, largest, indices, values, phases, code, coef, out):  # type: ignore[no-untyped-def]
    """out[t] += Σ_j coef[t, j] φ(<x, w_j> + b_j) for φ = sin or cos, without storing the waves."""
    z = np.empty(_ROWS)
    phi = np.empty(_ROWS)
    for first in range(0, out.shape[1], _ROWS):
        n = min(_ROWS, out.shape[1] - first)
        for j in range(indices.shape[0]):
            bound = _argument(XT, largest, indices[j], values[j], phases[j], first, n, z)
            _wave(code, bound, z, n, phi)
            for t in range(out.shape[0]):
                _add_multiple(out[t, first : first + n], coef[t, j], phi, n)


def _relu(z: NDArray[Any]) -> None:
    np.maximum(z, 0.0, out=z)


def _step(z: NDArray[Any]) -> None:
    np.greater(z, 0.0, out=z)


def _tanh(z: NDArray[Any]) -> None:
    np.tanh(z, out=z)


def _tanh_slope(z: NDArray[Any]) -> None:
    _tanh(z)
    z *= z
    np.subtract(1.0, z, out=z)


def _sigmoid(z: NDArray[Any]) -> None:
    z *= 0.5
    _tanh(z)
    z += 1.0
    z *= 0.5


def _sigmoid_slope(z: NDArray[Any]) -> None:
    z *= 0.5
    _tanh_slope(z)
    z *= 0.25


# Activations that are not waves, in place, by their codes in `harfe.features.activations`.
_OTHERS = {2: _tanh, 3: _sigmoid, 4: _relu, 5: _tanh_slope, 6: _sigmoid_slope, 7: _step}


def features(
    XT: NDArray[Any],
    largest: NDArray[np.float64],
    indices: NDArray[np.intp],
    values: NDArray[np.float64],
    phases: NDArray[np.float64],
    code: int,
    start: int,
    out: NDArray[Any],
) -> None:
    """Write φ(<x, w_j> + b_j) of rows start .. start+out.shape[1] to out[j], feature-major.

    `largest` is max |x| of every variable. `out` is C-contiguous and of any precision; the
    arithmetic is double.
    """
    z = out if code <= 1 or out.dtype == np.float64 else np.empty(out.shape)
    _waves(XT, largest, indices, values, phases, code, start, z, np.empty(_ROWS))
    if code > 1:
        _OTHERS[code](z)
    if z is not out:
        out[:] = z


def predict(
    XT: NDArray[Any],
    largest: NDArray[np.float64],
    indices: NDArray[np.intp],
    values: NDArray[np.float64],
    phases: NDArray[np.float64],
    code: int,
    coef: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out[t] += Σ_j coef[t, j] φ(<x, w_j> + b_j)."""
    if code <= 1:
        _add_waves(XT, largest, indices, values, phases, code, coef, out)
        return
    room = np.empty(len(phases) * _ROWS)
    for first in range(0, out.shape[1], _ROWS):
        n = min(_ROWS, out.shape[1] - first)
        phi = room[: len(phases) * n].reshape(-1, n)
        features(XT, largest, indices, values, phases, code, first, phi)
        out[:, first : first + _ROWS] += coef @ phi
