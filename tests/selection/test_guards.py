"""What a search does with laws and models of all rows that the folds had promised to be better."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from harfe import HARFERegressorCV
from harfe.learning.candidates import CANDIDATES
from harfe.selection import law_search
from harfe.selection.law_search import LawSearch
from harfe.selection.learn_law import LawRace
from harfe.selection.rows import Data
from harfe.selection.sparse_models import SparseSettings

KEPT = {"cv": 3, "alphas": [1e-3], "n_nonzero_coefs": [4, 8, 16], "input_warp": "none"}
REFUSED = "ended far from what held-out rows had promised"


class Mean:
    """A reference that has learned nothing."""

    def predict(self, Z):
        return np.zeros((len(Z), 1))


def make(m=80):
    X = np.random.default_rng(0).uniform(-1, 1, (m, 3))
    noise = 0.1 * np.random.default_rng(1).normal(size=m)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise


def fit(X, y):
    return HARFERegressorCV(150, **KEPT, random_state=0).fit(X, y)


@pytest.fixture
def quick(monkeypatch):
    """Three candidates that all stay in the race, and no stacks."""
    some = {name: CANDIDATES[name] for name in ("additive", "fours", "rough")}
    monkeypatch.setattr("harfe.estimators.regressor_cv.CANDIDATES", some)
    monkeypatch.setattr("harfe.learning.stacking._GAIN", 1.0)
    monkeypatch.setattr("harfe.selection.learn_law._FAR", 1e9)


def break_laws(monkeypatch, fails):
    """Laws of all rows with certain names fail, whatever they were without folds."""
    fit_all = LawRace.fit_all

    def broken(race, weights):
        law = fit_all(race, weights)
        return replace(law, reference=Mean()) if fails(law.name) else law

    monkeypatch.setattr(LawRace, "fit_all", broken)


@pytest.mark.usefixtures("quick")
def test_a_law_that_fails_on_all_rows_gives_way_to_the_next(monkeypatch):
    X, y = make()
    best = fit(X, y).learned_law_
    ranked = sorted(best.errors, key=best.errors.get)
    assert best.candidate == ranked[0]
    break_laws(monkeypatch, lambda name: name == ranked[0])
    with pytest.warns(ConvergenceWarning, match=f"all rows, law {ranked[0]} {REFUSED}"):
        model = fit(X, y)
    assert model.learned_law_.candidate == ranked[1]
    assert model.score(*make()) > 0.9


@pytest.mark.usefixtures("quick")
def test_if_all_laws_fail_the_best_is_taken_and_all_are_named(monkeypatch):
    X, y = make()
    best = fit(X, y).learned_law_.candidate
    break_laws(monkeypatch, lambda name: True)
    with pytest.warns(ConvergenceWarning, match=f"all rows, law {best}, law .* {REFUSED}"):
        assert fit(X, y).learned_law_.candidate == best


def every_kind(monkeypatch):
    """All kinds but fits on y run on all folds."""
    monkeypatch.setattr(law_search.CellTable, "near", lambda *_: True)
    monkeypatch.setattr(law_search.CellTable, "strays", lambda *_: True)


def break_models(monkeypatch, fails):
    """Models of all rows of certain kinds end far from their target."""
    models_of_all = law_search.models_of_all

    def broken(*args):
        paths = models_of_all(*args)
        far = {k: [replace(m, gap=9.0) for m in path] for k, path in paths.items() if fails(k)}
        return paths | far

    monkeypatch.setattr(law_search, "models_of_all", broken)


@pytest.mark.usefixtures("quick")
def test_a_kind_that_fails_on_all_rows_gives_way_to_the_next(monkeypatch):
    X, y = make()
    every_kind(monkeypatch)
    kind = fit(X, y).fit_
    assert kind != "data"
    break_models(monkeypatch, lambda name: name == kind)
    with pytest.warns(ConvergenceWarning, match=f"all rows, {kind} features {REFUSED}"):
        model = fit(X, y)
    assert model.fit_ not in (kind, "data")
    assert model.score(X, y) > 0.9


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("data_ran", [False, True])
def test_if_all_kinds_fail_there_is_a_model_and_all_are_named(monkeypatch, data_ran):
    X, y = make()
    every_kind(monkeypatch)
    monkeypatch.setattr(law_search.CellTable, "data_ahead", lambda *_: data_ran)
    break_models(monkeypatch, lambda name: True)
    with pytest.warns(ConvergenceWarning, match=REFUSED) as told:
        model = fit(X, y)
    text = str(told[0].message)
    assert all(f"{kind} features" in text for kind in ("matched", "refined", "trained"))
    assert model.fit_ != "data"
    assert np.all(np.isfinite(model.predict(X)))


# --- how much is run -----------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n_folds"), [(9_999, 5), (10_000, 2), (49_999, 2), (50_000, 1)])
def test_models_of_many_rows_are_compared_on_few_folds(m, n_folds):
    data = Data(np.empty((m, 1)), np.empty((m, 1)), np.ones(m))
    folds = [(np.arange(2), np.arange(2, 4))] * 5
    race = LawRace([], None, data, folds)
    search = LawSearch(race, None, SparseSettings(("matched",), (5,), (1e-3,)))
    assert search._folds == list(range(n_folds))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("m", "n_folds"), [(58, 3), (60, 2), (80, 1)])
def test_with_few_folds_there_is_a_model_of_all_rows(monkeypatch, m, n_folds):
    monkeypatch.setattr(law_search, "_FOLDS_OF_MANY", ((60, 2), (80, 1)))
    model = fit(*make(m))
    # a kind that was left out on the first fold has run there
    ran = np.isfinite(model.mse_path_).any(axis=(0, 1, 2))
    assert ran.tolist() == [True] * n_folds + [False] * (3 - n_folds)
    assert model.search_complete_
    assert model.score(*make(m)) > 0.9
    # the residuals behind the uncertainty are those of the rows held out
    assert abs(len(model.uncertainty_.scores) - m * n_folds / 3) < 1


@pytest.mark.usefixtures("quick")
def test_only_sizes_near_the_best_of_the_first_fold_go_on(monkeypatch):
    monkeypatch.setattr(law_search.CellTable, "best_size", lambda *_: 16)
    monkeypatch.setattr(law_search.CellTable, "near", lambda *_: True)
    X, y = make()
    sizes = [4, 7, 8, 16, 30, 33, 34]
    model = HARFERegressorCV(150, **{**KEPT, "n_nonzero_coefs": sizes}, random_state=0).fit(X, y)
    matched = np.isfinite(model.mse_path_[model.pools_.index("matched"), :, 0])
    assert matched[:, 0].all()
    # at most 2.1 times fewer or more
    assert [s for s, ran in zip(sizes, matched[:, 1], strict=True) if ran] == [8, 16, 30, 33]
