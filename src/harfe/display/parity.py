"""Prediction against truth: Figure 2 of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import is_whole
from harfe._core.table import Table
from harfe.display._drawing import BLUE, GREY, INK, one_axes, part_of, real_part, tidy
from harfe.metrics import mean_squared_error


class ParityDisplay:
    """Predicted against true values; for a perfect model, all are on the diagonal.

    Parameters
    ----------
    truth, prediction : arrays of shape (rows,)
        Real values of one target.
    label : str, default=""
        Which target, or which part of a complex one.

    Attributes
    ----------
    mse, r2 : float
        Mean squared error, and 1 - MSE / variance of the truth (NaN if that is constant).
    ax_, figure_
        Matplotlib objects; set by `plot`.
    points_ : PathCollection
    """

    def __init__(self, truth: ArrayLike, prediction: ArrayLike, *, label: str = "") -> None:
        self.truth = np.asarray(truth, dtype=float)
        self.prediction = np.asarray(prediction, dtype=float)
        self.label = label
        self.mse = mean_squared_error(self.truth, self.prediction)
        variance = float(np.var(self.truth))
        self.r2 = 1 - self.mse / variance if variance > 0 else np.nan

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: ArrayLike, *, target: int = 0, part: str = "real"
    ) -> ParityDisplay:
        """Predict rows, preferably rows that the fit has not seen.

        Parameters
        ----------
        model : fitted regressor
            From harfe or any other package.
        X : array of shape (rows, inputs)
        y : array of shape (rows,) or (rows, targets)
            The truth.
        target : int, default=0
            Which target, if there are several.
        part : {"real", "imag"}, default="real"
            Which part of complex values is drawn.
        """
        return cls.from_predictions(y, model.predict(X), target=target, part=part)

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, prediction: ArrayLike, *, target: int = 0, part: str = "real"
    ) -> ParityDisplay:
        """Use existing predictions.

        Parameters
        ----------
        y, prediction : arrays of shape (rows,) or (rows, targets)
            Truth and prediction.
        target, part
            As in `from_estimator`.
        """
        truth, predicted = np.asarray(y), np.asarray(prediction)
        if truth.shape != predicted.shape:
            raise ValueError(
                f"y has shape {truth.shape} and prediction {predicted.shape}; pass the truth and "
                "the prediction of the same rows"
            )
        several = truth.ndim == 2 and truth.shape[1] > 1
        pair = np.stack([_column(truth, target), _column(predicted, target)])
        label = part_of(f"target {target}" if several else "", pair, part).removeprefix(", ")
        return cls(*real_part(pair, part), label=label)

    def plot(self, ax: Any = None) -> ParityDisplay:
        """Draw a point for each row.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None makes a figure.

        Returns
        -------
        self
        """
        ax = self.ax_ = one_axes(ax, 4.2, 4.2)
        self.figure_ = ax.figure
        tidy(ax)
        n = len(self.truth)
        # Keep many points from merging into one blot.
        size, opacity = (14, 0.6) if n <= 1000 else (6, max(0.15, 0.5 * (1000 / n) ** 0.4))
        both = np.concatenate([self.truth, self.prediction])
        low, high = float(both.min()), float(both.max())
        margin = 0.04 * (high - low) or 1.0
        ends = (low - margin, high + margin)
        ax.plot(ends, ends, color=GREY, linewidth=1.0, zorder=1)
        self.points_ = ax.scatter(
            self.truth,
            self.prediction,
            s=size,
            color=BLUE,
            alpha=opacity,
            linewidths=0,
            zorder=2,
            rasterized=n > 5000,
        )
        ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel="truth", ylabel="prediction")
        if self.label:
            ax.set(xlabel=f"truth ({self.label})", ylabel=f"prediction ({self.label})")
        lines = [f"MSE {self.mse:.3g}", f"{n} rows"]
        if np.isfinite(self.r2):
            lines.insert(1, f"R² {_r2_text(self.r2)}")
        ax.text(
            0.03,
            0.97,
            "\n".join(lines),
            transform=ax.transAxes,
            va="top",
            fontsize="small",
            color=INK,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 2},
            zorder=3,
        )
        return self

    def table(self) -> Table:
        """Return a line per row: `truth`, `prediction`, `residual` = truth - prediction."""
        return Table(
            {
                "truth": self.truth,
                "prediction": self.prediction,
                "residual": self.truth - self.prediction,
            }
        )


def _column(values: NDArray[Any], target: Any) -> NDArray[Any]:
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not len(values):
        raise ValueError(f"y has shape {values.shape}; pass (rows,) or (rows, targets)")
    if not is_whole(target) or not 0 <= target < values.shape[1]:
        raise ValueError(
            f"target={target!r} must be a whole number from 0 to {values.shape[1] - 1}"
        )
    return values[:, target]


def _r2_text(r2: float) -> str:
    """Format R² with three digits, but never round it up to 1."""
    if 0.9995 <= r2 < 1:
        return f"1 - {1 - r2:.1e}"
    return f"{r2:.3f}"
