"""One conformance suite of the problem contract for every home, against plain NumPy.

Another home is added by one row of HOMES.
"""

import itertools
import tracemalloc
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harfe._core.threads import one_blas_thread
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.solvers.homes import RecomputedProblem, StoredProblem, make_problem
from harfe.solvers.problem import ROW_BLOCK
from harfe.solvers.pursuit import hard_ridge_pursuit
from harfe.solvers.ridge import RestrictedRidge


def _from_matrix(pool, X, y, weights, **options):
    return StoredProblem.from_matrix(pool.evaluate(X), y, weights, **options)


HOMES = {
    "stored": StoredProblem,
    "from_matrix": _from_matrix,
    "recomputed": RecomputedProblem,
}
every_home = pytest.mark.parametrize("make", HOMES.values(), ids=HOMES)

NOTHING = np.empty(0, dtype=np.intp)


@pytest.fixture(autouse=True, scope="module")
def _one_blas_thread():
    """As the pursuit asks: BLAS on one thread."""
    with one_blas_thread():
        yield


# --- The dense truth ---


@dataclass(frozen=True)
class Case:
    """A problem by its parameters."""

    activation: str = "sin"
    targets: int = 1
    complex_y: bool = False
    weighted: bool = False
    fit_intercept: bool = True
    column_scale: str = "rms"
    rows: int = 40
    features: int = 25
    seed: int = 0

    def __str__(self):
        return "-".join(
            [
                self.activation,
                f"{self.targets}{'c' if self.complex_y else 'r'}",
                "weighted" if self.weighted else "equal",
                "centred" if self.fit_intercept else "raw",
                self.column_scale,
                f"{self.rows}x{self.features}",
            ]
        )


@dataclass(frozen=True)
class Truth:
    """Everything in the contract, as dense arrays."""

    case: Case
    pool: FeaturePool
    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    phi: np.ndarray
    A: np.ndarray
    Y: np.ndarray
    unit: np.ndarray

    @property
    def M(self):
        return self.w.sum()

    @cached_property
    def adjoint(self):
        """A*W/M."""
        return (self.A.conj() * self.w[:, None]).T / self.M

    @property
    def options(self):
        return {"fit_intercept": self.case.fit_intercept, "column_scale": self.case.column_scale}

    def home(self, make):
        return make(self.pool, self.X, self.y, self.w, **self.options)


@lru_cache(maxsize=200)
def problem_of(make, case):
    """Problems can be shared between tests, because no method changes them."""
    return truth_of(case).home(make)


def raw_features(pool, X):
    """φ(<x, w> + b) in plain NumPy."""
    z = X @ pool.weights().toarray() + pool.phases
    return {
        "sin": np.sin,
        "tanh": np.tanh,
        "relu": lambda z: np.maximum(z, 0),
        "exp": lambda z: np.exp(1j * z),
    }[pool.activation](z)


@lru_cache(maxsize=200)
def truth_of(case):
    rng = np.random.default_rng(case.seed)
    law = FeatureLaw(3, orders=(1, 2), activation=case.activation)
    pool = law.draw(case.features, rng)
    # Weights away from zero: a feature that hardly varies would lose digits to its mean.
    values = np.where(pool.indices >= 0, pool.values + 0.3 * np.sign(pool.values), 0)
    pool = FeaturePool(3, pool.indices, values, pool.phases, pool.activation)
    X = rng.normal(size=(case.rows, 3))
    y = 3.0 + rng.normal(size=(case.rows, case.targets)) * 10.0 ** np.arange(case.targets)
    if case.complex_y:
        y = y + 1j * (rng.normal(size=y.shape) - 2.0)
    w = rng.uniform(0.2, 3.0, case.rows) if case.weighted else np.ones(case.rows)
    M = w.sum()
    phi = raw_features(pool, X)
    centred = phi - (w @ phi / M if case.fit_intercept else 0)
    deviation = np.sqrt(w @ np.abs(centred) ** 2 / M)
    rms = np.sqrt(w @ np.abs(phi) ** 2 / M)
    sigma = deviation if case.column_scale == "rms" else np.ones(case.features)
    A = np.where(
        deviation > 1e-6 * rms, centred / np.where(deviation > 1e-6 * rms, sigma, np.inf), 0
    )
    Y = y - (w @ y / M if case.fit_intercept else 0)
    # Several targets count equally; a single one keeps its units.
    unit = np.sqrt(w @ np.abs(Y) ** 2 / M) if case.targets > 1 else np.ones(1)
    return Truth(case, pool, X, y, w, phi, A, Y / unit, unit)


