"""Cholesky factors that other threads need not wait for.

SciPy's wrappers of LAPACK hold the lock of the interpreter, so that threads factor one after the
other. These call the same routines, which SciPy exports for Cython, through ctypes, which releases
the lock. Matrices are row-major; only the lower triangle is read and written, which to LAPACK is
the upper one of the transpose.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_void_p
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

_INT = POINTER(c_int)


def _routine(module: str, name: str, *arguments: Any) -> Any:
    address = get_cython_function_address(f"scipy.linalg.cython_{module}", name)
    return ctypes.CFUNCTYPE(None, *arguments)(address)


_potrf = _routine("lapack", "dpotrf", c_char_p, _INT, c_void_p, _INT, _INT)
_potri = _routine("lapack", "dpotri", c_char_p, _INT, c_void_p, _INT, _INT)
_potrs = _routine("lapack", "dpotrs", c_char_p, _INT, _INT, c_void_p, _INT, c_void_p, _INT, _INT)
_trsm = _routine(
    "blas",
    "dtrsm",
    *[c_char_p] * 4,
    *[_INT] * 2,
    POINTER(c_double),
    c_void_p,
    _INT,
    c_void_p,
    _INT,
)


def factor(A: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Overwrite the lower triangle of A by L with A = L Lᵀ; None if A is not positive definite."""
    # LAPACK wants a leading dimension of at least 1, also for no rows at all.
    n, rows, failed = c_int(len(A)), c_int(max(len(A), 1)), c_int()
    _potrf(b"U", byref(n), A.ctypes.data, byref(rows), byref(failed))
    return None if failed.value else A


def solve(L: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return X of shape (n, columns) with L Lᵀ X = B."""
    X = np.array(B, order="F")
    n, columns, failed = c_int(len(X)), c_int(X.shape[1]), c_int()
    rows = c_int(max(len(X), 1))
    _potrs(
        b"U",
        byref(n),
        byref(columns),
        L.ctypes.data,
        byref(rows),
        X.ctypes.data,
        byref(rows),
        byref(failed),
    )
    return X


def half_solve(L: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return X of shape (n, columns) with L X = B."""
    X = np.array(B, order="C")
    n, columns, one = c_int(len(X)), c_int(X.shape[1]), c_double(1.0)
    _trsm(
        b"R",
        b"U",
        b"N",
        b"N",
        byref(columns),
        byref(n),
        byref(one),
        L.ctypes.data,
        byref(n),
        X.ctypes.data,
        byref(columns),
    )
    return X


def invert(L: NDArray[np.float64]) -> NDArray[np.float64]:
    """Overwrite the lower triangle of L by that of the inverse of L Lᵀ."""
    n, failed = c_int(len(L)), c_int()
    _potri(b"U", byref(n), L.ctypes.data, byref(n), byref(failed))
    return L
