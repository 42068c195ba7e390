"""Weights of a stack, and when there is none."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from harfe.learning.stacking import stack_weights


def folds(make, n_folds=5, rows=40, seed=0):
    """Predictions of the parts and true values, fold by fold."""
    rng = np.random.default_rng(seed)
    pairs = [make(rng, rows, f) for f in range(n_folds)]
    return [A for A, _ in pairs], [b for _, b in pairs]


def two_halves(rng, rows, fold):
    """Each part knows one half of the truth, and a third knows nothing."""
    parts = rng.normal(size=(rows, 2))
    wanted = parts.sum(axis=1)
    said = np.column_stack([parts[:, 0], parts[:, 1], 0.1 * rng.normal(size=rows)])
    return said, wanted + 0.1 * rng.normal(size=rows)


def test_the_weights_solve_the_non_negative_least_squares_problem():
    predicted, wanted = folds(two_halves)
    found = stack_weights(predicted, wanted, 0)
    best = lsq_linear(np.concatenate(predicted), np.concatenate(wanted), (0, np.inf), tol=1e-14).x
    np.testing.assert_allclose(found[:2], best[:2], atol=1e-6)
    np.testing.assert_allclose(found[:2], 1.0, atol=0.05)


def test_parts_of_little_weight_are_left_out():
    predicted, wanted = folds(two_halves)
    for A in predicted:
        A[:, 2] = 0.5 * A[:, 0]  # nothing new in it
        A[:, 2] += 1e-9
    found = stack_weights(predicted, wanted, 0)
    assert np.all((found == 0) | (found > 0.02))


def test_a_stack_that_gains_too_little_is_the_best_part_alone():
    def nearly(rng, rows, fold):
        truth = rng.normal(size=rows)
        return np.column_stack([truth, truth + rng.normal(size=rows)]), truth + rng.normal(
            size=rows
        )

    found = stack_weights(*folds(nearly, rows=400), 0)
    np.testing.assert_array_equal(found, [1.0, 0.0])


def test_one_fold_does_not_decide():
    # In one fold the best part fails badly; in the four others it is exact.
    def uneven(rng, rows, fold):
        truth = rng.normal(size=rows)
        first = truth + (fold == 0) * 3 * rng.normal(size=rows)
        return np.column_stack([first, truth + 0.01 * rng.normal(size=rows)]), truth

    predicted, wanted = folds(uneven)
    squares = [
        np.sum((A - b[:, None]) ** 2, axis=0) for A, b in zip(predicted, wanted, strict=True)
    ]
    assert np.sum(squares, axis=0)[0] > np.sum(squares, axis=0)[1]  # a stack would gain in all
    np.testing.assert_array_equal(stack_weights(predicted, wanted, 0), [1.0, 0.0])


def test_parts_that_say_the_opposite_leave_the_best():
    def opposite(rng, rows, fold):
        truth = rng.normal(size=rows)
        return -np.column_stack([truth, 2 * truth]), truth

    np.testing.assert_array_equal(stack_weights(*folds(opposite), 1), [0.0, 1.0])


@pytest.mark.parametrize("best", [0, 1])
def test_a_single_best_has_weight_one(best):
    def exact(rng, rows, fold):
        truth = rng.normal(size=rows)
        said = np.repeat(truth[:, None], 2, axis=1)
        said[:, 1 - best] += rng.normal(size=rows)
        return said, truth

    found = stack_weights(*folds(exact), best)
    assert found[best] == 1.0
    assert found[1 - best] == 0.0
