"""Uncertainty: dense formulas, quantiles by hand, coverage on rows that were held out."""

import os
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from shared import FORMULAS

from harfe import HARFERegressor, HARFERegressorCV
from harfe._core.folds import make_folds
from harfe._core.validation import row_weights
from harfe.datasets import load_real, make_function
from harfe.model.uncertainty import Uncertainty

SMALL = {"n_components": 200, "n_nonzero_coefs": 15, "alpha": 1e-2, "random_state": 0}
GRID = {
    "law": "grid",
    "n_components": 200,
    "orders": [1, 2],
    "scales": [1.0],
    "n_nonzero_coefs": [5, 10, 20],
    "alphas": [1e-3, 1e-2, 0.1],
    "cv": 5,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 100, random_state=0)


def dense_leverage(model, alpha, X, w, X_new):
    """h = (1 + a (A*WA/M + α)⁻¹ a*) / M from the public attributes."""
    phi = FORMULAS[model.law_.activation]
    W, b = model.weights_.toarray()[:, model.support_], model.bias_[model.support_]
    raw, new = phi(X @ W + b), phi(X_new @ W + b)
    M = w.sum()
    mean = w @ raw / M if model.fit_intercept else np.zeros(raw.shape[1])
    rms = np.sqrt(w @ np.abs(raw - mean) ** 2 / M) if model.column_scale == "rms" else 1.0
    A, a = (raw - mean) / rms, (new - mean) / rms
    gram = (A.conj().T * w) @ A / M
    inverse = np.linalg.inv(gram + alpha * np.eye(len(gram)))
    h = np.einsum("ij,jk,ik->i", a, inverse, a.conj()).real / M
    return h + (1 / M if model.fit_intercept else 0)


# --- the variance of the fitted function ---------------------------------------------------------


