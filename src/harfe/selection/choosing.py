"""Choosing a sparse model by the held-out scores of all of them.

Held-out rows are noisy: among many models some look good by chance. Two things known beforehand
reduce that. A match is made to agree with the dense reference; if it strays from it on held-out
rows and still looks better, that is usually chance. And fits on the data have a chance to look good
with every ridge weight, but a match only one for each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

# Mean errors this close to the lowest count as equal: the fewest features win. More rows than these
# tell smaller differences.
_EQUAL, _EQUAL_ROWS = 0.01, 1000

# Fits on the data go on if their mean score is better by this share on the first folds.
_AHEAD = 0.05

# Other kinds of models go on if their mean score is worse by at most this share.
_BEHIND = 0.05

# A match loses against its reference if it strays from it by more than this share of its error.
_LOSS = 0.03

# Fits on the data must beat the best match by this many standard errors over the folds.
_CLEARLY = 2.0


@dataclass(frozen=True)
class Choice:
    """A cell of the table: indices of a pool, a size and a ridge weight; and its score."""

    pool: int
    size: int
    alpha: int
    score: float


@dataclass
class CellTable:
    """Held-out errors, scores and straying of kinds of models, filled in fold by fold.

    Attributes
    ----------
    kinds, sizes, alphas : sequences
    equal : float
        Share of the lowest error within which errors count as equal.
    cells : dict
        (kind, fold) -> array of shape (3, sizes, alphas).
    """

    kinds: Sequence[str]
    sizes: Sequence[int]
    alphas: Sequence[float]
    equal: float = _EQUAL
    cells: dict[tuple[str, int], NDArray[np.float64]] = field(default_factory=dict)

    def add(self, fold: int, kinds: Sequence[str], table: NDArray[np.float64]) -> None:
        """Fill in some kinds on a fold, shape (3, kinds, sizes, alphas)."""
        self.cells |= {(kind, fold): table[:, i] for i, kind in enumerate(kinds)}

    def folds(self, kind: str) -> list[int]:
        """Folds that a kind was tried on."""
        return sorted(fold for other, fold in self.cells if other == kind)

    def table(self, folds: Sequence[int]) -> NDArray[np.float64]:
        """Shape (3, kinds, sizes, alphas, folds); NaN where nothing was run."""
        shape = (len(self.kinds), len(self.sizes), len(self.alphas), len(folds))
        out = np.full((3, *shape), np.nan)
        for i, kind in enumerate(self.kinds):
            for j, fold in enumerate(folds):
                if (kind, fold) in self.cells:
                    out[:, i, ..., j] = self.cells[kind, fold]
        return out

    def data_ahead(self, folds: Sequence[int]) -> bool:
        """Whether the best fit on the data is clearly ahead of the best match on these folds."""
        scores = self.table(folds)[1]
        is_data = np.array([kind == "data" for kind in self.kinds])
        best, match = _means(scores[is_data]).max(), _means(scores[~is_data]).max()
        return bool(best - match > _AHEAD * abs(match))

    def near(self, kinds: Sequence[str], folds: Sequence[int]) -> bool:
        """Whether the best of some kinds is not far behind the best of all but fits on the data."""
        scores = self.table(folds)[1]
        best = {kind: _means(scores[i]).max() for i, kind in enumerate(self.kinds)}
        lead = max(score for kind, score in best.items() if kind != "data")
        return bool(max(best[kind] for kind in kinds) >= lead - _BEHIND * abs(lead))

    def strays(self, kinds: Sequence[str], folds: Sequence[int]) -> bool:
        """Whether the best of some kinds strays visibly from its reference."""
        _, scores, straying = self.table(folds)[:, [list(self.kinds).index(kind) for kind in kinds]]
        best = _highest(scores - straying)
        return bool(straying[best].mean() > -_LOSS * scores[best].mean())

    def best_size(self, kinds: Sequence[str], folds: Sequence[int]) -> int:
        """Smallest size of some kinds with a mean score that counts as equal to the best."""
        scores = self.table(folds)[1][[list(self.kinds).index(kind) for kind in kinds]]
        return self.sizes[fewest_features(scores, scores, self.sizes, self.equal).size]

    def near_sizes(self, kinds: Sequence[str], folds: Sequence[int]) -> tuple[int, ...]:
        """`best_size`, and larger ones with a mean score that is not far behind."""
        best = self.best_size(kinds, folds)
        near = (s for s in self.sizes if s >= best)
        scores = self.table(folds)[1][[list(self.kinds).index(kind) for kind in kinds]]
        mean = dict(zip(self.sizes, _means(scores).max(axis=(0, 2)), strict=True))
        return tuple(s for s in near if mean[s] >= mean[best] - _BEHIND * abs(mean[best]))

    def any_left(self, folds: Sequence[int], without: Sequence[str]) -> bool:
        """Whether models of other kinds have been run on all of these folds."""
        scores = self.table(folds)[1]
        left = [i for i, kind in enumerate(self.kinds) if kind not in without]
        return bool(np.isfinite(_means(scores[left])).any())

    def choose(
        self,
        folds: Sequence[int],
        selection: str,
        *,
        scored: bool = False,
        without: Sequence[str] = (),
    ) -> Choice:
        """Pick a size, a ridge weight and a kind that is not among some by these folds.

        With a user-defined score (`scored`), the scores alone decide.
        """
        _, scores, straying = self.table(folds)
        is_data = np.array([kind == "data" for kind in self.kinds])
        scores[np.array([kind in without for kind in self.kinds])] = np.nan
        if scored:
            slack = None if selection == "one_se" else 0.0
            return fewest_features(scores, scores, self.sizes, slack)
        slack = {"best": self.equal, "one_se": None}[selection]
        return choose_cell(scores, straying, is_data, self.sizes, slack)


def equal_errors(n_rows: int) -> float:
    """Share of an error within which others count as equal, for so many rows."""
    return float(_EQUAL * min(1.0, np.sqrt(_EQUAL_ROWS / n_rows)))


def choose_cell(
    scores: NDArray[np.float64],
    straying: NDArray[np.float64],
    on_data: NDArray[np.bool_],
    sizes: Sequence[int],
    slack: float | None,
) -> Choice:
    """Pick a kind, size and ridge weight by negative mean squared errors.

    Matches are ranked by held-out error plus straying. Fits on the data are taken if the best of
    them beats the best match by two standard errors.

    Parameters
    ----------
    scores, straying : arrays of shape (kinds, sizes, alphas, folds)
        Negative held-out errors, and mean squared distances from the reference; NaN where nothing
        was run.
    on_data : bool array of shape (kinds,)
        Which kinds are fits on the data.
    sizes : sequence of int
    slack : float or None
        The fewest features within this share of the best win; None is one standard error.
    """
    data = np.where(on_data[:, None, None, None], scores, np.nan)
    matches = np.where(on_data[:, None, None, None], np.nan, scores - straying)
    if not np.isfinite(_means(matches)).any():
        return fewest_features(scores, data, sizes, slack)
    if np.isfinite(_means(data)).any():
        ahead = scores[_highest(data)] - scores[_highest(matches)]
        if ahead.mean() > _CLEARLY * _standard_error(ahead):
            return fewest_features(scores, data, sizes, slack)
    return fewest_features(scores, matches, sizes, slack)


def choose(scores: NDArray[np.float64], sizes: Sequence[int], selection: str) -> Choice:
    """Pick a cell of `scores` (pools, sizes, alphas, folds) among the pools with the most folds.

    "best" picks the highest mean score. "one_se" picks the fewest features with a mean within one
    standard error of the best, and among those the highest mean. Ties go to the fewest features,
    then to the larger ridge weight.
    """
    counts = np.sum(np.isfinite(scores[:, 0, 0, :]), axis=-1)
    complete = np.flatnonzero(counts == counts.max())
    chosen = scores[complete]
    chosen = chosen[..., np.isfinite(chosen[0, 0, 0])]
    cell = fewest_features(chosen, chosen, sizes, None if selection == "one_se" else 0.0)
    return replace(cell, pool=int(complete[cell.pool]))


def fewest_features(
    scores: NDArray[np.float64],
    merit: NDArray[np.float64],
    sizes: Sequence[int],
    slack: float | None,
) -> Choice:
    """Pick the cell with the fewest features among those with a mean merit close to the best.

    Close means within a share `slack` of it, or, if that is None, within one standard error. Ties
    go to the higher merit, then to the larger ridge weight.
    """
    mean = _means(merit)
    best = _highest(merit)
    room = _standard_error(merit[best]) if slack is None else slack * abs(float(mean[best]))
    allowed = np.argwhere(mean >= mean[best] - room)
    k, i, a = min(
        (tuple(int(v) for v in cell) for cell in allowed),
        key=lambda cell: (sizes[cell[1]], -mean[cell], -cell[2], cell[0]),
    )
    return Choice(k, i, a, float(np.mean(scores[k, i, a])))


def _means(merit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the folds; -inf for cells that were not run on all of them."""
    mean = np.mean(merit, axis=-1)
    return np.where(np.isfinite(mean), mean, -np.inf)


def _highest(merit: NDArray[np.float64]) -> tuple[np.intp, ...]:
    mean = _means(merit)
    return np.unravel_index(np.argmax(mean), mean.shape)


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else 0.0
