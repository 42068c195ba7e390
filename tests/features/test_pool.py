"""Features as a value against their dense twins in plain NumPy."""

from dataclasses import FrozenInstanceError

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import FORMULAS

from harfe.features.activations import ACTIVATIONS
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool, Rows
from harfe.features.units import InputUnits, measure_units


def make_pool(n=40, d=6, orders=(1, 3), activation="sin", seed=0, **law):
    law = FeatureLaw(d, orders, activation=activation, **law)
    return law.draw(n, np.random.default_rng(seed))


def dense(pool):
    """The paper's W, by a loop over its entries."""
    W = np.zeros((pool.n_variables, len(pool)))
    for j in range(len(pool)):
        for k, value in zip(pool.indices[j], pool.values[j], strict=True):
            if k >= 0:
                W[k, j] += value
    return W


def inputs(rows=30, d=6, seed=1):
    return np.random.default_rng(seed).uniform(-2, 2, (rows, d))


@pytest.fixture
def _restore_threads():
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


def test_present_is_neither_padding_nor_a_weight_of_zero():
    indices, values = np.array([[0, 2], [1, -1], [0, 1]]), np.array([[1.0, 0.0], [2.0, 0], [0, 3]])
    pool = FeaturePool(3, indices, values, np.zeros(3))
    np.testing.assert_array_equal(pool.present, [[True, False], [True, False], [False, True]])


# --- Evaluation ---


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_evaluate_is_the_activation_of_x_w_plus_b(activation):
    pool, X = make_pool(activation=activation), inputs()
    A = pool.evaluate(X)
    assert A.dtype == (complex if activation == "exp" else float)
    truth = FORMULAS[activation](X @ dense(pool) + pool.phases)
    np.testing.assert_allclose(A, truth, rtol=0, atol=5e-15)


@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 300])
@pytest.mark.parametrize("rows", [0, 1, 513])
def test_blocks_of_features_and_rows(n, rows):
    pool, X = make_pool(n), inputs(rows)
    A = pool.evaluate(X)
    assert A.shape == (rows, n)
    np.testing.assert_allclose(A, np.sin(X @ dense(pool) + pool.phases), rtol=0, atol=5e-15)


@pytest.mark.parametrize(
    ("activation", "dtype", "result"),
    [
        ("sin", np.float32, np.float32),
        ("sin", np.float64, np.float64),
        ("exp", np.float32, np.complex64),
        ("exp", np.float64, np.complex128),
    ],
)
def test_result_types(activation, dtype, result):
    pool, X = make_pool(activation=activation), inputs().astype(dtype)
    assert pool.result_type(dtype) == result
    A = pool.evaluate(X, dtype)
    assert A.dtype == result
    truth = FORMULAS[activation](X.astype(float) @ dense(pool) + pool.phases)
    np.testing.assert_allclose(A, truth, rtol=0, atol=10 * np.finfo(dtype).eps)


def test_features_are_stored_one_after_the_other():
    assert make_pool().evaluate(inputs()).T.flags.c_contiguous


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
        lambda X: X.tolist(),
    ],
    ids=["fortran", "every second row", "columns backwards", "lists"],
)
def test_the_layout_of_x_plays_no_part(layout):
    pool, X = make_pool(), inputs()
    np.testing.assert_array_equal(pool.evaluate(layout(X)), pool.evaluate(X))


def test_read_only_inputs():
    pool, X = make_pool(), inputs()
    expected = pool.evaluate(X)
    X.flags.writeable = False
    np.testing.assert_array_equal(pool.evaluate(X), expected)


def test_whole_numbers_as_inputs():
    pool, X = make_pool(), np.arange(-12, 12).reshape(4, 6)
    np.testing.assert_array_equal(pool.evaluate(X), pool.evaluate(X.astype(float)))


def test_huge_inputs_stay_features():
    X = np.full((1, 6), 1e300)
    z = X @ dense(pool := make_pool(orders=(1,), bias="none"))
    np.testing.assert_allclose(pool.evaluate(X), np.sin(z), rtol=0, atol=4e-16)


@pytest.mark.usefixtures("_restore_threads")
@pytest.mark.parametrize("activation", ["sin", "relu", "exp"])
def test_the_number_of_threads_does_not_change_a_bit(activation):
    pool, X = make_pool(700, activation=activation), inputs(600)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    everyone = pool.evaluate(X)
    numba.set_num_threads(1)
    np.testing.assert_array_equal(pool.evaluate(X), everyone)


