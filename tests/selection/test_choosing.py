"""Which cell is taken, from scores written by hand."""

import numpy as np
import pytest

from harfe.selection.choosing import CellTable, Choice, choose_cell, equal_errors, fewest_features

SIZES = (5, 10)
ON_DATA = np.array([True, False, False])
NOTHING = -9.0


def cells(**known):
    """Scores (kinds, sizes, alphas, folds): data with two ridge weights, two kinds of matches."""
    scores = np.full((3, 2, 2, 4), NOTHING)
    scores[1:, :, 1] = np.nan
    for name, value in known.items():
        kind, size, alpha = map(int, name[1:])
        scores[kind, size, alpha] = value
    return scores


def choose(scores, straying=None, selection="best"):
    if straying is None:
        straying = np.where(ON_DATA[:, None, None, None], np.nan, np.zeros_like(scores))
    slack = {"best": 0.01, "one_se": None}[selection]
    return choose_cell(scores, straying, ON_DATA, SIZES, slack)


def test_the_fewest_features_within_one_percent():
    scores = cells(c210=-1.1, c100=-1.1 * 1.0099)
    assert choose(scores) == Choice(1, 0, 0, pytest.approx(-1.1 * 1.0099))
    scores = cells(c210=-1.1, c100=-1.1 * 1.0101)
    assert choose(scores) == Choice(2, 1, 0, pytest.approx(-1.1))


def test_the_fewest_features_within_a_standard_error():
    far = [-1.0, -1.2, -1.0, -1.2]  # standard error 0.0577
    assert choose(cells(c210=far, c100=-1.15), selection="one_se").pool == 1
    assert choose(cells(c210=far, c100=-1.16), selection="one_se").pool == 2


def test_straying_counts_against_a_match():
    scores = cells(c110=-1.0, c210=-1.1)
    assert choose(scores).pool == 1
    straying = np.zeros_like(scores)
    straying[1, 1, 0] = 0.2
    # the score reported is the plain one
    assert choose(scores, straying) == Choice(2, 1, 0, pytest.approx(-1.1))


def test_fits_on_the_data_must_win_clearly():
    match = np.array([-1.0, -1.4, -1.2, -1.2])
    gain = np.array([0.1, 0.3, 0.1, 0.3])  # mean 0.2, standard error 0.0577
    assert choose(cells(c110=match, c001=match + gain)).pool == 0
    doubtful = np.array([-0.1, 0.5, -0.1, 0.5])  # mean 0.2, standard error 0.17
    assert choose(cells(c110=match, c001=match + doubtful)).pool == 1
    # without a match there is nothing to beat
    scores = cells(c001=-3.0)
    scores[1:] = np.nan
    assert choose(scores) == Choice(0, 0, 1, pytest.approx(-3.0))
    # and one fold has no standard error
    assert choose(cells(c110=-1.0, c001=-0.9)[..., :1]).pool == 0


def test_among_equals_the_larger_ridge_weight():
    scores = cells(c000=-1.0, c001=-1.0)
    scores[1:] = np.nan
    assert choose(scores).alpha == 1


def test_what_was_not_run_on_all_folds_is_not_chosen():
    scores = cells(c110=-1.0, c210=[-0.5, -0.5, -0.5, np.nan])
    assert choose(scores).pool == 1


def test_without_slack_the_highest_wins_whatever_its_size():
    scores = cells(c110=-1.0, c100=-1.0001)
    assert fewest_features(scores, scores, SIZES, 0.0).size == 1


@pytest.mark.parametrize(("gain", "ahead"), [(0.06, True), (0.04, False), (-0.5, False)])
def test_fits_on_y_are_ahead_if_they_are_clearly_better(gain, ahead):
    table = CellTable(["data", "matched"], [2, 4], [0.1])
    for fold in range(3):
        scores = np.array([[[-9.0], [-1.0 + gain]], [[-1.0], [-5.0]]])
        if fold == 2:  # a fold that fits on y were not run on
            scores[0] = 0.0
        kinds = table.kinds if fold < 2 else table.kinds[1:]
        cells = np.stack([-scores, scores, np.zeros_like(scores)])
        table.add(fold, kinds, cells[:, 2 - len(kinds) :])
    assert table.data_ahead([0, 1]) == ahead


