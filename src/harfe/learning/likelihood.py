"""Penalised marginal likelihood of data under a law of the features, with its gradient.

With coefficients drawn at random, the sum of infinitely many features of a law is a Gaussian
process with the law's kernel

    k(x, x') = Σ_q η_q e_q(u),   u_j = p_j χ(σ_j (x_j - x'_j)),

χ the characteristic function of the weights, or η Π_j χ if features depend on all inputs at once,
and rows y with weights w, standardised, have the covariance C = K + 1 + ν diag(1/w): the kernel, a
constant, the noise. A law is fitted by minimising

    -log N(y; 0, C) + Σ_j ((log σ_j - log s₀) / t)² · strength/2 + sparsity Σ_j p_j
                    + Σ_{q >= 2} (log η_q)² / 8

over σ, p, η (η_1 = 1, but free if it stands for all inputs at once) and ν. A row of weight 2 counts
like two copies of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from harfe._core.threads import one_blas_thread
from harfe.features.law_kernels import KernelSum
from harfe.features.law_parameters import WEIGHT_LAWS
from harfe.learning import cholesky

# Bounds of the logarithms of the parameters, for inputs and targets of unit deviation. Beyond them
# a feature is constant or noise on any data.
_SCALE = (np.log(1e-3), np.log(30.0))
_INCLUSION = (np.log(1e-8), np.log(1e4))
_ORDER_WEIGHT = (np.log(1e-6), np.log(1e6))
_LARGEST_NOISE = np.log(10.0)

_START_SCALE, _START_NOISE = 0.5, 0.1
# Of features of all inputs, times the root of their number.
_FULL_SCALE = 0.75
_ORDER_PENALTY = 0.25

# Rounding makes the kernel of nearby rows indefinite by about this much, in units of its trace.
_JITTER = 1e-14

# L-BFGS ends when so many steps together gain less than this: a difference of log likelihoods that
# no data can tell from none.
_STEPS, _SMALLEST_GAIN = 3, 0.3


@dataclass(frozen=True)
class Prior:
    """Prior on laws: a candidate for `learn_law`.

    Attributes
    ----------
    name : str
    max_order : int
        Features depend on 1 .. max_order variables.
    isotropic : bool
        One scale and one inclusion weight for all variables.
    full : bool
        Features depend on all variables in use at once; `max_order` plays no part.
    weights : str
        Law of the weights, see `harfe.features.law_parameters`.
    scale, spread, strength : float
        s₀, t and the strength of the penalty on log σ.
    sparsity : float
        Strength of the penalty on Σ p.
    smallest_noise : float
        Lower bound of ν, in units of the target's variance.
    input_warp : str
        Warp of the inputs that the law is for, see `harfe.features.units`.
    """

    name: str
    max_order: int
    isotropic: bool = False
    full: bool = False
    weights: str = "normal"
    scale: float = 0.5
    spread: float = 1.0
    strength: float = 1.0
    sparsity: float = 1.0
    smallest_noise: float = 1e-8
    input_warp: str = "none"


@dataclass(frozen=True)
class KernelSettings:
    """σ, p, η and ν: a kernel on standardised inputs, and the noise.

    Attributes
    ----------
    scales, inclusion : arrays of shape (inputs,)
        Where features depend on all variables in use, inclusion is 1 or 0.
    order_weights : array
        Of the orders 0, 1, ..., where that of order 0 is 0; or the variance of a full kernel alone.
    noise : float
    weights : str
        Law of the weights.
    full : bool
    """

    scales: NDArray[np.float64]
    inclusion: NDArray[np.float64]
    order_weights: NDArray[np.float64]
    noise: float
    weights: str = "normal"
    full: bool = False

    @property
    def sum(self) -> KernelSum:
        """The kernel as the compiled loops need it."""
        law = WEIGHT_LAWS[self.weights]
        p, eta = self.inclusion, self.order_weights
        return KernelSum(law.rates(self.scales), law.code, p, eta, self.full)

    def used(self) -> KernelSettings:
        """The same for only the variables in use."""
        kept = self.inclusion > 0
        return replace(self, scales=self.scales[kept], inclusion=self.inclusion[kept])

    def strengths(self) -> NDArray[np.float64]:
        """How much each variable matters, for comparison among them."""
        if self.full:
            return self.scales
        return variance_shares(self.inclusion, self.order_weights)

    def variance(self) -> float:
        """Prior variance V of the function at any point: Σ_q η_q e_q(p), or that of the product."""
        d = len(self.scales)
        return float(self.kernel(np.zeros((d, 1)))[0, 0])

    def kernel(
        self, XT: NDArray[np.float64], ZT: NDArray[np.float64] | None = None, fill: bool = True
    ) -> NDArray[np.float64]:
        """Σ_q η_q e_q(u) between the columns of XT and those of ZT, or of XT itself if ZT is None.

        In the latter case, without `fill`, only the lower triangle is valid.
        """
        return self.sum.values(XT, ZT, fill=fill)

    def factor(self, XT: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cholesky factor of the covariance K + 1 + ν diag(1/w) of rows, in the lower triangle.

        Where the noise is too small for a factor, as little as possible is added to it.
        """
        noise = self.noise / weights
        jitter = 0.0
        while True:
            C = self.kernel(XT, fill=False)
            C += 1.0
            C[np.diag_indices(len(C))] += noise + jitter
            L = cholesky.factor(C)
            if L is not None:
                return L
            least = _JITTER * float(np.sum(1 + self.variance() + noise))
            jitter = max(10 * jitter, least)