def test_rows_are_laid_out_by_variable():
    X = np.array([[1.0, -7.0], [-3.0, 2.0], [2.0, 0.0]])
    rows = Rows.of(X)
    np.testing.assert_array_equal(rows.transposed, X.T)
    np.testing.assert_array_equal(rows.largest, [3.0, 7.0])
    assert rows.transposed.flags.c_contiguous
    assert rows.n_rows == 3


def test_rows_of_nothing():
    rows = Rows.of(np.empty((0, 2), np.float32))
    assert rows.n_rows == 0
    np.testing.assert_array_equal(rows.largest, [0.0, 0.0])
    assert rows.largest.dtype == np.float64


@pytest.mark.parametrize("activation", ["cos", "exp"])
def test_write_takes_rows_from_an_offset(activation):
    pool, X = make_pool(5, activation=activation), inputs(10)
    out = np.empty((5, 4), pool.result_type(float))
    pool.write(Rows.of(X), 3, out)
    np.testing.assert_array_equal(out.T, pool.evaluate(X)[3:7])


# --- Choosing, folding ---


@pytest.mark.parametrize(
    "chosen", [np.array([7, 0, 0, 31]), slice(5, 30, 4), np.array([], dtype=np.intp)]
)
@pytest.mark.parametrize("activation", ["tanh", "exp"])
def test_take_chooses_columns(chosen, activation):
    pool, X = make_pool(activation=activation), inputs()
    part = pool.take(chosen)
    assert part.activation == activation
    assert len(part) == part.evaluate(X).shape[1]
    np.testing.assert_array_equal(part.evaluate(X), pool.evaluate(X)[:, chosen])
    for array in (part.indices, part.values, part.phases):
        assert array.flags.c_contiguous


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", ["standard", "robust", "none"])
def test_folded_features_are_the_same_functions(activation, kind):
    X = inputs(50) * [1, 10, 1e-3, 1e6, 1, 5] + [0, 5, 1, -1e6, 3, 0]
    units = measure_units(X, np.ones(50), kind)
    pool = make_pool(activation=activation)
    folded = pool.in_user_units(units)
    assert folded.activation == activation
    expected = pool.evaluate((X - units.centre) / units.spread)
    # "none" leaves arguments of 1e6, whose rounding is 1e-10
    atol = 1e-9 if kind == "none" else 1e-12
    np.testing.assert_allclose(folded.evaluate(X), expected, rtol=1e-12, atol=atol)


def test_folding_by_hand():
    pool = FeaturePool(
        3,
        np.array([[0, 2], [1, -1]], dtype=np.intp),
        np.array([[2.0, 3.0], [5.0, 0.0]]),
        np.array([0.5, 1.0]),
    )
    units = InputUnits(np.array([10.0, 20.0, 30.0]), np.array([4.0, 0.5, 6.0]))
    folded = pool.in_user_units(units)
    np.testing.assert_array_equal(folded.indices, pool.indices)
    np.testing.assert_array_equal(folded.values, [[0.5, 0.5], [10.0, 0.0]])
    np.testing.assert_array_equal(folded.phases, [0.5 - 2 * 2.5 - 3 * 5, 1 - 5 * 40])


def test_folding_into_the_users_units_changes_nothing():
    pool = make_pool()
    folded = pool.in_user_units(InputUnits(np.zeros(6), np.ones(6)))
    np.testing.assert_array_equal(folded.values, pool.values)
    np.testing.assert_array_equal(folded.phases, pool.phases)


@pytest.mark.parametrize("last", [False, True])  # the last column is where padding points to
def test_a_constant_column_gets_weight_zero(last):
    X = inputs(20)
    constant = 5 if last else 2
    X[:, constant] = 1e7
    units = measure_units(X, np.ones(20), "standard")
    assert units.spread[constant] == np.inf
    pool = make_pool()
    folded = pool.in_user_units(units)
    drew_it = pool.indices == constant
    assert drew_it.any()
    assert np.all(folded.values[drew_it] == 0)
    assert np.all(folded.values[(pool.indices >= 0) & ~drew_it] != 0)
    others = np.delete(np.arange(6), constant)
    W = dense(pool)[others]
    z = (X[:, others] - units.centre[others]) / units.spread[others] @ W + pool.phases
    np.testing.assert_allclose(folded.evaluate(X), np.sin(z), rtol=0, atol=1e-13)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_folding_of_extreme_units(size):
    X = inputs(20) * size
    units = measure_units(X, np.ones(20), "standard")
    pool = make_pool()
    expected = pool.evaluate((X - units.centre) / units.spread)
    np.testing.assert_allclose(pool.in_user_units(units).evaluate(X), expected, rtol=0, atol=1e-13)


