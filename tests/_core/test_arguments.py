"""Messages name the argument, its value and what to type instead."""

import re
from fractions import Fraction

import numpy as np
import pytest

from harfe._core.arguments import check_choice, check_count, is_number, is_whole


@pytest.mark.parametrize("value", ["sine", "", "SIN", "si", None, 3, ["sin"], b"sin", True])
def test_a_word_that_is_not_known(value):
    expected = f"activation={value!r} is not known; choose one of sin, cos"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        check_choice("activation", value, ("sin", "cos"))


@pytest.mark.parametrize("value", ["sin", "cos", np.str_("cos")])
def test_a_known_word_passes(value):
    assert check_choice("activation", value, ("sin", "cos")) is None


def test_a_string_of_choices_is_not_searched_for_parts():
    with pytest.raises(ValueError, match=r"choose one of auto$"):
        check_choice("order", "aut", ("auto",))


@pytest.mark.parametrize(
    "value", [0, -1, True, False, np.True_, 1.5, 2.0, np.float64(2), "2", None, [1], np.inf]
)
def test_what_is_not_a_count(value):
    expected = f"order={value!r} must be a whole number of at least 1, e.g. order=2"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        check_count("order", value, 2)


@pytest.mark.parametrize("value", [1, 10**30, np.int8(3), np.uint64(2**63)])
def test_counts_pass(value):
    assert check_count("order", value, 2) is None


def test_an_alternative_is_named():
    expected = "max_iter=0 must be None or a whole number of at least 1, e.g. max_iter=50"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        check_count("max_iter", 0, 50, "None or ")


@pytest.mark.parametrize(
    ("value", "whole", "number"),
    [
        (0, True, True),
        (-3, True, True),
        (np.int64(3), True, True),
        (1.0, False, True),
        (np.float32(1), False, True),
        (Fraction(1, 2), False, True),
        (float("nan"), False, True),
        (True, False, False),
        (np.False_, False, False),
        (1j, False, False),
        ("1", False, False),
        (None, False, False),
        ([1], False, False),
        (np.array(1), False, False),
    ],
)
def test_kinds_of_numbers(value, whole, number):
    assert is_whole(value) is whole
    assert is_number(value) is number
