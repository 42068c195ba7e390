"""The law of the features as a value: draws features and computes its kernel.

A feature is φ(<x, w> + b) with a weight vector w that touches only a few variables. The law says
how such features are drawn: how many variables (the order q), which ones, weights and phases. Its
kernel is the mean product of a feature at two points,

    k(x, z) = E φ(<x, w> + b) φ(<z, w> + b)*,

the kernel of the Gaussian process that a sum of infinitely many features converges to. A law does
not depend on rows, targets or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harfe._core.arguments import check_choice, check_count, is_number, is_whole
from harfe.features.activations import ACTIVATIONS
from harfe.features.index_sets import IndexSets
from harfe.features.law_kernels import KernelSum
from harfe.features.law_parameters import (
    CAPS,
    WEIGHT_LAWS,
    resolve_groups,
    resolve_numbers,
    resolve_orders,
)
from harfe.features.pool import FeaturePool

BIASES = ("phase", "uniform", "none")

# Added in quadrature to the scales of a tempered law (decision 22).
_TEMPERED_SCALE = 0.3


@dataclass(frozen=True)
class FeatureLaw:
    """How a feature is drawn.

    Feature j has order ``orders[j % len(orders)]``, or one drawn by `order_weights`; its index set
    S of that size has probability proportional to Π_{k in S} p_k over all sets that the constraint
    allows (p in units of the largest, which matters only if small groups lead to sets of unequal
    size); its weights are N(0, σ_k²), U[-σ_k, σ_k] or σ_k times Student's t; its phase is U[0, 2π],
    U[-1, 1] or 0. Feature j is a function of the seed, j and the law alone: a larger pool extends a
    smaller one.

    Parameters
    ----------
    n_variables : int
        Number of inputs d.
    orders : tuple of int
        One q, or several for a mixed pool with equal parts.
    weights : {"normal", "uniform", "cauchy", "t3", "t5"}
        Student's t has 1 ("cauchy"), 3 or 5 degrees of freedom: rougher functions, whose kernel is
        built from Matérn functions of order 1/2, 3/2 and 5/2.
    scale : tuple of float
        Standard deviation (normal), half-width (uniform) or unit (t) of the weights; one for all
        variables, or one for each.
    bias : {"phase", "uniform", "none"}
        U[0, 2π], U[-1, 1] or no bias.
    activation : {"sin", "cos", "tanh", "sigmoid", "relu", "exp"}
    variable_weights : tuple of float or None
        p_k >= 0, how often each input is drawn; None draws all equally often.
    groups : tuple of tuples of int or None
        A feature only combines variables of one group. A group smaller than the order is drawn as
        a whole.
    order_weights : tuple of float or None
        η, how often each order is drawn; None takes them in turn.
    tempering : float
        Share of the features, from 0 to 1, drawn from the `tempered` copy instead.
    """

    n_variables: int
    orders: tuple[int, ...] = (2,)
    weights: str = "normal"
    scale: tuple[float, ...] = (1.0,)
    bias: str = "phase"
    activation: str = "sin"
    variable_weights: tuple[float, ...] | None = None
    groups: tuple[tuple[int, ...], ...] | None = None
    order_weights: tuple[float, ...] | None = None
    tempering: float = 0.0

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, tuple(ACTIVATIONS))
        check_choice("weights", self.weights, tuple(WEIGHT_LAWS))
        check_choice("bias", self.bias, BIASES)
        d = self.n_variables
        for q in self.orders:
            check_count("order", q, 2)
            if q > d:
                raise ValueError(
                    f"order={q} is larger than the number of inputs, {d}; pass order={d} or less"
                )
        if not self.orders:
            raise ValueError("order=() is empty; pass e.g. order=2 or order=(1, 2)")
        if len(self.scale) not in (1, d) or not all(
            is_number(v) and 0 < v < np.inf for v in self.scale
        ):
            raise ValueError(
                f"scale={_brief(self.scale)} must be one positive number or one for each of the "
                f"{d} inputs, e.g. scale=1.0"
            )
        self._check_variable_weights()
        self._check_groups()
        eta = self.order_weights
        if eta is not None and not (
            len(eta) == len(self.orders)
            and all(is_number(v) and 0 <= v < np.inf for v in eta)
            and sum(eta) > 0
        ):
            raise ValueError(
                f"order_weights={_brief(eta)} must hold one finite number >= 0 for each of the "
                f"orders {self.orders}, not all 0; pass None to use each order equally often"
            )
        if not (is_number(self.tempering) and 0 <= self.tempering <= 1):
            raise ValueError(
                f"tempering={self.tempering!r} must be a share from 0 to 1, e.g. tempering=0.5"
            )

    def _check_groups(self) -> None:
        d, drawn = self.n_variables, np.flatnonzero(self._p())
        if self.groups is None:
            return
        for group in self.groups:
            if not all(is_whole(k) and 0 <= k < d for k in group):
                raise ValueError(f"groups={self.groups!r} must hold indices from 0 to {d - 1}")
        if not any(set(group) & set(drawn) for group in self.groups):
            raise ValueError(
                f"groups={self.groups!r} leaves no input to draw; name one of positive weight"
            )

    def _check_variable_weights(self) -> None:
        p, d = self.variable_weights, self.n_variables
        if p is None:
            return
        if len(p) != d or not all(is_number(v) and 0 <= v < np.inf for v in p):
            raise ValueError(
                f"variable_weights={_brief(p)} must hold one finite number >= 0 for each of the "
                f"{d} inputs; pass None to draw all equally often"
            )
        positive = sum(v > 0 for v in p)
        if positive < max(self.orders):
            raise ValueError(
                f"variable_weights={_brief(p)} leaves {positive} inputs to draw from, but "
                f"order={max(self.orders)} needs as many; lower the order or raise some weights"
            )

    @classmethod
    def from_settings(
        cls,
        n_variables: int,
        *,
        order: Any = "auto",
        weights: str = "normal",
        scale: Any = 1.0,
        bias: str = "phase",
        activation: str = "sin",
        interaction_cst: Any = None,
        variable_weights: Any = None,
        names: Sequence[str] | None = None,
    ) -> FeatureLaw:
        """Return the law described by the plain parameters of the estimators.

        `order` "auto" is 2, or 1 for a single input. `interaction_cst` is as in
        ``HistGradientBoostingRegressor``: "no_interactions", "pairwise", or sets of indices or
        names; variables in no set form another set. A constraint caps the order.
        """
        orders = resolve_orders(order, n_variables)
        groups = None
        if isinstance(interaction_cst, str):
            check_choice("interaction_cst", interaction_cst, tuple(CAPS))
            orders = tuple(min(q, CAPS[interaction_cst]) for q in orders)
        elif interaction_cst is not None:
            names = None if names is None else [str(name) for name in names]
            groups = resolve_groups(interaction_cst, n_variables, names)
        return cls(
            n_variables=n_variables,
            orders=orders,
            weights=weights,
            scale=resolve_numbers("scale", scale),
            bias=bias,
            activation=activation,
            variable_weights=None
            if variable_weights is None
            else resolve_numbers("variable_weights", variable_weights),
            groups=groups,
        )

    def draw(self, n: int, rng: np.random.Generator) -> FeaturePool:
        """Draw n features; the first ones do not depend on n."""
        if not self.tempering:
            return self._draw_plain(n, rng)
        # Feature j is tempered if (j + 1)·tempering reaches the next whole number.
        multiples = np.floor(np.arange(n + 1) * self.tempering)
        is_tempered = np.diff(multiples) > 0
        place = np.empty(n, dtype=np.intp)
        place[np.argsort(is_tempered, kind="stable")] = np.arange(n)
        plain_rng, tempered_rng = rng.spawn(2)
        n_tempered = int(is_tempered.sum())
        plain = replace(self, tempering=0.0)._draw_plain(n - n_tempered, plain_rng)
        return plain.join(self.tempered()._draw_plain(n_tempered, tempered_rng)).take(place)

    def _draw_plain(self, n: int, rng: np.random.Generator) -> FeaturePool:
        # One stream per quantity, filled row by row, so that a larger pool extends a smaller one.
        value_stream, phase_stream, *index_streams = rng.spawn(2 + len(self.orders))
        widest = max(self.orders)
        part = np.arange(n) % len(self.orders)
        if self.order_weights is not None:
            edges = np.cumsum(self._order_shares())
            part = np.searchsorted(edges / edges[-1], rng.spawn(1)[0].random(n), side="right")
        indices = np.full((n, widest), -1, dtype=np.intp)
        for k, (q, stream) in enumerate(zip(self.orders, index_streams, strict=True)):
            mine = part == k
            sampler = IndexSets(q, self._p(), self.groups)
            indices[mine, :q] = sampler.draw(int(mine.sum()), stream)
        values = WEIGHT_LAWS[self.weights].draw(value_stream, (n, widest))
        values = np.where(indices >= 0, values * self._scales()[indices], 0.0)
        low, high = {"phase": (0.0, 2 * np.pi), "uniform": (-1.0, 1.0), "none": (0.0, 0.0)}[
            self.bias
        ]
        phases = phase_stream.uniform(low, high, n)
        return FeaturePool(self.n_variables, indices, values, phases, self.activation)

    def tempered(self) -> FeatureLaw:
        """Return the copy that gives weak variables and orders a chance.

        Orders take turns; all variables in use, however weak, are drawn equally often; each scale
        σ becomes √(σ² + 0.3²), so that a variable that seemed linear may turn out curved.
        """
        used = (self._p() > 0).astype(float)
        return replace(
            self,
            scale=tuple(np.hypot(self._scales(), _TEMPERED_SCALE).tolist()),
            variable_weights=tuple(used.tolist()),
            order_weights=None,
            tempering=0.0,
        )

    def usage(self) -> NDArray[np.float64]:
        """Share of the features that depend on each variable; without the tempered copy."""
        self._refuse_overlap("usage")
        total = np.zeros(self.n_variables)
        for q, share in zip(self.orders, self._order_shares(), strict=True):
            total += share * IndexSets(q, self._p(), self.groups).inclusion()
        return total

    def kernel(self, X: ArrayLike, Z: ArrayLike | None = None) -> NDArray[np.float64]:
        """Mean product of a feature at the rows of X and of Z (or of X again), exactly.

        Parameters
        ----------
        X, Z : arrays of shape (rows, n_variables)
            In the units of the law.

        Returns
        -------
        array of shape (rows of X, rows of Z)
        """
        phi = ACTIVATIONS[self.activation]
        if not phi.is_wave:
            waves = ", ".join(repr(name) for name, row in ACTIVATIONS.items() if row.is_wave)
            raise ValueError(
                f"kernel: activation={self.activation!r} has no closed form; pass a law with one "
                f"of {waves}"
            )
        XT = self._transposed("X", X)
        ZT = None if Z is None else self._transposed("Z", Z)
        K = self._mean_cosine(XT, ZT)
        if not phi.is_complex:
            # sin a sin b = (cos(a - b) - cos(a + b)) / 2; a + b contains the phase twice.
            double_phase = {"phase": 0.0, "uniform": np.sin(2.0) / 2, "none": 1.0}[self.bias]
            if double_phase:
                sign = (phi.turn**2).real
                K += sign * double_phase * self._mean_cosine(XT, -(XT if ZT is None else ZT))
            K /= 2
        if self.tempering:
            share = self.tempering
            K = (1 - share) * K + share * self.tempered().kernel(X, Z)
        return K

    def _mean_cosine(
        self, XT: NDArray[np.float64], ZT: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """E cos(<x - z, w>)."""
        self._refuse_overlap("kernel")
        weights = WEIGHT_LAWS[self.weights]
        rates = weights.rates(self._scales())
        if self.orders == (int(np.count_nonzero(self._p())),) and self.weights != "uniform":
            used = (self._p() > 0).astype(float)
            return KernelSum(rates, weights.code, used, np.ones(1), full=True).values(XT, ZT)
        K: Any = 0.0
        samplers = [IndexSets(q, self._p(), self.groups) for q in self.orders]
        # These units make the polynomial of the highest order 1, so no power of p overflows.
        highest = samplers[int(np.argmax(self.orders))]
        shift = 0.0 if self.groups else highest.log_total / highest.order
        for g, members in enumerate(samplers[0].members):
            p = np.exp(np.log(self._p()[members]) - np.log(highest.unit) - shift)
            eta = np.zeros(1 + max(sampler.sizes[g] for sampler in samplers))
            for sampler, share in zip(samplers, self._order_shares(), strict=True):
                log_total = sampler.log_total - sampler.order * shift
                eta[sampler.sizes[g]] += share * np.exp(-log_total)
            other = None if ZT is None else ZT[members]
            K = K + KernelSum(rates[members], weights.code, p, eta).values(XT[members], other)
        return np.asarray(K)

    def summary(self, names: Sequence[str] | None = None, most: int = 20) -> str:
        """Return a table of the variables that features depend on, the most used first.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the variables; x0, x1, ... by default.
        most : int, default=20
            Maximum number of rows.
        """
        usage, scales = self.usage(), self._scales()
        names = [f"x{j}" for j in range(self.n_variables)] if names is None else names
        used = [j for j in np.argsort(-usage, kind="stable") if usage[j] > 0]
        orders = ", ".join(
            f"{share:.0%} of order {q}"
            for q, share in zip(self.orders, self._order_shares(), strict=True)
            if share > 0
        )
        width = max([8, *(len(names[j]) for j in used[:most])])
        lines = [
            f"{self.activation} features with {self.weights} weights: {orders}.",
            f"{'variable':{width}}  in features  scale",
            *(f"{names[j]:{width}}  {usage[j]:11.1%}  {scales[j]:.3g}" for j in used[:most]),
        ]
        if len(used) > most:
            lines.append(f"... and {len(used) - most} variables that are used less")
        unused = self.n_variables - len(used)
        if unused:
            lines.append(f"not used: {unused} of {self.n_variables} variables")
        return "\n".join(lines)

    def _refuse_overlap(self, what: str) -> None:
        groups = self.groups or ()
        if len(set().union(*groups)) < sum(len(g) for g in groups):
            raise ValueError(f"{what}: groups={self.groups!r} overlap, which has no closed form")

    def _order_shares(self) -> NDArray[np.float64]:
        if self.order_weights is None:
            return np.full(len(self.orders), 1 / len(self.orders))
        eta = np.asarray(self.order_weights, dtype=float)
        eta = eta / eta.max()
        return np.asarray(eta / eta.sum())

    def _scales(self) -> NDArray[np.float64]:
        return np.array(np.broadcast_to(np.asarray(self.scale, dtype=float), self.n_variables))

    def _transposed(self, name: str, rows: ArrayLike) -> NDArray[np.float64]:
        rows = np.asarray(rows, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != self.n_variables:
            raise ValueError(
                f"kernel: {name} has shape {rows.shape}; pass rows of {self.n_variables} inputs"
            )
        return np.ascontiguousarray(rows.T)

    def _p(self) -> NDArray[np.float64]:
        if self.variable_weights is None:
            return np.ones(self.n_variables)
        return np.asarray(self.variable_weights, dtype=float)


def _brief(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return repr(values[0])
    shown = ", ".join(repr(v) for v in values[:5])
    return f"[{shown}{', ...' if len(values) > 5 else ''}]"
