"""The theory against closed forms, brute force, and the pursuit itself."""

from itertools import combinations
from math import inf, isclose, log, sqrt

import numpy as np
import pytest
from scipy.stats import binom

import harfe.theory.isometry as isometry_module
from harfe._core.threads import one_blas_thread
from harfe.solvers.homes import StoredProblem
from harfe.solvers.pursuit import hard_ridge_pursuit
from harfe.theory import (
    best_terms_distance,
    bound_constants,
    coefficient_bound,
    coherence,
    contraction,
    convergence_conditions,
    feature_radius,
    function_bound,
    gaussian_norm,
    isometry_constant,
    printed_feature_radius,
    ridge_effects,
    ridge_isometry,
    risk_bound,
    stacked_matrix,
)

LIMIT = 1 / sqrt(3)
both_types = pytest.mark.parametrize("dtype", [float, complex])


@pytest.fixture(autouse=True, scope="module")
def _one_blas_thread():
    with one_blas_thread():
        yield


def draw(rng, shape, dtype=complex):
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape)) / sqrt(2) if dtype is complex else values


def waves(rng, m, N, d=12, sigma=2.0):
    """Features exp(i<x, ω>) and their weights, as in the theorems, with γ = 1."""
    W = sigma * rng.normal(size=(d, N))
    return np.exp(1j * rng.normal(size=(m, d)) @ W), W


def brute_force(A, s):
    """δ_s by the norm of A_S*A_S - I, set by set."""
    sets = combinations(range(A.shape[1]), s)
    return max(np.linalg.norm(A[:, S].conj().T @ A[:, S] - np.eye(s), 2) for S in map(list, sets))


# --- Isometry ---


@both_types
def test_orthonormal_columns_are_an_isometry(dtype):
    Q = np.linalg.qr(draw(np.random.default_rng(0), (9, 5), dtype))[0]
    assert coherence(Q) < 1e-14
    for s in (1, 3, 5):
        found = isometry_constant(Q, s)
        assert found.exact
        assert 0 <= found.lower == found.upper < 1e-14


def test_more_columns_than_rows_shrink_some_vector_to_nothing():
    assert isometry_constant(0.9 * np.eye(2, 3), 3).lower == 1.0


@pytest.mark.parametrize("rho", [0.3, -0.7, 0.6j])
def test_two_columns_with_a_known_product(rho):
    A = np.array([[1, rho], [0, sqrt(1 - abs(rho) ** 2)]])
    assert isclose(coherence(A), abs(rho))
    assert isclose(coherence(A * [3.0, 0.1]), abs(rho))
    assert isclose(isometry_constant(A, 2).lower, abs(rho))
    assert isometry_constant(A, 1).upper < 1e-15


@both_types
@pytest.mark.parametrize(("m", "N"), [(20, 7), (5, 9)])
def test_exact_constant_is_that_of_brute_force(dtype, m, N):
    A = draw(np.random.default_rng(1), (m, N), dtype) / sqrt(m)
    last = 0.0
    for s in range(1, N + 1):
        found = isometry_constant(A, s)
        assert found.exact
        assert found.order == s == len(found.support)
        assert isclose(found.lower, brute_force(A, s), rel_tol=1e-10)
        S = found.support
        attained = np.linalg.norm(A[:, S].conj().T @ A[:, S] - np.eye(s), 2)
        assert isclose(attained, found.lower, rel_tol=1e-10)
        assert found.lower >= last - 1e-12
        last = found.lower


@both_types
@pytest.mark.parametrize("size", [1.0, 0.7])  # short columns: shrinking dominates
@pytest.mark.parametrize(("m", "N", "s"), [(40, 9, 2), (40, 10, 4), (6, 10, 3), (200, 12, 5)])
def test_bounds_enclose_the_exact_constant(dtype, m, N, s, size, monkeypatch):
    A = size * draw(np.random.default_rng(m + s), (m, N), dtype) / sqrt(m)
    truth = brute_force(A, s)
    monkeypatch.setattr(isometry_module, "_MOST_SUPPORTS", 0)
    monkeypatch.setattr(isometry_module, "_COLUMNS", 4)
    found = isometry_constant(A, s)
    assert not found.exact
    assert found.lower <= truth * (1 + 1e-12)
    assert found.upper >= truth * (1 - 1e-12)
    # At these sizes the climb is nearly exact and the upper bound is not far off.
    assert found.lower > 0.9 * truth
    assert found.upper < 2.2 * truth
    assert isclose(brute_force(A[:, found.support], s), found.lower, rel_tol=1e-10)


