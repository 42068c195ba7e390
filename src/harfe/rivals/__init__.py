"""The methods that the paper compares with, as scikit-learn regressors. Experimental.

Names and defaults here may change without notice, and nothing else in the package imports this
one: `harfe.methods` names its estimators, and `harfe.compare` runs them side by side with harfe.
Each is written from the equations of its paper and chooses its settings by cross-validation on the
training rows where they are "auto".

Two families that the paper cites are left out. Multiple kernel learning stands in none of its
tables; COSSO and SSAM are its members that do. Exact branch-and-bound solvers of sparse ridge
regression prove optimality for tens of features, not for the thousands of a random pool.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harfe.rivals.anova import ANOVARegressor
    from harfe.rivals.cosso import COSSORegressor
    from harfe.rivals.gam import PyGAMRegressor
    from harfe.rivals.gaussian_process import ARDProcessRegressor
    from harfe.rivals.kam import KAMRegressor
    from harfe.rivals.rfrr import RFRRRegressor
    from harfe.rivals.salsa import SALSARegressor
    from harfe.rivals.shrimp import SHRIMPRegressor
    from harfe.rivals.spam import SpAMRegressor
    from harfe.rivals.srfe import SRFERegressor
    from harfe.rivals.ssam import SSAMRegressor
    from harfe.rivals.yen import YenRegressor

_HOME = {
    "ANOVARegressor": "anova",
    "ARDProcessRegressor": "gaussian_process",
    "COSSORegressor": "cosso",
    "KAMRegressor": "kam",
    "PyGAMRegressor": "gam",
    "RFRRRegressor": "rfrr",
    "SALSARegressor": "salsa",
    "SHRIMPRegressor": "shrimp",
    "SRFERegressor": "srfe",
    "SSAMRegressor": "ssam",
    "SpAMRegressor": "spam",
    "YenRegressor": "yen",
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
