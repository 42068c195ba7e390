"""The bound of Theorem 3.1 on the coefficients, with the constants the paper leaves open.

Run the pursuit with unit step and size k on a matrix B with δ = δ_3k < 1/√3. Let T be the indices
of the k largest entries of c, and e' = B c_T̄ + e the residual of the target after B c_T. Then

    ‖cⁿ⁺¹ - c_T‖ <= β‖cⁿ - c_T‖ + (1 - β) τ‖e'‖,     β = √(2δ²/(1 - δ²)),
    τ = (√(2(1 - δ)) + √(1 + δ)) / ((1 - δ)(1 - β))

(S. Foucart, Hard thresholding pursuit, SIAM J. Numer. Anal. 2011, Theorem 3.8, with the largest of
its constants, δ_3k, in place of all). Proof: on the new support S, cⁿ⁺¹ - c_T has norm
<= δ‖cⁿ⁺¹ - c_T‖ + √(1 + δ)‖e'‖, because B(cⁿ⁺¹ - c_T) - e' is orthogonal to the columns of S; so,
with b the norm of c_T outside S, ‖cⁿ⁺¹ - c_T‖ <= b/√(1 - δ²) + √(1 + δ)‖e'‖/(1 - δ). And S holds
the largest entries of cⁿ + B*(ỹ - B cⁿ), so b <= √2 (δ‖cⁿ - c_T‖ + √(1 + δ)‖e'‖).

Theorem 3.1 has k = 2s. With κ = κ_1,s(c), ‖c_T̄‖ <= κ/(2√s) and ‖B c_T̄‖ <= √(1 + δ) κ/√s, so

    ‖cⁿ - c‖ <= βⁿ‖c‖ + (1/2 + τ√(1 + δ)) κ/√s + τ‖e‖:

the paper's bound with D₁ = 1/2 + τ√(1 + δ) and D₂ = τ, without its factor 2 before βⁿ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import is_number
from harfe.theory._checks import check_counts, check_delta, check_lam, check_sizes


@dataclass(frozen=True)
class BoundConstants:
    """β, D₁ and D₂ of Theorem 3.1."""

    beta: float
    D1: float
    D2: float


def contraction(delta: float) -> float:
    """β = √(2δ²/(1 - δ²)) of Theorem 3.1, the factor by which a round shrinks the error.

    Below 1 if and only if δ = δ_6s(B) < 1/√3.

    Parameters
    ----------
    delta : float
        From 0 to below 1.
    """
    if not is_number(delta) or not 0 <= delta < 1:
        raise ValueError(f"delta={delta!r} must be a number from 0 to below 1, e.g. delta=0.3")
    return sqrt(2 * delta**2 / (1 - delta**2))


def bound_constants(delta: float) -> BoundConstants:
    """β, D₁ and D₂ of Theorem 3.1 for δ = δ_6s(B) < 1/√3.

        D₂ = (√(2(1 - δ)) + √(1 + δ)) / ((1 - δ)(1 - β)),     D₁ = 1/2 + D₂√(1 + δ)

    At δ = 0 they are 0, 2.91 and 2.41; D₁ and D₂ grow without bound as δ approaches 1/√3.
    """
    check_delta(delta)
    beta = contraction(delta)
    tau = (sqrt(2 * (1 - delta)) + sqrt(1 + delta)) / ((1 - delta) * (1 - beta))
    return BoundConstants(beta, 0.5 + tau * sqrt(1 + delta), tau)


def best_terms_distance(c: ArrayLike, s: int) -> float:
    """κ_1,s(c): the sum of all but the s largest |c_j| (Section 3)."""
    check_counts(s=s)
    sizes = np.sort(np.abs(np.asarray(c)).ravel())
    return float(sizes[: max(len(sizes) - s, 0)].sum())


def coefficient_bound(
    n: ArrayLike,
    *,
    delta: float,
    s: int,
    lam: float,
    norm: float,
    distance: float,
    residual: float,
) -> NDArray[np.float64]:
    """Theorem 3.1: bound on ‖cⁿ - c‖₂ after n rounds of the pursuit of size 2s from c⁰ = 0.

        βⁿ‖c‖ + D₁ κ_1,s(c)/√s + D₂ √((‖y - A c‖²/m + λ‖c‖²)/(1 + λ))

    It holds for every c, y and n if the step is the unit step on B, ``step_size="normalized"``; it
    does not hold for the μ = 0.1 of the paper's experiments. For the pursuit of size s and an
    s-sparse c, the same bound holds with δ_3s and distance 0.

    Parameters
    ----------
    n : int or array of int
        Number of rounds; infinity for the limit.
    delta : float
        δ_6s(B) < 1/√3, or anything between it and 1/√3.
    s : int
    lam : float
        The paper's λ in ‖A c - y‖² + mλ‖c‖².
    norm, distance : float
        ‖c‖₂ and κ_1,s(c) (:func:`best_terms_distance`).
    residual : float
        ‖y - A c‖₂/√m, the root-mean-square residual of c.
    """
    constants = bound_constants(delta)
    check_counts(s=s)
    check_lam(lam)
    check_sizes(norm=norm, distance=distance, residual=residual)
    rounds = np.asarray(n, dtype=float)
    if not np.all(rounds >= 0):
        raise ValueError(f"n={n!r} must be numbers of rounds >= 0, e.g. n=range(10)")
    rest = constants.D1 * distance / sqrt(s)
    rest += constants.D2 * sqrt((residual**2 + lam * norm**2) / (1 + lam))
    return np.asarray(constants.beta**rounds * norm + rest)
