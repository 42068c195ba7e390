"""The methods that a study can compare: one adapter each, with the same interface.

An adapter is a frozen dataclass; its fields are the settings that `[methods.NAME.settings]` may
set, including grids, so that the hash of a result covers them. `fit` sees training rows only.
Libraries are imported inside `fit`: a worker limits their threads before loading them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

# The same folds for every method and seed: a deterministic method stays deterministic.
_N_FOLDS, _FOLD_SEED = 5, 0


@dataclass(frozen=True)
class Fitted:
    """A fitted model, its size, and the settings that tuning chose."""

    model: Any
    n_terms: int
    chosen: Mapping[str, Any]
    #: What figures need in addition to the errors, as data that JSON can represent.
    details: Mapping[str, Any] = field(default_factory=dict)
    #: Processor time of the part that a study measures; None means all of `fit`.
    seconds: float | None = None


class Adapter(Protocol):
    """What a study needs from a method."""

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Tune and fit on these rows; `paper` holds the paper's settings for the problem."""


@dataclass(frozen=True)
class HarfeCV:
    """HARFERegressorCV with its defaults, except for the arguments in `options`."""

    options: dict[str, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """What determines a fit; once two arguments were settings, and their rows stay valid."""
        return {"law": "auto", "refine": True} | self.options

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Fit; the estimator tunes itself."""
        from harfe import HARFERegressorCV

        model = HARFERegressorCV(**self.options, random_state=seed).fit(X, y)
        if model.learned_law_ is None:
            chosen = {name: getattr(model, f"{name}_") for name in ("order", "scale", "alpha")}
        else:
            chosen = {"law": model.learned_law_.candidate, "fit": model.fit_}
        return Fitted(model, len(model.support_), chosen)


@dataclass(frozen=True)
class Algorithm1:
    """The paper's Algorithm 1; settings not given are the paper's for the problem."""

    step_size: float
    column_scale: str
    max_iter: int
    n_components: int | None = None
    n_nonzero_coefs: int | None = None
    order: int | None = None
    alpha: float | None = None

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Fit once, without tuning."""
        from harfe import HARFERegressor

        names = {"n_components": "N", "n_nonzero_coefs": "s", "order": "q", "alpha": "m_lambda"}
        given = {name: getattr(self, name) for name in names}
        missing = [name for name in names if given[name] is None and names[name] not in paper]
        if missing:
            raise ValueError(
                f"algorithm1: the paper has no {', '.join(missing)} for this problem. Give it in "
                "[methods.NAME.by_problem.PROBLEM]."
            )
        settings = {
            name: paper[symbol] if given[name] is None else given[name]
            for name, symbol in names.items()
        }
        model = HARFERegressor(
            **settings,
            weights="uniform",
            bias="uniform",
            init="zero",
            step_size=self.step_size,
            max_iter=self.max_iter,
            fit_intercept=False,
            input_scale="none",
            input_clip=None,
            column_scale=self.column_scale,
            random_state=seed,
        ).fit(X, y)
        return Fitted(model, int(model.n_nonzero_coefs_), settings)


@dataclass(frozen=True)
class Lasso:
    """LassoCV over its own path of penalties."""

    n_alphas: int

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Choose the penalty by cross-validation."""
        from sklearn.linear_model import LassoCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        lasso = LassoCV(alphas=self.n_alphas, cv=_folds(), max_iter=5000)
        model = make_pipeline(StandardScaler(), lasso).fit(X, y)
        return Fitted(model, int(np.count_nonzero(lasso.coef_)), {"alpha": lasso.alpha_})


@dataclass(frozen=True)
class Forest:
    """Random forest, tuned with few trees and fitted with many."""

    n_trees_tuning: int
    n_trees: int
    max_features: tuple[float, ...]
    min_samples_leaf: tuple[int, ...]

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Choose the share of inputs per split and the rows per leaf by cross-validation."""
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(self.n_trees_tuning, random_state=seed)
        grid = {"max_features": self.max_features, "min_samples_leaf": self.min_samples_leaf}
        chosen = _search(forest, grid, X, y, refit=False).best_params_
        model = forest.set_params(n_estimators=self.n_trees, **chosen).fit(X, y)
        return Fitted(model, sum(tree.get_n_leaves() for tree in model.estimators_), chosen)


@dataclass(frozen=True)
class Boosting:
    """Histogram gradient boosting without early stopping, so that nothing is drawn."""

    max_iter: tuple[int, ...]
    learning_rate: tuple[float, ...]
    max_leaf_nodes: tuple[int, ...]
    min_samples_leaf: tuple[int, ...]

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Choose all four settings by cross-validation."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        boosting = HistGradientBoostingRegressor(early_stopping=False, random_state=0)
        grid = {
            "max_iter": self.max_iter,
            "learning_rate": self.learning_rate,
            "max_leaf_nodes": self.max_leaf_nodes,
            "min_samples_leaf": self.min_samples_leaf,
        }
        search = _search(boosting, grid, X, y)
        # scikit-learn has no public name for the trees of this model.
        trees = [tree for (tree,) in search.best_estimator_._predictors]
        return Fitted(search, sum(tree.get_n_leaf_nodes() for tree in trees), search.best_params_)


@dataclass(frozen=True)
class SupportVectors:
    """Support vector regression, Gaussian kernel; gamma in units of 1 / (number of inputs)."""

    C: tuple[float, ...]
    gamma_times_d: tuple[float, ...]
    epsilon: tuple[float, ...]
    max_iter: int

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Choose all three settings by cross-validation."""
        from sklearn.svm import SVR

        model = _standardised(SVR(cache_size=500, max_iter=self.max_iter))
        grid = {
            "regressor__model__C": self.C,
            "regressor__model__gamma": tuple(g / X.shape[1] for g in self.gamma_times_d),
            "regressor__model__epsilon": self.epsilon,
        }
        search = _search(model, grid, X, y)
        svr = search.best_estimator_.regressor_["model"]
        return Fitted(search, len(svr.support_), _short(search.best_params_))


@dataclass(frozen=True)
class KernelRidge:
    """Kernel ridge regression, Gaussian kernel; gamma in units of 1 / (number of inputs).

    `tune_rows` and `fit_rows` are upper limits, for large tables; the seed draws the rows.
    """

    alpha: tuple[float, ...]
    gamma_times_d: tuple[float, ...]
    tune_rows: int | None = None
    fit_rows: int | None = None

    def facts(self) -> dict[str, Any]:
        """What determines a fit; rows without limits are older than the limits."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Choose both settings by cross-validation."""
        from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

        model = _standardised(SklearnKernelRidge(kernel="rbf"))
        grid = {
            "regressor__model__alpha": self.alpha,
            "regressor__model__gamma": tuple(g / X.shape[1] for g in self.gamma_times_d),
        }
        chosen = _search(model, grid, *_some(X, y, self.tune_rows, seed), refit=False).best_params_
        X, y = _some(X, y, self.fit_rows, seed)
        return Fitted(model.set_params(**chosen).fit(X, y), len(X), _short(chosen))


@dataclass(frozen=True)
class GaussianProcess:
    """Gaussian process with a length scale per input, set by maximum likelihood."""

    max_rows: int
    condition_on_all: bool
    max_iter: int
    start_lengths: tuple[float, ...]

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Maximise the likelihood, on a sample of rows drawn by the seed beyond `max_rows`."""
        from harfe.rivals import ARDProcessRegressor

        model = ARDProcessRegressor(
            max_rows=self.max_rows,
            condition_on_all=self.condition_on_all,
            max_iter=self.max_iter,
            start_lengths=self.start_lengths,
            random_state=seed,
        ).fit(X, y)
        return Fitted(model, model.size_, {"noise": float(np.exp(model.theta_[-1]))})


@dataclass(frozen=True)
class Registered:
    """A method of harfe's own registry, as in `harfe compare`; it tunes itself."""

    name: str

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Tune and fit; report `best_params_` if the estimator has them."""
        from harfe.compare import METHODS

        method = METHODS[self.name]
        model = method.make(seed, len(y)).fit(X, y)
        told = getattr(model, "best_params_", {})
        # Leave out laws, which are long.
        brief = {
            name: value for name, value in told.items() if isinstance(value, int | float | str)
        }
        return Fitted(model, method.size(model) or 0, brief)


def _folds() -> Any:
    from sklearn.model_selection import KFold

    return KFold(_N_FOLDS, shuffle=True, random_state=_FOLD_SEED)


def _some(X: np.ndarray, y: np.ndarray, most: int | None, seed: int) -> tuple[Any, Any]:
    """At most so many rows, drawn at random; all of them in their order if there are no more."""
    if most is None or len(X) <= most:
        return X, y
    rows = np.random.default_rng(seed).permutation(len(X))[:most]
    return X[rows], y[rows]


def _standardised(regressor: Any) -> Any:
    """The regressor on standardised inputs and a standardised target."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = Pipeline([("scale", StandardScaler()), ("model", regressor)])
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler())


def _search(model: Any, grid: Mapping[str, Any], X: Any, y: Any, refit: bool = True) -> Any:
    from sklearn.model_selection import GridSearchCV

    scoring = "neg_mean_squared_error"
    return GridSearchCV(model, grid, scoring=scoring, cv=_folds(), refit=refit).fit(X, y)


def _short(chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {name.rpartition("__")[2]: value for name, value in chosen.items()}


ADAPTERS: dict[str, type] = {
    "harfe_cv": HarfeCV,
    "algorithm1": Algorithm1,
    "lasso": Lasso,
    "forest": Forest,
    "boosting": Boosting,
    "svr": SupportVectors,
    "kernel_ridge": KernelRidge,
    "gaussian_process": GaussianProcess,
    "registered": Registered,
}
