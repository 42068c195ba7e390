"""HARFERegressorCV: dense twins of folds, brute-force choices, relations, bad arguments."""

import inspect
import io
import pickle
from itertools import count
from time import sleep
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from shared import estimator_checks
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit

from harfe import HARFERegressor, HARFERegressorCV
from harfe._core.sklearn_compat import HAS_CALLBACKS
from harfe.datasets import make_function
from harfe.features.law import FeatureLaw
from harfe.selection.engine.plan import Cost
from harfe.selection.race import Pool, Race, choose, errors_on_fold
from harfe.selection.rows import Data

#: The search over orders and scales; tests/test_law_search.py is about learned laws.
SMALL = {
    "law": "grid",
    "n_components": 200,
    "orders": [1, 2],
    "scales": [0.5, 1.0],
    "n_nonzero_coefs": [5, 10, 20],
    "alphas": [1e-6, 1e-2, 1.0],
    "random_state": 0,
}
#: No more than three pools: none is dropped early.
TINY = {**SMALL, "orders": [1, 2], "scales": [1.0]}


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 80, random_state=0)


@pytest.fixture(scope="module")
def fitted(friedman):
    return HARFERegressorCV(**SMALL).fit(friedman.X, friedman.y)


def choice(model):
    return model.order_, model.scale_, model.n_nonzero_coefs_, model.alpha_


def check_same_search(a, b, **tolerance):
    assert choice(a) == choice(b)
    assert a.pools_ == b.pools_
    compare = np.testing.assert_allclose if tolerance else np.testing.assert_array_equal
    compare(a.mse_path_, b.mse_path_, **tolerance)


# --- scikit-learn's contract ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", ["'auto'", "'grid'"])
def test_every_estimator_check_passes_with_warnings_as_errors(law):
    # numbers of candidates, because some checks set n_components=1
    results = estimator_checks(
        f"HARFERegressorCV(n_components=50, law={law}, orders=2, scales=[1.0], "
        "n_nonzero_coefs=3, alphas=[1e-3, 0.1], cv=3, random_state=0)"
    )
    assert len(results) >= 50
    assert [result for result in results if result[1] != "passed"] == []


