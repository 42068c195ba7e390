"""COSSO: smoothing-spline ANOVA with a penalty on the sum of the components' norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from harfe._core.threads import blocks, memory_bytes
from harfe.rivals._base import Rival
from harfe.rivals._scaling import Scaling
from harfe.rivals._search import Family, brief
from harfe.rivals._settings import numbers
from harfe.rivals.additive.spline_kernels import (
    Components,
    Spline,
    component_values,
    equal_kernel,
    equal_spline,
    weighted_kernel,
    weighted_spline,
)
from harfe.rivals.solvers.garrote import garrote_path

#: Inputs, θ and norm of a component.
Component = tuple[tuple[int, ...], float, float]

# Shares of the smallest penalty that leaves no component.
_PENALTIES = np.geomspace(0.5, 1e-5, 20)

# Pairs are screened beyond this many components: the garrote's Gram matrix has that size.
_MOST_COMPONENTS = 5000

# m × m matrices in memory at a time.
_KERNELS = 6

# Rows predicted at a time.
_ROWS = 1024


@dataclass(frozen=True)
class SplineFunction:
    """f(x) = b + Σ_i c_i K_θ(x, x_i).

    Attributes
    ----------
    scaling : Scaling
        To the unit cube.
    rows : array of shape (inputs that vary, m)
        The x_i.
    components : Components
        The θ.
    spline : Spline
        The c_i, b and λ₀.
    """

    scaling: Scaling
    rows: NDArray[np.float64]
    components: Components
    spline: Spline

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at the rows of X."""
        values = np.empty(len(X))
        for part in blocks(len(X), _ROWS):
            ZT = np.ascontiguousarray(self.scaling.apply(X[part]).T)
            values[part] = weighted_kernel(ZT, self.rows, self.components) @ self.spline.c
        return values + self.spline.b


def cosso_path(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    smoothings: Sequence[float] | None,
    penalties: Sequence[float],
    n_paired: int,
) -> list[SplineFunction]:
    """The fit for every penalty by the one-step algorithm of Lin and Zhang.

    1. With θ = 1, solve for c and b; λ₀ has the smallest GCV, and stays fixed.
    2. With c and b fixed, solve for θ, for every penalty.
    3. With each θ, solve for c and b.

    Pairs are those of the `n_paired` inputs with the largest main effects in a fit without pairs.
    """
    scaling = Scaling.unit_cube(X)
    ZT = np.ascontiguousarray(scaling.apply(X).T)
    paired = strongest_inputs(ZT, y, smoothings, n_paired)
    start = equal_spline(equal_kernel(ZT, paired), y, smoothings)
    G = component_values(ZT, paired, start.c)
    # With this shift, the squares and λ₀ cᵀK_θ c together are one least-squares problem in θ.
    z = y - start.b - len(y) * start.smoothing / 2 * start.c
    functions = []
    for thetas in garrote_path(G, z, penalties):
        components = Components.among(len(ZT), paired, thetas)
        K = weighted_kernel(ZT, ZT, components)
        spline = weighted_spline(K, y, start.smoothing)
        functions.append(SplineFunction(scaling, ZT, components, spline))
    return functions


def strongest_inputs(
    ZT: NDArray[np.float64], y: NDArray[np.float64], smoothings: Sequence[float] | None, n: int
) -> NDArray[np.intp]:
    """The n inputs with the largest main effects of the spline with θ = 1, ascending."""
    if n >= len(ZT) or n < 2:
        return np.arange(len(ZT) if n >= 2 else 0)
    none = np.arange(0)
    start = equal_spline(equal_kernel(ZT, none), y, smoothings)
    sizes = component_values(ZT, none, start.c).std(axis=0)
    return np.sort(np.argsort(-sizes, kind="stable")[:n])


