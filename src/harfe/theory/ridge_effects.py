"""The effect of λ on the isometry, constants, conditions and bound of Theorem 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import Table
from harfe.theory._checks import LARGEST_DELTA
from harfe.theory.bounds import bound_constants, coefficient_bound, contraction
from harfe.theory.conditions import convergence_conditions
from harfe.theory.isometry import ridge_isometry


def ridge_effects(
    lams: Sequence[float] | NDArray[np.float64],
    *,
    delta: float,
    m: int,
    N: int,
    s: int,
    d: int,
    gamma: float,
    sigma: float,
    failure: float,
    C1: float,
    C2: float,
    norm: float,
    distance: float,
    residual: float,
) -> Table:
    """Tabulate δ_6s(B) = δ_6s(A/√m)/(1 + λ), β, D₁, D₂, the bound and the conditions over λ.

    A larger λ makes δ_6s(B), β, D₁ and D₂ smaller and the first three conditions easier to meet
    (Theorem 3.1), but adds λ‖c‖²/(1 + λ) to the square of the error that D₂ multiplies. As
    D₂ > 2.4, the bound exceeds ‖c‖, the error of c = 0, for λ >= 0.21.

    Parameters
    ----------
    lams : sequence of float
        The paper's λ.
    delta : float
        δ_6s(A/√m), without the ridge.
    m, N, s, d, gamma, sigma, failure, C1, C2
        As in :func:`~harfe.theory.convergence_conditions`.
    norm, distance, residual
        As in :func:`~harfe.theory.coefficient_bound`.

    Returns
    -------
    Table
        Columns lam, delta, beta, D1, D2, bound (the limit n → ∞), and both sides of each of the
        first three conditions, e.g. rows_left >= rows_right. Infinite where the theorem does not
        apply.
    """
    rows = []
    for lam in np.asarray(lams, dtype=float).tolist():
        stacked = ridge_isometry(delta, lam)
        beta = contraction(stacked) if stacked < 1 else inf
        row = {"lam": lam, "delta": stacked, "beta": beta, "D1": inf, "D2": inf, "bound": inf}
        if stacked < LARGEST_DELTA:
            constants = bound_constants(stacked)
            limit = coefficient_bound(
                inf,
                delta=stacked,
                s=s,
                lam=lam,
                norm=norm,
                distance=distance,
                residual=residual,
            )
            row |= {"D1": constants.D1, "D2": constants.D2, "bound": float(limit)}
        checked = convergence_conditions(
            m=m,
            N=N,
            s=s,
            d=d,
            lam=lam,
            gamma=gamma,
            sigma=sigma,
            failure=failure,
            C1=C1,
            C2=C2,
        )
        for condition in checked.conditions[:3]:
            name = condition.name.replace(" ", "_")
            row |= {f"{name}_left": condition.left, f"{name}_right": condition.right}
        rows.append(row)
    return Table({name: [row[name] for row in rows] for name in rows[0]} if rows else {})
