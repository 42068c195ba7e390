"""HARFERegressorCV under a learned law: refits by hand, relations, what must be rejected."""

import pickle
import re
import tracemalloc
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear
from shared import FORMULAS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GroupKFold, KFold

from harfe import HARFERegressor, HARFERegressorCV
from harfe._core.folds import make_folds
from harfe._core.sklearn_compat import HAS_CALLBACKS
from harfe.datasets import make_function
from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import MixedLaw
from harfe.learning import stacking
from harfe.learning.candidates import CANDIDATES, LawSettings
from harfe.selection import choosing, law_search, learn_law, sparse_models
from harfe.selection.choosing import choose_cell
from harfe.selection.law_search import LawSearch
from harfe.selection.learn_law import JudgedLaw, LawRace
from harfe.selection.rows import Data
from harfe.selection.sparse_models import KINDS, SparseSettings, sparse_on_fold, sparse_paths

SIZES, ALPHAS = [4, 8, 16], [1e-6, 1e-2]
SMALL = {
    "n_components": 200,
    "n_nonzero_coefs": SIZES,
    "alphas": ALPHAS,
    "cv": 3,
    "random_state": 0,
    "input_warp": "none",
    "link": "none",
}
SETTINGS = SparseSettings(KINDS, tuple(SIZES), tuple(ALPHAS))
NEVER, ALWAYS = 1.0, -1e9  # gains that a stack must have


def fit_law(template, prior, data, rows, activation="sin", starts=()):
    """The law that a search with this template fits to some rows."""
    law = LawSettings(
        template.seed,
        template.framing.input_scale,
        template.framing.input_clip,
        activation=activation,
    )
    return learn_law.fit_law(prior, law, data, rows, starts)


def fit_law_to_all(model, data, folds):
    """The law that a search fits to all rows, from those without folds."""
    template, prior = model._template(60.0, True), CANDIDATES[model.learned_law_.candidate]
    starts = [fit_law(template, prior, data, train).kernel for train, _ in folds]
    return fit_law(template, prior, data, np.arange(60), starts=starts)


def stack_from(patch, gain):
    """Accept stacks from this gain on, whatever single folds say."""
    patch.setattr(stacking, "_GAIN", gain)
    patch.setattr(stacking, "_AGREEING_FOLDS", 0.0)


def make(m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=m)


