"""The conditions of Theorem 3.1: which of them fail, and which changes would satisfy them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp, log, nextafter, sqrt

from harfe.theory._checks import check_counts, check_failure, check_lam, check_positive

# η₁ = (1 + λ)/(6√3) of the proof must be below 1; then so is η₂ = √(1 + λ)/(4√3).
_LARGEST_LAMBDA = nextafter(6 * sqrt(3) - 1, 0.0)

# 6 η₁⁻² and 6 η₂⁻² without the powers of 1 + λ.
_FACTOR_1, _FACTOR_2 = 648.0, 288.0

# Remedies beyond these are useless; squares and products of such numbers are still finite.
_MOST = {"m": 10**150, "sigma": 1e75, "gamma": 1e75, "lam": _LARGEST_LAMBDA}
_WHOLE = ("m", "N", "s")
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Condition:
    """One of the conditions, as ``left >= right``.

    Attributes
    ----------
    name : str
    left, right : float
    remedies : dict of str to float
        By argument, the nearest value that satisfies the condition, all else equal; empty if it
        already holds or if no single change satisfies it.
    """

    name: str
    left: float
    right: float
    remedies: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether left >= right."""
        return self.left >= self.right

    def __str__(self) -> str:
        """Whether it holds, both sides, and what would satisfy it."""
        state = "holds" if self.holds else "fails"
        line = f"{self.name}: {state}, {self.left:.4g} against {self.right:.4g}."
        if self.holds:
            return line
        ways = ", or ".join(_way(name, value) for name, value in self.remedies.items())
        return f"{line} " + (f"Take {ways}." if ways else "No single change satisfies it.")


@dataclass(frozen=True)
class ConvergenceConditions:
    """The conditions of Theorem 3.1 for one setting.

    Attributes
    ----------
    conditions : tuple of Condition
        "rows", "rows and features", "spread" and "ridge weight".
    probability : float
        Lower bound on the probability of the theorem's statement, 1 - 2δ.
    """

    conditions: tuple[Condition, ...]
    probability: float

    @property
    def hold(self) -> bool:
        """Whether the theorem applies."""
        return all(condition.holds for condition in self.conditions)

    @property
    def failing(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    def summary(self) -> str:
        """One line per condition: whether it holds, both sides, and what would satisfy it."""
        applies = f"applies with probability at least {self.probability:.4g}"
        first = f"Theorem 3.1 {applies if self.hold else 'does not apply'}."
        return "\n".join([first, *map(str, self.conditions)])


@dataclass(frozen=True)
class _Setting:
    m: float
    N: float
    s: float
    d: float
    lam: float
    gamma: float
    sigma: float
    failure: float
    C1: float
    C2: float

    def rows(self) -> tuple[float, float]:
        right = _FACTOR_1 * self.C1 * self.s * log(1 / self.failure) / (1 + self.lam) ** 2
        return self.m, right

    def rows_and_features(self) -> tuple[float, float]:
        many = log(self.N / (9 * log(2 * self.m)) + 3)
        right = _FACTOR_2 * self.C2 * self.s * log(6 * self.s) ** 2 * many / (1 + self.lam)
        return self.m / log(3 * self.m), right

    def spread(self) -> tuple[float, float]:
        exponent = self.d / 4 * log(4 * (self.gamma * self.sigma) ** 2 + 1)
        factor = sqrt(self.failure) * (1 + self.lam) / (6 * sqrt(3))
        return factor * exp(min(exponent, _LARGEST_EXPONENT)), self.N

    def ridge_weight(self) -> tuple[float, float]:
        return _LARGEST_LAMBDA, self.lam


# The conditions that a change of one of several arguments can satisfy.
_CONDITIONS: tuple[tuple[str, Callable[[_Setting], tuple[float, float]], tuple[str, ...]], ...] = (
    ("rows", _Setting.rows, ("m", "s", "lam")),
    ("rows and features", _Setting.rows_and_features, ("m", "s", "N", "lam")),
    ("spread", _Setting.spread, ("sigma", "gamma", "N", "lam")),
)


def convergence_conditions(
    *,
    m: int,
    N: int,
    s: int,
    d: int,
    lam: float,
    gamma: float,
    sigma: float,
    failure: float,
    C1: float,
    C2: float,
) -> ConvergenceConditions:
    """Check the conditions of Theorem 3.1, and list changes that would satisfy those that fail.

    The theorem is about features exp(i<x, ω>) of all d variables, rows x from N(0, γ²I), weights ω
    from N(0, σ²I), and the pursuit of size 2s instead of s. The conditions are those of its proof,
    with the factors that the statement hides in its constants:

        rows               m >= 648 C₁ (1+λ)⁻² s log(1/δ)
        rows and features  m/log(3m) >= 288 C₂ (1+λ)⁻¹ s log²(6s) log(N/(9 log(2m)) + 3)
        spread             √δ (1+λ)/(6√3) (4γ²σ²+1)^(d/4) >= N
        ridge weight       6√3 - 1 > λ

    They make δ_6s(B) < 1/√3 with probability at least 1 - 2δ. The last is missing in the paper: its
    proof uses η₁ = (1+λ)/(6√3), which Theorem A.1 requires to be below 1.

    Parameters
    ----------
    m, N, s, d : int
        Numbers of rows, features, non-zeros and variables.
    lam : float
        The paper's λ in ‖A c - y‖² + mλ‖c‖².
    gamma, sigma : float
        Standard deviations of the inputs and of the weights.
    failure : float
        δ, between 0 and 1/2.
    C1, C2 : float
        The universal constants of Theorem A.1. They have no default because nobody has published
        their values.
    """
    check_counts(m=m, N=N, s=s, d=d)
    check_lam(lam)
    check_positive(gamma=gamma, sigma=sigma, C1=C1, C2=C2)
    check_failure(failure, 0.5)
    # Python integers do not overflow.
    given = _Setting(int(m), int(N), int(s), int(d), lam, gamma, sigma, failure, C1, C2)
    conditions = []
    for name, sides, changes in _CONDITIONS:
        found = Condition(name, *sides(given))
        if not found.holds:
            solved = {change: _nearest(given, sides, change) for change in changes}
            remedies = {change: value for change, value in solved.items() if value is not None}
            found = replace(found, remedies=remedies)
        conditions.append(found)
    largest, lam = given.ridge_weight()
    remedies = {} if largest >= lam else {"lam": largest}
    conditions.append(Condition("ridge weight", largest, lam, remedies))
    return ConvergenceConditions(tuple(conditions), 1 - 2 * failure)


def _nearest(
    given: _Setting, sides: Callable[[_Setting], tuple[float, float]], name: str
) -> float | None:
    """The value nearest to the given one that satisfies the condition, by bisection, or None."""

    def holds(value: float) -> bool:
        left, right = sides(replace(given, **{name: value}))
        return left >= right

    bad: float = getattr(given, name)
    if name in ("N", "s"):
        good: float = 1
    elif name == "lam":
        good = _LARGEST_LAMBDA
        if bad >= good:
            return None
    else:
        good = bad
        while not holds(good) and good < _MOST[name]:
            good *= 2
    if not holds(good):
        return None
    while True:
        middle = (good + bad) // 2 if name in _WHOLE else (good + bad) / 2
        if middle in (good, bad):
            break
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _way(name: str, value: float) -> str:
    if name in _WHOLE:
        return f"{name} {'>=' if name == 'm' else '<='} {value}"
    # Rounded up, so that the printed value satisfies the condition.
    return f"{name} >= {value * (1 + 5e-6):.6g}"