def test_the_climb_finds_what_stretches_and_what_shrinks(monkeypatch):
    for size in (0.9, 1.1):
        shares = []
        for seed in range(6):
            A = size * draw(np.random.default_rng(seed), (300, 16), float) / sqrt(300)
            monkeypatch.setattr(isometry_module, "_MOST_SUPPORTS", 10_000)
            truth = isometry_constant(A, 6)
            monkeypatch.setattr(isometry_module, "_MOST_SUPPORTS", 0)
            shares.append(isometry_constant(A, 6).lower / truth.lower)
        assert truth.exact
        assert 0.98 < np.mean(shares) <= 1 + 1e-12


def test_each_upper_bound_is_needed(monkeypatch):
    monkeypatch.setattr(isometry_module, "_MOST_SUPPORTS", 0)
    A = np.random.default_rng(4).choice([-1.0, 1.0], (64, 300)) / 8
    spectrum = np.linalg.norm(A, 2) ** 2 - 1
    products = np.sort(np.abs(A.T @ A - np.eye(300)), axis=1)
    few, many = isometry_constant(A, 12), isometry_constant(A, 100)
    assert isclose(few.upper, products[:, -11:].sum(axis=1).max())
    assert few.upper < spectrum
    assert isclose(many.upper, spectrum)
    assert many.upper < products[:, -99:].sum(axis=1).max()
    # Two equal columns among orthonormal ones: the climb attains both upper bounds.
    twins = isometry_constant(np.eye(8)[:, [0, 0, 1, 2, 3, 4, 5, 6]], 2)
    assert isclose(twins.lower, 1.0)
    assert isclose(twins.upper, 1.0)
    assert twins.support.tolist() == [0, 1]


def test_coherence_over_blocks_is_that_of_the_gram_matrix(monkeypatch):
    A = draw(np.random.default_rng(2), (15, 11))
    U = A / np.linalg.norm(A, axis=0)
    truth = np.max(np.abs(U.conj().T @ U) - 2 * np.eye(11))
    assert isclose(coherence(A), truth)
    monkeypatch.setattr(isometry_module, "_COLUMNS", 3)
    assert isclose(coherence(A), truth)


@both_types
@pytest.mark.parametrize("lam", [0.0, 0.2, 3.0])
def test_the_stacked_matrix_is_the_ridge_problem(dtype, lam):
    rng = np.random.default_rng(3)
    m, N, s = 25, 8, 3
    A, y, c = draw(rng, (m, N), dtype), draw(rng, m, dtype), draw(rng, N, dtype)
    B, padded = stacked_matrix(A, lam), np.concatenate([y, np.zeros(N)])
    unit = sqrt(m + m * lam)
    objective = np.linalg.norm(A @ c - y) ** 2 + m * lam * np.linalg.norm(c) ** 2
    assert isclose(np.linalg.norm(B @ (unit * c) - padded) ** 2, objective)
    S = [1, 4, 6]
    solved = np.linalg.lstsq(B[:, S], padded, rcond=None)[0] / unit
    ridge = A[:, S].conj().T @ A[:, S] + m * lam * np.eye(s)
    np.testing.assert_allclose(solved, np.linalg.solve(ridge, A[:, S].conj().T @ y), rtol=1e-10)
    # The unit step on B is the normalised step of the pursuit.
    step = unit * c + B.conj().T @ (padded - B @ (unit * c))
    pursuit = c + (A.conj().T @ (y - A @ c) / m - lam * c) / (1 + lam)
    np.testing.assert_allclose(step / unit, pursuit, rtol=1e-10)
    plain = isometry_constant(A / sqrt(m), s).lower
    assert isclose(isometry_constant(B, s).lower, ridge_isometry(plain, lam), rel_tol=1e-9)


# --- Theorem 3.1 ---