@dataclass(frozen=True)
class Likelihood:
    """The penalised likelihood of some rows under laws with one prior.

    Attributes
    ----------
    XT : array of shape (inputs, rows), standardised
    y : array of shape (rows, targets), standardised
    weights : array of shape (rows,)
    prior : Prior
    """

    XT: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    prior: Prior

    @property
    def max_order(self) -> int:
        """The maximum order of the prior, or the number of inputs if that is lower."""
        return min(self.prior.max_order, len(self.XT))

    @property
    def _own(self) -> int:
        """Number of scales."""
        return 1 if self.prior.isotropic else len(self.XT)

    def start(self) -> NDArray[np.float64]:
        """Starting point of the search, with all variables equal."""
        d, own = len(self.XT), self._own
        noise = [np.log(max(_START_NOISE, 2 * self.prior.smallest_noise))]
        if self.prior.full:
            return np.concatenate([np.full(own, np.log(_FULL_SCALE / np.sqrt(d))), [0.0], noise])
        scales, p = np.full(own, np.log(_START_SCALE)), np.full(own, -np.log(d))
        return np.concatenate([scales, p, np.zeros(self.max_order - 1), noise])

    def settings(self, theta: NDArray[np.float64]) -> KernelSettings:
        """Parameters from their logarithms."""
        d, own, prior = len(self.XT), self._own, self.prior
        scales = np.array(np.broadcast_to(np.exp(theta[:own]), d))
        noise = float(np.exp(theta[-1]))
        if prior.full:
            variance = np.exp(theta[own:-1])
            return KernelSettings(scales, np.ones(d), variance, noise, prior.weights, True)
        p = np.array(np.broadcast_to(np.exp(theta[own : 2 * own]), d))
        eta = np.concatenate([[0.0, 1.0], np.exp(theta[2 * own : -1])])
        return KernelSettings(scales, p, eta, noise, prior.weights)

    def parameters(self, settings: KernelSettings) -> NDArray[np.float64]:
        """Logarithms of the parameters, of which those of all inputs are positive."""
        own = slice(1) if self.prior.isotropic else slice(None)
        parts = [settings.scales[own], settings.inclusion[own], settings.order_weights[2:]]
        if self.prior.full:
            parts = [settings.scales[own], settings.order_weights]
        return np.log(np.concatenate([*parts, [settings.noise]]))

    def value(self, theta: NDArray[np.float64]) -> float:
        """Penalised negative log likelihood, up to a constant."""
        return self._solve(theta)[0]

    def __call__(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Penalised negative log likelihood, up to a constant, and its gradient."""
        value, slopes, L, solved = self._solve(theta)
        settings = self.settings(theta)
        T = self.y.shape[1]
        G = cholesky.invert(L)
        G *= 0.5 * T
        G -= (0.5 * solved) @ solved.T
        by_scale, by_p, by_eta = settings.sum.gradient(self.XT, G)
        # Rates are proportional to the scales, or to their squares.
        by_scale *= 2 if settings.weights == "normal" else 1
        by_noise = settings.noise * float(np.sum(np.diag(G) / self.weights))
        by_noise += 0.5 * T * self._surplus
        if self.prior.isotropic:
            by_scale, by_p = by_scale.sum(keepdims=True), by_p.sum(keepdims=True)
        parts = [by_scale, by_eta] if self.prior.full else [by_scale, by_p, by_eta[2:]]
        return value, np.concatenate([*parts, [by_noise]]) + slopes

    @property
    def _surplus(self) -> float:
        """A row of weight w is w equal rows: their scatter is zero, but its likelihood is not."""
        return float(np.sum(self.weights - 1.0))

    def _solve(
        self, theta: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The value; the slopes of the penalty; the factor of the covariance C; C⁻¹ y."""
        settings = self.settings(theta)
        T = self.y.shape[1]
        # Only the lower triangle of a symmetric matrix is ever used.
        L = settings.factor(self.XT, self.weights)
        solved = cholesky.solve(L, self.y)
        value = 0.5 * float(np.sum(self.y * solved)) + T * float(np.sum(np.log(np.diag(L))))
        value += 0.5 * T * self._surplus * theta[-1]
        penalty, slopes = self._penalty(theta)
        return value + penalty, slopes, L, solved

    def _penalty(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        prior, own = self.prior, self._own
        slopes = np.zeros_like(theta)
        gap = (theta[:own] - np.log(prior.scale)) / prior.spread
        slopes[:own] = prior.strength * gap / prior.spread
        value = 0.5 * prior.strength * np.sum(gap**2)
        if not prior.full:
            p = np.exp(theta[own : 2 * own]) * (len(self.XT) / own)
            slopes[own : 2 * own] = prior.sparsity * p
            value += prior.sparsity * np.sum(p)
        orders = slice(own if prior.full else 2 * own, -1)
        slopes[orders] = _ORDER_PENALTY * theta[orders]
        return float(value + 0.5 * _ORDER_PENALTY * np.sum(theta[orders] ** 2)), slopes

    def descend(self, theta: NDArray[np.float64], steps: int) -> tuple[NDArray[np.float64], float]:
        """Minimise from theta by at most `steps` of L-BFGS; return the end point and its value."""
        own, noise = self._own, (np.log(self.prior.smallest_noise), _LARGEST_NOISE)
        inclusion = [] if self.prior.full else [_INCLUSION] * own
        n_orders = len(theta) - own - len(inclusion) - 1
        bounds = [*[_SCALE] * own, *inclusion, *[_ORDER_WEIGHT] * n_orders, noise]
        values: list[float] = []

        def after_step(intermediate_result: OptimizeResult) -> None:
            values.append(unit * float(intermediate_result.fun))
            if len(values) > _STEPS and values[-1 - _STEPS] - values[-1] < _SMALLEST_GAIN:
                raise StopIteration

        with one_blas_thread():
            # Where all variables are bounded, SciPy's first step is the whole gradient, however
            # long, and the line search may not find back: in these units it has length 1.
            start = self(theta)
            unit = max(float(np.linalg.norm(start[1])), 1.0)

            def scaled(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
                value, gradient = start if np.array_equal(x, theta) else self(x)
                return value / unit, gradient / unit

            found = minimize(
                scaled,
                theta,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": steps, "maxcor": 20},
                callback=after_step,
            )
        return found.x, unit * float(found.fun)

    def worth_keeping(
        self, theta: NDArray[np.float64], value: float, share: float = 1.0
    ) -> NDArray[np.intp]:
        """Variables worth keeping for the likelihood, which may fall by a share of their price.

        Drops as many of the weakest variables as possible, a number found by bisection, as long as
        the log likelihood without them, all else equal, falls by at most log M (the price of the
        two parameters of one variable in Schwarz's criterion) plus a quarter for each (much of what
        useless parameters gain by chance).
        """
        d = len(self.XT)
        if self.prior.isotropic or d == 1:
            return np.arange(d)
        settings = self.settings(theta)
        order = np.argsort(settings.strengths())
        price = np.log(self.weights.sum())
        fewest, most = 0, d - (1 if self.prior.full else self.max_order)
        with one_blas_thread():
            while fewest < most:
                n = (fewest + most + 1) // 2
                kept = np.sort(order[n:])
                cost = self.restricted(kept).value(self.without(theta, kept)) - value
                fewest, most = (n, most) if cost <= share * (price + 0.25 * n) else (fewest, n - 1)
        return np.sort(order[fewest:])

    def restricted(self, kept: NDArray[np.intp]) -> Likelihood:
        """The same likelihood for some of the inputs."""
        return replace(self, XT=np.ascontiguousarray(self.XT[kept]))

    def without(self, theta: NDArray[np.float64], kept: NDArray[np.intp]) -> NDArray[np.float64]:
        """Parameters that remain if only some of the inputs are kept."""
        if self.prior.isotropic:
            return theta
        d = len(self.XT)
        if self.prior.full:
            return np.concatenate([theta[:d][kept], theta[d:]])
        return np.concatenate([theta[:d][kept], theta[d : 2 * d][kept], theta[2 * d :]])


def variance_shares(
    p: NDArray[np.float64], order_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Prior variance of the terms that use each variable, p_j Σ_q η_q e_{q-1}(p without j)."""
    Q, d = len(order_weights) - 1, len(p)
    ahead, behind = np.zeros((2, d + 1, Q + 1))
    ahead[0, 0] = behind[d, 0] = 1.0
    for j in range(d):
        ahead[j + 1] = ahead[j]
        ahead[j + 1, 1:] += p[j] * ahead[j, :-1]
    for j in range(d - 1, -1, -1):
        behind[j] = behind[j + 1]
        behind[j, 1:] += p[j] * behind[j + 1, :-1]
    shares = np.empty(d)
    for j in range(d):
        without = np.convolve(ahead[j], behind[j + 1])[:Q]
        shares[j] = p[j] * float(order_weights[1:] @ without)
    return shares
