"""Cholesky factors by ctypes: NumPy as the truth, the lower triangle alone, and the lock."""

import threading

import numpy as np
import pytest

from harfe.learning import cholesky


def positive(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 7, 200])
def test_factor_solve_and_invert_agree_with_numpy(n):
    A, B = positive(n), np.random.default_rng(1).normal(size=(n, 3))
    L = cholesky.factor(A.copy())
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(cholesky.solve(L, B), np.linalg.solve(A, B), rtol=1e-8, atol=1e-12)
    half = np.linalg.solve(np.tril(L), B)
    np.testing.assert_allclose(cholesky.half_solve(L, B), half, rtol=1e-8, atol=1e-12)
    inverse = np.tril(cholesky.invert(L))
    np.testing.assert_allclose(inverse, np.tril(np.linalg.inv(A)), rtol=1e-8, atol=1e-12)


def test_only_the_lower_triangle_counts():
    A = positive(5)
    lower = np.tril(A) + np.triu(np.full((5, 5), np.nan), 1)
    np.testing.assert_array_equal(
        np.tril(cholesky.factor(lower)), np.tril(cholesky.factor(A.copy()))
    )


def test_right_hand_sides_of_any_layout_stay_as_they_are():
    A, B = positive(4), np.random.default_rng(2).normal(size=(4, 6))
    L = cholesky.factor(A.copy())
    for given in (B, np.asfortranarray(B), B[:, ::2]):
        before = given.copy()
        np.testing.assert_allclose(A @ cholesky.solve(L, given), given, atol=1e-12)
        np.testing.assert_allclose(np.tril(L) @ cholesky.half_solve(L, given), given, atol=1e-12)
        np.testing.assert_array_equal(given, before)


def test_no_rows_have_an_empty_solution():
    L = cholesky.factor(np.empty((0, 0)))
    assert L is not None
    assert cholesky.solve(L, np.empty((0, 2))).shape == (0, 2)


def test_what_is_not_positive_definite_has_no_factor():
    assert cholesky.factor(np.array([[1.0, 0.0], [2.0, 1.0]])) is None
    assert cholesky.factor(np.zeros((3, 3))) is None


def test_other_threads_run_meanwhile():
    A = positive(1500)
    ticks, over = [], threading.Event()

    def tick():
        while not over.wait(1e-3):
            ticks.append(during.is_set())

    during = threading.Event()
    clock = threading.Thread(target=tick)
    clock.start()
    during.set()
    for _ in range(3):
        cholesky.factor(A.copy())
    during.clear()
    over.set()
    clock.join()
    # with the lock held, there would be at most one tick between two factors
    assert sum(ticks) > 6
