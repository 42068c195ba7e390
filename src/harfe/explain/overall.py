"""What a fitted function says about its variables, as plain data.

Two laws of the inputs, never mixed: variances, Sobol indices and Shapley effects are those of
independent inputs; the variance over the rows and mean squares of gradients are those of the rows
as they came, the joint law. Their ratio tells whether the first can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import Table, jsonable
from harfe.explain.anova import Anova, anova, check_target
from harfe.explain.inputs.distribution import LAWS, InputLaw
from harfe.explain.inputs.summary import KeptInputs
from harfe.explain.tables import (
    components_table,
    interactions_table,
    sobol_table,
    terms_table,
    variables_table,
)
from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion

__all__ = ["Explanation", "Table", "explain", "resolve_law"]

# Independent and joint variance may differ by this factor before indices are said to mislead.
_LARGEST_RATIO = 2.0

# Inputs that correlate more, and both matter at least this much, cannot be told apart.
_LARGEST_CORRELATION = 0.9
_MATTERS = 0.01

# A deviation below this share of the mean is rounding.
_ROUNDING = 1e-14

# An error of the kept characteristic functions that is worth a note.
_LARGEST_LAW_ERROR = 1e-8

_PARTS = ("variables", "terms", "interactions", "sobol", "components")

_LAW_TEXTS = {
    "independent": "independent inputs with the marginals of the rows",
    "uniform": "independent, uniform inputs",
    "normal": "independent, normal inputs",
}


@dataclass(frozen=True)
class Explanation:
    """Which variables and which interactions matter in a fitted function.

    Attributes
    ----------
    law : str
        Law of the inputs that indices and variances refer to: "independent", "uniform", "normal".
    target : int
    mean, variance : float
        Of the function under this law (`mean` may be complex).
    variance_joint : float
        Variance of the function over the rows.
    variance_ratio : float
        `variance_joint` over the variance under independent inputs with the same marginals: 1 if
        dependence between the inputs does not matter to the function. NaN if both overflow.
    variables : Table
        A row per input: `variable`, `count` of the kept features that use it, its `share` of them,
        `pool_share` among all features that were drawn, `weighted_share` by the size of the
        coefficients, `mean_square_gradient` over the rows, and, if the law of the features was
        learned (or passed to the estimator), `learned_usage` and `learned_scale` under that law;
        otherwise NaN.
    terms : Table
        A row per set of variables that kept features use: `term`, `variables`, `order`, `count`,
        `share`, `pool_share`, `weighted_share`, and the `variance` of the raw term under the law.
    interactions : Table
        A row per pair of variables that meet in a feature, the strongest first: `variables`,
        `second_order` (share of the variance due to the pair alone) and `total` (due to all
        components that hold both).
    sobol : Table
        A row per input: `variable`, `first_order`, `total`, `shapley`, shares of the variance.
    components : Table
        A row per purified component, the largest first: `component`, `variables`, `order`,
        `variance`, `share`.
    dependence : tuple of str
        In which ways the inputs depend on each other so much that indices mislead; empty if not.
    notes : tuple of str
        What to mind when reading this; starts with `dependence`.
    """

    law: str
    target: int
    mean: Any
    variance: float
    variance_joint: float
    variance_ratio: float
    variables: Table
    terms: Table
    interactions: Table
    sobol: Table
    components: Table
    dependence: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ranking(self) -> Table:
        """The rows of `sobol`, what matters most first.

        By `total`, the share of the variance that an input has a part in, alone or with others:
        the order of `summary`, of the commands and of the report page.
        """
        return _leading(self.sobol, "total", len(self.sobol))

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, numbers and strings, for JSON; NaN and infinities are None."""
        plain = ("law", "target", "mean", "variance", "variance_joint", "variance_ratio")
        return {
            **{name: jsonable(getattr(self, name)) for name in plain},
            **{name: getattr(self, name).to_dict() for name in _PARTS},
            "dependence": list(self.dependence),
            "notes": list(self.notes),
        }

    def summary(self, most: int = 10) -> str:
        """What matters most, as text.

        Parameters
        ----------
        most : int, default=10
            Rows of each table at most.
        """
        lines = [
            f"mean {self.mean:.4g}, variance {self.variance:.4g} under "
            f"{_LAW_TEXTS.get(self.law, self.law)}; {self.variance_joint:.4g} over the rows",
            "",
            str(_leading(self.sobol, "total", most)),
        ]
        if len(self.interactions):
            lines += ["", str(_leading(self.interactions, "total", most))]
        return "\n".join([*lines, *(f"\nNote: {note}" for note in self.notes)])


