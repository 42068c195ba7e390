"""Hard-ridge random feature expansion: accurate, small and readable regression models.

The public surface. Modules are imported when a name is first used (SPEC 1), so that importing
`harfe` does not import scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harfe.estimator import HARFERegressor
    from harfe.expansion import Expansion
    from harfe.explain import Explanation
    from harfe.features import SparseRandomFeatures
    from harfe.input_law import InputLaw
    from harfe.law import FeatureLaw
    from harfe.league import compare
    from harfe.learn import learn_law
    from harfe.learning import LearnedLaw
    from harfe.path import SparsityPath, sparsity_path
    from harfe.persist import load, save
    from harfe.pursuit import PursuitResult, StopReason, hard_ridge_pursuit
    from harfe.selection import HARFERegressorCV

__version__ = version("harfe")

_HOME = {
    "Expansion": "expansion",
    "Explanation": "explain",
    "FeatureLaw": "law",
    "HARFERegressor": "estimator",
    "HARFERegressorCV": "selection",
    "InputLaw": "input_law",
    "LearnedLaw": "learning",
    "PursuitResult": "pursuit",
    "SparseRandomFeatures": "features",
    "SparsityPath": "path",
    "StopReason": "pursuit",
    "compare": "league",
    "hard_ridge_pursuit": "pursuit",
    "learn_law": "learn",
    "load": "persist",
    "save": "persist",
    "sparsity_path": "path",
}
_MODULES = ("datasets", "display", "metrics", "rivals", "theory")

__all__ = [
    "Expansion",
    "Explanation",
    "FeatureLaw",
    "HARFERegressor",
    "HARFERegressorCV",
    "InputLaw",
    "LearnedLaw",
    "PursuitResult",
    "SparseRandomFeatures",
    "SparsityPath",
    "StopReason",
    "__version__",
    "compare",
    "datasets",
    "display",
    "hard_ridge_pursuit",
    "learn_law",
    "load",
    "metrics",
    "rivals",
    "save",
    "sparsity_path",
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
