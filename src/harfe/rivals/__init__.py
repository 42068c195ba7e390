"""The methods the paper compares HARFE with, as scikit-learn regressors. Experimental.

Names and defaults here may change without notice. Only `harfe.compare` imports this package, and
only when a rival is used: `harfe.compare_methods` runs the rivals side by side with harfe. Each is
written from the equations of its paper and chooses settings that are "auto" by cross-validation on
the training rows.

Two families that the paper cites are left out. Multiple kernel learning is in none of the paper's
tables, except for its members COSSO and SSAM. Exact branch-and-bound solvers for sparse ridge
regression prove optimality for tens of features, not for the thousands of a random pool.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harfe.rivals.additive.anova import ANOVARegressor
    from harfe.rivals.additive.cosso import COSSORegressor
    from harfe.rivals.additive.gam import PyGAMRegressor
    from harfe.rivals.additive.kam import KAMRegressor
    from harfe.rivals.additive.salsa import SALSARegressor
    from harfe.rivals.additive.spam import SpAMRegressor
    from harfe.rivals.additive.ssam import SSAMRegressor
    from harfe.rivals.gaussian_process import ARDProcessRegressor
    from harfe.rivals.random_features.rfrr import RFRRRegressor
    from harfe.rivals.random_features.shrimp import SHRIMPRegressor
    from harfe.rivals.random_features.srfe import SRFERegressor
    from harfe.rivals.random_features.yen import YenRegressor

_HOME = {
    "ANOVARegressor": "additive.anova",
    "ARDProcessRegressor": "gaussian_process",
    "COSSORegressor": "additive.cosso",
    "KAMRegressor": "additive.kam",
    "PyGAMRegressor": "additive.gam",
    "RFRRRegressor": "random_features.rfrr",
    "SALSARegressor": "additive.salsa",
    "SHRIMPRegressor": "random_features.shrimp",
    "SRFERegressor": "random_features.srfe",
    "SSAMRegressor": "additive.ssam",
    "SpAMRegressor": "additive.spam",
    "YenRegressor": "random_features.yen",
}

__all__ = [
    "ANOVARegressor",
    "ARDProcessRegressor",
    "COSSORegressor",
    "KAMRegressor",
    "PyGAMRegressor",
    "RFRRRegressor",
    "SALSARegressor",
    "SHRIMPRegressor",
    "SRFERegressor",
    "SSAMRegressor",
    "SpAMRegressor",
    "YenRegressor",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"harfe.rivals.{_HOME[name]}"), name)
    raise AttributeError(f"module 'harfe.rivals' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
