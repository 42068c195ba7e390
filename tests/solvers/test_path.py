"""The pruned path against dense ridge solutions, a textbook pruning, and its own symmetries."""

import re

import numpy as np
import pytest
from shared import correlated
from sklearn.linear_model import Ridge

from harfe._core.threads import one_blas_thread
from harfe.features.law import FeatureLaw
from harfe.solvers import path as module
from harfe.solvers.homes import RecomputedProblem, StoredProblem
from harfe.solvers.path import find_core, largest_system, prune_for_all, sparsity_path

every_home = pytest.mark.parametrize("home", [StoredProblem, RecomputedProblem])
both_types = pytest.mark.parametrize("dtype", [float, complex])
some_targets = pytest.mark.parametrize("targets", [1, 3])


class WithoutKernel(StoredProblem):
    """A home whose rows do not come together."""

    offers_kernel = False

    def kernel(self, S):
        raise AssertionError("this home offers no kernel")


@pytest.fixture(autouse=True, scope="module")
def _one_blas_thread():
    with one_blas_thread():
        yield


# --- The dense truth ---


def draw(rng, shape, dtype=float):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype is complex else values


def standardised(phi, y, w):
    """A and y such that the objective is ‖y - A c‖² + α‖c‖²."""
    share = w / w.sum()
    A, Y = phi - share @ phi, y - share @ y
    A = A / np.sqrt(share @ np.abs(A) ** 2)
    if y.shape[1] > 1:
        Y = Y / np.sqrt(share @ np.abs(Y) ** 2)
    return A * np.sqrt(share)[:, None], Y * np.sqrt(share)[:, None]


def instance(home, dtype=float, targets=1, weighted=False, rows=70, features=150, seed=0):
    """A problem of random features, and its dense A and y."""
    rng = np.random.default_rng(seed)
    activation = "exp" if dtype is complex else "sin"
    pool = FeatureLaw(5, orders=(2,), activation=activation).draw(features, rng)
    X, y = rng.normal(size=(rows, 5)), 3 + draw(rng, (rows, targets), dtype)
    y = y * 10.0 ** np.arange(targets)
    w = rng.uniform(0.2, 3, rows) if weighted else np.ones(rows)
    z = X @ pool.weights().toarray() + pool.phases
    phi = np.exp(1j * z) if dtype is complex else np.sin(z)
    return home(pool, X, y, w), *standardised(phi, y, w)


def dense_ridge(A, y, alpha):
    """Ridge as least squares with the rows √α·1 below A: no Gram matrix, no kernel."""
    n = A.shape[1]
    stacked = np.vstack([A, np.sqrt(alpha) * np.eye(n)])
    return np.linalg.lstsq(stacked, np.vstack([y, np.zeros((n, y.shape[1]))]), rcond=None)[0]


def dense_objective(A, y, c, alpha):
    return np.sum(np.abs(y - A @ c) ** 2) + alpha * np.sum(np.abs(c) ** 2)


def largest(c, s):
    return np.sort(np.argsort(-np.linalg.norm(c, axis=1), kind="stable")[:s])


def textbook(A, y, alpha, sizes, core):
    """Supports of the path: to the core by one fixed α, from there by the α asked for."""
    S = np.arange(A.shape[1])
    while True:
        yield S
        above = len(S) > core
        wanted = [core] if above else [s for s in sizes if s < len(S)]
        if not wanted:
            return
        share = module._KEEP_ABOVE_CORE if above else module._KEEP
        c = dense_ridge(A[:, S], y, module._RANKING_ALPHA if above else alpha)
        S = S[largest(c, max(*wanted, int(share * len(S))))]


def check_close(actual, expected, tolerance=1e-9):
    assert actual.shape == expected.shape
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=0.0)
    )


# --- Every level ---