def test_parameters_are_not_changed_and_clone_and_pickle_agree(friedman, fitted):
    again = clone(fitted)
    assert again.get_params() == HARFERegressorCV(**SMALL).get_params()
    again.fit(friedman.X, friedman.y)
    assert again.get_params() == fitted.get_params()
    check_same_search(again, fitted)
    thawed = pickle.loads(pickle.dumps(fitted))
    check_same_search(thawed, fitted)
    for model in (again, thawed):
        np.testing.assert_array_equal(model.predict(friedman.X), fitted.predict(friedman.X))
        for a, b in zip(
            model.predict(friedman.X, interval=0.9),
            fitted.predict(friedman.X, interval=0.9),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
    assert thawed.best_params_ == fitted.best_params_


def test_it_has_all_that_the_plain_regressor_has(friedman, fitted):
    plain = HARFERegressor(200, 10, random_state=0).fit(friedman.X, friedman.y)
    public = [name for name in dir(plain) if not name.startswith("_")]
    # its own fixed settings are candidates here, or have no place
    replaced = {"alpha", "init", "noise_level", "order", "residual_cv", "scale", "step_size"}
    replaced.add("selection_rows")
    missing = [name for name in public if not hasattr(fitted, name) and name not in replaced]
    assert missing == []
    shared = set(inspect.signature(HARFERegressor).parameters)
    shared &= set(inspect.signature(HARFERegressorCV).parameters)
    assert {"activation", "weights", "bias", "max_iter", "tol", "input_clip"} <= shared


def test_frames_give_names(friedman):
    names = [f"age{j}" for j in range(10)]
    table = pd.DataFrame(friedman.X, columns=names)
    constraint = [{"age0", "age1"}, {"age2"}]
    model = HARFERegressorCV(**TINY, cv=3, interaction_cst=constraint).fit(table, friedman.y)
    assert model.feature_names_in_.tolist() == names
    assert all("age" in name for name in model.expansion_.names())
    plain = HARFERegressorCV(**TINY, cv=3, interaction_cst=[{0, 1}, {2}])
    plain.fit(friedman.X, friedman.y)
    np.testing.assert_array_equal(model.predict(table), plain.predict(friedman.X))


def test_weights_and_groups_are_routed(friedman):
    weights, groups = np.arange(80) % 3 + 1.0, np.arange(80) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        model = HARFERegressorCV(**TINY, cv=3)
        model.set_fit_request(sample_weight=True, groups=True)
        pipeline = sklearn.pipeline.make_pipeline(model)
        pipeline.fit(friedman.X, friedman.y, sample_weight=weights, groups=groups)
    direct = HARFERegressorCV(**TINY, cv=3)
    direct.fit(friedman.X, friedman.y, sample_weight=weights, groups=groups)
    check_same_search(pipeline[-1], direct)


# --- the table of errors -------------------------------------------------------------------------


def kept(c, count):
    """Sorted places of the rows of largest norm."""
    return np.sort(np.argsort(-np.sum(np.abs(c) ** 2, axis=1), kind="stable")[:count])


def twin_predictions(settings, pool, X, y, w, X_new):
    """Dense NumPy: standardise, evaluate, prune to a core, prune for every α; by definition."""
    law = FeatureLaw.from_settings(X.shape[1], order=pool[0], scale=pool[1])
    drawn = law.draw(settings["n_components"], np.random.default_rng(settings["seed"]))
    share = w / w.sum()
    centre = share @ X
    spread = np.sqrt(share @ (X - centre) ** 2)

    def raw(X):
        return np.sin((X - centre) / spread @ drawn.weights().toarray() + drawn.phases)

    mean = share @ raw(X)
    rms = np.sqrt(share @ (raw(X) - mean) ** 2)
    A, A_new = (raw(X) - mean) / rms, (raw(X_new) - mean) / rms
    y_mean = share @ y
    y_unit = np.sqrt(share @ np.abs(y - y_mean) ** 2) if y.shape[1] > 1 else 1.0

    def ridge(S, alpha):
        left = (A[:, S] * share[:, None]).T @ A[:, S] + alpha * np.eye(len(S))
        return np.linalg.solve(left, (A[:, S] * share[:, None]).T @ ((y - y_mean) / y_unit))

    sizes = sorted(settings["n_nonzero_coefs"], reverse=True)
    size_of_core = max(min(600, int(w.sum())), 50, sizes[0])
    core = np.arange(A.shape[1])
    while len(core) > size_of_core:
        core = core[kept(ridge(core, 0.1), max(size_of_core, len(core) // 2))]
    out = {}
    for alpha in settings["alphas"]:
        S, wanted = core, sizes
        while wanted:
            c = ridge(S, alpha)
            if len(S) in sizes:
                out[len(S), alpha] = A_new[:, S] @ c * y_unit + y_mean
            wanted = [s for s in wanted if s < len(S)]
            if wanted:
                S = S[kept(c, max(wanted[0], int(0.75 * len(S))))]
    return out


@pytest.mark.parametrize("kind", ["plain", "weights", "complex", "two targets"])
def test_every_cell_of_the_errors_equals_a_dense_twin(friedman, kind):
    X = friedman.X
    y = friedman.y[:, None]
    w = np.arange(80) % 4 + 0.5 if kind == "weights" else np.ones(80)
    w *= 80 / w.sum()  # as fits take them
    if kind == "complex":
        y = y + 2j * np.sin(3 * X[:, :1])
    if kind == "two targets":
        y = np.column_stack([y[:, 0], 1000 * X[:, 3] ** 2])
    folds = list(KFold(3, shuffle=True, random_state=1).split(X))
    model = HARFERegressorCV(**TINY, cv=folds, input_clip=None)
    model.fit(X, y[:, 0] if y.shape[1] == 1 else y, sample_weight=None if kind == "plain" else w)
    assert model.mse_path_.shape == (2, 3, 3, 3)
    settings = {**TINY, "seed": model.seed_}
    for p, pool in enumerate(model.pools_):
        for f, (train, test) in enumerate(folds):
            twin = twin_predictions(settings, pool, X[train], y[train], w[train], X[test])
            for i, s in enumerate(model.sizes_):
                for j, alpha in enumerate(model.alphas_):
                    square = np.abs(y[test] - twin[s, alpha]) ** 2
                    if kind == "two targets":
                        square = square / y.std(axis=0) ** 2
                    expected = np.average(square.mean(axis=1), weights=w[test])
                    assert model.mse_path_[p, i, j, f] == pytest.approx(expected, rel=1e-5)


def test_results_list_every_cell_once(fitted):
    results = fitted.cv_results_
    assert fitted.pools_ == [(1, 0.5), (1, 1.0), (2, 0.5), (2, 1.0)]
    assert fitted.mse_path_.shape == (4, 3, 3, 15)
    assert fitted.n_splits_ == 15
    keys = list(zip(*(results[f"param_{n}"] for n in ("order", "scale")), strict=True))
    assert keys == [pool for pool in fitted.pools_ for _ in range(9)]
    for row, params in enumerate(results["params"]):
        p = fitted.pools_.index((params["order"], params["scale"]))
        i = fitted.sizes_.tolist().index(params["n_nonzero_coefs"])
        j = fitted.alphas_.tolist().index(params["alpha"])
        errors = fitted.mse_path_[p, i, j]
        splits = [results[f"split{f}_test_score"][row] for f in range(15)]
        np.testing.assert_array_equal(splits, -errors)
        run = errors[~np.isnan(errors)]
        assert results["n_splits"][row] == len(run)
        assert results["mean_test_score"][row] == pytest.approx(-run.mean())
        assert results["std_test_score"][row] == pytest.approx(run.std())
        assert results["param_n_nonzero_coefs"][row] == params["n_nonzero_coefs"]
        assert results["param_alpha"][row] == params["alpha"]
        assert (results["rank_test_score"][row] > 0) == (len(run) == 15)


def test_the_choice_is_the_best_mean_of_all_that_ran_on_all_folds(fitted):
    complete = ~np.isnan(fitted.mse_path_).any(axis=-1)
    mean = np.where(complete, fitted.mse_path_.mean(axis=-1), np.inf)
    p, i, j = np.unravel_index(np.argmin(mean), mean.shape)
    assert choice(fitted) == (*fitted.pools_[p], fitted.sizes_[i], fitted.alphas_[j])
    assert fitted.best_score_ == pytest.approx(-mean.min())
    results = fitted.cv_results_
    first = results["params"][int(np.flatnonzero(results["rank_test_score"] == 1)[0])]
    assert first == {name: fitted.best_params_[name] for name in first}
    assert len(fitted.support_) == fitted.n_nonzero_coefs_


def test_the_choice_fits_the_same_model_alone(friedman, fitted):
    alone = HARFERegressor(**fitted.best_params_, random_state=0).fit(friedman.X, friedman.y)
    np.testing.assert_array_equal(alone.coef_, fitted.coef_)
    assert alone.intercept_ == fitted.intercept_
    np.testing.assert_array_equal(alone.feature_importances_, fitted.feature_importances_)
    assert alone.law_ == fitted.law_
    assert alone.seed_ == fitted.seed_


def test_the_choice_fits_the_same_model_alone_whatever_else_was_set(friedman):
    other = {"activation": "cos", "fit_intercept": False, "input_scale": "robust", "bias": "none"}
    model = HARFERegressorCV(**TINY, cv=3, **other).fit(friedman.X, friedman.y)
    alone = HARFERegressor(**{**other, **model.best_params_}, random_state=0)
    alone.fit(friedman.X, friedman.y)
    np.testing.assert_array_equal(alone.coef_, model.coef_)


def test_one_standard_error_takes_fewer_terms(friedman, fitted):
    sparse = HARFERegressorCV(**SMALL, selection="one_se").fit(friedman.X, friedman.y)
    np.testing.assert_array_equal(sparse.mse_path_, fitted.mse_path_)
    assert sparse.n_nonzero_coefs_ <= fitted.n_nonzero_coefs_
    chosen = [r == {**r, **{k: fitted.best_params_[k] for k in r}} for r in rows(fitted)]
    errors = split_scores(fitted)[chosen.index(True)]
    limit = errors.mean() - errors.std(ddof=1) / np.sqrt(len(errors))
    assert limit <= sparse.best_score_ <= fitted.best_score_
    # fewest features of all within the limit, then the best of these
    scores = split_scores(fitted).mean(axis=1)
    allowed = [
        (params["n_nonzero_coefs"], -score)
        for params, score in zip(rows(fitted), scores, strict=True)
        if score >= limit
    ]
    assert (sparse.n_nonzero_coefs_, -sparse.best_score_) == pytest.approx(min(allowed))


def rows(model):
    return model.cv_results_["params"]


def split_scores(model):
    """Scores (candidates, folds), NaN where a candidate was dropped."""
    return np.column_stack(
        [model.cv_results_[f"split{f}_test_score"] for f in range(model.n_splits_)]
    )


def test_choose_by_hand():
    scores = np.full((2, 2, 2, 4), -9.0)
    scores[0, 1, 0] = [-1.0, -2.0, -1.0, -2.0]  # mean -1.5, standard error 0.2887
    scores[1, 0, 1] = [-1.7, -1.7, -1.7, -1.7]
    scores[1, 1, 1] = [-1.6, -1.6, -1.6, -1.6]
    best = choose(scores, [5, 10], "best")
    assert (best.pool, best.size, best.alpha, best.score) == (0, 1, 0, -1.5)
    sparse = choose(scores, [5, 10], "one_se")
    assert (sparse.pool, sparse.size, sparse.alpha, sparse.score) == (1, 0, 1, -1.7)
    scores[1, 0, 1] = -1.8
    assert choose(scores, [5, 10], "one_se").size == 1  # beyond the standard error
    dropped = scores.copy()
    dropped[1, 0, 1] = 0.0
    dropped[1, ..., 2:] = np.nan  # good, but not run on all folds
    assert choose(dropped, [5, 10], "best") == best


def test_ties_go_to_fewer_terms_and_more_ridge():
    tied = choose(np.zeros((2, 3, 4, 5)), [5, 10, 20], "best")
    assert (tied.pool, tied.size, tied.alpha) == (0, 0, 3)


def test_a_search_that_ended_early_chooses_among_what_was_run():
    scores = np.full((3, 1, 1, 5), np.nan)
    scores[:, 0, 0, 0] = [-3.0, -1.0, -2.0]
    assert choose(scores, [5], "best").pool == 1
    assert choose(scores, [5], "one_se").pool == 1


# --- the race ------------------------------------------------------------------------------------


def test_pools_that_fall_behind_are_dropped(friedman):
    wide = {**SMALL, "orders": [1, 2, 3], "scales": [0.3, 0.5, 1.0, 2.0]}
    model = HARFERegressorCV(**wide).fit(friedman.X, friedman.y)
    run = ~np.isnan(model.mse_path_[:, 0, 0])
    assert run[:, :2].all()
    n_folds = run.sum(axis=1)
    assert sorted(set(n_folds.tolist())) == [2, 5, 15]
    assert np.sum(n_folds >= 5) == 4  # a third of twelve
    assert np.sum(n_folds == 15) == 2
    best = model.mse_path_[..., :2].mean(axis=-1).min(axis=(1, 2))
    assert set(np.flatnonzero(n_folds >= 5)) == set(np.argsort(best)[:4])
    once = model.mse_path_[..., :5].mean(axis=-1).min(axis=(1, 2))
    ahead = sorted(np.flatnonzero(n_folds >= 5), key=lambda p: once[p])[:2]
    assert set(np.flatnonzero(n_folds == 15)) == set(ahead)
    assert n_folds[model.pools_.index((model.order_, model.scale_))] == 15


def test_a_heavy_fold_decides_alone(friedman, monkeypatch):
    wide = {**SMALL, "orders": [1, 2, 3]}
    with monkeypatch.context() as patch:
        patch.setattr("harfe.selection.race._TELLING_WEIGHT", 40)
        heavy = HARFERegressorCV(**wide, cv=2).fit(friedman.X, friedman.y)
    assert np.sum(~np.isnan(heavy.mse_path_[:, 0, 0]), axis=1).tolist().count(1) == 3
    light = HARFERegressorCV(**wide, cv=2).fit(friedman.X, friedman.y)
    assert not np.isnan(light.mse_path_).any()


def test_features_are_drawn_once_for_all_folds(friedman, monkeypatch):
    seen = {}

    def spy(framing, drawn, *args):
        seen.setdefault(bytes(drawn.values), []).append(drawn)
        return errors_on_fold(framing, drawn, *args)

    monkeypatch.setattr("harfe.selection.race.errors_on_fold", spy)
    model = HARFERegressorCV(**TINY, cv=4).fit(friedman.X, friedman.y)
    assert len(seen) == len(model.pools_) == 2
    for drawn in seen.values():
        assert len(drawn) == 4
        assert all(pool is drawn[0] for pool in drawn)


def test_folds_are_repeated_for_few_distinct_rows(friedman, monkeypatch):
    def splits(**fit):
        return HARFERegressorCV(**TINY).fit(friedman.X, friedman.y, **fit).n_splits_

    assert splits() == splits(sample_weight=np.full(80, 1e3)) == 15
    assert splits(groups=np.arange(80) % 9) == 5
    monkeypatch.setattr("harfe.estimators.regressor_cv.FEW_ROWS", 80)
    assert splits() == splits(sample_weight=np.full(80, 1e-3)) == 5
    assert splits(sample_weight=np.arange(80) > 0) == 15


def test_the_same_bits_for_any_number_of_jobs(friedman, fitted):
    for n_jobs in (1, 2, -1):
        other = HARFERegressorCV(**SMALL, n_jobs=n_jobs).fit(friedman.X, friedman.y)
        check_same_search(other, fitted)
        np.testing.assert_array_equal(other.coef_, fitted.coef_)
    scored = [
        HARFERegressorCV(**TINY, cv=2, scoring=minus_cubes, n_jobs=n).fit(friedman.X, friedman.y)
        for n in (None, 2)
    ]
    assert scored[0].best_score_ == scored[1].best_score_


def test_the_same_bits_for_any_number_of_threads(friedman, on_threads):
    one, two = (
        on_threads(n, lambda: HARFERegressorCV(**SMALL).fit(friedman.X, friedman.y)) for n in (1, 2)
    )
    check_same_search(one, two)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.uncertainty_.scores, two.uncertainty_.scores)


def test_the_order_of_the_rows_does_not_matter(friedman, fitted):
    shuffled = np.random.default_rng(3).permutation(80)
    other = HARFERegressorCV(**SMALL).fit(friedman.X[shuffled], friedman.y[shuffled])
    check_same_search(other, fitted, rtol=1e-6)
    np.testing.assert_allclose(other.predict(friedman.X), fitted.predict(friedman.X), rtol=1e-6)


def test_a_row_that_stands_twice_is_never_learned_and_asked_for(friedman, monkeypatch):
    checked = []

    def spy(framing, drawn, sizes, alphas, data, fold, scoring):
        train, test = (set(map(bytes, data.X[part])) for part in fold)
        checked.append(train.isdisjoint(test))
        return errors_on_fold(framing, drawn, sizes, alphas, data, fold, scoring)

    monkeypatch.setattr("harfe.selection.race.errors_on_fold", spy)
    twice = np.tile(np.arange(40), 2)
    HARFERegressorCV(**TINY).fit(friedman.X[twice], friedman.y[twice])
    assert len(checked) == 30
    assert all(checked)


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
@pytest.mark.parametrize("targets", [1, 2])
def test_a_row_of_weight_two_is_the_row_twice(friedman, targets, scoring):
    X = friedman.X
    y = friedman.y if targets == 1 else np.column_stack([friedman.y, 50 * X[:, 3] ** 4])
    weights = np.random.default_rng(0).integers(0, 4, 80)
    copies = np.repeat(np.arange(80), weights)
    weighted = HARFERegressorCV(**SMALL, scoring=scoring).fit(X, y, sample_weight=weights)
    copied = HARFERegressorCV(**SMALL, scoring=scoring).fit(X[copies], y[copies])
    check_same_search(weighted, copied, rtol=1e-6)
    assert weighted.best_score_ == pytest.approx(copied.best_score_, rel=1e-6)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-6, atol=1e-8)
    for level in (0.5, 0.9):
        for a, b in zip(
            weighted.predict(X, interval=level), copied.predict(X, interval=level), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_weights_count_in_the_scores(friedman):
    weights = np.where(np.arange(80) % 2, 5.0, 0.1)
    folds = list(KFold(4).split(friedman.X))
    plain = HARFERegressorCV(**TINY, cv=folds).fit(friedman.X, friedman.y)
    weighted = HARFERegressorCV(**TINY, cv=folds)
    weighted.fit(friedman.X, friedman.y, sample_weight=weights)
    assert np.all(plain.mse_path_ != weighted.mse_path_)


@pytest.mark.parametrize("kind", ["pairs", "predefined"])
def test_folds_name_the_rows_that_were_passed_also_if_some_do_not_count(friedman, kind):
    weights = (np.arange(80) % 4 != 0).astype(float)
    counted = weights > 0
    part = np.random.default_rng(0).integers(0, 3, 80)
    if kind == "predefined":
        cv, cv_counted = PredefinedSplit(part), PredefinedSplit(part[counted])
    else:
        cv = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
        inner = part[counted]
        cv_counted = [(np.flatnonzero(inner != k), np.flatnonzero(inner == k)) for k in range(3)]
    whole = HARFERegressorCV(**TINY, cv=cv)
    whole.fit(friedman.X, friedman.y, sample_weight=weights)
    some = HARFERegressorCV(**TINY, cv=cv_counted).fit(friedman.X[counted], friedman.y[counted])
    check_same_search(whole, some)


# --- folds ---------------------------------------------------------------------------------------


def spied_folds(monkeypatch):
    folds = []

    def spy(*args):
        folds.append(args[5])
        return errors_on_fold(*args)

    monkeypatch.setattr("harfe.selection.race.errors_on_fold", spy)
    return folds


@pytest.mark.parametrize("cv", [None, 3, GroupKFold(4)], ids=["none", "number", "splitter"])
def test_groups_are_never_split(friedman, monkeypatch, cv):
    folds = spied_folds(monkeypatch)
    groups = np.array([f"patient {k % 7}" for k in range(80)])
    model = HARFERegressorCV(**TINY, cv=cv).fit(friedman.X, friedman.y, groups=groups)
    assert model.n_splits_ == {"None": 5, "3": 3}.get(str(cv), 4)
    assert len(folds) == 2 * model.n_splits_
    for train, test in folds:
        assert set(groups[train]).isdisjoint(groups[test])
    intervals = model.predict(friedman.X, interval=0.9)
    assert np.all(intervals[1] < intervals[2])


def test_groups_follow_the_rows_that_count(friedman, monkeypatch):
    folds = spied_folds(monkeypatch)
    groups, weights = np.arange(80) % 7, (np.arange(80) % 5 != 0).astype(float)
    model = HARFERegressorCV(**TINY, cv=3)
    model.fit(friedman.X, friedman.y, sample_weight=weights, groups=groups)
    counted = groups[weights > 0]
    for train, test in folds:
        assert set(counted[train]).isdisjoint(counted[test])


def test_a_splitter_gets_the_groups(friedman):
    seen = []

    class Recording(GroupKFold):
        def split(self, X, y=None, groups=None):
            seen.append(np.asarray(groups))
            return super().split(X, y, groups)

    groups = np.arange(80) % 5
    HARFERegressorCV(**TINY, cv=Recording(3)).fit(friedman.X, friedman.y, groups=groups)
    np.testing.assert_array_equal(seen, [groups])


def test_fewer_groups_than_folds_are_folds_of_one_group(friedman):
    model = HARFERegressorCV(**TINY).fit(friedman.X, friedman.y, groups=np.arange(80) % 3)
    assert model.n_splits_ == 3


def test_pairs_of_rows_may_come_from_a_generator(friedman):
    splitter = KFold(3, shuffle=True, random_state=0)
    from_pairs = HARFERegressorCV(**TINY, cv=splitter.split(friedman.X))
    from_splitter = HARFERegressorCV(**TINY, cv=splitter)
    check_same_search(
        from_pairs.fit(friedman.X, friedman.y), from_splitter.fit(friedman.X, friedman.y)
    )


def test_a_single_held_out_part_is_enough(friedman):
    model = HARFERegressorCV(**TINY, cv=[(np.arange(60), np.arange(60, 80))])
    for selection in ("best", "one_se"):
        model.set_params(selection=selection).fit(friedman.X, friedman.y)
        assert model.n_splits_ == 1
        assert model.mse_path_.shape == (2, 3, 3, 1)
        assert -model.best_score_ == model.mse_path_.min()
        assert len(model.uncertainty_.scores) == 20


# --- scoring -------------------------------------------------------------------------------------


def minus_cubes(estimator, X, y):
    return -float(np.mean(np.abs(y - estimator.predict(X)) ** 3))


def weighted_scorer(estimator, X, y, sample_weight=None):
    return -float(np.average(np.abs(y - estimator.predict(X)), weights=sample_weight))


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [
        ("r2", r2_score),
        ("neg_mean_absolute_error", lambda *a, **k: -mean_absolute_error(*a, **k)),
        ("neg_root_mean_squared_error", lambda *a, **k: -(mean_squared_error(*a, **k) ** 0.5)),
        (weighted_scorer, lambda *a, **k: -mean_absolute_error(*a, **k)),
        (minus_cubes, lambda y, f, **_: -np.mean(np.abs(y - f) ** 3)),
    ],
    ids=["r2", "mae", "rmse", "callable with weights", "callable"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_the_metric(friedman, scoring, metric, weighted):
    weights = np.arange(80) % 3 + 0.5 if weighted else np.ones(80)
    weights *= 80 / weights.sum()  # as fits take them
    folds = list(KFold(3, shuffle=True, random_state=0).split(friedman.X))
    model = HARFERegressorCV(**TINY, cv=folds, scoring=scoring, input_clip=None)
    model.fit(friedman.X, friedman.y, sample_weight=weights if weighted else None)
    X, y = friedman.X, friedman.y
    settings = {**TINY, "seed": model.seed_}
    f, (train, test) = 1, folds[1]
    for p, pool in enumerate(model.pools_):
        twin = twin_predictions(settings, pool, X[train], y[train, None], weights[train], X[test])
        for row, params in enumerate(rows(model)):
            if (params["order"], params["scale"]) == model.pools_[p]:
                prediction = twin[params["n_nonzero_coefs"], params["alpha"]][:, 0]
                expected = metric(y[test], prediction, sample_weight=weights[test])
                score = model.cv_results_[f"split{f}_test_score"][row]
                assert score == pytest.approx(expected, rel=1e-5)
    means = split_scores(model).mean(axis=1)
    assert model.best_score_ == pytest.approx(means.max())
    assert rows(model)[int(np.argmax(means))].items() <= model.best_params_.items()
    errors = HARFERegressorCV(**TINY, cv=folds, input_clip=None)
    errors.fit(friedman.X, friedman.y, sample_weight=weights if weighted else None)
    np.testing.assert_array_equal(model.mse_path_, errors.mse_path_)


def test_the_squared_error_by_name_is_the_default(friedman, fitted):
    named = HARFERegressorCV(**SMALL, scoring="neg_mean_squared_error")
    named.fit(friedman.X, friedman.y)
    check_same_search(named, fitted)
    assert named.best_score_ == pytest.approx(fitted.best_score_, rel=1e-12)


def test_another_score_can_choose_otherwise(friedman):
    def dense(estimator, X, y):
        return float(np.mean(estimator.predict(X)))  # nonsense, but its best is known

    model = HARFERegressorCV(**TINY, cv=3, scoring=dense).fit(friedman.X, friedman.y)
    assert model.best_score_ == split_scores(model).mean(axis=1).max()
    default = HARFERegressorCV(**TINY, cv=3).fit(friedman.X, friedman.y)
    assert choice(model) != choice(default)


def test_several_targets_are_scored_together(friedman):
    Y = np.column_stack([friedman.y, friedman.X[:, 3]])
    model = HARFERegressorCV(**TINY, cv=3, scoring="r2").fit(friedman.X, Y)
    assert 0.3 < model.best_score_ < 1


# --- time and warm starts ------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that ticks once for every fold of a pool."""
    ticks = []

    def spy(*args):
        ticks.append(args[1])
        return errors_on_fold(*args)

    monkeypatch.setattr("harfe.selection.race.errors_on_fold", spy)
    monkeypatch.setattr("harfe.estimators.regressor_cv._clock", lambda: float(len(ticks)))
    # every fold is expected to take as long as any other
    monkeypatch.setattr("harfe.selection.race.path_cost", lambda m, N, kind="path": Cost(kind, 1.0))
    return ticks


CUT = "cut short by max_time"


@pytest.mark.parametrize("selection", ["best", "one_se"])
@pytest.mark.parametrize(("max_time", "folds"), [(5, 1), (7.9, 1), (9, 2), (11.9, 2), (12, 3)])
def test_time_that_runs_out_leaves_a_model(friedman, clock, max_time, folds, selection):
    # One tick for compiling, then four pools on two folds, and the best three on the others.
    model = HARFERegressorCV(**SMALL, cv=5, max_time=max_time, selection=selection, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match=f"compared on {folds} of 5 folds"):
        model.fit(friedman.X, friedman.y)
    assert len(clock) == 1 + 4 * min(folds, 2) + 3 * (folds > 2) <= max_time
    assert model.search_complete_ is False
    assert model.score(friedman.X, friedman.y) > 0.5
    run = np.sum(~np.isnan(model.mse_path_[:, 0, 0]), axis=1)
    assert run[model.pools_.index((model.order_, model.scale_))] == run.max() == folds
    assert np.all(np.isfinite(model.predict(friedman.X, return_std=True)[1]))
    # as many folds as were run, 16 rows each, give the uncertainty
    assert len(model.uncertainty_.scores) == 16 * folds


def test_without_time_the_first_fold_has_one_pool(friedman):
    with pytest.warns(ConvergenceWarning, match="the model is fitted to 64 of 80 rows"):
        model = HARFERegressorCV(**SMALL, max_time=1e-9).fit(friedman.X, friedman.y)
    assert model.search_complete_ is False
    assert model.pools_ == [(1, 1.0)]
    assert model.mse_path_.shape == (1, 3, 3, 1)
    assert np.all(np.isfinite(model.predict(friedman.X)))
    assert model.uncertainty_.scores.shape == (16, 1)
    assert choice(model)[:2] == (1, 1.0)


def test_pools_compete_on_the_folds_that_they_share():
    tables = {(p, f): np.full((2, 1, 1), -2.0 + (p == 1)) for p in range(3) for f in range(2)}
    folds = [(np.arange(8), np.arange(8, 10))] * 3
    data = Data(np.zeros((10, 1)), np.zeros((10, 1)), np.ones(10))
    pools = [Pool(1, float(p), None) for p in range(3)]
    for last in (-0.1, -9.0):
        race = Race(None, pools, [5], [1.0], data, folds, 3, alive=[0, 1, 2])
        # time ran out just after the last fold had begun
        race.errors = tables | {(0, 2): np.full((2, 1, 1), last)}
        assert race.best_so_far() == (-1.0, "order 1, scale 1")


def test_enough_time_is_no_limit(friedman, fitted):
    model = HARFERegressorCV(**SMALL, max_time=1e6).fit(friedman.X, friedman.y)
    assert model.search_complete_ is True
    assert fitted.search_complete_ is True
    check_same_search(model, fitted)


def test_a_warm_start_goes_on_where_the_time_ran_out(friedman, clock, fitted):
    model = HARFERegressorCV(**SMALL, warm_start=True, max_time=10, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match=CUT):
        model.fit(friedman.X, friedman.y)
    assert len(clock) == 1 + 8
    assert model.search_complete_ is False
    model.set_params(max_time=None).fit(friedman.X, friedman.y)
    assert model.search_complete_ is True
    run = np.sum(~np.isnan(fitted.mse_path_[:, 0, 0]))
    assert len(clock) == 1 + run  # none was run twice; one was to compile
    check_same_search(model, fitted)
    np.testing.assert_array_equal(model.coef_, fitted.coef_)
    np.testing.assert_array_equal(model.uncertainty_.scores, fitted.uncertainty_.scores)
    done = len(clock)
    model.fit(friedman.X, friedman.y)
    assert len(clock) == done
    check_same_search(model, fitted)


def test_a_warm_start_takes_over_what_it_can(friedman, clock):
    model = HARFERegressorCV(**TINY, cv=3, warm_start=True).fit(friedman.X, friedman.y)
    assert len(clock) == 6
    model.set_params(orders=[1, 2, 3]).fit(friedman.X, friedman.y)
    assert len(clock) == 9
    assert [pool.indices.shape[1] for pool in clock[6:]] == [3] * 3
    cold = HARFERegressorCV(**{**TINY, "orders": [1, 2, 3]}, cv=3).fit(friedman.X, friedman.y)
    check_same_search(model, cold)


@pytest.mark.parametrize(
    "change",
    [
        lambda m, X, y, w: m.fit(X + 0.1, y, sample_weight=w),
        lambda m, X, y, w: m.fit(X, 2 * y, sample_weight=w),
        lambda m, X, y, w: m.fit(X, y, sample_weight=w + (w > 1)),
        lambda m, X, y, w: m.set_params(random_state=1).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(alphas=[1.0]).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(n_nonzero_coefs=[7]).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(n_components=100).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(scoring=minus_cubes).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(activation="cos").fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(input_scale="robust").fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(input_clip=1.0).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(fit_intercept=False).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(variable_weights=[1] * 9 + [2]).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(cv=KFold(3)).fit(X, y, sample_weight=w),
        lambda m, X, y, w: m.set_params(warm_start=False).fit(X, y, sample_weight=w),
    ],
    ids=lambda change: inspect.getsource(change).partition("w: m.")[2].strip()[:40],
)
def test_a_warm_start_takes_over_nothing_that_could_differ(friedman, clock, change):
    weights = np.arange(80) % 2 + 1.0
    model = HARFERegressorCV(**TINY, cv=3, warm_start=True)
    model.fit(friedman.X, friedman.y, sample_weight=weights)
    assert len(clock) == 6
    change(model, friedman.X, friedman.y, weights)
    assert len(clock) == 12


# --- candidates ----------------------------------------------------------------------------------


def test_numbers_of_candidates(friedman):
    numbers = {"orders": 3, "scales": 2, "n_nonzero_coefs": 4, "alphas": 3}
    model = HARFERegressorCV(200, law="grid", **numbers, random_state=0)
    model.fit(friedman.X, friedman.y)
    assert model.pools_ == [(q, v) for q in (2, 1, (1, 2)) for v in (0.2, 4.0)]
    np.testing.assert_allclose(model.alphas_, [1e-12, 10**-5.5, 10])
    assert model.sizes_.tolist() == [2, 6, 20, 64]  # equal ratios up to the rows of a fold
    one = HARFERegressorCV(200, law="grid", orders=1, scales=1, n_nonzero_coefs=1, alphas=1, cv=4)
    one.fit(friedman.X, friedman.y)
    assert one.mse_path_.shape == (1, 1, 1, 4)
    assert one.pools_ == [(2, 1.0)]
    assert one.alphas_.tolist() == [1e-3]


def test_the_default_grid():
    parameters = inspect.signature(HARFERegressorCV).parameters
    X = np.random.default_rng(0).uniform(size=(40, 5))
    model = HARFERegressorCV(100, law="grid", random_state=0, cv=2).fit(X, np.sin(3 * X[:, 0]))
    assert len(model.pools_) == parameters["orders"].default * parameters["scales"].default
    assert len(model.alphas_) == parameters["alphas"].default
    assert (model.alphas_[0], model.alphas_[-1]) == pytest.approx((1e-12, 10))
    assert any(np.iterable(order) for order, _ in model.pools_)


def test_arrays_of_candidates_are_taken_as_they_are(friedman):
    model = HARFERegressorCV(
        100,
        law="grid",
        orders=np.array([2, 1]),
        scales=(2.0, 0.25),
        n_nonzero_coefs=np.array([9, 3, 9]),
        alphas=[1, 0],
        cv=2,
        random_state=0,
    ).fit(friedman.X, friedman.y)
    assert model.pools_ == [(2, 2.0), (2, 0.25), (1, 2.0), (1, 0.25)]
    assert model.sizes_.tolist() == [3, 9]
    assert model.alphas_.tolist() == [0.0, 1.0]
    assert np.all(np.isfinite(model.mse_path_[:, :, :, 0]))
    mixed = HARFERegressorCV(
        100, law="grid", orders=[(1, 2), [2, 3]], scales=[1.0], cv=2, random_state=0
    )
    mixed.fit(friedman.X, friedman.y)
    assert mixed.pools_ == [((1, 2), 1.0), ((2, 3), 1.0)]
    assert isinstance(mixed.order_, tuple)
    assert mixed.law_.orders == mixed.order_


def test_numbers_of_orders_leave_out_what_the_inputs_do_not_have(friedman):
    line = HARFERegressorCV(**{**SMALL, "orders": 4}, cv=2)
    line.fit(friedman.X[:, 3:4], friedman.y)
    assert line.pools_ == [(1, 0.5), (1, 1.0)]
    plane = HARFERegressorCV(**{**SMALL, "orders": 8, "scales": [1.0]}, cv=2)
    plane.fit(friedman.X[:, 3:5], friedman.y)
    assert plane.pools_ == [(2, 1.0), (1, 1.0), ((1, 2), 1.0)]
    with pytest.raises(ValueError, match="order=2 is larger than the number of inputs, 1"):
        HARFERegressorCV(**SMALL).fit(friedman.X[:, 3:4], friedman.y)


def test_constraints_make_no_pool_twice(friedman):
    def pools(orders, constraint):
        settings = {**SMALL, "orders": orders, "scales": [1.0]}
        model = HARFERegressorCV(**settings, cv=2, interaction_cst=constraint)
        model.fit(friedman.X, friedman.y)
        for p in range(len(model.pools_)):
            for q in range(p):
                assert not np.array_equal(model.mse_path_[p], model.mse_path_[q])
        return [order for order, _ in model.pools_]

    assert pools([2, 1, 3], "pairwise") == [2, 1]
    assert pools([2, 1, 3], "no_interactions") == [2]
    assert pools([2, 2, 1], None) == [2, 1]
    assert pools(4, "no_interactions") == [2]  # orders (1, 2) are (1, 1) here: those of order 1


def test_few_drawn_inputs_leave_out_higher_orders(friedman):
    model = HARFERegressorCV(**{**SMALL, "orders": 4}, cv=2, variable_weights=[1] + [0] * 9)
    model.fit(friedman.X, friedman.y)
    assert {order for order, _ in model.pools_} == {1}


# --- other targets and odd tables ----------------------------------------------------------------


def test_several_targets_share_the_choice(friedman):
    Y = np.column_stack([friedman.y, 1000 * friedman.X[:, 3]])
    model = HARFERegressorCV(**SMALL).fit(friedman.X, Y)
    assert model.coef_.shape == (2, 200)
    assert model.predict(friedman.X).shape == (80, 2)
    assert model.score(friedman.X, Y) > 0.8
    scaled = HARFERegressorCV(**SMALL).fit(friedman.X, Y * [1, 1e-6])
    check_same_search(scaled, model, rtol=1e-6)


@pytest.mark.parametrize("activation", ["sin", "exp"])
def test_complex_targets(friedman, activation):
    y = friedman.y + 5j * friedman.X[:, 3]
    model = HARFERegressorCV(**TINY, cv=3, activation=activation).fit(friedman.X, y)
    assert np.iscomplexobj(model.predict(friedman.X))
    assert model.score(friedman.X, y) > 0.7
    assert np.isrealobj(model.mse_path_)
    turned = HARFERegressorCV(**TINY, cv=3, activation=activation).fit(friedman.X, 1j * y)
    check_same_search(turned, model, rtol=1e-6)


def test_real_targets_of_complex_features(friedman):
    model = HARFERegressorCV(**TINY, cv=3, activation="exp").fit(friedman.X, friedman.y)
    assert model.predict(friedman.X).dtype == np.float64
    assert model.score(friedman.X, friedman.y) > 0.7


def test_constant_inputs_predict_the_mean(friedman):
    model = HARFERegressorCV(**TINY, cv=3).fit(np.ones((30, 2)), friedman.y[:30])
    prediction, std = model.predict(np.ones((2, 2)), return_std=True)
    np.testing.assert_allclose(prediction, friedman.y[:30].mean())
    np.testing.assert_allclose(std, friedman.y[:30].std(), rtol=0.2)


def test_a_constant_target_is_predicted(friedman):
    model = HARFERegressorCV(**TINY, cv=3).fit(friedman.X, np.full(80, 3.0))
    prediction, std = model.predict(friedman.X, return_std=True)
    np.testing.assert_allclose(prediction, 3.0)
    np.testing.assert_allclose(std, 0.0, atol=1e-12)
    assert model.n_nonzero_coefs_ == 5
    assert model.alpha_ == 1.0


@pytest.mark.parametrize("law", ["auto", "grid"])
@pytest.mark.parametrize("number", [2, 3, 5])
def test_very_few_rows(friedman, number, law):
    X, y = friedman.X[:number], friedman.y[:number]
    model = HARFERegressorCV(50, law=law, orders=2, scales=1, alphas=2, random_state=0).fit(X, y)
    prediction, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(prediction))
    assert np.all(np.isfinite(std))


# --- progress ------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_verbose_tells_on_standard_error(friedman, capsys, monkeypatch):
    HARFERegressorCV(**TINY, cv=3).fit(friedman.X, friedman.y)
    assert capsys.readouterr() == ("", "")
    # a clock on which every fold takes a minute
    slow = SimpleNamespace(monotonic=count(0.0, 60.0).__next__)
    monkeypatch.setattr("harfe._core.progress.time", slow)
    monkeypatch.setattr("harfe._core.progress._TICK", 1e9)
    model = HARFERegressorCV(**TINY, cv=3, verbose=True, n_jobs=1).fit(friedman.X, friedman.y)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    # two pools on three folds, then fits of all rows and without each fold
    assert [line.partition(" fits")[0] for line in lines] == [
        f"harfe: {done} of 10" for done in range(1, 11)
    ]
    assert "s left, now order" in lines[0]
    assert ", 0 s left, best MSE" in lines[-1]
    assert f"order {model.order_}, scale {model.scale_:.3g}" in lines[-1]
    assert f"best MSE {-model.best_score_:.4g}" in lines[-1]
    HARFERegressorCV(**TINY, cv=3, verbose=True, scoring=minus_cubes).fit(friedman.X, friedman.y)
    assert "best score -" in capsys.readouterr().err


def test_verbose_rewrites_a_line_on_a_terminal_and_ends_it(friedman, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    HARFERegressorCV(**TINY, cv=3, verbose=True).fit(friedman.X, friedman.y)
    shown = terminal.getvalue()
    assert shown.count("\n") == 1
    assert shown.endswith("\n")
    lines = [line.strip() for line in shown.split("\r")]
    assert "harfe: 10 of 10 fits [######] 0 s left" in lines[-2]
    assert lines[-1].startswith("harfe: 10 of 10 fits, best MSE")


def test_verbose_also_reports_while_a_task_runs(friedman, monkeypatch):
    monkeypatch.setattr("harfe._core.progress._TICK", 0.01)
    monkeypatch.setattr("harfe._core.progress._PAUSE_TERMINAL", 0.0)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    def slow(*args):
        # goes on once progress was reported three times while no task ends
        before = terminal.getvalue().count("\r")
        for _ in range(3000):
            if terminal.getvalue().count("\r") >= before + 3:
                return errors_on_fold(*args)
            sleep(0.01)
        raise AssertionError("no progress is shown")

    monkeypatch.setattr("harfe.selection.race.errors_on_fold", slow)
    HARFERegressorCV(**TINY, cv=2, verbose=True, n_jobs=1).fit(friedman.X, friedman.y)
    assert "harfe: 0 of 7 fits" in terminal.getvalue()


needs_callbacks = pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn before 1.9")


class Recorder:
    """A callback that follows the search, and stops it after some folds."""

    def __init__(self, stop_after=10**9):
        self.stop_after, self.rounds, self.begun, self.ended = stop_after, 0, 0, 0
        self.lengths = set()

    def setup(self, estimator, context):
        self.max_subtasks = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.ended += 1
        if metadata:
            self.lengths.add((len(X), len(y), len(metadata["sample_weight"])))
        if context.task_name == "round":
            self.rounds += 1
            return self.rounds >= self.stop_after
        self.score = fitted_estimator.score(X, y)
        return False


@needs_callbacks
def test_callbacks_see_every_fold_and_the_model(friedman):
    recorder = Recorder()
    model = HARFERegressorCV(**TINY, cv=3).set_callbacks(recorder).fit(friedman.X, friedman.y)
    assert recorder.rounds == 6 + 4 + 1  # four fits at the end, and one more, closed empty
    assert recorder.begun == recorder.ended
    assert recorder.torn_down
    assert recorder.max_subtasks >= recorder.rounds
    assert recorder.score == pytest.approx(model.score(friedman.X, friedman.y))


@needs_callbacks
def test_a_callback_can_stop_the_search(friedman):
    model = HARFERegressorCV(**TINY, cv=3, n_jobs=1).set_callbacks(Recorder(stop_after=3))
    with pytest.warns(ConvergenceWarning, match="by a callback: pools were compared on 1 of 3"):
        model.fit(friedman.X, friedman.y)
    assert model.search_complete_ is False
    assert np.sum(~np.isnan(model.mse_path_[:, 0, 0])) == 3
    assert model.score(friedman.X, friedman.y) > 0.5
    whole = HARFERegressorCV(**TINY, cv=3).set_callbacks(Recorder(stop_after=10))
    assert whole.fit(friedman.X, friedman.y).search_complete_ is True


@needs_callbacks
def test_scikit_learns_own_monitor_works(friedman):
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="r2")
    model = HARFERegressorCV(**TINY, cv=3).set_callbacks(monitor).fit(friedman.X, friedman.y)
    scores = [row["r2"] for row in monitor.get_logs().data if row.get("r2") is not None]
    assert scores[-1] == pytest.approx(model.score(friedman.X, friedman.y), abs=1e-12)


@needs_callbacks
def test_callbacks_get_rows_and_weights_of_equal_length(friedman):
    recorder = Recorder()
    weights = (np.arange(80) % 4 != 0).astype(float)
    model = HARFERegressorCV(**TINY, cv=3).set_callbacks(recorder)
    model.fit(friedman.X, friedman.y, sample_weight=weights)
    assert len({length for lengths in recorder.lengths for length in lengths}) == 1


# --- truth ---------------------------------------------------------------------------------------


def test_an_additive_truth_is_found_and_pays():
    rng = np.random.default_rng(0)
    X, X_test = rng.uniform(-1, 1, (120, 6)), rng.uniform(-1, 1, (500, 6))

    def f(X):
        return np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + np.cos(2 * X[:, 2])

    y = f(X) + 0.1 * rng.normal(size=120)
    grid = {**SMALL, "scales": [1.0], "orders": [3, 2, 1, (1, 2)]}
    model = HARFERegressorCV(**grid).fit(X, y)
    assert model.order_ in (1, (1, 2))
    third = HARFERegressorCV(**{**grid, "orders": [3]}).fit(X, y)
    error, error_of_third = (np.mean((m.predict(X_test) - f(X_test)) ** 2) for m in (model, third))
    assert error < 0.5 * error_of_third
    assert error < 0.1**2


def test_a_product_needs_a_higher_order():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (100, 4))
    y = X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=100)
    model = HARFERegressorCV(**{**SMALL, "orders": [1, 2]}).fit(X, y)
    assert model.order_ == 2
    first_folds = model.mse_path_[..., :2].mean(axis=-1).min(axis=(1, 2))
    assert first_folds[:2].min() > 0.5 * y.var() > first_folds[2:].min()
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 1}


