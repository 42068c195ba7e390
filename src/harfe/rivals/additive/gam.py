"""pyGAM's additive splines, with the interface of the other rivals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.rivals._base import Rival
from harfe.rivals._scaling import Scaling
from harfe.rivals._search import Family, OnlyFit
from harfe.rivals._settings import numbers

_SMOOTHING = np.geomspace(1e-3, 1e3, 11)


@dataclass(frozen=True)
class _Splines:
    """A fitted pyGAM model of the inputs that vary."""

    scaling: Scaling
    model: Any

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at the rows of X."""
        values: NDArray[np.float64] = self.model.predict(self.scaling.apply(X))
        return values


def fit_splines(X: NDArray[np.float64], y: NDArray[np.float64], smoothing: list[float]) -> _Splines:
    """Fit one spline per input, with one smoothing weight by generalised cross-validation."""
    from pygam import LinearGAM, s

    scaling = Scaling.standard(X)
    model = LinearGAM(reduce(add, (s(j) for j in range(len(scaling.columns)))))
    # pyGAM's search rejects a single candidate, so it is passed twice.
    candidates = np.array(smoothing if len(smoothing) > 1 else smoothing * 2)
    model.gridsearch(scaling.apply(X), y, lam=candidates, progress=False)
    return _Splines(scaling, model)


class PyGAMRegressor(Rival):
    """Additive splines of pyGAM: Σ_j f_j(x_j), smoothed by generalised cross-validation.

    Minimises ‖y - b - Σ_j f_j(x_j)‖² + λ Σ_j ∫ f_j''². It is not in the paper's tables. pyGAM
    lacks parts of the scikit-learn API, which this class adds. Requires the package pygam
    (``pip install "harfe[rivals]"``).

    Parameters
    ----------
    smoothing : "auto", a number or a list, default="auto"
        λ. Lists and "auto", 11 numbers from 1e-3 to 1e3, are candidates for pyGAM's own search.

    Attributes
    ----------
    size_ : int
        Effective degrees of freedom, rounded.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    D. Servén, C. Brummitt: pyGAM: Generalized Additive Models in Python, 2018.
    """

    function_: _Splines

    # Nothing is cross-validated or drawn at random.
    cv = None
    verbose = False
    random_state = 0

    def __init__(self, smoothing: Any = "auto") -> None:
        self.smoothing = smoothing

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        smoothing = numbers("smoothing", self.smoothing, _SMOOTHING.tolist())
        return [Family("splines", [{}], lambda: OnlyFit(lambda: fit_splines(X, y, smoothing)))]

    def _count_size(self) -> int:
        return round(float(self.function_.model.statistics_["edof"]))