def test_contraction_is_below_one_if_and_only_if_the_constant_is_small():
    assert contraction(0.0) == 0.0
    assert contraction(LIMIT - 1e-9) < 1 < contraction(LIMIT + 1e-9)
    assert isclose(contraction(LIMIT), 1.0)
    values = [contraction(delta) for delta in np.linspace(0, 0.99, 50)]
    assert values == sorted(values)


def test_constants_at_zero_and_towards_the_limit():
    none = bound_constants(0.0)
    assert (none.beta, none.D2, none.D1) == (0.0, 1 + sqrt(2), 1.5 + sqrt(2))
    # By hand for δ = 1/3: 1 - δ² = 8/9, β² = (2/9)/(8/9) = 1/4.
    third = bound_constants(1 / 3)
    tau = (sqrt(4 / 3) + sqrt(4 / 3)) / (2 / 3 * 1 / 2)
    assert isclose(third.beta, 0.5)
    assert isclose(third.D2, tau)
    assert isclose(third.D1, 0.5 + tau * sqrt(4 / 3))
    assert bound_constants(0.5773).D2 > 1000


def test_distance_to_the_best_terms_is_what_sorting_leaves():
    c = np.array([3, -1j, 0.5, -4, 2])
    assert best_terms_distance(c, 2) == 3.5
    assert best_terms_distance(c, 4) == 0.5
    assert best_terms_distance(c, 5) == best_terms_distance(c, 9) == 0.0


def test_the_bound_is_its_formula():
    values = {"s": 4, "lam": 1.0, "norm": 2.0, "distance": 3.0, "residual": 1.0}
    n = np.array([0, 1, 2, inf])
    constants = bound_constants(1 / 3)
    rest = constants.D1 * 1.5 + constants.D2 * sqrt(5 / 2)
    expected = [2 + rest, 1 + rest, 0.5 + rest, rest]
    np.testing.assert_allclose(coefficient_bound(n, delta=1 / 3, **values), expected)


def pursue(A, y, k, lam, init="zero", max_iter=25):
    """Coefficients after every round with the unit step on B."""
    problem = StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")
    found = []

    def keep(state):
        c = np.zeros(A.shape[1], complex)
        c[state.support] = state.scaled_coef[:, 0]
        found.append(c)

    options = {"step_size": "normalized", "tol": 0.0, "callback": keep}
    hard_ridge_pursuit(
        problem, n_nonzero_coefs=k, alpha=lam, init=init, max_iter=max_iter, **options
    )
    return found


def matrix(rng, kind, m, N):
    return waves(rng, m, N)[0] if kind == "waves" else draw(rng, (m, N))


def planted(rng, N, s, kind):
    c = draw(rng, N)
    if kind == "sparse":
        c[rng.permutation(N)[s:]] = 0
        return c
    return c * 0.6 ** rng.permutation(N)


cases = pytest.mark.parametrize("s", [1, 2])
ridges = pytest.mark.parametrize("lam", [0.0, 0.05, 0.5])
kinds = pytest.mark.parametrize("kind", ["waves", "normal"])


@cases
@ridges
@kinds
def test_one_round_contracts_as_proven(s, lam, kind):
    rng = np.random.default_rng(10 * s)
    m, N = 260, 12
    closest = 0.0
    for _ in range(6):
        A = matrix(rng, kind, m, N)
        delta = isometry_constant(stacked_matrix(A, lam), 6 * s).upper
        assert delta < LIMIT
        constants = bound_constants(delta)
        for shape in ("sparse", "compressible"):
            for noise in (0.0, 0.3):
                c = planted(rng, N, 2 * s, shape)
                y = A @ c + noise * draw(rng, m)
                start = np.zeros(N, complex)
                start[rng.permutation(N)[: 2 * s]] = 3 * draw(rng, 2 * s)
                (after,) = pursue(A, y, 2 * s, lam, init=start, max_iter=1)
                T = np.argsort(-np.abs(c))[: 2 * s]
                c_T = np.zeros(N, complex)
                c_T[T] = c[T]
                left = np.linalg.norm(y - A @ c_T) ** 2 / m + lam * np.linalg.norm(c_T) ** 2
                noise_part = (1 - constants.beta) * constants.D2 * sqrt(left / (1 + lam))
                bound = constants.beta * np.linalg.norm(start - c_T) + noise_part
                error = np.linalg.norm(after - c_T)
                assert error <= bound + 1e-12
                closest = max(closest, error / bound)
    assert closest > 0.05  # otherwise the check would prove little


