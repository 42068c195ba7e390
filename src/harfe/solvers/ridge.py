"""The ridge problem restricted to a support.

    minimise over c on S   (1/M) Σ_k w_k |y_k - (A_S c)_k|² + α‖c‖²

solved on the smaller side: (A_S*A_S/M + α) c = A_S*y/M has the size of the support,
(A_S A_S*/M + α) v = y with c = A_S*v/M has the size of the rows. Both give the same c, because
A*(AA* + α) = (A*A + α)A*. Where neither can be trusted, a singular value decomposition is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe.solvers.problem import Problem

# Singular values of A_S below this share of the largest are noise: they are cut, and the solution
# has minimum norm. This is about where `pinv` cuts on the Gram matrix, and what the paper's Table 1
# needs at λ = 0.
SINGULAR_CUT = 3e-8

# A Cholesky factor is trusted down to this reciprocal condition number. Squared singular values at
# the cut are below it, where rounding in the Gram matrix would hide them.
_TRUSTED = 1e-13


class RestrictedRidge:
    """Solver for one problem and one α over a sequence of supports.

    Gram rows of features that stay from one support to the next are reused.
    """

    def __init__(self, problem: Problem, alpha: float) -> None:
        self._problem = problem
        self._alpha = alpha
        self._known: tuple[NDArray[np.intp], NDArray[Any]] | None = None

    def solve(self, S: NDArray[np.intp]) -> NDArray[Any]:
        """Return c on the sorted support S, shape (s, targets)."""
        problem, alpha = self._problem, self._alpha
        if problem.offers_kernel and problem.n_rows < len(S):
            kernel, y = problem.kernel(S)
            v = solve_shifted(kernel, alpha, y)
            c = None if v is None else problem.pull_back(S, v)
        else:
            places = self._places(S)
            gram, moment = problem.normal(places, self._known)
            self._known = (places, gram)
            c = solve_shifted(gram, alpha, moment)
            c = None if c is None else c[np.argsort(places)]
        return c if c is not None else minimum_norm(*problem.system(S), alpha)

    def _places(self, S: NDArray[np.intp]) -> NDArray[np.intp]:
        """S in an order in which every feature that stays keeps its place in the Gram matrix."""
        if self._known is None or len(self._known[0]) != len(S):
            return S
        places = self._known[0].copy()
        wanted = np.zeros(self._problem.shape[1], dtype=bool)
        wanted[S] = True
        left = ~wanted[places]
        wanted[places] = False
        places[left] = S[wanted[S]]
        return places


def solve_shifted(matrix: NDArray[Any], alpha: float, b: NDArray[Any]) -> NDArray[Any] | None:
    """(matrix + α)⁻¹ b for a Hermitian positive semi-definite matrix, or None if near singular."""
    if not len(matrix):
        return np.zeros_like(b)
    # A Hermitian matrix equals its conjugate transpose, which has LAPACK's column order.
    shifted = np.array(matrix.conj().T, order="F", copy=True)
    shifted.ravel(order="K")[:: len(matrix) + 1] += alpha
    potrf, pocon, lange = sla.get_lapack_funcs(("potrf", "pocon", "lange"), (shifted,))
    # No eigenvalue is below α or above the trace: a large α needs no estimate.
    safe = alpha > smallest_safe_shift(shifted)
    size = 0.0 if safe else lange("1", shifted)
    factor, info = potrf(shifted, lower=True, clean=False, overwrite_a=True)
    if info != 0 or not (safe or pocon(factor, size, uplo="L")[0] > _TRUSTED):
        return None
    solution: NDArray[Any] = sla.cho_solve((factor, True), b, check_finite=False)
    return solution


def smallest_safe_shift(matrices: NDArray[Any]) -> Any:
    """Shift above which a positive semi-definite matrix is certain to be well conditioned."""
    trace = np.trace(matrices, axis1=-2, axis2=-1).real
    return _TRUSTED * np.sqrt(matrices.shape[-1]) * trace


def minimum_norm(A: NDArray[Any], y: NDArray[Any], alpha: float) -> NDArray[Any]:
    """Ridge solution V σ/(σ² + α) U*y of A c ≈ y, ignoring singular values below the cut."""
    U, sigma, Vh = sla.svd(A, full_matrices=False, check_finite=False)
    kept = sigma > SINGULAR_CUT * sigma[0]
    U, sigma, Vh = U[:, kept], sigma[kept], Vh[kept]
    shrunk = (sigma / (sigma**2 + alpha))[:, None] * (U.conj().T @ y)
    solution: NDArray[Any] = Vh.conj().T @ shrunk
    return solution
