"""The compiled loops against plain NumPy and the math module.

Sizes are small: what is marked as compiled also runs with NUMBA_DISABLE_JIT=1, to measure branch
coverage.
"""

import math

import numpy as np
import pytest
from shared import FORMULAS

from harfe.features import kernels
from harfe.features.activations import CODES
from harfe.features.kernels import LARGEST_FAST_ARGUMENT

pytestmark = pytest.mark.compiled

TRUTH = {
    **{name: formula for name, formula in FORMULAS.items() if name != "exp"},
    "tanh_slope": lambda z: 1 / np.cosh(z) ** 2,
    "sigmoid_slope": lambda z: 1 / (2 * np.cosh(z / 2)) ** 2,
    "step": lambda z: np.where(z > 0, 1.0, 0.0),
}


def one_feature(z):
    """The arguments of a loop for the single feature φ(1·x + 0), so that φ sees z unrounded."""
    XT = np.array(z, dtype=float)[None]
    return XT, np.abs(XT).max(axis=1), np.zeros((1, 1), np.intp), np.ones((1, 1)), np.zeros(1)


def apply(name, z):
    out = np.full((1, len(z)), np.nan)
    kernels.features(*one_feature(z), CODES[name], 0, out)
    return out[0]


def random_problem(rng, d=4, N=3, q=2, rows=7):
    """X, its layout for the loops, and the dense weights (d, N) and phases."""
    X = rng.uniform(-2, 2, (rows, d))
    indices = np.array([np.sort(rng.choice(d, q, replace=False)) for _ in range(N)], dtype=np.intp)
    values = rng.standard_normal((N, q))
    phases = rng.uniform(0, 6, N)
    W = np.zeros((d, N))
    for j in range(N):
        W[indices[j], j] = values[j]
    XT = np.ascontiguousarray(X.T)
    return X, (XT, np.abs(XT).max(axis=1), indices, values, phases), W, phases


# --- Activations ---


def test_the_table_of_truths_is_complete():
    assert set(TRUTH) == set(CODES)
    assert sorted(CODES.values()) == list(range(len(CODES)))


@pytest.mark.parametrize("name", CODES)
def test_activation_against_numpy(name):
    z = np.concatenate([np.linspace(-30, 30, 121), [1e-300, -1e-300, 1e-9, -1e-9, 0.5]])
    np.testing.assert_allclose(apply(name, z), TRUTH[name](z), rtol=0, atol=4e-16)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "tanh_slope", "sigmoid_slope"])
def test_saturated_activations_reach_their_limits(name):
    low, high = {"tanh": (-1, 1), "sigmoid": (0, 1)}.get(name, (0, 0))
    np.testing.assert_array_equal(
        apply(name, [-1e300, -800.0, 800.0, 1e300]), [low] * 2 + [high] * 2
    )


def test_relu_and_step_at_and_around_zero():
    z = [-5e-324, -0.0, 0.0, 5e-324]
    np.testing.assert_array_equal(apply("relu", z), [0, 0, 0, 5e-324])
    np.testing.assert_array_equal(apply("step", z), [0, 0, 0, 1])