@cases
@ridges
@kinds
@pytest.mark.parametrize("shape", ["sparse", "compressible"])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_every_round_stays_under_the_bound(s, lam, kind, shape, noise):
    rng = np.random.default_rng(100 + s)
    m, N = 320, 12
    for _ in range(4):
        A = matrix(rng, kind, m, N)
        delta = ridge_isometry(isometry_constant(A / sqrt(m), 6 * s).upper, lam)
        c = planted(rng, N, s, shape)
        y = A @ c + noise * draw(rng, m)
        found = pursue(A, y, 2 * s, lam)
        bounds = coefficient_bound(
            np.arange(1, len(found) + 1),
            delta=delta,
            s=s,
            lam=lam,
            norm=float(np.linalg.norm(c)),
            distance=best_terms_distance(c, s),
            residual=float(np.linalg.norm(y - A @ c)) / sqrt(m),
        )
        errors = np.array([np.linalg.norm(after - c) for after in found])
        assert np.all(errors <= bounds + 1e-12)


def test_s_terms_for_an_s_sparse_vector_need_only_3s():
    rng = np.random.default_rng(7)
    m, N, s = 150, 20, 2
    A, c = matrix(rng, "waves", m, N), planted(rng, N, s, "sparse")
    delta = isometry_constant(A / sqrt(m), 3 * s).upper
    assert delta < LIMIT < isometry_constant(A / sqrt(m), 6 * s).upper
    y = A @ c
    errors = [np.linalg.norm(after - c) for after in pursue(A, y, s, 0.0)]
    values = {"s": s, "lam": 0.0, "norm": float(np.linalg.norm(c)), "distance": 0.0}
    bounds = coefficient_bound(np.arange(1, len(errors) + 1), delta=delta, residual=0.0, **values)
    assert np.all(np.array(errors) <= bounds + 1e-12)


# --- The conditions ---

GOOD = {
    "m": 10**7,
    "N": 100,
    "s": 2,
    "d": 20,
    "lam": 0.01,
    "gamma": 1.0,
    "sigma": 2.0,
    "failure": 0.01,
    "C1": 1.0,
    "C2": 1.0,
}


def sides(m, N, s, d, lam, gamma, sigma, failure, C1, C2):
    """The conditions of Theorem A.1 for 6s, with the proof's η₁ and η₂."""
    eta_1, eta_2 = (1 + lam) / (6 * sqrt(3)), sqrt(1 + lam) / (4 * sqrt(3))
    assert 3 * eta_1 + eta_2**2 + sqrt(2) * eta_2 < (1 + lam) / sqrt(3)
    t = 6 * s
    return {
        "rows": (m, C1 * eta_1**-2 * t * log(1 / failure)),
        "rows and features": (
            m / log(3 * m),
            C2 * eta_2**-2 * t * log(t) ** 2 * log(N / (9 * log(2 * m)) + 3),
        ),
        "spread": (sqrt(failure) * eta_1 * (4 * gamma**2 * sigma**2 + 1) ** (d / 4), N),
    }


@pytest.mark.parametrize(
    "change",
    [{}, {"m": 300, "lam": 0.5}, {"N": 5000, "s": 30}, {"C1": 3.0, "C2": 0.2, "sigma": 0.1}],
)
def test_the_sides_are_those_of_the_proof(change):
    setting = GOOD | change
    checked = convergence_conditions(**setting)
    expected = sides(**setting)
    assert [condition.name for condition in checked.conditions[:3]] == list(expected)
    for condition in checked.conditions[:3]:
        np.testing.assert_allclose((condition.left, condition.right), expected[condition.name])


def test_a_setting_that_satisfies_all():
    checked = convergence_conditions(**GOOD)
    assert checked.hold
    assert checked.failing == ()
    assert checked.probability == 0.98
    assert checked.summary().startswith("Theorem 3.1 applies with probability at least 0.98.")
    assert checked.summary().count("holds") == 4


