"""Trained models: their sizes, what they fit, and which models of all rows are kept."""

from types import SimpleNamespace

import numpy as np
import pytest

from harfe import HARFERegressorCV
from harfe.learning.candidates import CANDIDATES, LawSettings
from harfe.learning.matching import Matched
from harfe.selection import sparse_models
from harfe.selection.learn_law import fit_law
from harfe.selection.rows import Data
from harfe.selection.sparse_models import (
    SparseSettings,
    close_model,
    sparse_on_fold,
    trained_models,
    trained_sizes,
)


def smooth(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] ** 2


def other(X):
    return np.cos(3 * X[:, 1]) - X[:, 0]


@pytest.fixture(scope="module")
def learned():
    """Rows, their law, and the template of a search."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 2))
    data = Data(X, (smooth(X) + 0.1 * rng.normal(size=150))[:, None], np.ones(150))
    law = fit_law(CANDIDATES["pairs"], LawSettings(0), data, np.arange(150))
    model = HARFERegressorCV(n_components=200, random_state=0)
    model.n_features_in_ = 2
    return data, law, model._template(150.0, True)


def test_trained_sizes_are_the_largest_and_shares_of_it(monkeypatch):
    monkeypatch.setattr(sparse_models, "_SMALLEST_TRAINED", 30)
    monkeypatch.setattr(sparse_models, "_TRAINED_RATIO", 2.0)
    assert trained_sizes((10, 30, 60, 61, 122, 201, 401)) == (30, 61, 122, 401)
    assert trained_sizes((400, 200)) == (200, 400)
    assert trained_sizes((15, 29, 60)) == (60,)
    assert trained_sizes((4, 8)) == (8,)
    settings = SparseSettings(("trained",), (10, 60, 900), (1e-3,))
    assert settings.to_train == (60, 900)
    # matches are made for few; the sizes of a narrower search take precedence
    assert settings.to_match == (10, 60)
    assert SparseSettings(("trained",), (10, 60), (1e-3,), trained=(10,)).to_train == (10,)
    assert SparseSettings(("matched",), (500, 900), (1e-3,)).to_match == (500,)


def test_of_few_rows_trained_features_match_the_reference(learned):
    data, law, template = learned
    (model,) = trained_models(template, law, (12,), data)
    assert len(model.support) == len(model.features) == model.coef.shape[1] == 12
    new = np.random.default_rng(1).uniform(-0.9, 0.9, (500, 2))
    found = law.data.to_targets(model.predict(law.data.standardise(new)))[:, 0]
    dense = law.predict(new)[:, 0]
    assert np.mean((found - dense) ** 2) < 0.02 * np.var(dense)
    assert model.gap < 0.02
    # only the reference counts, not the noise of the rows
    noise = Data(data.X, np.random.default_rng(2).normal(size=(150, 1)), data.weights)
    (again,) = trained_models(template, law, (12,), noise)
    np.testing.assert_array_equal(again.coef, model.coef)


def test_of_many_rows_trained_features_fit_the_rows(learned, monkeypatch):
    data, law, template = learned
    monkeypatch.setattr(sparse_models, "EXACT_ROWS", 149)
    rng = np.random.default_rng(3)
    rows = Data(data.X, other(data.X)[:, None], rng.uniform(0.5, 1.5, 150))
    (model,) = trained_models(template, law, (12,), rows)
    found = law.data.to_targets(model.predict(law.data.standardise(data.X)))[:, 0]
    square = (found - rows.y[:, 0]) ** 2
    assert square.mean() < 0.05 * rows.y.var()
    assert np.mean((found - law.predict(data.X)[:, 0]) ** 2) > 0.3 * rows.y.var()
    # the gap is the mean square of the residuals, in units of the targets of the law
    expected = np.average(square, weights=rows.weights) / law.data.unit[0] ** 2
    assert model.gap == pytest.approx(expected, rel=1e-6)


def test_a_reference_of_a_sample_is_no_guide(learned, monkeypatch):
    data, law, template = learned
    settings = SparseSettings(("matched", "trained"), (4, 12), (1e-3,))
    fold = np.arange(100), np.arange(100, 150)
    few, _ = sparse_on_fold(template, law, settings, data, fold, None)
    assert np.all(few[2, 0, :, 0] > 0)
    monkeypatch.setattr(sparse_models, "EXACT_ROWS", 99)
    many, models = sparse_on_fold(template, law, settings, data, fold, None)
    np.testing.assert_array_equal(many[2, 0, :, 0], 0.0)
    np.testing.assert_array_equal(many[0, 0], few[0, 0])
    assert sorted(models) == [("matched", 4), ("matched", 12), ("trained", 12)]


@pytest.mark.parametrize("refine", [False, True])
def test_no_more_features_than_distinct_rows_of_a_training_fold(refine):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-1, 1, (32, 2)), 6, axis=0)
    model = HARFERegressorCV(
        200, cv=4, alphas=[1e-3], refine=refine, input_warp="none", random_state=0
    ).fit(X, smooth(X))
    assert model.sizes_.max() == 24
    assert model.n_nonzero_coefs_ <= 24


def path_of(*gaps):
    """Models of 10, 20, ... features with these gaps."""
    return [
        Matched(np.arange(10 * k), SimpleNamespace(), np.empty(0), np.empty(0), gap)
        for k, gap in enumerate(gaps, start=1)
    ]


@pytest.mark.parametrize(
    ("gaps", "size", "visible", "found"),
    [
        ((0.1, 0.1, 0.1), 20, 0.0, 20),
        ((0.1, 0.21, 0.2), 20, 0.0, 30),  # within twice the usual gap
        ((0.1, 0.21, 0.21), 20, 0.0, None),  # smaller ones do not count
        ((0.1, 0.23, 0.22), 20, 0.25, 30),  # the closest, where the reference itself errs more
        ((0.1, 0.27, 0.26), 20, 0.25, None),
        ((0.1, 0.2, 0.3), 40, 0.0, None),  # there are none so large
        ((0.1, 0.2, 0.2), 40, 0.0, 30),
    ],
)
def test_a_model_of_all_rows_is_as_close_as_those_of_the_folds(gaps, size, visible, found):
    model = close_model(path_of(*gaps), size, 0.1, visible)
    assert (None if model is None else len(model.support)) == found
