"""The compiled inner loops: features, their moments and scaling, prediction.

Inputs come transposed, `XT` of shape (variables, rows), so that one variable of a block of rows is
contiguous. The loops are written so that LLVM can vectorise them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

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


@njit(inline="always", fastmath=_FLAGS, cache=True)
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


@njit(fastmath=_FLAGS, cache=True)
def _sine_row(z, n, out):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] = _sine(z[i], 0.0)


@njit(fastmath=_FLAGS, cache=True)
def _cosine_row(z, n, out):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] = _sine(z[i], 0.5)


@njit(cache=True)
def _activate(code, bound, z, n, out):  # type: ignore[no-untyped-def]
    """Write φ(z) to out; `bound` is at least max |z|. z and out must not overlap.

    Codes are those of `harfe.features.activations.CODES`. They are literals here because the cache
    of compiled code only notices changes to this file.
    """
    if code == 0:  # sin
        if bound <= LARGEST_FAST_ARGUMENT:
            _sine_row(z, n, out)
        else:
            for i in range(n):
                out[i] = math.sin(z[i])
    elif code == 1:  # cos
        if bound <= LARGEST_FAST_ARGUMENT:
            _cosine_row(z, n, out)
        else:
            for i in range(n):
                out[i] = math.cos(z[i])
    elif code == 2:  # tanh
        for i in range(n):
            out[i] = math.tanh(z[i])
    elif code == 3:  # sigmoid
        for i in range(n):
            out[i] = 0.5 * (1.0 + math.tanh(0.5 * z[i]))
    elif code == 4:  # relu
        for i in range(n):
            out[i] = max(z[i], 0.0)
    elif code == 5:  # tanh_slope
        for i in range(n):
            out[i] = 1.0 - math.tanh(z[i]) ** 2
    elif code == 6:  # sigmoid_slope
        for i in range(n):
            out[i] = 0.25 * (1.0 - math.tanh(0.5 * z[i]) ** 2)
    else:  # step
        for i in range(n):
            out[i] = 1.0 if z[i] > 0.0 else 0.0


@njit(fastmath=_FLAGS, cache=True)
def _add_multiple(out, factor, x, n):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] += factor * x[i]


@njit(cache=True)
def _argument(XT, indices, values, phase, start, n, z):  # type: ignore[no-untyped-def]
    """Compute z = <x, w> + b on rows start .. start+n of one feature; padding adds 0·x[-1]."""
    for i in range(n):
        z[i] = phase
    for k in range(indices.shape[0]):
        if values[k] != 0.0:
            _add_multiple(z, values[k], XT[indices[k], start : start + n], n)


@njit(cache=True)
def _argument_bound(largest, indices, values, phase):  # type: ignore[no-untyped-def]
    bound = abs(phase)
    for k in range(indices.shape[0]):
        bound += abs(values[k]) * largest[indices[k]]
    return bound


@njit(nogil=True, cache=True)
def features(XT, largest, indices, values, phases, code, start, out):  # type: ignore[no-untyped-def]
    """Write φ(<x, w_j> + b_j) of rows start .. start+out.shape[1] to out[j], feature-major.

    `largest` is max |x| of every variable. `out` is C-contiguous and of any precision; the
    arithmetic is double.
    """
    z = np.empty(_ROWS)
    for j in range(out.shape[0]):
        bound = _argument_bound(largest, indices[j], values[j], phases[j])
        for first in range(0, out.shape[1], _ROWS):
            n = min(_ROWS, out.shape[1] - first)
            _argument(XT, indices[j], values[j], phases[j], start + first, n, z)
            _activate(code, bound, z, n, out[j, first : first + n])


@njit(nogil=True, cache=True)
def complex_features(XT, largest, indices, values, phases, start, out):  # type: ignore[no-untyped-def]
    """Write exp(i(<x, w_j> + b_j)) of rows start .. start+out.shape[1] to out[j]."""
    z = np.empty(_ROWS)
    re = np.empty(_ROWS)
    im = np.empty(_ROWS)
    for j in range(out.shape[0]):
        bound = _argument_bound(largest, indices[j], values[j], phases[j])
        for first in range(0, out.shape[1], _ROWS):
            n = min(_ROWS, out.shape[1] - first)
            _argument(XT, indices[j], values[j], phases[j], start + first, n, z)
            _activate(1, bound, z, n, re)
            _activate(0, bound, z, n, im)
            for i in range(n):
                out[j, first + i] = complex(re[i], im[i])


@njit(nogil=True, fastmath=True, cache=True)
def moments(block, weights, mean, squares):  # type: ignore[no-untyped-def]
    """Weighted mean of each row of `block`, and Σ w|φ - mean|² about it, in two passes."""
    total = weights.sum()
    for j in range(block.shape[0]):
        row = block[j]
        first = 0.0 * row[0]
        for i in range(row.shape[0]):
            first += weights[i] * row[i]
        centre = first / total
        second = 0.0
        for i in range(row.shape[0]):
            gap = row[i] - centre
            second += weights[i] * (gap * np.conj(gap)).real
        mean[j] = centre
        squares[j] = second


@njit(nogil=True, fastmath=_FLAGS, cache=True)
def standardise(block, mean, inverse_scale, root_weights):  # type: ignore[no-untyped-def]
    """block[j] <- (block[j] - mean[j]) · inverse_scale[j] · sqrt(w), in place."""
    for j in range(block.shape[0]):
        row = block[j]
        for i in range(row.shape[0]):
            row[i] = (row[i] - mean[j]) * inverse_scale[j] * root_weights[i]


@njit(nogil=True, cache=True)
def predict(XT, largest, indices, values, phases, code, coef, out):  # type: ignore[no-untyped-def]
    """out[t] += Σ_j coef[t, j] φ(<x, w_j> + b_j), without storing the features."""
    z = np.empty(_ROWS)
    phi = np.empty(_ROWS)
    for first in range(0, out.shape[1], _ROWS):
        n = min(_ROWS, out.shape[1] - first)
        for j in range(indices.shape[0]):
            bound = _argument_bound(largest, indices[j], values[j], phases[j])
            _argument(XT, indices[j], values[j], phases[j], first, n, z)
            _activate(code, bound, z, n, phi)
            for t in range(out.shape[0]):
                _add_multiple(out[t, first : first + n], coef[t, j], phi, n)