@pytest.mark.parametrize(
    ("change", "failing", "mended"),
    [
        ({"m": 2000, "C2": 1e-4}, "rows", {"m", "lam"}),
        ({"m": 10**6, "s": 3000, "C2": 1e-5}, "rows", {"m", "s", "lam"}),
        ({"m": 20_000}, "rows and features", {"m", "s", "lam"}),
        ({"m": 2 * 10**5, "N": 10**6, "sigma": 9.0}, "rows and features", {"m", "s", "N", "lam"}),
        ({"sigma": 0.95}, "spread", {"sigma", "gamma", "N", "lam"}),
        ({"sigma": 0.1}, "spread", {"sigma", "gamma"}),
        ({"sigma": 1e-3, "d": 1, "N": 10**5}, "spread", {"sigma", "gamma"}),
        ({"lam": 12.0}, "ridge weight", {"lam"}),
    ],
)
def test_what_fails_is_named_and_every_remedy_is_the_nearest(change, failing, mended):
    setting = GOOD | change
    checked = convergence_conditions(**setting)
    assert not checked.hold
    (condition,) = checked.failing
    assert condition.name == failing
    assert set(condition.remedies) == mended
    assert "does not apply" in checked.summary()
    assert f"{failing}: fails" in checked.summary()

    def holds(name, value):
        after = convergence_conditions(**(setting | {name: value})).conditions
        return next(found.holds for found in after if found.name == failing)

    for name, value in condition.remedies.items():
        assert f"{name} " in str(condition)
        if name == "m":
            nearer = value - 1
        elif name in ("N", "s"):
            nearer = value + 1
        else:
            nearer = value + 1e-9 * (setting[name] - value)
        assert holds(name, value)
        assert not holds(name, nearer)


def test_the_printed_remedy_is_enough():
    condition = convergence_conditions(**(GOOD | {"sigma": 0.8})).failing[0]
    printed = float(str(condition).split("sigma >= ")[1].split(",")[0])
    assert convergence_conditions(**(GOOD | {"sigma": printed})).hold


def test_a_condition_that_nothing_mends():
    setting = GOOD | {"m": 2, "s": 1, "C1": 1e300, "C2": 1e300}
    failing = convergence_conditions(**setting).failing
    assert [found.remedies for found in failing] == [{}, {}]
    assert "No single change satisfies it." in str(failing[0])


def test_a_ridge_weight_above_the_limit_mends_nothing_else():
    setting = GOOD | {"lam": 12.0, "m": 10, "s": 100}
    checked = convergence_conditions(**setting)
    assert [found.name for found in checked.failing] == [
        "rows",
        "rows and features",
        "ridge weight",
    ]
    assert "lam" not in checked.failing[0].remedies


# --- Functions ---


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("frequency", [0.0, 0.7])
def test_norm_of_a_gaussian_is_the_supremum_on_a_grid(d, frequency):
    width, sigma = 1.3, 1.1
    w = np.linspace(-12, 12, 4801) if d == 1 else np.linspace(-6, 6, 601)
    grid = np.stack(np.meshgrid(*[w] * d), axis=-1).reshape(-1, d)
    centre = np.zeros(d)
    centre[0] = frequency
    alpha = (width**2 / (2 * np.pi)) ** (d / 2) * np.exp(
        -(width**2) * np.sum((grid - centre) ** 2, axis=1) / 2
    )
    rho = (2 * np.pi * sigma**2) ** (-d / 2) * np.exp(-np.sum(grid**2, axis=1) / (2 * sigma**2))
    assert isclose(np.max(alpha / rho), gaussian_norm(d, width, sigma, frequency), rel_tol=1e-3)


def test_norms_that_are_infinite_or_one():
    assert gaussian_norm(3, 0.5, 2.0) == 1.0
    assert gaussian_norm(3, 0.5, 2.0, frequency=0.1) == inf
    assert gaussian_norm(3, 0.5, 1.9) == inf
    assert gaussian_norm(3, 0.5, 4.0) == pytest.approx(8.0)
    assert gaussian_norm(5000, 2.0, 2.0) == inf


