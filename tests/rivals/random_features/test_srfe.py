"""SRFE: the l1 problem against closed forms, scikit-learn and spgl1, and its optimality."""

import contextlib
import io

import numpy as np
import pytest
import spgl1
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from harfe._core.folds import make_folds
from harfe.datasets import make_additive, make_function
from harfe.features.law import FeatureLaw
from harfe.rivals import SRFERegressor
from harfe.rivals.solvers import l1
from harfe.rivals.solvers.l1 import L1Solver, Patience, denoising_path, filled, l1_path
from harfe.rivals.solvers.l1_gram import solve_gram
from harfe.solvers.homes import StoredProblem


def plain(A, y):
    """The problem of a matrix as it is, without an intercept."""
    return StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")


def gaussian(rng, shape, kind):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if kind == "complex" else values


def dense(fit, N):
    c = np.zeros(N, fit.coef.dtype)
    c[fit.support] = fit.coef[:, 0]
    return c


def worst_violation(A, y, c, penalty):
    """The optimality conditions from their definition, as a share of λ."""
    g = A.conj().T @ (y - A @ c) / len(y)
    zero = c == 0
    off = np.abs(g[~zero] - penalty * c[~zero] / np.abs(c[~zero])).max(initial=0.0)
    return max(off, np.abs(g[zero]).max(initial=0.0) - penalty) / penalty


def sines(m=120, N=800, scale=0.5, activation="sin"):
    """Smooth features of few variables: the Gram matrix is singular to machine precision."""
    rng = np.random.default_rng(5)
    law = FeatureLaw(n_variables=3, orders=(2,), scale=(scale,), activation=activation)
    X = rng.normal(size=(m, 3))
    A = law.draw(N, rng).evaluate(X)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=m)
    return A, y


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_orthonormal_columns_have_a_closed_form(kind):
    rng = np.random.default_rng(0)
    m = 40
    A = np.linalg.qr(gaussian(rng, (m, 15), kind))[0] * np.sqrt(m)
    y = gaussian(rng, m, kind)
    inner = A.conj().T @ y / m
    size = np.abs(inner)
    for fit in l1_path(plain(A, y), [0.3, 0.1, 0.01]):
        truth = inner / size * np.maximum(size - fit.penalty, 0)
        np.testing.assert_allclose(dense(fit, 15), truth, atol=1e-7)
        assert fit.converged
        rss = np.mean(np.abs(y - A @ truth) ** 2)
        assert fit.power == pytest.approx(rss, rel=1e-6)
        assert fit.objective == pytest.approx(rss / 2 + fit.penalty * np.abs(truth).sum(), rel=1e-6)


@pytest.mark.compiled
def test_it_is_the_lasso_of_scikit_learn():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(60, 200))
    A[:, 100:] = A[:, :100] + 0.1 * A[:, 100:]
    y = A[:, :4] @ [3.0, -2.0, 1.0, 1.0] + rng.normal(size=60)
    alphas = np.array([1.0, 0.3, 0.1, 0.03])
    _, truth, _ = lasso_path(A, y, alphas=alphas, tol=1e-12, max_iter=100_000)
    for fit, column in zip(l1_path(plain(A, y), alphas), truth.T, strict=True):
        np.testing.assert_allclose(dense(fit, 200), column, atol=1e-5)


def test_nothing_is_left_at_the_largest_penalty():
    A, y = sines()
    problem = plain(A, y)
    solver = L1Solver(problem)
    assert solver.largest == pytest.approx(np.abs(A.T @ y / len(y)).max())
    assert len(solver.at(solver.largest).support) == 0
    assert len(solver.at(0.99 * solver.largest).support) > 0


@pytest.mark.parametrize("activation", ["sin", "exp"])
def test_coherent_features_are_solved_to_optimality(activation):
    A, y = sines(N=400, activation=activation)
    assert np.linalg.matrix_rank(A, tol=1e-6 * np.linalg.norm(A, 2)) < 110
    y = y * (1 + 0.5j) if activation == "exp" else y
    largest = np.abs(A.conj().T @ y / len(y)).max()
    for share, fit in zip(
        (0.1, 1e-2, 1e-3),
        l1_path(plain(A, y), [0.1 * largest, 1e-2 * largest, 1e-3 * largest]),
        strict=True,
    ):
        assert fit.penalty == pytest.approx(share * largest)
        assert worst_violation(A, y, dense(fit, A.shape[1]), fit.penalty) < 2e-6
        assert fit.converged
        assert fit.violation < 1e-6


