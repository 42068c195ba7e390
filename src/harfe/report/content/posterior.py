"""Posterior standard deviation of components, from the ridge posterior of the coefficients.

A component is linear in the coefficients, f_u(x) = Σ_j c_j g_ju(x), where g_ju is the component of
feature j alone. With c in the units of the scaled problem, their posterior covariance is
σ²/M (A_S*WA_S/M + α)⁻¹ (`harfe.model.uncertainty`), so

    Var f_u(x) = σ²/M |L⁻¹ g_u(x)|²,   L L* = A_S*WA_S/M + α.

The choice of features is taken as given, so the true uncertainty of a component is larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from harfe.explain.anova import Anova
from harfe.features.activations import ACTIVATIONS
from harfe.model.terms import IndexSet

_MOST_FEATURES = 2000


@dataclass(frozen=True)
class ComponentPosterior:
    """Posterior of the components of a fitted function; create one with `of`."""

    parts: Anova
    chi: NDArray[np.complex128]
    present: NDArray[np.bool_]
    factor: NDArray[np.float64]
    scale: NDArray[np.float64]
    noise: float

    @classmethod
    def of(cls, model: Any, parts: Anova) -> ComponentPosterior | None:
        """Return the posterior; None without residuals to estimate the noise, or without waves.

        Parameters
        ----------
        model : fitted estimator
        parts : Anova
            Of its expansion.
        """
        features = parts.expansion.features
        # Complex coefficients are not supported.
        if model.uncertainty_ is None or not features.is_wave or features.is_complex:
            return None
        posterior = model.uncertainty_.posterior
        s = len(features)
        if not 0 < s <= _MOST_FEATURES or posterior.factor.shape != (s, s):
            return None
        present = features.present
        chi = np.ones(features.indices.shape, dtype=complex)
        for k in np.unique(features.indices[present]).tolist():
            at = np.nonzero(present & (features.indices == k))
            chi[at] = parts.distribution.characteristic(k, features.values[at])
        noise = float(model.uncertainty_.noise[parts.target]) / posterior.total_weight
        return cls(parts, chi, present, posterior.factor, posterior.scale, noise)

    def deviation(self, u: IndexSet, X_u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the posterior standard deviation of the component on u, shape (rows,).

        Parameters
        ----------
        u : tuple of int
        X_u : array of shape (rows, len(u))
            Values of the inputs in u, in the user's units.
        """
        expansion = self.parts.expansion
        features = expansion.features
        if expansion.map is not None:
            X_u = expansion.map.apply(X_u, np.array(u, dtype=np.intp))
        inside = self.present & np.isin(features.indices, u)
        mine = np.flatnonzero(inside.sum(axis=1) == len(u))
        values = np.zeros((len(features), len(X_u)))
        amplitude = ACTIVATIONS[features.activation].turn * np.exp(1j * features.phases[mine])
        wave = np.repeat(amplitude[:, None], len(X_u), axis=1)
        for place in range(features.indices.shape[1]):
            chi = self.chi[mine, place][:, None]
            column = np.searchsorted(u, features.indices[mine, place]).clip(max=len(u) - 1)
            own = np.exp(1j * features.values[mine, place][:, None] * X_u[:, column].T) - chi
            wave *= np.where(inside[mine, place][:, None], own, chi)
        values[mine] = wave.real / self.scale[mine][:, None]
        half = sla.solve_triangular(self.factor, values, lower=True, check_finite=False)
        return np.sqrt(self.noise * np.sum(half**2, axis=0))
