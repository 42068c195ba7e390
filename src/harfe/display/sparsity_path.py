"""Held-out error against the number of features, from cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import Table
from harfe.display._drawing import (
    BLUE,
    GREY,
    SERIES,
    check_fitted,
    draw_ring,
    on_scale,
    one_axes,
    set_error_scale,
    tidy,
    write_note,
)
from harfe.selection.results import ErrorPaths, error_paths


class SparsityPathDisplay:
    """Held-out error against the number of features, from cross-validation.

    Parameters
    ----------
    paths : ErrorPaths
        Mean and standard error of the held-out error, for each pool and each size.
    n_features : int
        Number of features of the final model, fitted to all rows.
    link : str, default="none"
        Link on whose scale the errors are.

    Attributes
    ----------
    ax_, figure_
        Matplotlib objects; set by `plot`.
    lines_ : dict of str to Line2D
        Lines of the pools drawn, by name.
    band_ : FillBetweenPolyCollection or None
        One standard error either side of the chosen pool's mean.
    """

    def __init__(self, paths: ErrorPaths, n_features: int, *, link: str = "none") -> None:
        self.paths = paths
        self.n_features = n_features
        self.link = link

    @classmethod
    def from_estimator(cls, model: Any) -> SparsityPathDisplay:
        """Take the held-out errors of a cross-validated model.

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
        return cls(error_paths(model), model.n_nonzero_coefs_, link=model.expansion_.link_kind)

    def plot(self, ax: Any = None, *, most: int = 4) -> SparsityPathDisplay:
        """Draw the mean error of the pools, with the standard error of the chosen one.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.
        most : int, default=4
            Maximum number of pools: the chosen one, then the best of those run on as many folds.

        Returns
        -------
        self
        """
        ax = self.ax_ = one_axes(ax, 5.6, 3.6)
        self.figure_ = ax.figure
        tidy(ax)
        paths = self.paths
        pools = self._leading(min(most, len(SERIES)))
        winner, place = paths.chosen
        folds = int(paths.n_folds[winner, place])
        self.lines_, self.band_ = {}, None
        for p, (color, marker, style) in zip(pools, SERIES, strict=False):
            run = np.isfinite(paths.mean[p])
            (self.lines_[paths.names[p]],) = ax.plot(
                paths.sizes[run],
                paths.mean[p][run],
                color=color,
                marker=marker,
                linestyle=style,
                markersize=4,
                linewidth=1.8 if p == winner else 1.2,
                label=paths.names[p],
            )
        run = np.isfinite(paths.standard_error[winner])
        if run.any():
            mean, error = paths.mean[winner][run], paths.standard_error[winner][run]
            self.band_ = ax.fill_between(
                paths.sizes[run],
                mean - error,
                mean + error,
                color=BLUE,
                alpha=0.18,
                linewidth=0,
                label=f"± one standard error, {folds} folds",
            )
        size = int(paths.sizes[place])
        draw_ring(ax, size, paths.mean[winner, place], f"chosen: {size} features", size=12)
        if self.n_features != size:
            fitted = f"fitted: {self.n_features}"
            ax.axvline(self.n_features, color=GREY, linestyle=":", label=fitted)
        self._set_scales(ax, pools)
        error = on_scale("held-out mean squared error", self.link, "of")
        ax.set(xlabel="number of features", ylabel=error)
        ax.legend(fontsize="x-small", frameon=False)
        left = len(paths.names) - len(pools)
        if left:
            write_note(ax, f"{left} more pools, worse than these or dropped after the first folds.")
        return self

    def _leading(self, most: int) -> list[int]:
        """The chosen pool, then the best of those that ran on as many folds."""
        winner, mean = self.paths.chosen[0], self.paths.mean
        folds = self.paths.n_folds.max(axis=1)
        lowest = np.min(np.where(np.isfinite(mean), mean, np.inf), axis=1)
        rivals = [p for p in np.argsort(lowest, kind="stable").tolist() if p != winner]
        full = [p for p in rivals if folds[p] >= folds[winner]]
        return [winner, *full[: most - 1]]

    def _set_scales(self, ax: Any, pools: list[int]) -> None:
        from matplotlib.ticker import NullFormatter, NullLocator

        ax.set_xscale("log")
        ticks = _spread_out(self.paths.sizes)
        ax.set_xticks(ticks, [str(size) for size in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
        set_error_scale(ax, self.paths.mean[pools])

    def table(self) -> Table:
        """Return a row for each pool and size that was run on some fold."""
        paths = self.paths
        pool, size = np.nonzero(paths.n_folds)
        return Table(
            {
                "pool": [paths.names[p] for p in pool],
                "n_features": paths.sizes[size],
                "mse": paths.mean[pool, size],
                "standard_error": paths.standard_error[pool, size],
                "n_folds": paths.n_folds[pool, size],
                "chosen": (pool == paths.chosen[0]) & (size == paths.chosen[1]),
            }
        )


def _spread_out(sizes: NDArray[np.int_]) -> list[int]:
    """Sizes whose labels do not overlap on a logarithmic axis."""
    ticks: list[int] = []
    gap = max(np.log(sizes.max() / sizes.min()) / 9, 1e-9)
    for size in np.sort(sizes).tolist():
        if not ticks or np.log(size / ticks[-1]) >= 0.95 * gap:
            ticks.append(size)
    return ticks