@pytest.mark.parametrize("column_scale", ["rms", "none"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("activation", ["sin", "exp", "relu"])
def test_leverage_is_the_dense_formula(friedman, activation, weighted, fit_intercept, column_scale):
    w = np.arange(100) % 3 + 0.5 if weighted else np.ones(100)
    settings = {**SMALL, "fit_intercept": fit_intercept, "column_scale": column_scale}
    model = HARFERegressor(**settings, activation=activation, residual_cv=3)
    model.fit(friedman.X, friedman.y, sample_weight=w)
    X_new = np.random.default_rng(1).uniform(-1, 2, (30, 10))
    h = model.uncertainty_.posterior.leverage(X_new)
    w = row_weights(w, friedman.X, friedman.y)
    np.testing.assert_allclose(h, dense_leverage(model, 1e-2, friedman.X, w, X_new), rtol=1e-8)


def test_leverages_of_the_training_rows_sum_to_the_degrees_of_freedom(friedman):
    model = HARFERegressor(**{**SMALL, "alpha": 0.0, "scale": 3.0}, residual_cv=3)
    model.fit(friedman.X, friedman.y)
    h = model.uncertainty_.posterior.leverage(friedman.X)
    assert h.sum() == pytest.approx(15 + 1, rel=1e-5)  # terms and intercept
    ridge = HARFERegressor(**{**SMALL, "alpha": 1.0, "scale": 3.0}, residual_cv=3)
    ridge.fit(friedman.X, friedman.y)
    assert 1 < ridge.uncertainty_.posterior.leverage(friedman.X).sum() < 16


def test_more_terms_than_rows_without_penalty_leave_a_finite_variance(friedman):
    X, y = friedman.X[:30], friedman.y[:30]
    model = HARFERegressor(60, 60, alpha=0.0, scale=3.0, random_state=0, residual_cv=3).fit(X, y)
    inside = model.uncertainty_.posterior.leverage(X)
    np.testing.assert_allclose(inside, 1.0, atol=1e-4)  # a row that is interpolated
    outside = model.uncertainty_.posterior.leverage(friedman.X[30:])
    assert np.all(np.isfinite(outside))
    assert np.all(outside > inside.max())


def test_many_rows_are_done_in_blocks_that_agree(friedman):
    model = HARFERegressor(**SMALL, residual_cv=3).fit(friedman.X, friedman.y)
    many = np.random.default_rng(0).uniform(size=(5000, 10))
    leverage = model.uncertainty_.posterior.leverage
    parts = np.concatenate([leverage(many[:1000]), leverage(many[1000:])])
    np.testing.assert_allclose(leverage(many), parts, rtol=1e-12)


def test_rows_beyond_the_bounds_are_as_uncertain_as_their_clipped_selves(friedman):
    X = friedman.X.copy()
    X[0, 3] = 1e6
    model = HARFERegressor(**SMALL, residual_cv=3).fit(X, friedman.y)
    upper = model.expansion_.map.upper[3]
    assert upper < 100
    far, edge = X[:2].copy(), X[:2].copy()
    far[:, 3], edge[:, 3] = 1e9, upper
    np.testing.assert_array_equal(
        model.predict(far, return_std=True), model.predict(edge, return_std=True)
    )


# --- by hand -------------------------------------------------------------------------------------


@dataclass
class Flat:
    """A model that predicts one number, with the leverage in the first column."""

    value: float = 0.0
    link: None = None

    @property
    def expansion(self):
        return self

    def linear(self, X):
        return np.full((len(X), 1), self.value)

    def leverage(self, X):
        return X[:, 0]


def calibrated(h, y, w, folds, values=(0.0, 0.0)):
    models = [Flat(value) for value in values]
    return Uncertainty.calibrated(
        Flat(),
        folds,
        lambda number, train: (models[number], models[number]),
        np.asarray(h, dtype=float)[:, None],
        np.asarray(y, dtype=float),
        np.asarray(w, dtype=float),
    )


def test_noise_and_scores_by_hand():
    rows = np.arange(4)
    folds = [(rows[2:], rows[:2]), (rows[:2], rows[2:])]
    # residuals 4, -3 of the first fold's model (1), 2, -6 of the second's (2)
    answer = calibrated([3, 0, 0, 8], [5, -2, 4, -4], [1, 2, 3, 4], folds, values=(1, 2))
    # sizes over √(1 + h): 4/2, 3/1, 2/1, 6/3
    np.testing.assert_allclose(answer.scores[:, 0], [2, 2, 2, 3])
    np.testing.assert_allclose(answer.weights[:, 0], [1, 3, 4, 2])
    assert answer.noise[0] == pytest.approx((1 * 4 + 2 * 9 + 3 * 4 + 4 * 4) / 10)
    new = np.array([[0.0], [3.0]])
    np.testing.assert_allclose(answer.std(new)[:, 0] ** 2, [5.0, 20.0])


def ranked(scores, weights=None):
    """Uncertainty with these sizes of residuals and no leverage."""
    scores = np.asarray(scores, dtype=float)
    w = np.ones(len(scores)) if weights is None else weights
    rows = np.arange(len(scores))
    return calibrated(np.zeros(len(scores)), scores, w, [(rows, rows)])


def half_width(uncertainty, level):
    return float(uncertainty.half_width(np.zeros((1, 1)), level)[0, 0])


@pytest.mark.parametrize("n", [9, 10, 19, 39, 99])
def test_the_rank_of_the_quantile_counts_the_new_row(n):
    sizes = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    uncertainty = ranked(sizes)
    for percent in range(1, 100):
        rank = ceil(Fraction(percent, 100) * (n + 1))
        level = percent / 100
        if rank <= n:
            assert half_width(uncertainty, level) == rank, (n, percent)
        else:
            with pytest.raises(ValueError, match=f"interval={level}"):
                half_width(uncertainty, level)


@pytest.mark.parametrize(
    ("level", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999)]
)
def test_a_level_that_is_too_high_says_how_many_residuals_it_takes(level, needed):
    assert half_width(ranked(np.arange(needed)), level) == needed - 1
    if needed > 1:
        words = (
            f"interval={level} needs .* of total weight {needed} or more, but it is {needed - 1};"
        )
        with pytest.raises(ValueError, match=words):
            half_width(ranked(np.arange(needed - 1)), level)


def test_the_quantile_counts_a_row_of_weight_two_twice():
    sizes, weights = np.array([3.0, 1.0, 4.0, 2.0, 5.0]), np.array([1, 4, 2, 3, 1])
    weighted, copied = ranked(sizes, weights), ranked(np.repeat(sizes, weights))
    assert weighted.noise == pytest.approx(copied.noise)
    for level in np.linspace(0.05, 0.9, 18):
        assert half_width(weighted, level) == half_width(copied, level)


def test_half_widths_follow_the_leverage():
    uncertainty = ranked(np.arange(1.0, 20))
    widths = uncertainty.half_width(np.array([[0.0], [3.0], [8.0]]), 0.5)[:, 0]
    np.testing.assert_allclose(widths, [10, 20, 30])


# --- out-of-fold residuals -----------------------------------------------------------------------


def test_residuals_are_those_of_fits_without_the_fold(friedman):
    X, y = friedman.X, friedman.y
    w = np.arange(100) % 2 + 1.0
    model = HARFERegressor(**SMALL, residual_cv=4).fit(X, y, sample_weight=w)
    w = row_weights(w, X, y)
    sizes, counts = [], []
    for train, test in make_folds("cv", 4, X, y, model.seed_):
        fold = HARFERegressor(**SMALL).fit(X[train], y[train], sample_weight=w[train])
        h = dense_leverage(fold, 1e-2, X[train], w[train], X[test])
        sizes.extend(np.abs(y[test] - fold.predict(X[test])) / np.sqrt(1 + h))
        counts.extend(w[test])
    np.testing.assert_allclose(model.uncertainty_.scores[:, 0], np.sort(sizes), rtol=1e-6)
    noise = np.average(np.square(sizes), weights=counts)
    assert model.uncertainty_.noise[0] == pytest.approx(noise, rel=1e-6)
    h = dense_leverage(model, 1e-2, X, w, X[:5])
    _, std = model.predict(X[:5], return_std=True)
    np.testing.assert_allclose(std, np.sqrt(noise * (1 + h)), rtol=1e-6)


@pytest.mark.parametrize("selection", ["best", "one_se"])
def test_residuals_of_the_search_include_the_selection(friedman, selection):
    X, y = friedman.X[:60], friedman.y[:60]
    folds = make_folds("cv", 5, X, y, 3)
    model = HARFERegressorCV(**{**GRID, "cv": folds}, selection=selection).fit(X, y)
    chosen, sizes = [], []
    for k, (train, test) in enumerate(folds):
        others = np.delete(model.mse_path_, k, axis=-1)
        mean = others.mean(axis=-1)
        best = np.unravel_index(np.argmin(mean), mean.shape)
        limit = mean[best]
        if selection == "one_se":
            limit += others[best].std(ddof=1) / np.sqrt(4)
        allowed = [cell for cell in np.ndindex(mean.shape) if mean[cell] <= limit]
        p, i, j = min(allowed, key=lambda cell: (cell[1], mean[cell]))
        chosen.append((p, i, j))
        order, scale = model.pools_[p]
        fold = HARFERegressor(
            200,
            int(model.sizes_[i]),
            order=order,
            scale=scale,
            alpha=float(model.alphas_[j]),
            init="graded",
            random_state=0,
        ).fit(X[train], y[train])
        h = dense_leverage(fold, model.alphas_[j], X[train], np.ones(len(train)), X[test])
        sizes.extend(np.abs(y[test] - fold.predict(X[test])) / np.sqrt(1 + h))
    assert len(set(chosen)) > 1  # or this could not tell a selection from none
    np.testing.assert_allclose(model.uncertainty_.scores[:, 0], np.sort(sizes), rtol=1e-6)


def test_repeated_folds_give_every_row_one_residual(friedman):
    model = HARFERegressorCV(**{**GRID, "cv": None}).fit(friedman.X, friedman.y)
    assert model.n_splits_ == 15
    assert model.uncertainty_.scores.shape == (100, 1)


@pytest.mark.parametrize("targets", [1, 2])
def test_shapes_follow_the_target(friedman, targets):
    Y = np.column_stack([friedman.y, 1000 * friedman.X[:, 3]])[:, :targets]
    model = HARFERegressor(**SMALL, residual_cv=5).fit(friedman.X, Y)
    prediction, std = model.predict(friedman.X, return_std=True)
    middle, lower, upper = model.predict(friedman.X, interval=0.8)
    assert std.shape == lower.shape == upper.shape == prediction.shape == (100, targets)
    np.testing.assert_array_equal(middle, prediction)
    np.testing.assert_allclose(upper - middle, middle - lower, rtol=1e-6)
    flat = HARFERegressor(**SMALL, residual_cv=5).fit(friedman.X, friedman.y)
    assert flat.predict(friedman.X, return_std=True)[1].shape == (100,)
    if targets == 1:
        np.testing.assert_array_equal(flat.predict(friedman.X, interval=0.8)[1], lower[:, 0])


def test_each_target_has_its_own_noise(friedman):
    rng = np.random.default_rng(0)
    Y = np.column_stack([friedman.y, friedman.y + 30 * rng.normal(size=100)])
    model = HARFERegressor(**SMALL, residual_cv=5).fit(friedman.X, Y)
    _, std = model.predict(friedman.X, return_std=True)
    assert np.all(std[:, 1] > 5 * std[:, 0])
    ratio = std[:, 1] / std[:, 0]
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("make", [HARFERegressor, HARFERegressorCV], ids=["plain", "search"])
def test_complex_targets_have_a_deviation_but_no_interval(friedman, make):
    settings = {**SMALL, "residual_cv": 5} if make is HARFERegressor else GRID
    y = friedman.y + 1j * friedman.X[:, 3]
    model = make(**settings).fit(friedman.X, y)
    prediction, std = model.predict(friedman.X, return_std=True)
    assert np.iscomplexobj(prediction)
    assert np.isrealobj(std)
    assert np.all(std > 0)
    turned = make(**settings).fit(friedman.X, 1j * y)
    np.testing.assert_allclose(turned.predict(friedman.X, return_std=True)[1], std, rtol=1e-6)
    with pytest.raises(ValueError, match=r"interval is for real targets.*return_std=True"):
        model.predict(friedman.X, interval=0.9)


# --- relations -----------------------------------------------------------------------------------


def test_negating_and_scaling_the_target(friedman):
    def answers(factor):
        model = HARFERegressorCV(**GRID).fit(friedman.X, factor * friedman.y)
        _, std = model.predict(friedman.X, return_std=True)
        middle, lower, upper = model.predict(friedman.X, interval=0.9)
        return middle, std, lower, upper

    middle, std, lower, upper = answers(1)
    for factor in (-1, 1000.0, 1e-5):
        other = answers(factor)
        np.testing.assert_allclose(other[0], factor * middle, rtol=1e-7)
        np.testing.assert_allclose(other[1], abs(factor) * std, rtol=1e-7)
        ends = (lower, upper) if factor > 0 else (upper, lower)
        for got, expected in zip(other[2:], ends, strict=True):
            np.testing.assert_allclose(got, factor * expected, rtol=1e-6)


def test_a_higher_level_is_a_wider_interval(friedman):
    model = HARFERegressorCV(**GRID).fit(friedman.X, friedman.y)
    widths = [
        upper - lower
        for _, lower, upper in (model.predict(friedman.X, interval=p) for p in (0.1, 0.5, 0.9))
    ]
    assert np.all(widths[0] < widths[1])
    assert np.all(widths[1] < widths[2])


def test_rows_far_from_the_data_are_less_certain(friedman):
    model = HARFERegressor(**{**SMALL, "order": 1, "alpha": 1e-4}, residual_cv=5)
    model.fit(friedman.X, friedman.y)
    _, near = model.predict(friedman.X, return_std=True)
    _, far = model.predict(friedman.X + 3, return_std=True)
    assert far.mean() > 1.5 * near.mean()


def test_the_deviation_learns_the_size_of_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300)
    model = HARFERegressorCV(**GRID).fit(X, y)
    _, std = model.predict(X, return_std=True)
    assert np.sqrt(model.uncertainty_.noise[0]) == pytest.approx(0.3, rel=0.15)
    assert np.all(std > np.sqrt(model.uncertainty_.noise[0]))


