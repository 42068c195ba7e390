"""Only ratios of sample weights matter, and rows are counted by how many are distinct."""

import numpy as np
import pytest

from harfe import HARFERegressor, HARFERegressorCV

MODELS = {
    "plain": lambda: HARFERegressor(random_state=0),
    "search": lambda: HARFERegressorCV(
        200, n_nonzero_coefs=6, alphas=[1e-3], cv=3, input_warp="none", random_state=0
    ),
}
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@pytest.fixture(scope="module")
def xy():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=60)


def check_same(a, b, X):
    assert a.n_nonzero_coefs_ == b.n_nonzero_coefs_
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-6, atol=1e-6)


@models
def test_equal_weights_of_any_size_are_ones(xy, make):
    X, y = xy
    ones = make().fit(X, y)
    for size in (0.01, 1000.0):
        check_same(make().fit(X, y, sample_weight=np.full(60, size)), ones, X)


@models
def test_a_common_factor_changes_nothing(xy, make):
    X, y = xy
    weights = np.random.default_rng(1).uniform(0.2, 3, 60)
    base = make().fit(X, y, sample_weight=weights)
    # powers of two, as training amplifies what others lose to rounding
    for factor in (2.0**-7, 2.0**10):
        check_same(make().fit(X, y, sample_weight=factor * weights), base, X)
    # but ratios do
    assert not np.allclose(make().fit(X, y).predict(X), base.predict(X), rtol=1e-3)


@models
def test_weight_two_is_a_row_twice(xy, make):
    X, y = xy
    weights = 1 + np.arange(60) % 2
    twice = np.repeat(np.arange(60), weights)
    weighted = make().fit(X, y, sample_weight=weights)
    check_same(weighted, make().fit(X[twice], y[twice]), X)


@models
def test_inverse_variances_do_not_count_as_rows(xy, make):
    X, y = xy
    weights = 1e6 * np.random.default_rng(2).uniform(0.5, 2, 60)
    model = make().fit(X, y, sample_weight=weights)
    assert 1 <= model.n_nonzero_coefs_ <= 60
    if isinstance(model, HARFERegressorCV):
        assert model.sizes_.max() == 40  # distinct rows of a training fold