def _arguments(kind):
    rng = np.random.default_rng(8)
    sizes = {"small": 10.0, "medium": 1e3, "up to the boundary": LARGEST_FAST_ARGUMENT}
    if kind in sizes:
        return rng.uniform(-sizes[kind], sizes[kind], 200)
    if kind == "multiples of pi":
        k = np.concatenate([np.arange(-20, 21), rng.integers(-31830, 31831, 60)])
        return k * math.pi
    if kind == "odd multiples of pi/2":
        k = np.concatenate([np.arange(-20, 21), rng.integers(-31830, 31830, 60)])
        return (k + 0.5) * math.pi
    if kind == "quarter turns and their neighbours":  # where the reduction changes its multiple
        middle = (rng.integers(-60000, 60001, 40) * 0.5 + 0.25) * math.pi
        return np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, 1e6)])
    if kind == "tiny":
        return np.array([5e-324, -5e-324, 1e-310, 1e-200, -1e-20, 1e-8, 0.0])
    if kind == "exactly at the boundary":
        b = LARGEST_FAST_ARGUMENT
        return np.array([b, -b, np.nextafter(b, 0), 99999.5, -1.0, 0.0])
    if kind == "just beyond the boundary":
        b = LARGEST_FAST_ARGUMENT
        return np.array([np.nextafter(b, np.inf), -b, b + 1, 0.5, -1e-9])
    assert kind == "beyond"
    return np.concatenate([10.0 ** np.arange(5.5, 300, 13), [-1e300, 1.7e308, 3.0, -0.25]])


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize(
    "kind",
    [
        "small",
        "medium",
        "up to the boundary",
        "multiples of pi",
        "odd multiples of pi/2",
        "quarter turns and their neighbours",
        "tiny",
        "exactly at the boundary",
        "just beyond the boundary",
        "beyond",
    ],
)
def test_sine_and_cosine_against_libm(name, kind):
    z = _arguments(kind)
    truth = [getattr(math, name)(v) for v in z]
    np.testing.assert_allclose(apply(name, z), truth, rtol=0, atol=4e-16)