def test_a_small_training_error_is_not_taken_for_certainty():
    train = make_function("friedman1", 100, noise=1.0, random_state=0)
    test = make_function("friedman1", 300, noise=1.0, random_state=1)
    model = HARFERegressor(200, 60, alpha=1e-10, random_state=0, residual_cv=5)
    model.fit(train.X, train.y)
    fitted = np.sqrt(np.mean((train.y - model.predict(train.X)) ** 2))
    prediction, std = model.predict(test.X, return_std=True)
    assert fitted < 0.9
    assert std.min() > 2 * fitted
    assert 0.5 < np.mean(((test.y - prediction) / std) ** 2) < 2


# --- coverage ------------------------------------------------------------------------------------


def covered(model, name, noise, seed, level):
    train = make_function(name, 100, noise=noise, random_state=seed)
    test = make_function(name, 300, noise=noise, random_state=1000 + seed)
    _, lower, upper = model.fit(train.X, train.y).predict(test.X, interval=level)
    return np.mean((lower <= test.y) & (test.y <= upper))


@pytest.mark.parametrize(
    ("name", "noise"), [("friedman1", 1.0), ("friedman2", 125.0), ("friedman3", 0.1)]
)
def test_intervals_of_the_search_hold_their_level(name, noise):
    # one draw of 100 rows leaves a deviation of 0.03, the mean of ten one of 0.01
    shares = [covered(HARFERegressorCV(**GRID), name, noise, seed, 0.9) for seed in range(10)]
    assert 0.86 < np.mean(shares) < 0.95


