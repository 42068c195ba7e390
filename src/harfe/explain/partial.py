"""Partial dependence: the mean of a fitted function over rows with some inputs fixed.

    f̄(z) = Σ_r share_r f(z on the chosen inputs, x_r on the others)

The other inputs have the joint distribution of the rows, as in scikit-learn's brute force. For
waves the mean over the rows is one number per feature, so a grid costs grid × features, not
grid × rows × features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import is_whole
from harfe._core.table import Table, jsonable
from harfe.explain.anova import check_target
from harfe.explain.inputs.seen import SeenInput, grid_points
from harfe.explain.inputs.summary import InputSummary, subset_means
from harfe.explain.waves import wave_amplitudes
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion

# Default number of grid points along each input.
_GRID = 50

_MOST_POINTS = 10_000_000


@dataclass(frozen=True)
class PartialDependence:
    """Mean of a function over rows, as some inputs vary.

    Attributes
    ----------
    variables : tuple of str
        The inputs that vary.
    grid_values : tuple of arrays
        Values of each of them.
    average : array of shape (values of the first, values of the second, ...)
    target : int
    link : str
        Link of the function: "none", or that on whose scale the average is.
    """

    variables: tuple[str, ...]
    grid_values: tuple[NDArray[np.float64], ...]
    average: NDArray[Any]
    target: int
    link: str = "none"

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a column for each input that varies and `average`."""
        points = grid_points(self.grid_values)
        columns = dict(zip(self.variables, map(tuple, points.T), strict=True))
        return Table({**columns, "average": tuple(self.average.ravel())}).to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as lists and numbers, for JSON."""
        return {
            "variables": list(self.variables),
            "grid_values": [jsonable(values) for values in self.grid_values],
            "average": jsonable(self.average),
            "target": self.target,
            "link": self.link,
        }


def partial_dependence(
    expansion: Expansion,
    kept: InputSummary,
    inputs: int | str | Sequence[int | str],
    grid: Any = None,
    X: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
    target: int = 0,
) -> PartialDependence:
    """Average the function over rows, with the given inputs set to each point of a grid.

    Parameters
    ----------
    expansion : Expansion
    kept : InputSummary
        Summary of the rows of the fit.
    inputs : int, str or sequence of them
        The inputs that vary, by number or by name.
    grid : int, array or list of arrays, optional
        Number of values per input, between the 3 % and 97 % quantiles (all values of an input that
        has no more than that); or the values: an array for one input, a list of arrays for several.
        The default is 50 values.
    X : array of shape (rows, inputs), optional
        Average over these rows instead of those of the fit; required for activations other than
        sin, cos and exp, for which a fit keeps no means.
    weights : array of shape (rows,), optional
        How often each row of X counts, positive.
    target : int, default=0

    Returns
    -------
    PartialDependence
    """
    check_target(expansion, target)
    chosen = resolve_inputs(inputs, expansion.columns)
    share = None
    if X is not None:
        X = np.asarray(X, dtype=float)
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
        share = weights / weights.sum()
        # A grid of given values does not depend on the rows.
        if grid is None or is_whole(grid):
            kept = InputSummary.of(expansion, X, weights, for_good=False)
    grid_values = resolve_grid(grid, chosen, kept, expansion)
    points = grid_points(grid_values)
    if expansion.features.is_wave:
        means = _other_means(expansion, kept, chosen, X, share)
        average = _of_waves(expansion, chosen, means, points, target)
    elif X is None or share is None:
        raise ValueError(
            f"partial_dependence with {expansion.features.activation} features averages over rows, "
            "which a fit does not keep; pass X"
        )
    else:
        average = _over_rows(expansion, chosen, points, X, share, target)
    return PartialDependence(
        tuple(expansion.columns[k] for k in chosen),
        grid_values,
        average.reshape([len(values) for values in grid_values]),
        target,
        expansion.link_kind,
    )


def resolve_inputs(
    inputs: int | str | Sequence[int | str], columns: Sequence[str]
) -> tuple[int, ...]:
    """Return the numbers of inputs given by number or by name."""
    several: Any = [inputs] if isinstance(inputs, str) or is_whole(inputs) else inputs
    chosen = []
    for one in several:
        if isinstance(one, str) and one in columns:
            chosen.append(columns.index(one))
        elif is_whole(one) and 0 <= one < len(columns):
            chosen.append(int(one))
        else:
            raise ValueError(
                f"inputs={inputs!r}: {one!r} is not an input; pass a number from 0 to "
                f"{len(columns) - 1} or a name such as {columns[0]!r}"
            )
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"inputs={inputs!r} must name one or more inputs, each once")
    return tuple(chosen)


def resolve_grid(
    grid: Any, chosen: tuple[int, ...], kept: InputSummary, expansion: Expansion
) -> tuple[NDArray[np.float64], ...]:
    """Return the values of each input on a grid."""
    if grid is None or is_whole(grid):
        number = _GRID if grid is None else int(grid)
        if number < 2:
            raise ValueError(f"grid={grid!r} must be at least 2 values per input, e.g. grid=50")
        values = tuple(_spread(SeenInput.of(expansion, kept, k), number) for k in chosen)
    else:
        several = [grid] if len(chosen) == 1 and np.ndim(grid[0]) == 0 else list(grid)
        values = tuple(np.asarray(column, dtype=float) for column in several)
        if len(values) != len(chosen) or any(
            column.ndim != 1 or not len(column) or not np.all(np.isfinite(column))
            for column in values
        ):
            raise ValueError(
                f"grid must be a number or hold an array of finite values for each of the "
                f"{len(chosen)} inputs"
            )
    size = np.prod([len(column) for column in values], dtype=float)
    if size > _MOST_POINTS:
        raise ValueError(
            f"grid={grid!r} of {len(chosen)} inputs has {size:.0e} points; pass a smaller "
            "number or fewer inputs"
        )
    return values


def _spread(seen: SeenInput, number: int) -> NDArray[np.float64]:
    """Values spaced evenly between outer quantiles, or all values of an input that has few."""
    values = seen.values_if_at_most(number)
    if values is not None:
        return values
    low, high = seen.quantiles[[1, -2]]
    if low == high:
        low, high = seen.quantiles[[0, -1]]
    return np.linspace(low, high, number)


def _other_means(
    expansion: Expansion,
    kept: InputSummary,
    chosen: tuple[int, ...],
    X: NDArray[np.float64] | None,
    share: NDArray[np.float64] | None,
) -> NDArray[np.complex128]:
    """Mean over rows of each feature's wave in the inputs that do not vary."""
    features = expansion.features
    others = (features.indices >= 0) & ~np.isin(features.indices, chosen)
    if X is not None and share is not None:
        mapped = X if expansion.map is None else expansion.map.apply(X)
        values = np.where(others, features.values, 0.0)
        rest = FeaturePool(features.n_variables, features.indices, values, features.phases, "exp")
        every = 2 ** features.indices.shape[1] - 1
        return subset_means(rest, mapped, share, [every])[:, 0]
    if kept.joint is None:
        raise ValueError(
            f"{len(features)} features with up to {features.indices.shape[1]} inputs have too many "
            "means for a fit to keep; pass X"
        )
    masks = others @ (1 << np.arange(features.indices.shape[1]))
    return np.asarray(kept.joint[np.arange(len(features)), masks])