SMALL = [
    Case(*parts)
    for parts in itertools.product(
        ("sin", "exp"), (1, 3), (False, True), (False, True), (True, False), ("rms", "none")
    )
]
# Several tiles of everything: rows, features, supports.
LARGE = [
    Case(rows=ROW_BLOCK + 100, features=1100, weighted=True),
    Case("exp", 2, True, True, rows=ROW_BLOCK + 60, features=600),
]
# A stored matrix is one home, however it came about: a few cases of the second way are enough.
CASES = [
    (make, case)
    for make in HOMES.values()
    for case in (SMALL[::5] if make is _from_matrix else SMALL + LARGE)
]
every_home_and_case = pytest.mark.parametrize(
    ("make", "case"),
    CASES,
    ids=[f"{name}-{case}" for make, case in CASES for name in HOMES if HOMES[name] is make],
)


def support_of(truth, share=0.4, seed=1):
    """A support, sorted, and coefficients on it."""
    rng = np.random.default_rng(seed)
    N, T = truth.A.shape[1], truth.y.shape[1]
    S = np.sort(rng.choice(N, max(1, round(share * N)), replace=False))
    c = rng.normal(size=(len(S), T))
    if np.iscomplexobj(truth.A) or np.iscomplexobj(truth.y):
        c = c + 1j * rng.normal(size=c.shape)
    return S, c


