"""What several test modules share."""

import os

import numba
import pytest
from hypothesis import settings

from harfe._core.threads import one_blas_thread

# The same examples in every run, so that a red run can be repeated; HYPOTHESIS_PROFILE=explore
# looks for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_modifyitems(items):
    """Examples in docstrings cannot carry a mark; they fit whole models."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.slow)


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