def test_noise_chooses_few_terms_and_much_ridge():
    rng = np.random.default_rng(2)
    X, y = rng.uniform(size=(80, 4)), rng.normal(size=80)
    model = HARFERegressorCV(**SMALL).fit(X, y)
    assert model.alpha_ == 1.0
    assert model.n_nonzero_coefs_ == 5
    assert -model.best_score_ < 1.3 * y.var()


# --- arguments that must be refused --------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"orders": 0}, ["orders=0", "at least 1", "orders=4"]),
        ({"orders": []}, ["orders=[]", "[1, 2, (1, 2)]"]),
        ({"orders": [0]}, ["order=0", "at least 1"]),
        ({"orders": [(1, 0)]}, ["order=0"]),
        ({"orders": [()]}, ["order=()"]),
        ({"orders": [1.5]}, ["order=1.5"]),
        ({"orders": [11]}, ["order=11", "10"]),
        ({"orders": "two"}, ["orders='two'"]),
        ({"orders": 2.5}, ["orders=2.5"]),
        ({"scales": 0}, ["scales=0", "scales=["]),
        ({"scales": [-1]}, ["scales=[-1]", "positive"]),
        ({"scales": [0.0]}, ["scales=[0.0]", "positive"]),
        ({"scales": 0.5}, ["scales=0.5", "list"]),
        ({"scales": "wide"}, ["scales='wide'"]),
        ({"alphas": [np.nan]}, ["alphas=[nan]", ">= 0"]),
        ({"alphas": [-1e-3]}, ["alphas=[-0.001]", ">= 0"]),
        ({"alphas": [np.inf]}, ["alphas=[inf]"]),
        ({"alphas": []}, ["alphas=[]"]),
        ({"alphas": [[1.0], [1.0, 2.0]]}, ["alphas=[[1.0], [1.0, 2.0]]"]),
        ({"n_nonzero_coefs": 0}, ["n_nonzero_coefs=0"]),
        ({"n_nonzero_coefs": [0]}, ["n_nonzero_coefs=[0]", "1 to n_components=200"]),
        ({"n_nonzero_coefs": [10**9]}, ["n_nonzero_coefs=[1000000000]", "n_components=200"]),
        ({"n_nonzero_coefs": [2.5]}, ["n_nonzero_coefs=[2.5]", "whole"]),
        ({"selection": "x"}, ["selection='x'", "best, one_se"]),
        ({"max_time": -1}, ["max_time=-1", "positive", "max_time=60"]),
        ({"max_time": "soon"}, ["max_time='soon'"]),
        ({"cv": 1}, ["cv=1", "at least 2", "cv=5"]),
        ({"cv": "x"}, ["cv='x'", "cv=5"]),
        ({"cv": 2.5}, ["cv=2.5", "cv=5"]),
        ({"cv": []}, ["cv=[]", "no folds"]),
        ({"scoring": "accurate"}, ["scoring", "accurate"]),
        ({"n_components": 0}, ["n_components=0"]),
        ({"max_iter": 0}, ["max_iter=0"]),
        ({"tol": -1}, ["tol=-1"]),
        ({"input_scale": "minmax"}, ["input_scale='minmax'"]),
        ({"input_clip": 0}, ["input_clip=0"]),
        ({"column_scale": "l2"}, ["column_scale='l2'"]),
        ({"memory_budget": 0}, ["memory_budget=0"]),
        ({"activation": "sine"}, ["activation='sine'"]),
        ({"interaction_cst": "triples"}, ["interaction_cst='triples'"]),
        ({"n_jobs": 0}, ["n_jobs"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_settings_are_refused_before_any_work(friedman, monkeypatch, settings, words):
    def no_work(*_args, **_kwargs):
        raise AssertionError("the fit began to work")

    monkeypatch.setattr("harfe.selection.recipe.make_problem", no_work)
    with pytest.raises(ValueError, match=r".") as error:
        HARFERegressorCV(**{**SMALL, **settings}).fit(friedman.X, friedman.y)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("groups", [[1, 2, 3], np.ones((80, 1)), 5])
def test_groups_of_another_length_are_refused(friedman, groups):
    with pytest.raises(ValueError, match=r"groups has shape .*\(80,\)"):
        HARFERegressorCV(**SMALL).fit(friedman.X, friedman.y, groups=groups)


def test_a_single_group_is_refused(friedman):
    with pytest.raises(ValueError, match="groups holds a single group"):
        HARFERegressorCV(**SMALL).fit(friedman.X, friedman.y, groups=np.ones(len(friedman.y)))
