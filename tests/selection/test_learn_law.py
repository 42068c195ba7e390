"""The race of the laws: who leaves it when, which rows are used, what error is visible."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from harfe import HARFERegressorCV
from harfe._core.folds import make_folds
from harfe.datasets import make_function
from harfe.learning import candidates
from harfe.learning.candidates import CANDIDATES, LawSettings
from harfe.selection import sparse_models
from harfe.selection.learn_law import JudgedLaw, LawRace
from harfe.selection.rows import Data


def race_of(m, scoring=None):
    X, y = np.random.default_rng(0).normal(size=(m, 2)), np.arange(float(m))[:, None]
    data = Data(X, y, np.ones(m))
    folds = make_folds("cv", 5, X, y, 0)
    return LawRace(list(CANDIDATES.values()), LawSettings(0), data, folds, scoring)


def run(race, errors):
    """Give every task the error of its candidate; return the candidates of every fold."""
    ran = {}
    for stage in race.stages():
        for task in stage.tasks():
            k, f = task.name
            ran.setdefault(f, []).append(race.priors[k].name)
            race.take(task.name, JudgedLaw(None, None, None, errors[k], -errors[k]))
    return {f: sorted(names) for f, names in ran.items()}


@pytest.mark.parametrize(
    ("errors", "second", "others"),
    [
        ((9.0, 1.0, 1.1, 1.4, 9.0, 9.0), ["fours", "isotropic", "pairs"], ["fours", "pairs"]),
        ((9.0, 1.0, 1.3, 1.6, 9.0, 9.0), ["fours", "pairs"], ["pairs"]),
        ((1.0,) * 6, ["additive", "fours", "isotropic", "pairs"], ["additive", "pairs"]),
    ],
)
def test_laws_that_are_far_behind_leave_the_race(errors, second, others):
    ran = run(race_of(300), errors)
    assert ran[0] == sorted(CANDIDATES)
    assert ran[1] == second
    assert [ran[f] for f in (2, 3, 4)] == [others] * 3


def test_with_few_rows_two_folds_decide_who_leaves():
    # the best three go on, if they are not far behind
    for isotropic, others in ((1.4, ["fours", "isotropic", "pairs"]), (1.6, ["fours", "pairs"])):
        ran = run(race_of(299), (9.0, 1.0, 1.1, isotropic, 9.0, 9.0))
        assert ran[0] == ran[1] == sorted(CANDIDATES)
        assert [ran[f] for f in (2, 3, 4)] == [others] * 3
    ran = run(race_of(299), (1.0,) * 6)
    assert ran[4] == ["additive", "fours", "pairs"]


def test_scores_of_another_unit_only_rank():
    class Scoring:
        scorer = None

    ran = run(race_of(300, Scoring()), (8.0, 1.0, 3.0, 4.0, 9.0, 9.0))
    assert ran[1] == ["additive", "fours", "isotropic", "pairs"]
    assert ran[4] == ["fours", "pairs"]


def test_the_visible_error_is_a_share_of_the_variance():
    race = race_of(300)
    run(race, (9.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert race.held_out_error() == pytest.approx(2.0 / np.var(np.arange(300.0)), rel=1e-12)
    # errors of several targets come in units of their variances, as means over the targets
    several = race_of(300)
    several.data = Data(several.data.X, np.tile(several.data.y, 3), several.data.weights)
    run(several, (9.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert several.held_out_error() == pytest.approx(3 * 2.0, rel=1e-12)


def test_folds_use_fewer_rows_than_the_final_law(monkeypatch):
    data, rows = make_function("friedman1", 700, random_state=0), []
    original = candidates._likelihood

    def spy(prior, standard, settings, kept, n_rows):
        rows.append((len(standard.Z), n_rows))
        return original(prior, standard, settings, kept, n_rows)

    monkeypatch.setattr(candidates, "_likelihood", spy)
    model = HARFERegressorCV(300, n_nonzero_coefs=[5], alphas=[1e-3], cv=2, random_state=0)
    model.fit(data.X, data.y)
    # all rows, and how many of them are in a likelihood; joint laws see more of a fold; the last
    # law starts where others ended
    assert set(rows) == {(350, 150), (350, 300), (350, 500), (700, 500)}


@pytest.mark.parametrize("visible", [0.0, 1e-4, 1e-2, 1.0])
def test_training_starts_where_matches_are_as_good_as_the_reference(visible):
    data, sizes = make_function("friedman1", 150, random_state=0), (4, 8, 16, 32, 64)
    model = HARFERegressorCV(400, n_nonzero_coefs=[4], alphas=[1e-3], cv=2, random_state=0)
    model.fit(data.X, data.y)
    race = race_of(150)
    race.data = Data(data.X, data.y[:, None], np.ones(150))
    law = race.fit_all({1: 1.0})
    template = model._template(150.0, True)
    settings = sparse_models.SparseSettings(("matched", "refined"), sizes, (1e-3,), visible)
    paths = sparse_models.sparse_paths(template, law, settings, race.data)
    close = [len(m.support) for m in paths["matched"] if m.gap <= 0.01 * visible]
    largest = min(close, default=64)
    assert [len(m.support) for m in paths["refined"]] == [s for s in sizes if s <= largest]
    assert (largest < 64) == (visible == 1.0)


def test_no_more_features_than_rows_are_tried():
    data = make_function("friedman1", 60, random_state=0)
    model = HARFERegressorCV(300, alphas=[1e-3], cv=3, random_state=0).fit(data.X, data.y)
    assert model.sizes_.max() == 40
    assert model.n_nonzero_coefs_ <= 40
    # nor of the few rows of a model in no time, whatever the candidates
    model.set_params(n_nonzero_coefs=[5, 41, 50], max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="fitted to 40 of 60 rows"):
        model.fit(data.X, data.y)
    assert model.sizes_.tolist() == [5]
