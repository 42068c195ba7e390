"""SSAM: sparse shrunk additive models, a group lasso on kernel expansions of a few inputs each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from harfe._core.arguments import check_choice, check_count
from harfe._core.threads import blocks as row_blocks
from harfe._core.threads import memory_bytes
from harfe.rivals._base import Constant, Rival
from harfe.rivals._scaling import Scaling
from harfe.rivals._search import Family
from harfe.rivals._settings import counts, numbers
from harfe.rivals.additive.set_expansion import (
    IndexSet,
    SetBlock,
    SetExpansion,
    feature_block,
    kernel_block,
    plain_block,
)
from harfe.rivals.solvers.group_lasso import group_lasso_path

# Shares of λ_max.
_ALPHAS = np.geomspace(1.0, 1e-4, 25)
_ORDERS = (1, 2)
# In standard deviations of the inputs, the smoothest first.
_BANDWIDTHS = (2.0, 1.0, 0.5)

# Shares of λ_max along which order 1 screens inputs for pairs.
_SCREENING = np.geomspace(1.0, 1e-2, 13)

# Kernels are used while index sets times rows² is at most this; beyond, features are as good and
# faster. It does not depend on free memory, so that the result does not either.
_MOST_KERNEL_NUMBERS = 1.5e8

# Approximate number of columns of a reduced kernel of two inputs, measured for bandwidth 0.5.
_KERNEL_RANK = 150

# Duality gaps as shares of the objective: of fits that are compared, and of the final fit.
_TOL, _FINAL_TOL = 1e-3, 1e-6
_SWEEPS, _FINAL_SWEEPS = 100, 5000

# Rows predicted at a time.
_ROWS = 512


@dataclass(frozen=True)
class Design:
    """The expansions of all index sets at some rows, ready for the group lasso.

    Attributes
    ----------
    scaling : Scaling
    expansion : SetExpansion
    sets : sequence of IndexSet
        Positions among the inputs that vary.
    blocks : sequence of SetBlock
    pairs : {"all", "screened", "none"}
    """

    scaling: Scaling
    expansion: SetExpansion
    sets: Sequence[IndexSet]
    blocks: Sequence[SetBlock]
    pairs: str

    def columns(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns of the group lasso at other rows."""
        Z = self.scaling.apply(X)
        parts = [
            block.columns(self.expansion.evaluate(one, Z))
            for one, block in zip(self.sets, self.blocks, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def split(self, beta: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Coefficients of the columns, set by set."""
        return np.split(beta, np.cumsum([block.F.shape[1] for block in self.blocks])[:-1])


@dataclass(frozen=True)
class Plan:
    """All settings of a fit except the penalty's weight."""

    order: int
    bandwidth: float
    kind: str
    penalty: str
    n_components: int
    max_pairs: int
    seed: int

    def design(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Design:
        """Index sets and their expansions; y is used only to screen pairs."""
        scaling = Scaling.standard(X)
        Z = scaling.apply(X)
        expansion = SetExpansion(
            self.kind, self.bandwidth, Z, scaling.columns, self.n_components, self.seed
        )
        d = Z.shape[1]
        singles: list[IndexSet] = [(j,) for j in range(d)]
        pairs: list[IndexSet] = list(combinations(range(d), 2)) if self.order == 2 else []
        how = "all" if pairs else "none"
        if len(pairs) > self.max_pairs:
            norms = replace(self, order=1)._norms(X, y)
            pairs, how = strongest_pairs(norms, self.max_pairs), "screened"
        sets = singles + pairs
        return Design(scaling, expansion, sets, [self._block(expansion, s) for s in sets], how)

    def path(self, design: Design, y: NDArray[np.float64], shares: Any, **options: Any) -> Any:
        """The group lasso (or lasso) on a design; y is centred."""
        blocks = [block.F for block in design.blocks]
        return group_lasso_path(blocks, y, shares, by_column=self.penalty == "l1", **options)

    def _block(self, expansion: SetExpansion, index_set: IndexSet) -> SetBlock:
        if self.kind == "kernels" and self.penalty == "group":
            return kernel_block(expansion.inputs(index_set), self.bandwidth)
        values = expansion.evaluate(index_set, expansion.rows)
        return feature_block(values) if self.penalty == "group" else plain_block(values)

    def _norms(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        design = self.design(X, y)
        path = self.path(design, y - y.mean(), _SCREENING, tol=_TOL, max_sweeps=_SWEEPS)
        return component_norms(design, path.coefficients[-1])


def strongest_pairs(norms: NDArray[np.float64], most: int) -> list[IndexSet]:
    """Pairs of inputs with non-zero components, the largest product of norms first."""
    pairs: list[IndexSet] = list(combinations(np.flatnonzero(norms).tolist(), 2))
    return sorted(pairs, key=lambda pair: -norms[pair[0]] * norms[pair[1]])[:most]


def component_norms(design: Design, beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root-mean-square of every component on the rows of the design."""
    parts = zip(design.blocks, design.split(beta), strict=True)
    fitted = [block.F @ part if part.any() else np.zeros(1) for block, part in parts]
    return np.array([np.sqrt(np.mean(values**2)) for values in fitted])


@dataclass(frozen=True)
class SparseExpansion:
    """f(x) = b + Σ_j Σ_i α_i^(j) e_i^(j)(x), over the kept index sets j.

    Attributes
    ----------
    scaling : Scaling
    expansion : SetExpansion
    sets : list of IndexSet
        Positions among the inputs that vary, the largest component first.
    coefficients : list of arrays
        α^(j).
    norms : array
        Root-mean-square of the components on the training rows.
    intercept : float
        b.
    pairs : str
    """

    scaling: Scaling
    expansion: SetExpansion
    sets: list[IndexSet]
    coefficients: list[NDArray[np.float64]]
    norms: NDArray[np.float64]
    intercept: float
    pairs: str

    @classmethod
    def of(cls, design: Design, beta: NDArray[np.float64], mean: float) -> SparseExpansion:
        """The function with coefficients β of the columns of a design."""
        norms = component_norms(design, beta)
        parts = design.split(beta)
        kept = sorted(np.flatnonzero(norms).tolist(), key=lambda j: -norms[j])
        return cls(
            design.scaling,
            design.expansion,
            [design.sets[j] for j in kept],
            [design.blocks[j].to_expansion(parts[j]) for j in kept],
            norms[kept],
            mean - float(sum(design.blocks[j].mean @ parts[j] for j in kept)),
            design.pairs,
        )

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at the rows of X."""
        values = np.full(len(X), self.intercept)
        for rows in row_blocks(len(X), _ROWS):
            Z = self.scaling.apply(X[rows])
            for index_set, alpha in zip(self.sets, self.coefficients, strict=True):
                values[rows] += self.expansion.evaluate(index_set, Z) @ alpha
        return values


@dataclass(frozen=True)
class _SetFits:
    """Fits of one plan; index sets are screened separately in every fold."""

    plan: Plan
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    shares: NDArray[np.float64]

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[np.float64]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        y = self.y[train]
        mean = y.mean()
        design = self.plan.design(self.X[train], y)
        columns = design.columns(self.X[out])
        watched = (columns, self.y[out] - mean)
        path = self.plan.path(
            design, y - mean, self.shares, watched=watched, tol=_TOL, max_sweeps=_SWEEPS
        )
        predicted: NDArray[np.float64] = mean + path.coefficients @ columns.T
        return predicted

    def fit(self, which: int) -> SparseExpansion:
        """The fit on all rows with one of the settings."""
        share, mean = self.shares[which], float(self.y.mean())
        # Larger penalties come first: each solution starts the next.
        shares = np.append(_ALPHAS[share < _ALPHAS], share)
        design = self.plan.design(self.X, self.y)
        path = self.plan.path(
            design, self.y - mean, shares, tol=_FINAL_TOL, max_sweeps=_FINAL_SWEEPS
        )
        return SparseExpansion.of(design, path.coefficients[-1], mean)


class SSAMRegressor(Rival):
    """Sparse shrunk additive model: kernel expansions of one or two inputs, few of them kept.

    Minimises (1/m) Σ_k (y_k - f(x_k))² + λ Σ_j ‖α^(j)‖ over functions of the data-dependent space
    f(x) = b + Σ_j Σ_i α_i^(j) K^(j)(x_i^(j), x^(j)), where j runs over the sets of at most `order`
    inputs and x^(j) are the inputs of j: SSAM of the paper's Table 4. The penalty is on the
    coefficients, not on a norm of functions, so kernels need not be positive definite; here they
    are Gaussian. ‖·‖ is the Euclidean norm (whole index sets drop out) or the ℓ1 norm (single
    coefficients drop out).

    Only the abstract and introduction of the original were available, not its equations. The space
    and the kind of penalty follow descriptions by others; weights of 1, the choice of norms, the
    intercept, the bandwidths and the screening of pairs are choices of this package. If there are
    too many kernels, random Fourier features of each index set replace them, K ≈ φφᵀ, with the same
    penalty on the coefficients of φ, which then penalises the size of the function.

    Parameters
    ----------
    order, bandwidth, alpha : "auto", a number or a list, default="auto"
        Largest number of inputs in an index set (1 or 2), width of the Gaussian kernels in standard
        deviations of the inputs, and λ/λ_max, where λ_max is the smallest λ at which all
        coefficients are zero (computed for each fold). Lists and "auto" are candidates, chosen by
        cross-validation; "auto" is (1, 2), (2, 1, 0.5) and 25 numbers from 1 to 1e-4.
    penalty : {"group", "l1"}, default="group"
        Norm of the coefficients of an index set.
    expansion : {"auto", "kernels", "features"}, default="auto"
        "auto" uses kernels if (index sets) · (rows)² is at most 1.5e8 and they fit in memory.
    n_components : int, default=50
        Random frequencies per index set; each gives two features, a cosine and a sine.
    max_pairs : int, default=250
        If there are more pairs of inputs than this, only pairs of inputs that order 1 selects (at
        λ = λ_max/100, on the same rows) are used, at most this many, those with the largest product
        of norms first. A pair of inputs without main effects is then missed.
    memory_budget : "auto" or float, default="auto"
        Bytes a fit may use; "auto" is half of the free memory.
    cv : int, splitter or iterable, default=5
        Cross-validation folds that choose the settings.
    verbose : bool, default=False
        Print progress to standard error: candidates tried, best so far, time left.
    random_state : int, RandomState instance or None, default=None
        Seed of random features and folds.

    Attributes
    ----------
    order_, bandwidth_, alpha_
        The chosen settings; also in `best_params_`.
    components_ : list of tuples of int
        Kept index sets, the largest component first.
    component_norms_ : array
        Root-mean-square of these components on the training rows, in units of y.
    pairs_ : {"all", "screened", "none"}
        Which pairs of inputs were candidates.
    expansion_kind_ : {"kernels", "features", "none"}
        What the components are expanded in; "none" if nothing could be learned.
    cv_results_ : dict or None
        Results of all candidates, as in scikit-learn; None if nothing was compared.
    size_ : int
        Number of non-zero coefficients.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    G. Liu, H. Chen, H. Huang: Sparse shrunk additive models, ICML 2020. A. Rahimi, B. Recht: Random
    features for large-scale kernel machines, NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from harfe.rivals import SSAMRegressor
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = SSAMRegressor(order=2, bandwidth=1.0, alpha=0.4).fit(X, y)
    >>> model.components_
    [(0,), (1, 2)]
    """

    function_: SparseExpansion | Constant

    def __init__(
        self,
        *,
        order: Any = "auto",
        bandwidth: Any = "auto",
        alpha: Any = "auto",
        penalty: str = "group",
        expansion: str = "auto",
        n_components: int = 50,
        max_pairs: int = 250,
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.order = order
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.penalty = penalty
        self.expansion = expansion
        self.n_components = n_components
        self.max_pairs = max_pairs
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        d = X.shape[1]
        orders = counts("order", self.order, _ORDERS, most=d, of="inputs")
        if max(orders) > 2:
            raise ValueError(
                f"order={self.order!r} is above 2, but index sets of more than two inputs are not "
                "supported; pass order=2"
            )
        bandwidths = numbers("bandwidth", self.bandwidth, _BANDWIDTHS)
        shares = np.array(numbers("alpha", self.alpha, _ALPHAS.tolist()))
        check_choice("penalty", self.penalty, ("group", "l1"))
        check_choice("expansion", self.expansion, ("auto", "kernels", "features"))
        check_count("n_components", self.n_components, 50)
        check_count("max_pairs", self.max_pairs, 250)
        families = []
        for order in orders:
            kind = self._kind(len(X), d, order)
            for bandwidth in bandwidths:
                plan = Plan(
                    order, bandwidth, kind, self.penalty, self.n_components, self.max_pairs, seed
                )
                shared = {"order": order, "bandwidth": bandwidth}
                families.append(
                    Family(
                        f"order {order}, bandwidth {bandwidth:.3g}",
                        [{**shared, "alpha": float(share)} for share in shares],
                        lambda plan=plan: _SetFits(plan, X, y, shares),  # type: ignore[misc]
                    )
                )
        return families

    def _kind(self, m: int, d: int, order: int) -> str:
        """Whether to use kernels or features."""
        n_sets = d + (min(d * (d - 1) // 2, self.max_pairs) if order == 2 else 0)
        budget = memory_bytes(self.memory_budget)
        width = m if self.penalty == "l1" else min(m, _KERNEL_RANK)
        # The blocks, their maps back, the solver's copy, and the held-out rows.
        need = {"kernels": 32.0 * n_sets * m * width}
        need["features"] = 64.0 * n_sets * m * self.n_components
        kind = self.expansion
        if kind == "auto":
            few = n_sets * m**2 <= _MOST_KERNEL_NUMBERS
            kind = "kernels" if few and need["kernels"] <= budget else "features"
        if need[kind] > budget:
            raise MemoryError(
                f"{n_sets} index sets of {kind} at {m} rows need {need[kind]:.2g} bytes, more than "
                f"memory_budget={self.memory_budget!r}; pass order=1, max_pairs below "
                f"{self.max_pairs}, or expansion='features' with n_components below "
                f"{self.n_components}"
            )
        return kind

    @property
    def components_(self) -> list[IndexSet]:
        """Kept index sets, the largest component first."""
        check_is_fitted(self, "function_")
        if isinstance(self.function_, Constant):
            return []
        inputs = self.function_.scaling.columns
        return [tuple(int(inputs[j]) for j in one) for one in self.function_.sets]

    @property
    def component_norms_(self) -> NDArray[np.float64]:
        """Root-mean-square of these components on the training rows, in units of y."""
        check_is_fitted(self, "function_")
        if isinstance(self.function_, Constant):
            return np.zeros(0)
        return self.function_.norms * self._unit

    @property
    def pairs_(self) -> str:
        """Which pairs of inputs were candidates."""
        check_is_fitted(self, "function_")
        return "none" if isinstance(self.function_, Constant) else self.function_.pairs

    @property
    def expansion_kind_(self) -> str:
        """What the components are expanded in."""
        check_is_fitted(self, "function_")
        return "none" if isinstance(self.function_, Constant) else self.function_.expansion.kind

    def _count_size(self) -> int:
        assert isinstance(self.function_, SparseExpansion)
        return int(sum(np.count_nonzero(alpha) for alpha in self.function_.coefficients))
