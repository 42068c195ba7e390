"""Learning the law of the features from data.

A candidate is a prior on laws (`Prior`): how many inputs a feature may look at, and how freely
scales may differ. Each is fitted by its penalised likelihood; which one is used is
decided by its error on held-out rows, with the law fitted anew without them: likelihoods of
different candidates tell less (heavy tails are fitted by interactions that do not exist).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import Law, MixedLaw
from harfe.learning.likelihood import KernelSettings, Likelihood, Prior, variance_shares
from harfe.learning.reference import (
    EXACT_ROWS,
    POOL,
    ExactReference,
    PoolReference,
    Reference,
    StackedReference,
)
from harfe.learning.standard_rows import StandardRows

# Chosen on training rows, docs/decisions/0022.
CANDIDATES = {
    prior.name: prior
    for prior in (
        Prior("additive", 1),
        Prior("pairs", 2, scale=0.3, spread=0.5, strength=4.0),
        Prior("fours", 4),
        Prior("isotropic", 2, isotropic=True),
    )
}

# Share of a pool that is drawn from the tempered copy of a learned law.
TEMPERING = 0.3

# The likelihood sees at most so many rows: fewer in the first steps, which find the variables.
_FIRST_ROWS, MOST_ROWS = 300, 500
_FIRST_STEPS, _LAST_STEPS = 25, 35

# Beyond so many inputs, those go on to which the likelihood is most sensitive.
_MOST_INPUTS = 100
_SCREENING_ROWS, _SCREENING_STEPS = 200, 10


@dataclass(frozen=True)
class LawSettings:
    """How rows are prepared and how many are looked at, resolved."""

    seed: int
    input_scale: str = "standard"
    input_clip: float | None = 5.0
    max_rows: int = MOST_ROWS
    activation: str = "sin"
    tempering: float = TEMPERING


@dataclass(frozen=True)
class LawFit:
    """A candidate, or a stack of them, fitted to some rows.

    Attributes
    ----------
    name : str
    data : StandardRows
        The rows, standardised.
    reference : Reference
        The ridge solution on infinitely many features.
    law : FeatureLaw or MixedLaw
        What pools are drawn from.
    noise, variance : float
        ν and V = Σ_q η_q e_q(p).
    """

    name: str
    data: StandardRows
    reference: Reference
    law: Law
    noise: float
    variance: float

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the reference in the user's units, shape (rows, targets)."""
        return self.data.to_targets(self.reference.predict(self.data.standardise(X)))


def stack(fits: Sequence[LawFit], weights: Sequence[float]) -> LawFit:
    """The weighted sum of candidates fitted to the same rows; weights 0 are left out."""
    kept = [(fit, w) for fit, w in zip(fits, weights, strict=True) if w > 0]
    if len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    total = sum(w for _, w in kept)
    shares = [w / total for _, w in kept]
    law: Law = kept[0][0].law
    if len(kept) > 1:
        parts = tuple(fit.law for fit, _ in kept)
        law = MixedLaw(parts, tuple(shares))  # type: ignore[arg-type]
    return LawFit(
        " + ".join(fit.name for fit, _ in kept),
        kept[0][0].data,
        StackedReference(tuple(fit.reference for fit, _ in kept), tuple(w for _, w in kept)),
        law,
        sum(share * fit.noise for (fit, _), share in zip(kept, shares, strict=True)),
        sum(share * fit.variance for (fit, _), share in zip(kept, shares, strict=True)),
    )


@dataclass(frozen=True)
class LearnedLaw:
    """A law of the features that was learned from data.

    Attributes
    ----------
    law : FeatureLaw or MixedLaw
        Orders, variables and scales, on standardised inputs: what features are drawn from.
    candidate : str
        The prior it was learned under, or the names of those that were stacked.
    errors : dict of str to float
        Mean squared error on held-out rows of the dense reference of every candidate. Those that
        were dropped early ran on two folds only.
    noise, variance : float
        Of the noise and of the function itself, in units of the target's variance.
    n_rows : int
        Rows that the likelihood saw.
    columns : tuple of str
        Names of the inputs.
    """

    law: Law
    candidate: str
    errors: Mapping[str, float]
    noise: float
    variance: float
    n_rows: int
    columns: tuple[str, ...]

    def summary(self, most: int = 20) -> str:
        """What was learned, as text: candidate, noise, variables and scales."""
        errors = ", ".join(f"{name} {error:.4g}" for name, error in self.errors.items())
        return (
            f"{self.candidate} law learned from {self.n_rows} rows; held-out error by candidate: "
            f"{errors}.\nNoise: {self.noise:.2g} of the variance of the target.\n"
            + self.law.summary(self.columns, most)
        )


