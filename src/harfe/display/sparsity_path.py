"""Held-out error over the number of terms, as cross-validation saw it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.table import Table
from harfe.display._drawing import (
    BLUE,
    GREY,
    INK,
    SERIES,
    check_fitted,
    one_axes,
    set_error_scale,
    tidy,
    write_note,
)


class SparsityPathDisplay:
    """Held-out error over the number of terms, as cross-validation saw it.

    Parameters
    ----------
    sizes : int array of shape (sizes,)
        Numbers of terms.
    names : sequence of str
        Of the pools: kinds of fits, or orders and scales of a grid.
    errors : array of shape (pools, sizes, folds)
        Held-out mean squared error, with the best ridge weight of each size; NaN where not run.
    chosen : (int, int)
        Places of the pool and of the size that won.
    n_terms : int
        Terms of the model that was then fitted to all rows.

    Attributes
    ----------
    mean, standard_error : arrays of shape (pools, sizes)
        Over the folds; the second is NaN with a single fold.
    ax_, figure_
        Of matplotlib; after `plot`.
    lines_ : dict of str to Line2D
        By name of the pool, of those drawn.
    band_ : FillBetweenPolyCollection or None
        One standard error either side of the chosen pool's mean.
    """

    def __init__(
        self,
        sizes: ArrayLike,
        names: Sequence[str],
        errors: ArrayLike,
        chosen: tuple[int, int],
        n_terms: int,
    ) -> None:
        self.sizes = np.asarray(sizes, dtype=int)
        self.names = tuple(names)
        self.errors = np.asarray(errors, dtype=float)
        self.chosen = chosen
        self.n_terms = n_terms
        self.n_folds = np.sum(np.isfinite(self.errors), axis=2)
        known = np.where(np.isfinite(self.errors), self.errors, 0.0)
        count = np.where(self.n_folds > 0, self.n_folds, np.nan)
        self.mean = known.sum(axis=2) / count
        squares = np.where(np.isfinite(self.errors), self.errors - self.mean[..., None], 0.0) ** 2
        free = np.where(self.n_folds > 1, self.n_folds - 1.0, np.nan)
        self.standard_error = np.sqrt(squares.sum(axis=2) / free / count)

    @classmethod
    def from_estimator(cls, model: Any) -> SparsityPathDisplay:
        """Take the table of errors of a cross-validated model.

        Parameters
        ----------
        model : HARFERegressorCV
            Fitted.
        """
        check_fitted(model)
        if not hasattr(model, "mse_path_"):
            raise TypeError(
                f"{type(model).__name__} has no held-out errors to draw; fit a HARFERegressorCV"
            )
        # The best ridge weight of each size, by the mean over its folds.
        path = model.mse_path_
        mean = np.where(np.isfinite(path), path, 0.0).sum(axis=3)
        count = np.sum(np.isfinite(path), axis=3)
        mean = np.where(count > 0, mean / np.maximum(count, 1), np.inf)
        best = np.argmin(mean, axis=2)
        errors = np.take_along_axis(path, best[:, :, None, None], axis=2)[:, :, 0]
        names = [_pool_name(pool) for pool in model.pools_]
        return cls(model.sizes_, names, errors, _chosen(model), model.n_nonzero_coefs_)

    def plot(self, ax: Any = None, *, most: int = 4) -> SparsityPathDisplay:
        """Draw the mean error of the pools, and the spread over the folds of the chosen one.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        most : int, default=4
            Pools at most: the chosen one, then the best of those run on as many folds.

        Returns
        -------
        self
        """
        ax = self.ax_ = one_axes(ax, 5.6, 3.6)
        self.figure_ = ax.figure
        tidy(ax)
        pools = self._leading(min(most, len(SERIES)))
        winner, place = self.chosen
        folds = int(self.n_folds[winner, place])
        self.lines_, self.band_ = {}, None
        for p, (color, marker, style) in zip(pools, SERIES, strict=False):
            run = np.isfinite(self.mean[p])
            (self.lines_[self.names[p]],) = ax.plot(
                self.sizes[run],
                self.mean[p][run],
                color=color,
                marker=marker,
                linestyle=style,
                markersize=4,
                linewidth=1.8 if p == winner else 1.2,
                label=self.names[p],
            )
        run = np.isfinite(self.standard_error[winner])
        if run.any():
            mean, error = self.mean[winner][run], self.standard_error[winner][run]
            self.band_ = ax.fill_between(
                self.sizes[run],
                mean - error,
                mean + error,
                color=BLUE,
                alpha=0.18,
                linewidth=0,
                label=f"± one standard error, {folds} folds",
            )
        ax.plot(
            self.sizes[place],
            self.mean[winner, place],
            marker="o",
            markersize=12,
            markerfacecolor="none",
            markeredgecolor=INK,
            linestyle="none",
            clip_on=False,
            label=f"chosen: {self.sizes[place]} terms",
        )
        if self.n_terms != self.sizes[place]:
            ax.axvline(self.n_terms, color=GREY, linestyle=":", label=f"fitted: {self.n_terms}")
        self._set_scales(ax, pools)
        ax.set(xlabel="number of terms", ylabel="held-out mean squared error")
        ax.legend(fontsize="x-small", frameon=False)
        left = len(self.names) - len(pools)
        if left:
            write_note(ax, f"{left} more pools, behind these or dropped after the first folds.")
        return self

    def _leading(self, most: int) -> list[int]:
        """The chosen pool, then the best of those that ran on as many folds."""
        winner = self.chosen[0]
        folds = self.n_folds.max(axis=1)
        lowest = np.nanmin(np.where(np.isfinite(self.mean), self.mean, np.inf), axis=1)
        rivals = [p for p in np.argsort(lowest, kind="stable").tolist() if p != winner]
        full = [p for p in rivals if folds[p] >= folds[winner]]
        return [winner, *full[: most - 1]]

    def _set_scales(self, ax: Any, pools: list[int]) -> None:
        from matplotlib.ticker import NullFormatter, NullLocator

        ax.set_xscale("log")
        ticks = _spread_out(self.sizes)
        ax.set_xticks(ticks, [str(size) for size in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
        set_error_scale(ax, self.mean[pools])

    def table(self) -> Table:
        """A row for each pool and size that was run on some fold."""
        rows = np.argwhere(self.n_folds > 0)
        return Table(
            {
                "pool": [self.names[p] for p, _ in rows],
                "n_terms": [self.sizes[i] for _, i in rows],
                "mse": [self.mean[p, i] for p, i in rows],
                "standard_error": [self.standard_error[p, i] for p, i in rows],
                "n_folds": [self.n_folds[p, i] for p, i in rows],
                "chosen": [(int(p), int(i)) == tuple(self.chosen) for p, i in rows],
            }
        )


def _spread_out(sizes: NDArray[np.int_]) -> list[int]:
    """Numbers of terms that can stand side by side on a logarithmic axis."""
    ticks: list[int] = []
    gap = max(np.log(sizes.max() / sizes.min()) / 9, 1e-9)
    for size in np.sort(sizes).tolist():
        if not ticks or np.log(size / ticks[-1]) >= 0.95 * gap:
            ticks.append(size)
    return ticks


def _pool_name(pool: Any) -> str:
    if isinstance(pool, str):
        return pool
    order, scale = pool
    if np.ndim(scale):
        return f"order {order}"
    return f"order {order}, scale {scale:.3g}"


def _chosen(model: Any) -> tuple[int, int]:
    """Places of pool and size in `mse_path_` that the search chose."""
    results = model.cv_results_
    # best_score_ is one of the means; all others, of other sizes and ridge weights, are farther.
    gap = np.abs(results["mean_test_score"] - model.best_score_)
    shape = model.mse_path_.shape[:3]
    gap = np.where(np.isfinite(gap), gap, np.inf).reshape(shape)
    if model.fit_ in model.pools_:
        others = np.arange(shape[0]) != model.pools_.index(model.fit_)
        gap[others] = np.inf
    pool, size, _ = np.unravel_index(np.argmin(gap), shape)
    return int(pool), int(size)
