"""What several test modules share."""

import numba
import pytest

from harfe.machine import one_blas_thread


@pytest.fixture
def on_threads():
    """Call a function with BLAS on one thread and ours on so many; the setting is put back."""
    before = numba.get_num_threads()

    def call(count, function):
        if count > numba.config.NUMBA_NUM_THREADS:
            pytest.skip(f"this process may not use {count} threads")
        with one_blas_thread():
            numba.set_num_threads(count)
            return function()

    yield call
    numba.set_num_threads(before)