def _of_waves(
    expansion: Expansion,
    chosen: tuple[int, ...],
    means: NDArray[np.complex128],
    points: NDArray[np.float64],
    target: int,
) -> NDArray[Any]:
    """Intercept + Re Σ A_j mean_j e^{i<w_j, z>}, z the inputs that vary."""
    features = expansion.features
    place = np.full(features.n_variables + 1, -1, dtype=np.intp)
    place[list(chosen)] = np.arange(len(chosen))
    indices = place[features.indices]  # padding, -1, picks the last entry
    values = np.where(indices >= 0, features.values, 0.0)
    waves = FeaturePool(len(chosen), indices, values, np.zeros(len(features)), "exp")
    own = None if expansion.map is None else expansion.map.take(np.array(chosen, dtype=np.intp))
    coef = wave_amplitudes(expansion, target) * means
    intercept = expansion.intercept[target]
    parts = np.array([intercept.real, intercept.imag][: len(coef)])
    columns = tuple(expansion.columns[k] for k in chosen)
    average = Expansion(waves, coef, parts, columns, map=own).predict(points)
    return average[:, 0] + 1j * average[:, 1] if expansion.complex_output else average[:, 0]


def _over_rows(
    expansion: Expansion,
    chosen: tuple[int, ...],
    points: NDArray[np.float64],
    X: NDArray[np.float64],
    share: NDArray[np.float64],
    target: int,
) -> NDArray[Any]:
    X = X.copy()
    average = []
    for point in points:
        X[:, list(chosen)] = point
        average.append(share @ expansion.linear(X)[:, target])
    return np.array(average)
