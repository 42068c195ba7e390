"""Which inputs and which interactions matter in a fitted function, as plain data.

Two distributions of the inputs are never mixed: variances, Sobol indices and Shapley effects are
those of independent inputs; the variance over the rows and mean squared gradients are those of the
rows as given, their joint distribution. The ratio of the two variances shows whether the indices
can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.table import Table, jsonable
from harfe.explain.anova import Anova, anova, check_target
from harfe.explain.inputs.distribution import DISTRIBUTIONS, InputDistribution
from harfe.explain.inputs.summary import InputSummary
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

__all__ = ["Explanation", "Table", "explain", "resolve_distribution", "total_indices"]

# Indices are called misleading if independent and joint variance differ by more than this factor.
_LARGEST_RATIO = 2.0

# Inputs that correlate more than this and each matter this much cannot be told apart.
_LARGEST_CORRELATION = 0.9
_MATTERS = 0.01

# A deviation below this share of the mean is rounding.
_ROUNDING = 1e-14

# Errors of the summary's characteristic functions above this are worth a note.
_LARGEST_ERROR = 1e-8

_PARTS = ("variables", "terms", "interactions", "sobol", "components")

_INPUT_TEXTS = {
    "independent": "independent inputs with the marginals of the rows",
    "uniform": "independent, uniform inputs",
    "normal": "independent, normal inputs",
}


@dataclass(frozen=True)
class Explanation:
    """Which inputs and which interactions matter in a fitted function.

    Attributes
    ----------
    inputs : str
        Distribution of the inputs that indices and variances refer to: "independent", "uniform" or
        "normal".
    target : int
    mean, variance : float
        Of the function under this distribution (`mean` may be complex).
    variance_joint : float
        Variance of the function over the rows.
    variance_ratio : float
        `variance_joint` divided by the variance under independent inputs with the same marginals: 1
        if dependence between the inputs does not affect the function. NaN if both overflow.
    variables : Table
        A row per input: `variable`, `count` of the kept features that use it, its `share` of them,
        `pool_share` among all drawn features, `weighted_share` weighted by |coefficient|,
        `mean_square_gradient` over the rows, and `learned_usage` and `learned_scale` under the law
        of the features if that was learned or passed to the estimator, otherwise NaN.
    terms : Table
        A row per set of inputs that kept features use: `term`, `variables`, `order`, `count`,
        `share`, `pool_share`, `weighted_share`, and the `variance` of the raw term under the
        distribution of the inputs.
    interactions : Table
        A row per pair of inputs that share a feature, the strongest first: `variables`,
        `second_order` (share of the variance due to the pair alone) and `total` (due to all
        components that contain both).
    sobol : Table
        A row per input: `variable`, `first_order`, `total`, `shapley`, as shares of the variance.
        `total`, interactions included, is the measure of importance used throughout.
    components : Table
        A row per purified component, the largest first: `component`, `variables`, `order`,
        `variance`, `share`.
    dependence : tuple of str
        Ways in which the inputs depend on each other so strongly that indices mislead.
    notes : tuple of str
        Caveats; starts with `dependence`.
    link : str
        Link of the function: "none", or that on whose scale everything here is.
    """

    inputs: str
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
    link: str = "none"

    @property
    def ranking(self) -> Table:
        """The rows of `sobol`, the most important input first.

        Ordered by `total`, the share of the variance that involves an input, alone or with others:
        the same order as in `summary`, on the command line and in the report.
        """
        return _leading(self.sobol, "total", len(self.sobol))

    def to_dict(self) -> dict[str, Any]:
        """Return lists, numbers and strings, for JSON; NaN and infinities are None."""
        plain = ("inputs", "link", "target", "mean", "variance", "variance_joint", "variance_ratio")
        return {
            **{name: jsonable(getattr(self, name)) for name in plain},
            **{name: getattr(self, name).to_dict() for name in _PARTS},
            "dependence": list(self.dependence),
            "notes": list(self.notes),
        }

    def summary(self, most: int = 10) -> str:
        """Summarise the most important inputs and pairs as text.

        Parameters
        ----------
        most : int, default=10
            Maximum number of rows of each table.
        """
        lines = [
            f"mean {self.mean:.4g}, variance {self.variance:.4g} under "
            f"{_INPUT_TEXTS.get(self.inputs, self.inputs)}; "
            f"{self.variance_joint:.4g} over the rows",
            "",
            str(_leading(self.sobol, "total", most)),
        ]
        if len(self.interactions):
            lines += ["", str(_leading(self.interactions, "total", most))]
        return "\n".join([*lines, *(f"\nNote: {note}" for note in self.notes)])


def explain(
    expansion: Expansion,
    kept: InputSummary,
    *,
    inputs: str | InputDistribution = "independent",
    X: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
    pool: FeaturePool | None = None,
    feature_law: Law | None = None,
    target: int = 0,
) -> Explanation:
    """Measure which inputs and which interactions matter in a fitted function.

    Parameters
    ----------
    expansion : Expansion
    kept : InputSummary
        Summary of the rows of the fit.
    inputs : {"independent", "uniform", "normal"} or InputDistribution, default="independent"
        Distribution of the inputs, always independent: the marginals of the rows, uniform on their
        ranges, normal, or a given one, of the inputs as the function clips and warps them.
    X : array of shape (rows, inputs), optional
        Explain over these rows instead of those of the fit.
    weights : array of shape (rows,), optional
        How often each row of X counts, positive.
    pool : FeaturePool, optional
        All drawn features, for `pool_share`; the kept ones by default.
    feature_law : FeatureLaw or MixedLaw, optional
        Law that the features were drawn from, if it was learned.
    target : int, default=0

    Returns
    -------
    Explanation
    """
    check_target(expansion, target)
    check_distribution(inputs)
    if X is not None:
        kept = InputSummary.of(expansion, X, weights, for_good=False)
    distribution = resolve_distribution(inputs, kept, expansion)
    parts = anova(expansion, distribution, target)
    own = (
        parts if distribution is kept.distribution else anova(expansion, kept.distribution, target)
    )
    joint = float(kept.variance_joint[target])
    ratio = _ratio(joint, own.variance, abs(own.mean))
    dependence = _dependence(own, kept, ratio)
    pool = expansion.features if pool is None else pool
    return Explanation(
        inputs=distribution.kind,
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
        notes=dependence + _notes(parts, kept) + _scale_notes(expansion),
        link=expansion.link_kind,
    )


def _scale_notes(expansion: Expansion) -> tuple[str, ...]:
    if expansion.link is None:
        return ()
    return (
        f"the model is a sum on the scale of its link, {expansion.link.kind}: means, variances and "
        "effects are on this scale, not in the units of the target",
    )


def total_indices(expansion: Expansion, kept: InputSummary) -> NDArray[np.float64]:
    """Total Sobol index of each input: the share of the variance that involves it.

    The `total` of `explain` under independent inputs with the marginals of the rows; for several
    targets the mean over those whose prediction is not constant. All zero if every one is.

    Parameters
    ----------
    expansion : Expansion
    kept : InputSummary
        Summary of the rows of the fit.

    Returns
    -------
    array of shape (inputs,)
    """
    targets = [anova(expansion, kept.distribution, t) for t in range(len(expansion.coef))]
    varying = [parts.total() for parts in targets if parts.shares.any()]
    return np.mean(varying, axis=0) if varying else np.zeros(expansion.features.n_variables)


def check_distribution(inputs: Any) -> None:
    """Reject what does not name a distribution of independent inputs."""
    if isinstance(inputs, InputDistribution):
        return
    if isinstance(inputs, str) and inputs == "joint":
        raise ValueError(
            "inputs='joint' has no ANOVA components, which need independent inputs; pass "
            f"inputs='independent' (or one of {', '.join(DISTRIBUTIONS[1:])}), or call "
            "partial_dependence(inputs) for averages over the rows as given"
        )
    if not isinstance(inputs, str) or inputs not in DISTRIBUTIONS:
        raise ValueError(
            f"inputs={inputs!r} is not a known distribution; choose one of "
            f"{', '.join(DISTRIBUTIONS)}, or pass an InputDistribution"
        )


def resolve_distribution(
    inputs: str | InputDistribution, kept: InputSummary, expansion: Expansion
) -> InputDistribution:
    """Return the distribution of the inputs with this name, or the given one."""
    check_distribution(inputs)
    if isinstance(inputs, InputDistribution):
        return inputs
    return kept.named_distribution(inputs, expansion)


def _ratio(joint: float, independent: float, mean: float) -> float:
    if np.sqrt(max(joint, independent)) <= _ROUNDING * mean:
        return 1.0  # constant up to rounding
    return joint / independent if independent > 0 else np.inf


def _dependence(parts: Anova, kept: InputSummary, ratio: float) -> tuple[str, ...]:
    """Ways in which dependence between the inputs makes the indices misleading."""
    notes = []
    if np.isinf(ratio):
        notes.append(
            "too few rows: the summary of the inputs does not vary, although the function varies "
            "over the rows; pass X to compute indices"
        )
    elif ratio < 1 / _LARGEST_RATIO or ratio > _LARGEST_RATIO:
        notes.append(
            f"the function's variance over the rows is {ratio:.2g} times that under independent "
            "inputs: the inputs depend on each other, and indices that assume independence are "
            "misleading; use partial_dependence(inputs), or drop redundant inputs"
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
            f"important inputs are strongly correlated: {named}{more}; how the variance is split "
            "between them means little, so read them together or drop one of them"
        )
    return tuple(notes)


def _notes(parts: Anova, kept: InputSummary) -> tuple[str, ...]:
    notes = []
    if not parts.exact:
        notes.append(
            f"{parts.expansion.features.activation} has no closed form: means, variances and "
            "components are computed by quadrature over a few nodes per input, not exactly"
        )
    if kept.distribution_error is not None and kept.distribution_error > _LARGEST_ERROR:
        notes.append(
            "the summary of the inputs gives means of waves only to "
            f"{kept.distribution_error:.0e} (few rows, or high frequencies); pass X for more digits"
        )
    return tuple(notes)


def _leading(table: Table, column: str, most: int) -> Table:
    order = np.argsort(-table[column], kind="stable")[:most]
    return Table({name: tuple(values[i] for i in order) for name, values in table.columns.items()})
