"""Learning the law of the features from data.

A candidate is a prior on laws (`Prior`): how many inputs a feature may depend on, and how freely
scales may differ. Each is fitted by its penalised likelihood. The candidate is chosen by the error
on held-out rows, with the law fitted without them, because likelihoods of different candidates are
a poorer guide (heavy tails are fitted by interactions that do not exist).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import Law, MixedLaw
from harfe.learning.likelihood import KernelSettings, Likelihood, Prior, variance_shares
from harfe.learning.matching import most_points
from harfe.learning.reference import (
    EXACT_ROWS,
    ExactReference,
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
        Prior("joint", 1, full=True),
        Prior("rough", 1, full=True, weights="cauchy"),
    )
}

# The same for warped inputs, where the estimator is free to choose.
WARPED = {
    f"{name}, {warp}s": replace(CANDIDATES[name], name=f"{name}, {warp}s", input_warp=warp)
    for warp in ("rank", "log")
    for name in ("fours", "rough")
}

# Share of a pool drawn from the tempered copy of a learned law.
TEMPERING = 0.3

# Maximum number of rows in the likelihood, and of steps with them. Above this noise, in units of
# the variance, a law may be learned from fewer: what more rows would show is small beside it.
MOST_ROWS, _LAST_STEPS = 500, 30
_NOISY = 0.03

# Joint laws see more rows: their kernels are cheap, and weak inputs show only in many rows. Inputs
# are dropped at the end, for this share of their price, and a few steps follow.
JOINT_ROWS, _JOINT_SHARE, _JOINT_STEPS = 1000, 0.5, 10

# A feature of so many inputs has 2^8 components, and explanations go through all of them.
_MOST_JOINT = 8

# If there are more inputs, only those to which the likelihood is most sensitive are kept.
_MOST_INPUTS = 100
_SCREENING_ROWS, _SCREENING_STEPS = 200, 10


@dataclass(frozen=True)
class _Round:
    """Steps on few rows, after which weak inputs are dropped.

    Attributes
    ----------
    rows, rows_per_input : int
        Number of rows, and more if there are many inputs: an interaction of few of many inputs
        shows only in many rows.
    smallest_noise : float
        Few rows can be interpolated by a law without noise, from which more rows would not lead
        back.
    fewest_inputs : int
        With fewer, none is dropped.
    share : float
        Of the price of an input, which must be lower the fewer rows there are.
    """

    rows: int
    rows_per_input: int
    steps: int
    smallest_noise: float
    fewest_inputs: int
    share: float


_ROUNDS = (_Round(150, 10, 15, 1e-2, 31, 0.1), _Round(300, 0, 25, 0.0, 1, 1.0))


@dataclass(frozen=True)
class LawSettings:
    """Resolved settings: how rows are prepared and how many are used."""

    seed: int
    input_scale: str = "standard"
    input_clip: float | None = 5.0
    max_rows: int = MOST_ROWS
    rows_if_noisy: int = MOST_ROWS
    joint_rows: int = JOINT_ROWS
    reference_rows: int = EXACT_ROWS
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
        Law from which pools are drawn.
    noise, variance : float
        ν and V = Σ_q η_q e_q(p).
    kernel : KernelSettings or None
        The parameters that were fitted; None for a stack.
    """

    name: str
    data: StandardRows
    reference: Reference
    law: Law
    noise: float
    variance: float
    kernel: KernelSettings | None = None

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the reference in the user's units, shape (rows, targets)."""
        return self.data.to_targets(self.reference.predict(self.data.standardise(X)))