def kept_components(function: SplineFunction) -> list[Component]:
    """Components with θ > 0 as (inputs, θ, ‖P_a f‖): main effects first."""
    kept, columns = function.components.kept(), function.scaling.columns
    mains = np.flatnonzero(kept.mains)
    used = np.union1d(mains, kept.pairs.ravel())
    c = function.spline.c
    # ‖P_a f‖² = θ_a² cᵀK_a c, for components of the inputs that occur.
    values = c @ component_values(function.rows[used], np.arange(len(used)), c)
    norms = np.sqrt(np.maximum(values, 0.0))
    of_pairs = np.zeros((len(used), len(used)))
    of_pairs[np.triu_indices(len(used), 1)] = norms[len(used) :]
    found: list[Component] = []
    for j in mains:
        theta = float(kept.mains[j])
        found.append(((int(columns[j]),), theta, theta * norms[np.searchsorted(used, j)]))
    for pair, theta in zip(kept.pairs, kept.weights.tolist(), strict=True):
        norm = of_pairs[tuple(np.searchsorted(used, pair))]
        found.append((tuple(columns[pair].tolist()), theta, theta * norm))
    return found


def paired_inputs(m: int, d: int, budget: float, must: bool) -> int:
    """The largest number of inputs whose pairs can all be components; 0 or 1 means no pairs."""

    def bytes_of(n: int) -> float:
        P = d + n * (n - 1) // 2
        return 8.0 * (_KERNELS * m**2 + 2 * m * P + 2 * P**2)

    fitting = [n for n in range(d + 1) if bytes_of(n) <= budget]
    if not fitting or (must and d > 1 and fitting[-1] < 2):
        needed = bytes_of(2 if must else 0)
        raise MemoryError(
            f"COSSORegressor needs about {needed:.2g} bytes for {m} rows and {d} inputs, but "
            f"memory_budget is {budget:.2g}; fit fewer rows, or pass memory_budget={needed:.2g} if "
            "that much is free"
        )
    few = [n for n in fitting if d + n * (n - 1) // 2 <= _MOST_COMPONENTS]
    return max(few, default=0)


def describe_pairs(d: int, n_paired: int, asked: Sequence[bool]) -> tuple[str, str]:
    """Which pairs were candidates: as a word, and as a sentence."""
    if not any(asked):
        return "none", "Pairs were not requested."
    if n_paired < 2:
        why = "there is one input" if d == 1 else "memory or the limit on components allows none"
        return "none", f"No pairs were tried: {why}."
    if n_paired == d:
        return "all", f"All {d * (d - 1) // 2} pairs of {d} inputs were candidates."
    return "screened", (
        f"Pairs of the {n_paired} inputs with the largest main effects were candidates, not those "
        f"of all {d}: memory_budget or the limit of {_MOST_COMPONENTS} components allows no more."
    )


@dataclass(frozen=True)
class _SplineFits:
    """Fits along a path of penalties; every fold is fitted separately."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    smoothings: Sequence[float] | None
    penalties: Sequence[float]
    n_paired: int

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        path = self._path(train, self.penalties)
        return np.array([function.predict(self.X[out]) for function in path])

    def fit(self, which: int) -> SplineFunction:
        """The fit on all rows with one of the settings."""
        return self._path(np.arange(len(self.y)), self.penalties[which : which + 1])[0]

    def _path(self, rows: NDArray[np.intp], penalties: Sequence[float]) -> list[SplineFunction]:
        X, y = self.X[rows], self.y[rows]
        return cosso_path(X, y, self.smoothings, penalties, self.n_paired)


class COSSORegressor(Rival):
    """Component selection and smoothing operator: sparse smoothing-spline ANOVA.

    Minimises (1/m) Σ_k (y_k - f(x_k))² + τ² Σ_a ‖P_a f‖ over sums of main effects and pairwise
    interactions; P_a f is a component. With a weight θ_a ≥ 0 for each, this is equivalent to

        (1/m)‖y - b - K_θ c‖² + λ₀ cᵀK_θ c + λ Σ_a θ_a,   K_θ = Σ_a θ_a K_a,

    with K_a the second-order Sobolev kernel of an input scaled to [0, 1], or the product of two.
    As in the paper's Table 4; original: Y. Lin, H. H. Zhang: Component selection and smoothing in
    multivariate nonparametric regression, Annals of Statistics 34, 2006, with its one-step
    algorithm: a smoothing spline with θ = 1, then θ by a non-negative garrote, then c. Values
    outside the training range are moved to its nearest end.

    Parameters
    ----------
    interactions : "auto", bool or list, default="auto"
        Whether to include pairs; "auto" tries both. All pairs are candidates if memory_budget and
        the limit of 5000 components allow it, otherwise those of the inputs with the largest main
        effects. `pairs_` and `note_` report which.
    penalty : "auto", a number or a list, default="auto"
        λ as a share of the smallest that leaves no component. "auto" is 20 numbers from 0.5 to
        1e-5.
    smoothing : "auto", a number or a list, default="auto"
        λ₀. "auto" minimises the generalised cross-validation error on the training rows with all
        θ = 1, as in the COSSO paper.
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
    interactions_, penalty_, smoothing_
        The chosen settings; also in `best_params_`. `smoothing_` may be "auto"; its value is
        ``function_.spline.smoothing``.
    components_ : tuple of tuples
        Inputs of the components with θ > 0: (j,) for a main effect, (j, k) for a pair.
    thetas_ : array
        Their θ.
    component_norms_ : array
        Their ‖P_a f‖, in units of y.
    pairs_ : {"all", "screened", "none"}
        Which pairs were candidates.
    note_ : str
        `pairs_` as a sentence, with the reason.
    cv_results_ : dict or None
        Results of all candidates, as in scikit-learn; None if nothing was compared.
    function_ : SplineFunction
        The fitted function of the standardised target.
    size_ : int
        Number of rows with a non-zero weight, plus one for the constant.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import COSSORegressor
    >>> data = make_function("friedman1", 200, random_state=0)
    >>> model = COSSORegressor(random_state=0).fit(data.X, data.y)
    >>> model.components_
    ((0,), (1,), (2,), (3,), (4,), (0, 1))
    """

    function_: SplineFunction

    def __init__(
        self,
        *,
        interactions: Any = "auto",
        penalty: Any = "auto",
        smoothing: Any = "auto",
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.interactions = interactions
        self.penalty = penalty
        self.smoothing = smoothing
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        asked = self._interactions()
        penalties = numbers("penalty", self.penalty, _PENALTIES.tolist())
        smoothings: list[Any] = ["auto"]
        if not (isinstance(self.smoothing, str) and self.smoothing == "auto"):
            smoothings = numbers("smoothing", self.smoothing, [1e-4])
        m, d = len(X), len(Scaling.standard(X).columns) or X.shape[1]
        n_paired = paired_inputs(m, d, memory_bytes(self.memory_budget), must=asked == [True])
        self.pairs_, self.note_ = describe_pairs(d, n_paired, asked)
        if n_paired < 2 and len(asked) > 1:
            asked = [False]
        return [
            Family(
                f"{'pairs' if pairs else 'main effects'}, smoothing {brief(smoothing)}",
                [
                    {"interactions": pairs, "smoothing": smoothing, "penalty": penalty}
                    for penalty in penalties
                ],
                partial(
                    _SplineFits,
                    X,
                    y,
                    None if smoothing == "auto" else [smoothing],
                    penalties,
                    n_paired if pairs else 0,
                ),
            )
            for pairs in asked
            for smoothing in smoothings
        ]

    def _interactions(self) -> list[bool]:
        value = self.interactions
        if isinstance(value, str) and value == "auto":
            return [False, True]
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if not listed or not all(isinstance(v, (bool, np.bool_)) for v in listed):
            raise ValueError(
                f"interactions={value!r} must be 'auto', True, False, or a list of these two to "
                "choose from, e.g. interactions=True"
            )
        return [bool(v) for v in listed]

    def _count_size(self) -> int:
        return int(np.count_nonzero(self.function_.spline.c)) + 1

    def _found(self) -> list[Component]:
        check_is_fitted(self, "function_")
        return kept_components(self.function_) if isinstance(self.function_, SplineFunction) else []

    @property
    def components_(self) -> tuple[tuple[int, ...], ...]:
        """Inputs of the components with θ > 0."""
        return tuple(inputs for inputs, _, _ in self._found())

    @property
    def thetas_(self) -> NDArray[np.float64]:
        """Weights θ of the components."""
        return np.array([theta for _, theta, _ in self._found()])

    @property
    def component_norms_(self) -> NDArray[np.float64]:
        """Norms ‖P_a f‖ of the components, in units of y."""
        return np.array([norm for _, _, norm in self._found()]) * self._unit
