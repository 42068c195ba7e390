"""The Gaussian process with a length scale per input: against scikit-learn's."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.preprocessing import StandardScaler

from harfe.rivals import ARDProcessRegressor
from harfe.rivals.gaussian_process import negative_log_likelihood


def test_the_gaussian_process_has_the_likelihood_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=30)
    theta = np.array([0.3, 0.1, 0.5, 1.0, -2.0])
    kernel = ConstantKernel(np.exp(0.3)) * RBF(np.exp(theta[1:4])) + WhiteKernel(np.exp(-2.0))
    truth = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(X, y)
    value, gradient = negative_log_likelihood(theta, X, y)
    assert value == pytest.approx(-truth.log_marginal_likelihood(), rel=1e-10)
    assert gradient == pytest.approx(
        -truth.log_marginal_likelihood(truth.kernel_.theta, eval_gradient=True)[1], rel=1e-8
    )
    assert check_grad(
        lambda t: negative_log_likelihood(t, X, y)[0],
        lambda t: negative_log_likelihood(t, X, y)[1],
        theta,
    ) < 1e-4 * np.abs(gradient).max()  # fmt: skip

    model = ARDProcessRegressor().fit(X, y)
    assert model.log_likelihood_ > -value
    assert model.lengths_[2] > 5 * model.lengths_[0]  # the third input is irrelevant
    # It standardises inputs and target itself.
    scale, unit = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
    v, lengths, noise = np.exp(model.theta_[0]), model.lengths_, np.exp(model.theta_[-1])
    kernel = ConstantKernel(v) * RBF(lengths) + WhiteKernel(noise)
    twin = GaussianProcessRegressor(kernel, alpha=1e-10, optimizer=None)
    twin.fit(scale.transform(X), unit.transform(y[:, None])[:, 0])
    X_new = rng.normal(size=(7, 3))
    expected = unit.inverse_transform(twin.predict(scale.transform(X_new))[:, None])[:, 0]
    assert model.predict(X_new) == pytest.approx(expected, rel=1e-6)


def test_the_gaussian_process_learns_from_at_most_so_many_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = X[:, 0]
    few = ARDProcessRegressor(max_rows=20, random_state=0).fit(X, y)
    every = ARDProcessRegressor(max_rows=20, random_state=0, condition_on_all=True).fit(X, y)
    assert (len(few.function_.Z), len(every.function_.Z)) == (20, 60)
    assert np.array_equal(few.theta_, every.theta_)


def test_settings_that_make_no_sense_are_refused():
    X, y = np.random.default_rng(0).normal(size=(10, 2)), np.arange(10.0)
    for settings, message in (
        ({"max_rows": 0}, "max_rows=0 must be"),
        ({"max_iter": 1.5}, "max_iter=1.5 must be"),
        ({"start_lengths": []}, "start_lengths"),
    ):
        with pytest.raises(ValueError, match=message):
            ARDProcessRegressor(**settings).fit(X, y)


def test_rows_far_from_all_others_get_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = 5 + np.sin(3 * X[:, 0])
    model = ARDProcessRegressor().fit(X, y)
    assert model.predict([[1e200, -1e200]]) == pytest.approx(y.mean())