def stack(fits: Sequence[LawFit], weights: Sequence[float]) -> LawFit:
    """Return the weighted sum of candidates fitted to the same rows, without those of weight 0."""
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
    """A law of the features learned from data.

    Attributes
    ----------
    law : FeatureLaw or MixedLaw
        Orders, variables and scales, on standardised inputs, from which features are drawn.
    candidate : str
        The prior it was learned under, or the names of those that were stacked.
    errors : dict of str to float
        Mean squared error of every candidate's dense reference on held-out rows. Candidates dropped
        early ran on one or two folds only.
    noise, variance : float
        Variances of the noise and of the function itself, in units of the target's variance.
    n_rows : int
        Number of rows in the likelihood.
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
        """Return what was learned as text: candidate, noise, variables and scales."""
        errors = ", ".join(f"{name} {error:.4g}" for name, error in self.errors.items())
        return (
            f"{self.candidate} law learned from {self.n_rows} rows; held-out error by candidate: "
            f"{errors}.\nNoise: {self.noise:.2g} of the variance of the target.\n"
            + self.law.summary(self.columns, most)
        )


def sampling_notes(n_rows: int) -> list[str]:
    """State which parts of learning a law use a sample of this many rows; empty if none does."""
    notes = []
    if n_rows > MOST_ROWS:
        joint = f" ({JOINT_ROWS} for joint laws)" if n_rows > JOINT_ROWS else ""
        notes.append(
            f"the likelihood of a law is computed on {MOST_ROWS} of the {n_rows} rows{joint}"
        )
    if n_rows > EXACT_ROWS:
        notes.append(f"its reference is fitted to {EXACT_ROWS} of the {n_rows} rows")
    if n_rows > most_points(n_rows):
        notes.append(f"features match it at {most_points(n_rows)} of the {n_rows} rows")
    return notes


def standardise(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    settings: LawSettings,
    input_warp: str = "none",
    link: str = "none",
) -> StandardRows:
    """Prepare rows for `fit_candidate`; y has shape (rows, targets)."""
    return StandardRows.of(
        X,
        y,
        weights,
        input_scale=settings.input_scale,
        input_clip=settings.input_clip,
        input_warp=input_warp,
        rng=np.random.default_rng(settings.seed),
        link=link,
    )


def fit_candidate(
    prior: Prior,
    data: StandardRows,
    settings: LawSettings,
    starts: Sequence[KernelSettings] = (),
) -> LawFit:
    """Fit a law with this prior, and its reference on the rows.

    With `starts`, fitted to other rows of the same table, the search begins at the likeliest.
    """
    if starts:
        kernel = _refit_kernel(prior, data, settings, starts)
    else:
        kernel = _fit_kernel(prior, data, settings)
    law = replace(law_of_kernel(kernel), activation=settings.activation)
    # All variables of a joint law are in use; larger scales would only add noise.
    law = replace(law, tempering=0.0 if prior.full else settings.tempering)
    rows = data.subset(settings.reference_rows, np.random.default_rng(settings.seed))
    reference = ExactReference.fit(kernel, rows)
    return LawFit(prior.name, data, reference, law, kernel.noise, kernel.variance(), kernel)


def _likelihood(
    prior: Prior,
    data: StandardRows,
    settings: LawSettings,
    kept: NDArray[np.intp],
    n_rows: int,
) -> Likelihood:
    """The likelihood of at most so many rows, as a function of some inputs."""
    rows = data.subset(n_rows, np.random.default_rng(settings.seed))
    return Likelihood(np.ascontiguousarray(rows.Z[:, kept].T), rows.t, rows.weights, prior)


def _fit_kernel(prior: Prior, data: StandardRows, settings: LawSettings) -> KernelSettings:
    """Fit on more and more rows, from which the inputs that do not matter are dropped."""
    kept = data.varying
    if not len(kept):  # nothing to learn from these rows; all inputs are 0
        kept = np.arange(data.Z.shape[1])
    if len(kept) > _MOST_INPUTS:
        alike = replace(prior, isotropic=True)
        kept = kept[_steepest(_likelihood(alike, data, settings, kept, _SCREENING_ROWS))]
    theta = _likelihood(prior, data, settings, kept, _ROUNDS[0].rows).start()
    for step in _ROUNDS:
        n_rows = min(max(step.rows, step.rows_per_input * len(kept)), _ROUNDS[-1].rows)
        n_rows = min(n_rows, settings.max_rows)
        noise = max(step.smallest_noise, prior.smallest_noise)
        noisier = replace(prior, smallest_noise=noise)
        few = _likelihood(noisier, data, settings, kept, n_rows)
        theta, value = few.descend(theta, step.steps)
        noisy = few.settings(theta).noise > _NOISY
        if len(kept) >= step.fewest_inputs and not prior.full:
            places = few.worth_keeping(theta, value, step.share)
            kept, theta = kept[places], few.without(theta, places)
    n_rows = settings.rows_if_noisy if noisy else settings.max_rows
    if prior.full:
        n_rows = settings.joint_rows
    last = _likelihood(prior, data, settings, kept, n_rows)
    theta, value = last.descend(theta, _LAST_STEPS)
    if prior.full:
        places = last.worth_keeping(theta, value, _JOINT_SHARE)
        strengths = last.settings(theta).strengths()[places]
        places = np.sort(places[np.argsort(-strengths, kind="stable")[:_MOST_JOINT]])
        if len(places) < len(kept):
            kept, last, theta = kept[places], last.restricted(places), last.without(theta, places)
            theta, _ = last.descend(theta, _JOINT_STEPS)
    return _end(last, theta, kept, data)


def _refit_kernel(
    prior: Prior, data: StandardRows, settings: LawSettings, starts: Sequence[KernelSettings]
) -> KernelSettings:
    """Fit from the likeliest of several starts, with its inputs."""
    likelihoods = []
    for start in starts:
        kept = np.flatnonzero(start.inclusion)
        n_rows = settings.joint_rows if prior.full else settings.max_rows
        last = _likelihood(prior, data, settings, kept, n_rows)
        theta = last.parameters(start.used())
        likelihoods.append((last.value(theta), last, theta, kept))
    _, last, theta, kept = min(likelihoods, key=lambda found: found[0])
    return _end(last, last.descend(theta, _LAST_STEPS)[0], kept, data)


def _end(
    last: Likelihood, theta: NDArray[np.float64], kept: NDArray[np.intp], data: StandardRows
) -> KernelSettings:
    """The kernel of all inputs, of which those not kept are never included."""
    found = last.settings(theta)
    scales = np.full(data.Z.shape[1], last.prior.scale)
    inclusion = np.zeros(data.Z.shape[1])
    scales[kept], inclusion[kept] = found.scales, found.inclusion
    return replace(found, scales=scales, inclusion=inclusion)


def _steepest(alike: Likelihood) -> NDArray[np.intp]:
    """Inputs whose inclusion raises the likelihood most, starting from equal inputs."""
    theta, _ = alike.descend(alike.start(), _SCREENING_STEPS)
    d = len(alike.XT)
    apart = replace(alike, prior=replace(alike.prior, isotropic=False))
    n_own = 1 if alike.prior.full else 2
    full = np.concatenate([np.repeat(theta[:n_own], d), theta[n_own:]])
    _, gradient = apart(full)
    by_input = gradient[:d] if alike.prior.full else gradient[d : 2 * d]
    return np.sort(np.argsort(by_input, kind="stable")[:_MOST_INPUTS])


def law_of_kernel(kernel: KernelSettings) -> FeatureLaw:
    """Return the law with this kernel, up to its variance; only variables and orders in use."""
    p = kernel.inclusion
    d = len(p)
    used = int(np.count_nonzero(p))
    orders: tuple[int, ...]
    if kernel.full:
        orders, share = (used,), np.ones(1)
    else:
        Q = min(len(kernel.order_weights) - 1, used)
        share = np.zeros(Q)
        for q in range(1, Q + 1):
            only = np.zeros(q + 1)
            only[q] = kernel.order_weights[q]
            # A set of order q is counted once by each of its q variables.
            share[q - 1] = variance_shares(p, only).sum() / q
        orders = tuple(q for q in range(1, Q + 1) if share[q - 1] > 0)
        share = share[share > 0]
    return FeatureLaw(
        d,
        orders,
        weights=kernel.weights,
        scale=tuple(kernel.scales.tolist()),
        variable_weights=tuple((p / p.max()).tolist()),
        order_weights=tuple((share / share.sum()).tolist()),
    )