def standardise(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    settings: LawSettings,
) -> StandardRows:
    """Rows as `fit_candidate` takes them; y has the shape (rows, targets)."""
    return StandardRows.of(
        X,
        y,
        weights,
        input_scale=settings.input_scale,
        input_clip=settings.input_clip,
        rng=np.random.default_rng(settings.seed),
    )


def fit_candidate(prior: Prior, data: StandardRows, settings: LawSettings) -> LawFit:
    """Fit a law with this prior, and the reference that it makes of the rows."""
    kernel = _fit_kernel(prior, data, settings)
    law = replace(law_of_kernel(kernel), activation=settings.activation)
    law = replace(law, tempering=settings.tempering)
    reference: Reference
    if len(data.Z) <= EXACT_ROWS:
        reference = ExactReference.fit(kernel, data)
    else:
        # Real features without tempering: the kernel of this pool is that of the law.
        pool = law_of_kernel(kernel).draw(POOL, np.random.default_rng(settings.seed))
        reference = PoolReference.fit(kernel, data, pool)
    return LawFit(prior.name, data, reference, law, kernel.noise, kernel.variance())


def _fit_kernel(prior: Prior, data: StandardRows, settings: LawSettings) -> KernelSettings:
    """Minimise in two rounds: few rows and all inputs, then more rows and the inputs that count."""
    kept = data.varying
    if not len(kept):  # nothing to learn from these rows; all inputs are 0
        kept = np.arange(data.Z.shape[1])

    def likelihood(n_rows: int, prior: Prior = prior) -> Likelihood:
        rows = data.subset(min(n_rows, settings.max_rows), np.random.default_rng(settings.seed))
        return Likelihood(np.ascontiguousarray(rows.Z[:, kept].T), rows.t, rows.weights, prior)

    first = likelihood(_FIRST_ROWS)
    if len(kept) > _MOST_INPUTS:
        kept = kept[_steepest(likelihood(_SCREENING_ROWS, replace(prior, isotropic=True)))]
        first = likelihood(_FIRST_ROWS)
    theta, value = first.descend(first.start(), _FIRST_STEPS)
    places = first.worth_keeping(theta, value)
    kept, theta = kept[places], first.without(theta, places)
    last = likelihood(settings.max_rows)
    theta, _ = last.descend(theta, _LAST_STEPS)
    found = last.settings(theta)
    scales = np.full(data.Z.shape[1], prior.scale)
    inclusion = np.zeros(data.Z.shape[1])
    scales[kept], inclusion[kept] = found.scales, found.inclusion
    return replace(found, scales=scales, inclusion=inclusion)


def _steepest(alike: Likelihood) -> NDArray[np.intp]:
    """Inputs whose inclusion the likelihood asks for most, where all inputs are alike."""
    theta, _ = alike.descend(alike.start(), _SCREENING_STEPS)
    d = len(alike.XT)
    apart = replace(alike, prior=replace(alike.prior, isotropic=False))
    full = np.concatenate([np.repeat(theta[:2], d), theta[2:]])
    _, gradient = apart(full)
    return np.sort(np.argsort(gradient[d : 2 * d], kind="stable")[:_MOST_INPUTS])


def law_of_kernel(kernel: KernelSettings) -> FeatureLaw:
    """The law whose kernel this is, up to its variance; variables and orders in use only."""
    p = kernel.inclusion
    d = len(p)
    Q = min(len(kernel.order_weights) - 1, int(np.count_nonzero(p)))
    share = np.zeros(Q)
    for q in range(1, Q + 1):
        only = np.zeros(q + 1)
        only[q] = kernel.order_weights[q]
        # Each variable of a set of order q counts the set once.
        share[q - 1] = variance_shares(p, only).sum() / q
    orders = tuple(q for q in range(1, Q + 1) if share[q - 1] > 0)
    return FeatureLaw(
        d,
        orders,
        scale=tuple(kernel.scales.tolist()),
        variable_weights=tuple((p / p.max()).tolist()),
        order_weights=tuple((share[share > 0] / share.sum()).tolist()),
    )
