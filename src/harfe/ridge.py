"""The ridge problem restricted to a support.

    minimise over c on S   (1/M) Σ_k w_k |y_k - (A_S c)_k|² + α‖c‖²

solved on the smaller side: (A_S*A_S/M + α) c = A_S*y/M has the size of the support,
(A_S A_S*/M + α) v = y with c = A_S*v/M the size of the rows. Both are the same c, because
A*(AA* + α) = (A*A + α)A*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe.problem import Problem

# Singular values of A_S below this share of the largest are noise: they are cut, and the answer has
# minimum norm. It is what `pinv` on the Gram matrix does, and what the paper's Table 1 needs at
# λ = 0.
SINGULAR_CUT = 3e-8

# A Cholesky factor is trusted down to this reciprocal condition number; beyond, eigenvalues decide.
_TRUSTED = 1e-13


class RestrictedRidge:
    """Solver for one problem and one α over a sequence of supports.

    Gram rows of features that stay from one support to the next are kept.
    """

    def __init__(self, problem: Problem, alpha: float) -> None:
        self._problem = problem
        self._alpha = alpha
        self._known: tuple[NDArray[np.intp], NDArray[Any]] | None = None

    def solve(self, S: NDArray[np.intp]) -> NDArray[Any]:
        """Return c on the sorted support S, shape (s, targets)."""
        problem = self._problem
        if problem.offers_kernel and len(S) > problem.n_rows:
            kernel, y = problem.kernel(S)
            return problem.pull_back(S, solve_shifted(kernel, self._alpha, y))
        gram, moment = problem.normal(S, self._known)
        self._known = (S, gram)
        return solve_shifted(gram, self._alpha, moment)


def solve_shifted(matrix: NDArray[Any], alpha: float, b: NDArray[Any]) -> NDArray[Any]:
    """(matrix + α)⁻¹ b for a Hermitian positive semi-definite matrix; minimum norm if singular.

    Cholesky where the condition number allows it, otherwise eigenvectors, without those whose
    eigenvalue is below SINGULAR_CUT² of the largest.
    """
    if not len(matrix):
        return np.zeros_like(b)
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += alpha
    size = np.linalg.norm(shifted, 1)
    potrf, pocon = sla.get_lapack_funcs(("potrf", "pocon"), (shifted,))
    factor, info = potrf(shifted, lower=True, clean=False, overwrite_a=True)
    if info == 0 and pocon(factor, size, uplo="L")[0] > _TRUSTED:
        return sla.cho_solve((factor, True), b, check_finite=False)
    eigenvalues, vectors = sla.eigh(matrix, check_finite=False)
    kept = eigenvalues > SINGULAR_CUT**2 * max(eigenvalues[-1], 0.0)
    vectors = vectors[:, kept]
    weights = 1 / (eigenvalues[kept] + alpha)
    return vectors @ (weights[:, None] * (vectors.conj().T @ b))
