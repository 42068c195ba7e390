"""The fitted function against its formula, its finite differences and linear functions."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import FORMULAS

from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion
from harfe.solvers.homes import StoredProblem
from harfe.solvers.pursuit import hard_ridge_pursuit

every_activation = pytest.mark.parametrize("activation", FORMULAS)
real_or_complex = pytest.mark.parametrize("complex_output", [False, True])


def names(d):
    return tuple(f"x{j}" for j in range(d))


def some_expansion(
    activation="sin", *, d=4, s=7, targets=2, complex_coef=False, complex_output=False, seed=0
):
    rng = np.random.default_rng(seed)
    orders = (1, min(2, d), min(3, d))
    pool = FeatureLaw(d, orders=orders, activation=activation).draw(s, rng)
    coef, intercept = rng.normal(size=(targets, s)), rng.normal(size=targets)
    if complex_coef:
        coef = coef + 1j * rng.normal(size=coef.shape)
        intercept = intercept + 1j * rng.normal(size=targets)
    return Expansion(pool, coef, intercept, names(d), complex_output)


def expansion_of(activation, indices, values, phases, coef, *, d, intercept=0.0):
    """Expansion by lists: indices and values for each feature, coefficients for each target."""
    coef = np.atleast_2d(np.asarray(coef, dtype=float))
    pool = FeaturePool(d, np.array(indices), np.array(values, float), np.array(phases), activation)
    return Expansion(pool, coef, np.full(len(coef), intercept), names(d))


def formula(expansion, X):
    """Intercept + Σ c φ(<x, w> + b), dense."""
    z = X @ expansion.features.weights().toarray() + expansion.features.phases
    f = expansion.intercept + FORMULAS[expansion.features.activation](z) @ expansion.coef.T
    return f if expansion.complex_output else f.real


# --- Prediction ---


@every_activation
@real_or_complex
@pytest.mark.parametrize("complex_coef", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
def test_prediction_is_the_formula(activation, complex_output, complex_coef, targets):
    expansion = some_expansion(
        activation, targets=targets, complex_coef=complex_coef, complex_output=complex_output
    )
    X = np.random.default_rng(1).normal(size=(50, 4))
    f = expansion.predict(X)
    assert f.shape == (50, targets)
    assert f.dtype == (complex if complex_output else float)
    np.testing.assert_allclose(f, formula(expansion, X), rtol=0, atol=1e-13)


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 4500])
def test_any_number_of_rows(rows):
    expansion = some_expansion()
    X = np.random.default_rng(1).normal(size=(rows, 4))
    f = expansion.predict(X)
    assert f.shape == (rows, 2)
    np.testing.assert_allclose(f, formula(expansion, X), rtol=0, atol=1e-13)
    gradient = expansion.gradient(X)
    assert gradient.shape == (2, rows, 4)
    for part in (slice(0, 1), slice(rows - 1, rows)):
        np.testing.assert_allclose(
            gradient[:, part], expansion.gradient(X[part]), rtol=0, atol=1e-13
        )


@settings(deadline=None, max_examples=60)
@given(
    activation=st.sampled_from(list(FORMULAS)),
    rows=st.integers(0, 30),
    d=st.integers(1, 6),
    s=st.integers(0, 12),
    targets=st.integers(1, 3),
    complex_coef=st.booleans(),
    complex_output=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_shape(activation, rows, d, s, targets, complex_coef, complex_output, seed):
    expansion = some_expansion(
        activation,
        d=d,
        s=s,
        targets=targets,
        complex_coef=complex_coef,
        complex_output=complex_output,
        seed=seed,
    )
    X = np.random.default_rng(seed).normal(size=(rows, d))
    np.testing.assert_allclose(expansion.predict(X), formula(expansion, X), rtol=0, atol=1e-12)
    assert expansion.gradient(X).shape == (targets, rows, d)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_inputs_of_any_type_are_computed_in_double_precision(dtype):
    expansion = some_expansion()
    X = (np.random.default_rng(1).normal(size=(50, 4)) * 5).astype(dtype)
    np.testing.assert_allclose(
        expansion.predict(X), expansion.predict(X.astype(float)), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("order", ["C", "F"])
def test_lists_and_any_layout_are_inputs(order):
    expansion = some_expansion()
    X = np.random.default_rng(1).normal(size=(5, 4))
    expected = expansion.predict(X)
    np.testing.assert_array_equal(expansion.predict(np.array(X, order=order)), expected)
    np.testing.assert_array_equal(expansion.predict(X.tolist()), expected)


@pytest.mark.parametrize("activation", ["sin", "exp"])
@real_or_complex
def test_without_features_it_is_the_intercept(activation, complex_output):
    expansion = some_expansion(activation, s=0, complex_coef=True, complex_output=complex_output)
    X = np.random.default_rng(1).normal(size=(3, 4))
    intercept = expansion.intercept if complex_output else expansion.intercept.real
    np.testing.assert_array_equal(expansion.predict(X), np.tile(intercept, (3, 1)))
    np.testing.assert_array_equal(expansion.gradient(X), np.zeros((2, 3, 4)))
    assert expansion.names() == []


def test_features_without_variables_are_constants():
    expansion = expansion_of("cos", [[-1, -1]], [[0, 0]], [0.5], [[2.0]], d=3, intercept=1.0)
    X = np.random.default_rng(1).normal(size=(3, 3))
    np.testing.assert_allclose(expansion.predict(X), 1 + 2 * np.cos(0.5), rtol=1e-15)
    np.testing.assert_array_equal(expansion.gradient(X), np.zeros((1, 3, 3)))


def test_inputs_that_occur_in_no_feature_do_not_matter():
    d = 10_000
    expansion = expansion_of(
        "sin", [[17, 9000], [9000, -1]], [[0.3, -2.0], [1.5, 0]], [0.1, 0.2], [[1.0, -0.5]], d=d
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, d))
    other = np.full((20, d), np.nan)
    other[:, [17, 9000]] = X[:, [17, 9000]]
    f = expansion.predict(X)
    expected = np.sin(0.3 * X[:, 17] - 2 * X[:, 9000] + 0.1) - 0.5 * np.sin(1.5 * X[:, 9000] + 0.2)
    np.testing.assert_allclose(f[:, 0], expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(expansion.predict(other), f)
    touched = np.flatnonzero(np.any(expansion.gradient(X[:3]) != 0, axis=(0, 1)))
    np.testing.assert_array_equal(touched, [17, 9000])


@pytest.mark.parametrize("activation", ["tanh", "exp"])
@pytest.mark.parametrize("complex_y", [False, True])
def test_it_is_the_function_that_the_pursuit_fitted(activation, complex_y):
    rng = np.random.default_rng(2)
    pool = FeatureLaw(3, activation=activation).draw(60, rng)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)) + 4
    if complex_y:
        y = y + 1j * rng.normal(size=y.shape)
    problem = StoredProblem(pool, X, y, np.ones(40))
    result = hard_ridge_pursuit(problem, n_nonzero_coefs=9, alpha=1e-3)
    coef, intercept = problem.to_raw(result.support, result.scaled_coef)
    expansion = Expansion(pool.take(result.support), coef, intercept, names(3), True)
    residual = (y - expansion.predict(X)) / problem.targets.unit
    _, rss = problem.gradient(result.support, result.scaled_coef)
    np.testing.assert_allclose(np.mean(np.abs(residual) ** 2, axis=0), rss, rtol=1e-10)


# --- Derivatives ---


@every_activation
@real_or_complex
@pytest.mark.parametrize("complex_coef", [False, True])
def test_gradient_is_the_limit_of_differences(activation, complex_output, complex_coef):
    expansion = some_expansion(activation, complex_coef=complex_coef, complex_output=complex_output)
    X = np.random.default_rng(1).normal(size=(60, 4))
    z = X @ expansion.features.weights().toarray() + expansion.features.phases
    X = X[np.abs(z).min(axis=1) > 1e-3]  # away from the kink of relu
    assert len(X) > 40
    gradient = expansion.gradient(X)
    assert gradient.dtype == (complex if complex_output else float)
    h = 1e-5
    for j in range(4):
        step = np.zeros(4)
        step[j] = h
        slope = (expansion.predict(X + step) - expansion.predict(X - step)) / (2 * h)
        # rounding eps/h and curvature h², both about 1e-10
        np.testing.assert_allclose(gradient[:, :, j], slope.T, rtol=0, atol=5e-9)


def test_gradient_by_hand():
    expansion = expansion_of("sin", [[0, 2]], [[2.0, -1.0]], [0.5], [[3.0], [-1.0]], d=3)
    X = np.array([[0.1, 9.0, 0.4]])
    slope = np.cos(0.2 - 0.4 + 0.5)
    expected = np.array([[[6.0, 0, -3.0]], [[-2.0, 0, 1.0]]]) * slope
    np.testing.assert_allclose(expansion.gradient(X), expected, rtol=1e-14)


def test_relu_is_flat_where_it_is_not_active():
    expansion = expansion_of("relu", [[0]], [[2.0]], [0.0], [[3.0]], d=1)
    np.testing.assert_array_equal(expansion.gradient([[-1.0], [1.0]])[0, :, 0], [0.0, 6.0])


# --- A value ---


@pytest.mark.parametrize("activation", ["sin", "exp"])
def test_same_bits_for_any_number_of_threads(activation, on_threads):
    expansion = some_expansion(activation, s=30)
    X = np.random.default_rng(1).normal(size=(9000, 4))

    def everything():
        return [part.tobytes() for part in (expansion.predict(X), expansion.gradient(X))]

    assert on_threads(1, everything) == on_threads(2, everything)


def test_names_are_readable():
    expansion = expansion_of(
        "sin",
        [[0, 2], [1, -1], [-1, -1], [0, 1]],
        [[0.314, -1.2], [-2.0, 0], [0, 0], [1e-5, 12345.0]],
        [0.5, 0.0, -0.25, 1.0],
        [[1.0] * 4],
        d=3,
    )
    named = dataclasses.replace(expansion, columns=("age", "bmi", "s p"))
    assert named.names() == [
        "sin(0.31*age - 1.20*s p + 0.50)",
        "sin(-2.00*bmi)",
        "sin(-0.25)",
        "sin(1.00e-05*age + 1.23e+04*bmi + 1.00)",
    ]
    assert expansion.names()[1] == "sin(-2.00*x1)"


def test_the_name_of_a_complex_feature():
    expansion = expansion_of("exp", [[0]], [[1.5]], [0.25], [[1.0]], d=1)
    assert expansion.names() == ["exp(i*(1.50*x0 + 0.25))"]


@pytest.mark.parametrize("activation", ["relu", "exp"])
def test_a_pickle_is_the_same_function(activation):
    expansion = some_expansion(activation, complex_coef=True, complex_output=True)
    copy = pickle.loads(pickle.dumps(expansion))
    X = np.random.default_rng(1).normal(size=(50, 4))
    np.testing.assert_array_equal(copy.predict(X), expansion.predict(X))
    np.testing.assert_array_equal(copy.gradient(X), expansion.gradient(X))
    assert copy.names() == expansion.names()


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Expansion)])
def test_it_cannot_be_changed(name):
    expansion = some_expansion()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(expansion, name, None)