@given(seed=st.integers(0, 10**6), shift=st.floats(-100, 100), factor=st.floats(0.01, 100))
@settings(deadline=None, max_examples=25)
def test_folding_twice_is_folding_once(seed, shift, factor):
    pool, X = make_pool(5, seed=seed), inputs(4, seed=seed)
    inner = InputUnits(np.full(6, shift), np.full(6, factor))
    outer = InputUnits(np.full(6, 1.0), np.full(6, 2.0))
    # x -> (x - 1) / 2 -> (. - shift) / factor
    both = InputUnits(np.full(6, 1 + 2 * shift), np.full(6, 2 * factor))
    np.testing.assert_allclose(
        pool.in_user_units(inner).in_user_units(outer).evaluate(X),
        pool.in_user_units(both).evaluate(X),
        rtol=0,
        atol=1e-9,  # arguments up to 1e5, rounded to 1e-11
    )


# --- The sparse W ---


@pytest.mark.parametrize("orders", [(1,), (2,), (1, 3, 2), (6,)])
def test_weights_are_the_dense_matrix(orders):
    pool = make_pool(orders=orders)
    W = pool.weights()
    assert isinstance(W, sp.csc_array)
    assert W.shape == (6, 40)
    np.testing.assert_array_equal(W.toarray(), dense(pool))
    assert W.nnz == sum(orders[j % len(orders)] for j in range(40))
    assert W.has_canonical_format


def test_weights_of_an_empty_pool():
    assert make_pool(0).weights().shape == (6, 0)


# --- Names ---


def name(values, phase, activation="sin", indices=None, columns=("age", "bmi", "bp")):
    indices = np.arange(len(values)) if indices is None else indices
    pool = FeaturePool(
        len(columns),
        np.array([indices], dtype=np.intp),
        np.array([values], dtype=float),
        np.array([phase], dtype=float),
        activation,
    )
    (text,) = pool.names(columns)
    return text


@pytest.mark.parametrize(
    ("values", "phase", "text"),
    [
        ([0.31, -1.2], 0.5, "sin(0.31*age - 1.20*bmi + 0.50)"),
        ([-0.31, 1.2], -0.5, "sin(-0.31*age + 1.20*bmi - 0.50)"),
        ([0.31], 0.0, "sin(0.31*age)"),
        ([0.31], -0.0, "sin(0.31*age)"),
        ([1.0, 2.0, -3.0], 6.283, "sin(1.00*age + 2.00*bmi - 3.00*bp + 6.28)"),
        ([0.0, -2.0], 1.0, "sin(-2.00*bmi + 1.00)"),
        ([0.0, 0.0], 0.25, "sin(0.25)"),
        ([0.0, 0.0], -0.25, "sin(-0.25)"),
        ([0.0, 0.0], 0.0, "sin(0.00)"),
        ([0.00999, 0.01], 0.0, "sin(9.99e-03*age + 0.01*bmi)"),
        ([1e-300, -1e300], -1e-7, "sin(1.00e-300*age - 1.00e+300*bmi - 1.00e-07)"),
        ([9999.0, 10000.0], 12345.678, "sin(9999.00*age + 1.00e+04*bmi + 1.23e+04)"),
    ],
)
def test_names(values, phase, text):
    assert name(values, phase) == text


@pytest.mark.parametrize("activation", sorted(set(ACTIVATIONS) - {"exp"}))
def test_names_begin_with_the_activation(activation):
    assert name([2.0], -1.0, activation) == f"{activation}(2.00*age - 1.00)"


def test_complex_features_are_named_by_their_exponent():
    assert name([0.31, -1.2], 0.5, "exp") == "exp(i*(0.31*age - 1.20*bmi + 0.50))"


def test_names_skip_padding():
    assert name([2.0, 0.0], 0.0, indices=[1, -1]) == "sin(2.00*bmi)"


def test_names_of_a_pool_are_in_its_order():
    pool = make_pool(4, orders=(1,))
    columns = list("abcdef")
    names = pool.names(columns)
    assert len(names) == 4
    for text, k in zip(names, pool.indices[:, 0], strict=True):
        assert f"*{columns[k]}" in text


# --- A value ---


def test_a_pool_is_frozen_and_knows_its_size():
    pool = make_pool(7)
    assert len(pool) == 7
    assert not pool.is_complex
    assert make_pool(activation="exp").is_complex
    with pytest.raises(FrozenInstanceError):
        pool.phases = np.zeros(7)
