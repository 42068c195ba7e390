"""Algorithm 1 against a textbook transcription, planted supports, and its own symmetries."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from sklearn.linear_model import Ridge

from harfe.features.law import FeatureLaw
from harfe.solvers.homes import RecomputedProblem, StoredProblem
from harfe.solvers.pursuit import StopReason, hard_ridge_pursuit
from harfe.solvers.threshold import largest_rows

both_types = pytest.mark.parametrize("dtype", [float, complex])


def draw(rng, shape, dtype=float):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype is complex else values


def unit_rms(A):
    return A / np.sqrt(np.mean(np.abs(A) ** 2, axis=0))


def literal(A, y):
    """The problem of these very columns: nothing centred, nothing scaled."""
    return StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")


def noisy(seed=0, rows=20, features=40, targets=1):
    """A problem without structure."""
    rng = np.random.default_rng(seed)
    return StoredProblem.from_matrix(
        rng.normal(size=(rows, features)), rng.normal(size=(rows, targets))
    )


def algorithm_1(A, y, s, lam, mu, rounds, c):
    """Algorithm 1 of the paper, line by line; several targets rank by the norm of their row."""
    m = len(A)
    for _ in range(rounds):
        c_tilde = (1 - m * mu * lam) * c + mu * A.conj().T @ (y - A @ c)
        idx = np.sort(np.argsort(-np.linalg.norm(c_tilde, axis=1), kind="stable")[:s])
        A_bar = A[:, idx]
        c = np.zeros_like(c)
        c[idx] = np.linalg.solve(A_bar.conj().T @ A_bar + m * lam * np.eye(s), A_bar.conj().T @ y)
        objective = np.sum(np.abs(y - A @ c) ** 2) / m + lam * np.sum(np.abs(c) ** 2)
        yield idx, c, objective


# --- The paper's algorithm, step for step ---


def rounds_of(problem, s, alpha, **options):
    rounds = []
    result = hard_ridge_pursuit(
        problem, n_nonzero_coefs=s, alpha=alpha, callback=rounds.append, **options
    )
    return rounds, result


def assert_same_rounds(A, y, s, lam, mu, start="zero", **problem_options):
    m, N = A.shape
    problem = StoredProblem.from_matrix(A, y, fit_intercept=False, **problem_options)
    # in the notation of the problem, divided by the number of rows
    # and a start for y and columns of unit root-mean-square is one for those given
    init = start if isinstance(start, str) else start.T
    rounds, result = rounds_of(problem, s, lam, step_size=m * mu, init=init, tol=0.0, max_iter=20)
    c = np.zeros((N, y.shape[1]), problem.dtype) if isinstance(start, str) else start
    textbook = list(algorithm_1(A, y, s, lam, mu, len(rounds) + 1, c))
    for state, (idx, c, objective) in zip(rounds, textbook, strict=False):
        np.testing.assert_array_equal(state.support, idx)
        np.testing.assert_allclose(state.scaled_coef, c[idx], rtol=0, atol=1e-9 * np.abs(c).max())
        np.testing.assert_allclose(state.objective, objective, rtol=1e-10)
    assert [state.n_iter for state in rounds] == list(range(1, len(rounds) + 1))
    np.testing.assert_array_equal(result.objective, [state.objective for state in rounds])
    if result.reason is StopReason.FIXED_POINT:
        np.testing.assert_array_equal(textbook[-1][0], textbook[-2][0])
    return len(rounds)


@both_types
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("targets", [1, 3])
def test_every_round_is_that_of_the_textbook(dtype, seed, alpha, targets):
    rng = np.random.default_rng(seed)
    A = unit_rms(draw(rng, (60, 150), dtype))
    y = unit_rms(draw(rng, (60, targets), dtype))
    assert_same_rounds(A, y, 12, alpha, 0.1 / 60)


def test_the_textbook_comparison_sees_several_rounds():
    rng = np.random.default_rng(0)
    A, y = unit_rms(draw(rng, (60, 150))), unit_rms(draw(rng, (60, 1)))
    assert assert_same_rounds(A, y, 12, 1e-2, 1 / 60) >= 4


@both_types
def test_the_papers_literal_columns_and_step(dtype):
    # notes to the paper, §2: column_scale="none", alpha=λ, step_size=m·μ
    rng = np.random.default_rng(3)
    A = draw(rng, (50, 80), dtype) * rng.uniform(0.2, 2, 80)
    y = draw(rng, (50, 1), dtype) * 5
    assert assert_same_rounds(A, y, 9, 1e-3, 0.02, column_scale="none") > 1


@both_types
@pytest.mark.parametrize("nonzeros", [7, 30])
def test_every_round_from_another_start(dtype, nonzeros):
    rng = np.random.default_rng(4)
    A, y = unit_rms(draw(rng, (60, 150), dtype)), unit_rms(draw(rng, (60, 2), dtype))
    start = np.zeros((150, 2), dtype)
    start[rng.choice(150, nonzeros, replace=False)] = draw(rng, (nonzeros, 2), dtype)
    assert_same_rounds(A, y, 12, 1e-2, 0.5 / 60, start=start)


@both_types
def test_the_step_on_the_stacked_matrix(dtype):
    # c + μB*(ỹ - Bc) = (1 - mμλ)c + μA*(y - Ac), B = [A; √(mλ) I], ỹ = [y; 0]
    rng = np.random.default_rng(0)
    m, N, lam, mu = 30, 50, 0.3, 0.02
    A, y = draw(rng, (m, N), dtype), draw(rng, (m, 1), dtype)
    S = np.sort(rng.choice(N, 8, replace=False))
    c = np.zeros((N, 1), dtype)
    c[S] = draw(rng, (8, 1), dtype)
    B = np.vstack([A, np.sqrt(m * lam) * np.eye(N)])
    y_tilde = np.vstack([y, np.zeros((N, 1))])
    stacked = c + mu * B.conj().T @ (y_tilde - B @ c)
    gradient, _ = literal(A, y).gradient(S, c[S])
    np.testing.assert_allclose(
        (1 - m * mu * lam) * c + mu * m * gradient, stacked, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 3.0])
def test_the_normalized_step_is_the_unit_step_on_columns_of_unit_norm(alpha):
    word, word_result = rounds_of(noisy(), 6, alpha, step_size="normalized")
    number, number_result = rounds_of(noisy(), 6, alpha, step_size=1 / (1 + alpha))
    assert word_result.reason is number_result.reason
    assert [a.support.tobytes() for a in word] == [b.support.tobytes() for b in number]
    assert [a.scaled_coef.tobytes() for a in word] == [b.scaled_coef.tobytes() for b in number]


# --- Planted supports ---


def planted(kind, seed, m=300, N=400, s=8):
    """Columns of unit root-mean-square, and y = A c of s of them."""
    rng = np.random.default_rng(seed)
    S = np.sort(rng.choice(N, s, replace=False))
    c = rng.choice([-1, 1], s) * rng.uniform(1, 2, s)
    if kind == "gaussian":
        A = rng.normal(size=(m, N))
    else:
        # Theorem 3.1: Gaussian data and weights, q = d
        z = rng.normal(size=(m, 10)) @ rng.normal(size=(10, N))
        A = np.exp(1j * z) if kind == "exp" else np.sin(z + rng.uniform(0, 2 * np.pi, N))
    if kind == "exp":
        c = c * np.exp(1j * rng.uniform(0, 2 * np.pi, s))
    A = unit_rms(A)
    return A, A[:, S] @ c, S, c


every_kind = pytest.mark.parametrize("kind", ["gaussian", "sine", "exp"])


@every_kind
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_planted_support_is_recovered(kind, seed, fit_intercept):
    A, y, S, c = planted(kind, seed)
    problem = StoredProblem.from_matrix(A, y, fit_intercept=fit_intercept)
    result = hard_ridge_pursuit(
        problem, n_nonzero_coefs=len(S), alpha=1e-10, step_size="normalized"
    )
    np.testing.assert_array_equal(result.support, S)
    coef, intercept = problem.to_raw(S, result.scaled_coef)
    np.testing.assert_allclose(coef[0], c, rtol=0, atol=1e-8)
    np.testing.assert_allclose(intercept, [0], rtol=0, atol=1e-8)
    assert result.reason is StopReason.RESIDUAL


@every_kind
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("step_size", [0.1, "normalized"])
def test_twice_as_many_features_contain_the_planted_ones(kind, seed, step_size):
    # Theorem 3.1 runs the algorithm with 2s
    A, y, S, c = planted(kind, seed)
    result = hard_ridge_pursuit(
        literal(A, y), n_nonzero_coefs=2 * len(S), alpha=1e-10, step_size=step_size
    )
    assert np.isin(S, result.support).all()
    on_S = np.isin(result.support, S)
    np.testing.assert_allclose(result.scaled_coef[on_S, 0], c, rtol=0, atol=1e-7)
    np.testing.assert_allclose(result.scaled_coef[~on_S, 0], 0, rtol=0, atol=1e-7)


@every_kind
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_support_is_recovered_under_noise(kind, seed):
    A, y, S, c = planted(kind, seed)
    rng = np.random.default_rng(seed + 100)
    sigma = 0.1
    noise = sigma * draw(rng, len(y), complex if kind == "exp" else float)
    result = hard_ridge_pursuit(
        literal(A, y + noise), n_nonzero_coefs=8, alpha=1e-8, step_size="normalized"
    )
    np.testing.assert_array_equal(result.support, S)
    # least squares on the true support: error about σ√(s/m), √2 more for complex noise
    assert np.linalg.norm(result.scaled_coef[:, 0] - c) < 3 * sigma * np.sqrt(8 / 300)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_support_shared_by_several_targets(seed):
    A, y, S, _ = planted("gaussian", seed)
    other = A[:, S] @ np.random.default_rng(seed).uniform(50, 100, 8)
    result = hard_ridge_pursuit(
        literal(A, np.column_stack([y, other])), n_nonzero_coefs=8, alpha=0.0, step_size=1.0
    )
    np.testing.assert_array_equal(result.support, S)


# --- Relations ---


@both_types
def test_all_features_kept_is_plain_ridge(dtype):
    rng = np.random.default_rng(0)
    A, y = unit_rms(draw(rng, (40, 12), dtype)), draw(rng, (40, 1), dtype)
    result = hard_ridge_pursuit(literal(A, y), n_nonzero_coefs=12, alpha=0.2)
    expected = np.linalg.solve(A.conj().T @ A / 40 + 0.2 * np.eye(12), A.conj().T @ y / 40)
    np.testing.assert_array_equal(result.support, np.arange(12))
    np.testing.assert_allclose(result.scaled_coef, expected, rtol=0, atol=1e-13)
    assert result.n_iter == 1
    assert result.reason is StopReason.FIXED_POINT


def test_all_features_kept_is_scikit_learns_ridge():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(40, 60)) + 3, rng.normal(size=40) + 5
    problem = StoredProblem.from_matrix(A, y, column_scale="none")
    result = hard_ridge_pursuit(problem, n_nonzero_coefs=60, alpha=0.1)
    model = Ridge(alpha=0.1 * 40).fit(A, y)
    coef, intercept = problem.to_raw(result.support, result.scaled_coef)
    np.testing.assert_allclose(coef[0], model.coef_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(intercept[0], model.intercept_, rtol=1e-12)


@pytest.mark.parametrize("s", [6, 30])
def test_a_vanishing_ridge_is_least_squares_of_minimum_norm(s):
    problem = noisy(1)
    free = hard_ridge_pursuit(problem, n_nonzero_coefs=s, alpha=0.0)
    tiny = hard_ridge_pursuit(problem, n_nonzero_coefs=s, alpha=1e-13)
    np.testing.assert_array_equal(free.support, tiny.support)
    np.testing.assert_allclose(free.scaled_coef, tiny.scaled_coef, rtol=0, atol=1e-9)
    A = problem._tile(free.support, slice(0, 20)).T
    expected = np.linalg.lstsq(A, problem.targets.values, rcond=3e-8)[0]
    np.testing.assert_allclose(free.scaled_coef, expected, rtol=0, atol=1e-9)


@both_types
@pytest.mark.parametrize("factor", [-1.0, 1000.0, 1e-5])
def test_scaling_y_scales_the_coefficients(dtype, factor):
    rng = np.random.default_rng(2)
    A, y = draw(rng, (30, 70), dtype), draw(rng, 30, dtype)
    one = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, y), n_nonzero_coefs=9, alpha=1e-2, step_size=0.8
    )
    other = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, factor * y), n_nonzero_coefs=9, alpha=1e-2, step_size=0.8
    )
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(
        other.scaled_coef,
        factor * one.scaled_coef,
        rtol=0,
        atol=1e-12 * abs(factor) * np.abs(one.scaled_coef).max(),
    )
    np.testing.assert_allclose(other.objective, factor**2 * one.objective, rtol=1e-12)
    np.testing.assert_allclose(other.relative_residual, one.relative_residual, rtol=1e-12)


def test_negating_a_feature_negates_its_coefficient():
    rng = np.random.default_rng(2)
    A, y = rng.normal(size=(30, 70)), rng.normal(size=30)
    sign = rng.choice([-1, 1], 70)
    one = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, y), n_nonzero_coefs=9, alpha=1e-2, step_size=0.8
    )
    other = hard_ridge_pursuit(
        StoredProblem.from_matrix(A * sign, y), n_nonzero_coefs=9, alpha=1e-2, step_size=0.8
    )
    np.testing.assert_array_equal(one.support, other.support)
    expected = sign[one.support, None] * one.scaled_coef
    np.testing.assert_allclose(other.scaled_coef, expected, rtol=0, atol=1e-13)


@both_types
def test_permuting_the_features_permutes_the_support(dtype):
    rng = np.random.default_rng(3)
    A, y = draw(rng, (30, 70), dtype), draw(rng, 30, dtype)
    order = rng.permutation(70)
    one = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, y), n_nonzero_coefs=9, alpha=1e-2, step_size=0.8
    )
    other = hard_ridge_pursuit(
        StoredProblem.from_matrix(A[:, order], y), n_nonzero_coefs=9, alpha=1e-2, step_size=0.8
    )
    full = np.zeros(70, one.scaled_coef.dtype)
    full[one.support] = one.scaled_coef[:, 0]
    np.testing.assert_array_equal(np.sort(order[other.support]), one.support)
    np.testing.assert_allclose(
        other.scaled_coef[:, 0], full[order[other.support]], rtol=0, atol=1e-12
    )


def test_permuting_the_rows_changes_nothing():
    rng = np.random.default_rng(3)
    A, y, order = rng.normal(size=(30, 70)), rng.normal(size=30), rng.permutation(30)
    one = hard_ridge_pursuit(StoredProblem.from_matrix(A, y), n_nonzero_coefs=9, alpha=1e-2)
    other = hard_ridge_pursuit(
        StoredProblem.from_matrix(A[order], y[order]), n_nonzero_coefs=9, alpha=1e-2
    )
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(other.scaled_coef, one.scaled_coef, rtol=0, atol=1e-12)


def test_rescaling_one_of_several_targets_changes_nothing():
    rng = np.random.default_rng(5)
    A, y = rng.normal(size=(30, 70)), rng.normal(size=(30, 3))
    one = hard_ridge_pursuit(StoredProblem.from_matrix(A, y), n_nonzero_coefs=9, alpha=1e-2)
    other = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, y * [1, 1e4, 1]), n_nonzero_coefs=9, alpha=1e-2
    )
    np.testing.assert_array_equal(one.support, other.support)
    assert one.scaled_coef.shape == (9, 3)
    np.testing.assert_allclose(other.scaled_coef, one.scaled_coef, rtol=0, atol=1e-12)


@pytest.mark.parametrize("step_size", [0.1, 1.0])
def test_a_complex_target_is_two_real_ones_of_equal_power(step_size):
    # both parts are divided by the same deviation u, so rows rank alike: c = u(c₁ + i c₂)
    rng = np.random.default_rng(6)
    A, parts = rng.normal(size=(30, 70)), rng.normal(size=(30, 2))
    u = 2.5
    parts = u * unit_rms(parts - parts.mean(axis=0))
    together = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, parts[:, 0] + 1j * parts[:, 1]),
        n_nonzero_coefs=9,
        alpha=1e-2,
        step_size=step_size,
    )
    apart = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, parts), n_nonzero_coefs=9, alpha=1e-2, step_size=step_size
    )
    np.testing.assert_array_equal(together.support, apart.support)
    expected = u * (apart.scaled_coef[:, 0] + 1j * apart.scaled_coef[:, 1])
    np.testing.assert_allclose(together.scaled_coef[:, 0], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(together.objective, u**2 * apart.objective, rtol=1e-12)


@pytest.mark.parametrize("activation", ["sin", "exp"])
@pytest.mark.parametrize("s", [12, 90])
@pytest.mark.parametrize("targets", [1, 2])
def test_homes_agree(activation, s, targets):
    rng = np.random.default_rng(7)
    pool = FeatureLaw(4, activation=activation).draw(300, rng)
    X, y = rng.normal(size=(80, 4)), rng.normal(size=(80, targets))
    w = rng.uniform(1, 2, 80)
    results = [
        hard_ridge_pursuit(
            home(pool, X, y, w), n_nonzero_coefs=s, alpha=1e-2, step_size="normalized"
        )
        for home in (StoredProblem, RecomputedProblem)
    ]
    np.testing.assert_array_equal(results[0].support, results[1].support)
    np.testing.assert_allclose(results[0].scaled_coef, results[1].scaled_coef, rtol=0, atol=1e-10)
    np.testing.assert_allclose(results[0].objective, results[1].objective, rtol=1e-10)
    assert results[0].reason is results[1].reason


@pytest.mark.parametrize("home", [StoredProblem, RecomputedProblem])
@pytest.mark.parametrize(("activation", "s"), [("sin", 150), ("exp", 40)])
def test_same_bits_for_any_number_of_threads(home, activation, s, on_threads):
    rng = np.random.default_rng(0)
    pool = FeatureLaw(4, activation=activation).draw(600, rng)
    X, y = rng.normal(size=(1100, 4)), rng.normal(size=(1100, 2))

    def fit():
        problem = home(pool, X, y, np.ones(1100))
        result = hard_ridge_pursuit(
            problem, n_nonzero_coefs=s, alpha=1e-3, step_size="normalized", max_iter=5
        )
        return [a.tobytes() for a in (result.support, result.scaled_coef, result.objective)]

    assert on_threads(1, fit) == on_threads(2, fit)


# --- Exactly s features ---


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(3, 15),
    features=st.integers(1, 20),
    targets=st.integers(1, 3),
    dtype=st.sampled_from([float, complex]),
    alpha=st.sampled_from([0.0, 1e-3, 1.0]),
    step_size=st.sampled_from([0.1, "normalized", 5.0]),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_exactly_s_usable_features_and_the_best_round(
    rows, features, targets, dtype, alpha, step_size, seed, data
):
    rng = np.random.default_rng(seed)
    s = data.draw(st.integers(1, features))
    A = draw(rng, (rows, features), dtype)
    constant = rng.random(features) < 0.2
    A[:, constant] = 3.0
    problem = StoredProblem.from_matrix(A, draw(rng, (rows, targets), dtype))
    result = hard_ridge_pursuit(
        problem, n_nonzero_coefs=s, alpha=alpha, step_size=step_size, max_iter=8
    )
    assert len(result.support) == min(s, features - constant.sum())
    assert np.all(np.diff(result.support) > 0)
    assert not constant[result.support].any()
    assert result.scaled_coef.shape == (len(result.support), targets)
    assert result.best_round == np.argmin(result.objective)
    assert result.n_iter == len(result.objective) == len(result.relative_residual) <= 8
    _, rss = problem.gradient(result.support, result.scaled_coef)
    best = rss.sum() + alpha * np.sum(np.abs(result.scaled_coef) ** 2)
    np.testing.assert_allclose(result.objective[result.best_round], best, rtol=1e-12)
    np.testing.assert_allclose(
        result.relative_residual[result.best_round],
        np.sqrt(rss.sum() / problem.power.sum()),
        rtol=1e-12,
    )


H = hadamard(16).astype(float)


@pytest.mark.parametrize(
    ("columns", "y", "s", "support"),
    [
        ([1, 3, 2, 3], H[:, 3], 1, [1]),
        ([1, 3, 2, 3], -H[:, 3], 1, [1]),
        ([5, 4, 4, 5, 5], H[:, 4] + H[:, 5], 3, [0, 1, 2]),
        ([1, 2, 3, 4, 5], H[:, 5] - H[:, 2] + H[:, 3], 2, [1, 2]),
        ([6, 7, 8, 1, 2], 2 * H[:, 1], 3, [0, 1, 3]),
    ],
)
def test_ties_go_to_the_lower_index(columns, y, s, support):
    # columns of ±1 without mean: every product is exact, so equal features are exact ties
    problem = StoredProblem.from_matrix(H[:, columns], y)
    rounds, _ = rounds_of(problem, s, 0.5)
    np.testing.assert_array_equal(rounds[0].support, support)


def test_fewer_usable_features_than_s():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 6))
    A[:, [0, 2, 5]] = [1.0, -4.0, 0.0]
    result = hard_ridge_pursuit(
        StoredProblem.from_matrix(A, rng.normal(size=30)), n_nonzero_coefs=5, alpha=0.1
    )
    np.testing.assert_array_equal(result.support, [1, 3, 4])


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("home", [StoredProblem, RecomputedProblem])
def test_no_usable_feature_at_all(home, targets):
    rng = np.random.default_rng(0)
    pool = FeatureLaw(2).draw(5, rng)
    X, y = np.ones((30, 2)), rng.normal(size=(30, targets))
    problem = home(pool, X, y, np.ones(30))
    result = hard_ridge_pursuit(problem, n_nonzero_coefs=3, alpha=0.1)
    assert result.support.shape == (0,)
    assert result.scaled_coef.shape == (0, targets)
    np.testing.assert_allclose(result.objective, [problem.power.sum()], rtol=1e-14)
    np.testing.assert_array_equal(result.relative_residual, [1.0])
    assert result.reason is StopReason.FIXED_POINT
    coef, intercept = problem.to_raw(result.support, result.scaled_coef)
    assert coef.shape == (targets, 0)
    np.testing.assert_allclose(intercept, y.mean(axis=0), rtol=1e-12)


# --- Starts ---


def test_a_vector_and_a_row_are_the_same_start():
    start = np.random.default_rng(1).normal(size=40)
    vector = hard_ridge_pursuit(noisy(), n_nonzero_coefs=5, alpha=1e-2, init=start)
    column = hard_ridge_pursuit(noisy(), n_nonzero_coefs=5, alpha=1e-2, init=start[None])
    zero = hard_ridge_pursuit(noisy(), n_nonzero_coefs=5, alpha=1e-2)
    assert vector.scaled_coef.tobytes() == column.scaled_coef.tobytes()
    np.testing.assert_array_equal(vector.support, column.support)
    assert vector.support.tobytes() != zero.support.tobytes()


def test_zeros_are_the_start_named_zero():
    array = hard_ridge_pursuit(
        noisy(targets=2), n_nonzero_coefs=5, alpha=1e-2, init=np.zeros((2, 40))
    )
    word = hard_ridge_pursuit(noisy(targets=2), n_nonzero_coefs=5, alpha=1e-2)
    assert array.scaled_coef.tobytes() == word.scaled_coef.tobytes()


@pytest.mark.parametrize("targets", [1, 2])
def test_a_start_at_the_fixed_point_stays_there(targets):
    problem = noisy(2, targets=targets)
    first = hard_ridge_pursuit(problem, n_nonzero_coefs=5, alpha=1e-2)
    assert first.reason is StopReason.FIXED_POINT
    again = hard_ridge_pursuit(problem, n_nonzero_coefs=5, alpha=1e-2, init=first.coef)
    assert again.n_iter == 1
    assert again.reason is StopReason.FIXED_POINT
    np.testing.assert_array_equal(again.support, first.support)
    np.testing.assert_allclose(again.scaled_coef, first.scaled_coef, rtol=0, atol=1e-13)


def test_a_start_on_unusable_features_counts_for_nothing():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    A[:, 2] = 1.0
    problem = StoredProblem.from_matrix(A, y)
    result = hard_ridge_pursuit(
        problem, n_nonzero_coefs=2, alpha=0.1, init=np.array([0, 0, 9.0, 0, 0, 0])
    )
    expected = hard_ridge_pursuit(problem, n_nonzero_coefs=2, alpha=0.1)
    assert result.scaled_coef.tobytes() == expected.scaled_coef.tobytes()


# --- Why it stopped ---


def test_the_best_round_is_returned_and_the_history_holds_all():
    # a step so large that the objective goes up again
    rounds, result = rounds_of(noisy(1), 5, 1e-2, step_size=3.0)
    assert result.n_iter == len(rounds) == 7
    assert result.best_round == 2
    assert np.any(np.diff(result.objective) > 0)
    best = min(rounds, key=lambda state: state.objective)
    assert result.scaled_coef is best.scaled_coef
    assert result.support is best.support
    np.testing.assert_array_equal(
        result.relative_residual, [state.relative_residual for state in rounds]
    )


def test_stop_at_a_fixed_point():
    rounds, result = rounds_of(noisy(0), 5, 1e-2)
    assert result.reason is StopReason.FIXED_POINT
    assert len({state.support.tobytes() for state in rounds}) == len(rounds)


def test_stop_in_a_circle():
    rounds, result = rounds_of(noisy(4), 5, 1e-2, step_size=1.0)
    assert result.reason is StopReason.CYCLE
    # the round that would have come next repeats one that is not the last
    c = np.zeros((40, 1))
    c[rounds[-1].support] = rounds[-1].scaled_coef
    gradient, _ = noisy(4).gradient(rounds[-1].support, rounds[-1].scaled_coef)
    following = largest_rows((1 - 1e-2) * c + gradient, 5).tobytes()
    assert following in [state.support.tobytes() for state in rounds[:-1]]
    assert following != rounds[-1].support.tobytes()


def test_stop_after_max_iter():
    rounds, result = rounds_of(noisy(4), 5, 1e-2, step_size=1.0, max_iter=2)
    assert result.reason is StopReason.MAX_ITER
    assert len(rounds) == result.n_iter == 2


@pytest.mark.parametrize("answer", [True, 1, np.True_])
def test_stop_by_callback(answer):
    seen = []

    def callback(state):
        seen.append(state)
        return answer if state.n_iter == 2 else None

    result = hard_ridge_pursuit(
        noisy(4), n_nonzero_coefs=5, alpha=1e-2, step_size=1.0, callback=callback
    )
    assert result.reason is StopReason.CALLBACK
    assert len(seen) == result.n_iter == 2


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize(("factor", "stops"), [(1 + 1e-9, True), (1 - 1e-9, False)])
def test_stop_at_the_tolerance(targets, factor, stops):
    problem = noisy(4, targets=targets)
    first = hard_ridge_pursuit(problem, n_nonzero_coefs=5, alpha=1e-2, step_size=1.0, max_iter=1)
    tol = factor * first.relative_residual[0]
    result = hard_ridge_pursuit(
        problem, n_nonzero_coefs=5, alpha=1e-2, step_size=1.0, tol=tol, max_iter=1
    )
    assert result.reason is (StopReason.RESIDUAL if stops else StopReason.MAX_ITER)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("size", [1.0, 1e200])
@pytest.mark.parametrize(("factor", "stops"), [(1 + 1e-9, True), (1 - 1e-9, False)])
def test_stop_at_the_noise_level_in_units_of_y(targets, size, factor, stops):
    rng = np.random.default_rng(4)
    A = rng.normal(size=(20, 40))
    y = size * rng.normal(size=(20, targets)) * 10.0 ** np.arange(targets)
    w = rng.uniform(1, 2, 20)
    problem = StoredProblem.from_matrix(A, y, w)
    first = hard_ridge_pursuit(problem, n_nonzero_coefs=5, alpha=1e-2, step_size=1.0, max_iter=1)
    coef, intercept = problem.to_raw(first.support, first.scaled_coef)
    residual = (y - intercept - A[:, first.support] @ coef.T) / size
    # every target must be within the noise, so the worst one decides
    worst = size * np.sqrt(np.max(w @ residual**2 / w.sum()))
    result = hard_ridge_pursuit(
        problem,
        n_nonzero_coefs=5,
        alpha=1e-2,
        step_size=1.0,
        noise_level=factor * worst,
        max_iter=1,
    )
    assert result.reason is (StopReason.RESIDUAL if stops else StopReason.MAX_ITER)


def test_a_zero_y_is_explained_at_once():
    problem = StoredProblem.from_matrix(np.random.default_rng(0).normal(size=(20, 9)), np.zeros(20))
    result = hard_ridge_pursuit(problem, n_nonzero_coefs=3, alpha=0.1)
    assert result.reason is StopReason.RESIDUAL
    np.testing.assert_array_equal(result.scaled_coef, np.zeros((3, 1)))
    np.testing.assert_array_equal(result.relative_residual, [0.0])


@pytest.mark.parametrize("constant", [1.0, 0.1, 1e300])
@pytest.mark.parametrize("rows", [20, 50])
def test_a_constant_y_leaves_nothing_to_explain(constant, rows):
    # what rounding leaves of y - ȳ is not a signal
    A = np.random.default_rng(0).normal(size=(rows, 9))
    problem = StoredProblem.from_matrix(A, np.full(rows, constant))
    result = hard_ridge_pursuit(problem, n_nonzero_coefs=3, alpha=0.1)
    assert result.reason is StopReason.RESIDUAL
    np.testing.assert_allclose(result.relative_residual, [0.0], rtol=0, atol=1e-6)


def test_a_constant_target_beside_another_leaves_nothing_to_explain():
    A, y, S, _ = planted("gaussian", 0)
    problem = StoredProblem.from_matrix(A, np.column_stack([y, np.full(len(y), 0.1)]))
    result = hard_ridge_pursuit(
        problem, n_nonzero_coefs=len(S), alpha=1e-12, step_size="normalized"
    )
    np.testing.assert_array_equal(result.support, S)
    assert result.reason is StopReason.RESIDUAL


@pytest.mark.parametrize("reason", StopReason)
def test_every_reason_is_advice_in_sentences(reason):
    assert re.fullmatch(r"([A-Z][^.]*\.( |$))+", reason.value)
    assert len(reason.value.split()) >= 5


def test_results_and_rounds_are_values():
    rounds, result = rounds_of(noisy(), 5, 1e-2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.reason = StopReason.CYCLE
    with pytest.raises(dataclasses.FrozenInstanceError):
        rounds[0].objective = 0.0


# --- Impossible settings ---

COUNT = " must be a whole number of at least 1, e.g. "
STEP = " must be 'normalized' or a positive number, e.g. step_size=0.1"
FINITE = " must be a finite number >= 0, e.g. "


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *[
            ({"n_nonzero_coefs": bad}, f"n_nonzero_coefs={bad!r}{COUNT}n_nonzero_coefs=50")
            for bad in (0, -3, 2.5, "many", True, None)
        ],
        (
            {"n_nonzero_coefs": 41},
            "n_nonzero_coefs=41 is larger than the number of columns, 40; "
            "pass n_nonzero_coefs=40 or less",
        ),
        *[
            ({"alpha": bad}, f"alpha={bad!r}{FINITE}alpha=1e-3")
            for bad in (-1e-9, np.inf, np.nan, "auto", None, True, 1j)
        ],
        *[
            ({"step_size": bad}, f"step_size={bad!r}{STEP}")
            for bad in (0, -0.1, np.inf, np.nan, "big", None, False, [0.1])
        ],
        ({"step_size": np.array([0.1, 0.2])}, f"step_size={np.array([0.1, 0.2])!r}{STEP}"),
        *[
            ({"max_iter": bad}, f"max_iter={bad!r}{COUNT}max_iter=50")
            for bad in (0, -1, 3.0, "all", False)
        ],
        *[
            ({"tol": bad}, f"tol={bad!r}{FINITE}tol=1e-6")
            for bad in (-1e-9, np.inf, np.nan, None, "small", True)
        ],
        *[
            (
                {"noise_level": bad},
                f"noise_level={bad!r} must be None or a finite number >= 0, in units of y",
            )
            for bad in (-1.0, np.inf, np.nan, "low", True)
        ],
        (
            {"init": "graded?"},
            "init='graded?' is not known; pass 'zero', 'graded', 'swapped' or an array of 40 "
            "coefficients",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_impossible_settings_are_refused_with_what_to_type(settings, message):
    arguments = {"n_nonzero_coefs": 5, "alpha": 1e-2} | settings
    with pytest.raises(ValueError, match="=") as caught:
        hard_ridge_pursuit(noisy(), **arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "start",
    [
        np.zeros(39),
        np.zeros((40, 2)),
        np.zeros((2, 20)),
        np.zeros((40, 1)),
        np.full(40, np.nan),
        np.full(40, np.inf),
        3.0,
        None,
    ],
    ids=["short", "wide", "folded", "column", "nan", "inf", "number", "none"],
)
def test_a_start_of_the_wrong_shape_is_refused(start):
    expected = (
        f"init has shape {np.shape(start)}; pass 'zero' or finite coefficients of shape (40,)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        hard_ridge_pursuit(noisy(), n_nonzero_coefs=5, alpha=1e-2, init=start)


def test_a_vector_does_not_start_several_targets():
    with pytest.raises(ValueError, match=r"init has shape \(40,\); .* of shape \(3, 40\)"):
        hard_ridge_pursuit(noisy(targets=3), n_nonzero_coefs=5, alpha=1e-2, init=np.zeros(40))


def test_a_number_does_not_start_a_single_feature():
    with pytest.raises(ValueError, match=r"init has shape \(\); .* of shape \(1,\)"):
        hard_ridge_pursuit(noisy(features=1), n_nonzero_coefs=1, alpha=1e-2, init=3.0)


@pytest.mark.parametrize(
    ("start", "kind"),
    [(["a", "b"], "<U1"), ([True, False], "bool"), ([1j, 0.0], "complex128"), ([{}, {}], "object")],
)
def test_a_start_of_the_wrong_type_is_refused(start, kind):
    expected = f"init has type {kind}; pass 'zero' or numbers of type float64"
    with pytest.raises(ValueError, match=f"^{expected}$"):
        hard_ridge_pursuit(noisy(features=2), n_nonzero_coefs=1, alpha=1e-2, init=start)


@pytest.mark.parametrize("kind", ["int64", "float32"])
def test_a_start_of_other_numbers_is_taken(kind):
    start = np.arange(40) % 3
    expected = hard_ridge_pursuit(noisy(), n_nonzero_coefs=5, alpha=1e-2, init=start.astype(float))
    result = hard_ridge_pursuit(noisy(), n_nonzero_coefs=5, alpha=1e-2, init=start.astype(kind))
    assert result.scaled_coef.tobytes() == expected.scaled_coef.tobytes()


# --- The s largest rows ---


# Whole moduli, so that ties are exact: between signs, and between real and imaginary parts.
REAL = [0, 1, -1, 3, -3]
COMPLEX = [0, 3, -3, 3j, 4, -4j, 5, 3 + 4j, 4 - 3j]


@settings(deadline=None, max_examples=100)
@given(
    data=st.data(),
    rows=st.integers(1, 25),
    targets=st.integers(1, 3),
    values=st.sampled_from([REAL, COMPLEX]),
)
def test_largest_rows_against_a_sort(data, rows, targets, values):
    n = rows * targets
    entries = data.draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))
    c = np.array(entries, complex if values is COMPLEX else float).reshape(rows, targets)
    usable = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)))
    s = data.draw(st.integers(0, int(usable.sum())))
    squares = np.sum(c.real**2 + c.imag**2, axis=1)
    by_size = sorted(np.flatnonzero(usable), key=lambda j: (-squares[j], j))
    np.testing.assert_array_equal(largest_rows(c, s, usable), sorted(by_size[:s]))
    if usable.all():
        np.testing.assert_array_equal(largest_rows(c, s), sorted(by_size[:s]))