def filled(scores):
    """A table with these scores on two folds, by kind; NaN where a kind was not run."""
    kinds, sizes = ["data", "matched", "trained"], [2, 4, 8]
    table = CellTable(kinds, sizes, [0.1])
    for fold in range(2):
        for kind, found in scores.items():
            values = np.array(found, float)[None, :, None]
            table.add(fold, [kind], np.stack([-values, values, 0 * values]))
    return table


def test_kinds_near_the_best_go_on():
    scores = {"data": [-9, -9, -0.1], "matched": [-9, -1.0, -2], "trained": [-9, -9, -1.04]}
    assert filled(scores).near(["trained"], [0, 1])
    assert filled(scores).near(["matched"], [0])
    scores["trained"] = [-9, -9, -1.06]  # more than 5 % behind; fits on y do not set the mark
    assert not filled(scores).near(["trained"], [0, 1])
    assert filled(scores).near(["matched", "trained"], [0, 1])
    del scores["trained"]  # not run
    assert not filled(scores).near(["trained"], [0, 1])


def test_the_best_size_is_the_smallest_of_equals():
    scores = {"matched": [-2, -1.009, -1.0], "trained": [np.nan, -1.0, -0.5]}
    table = filled(scores)
    assert table.best_size(["matched"], [0, 1]) == 4
    assert table.best_size(["trained"], [0]) == 8
    assert table.best_size(["matched", "trained"], [0, 1]) == 8
    scores["matched"][1] = -1.011
    assert filled(scores).best_size(["matched"], [0, 1]) == 8


def test_larger_sizes_that_are_near_the_best_go_on():
    scores = {"matched": [-1.04, -1.0, -1.04], "trained": [-1.0, -1.06, -1.04]}
    assert filled(scores).near_sizes(["matched"], [0, 1]) == (4, 8)
    assert filled(scores).near_sizes(["trained"], [0, 1]) == (2, 8)
    scores["matched"][2] = np.nan
    assert filled(scores).near_sizes(["matched"], [0]) == (4,)


def test_models_of_other_kinds_are_left_if_they_ran_on_all_folds():
    table = filled({"data": [np.nan, -2, np.nan], "matched": [-1, -1, -1]})
    assert table.any_left([0, 1], [])
    assert table.any_left([0, 1], ["data"])
    assert table.any_left([0, 1], ["matched"])
    assert not table.any_left([0, 1], ["data", "matched"])
    del table.cells["data", 1]
    assert not table.any_left([0, 1], ["matched"])
    assert table.any_left([0], ["matched"])


def test_matches_that_stray_by_a_share_of_the_error_lose():
    table = CellTable(["matched", "refined"], [2, 4], [0.1])
    scores = np.array([[[-3.0], [-1.0]], [[-2.0], [-1.02]]])
    for share, loses in ((0.029, False), (0.031, True)):
        straying = np.full(scores.shape, 0.5)
        straying[:, 1, 0] = share, 0.02
        for fold in range(2):
            cells = np.stack([-scores, scores, straying])
            table.add(fold, table.kinds, cells)
        assert table.strays(["matched"], [0, 1]) == loses
    # of several kinds, the one whose error and straying are lowest in all
    straying[1, 1, 0] = 0.0
    table.add(0, table.kinds, np.stack([-scores, scores, straying]))
    assert not table.strays(["matched", "refined"], [0])


@pytest.mark.parametrize(("m", "equal"), [(50, 0.01), (1000, 0.01), (4000, 0.005), (10**5, 0.001)])
def test_more_rows_tell_smaller_differences(m, equal):
    assert equal_errors(m) == pytest.approx(equal)
    table = CellTable(["matched"], [2, 4], [0.1], equal_errors(m))
    for share, size in ((0.99, 2), (1.01, 4)):
        scores = np.array([[[-1.0 - share * equal], [-1.0]]])
        table.add(0, ["matched"], np.stack([-scores, scores, 0 * scores]))
        assert table.best_size(["matched"], [0]) == size
        assert table.sizes[table.choose([0], "best").size] == size
