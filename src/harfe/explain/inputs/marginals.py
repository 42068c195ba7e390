"""Summarise columns of a table: Gauss rules, quantiles, strongest correlations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harfe._core.threads import blocks, run_blocks
from harfe.explain.inputs.distribution import (
    MOST_NODES,
    PLAIN_NODES,
    InputDistribution,
    largest_frequencies,
    marginal,
)
from harfe.explain.inputs.quadrature import Rule, gauss_of_columns, nodes_needed
from harfe.features.units import InputUnits
from harfe.model.expansion import Expansion

# Levels of the quantiles: 0, 1/32, ..., 1.
N_QUANTILES = 33

# An input with at most this many values, each seen twice on average, is a factor: all are kept.
_MOST_LEVELS = 32

# Most nodes kept per input: enough for 200 radians either side, far beyond practical fits.
_MOST_KEPT = 256

# Columns whose Gauss rules are computed together: as many as fit into vector registers.
_COLUMN_BLOCK = 8

# Columns that are correlated with all others at a time, and rows per block.
_INPUT_BLOCK = 512
_ROW_BLOCK = 4096


def gauss_marginals(
    expansion: Expansion,
    X: NDArray[np.float64],
    share: NDArray[np.float64],
    centre: NDArray[np.float64],
    for_good: bool,
) -> InputDistribution:
    """Gauss rules of the used columns, each with as many nodes as its frequencies need."""
    waves = expansion.features.is_wave
    largest = largest_frequencies(expansion.features)
    rules: list[Rule] = [(centre[k : k + 1], np.ones(1)) for k in range(X.shape[1])]
    counts: dict[int, int] = {}
    for k in np.flatnonzero(largest).tolist():
        values = np.sort(X[:, k])
        distinct = 1 + int(np.count_nonzero(values[1:] != values[:-1]))
        needed = nodes_needed(2 * largest[k] * (values[-1] / 2 - values[0] / 2))
        if not for_good:
            n = min(needed if waves else MOST_NODES, MOST_NODES)
        elif distinct <= min(_MOST_LEVELS, len(X) // 2):
            n = distinct
        else:
            n = max(min(needed if waves else PLAIN_NODES, distinct // 2, _MOST_KEPT), 1)
        if n < distinct:
            counts[k] = n
        else:
            rules[k] = marginal(X[:, k], share)
    order = sorted(counts, key=lambda k: counts[k])

    def work(part: slice) -> None:
        chosen = order[part]
        found = gauss_of_columns(X[:, chosen], share, [counts[k] for k in chosen])
        for k, rule in zip(chosen, found, strict=True):
            rules[k] = rule

    run_blocks(work, blocks(len(order), _COLUMN_BLOCK))
    return InputDistribution(
        "independent", tuple(rule[0] for rule in rules), tuple(rule[1] for rule in rules)
    )


def strongest_partners(
    X: NDArray[np.float64],
    share: NDArray[np.float64],
    units: InputUnits,
    used: NDArray[np.intp],
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """For each used input, the used input that it correlates with most."""
    partner = np.full(X.shape[1], -1, dtype=np.intp)
    correlation = np.zeros(X.shape[1])
    if len(used) < 2:
        return partner, correlation
    spread = units.spread[used]
    for part in blocks(len(used), _INPUT_BLOCK):
        C = np.zeros((part.stop - part.start, len(used)))
        for rows in blocks(len(X), _ROW_BLOCK):
            # Divide first: the difference may overflow.
            Z = X[rows][:, used] / spread - units.centre[used] / spread
            C += (Z[:, part].T * share[rows]) @ Z
        C[np.arange(len(C)), np.arange(part.start, part.stop)] = 0.0
        strongest = np.abs(C).argmax(axis=1)
        partner[used[part]] = used[strongest]
        correlation[used[part]] = np.clip(C[np.arange(len(C)), strongest], -1.0, 1.0)
    return partner, correlation


def weighted_quantiles(X: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of each column: the smallest values not exceeded by at least this share of rows."""
    levels = np.linspace(0, 1, N_QUANTILES)
    out = np.empty((N_QUANTILES, X.shape[1]))
    ranks = np.maximum(np.ceil(levels * len(X)).astype(int) - 1, 0)
    alike = np.ptp(weights) == 0
    for k, column in enumerate(X.T):
        if alike:
            out[:, k] = np.sort(column)[ranks]
        else:
            order = np.argsort(column)
            seen = np.cumsum(weights[order])
            out[:, k] = column[order[np.searchsorted(seen, levels * seen[-1])]]
    return out
