"""The ANOVA decomposition: formulas by hand, full enumeration, Monte Carlo, known functions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import FORMULAS

from harfe import HARFERegressor, InputDistribution
from harfe.explain import waves
from harfe.explain.anova import anova
from harfe.explain.inputs.distribution import largest_frequencies
from harfe.explain.inputs.summary import InputSummary
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.features.units import InputMap
from harfe.model.expansion import Expansion
from harfe.model.terms import index_sets

every_activation = pytest.mark.parametrize("activation", FORMULAS)
real_or_complex = pytest.mark.parametrize("complex_output", [False, True])


def written(activation, d, features, intercept=0.0, **kwargs):
    """Expansion from a list of (coefficient, {variable: weight}, phase)."""
    order = max(len(weights) for _, weights, _ in features)
    indices = np.full((len(features), order), -1)
    values = np.zeros((len(features), order))
    for j, (_, weights, _) in enumerate(features):
        indices[j, : len(weights)] = sorted(weights)
        values[j, : len(weights)] = [weights[k] for k in sorted(weights)]
    phases = np.array([phase for _, _, phase in features], dtype=float)
    coef = np.array([[c for c, _, _ in features]])
    pool = FeaturePool(d, indices, values, phases, activation)
    columns = tuple(f"x{j}" for j in range(d))
    return Expansion(pool, coef, np.array([intercept]), columns, **kwargs)


def drawn(
    activation="sin", *, d=4, s=12, orders=(1, 2, 3), complex_output=False, bounds=None, seed=0
):
    rng = np.random.default_rng(seed)
    pool = FeatureLaw(d, orders=orders, activation=activation).draw(s, rng)
    coef, intercept = rng.normal(size=(2, s)), rng.normal(size=2)
    if complex_output or activation == "exp":
        coef = coef + 1j * rng.normal(size=(2, s))
    if complex_output:
        intercept = intercept + 1j * rng.normal(size=2)
    columns = tuple(f"x{j}" for j in range(d))
    return Expansion(pool, coef, intercept, columns, complex_output, bounds)


def of_set(parts, values):
    """Entries by set."""
    return dict(zip(parts.sets, values, strict=True))


# --- By hand -------------------------------------------------------------------------------------


def test_a_product_of_sines_by_hand():
    """sin x0 + 2 sin x0 sin x1 = cos(x0 - π/2) + cos(x0 - x1) - cos(x0 + x1), uniform on (-π, π).

    Mean 0; Var sin = 1/2, so the first term has variance 1/2, the second 4 · 1/2 · 1/2 = 1.
    """
    expansion = written(
        "cos",
        3,
        [(1, {0: 1}, -np.pi / 2), (1, {0: 1, 1: -1}, 0), (-1, {0: 1, 1: 1}, 0)],
        intercept=4.0,
    )
    distribution = InputDistribution.uniform(
        [-np.pi] * 3, [np.pi] * 3, largest_frequencies(expansion.features)
    )
    parts = anova(expansion, distribution)
    assert parts.exact
    assert parts.mean == pytest.approx(4, abs=1e-13)
    assert parts.variance == pytest.approx(1.5, abs=1e-13)
    assert parts.sets == ((0,), (1,), (0, 1))
    np.testing.assert_allclose(parts.variances, [0.5, 0, 1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(parts.first_order(), [1 / 3, 0, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(parts.total(), [1, 2 / 3, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(parts.shapley(), [2 / 3, 1 / 3, 0], rtol=0, atol=1e-13)
    pairs, second, total = parts.interaction()
    assert pairs == ((0, 1),)
    np.testing.assert_allclose([second, total], [[2 / 3]] * 2, rtol=0, atol=1e-13)
    x = np.random.default_rng(0).uniform(-np.pi, np.pi, (9, 2))
    np.testing.assert_allclose(parts.component((0,), x[:, :1]), np.sin(x[:, 0]), atol=1e-13)
    np.testing.assert_allclose(
        parts.component((0, 1), x), 2 * np.sin(x[:, 0]) * np.sin(x[:, 1]), atol=1e-13
    )


def test_triples_count_for_all_their_pairs():
    """4 sin x0 sin x1 sin x2 as four sines: a pure interaction of order 3 with variance 16/8."""
    expansion = written(
        "sin",
        3,
        [
            (-1, {0: 1, 1: 1, 2: 1}, 0),
            (1, {0: 1, 1: 1, 2: -1}, 0),
            (1, {0: 1, 1: -1, 2: 1}, 0),
            (1, {0: -1, 1: 1, 2: 1}, 0),
        ],
    )
    distribution = InputDistribution.uniform(
        [-np.pi] * 3, [np.pi] * 3, largest_frequencies(expansion.features)
    )
    parts = anova(expansion, distribution)
    assert parts.variance == pytest.approx(2, abs=1e-12)
    assert of_set(parts, parts.shares)[0, 1, 2] == pytest.approx(1, abs=1e-12)
    pairs, second, total = parts.interaction()
    assert pairs == ((0, 1), (0, 2), (1, 2))
    np.testing.assert_allclose(second, 0, atol=1e-12)
    np.testing.assert_allclose(total, 1, atol=1e-12)
    np.testing.assert_allclose(parts.shapley(), 1 / 3, atol=1e-12)


UNIFORM = (-0.7, 1.9)  # x0 and x2
NORMAL = (0.4, 1.3)  # x1 and x3, mean and deviation
PLANTED = [
    (2.0, {0: 0.7}, 0.3),
    (1.2, {0: 1.1, 1: -0.8}, 0.5),
    (-0.7, {1: 0.6, 2: 1.7}, -1.1),
    (0.9, {0: -0.4, 2: 0.9, 3: 0.5}, 2.0),
    (0.4, {3: 1.5}, 0.0),
    (-1.5, {0: 2.1, 1: 0.3}, 0.2),
]


def sine_mean(weights, phase):
    """E sin(Σ w_k x_k + b) with x0, x2 uniform on (a, b) and x1, x3 normal, in real terms.

    Uniform: the mean of sin(wx + φ) is sin(wc + φ) sin(wh)/(wh), c the centre, h the half-width;
    normal: sin(wμ + φ) e^{-w²σ²/2}.
    """
    size = 1.0
    for k, w in weights.items():
        if k in (0, 2):
            centre, half = sum(UNIFORM) / 2, (UNIFORM[1] - UNIFORM[0]) / 2
            size *= np.sin(w * half) / (w * half) if w else 1.0
            phase += w * centre
        else:
            mean, deviation = NORMAL
            size *= np.exp(-((w * deviation) ** 2) / 2)
            phase += w * mean
    return size * np.sin(phase)


def damped(feature, u):
    """E[c sin(<w, x> + b) | x_u] is again a sine, in x_u: its size, weights and phase."""
    c, weights, phase = feature
    others = {k: w for k, w in weights.items() if k not in u}
    # The size that sine_mean finds for the others, with the phase left out.
    size = np.hypot(sine_mean(others, 0.0), sine_mean(others, np.pi / 2))
    turn = np.arctan2(sine_mean(others, 0.0), sine_mean(others, np.pi / 2))
    return c * size, {k: w for k, w in weights.items() if k in u}, phase + turn


def covariance(one, two):
    """Of two sines, by 2 sin a sin b = cos(a - b) - cos(a + b)."""
    (c, v, p), (e, w, q) = one, two
    difference = {k: v.get(k, 0) - w.get(k, 0) for k in {*v, *w}}
    total = {k: v.get(k, 0) + w.get(k, 0) for k in {*v, *w}}
    half_pi = np.pi / 2
    product = sine_mean(difference, p - q + half_pi) - sine_mean(total, p + q + half_pi)
    return c * e * (product / 2 - sine_mean(v, p) * sine_mean(w, q))


def planted_variances(sets):
    """Var f_u = Σ_{v ⊆ u} (-1)^{|u - v|} Var E[f | x_v]."""
    explained = {(): 0.0}
    for u in sets:
        given_u = [damped(feature, u) for feature in PLANTED]
        explained[u] = sum(covariance(a, b) for a in given_u for b in given_u)
    return {
        u: sum(
            (-1) ** (len(u) - size) * explained[v]
            for size in range(len(u) + 1)
            for v in itertools.combinations(u, size)
        )
        for u in sets
    }


def planted():
    expansion = written("sin", 4, PLANTED, intercept=1.5)
    largest = largest_frequencies(expansion.features)
    lower, upper = np.full(4, UNIFORM[0]), np.full(4, UNIFORM[1])
    uniform = InputDistribution.uniform(lower, upper, largest)
    normal = InputDistribution.normal(np.full(4, NORMAL[0]), np.full(4, NORMAL[1]), largest)
    pick = [uniform, normal, uniform, normal]
    distribution = InputDistribution(
        "independent",
        tuple(part.nodes[k] for k, part in enumerate(pick)),
        tuple(part.weights[k] for k, part in enumerate(pick)),
    )
    return expansion, distribution


def test_a_planted_model_has_the_indices_of_its_formula():
    expansion, distribution = planted()
    parts = anova(expansion, distribution)
    expected = planted_variances(parts.sets)
    variance = sum(covariance(a, b) for a in PLANTED for b in PLANTED)
    mean = 1.5 + sum(c * sine_mean(weights, phase) for c, weights, phase in PLANTED)
    assert parts.mean == pytest.approx(mean, abs=1e-12)
    assert parts.variance == pytest.approx(variance, abs=1e-12)
    np.testing.assert_allclose(
        parts.variances, [expected[u] for u in parts.sets], rtol=0, atol=1e-12
    )
    first = [expected[(k,)] / variance for k in range(4)]
    total = [sum(v for u, v in expected.items() if k in u) / variance for k in range(4)]
    np.testing.assert_allclose(parts.first_order(), first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(parts.total(), total, rtol=0, atol=1e-12)
    pairs, second, together = parts.interaction()
    assert pairs == ((0, 1), (0, 2), (0, 3), (1, 2), (2, 3))
    np.testing.assert_allclose(second, [expected[p] / variance for p in pairs], atol=1e-12)
    holding = [sum(v for u, v in expected.items() if {*p} <= {*u}) / variance for p in pairs]
    np.testing.assert_allclose(together, holding, rtol=0, atol=1e-12)


def test_the_planted_model_by_monte_carlo():
    """The formula above is not taken on trust."""
    rng = np.random.default_rng(0)
    n = 400_000

    def uniform(n):
        return rng.uniform(*UNIFORM, n)

    def normal(n):
        return rng.normal(*NORMAL, n)

    expansion, distribution = planted()
    columns = [draw(n) for _ in range(2) for draw in (uniform, normal)]
    X = np.stack(columns, axis=1)
    f = expansion.predict(X)[:, 0]
    parts = anova(expansion, distribution)
    assert abs(f.mean() - parts.mean) < 4 * f.std() / np.sqrt(n)
    square = (f - f.mean()) ** 2
    assert abs(square.mean() - parts.variance) < 4 * square.std() / np.sqrt(n)


def test_components_average_to_zero_over_each_of_their_variables():
    """By other rules than those of the distribution: 150 Legendre and Hermite nodes."""
    expansion, distribution = planted()
    parts = anova(expansion, distribution)
    t, wt = np.polynomial.legendre.leggauss(150)
    z, wz = np.polynomial.hermite_e.hermegauss(150)
    low, high = UNIFORM
    rules = [(low + (high - low) * (t + 1) / 2, wt / 2), (NORMAL[0] + NORMAL[1] * z, wz)] * 2
    rng = np.random.default_rng(1)
    for u in parts.sets:
        for place, k in enumerate(u):
            nodes, weights = rules[k]
            X = np.repeat(rng.normal(size=(1, len(u))), len(nodes), axis=0)
            X[:, place] = nodes
            assert abs(weights @ parts.component(u, X)) / weights.sum() < 1e-12


# --- Against full enumeration --------------------------------------------------------------------


def enumerate_components(expansion, distribution, target):
    """f on the full product of the nodes, decomposed by averaging over axes."""
    d = distribution.n_variables
    shape = [len(nodes) for nodes in distribution.nodes]
    X = np.array(list(itertools.product(*distribution.nodes)))
    f = expansion.predict(X)[:, target].reshape(shape)

    def given(u):
        out = f
        for k in range(d):
            if k not in u:
                weights = distribution.weights[k].reshape([-1 if i == k else 1 for i in range(d)])
                out = np.sum(out * weights, axis=k, keepdims=True)
        return out

    components = {}
    for size in range(d + 1):
        for u in itertools.combinations(range(d), size):
            components[u] = given(u) - sum(components[v] for v in components if {*v} < {*u})
    weights = np.array([np.prod(w) for w in itertools.product(*distribution.weights)])
    full = {u: np.broadcast_to(c, shape).ravel() for u, c in components.items()}
    return X, weights, full


def few_values(bounds=None, seed=0):
    rng = np.random.default_rng(seed)
    X = 0.7 * rng.integers(-3, 4, (60, 4))
    return InputDistribution.empirical(X, rng.random(60), bounds)


@every_activation
@real_or_complex
@pytest.mark.parametrize("clip", [False, True])
def test_few_values_against_full_enumeration(activation, complex_output, clip):
    bounds = None
    if clip:
        bounds = InputMap(
            np.array([-np.inf, -1.0, -np.inf, -np.inf]), np.array([np.inf, 1.0, np.inf, 0.8])
        )
    expansion = drawn(activation, complex_output=complex_output, bounds=bounds)
    distribution = few_values(bounds)
    parts = anova(expansion, distribution, target=1)
    assert parts.exact == (activation in ("sin", "cos", "exp"))
    X, weights, expected = enumerate_components(expansion, distribution, 1)
    assert parts.mean == pytest.approx(expected[()][0], abs=1e-12)
    values = parts.evaluate(X)
    assert values.dtype == (complex if complex_output else float)
    for place, u in enumerate(parts.sets):
        np.testing.assert_allclose(values[:, place], expected[u], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(
            parts.component(u, X[:, list(u)]).shape, values[:, place].shape
        )
        np.testing.assert_allclose(
            parts.component(u, X[:, list(u)]), expected[u], rtol=0, atol=1e-12
        )
        variance = weights @ np.abs(expected[u]) ** 2
        assert parts.variances[place] == pytest.approx(variance, abs=1e-12)
    for u in set(expected) - {*parts.sets, ()}:
        np.testing.assert_allclose(expected[u], 0, atol=1e-12)
    f = expansion.predict(X)[:, 1]
    variance = weights @ np.abs(f - weights @ f) ** 2
    assert parts.variance == pytest.approx(variance, abs=1e-12)
    assert parts.variances.sum() == pytest.approx(variance, abs=1e-12)


@every_activation
@real_or_complex
def test_terms_have_the_variance_that_enumeration_finds(activation, complex_output):
    expansion = drawn(activation, complex_output=complex_output)
    distribution = few_values()
    X = np.array(list(itertools.product(*distribution.nodes)))
    weights = np.array([np.prod(w) for w in itertools.product(*distribution.weights)])
    found = anova(expansion, distribution).term_variances()
    z = X @ expansion.features.weights().toarray() + expansion.features.phases
    phi = FORMULAS[activation](z) * expansion.coef[0]
    used = [tuple(i[i >= 0]) for i in expansion.features.indices]
    for u, variance in zip(index_sets(expansion.features), found, strict=True):
        term = phi[:, [j for j, own in enumerate(used) if own == u]].sum(axis=1)
        term = term if complex_output else term.real
        expected = weights @ np.abs(term - weights @ term) ** 2
        assert variance == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(
    activation=st.sampled_from(list(FORMULAS)),
    complex_output=st.booleans(),
    d=st.integers(1, 5),
    s=st.integers(0, 10),
    rows=st.integers(1, 30),
    seed=st.integers(0, 2**32),
)
def test_any_function_is_mean_and_components(activation, complex_output, d, s, rows, seed):
    orders = tuple(range(1, min(d, 3) + 1))
    expansion = drawn(activation, d=d, s=s, orders=orders, complex_output=complex_output, seed=seed)
    X = np.random.default_rng(seed).normal(size=(rows, d))
    distribution = InputSummary.of(expansion, X).distribution
    parts = anova(expansion, distribution)
    np.testing.assert_allclose(
        parts.mean + parts.evaluate(X).sum(axis=1), expansion.predict(X)[:, 0], rtol=0, atol=1e-10
    )
    assert np.all(parts.variances >= 0)
    assert np.all(parts.first_order() <= parts.total() + 1e-12)
    if parts.variance > 0:
        assert parts.shapley().sum() == pytest.approx(1, abs=1e-12)


def test_kept_quadratures_are_as_good_as_all_rows():
    expansion = drawn(s=30)
    rng = np.random.default_rng(1)
    X = np.stack(
        [rng.normal(size=800), rng.random(800), rng.exponential(size=800), rng.standard_t(4, 800)],
        axis=1,
    )
    w = rng.random(800)
    full = anova(expansion, InputDistribution.empirical(X, w))
    kept = anova(expansion, InputSummary.of(expansion, X, w).distribution)
    assert kept.sets == full.sets
    assert kept.mean == pytest.approx(full.mean, abs=1e-10)
    np.testing.assert_allclose(kept.variances, full.variances, rtol=0, atol=1e-10)
    np.testing.assert_allclose(kept.evaluate(X[:20]), full.evaluate(X[:20]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(kept.term_variances(), full.term_variances(), rtol=0, atol=1e-10)


# --- Monte Carlo ---------------------------------------------------------------------------------


def pick_freeze(f, draw, n, seed):
    """First-order and total indices by Monte Carlo, with their standard errors.

    V_k = E f(B)(f(A with k from B) - f(A)) (Saltelli), T_k = E (f(A) - f(A with k from B))²/2
    (Jansen).
    """
    rng = np.random.default_rng(seed)
    A, B = draw(rng, n), draw(rng, n)
    fA, fB = f(A), f(B)
    centre = (fA.mean() + fB.mean()) / 2
    first, total = [], []
    for k in range(A.shape[1]):
        mixed = A.copy()
        mixed[:, k] = B[:, k]
        fM = f(mixed)
        first.append((fB - centre) * (fM - fA))
        total.append((fA - fM) ** 2 / 2)
    first, total = np.array(first), np.array(total)
    root = np.sqrt(n)
    return (
        first.mean(axis=1),
        first.std(axis=1) / root,
        total.mean(axis=1),
        total.std(axis=1) / root,
    )


def ishigami(X):
    return np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])


def ishigami_variances():
    a, b, pi = 7, 0.1, np.pi
    return {
        (0,): (1 + b * pi**4 / 5) ** 2 / 2,
        (1,): a**2 / 8,
        (0, 2): b**2 * pi**8 * (1 / 18 - 1 / 50),
    }


G = np.array([0, 1, 4.5, 9, 99])


def sobol_g(X):
    return np.prod((np.abs(4 * X - 2) + G) / (1 + G), axis=1)


def sobol_g_variances():
    own = 1 / (3 * (1 + G) ** 2)
    return {u: np.prod(own[list(u)]) for q in (1, 2) for u in itertools.combinations(range(5), q)}


def friedman(X):
    return (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )


def friedman_variances():
    t, w = np.polynomial.legendre.leggauss(60)
    t, w = (t + 1) / 2, w / 2
    f = 10 * np.sin(np.pi * np.outer(t, t))
    f = f - w @ f @ w
    alone = f @ w
    both = w @ f**2 @ w
    return {
        (0,): w @ alone**2,
        (1,): w @ alone**2,
        (0, 1): both - 2 * (w @ alone**2),
        (2,): 400 / 180,
        (3,): 100 / 12,
        (4,): 25 / 12,
    }


# function, variances, inputs, range, rows, scale of the weights, ridge weight, 1 - R² that the fit
# has about twice of at most
KNOWN = {
    "ishigami": (ishigami, ishigami_variances, 3, (-np.pi, np.pi), 1000, 2.5, 1e-8, 1.5e-3),
    "sobol g": (sobol_g, sobol_g_variances, 5, (0, 1), 1000, 3.0, 1e-4, 1.3e-2),
    "friedman 1": (friedman, friedman_variances, 10, (0, 1), 600, 1.0, 1e-4, 1e-2),
}


@pytest.fixture(scope="module", params=KNOWN)
def known(request):
    f, variances, d, (low, high), rows, scale, alpha, misfit = KNOWN[request.param]
    X = np.random.default_rng(0).uniform(low, high, (rows, d))
    model = HARFERegressor(
        n_components=1500,
        n_nonzero_coefs=100,
        order=(1, 2),
        scale=scale,
        alpha=alpha,
        random_state=0,
    ).fit(X, f(X))
    expansion = model.expansion_
    distribution = InputDistribution.uniform(
        np.full(d, low), np.full(d, high), largest_frequencies(expansion.features)
    )

    def draw(rng, n):
        return rng.uniform(low, high, (n, d))

    return expansion, anova(expansion, distribution), f, variances(), draw, misfit


def test_indices_of_a_fitted_function_are_those_of_monte_carlo(known):
    """Closed form against pick-freeze on the same fitted function: within 4 standard errors."""
    expansion, parts, _, _, draw, _ = known
    n = 30_000
    first, first_error, total, total_error = pick_freeze(
        lambda X: expansion.predict(X)[:, 0], draw, n, seed=1
    )
    assert np.all(np.abs(parts.first_order() * parts.variance - first) < 4 * first_error + 1e-9)
    assert np.all(np.abs(parts.total() * parts.variance - total) < 4 * total_error + 1e-9)
    f = expansion.predict(draw(np.random.default_rng(2), n))[:, 0]
    square = (f - f.mean()) ** 2
    assert abs(square.mean() - parts.variance) < 4 * square.std() / np.sqrt(n)
    assert abs(f.mean() - parts.mean) < 4 * f.std() / np.sqrt(n)
    # The errors are small enough to distinguish the variables.
    assert first_error.max() < 0.02 * parts.variance


def test_indices_of_a_fitted_function_are_those_of_the_true_one(known):
    """Projections shrink distances: |√Var f̂_u - √Var f_u| is at most the error of f̂, for any u."""
    expansion, parts, f, variances, draw, misfit = known
    X = draw(np.random.default_rng(3), 20_000)
    gap = expansion.predict(X)[:, 0] - f(X)
    error = np.sqrt(np.mean(gap**2))
    true_variance = f(X).var()
    assert error**2 < misfit * true_variance
    for u, variance in zip(parts.sets, parts.variances, strict=True):
        # 2 %: more than Monte Carlo may have missed of the error.
        assert abs(np.sqrt(variance) - np.sqrt(variances.get(u, 0.0))) < 1.02 * error, u
    shares = {u: v / true_variance for u, v in variances.items()}
    for u, share in zip(parts.sets, parts.shares, strict=True):
        assert abs(share - shares.get(u, 0.0)) < 0.015, u


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_other_activations_are_close_to_monte_carlo_on_continuous_inputs(activation):
    expansion = drawn(activation, d=3, s=10, orders=(1, 2))
    distribution = InputDistribution.uniform([-2.0] * 3, [2.0] * 3)
    parts = anova(expansion, distribution)
    n = 100_000
    first, first_error, total, total_error = pick_freeze(
        lambda X: expansion.predict(X)[:, 0], lambda rng, n: rng.uniform(-2, 2, (n, 3)), n, seed=1
    )
    # 64 nodes: relu has an error of about 1e-3 of the variance.
    room = 2e-3 * parts.variance
    assert np.all(np.abs(parts.first_order() * parts.variance - first) < 4 * first_error + room)
    assert np.all(np.abs(parts.total() * parts.variance - total) < 4 * total_error + room)
    assert first_error.max() < 0.01 * parts.variance


@pytest.mark.parametrize(
    ("activation", "limit"), [("tanh", 1e-12), ("sigmoid", 1e-12), ("relu", 2e-4)]
)
def test_other_activations_from_kept_nodes_against_all_rows(activation, limit):
    """Error of 64 nodes per input, as a share of the variance: measured here."""
    pool = FeatureLaw(2, orders=(1, 2), bias="uniform", activation=activation).draw(
        12, np.random.default_rng(0)
    )
    coef = np.random.default_rng(1).normal(size=(1, 12))
    expansion = Expansion(pool, coef, np.zeros(1), ("a", "b"))
    X = np.random.default_rng(2).normal(size=(300, 2))
    _, weights, expected = enumerate_components(expansion, InputDistribution.empirical(X), 0)
    kept = anova(expansion, InputSummary.of(expansion, X).distribution)
    gaps = [
        abs(variance - weights @ expected[u] ** 2) / kept.variance
        for u, variance in zip(kept.sets, kept.variances, strict=True)
    ]
    assert max(gaps) < limit
    assert abs(kept.mean - expected[()][0]) < limit * np.sqrt(kept.variance)


# --- Two ways to the same sums, large coefficients -----------------------------------------------


@pytest.mark.parametrize("complex_output", [False, True])
def test_grids_and_pairs_of_features_have_the_same_sum(complex_output, monkeypatch):
    expansion = drawn("exp", s=40, complex_output=complex_output)
    distribution = few_values()
    on_grids = anova(expansion, distribution)
    monkeypatch.setattr(waves, "_LARGEST_GRID", 0)
    monkeypatch.setattr(waves, "_PAIR_BLOCK", 7)
    by_pairs = anova(expansion, distribution)
    np.testing.assert_allclose(by_pairs.variances, on_grids.variances, rtol=0, atol=1e-12)


def test_large_grids_are_summed_by_pairs(monkeypatch):
    expansion = drawn(d=4, s=20, orders=(4,))
    X = np.random.default_rng(0).normal(size=(400, 4))
    distribution = InputSummary.of(expansion, X).distribution
    assert np.prod([len(nodes) for nodes in distribution.nodes]) > waves._LARGEST_GRID
    parts = anova(expansion, distribution)
    monkeypatch.setattr(waves, "_LARGEST_GRID", 10**7)
    np.testing.assert_allclose(
        anova(expansion, distribution).variances, parts.variances, atol=1e-12
    )


def test_large_coefficients_of_opposite_sign_cost_no_squared_digits():
    """1e6 (sin((1 + 1e-6)x) - sin x) is x cos x to 1e-6; sums of squares would leave 4 digits."""
    expansion = written("sin", 1, [(1e6, {0: 1 + 1e-6}, 0), (-1e6, {0: 1}, 0)])
    distribution = InputDistribution.uniform([0.0], [3.0], largest_frequencies(expansion.features))
    t, w = np.polynomial.legendre.leggauss(60)
    x, w = 1.5 * (t + 1), w / 2
    # The difference is e^{i(1 + δ/2)x} turned by δ/2: 2 sin(δx/2) cos((1 + δ/2)x)/δ, no cancelling.
    delta = (1 + 1e-6) - 1
    f = 2e6 * np.sin(delta * x / 2) * np.cos((1 + delta / 2) * x)
    variance = w @ f**2 - (w @ f) ** 2
    assert anova(expansion, distribution).variance == pytest.approx(variance, rel=1e-8)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_shares_do_not_depend_on_the_size_of_the_coefficients(size):
    expansion = drawn()
    large = replace(expansion, coef=expansion.coef * size, intercept=expansion.intercept * size)
    distribution = few_values()
    parts, other = anova(expansion, distribution), anova(large, distribution)
    np.testing.assert_allclose(other.shares, parts.shares, rtol=1e-12)
    assert other.mean == pytest.approx(parts.mean * size, rel=1e-12)
    X = np.zeros((1, 4))
    np.testing.assert_allclose(other.evaluate(X), parts.evaluate(X) * size, rtol=1e-12)


def test_the_other_sign_has_the_other_mean_and_the_same_indices():
    expansion = drawn()
    negated = replace(expansion, coef=-expansion.coef, intercept=-expansion.intercept)
    distribution = few_values()
    parts, other = anova(expansion, distribution), anova(negated, distribution)
    assert other.mean == -parts.mean
    np.testing.assert_array_equal(other.variances, parts.variances)
    np.testing.assert_array_equal(other.total(), parts.total())


# --- Functions that are hardly any, and refusals -------------------------------------------------


@every_activation
def test_a_function_without_features_is_its_mean(activation):
    expansion = drawn(activation, s=0)
    parts = anova(expansion, few_values(), target=1)
    assert parts.mean == expansion.intercept[1]
    assert parts.variance == 0
    assert parts.sets == ()
    assert parts.evaluate(np.zeros((3, 4))).shape == (3, 0)
    for index in (parts.first_order(), parts.total(), parts.shapley()):
        assert index.tolist() == [0] * 4
    assert parts.interaction()[0] == ()


@every_activation
def test_features_without_variables_belong_to_the_mean(activation):
    pool = FeaturePool(
        3,
        np.array([[-1, -1], [0, 1], [2, -1]]),
        np.array([[0.0, 0.0], [0.0, 2.0], [1.0, 0.0]]),
        np.array([0.4, 0.3, 0.1]),
        activation,
    )
    expansion = Expansion(pool, np.array([[1.5, 1.0, 2.0]]), np.array([0.5]), tuple("abc"))
    X = np.random.default_rng(0).integers(0, 3, (20, 3)).astype(float)
    distribution = InputDistribution.empirical(X)
    parts = anova(expansion, distribution)
    assert parts.sets == ((1,), (2,))
    weights = np.array([np.prod(w) for w in itertools.product(*distribution.weights)])
    f = expansion.predict(np.array(list(itertools.product(*distribution.nodes))))[:, 0]
    assert parts.mean == pytest.approx(weights @ f, abs=1e-13)
    assert parts.variance == pytest.approx(weights @ (f - weights @ f) ** 2, abs=1e-13)
    assert parts.term_variances()[0] == 0  # of the constant


def test_an_input_that_does_not_vary_explains_nothing():
    expansion = drawn()
    distribution = few_values()
    nodes, weights = list(distribution.nodes), list(distribution.weights)
    nodes[1], weights[1] = np.array([0.3]), np.ones(1)
    parts = anova(expansion, InputDistribution("independent", tuple(nodes), tuple(weights)))
    assert parts.total()[1] == pytest.approx(0, abs=1e-25)
    assert parts.total()[0] > 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda e, distribution: anova(e, distribution, 2),
            "target=2 must be a whole number from 0 to 1",
        ),
        (
            lambda e, distribution: anova(e, distribution, True),
            "target=True must be a whole number",
        ),
        (
            lambda e, distribution: anova(e, InputDistribution.uniform([0], [1])),
            "distribution has 1 inputs but .* has 4",
        ),
        (
            lambda e, distribution: anova(e, distribution).component((3, 0), np.zeros((1, 2))),
            r"u=\(3, 0\) has no",
        ),
        (
            lambda e, distribution: anova(e, distribution).component((0,), np.zeros((1, 2))),
            r"X_u has shape \(1, 2\)",
        ),
        (
            lambda e, distribution: anova(e, distribution).component((0,), np.zeros(3)),
            r"X_u has shape \(3,\)",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call(drawn(), few_values())


@pytest.mark.parametrize("order", [19, 70])
@pytest.mark.parametrize("activation", ["sin", "tanh"])
def test_too_many_subsets_are_refused(activation, order):
    expansion = drawn(activation, d=70, s=3, orders=(order,))
    distribution = InputDistribution.uniform([0.0] * 70, [1.0] * 70)
    with pytest.raises(ValueError, match=f"3 features with up to {order} inputs .* lower order"):
        anova(expansion, distribution)
