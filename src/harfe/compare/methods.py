"""Registry of the methods that can be compared with harfe.

Each is made for a number of training rows and tunes itself on those rows alone, so that the error
on held-out rows is honest for all. Estimators are imported when they are made, so that listing the
methods is cheap and other packages need not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.arguments import check_choice

# Maximum number of rows of a Gaussian process, which costs the cube of its rows.
PROCESS_ROWS = 500

_INNER_FOLDS = 5
_TREES, _ROUNDS = 300, (50, 150, 400)
_BAGS = 4
_MARS_TERMS = 21
_ALPHAS = np.geomspace(1e-10, 1.0, 6)


@dataclass(frozen=True)
class Method:
    """A method to compare.

    Attributes
    ----------
    about : str
        Description of half a line.
    make : callable
        Seed and number of training rows -> estimator.
    size : callable
        Fitted estimator -> number of features, coefficients or leaves; None if not defined.
    paper : str
        Name in the paper's tables; empty if it is not in them.
    needs : str
        Import name of the package that it needs beyond harfe's dependencies.
    """

    about: str
    make: Callable[[int, int], Any]
    size: Callable[[Any], int | None] = lambda model: None
    paper: str = ""
    needs: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether the package that it needs is installed."""
        return not self.needs or find_spec(self.needs) is not None


def _harfe(seed: int, rows: int) -> Any:
    from harfe.estimators.regressor_cv import HARFERegressorCV

    return HARFERegressorCV(random_state=seed)


def _harfe_fixed(seed: int, rows: int) -> Any:
    from harfe.estimators.regressor import HARFERegressor

    return HARFERegressor(random_state=seed)


def _algorithm1(seed: int, rows: int) -> Any:
    from harfe.estimators.regressor import HARFERegressor

    # The paper's Section 4: s is 5 or 10 % of N, λ is tuned; q and N are up to the user.
    as_printed = HARFERegressor(
        n_nonzero_coefs=0.1,
        weights="uniform",
        bias="uniform",
        step_size=0.1,
        max_iter=50,
        fit_intercept=False,
        input_scale="none",
        input_clip=None,
        random_state=seed,
    )
    grid = {"alpha": _ALPHAS, "n_nonzero_coefs": [0.05, 0.1]}
    return _of_standard_target(_standardised(_tuned(as_printed, grid, seed, rows)))