def gaussian_features(rng, m, N, d, width, sigma):
    """Rows, weights and c* of f(x) = exp(-‖x‖²/(2 width²)), γ = 1."""
    X, W = rng.normal(size=(m, d)), sigma * rng.normal(size=(d, N))
    ratio = (sigma * width) ** d * np.exp(-np.sum(W**2, axis=0) * (width**2 - sigma**-2) / 2)
    return X, W, ratio / N


def test_features_reach_the_radius():
    rng = np.random.default_rng(11)
    m, N, d, width, sigma, failure = 40, 60, 2, 1.0, 1.4, 0.1
    norm = gaussian_norm(d, width, sigma)
    far, high, draws = [], [], 300
    for _ in range(draws):
        X, W, c = gaussian_features(rng, m, N, d, width, sigma)
        assert np.all(np.abs(c) <= norm / N * (1 + 1e-12))
        error = np.abs(np.exp(1j * X @ W) @ c - np.exp(-np.sum(X**2, axis=1) / (2 * width**2)))
        far.append(np.sqrt(np.mean(error**2)) / norm)
        high.append(np.max(error) / norm)
    radius = feature_radius(N=N, failure=failure)
    assert np.mean(np.array(far) > radius) <= failure
    assert np.mean(np.array(high) > feature_radius(N=N, failure=failure / m)) <= failure
    printed = printed_feature_radius(N=N, m=m, d=d, gamma=1.0, sigma=sigma, failure=failure)
    assert np.max(high) <= printed
    # It scales as it should: a twelfth of it is exceeded.
    assert np.mean(np.array(far) > radius / 12) > failure


def test_radius_by_hand_and_the_printed_one():
    assert feature_radius(N=100, failure=np.exp(-2.0)) == pytest.approx(0.3)
    failure = 1e-12
    # γσ near 0: f* - f at any x is a mean of N summands; take α/ρ = ±1.
    N = 10_000
    printed = printed_feature_radius(N=N, m=1, d=1, gamma=1e-9, sigma=1.0, failure=failure)
    assert printed == pytest.approx((1 + sqrt(log(1 / failure) / 2)) / sqrt(N))
    heads = np.ceil(N * (1 + printed) / 2)
    assert 2 * binom.sf(heads, N, 0.5) > 10 * failure
    proven = feature_radius(N=N, failure=failure)
    assert 2 * binom.sf(np.floor(N * (1 + proven) / 2), N, 0.5) < failure
    usual = {"gamma": 1.0, "sigma": 1.0, "failure": 0.01}
    ball = 4 * 5 * sqrt(1 + sqrt(12 / 5 * log(200 / 0.01)))
    assert printed_feature_radius(N=25, m=200, d=5, **usual) == pytest.approx(
        (1 + ball + sqrt(log(100) / 2)) / 5
    )


def test_function_bound_is_the_coefficient_bound_with_the_norms_put_in():
    constants = bound_constants(0.2)
    values = {"delta": 0.2, "N": 400, "s": 25, "lam": 0.5, "radius": 0.3, "f_norm": 2.0}
    for n in (0, 3):
        expected = constants.beta**n / 20 + constants.D1 / 5 * (1 - 25 / 400)
        expected += constants.D2 * sqrt((0.09 + 0.5 / 400) / 1.5)
        assert function_bound(n, **values) == pytest.approx(2 * expected)
    # The middle summand does not decrease with N.
    many = function_bound(inf, **(values | {"N": 10**12, "radius": 1e-6}))
    assert many == pytest.approx(2 * constants.D1 / 5, rel=1e-4)


