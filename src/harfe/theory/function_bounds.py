"""Bounds of Theorems 3.1 and 3.2 for a function f, in terms of its norm ‖f‖_ρ.

f(x) = ∫ α(ω) exp(i<x, ω>) dω has ‖f‖_ρ = sup |α/ρ|, with ρ the density of the weights; its
approximation f* with the N drawn weights has the coefficients c*_j = α(ω_j)/(N ρ(ω_j)). So
|c*_j| <= ‖f‖_ρ/N, ‖c*‖ <= N^(-1/2)‖f‖_ρ, κ_1,s(c*) <= (1 - s/N)‖f‖_ρ, and |f(x)| <= ‖f‖_ρ.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe.theory._checks import (
    check_counts,
    check_delta,
    check_failure,
    check_lam,
    check_positive,
    check_sizes,
)
from harfe.theory.bounds import bound_constants, coefficient_bound

# exp overflows beyond this.
_LARGEST_EXPONENT = 709.0


def feature_radius(*, N: int, failure: float) -> float:
    """ε = N^(-1/2) (1 + √(2 log(1/δ))): ‖f - f*‖ <= ε‖f‖_ρ with probability at least 1 - δ.

    This is Lemma 1 of the appendix, with the norm of L²(μ). The proof holds for the L² norm of any
    single measure that does not depend on the weights, hence also for the root-mean-square over the
    rows: ‖y - A c*‖₂/√m <= ε‖f‖_ρ without noise. For the largest error over m rows, which the text
    uses instead, pass failure/m. (f* - f is a mean of N independent summands of norm <= ‖f‖_ρ: its
    expected norm is <= N^(-1/2)‖f‖_ρ, and one weight changes it by <= 2‖f‖_ρ/N; then McDiarmid's
    inequality applies.)

    Parameters
    ----------
    N : int
        Number of features.
    failure : float
        δ, between 0 and 1.
    """
    check_counts(N=N)
    check_failure(failure)
    return (1 + sqrt(2 * log(1 / failure))) / sqrt(N)


def printed_feature_radius(
    *, N: int, m: int, d: int, gamma: float, sigma: float, failure: float
) -> float:
    """ε as printed after Theorem 3.2, for comparison only; use :func:`feature_radius`.

        N^(-1/2) (1 + 4γσd √(1 + √(12/d log(m/δ))) + √(log(1/δ)/2))

    for ‖A c* - y‖_∞ <= ε‖f‖_ρ, with x from N(0, γ²I) and ω from N(0, σ²I). It bounds the error on a
    whole ball, and so grows with d, although a bound on the m rows is enough. McDiarmid's
    inequality gives √(2 log(1/δ)), not √(log(1/δ)/2): for γσ near 0 and a tiny δ the printed bound
    is false.
    """
    check_counts(N=N, m=m, d=d)
    check_positive(gamma=gamma, sigma=sigma)
    check_failure(failure)
    ball = sqrt(1 + sqrt(12 / d * log(m / failure)))
    return (1 + 4 * gamma * sigma * d * ball + sqrt(log(1 / failure) / 2)) / sqrt(N)


def function_bound(
    n: ArrayLike, *, delta: float, N: int, s: int, lam: float, radius: float, f_norm: float
) -> NDArray[np.float64]:
    """Bound on ‖cⁿ - c*‖₂ from ‖f‖_ρ alone, the last equation of Section 3.

        (βⁿ N^(-1/2) + D₁ s^(-1/2) (1 - s/N) + D₂ √((ε² + λ/N)/(1 + λ))) ‖f‖_ρ

    with ε from :func:`feature_radius`. The text says that it scales like N^(-1/2), but the
    middle summand does not: the bound stays above D₁ s^(-1/2) (1 - s/N) ‖f‖_ρ however large N is.
    It is also vacuous: ε >= N^(-1/2) makes its last summand alone at least D₂ N^(-1/2)‖f‖_ρ, more
    than the error of c = 0, which is ‖c*‖ <= N^(-1/2)‖f‖_ρ.
    """
    check_counts(N=N, s=s)
    _check_terms(s, N)
    check_sizes(radius=radius, f_norm=f_norm)
    return coefficient_bound(
        n,
        delta=delta,
        s=s,
        lam=lam,
        norm=f_norm / sqrt(N),
        distance=(1 - s / N) * f_norm,
        residual=radius * f_norm,
    )


def risk_bound(
    *,
    delta: float,
    mean_delta: float,
    N: int,
    s: int,
    lam: float,
    f_norm: float,
    radius: float,
    distance: float,
    noise: float,
) -> float:
    """Theorem 3.2, corrected: bound on ‖f - f#‖_L²(μ), f# a limit of the pursuit of size 2s.

        ε‖f‖_ρ + κ + √(1 + δ_G) ((D₁ - 1/2) κ/√s + D₂ √((ē² + λ‖f‖²_ρ/N)/(1 + λ)))

    with κ = κ_1,s(c*) and ē = E + ε‖f‖_ρ. Under the conditions of Theorem 3.1 it holds with
    probability at least 1 - 5δ: 2δ for δ_6s(B), δ for δ_G, and δ each for ε under μ and on the
    rows. Proof: with T the indices of the 2s largest entries of c*, ‖f - f#‖ <= ‖f - f*‖ +
    ‖f* - f*_T‖ + ‖f*_T - f#‖. The second is <= κ, as features have norm 1. The third is √(x'Gx)
    with x = c*_T - c#, which has at most 4s non-zeros; the proof of Theorem 3.1 bounds ‖x‖.

    Differences from the printed theorem:

    - This bounds the norm; the paper states the bound for R, its square.
    - |e_k| <= E gives ‖e‖₂ <= √m E, not E.
    - y - A c* also contains the error of the features, not only the noise.
    - An isometry gives a factor 1 + δ, not 1/√3, and only for sparse vectors, which c* is not.
    - The paper draws new rows z and uses the isometry of A for them. The mean Gram matrix G needs
      no rows, so McDiarmid's inequality drops out, and with it N^(1/2) and powers of m. (The paper
      also puts a vector on the scale of z' where one on the scale of c belongs, which makes its
      bound grow with m.)
    - The paper's probability is 1 - 2δ in the statement and 1 - 3δ in the proof.

    Parameters
    ----------
    delta : float
        δ_6s(B) < 1/√3.
    mean_delta : float
        δ_G = δ_4s of G_jk = E exp(i<x, ω_k - ω_j>) = exp(-γ²‖ω_j - ω_k‖²/2), or an
        upper bound. The third condition of Theorem 3.1 makes it at most (1 + λ)/(6√3) with
        probability 1 - δ: the expected sum of the squares of G - I is less than
        N² (4γ²σ² + 1)^(-d/2).
    N, s : int
    lam : float
    f_norm : float
        ‖f‖_ρ.
    radius : float
        ε of :func:`feature_radius`.
    distance : float
        κ_1,s(c*), at most (1 - s/N)‖f‖_ρ.
    noise : float
        E, the largest |e_k|; their root-mean-square is enough.
    """
    check_counts(N=N, s=s)
    _check_terms(s, N)
    check_delta(delta)
    check_lam(lam)
    check_sizes(mean_delta=mean_delta, f_norm=f_norm, radius=radius, distance=distance, noise=noise)
    constants = bound_constants(delta)
    left = sqrt(((noise + radius * f_norm) ** 2 + lam * f_norm**2 / N) / (1 + lam))
    error = (constants.D1 - 0.5) * distance / sqrt(s) + constants.D2 * left
    return radius * f_norm + distance + sqrt(1 + mean_delta) * error


def gaussian_norm(d: int, width: float, sigma: float, frequency: float = 0.0) -> float:
    """‖f‖_ρ of f(x) = exp(i<x, a>) exp(-‖x‖²/(2w²)) for weights from N(0, σ²I).

        (σw)^d exp(‖a‖² w² / (2(σ²w² - 1)))   if σw > 1, or σw = 1 and a = 0; infinity otherwise

    f is the mean of exp(i<x, ω>) over ω from N(a, I/w²), so α/ρ is the ratio of two normal
    densities. Shifting f does not change its norm. A single wave, w = ∞, has an infinite norm: ρ
    gives its frequency no weight. Results beyond the largest double are infinite too.

    Parameters
    ----------
    d : int
        Number of variables.
    width, sigma : float
        w and σ.
    frequency : float, default=0
        ‖a‖.
    """
    check_counts(d=d)
    check_positive(width=width, sigma=sigma)
    check_sizes(frequency=frequency)
    spread = sigma * width
    if spread < 1 or (spread == 1 and frequency > 0):
        return inf
    exponent = d * log(spread)
    if frequency > 0:
        exponent += (frequency * width) ** 2 / (2 * (spread**2 - 1))
    return exp(exponent) if exponent < _LARGEST_EXPONENT else inf


def _check_terms(s: int, N: int) -> None:
    if s > N:
        raise ValueError(f"s={s} is larger than N={N}; pass s={N} or less")
