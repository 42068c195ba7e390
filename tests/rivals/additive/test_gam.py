"""pyGAM with the interface of the other rivals: the same numbers as pyGAM itself."""

import numpy as np
import pytest
from pygam import LinearGAM, s

from harfe.rivals import PyGAMRegressor


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=80)


@pytest.mark.parametrize("smoothing", [2.0, [2.0]])
def test_it_is_pygam_on_standardised_rows(rows, smoothing):
    X, y = rows
    Z, unit = (X - X.mean(axis=0)) / X.std(axis=0), y.std()
    truth = LinearGAM(s(0) + s(1) + s(2), lam=2.0).fit(Z, (y - y.mean()) / unit)
    model = PyGAMRegressor(smoothing).fit(X, y)
    np.testing.assert_allclose(model.predict(X), truth.predict(Z) * unit + y.mean(), rtol=1e-6)
    assert model.size_ == round(truth.statistics_["edof"])


def test_the_smoothing_is_that_of_the_smallest_gcv(rows):
    X, y = rows
    score = {lam: _gcv(PyGAMRegressor(lam).fit(X, y)) for lam in (1e-2, 1.0, 1e3)}
    chosen = PyGAMRegressor([1e-2, 1.0, 1e3]).fit(X, y)
    assert _gcv(chosen) == pytest.approx(min(score.values()))
    assert min(score.values()) < max(score.values())


def _gcv(model):
    return model.function_.model.statistics_["GCV"]


def test_a_smoothing_that_is_no_number_is_refused(rows):
    with pytest.raises(ValueError, match="smoothing=-1 must be 'auto', a finite number above 0"):
        PyGAMRegressor(-1).fit(*rows)
