"""The paper's theory as functions: isometry constants, conditions, bounds.

Small pure functions; each names the theorem it computes and notes where the paper's statement was
corrected. No fit uses them. With real data the results are mostly vacuous: the conditions require
more rows than anybody has, and the bounds lie far above the measured errors. They show how things
scale, not how large an error will be.
"""

from __future__ import annotations

from harfe.theory.bounds import (
    BoundConstants,
    best_terms_distance,
    bound_constants,
    coefficient_bound,
    contraction,
)
from harfe.theory.conditions import Condition, ConvergenceConditions, convergence_conditions
from harfe.theory.function_bounds import (
    feature_radius,
    function_bound,
    gaussian_norm,
    printed_feature_radius,
    risk_bound,
)
from harfe.theory.isometry import (
    Isometry,
    coherence,
    isometry_constant,
    ridge_isometry,
    stacked_matrix,
)
from harfe.theory.ridge_effects import ridge_effects

__all__ = [
    "BoundConstants",
    "Condition",
    "ConvergenceConditions",
    "Isometry",
    "best_terms_distance",
    "bound_constants",
    "coefficient_bound",
    "coherence",
    "contraction",
    "convergence_conditions",
    "feature_radius",
    "function_bound",
    "gaussian_norm",
    "isometry_constant",
    "printed_feature_radius",
    "ridge_effects",
    "ridge_isometry",
    "risk_bound",
    "stacked_matrix",
]