def explain(
    expansion: Expansion,
    kept: KeptInputs,
    *,
    law: str | InputLaw = "independent",
    X: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
    pool: FeaturePool | None = None,
    feature_law: Law | None = None,
    target: int = 0,
) -> Explanation:
    """Explain a fitted function.

    Parameters
    ----------
    expansion : Expansion
    kept : KeptInputs
        What the fit kept of its rows.
    law : {"independent", "uniform", "normal"} or InputLaw, default="independent"
        Law of the inputs: the marginals of the rows, uniform on their ranges, normal, or one's own.
    X : array of shape (rows, inputs), optional
        Explain over these rows instead of those of the fit.
    weights : array of shape (rows,), optional
        How often each row of X counts, positive.
    pool : FeaturePool, optional
        All features that were drawn, for `pool_share`; the kept ones by default.
    feature_law : FeatureLaw or MixedLaw, optional
        What the features were drawn from, if it was learned.
    target : int, default=0

    Returns
    -------
    Explanation
    """
    check_target(expansion, target)
    check_law(law)
    if X is not None:
        kept = KeptInputs.of(expansion, X, weights, for_good=False)
    input_law = resolve_law(law, kept, expansion)
    parts = anova(expansion, input_law, target)
    own = parts if input_law is kept.law else anova(expansion, kept.law, target)
    joint = float(kept.variance_joint[target])
    ratio = _ratio(joint, own.variance, abs(own.mean))
    dependence = _dependence(own, kept, ratio)
    pool = expansion.features if pool is None else pool
    return Explanation(
        law=input_law.kind,
        target=target,
        mean=parts.mean,
        variance=parts.variance,
        variance_joint=joint,
        variance_ratio=ratio,
        variables=variables_table(expansion, kept, pool, feature_law, target),
        terms=terms_table(parts, pool),
        interactions=interactions_table(parts),
        sobol=sobol_table(parts),
        components=components_table(parts),
        dependence=dependence,
        notes=dependence + _notes(parts, kept),
    )


def check_law(law: Any) -> None:
    """Refuse what is no law of independent inputs."""
    if isinstance(law, InputLaw):
        return
    if law == "joint":
        raise ValueError(
            "law='joint' has no ANOVA components: they are those of independent inputs, pass "
            f"law='independent' (or one of {', '.join(LAWS[1:])}); averages over the rows as they "
            "came are what partial_dependence(features) gives"
        )
    if not isinstance(law, str) or law not in LAWS:
        raise ValueError(
            f"law={law!r} is not known; choose one of {', '.join(LAWS)}, or pass an InputLaw"
        )


def resolve_law(law: str | InputLaw, kept: KeptInputs, expansion: Expansion) -> InputLaw:
    """Give the law of the inputs that a name stands for."""
    check_law(law)
    return law if isinstance(law, InputLaw) else kept.input_law(law, expansion)


def _ratio(joint: float, independent: float, mean: float) -> float:
    if np.sqrt(max(joint, independent)) <= _ROUNDING * mean:
        return 1.0  # a constant, and rounding
    return joint / independent if independent > 0 else np.inf


def _dependence(parts: Anova, kept: KeptInputs, ratio: float) -> tuple[str, ...]:
    """In which ways dependent inputs make indices of independent ones mislead."""
    notes = []
    if np.isinf(ratio):
        notes.append(
            "too few rows: what was kept of the inputs does not vary, though the function does "
            "over the rows; pass X for indices"
        )
    elif ratio < 1 / _LARGEST_RATIO or ratio > _LARGEST_RATIO:
        notes.append(
            f"the function's variance over the rows is {ratio:.2g} times that under independent "
            "inputs: its inputs depend on each other, and indices that take them as independent "
            "mislead; look at partial_dependence(features), or leave out inputs that repeat others"
        )
    matters = parts.total() >= _MATTERS
    pairs = {
        (min(k, other), max(k, other)): kept.correlation[k]
        for k, other in enumerate(kept.partner.tolist())
        if other >= 0
        and matters[k]
        and matters[other]
        and abs(kept.correlation[k]) >= _LARGEST_CORRELATION
    }
    if pairs:
        columns = parts.expansion.columns
        strongest = sorted(pairs, key=lambda pair: -abs(pairs[pair]))[:3]
        named = ", ".join(
            f"{columns[i]} and {columns[j]} ({pairs[i, j]:.2f})" for i, j in strongest
        )
        more = f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
        notes.append(
            f"inputs that both matter are strongly correlated: {named}{more}; how the variance is "
            "shared between them says little, read them together or leave one out"
        )
    return tuple(notes)


def _notes(parts: Anova, kept: KeptInputs) -> tuple[str, ...]:
    notes = []
    if not parts.exact:
        notes.append(
            f"{parts.expansion.features.activation} has no closed form: means, variances and "
            "components are quadratures over few nodes of each input, not exact"
        )
    if kept.law_error is not None and kept.law_error > _LARGEST_LAW_ERROR:
        notes.append(
            f"what was kept of the inputs gives means of waves to {kept.law_error:.0e} only "
            "(few rows, or weights of high frequency); pass X for more digits"
        )
    return tuple(notes)


def _leading(table: Table, column: str, most: int) -> Table:
    order = np.argsort(-table[column], kind="stable")[:most]
    return Table({name: tuple(values[i] for i in order) for name, values in table.columns.items()})
