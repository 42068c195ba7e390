"""The restricted ridge solve against NumPy, a dense SVD, scikit-learn and its own two sides."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from harfe._core.threads import one_blas_thread
from harfe.features.law import FeatureLaw
from harfe.solvers.homes import RecomputedProblem, StoredProblem
from harfe.solvers.ridge import SINGULAR_CUT, RestrictedRidge, minimum_norm, solve_shifted

both_types = pytest.mark.parametrize("dtype", [float, complex])


@pytest.fixture(autouse=True, scope="module")
def _one_blas_thread():
    """As the pursuit asks: BLAS on one thread."""
    with one_blas_thread():
        yield


def draw(rng, shape, dtype):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype is complex else values


def with_singular_values(rng, rows, values, dtype):
    """Matrix of shape (rows, len(values)) with these singular values and random vectors."""
    n = len(values)
    U = np.linalg.qr(draw(rng, (rows, n), dtype))[0]
    V = np.linalg.qr(draw(rng, (n, n), dtype))[0]
    return U * values @ V.conj().T


def normal_equations(A, y):
    adjoint = A.conj().T / len(A)
    return adjoint @ A, adjoint @ y


def literal(A, y):
    """The problem of these very columns: nothing centred, nothing scaled."""
    return StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")


# --- One shifted system ---


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 30),
    targets=st.integers(1, 4),
    dtype=st.sampled_from([float, complex]),
    b_dtype=st.sampled_from([float, complex]),
    alpha=st.floats(1e-3, 1e3),
    seed=st.integers(0, 2**32),
)
def test_shifted_solve_is_numpys(n, targets, dtype, b_dtype, alpha, seed):
    rng = np.random.default_rng(seed)
    A = draw(rng, (n + 3, n), dtype)
    matrix, _ = normal_equations(A, A)
    b = draw(rng, (n, targets), b_dtype)
    x = solve_shifted(matrix, alpha, b)
    expected = np.linalg.solve(matrix + alpha * np.eye(n), b)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_the_matrix_is_left_alone():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]], order="F")
    before = matrix.copy()
    solve_shifted(matrix, 0.5, np.ones((2, 1)))
    np.testing.assert_array_equal(matrix, before)


def test_the_cut_is_that_of_the_paper_notes():
    assert SINGULAR_CUT == 3e-8


@both_types
@pytest.mark.parametrize(("smallest", "trusted"), [(1e-5, True), (1e-7, False), (0.0, False)])
def test_a_matrix_near_singular_is_not_trusted(dtype, smallest, trusted):
    A = with_singular_values(np.random.default_rng(0), 30, np.array([1.0, 0.5, smallest]), dtype)
    matrix, b = normal_equations(A, A[:, :1])
    assert (solve_shifted(matrix, 0.0, b) is not None) == trusted
    # a ridge of the size of the matrix makes any matrix well conditioned
    assert solve_shifted(matrix, np.abs(matrix).max(), b) is not None


@both_types
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_zero_matrix(dtype, alpha):
    b = np.array([[1.0], [-2.0]], dtype)
    x = solve_shifted(np.zeros((2, 2), dtype), alpha, b)
    if alpha:
        np.testing.assert_allclose(x, b / alpha, rtol=1e-15)
    else:
        assert x is None
    np.testing.assert_array_equal(minimum_norm(np.zeros((2, 3), dtype), b, alpha), np.zeros((3, 1)))


@both_types
def test_nothing_to_solve(dtype):
    x = solve_shifted(np.empty((0, 0)), 0.1, np.empty((0, 3), dtype))
    assert x.shape == (0, 3)
    assert x.dtype == dtype


@both_types
@pytest.mark.parametrize("shape", [(20, 5), (5, 20), (8, 8)])
@pytest.mark.parametrize("alpha", [0.0, 1e-2, 0.3])
def test_minimum_norm_is_least_squares_of_the_stacked_matrix(dtype, shape, alpha):
    # ‖Ac - y‖² + α‖c‖² = ‖Bc - ỹ‖² with B = [A; √α I], ỹ = [y; 0]
    rng = np.random.default_rng(0)
    A, y = draw(rng, shape, dtype), draw(rng, (shape[0], 2), dtype)
    A[:, -1] = A[:, 0]
    B = np.vstack([A, np.sqrt(alpha) * np.eye(shape[1])])
    y_tilde = np.vstack([y, np.zeros((shape[1], 2))])
    expected = np.linalg.lstsq(B, y_tilde, rcond=1e-10)[0]
    np.testing.assert_allclose(minimum_norm(A, y, alpha), expected, rtol=0, atol=1e-11)


# --- A support of a problem ---


def problem_of(rows=40, features=90, targets=2, dtype=float, *, complex_y=False, seed=0):
    rng = np.random.default_rng(seed)
    A = draw(rng, (rows, features), dtype)
    y = draw(rng, (rows, targets), complex if complex_y else float)
    return StoredProblem.from_matrix(A, y, rng.uniform(0.5, 2, rows))


def standardised(problem, S):
    """A_S and y of a problem, rows times √w, by way of its kernel's factors."""
    everything = problem._tile(S, slice(0, problem.n_rows)).T
    return everything, problem.targets.values