def test_coherent_features_meet_the_residual_where_the_line_search_of_spgl1_fails():
    A, y = sines()
    level = 0.15
    (fit,) = denoising_path(plain(A, y), [level])
    c = dense(fit, A.shape[1])
    residual = np.linalg.norm(y - A @ c)
    assert residual == pytest.approx(level * np.sqrt(len(y)), rel=1e-6)
    assert fit.reached
    assert worst_violation(A, y, c, fit.penalty) < 2e-6
    with contextlib.redirect_stdout(io.StringIO()) as said:
        other, _, _, info = spgl1.spg_bpdn(A, y, level * np.sqrt(len(y)), iter_lim=300)
    assert "Linesearch failed" in said.getvalue() or info["stat"] not in (1, 2, 3, 4)
    # Theirs is no smaller, except by the excess of their residual.
    slack = max(np.linalg.norm(y - A @ other) - residual, 0) * residual / len(y) / fit.penalty
    assert np.abs(c).sum() <= np.abs(other).sum() + 1.01 * slack


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_it_is_the_basis_pursuit_denoising_of_spgl1(kind):
    rng = np.random.default_rng(2)
    A = gaussian(rng, (50, 120), kind)
    planted = np.zeros(120, A.dtype)
    planted[:6] = gaussian(rng, 6, kind)
    y = A @ planted + 0.05 * gaussian(rng, 50, kind)
    level = 0.1
    (fit,) = denoising_path(plain(A, y), [level])
    theirs, _, _, _ = spgl1.spg_bpdn(
        A, y, level * np.sqrt(50), opt_tol=1e-9, bp_tol=1e-9, iter_lim=5000
    )
    c = dense(fit, 120)
    assert np.sqrt(fit.power) == pytest.approx(level, rel=1e-6)
    assert np.linalg.norm(y - A @ theirs) == pytest.approx(level * np.sqrt(50), rel=1e-5)
    assert np.abs(c).sum() == pytest.approx(np.abs(theirs).sum(), rel=1e-5)
    np.testing.assert_allclose(c, theirs, atol=1e-3)


def test_a_planted_sparse_vector_is_recovered_without_noise():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(80, 300))
    planted = np.zeros(300)
    planted[[5, 50, 250]] = [2.0, -1.0, 0.5]
    (fit,) = denoising_path(plain(A, A @ planted), [1e-5])
    np.testing.assert_array_equal(fit.support, [5, 50, 250])
    np.testing.assert_allclose(fit.coef[:, 0], planted[fit.support], atol=1e-4)


@pytest.mark.compiled
def test_negated_targets_negate_the_coefficients():
    A, y = sines()
    (fit,), (other,) = (list(denoising_path(plain(A, t), [0.3])) for t in (y, -y))
    np.testing.assert_array_equal(fit.support, other.support)
    np.testing.assert_array_equal(fit.coef, -other.coef)


def test_noise_beyond_the_target_leaves_nothing_and_levels_come_in_any_order():
    A, y = sines()
    rms = np.sqrt(np.mean(y**2))
    first, small, none, again = denoising_path(plain(A, y), [0.4, 0.2, 1.001 * rms, 0.4])
    assert len(none.support) == 0
    assert none.reached
    assert len(small.support) > len(first.support)
    np.testing.assert_allclose(dense(again, 800), dense(first, 800), atol=1e-4)


def test_noise_below_every_residual_gives_the_closest_fit_and_says_so():
    rng = np.random.default_rng(4)
    A, y = rng.normal(size=(40, 10)), rng.normal(size=40)
    least = np.linalg.lstsq(A, y)[0]
    near, nearer = denoising_path(plain(A, y), [1e-3, 1e-4])
    assert not near.reached
    assert not nearer.reached
    np.testing.assert_allclose(near.coef[:, 0], least, atol=1e-5)
    np.testing.assert_array_equal(near.coef, nearer.coef)


@pytest.mark.compiled
def test_equal_columns_do_no_harm():
    A, y = sines(N=60)
    (once,) = l1_path(plain(A, y), [1e-3])
    (twice,) = l1_path(plain(np.hstack([A, A]), y), [1e-3])
    both = dense(twice, 120)
    np.testing.assert_allclose(both[:60] + both[60:], dense(once, 60), atol=1e-5)
    assert twice.converged


def test_of_many_equal_columns_one_is_used():
    rng = np.random.default_rng(8)
    A = rng.normal(size=(40, 3))[:, rng.integers(0, 3, 500)] * rng.choice([-1.0, 2.0], 500)
    y = A[:, 0] + rng.normal(size=40)
    problem = plain(A, y)
    solver = L1Solver(problem)
    fit = solver.at(1e-3)
    assert len(fit.support) <= 3
    assert fit.converged
    assert worst_violation(A, y, dense(fit, 500), 1e-3) < 2e-6
    assert len(solver._set) <= 3