def test_sine_near_its_zeros_keeps_relative_precision():
    # sin(fl(k·pi)) is the rounding of k·pi itself, about 1e-16·k: only an exact reduction finds it
    z = np.concatenate([np.arange(1, 40), [355, 1000, 31830]]) * math.pi
    np.testing.assert_allclose(apply("sin", z), [math.sin(v) for v in z], rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_one_huge_row_moves_the_others_by_rounding_only(name):
    z = np.linspace(-7, 7, 30)
    mixed = apply(name, np.append(z, 1e300))
    np.testing.assert_allclose(mixed[:-1], apply(name, z), rtol=0, atol=4e-16)
    assert mixed[-1] == pytest.approx(getattr(math, name)(1e300), abs=4e-16)


@pytest.mark.parametrize("through", ["weight", "phase", "sum"])
def test_weight_and_phase_count_for_the_bound(through):
    # x alone is small; 2^60 is beyond what the fast reduction can do even with fused arithmetic
    XT = np.array([[0.5, 1.0], [1.0, -1.0]])
    values = {"weight": [2.0**60, 0.0], "phase": [512.0, 0.0], "sum": [9e4, -9e4]}[through]
    phase = {"weight": 0.0, "phase": -(2.0**60), "sum": 0.0}[through]
    out = np.empty((1, 2))
    kernels.features(
        XT,
        np.abs(XT).max(axis=1),
        np.array([[0, 1]], dtype=np.intp),
        np.array([values]),
        np.array([phase]),
        CODES["sin"],
        0,
        out,
    )
    z = [phase + values[0] * a + values[1] * b for a, b in XT.T]
    np.testing.assert_allclose(out[0], [math.sin(v) for v in z], rtol=0, atol=4e-16)


@pytest.mark.parametrize(
    ("function", "slope"),
    [("tanh", "tanh_slope"), ("sigmoid", "sigmoid_slope"), ("relu", "step"), ("sin", "cos")],
)
def test_slopes_by_finite_differences(function, slope):
    z = np.linspace(-6.03, 5.98, 60)  # keeps clear of relu's kink
    h = 1e-5
    difference = (apply(function, z + h) - apply(function, z - h)) / (2 * h)
    # h²/6 · max|φ'''| <= 3.4e-11 and rounding of 6.0 by 4.4e-16 / h
    np.testing.assert_allclose(apply(slope, z), difference, rtol=0, atol=2e-10)


# --- Features ---


@pytest.mark.parametrize("name", CODES)
def test_features_against_dense(name):
    X, arguments, W, b = random_problem(np.random.default_rng(1), d=5, N=6, q=3, rows=9)
    out = np.full((6, 9), np.nan)
    kernels.features(*arguments, CODES[name], 0, out)
    np.testing.assert_allclose(out.T, TRUTH[name](X @ W + b), rtol=0, atol=4e-15)


@pytest.mark.parametrize("q", [1, 2, 4])
def test_complex_features_against_dense(q):
    X, arguments, W, b = random_problem(np.random.default_rng(2), q=q)
    out = np.full((3, 7), np.nan, dtype=complex)
    kernels.complex_features(*arguments, 0, out)
    np.testing.assert_allclose(out.T, np.exp(1j * (X @ W + b)), rtol=0, atol=4e-15)


@pytest.mark.parametrize("size", [1e300, LARGEST_FAST_ARGUMENT])
def test_complex_features_of_large_arguments(size):
    z = [size, -size, 1.0]
    out = np.empty((1, 3), dtype=complex)
    kernels.complex_features(*one_feature(z), 0, out)
    truth = [complex(math.cos(v), math.sin(v)) for v in z]
    np.testing.assert_allclose(out[0], truth, rtol=0, atol=6e-16)


@pytest.mark.parametrize("name", ["sin", "sigmoid"])
def test_single_precision_output_is_the_rounded_double(name):
    _, arguments, _, _ = random_problem(np.random.default_rng(3))
    double, single = np.empty((3, 7)), np.empty((3, 7), np.float32)
    kernels.features(*arguments, CODES[name], 0, double)
    kernels.features(*arguments, CODES[name], 0, single)
    np.testing.assert_array_equal(single, double.astype(np.float32))


def test_single_precision_complex_output_is_the_rounded_double():
    _, arguments, _, _ = random_problem(np.random.default_rng(4))
    double, single = np.empty((3, 7), complex), np.empty((3, 7), np.complex64)
    kernels.complex_features(*arguments, 0, double)
    kernels.complex_features(*arguments, 0, single)
    np.testing.assert_array_equal(single, double.astype(np.complex64))


def test_single_precision_inputs_are_computed_in_double():
    _, (XT, largest, *rest), W, b = random_problem(np.random.default_rng(5))
    out = np.empty((3, 7))
    kernels.features(XT.astype(np.float32), largest, *rest, CODES["sin"], 0, out)
    truth = np.sin(XT.astype(np.float32).astype(float).T @ W + b)
    np.testing.assert_allclose(out.T, truth, rtol=0, atol=4e-15)


@pytest.mark.parametrize("is_complex", [False, True])
def test_padding_adds_nothing(is_complex):
    rng = np.random.default_rng(6)
    _, (XT, _, indices, values, phases), _, _ = random_problem(rng)
    XT[-1] = 1e200  # what index -1 would reach
    largest = np.abs(XT).max(axis=1)
    indices = indices % 3
    padded = (
        np.pad(indices, ((0, 0), (0, 2)), constant_values=-1),
        np.pad(values, ((0, 0), (0, 2))),
    )
    results = []
    for where, what in [(indices, values), padded]:
        out = np.empty((3, 7), complex if is_complex else float)
        if is_complex:
            kernels.complex_features(XT, largest, where, what, phases, 0, out)
        else:
            kernels.features(XT, largest, where, what, phases, CODES["sin"], 0, out)
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    z = phases + np.sum(values * XT.T[:, indices], axis=2)
    truth = np.exp(1j * z) if is_complex else np.sin(z)
    np.testing.assert_allclose(results[1].T, truth, rtol=0, atol=4e-15)


def test_a_feature_of_padding_alone_is_its_phase():
    XT = np.array([[1.0, 2.0, 3.0]])
    out = np.empty((1, 3))
    nothing = np.array([[-1, -1]], dtype=np.intp), np.zeros((1, 2)), np.array([0.7])
    kernels.features(XT, np.array([3.0]), *nothing, CODES["cos"], 0, out)
    np.testing.assert_allclose(out, math.cos(0.7), rtol=0, atol=2e-16)


@pytest.mark.parametrize(("start", "rows"), [(0, 7), (0, 3), (2, 4), (6, 1), (7, 0)])
@pytest.mark.parametrize("is_complex", [False, True])
def test_row_offsets(start, rows, is_complex):
    X, arguments, W, b = random_problem(np.random.default_rng(7))
    z = (X @ W + b)[start : start + rows]
    if is_complex:
        out = np.full((3, rows), np.nan, complex)
        kernels.complex_features(*arguments, start, out)
        truth = np.exp(1j * z)
    else:
        out = np.full((3, rows), np.nan)
        kernels.features(*arguments, CODES["sin"], start, out)
        truth = np.sin(z)
    np.testing.assert_allclose(out.T, truth, rtol=0, atol=4e-15)


@pytest.mark.parametrize("rows", [511, 512, 513, 1025])
def test_block_boundaries_of_features(rows):
    z = np.random.default_rng(9).uniform(-50, 50, rows + 3)
    out = np.full((1, rows), np.nan)
    kernels.features(*one_feature(z), CODES["sin"], 3, out)
    np.testing.assert_allclose(out[0], np.sin(z[3:]), rtol=0, atol=4e-16)


@pytest.mark.parametrize("rows", [512, 513])
def test_block_boundaries_of_complex_features(rows):
    z = np.random.default_rng(10).uniform(-50, 50, rows + 3)
    out = np.full((1, rows), np.nan, complex)
    kernels.complex_features(*one_feature(z), 3, out)
    np.testing.assert_allclose(out[0], np.exp(1j * z[3:]), rtol=0, atol=6e-16)


@pytest.mark.parametrize("rows", [511, 512, 513, 1025])
def test_block_boundaries_of_prediction(rows):
    z = np.random.default_rng(11).uniform(-50, 50, rows)
    out = np.zeros((1, rows))
    kernels.predict(*one_feature(z), CODES["sin"], np.array([[3.0]]), out)
    np.testing.assert_allclose(out[0], 3 * np.sin(z), rtol=0, atol=2e-15)


# --- Moments and scaling ---


def sample(is_complex, rng, shape=(3, 20)):
    block = rng.standard_normal(shape)
    return block + 1j * rng.standard_normal(shape) if is_complex else block


def run_moments(block, weights):
    mean = np.full(len(block), np.nan, np.result_type(block.dtype, np.float64))
    squares = np.full(len(block), np.nan)
    kernels.moments(block, weights, mean, squares)
    return mean, squares


@pytest.mark.parametrize("is_complex", [False, True])
def test_weighted_moments(is_complex):
    rng = np.random.default_rng(12)
    block, weights = sample(is_complex, rng), rng.uniform(0.1, 3, 20)
    mean, squares = run_moments(block, weights)
    true_mean = block @ weights / weights.sum()
    np.testing.assert_allclose(mean, true_mean, rtol=0, atol=1e-15)
    gaps = np.abs(block - true_mean[:, None]) ** 2
    np.testing.assert_allclose(squares, gaps @ weights, rtol=1e-14)


def test_moments_by_hand():
    block = np.array([[1.0, 2.0, 4.0], [5.0, 5.0, 5.0]])
    mean, squares = run_moments(block, np.array([1.0, 1.0, 2.0]))
    np.testing.assert_array_equal(mean, [2.75, 5.0])
    np.testing.assert_array_equal(squares, [1.75**2 + 0.75**2 + 2 * 1.25**2, 0.0])


@pytest.mark.parametrize("is_complex", [False, True])
def test_a_weight_of_two_is_the_row_twice(is_complex):
    block = sample(is_complex, np.random.default_rng(13))
    times = np.arange(20) % 3
    mean, squares = run_moments(block, times.astype(float))
    again = run_moments(np.repeat(block, times, axis=1), np.ones(times.sum()))
    np.testing.assert_allclose(mean, again[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(squares, again[1], rtol=1e-14)


@pytest.mark.parametrize("offset", [1e8, 1e8 + 3e8j])
def test_moments_in_spite_of_a_huge_offset(offset):
    # offset and integer steps are exact in double; one pass would lose all of 1.0 in 1e16
    steps = np.arange(64.0) % 7
    squares = run_moments((offset + steps)[None], np.ones(64))[1]
    truth = np.sum(steps**2) - np.sum(steps) ** 2 / 64
    np.testing.assert_allclose(squares, truth, rtol=1e-11)


def test_moments_of_single_precision_are_summed_in_double():
    block = np.random.default_rng(14).uniform(1000, 1001, (2, 50)).astype(np.float32)
    mean, squares = run_moments(block, np.ones(50))
    double = block.astype(float)
    np.testing.assert_allclose(mean, double.mean(axis=1), rtol=1e-15)
    np.testing.assert_allclose(squares, double.var(axis=1) * 50, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
def test_standardise_in_place(dtype):
    rng = np.random.default_rng(15)
    block = sample(dtype == np.complex128, rng).astype(dtype)
    mean = sample(dtype == np.complex128, rng, (3,))
    scale, root = rng.uniform(0.5, 2, 3), rng.uniform(0.5, 2, 20)
    truth = (block - mean[:, None]) / scale[:, None] * root
    kernels.standardise(block, mean, 1 / scale, root)
    tolerance = 1e-6 if dtype == np.float32 else 4e-15
    np.testing.assert_allclose(block, truth, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("is_complex", [False, True])
def test_standardised_features_have_mean_zero_and_unit_square(is_complex):
    rng = np.random.default_rng(16)
    block, weights = 5 + sample(is_complex, rng), rng.uniform(0.1, 3, 20)
    mean, squares = run_moments(block, weights)
    kernels.standardise(block, mean, 1 / np.sqrt(squares), np.sqrt(weights))
    # A mean near 5 is known to a few roundings, and its error adds up over the rows.
    rounding = 5 * np.finfo(float).eps * weights.sum() / np.sqrt(squares.min())
    np.testing.assert_allclose(block @ np.sqrt(weights), 0, atol=4 * rounding)
    np.testing.assert_allclose(np.sum(np.abs(block) ** 2, axis=1), 1, rtol=1e-13)


# --- Prediction ---


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("name", ["sin", "cos", "tanh", "sigmoid", "relu"])
def test_prediction_is_coefficients_times_features(name, targets):
    rng = np.random.default_rng(17)
    X, arguments, W, b = random_problem(rng, N=5)
    coef = rng.standard_normal((targets, 5))
    out = np.zeros((targets, 7))
    kernels.predict(*arguments, CODES[name], coef, out)
    np.testing.assert_allclose(out, coef @ TRUTH[name](X @ W + b).T, rtol=0, atol=1e-14)


def test_prediction_adds_to_what_is_there():
    _, arguments, _, _ = random_problem(np.random.default_rng(18))
    coef = np.array([[1.0, -2.0, 0.5]])
    zero, intercept = np.zeros((1, 7)), np.full((1, 7), 4.0)
    kernels.predict(*arguments, CODES["sin"], coef, zero)
    kernels.predict(*arguments, CODES["sin"], coef, intercept)
    assert np.ptp(zero) > 0.1
    np.testing.assert_allclose(intercept, zero + 4, rtol=0, atol=4e-15)


def test_prediction_of_huge_arguments_uses_libm():
    z = [1e300, 2.5, -1e7]
    out = np.zeros((1, 3))
    kernels.predict(*one_feature(z), CODES["cos"], np.array([[2.0]]), out)
    np.testing.assert_allclose(out[0], [2 * math.cos(v) for v in z], rtol=0, atol=8e-16)
