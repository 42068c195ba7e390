"""How often each input and each term is selected when the fit is repeated.

    selected(u) = share of draws that keep a feature on u,
    share(u)    = mean over draws of (kept features on u) / (kept features).

A draw is a fit with other random features and, on request, other rows. These are frequencies, not
p-values: what chance alone would give depends on the number of kept features. The share in the pool
is therefore reported next to the share among the kept features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from harfe._core.table import Table
from harfe.model.terms import IndexSet, name_of

# Terms shown in printed text; the table has all.
_SHOWN = 20


@dataclass(frozen=True)
class Selection:
    """What one draw kept.

    Attributes
    ----------
    sets : tuple of tuples of int
        Inputs of each kept feature.
    pool_share : array of shape (inputs,)
        Share of all drawn features that use each input.
    importances : array of shape (inputs,)
        Total Sobol index of each input in the fitted function; NaN if it cannot be computed.
    """

    sets: tuple[IndexSet, ...]
    pool_share: NDArray[np.float64]
    importances: NDArray[np.float64]

    def uses(self) -> Counter[int]:
        """Number of kept features that use each input."""
        return Counter(k for u in self.sets for k in u)


# (seed of the features, row weights) -> what that fit kept.
Refit = Callable[[int, NDArray[np.float64]], Selection]


@dataclass(frozen=True)
class Stability:
    """How often inputs and terms are selected over repeated fits.

    Attributes
    ----------
    variables : Table
        A row for each input, in their order: ``variable``; ``selected``, the share of draws that
        keep a feature with it; ``share``, ``share_low``, ``share_high``, mean and range over the
        draws of its share in the kept features; ``pool_share``, the mean of its share in the
        drawn features; ``importance``, the mean of `feature_importances_`, NaN if features have
        too many inputs for it.
    terms : Table
        A row for each set of inputs that was selected, the most frequent first: ``term``,
        ``variables``, ``order``, ``selected``, ``share``, ``share_low``, ``share_high``.
    draws : Table
        A row for each draw: ``seed`` (its `random_state`) and ``n_features``, the features kept.
    resampled : bool
        Whether each draw also resampled the rows.
    """

    variables: Table
    terms: Table
    draws: Table
    resampled: bool

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.draws)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return {
            "n_draws": self.n_draws,
            "resampled": self.resampled,
            "variables": self.variables.to_dict(),
            "terms": self.terms.to_dict(),
            "draws": self.draws.to_dict(),
        }

    def __str__(self) -> str:
        rows = ", rows resampled" if self.resampled else ""
        head, *lines = str(self.terms).split("\n")
        more = f"\n... and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        terms = "\n".join([head, *lines[:_SHOWN]]) + more
        return f"{self.n_draws} draws{rows}\n\n{self.variables}\n\n{terms}"


def assess(
    refit: Refit,
    columns: Sequence[str],
    weights: NDArray[np.float64],
    *,
    n_draws: int,
    resample_rows: bool = False,
    seed: int,
    n_jobs: int | None = None,
    after_draw: Callable[[int, int], None] | None = None,
) -> Stability:
    """Refit `n_draws` times and count what is kept.

    Parameters
    ----------
    refit : callable
        Takes the seed of a draw and the weights of the rows; returns a `Selection`. Must be
        picklable for several jobs.
    columns : sequence of str
        Names of the inputs.
    weights : array of shape (rows,)
    n_draws : int
    resample_rows : bool
        Give each draw a bootstrap sample of the rows, expressed as weights.
    seed : int
        More draws with the same seed start with the same draws.
    n_jobs : int or None
        Processes; the result does not depend on it.
    after_draw : callable, optional
        Called with the numbers of draws done and planned.
    """
    plan = list(_plan(weights, n_draws, resample_rows, seed))
    tasks = (delayed(refit)(draw_seed, draw_weights) for draw_seed, draw_weights in plan)
    selections: list[Selection] = []
    for selection in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        selections.append(selection)
        if after_draw is not None:
            after_draw(len(selections), n_draws)
    draws = {
        "seed": [draw_seed for draw_seed, _ in plan],
        "n_features": [len(selection.sets) for selection in selections],
    }
    return Stability(
        _variable_table(selections, columns),
        _term_table(selections, columns),
        Table(draws),
        resample_rows,
    )


def _plan(
    weights: NDArray[np.float64], n_draws: int, resample_rows: bool, seed: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Seed and row weights of each draw, independent of the number of draws."""
    for stream in np.random.SeedSequence(seed).spawn(n_draws):
        rng = np.random.default_rng(stream)
        draw_seed = int(rng.integers(np.iinfo(np.int32).max))
        yield draw_seed, bootstrap(weights, rng) if resample_rows else weights


def bootstrap(weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Weights of a bootstrap sample: rows drawn with replacement, in proportion to their weights.

    The sum of the weights stays the same, and so do the settings derived from it; half samples, as
    in stability selection, would fit half as many features. A row of weight 2 is treated like two
    rows. Rows keep their positions, so folds given by row numbers remain valid.
    """
    total = weights.sum()
    # Weights that are not counts may have a small sum: never draw fewer than the number of rows.
    n = max(round(total), np.count_nonzero(weights))
    counts = rng.multinomial(n, weights / total)
    return np.asarray(counts * (total / n))


def _variable_table(selections: Sequence[Selection], columns: Sequence[str]) -> Table:
    counts = [selection.uses() for selection in selections]
    shares = np.array(
        [
            [count[k] / max(len(selection.sets), 1) for k in range(len(columns))]
            for count, selection in zip(counts, selections, strict=True)
        ]
    )
    return Table(
        {
            "variable": columns,
            **_frequencies(shares),
            "pool_share": np.mean([selection.pool_share for selection in selections], axis=0),
            "importance": np.mean([selection.importances for selection in selections], axis=0),
        }
    )


def _term_table(selections: Sequence[Selection], columns: Sequence[str]) -> Table:
    counts = [Counter(selection.sets) for selection in selections]
    sets = sorted(set().union(*counts), key=lambda u: (len(u), u))
    shares = np.array(
        [[count[u] / max(count.total(), 1) for u in sets] for count in counts]
    ).reshape(len(selections), len(sets))
    found = _frequencies(shares)
    # Most frequent first, then by share; ties keep the order of the sets.
    order = np.lexsort((np.arange(len(sets)), -found["share"], -found["selected"]))
    ranked = [sets[k] for k in order]
    return Table(
        {
            "term": [name_of(u, columns) for u in ranked],
            "variables": [tuple(columns[k] for k in u) for u in ranked],
            "order": [len(u) for u in ranked],
            **{name: values[order] for name, values in found.items()},
        }
    )


def _frequencies(shares: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Columns of a table, from shares in the kept features of shape (draws, rows of the table)."""
    return {
        "selected": np.mean(shares > 0, axis=0),
        "share": shares.mean(axis=0),
        "share_low": shares.min(axis=0),
        "share_high": shares.max(axis=0),
    }