@pytest.mark.compiled
def test_a_start_elsewhere_comes_to_the_same():
    A, y = sines()
    problem = plain(A, y)
    (fit,) = l1_path(problem, [1e-2])
    start = (np.array([3, 7]), np.array([[1.0], [-2.0]]))
    other = L1Solver(problem, start=start).at(1e-2)
    assert other.objective == pytest.approx(fit.objective, rel=1e-9)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_steps_after_a_homotopy_that_failed(kind, monkeypatch):
    rng = np.random.default_rng(6)
    A, y = gaussian(rng, (30, 20), kind), gaussian(rng, 30, kind)
    gram, b = A.conj().T @ A / 30, A.conj().T @ y / 30
    truth = solve_gram(gram, b, np.zeros_like(b), 0.05, 1e-9)
    monkeypatch.setattr("harfe.rivals.solvers.l1_gram._EVENTS", 0)
    c = solve_gram(gram, b, np.zeros_like(b), 0.05, 1e-9)
    np.testing.assert_allclose(c, truth, atol=1e-7)
    assert worst_violation(A, y, c, 0.05) < 1e-8


def test_a_warning_tells_of_a_tolerance_that_rounding_hides(monkeypatch):
    A, y = sines()
    monkeypatch.setattr(l1, "_ROUNDING", 0.0)
    with pytest.warns(ConvergenceWarning, match="larger alpha or noise_level"):
        list(l1_path(plain(A, y), [0.01], tolerance=1e-18))


def test_a_penalty_that_rounding_hides_counts_as_the_smallest():
    A, y = sines(N=100)
    problem = plain(A, y)
    (fit,) = l1_path(problem, [1e-14])
    assert fit.penalty == l1.SMALLEST * L1Solver(problem).largest
    assert not fit.reached


def test_no_feature_varies():
    problem = StoredProblem.from_matrix(np.ones((5, 3)), np.arange(5.0))
    (fit,), (other,) = list(l1_path(problem, [0.1])), list(denoising_path(problem, [0.1]))
    assert len(fit.support) == len(other.support) == 0
    assert not other.reached


def test_a_path_is_left_at_a_fifth_of_the_best_penalty():
    patience = Patience(np.zeros(1))
    asked = [(8.0, 3.0), (4.0, 1.0), (1.0, 2.0), (0.81, 2.0), (0.79, 2.0), (0.7, 0.5)]
    said = [patience(penalty, np.array([error])) for penalty, error in asked]
    assert said == [True, True, True, True, False, True]
    rows = filled([np.array([1.0]), np.array([2.0])], 4)
    np.testing.assert_array_equal(rows[:, 0], [1.0, 2.0, 2.0, 2.0])


@pytest.mark.parametrize("path", [l1_path, denoising_path])
def test_a_path_ends_where_it_is_told_to(path):
    A, y = sines()
    seen = []

    def go_on(fit):
        seen.append(fit.penalty)
        return fit.penalty > 0.02

    fits = list(path(plain(A, y), np.geomspace(0.5, 1e-3, 20), go_on=go_on))
    assert len(fits) < 20
    assert fits[-1].penalty == seen[-1] <= 0.02
    assert min(seen[:-1]) > 0.02
    assert fits[-1].converged


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 80, random_state=0)


def scaled(model, X):
    """Features of the fitted model, centred and with unit root-mean-square."""
    A = model.expansion_.evaluate_features(X)
    A = A - A.mean(axis=0)
    return A / np.sqrt(np.mean(A**2, axis=0))


@pytest.mark.parametrize("unit", [1.0, 1e200])
def test_the_residual_is_the_share_that_was_asked_for(friedman, unit):
    X, y = friedman.X, friedman.y * unit
    model = SRFERegressor(300, order=2, scale=1.0, noise_level=0.3, random_state=0).fit(X, y)
    left = np.sqrt(np.mean(((y - model.predict(X)) / unit) ** 2))
    assert left == pytest.approx(0.3 * np.std(y / unit), rel=1e-6)
    assert model.residual_ / unit == pytest.approx(left, rel=1e-6)
    assert model.reached_
    assert model.size_ == len(model.expansion_.features) < 80
    assert model.noise_level_ == 0.3
    # The same fit by its λ.
    alpha = model.penalty_ / unit / np.std(y / unit)
    lasso = SRFERegressor(300, order=2, scale=1.0, form="lasso", alpha=alpha, random_state=0).fit(
        X, y
    )
    np.testing.assert_allclose(lasso.predict(X) / unit, model.predict(X) / unit, rtol=1e-5)
    assert lasso.alpha_ == alpha


