"""Swapping kept features for others, one at a time, while that lowers the objective.

    minimise over S with |S| = s   min over c on S   (1/M) Σ_k w_k |y_k - (A c)_k|² + α‖c‖²

The feature whose removal raises the objective least is dropped: it rises by |c_j|²/H_jj with
H = (A_S*A_S/M + α)⁻¹. The feature that then lowers it most is added: it falls by |r_i|²/d_i, with
r_i the correlation with the residual and d_i the power (with α) that the others do not explain.
Both are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe.solvers.problem import Problem
from harfe.solvers.ridge import smallest_safe_shift

_MOST_SWAPS = 50

# For larger supports a swap costs more than a round of the pursuit.
_LARGEST_SUPPORT = 500

# A swap must gain at least this share, or rounding could keep the loop running forever.
_LEAST_GAIN = 1e-9


def exchange(
    problem: Problem, S: NDArray[np.intp], others: NDArray[np.intp], alpha: float
) -> NDArray[np.intp]:
    """Return a support of the same size and no higher objective, found by swaps with `others`."""
    s = len(S)
    if not 1 <= s <= _LARGEST_SUPPORT:
        return S
    core = np.union1d(others, S)
    gram, moment = problem.normal(core)
    shift = max(alpha, 2 * float(smallest_safe_shift(gram)))
    gram[np.diag_indices(len(core))] += shift
    power = np.diag(gram).real.copy()
    inside = np.isin(core, S)
    for _ in range(_MOST_SWAPS if len(core) > s else 0):
        kept = np.flatnonzero(inside)
        factor = sla.cholesky(gram[np.ix_(kept, kept)], lower=True, check_finite=False)
        c = sla.cho_solve((factor, True), moment[kept], check_finite=False)
        inverse = sla.lapack.get_lapack_funcs("trtri", (factor,))(factor, lower=True)[0]
        loss = _squares(c) / np.sum(np.abs(inverse) ** 2, axis=0)
        out = kept[np.argmin(loss)]
        rest = kept[kept != out]
        gain = _gains(gram, moment, power, rest)
        gain[rest] = -1.0
        new = int(np.argmax(gain))
        if gain[new] <= loss.min() * (1 + _LEAST_GAIN):
            break
        inside[out], inside[new] = False, True
    return core[inside]


def _gains(
    gram: NDArray[Any], moment: NDArray[Any], power: NDArray[np.float64], kept: NDArray[np.intp]
) -> NDArray[np.float64]:
    """By how much each feature would lower the objective if added to those kept."""
    if not len(kept):
        return _squares(moment) / power
    factor = sla.cholesky(gram[np.ix_(kept, kept)], lower=True, check_finite=False)
    half = sla.solve_triangular(factor, gram[kept], lower=True, check_finite=False)
    known = sla.solve_triangular(factor, moment[kept], lower=True, check_finite=False)
    left = power - np.sum(np.abs(half) ** 2, axis=0)
    correlation = moment - half.conj().T @ known
    # For a feature in the span of the others, only rounding error is left.
    return np.where(left > 1e-10 * power, _squares(correlation) / np.maximum(left, 1e-300), -1.0)


def _squares(values: NDArray[Any]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.sum(np.abs(values) ** 2, axis=1)
    return total