@pytest.mark.parametrize("N", [20, 1000])
@pytest.mark.parametrize("lam", [0.0, 0.1, 10.0])
def test_function_bound_is_above_the_error_of_zero(N, lam):
    for s in (1, N // 2, N):
        radius = feature_radius(N=N, failure=0.5)
        values = {"delta": 0.0, "N": N, "s": s, "lam": lam, "radius": radius, "f_norm": 1.0}
        assert function_bound(inf, **values) > 1 / sqrt(N)


@pytest.mark.parametrize("lam", [0.0, 0.02])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_risk_stays_under_its_bound_where_everything_is_known(lam, noise):
    rng = np.random.default_rng(12)
    m, N, s = 700, 24, 4
    closest = 0.0
    for decay in (0.3, 0.6, 0.9):
        A, W = waves(rng, m, N)
        # f = f* is a sum of the features: its error is known in closed form, and ε = 0.
        c = draw(rng, N) * decay ** rng.permutation(N)
        e = noise * draw(rng, m)
        apart = np.sum((W[:, :, None] - W[:, None, :]) ** 2, axis=0)
        G = np.exp(-apart / 2)
        x = pursue(A, A @ c + e, 2 * s, lam)[-1] - c
        bound = risk_bound(
            delta=ridge_isometry(isometry_constant(A / sqrt(m), N).upper, lam),
            mean_delta=float(np.linalg.norm(G - np.eye(N), 2)),
            N=N,
            s=s,
            lam=lam,
            f_norm=float(np.linalg.norm(c)) * sqrt(N),
            radius=0.0,
            distance=best_terms_distance(c, s),
            noise=sqrt(np.mean(np.abs(e) ** 2)),
        )
        error = sqrt((x.conj() @ G @ x).real)
        assert error <= bound
        closest = max(closest, error / bound)
    assert closest > 1e-3


def test_risk_of_a_gaussian_stays_under_its_bound():
    rng = np.random.default_rng(13)
    m, N, s, d, width, sigma, lam = 700, 24, 4, 8, 0.5, 2.2, 0.01
    X, W, c = gaussian_features(rng, m, N, d, width, sigma)
    A, y = np.exp(1j * X @ W), np.exp(-np.sum(X**2, axis=1) / (2 * width**2))
    found = pursue(A, y + 0j, 2 * s, lam)[-1]
    Z = rng.normal(size=(20_000, d))
    error = np.exp(1j * Z @ W) @ found - np.exp(-np.sum(Z**2, axis=1) / (2 * width**2))
    gram = np.exp(-np.sum((W[:, :, None] - W[:, None, :]) ** 2, axis=0) / 2)
    bound = risk_bound(
        delta=ridge_isometry(isometry_constant(A / sqrt(m), N).upper, lam),
        mean_delta=float(np.linalg.norm(gram - np.eye(N), 2)),
        N=N,
        s=s,
        lam=lam,
        f_norm=gaussian_norm(d, width, sigma),
        radius=feature_radius(N=N, failure=0.01),
        distance=best_terms_distance(c, s),
        noise=0.0,
    )
    assert sqrt(np.mean(np.abs(error) ** 2)) <= bound


def test_risk_bound_is_its_formula():
    constants = bound_constants(0.2)
    values = {"delta": 0.2, "mean_delta": 0.21, "N": 100, "s": 4, "lam": 0.25}
    found = risk_bound(**values, f_norm=2.0, radius=0.1, distance=0.6, noise=0.3)
    tail = constants.D2 * sqrt((0.5**2 + 0.25 * 4 / 100) / 1.25)
    inner = (constants.D1 - 0.5) * 0.3 + tail
    assert found == pytest.approx(0.2 + 0.6 + 1.1 * inner)


def test_mean_gram_matrix_is_near_the_identity_as_the_third_condition_says():
    rng = np.random.default_rng(14)
    N, d, sigma, failure = 12, 10, 1.0, 0.2
    eta = N / (sqrt(failure) * 5 ** (d / 4))
    high, squares = 0, []
    for _ in range(400):
        W = sigma * rng.normal(size=(d, N))
        G = np.exp(-np.sum((W[:, :, None] - W[:, None, :]) ** 2, axis=0) / 2)
        squares.append(np.sum((G - np.eye(N)) ** 2))
        high += sqrt(squares[-1]) > eta
    assert high / 400 <= failure
    assert np.mean(squares) == pytest.approx(N * (N - 1) * 5 ** (-d / 2), rel=0.25)


# --- λ ---


def test_ridge_effects_are_the_single_functions():
    lams = [0.0, 0.5, 0.6, 2.0, 20.0]
    conditions = {key: GOOD[key] for key in GOOD if key != "lam"}
    rest = {"norm": 1.5, "distance": 0.2, "residual": 0.1}
    table = ridge_effects(lams, delta=1.2, **conditions, **rest)
    assert table["lam"].tolist() == lams
    np.testing.assert_allclose(table["delta"], 1.2 / (1 + np.array(lams)))
    assert table["beta"][0] == inf  # δ >= 1
    assert table["beta"][1] == pytest.approx(contraction(0.8))
    assert np.all(np.isinf([table[name][:3] for name in ("D1", "D2", "bound")]))
    for name in ("delta", "beta", "D1", "D2", "rows_right", "rows_and_features_right"):
        assert np.all(np.diff(table[name][2:]) < 0)
    assert np.all(np.diff(table["spread_left"]) > 0)
    for row in list(table.rows())[3:]:
        assert row["D1"] == bound_constants(row["delta"]).D1
        assert row["D2"] == bound_constants(row["delta"]).D2
        values = {"delta": row["delta"], "s": GOOD["s"], "lam": row["lam"]}
        assert row["bound"] == coefficient_bound(inf, **values, **rest)
        # From λ = 0.21 on the bound is weaker than the error of c = 0.
        assert row["bound"] > rest["norm"]
    checked = convergence_conditions(**(GOOD | {"lam": 2.0})).conditions
    assert table["spread_left"][3] == checked[2].left
    assert table["rows_right"][3] == checked[0].right
    assert len(ridge_effects([], delta=1.2, **conditions, **rest)) == 0


# --- Arguments ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coherence(np.zeros((3, 2))), "zero column 0"),
        (lambda: coherence([1.0, 2.0]), r"shape \(2,\)"),
        (lambda: coherence([[np.nan]]), "finite matrix"),
        (lambda: coherence(np.empty((0, 3))), "finite matrix"),
        (lambda: coherence([["a"]]), "finite matrix"),
        (lambda: isometry_constant(np.eye(3), 4), "s=4 is larger"),
        (lambda: isometry_constant(np.eye(3), 0), "s=0 must be"),
        (lambda: isometry_constant(np.eye(3), 1, n_starts=0), "n_starts=0"),
        (lambda: stacked_matrix(np.eye(2), -1), "lam=-1"),
        (lambda: ridge_isometry(-0.1, 0.0), "delta=-0.1"),
        (lambda: ridge_isometry(0.1, inf), "lam=inf"),
        (lambda: contraction(1.0), "delta=1.0"),
        (lambda: bound_constants(0.6), "delta=0.6 must be an isometry constant"),
        (lambda: best_terms_distance([1.0], 0), "s=0"),
        (lambda: bound(n=-1), "n=-1"),
        (lambda: bound(norm=-1.0), "norm=-1.0"),
        (lambda: bound(residual=True), "residual=True"),
        (lambda: convergence_conditions(**(GOOD | {"C1": 0})), "C1=0"),
        (lambda: convergence_conditions(**(GOOD | {"m": 1.5})), "m=1.5"),
        (lambda: convergence_conditions(**(GOOD | {"failure": 0.5})), "failure=0.5.*below 0.5"),
        (lambda: feature_radius(N=10, failure=1.0), "failure=1.0"),
        (lambda: gaussian_norm(2, 0.0, 1.0), "width=0.0"),
        (lambda: gaussian_norm(2, 1.0, 1.0, -1.0), "frequency=-1.0"),
        (lambda: risk(s=30), "s=30 is larger than N=20"),
        (lambda: risk(distance=-1.0), "distance=-1.0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def bound(n=1, **change):
    values = {"delta": 0.1, "s": 2, "lam": 0.0, "norm": 1.0, "distance": 0.0, "residual": 0.0}
    return coefficient_bound(n, **(values | change))


def risk(**change):
    values = {"delta": 0.1, "mean_delta": 0.1, "N": 20, "s": 2, "lam": 0.0, "f_norm": 1.0}
    values |= {"radius": 0.1, "distance": 0.1, "noise": 0.0}
    return risk_bound(**(values | change))


def test_constants_of_the_theorem_have_no_default():
    without = {key: GOOD[key] for key in GOOD if key not in ("C1", "C2")}
    with pytest.raises(TypeError, match="C1"):
        convergence_conditions(**without)
