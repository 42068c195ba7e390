"""KAM: kernel ridge regression with a sum of one-dimensional Gaussian kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from harfe._core.threads import blocks
from harfe.rivals.additive.salsa import ROWS, SALSARegressor, SubsetFunction, subset_kernel


def additive_parts(function: SubsetFunction) -> NDArray[np.float64]:
    """The f_j of a function of order 1 at the training rows, (rows, inputs that vary)."""
    d, m = function.rows.shape
    parts = np.empty((m, d))
    for j, z in enumerate(function.rows[:, None]):
        for rows in blocks(m, ROWS):
            parts[rows, j] = subset_kernel(z[:, rows].copy(), z, 1) @ function.dual / d
    return parts


class KAMRegressor(SALSARegressor):
    """Kernel-based additive model: kernel ridge regression with a sum of one-dimensional kernels.

    Minimises (1/m) Σ_k (y_k - b - Σ_j f_j(x_kj))² + α‖f‖² over the space of the kernel

        K(x, x') = (1/d) Σ_j exp(-(x_j - x'_j)²/(2h_j²)),

    with h_j = c·sd_j·m^(-1/5): SALSA's kernel of order 1. As cited in the paper's introduction;
    original: A. Christmann, D.-X. Zhou: Learning rates for the risk of kernel-based quantile
    regression estimators in additive models, Analysis and Applications, 2016. They treat general
    losses, mainly the pinball loss of quantile regression; here the loss is squared error.

    Parameters
    ----------
    bandwidth : "auto", a number or a list, default="auto"
        The constant c. Lists and "auto" are candidates; "auto" is 20, 6 and 2.
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
    bandwidth_, alpha_
        The chosen settings; also in `best_params_`.
    component_sizes_ : array of shape (n_features_in_,)
        Standard deviation of every f_j over the training rows, in units of y; 0 for a constant
        input.
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
    >>> from harfe.rivals import KAMRegressor
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = KAMRegressor(bandwidth=20, random_state=0).fit(data.X, data.y)
    >>> int(model.component_sizes_.argmax())
    3
    """

    #: Fixed, hence not a parameter.
    order = 1

    def __init__(
        self,
        *,
        bandwidth: Any = "auto",
        alpha: Any = "auto",
        memory_budget: float | str = "auto",
        cv: Any = 5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.memory_budget = memory_budget
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _named(self, order: int, bandwidth: float) -> dict[str, Any]:
        return {"bandwidth": bandwidth}

    @property
    def component_sizes_(self) -> NDArray[np.float64]:
        """Standard deviation of every f_j over the training rows, in units of y."""
        check_is_fitted(self, "function_")
        sizes = np.zeros(self.n_features_in_)
        if isinstance(self.function_, SubsetFunction):  # not a constant
            deviations = additive_parts(self.function_).std(axis=0)
            sizes[self.function_.scaling.columns] = deviations * self._unit
        return sizes
