"""The paper's error measures, against values computed by hand and against their properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harfe.metrics import mean_squared_error, relative_error, relative_residual

ALL = [relative_error, mean_squared_error, relative_residual]
RELATIVE = [relative_error, relative_residual]
moderate = st.floats(-100, 100).filter(lambda v: v == 0 or abs(v) > 1e-3)
vectors = arrays(np.float64, (4, 2), elements=moderate)


@pytest.mark.parametrize("measure", RELATIVE)
def test_relative_measures_by_hand(measure):
    # error (0, 0, 3), truth (2, 1, 2): sqrt(9 / 9)
    assert measure([2, 1, 2], [2, 1, 5]) == 1.0
    assert measure([3.0, 4.0], [3.0, 3.0]) == pytest.approx(1 / 5, rel=1e-15)


def test_mean_squared_error_by_hand():
    assert mean_squared_error([1, 2, 3], [1, 0, 6]) == pytest.approx(13 / 3, rel=1e-15)


@pytest.mark.parametrize("measure", RELATIVE)
def test_relative_measures_take_the_modulus_of_complex_numbers(measure):
    # |3 - 4i - 0|² = 25 over |3 - 4i|² + |12i|² = 169; squares without modulus would be negative
    assert measure([3 - 4j, 12j], [0, 12j]) == pytest.approx(5 / 13, rel=1e-15)


def test_mean_squared_error_takes_the_modulus_of_complex_numbers():
    assert mean_squared_error([1 + 1j, 2], [1, 2j]) == pytest.approx((1 + 8) / 2, rel=1e-15)


def test_real_truth_and_complex_prediction_keep_the_imaginary_part():
    assert mean_squared_error([1.0, 1.0], [1 + 2j, 1]) == 2.0


def test_several_outputs_are_summed():
    truth, prediction = [[0, 4], [3, 0]], [[1, 4], [3, 2]]
    assert mean_squared_error(truth, prediction) == pytest.approx((1 + 4) / 2)
    assert relative_error(truth, prediction) == pytest.approx(math.sqrt(5 / 25))


@pytest.mark.parametrize("measure", ALL)
def test_zero_error_is_zero(measure):
    assert measure([1.5, -2.0], [1.5, -2.0]) == 0.0


@pytest.mark.parametrize("measure", RELATIVE)
def test_zero_truth(measure):
    assert measure([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert measure([0.0, 0.0], [0.0, 1e-300]) == math.inf
    assert math.isnan(measure([0.0, 0.0], [0.0, math.nan]))


@pytest.mark.parametrize("measure", ALL)
def test_nan_stays_visible(measure):
    assert math.isnan(measure([1.0, math.nan], [1.0, 1.0]))


@pytest.mark.parametrize("measure", ALL)
def test_an_infinite_prediction_is_infinitely_wrong(measure):
    assert measure([1.0, 2.0], [1.0, math.inf]) == math.inf


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_relative_error_survives_sizes_whose_squares_do_not_exist(size):
    assert relative_error([3 * size, 4 * size], [3 * size, 3 * size]) == pytest.approx(0.2)


def test_unsigned_and_boolean_numbers_do_not_wrap_around():
    assert mean_squared_error(np.array([0], dtype=np.uint8), np.array([1], dtype=np.uint8)) == 1.0
    assert mean_squared_error([True, False], [False, False]) == 0.5


def test_single_precision_is_compared_in_double():
    truth = np.full(3, 1, dtype=np.float32)
    assert mean_squared_error(truth, truth + 1e-12) == pytest.approx(1e-24, rel=1e-3)


@settings(deadline=None, max_examples=40)
@given(vectors, vectors, st.lists(st.integers(0, 3), min_size=4, max_size=4).filter(any))
def test_whole_weights_are_repeated_rows(truth, prediction, counts):
    repeated = np.repeat(np.arange(4), counts)
    for measure in ALL:
        weighted = measure(truth, prediction, sample_weight=counts)
        assert weighted == pytest.approx(measure(truth[repeated], prediction[repeated]), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(vectors, vectors, st.sampled_from([-8.0, 0.25, 1e150]))
def test_relative_error_does_not_depend_on_the_unit(truth, prediction, unit):
    scaled = relative_error(unit * truth, unit * prediction)
    assert scaled == pytest.approx(relative_error(truth, prediction), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(vectors, vectors)
def test_relative_error_is_the_root_of_two_mean_squares(truth, prediction):
    scale = mean_squared_error(truth, np.zeros_like(truth))
    if scale > 0:
        expected = math.sqrt(mean_squared_error(truth, prediction) / scale)
        assert relative_error(truth, prediction) == pytest.approx(expected, rel=1e-12)


@settings(deadline=None, max_examples=20)
@given(vectors, vectors)
def test_a_complex_number_counts_as_its_two_parts(truth, prediction):
    for measure in ALL:
        packed = measure(truth @ [1, 1j], prediction @ [1, 1j])
        assert packed == pytest.approx(measure(truth, prediction), rel=1e-12)


@pytest.mark.parametrize("measure", ALL)
def test_a_column_is_not_a_vector(measure):
    with pytest.raises(ValueError, match=r"y_true has shape \(3,\) and y_pred has shape \(3, 1\)"):
        measure(np.ones(3), np.ones((3, 1)))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 2, 2)])
def test_shapes_that_are_no_targets(shape):
    with pytest.raises(ValueError, match="y_true has shape"):
        relative_error(np.ones(shape), np.ones(shape))


def test_only_numbers_are_compared():
    with pytest.raises(ValueError, match="y_pred has dtype <U1"):
        mean_squared_error([1.0], ["a"])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"sample_weight has shape \(1,\).*shape \(2,\)"),
        ([[1.0], [1.0]], r"sample_weight has shape \(2, 1\)"),
        ([1.0, -0.5], r"sample_weight\[1\] is -0.5"),
        ([math.nan, 1.0], r"sample_weight\[0\] is nan"),
        ([1.0, math.inf], r"sample_weight\[1\] is inf"),
        ([0.0, 0.0], "zero in every row"),
    ],
)
def test_wrong_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        mean_squared_error([1.0, 2.0], [1.0, 2.0], sample_weight=weight)


def test_a_row_of_weight_zero_does_not_count():
    assert relative_error([3.0, 1.0], [0.0, 1e9], sample_weight=[1, 0]) == 1.0