@every_home
@both_types
@some_targets
@pytest.mark.parametrize("weighted", [False, True])
def test_every_level_is_the_ridge_solution_on_its_support(home, dtype, targets, weighted):
    problem, A, y = instance(home, dtype, targets, weighted)
    path = sparsity_path(problem, alpha=1e-3, n_nonzero_coefs=[4, 33, 20])
    assert path.alpha == 1e-3
    # both sides of the rows are visited
    assert path.sizes.max() > problem.n_rows > path.sizes.min()
    for level in path.levels:
        check_close(level.scaled_coef, dense_ridge(A[:, level.support], y, 1e-3))
        objective = dense_objective(A[:, level.support], y, level.scaled_coef, 1e-3)
        assert level.objective == pytest.approx(objective, rel=1e-10)
    np.testing.assert_array_equal(path.objectives, [level.objective for level in path.levels])


@every_home
@both_types
@some_targets
@pytest.mark.parametrize(("rows", "features"), [(70, 150), (300, 90), (40, 30)])
def test_supports_are_those_of_the_textbook(home, dtype, targets, rows, features):
    problem, A, y = instance(home, dtype, targets, rows=rows, features=features)
    sizes = [17, 3, 8]
    path = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=sizes)
    expected = list(textbook(A, y, 1e-2, sizes, core=max(min(rows, 600), 50)))
    assert path.sizes.tolist() == [len(S) for S in expected]
    for level, S in zip(path.levels, expected, strict=True):
        np.testing.assert_array_equal(level.support, S)


@every_home
@pytest.mark.parametrize("sizes", [1, 7, [3], [60, 3, 41], np.array([5, 99]), range(90, 100)])
def test_the_sizes_asked_for_are_visited_falling_and_nested(home, sizes):
    problem, *_ = instance(home, features=100)
    path = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=sizes)
    asked = np.atleast_1d(sizes)
    assert np.isin(asked, path.sizes).all()
    assert path.sizes[-1] == asked.min()
    assert np.all(np.diff(path.sizes) < 0)
    for larger, smaller in zip(path.levels[:-1], path.levels[1:], strict=True):
        assert np.isin(smaller.support, larger.support).all()
    for level in path.levels:
        assert np.all(np.diff(level.support) > 0)
        assert level.scaled_coef.shape == (len(level.support), 1)


def test_without_sizes_the_path_ends_at_one_feature():
    problem, *_ = instance(StoredProblem)
    path = sparsity_path(problem, alpha=1e-2)
    assert path.sizes[0] == 150
    assert path.sizes[-1] == 1


def test_the_objective_rises_along_the_path():
    # supports are nested, and every level is the minimum on its own
    problem, *_ = instance(StoredProblem, targets=2)
    assert np.all(np.diff(sparsity_path(problem, alpha=1e-2).objectives) > 0)


@pytest.mark.parametrize(("rows", "features"), [(40, 60), (60, 40)])
def test_the_full_level_is_scikit_learns_ridge(rows, features):
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(rows, features)) + 3, rng.normal(size=rows) + 5
    problem = StoredProblem.from_matrix(A, y, column_scale="none")
    path = sparsity_path(problem, alpha=0.1, n_nonzero_coefs=features)
    (level,) = path.levels
    np.testing.assert_array_equal(level.support, np.arange(features))
    model = Ridge(alpha=0.1 * rows).fit(A, y)
    coef, intercept = problem.to_raw(level.support, level.scaled_coef)
    check_close(coef[0], model.coef_)
    np.testing.assert_allclose(intercept, [model.intercept_], rtol=1e-10)


@every_home
def test_homes_give_the_same_path_with_and_without_a_kernel(home):
    one, *_ = instance(home, weighted=True)
    other, *_ = instance(WithoutKernel, weighted=True)
    a, b = (sparsity_path(problem, alpha=1e-3) for problem in (one, other))
    for left, right in zip(a.levels, b.levels, strict=True):
        np.testing.assert_array_equal(left.support, right.support)
        check_close(left.scaled_coef, right.scaled_coef, 1e-8)