def _pursuit_without_ridge(seed: int, rows: int) -> Any:
    from harfe.estimators.regressor import HARFERegressor

    pursuit = HARFERegressor(alpha=0.0, random_state=seed)
    sizes = sorted({max(rows // share, 1) for share in (100, 40, 20, 10, 5)})
    return _tuned(pursuit, {"n_nonzero_coefs": sizes}, seed, rows)


def _mean(seed: int, rows: int) -> Any:
    from sklearn.dummy import DummyRegressor

    return DummyRegressor()


def _least_squares(seed: int, rows: int) -> Any:
    from sklearn.linear_model import LinearRegression

    return _standardised(LinearRegression())


def _linear(seed: int, rows: int) -> Any:
    from harfe.tables.judging import linear_model

    return linear_model()


def _lasso(seed: int, rows: int) -> Any:
    from sklearn.linear_model import LassoCV

    return _standardised(LassoCV(eps=1e-4, cv=_inner(seed, rows), max_iter=20_000))


def _elastic_net(seed: int, rows: int) -> Any:
    from sklearn.linear_model import ElasticNetCV

    ratios = [0.1, 0.5, 0.9, 1.0]
    folds = _inner(seed, rows)
    return _standardised(ElasticNetCV(l1_ratio=ratios, eps=1e-4, cv=folds, max_iter=20_000))


def _neighbours(seed: int, rows: int) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    largest = rows * (_INNER_FOLDS - 1) // _INNER_FOLDS - 1
    grid = {"n_neighbors": [k for k in (2, 5, 10, 20) if k <= largest] or [1]}
    return _standardised(_tuned(KNeighborsRegressor(weights="distance"), grid, seed, rows))


def _support_vectors(seed: int, rows: int) -> Any:
    from sklearn.svm import SVR

    grid = {"C": [0.3, 3.0, 30.0], "epsilon": [0.03, 0.2]}
    return _of_standard_target(_standardised(_tuned(SVR(), grid, seed, rows)))


def _neural_net(seed: int, rows: int) -> Any:
    from sklearn.neural_network import MLPRegressor

    net = MLPRegressor(hidden_layer_sizes=(30,), solver="lbfgs", max_iter=500, random_state=seed)
    grid = {"alpha": [1e-3, 1e-1, 1.0, 10.0]}
    return _of_standard_target(_standardised(_tuned(net, grid, seed, rows)))


def _forest(seed: int, rows: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(_TREES, max_features=1 / 3, random_state=seed, n_jobs=-1)


def _boosting(seed: int, rows: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    boosting = HistGradientBoostingRegressor(early_stopping=False, random_state=seed)
    boosting.set_params(min_samples_leaf=min(20, max(rows // 20, 1)))
    return _tuned(boosting, {"max_iter": list(_ROUNDS)}, seed, rows)


def _kernel_ridge(seed: int, rows: int) -> Any:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.preprocessing import FunctionTransformer

    # Inputs are divided by √d, so that gamma is in units of 1/d.
    grid = {"alpha": np.geomspace(1e-8, 10.0, 10), "gamma": [0.01, 0.1, 1.0]}
    ridge = _tuned(KernelRidge(kernel="rbf"), grid, seed, rows)
    return _of_standard_target(_standardised(FunctionTransformer(_per_input), ridge))


def _process(seed: int, rows: int) -> Any:
    from harfe.rivals import ARDProcessRegressor

    return ARDProcessRegressor(max_rows=PROCESS_ROWS, random_state=seed)


def _explainable_boosting(seed: int, rows: int) -> Any:
    from interpret.glassbox import ExplainableBoostingRegressor

    return ExplainableBoostingRegressor(outer_bags=_BAGS, random_state=seed, n_jobs=1)


def _additive_splines(seed: int, rows: int) -> Any:
    from harfe.rivals.additive.gam import PyGAMRegressor

    return PyGAMRegressor()


def _adaptive_splines(seed: int, rows: int) -> Any:
    from pymars import Earth

    # With every row as a knot, the default, 500 rows of 20 inputs take more than ten minutes.
    return Earth(max_degree=2, max_terms=_MARS_TERMS, minspan=max(rows // 20, 1))


def _rival(name: str) -> Callable[[int, int], Any]:
    def make(seed: int, rows: int) -> Any:
        return getattr(import_module("harfe.rivals"), name)(random_state=seed)

    return make


def _per_input(X: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = X / np.sqrt(X.shape[1])
    return scaled


def _standardised(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), *steps)


def _of_standard_target(model: Any) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(model, transformer=StandardScaler())


def _inner(seed: int, rows: int) -> Any:
    from sklearn.model_selection import KFold

    return KFold(min(_INNER_FOLDS, rows), shuffle=True, random_state=seed)


def _tuned(model: Any, grid: dict[str, Any], seed: int, rows: int) -> Any:
    from sklearn.model_selection import GridSearchCV

    return GridSearchCV(model, grid, cv=_inner(seed, rows), scoring="neg_mean_squared_error")


def _kept(model: Any) -> int:
    return len(model.support_)


def _tuned_kept(search: Any) -> int:
    return len(search.best_estimator_.support_)


def _rival_size(model: Any) -> int:
    return int(model.size_)


def _coefficients(pipeline: Any) -> int:
    return int(np.count_nonzero(pipeline[-1].coef_))


def _last(model: Any) -> Any:
    """Return the tuned estimator within a pipeline within a regressor of a standardised target."""
    return model.regressor_[-1].best_estimator_


def _leaves(model: Any) -> int:
    return sum(tree.get_n_leaves() for tree in model.estimators_)


def _boosted(search: Any) -> int:
    from harfe._core.sklearn_compat import boosted_leaves

    return boosted_leaves(search.best_estimator_)


def _net_weights(model: Any) -> int:
    return sum(part.size for part in (*_last(model).coefs_, *_last(model).intercepts_))


#: All methods by name, as in `compare_methods` and `harfe compare --methods`.
METHODS = {
    "harfe": Method("HARFERegressorCV: law learned, settings chosen", _harfe, _kept, paper="HARFE"),
    "harfe-fixed": Method("HARFERegressor: one fit, default settings", _harfe_fixed, _kept),
    "algorithm1": Method(
        "the paper's HARFE, λ and s chosen", _algorithm1, lambda m: _kept(_last(m)), paper="HARFE"
    ),
    "htp": Method(
        "hard thresholding pursuit, no ridge",
        _pursuit_without_ridge,
        _tuned_kept,
        paper="HARFE, λ = 0",
    ),
    "mean": Method("the mean of the target", _mean, lambda m: 1),
    "lm": Method("linear model, least squares", _least_squares, _coefficients, paper="lm"),
    "linear": Method("linear model, ridge penalty chosen", _linear, _coefficients),
    "lasso": Method("sparse linear model", _lasso, _coefficients, paper="Lasso"),
    "elastic-net": Method(
        "linear model, between lasso and ridge", _elastic_net, _coefficients, paper="Elastic Net"
    ),
    "neighbours": Method("mean of the nearest rows", _neighbours),
    "svm": Method(
        "support vector regression", _support_vectors, lambda m: len(_last(m).support_), paper="svm"
    ),
    "mnet": Method("neural network, one hidden layer", _neural_net, _net_weights, paper="mnet"),
    "forest": Method("random forest", _forest, _leaves, paper="rForst"),
    "boosting": Method("gradient-boosted trees", _boosting, _boosted),
    "kernel-ridge": Method(
        "kernel ridge regression, Gaussian kernel",
        _kernel_ridge,
        lambda m: len(_last(m).dual_coef_),
    ),
    "process": Method(
        f"Gaussian process, one scale per input, at most {PROCESS_ROWS} rows", _process, _rival_size
    ),
    "srfe": Method(
        "sparse random features, ℓ1", _rival("SRFERegressor"), _rival_size, paper="SRFE"
    ),
    "shrimp": Method("random features, pruned", _rival("SHRIMPRegressor"), _rival_size),
    "rfrr": Method("random features, ridge, all kept", _rival("RFRRRegressor"), _rival_size),
    "yen": Method("random features drawn in rounds, ℓ1", _rival("YenRegressor"), _rival_size),
    "salsa": Method(
        "additive kernel ridge, order chosen", _rival("SALSARegressor"), _rival_size, paper="SALSA"
    ),
    "kam": Method("additive kernel ridge, order 1", _rival("KAMRegressor"), _rival_size),
    "spam": Method("sparse additive splines", _rival("SpAMRegressor"), _rival_size, paper="SpAM"),
    "cosso": Method(
        "smoothing splines, few components",
        _rival("COSSORegressor"),
        _rival_size,
        paper="COSSO",
    ),
    "ssam": Method(
        "kernel expansions on few index sets", _rival("SSAMRegressor"), _rival_size, paper="SSAM"
    ),
    "anova": Method(
        "cosine expansion on an active set of terms",
        _rival("ANOVARegressor"),
        _rival_size,
        paper="ANOVA",
    ),
    "ebm": Method("explainable boosting machine", _explainable_boosting, needs="interpret"),
    "pygam": Method("additive splines by pyGAM", _additive_splines, _rival_size, needs="pygam"),
    "mars": Method(
        "adaptive regression splines", _adaptive_splines, lambda m: len(m.basis_), needs="pymars"
    ),
}

#: Methods compared by default: fast, and without further packages.
DEFAULT_METHODS = (
    "harfe", "mean", "linear", "lasso", "neighbours", "svm", "forest", "boosting", "process",
)  # fmt: skip


def named(methods: str | Sequence[str]) -> list[str]:
    """Return names of methods, with the groups "default", "paper" and "all" replaced by theirs.

    "paper" means the methods in the paper's tables, "all" those whose packages are installed.
    """
    groups = {
        "default": list(DEFAULT_METHODS),
        "paper": [name for name, method in METHODS.items() if method.paper],
        "all": [name for name, method in METHODS.items() if method.is_installed],
    }
    names: list[str] = []
    for name in [methods] if isinstance(methods, str) else methods:
        check_choice("methods", name, [*METHODS, *groups])
        names += groups.get(name, [name])
    return list(dict.fromkeys(names))
