"""Weights of several predictors in a stack, learned from held-out rows.

    minimise over w >= 0   Σ_i (y_i - Σ_k w_k f_k(x_i))²,

each f_k fitted without the fold that row i belongs to. A stack has more freedom than any of its
parts, so it must be clearly better: one fold with a large error must not decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

# The squared error of a stack must be lower than that of the best part by this share overall, and
# lower by any amount in this share of the folds.
_GAIN = 0.01
_AGREEING_FOLDS = 0.8

# Parts with less weight than this are left out.
_LEAST_WEIGHT = 0.02

# Weights are rounded: training amplifies the last bits, which depend on the order of the rows.
_DIGITS = 6


def stack_weights(
    predicted: Sequence[NDArray[np.float64]], wanted: Sequence[NDArray[np.float64]], best: int
) -> NDArray[np.float64]:
    """Return the weights of the parts: 1 for the best and 0 for the others if a stack is no better.

    Parameters
    ----------
    predicted : sequence of arrays of shape (values, parts)
        Each part's predictions of the held-out values of a fold, minus the mean of the others.
    wanted : sequence of arrays of shape (values,)
        The held-out values, minus the same mean.
    best : int
        The part that predicts best on its own.
    """
    alone = np.zeros(predicted[0].shape[1])
    alone[best] = 1.0
    weights, _ = nnls(np.concatenate(predicted), np.concatenate(wanted))
    weights = np.round(weights, _DIGITS)
    errors = np.array(
        [
            [np.sum((A @ w - b) ** 2) for w in (weights, alone)]
            for A, b in zip(predicted, wanted, strict=True)
        ]
    )
    stacked, single = errors.sum(axis=0)
    agree = np.mean(errors[:, 0] < errors[:, 1])
    if not (stacked < (1 - _GAIN) * single and agree >= _AGREEING_FOLDS):
        return alone
    kept = np.where(weights > _LEAST_WEIGHT, weights, 0.0)
    return kept if kept.any() else alone
