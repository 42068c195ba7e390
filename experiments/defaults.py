"""Regressors of other libraries with their defaults, as the adapter `experiments.defaults:Default`.

Nothing is set but the seed, one thread, that no file or progress is written, and fewer bags of EBM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.methods import Fitted
from experiments.tables import ConfigError, nearest


@dataclass(frozen=True)
class Default:
    """The regressor of this name in `REGRESSORS`, fitted once."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in REGRESSORS:
            raise ConfigError(f"name = {self.name!r}: unknown. {nearest(self.name, REGRESSORS)}")

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int, paper: Mapping[str, Any]) -> Fitted:
        """Fit; what the library chooses by itself is not reported."""
        make, size = REGRESSORS[self.name]
        model = make(seed).fit(X, y)
        return Fitted(model, int(size(model)), {})


def _catboost(seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        verbose=False, allow_writing_files=False, random_seed=seed, thread_count=1
    )


def _lightgbm(seed: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(verbose=-1, random_state=seed, n_jobs=1)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(random_state=seed)


def _ebm(seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingRegressor

    # The default of 14 bags takes minutes for a thousand rows.
    return ExplainableBoostingRegressor(outer_bags=4, random_state=seed, n_jobs=1)


def _ridge(seed: int) -> Any:
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), RidgeCV())


def _lightgbm_leaves(model: Any) -> int:
    return sum(tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"])


#: How to make each for a seed, and its size: leaves, scores of bins, or coefficients.
REGRESSORS: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "catboost": (_catboost, lambda model: sum(model.get_tree_leaf_counts())),
    "lightgbm": (_lightgbm, _lightgbm_leaves),
    "forest": (_forest, lambda model: sum(tree.get_n_leaves() for tree in model.estimators_)),
    "ebm": (_ebm, lambda model: sum(scores.size for scores in model.term_scores_)),
    "ridge": (_ridge, lambda model: np.count_nonzero(model[-1].coef_)),
}