def test_constant_features_are_never_chosen():
    rng = np.random.default_rng(1)
    A = np.column_stack([rng.normal(size=(70, 12)), np.full((70, 9), 3.0)])
    problem = StoredProblem.from_matrix(A, rng.normal(size=70))
    path = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=[21, 2])
    np.testing.assert_array_equal(path.levels[0].support, np.arange(12))
    assert path.sizes[-1] == 2
    nothing = sparsity_path(StoredProblem.from_matrix(A[:, 12:], A[:, 0]), alpha=1e-2)
    assert nothing.sizes.tolist() == [0]
    assert nothing.objectives[0] == pytest.approx(A[:, 0].var(), rel=1e-12)


# --- Relations ---


def matrix_path(A, y, weights=None, sizes=(1,), alpha=1e-2):
    return sparsity_path(
        StoredProblem.from_matrix(A, y, weights), alpha=alpha, n_nonzero_coefs=sizes
    )


def matrix(dtype=float, targets=1, rows=60, features=130, seed=2):
    rng = np.random.default_rng(seed)
    return draw(rng, (rows, features), dtype), draw(rng, (rows, targets), dtype)


@both_types
@some_targets
def test_permuting_the_features_permutes_the_supports(dtype, targets):
    A, y = matrix(dtype, targets)
    order = np.random.default_rng(3).permutation(130)
    one, other = matrix_path(A, y), matrix_path(A[:, order], y)
    for a, b in zip(one.levels, other.levels, strict=True):
        full = np.zeros((130, targets), a.scaled_coef.dtype)
        full[a.support] = a.scaled_coef
        np.testing.assert_array_equal(np.sort(order[b.support]), a.support)
        check_close(b.scaled_coef, full[order[b.support]])


