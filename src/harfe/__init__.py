"""Hard-ridge random feature expansion: accurate, small and readable regression models.

Modules are imported when a name is first used (SPEC 1), so importing `harfe` does not import
scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harfe.compare.league import compare_methods
    from harfe.estimators.regressor import HARFERegressor
    from harfe.estimators.regressor_cv import HARFERegressorCV
    from harfe.explain.inputs.distribution import InputDistribution
    from harfe.explain.overall import Explanation
    from harfe.features.law import FeatureLaw
    from harfe.features.mixed_law import MixedLaw
    from harfe.features.transformer import SparseRandomFeatures
    from harfe.files.save_load import load, save
    from harfe.learning.candidates import LearnedLaw
    from harfe.model.expansion import Expansion
    from harfe.selection.learn_law import learn_law
    from harfe.solvers.matrix import sparse_ridge_problem
    from harfe.solvers.path import SparsityPath, sparsity_path
    from harfe.solvers.pursuit import PursuitResult, StopReason, hard_ridge_pursuit

__version__ = version("harfe")

_HOME = {
    "Expansion": "model.expansion",
    "Explanation": "explain.overall",
    "FeatureLaw": "features.law",
    "HARFERegressor": "estimators.regressor",
    "HARFERegressorCV": "estimators.regressor_cv",
    "InputDistribution": "explain.inputs.distribution",
    "LearnedLaw": "learning.candidates",
    "MixedLaw": "features.mixed_law",
    "PursuitResult": "solvers.pursuit",
    "SparseRandomFeatures": "features.transformer",
    "SparsityPath": "solvers.path",
    "StopReason": "solvers.pursuit",
    "compare_methods": "compare.league",
    "hard_ridge_pursuit": "solvers.pursuit",
    "learn_law": "selection.learn_law",
    "load": "files.save_load",
    "save": "files.save_load",
    "sparse_ridge_problem": "solvers.matrix",
    "sparsity_path": "solvers.path",
}
_MODULES = ("compare", "datasets", "display", "metrics", "report", "rivals", "tables", "theory")

__all__ = [
    "Expansion",
    "Explanation",
    "FeatureLaw",
    "HARFERegressor",
    "HARFERegressorCV",
    "InputDistribution",
    "LearnedLaw",
    "MixedLaw",
    "PursuitResult",
    "SparseRandomFeatures",
    "SparsityPath",
    "StopReason",
    "__version__",
    "compare",
    "compare_methods",
    "datasets",
    "display",
    "hard_ridge_pursuit",
    "learn_law",
    "load",
    "metrics",
    "report",
    "rivals",
    "save",
    "sparse_ridge_problem",
    "sparsity_path",
    "tables",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"harfe.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"harfe.{name}")
    raise AttributeError(f"module 'harfe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
