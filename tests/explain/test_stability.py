"""Stability: what is kept when the fit is repeated."""

import json

import numpy as np
import pandas as pd
import pytest

from harfe import HARFERegressor, HARFERegressorCV
from harfe.explain.stability import Selection, assess, bootstrap
from harfe.model.terms import feature_sets

COLUMNS = ("a", "b", "c")


def planted(n=120, seed=0):
    """Inputs 1 and 3 of five matter, each alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 5))
    return X, 2 * np.sin(X[:, 1]) + np.cos(2 * X[:, 3]) + 0.05 * rng.normal(size=n)


def fitted(X, y, **settings):
    settings = {"n_components": 200, "n_nonzero_coefs": 8, "order": 1, **settings}
    return HARFERegressor(**{"random_state": 0, **settings}).fit(X, y)


def in_turn(seed, weights):
    """Stands in for a fit: one of three selections, by the weights."""
    sets = [((0,), (0, 1)), ((0,), (0,), (2,), ()), ((0, 1),)][int(weights[0]) % 3]
    return Selection(sets, np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, 0.0]))


def test_frequencies_by_hand(monkeypatch):
    """Three draws that keep 2, 4 and 1 features."""
    plan = [(seed, np.array([float(seed)])) for seed in range(3)]
    monkeypatch.setattr("harfe.explain.stability._plan", lambda *_: iter(plan))
    found = assess(in_turn, COLUMNS, np.ones(1), n_draws=3, seed=0)
    assert found.variables["variable"].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(found.variables["selected"], [1, 2 / 3, 1 / 3])
    a, b, c = [1, 1 / 2, 1], [1 / 2, 0, 1], [0, 1 / 4, 0]
    np.testing.assert_allclose(found.variables["share"], [np.mean(a), np.mean(b), np.mean(c)])
    np.testing.assert_allclose(found.variables["share_low"], [1 / 2, 0, 0])
    np.testing.assert_allclose(found.variables["share_high"], [1, 1, 1 / 4])
    np.testing.assert_allclose(found.variables["pool_share"], [0.5, 0.3, 0.2])
    np.testing.assert_allclose(found.variables["importance"], [1, 0, 0])
    # Selected equally often: the larger share first, then fewer variables.
    assert found.terms["term"].tolist() == ["a : b", "a", "constant", "c"]
    assert found.terms["variables"].tolist() == [("a", "b"), ("a",), (), ("c",)]
    assert found.terms["order"].tolist() == [2, 1, 0, 1]
    np.testing.assert_allclose(found.terms["selected"], [2 / 3, 2 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(found.terms["share"], [1 / 2, 1 / 3, 1 / 12, 1 / 12])
    np.testing.assert_allclose(found.terms["share_low"], 0)
    np.testing.assert_allclose(found.terms["share_high"], [1, 1 / 2, 1 / 4, 1 / 4])
    assert found.draws["n_features"].tolist() == [2, 4, 1]
    assert found.n_draws == 3


def test_nothing_kept():
    empty = Selection((), np.zeros(3), np.zeros(3))
    found = assess(lambda *_: empty, COLUMNS, np.ones(1), n_draws=2, seed=0)
    assert len(found.terms) == 0
    np.testing.assert_array_equal(found.variables["selected"], 0)


@pytest.mark.parametrize("resample_rows", [False, True])
def test_true_variables_are_kept_in_every_draw(resample_rows):
    X, y = planted()
    found = fitted(X, y).stability(X, y, n_draws=10, resample_rows=resample_rows)
    np.testing.assert_array_equal(found.variables["selected"][[1, 3]], 1)
    assert set(found.terms["term"][:2]) == {"x1", "x3"}
    lead = found.variables["share"]
    assert min(lead[[1, 3]]) > max(lead[[0, 2, 4]])
    assert min(found.variables["importance"][[1, 3]]) > 0.1
    # Five inputs drawn equally often, one per feature.
    np.testing.assert_allclose(found.variables["pool_share"], 0.2, atol=0.05)


def brute_force(make, X, y, found, weights):
    """Share of each input in the kept features, fit by fit."""
    shares = []
    for seed, w in zip(found.draws["seed"], weights, strict=True):
        sets = feature_sets(make(int(seed)).fit(X, y, sample_weight=w).expansion_.features)
        shares.append([np.mean([k in u for u in sets]) for k in range(X.shape[1])])
    return np.array(shares)


def grid(seed):
    return HARFERegressorCV(
        n_components=100,
        law="grid",
        orders=[1],
        scales=[1.0],
        n_nonzero_coefs=[3, 5],
        alphas=[1e-3],
        cv=2,
        random_state=seed,
    )


def plain(seed):
    return HARFERegressor(n_components=200, n_nonzero_coefs=8, order=2, random_state=seed)


@pytest.mark.parametrize("make", [plain, grid])
@pytest.mark.parametrize("resample_rows", [False, True])
def test_draws_are_fits_with_these_seeds(make, resample_rows, monkeypatch):
    X, y = planted(60)
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    used = []

    def remembered(weights, rng):
        used.append(bootstrap(weights, rng))
        return used[-1]

    monkeypatch.setattr("harfe.explain.stability.bootstrap", remembered)
    found = make(0).fit(X, y).stability(X, y, 3, resample_rows, weights, random_state=5)
    assert len(used) == (3 if resample_rows else 0)
    shares = brute_force(make, X, y, found, used or [weights] * 3)
    np.testing.assert_allclose(found.variables["share"], shares.mean(axis=0))
    np.testing.assert_allclose(found.variables["selected"], (shares > 0).mean(axis=0))
    assert found.resampled is resample_rows


def test_jobs_and_seeds():
    X, y = planted(60)
    model = fitted(X, y, order=2)
    one = model.stability(X, y, n_draws=4, resample_rows=True, random_state=3)
    assert model.stability(X, y, 4, True, n_jobs=2, random_state=3) == one
    assert model.stability(X, y, 4, True, random_state=4) != one
    # More draws start with the same ones; without a seed, that of the model is used.
    longer = model.stability(X, y, 6, True, random_state=3)
    np.testing.assert_array_equal(longer.draws["seed"][:4], one.draws["seed"])
    assert model.stability(X, y, 2) == model.stability(X, y, 2, random_state=0)


def test_bootstrap_weights():
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 2.0, 0.0, 5.0])
    drawn = np.array([bootstrap(weights, rng) for _ in range(4000)])
    np.testing.assert_array_equal(drawn, np.round(drawn))
    np.testing.assert_array_equal(drawn.sum(axis=1), 8)
    np.testing.assert_array_equal(drawn[:, 2], 0)
    # Multinomial: mean w, variance w (1 - w/8), as for rows repeated that often.
    np.testing.assert_allclose(drawn.mean(axis=0), weights, atol=0.1)
    np.testing.assert_allclose(drawn.var(axis=0), weights * (1 - weights / 8), rtol=0.1, atol=1e-12)


def test_bootstrap_of_weights_that_are_no_counts():
    weights = np.full(50, 0.02)
    drawn = bootstrap(weights, np.random.default_rng(0))
    assert drawn.sum() == pytest.approx(1)
    assert 20 < np.count_nonzero(drawn) < 45


def test_the_model_is_not_changed_and_nothing_is_said(capfd):
    X, y = planted(60)
    model = fitted(X, y)
    before = model.coef_.copy()
    model.stability(X, y, n_draws=2)
    np.testing.assert_array_equal(model.coef_, before)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""


def test_progress_on_standard_error(capfd):
    X, y = planted(60)
    fitted(X, y).stability(X, y, n_draws=3, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "harfe: 3 of 3 draws, 0 s left\n"


def test_progress_on_a_terminal_rewrites_its_line(monkeypatch, capsys):
    from harfe._core.progress import ProgressLine

    now = iter([0.0, 10.0, 10.1, 20.0])
    monkeypatch.setattr("harfe._core.progress.time.monotonic", lambda: next(now))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = ProgressLine("draws")
    for done in (1, 2, 3):
        progress.update(done, 3)
    lines = capsys.readouterr().err.split("\r")
    assert [line.strip() for line in lines[1:]] == [
        "harfe: 1 of 3 draws [##....] 20 s left",
        "harfe: 3 of 3 draws [######] 0 s left",
    ]


def test_draws_skip_what_they_do_not_need(monkeypatch):
    """Neither out-of-fold residuals nor warnings of single draws."""
    X, y = planted(60)
    model = fitted(X, y, residual_cv=3)
    model.set_params(max_iter=1)
    monkeypatch.setattr("harfe.estimators.regressor.Uncertainty.calibrated", None)
    assert model.stability(X, y, n_draws=2).n_draws == 2


def test_names_of_columns_reach_the_draws():
    X, y = planted(60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = fitted(frame, y, order=2, interaction_cst=[{"a", "b"}, {"c", "d", "e"}])
    found = model.stability(frame, y, n_draws=3)
    assert found.variables["variable"].tolist() == list("abcde")
    allowed = {"a : b", "c : d", "c : e", "d : e"}
    assert set(found.terms["term"]) <= allowed


def test_as_plain_data():
    X, y = planted(60)
    found = fitted(X, y).stability(X, y, n_draws=2)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["n_draws"] == 2
    assert plain["variables"]["variable"] == ["x0", "x1", "x2", "x3", "x4"]
    frame = found.terms.to_frame()
    assert frame["share"].sum() == pytest.approx(1)
    assert str(found).startswith("2 draws\n\nvariable  selected")
    assert str(found).endswith(str(found.terms))


def test_print_shows_the_leading_terms():
    many = Selection(tuple((k,) for k in range(30)), np.zeros(30), np.zeros(30))
    names = [f"x{k}" for k in range(30)]
    text = str(assess(lambda *_: many, names, np.ones(1), n_draws=1, seed=0))
    assert text.endswith("... and 10 more")
    assert text.count("\nx19 ") == 2
    assert text.count("\nx20 ") == 1


@pytest.mark.parametrize("n_draws", [0, 2.5, "many"])
def test_bad_number_of_draws(n_draws):
    X, y = planted(60)
    with pytest.raises(ValueError, match=r"n_draws=.* must be a whole number of at least 1"):
        fitted(X, y).stability(X, y, n_draws=n_draws)


def test_importances_are_unknown_where_an_anova_has_too_many_components():
    X = np.random.default_rng(0).random((60, 16))
    model = HARFERegressor(60, 30, order=15, random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="30 features with up to 15 inputs"):
        model.feature_importances_  # noqa: B018
    variables = model.stability(X, X[:, 0], n_draws=2).variables
    assert np.isnan(variables["importance"].astype(float)).all()
    assert variables["selected"].tolist() == [1.0] * 16