@pytest.mark.parametrize(("level", "low", "high"), [(0.5, 0.45, 0.6), (0.9, 0.86, 0.95)])
def test_intervals_of_the_plain_regressor_hold_their_level(level, low, high):
    model = HARFERegressor(**SMALL, residual_cv=5)
    shares = [covered(model, "friedman1", 1.0, seed, level) for seed in range(20)]
    assert low < np.mean(shares) < high


@pytest.mark.parametrize("size", [80, 100, 150])
def test_intervals_hold_their_level_with_about_as_many_features_as_rows(size):
    # the leverages without a fold then differ much from those with all rows
    model = HARFERegressor(200, size, alpha=1e-4, random_state=0, residual_cv=5)
    shares = [covered(model, "friedman1", 1.0, seed, 0.9) for seed in range(8)]
    assert 0.83 < np.mean(shares) < 0.99


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("HARFE_DATA"), reason="HARFE_DATA is not set")
@pytest.mark.parametrize("name", ["telemonitor_sex1", "ccpp_rest", "speech", "airfoil"])
def test_intervals_hold_their_level_on_real_training_rows(name):
    # 400 new rows at 90 % leave a deviation of 0.015, and there are as many residuals
    paper = name not in ("telemonitor_sex1", "ccpp_rest")
    data = load_real(name, split="paper" if paper else 0)
    half = min(len(data.y_train) // 2, 400)
    known, new = slice(half), slice(half, 2 * half)
    grid = {"law": "grid", "orders": [1, (1, 2)], "scales": [0.5, 1.5]}
    model = HARFERegressorCV(1000, **grid, random_state=0)
    model.fit(data.X_train[known], data.y_train[known])
    _, lower, upper = model.predict(data.X_train[new], interval=0.9)
    inside = (lower <= data.y_train[new]) & (data.y_train[new] <= upper)
    assert 0.85 <= inside.mean() <= 0.95


# --- what must be rejected -----------------------------------------------------------------------


@pytest.mark.parametrize("interval", [1.5, 1, 0, -0.1, "x", True, np.nan, [0.9]])
def test_impossible_levels_are_refused(friedman, interval):
    model = HARFERegressor(**SMALL, residual_cv=3).fit(friedman.X, friedman.y)
    with pytest.raises(ValueError, match=r"interval=.*between 0 and 1, e\.g\. interval=0\.9"):
        model.predict(friedman.X, interval=interval)


def test_both_questions_at_once_are_refused(friedman):
    model = HARFERegressor(**SMALL, residual_cv=3).fit(friedman.X, friedman.y)
    with pytest.raises(ValueError, match="return_std=True and interval"):
        model.predict(friedman.X, return_std=True, interval=0.9)


@pytest.mark.parametrize("question", [{"return_std": True}, {"interval": 0.9}], ids=str)
def test_without_residuals_it_says_how_to_get_them(friedman, question):
    model = HARFERegressor(**SMALL).fit(friedman.X, friedman.y)
    assert model.uncertainty_ is None
    with pytest.raises(ValueError, match=r"residual_cv=5.*HARFERegressorCV"):
        model.predict(friedman.X, **question)


@pytest.mark.parametrize("residual_cv", [1, 0, "five", []])
def test_impossible_folds_are_refused_before_any_work(friedman, monkeypatch, residual_cv):
    def no_work(*_args, **_kwargs):
        raise AssertionError("the fit began to work")

    monkeypatch.setattr("harfe.selection.recipe.make_problem", no_work)
    with pytest.raises(ValueError, match="residual_cv="):
        HARFERegressor(**SMALL, residual_cv=residual_cv).fit(friedman.X, friedman.y)


def test_folds_name_the_rows_that_were_passed_also_if_some_do_not_count(friedman):
    weights = (np.arange(100) % 4 != 0).astype(float)
    part = np.arange(100) % 3
    folds = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
    model = HARFERegressor(**SMALL, residual_cv=folds)
    model.fit(friedman.X, friedman.y, sample_weight=weights)
    counted = weights > 0
    inner = part[counted]
    folds = [(np.flatnonzero(inner != k), np.flatnonzero(inner == k)) for k in range(3)]
    some = HARFERegressor(**SMALL, residual_cv=folds)
    some.fit(friedman.X[counted], friedman.y[counted])
    np.testing.assert_allclose(model.uncertainty_.scores, some.uncertainty_.scores)


def test_few_distinct_rows_are_named_when_a_level_is_too_high(friedman):
    model = HARFERegressor(**SMALL, residual_cv=3)
    often = np.repeat(np.arange(5), 20)
    model.fit(friedman.X[often], friedman.y[often])
    with pytest.raises(ValueError, match=r"of total weight 9 or more, but it is 5;"):
        model.predict(friedman.X, interval=0.9)