def check_close(actual, expected, tolerance=1e-12):
    """Equal shapes, and equal numbers to a share of the largest."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    size = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)


# --- The contract ---


@every_home_and_case
def test_shape_usable_and_power(make, case):
    truth = truth_of(case)
    problem = problem_of(make, case)
    assert problem.shape == (pytest.approx(truth.M, rel=1e-14), case.features, case.targets)
    assert problem.n_rows == case.rows
    np.testing.assert_array_equal(problem.usable, np.ones(case.features, dtype=bool))
    check_close(problem.power, truth.w @ np.abs(truth.Y) ** 2 / truth.M)
    if case.targets > 1:
        check_close(problem.power, np.ones(case.targets))
    is_complex = case.complex_y or case.activation == "exp"
    assert problem.dtype == (np.complex128 if is_complex else np.float64)


@every_home_and_case
def test_gradient_at_zero(make, case):
    truth = truth_of(case)
    problem = problem_of(make, case)
    g, rss = problem.gradient(NOTHING, np.empty((0, case.targets)))
    check_close(g, truth.adjoint @ truth.Y)
    check_close(rss, problem.power)


@every_home_and_case
def test_gradient_at_a_support(make, case):
    truth = truth_of(case)
    S, c = support_of(truth, share=0.95)
    residual = truth.Y - truth.A[:, S] @ c
    g, rss = problem_of(make, case).gradient(S, c)
    check_close(g, truth.adjoint @ residual)
    check_close(rss, truth.w @ np.abs(residual) ** 2 / truth.M)


@every_home_and_case
def test_step(make, case):
    truth = truth_of(case)
    S, c = support_of(truth, share=0.95)
    mu, alpha = 0.3, 0.01
    residual = truth.Y - truth.A[:, S] @ c
    stepped = mu * truth.adjoint @ residual
    stepped[S] += (1 - mu * alpha) * c
    size = np.linalg.norm(stepped, axis=1)
    for s in (1, 7, case.features):
        chosen, rss = problem_of(make, case).step(S, c, mu, alpha, s)
        np.testing.assert_array_equal(chosen, np.sort(np.argsort(-size)[:s]))
        check_close(rss, truth.w @ np.abs(residual) ** 2 / truth.M)


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e60])
def test_steps_in_single_precision_rank_like_double_precision(scale):
    """Pairs of features that differ by less than single precision resolves."""
    rng = np.random.default_rng(0)
    A = np.repeat(rng.normal(size=(3000, 40)), 2, axis=1)
    A[:, 1::2] += 1e-9 * rng.normal(size=(3000, 40))
    y = scale * (A @ rng.normal(size=80) + rng.normal(size=3000))[:, None]
    problem = StoredProblem.from_matrix(A, y)
    B = (A - A.mean(axis=0)) / A.std(axis=0)
    correlation = np.abs(B.T @ (y - y.mean())[:, 0])
    order = np.argsort(-correlation)
    assert np.any(np.diff(correlation[order]) > -1e-8 * correlation[0])
    for s in range(1, 80, 2):
        chosen, _ = problem.step(NOTHING, np.empty((0, 1)), 0.1, 1e-3, s)
        np.testing.assert_array_equal(chosen, np.sort(order[:s]))


@every_home_and_case
def test_normal(make, case):
    truth = truth_of(case)
    S, _ = support_of(truth)
    gram, moment = problem_of(make, case).normal(S)
    check_close(gram, truth.adjoint[S] @ truth.A[:, S])
    check_close(moment, truth.adjoint[S] @ truth.Y)


@every_home
@pytest.mark.parametrize(
    ("case", "new"),
    [
        *itertools.product([SMALL[0], SMALL[-1]], [0.0, 0.3, 0.7, 1.0]),
        *itertools.product(LARGE, [0.3]),
    ],
    ids=str,
)
def test_normal_with_a_known_gram_matrix(make, case, new):
    truth = truth_of(case)
    problem = problem_of(make, case)
    rng = np.random.default_rng(2)
    earlier = rng.choice(case.features, case.features // 4, replace=False)
    rest = np.setdiff1d(np.arange(case.features), earlier)
    S = earlier.copy()
    places = rng.choice(len(S), round(new * len(S)), replace=False)
    S[places] = rng.choice(rest, len(places), replace=False)
    known = problem.normal(earlier)[0]
    before = known.copy()
    gram, moment = problem.normal(S, (earlier, known))
    check_close(gram, truth.adjoint[S] @ truth.A[:, S])
    check_close(moment, truth.adjoint[S] @ truth.Y)
    np.testing.assert_array_equal(known, before)


@every_home
@pytest.mark.parametrize(
    "earlier",
    [[2, 5], [2, 5, 9, 12, 20], [12, 9, 5, 2], [5, 2, 9, 12], []],
    ids=["fewer", "more", "reversed", "swapped", "none"],
)
def test_known_rows_elsewhere_are_not_mistaken(make, earlier):
    truth = truth_of(SMALL[0])
    problem = problem_of(make, SMALL[0])
    S, earlier = np.array([2, 5, 9, 12]), np.array(earlier, dtype=np.intp)
    gram, _ = problem.normal(S, (earlier, problem.normal(earlier)[0]))
    check_close(gram, truth.adjoint[S] @ truth.A[:, S])


@every_home
def test_known_rows_are_taken_and_the_rest_is_computed(make):
    problem = problem_of(make, SMALL[0])
    earlier, S = np.array([2, 5, 9, 12]), np.array([2, 5, 1, 12])
    gram, _ = problem.normal(S, (earlier, np.full((4, 4), 7.0)))
    expected, _ = problem.normal(S)
    kept = np.array([0, 1, 3])
    expected[np.ix_(kept, kept)] = 7.0
    check_close(gram, expected)


def test_homes_with_all_rows_in_memory_offer_a_kernel():
    assert StoredProblem.offers_kernel
    assert RecomputedProblem.offers_kernel


@every_home_and_case
def test_kernel_and_pull_back(make, case):
    truth = truth_of(case)
    problem = problem_of(make, case)
    if not problem.offers_kernel:
        pytest.skip("rows are not available together in this home")
    S, _ = support_of(truth, share=0.95)
    rows = truth.A[:, S] * np.sqrt(truth.w)[:, None]
    targets = truth.Y * np.sqrt(truth.w)[:, None]
    kernel, y = problem.kernel(S)
    check_close(kernel, rows @ rows.conj().T / truth.M)
    check_close(y, targets)
    v = np.asarray(np.cos(targets), problem.dtype)
    check_close(problem.pull_back(S, v), rows.conj().T @ v / truth.M)
    # LAPACK hands out its solutions column by column
    check_close(problem.pull_back(S, np.asfortranarray(v)), rows.conj().T @ v / truth.M)


@every_home_and_case
def test_system_has_the_singular_values_and_moments_of_the_support(make, case):
    truth = truth_of(case)
    S, _ = support_of(truth, share=0.2)
    root = np.sqrt(truth.w / truth.M)[:, None]
    dense_A, dense_y = root * truth.A[:, S], root * truth.Y
    A, y = problem_of(make, case).system(S)
    assert len(A) == len(y) <= min(case.rows, len(S) + case.targets)
    check_close(np.linalg.svd(A, compute_uv=False), np.linalg.svd(dense_A, compute_uv=False))
    check_close(A.conj().T @ A, dense_A.conj().T @ dense_A)
    check_close(A.conj().T @ y, dense_A.conj().T @ dense_y)
    check_close(y.conj().T @ y, dense_y.conj().T @ dense_y)


@every_home
def test_system_tells_singular_values_that_the_gram_matrix_does_not(make):
    # two features that differ by 1e-9: squared it is below the last digit
    pool = FeaturePool(
        1, np.zeros((2, 1), int), np.array([[1.0], [1.0 + 1e-9]]), np.array([0.3, 0.3]), "sin"
    )
    x = np.random.default_rng(0).normal(size=(1500, 1))
    A, _ = make(pool, x, x, np.ones(1500)).system(np.arange(2))
    slope = x[:, 0] * np.cos(x[:, 0] + 0.3)
    phi = np.sin(x[:, 0] + 0.3)
    phi = (phi - phi.mean()) / phi.std()
    # of two unit columns that differ by δ the smaller singular value is ‖δ‖/√2
    slope = (slope - slope.mean()) / np.sin(x[:, 0] + 0.3).std()
    difference = 1e-9 * (slope - phi * np.mean(phi * slope))
    expected = np.sqrt(np.mean(difference**2) / 2)
    np.testing.assert_allclose(np.linalg.svd(A, compute_uv=False)[1], expected, rtol=1e-5)


@every_home_and_case
def test_raw_coefficients_are_the_same_function(make, case):
    truth = truth_of(case)
    problem = problem_of(make, case)
    S, c = support_of(truth)
    coef, intercept = problem.to_raw(S, c)
    assert coef.shape == (case.targets, len(S))
    assert intercept.shape == (case.targets,)
    centre = truth.w @ truth.y / truth.M if case.fit_intercept else 0
    check_close(intercept + truth.phi[:, S] @ coef.T, centre + (truth.A[:, S] @ c) * truth.unit)
    check_close(problem.from_raw(S, coef), c)
    assert problem.from_raw(S, coef).dtype == problem.dtype


@pytest.mark.parametrize("name", [name for name in HOMES if name != "stored"])
@pytest.mark.parametrize("case", [*SMALL[::7], *LARGE], ids=str)
def test_homes_agree(name, case):
    one, two = problem_of(StoredProblem, case), problem_of(HOMES[name], case)
    S, c = support_of(truth_of(case), share=0.2)
    for a, b in zip(
        [*one.gradient(S, c), *one.normal(S), *one.kernel(S), *one.to_raw(S, c)],
        [*two.gradient(S, c), *two.normal(S), *two.kernel(S), *two.to_raw(S, c)],
        strict=True,
    ):
        check_close(b, a, 1e-10)


@every_home
@settings(deadline=None, max_examples=60)
@given(
    case=st.builds(
        Case,
        activation=st.sampled_from(["sin", "tanh", "exp"]),
        targets=st.integers(1, 3),
        complex_y=st.booleans(),
        weighted=st.booleans(),
        fit_intercept=st.booleans(),
        column_scale=st.sampled_from(["rms", "none"]),
        rows=st.integers(2, 12),
        features=st.integers(1, 12),
        seed=st.integers(0, 2**32),
    ),
    share=st.floats(0, 1),
)
def test_any_shape_and_type(make, case, share):
    truth = truth_of(case)
    problem = truth.home(make)
    S, c = support_of(truth, share)
    residual = truth.Y - truth.A[:, S] @ c
    g, _ = problem.gradient(S, c)
    # Two rows are centred to ± one number: a deviation may be a small share of the feature.
    check_close(g, truth.adjoint @ residual, 1e-9)
    gram, moment = problem.normal(S)
    check_close(gram, truth.adjoint[S] @ truth.A[:, S], 1e-9)
    np.testing.assert_allclose(moment, truth.adjoint[S] @ truth.Y, rtol=0, atol=1e-8)
    A, y = problem.system(S)
    assert len(A) <= min(case.rows, len(S) + case.targets)
    check_close(A.conj().T @ A, truth.adjoint[S] @ truth.A[:, S], 1e-9)
    np.testing.assert_allclose(A.conj().T @ y, truth.adjoint[S] @ truth.Y, rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex64])
def test_a_matrix_of_any_type_is_taken_in_double_precision(dtype):
    A = (np.random.default_rng(0).normal(size=(30, 5)) * 10).astype(dtype)
    y = np.arange(30)
    problem = StoredProblem.from_matrix(A, y)
    twin = StoredProblem.from_matrix(A.astype(np.result_type(dtype, np.float64)), y * 1.0)
    np.testing.assert_array_equal(
        problem.gradient(NOTHING, np.empty((0, 1)))[0], twin.gradient(NOTHING, np.empty((0, 1)))[0]
    )
    assert problem.dtype == (np.complex128 if dtype is np.complex64 else np.float64)


def test_a_given_matrix_is_left_alone():
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(30, 5)))
    before = A.copy()
    StoredProblem.from_matrix(A, A[:, 0])
    np.testing.assert_array_equal(A, before)


# --- Rows as repetitions ---


@every_home
@pytest.mark.parametrize("case", [SMALL[0], SMALL[-1], *LARGE], ids=str)
def test_a_row_of_weight_two_is_the_row_twice(make, case):
    truth = truth_of(case)
    times = np.random.default_rng(5).integers(1, 4, case.rows)
    X, y = np.repeat(truth.X, times, axis=0), np.repeat(truth.y, times, axis=0)
    weighted = make(truth.pool, truth.X, truth.y, times.astype(float), **truth.options)
    repeated = make(truth.pool, X, y, np.ones(len(y)), **truth.options)
    S, c = support_of(truth, share=0.1)
    assert weighted.shape == repeated.shape
    for a, b in zip(
        [weighted.power, *weighted.gradient(S, c), *weighted.normal(S), *weighted.to_raw(S, c)],
        [repeated.power, *repeated.gradient(S, c), *repeated.normal(S), *repeated.to_raw(S, c)],
        strict=True,
    ):
        check_close(a, b, 1e-11)


@every_home
@pytest.mark.parametrize(
    "where",
    [slice(None, None, 3), slice(ROW_BLOCK), slice(ROW_BLOCK, None)],
    ids=["scattered", "first_block", "last_block"],
)
def test_a_row_of_weight_zero_is_no_row(make, where):
    truth = truth_of(LARGE[0])
    w = truth.w.copy()
    w[where] = 0
    some = make(truth.pool, truth.X, truth.y, w)
    fewer = make(truth.pool, truth.X[w > 0], truth.y[w > 0], w[w > 0])
    S, c = support_of(truth, share=0.05)
    for a, b in zip(some.gradient(S, c), fewer.gradient(S, c), strict=True):
        check_close(a, b, 1e-11)


@every_home
def test_the_unit_of_the_weights_does_not_matter(make):
    truth = truth_of(SMALL[0])
    S, c = support_of(truth)
    plain = truth.home(make)
    heavy = make(truth.pool, truth.X, truth.y, 1e6 * truth.w)
    for a, b in zip(
        [*plain.gradient(S, c), *plain.normal(S)],
        [*heavy.gradient(S, c), *heavy.normal(S)],
        strict=True,
    ):
        check_close(b, a)


# --- Features that are constant, or nearly so ---


def odd_pool(activation):
    """Zero weights with a bias; an argument never above zero; an honest feature; no variables."""
    return FeaturePool(
        2,
        np.array([[0, 1], [0, 1], [0, 1], [-1, -1]]),
        np.array([[0.0, 0.0], [1.0, 1.0], [1.0, -1.0], [0.0, 0.0]]),
        np.array([0.7, -50.0, 0.1, 1.0]),
        activation,
    )


@every_home
@pytest.mark.parametrize("column_scale", ["rms", "none"])
@pytest.mark.parametrize(
    ("activation", "usable"),
    [
        ("relu", [False, False, True, False]),
        ("sin", [False, True, True, False]),
        ("exp", [False, True, True, False]),
    ],
)
def test_constant_features_are_not_usable_and_have_no_gradient(
    make, column_scale, activation, usable
):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    problem = make(odd_pool(activation), X, y, rng.uniform(1, 2, 50), column_scale=column_scale)
    np.testing.assert_array_equal(problem.usable, usable)
    g, _ = problem.gradient(NOTHING, np.empty((0, 1)))
    np.testing.assert_array_equal(g[:, 0] != 0, usable)
    assert np.all(np.isfinite(g))


@every_home
def test_without_an_intercept_a_constant_is_a_feature_but_zero_is_not(make):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 1)) + 1
    problem = make(odd_pool("relu"), X, y, np.ones(50), fit_intercept=False)
    np.testing.assert_array_equal(problem.usable, [True, False, True, True])
    g, _ = problem.gradient(NOTHING, np.empty((0, 1)))
    # of unit root-mean-square it is the column of ones
    np.testing.assert_allclose(g[[0, 3], 0], y.mean(), rtol=1e-13)
    assert g[1, 0] == 0


@every_home
def test_features_that_overflow_are_not_usable_and_have_no_gradient(make):
    # <x, w> beyond the range of doubles, and squares beyond it
    pool = FeaturePool(
        1, np.zeros((3, 1), int), np.array([[1e300], [1e160], [1e-10]]), np.ones(3), "relu"
    )
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 2, (50, 1)) * 1e10, rng.normal(size=(50, 1))
    problem = make(pool, x, y, np.ones(50))
    np.testing.assert_array_equal(problem.usable, [False, False, True])
    g, _ = problem.gradient(np.array([2]), np.ones((1, 1)))
    np.testing.assert_array_equal(g[:2], np.zeros((2, 1)))
    assert np.isfinite(g[2, 0])


@every_home
@pytest.mark.parametrize("share", [3e-7, 3e-6])
def test_a_deviation_below_a_millionth_counts_as_constant(make, share):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    pool = FeaturePool(1, np.zeros((1, 1), int), np.full((1, 1), share), np.ones(1), "relu")
    problem = make(pool, x / x.std(), x, np.ones(200))
    assert problem.usable[0] == (share > 1e-6)


@every_home
@pytest.mark.parametrize("column_scale", ["rms", "none"])
def test_centring_is_accurate_about_a_large_mean(make, column_scale):
    # Deviation 1 about a mean of 1e5, exact in binary: E[φ²] - ā² would be wrong by 1e-6.
    rng = np.random.default_rng(0)
    x = rng.integers(-2000, 2000, (2500, 1)) / 1024
    y, w = rng.normal(size=(2500, 1)), rng.integers(1, 3, 2500).astype(float)
    pool = FeaturePool(1, np.zeros((1, 1), int), np.ones((1, 1)), np.array([1e5]), "relu")
    problem = make(pool, x, y, w, column_scale=column_scale)
    a = x[:, 0] - np.average(x[:, 0], weights=w)
    sigma = np.sqrt(np.average(a**2, weights=w)) if column_scale == "rms" else 1.0
    np.testing.assert_allclose(problem.scale, [sigma], rtol=1e-12)
    np.testing.assert_allclose(problem.mean, [1e5 + np.average(x[:, 0], weights=w)], rtol=1e-14)
    Y = y - np.average(y[:, 0], weights=w)
    g, _ = problem.gradient(NOTHING, np.empty((0, 1)))
    expected = np.average(a / sigma * Y[:, 0], weights=w)
    np.testing.assert_allclose(g[0, 0], expected, rtol=1e-9)


@every_home
def test_centring_is_accurate_for_complex_features(make):
    # exp(iz) - 1 = i sin z - 2 sin²(z/2), known to full precision however small z
    x = np.random.default_rng(0).normal(size=(1500, 1))
    pool = FeaturePool(1, np.zeros((1, 1), int), np.full((1, 1), 1e-5), np.zeros(1), "exp")
    problem = make(pool, x, x, np.ones(1500))
    z = 1e-5 * x[:, 0]
    small = 1j * np.sin(z) - 2 * np.sin(z / 2) ** 2
    a = small - small.mean()
    np.testing.assert_allclose(problem.scale, [np.sqrt(np.mean(np.abs(a) ** 2))], rtol=1e-9)
    g, _ = problem.gradient(NOTHING, np.empty((0, 1)))
    expected = np.mean(a.conj() * (x[:, 0] - x.mean())) / problem.scale[0]
    np.testing.assert_allclose(g[0, 0], expected, rtol=1e-9)


# --- Units of y ---


@every_home
@pytest.mark.parametrize("size", [1e300, 1e-300, 1e12, 1e-12])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("complex_y", [False, True])
def test_y_of_any_size_gives_the_same_model_in_its_units(make, size, targets, complex_y):
    truth = truth_of(Case(targets=targets, complex_y=complex_y))
    S = np.array([1, 4, 7, 20])

    def raw(problem):
        return problem.to_raw(S, RestrictedRidge(problem, 1e-2).solve(S))

    plain = raw(truth.home(make))
    scaled_problem = make(truth.pool, truth.X, truth.y * size, truth.w)
    assert np.all(np.isfinite(scaled_problem.power))
    assert np.all(scaled_problem.power > 0)
    for a, b in zip(raw(scaled_problem), plain, strict=True):
        check_close(a / size, b)


@every_home
def test_targets_of_very_different_size_stand_side_by_side(make):
    truth = truth_of(Case(targets=3))
    sizes = np.array([1e300, 1.0, 1e-300])
    plain = truth.home(make)
    mixed = make(truth.pool, truth.X, truth.y * sizes, truth.w)
    S, c = support_of(truth)
    check_close(mixed.power, np.ones(3))
    for a, b in zip(mixed.gradient(S, c), plain.gradient(S, c), strict=True):
        check_close(a, b)
    for a, b in zip(mixed.to_raw(S, c), plain.to_raw(S, c), strict=True):
        check_close(a.T / sizes, b.T)


@every_home
def test_one_target_keeps_its_units_and_several_are_divided_by_their_deviation(make):
    truth = truth_of(Case(targets=3, weighted=True))
    together = truth.home(make)
    g, rss = together.gradient(NOTHING, np.empty((0, 3)))
    for t in range(3):
        alone = make(truth.pool, truth.X, truth.y[:, [t]], truth.w)
        g_alone, rss_alone = alone.gradient(NOTHING, np.empty((0, 1)))
        np.testing.assert_array_equal(alone.targets.unit, [1.0])
        check_close(g[:, [t]], g_alone / truth.unit[t])
        check_close(rss[[t]], rss_alone / truth.unit[t] ** 2)


@every_home
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1])
@pytest.mark.parametrize("rows", [50, 100])
def test_a_constant_target_has_no_power(make, constant, rows):
    # 0.1: its mean is not exactly 0.1, and what is left must not be taken for a signal
    truth = truth_of(Case(rows=rows))
    y = np.column_stack([truth.y[:, 0], np.full(rows, constant)])
    problem = make(truth.pool, truth.X, y, truth.w)
    np.testing.assert_allclose(problem.power, [1.0, 0.0], rtol=0, atol=1e-12)


# --- Threads and memory ---


@every_home
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_same_bits_for_any_number_of_threads(make, case, on_threads):
    truth = truth_of(case)
    S, c = support_of(truth)

    def everything():
        problem = truth.home(make)
        known = (S[::2].copy(), problem.normal(S[::2])[0])
        kernel, y = problem.kernel(S)
        return [
            problem.mean,
            problem.scale,
            *problem.gradient(S, c),
            *problem.normal(S, known),
            kernel,
            problem.pull_back(S, y.astype(problem.dtype)),
            *problem.system(S[:150]),
        ]

    one, two = on_threads(1, everything), on_threads(2, everything)
    assert [a.tobytes() for a in one] == [a.tobytes() for a in two]


def wide_problem(rows=10_000, features=1000):
    rng = np.random.default_rng(0)
    pool = FeatureLaw(4).draw(features, rng)
    return pool, rng.normal(size=(rows, 4)), rng.normal(size=(rows, 1)), np.ones(rows)


@pytest.mark.parametrize(
    ("budget", "home"),
    [
        (1e9, StoredProblem),
        # the features alone would fit, but not together with the solves
        (3000 * 500 * 8, RecomputedProblem),
        (6e6, RecomputedProblem),
    ],
)
def test_the_home_is_chosen_by_memory(budget, home):
    parts = wide_problem(3000, 500)
    problem = make_problem(*parts, largest_support=10, memory_budget=budget)
    assert type(problem) is home


def test_complex_features_need_twice_the_memory():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 1)), np.ones(3000)
    homes = {
        activation: type(
            make_problem(
                FeatureLaw(2, activation=activation).draw(500, rng),
                X,
                y,
                w,
                largest_support=10,
                memory_budget=3000 * 500 * 14,
            )
        )
        for activation in ("sin", "exp")
    }
    assert homes == {"sin": StoredProblem, "exp": RecomputedProblem}


@pytest.mark.parametrize("budget", [1e9, 6e6])
def test_the_chosen_home_has_the_options(budget):
    truth = truth_of(Case(rows=2000, features=600, fit_intercept=False, column_scale="none"))
    problem = make_problem(
        truth.pool,
        truth.X,
        truth.y,
        truth.w,
        largest_support=10,
        memory_budget=budget,
        **truth.options,
    )
    g, _ = problem.gradient(NOTHING, np.empty((0, 1)))
    check_close(g, truth.adjoint @ truth.Y)


@pytest.mark.parametrize(
    ("budget", "size"), [(1000, "1e\\+03 bytes"), (0.5, "0.5 bytes"), (5 * 2**10, "5 KiB")]
)
def test_too_little_memory_is_refused_with_what_to_change(budget, size):
    parts = wide_problem(3000, 500)
    with pytest.raises(MemoryError, match=f"memory_budget is {size}; ") as caught:
        make_problem(*parts, largest_support=77, memory_budget=budget)
    text = str(caught.value)
    assert "(rows=3000, n_components=500, systems of 77 features)" in text
    assert (
        "lower n_nonzero_coefs or n_components, use fewer rows, or use HARFERegressor(init='zero')"
        in text
    )


def test_the_memory_that_a_refusal_names_is_enough():
    pool, X, y, w = wide_problem(3000, 500)
    with pytest.raises(MemoryError, match="needs") as caught:
        make_problem(pool, X, y, w, largest_support=20, memory_budget=1)
    number, unit = str(caught.value).split("needs ")[1].split()[:2]
    named = float(number) * {"KiB": 2**10, "MiB": 2**20}[unit]
    # three digits are printed
    enough = make_problem(pool, X, y, w, largest_support=20, memory_budget=1.01 * named)
    assert type(enough) is RecomputedProblem
    with pytest.raises(MemoryError, match="needs"):
        make_problem(pool, X, y, w, largest_support=20, memory_budget=0.99 * named)


def peak_of(function):
    """Peak memory of NumPy during a call, in bytes."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_recomputed_home_never_holds_the_features():
    parts = wide_problem()
    stored = 10_000 * 1000 * 8
    S = np.arange(0, 1000, 20)

    def use():
        problem = RecomputedProblem(*parts)
        problem.gradient(S, np.ones((50, 1)))
        problem.normal(S)

    assert peak_of(use) < stored / 8
    # the measure is sound: the other home does store them
    assert peak_of(lambda: StoredProblem(*parts)) > stored


