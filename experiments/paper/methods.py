"""The methods of the paper's tables with its settings; adapters as in `experiments.methods`.

Settings that the paper leaves open are chosen by cross-validation on training rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.methods import Fitted

# The paper's settings that have no symbol; then its symbols, with their names in harfe.
_AS_PRINTED: dict[str, Any] = {
    "init": "zero",
    "fit_intercept": False,
    "input_scale": "none",
    "input_clip": None,
}
_SYMBOLS = {"N": "n_components", "s": "n_nonzero_coefs", "q": "order"}


@dataclass(frozen=True)
class Harfe:
    """Algorithm 1 with the paper's settings.

    `reading` is the scaling that λ and μ refer to, which the paper leaves open: "unit", columns of
    unit root-mean-square and ridge weight λ (the authors' code); "raw", unscaled columns and ridge
    weight mλ (the formula in the text); "raw_lambda", unscaled columns and ridge weight λ. If N, s,
    q or λ is not given, it is taken from the paper's table of real data.
    """

    reading: str
    N: int | None = None
    s: int | None = None
    share: float | None = None  # s as a share of N, if s is not given
    q: int | None = None
    lam: float | None = None
    mu: float = 0.1
    weights: str = "uniform"
    bias: str = "uniform"
    max_iter: int = 50
    residual: float = 1e-6  # stop at this share of ‖y‖
    standardise: bool = False  # inputs and target, by the training rows
    keep_shares: bool = False  # of the inputs, for a histogram
    warm_up: bool = False  # fit a few rows first, so that loading and compiling are not timed

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Fit once, without tuning."""
        from harfe import HARFERegressor

        m = len(y)
        lam = paper["m_lambda"] if self.lam is None else self.lam
        scale, alpha, step = {
            "unit": ("rms", lam, self.mu),
            "raw": ("none", lam, m * self.mu),
            "raw_lambda": ("none", lam / m, m * self.mu),
        }[self.reading]
        known = dict(paper)
        if self.share is not None:
            known["s"] = round(self.share * _given(self, paper, "N"))
        settings = {name: _given(self, known, symbol) for symbol, name in _SYMBOLS.items()}
        model: Any = HARFERegressor(
            **settings,
            **_AS_PRINTED,
            alpha=alpha,
            weights=self.weights,
            bias=self.bias,
            step_size=step,
            max_iter=self.max_iter,
            tol=self.residual,
            column_scale=scale,
            random_state=seed,
        )
        estimator = model if not self.standardise else _standardised(model)
        seconds = _timed_fit(estimator, X, y, self.warm_up)
        if self.standardise:
            model = estimator.regressor_["model"]
        chosen = {
            **settings,
            "alpha": alpha,
            "rounds": model.n_iter_,
            "stop": model.stop_reason_.name.lower(),
        }
        details: dict[str, Any] = {"inputs": X.shape[1]}
        if self.keep_shares:
            details |= variable_shares(model)
        return Fitted(estimator, int(model.n_nonzero_coefs_), chosen, details, seconds)


@dataclass(frozen=True)
class TunedHarfe:
    """Algorithm 1 on standardised data; several values of λ or s mean cross-validation."""

    N: int
    q: int
    s: tuple[int, ...]
    lam: tuple[float, ...]
    mu: float = 0.1
    folds: int = 5
    max_iter: int = 50

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Choose among the candidates, all on the same pool, and fit."""
        from sklearn.model_selection import GridSearchCV, KFold

        from harfe import HARFERegressor

        model = HARFERegressor(
            self.N,
            **_AS_PRINTED,
            order=self.q,
            weights="uniform",
            bias="uniform",
            step_size=self.mu,
            max_iter=self.max_iter,
            random_state=seed,
        )
        search = GridSearchCV(
            _standardised(model),
            {
                "regressor__model__n_nonzero_coefs": list(self.s),
                "regressor__model__alpha": list(self.lam),
            },
            scoring="neg_mean_squared_error",
            cv=KFold(self.folds, shuffle=True, random_state=0),
        ).fit(X, y)
        best = search.best_estimator_.regressor_["model"]
        chosen = {"s": best.n_nonzero_coefs_, "alpha": best.alpha}
        return Fitted(search, int(best.n_nonzero_coefs_), chosen)


@dataclass(frozen=True)
class Srfe:
    """SRFE on features of the paper's law; the noise level sets λ of the l1 problem.

    Of several noise levels cross-validation chooses one.
    """

    noise_level: tuple[float, ...]
    N: int | None = None
    q: int | None = None
    weights: str = "uniform"
    bias: str = "uniform"
    scale: float = 1.0
    fit_intercept: bool = False
    standardise: bool = False  # inputs, by the training rows
    folds: int = 5
    warm_up: bool = False  # fit a few rows first, so that loading and compiling are not timed

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Compute one path per fold and one for all rows."""
        from harfe.rivals import SRFERegressor

        levels = self.noise_level
        model = SRFERegressor(
            _given(self, paper, "N"),
            order=_given(self, paper, "q"),
            scale=self.scale,
            noise_level=levels[0] if len(levels) == 1 else list(levels),
            weights=self.weights,
            bias=self.bias,
            fit_intercept=self.fit_intercept,
            input_scale="standard" if self.standardise else "none",
            cv=self.folds,
            random_state=seed,
        )
        seconds = _timed_fit(model, X, y, self.warm_up)
        chosen = {"noise_level": model.noise_level_, "reached": model.reached_}
        return Fitted(model, model.size_, chosen, {}, seconds)


@dataclass(frozen=True)
class Ssam:
    """SSAM; cross-validation chooses among several values of a setting."""

    order: tuple[int, ...]
    bandwidth: tuple[float, ...]
    alpha: tuple[float, ...]
    folds: int = 5

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Compute one path of penalties for every order and bandwidth."""
        from harfe.rivals import SSAMRegressor

        names = ("order", "bandwidth", "alpha")
        given: dict[str, Any] = {name: list(getattr(self, name)) for name in names}
        model = SSAMRegressor(**given, cv=self.folds, random_state=seed).fit(X, y)
        chosen = {name: getattr(model, f"{name}_") for name in names}
        return Fitted(model, model.size_, {**chosen, "pairs": model.pairs_})


@dataclass(frozen=True)
class Rfrr:
    """Ridge on all N features of the paper's law; ridge weight by cross-validation."""

    N: int
    q: int
    weights: str = "uniform"
    bias: str = "uniform"
    fit_intercept: bool = False
    standardise: bool = False  # inputs, by the training rows

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Choose the ridge weight with a single eigendecomposition, and fit."""
        from harfe.rivals import RFRRRegressor

        model = RFRRRegressor(
            self.N,
            order=self.q,
            scale=1.0,
            weights=self.weights,
            bias=self.bias,
            fit_intercept=self.fit_intercept,
            input_scale="standard" if self.standardise else "none",
            random_state=seed,
        ).fit(X, y)
        return Fitted(model, model.size_, {"alpha": model.alpha_})


@dataclass(frozen=True)
class ElasticNet:
    """Elastic Net on the features of SRFE; penalty and mixture by cross-validation."""

    N: int
    q: int
    n_alphas: int
    l1_ratio: tuple[float, ...]
    folds: int
    max_iter: int
    tol: float
    weights: str = "normal"
    bias: str = "phase"

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Fit by coordinate descent along a path for every mixture."""
        from sklearn.linear_model import ElasticNetCV
        from sklearn.pipeline import make_pipeline

        features = _features(self, seed)
        net = ElasticNetCV(
            l1_ratio=list(self.l1_ratio),
            alphas=self.n_alphas,
            eps=1e-4,
            cv=self.folds,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        model = make_pipeline(features, net).fit(X, y)
        chosen = {"alpha": net.alpha_, "l1_ratio": net.l1_ratio_}
        return Fitted(model, int(np.count_nonzero(net.coef_)), chosen)


@dataclass(frozen=True)
class Spgl1:
    """SRFE's problem solved by spgl1, its usual solver, a spectral projected gradient method.

    Minimise ‖c‖₁ subject to ‖A c - y‖₂ <= residual·‖y‖₂, columns of A of unit root-mean-square.
    """

    N: int
    q: int
    residual: float
    max_iter: int
    weights: str = "normal"
    bias: str = "phase"

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Fit; only the optimisation is timed."""
        import spgl1

        features = _features(self, seed).fit(X)
        A = features.transform(X)
        scale = np.sqrt(np.mean(A**2, axis=0))
        A /= scale
        # Its line search reports failures of single steps; the residual below says more.
        logging.getLogger("spgl1").setLevel(logging.ERROR)
        target = self.residual * np.linalg.norm(y)
        start = time.process_time()
        c, residual, _, info = spgl1.spg_bpdn(A, y, target, iter_lim=self.max_iter)
        seconds = time.process_time() - start
        share = float(np.linalg.norm(residual) / np.linalg.norm(y))
        chosen = {"iterations": info["niters"], "residual": share}
        model = _Expansion(features, c / scale)
        return Fitted(model, int(np.count_nonzero(c)), chosen, {}, seconds)


@dataclass(frozen=True)
class _Expansion:
    """Features with coefficients."""

    features: Any
    coef: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        predicted: np.ndarray = self.features.transform(X) @ self.coef
        return predicted


def _features(adapter: Any, seed: int) -> Any:
    """The features alone, with the adapter's N, q and law."""
    from harfe import SparseRandomFeatures

    law = {"order": adapter.q, "weights": adapter.weights, "bias": adapter.bias}
    return SparseRandomFeatures(adapter.N, **law, random_state=seed)


def _timed_fit(model: Any, X: np.ndarray, y: np.ndarray, warm_up: bool) -> float:
    """Fit, and return the processor time in seconds."""
    from sklearn.base import clone

    if warm_up:
        clone(model).fit(X[:50], y[:50])
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def variable_shares(model: Any) -> dict[str, list[float]]:
    """Shares of the inputs among kept features, plain and weighted, and in the pool."""
    from harfe.display import VariableHistogramDisplay

    plain = VariableHistogramDisplay.from_estimator(model)
    weighted = VariableHistogramDisplay.from_estimator(model, weighted=True)
    shares = {"kept": plain.share, "weighted": weighted.share, "drawn": plain.pool_share}
    return {name: [round(float(share), 5) for share in found] for name, found in shares.items()}


def _given(adapter: Any, paper: Mapping[str, Any], symbol: str) -> Any:
    """A setting of the adapter, or else the paper's for the problem."""
    own = getattr(adapter, symbol)
    if own is None and symbol not in paper:
        raise ValueError(
            f"the paper has no {symbol} for this problem. Give it in "
            "[methods.NAME.by_problem.PROBLEM]."
        )
    return paper[symbol] if own is None else own


def _standardised(model: Any) -> Any:
    """The model on inputs and target standardised by the training rows, as in the paper."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler())