def test_all_noise_leaves_nothing(friedman):
    noise = np.random.default_rng(0).normal(size=80)
    model = SRFERegressor(200, order=2, scale=1.0, random_state=0).fit(friedman.X, noise)
    assert model.noise_level_ == 1.0
    assert model.size_ == 0


def test_the_largest_are_kept_and_refitted_by_least_squares(friedman):
    X, y = friedman.X, friedman.y
    settings = {"order": 2, "scale": 1.0, "noise_level": 0.3, "random_state": 0}
    whole = SRFERegressor(300, **settings).fit(X, y)
    model = SRFERegressor(300, **settings, n_nonzero_coefs=5).fit(X, y)
    sizes = np.abs(whole.expansion_.coef[0]) * whole.expansion_.evaluate_features(X).std(axis=0)
    kept = np.sort(np.argsort(-sizes)[:5])
    np.testing.assert_array_equal(
        model.expansion_.features.phases, whole.expansion_.features.phases[kept]
    )
    A = np.column_stack([np.ones(len(y)), scaled(model, X)])
    truth = A @ np.linalg.lstsq(A, y)[0]
    np.testing.assert_allclose(model.predict(X), truth, rtol=1e-6)
    assert model.size_ == 5


@pytest.mark.parametrize("form", ["denoising", "lasso"])
def test_folds_are_those_done_by_hand(friedman, form):
    X, y = friedman.X, friedman.y
    name = "noise_level" if form == "denoising" else "alpha"
    settings = {"order": 1, "scale": 1.0, "form": form, "random_state": 0}
    model = SRFERegressor(100, **settings, **{name: [0.35, 0.5]}).fit(X, y)
    results = model.cv_results_
    assert [params[name] for params in results["params"]] == [0.5, 0.35]
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    for place, value in enumerate([0.5, 0.35]):
        errors = []
        for train, out in make_folds("cv", 5, X, y, seed):
            one = SRFERegressor(100, **settings, **{name: value}).fit(X[train], y[train])
            errors.append(np.mean((one.predict(X[out]) - y[out]) ** 2))
        assert -results["mean_test_score"][place] == pytest.approx(np.mean(errors), rel=1e-4)


def test_complex_targets_and_features():
    data = make_additive(60, 4, order=1, n_terms=2, complex_valued=True, noise=0.0, random_state=0)
    settings = {"order": 1, "scale": 1.0, "noise_level": [0.5, 0.05], "activation": "exp"}
    model = SRFERegressor(300, **settings, random_state=0).fit(data.X, data.y)
    assert model.predict(data.X).dtype.kind == "c"
    assert model.noise_level_ == 0.05
    assert model.score(data.X, data.y) == pytest.approx(1 - 0.05**2, abs=1e-6)


def test_friedman_is_learned_with_default_settings():
    data = make_function("friedman1", 200, random_state=0)
    fresh = make_function("friedman1", 1000, random_state=1)
    model = SRFERegressor(1000, scale=1.0, form="lasso", random_state=0).fit(data.X, data.y)
    assert model.order_ == 2
    assert np.mean((model.predict(fresh.X) - fresh.y_clean) ** 2) < 3


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("form", "ridge", "form='ridge' is not known; choose one of denoising, lasso"),
        ("noise_level", 0, "noise_level=0 must be 'auto', a finite number above 0"),
        ("alpha", [-1], "alpha=\\[-1\\] must be 'auto'"),
        ("n_nonzero_coefs", 0, "n_nonzero_coefs=0 must be None or a whole number"),
        ("n_components", "many", "n_components='many' must be 'auto' or a whole number"),
        ("memory_budget", 1e3, "memory_budget"),
    ],
)
def test_arguments_are_refused(friedman, argument, value, message):
    error = MemoryError if argument == "memory_budget" else ValueError
    with pytest.raises(error, match=message):
        SRFERegressor(**{argument: value}).fit(friedman.X, friedman.y)


def test_the_path_of_a_problem():
    A, y = sines()
    model = SRFERegressor(form="lasso", n_nonzero_coefs=3)
    (S, c), _ = model._path(plain(A, y), [{"alpha": 0.1}, {"alpha": 0.01}])
    assert len(S) == 3
    np.testing.assert_allclose(c[:, 0], np.linalg.lstsq(A[:, S], y)[0], rtol=1e-6)
