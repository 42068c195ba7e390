"""The league table: errors of folds computed by hand, every method once."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harfe import compare_methods
from harfe._core.folds import make_folds
from harfe.compare.methods import DEFAULT_METHODS, METHODS, Method, named
from harfe.datasets import make_function


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 60, random_state=0)


def test_errors_are_those_of_the_folds(friedman):
    X, y = friedman.X, friedman.y
    result = compare_methods(X, y, ["mean", "linear"], cv=4, seed=3)
    linear = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 6, 25)))
    errors = {"mean": [], "linear": []}
    residual = np.empty(len(y))
    for train, out in make_folds("cv", 4, X, y, 3):
        residual[out] = y[out] - linear.fit(X[train], y[train]).predict(X[out])
        errors["linear"].append(np.sqrt(np.mean(residual[out] ** 2)))
        errors["mean"].append(np.sqrt(np.mean((y[out] - y[train].mean()) ** 2)))
    assert list(result["method"]) == ["linear", "mean"]
    np.testing.assert_allclose(result["rmse"], [np.mean(errors[m]) for m in result["method"]])
    spread = [np.std(errors[m], ddof=1) for m in result["method"]]
    np.testing.assert_allclose(result["spread"], spread)
    assert result["r2"][0] == pytest.approx(1 - residual.var() / y.var(), rel=0.02)
    assert result["r2"][0] == pytest.approx(1 - np.sum(residual**2) / np.sum((y - y.mean()) ** 2))
    assert list(result["size"]) == [10, 1]


#: Methods that take seconds on few rows: their settings are tested below, their fits elsewhere.
SLOW = ("harfe", "ebm", "mars")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name not in SLOW])
def test_every_method_fits_few_rows_and_more(friedman, name, monkeypatch):
    monkeypatch.setattr("harfe.compare.methods._TREES", 10)
    monkeypatch.setattr("harfe.compare.methods._ROUNDS", (2, 4))
    monkeypatch.setattr("harfe.compare.methods.PROCESS_ROWS", 20)
    X, y = friedman.X[:, :4], friedman.y
    result = compare_methods(X, y, [name], cv=2)
    assert result["failure"][0] is None
    assert result["rmse"][0] > 0
    assert result["fit_seconds"][0] > 0
    assert result["size"][0] is None or result["size"][0] >= 1
    few = compare_methods(X[:8], y[:8], [name], cv=2)
    assert np.isfinite(few["rmse"][0]) or few["failure"][0]


def test_sizes_are_told_where_there_are_some(friedman, monkeypatch):
    monkeypatch.setattr("harfe.compare.methods._TREES", 5)
    names = ["harfe-fixed", "lasso", "forest", "svm", "neighbours"]
    result = compare_methods(friedman.X, friedman.y, names, cv=2)
    size = dict(zip(result["method"], result["size"], strict=True))
    assert size["harfe-fixed"] == 10
    assert 1 <= size["lasso"] <= 10
    assert 5 * 10 <= size["forest"] <= 5 * 30
    assert 1 <= size["svm"] <= 30
    assert size["neighbours"] is None


def test_harfe_stands_in_the_table_with_its_settings_chosen():
    from harfe import HARFERegressorCV

    made = METHODS["harfe"].make(7, 100)
    assert isinstance(made, HARFERegressorCV)
    assert made.get_params() == HARFERegressorCV(random_state=7).get_params()
    assert "harfe" in DEFAULT_METHODS


def test_a_method_that_fails_is_last_with_its_reason(friedman, monkeypatch):
    class Broken:
        def fit(self, X, y):
            raise ValueError("too few rows\nfor this")

    monkeypatch.setitem(METHODS, "broken", Method("", lambda *_: Broken()))
    told = []
    result = compare_methods(
        friedman.X, friedman.y, ["broken", "mean"], cv=2, after_fold=lambda *a: told.append(a[:2])
    )
    assert list(result["method"]) == ["mean", "broken"]
    assert result["failure"][1] == "too few rows"
    assert np.isnan(result["rmse"][1])
    assert told == [("mean", 0), ("mean", 1)]


def test_unknown_methods_are_refused(friedman):
    with pytest.raises(ValueError, match="methods='magic' is not known; choose one of harfe"):
        compare_methods(friedman.X, friedman.y, ["magic"])


def test_a_package_that_is_not_there_is_said_with_the_way_to_get_it(friedman, monkeypatch):
    def make(seed, rows):
        import nothing_of_that_name  # noqa: F401

    missing = Method("", make, needs="nothing_of_that_name")
    monkeypatch.setitem(METHODS, "missing", missing)
    result = compare_methods(friedman.X, friedman.y, ["missing", "mean"], cv=2)
    assert result["failure"][1].endswith("pip install 'harfe[rivals]'")
    assert "missing" not in named("all")
    assert "mean" in named("all")


def test_groups_of_methods():
    assert named("default") == list(DEFAULT_METHODS)
    paper = named("paper")
    assert {"algorithm1", "htp", "lasso", "elastic-net", "lm", "svm", "mnet", "forest"} <= set(
        paper
    )
    assert {"forest", "srfe", "salsa", "spam", "cosso", "ssam", "anova"} <= set(paper)
    assert "boosting" not in paper
    assert named(["mean", "default"])[:2] == ["mean", "harfe"]
    assert len(named(["default", "default"])) == len(DEFAULT_METHODS)


def test_rivals_of_harfe_are_made_by_name_with_the_seed():
    import harfe.rivals

    for name in ("srfe", "shrimp", "rfrr", "yen", "salsa", "kam", "spam", "cosso", "ssam", "anova"):
        made = METHODS[name].make(5, 100)
        assert type(made).__name__ in harfe.rivals.__all__
        assert made.get_params() == type(made)(random_state=5).get_params()


def test_the_pursuit_without_ridge_has_none():
    made = METHODS["htp"].make(0, 200)
    assert made.estimator.alpha == 0
    assert made.param_grid == {"n_nonzero_coefs": [2, 5, 10, 20, 40]}


def test_slow_methods_of_other_packages_are_made(friedman):
    assert METHODS["ebm"].make(3, 10).random_state == 3
    assert METHODS["mars"].make(3, 10).max_degree == 2


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.full((9, 2), np.nan), np.arange(9), "NaN"),
        ([["a", 1.0]] * 9, np.arange(9), "X holds text in column 0, e.g. 'a'"),
        (np.ones((9, 2)), np.arange(8), "X has 9 rows but y has 8"),
        (np.ones((9, 2)), np.ones((9, 2)), "pass one real target"),
        (np.ones((9, 2)), 1j * np.arange(9), "pass one real target"),
    ],
)
def test_bad_rows_are_refused_before_any_work(X, y, message):
    with pytest.raises(ValueError, match=message):
        compare_methods(X, y, "mean")


def test_no_method_is_no_comparison(friedman):
    with pytest.raises(ValueError, match="names no method"):
        compare_methods(friedman.X, friedman.y, [])
