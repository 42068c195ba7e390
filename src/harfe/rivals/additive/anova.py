"""ANOVA approximation: cosines of a few variables at a time, pruned by sensitivity indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress, groupby
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import is_number
from harfe._core.threads import memory_bytes
from harfe.rivals._base import Constant, Rival
from harfe.rivals._scaling import Scaling
from harfe.rivals._search import Family
from harfe.rivals._settings import counts, numbers
from harfe.rivals.additive.cosines import (
    CosineFunction,
    Cosines,
    Term,
    all_terms,
    sensitivity_indices,
)
from harfe.rivals.solvers.centred_ridge import CentredRidge

# Candidates of "auto", chosen by held-out error on training rows of real data. Some targets need
# high frequencies of single variables; those of pairs cost much and gain little.
_ALPHAS = np.geomspace(10.0, 1e-9, 21)
_THRESHOLDS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.0)
_BANDWIDTHS = (8, 32)
_INTERACTION_BANDWIDTHS = (3, 6)

_LARGEST_SUPERPOSITION = 3
_LARGEST_BANDWIDTH = 1000

# "auto" does not try pairs if there are more than this.
_MOST_TERMS = 300_000

# System-sized matrices in memory at a time.
_MATRICES = 8


def active_set(
    terms: Sequence[Term], sensitivities: NDArray[np.float64], threshold: float
) -> tuple[Term, ...]:
    """Terms with an index above the threshold; always the one with the largest."""
    kept = sensitivities > threshold
    kept[np.argmax(sensitivities)] = True
    return tuple(compress(terms, kept))


@dataclass(frozen=True)
class _TwoSteps:
    """Fits with one superposition dimension: rank all terms, then refit the active ones."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    superposition: int
    first_bandwidths: tuple[int, ...]
    smoothness: float
    settings: Sequence[dict[str, Any]]

    @cached_property
    def _scaling(self) -> Scaling:
        return Scaling.unit_cube(self.X)

    @cached_property
    def _Z(self) -> NDArray[np.float64]:
        return self._scaling.apply(self.X)

    @cached_property
    def _terms(self) -> tuple[Term, ...]:
        return all_terms(self._Z.shape[1], self.superposition)

    @cached_property
    def _first(self) -> tuple[Cosines, NDArray[np.float64], bool]:
        return self._design(self._terms, self.first_bandwidths)

    def _design(
        self, terms: Sequence[Term], bandwidths: Sequence[int]
    ) -> tuple[Cosines, NDArray[np.float64], bool]:
        """Functions at all rows, or their kernel if that is smaller."""
        cosines = Cosines.of(self._Z, bandwidths, self.smoothness)
        if cosines.count(terms) > len(self._Z):
            return cosines, cosines.kernel(terms), True
        return cosines, np.hstack([cosines.features(u) for u in terms]), False

    def sensitivities(self, train: NDArray[np.intp]) -> NDArray[np.float64]:
        """Global sensitivity index of every term from a fit on rows `train`, the first step.

        Its ridge weight minimises the leave-one-out error on these rows.
        """
        cosines, matrix, by_rows = self._first
        ridge = CentredRidge(matrix, by_rows, self.y, train)
        weights = _ALPHAS * len(self.y)
        best = weights[[int(np.argmin(ridge.leave_one_out(weights)))]]
        coef = _split(cosines, self._terms, ridge.solve(best)[:, 0], train, by_rows)
        return sensitivity_indices(
            [cosines.unweighted(u, c) for u, c in zip(self._terms, coef, strict=True)]
        )

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out).

        The active set is chosen on `train` alone, so that the error is honest.
        """
        indices = self.sensitivities(train)
        known: dict[Any, NDArray[np.float64]] = {}
        predicted = []
        for (threshold, bandwidths), group in groupby(self.settings, key=_refit):
            terms = active_set(self._terms, indices, threshold)
            if (terms, bandwidths) not in known:
                _, matrix, by_rows = self._design(terms, bandwidths)
                ridge = CentredRidge(matrix, by_rows, self.y, train)
                weights = np.array([setting["alpha"] for setting in group]) * len(self.y)
                known[terms, bandwidths] = ridge.predict(out, weights)
            predicted.append(known[terms, bandwidths])
        return np.concatenate(predicted)

    def fit(self, which: int) -> CosineFunction:
        """The fit on all rows with one of the settings."""
        rows = np.arange(len(self.y))
        threshold, bandwidths = _refit(self.settings[which])
        terms = active_set(self._terms, self.sensitivities(rows), threshold)
        cosines, matrix, by_rows = self._design(terms, bandwidths)
        weight = np.array([self.settings[which]["alpha"] * len(rows)])
        ridge = CentredRidge(matrix, by_rows, self.y, rows)
        coef = _split(cosines, terms, ridge.solve(weight)[:, 0], rows, by_rows)
        means = sum(cosines.features(u).mean(axis=0) @ c for u, c in zip(terms, coef, strict=True))
        constant = float(self.y.mean() - means)
        return CosineFunction(
            self._scaling, terms, tuple(coef), constant, bandwidths, self.smoothness
        )


def _refit(setting: dict[str, Any]) -> tuple[float, tuple[int, ...]]:
    """Threshold and bandwidths of the second step."""
    N, M, size = setting["bandwidth"], setting["interaction_bandwidth"], setting["superposition"]
    return setting["threshold"], (N,) + (M,) * (size - 1)


def _split(
    cosines: Cosines,
    terms: Sequence[Term],
    solution: NDArray[np.float64],
    train: NDArray[np.intp],
    by_rows: bool,
) -> list[NDArray[np.float64]]:
    """Coefficients per term, from those of the rows or of all functions."""
    if by_rows:
        v = np.zeros(cosines.tables[0].shape[1])
        v[train] = solution
        return cosines.pull_back(terms, v)
    return np.split(solution, np.cumsum([cosines.count([u]) for u in terms])[:-1])


class ANOVARegressor(Rival):
    """ANOVA approximation with cosines, in two steps.

    Minimises (1/m) Σ_i (y_i - f(x_i))² + α Σ_{u,k} w_k c_{u,k}² over functions

        f(x) = c_∅ + Σ_{u in U} Σ_k c_{u,k} Π_{j in u} √2 cos(π k_j x_j),   1 <= k_j < N_{|u|},

    of inputs scaled to the unit cube, with weights w_k = Π_j (1 + k_j²)^r. In the first step, U is
    all sets of at most d_s inputs; in the second, only the active ones, whose global sensitivity
    index, the share of the variance

        ρ_u = Σ_k c_{u,k}² / Σ_{v ≠ ∅} Σ_k c_{v,k}²,

    is above a threshold ε. "ANOVA" in the paper's Table 2. In cross-validation the active set is
    found on the training rows of each fold, so held-out rows do not influence it.

    Parameters
    ----------
    superposition : "auto", an int or a list, default="auto"
        Largest number of variables in a term, d_s, up to 3. Here and below, lists and "auto" are
        candidates, chosen by cross-validation; "auto" is (1, 2).
    threshold : "auto", a number or a list, default="auto"
        ε, at least 0 and below 1. "auto" is 0 and six numbers from 0.002 to 0.1. The largest term
        is always kept.
    bandwidth, interaction_bandwidth : "auto", an int or a list, default="auto"
        N of the second step for terms of one variable ("auto" is (8, 32)) and of more ("auto" is
        (3, 6)). The first step, which only ranks, uses the smaller `first_bandwidths`.
    alpha : "auto", a number or a list, default="auto"
        Ridge weight of the second step, for targets of variance 1; "auto" is 21 numbers from 1e-9
        to 10. In the folds, α is scaled so that α times the number of rows is the same as in the
        final fit. The first step uses the weight with the smallest leave-one-out error on its rows.
    smoothness : float, default=1.5
        Exponent r of the weights. Coefficients of a smooth function fall only like 1/k², as cosines
        are flat at the ends of the interval; values above 1.5 therefore assume too much.
    memory_budget : "auto" or float, default="auto"
        Bytes a fit may use; "auto" is half of the free memory.
    cv : int, splitter or iterable, default=5
        Cross-validation folds that choose the settings.
    verbose : bool, default=False
        Print progress to standard error: candidates tried, best so far, time left.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    Attributes
    ----------
    superposition_, threshold_, bandwidth_, interaction_bandwidth_, alpha_
        The chosen settings; also in `best_params_`. The interaction bandwidth is unused if
        `superposition_` is 1.
    cv_results_ : dict or None
        Results of all candidates, as in scikit-learn; None if nothing was compared.
    active_set_ : tuple of tuples of int
        Inputs of every term, smaller sets first.
    sensitivities_ : array of shape (terms,)
        ρ_u of every term of `active_set_` in the final fit; they sum to 1.
    total_sensitivities_ : array of shape (n_features_in_,)
        For each input, the sum of ρ_u over the terms that contain it.
    coef_ : tuple of arrays
        c_{u,k} of every term in units of y, one axis per variable; k starts at 1.
    intercept_ : float
        c_∅, the mean of f over the unit cube.
    bandwidths_ : tuple of int
        N of terms of one variable, of two, ...
    size_ : int
        Number of functions in the final fit, without the constant.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    D. Potts, M. Schmischke: Interpretable approximation of high-dimensional data, SIAM Journal on
    Mathematics of Data Science, 2021.

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import ANOVARegressor
    >>> data = make_function("friedman1", 200, random_state=0)
    >>> model = ANOVARegressor(superposition=2, threshold=0.01, random_state=0)
    >>> model.fit(data.X, data.y).active_set_
    ((0,), (1,), (2,), (3,), (4,), (0, 1))
    """

    #: Bandwidths of the first step, for terms of one, two and three variables.
    first_bandwidths = (6, 4, 3)

    function_: CosineFunction | Constant

    def __init__(
        self,
        superposition: Any = "auto",
        *,
        threshold: Any = "auto",
        bandwidth: Any = "auto",
        interaction_bandwidth: Any = "auto",
        alpha: Any = "auto",
        smoothness: float = 1.5,
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.superposition = superposition
        self.threshold = threshold
        self.bandwidth = bandwidth
        self.interaction_bandwidth = interaction_bandwidth
        self.alpha = alpha
        self.smoothness = smoothness
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        d = X.shape[1]
        sizes = counts(
            "superposition",
            self.superposition,
            (1, 2) if comb(d, 2) <= _MOST_TERMS else (1,),
            most=min(d, _LARGEST_SUPERPOSITION),
            of="variables that a term can have",
        )
        thresholds = numbers("threshold", self.threshold, _THRESHOLDS, zero=True)
        if max(thresholds) >= 1:
            raise ValueError(
                f"threshold={self.threshold!r} must be below 1, as sensitivity indices are shares, "
                "e.g. threshold=0.01"
            )
        singles = _bandwidths("bandwidth", self.bandwidth, _BANDWIDTHS)
        others = _bandwidths(
            "interaction_bandwidth", self.interaction_bandwidth, _INTERACTION_BANDWIDTHS
        )
        alphas = numbers("alpha", self.alpha, _ALPHAS.tolist())
        if not is_number(self.smoothness) or not 0 <= self.smoothness < np.inf:
            raise ValueError(
                f"smoothness={self.smoothness!r} must be a finite number of at least 0, e.g. "
                "smoothness=1.5"
            )
        self._check_memory(X.shape, max(sizes), max(singles), max(others))
        families = []
        for size in sizes:
            settings = [
                {
                    "superposition": size,
                    "threshold": threshold,
                    "bandwidth": single,
                    "interaction_bandwidth": other,
                    "alpha": alpha,
                }
                for threshold in thresholds
                for other in (others if size > 1 else others[:1])
                for single in singles
                for alpha in alphas
            ]
            fits = partial(
                _TwoSteps, X, y, size, self.first_bandwidths[:size], self.smoothness, settings
            )
            families.append(Family(f"superposition {size}", settings, fits))
        return families

    def _check_memory(self, shape: tuple[int, int], size: int, single: int, other: int) -> None:
        m, d = shape
        budget = memory_bytes(self.memory_budget)
        functions = d * (single - 1)
        functions += sum(comb(d, k) * (other - 1) ** k for k in range(2, size + 1))
        needed = 8.0 * m * (_MATRICES * min(m, functions) + 2 * d * (single + size * other))
        if needed > budget:
            raise MemoryError(
                f"a fit of {m} rows needs about {needed:.2g} bytes, but memory_budget allows "
                f"{budget:.2g}; fit fewer rows, or pass superposition=1, a smaller bandwidth or a "
                "larger memory_budget"
            )

    def _count_size(self) -> int:
        return sum(int(np.count_nonzero(c)) for c in self.coef_)

    @property
    def active_set_(self) -> tuple[Term, ...]:
        """Inputs of every term."""
        if isinstance(self.function_, Constant):
            return ()
        columns = self.function_.scaling.columns
        return tuple(tuple(int(columns[j]) for j in u) for u in self.function_.terms)

    @property
    def sensitivities_(self) -> NDArray[np.float64]:
        """Global sensitivity index of every term of `active_set_`."""
        if isinstance(self.function_, Constant):
            return np.zeros(0)
        return sensitivity_indices(self.function_.coefficients())

    @property
    def total_sensitivities_(self) -> NDArray[np.float64]:
        """For each input, the sum of the indices of all terms that contain it."""
        total = np.zeros(self.n_features_in_)
        for u, index in zip(self.active_set_, self.sensitivities_, strict=True):
            total[list(u)] += index
        return total

    @property
    def coef_(self) -> tuple[NDArray[np.float64], ...]:
        """Coefficients of every term of `active_set_`, in units of y."""
        if isinstance(self.function_, Constant):
            return ()
        return tuple(c * self._unit for c in self.function_.coefficients())

    @property
    def intercept_(self) -> float:
        """Mean of the fitted function over the unit cube."""
        f = self.function_
        constant = f.value if isinstance(f, Constant) else f.constant
        return float(constant * self._unit + self._centre)

    @property
    def bandwidths_(self) -> tuple[int, ...]:
        """Bandwidth of terms of one variable, of two, ..."""
        return _refit(self.best_params_)[1]


def _bandwidths(name: str, value: Any, auto: Sequence[int]) -> list[int]:
    found = counts(name, value, auto, most=_LARGEST_BANDWIDTH, of="allowed frequencies")
    if min(found) < 2:
        raise ValueError(
            f"{name}={value!r} must be at least 2, as frequencies from 1 to below it are used, "
            f"e.g. {name}={auto[0]}"
        )
    return found