@both_types
@pytest.mark.parametrize("n", [4, 10, 20, 50])
@pytest.mark.parametrize("seed", range(12))
def test_repeated_columns_share_their_coefficient(dtype, n, seed):
    rng = np.random.default_rng(seed)
    half = draw(rng, (2 * n, n // 2), dtype)
    A, y = np.hstack([half, half]), draw(rng, (2 * n, 2), dtype)
    problem = literal(A, y)
    c = RestrictedRidge(problem, 0.0).solve(np.arange(n)) * problem.targets.unit
    expected = np.linalg.lstsq(A, y, rcond=SINGULAR_CUT)[0]
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(c[: n // 2], c[n // 2 :], rtol=0, atol=1e-11)


@both_types
@pytest.mark.parametrize("shape", [(30, 4), (4, 30)])
@pytest.mark.parametrize(
    ("smallest", "counts"), [(1e-5, True), (1e-7, True), (1e-8, False), (0.0, False)]
)
def test_singular_values_below_the_cut_are_noise_and_above_it_count(dtype, shape, smallest, counts):
    rng = np.random.default_rng(0)
    A = with_singular_values(rng, 30, np.array([1.0, 0.5, 0.1, smallest]), dtype)
    A = A if shape == (30, 4) else A.conj().T
    U, sigma, Vh = np.linalg.svd(A, full_matrices=False)
    # equal along all left vectors, so that dropping one shows
    y = U.sum(axis=1, keepdims=True)
    kept = sigma > 3e-8
    assert kept.sum() == 3 + counts
    expected = Vh[kept].conj().T @ (1 / sigma[kept, None])
    c = RestrictedRidge(literal(A, y), 0.0).solve(np.arange(shape[1]))
    # The Gram matrix is trusted to 1e-13, singular values are good to eps / smallest.
    error = {1e-5: 1e-4, 1e-7: 1e-7}.get(smallest, 1e-13)
    assert np.linalg.norm(c - expected) <= error * np.linalg.norm(expected)


@both_types
@pytest.mark.parametrize("alpha", [1e-30, 1e-17, 1e-12, 1e-6])
def test_a_tiny_ridge_on_a_singular_support_is_near_the_minimum_norm(dtype, alpha):
    rng = np.random.default_rng(1)
    A = with_singular_values(rng, 30, np.array([3.0, 2.0, 1.0, 0.0, 0.0]), dtype) * np.sqrt(30)
    y = draw(rng, (30, 1), dtype)
    c = RestrictedRidge(literal(A, y), alpha).solve(np.arange(5))
    # c = Σ σ/(σ² + α) ..., so the gap is at most α/σ² = α of the smallest, and |c| is below 1
    expected = np.linalg.lstsq(A, y, rcond=SINGULAR_CUT)[0]
    np.testing.assert_allclose(c, expected, rtol=0, atol=alpha + 1e-12)


@both_types
@pytest.mark.parametrize("complex_y", [False, True])
@pytest.mark.parametrize("size", [1, 15, 39, 40, 41, 80])
@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_both_sides_give_the_same_coefficients(dtype, complex_y, size, alpha):
    problem = problem_of(dtype=dtype, complex_y=complex_y)
    S = np.arange(0, size)
    A, y = standardised(problem, S)
    M = problem.shape[0]
    primal = np.linalg.solve(A.conj().T @ A / M + alpha * np.eye(size), A.conj().T @ y / M)
    dual = A.conj().T @ np.linalg.solve(A @ A.conj().T / M + alpha * np.eye(40), y) / M
    c = RestrictedRidge(problem, alpha).solve(S)
    np.testing.assert_allclose(c, primal, rtol=0, atol=1e-10)
    np.testing.assert_allclose(c, dual, rtol=0, atol=1e-10)
    problem.offers_kernel = False
    np.testing.assert_allclose(RestrictedRidge(problem, alpha).solve(S), c, rtol=0, atol=1e-10)


def spy(problem, verb):
    """Wrap a method; return the list that records its calls."""
    calls, original = [], getattr(problem, verb)

    def wrapped(*arguments):
        calls.append(arguments)
        return original(*arguments)

    setattr(problem, verb, wrapped)
    return calls


@pytest.mark.parametrize(("size", "side"), [(40, "normal"), (41, "kernel")])
def test_the_smaller_side_is_solved_and_singular_values_are_not_needed(size, side):
    problem = problem_of()
    calls = {verb: spy(problem, verb) for verb in ("normal", "kernel", "system")}
    RestrictedRidge(problem, 0.1).solve(np.arange(size))
    assert [verb for verb in calls if calls[verb]] == [side]


@both_types
@pytest.mark.parametrize("size", [5, 30, 60])
@pytest.mark.parametrize("alpha", [0.0, 1e-14])
def test_without_ridge_it_is_least_squares_of_minimum_norm(dtype, size, alpha):
    problem = problem_of(dtype=dtype, seed=3)
    S = np.arange(3, 3 + size)
    A, y = standardised(problem, S)
    expected = np.linalg.lstsq(A, y, rcond=3e-8)[0]
    c = RestrictedRidge(problem, alpha).solve(S)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-9)


@both_types
@pytest.mark.parametrize("size", [10, 60])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
def test_stationarity(dtype, size, alpha):
    problem = problem_of(dtype=dtype, complex_y=dtype is complex)
    S = np.sort(np.random.default_rng(1).choice(90, size, replace=False))
    c = RestrictedRidge(problem, alpha).solve(S)
    A, y = standardised(problem, S)
    M = problem.shape[0]
    np.testing.assert_allclose(A.conj().T @ (y - A @ c) / M, alpha * c, rtol=0, atol=1e-12)
    g, _ = problem.gradient(S, c)
    np.testing.assert_allclose(g[S], alpha * c, rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [StoredProblem, RecomputedProblem])
@pytest.mark.parametrize("size", [8, 70])
@pytest.mark.parametrize("alpha", [1e-3, 0.3])
def test_it_is_scikit_learns_ridge_on_the_standardised_columns(make, size, alpha):
    rng = np.random.default_rng(0)
    pool = FeatureLaw(3).draw(100, rng)
    X, w = rng.normal(size=(50, 3)), rng.uniform(0.5, 2, 50)
    y = rng.normal(size=(50, 2)) + 7
    S = np.sort(rng.choice(100, size, replace=False))
    phi = np.sin(X @ pool.weights().toarray() + pool.phases)[:, S]
    mean = np.average(phi, axis=0, weights=w)
    A = (phi - mean) / np.sqrt(np.average((phi - mean) ** 2, axis=0, weights=w))
    model = Ridge(alpha * w.sum(), solver="cholesky").fit(A, y, sample_weight=w)

    problem = make(pool, X, y, w)
    c = RestrictedRidge(problem, alpha).solve(S)
    np.testing.assert_allclose(c * problem.targets.unit, model.coef_.T, rtol=0, atol=1e-10)
    coef, intercept = problem.to_raw(S, c)
    np.testing.assert_allclose(phi @ coef.T + intercept, model.predict(A), rtol=0, atol=1e-10)


@both_types
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_a_walk_over_supports_equals_fresh_solves(dtype, seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(rows=20, features=30, dtype=dtype, complex_y=True)
    ridge = RestrictedRidge(problem, 1e-2)
    S = np.sort(rng.choice(30, 12, replace=False))
    for _ in range(8):
        np.testing.assert_allclose(
            ridge.solve(S), RestrictedRidge(problem, 1e-2).solve(S), rtol=0, atol=1e-10
        )
        # some leave, some come; now and then more than there are rows, or none
        inside = np.isin(np.arange(30), S) ^ (rng.random(30) < rng.choice([0.0, 0.1, 0.5]))
        S = np.flatnonzero(inside)


def test_gram_rows_are_kept_from_one_support_to_the_next():
    problem = problem_of()
    calls = spy(problem, "normal")
    ridge = RestrictedRidge(problem, 1e-2)
    ridge.solve(np.array([1, 4, 6]))
    ridge.solve(np.array([1, 6, 9]))
    assert calls[0][1] is None
    asked, (support, gram) = calls[1]
    np.testing.assert_array_equal(support, [1, 4, 6])
    # both that stay are where they were
    np.testing.assert_array_equal(asked, [1, 9, 6])
    A, _ = standardised(problem, support)
    np.testing.assert_allclose(gram, A.T @ A / problem.shape[0], rtol=0, atol=1e-13)


def test_an_empty_support_has_no_coefficients():
    assert RestrictedRidge(problem_of(), 0.1).solve(np.empty(0, dtype=np.intp)).shape == (0, 2)
