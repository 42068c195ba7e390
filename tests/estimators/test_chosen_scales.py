"""Warps of the inputs and links of the target, chosen by held-out rows; what they are good for."""

import numpy as np
import pytest

from harfe import HARFERegressor, HARFERegressorCV
from harfe._core.folds import make_folds
from harfe.learning.candidates import CANDIDATES, WARPED, LawSettings
from harfe.selection import link_choice
from harfe.selection.link_choice import choose_link
from harfe.selection.rows import Data

SMALL = {"n_components": 300, "n_nonzero_coefs": [8, 30], "alphas": [1e-3], "cv": 3}


def search(**settings):
    return HARFERegressorCV(**SMALL, **settings, random_state=0)


# --- warps ---------------------------------------------------------------------------------------


def decades(m, seed):
    """A smooth function of the logarithms of inputs over six decades."""
    logs = np.random.default_rng(seed).uniform(-3, 3, (m, 2))
    return 10**logs, np.sin(logs[:, 0]) + 0.2 * logs[:, 1] ** 2


def test_inputs_over_decades_are_warped_and_new_rows_gain_by_it():
    X, y = decades(150, 0)
    model = search().fit(X, y)
    assert model.best_params_["input_warp"] in ("log", "rank")
    assert set(model.learned_law_.errors) == {*CANDIDATES, *WARPED}
    assert model.expansion_.map.warped.all()
    new, truth = decades(500, 1)
    plain = search(input_warp="none").fit(X, y)
    assert plain.best_params_["input_warp"] == "none"
    errors = [np.mean((m.predict(new) - truth) ** 2) for m in (model, plain)]
    assert errors[0] < 0.05 * truth.var()
    assert errors[0] < 0.2 * errors[1]


def test_a_warp_that_is_given_is_the_only_one():
    X, y = decades(60, 0)
    model = search(input_warp="log").fit(X, y)
    assert model.best_params_["input_warp"] == "log"
    assert set(model.learned_law_.errors) == set(CANDIDATES)


def test_inputs_without_decades_are_not_tried_as_logarithms():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    model = search().fit(X, np.sin(2 * X[:, 0]) + X[:, 1])
    tried = set(model.learned_law_.errors) - set(CANDIDATES)
    assert tried == {name for name, prior in WARPED.items() if prior.input_warp == "rank"}
    # a sine of inputs as they are needs no warp
    assert model.best_params_["input_warp"] == "none"


# --- links ---------------------------------------------------------------------------------------


def rows(m, seed):
    """A sum of functions of five inputs, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 5))
    return X, 0.8 * (np.sin(2 * X[:, 0]) + X[:, 1:].sum(axis=1) + 0.2 * rng.normal(size=m))


def test_exponentials_of_a_sum_choose_a_link_and_stay_positive():
    X, y = rows(150, 0)
    model = search(input_warp="none").fit(X, np.exp(y))
    assert model.best_params_["link"] == "log"
    assert model.expansion_.link.kind == "log"
    new, truth = rows(400, 1)
    # also far from all rows
    assert np.all(model.predict(np.vstack([new, 3 * new])) > 0)
    assert np.corrcoef(np.log(model.predict(new)), truth)[0, 1] > 0.9
    plain = search(input_warp="none", link="none").fit(X, np.exp(y))
    errors = [np.mean((m.predict(new) - np.exp(truth)) ** 2) for m in (model, plain)]
    assert errors[0] < errors[1]


def test_symmetric_targets_choose_none():
    X, y = rows(150, 0)
    model = search(input_warp="none").fit(X, y)
    assert model.best_params_["link"] == "none"
    assert model.expansion_.link is None


def ask(X, y, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    data = Data(X, y[:, None], weights)
    return choose_link(data, make_folds("cv", 5, X, y, 0), LawSettings(0))


def test_links_are_asked_of_held_out_rows():
    X, y = rows(150, 0)
    assert ask(X, np.exp(y)) == "log"
    assert ask(X, np.exp(y) - 0.1) == "yeo-johnson"  # some are negative
    # a skewed target that is a plain function of its inputs gains nothing
    assert ask(X, X[:, 0] + (X[:, 1] > 0.8)) == "none"


def test_targets_with_little_skewness_are_not_asked(monkeypatch):
    def no_work(*_):
        raise AssertionError("a law was fitted")

    X, y = rows(150, 0)
    with monkeypatch.context() as patch:
        patch.setattr(link_choice, "fit_candidate", no_work)
        assert ask(X, y) == "none"
        assert ask(X, np.full(150, 2.0)) == "none"
        with pytest.raises(AssertionError, match="a law was fitted"):
            ask(X, np.exp(y))
        # skewness is that of the weighted rows: without the large ones there is little
        assert ask(X, np.exp(y), np.where(y > np.median(y), 1e-9, 1.0)) == "none"


# --- what was chosen -----------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["learned", "grid"])
def test_the_choice_makes_a_regressor(law):
    X, y = rows(60, 0)
    model = search(law=law, orders=[1], scales=[1.0]).fit(X, np.exp(y))
    assert model.best_params_["link"] == ("none" if model.expansion_.link is None else "log")
    alone = HARFERegressor(**model.best_params_, random_state=0).fit(X, np.exp(y))
    assert (alone.link, alone.input_warp) == tuple(
        model.best_params_[name] for name in ("link", "input_warp")
    )
    assert alone.n_nonzero_coefs_ == model.n_nonzero_coefs_
