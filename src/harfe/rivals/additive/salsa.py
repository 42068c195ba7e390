"""SALSA: kernel ridge regression with all products of q one-dimensional Gaussian kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from harfe._core.threads import blocks, memory_bytes
from harfe.features.law_kernels import KernelSum
from harfe.rivals._base import Rival
from harfe.rivals._scaling import Scaling
from harfe.rivals._search import Family
from harfe.rivals._settings import counts, numbers
from harfe.rivals.solvers.ridge_path import RidgePath, cuts_in_two

# Constants c of the rule of thumb c·sd·m^(-1/5): SALSA's own, and two that give narrower kernels.
_BANDWIDTHS = (20.0, 6.0, 2.0)

# Ridge weights half a decade apart, the strongest first; whole decades raise the cross-validation
# error by up to 2.4 % on the paper's datasets.
_ALPHAS = np.geomspace(10.0, 1e-10, 23)

# SALSA stops after this many orders without improvement; few problems need more than ten.
_PATIENCE = 3
_LARGEST_ORDER = 10

# Kernel-sized matrices in memory at a time: the kernel of the best settings and its eigenvectors,
# another kernel, its copy and the workspace of its eigendecomposition.
_KERNELS = 7

# Rows predicted at a time.
ROWS = 1024

# Distances in bandwidths are clipped to this: kernels are 0 long before, and squares stay finite.
_FAR = 1e150


def factor_weight(d: int, order: int) -> float:
    """The p for which e_q(p, ..., p) = C(d, q) p^q = 1: sums over all subsets stay in range."""
    log_count = gammaln(d + 1) - gammaln(order + 1) - gammaln(d - order + 1)
    return float(np.exp(-log_count / order))


def subset_kernel(
    ZT: NDArray[np.float64], other: NDArray[np.float64] | None, order: int
) -> NDArray[np.float64]:
    """The mean over all subsets S of q inputs of Π_{j∈S} exp(-(z_j - z'_j)²).

    Computed by the recurrence e_r ← e_r + u_j e_{r-1} over the inputs; all numbers are positive, so
    nothing cancels. Inputs come transposed, (inputs, rows); without `other`, the kernel of the rows
    with themselves.
    """
    d = len(ZT)
    eta = np.zeros(order + 1)
    eta[order] = 1.0
    p = np.full(d, factor_weight(d, order))
    return KernelSum(np.ones(d), 0, p, eta).values(ZT, other)


def held_out_by_kernel(
    path: RidgePath,
    K: NDArray[np.float64],
    y: NDArray[np.float64],
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Predictions at the second rows of a fold from ridge fits on the first, (weights, rows).

    If the fold partitions all rows, the decomposition of all rows is used; otherwise (e.g. for a
    growing time window) the fold gets its own.
    """
    train, out = fold
    if cuts_in_two(train, out, len(y)):
        return path.held_out(out, weights)
    own = RidgePath.of_kernel(K[np.ix_(train, train)], y[train])
    across = K[np.ix_(out, train)]
    duals = [own.dual(a) for a in weights]
    return np.array([across @ v + b for v, b in duals])


@dataclass(frozen=True)
class SubsetFunction:
    """f(x) = b + Σ_i v_i K_q(x, x_i).

    Attributes
    ----------
    scaling : Scaling
        To mean 0 and standard deviation 1.
    width : float
        Width of the Gaussian kernels, in standard deviations.
    order : int
    rows : array of shape (inputs that vary, m)
        The x_i, in units of √2 · width.
    dual : array of shape (m,)
        The v_i.
    constant : float
    """

    scaling: Scaling
    width: float
    order: int
    rows: NDArray[np.float64]
    dual: NDArray[np.float64]
    constant: float

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at the rows of X."""
        values = np.empty(len(X))
        for part in blocks(len(X), ROWS):
            ZT = in_widths(self.scaling, self.width, X[part])
            values[part] = subset_kernel(ZT, self.rows, self.order) @ self.dual
        return values + self.constant


def in_widths(scaling: Scaling, width: float, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs in units of √2 · width, (inputs that vary, rows)."""
    with np.errstate(over="ignore"):
        Z = scaling.apply(X) / (np.sqrt(2) * width)
    return np.ascontiguousarray(np.clip(Z, -_FAR, _FAR).T)


@dataclass(frozen=True)
class _SubsetFits:
    """Fits with one kernel: all folds and all weights share its eigendecomposition."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    order: int
    width: float
    alphas: NDArray[np.float64]

    @cached_property
    def _scaling(self) -> Scaling:
        return Scaling.standard(self.X)

    @cached_property
    def _rows(self) -> NDArray[np.float64]:
        return in_widths(self._scaling, self.width, self.X)

    @cached_property
    def _kernel(self) -> NDArray[np.float64]:
        return subset_kernel(self._rows, None, self.order)

    @cached_property
    def _ridge(self) -> RidgePath:
        return RidgePath.of_kernel(self._kernel, self.y)

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""
        weights = self.alphas * len(self.y)
        return held_out_by_kernel(self._ridge, self._kernel, self.y, (train, out), weights)

    def fit(self, which: int) -> SubsetFunction:
        """The fit on all rows with one of the settings."""
        v, b = self._ridge.dual(self.alphas[which] * len(self.y))
        return SubsetFunction(self._scaling, self.width, self.order, self._rows, v, b)


class SALSARegressor(Rival):
    """Shrunk additive least squares approximation: kernel ridge regression of an additive order.

    Minimises (1/m) Σ_k (y_k - b - f(x_k))² + α‖f‖² over the space of the kernel

        K_q(x, x') = C(d, q)⁻¹ Σ_{|S|=q} Π_{j∈S} exp(-(x_j - x'_j)²/(2h_j²)),

    which contains sums of functions of q inputs each, with h_j = c·sd_j·m^(-1/5). As in the paper's
    Table 4; original: K. Kandasamy, Y. Yu: Additive approximations in high dimensional
    nonparametric regression via the SALSA, ICML 2016. Their program uses one c; here several are
    candidates, because noise-free targets need narrower kernels. The sum over subsets is divided by
    their number, so that α means the same at every order.

    Parameters
    ----------
    order : "auto", int or list, default="auto"
        Inputs in a product, q. "auto" is 1, 2, 3, ... up to 10 or the number of inputs, stopping
        after three orders in a row without improvement.
    bandwidth : "auto", a number or a list, default="auto"
        The constant c. Lists and "auto" are candidates; "auto" is 20 (SALSA's), 6 and 2.
    alpha : "auto", a number or a list, default="auto"
        Ridge weight, above 0. "auto" is 23 numbers from 10 to 1e-10. In the folds, α is
        scaled so that α times the number of rows is the same as in the final fit.
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
    order_, bandwidth_, alpha_
        The chosen settings; also in `best_params_`.
    cv_results_ : dict or None
        Results of all candidates, as in scikit-learn; None if nothing was compared.
    function_ : SubsetFunction
        The fitted function of the standardised target.
    size_ : int
        Number of rows with a non-zero weight, plus one for the constant.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    Examples
    --------
    >>> from harfe.datasets import make_function
    >>> from harfe.rivals import SALSARegressor
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = SALSARegressor([1, 2], bandwidth=20, random_state=0).fit(data.X, data.y)
    >>> model.order_
    2
    """

    function_: SubsetFunction

    def __init__(
        self,
        order: Any = "auto",
        *,
        bandwidth: Any = "auto",
        alpha: Any = "auto",
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.order = order
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _families(self, X: NDArray[np.float64], y: NDArray[Any], seed: int) -> list[Family]:
        m = len(X)
        orders = self._orders(len(Scaling.standard(X).columns) or X.shape[1])
        bandwidths = self._bandwidths()
        alphas = np.array(numbers("alpha", self.alpha, _ALPHAS.tolist()))
        _check_memory(type(self).__name__, m, memory_bytes(self.memory_budget))
        return [
            Family(
                ", ".join(f"{name} {value:g}" for name, value in shared.items()),
                [{**shared, "alpha": alpha} for alpha in alphas.tolist()],
                lambda q=q, c=c: _SubsetFits(X, y, q, c * m**-0.2, alphas),  # type: ignore[misc]
            )
            for q in orders
            for c in bandwidths
            for shared in [self._named(q, c)]
        ]

    def _orders(self, d: int) -> list[int]:
        auto = range(1, _LARGEST_ORDER + 1)
        orders = counts("order", self.order, auto, most=d, of="inputs that vary")
        for q in orders:
            # (1 + p)^d is the sum of the polynomials of all degrees in the recurrence.
            if d * log1p(factor_weight(d, q)) > 700:
                raise ValueError(
                    f"order={self.order!r} with {d} inputs leaves the range of floating-point "
                    f"numbers; pass a smaller order, e.g. order={_LARGEST_ORDER}"
                )
        return orders

    def _bandwidths(self) -> list[float]:
        return numbers("bandwidth", self.bandwidth, _BANDWIDTHS)

    def _named(self, order: int, bandwidth: float) -> dict[str, Any]:
        """The settings that define one kernel."""
        return {"order": order, "bandwidth": bandwidth}

    def _enough(self, errors: Sequence[float]) -> bool:
        if not isinstance(self.order, str):  # an explicit list is tried to its end
            return False
        each = len(self._bandwidths())
        by_order = [min(errors[i : i + each]) for i in range(0, len(errors), each)]
        return len(errors) % each == 0 and len(by_order) - 1 - int(np.argmin(by_order)) >= _PATIENCE

    def _count_size(self) -> int:
        return int(np.count_nonzero(self.function_.dual)) + 1


def _check_memory(name: str, m: int, budget: float) -> None:
    needed = _KERNELS * 8 * m**2
    if needed > budget:
        raise MemoryError(
            f"{name} needs about {needed:.2g} bytes for kernels of {m} rows, but memory_budget is "
            f"{budget:.2g}; fit fewer rows, or pass memory_budget={needed:.2g} if that much is free"
        )