def least_budget(pool, X, y, w, s):
    """A budget just above the least that is accepted."""
    budget = 2.0**18
    while True:
        try:
            make_problem(pool, X, y, w, largest_support=s, memory_budget=budget)
            return budget
        except MemoryError:
            budget *= 1.05


def peak_of_pursuit(pool, X, y, s, alpha, budget):
    def fit():
        problem = make_problem(pool, X, y, np.ones(len(X)), largest_support=s, memory_budget=budget)
        assert type(problem) is RecomputedProblem
        hard_ridge_pursuit(problem, n_nonzero_coefs=s, alpha=alpha, max_iter=3)

    return peak_of(fit)


@pytest.mark.parametrize("activation", ["sin", "exp"])
@pytest.mark.parametrize(
    ("rows", "features", "s"), [(6000, 400, 20), (3000, 600, 300), (300, 3000, 600)]
)
def test_a_pursuit_stays_within_the_memory_it_was_given(activation, rows, features, s):
    rng = np.random.default_rng(0)
    pool = FeatureLaw(4, activation=activation).draw(features, rng)
    X, y = rng.normal(size=(rows, 4)), rng.normal(size=(rows, 1))
    budget = least_budget(pool, X, y, np.ones(rows), s)
    assert peak_of_pursuit(pool, X, y, s, 1e-3, budget) <= budget


def test_a_pursuit_on_singular_supports_stays_within_the_memory_it_was_given():
    rng = np.random.default_rng(0)
    half = FeatureLaw(4).draw(300, rng)
    pool = half.take(np.concatenate([np.arange(300), np.arange(300)]))
    X, y = rng.normal(size=(3000, 4)), rng.normal(size=(3000, 1))
    budget = least_budget(pool, X, y, np.ones(3000), 100)
    assert peak_of_pursuit(pool, X, y, 100, 0.0, budget) <= budget
