"""A league table on one's own data: harfe and standard methods of scikit-learn, on the same folds.

`METHODS` is the one place that names them. Each is made for a number of training rows and tunes
itself on those alone, so that the error on held-out rows is honest for all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from harfe.arguments import check_choice
from harfe.table import Table

# A Gaussian process costs the cube of its rows: more are thinned out.
_PROCESS_ROWS, _PROCESS_INPUTS = 500, 30
_INNER_FOLDS = 5
_MANY_ROWS = 20_000
_TREES, _ROUNDS = 300, (50, 150, 400)


@dataclass(frozen=True)
class Method:
    """A way to fit.

    Attributes
    ----------
    about : str
        In half a line.
    make : callable
        Seed and number of training rows -> estimator.
    size : callable
        Fitted estimator -> number of terms, coefficients or leaves; None if there is no such.
    """

    about: str
    make: Callable[[int, int], Any]
    size: Callable[[Any], int | None] = lambda model: None


def _harfe(seed: int, rows: int) -> Any:
    from harfe.selection import HARFERegressorCV

    return HARFERegressorCV(random_state=seed)


def _harfe_fixed(seed: int, rows: int) -> Any:
    from harfe.estimator import HARFERegressor

    return HARFERegressor(random_state=seed)


def _mean(seed: int, rows: int) -> Any:
    from sklearn.dummy import DummyRegressor

    return DummyRegressor()


def _linear(seed: int, rows: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return _standardised(RidgeCV(np.logspace(-6, 6, 25)))


def _lasso(seed: int, rows: int) -> Any:
    from sklearn.linear_model import LassoCV

    return _standardised(LassoCV(cv=_inner(seed, rows), max_iter=5000))


def _neighbours(seed: int, rows: int) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    largest = rows * (_INNER_FOLDS - 1) // _INNER_FOLDS - 1
    grid = {"n_neighbors": [k for k in (2, 5, 10, 20) if k <= largest] or [1]}
    return _standardised(_tuned(KNeighborsRegressor(weights="distance"), grid, seed, rows))


def _support_vectors(seed: int, rows: int) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    grid = {"C": [0.3, 3.0, 30.0], "epsilon": [0.03, 0.2]}
    tuned = _standardised(_tuned(SVR(), grid, seed, rows))
    return TransformedTargetRegressor(tuned, transformer=StandardScaler())


def _forest(seed: int, rows: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(_TREES, max_features=1 / 3, random_state=seed, n_jobs=-1)


def _boosting(seed: int, rows: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    grid = {"max_iter": list(_ROUNDS)}
    boosting = HistGradientBoostingRegressor(early_stopping=False, random_state=seed)
    return _tuned(
        boosting.set_params(min_samples_leaf=min(20, max(rows // 20, 1))), grid, seed, rows
    )


def _process(seed: int, rows: int) -> Any:
    return _GaussianProcess(seed)


METHODS = {
    "harfe": Method("HARFERegressorCV: law learned, settings chosen", _harfe, lambda m: _terms(m)),
    "harfe-fixed": Method("HARFERegressor: one fit, no choice", _harfe_fixed, lambda m: _terms(m)),
    "mean": Method("the mean of the target, whatever the inputs", _mean, lambda m: 1),
    "linear": Method("linear model, ridge penalty chosen", _linear, lambda m: _coefficients(m)),
    "lasso": Method("linear model of few inputs", _lasso, lambda m: _coefficients(m)),
    "neighbours": Method("mean of the nearest rows", _neighbours),
    "svr": Method("support vector regression", _support_vectors, lambda m: _vectors(m)),
    "forest": Method("random forest", _forest, lambda m: _leaves(m)),
    "boosting": Method("gradient boosted trees", _boosting, lambda m: _boosted(m)),
    "process": Method(f"Gaussian process, at most {_PROCESS_ROWS} rows", _process),
}

#: What is compared unless asked otherwise.
DEFAULT_METHODS = tuple(name for name in METHODS if name != "harfe-fixed")


def compare(
    X: ArrayLike,
    y: ArrayLike,
    methods: Sequence[str] = DEFAULT_METHODS,
    cv: int = 5,
    seed: int = 0,
    after_fold: Callable[[str, int, float], None] | None = None,
) -> Table:
    """Fit every method without each fold, and ask it for the rows of that fold.

    Parameters
    ----------
    X, y : arrays of shape (rows, inputs) and (rows,)
    methods : sequence of str
        Names in `METHODS`.
    cv : int, default=5
        Folds; equal rows stay together.
    seed : int, default=0
        Of folds and methods.
    after_fold : callable, optional
        Called with method, number of the fold and its root-mean-square error.

    Returns
    -------
    Table
        The best first: `method`, `rmse` (mean over the folds of the root-mean-square error),
        `spread` (its standard deviation over the folds), `r2` of all held-out rows, `terms`
        (or leaves, or support vectors; None where there is no such), `fit_seconds` (mean over the
        folds), `predict_microseconds` (a row), and `failure` (why a method has no result).

    Examples
    --------
    >>> from harfe.compare import compare
    >>> from harfe.datasets import make_function
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> compare(data.X, data.y, ["mean", "linear"])["method"].tolist()
    ['linear', 'mean']
    """
    from harfe.folds import make_folds

    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    for name in methods:
        check_choice("methods", name, list(METHODS))
    folds = make_folds("cv", cv, X, y, seed)
    results = []
    for name in methods:
        tell = None if after_fold is None else _named(after_fold, name)
        results.append({"method": name, **_one(METHODS[name], X, y, folds, seed, tell)})
    results.sort(key=lambda result: (np.isnan(result["rmse"]), result["rmse"]))
    return Table({column: [result[column] for result in results] for column in results[0]})


def _named(
    after_fold: Callable[[str, int, float], None], name: str
) -> Callable[[int, float], None]:
    return lambda number, error: after_fold(name, number, error)


def _one(
    method: Method,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    seed: int,
    after_fold: Callable[[int, float], None] | None,
) -> dict[str, Any]:
    """Errors, size and times of a method."""
    errors, sizes, fit_times, predict_times = [], [], [], []
    prediction = np.full(len(y), np.nan)
    failure = None
    for number, (train, held_out) in enumerate(folds):
        model = method.make(seed, len(train))
        try:
            with warnings.catch_warnings(), _few_threads(len(train)):
                # How rivals converge is their business; their error tells what came of it.
                warnings.simplefilter("ignore")
                begun = time.perf_counter()
                model.fit(X[train], y[train])
                fitted = time.perf_counter()
                prediction[held_out] = model.predict(X[held_out])
                fit_times.append(fitted - begun)
                predict_times.append((time.perf_counter() - fitted) / len(held_out))
        except ValueError as error:
            failure = str(error).splitlines()[0]
            break
        errors.append(float(np.sqrt(np.mean((y[held_out] - prediction[held_out]) ** 2))))
        sizes.append(method.size(model))
        if after_fold is not None:
            after_fold(number, errors[-1])
    failed = failure is not None
    spread = np.sum((y - y.mean()) ** 2)
    known = [size for size in sizes if size is not None]
    return {
        "rmse": np.nan if failed else float(np.mean(errors)),
        "spread": np.nan if failed else float(np.std(errors, ddof=1)),
        "r2": np.nan if failed or not spread else float(1 - np.sum((y - prediction) ** 2) / spread),
        "terms": round(float(np.mean(known))) if known and not failed else None,
        "fit_seconds": np.nan if failed else float(np.mean(fit_times)),
        "predict_microseconds": np.nan if failed else float(np.mean(predict_times)) * 1e6,
        "failure": failure,
    }


def _few_threads(rows: int) -> AbstractContextManager[Any]:
    """One OpenMP thread for few rows: several wait for each other longer than they work."""
    limit = 1 if rows < _MANY_ROWS else None
    return threadpool_limits(limits=limit, user_api="openmp")


class _GaussianProcess:
    """Gaussian process with a length scale per input, on so many rows at most."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> _GaussianProcess:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        rows = np.random.default_rng(self._seed).permutation(len(y))[:_PROCESS_ROWS]
        # With very many inputs their scales take longer to find than the user will wait.
        scales = np.full(X.shape[1], 3.0) if X.shape[1] <= _PROCESS_INPUTS else 3.0
        smooth = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(scales, (1e-2, 1e4))
        process = GaussianProcessRegressor(
            smooth + WhiteKernel(0.1, (1e-8, 1e2)), normalize_y=True, random_state=self._seed
        )
        self._model = _standardised(process).fit(X[rows], y[rows])
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        predicted: NDArray[np.float64] = self._model.predict(X)
        return predicted


def _standardised(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _inner(seed: int, rows: int) -> Any:
    from sklearn.model_selection import KFold

    return KFold(min(_INNER_FOLDS, rows), shuffle=True, random_state=seed)


def _tuned(model: Any, grid: dict[str, list[Any]], seed: int, rows: int) -> Any:
    from sklearn.model_selection import GridSearchCV

    return GridSearchCV(model, grid, cv=_inner(seed, rows), scoring="neg_mean_squared_error")


def _terms(model: Any) -> int:
    return len(model.support_)


def _coefficients(pipeline: Any) -> int:
    return int(np.count_nonzero(pipeline[-1].coef_))


def _vectors(model: Any) -> int:
    return len(model.regressor_[-1].best_estimator_.support_)


def _leaves(model: Any) -> int:
    return sum(tree.get_n_leaves() for tree in model.estimators_)


def _boosted(search: Any) -> int:
    from harfe._compat import boosted_leaves

    return boosted_leaves(search.best_estimator_)
