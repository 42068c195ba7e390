"""Folds: a partition, equal rows together, the same for any order of the rows."""

from itertools import chain

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from harfe._core.folds import make_folds


def table(rows=23, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 3)), rng.normal(size=rows)


def held_out(folds):
    return [test.tolist() for _, test in folds]


def as_sets(folds, names):
    """Held-out rows of every fold by their names: what must not depend on their places."""
    return [frozenset(names[test].tolist()) for _, test in folds]


def test_every_row_is_held_out_once_in_folds_of_equal_size():
    X, y = table(23)
    folds = make_folds("cv", 5, X, y, 0)
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(23))
    assert sorted(len(test) for _, test in folds) == [4, 4, 5, 5, 5]
    for train, test in folds:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(23))


def test_rows_are_shuffled():
    X = np.arange(50.0)[:, None]
    folds = make_folds("cv", 5, X, X[:, 0], 0)
    consecutive = [list(range(k, k + 10)) for k in range(0, 50, 10)]
    interleaved = [list(range(k, 50, 5)) for k in range(5)]
    assert not any(test in consecutive + interleaved for test in held_out(folds))


def test_more_folds_than_rows_hold_out_one_row_each():
    X, y = table(4)
    assert sorted(held_out(make_folds("cv", 10, X, y, 0))) == [[0], [1], [2], [3]]


@pytest.mark.parametrize("complex_y", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_equal_rows_are_held_out_together(targets, complex_y):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = rng.normal(size=(20, targets)) + (1j * rng.normal(size=(20, targets)) if complex_y else 0)
    rows = np.repeat(np.arange(20), 3)
    rng.shuffle(rows)
    for train, test in make_folds("cv", 4, X[rows], y[rows], 0):
        assert set(rows[train]).isdisjoint(rows[test])
        assert len(set(rows[test])) == 5
        assert len(test) == 15


def test_the_same_inputs_with_another_target_are_another_row():
    X = np.zeros((10, 1))
    folds = make_folds("cv", 5, X, np.arange(10.0), 0)
    assert [len(test) for _, test in folds] == [2] * 5
    imaginary = make_folds("cv", 5, X, 1j * np.arange(10.0), 0)
    assert [len(test) for _, test in imaginary] == [2] * 5


@pytest.mark.parametrize("where", ["X", "y"])
def test_minus_zero_is_zero(where):
    X, y = table(12)
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    if where == "X":
        X[:12, 0], X[12:, 0] = 0.0, -0.0
    else:
        y[:12], y[12:] = 0.0, -0.0
    for _, test in make_folds("cv", 4, X, y, 0):
        assert set(test % 12 + 12) | set(test % 12) == set(test)


def test_copies_of_rows_are_split_like_the_rows():
    X, y = table(20)
    rows = np.sort(np.r_[np.arange(20), [3, 3, 7, 11]])
    single = make_folds("cv", 4, X, y, 5, repeats=2)
    copied = make_folds("cv", 4, X[rows], y[rows], 5, repeats=2)
    assert as_sets(copied, rows) == as_sets(single, np.arange(20))


def test_the_order_of_the_rows_does_not_matter():
    X, y = table(30)
    shuffled = np.random.default_rng(1).permutation(30)
    plain = make_folds("cv", 5, X, y, 7, repeats=3)
    other = make_folds("cv", 5, X[shuffled], y[shuffled], 7, repeats=3)
    assert as_sets(other, shuffled) == as_sets(plain, np.arange(30))


def test_repeats_and_seeds_differ_and_can_be_had_again():
    X, y = table(30)
    folds = held_out(make_folds("cv", 5, X, y, 0, repeats=3))
    assert len(folds) == 15
    for part in (folds[:5], folds[5:10], folds[10:]):
        assert sorted(chain(*part)) == list(range(30))
    assert folds[:5] != folds[5:10] != folds[10:]
    assert held_out(make_folds("cv", 5, X, y, 0)) == folds[:5]
    assert held_out(make_folds("cv", 5, X, y, 1)) != folds[:5]


def test_groups_are_never_split():
    X, y = table(40)
    groups = np.arange(40) % 7
    folds = make_folds("cv", 3, X, y, 0, groups=groups)
    assert len(folds) == 3
    assert sorted(chain(*held_out(folds))) == list(range(40))
    for train, test in folds:
        assert set(groups[train]).isdisjoint(groups[test])


def test_splitters_get_groups_and_targets():
    seen = []

    class Splitter:
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

        def split(self, X, y=None, groups=None):
            seen.append((X, y, groups))
            return KFold(2).split(X)

    X, y = table(10)
    groups = np.arange(10) % 3
    folds = make_folds("cv", Splitter(), X, y, 0, groups=groups)
    assert held_out(folds) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert seen[0][0] is X
    assert seen[0][1] is y
    assert seen[0][2] is groups
    make_folds("cv", Splitter(), X, y + 1j, 0)
    assert seen[1][1] is None  # scikit-learn's splitters refuse complex targets
    by_group = make_folds("cv", GroupKFold(3), X, y, 0, groups=groups)
    assert sorted(held_out(by_group)) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


def test_pairs_of_rows_are_taken_as_they_are():
    X, y = table(6)
    pairs = [([0, 1, 2], [3, 4]), (np.array([3, 4, 5]), np.array([-6]))]
    for given in (pairs, tuple(pairs), iter(pairs)):
        folds = make_folds("cv", given, X, y, 0)
        assert [(a.tolist(), b.tolist()) for a, b in folds] == [
            ([0, 1, 2], [3, 4]),
            ([3, 4, 5], [0]),
        ]


def test_masks_name_rows():
    X, y = table(5)
    mask = np.array([True, False, True, True, False])
    ((train, test),) = make_folds("cv", [(mask, ~mask)], X, y, 0)
    assert (train.tolist(), test.tolist()) == ([0, 2, 3], [1, 4])


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (1, ["residual_cv=1", "at least 2", "residual_cv=5"]),
        (0, ["residual_cv=0"]),
        (-3, ["residual_cv=-3"]),
        (2.5, ["residual_cv=2.5", "number of folds", "residual_cv=5"]),
        (True, ["residual_cv=True"]),
        ("five", ["residual_cv='five'", "number of folds"]),
        (None, ["residual_cv=None"]),
        ([], ["residual_cv=[]", "no folds"]),
        ([([0], [1, 2])], ["residual_cv", "1 training", "at least 2"]),
        ([([0, 1], [])], ["residual_cv", "0 held-out"]),
        ([([0, 1], [10])], ["residual_cv", "10"]),
    ],
    ids=str,
)
def test_impossible_folds_are_refused_by_name(cv, words):
    X, y = table(10)
    with pytest.raises(ValueError, match=r".") as error:
        make_folds("residual_cv", cv, X, y, 0)
    for word in words:
        assert word in str(error.value)


def test_equal_rows_only_cannot_be_split():
    with pytest.raises(ValueError, match="All rows are equal"):
        make_folds("cv", 5, np.ones((10, 2)), np.ones(10), 0)