@pytest.fixture(scope="module", autouse=True)
def thorough():
    """All runs on all folds, is trained to the end and kept, so that tables can be redone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn_law, "_FAR", 1e9)
        patch.setattr(learn_law, "_CLOSE", 1e9)
        patch.setattr(choosing, "_AHEAD", -1e9)
        patch.setattr(choosing, "_BEHIND", 1e9)
        patch.setattr(choosing, "_LOSS", -1.0)
        patch.setattr(law_search, "_NEAR", 1e9)
        for how_many in ("_SECOND", "_FINALISTS"):
            patch.setattr(learn_law, how_many, 99)
        patch.setattr(LawRace, "held_out_error", lambda race: 0.0)
        patch.setattr(sparse_models, "_LARGEST_GAP", np.inf)
        yield


@pytest.fixture(scope="module")
def xy():
    return make()


@pytest.fixture(scope="module")
def fitted(xy):
    return HARFERegressorCV(**SMALL).fit(*xy)


@pytest.fixture(scope="module")
def single(xy):
    """Known folds, and only one candidate as reference."""
    folds = list(KFold(3, shuffle=True, random_state=1).split(xy[0]))
    with pytest.MonkeyPatch.context() as patch:
        stack_from(patch, NEVER)
        return folds, HARFERegressorCV(**{**SMALL, "cv": folds}).fit(*xy)


@pytest.fixture
def only(monkeypatch):
    """Restrict the kinds of sparse models."""
    return lambda *kinds: monkeypatch.setattr("harfe.estimators.regressor_cv.KINDS", kinds)


@pytest.fixture
def two_laws(monkeypatch):
    """Candidates that are quick to fit, for tests in which any candidates will do."""
    some = {name: CANDIDATES[name] for name in ("additive", "fours")}
    monkeypatch.setattr("harfe.estimators.regressor_cv.CANDIDATES", some)


def check_formula(model, X, activation="sin"):
    """The public attributes, put together by hand, are what `predict` returns."""
    features = FORMULAS[activation](X @ model.weights_.toarray() + model.bias_)
    by_hand = (features @ model.coef_.T).real + model.intercept_
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-9, atol=1e-9)


def check_same(a, b, **tolerance):
    compare = np.testing.assert_allclose if tolerance else np.testing.assert_array_equal
    assert (a.fit_, a.n_nonzero_coefs_) == (b.fit_, b.n_nonzero_coefs_)
    assert a.learned_law_.candidate == b.learned_law_.candidate
    compare(a.mse_path_, b.mse_path_, **tolerance)
    np.testing.assert_array_equal(a.support_, b.support_)
    compare(a.coef_, b.coef_, **tolerance)


# --- attributes ----------------------------------------------------------------------------------


def test_what_was_learned_and_chosen_stands_in_the_attributes(xy, fitted):
    model = fitted
    assert model.pools_ == ["data", "matched", "refined", "trained"]
    assert model.fit_ in model.pools_
    assert model.sizes_.tolist() == SIZES
    assert model.alphas_.tolist() == ALPHAS
    assert model.mse_path_.shape == (4, 3, 2, 3)
    assert model.n_splits_ == 3
    assert model.search_complete_ is True
    assert model.law_ == model.learned_law_.law
    assert model.order_ == model.law_.orders
    np.testing.assert_array_equal(model.scale_, model.law_.scale)
    assert model.scale_.shape == (4,)
    assert len(model.support_) == model.n_nonzero_coefs_ == np.count_nonzero(model.coef_)
    np.testing.assert_array_equal(np.flatnonzero(model.coef_), model.support_)
    assert model.n_nonzero_coefs_ in SIZES
    assert model.weights_.shape == (4, 200)
    assert model.bias_.shape == model.coef_.shape == (200,)
    assert model.feature_importances_.shape == (4,)
    assert model.feature_importances_.argmin() == 3
    assert model.best_params_["law"] == model.law_
    assert model.best_params_["n_nonzero_coefs"] == model.n_nonzero_coefs_
    assert model.best_params_["alpha"] == model.alpha_ > 0
    assert model.score(*xy) > 0.97


def test_features_that_were_not_chosen_are_those_of_the_law(xy, fitted):
    X = xy[0]
    drawn = fitted.law_.draw(200, np.random.default_rng(fitted.seed_))
    values = drawn.weights().toarray() / X.std(axis=0)[:, None]
    phases = drawn.phases - X.mean(axis=0) @ values
    others = np.setdiff1d(np.arange(200), fitted.support_)
    np.testing.assert_allclose(fitted.weights_.toarray()[:, others], values[:, others], atol=1e-12)
    np.testing.assert_allclose(fitted.bias_[others], phases[others], atol=1e-12)
    touched = fitted.weights_.toarray()[:, fitted.support_] != 0
    np.testing.assert_array_equal(touched, values[:, fitted.support_] != 0)


@pytest.mark.usefixtures("two_laws")
@pytest.mark.parametrize("kind", ["data", "matched", "refined", "trained"])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_attributes_are_the_function_that_predicts(xy, only, kind, targets):
    X, y = xy
    only(kind)
    Y = y if targets == 1 else np.column_stack([y, 100 * X[:, 3] ** 2])
    model = HARFERegressorCV(**{**SMALL, "cv": 2}).fit(X, Y)
    assert model.fit_ == kind
    assert model.pools_ == [kind]
    new = np.random.default_rng(1).uniform(-1, 1, (50, 4))
    check_formula(model, new)
    drawn = model.law_.draw(200, np.random.default_rng(model.seed_)).weights().toarray()
    as_drawn = drawn / X.std(axis=0)[:, None]
    trained = np.abs(model.weights_.toarray() - as_drawn).max(axis=0) > 1e-9
    expected = model.support_.tolist() if kind in ("refined", "trained") else []
    assert np.flatnonzero(trained).tolist() == expected


@pytest.mark.usefixtures("two_laws")
def test_inputs_with_outliers_are_clipped_first(xy):
    X, y = xy[0].copy(), xy[1]
    X[0, 1] = 1e6
    model = HARFERegressorCV(**SMALL).fit(X, y)
    bounds = model.expansion_.map
    assert bounds.upper[1] < 1e6
    check_formula(model, bounds.clip(X)[1:])
    far, at = X[:1].copy(), X[:1].copy()
    at[0, 1] = bounds.upper[1]
    np.testing.assert_array_equal(model.predict(far), model.predict(at))


def test_results_list_every_cell_once(fitted):
    results = fitted.cv_results_
    cells = list(np.ndindex(4, 3, 2))
    assert len(results["params"]) == len(cells)
    for row, (k, i, a) in enumerate(cells):
        params = {"fit": fitted.pools_[k], "n_nonzero_coefs": SIZES[i], "alpha": ALPHAS[a]}
        assert results["params"][row] == params
        assert results["param_fit"][row] == fitted.pools_[k]
        splits = [results[f"split{f}_test_score"][row] for f in range(3)]
        np.testing.assert_array_equal(splits, -fitted.mse_path_[k, i, a])
        # Matched models have no ridge weight of their own; of few features, the most are trained.
        ran = k == 0 or (a == 0 and (k < 3 or i == 2))
        assert np.isfinite(splits).all() == ran
        assert results["n_splits"][row] == 3 * ran
        assert (results["rank_test_score"][row] > 0) == ran
    assert results["mean_test_score"][0] == pytest.approx(-fitted.mse_path_[0, 0, 0].mean())


@pytest.mark.usefixtures("two_laws")
def test_more_terms_than_rows_are_matched_but_not_fitted_to_data(xy):
    model = HARFERegressorCV(**{**SMALL, "n_nonzero_coefs": [5, 60]}).fit(*xy)
    run = np.isfinite(model.mse_path_).all(axis=-1)
    assert run[:, 0, 0].tolist() == [True, True, True, False]
    assert run[:, 1, 0].tolist() == [False, True, True, True]


@pytest.mark.usefixtures("two_laws")
def test_training_starts_from_a_limited_number_of_features(xy, monkeypatch):
    # if held-out errors are not known (0 here), matches are never close enough
    monkeypatch.setattr("harfe.selection.sparse_models._MOST_IF_PRECISE", 100)
    model = HARFERegressorCV(**{**SMALL, "n_nonzero_coefs": [6, 150], "cv": 2}).fit(*xy)
    run = np.isfinite(model.mse_path_).all(axis=-1)
    assert run[1:3, :, 0].tolist() == [[True, True], [True, False]]
    large = HARFERegressorCV(**{**SMALL, "n_nonzero_coefs": [150], "cv": 2}).fit(*xy)
    assert large.fit_ != "refined"


def test_pickles_and_clones_agree(xy, fitted):
    X, y = xy
    thawed, again = pickle.loads(pickle.dumps(fitted)), clone(fitted)
    assert again.get_params() == fitted.get_params()
    assert not hasattr(again, "learned_law_")
    again.fit(X, y)
    for model in (thawed, again):
        check_same(model, fitted)
        assert model.law_ == fitted.law_
        for a, b in zip(
            model.predict(X, interval=0.9), fitted.predict(X, interval=0.9), strict=True
        ):
            np.testing.assert_array_equal(a, b)


def test_the_summary_speaks_of_the_columns(xy):
    X, y = xy
    table = pd.DataFrame(X, columns=["age", "height", "weight", "nothing"])
    model = HARFERegressorCV(**{**SMALL, "cv": 2}).fit(table, y)
    text = model.learned_law_.summary()
    assert model.learned_law_.columns == ("age", "height", "weight", "nothing")
    for word in ("age", "height", "weight", "60 rows", *CANDIDATES):
        assert word in text
    assert all("x0" not in name for name in model.expansion_.names())
    assert model.learned_law_.n_rows == 60
    assert 0.005 < model.learned_law_.noise < 0.2


# --- the table of errors -------------------------------------------------------------------------


def standard(law, X):
    """Rows as a law has them, by hand; no input has outliers here."""
    units = law.data.units
    return (X - units.centre) / units.spread


def test_matched_and_trained_errors_are_those_of_an_independent_refit(xy, single):
    X, y = xy
    folds, model = single
    data = Data(X, y[:, None], np.ones(60))
    prior = CANDIDATES[model.learned_law_.candidate]
    template = model._template(60.0, True)
    for f, (train, test) in enumerate(folds):
        law = fit_law(template, prior, data, train)
        np.testing.assert_allclose(law.data.units.centre, X[train].mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(law.data.unit, y[train].std(), rtol=1e-10)
        paths = sparse_paths(template, law, SETTINGS, data.take(train))
        for k, kind in enumerate(KINDS[1:], start=1):
            made = SIZES if kind != "trained" else SIZES[-1:]
            assert [len(found.support) for found in paths[kind]] == made
            for i, found in zip(map(SIZES.index, made), paths[kind], strict=True):
                z = standard(law, X[test]) @ found.features.weights().toarray()
                value = np.sin(z + found.features.phases) @ found.coef[0] + found.intercept[0]
                error = np.mean((y[test] - y[train].mean() - value * y[train].std()) ** 2)
                assert model.mse_path_[k, i, 0, f] == pytest.approx(error, rel=1e-7)


def test_errors_on_data_are_those_of_a_search_with_the_law_of_the_fold(xy, single):
    X, y = xy
    folds, model = single
    data = Data(X, y[:, None], np.ones(60))
    prior = CANDIDATES[model.learned_law_.candidate]
    for f, fold in enumerate(folds):
        law = fit_law(model._template(60.0, True), prior, data, fold[0]).law
        given = HARFERegressorCV(**{**SMALL, "cv": [fold]}, law=law).fit(X, y)
        np.testing.assert_array_equal(given.mse_path_[0, :, :, 0], model.mse_path_[0, :, :, f])


def test_the_law_with_the_lowest_held_out_error_wins(xy, single):
    X, y = xy
    folds, model = single
    data = Data(X, y[:, None], np.ones(60))
    errors = {
        name: np.mean(
            [
                np.mean(
                    (
                        y[test]
                        - fit_law(model._template(60.0, True), prior, data, train).predict(X[test])[
                            :, 0
                        ]
                    )
                    ** 2
                )
                for train, test in folds
            ]
        )
        for name, prior in CANDIDATES.items()
    }
    assert model.learned_law_.errors == pytest.approx(errors, rel=1e-9)
    assert model.learned_law_.candidate == min(errors, key=errors.get)
    final = fit_law_to_all(model, data, folds)
    assert model.law_ == final.law
    assert model.learned_law_.noise == final.noise
    assert model.learned_law_.variance == final.variance


def test_the_model_is_that_of_all_rows_at_the_chosen_size(xy, single):
    X, y = xy
    folds, model = single
    data = Data(X, y[:, None], np.ones(60))
    law = fit_law_to_all(model, data, folds)
    assert model.fit_ != "data"
    paths = sparse_paths(model._template(60.0, True), law, SETTINGS, data)[model.fit_]
    (found,) = (path for path in paths if len(path.support) == model.n_nonzero_coefs_)
    np.testing.assert_array_equal(model.support_, found.support)
    value = found.predict(standard(law, X))[:, 0] * y.std() + y.mean()
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-8, atol=1e-8)


def test_of_many_rows_only_the_best_laws_go_on():
    X, y = make(40)
    model = HARFERegressorCV(**SMALL)
    folds = list(KFold(4).split(X))
    seen = []

    original = learn_law.fit_law

    def spy(prior, settings, data, rows, starts=()):
        seen.append((prior.name, len(rows)))
        return original(prior, settings, data, rows, starts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn_law, "fit_law", spy)
        patch.setattr(learn_law, "FEW_ROWS", 40)
        patch.setattr(learn_law, "_SECOND", 4)
        patch.setattr(learn_law, "_FINALISTS", 2)
        model.set_params(cv=folds).fit(X, y)
    race = [name for name, rows in seen if rows == 30]
    assert sorted(race[:6]) == sorted(CANDIDATES)
    assert len(set(race[6:10])) == 4
    assert set(race[10:12]) == set(race[12:]) < set(race[6:10])
    assert len(race) == 14
    errors = model.learned_law_.errors
    assert set(errors) == set(CANDIDATES)


# --- the choice ----------------------------------------------------------------------------------


def mean_errors(model):
    return np.where(
        np.isfinite(model.mse_path_).all(axis=-1), model.mse_path_.mean(axis=-1), np.inf
    )


def test_the_score_of_the_choice_is_its_mean_held_out_error(fitted, single):
    for model in (fitted, single[1]):
        cells = mean_errors(model)[model.pools_.index(model.fit_)]
        i = SIZES.index(model.n_nonzero_coefs_)
        assert -model.best_score_ in cells[i]


def test_a_model_far_from_its_reference_gives_way_to_a_larger_one(xy, monkeypatch):
    one_se = HARFERegressorCV(**SMALL, selection="one_se").fit(*xy)
    monkeypatch.setattr(law_search, "close_model", lambda path, *_: path[-1])
    largest = HARFERegressorCV(**SMALL, selection="one_se").fit(*xy)
    assert largest.n_nonzero_coefs_ == max(SIZES)
    # the score is that of the size that was chosen
    i = SIZES.index(one_se.n_nonzero_coefs_)
    assert one_se.n_nonzero_coefs_ < max(SIZES)
    assert -largest.best_score_ in mean_errors(largest)[largest.pools_.index(largest.fit_), i]


def test_one_standard_error_takes_fewer_terms(xy, fitted):
    sparse = HARFERegressorCV(**SMALL, selection="one_se").fit(*xy)
    np.testing.assert_array_equal(sparse.mse_path_, fitted.mse_path_)
    assert sparse.n_nonzero_coefs_ <= fitted.n_nonzero_coefs_
    assert sparse.best_score_ <= -mean_errors(fitted).min() + 1e-12


def a_search(scores, scoring=None, straying=None):
    """A search whose scores are known: (kinds, sizes, alphas, folds)."""
    settings = SparseSettings(("data", "matched", "refined"), (5, 10), (1e-3, 1e-1))
    folds = [(np.arange(2), np.arange(2, 4))] * scores.shape[-1]
    data = Data(np.empty((4, 1)), np.empty((4, 1)), np.ones(4))
    search = LawSearch(LawRace([], None, data, folds, scoring), None, settings)
    straying = np.zeros_like(scores) if straying is None else straying
    cells = np.stack([-scores, scores, straying])
    for f in range(len(folds)):
        search.cells.add(f, settings.kinds, cells[..., f])
    return search


def test_a_search_chooses_among_its_cells():
    scores = np.full((3, 2, 2, 4), -9.0)
    scores[1:, :, 1] = np.nan
    scores[2, 1, 0] = [-1.0, -1.2, -1.0, -1.2]  # mean -1.1, standard error 0.0577
    scores[1, 0, 0] = -1.104  # within 0.5 %
    best = a_search(scores).choose("best")
    assert (best.pool, best.size, best.alpha, best.score) == pytest.approx((1, 0, 0, -1.104))
    straying = np.zeros_like(scores)
    straying[1, 0, 0] = 0.01  # now it is not
    found = a_search(scores, straying=straying).choose("best")
    assert (found.pool, found.size, found.alpha, found.score) == pytest.approx((2, 1, 0, -1.1))
    # a user-defined score alone decides, to the last digit
    own = a_search(scores, scoring=lambda *_: 0.0, straying=straying).choose("best")
    assert own == found
    # other folds choose otherwise
    scores[0, 0, 0, 3] = -0.5
    assert a_search(scores).choose("best", [3]).pool == 0


def test_straying_is_the_distance_from_the_reference_on_the_held_out_rows(xy):
    X, y = xy
    model = HARFERegressorCV(**SMALL)
    model.n_features_in_ = 4
    template, data = model._template(60.0, True), Data(X, y[:, None], np.ones(60))
    train, test = np.arange(40), np.arange(40, 60)
    law = fit_law(template, CANDIDATES["pairs"], data, train)
    settings = SparseSettings(("data", "matched"), (5, 10), (1e-3,))
    table, models = sparse_on_fold(template, law, settings, data, (train, test), None)
    dense = law.predict(X[test])[:, 0]
    for i, s in enumerate((5, 10)):
        value = law.data.to_targets(models["matched", s].predict(standard(law, X[test])))[:, 0]
        assert table[2, 1, i, 0] == pytest.approx(np.mean((value - dense) ** 2), rel=1e-9)
        assert table[2, 1, i, 0] > 0
    assert np.isnan(table[2, 0]).all()


def test_without_training_nothing_is_trained(xy, fitted):
    model = HARFERegressorCV(**SMALL, refine=False).fit(*xy)
    assert model.pools_ == ["data", "matched"]
    assert model.fit_ in model.pools_
    np.testing.assert_array_equal(model.mse_path_, fitted.mse_path_[:2])


def test_another_score_chooses_by_itself(xy, monkeypatch):
    X, y = xy
    stack_from(monkeypatch, NEVER)
    folds = list(KFold(3, shuffle=True, random_state=1).split(X))
    settings = {**SMALL, "cv": folds, "refine": False}
    model = HARFERegressorCV(**settings, scoring="neg_mean_absolute_error").fit(X, y)
    table = np.column_stack([model.cv_results_[f"split{f}_test_score"] for f in range(3)])
    assert model.best_score_ == np.nanmax(table.mean(axis=1))
    prior = CANDIDATES[model.learned_law_.candidate]
    template, (train, test) = model._template(60.0, True), folds[0]
    data = Data(X, y[:, None], np.ones(60))
    law = fit_law(template, prior, data, train)
    for i, found in enumerate(sparse_paths(template, law, SETTINGS, data.take(train))["matched"]):
        value = law.data.to_targets(found.predict(standard(law, X[test])))[:, 0]
        params = {"fit": "matched", "n_nonzero_coefs": SIZES[i], "alpha": 1e-6}
        row = model.cv_results_["params"].index(params)
        assert table[row, 0] == pytest.approx(-mean_absolute_error(y[test], value), rel=1e-9)
        error = np.mean((y[test] - value) ** 2)
        assert model.mse_path_[1, i, 0, 0] == pytest.approx(error, rel=1e-9)


# --- stacks --------------------------------------------------------------------------------------


def test_a_stack_is_the_weighted_sum_that_fits_the_held_out_rows_best(xy, monkeypatch):
    X, y = xy
    stacks = []

    def spy(fits, weights):
        out = stack(fits, weights)
        stacks.append((fits, weights, out))
        return out

    stack = learn_law.stack
    monkeypatch.setattr(learn_law, "stack", spy)
    stack_from(monkeypatch, ALWAYS)
    folds = list(KFold(3, shuffle=True, random_state=1).split(X))
    model = HARFERegressorCV(**{**SMALL, "cv": folds}).fit(X, y)
    fits, weights, final = next(s for s in stacks if len(s[0][0].data.Z) == 60)
    # the weights, by another solver
    data = Data(X, y[:, None], np.ones(60))
    A, b = [], []
    for train, test in folds:
        laws = [
            fit_law(model._template(60.0, True), prior, data, train)
            for prior in CANDIDATES.values()
        ]
        unit = y[train].std()
        A.append(
            np.column_stack([law.predict(X[test])[:, 0] - y[train].mean() for law in laws]) / unit
        )
        b.append((y[test] - y[train].mean()) / unit)
    best = lsq_linear(np.concatenate(A), np.concatenate(b), (0, np.inf), tol=1e-14).x
    expected = {name: w for name, w in zip(CANDIDATES, best, strict=True) if w > 0.02}
    assert dict(zip([fit.name for fit in fits], weights, strict=True)) == pytest.approx(
        expected, rel=1e-4
    )
    assert model.learned_law_.candidate == " + ".join(expected)
    # the reference and the law
    Z = standard(final, X)
    total = sum(w * fit.reference.predict(Z) for fit, w in zip(fits, weights, strict=True))
    np.testing.assert_allclose(final.reference.predict(Z), total, rtol=1e-12)
    np.testing.assert_allclose(final.predict(X)[:, 0], total[:, 0] * y.std() + y.mean(), rtol=1e-9)
    assert isinstance(model.law_, MixedLaw)
    assert model.law_.parts == tuple(fit.law for fit in fits)
    np.testing.assert_allclose(model.law_.shares, np.array(weights) / np.sum(weights))
    text = model.learned_law_.summary()
    for share in model.law_.shares:
        assert f"{share:.0%} of the features" in text
    assert set(model.order_) == {q for part in model.law_.parts for q in part.orders}
    check_formula(model, X)


def test_a_stack_must_pay(xy, monkeypatch, single):
    folds, model = single
    stack_from(monkeypatch, ALWAYS)
    forced = HARFERegressorCV(**{**SMALL, "cv": folds}).fit(*xy)
    assert "+" in forced.learned_law_.candidate
    assert isinstance(model.law_, FeatureLaw)
    assert "+" not in model.learned_law_.candidate
    # Candidates do not depend on what becomes of them; threads may round their sums differently.
    assert model.learned_law_.errors == pytest.approx(forced.learned_law_.errors, rel=1e-12)


@pytest.mark.usefixtures("two_laws")
def test_a_stack_of_data_fits_the_same_model_alone(xy, monkeypatch, only):
    stack_from(monkeypatch, ALWAYS)
    only("data")
    model = HARFERegressorCV(**SMALL).fit(*xy)
    assert isinstance(model.law_, MixedLaw)
    alone = HARFERegressor(**model.best_params_, random_state=0).fit(*xy)
    assert alone.law_ == model.law_
    np.testing.assert_array_equal(alone.coef_, model.coef_)


@pytest.mark.usefixtures("two_laws")
def test_the_choice_on_data_fits_the_same_model_alone(xy, monkeypatch, only):
    stack_from(monkeypatch, NEVER)
    only("data")
    model = HARFERegressorCV(**SMALL).fit(*xy)
    alone = HARFERegressor(**model.best_params_, random_state=0).fit(*xy)
    assert alone.law_ == model.law_
    np.testing.assert_array_equal(alone.coef_, model.coef_)


def test_references_that_are_worse_than_the_mean_leave_the_best_one():
    # all candidates predict the opposite, so that no weight > 0 helps
    X, y = make(12)
    folds = list(KFold(3).split(X))
    fit = SimpleNamespace(data=SimpleNamespace(centre=np.zeros(1), unit=np.ones(1)))
    priors = list(CANDIDATES.values())[:2]
    race = LawRace(priors, None, Data(X, y[:, None], np.ones(12)), folds, alive=[0, 1])
    race.judged = {
        (k, f): JudgedLaw(fit, test, -y[test, None], 4.0 + k, -4.0 - k)
        for k in range(2)
        for f, (_, test) in enumerate(folds)
    }
    assert race.stacked() == {0: 1.0}


def a_race(known, n_folds=4):
    """A race in which candidates have these scores: (candidate, fold) -> score."""
    folds = [(np.arange(2), np.arange(2, 4))] * n_folds
    race = LawRace(list(CANDIDATES.values()), None, None, folds, alive=[0, 1, 2, 3])
    race.judged = {
        name: JudgedLaw(None, None, None, -score, score) for name, score in known.items()
    }
    return race


def test_laws_compete_on_the_folds_that_they_share():
    whole = {(k, f): -1.0 - (k != 2) for k in range(4) for f in range(2)}
    assert a_race(whole).stacked() == {2: 1.0}
    # time ran out just after the next fold had begun: the first law was the only one to run on it
    for score in (-0.1, -9.0):
        race = a_race(whole | {(0, 2): score})
        assert race.shared_folds() == [0, 1]
        assert race.stacked() == {2: 1.0}
        assert race.best_so_far() == (-1.0, "law fours")
    # within the first fold there is nothing better than what was run
    assert a_race({(0, 0): -3.0, (1, 0): -2.0}).stacked() == {1: 1.0}
    assert a_race({}).best_so_far() is None


# --- which law -----------------------------------------------------------------------------------


REASONS = [
    ({"y": 1j}, "y is complex"),
    ({"interaction_cst": [{0, 1}, {2, 3}]}, "interaction_cst names sets"),
    ({"variable_weights": [1, 2, 3, 4]}, "variable_weights"),
    ({"weights": "uniform"}, "weights='uniform'"),
    ({"bias": "none"}, "bias='none'"),
    ({"X": 0.0}, "all inputs are constant"),
]


@pytest.mark.parametrize(("case", "words"), REASONS, ids=[words for _, words in REASONS])
def test_where_no_law_can_be_learned_it_is_said_or_the_grid_is_searched(xy, case, words):
    settings = dict(case)
    X, y = xy[0] * settings.pop("X", 1.0), xy[1] * settings.pop("y", 1.0)
    settings = {**SMALL, **settings, "orders": [1], "scales": [1.0]}
    with pytest.raises(ValueError, match=rf"law='learned' is not possible.*{words}.*law='auto'"):
        HARFERegressorCV(**settings, law="learned").fit(X, y)
    auto, grid = (HARFERegressorCV(**settings, law=law).fit(X, y) for law in ("auto", "grid"))
    for model in (auto, grid):
        assert model.learned_law_ is None
        assert model.fit_ == "data"
        assert model.pools_ == [(1, 1.0)]
    np.testing.assert_array_equal(auto.mse_path_, grid.mse_path_)
    np.testing.assert_array_equal(auto.coef_, grid.coef_)


def test_auto_learns_where_it_can(xy, fitted):
    learned = HARFERegressorCV(**SMALL, law="learned").fit(*xy)
    check_same(learned, fitted)
    grid = HARFERegressorCV(**SMALL, law="grid", orders=[1], scales=[1.0]).fit(*xy)
    assert grid.learned_law_ is None


def test_a_law_that_is_given_is_used_alone(xy):
    law = FeatureLaw(
        4, (1, 2), scale=(1.0, 0.5, 0.5, 0.2), activation="cos", order_weights=(0.3, 0.7)
    )
    model = HARFERegressorCV(**SMALL, law=law).fit(*xy)
    assert model.law_ == law
    assert model.learned_law_ is None
    assert model.fit_ == "data"
    assert model.mse_path_.shape == (1, 3, 2, 3)
    assert model.best_params_["law"] == law
    check_formula(model, xy[0], "cos")
    alone = HARFERegressor(**model.best_params_, random_state=0).fit(*xy)
    np.testing.assert_array_equal(alone.coef_, model.coef_)
    np.testing.assert_array_equal(np.diff(model.weights_.indptr) > 0, True)


@pytest.mark.parametrize("inputs", [2, 8])
def test_a_law_for_another_number_of_inputs_is_refused(xy, inputs):
    with pytest.raises(ValueError, match=rf"law draws from {inputs} inputs, but X has 4"):
        HARFERegressorCV(**SMALL, law=FeatureLaw(inputs)).fit(*xy)


@pytest.mark.parametrize("law", ["bad", None, 3, 0.5, True, "Grid", FeatureLaw], ids=repr)
def test_other_laws_are_refused(xy, law):
    with pytest.raises(ValueError, match=r"law=.*auto, learned, grid"):
        HARFERegressorCV(**SMALL, law=law).fit(*xy)


@pytest.mark.parametrize(("constraint", "most"), [("no_interactions", 1), ("pairwise", 2)])
def test_constraints_cap_the_variables_of_a_feature(xy, constraint, most):
    X = xy[0]
    y = np.prod(1 + X[:, :3], axis=1)
    model = HARFERegressorCV(**{**SMALL, "cv": 2}, interaction_cst=constraint).fit(X, y)
    variables = np.diff(model.weights_.indptr)
    assert variables.max() == most
    assert max(model.order_) == most
    assert np.count_nonzero(model.weights_.toarray()[:, model.support_], axis=0).max() <= most
    # no candidate occurs twice; one that is capped to another has the simpler name; features of
    # joint laws have all inputs
    names = {1: {"additive", "pairs", "isotropic"}, 2: {*CANDIDATES} - {"joint", "rough"}}
    assert set(model.learned_law_.errors) == names[most]
    assert model.score(X, y) > 0.7
    free = HARFERegressorCV(**{**SMALL, "cv": 2}).fit(X, y)
    assert np.diff(free.weights_.indptr).max() > 2


@pytest.mark.usefixtures("two_laws")
def test_an_additive_model_has_no_mixed_differences(xy):
    X = xy[0]
    model = HARFERegressorCV(**{**SMALL, "cv": 2}, interaction_cst="no_interactions").fit(*xy)
    rng = np.random.default_rng(0)
    for k, j in ((0, 1), (1, 2), (0, 3)):
        step = rng.uniform(-0.5, 0.5, 2)
        corners = np.repeat(X[:1], 4, axis=0)
        corners[1::2, k] += step[0]
        corners[2:, j] += step[1]
        f = model.predict(corners)
        assert f[0] - f[1] - f[2] + f[3] == pytest.approx(0, abs=1e-10)


# Only waves are trained by first-order steps, and a reference is real.
POOLS = {
    "cos": list(KINDS),
    "tanh": list(KINDS[:3]),
    "relu": list(KINDS[:3]),
    "exp": ["data"],
}


@pytest.mark.usefixtures("two_laws")
@pytest.mark.parametrize("activation", POOLS)
def test_other_activations(xy, activation):
    model = HARFERegressorCV(**{**SMALL, "cv": 2}, activation=activation).fit(*xy)
    assert model.law_.activation == activation
    assert model.pools_ == POOLS[activation]
    assert np.isrealobj(model.predict(xy[0]))
    check_formula(model, xy[0], activation)
    assert model.score(*xy) > 0.9


# --- other settings ------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_laws")
def test_no_intercept_is_none(xy):
    model = HARFERegressorCV(**{**SMALL, "cv": 2}, fit_intercept=False).fit(*xy)
    assert model.intercept_ == 0


@pytest.mark.usefixtures("two_laws")
def test_two_targets_share_the_model(xy):
    X, y = xy
    Y = np.column_stack([y, 1000 * X[:, 3] + 5])
    model = HARFERegressorCV(**SMALL).fit(X, Y)
    assert model.coef_.shape == (2, 200)
    assert model.intercept_.shape == (2,)
    assert model.score(X, Y) > 0.95
    prediction, std = model.predict(X, return_std=True)
    assert prediction.shape == std.shape == (60, 2)
    _, lower, upper = model.predict(X, interval=0.8)
    assert np.all(lower < upper)
    swapped = HARFERegressorCV(**SMALL, refine=False).fit(X, Y[:, ::-1])
    plain = HARFERegressorCV(**SMALL, refine=False).fit(X, Y)
    np.testing.assert_allclose(swapped.predict(X)[:, ::-1], plain.predict(X), rtol=1e-4)


def test_uncertainty_follows_from_models_without_the_fold(xy, single):
    X, y = xy
    folds, model = single
    assert model.uncertainty_.scores.shape == (60, 1)
    prediction, std = model.predict(X, return_std=True)
    h = model.uncertainty_.posterior.leverage(X)
    sigma = np.sqrt(model.uncertainty_.noise[0])
    np.testing.assert_allclose(std, sigma * np.sqrt(1 + np.minimum(h, 10)), rtol=1e-10)
    assert 0.5 * 0.1 < sigma < 2.5 * 0.1
    mid, lower, upper = model.predict(X, interval=0.9)
    np.testing.assert_array_equal(mid, prediction)
    np.testing.assert_allclose(upper - mid, mid - lower, rtol=1e-9)
    # the residuals of every fold are those of the model that the other folds choose
    sizes = []
    data = Data(X, y[:, None], np.ones(60))
    template = model._template(60.0, True)
    prior = CANDIDATES[model.learned_law_.candidate]
    laws = [fit_law(template, prior, data, train) for train, _ in folds]
    tried = [
        sparse_on_fold(template, law, SETTINGS, data, fold, None)
        for law, fold in zip(laws, folds, strict=True)
    ]
    cells = np.stack([table for table, _ in tried], axis=-1)
    np.testing.assert_allclose(cells[0], model.mse_path_, rtol=1e-9)
    for f, (train, test) in enumerate(folds):
        law = laws[f]
        _, scores, straying = np.delete(cells, f, axis=-1)
        choice = choose_cell(scores, straying, np.array([True, False, False, False]), SIZES, 0.01)
        kind, s = model.pools_[choice.pool], SIZES[choice.size]
        assert kind != "data"
        found = tried[f][1][kind, s]
        A = found.features.evaluate(standard(law, X[train]))
        mean, scale = A.mean(axis=0), A.std(axis=0)
        A = (A - mean) / scale
        alpha = law.noise * s / (law.variance * len(train))
        gram = A.T @ A / len(train) + alpha * np.eye(s)
        a = (found.features.evaluate(standard(law, X[test])) - mean) / scale
        h = (1 + np.sum(a.T * np.linalg.solve(gram, a.T), axis=0)) / len(train)
        value = law.data.to_targets(found.predict(standard(law, X[test])))[:, 0]
        sizes.extend(np.abs(y[test] - value) / np.sqrt(1 + np.minimum(h, 10)))
    np.testing.assert_allclose(model.uncertainty_.scores[:, 0], np.sort(sizes), rtol=1e-6)


@pytest.mark.usefixtures("two_laws")
def test_a_constant_target_is_predicted(xy):
    model = HARFERegressorCV(**{**SMALL, "cv": 2}).fit(xy[0], np.full(60, 3.0))
    prediction, std = model.predict(xy[0], return_std=True)
    np.testing.assert_allclose(prediction, 3.0, rtol=1e-12)
    np.testing.assert_allclose(std, 0.0, atol=1e-10)
    assert model.n_nonzero_coefs_ == 4


def test_an_input_that_is_constant_without_a_fold(xy):
    X = np.zeros((30, 1))
    X[3] = 1.0
    model = HARFERegressorCV(**SMALL).fit(X, xy[1][:30])
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.usefixtures("two_laws")
def test_constant_inputs_beside_others_are_not_used(xy):
    X, y = xy
    beside = np.column_stack([X, np.full(60, 7.0)])
    model = HARFERegressorCV(**{**SMALL, "cv": 2}).fit(beside, y)
    assert model.law_.usage()[4] == 0
    assert model.feature_importances_[4] == 0
    assert model.score(beside, y) > 0.95


def test_units_of_inputs_and_target_do_not_matter(xy, fitted):
    X, y = xy
    # powers of two: the same bits
    scaled = HARFERegressorCV(**SMALL).fit(X * [1, 8, 0.25, 1024], 512 * y)
    assert scaled.fit_ == fitted.fit_
    np.testing.assert_array_equal(scaled.support_, fitted.support_)
    np.testing.assert_allclose(scaled.mse_path_, 512**2 * fitted.mse_path_, rtol=1e-9)
    np.testing.assert_allclose(
        scaled.predict(X * [1, 8, 0.25, 1024]), 512 * fitted.predict(X), rtol=1e-9, atol=1e-9
    )


# --- rows, weights, jobs and threads -------------------------------------------------------------


@pytest.mark.usefixtures("two_laws")
@pytest.mark.parametrize("gain", [NEVER, ALWAYS], ids=["one law", "stack"])
def test_the_order_of_the_rows_does_not_matter(xy, monkeypatch, gain):
    X, y = xy
    stack_from(monkeypatch, gain)
    shuffled = np.random.default_rng(3).permutation(60)
    plain = HARFERegressorCV(**SMALL).fit(X, y)
    other = HARFERegressorCV(**SMALL).fit(X[shuffled], y[shuffled])
    check_same(other, plain, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.predict(X), plain.predict(X), rtol=1e-6)


@pytest.mark.usefixtures("two_laws")
@pytest.mark.parametrize(
    ("gain", "scoring"),
    [(NEVER, None), (ALWAYS, None), (NEVER, "neg_mean_absolute_error")],
    ids=["one law", "stack", "scoring"],
)
def test_a_row_of_weight_two_is_the_row_twice(xy, monkeypatch, scoring, gain):
    X, y = xy
    stack_from(monkeypatch, gain)
    weights = np.random.default_rng(0).integers(0, 4, 60)
    copies = np.repeat(np.arange(60), weights)
    weighted = HARFERegressorCV(**SMALL, scoring=scoring).fit(X, y, sample_weight=weights)
    copied = HARFERegressorCV(**SMALL, scoring=scoring).fit(X[copies], y[copies])
    check_same(weighted, copied, rtol=1e-6, atol=1e-9)
    assert weighted.best_score_ == pytest.approx(copied.best_score_, rel=1e-6)
    for a, b in zip(
        weighted.predict(X, interval=0.8), copied.predict(X, interval=0.8), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_weights_count(xy, fitted):
    weights = np.where(np.arange(60) % 2, 3.0, 0.2)
    weighted = HARFERegressorCV(**SMALL).fit(*xy, sample_weight=weights)
    ran = np.isfinite(fitted.mse_path_)
    assert np.all(weighted.mse_path_[ran] != fitted.mse_path_[ran])


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_the_same_bits_for_any_number_of_jobs(xy, fitted, n_jobs):
    other = HARFERegressorCV(**SMALL, n_jobs=n_jobs).fit(*xy)
    check_same(other, fitted)
    np.testing.assert_array_equal(other.uncertainty_.scores, fitted.uncertainty_.scores)


def test_the_same_bits_for_any_number_of_threads(xy, on_threads):
    one, two = (on_threads(n, lambda: HARFERegressorCV(**SMALL).fit(*xy)) for n in (1, 2))
    check_same(one, two)
    assert one.law_ == two.law_
    np.testing.assert_array_equal(one.uncertainty_.scores, two.uncertainty_.scores)


def test_seeds_count(xy, fitted):
    other = HARFERegressorCV(**{**SMALL, "random_state": 1}).fit(*xy)
    assert not np.array_equal(other.coef_, fitted.coef_)


@pytest.mark.usefixtures("two_laws")
@pytest.mark.parametrize("cv", [None, 3, GroupKFold(4)], ids=["none", "number", "splitter"])
def test_groups_are_never_split(xy, monkeypatch, cv):
    groups = np.array([f"patient {k % 7}" for k in range(60)])
    seen = []

    def spy(template, law, settings, data, fold, scoring):
        seen.append(fold)
        assert len(law.data.Z) == len(fold[0])
        return sparse_on_fold(template, law, settings, data, fold, scoring)

    monkeypatch.setattr(law_search, "sparse_on_fold", spy)
    model = HARFERegressorCV(**{**SMALL, "cv": cv, "refine": False}).fit(*xy, groups=groups)
    # each fold twice: matches, and fits on y
    assert len(seen) == 2 * model.n_splits_
    assert model.n_splits_ == {"None": 5, "3": 3}.get(str(cv), 4)
    for train, test in seen:
        assert set(groups[train]).isdisjoint(groups[test])
        assert len(train) + len(test) == 60


# --- time, warm starts, progress -----------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """What was fitted: rows of every law, and folds of sparse models."""
    seen = SimpleNamespace(laws=[], folds=[])

    original = learn_law.fit_law

    def law_spy(prior, settings, data, rows, starts=()):
        seen.laws.append((prior.name, len(rows)))
        return original(prior, settings, data, rows, starts)

    def fold_spy(*args):
        seen.folds.append((args[2].kinds, len(args[4][0])))
        return sparse_on_fold(*args)

    monkeypatch.setattr(learn_law, "fit_law", law_spy)
    monkeypatch.setattr(law_search, "sparse_on_fold", fold_spy)
    return seen


CUT = "cut short by max_time"


def test_without_time_there_is_a_model_of_one_fold_with_its_uncertainty(xy, calls):
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09: the model is fitted to 40 of 60"):
        model = HARFERegressorCV(**SMALL, max_time=1e-9).fit(*xy)
    assert model.search_complete_ is False
    # a tiny model that compiles, then the most flexible law without the first fold
    assert calls.laws == [("fours", 30), ("fours", 40)]
    assert calls.folds == [(("matched", "refined"), 30), (("matched", "refined"), 40)]
    assert model.learned_law_.candidate == "fours"
    assert list(model.learned_law_.errors) == ["fours"]
    assert model.pools_ == ["matched", "refined"]
    assert model.n_splits_ == 1
    assert model.uncertainty_.scores.shape == (20, 1)
    # the residuals are those of rows that the model has not seen
    _, test = make_folds("cv", 3, *xy, model.seed_)[0]
    h = model.uncertainty_.posterior.leverage(xy[0][test])
    residual = np.abs(xy[1] - model.predict(xy[0]))[test] / np.sqrt(1 + np.minimum(h, 10))
    np.testing.assert_allclose(np.sort(residual), model.uncertainty_.scores[:, 0], rtol=1e-9)
    _, std = model.predict(xy[0], return_std=True)
    assert np.all(std > 0)
    assert np.all(np.isfinite(std))
    check_formula(model, xy[0])


def test_of_a_large_table_without_time_a_sample_is_fitted():
    X, y = make(600)
    with pytest.warns(ConvergenceWarning, match="fitted to 300 of 600 rows"):
        model = HARFERegressorCV(**{**SMALL, "cv": 3}, max_time=1e-9).fit(X, y)
    assert model.uncertainty_.scores.shape == (200, 1)
    assert model.score(*make(100, seed=1)) > 0.95


def test_enough_time_is_no_limit(xy, fitted):
    model = HARFERegressorCV(**SMALL, max_time=1e6).fit(*xy)
    assert model.search_complete_ is True
    check_same(model, fitted)
    np.testing.assert_array_equal(model.uncertainty_.scores, fitted.uncertainty_.scores)


def test_a_warm_start_takes_over_what_is_finished(xy, calls, fitted):
    with pytest.warns(ConvergenceWarning, match=CUT):
        model = HARFERegressorCV(**SMALL, warm_start=True, max_time=1e-9).fit(*xy)
    model.set_params(max_time=None)
    del calls.laws[:], calls.folds[:]
    model.fit(*xy)
    check_same(model, fitted)
    race = [c for c in calls.laws if c[1] < 60]
    assert len(race) == 6 * 3 - 1  # one law of the first fold is there
    # and, as it wins, so are its models
    assert model.learned_law_.candidate == "fours"
    new = {("data",): 3, ("matched", "refined"): 2, ("trained",): 3}
    assert sorted(calls.folds) == [(part, 40) for part, n in new.items() for _ in range(n)]
    del calls.laws[:], calls.folds[:]
    model.fit(*xy)
    check_same(model, fitted)
    assert calls.laws == calls.folds == []
    np.testing.assert_array_equal(model.uncertainty_.scores, fitted.uncertainty_.scores)


@pytest.mark.usefixtures("two_laws")
def test_a_warm_start_with_other_sizes_keeps_the_laws(xy, calls):
    model = HARFERegressorCV(**SMALL, warm_start=True).fit(*xy)
    del calls.laws[:], calls.folds[:]
    model.set_params(n_nonzero_coefs=[5]).fit(*xy)
    assert calls.laws == []
    assert len(calls.folds) == 9
    cold = HARFERegressorCV(**{**SMALL, "n_nonzero_coefs": [5]}).fit(*xy)
    check_same(model, cold)


@pytest.mark.parametrize(
    "change",
    [
        lambda m, X, y: m.fit(X, y + X[:, 0]),
        lambda m, X, y: m.fit(X, y, sample_weight=np.arange(60) + 1.0),
        lambda m, X, y: m.set_params(random_state=1).fit(X, y),
        lambda m, X, y: m.set_params(input_scale="robust").fit(X, y),
        lambda m, X, y: m.set_params(cv=KFold(3)).fit(X, y),
        lambda m, X, y: m.set_params(warm_start=False).fit(X, y),
    ],
    ids=["y", "weights", "seed", "units", "folds", "cold"],
)
@pytest.mark.filterwarnings(f"ignore:.*{CUT}")
def test_a_warm_start_takes_over_nothing_that_could_differ(xy, calls, change):
    # two laws are enough to tell; no time for more
    model = HARFERegressorCV(**SMALL, warm_start=True, max_time=1e-9, refine=False).fit(*xy)
    del calls.laws[:], calls.folds[:]
    change(model, *xy)
    assert len(calls.laws) == len(calls.folds) == 2
    del calls.laws[:], calls.folds[:]
    if model.warm_start:
        change(model, *xy)
        assert calls.laws == calls.folds == []


def test_verbose_tells_of_laws_then_of_models(xy, capsys, monkeypatch):
    slow = SimpleNamespace(monotonic=count(0.0, 60.0).__next__)
    monkeypatch.setattr("harfe._core.progress.time", slow)
    monkeypatch.setattr("harfe._core.progress._TICK", 1e9)
    model = HARFERegressorCV(**SMALL, n_jobs=1, verbose=True).fit(*xy)
    lines = capsys.readouterr().err.splitlines()
    # 18 laws; matches and fits on y on a fold, and the law of all rows; trained features, as
    # matches lose; then these go on to the other folds, and the models of all rows
    assert [line.partition(" fits")[0] for line in lines[:29]] == [
        *(f"harfe: {done} of 25" for done in range(1, 19)),
        *(f"harfe: {done} of 24" for done in range(19, 22)),
        "harfe: 22 of 25",
        *(f"harfe: {done} of 29" for done in range(23, 30)),
    ]
    assert "(law fours)" in lines[0]
    assert "s left, now law pairs, best MSE" in lines[0]
    assert "s left, best MSE" in lines[17]
    assert ", 0 s left, best MSE" in lines[-1]
    assert f"{model.fit_}, " in lines[-1]
    assert " features" in lines[-1]
    assert f"best MSE {-model.best_score_:.4g}" in lines[-1]


@pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn before 1.9")
def test_a_callback_can_stop_the_search(xy, calls):
    class Stop:
        def setup(self, estimator, context):
            self.rounds = 0

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
            self.rounds += context.task_name == "round"
            return self.rounds >= 2

    how_far = "laws were compared on 1 of 3 folds and sizes on 1;"
    with pytest.warns(ConvergenceWarning, match=f"by a callback: {how_far}"):
        model = HARFERegressorCV(**SMALL, n_jobs=1).set_callbacks(Stop()).fit(*xy)
    assert model.search_complete_ is False
    # the fold that had begun is needed: all laws run on it, then the winner on all rows
    assert sorted(calls.laws[:-1]) == sorted((name, 40) for name in CANDIDATES)
    assert calls.laws[-1][1] == 60
    assert set(model.learned_law_.errors) == set(CANDIDATES)
    assert np.isfinite(model.mse_path_).any(axis=(0, 1, 2)).sum() == 1
    check_formula(model, xy[0])


# --- truth ---------------------------------------------------------------------------------------


def test_variables_and_noise_of_a_known_function_are_learned():
    rng = np.random.default_rng(0)
    X, X_test = rng.uniform(-1, 1, (80, 5)), rng.uniform(-1, 1, (300, 5))

    def f(X):
        return np.sin(3 * X[:, 0]) + X[:, 1] ** 2

    y = f(X) + 0.1 * rng.normal(size=80)
    model = HARFERegressorCV(**SMALL).fit(X, y)
    assert set(np.argsort(-model.law_.usage())[:2]) == {0, 1}
    assert np.mean((model.predict(X_test) - f(X_test)) ** 2) < 0.1**2
    assert model.learned_law_.noise == pytest.approx(0.01 / y.var(), rel=0.5)


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "budget"), [(300, 1e8), (800, 1.3e8)])
def test_a_learned_law_stays_within_its_memory_budget(n_rows, budget):
    data = make_function("friedman1", n_rows, random_state=0)
    small = {"cv": 2, "n_nonzero_coefs": [5, 20, 80], "alphas": [1e-3], "random_state": 0}
    HARFERegressorCV(**small).fit(data.X[:50], data.y[:50])  # compiles
    tracemalloc.start()
    try:
        model = HARFERegressorCV(memory_budget=budget, **small).fit(data.X, data.y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert budget / 3 < peak < budget
    assert model.n_components_ == 3000
    assert model.score(data.X, data.y) > 0.9


def test_a_budget_that_is_too_small_says_what_to_change_before_any_work(monkeypatch):
    def no_work(*_args):
        raise AssertionError("the search began to work")

    monkeypatch.setattr(learn_law, "fit_law", no_work)
    data = make_function("friedman1", 300, random_state=0)
    message = r"memory_budget is 40 MB; raise it, pass n_components="
    with pytest.raises(MemoryError, match=message) as told:
        HARFERegressorCV(n_components=4000, memory_budget=4e7).fit(data.X, data.y)
    fewer = int(re.search(r"n_components=(\d+)", str(told.value))[1])
    assert 1500 < fewer < 4000
    with pytest.raises(MemoryError, match=r"use fewer rows, or pass law='grid'"):
        HARFERegressorCV(memory_budget=1e7).fit(data.X, data.y)
    more = make_function("friedman1", 1000, random_state=0)
    with pytest.raises(MemoryError, match=r"raise memory_budget, lower n_nonzero_coefs"):
        HARFERegressorCV(memory_budget=8e7).fit(more.X, more.y)
    # as many as fit, if nobody asked for a number
    assert sparse_models.pool_within(4e7, 300, 4000, free=True) == fewer


def test_a_fold_without_the_chosen_size_takes_the_largest_below(xy, monkeypatch):
    on_fold, fit, sizes = law_search.sparse_on_fold, LawSearch._fit, []

    def without_largest(*args):
        table, models = on_fold(*args)
        return table, {name: model for name, model in models.items() if name[1] < 16}

    def spy(search, where, choice):
        found = fit(search, where, choice)
        sizes.append((search.settings.sizes[choice.size], len(found.places)))
        return found

    monkeypatch.setattr(law_search, "sparse_on_fold", without_largest)
    monkeypatch.setattr(LawSearch, "_fit", spy)
    monkeypatch.setattr("harfe.estimators.regressor_cv.KINDS", ("refined",))
    HARFERegressorCV(**SMALL).fit(*xy)
    assert (16, 8) in sizes
    assert all(found == min(chosen, 8) for chosen, found in sizes)


def test_sizes_that_are_never_trained_leave_matches(xy, monkeypatch):
    monkeypatch.setattr("harfe.selection.sparse_models._MOST_IF_PRECISE", 3)
    monkeypatch.setattr("harfe.estimators.regressor_cv.KINDS", ("matched", "refined"))
    model = HARFERegressorCV(**SMALL).fit(*xy)
    assert model.fit_ == "matched"
    assert not np.isfinite(model.mse_path_[1]).any()
