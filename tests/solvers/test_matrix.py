"""Algorithm 1 and the sparsity path on a plain matrix, for the columns as given."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import harfe
from harfe import HARFERegressor, hard_ridge_pursuit, sparse_ridge_problem, sparsity_path
from harfe._core.validation import row_weights

both_types = pytest.mark.parametrize("dtype", [float, complex])


def draw(rng, shape, dtype=float):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype is complex else values


def planted(seed=0, rows=80, columns=150, s=4, dtype=float, targets=None):
    """Columns of very different size and mean; y is s of them with a constant."""
    rng = np.random.default_rng(seed)
    A = draw(rng, (rows, columns), dtype) * 10 ** rng.uniform(-2, 2, columns)
    A = A + draw(rng, columns, dtype) * A.std(axis=0)
    S = np.sort(rng.choice(columns, s, replace=False))
    shape = (s,) if targets is None else (targets, s)
    on_S = np.sign(draw(rng, shape)) * rng.uniform(1, 2, shape) / A[:, S].std(axis=0)
    intercept = draw(rng, shape[:-1], dtype)
    return A, A[:, S] @ on_S.T + intercept, S, on_S, intercept


def noisy(seed=0, rows=30, columns=60, targets=None, dtype=float):
    rng = np.random.default_rng(seed)
    shape = (rows,) if targets is None else (rows, targets)
    return draw(rng, (rows, columns), dtype) + 0.5, draw(rng, shape, dtype) + 2


# --- Truths ---


@both_types
@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("init", ["zero", "graded", "swapped"])
def test_planted_coefficients_are_recovered(dtype, targets, init):
    A, y, S, on_S, intercept = planted(dtype=dtype, targets=targets)
    result = hard_ridge_pursuit(
        A, y, n_nonzero_coefs=4, alpha=1e-12, step_size="normalized", init=init
    )
    np.testing.assert_array_equal(result.support, S)
    np.testing.assert_allclose(result.coef_on_support, on_S, rtol=1e-8)
    np.testing.assert_allclose(result.intercept, intercept, rtol=0, atol=1e-8)
    assert result.coef.shape == (*on_S.shape[:-1], 150)
    assert np.count_nonzero(result.coef) == on_S.size
    np.testing.assert_allclose(A @ result.coef.T + result.intercept, y, rtol=0, atol=1e-8)


@pytest.mark.parametrize("targets", [None, 2])
def test_a_path_ends_at_the_planted_coefficients(targets):
    A, y, S, on_S, intercept = planted(targets=targets)
    path = sparsity_path(A, y, alpha=1e-10, n_nonzero_coefs=[4, 20])
    assert {4, 20} <= set(path.sizes)
    level = path.levels[-1]
    np.testing.assert_array_equal(level.support, S)
    np.testing.assert_allclose(level.coef[..., S], on_S, rtol=1e-6)
    np.testing.assert_allclose(level.intercept, intercept, rtol=0, atol=1e-6)
    assert level.coef.shape == (*on_S.shape[:-1], 150)


def dense_algorithm_1(A, y, s, alpha, mu, weights, fit_intercept, column_scale, rounds):
    """Algorithm 1 by plain NumPy on centred and scaled columns; the best round for raw columns."""
    share = weights / weights.sum()
    mean, centre = (share @ A, share @ y) if fit_intercept else (np.zeros(A.shape[1]), 0.0)
    scale = np.sqrt(share @ np.abs(A - mean) ** 2) if column_scale == "rms" else 1.0
    Z, r = (A - mean) / scale, y - centre
    c, best = np.zeros(A.shape[1], Z.dtype), (np.inf, None)
    for _ in range(rounds):
        c_tilde = (1 - mu * alpha) * c + mu * Z.conj().T @ (share * (r - Z @ c))
        idx = np.sort(np.argsort(-np.abs(c_tilde), kind="stable")[:s])
        gram = (Z[:, idx].conj().T * share) @ Z[:, idx]
        c = np.zeros_like(c)
        c[idx] = np.linalg.solve(gram + alpha * np.eye(s), Z[:, idx].conj().T @ (share * r))
        objective = share @ np.abs(r - Z @ c) ** 2 + alpha * np.sum(np.abs(c) ** 2)
        if objective < best[0]:
            best = objective, c
    coef = best[1] / scale
    return best[0], coef, centre - coef @ mean


@both_types
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("column_scale", ["rms", "none"])
@pytest.mark.parametrize("step_size", [0.1, 1.0])
def test_it_is_a_dense_transcription(dtype, fit_intercept, column_scale, step_size):
    A, y = noisy(3, dtype=dtype)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    options = {"fit_intercept": fit_intercept, "column_scale": column_scale}
    result = hard_ridge_pursuit(
        A,
        y,
        n_nonzero_coefs=7,
        alpha=1e-2,
        step_size=step_size,
        sample_weight=weights,
        max_iter=20,
        tol=0.0,
        **options,
    )
    objective, coef, intercept = dense_algorithm_1(
        A, y, 7, 1e-2, step_size, weights, *options.values(), result.n_iter
    )
    np.testing.assert_allclose(result.lowest, objective, rtol=1e-10)
    np.testing.assert_allclose(result.coef, coef, rtol=0, atol=1e-10)
    np.testing.assert_allclose(result.intercept, intercept, rtol=0, atol=1e-10)
    assert fit_intercept or result.intercept == 0


@pytest.mark.parametrize(("rows", "columns"), [(50, 20), (20, 50)])
def test_all_columns_are_plain_ridge(rows, columns):
    A, y = noisy(rows=rows, columns=columns)
    scale = A.std(axis=0)
    ridge = Ridge(alpha=0.1 * rows, tol=1e-12).fit(A / scale, y)
    result = hard_ridge_pursuit(A, y, n_nonzero_coefs=columns, alpha=0.1)
    level = sparsity_path(A, y, alpha=0.1, n_nonzero_coefs=columns).levels[0]
    for found in (result, level):
        np.testing.assert_allclose(found.coef, ridge.coef_ / scale, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.intercept, ridge.intercept_, rtol=0, atol=1e-12)


def test_it_is_what_the_estimator_does_with_its_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = np.column_stack([np.sin(X[:, 0] + X[:, 1]), X[:, 2] ** 2 * 50])
    # the estimator weighs rows by ratios alone
    weights = row_weights(rng.integers(0, 3, 90), X, y)
    settings = {"n_nonzero_coefs": 12, "alpha": 1e-4, "noise_level": 1e-3, "max_iter": 30}
    for init in ("zero", "graded", "swapped"):
        model = HARFERegressor(
            200, **settings, init=init, step_size=0.5, input_clip=None, random_state=0
        ).fit(X, y, weights)
        features = np.sin(X @ model.weights_ + model.bias_)
        result = hard_ridge_pursuit(
            features, y, **settings, init=init, step_size=0.5, sample_weight=weights
        )
        np.testing.assert_array_equal(result.support, model.support_)
        np.testing.assert_allclose(result.coef, model.coef_, rtol=1e-7)
        np.testing.assert_allclose(result.intercept, model.intercept_, rtol=1e-7)
        np.testing.assert_allclose(result.objective, model.history_["objective"], rtol=1e-9)
        assert result.reason is model.stop_reason_


# --- Symmetries ---


def solve(A, y, method, **options):
    if method == "path":
        return sparsity_path(A, y, alpha=1e-3, n_nonzero_coefs=6, **options).levels[-1]
    return hard_ridge_pursuit(A, y, n_nonzero_coefs=6, alpha=1e-3, init=method, **options)


def assert_same(one, other, coef=None, intercept=None):
    coef = one.coef if coef is None else coef
    atol = 1e-10 * np.abs(coef).max()
    np.testing.assert_allclose(other.coef, coef, rtol=1e-9, atol=atol)
    expected = one.intercept if intercept is None else intercept
    np.testing.assert_allclose(other.intercept, expected, rtol=1e-9, atol=1e-10)


every_method = pytest.mark.parametrize("method", ["zero", "graded", "swapped", "path"])


@every_method
def test_the_negative_of_y_has_negative_coefficients(method):
    A, y = noisy()
    one, other = solve(A, y, method), solve(A, -y, method)
    np.testing.assert_array_equal(other.coef, -one.coef)
    np.testing.assert_array_equal(other.intercept, -one.intercept)


@every_method
def test_permuted_columns_have_a_permuted_support(method):
    A, y = noisy()
    order = np.random.default_rng(5).permutation(A.shape[1])
    one, other = solve(A, y, method), solve(A[:, order], y, method)
    np.testing.assert_array_equal(np.sort(order[other.support]), one.support)
    assert_same(one, other, one.coef[order])


@every_method
def test_a_weight_counts_rows(method):
    A, y = noisy(2)
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    assert set(weights) == {0, 1, 2}
    repeated = np.repeat(np.arange(len(y)), weights)
    one = solve(A, y, method, sample_weight=weights)
    assert_same(one, solve(A[repeated], y[repeated], method))
    # a number is the weight of every row
    assert_same(
        solve(A, y, method, sample_weight=2), solve(np.tile(A, (2, 1)), np.tile(y, 2), method)
    )


@every_method
def test_a_column_times_7_has_a_seventh_of_the_coefficient(method):
    A, y = noisy()
    factors = np.where(np.arange(A.shape[1]) % 2, 1.0, 7.0)
    one, other = solve(A, y, method), solve(A * factors, y, method)
    assert np.any(factors[one.support] == 7)
    assert_same(one, other, one.coef / factors)


@every_method
def test_a_shift_of_a_column_moves_the_intercept_alone(method):
    A, y = noisy()
    one, other = solve(A, y, method), solve(A + 3.0, y, method)
    assert_same(one, other, intercept=one.intercept - 3 * one.coef.sum())


def test_the_columns_as_given_are_not_changed():
    A, y = noisy()
    before = A.copy(), y.copy()
    hard_ridge_pursuit(A, y, n_nonzero_coefs=3, alpha=1e-3)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(y, before[1])


# --- Shapes and starts ---


def test_a_vector_is_a_matrix_of_one_target_without_its_axis():
    A, y = noisy()
    for method in ("zero", "path"):
        vector, column = solve(A, y, method), solve(A, y[:, None], method)
        np.testing.assert_array_equal(vector.coef[None], column.coef)
        assert np.ndim(vector.intercept) == 0
        assert column.intercept.shape == (1,)


@pytest.mark.parametrize("targets", [None, 2])
def test_a_start_is_for_the_columns_as_given(targets):
    A, y = noisy(4, targets=targets)
    A = A * 10.0 ** np.arange(-3, 3).repeat(10)
    settings = {"n_nonzero_coefs": 6, "alpha": 1e-2}
    first = hard_ridge_pursuit(A, y, **settings)
    again = hard_ridge_pursuit(A, y, **settings, init=first.coef)
    assert again.n_iter == 1
    assert_same(first, again)
    # what is small on the columns as given may be large on the scaled ones: it must survive a round
    # in which the gradient hardly counts
    start = np.zeros_like(first.coef)
    start[..., :6] = 1e3 / A[:, :6].std(axis=0)
    kept = hard_ridge_pursuit(A, y, **settings, init=start, step_size=1e-9, max_iter=1)
    np.testing.assert_array_equal(kept.support, np.arange(6))


def test_other_kinds_of_numbers_are_taken():
    rng = np.random.default_rng(0)
    A, y = rng.integers(0, 5, (30, 12)), rng.integers(0, 9, 30)
    expected = solve(A.astype(float), y.astype(float), "zero")
    for kind in ("int64", "float32", "longdouble"):
        assert_same(expected, solve(A.astype(kind), y.tolist(), "zero"))
    assert solve(A > 2, y, "zero").coef.dtype == np.float64


# --- A problem in place of the matrix ---


def test_a_problem_gives_the_same_bits_as_the_matrix():
    A, y = noisy()
    options = {"sample_weight": np.arange(30.0), "fit_intercept": False, "column_scale": "none"}
    problem = sparse_ridge_problem(A, y, **options)
    one = hard_ridge_pursuit(problem, n_nonzero_coefs=5, alpha=1e-3)
    other = hard_ridge_pursuit(A, y, n_nonzero_coefs=5, alpha=1e-3, **options)
    assert one.coef.tobytes() == other.coef.tobytes()
    ends = [
        sparsity_path(problem, alpha=1e-3).levels[-1],
        sparsity_path(A, y, alpha=1e-3, **options).levels[-1],
    ]
    assert ends[0].coef.tobytes() == ends[1].coef.tobytes()


@pytest.mark.parametrize(
    "extra",
    [
        {"y": np.zeros(30)},
        {"sample_weight": np.ones(30)},
        {"fit_intercept": False},
        {"column_scale": "none"},
    ],
    ids=lambda extra: next(iter(extra)),
)
def test_what_a_problem_has_is_not_passed_again(extra):
    problem = sparse_ridge_problem(*noisy())
    name = next(iter(extra))
    message = f"^{name} was passed along with a problem, .* leave {name} out"
    with pytest.raises(ValueError, match=message):
        hard_ridge_pursuit(problem, n_nonzero_coefs=3, alpha=1e-3, **extra)
    with pytest.raises(ValueError, match=message):
        sparsity_path(problem, alpha=1e-3, **extra)


# --- Refusals ---

MATRIX, VECTOR = noisy(rows=5, columns=3)
NAN, TEXT = MATRIX.copy(), MATRIX.astype(str)
NAN[3, 1] = np.nan
INFINITE = VECTOR.copy()
INFINITE[2] = -np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": NAN}, "A holds nan at (3, 1); drop or fill rows that are not finite"),
        ({"y": INFINITE}, "y holds -inf at 2; drop or fill rows that are not finite"),
        ({"A": TEXT}, f"A has type {TEXT.dtype} and shape (5, 3); pass a dense array of numbers"),
        ({"A": "matrix"}, "A has type <U6 and shape (); pass a dense array of numbers"),
        ({"A": None}, "A has type object and shape (); pass a dense array of numbers"),
        ({"A": [[1, 2], [3]]}, "A has rows of different length"),
        ({"A": VECTOR}, "A has shape (5,); pass a matrix with a row for each observation"),
        ({"A": MATRIX[:, :0]}, "A has shape (5, 0); pass a matrix"),
        ({"A": MATRIX[:0]}, "A has shape (0, 3); pass a matrix"),
        ({"A": MATRIX[:1], "y": VECTOR[:1]}, "1 rows of A have a weight above 0; at least 2"),
        ({"y": None}, "y=None; pass a target value for each row of A"),
        ({"y": ["a"] * 5}, "y has type <U1 and shape (5,); pass a dense array of numbers"),
        ({"y": VECTOR[:4]}, "y has shape (4,) but A has 5 rows; pass y of shape (5,) or (5, t"),
        ({"y": 3.0}, "y has shape () but A has 5 rows"),
        ({"y": np.zeros((5, 0))}, "y has shape (5, 0) but A has 5 rows"),
        ({"y": np.zeros((5, 2, 2))}, "y has shape (5, 2, 2) but A has 5 rows"),
        ({"sample_weight": np.ones(4)}, "sample_weight has shape (4,) and type float64; pass one"),
        ({"sample_weight": [1, 1, 1, 1, 1j]}, "sample_weight has shape (5,) and type complex128"),
        ({"sample_weight": [1, 1, 1, 1, -2]}, "sample_weight holds the negative value -2.0"),
        ({"sample_weight": [0, 0, 0, 0, 1]}, "1 rows of A have a weight above 0; at least 2"),
        ({"sample_weight": [1, 1, 1, 1, np.nan]}, "sample_weight holds nan at 4"),
        ({"fit_intercept": "yes"}, "fit_intercept='yes' must be True or False"),
        ({"column_scale": "l2"}, "column_scale='l2' is not known; choose one of rms, none"),
        ({"alpha": -1e-3}, "alpha=-0.001 must be a finite number >= 0, e.g. alpha=1e-3"),
        ({"alpha": "small"}, "alpha='small' must be a finite number >= 0"),
    ],
)
@pytest.mark.parametrize("function", [hard_ridge_pursuit, sparsity_path])
def test_bad_input_is_refused_with_what_to_type(function, arguments, message):
    passed = {"A": MATRIX, "y": VECTOR, "n_nonzero_coefs": 2, "alpha": 1e-3} | arguments
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        function(**passed)


def test_more_coefficients_than_columns_are_refused():
    with pytest.raises(
        ValueError, match=r"^n_nonzero_coefs=4 is larger .* columns, 3; pass n_nonz"
    ):
        hard_ridge_pursuit(MATRIX, VECTOR, n_nonzero_coefs=4, alpha=0)
    with pytest.raises(ValueError, match=r"^n_nonzero_coefs=4 must be .* columns, 3, e\.g\. n_non"):
        sparsity_path(MATRIX, VECTOR, n_nonzero_coefs=4, alpha=0)


# --- The public surface ---


def test_solvers_do_not_import_scikit_learn():
    code = (
        "import sys, numpy as np, harfe; A = np.eye(4); "
        "harfe.hard_ridge_pursuit(A, A[0], n_nonzero_coefs=1, alpha=1); "
        "harfe.sparsity_path(A, A[0], alpha=1); assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["hard_ridge_pursuit", "sparsity_path"])
def test_help_opens_with_what_is_minimised(name):
    opening = inspect.getdoc(getattr(harfe, name)).splitlines()[0]
    assert opening.startswith("Minimise (1/M) Σ_k w_k |y_k - ȳ - (A c)_k|² + α‖c‖²")


def test_the_example_of_the_readme_runs():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (example,) = [
        block for block in re.findall(r"```python\n(.*?)```", readme, re.S) if "pursuit(" in block
    ]
    A, y, S, on_S, intercept = planted(rows=400, s=3)
    names = {"data": SimpleNamespace(X=A, y=y)}
    exec(example, names)
    np.testing.assert_array_equal(names["result"].support, S)
    np.testing.assert_allclose(names["result"].coef[S], on_S, rtol=1e-4)
    np.testing.assert_allclose(names["result"].intercept, intercept, atol=1e-4)
    strongest = S[np.argmax(np.abs(on_S) * A[:, S].std(axis=0))]
    np.testing.assert_array_equal(names["path"].levels[-1].support, [strongest])
