"""How many features may be kept: a rule of the rows, and never more than there are."""

import pytest

from harfe.estimators._grid_values import candidate_sizes, largest_size


@pytest.mark.parametrize(
    ("rows", "largest"), [(10, 400), (125, 400), (1000, 800), (8000, 1600), (10**6, 2000)]
)
def test_the_largest_size_is_80_times_the_cube_root_of_the_rows_within_limits(rows, largest):
    assert largest_size(rows) == largest


def test_candidates_end_at_the_largest_size_at_the_rows_or_at_the_pool():
    assert candidate_sizes(20, 3000, 8000, largest_size(8000))[-1] == 1600
    assert candidate_sizes(20, 3000, 300, largest_size(300))[-1] == 300
    assert candidate_sizes(20, 100, 8000, largest_size(8000))[-1] == 100
    # a grid goes no further than 400, whatever the rows
    assert candidate_sizes(20, 3000, 8000)[-1] == 400