@both_types
@pytest.mark.parametrize("factor", [-1.0, 1000.0, 1e-5])
def test_scaling_y_scales_the_coefficients(dtype, factor):
    A, y = matrix(dtype)
    one, other = matrix_path(A, y), matrix_path(A, factor * y)
    for a, b in zip(one.levels, other.levels, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        check_close(b.scaled_coef, factor * a.scaled_coef, 1e-11)
    np.testing.assert_allclose(other.objectives, factor**2 * one.objectives, rtol=1e-11)


def test_the_scale_of_one_of_several_targets_does_not_matter():
    A, y = matrix(targets=3)
    one, other = matrix_path(A, y), matrix_path(A, y * [1, 1e6, -1e-6])
    for a, b in zip(one.levels, other.levels, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        check_close(b.scaled_coef, a.scaled_coef * [1, 1, -1], 1e-10)


@pytest.mark.parametrize(("rows", "features"), [(60, 130), (60, 90), (150, 80)])
def test_a_row_of_weight_two_is_the_row_twice(rows, features):
    A, y = matrix(rows=rows, features=features)
    times = np.random.default_rng(4).integers(1, 4, rows)
    weighted = matrix_path(A, y, times)
    repeated = matrix_path(np.repeat(A, times, axis=0), np.repeat(y, times, axis=0))
    assert weighted.sizes.tolist() == repeated.sizes.tolist()
    for a, b in zip(weighted.levels, repeated.levels, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        check_close(a.scaled_coef, b.scaled_coef)
    np.testing.assert_allclose(weighted.objectives, repeated.objectives, rtol=1e-10)


def test_a_row_of_weight_two_is_the_row_twice_where_features_are_screened(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_SIDE", 90)
    A, y = matrix(rows=60, features=130)
    weighted = matrix_path(A, y, np.full(60, 2.0))
    repeated = matrix_path(np.repeat(A, 2, axis=0), np.repeat(y, 2, axis=0))
    assert weighted.sizes.tolist() == repeated.sizes.tolist()


# --- Planted supports ---


@pytest.mark.parametrize("seed", range(6))
def test_a_planted_support_among_correlated_features_is_recovered(seed):
    A, y, S = correlated(seed)
    path = matrix_path(A, y, sizes=[5], alpha=1e-4)
    np.testing.assert_array_equal(path.levels[-1].support, S)


@both_types
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_support_shared_by_several_targets_is_recovered(dtype, seed):
    rng = np.random.default_rng(seed)
    A = draw(rng, (100, 150), dtype)
    S = np.sort(rng.choice(150, 6, replace=False))
    y = A[:, S] @ (1 + np.abs(draw(rng, (6, 2), dtype))) + 0.1 * draw(rng, (100, 2), dtype)
    np.testing.assert_array_equal(matrix_path(A, y, sizes=[6]).levels[-1].support, S)


# --- Refusals ---


@pytest.mark.parametrize(
    "sizes", [0, -1, 61, 0.5, 2.0, "5", True, None, [], [5, 0], [5, 61], [5, 2.5], [[5], [6]]]
)
def test_impossible_sizes_are_refused(sizes):
    problem = StoredProblem.from_matrix(*matrix(features=60))
    text = (
        f"n_nonzero_coefs={sizes!r} must be whole numbers from 1 to the number of columns, 60, "
        "e.g. n_nonzero_coefs=[60, 1]"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=sizes)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf])
def test_impossible_ridge_weights_are_refused(alpha):
    problem = StoredProblem.from_matrix(*matrix(features=60))
    with pytest.raises(ValueError, match=r"alpha=.* must be a finite number >= 0"):
        sparsity_path(problem, alpha=alpha)


# --- Where rounding would decide ---


@every_home
@both_types
@pytest.mark.parametrize(("rows", "features"), [(30, 80), (200, 80)])
def test_features_twice_and_no_ridge_leave_the_smallest_residual(home, dtype, rows, features):
    rng = np.random.default_rng(5)
    activation = "exp" if dtype is complex else "sin"
    half = FeatureLaw(5, orders=(2,), activation=activation).draw(features // 2, rng)
    pool = half.take(np.tile(np.arange(features // 2), 2))
    X, y = rng.normal(size=(rows, 5)), draw(rng, (rows, 1), dtype)
    A, Y = standardised(pool.evaluate(X), y, np.ones(rows))
    path = sparsity_path(home(pool, X, y, np.ones(rows)), alpha=0.0, n_nonzero_coefs=[3, 60])
    for level in path.levels:
        A_S = A[:, level.support]
        smallest = np.linalg.lstsq(A_S, Y, rcond=1e-9)[0]
        assert np.all(np.isfinite(level.scaled_coef))
        # nor are they opposites of each other, which would cost nothing either
        assert np.linalg.norm(level.scaled_coef) < 1.001 * np.linalg.norm(smallest)
        assert level.objective < dense_objective(A_S, Y, smallest, 0) + 1e-9 * np.mean(np.abs(y))


def test_no_ridge_on_independent_features_is_least_squares():
    A, y = matrix(rows=200, features=40)
    for level in matrix_path(A, y, alpha=0.0).levels:
        dense, Y = standardised(A, y, np.ones(200))
        expected = np.linalg.lstsq(dense[:, level.support], Y, rcond=None)[0]
        check_close(level.scaled_coef, expected, 1e-8)


def test_a_constant_target_has_zero_coefficients():
    A, _ = matrix()
    path = matrix_path(A, np.full(60, 0.1))
    assert path.sizes[-1] == 1
    assert all(np.all(level.scaled_coef == 0) for level in path.levels)
    assert np.all(path.objectives == 0)


# --- The core ---


@pytest.mark.parametrize(
    ("rows", "weight", "wanted", "core"),
    [
        (30, 1.0, 5, 50),
        (80, 1.0, 5, 80),
        (30, 4.0, 5, 120),
        (150, 0.5, 5, 75),
        (30, 1.0, 140, 140),
        (700, 1.0, 5, 600),
        (30, 1.0, 800, 800),
    ],
)
def test_the_core_goes_by_weight_and_holds_what_is_wanted(rows, weight, wanted, core):
    A, y = matrix(rows=rows, features=900)
    problem = StoredProblem.from_matrix(A, y, np.full(rows, weight))
    reduced = find_core(problem, wanted)
    assert len(reduced.support) == core
    assert reduced.by_rows == (rows < core)
    # of the same problem as the path's own level
    levels = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=wanted).levels
    (level,) = [level for level in levels if len(level.support) == core]
    np.testing.assert_array_equal(reduced.support, level.support)


@every_home
def test_the_core_is_the_same_for_every_ridge_weight(home):
    problem, A, y = instance(home, rows=60, features=200)
    *_, expected = textbook(A, y, np.nan, [], core=60)
    np.testing.assert_array_equal(find_core(problem, 5).support, expected)
    for alpha in (0.0, 1.0):
        levels = sparsity_path(problem, alpha=alpha).levels
        (level,) = [level for level in levels if len(level.support) == 60]
        np.testing.assert_array_equal(level.support, expected)


@both_types
@pytest.mark.parametrize(("rows", "wanted"), [(60, 5), (200, 5), (30, 140)])
def test_the_reduced_problem_is_that_of_its_support(dtype, rows, wanted):
    problem, A, y = instance(StoredProblem, dtype, 2, True, rows=rows)
    reduced = find_core(problem, wanted)
    A_S = A[:, reduced.support]
    if reduced.by_rows:
        check_close(reduced.matrix, A_S @ A_S.conj().T)
    else:
        check_close(reduced.matrix, A_S.conj().T @ A_S)
        check_close(reduced.right, A_S.conj().T @ y)
    places = np.arange(0, len(reduced.support), 3)
    fewer = reduced.keep(places)
    np.testing.assert_array_equal(fewer.support, reduced.support[places])
    for part in (reduced, fewer):
        check_close(part.solve(1e-2), dense_ridge(A[:, part.support], y, 1e-2))


@pytest.mark.parametrize(
    ("rows", "features", "s", "expected"),
    [
        (200, 1000, 20, 200),
        (1000, 200, 20, 200),
        (50_000, 10_000, 20, 3000),
        (50_000, 10_000, 4000, 4000),
        (200, 1000, 500, 500),
    ],
)
def test_the_largest_system(rows, features, s, expected):
    assert largest_system(rows, features, s) == expected


# --- Screening ---


def screened(A, y, limit, rounds=4):
    """Features in rounds: those that correlate best with the residual of the ones before."""
    found = np.empty(0, dtype=int)
    residual = y
    for part in range(1, rounds + 1):
        size = np.linalg.norm(A.conj().T @ residual, axis=1)
        size[found] = 0
        new = largest(size[:, None], limit * part // rounds - len(found))
        found = np.sort(np.concatenate([found, new]))
        residual = y - A[:, found] @ dense_ridge(A[:, found], y, module._RANKING_ALPHA)
    return found


@both_types
@some_targets
@pytest.mark.parametrize("home", [StoredProblem, RecomputedProblem, WithoutKernel])
@pytest.mark.parametrize("wanted", [3, 31])
def test_where_no_side_is_small_features_are_screened(monkeypatch, home, dtype, targets, wanted):
    monkeypatch.setattr(module, "LARGEST_SIDE", 20)
    problem, A, y = instance(home, dtype, targets)
    path = sparsity_path(problem, alpha=1e-2, n_nonzero_coefs=[wanted, 2])
    limit = max(20, wanted)
    expected = screened(A, y, limit)
    assert path.sizes[0] == limit
    np.testing.assert_array_equal(path.levels[0].support, expected)
    for level in path.levels:
        check_close(level.scaled_coef, dense_ridge(A[:, level.support], y, 1e-2))
    assert wanted in path.sizes
    assert path.sizes[-1] == 2


@pytest.mark.parametrize(
    ("home", "rows", "features", "first"),
    [
        # few rows, if the home brings them together, or few features: nothing need be left out
        (StoredProblem, 20, 60, 60),
        (StoredProblem, 21, 60, 20),
        (StoredProblem, 60, 20, 20),
        (StoredProblem, 60, 21, 20),
        (WithoutKernel, 20, 60, 20),
        (WithoutKernel, 60, 20, 20),
    ],
)
def test_features_are_screened_only_where_both_sides_are_large(
    monkeypatch, home, rows, features, first
):
    monkeypatch.setattr(module, "LARGEST_SIDE", 20)
    problem, *_ = instance(home, rows=rows, features=features)
    path = sparsity_path(problem, alpha=1e-2)
    assert path.sizes[0] == first
    if first == features:
        np.testing.assert_array_equal(path.levels[0].support, np.arange(features))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("home", [StoredProblem, WithoutKernel])
def test_screening_finds_planted_features(monkeypatch, home, seed):
    monkeypatch.setattr(module, "LARGEST_SIDE", 40)
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(150, 400))
    A[:, 390:] = 1.0
    S = np.sort(rng.choice(390, 5, replace=False))
    # the weakest is found only once the strongest are explained
    y = A[:, S] @ np.array([8.0, -5.0, 3.0, -2.0, 1.0]) + 0.05 * rng.normal(size=150)
    paths = [sparsity_path(home.from_matrix(A, y), alpha=1e-3, n_nonzero_coefs=5) for _ in range(2)]
    assert paths[0].sizes[0] == 40
    assert np.isin(S, paths[0].levels[0].support).all()
    assert paths[0].levels[0].support.max() < 390
    np.testing.assert_array_equal(paths[0].levels[-1].support, S)
    for a, b in zip(*(path.levels for path in paths), strict=True):
        assert (a.support.tobytes(), a.scaled_coef.tobytes()) == (
            b.support.tobytes(),
            b.scaled_coef.tobytes(),
        )


def test_screening_passes_constant_features_by_even_where_nothing_correlates(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_SIDE", 20)
    A, _ = matrix()
    A[:, :30] = 1.0
    path = matrix_path(A, np.full(60, 0.1))
    np.testing.assert_array_equal(path.levels[0].support, np.arange(30, 50))


def test_a_feature_that_only_later_rounds_can_see_is_found(monkeypatch):
    # y is made of two features, and uncorrelated with the second of them
    monkeypatch.setattr(module, "LARGEST_SIDE", 40)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 400))
    A -= A.mean(axis=0)
    A[:, 20] += A[:, 10]
    y = A[:, 10] - A[:, 20] * (A[:, 10] @ A[:, 20]) / (A[:, 20] @ A[:, 20])
    assert abs(A[:, 20] @ y) < 1e-10
    path = sparsity_path(StoredProblem.from_matrix(A, y), alpha=1e-3, n_nonzero_coefs=2)
    np.testing.assert_array_equal(path.levels[-1].support, [10, 20])
    # with a single round the same data fail
    monkeypatch.setattr(module, "_SCREENING_ROUNDS", 1)
    path = sparsity_path(StoredProblem.from_matrix(A, y), alpha=1e-3, n_nonzero_coefs=2)
    assert 20 not in path.levels[0].support


# --- Many ridge weights at once ---

# more than one block of them
ALPHAS = np.geomspace(1e-6, 10, 9)


@both_types
@some_targets
@pytest.mark.parametrize(
    ("home", "rows", "features", "wanted"),
    [
        (StoredProblem, 60, 150, [3, 20, 60]),
        (RecomputedProblem, 60, 150, [20, 3]),
        (StoredProblem, 300, 120, [7, 50, 7, 99]),
        (StoredProblem, 30, 150, [140, 10]),
        (StoredProblem, 40, 12, [12, 5]),
    ],
)
def test_all_ridge_weights_together_are_each_alone(dtype, targets, home, rows, features, wanted):
    problem, *_ = instance(home, dtype, targets, True, rows=rows, features=features)
    core = find_core(problem, max(wanted))
    together = prune_for_all(core, ALPHAS.tolist(), wanted)
    assert together.shape == (len(wanted), len(ALPHAS), len(core.support), targets)
    for j, alpha in enumerate(ALPHAS):
        levels = {len(S): (S, c) for S, c in core.prune(alpha, wanted)}
        for i, s in enumerate(wanted):
            S, c = levels[s]
            found = together[i, j]
            places = np.searchsorted(core.support, S)
            np.testing.assert_array_equal(np.flatnonzero(np.any(found != 0, axis=1)), places)
            check_close(found[places], c, 1e-8)


def test_sizes_above_the_core_are_the_core():
    problem, *_ = instance(StoredProblem, rows=40, features=30)
    core = find_core(problem, 30)
    coef = prune_for_all(core, [1e-2], [30, 99])
    np.testing.assert_array_equal(coef[0], coef[1])
    assert np.all(coef != 0)
    *_, (S, c) = core.prune(1e-2, [99])
    assert len(S) == 30
    check_close(coef[1, 0], c)


@pytest.mark.parametrize(("rows", "wanted"), [(30, 80), (200, 50)])
def test_all_ridge_weights_on_features_twice(rows, wanted):
    rng = np.random.default_rng(6)
    A = np.tile(rng.normal(size=(rows, 40)), 2)
    y = rng.normal(size=(rows, 1))
    core = find_core(StoredProblem.from_matrix(A, y), wanted)
    dense, Y = standardised(A, y, np.ones(rows))
    alphas, sizes = [0.0, 1e-12, 1e-3], [80, 20, 5]
    coef = prune_for_all(core, alphas, sizes)
    assert np.all(np.isfinite(coef))
    for i, j in np.ndindex(3, 3):
        c = coef[i, j]
        S = core.support[np.flatnonzero(c)]
        assert len(S) == sizes[i]
        smallest = np.linalg.lstsq(dense[:, S], Y, rcond=1e-9)[0]
        assert np.linalg.norm(c) < 1.001 * np.linalg.norm(smallest)
        found = dense_objective(dense[:, core.support], Y, c, alphas[j])
        assert found < dense_objective(dense[:, S], Y, smallest, alphas[j]) + 1e-9


def test_equal_features_keep_the_lower_index():
    # a diagonal Gram matrix: nothing is rounded, equal columns have equal coefficients
    A = np.kron(np.eye(8), np.array([[1.0], [-1.0]]))
    y = A @ np.ones((8, 1))
    core = find_core(StoredProblem.from_matrix(A, y), 8)
    coef = prune_for_all(core, [1e-2, 1.0], [3])
    for c in coef[0]:
        np.testing.assert_array_equal(np.flatnonzero(c), [0, 1, 2])
    *_, (S, _) = core.prune(1e-2, [3])
    np.testing.assert_array_equal(S, [0, 1, 2])


# --- Threads ---


@pytest.mark.parametrize("home", [StoredProblem, RecomputedProblem])
@both_types
def test_same_bits_for_any_number_of_threads(home, dtype, on_threads):
    def everything():
        problem, *_ = instance(home, dtype, 2, True, rows=200, features=700)
        path = sparsity_path(problem, alpha=1e-3, n_nonzero_coefs=[150, 5])
        core = find_core(problem, 50)
        coef = prune_for_all(core, ALPHAS.tolist(), [50, 10])
        return [
            *(level.support for level in path.levels),
            *(level.scaled_coef for level in path.levels),
            path.objectives,
            coef,
        ]

    one, two = on_threads(1, everything), on_threads(2, everything)
    assert [a.tobytes() for a in one] == [a.tobytes() for a in two]
