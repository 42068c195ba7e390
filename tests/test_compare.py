"""The league table: errors of folds done by hand, every method once."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harfe.compare import DEFAULT_METHODS, METHODS, compare
from harfe.datasets import make_function
from harfe.folds import make_folds


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 60, random_state=0)


def test_errors_are_those_of_the_folds(friedman):
    X, y = friedman.X, friedman.y
    result = compare(X, y, ["mean", "linear"], cv=4, seed=3)
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
    assert list(result["terms"]) == [10, 1]


# The search of harfe itself takes seconds; that it is called is tested below.
@pytest.mark.parametrize("name", [name for name in METHODS if name != "harfe"])
def test_every_method_fits_few_rows_and_more(friedman, name, monkeypatch):
    monkeypatch.setattr("harfe.compare._TREES", 10)
    monkeypatch.setattr("harfe.compare._ROUNDS", (2, 4))
    monkeypatch.setattr("harfe.compare._PROCESS_ROWS", 40)
    result = compare(friedman.X, friedman.y, [name], cv=2)
    assert result["failure"][0] is None
    assert result["rmse"][0] > 0
    assert result["fit_seconds"][0] > 0
    few = compare(friedman.X[:8], friedman.y[:8], [name], cv=2)
    assert np.isfinite(few["rmse"][0]) or few["failure"][0]


def test_sizes_are_told_where_there_are_some(friedman, monkeypatch):
    monkeypatch.setattr("harfe.compare._TREES", 5)
    names = ["harfe-fixed", "lasso", "forest", "svr", "neighbours"]
    result = compare(friedman.X, friedman.y, names, cv=2)
    terms = dict(zip(result["method"], result["terms"], strict=True))
    assert terms["harfe-fixed"] == 10
    assert 1 <= terms["lasso"] <= 10
    assert 5 * 10 <= terms["forest"] <= 5 * 30
    assert 1 <= terms["svr"] <= 30
    assert terms["neighbours"] is None


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

    monkeypatch.setitem(METHODS, "broken", METHODS["mean"].__class__("", lambda *_: Broken()))
    told = []
    result = compare(
        friedman.X, friedman.y, ["broken", "mean"], cv=2, after_fold=lambda *a: told.append(a[:2])
    )
    assert list(result["method"]) == ["mean", "broken"]
    assert result["failure"][1] == "too few rows"
    assert np.isnan(result["rmse"][1])
    assert told == [("mean", 0), ("mean", 1)]


def test_unknown_methods_are_refused(friedman):
    with pytest.raises(ValueError, match="methods='magic' is not known; choose one of harfe"):
        compare(friedman.X, friedman.y, ["magic"])
