"""Yen et al.: rounds that only lower the objective, and their limit, the lasso on all features."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from harfe._core.folds import make_folds
from harfe.datasets import make_additive, make_function
from harfe.rivals import SRFERegressor, YenRegressor
from harfe.rivals.random_features.yen import rounds_of

ONE = {"order": 2, "scale": 1.0, "alpha": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 80, random_state=0)


def drawn(model, friedman):
    """How a model frames its rows, and its pool."""
    model.fit(friedman.X, friedman.y)
    R = model.n_components
    return model._framing(), model._sampling(model.order_, model.scale_, R, 7).draw()


def standardised(pool, X):
    A = pool.evaluate((X - X.mean(axis=0)) / X.std(axis=0))
    A = A - A.mean(axis=0)
    return A / A.std(axis=0)


def test_one_round_is_the_lasso_on_its_pool(friedman):
    X, y = friedman.X, friedman.y
    framing, pool = drawn(YenRegressor(300, n_rounds=1, **ONE), friedman)
    (only,) = rounds_of(framing, pool, 300, X, y, 0.02)
    truth = Lasso(alpha=0.02 * y.std(), tol=1e-12, max_iter=200_000).fit(standardised(pool, X), y)
    np.testing.assert_array_equal(only.kept, np.flatnonzero(truth.coef_))
    np.testing.assert_allclose(only.fit.coef[:, 0], truth.coef_[only.kept], rtol=1e-4, atol=1e-5)


def test_one_round_is_srfe_in_its_lasso_form(friedman):
    X, y = friedman.X, friedman.y
    one = YenRegressor(300, n_rounds=1, **ONE).fit(X, y)
    other = SRFERegressor(300, form="lasso", **ONE).fit(X, y)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-6)
    assert one.penalty_ == pytest.approx(other.penalty_) == pytest.approx(0.02 * y.std())
    (S, c), _ = one._path(_problem(one, friedman), [{"alpha": 0.1}, {"alpha": 0.02}])
    assert len(S) == len(c) > 0


def _problem(model, friedman):
    pool = model._sampling(2, 1.0, 300, 0).draw()
    X, y = friedman.X, friedman.y
    return model._framing().pose(pool, X, y, np.ones(80), largest_support=80).problem


def test_the_objective_falls_from_round_to_round(friedman):
    X, y = friedman.X, friedman.y
    model = YenRegressor(50, n_rounds=8, **ONE).fit(X, y)
    assert model.objectives_.shape == model.sizes_.shape == (8,)
    assert model.objectives_[0] < 1
    assert np.all(np.diff(model.objectives_) <= 1e-12)
    assert model.objectives_[-1] < 0.9 * model.objectives_[0]
    assert model.sizes_[-1] == model.size_ == len(model.expansion_.features)
    # The last one from its definition.
    c = model.expansion_.coef[0] * model.expansion_.evaluate_features(X).std(axis=0)
    value = np.mean((y - model.predict(X)) ** 2) / 2 + model.penalty_ * np.abs(c).sum()
    assert model.objectives_[-1] * np.var(y) / 2 == pytest.approx(value, rel=1e-8)
    # No better than all features at once.
    whole = YenRegressor(400, n_rounds=1, **ONE).fit(X, y)
    assert whole.objectives_[0] <= model.objectives_[-1] * (1 + 1e-9)


def test_a_round_only_adds_to_what_was_kept_and_holds_no_more(friedman):
    X, y = friedman.X, friedman.y
    framing, pool = drawn(YenRegressor(50, n_rounds=4, **ONE), friedman)
    before = np.zeros(0, dtype=int)
    for number, each in enumerate(rounds_of(framing, pool, 50, X, y, 0.02)):
        fresh = np.arange(50 * number, 50 * (number + 1))
        working = np.concatenate([before, fresh])
        assert len(each.posed.pool) == len(working)
        assert np.isin(each.kept, working).all()
        assert np.all(each.fit.coef != 0)
        # What was dropped was zero: the function of the kept features alone is the same.
        A = standardised(pool, X)[:, each.kept] @ each.fit.coef[:, 0]
        expansion = each.posed.expansion(each.fit.support, each.fit.coef)
        np.testing.assert_allclose(expansion.predict(X)[:, 0], y.mean() + A, rtol=1e-8)
        before = each.kept
    assert number == 3


def test_more_rounds_continue_fewer(friedman):
    X, y = friedman.X, friedman.y
    short = YenRegressor(50, n_rounds=3, **ONE).fit(X, y)
    longer = YenRegressor(50, n_rounds=6, **ONE).fit(X, y)
    np.testing.assert_allclose(longer.objectives_[:3], short.objectives_, rtol=1e-9)
    np.testing.assert_array_equal(longer.sizes_[:3], short.sizes_)


def test_auto_spreads_the_features_over_the_rounds(friedman):
    model = YenRegressor(n_rounds=7, **ONE)
    assert model._per_round(1000) == 142
    model.fit(friedman.X, friedman.y)
    assert len(model.sizes_) == 7


def test_nothing_is_left_at_the_largest_penalty(friedman):
    model = YenRegressor(50, n_rounds=2, **{**ONE, "alpha": 1.0}).fit(friedman.X, friedman.y)
    assert model.size_ == 0
    np.testing.assert_allclose(model.predict(friedman.X), friedman.y.mean())


def test_folds_are_those_done_by_hand(friedman):
    X, y = friedman.X, friedman.y
    settings = {**ONE, "n_components": 40, "n_rounds": 3}
    model = YenRegressor(**{**settings, "alpha": [0.01, 0.1]}).fit(X, y)
    results = model.cv_results_
    assert [params["alpha"] for params in results["params"]] == [0.1, 0.01]
    assert model.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    for place, alpha in enumerate([0.1, 0.01]):
        errors = []
        for train, out in make_folds("cv", 5, X, y, seed):
            one = YenRegressor(**{**settings, "alpha": alpha}).fit(X[train], y[train])
            errors.append(np.mean((one.predict(X[out]) - y[out]) ** 2))
        assert -results["mean_test_score"][place] == pytest.approx(np.mean(errors), rel=1e-6)


def test_a_fold_stops_where_smaller_penalties_do_not_help(friedman):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=80)
    model = YenRegressor(30, n_rounds=2, **{**ONE, "alpha": np.geomspace(0.5, 1e-3, 12)})
    model.fit(friedman.X, noise)
    scores = model.cv_results_["mean_test_score"]
    assert np.all(scores[-3:] == scores[-1])
    assert len(np.unique(scores)) > 3


def test_planted_inputs_are_found():
    data = make_additive(150, 6, order=1, n_terms=2, noise=0.01, random_state=0)
    model = YenRegressor(60, n_rounds=5, order=1, scale=1.0, alpha=0.05, random_state=0)
    model.fit(data.X, data.y)
    expansion = model.expansion_
    sizes = np.abs(expansion.coef[0]) * expansion.evaluate_features(data.X).std(axis=0)
    shares = np.bincount(expansion.features.indices[:, 0], sizes, minlength=6) / sizes.sum()
    planted = np.unique(np.concatenate([list(term) for term in data.index_sets]))
    assert len(planted) == 2
    assert shares[planted].sum() > 0.9


def test_complex_targets_and_features():
    data = make_additive(60, 4, order=1, n_terms=2, complex_valued=True, noise=0.0, random_state=0)
    settings = {"order": 1, "scale": 1.0, "alpha": [0.3, 0.01], "activation": "exp"}
    model = YenRegressor(20, n_rounds=3, **settings, random_state=0).fit(data.X, data.y)
    assert model.predict(data.X).dtype.kind == "c"
    assert model.alpha_ == 0.01
    assert model.score(data.X, data.y) > 0.9
    assert np.all(np.diff(model.objectives_) <= 1e-9)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("n_rounds", 0, "n_rounds=0 must be a whole number of at least 1, e.g. n_rounds=10"),
        ("alpha", 0, "alpha=0 must be 'auto', a finite number above 0"),
        ("n_components", 0.5, "n_components=0.5 must be 'auto' or a whole number"),
        ("memory_budget", 1e3, "memory_budget"),
    ],
)
def test_arguments_are_refused(friedman, argument, value, message):
    error = MemoryError if argument == "memory_budget" else ValueError
    with pytest.raises(error, match=message):
        YenRegressor(**{argument: value}).fit(friedman.X, friedman.y)
