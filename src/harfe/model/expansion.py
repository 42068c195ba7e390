"""The fitted function as a value: f(x) = intercept + Σ_j c_j φ(<x, w_j> + b_j), s features only.

With a link, this sum is on the scale of the link, and the prediction is the link's mean of it.
Everything after the fit uses it: prediction, gradients, explanations, formulas, files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.threads import blocks, run_blocks
from harfe.features import kernels
from harfe.features.activations import ACTIVATIONS, CODES
from harfe.features.pool import FeaturePool, Rows
from harfe.features.units import InputMap
from harfe.model.link import Link

# Rows handled at a time, by one thread.
_ROW_BLOCK = 2048

# Gradients need s slopes per row: with more rows, allocating memory costs more than the sines.
_GRADIENT_ROWS = 256


@dataclass(frozen=True)
class Expansion:
    """A sum of few features of inputs in the user's units, clipped and warped.

    Attributes
    ----------
    features : FeaturePool
        The s kept features: indices, values, phases, activation.
    coef : array of shape (targets, s)
    intercept : array of shape (targets,)
    columns : tuple of str
        Names of the inputs.
    complex_output : bool
        If false, the real part is the prediction, as for exp features with real y.
    map : InputMap or None
        How inputs are clipped and warped first, if any is.
    link : Link or None
        Scale of the sum, if it is not that of the targets.
    """

    features: FeaturePool
    coef: NDArray[Any]
    intercept: NDArray[Any]
    columns: tuple[str, ...]
    complex_output: bool = False
    map: InputMap | None = None
    link: Link | None = None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predictions at the rows of X in the user's units, shape (rows, targets)."""
        total = self.linear(X)
        return total if self.link is None else self.link.mean(total)

    def linear(self, X: ArrayLike) -> NDArray[Any]:
        """Sums at the rows of X, on the scale of the link; nothing of size rows × s is stored."""
        X = np.asarray(X)
        used, compact = self._compact()
        sums = list(_real_sums(self.features.activation, self.coef, self.complex_output))
        parts = 2 if self.complex_output else 1
        out = np.empty((parts * len(self.coef), len(X)))
        intercept = _stack(self.intercept, self.complex_output)

        def work(rows: slice) -> None:
            inputs = Rows.of(self._mapped(X[rows, used], used))
            total = np.repeat(intercept[:, None], inputs.n_rows, axis=1)
            for activation, coef in sums:
                kernels.predict(
                    inputs.transposed,
                    inputs.largest,
                    compact.indices,
                    compact.values,
                    compact.phases,
                    CODES[activation],
                    coef,
                    total,
                )
            out[:, rows] = total

        run_blocks(work, blocks(len(X), _ROW_BLOCK))
        if self.complex_output:
            out = out[: len(self.coef)] + 1j * out[len(self.coef) :]
        return np.ascontiguousarray(out.T)

    def gradient(self, X: ArrayLike) -> NDArray[Any]:
        """Partial derivatives of the predictions by the inputs, shape (targets, rows, inputs)."""
        slopes = self.linear_gradient(X)
        if self.link is None:
            return slopes
        return slopes * self.link.slope(self.linear(X)).T[:, :, None]

    def linear_gradient(self, X: ArrayLike) -> NDArray[Any]:
        """Partial derivatives ∂f_t/∂x_j of the sums, shape (targets, rows, inputs)."""
        X = np.asarray(X)
        activation, factor = ACTIVATIONS[self.features.activation].derivative
        coef = self.coef * factor if factor != 1 else self.coef
        weights = self.features.weights()
        parts = 2 if self.complex_output else 1
        out = np.zeros((parts * len(coef), len(X), X.shape[1]))
        for rows in blocks(len(X), _GRADIENT_ROWS):
            inputs = Rows.of(self._mapped(X[rows]))
            for kind, real_coef in _real_sums(activation, coef, self.complex_output):
                slope = np.empty((len(self.features), inputs.n_rows))
                arguments = (self.features.indices, self.features.values, self.features.phases)
                kernels.features(
                    inputs.transposed, inputs.largest, *arguments, CODES[kind], 0, slope
                )
                for t, c in enumerate(real_coef):
                    out[t, rows] += (weights @ (c[:, None] * slope)).T
            if self.map is not None:
                out[:, rows] *= self.map.slope(X[rows])
        return out[: len(coef)] + 1j * out[len(coef) :] if self.complex_output else out

    @property
    def link_kind(self) -> str:
        """Kind of the link, or "none"."""
        return "none" if self.link is None else self.link.kind

    def names(self) -> list[str]:
        """Readable names of the kept features of inputs such as ``clip(x, 0, 9)`` or ``log(x)``."""
        return self.features.names([self._label(j) for j in range(len(self.columns))])

    def evaluate_features(self, X: ArrayLike) -> NDArray[Any]:
        """Values φ of the kept features at the rows of X, shape (rows, s)."""
        return self.features.evaluate(self._mapped(np.asarray(X)))

    def _mapped(
        self, X: NDArray[Any], columns: NDArray[np.intp] | slice = slice(None)
    ) -> NDArray[Any]:
        return X if self.map is None else self.map.apply(X, columns)

    def _label(self, j: int) -> str:
        return self.columns[j] if self.map is None else self.map.label(j, self.columns[j])

    def _compact(self) -> tuple[NDArray[np.intp], FeaturePool]:
        """The inputs in use, and the features with indices among these alone."""
        indices = self.features.indices
        used = np.unique(indices[indices >= 0])
        if not len(used):
            used = np.zeros(1, dtype=np.intp)
        compact = np.where(indices >= 0, np.searchsorted(used, indices), -1)
        pool = self.features
        return used, FeaturePool(len(used), compact, pool.values, pool.phases, pool.activation)


def _stack(values: NDArray[Any], complex_output: bool) -> NDArray[np.float64]:
    """Real parts, followed by the imaginary parts if they are wanted."""
    return np.concatenate([values.real, values.imag]) if complex_output else values.real.copy()


def _real_sums(
    activation: str, coef: NDArray[Any], complex_output: bool
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Write Σ c φ as sums of real features with real coefficients, one row per real output.

    c·exp(iz) = (c)·cos z + (ic)·sin z.
    """
    if activation == "exp":
        yield "cos", np.ascontiguousarray(_stack(coef, complex_output))
        yield "sin", np.ascontiguousarray(_stack(1j * coef, complex_output))
    else:
        yield activation, np.ascontiguousarray(_stack(coef, complex_output))
