"""Learning a law: rows, references and laws against dense twins, planted inputs and relations."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harfe import FeatureLaw, HARFERegressor, LearnedLaw, learn_law
from harfe.datasets import make_function
from harfe.features.mixed_law import MixedLaw
from harfe.learning import candidates as learning
from harfe.learning.candidates import (
    CANDIDATES,
    TEMPERING,
    LawSettings,
    fit_candidate,
    law_of_kernel,
    sampling_notes,
    stack,
    standardise,
)
from harfe.learning.likelihood import KernelSettings
from harfe.learning.matching import make_points
from harfe.learning.reference import ExactReference, StackedReference
from harfe.learning.standard_rows import StandardRows


def standard_rows(X, y, weights=None, *, scale="standard", clip=None, seed=0):
    return StandardRows.of(
        X,
        y.reshape(len(y), -1),
        np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float),
        input_scale=scale,
        input_clip=clip,
        rng=np.random.default_rng(seed),
    )


def table(m=30, d=4, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3, 2, (m, d))
    y = np.sin(X[:, :1]) + X[:, 1:2] * np.arange(1, targets + 1) + 0.1 * rng.normal(size=(m, 1))
    return X, y


def assert_same_bits(a, b):
    for name in ("Z", "t", "weights", "centre", "unit"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name in ("units", "map"):
        one, two = getattr(a, name), getattr(b, name)
        for field in vars(one):
            np.testing.assert_array_equal(getattr(one, field), getattr(two, field), err_msg=field)


# --- Rows ---


@given(m=st.integers(2, 40), d=st.integers(1, 4), T=st.integers(1, 3), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=40)
def test_inputs_and_targets_have_mean_zero_and_deviation_one(m, d, T, seed):
    X, y = table(m, 4, T, seed)
    weights = np.random.default_rng(seed).uniform(0.1, 5, m)
    data = standard_rows(X[:, :d], y, weights)
    for values in (data.Z, data.t):
        np.testing.assert_allclose(data.weights @ values / weights.sum(), 0, atol=1e-12)
        np.testing.assert_allclose(data.weights @ values**2 / weights.sum(), 1, rtol=1e-11)


@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
@pytest.mark.parametrize("clip", [None, 1.5])
def test_weight_two_and_the_row_twice_are_the_same_data_bit_for_bit(scale, clip):
    X, y = table(targets=2)
    counts = np.random.default_rng(1).integers(1, 4, len(X))
    twice = np.repeat(np.arange(len(X)), counts)
    weighted = standard_rows(X, y, counts, scale=scale, clip=clip)
    repeated = standard_rows(X[twice], y[twice], scale=scale, clip=clip)
    assert_same_bits(weighted, repeated)
    assert repeated.weights.sum() == counts.sum()


@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
@pytest.mark.parametrize("clip", [None, 1.5])
def test_the_order_of_the_rows_is_irrelevant_bit_for_bit(scale, clip):
    X, y = table(targets=2)
    weights = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    order = np.random.default_rng(2).permutation(len(X))
    one = standard_rows(X, y, weights, scale=scale, clip=clip)
    two = standard_rows(X[order], y[order], weights[order], scale=scale, clip=clip)
    assert_same_bits(one, two)


def test_equal_rows_are_one_but_equal_inputs_with_other_targets_are_not():
    X = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [2.0, 5.0]])
    y = np.array([1.0, 1.0, 3.0, 2.0])
    data = standard_rows(X, y, scale="none")
    np.testing.assert_array_equal(data.Z, [[0.0, 1.0], [0.0, 1.0], [2.0, 5.0]])
    np.testing.assert_array_equal(data.weights, [2.0, 1.0, 1.0])
    np.testing.assert_allclose(data.to_targets(data.t)[:, 0], [1.0, 3.0, 2.0], rtol=1e-15)


def test_rows_that_clipping_makes_equal_are_one():
    X = np.append(np.linspace(-1, 1, 11), [50.0, 70.0])[:, None]
    y = np.append(np.arange(11.0), [5.0, 5.0])
    data = standard_rows(X, y, clip=3.0, scale="none")
    assert len(data.Z) == 12
    np.testing.assert_array_equal(data.weights, [*[1.0] * 11, 2.0])
    np.testing.assert_array_equal(data.Z[:, 0].max(), data.map.upper[0])


def test_clipped_rows_are_standardised_by_what_is_left_of_them():
    X, y = table(50)
    X[7, 0], X[9, 2] = 1e6, -1e5
    data = standard_rows(X, y, clip=5.0)
    clipped = data.map.clip(X)
    assert clipped[:, 0].max() < 50
    assert clipped[:, 2].min() > -50
    np.testing.assert_array_equal(np.isfinite(data.map.upper), [True, False, True, False])
    truth = (clipped - clipped.mean(axis=0)) / clipped.std(axis=0)
    np.testing.assert_allclose(data.standardise(X), truth, rtol=0, atol=1e-12)
    # other rows beyond the bounds stay at them
    far = data.standardise(np.full((1, 4), 1e9))
    assert far[0, 0] == data.standardise(X)[7, 0]


def test_a_constant_input_is_zero_and_does_not_vary():
    X, y = table()
    X[:, 2] = 0.1
    data = standard_rows(X, y)
    np.testing.assert_array_equal(data.varying, [0, 1, 3])
    np.testing.assert_array_equal(data.Z[:, 2], 0)
    np.testing.assert_array_equal(data.standardise(np.full((3, 4), 7.0))[:, 2], 0)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e200])
def test_a_constant_target_keeps_its_unit(value):
    X, _ = table()
    data = standard_rows(X, np.full(30, value))
    assert data.unit[0] == 1
    np.testing.assert_allclose(data.to_targets(np.zeros((1, 1))), value, rtol=1e-15)


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_targets_come_back_whatever_their_magnitude(factor):
    X, y = table(targets=3)
    y = y * [[factor, 1.0, -factor]]
    data = standard_rows(X, y)
    back = data.to_targets(data.t)
    order = np.lexsort(X.T[::-1])
    np.testing.assert_allclose(back, y[order], rtol=1e-12, atol=1e-14 * np.abs(y).max())
    np.testing.assert_allclose(data.standardise(X[order]), data.Z, rtol=0, atol=1e-14)


def test_a_subset_is_some_of_the_rows_in_the_same_units():
    data = standard_rows(*table(targets=2), np.arange(1, 31))
    few = data.subset(12, np.random.default_rng(0))
    assert few.Z.shape == (12, 4)
    places = [int(np.flatnonzero(np.all(z == data.Z, axis=1))[0]) for z in few.Z]
    assert places == sorted(set(places))
    np.testing.assert_array_equal(few.t, data.t[places])
    np.testing.assert_array_equal(few.weights, data.weights[places])
    assert few.units is data.units
    assert data.subset(30, np.random.default_rng(0)) is data


def test_of_too_many_rows_some_are_drawn_and_make_the_units(monkeypatch):
    monkeypatch.setattr("harfe.learning.standard_rows.MOST_ROWS", 10)
    X, y = table()
    data = standard_rows(X, y)
    assert len(data.Z) == 10
    drawn = data.Z * data.units.spread + data.units.centre
    for row in drawn:
        assert np.min(np.abs(X - row).max(axis=1)) < 1e-13
    np.testing.assert_allclose(data.units.centre, drawn.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(data.units.spread, drawn.std(axis=0), rtol=1e-12)


# --- References ---

KERNEL = KernelSettings(
    np.array([0.8, 0.5, 1.0, 0.3]),
    np.array([0.6, 0.4, 0.0, 0.2]),
    np.array([0.0, 1.0, 0.5]),
    0.05,
)


def dense_kernel(kernel, X, Z):
    """Σ_q η_q e_q(u) by Newton's generating polynomial, one pair of rows after the other."""
    out = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        for k, z in enumerate(Z):
            polynomial = np.array([1.0])
            for j in range(len(x)):
                u = kernel.inclusion[j] * math.exp(-((kernel.scales[j] * (x[j] - z[j])) ** 2) / 2)
                polynomial = np.convolve(polynomial, [1.0, u])
            Q = min(len(kernel.order_weights), len(polynomial))
            out[i, k] = kernel.order_weights[:Q] @ polynomial[:Q]
    return out


def dense_process(kernel, data, Z, constant=1.0):
    """Mean of the Gaussian process with a constant of this prior variance."""
    C = dense_kernel(kernel, data.Z, data.Z) + constant + kernel.noise * np.diag(1 / data.weights)
    return (dense_kernel(kernel, Z, data.Z) + constant) @ np.linalg.solve(C, data.t)


@pytest.mark.parametrize("targets", [1, 3])
def test_the_exact_reference_is_the_mean_of_the_gaussian_process(targets):
    data = standard_rows(*table(targets=targets), np.arange(1, 31) / 10)
    Z = np.random.default_rng(5).normal(size=(20, 4))
    reference = ExactReference.fit(KERNEL, data)
    assert reference.predict(Z).shape == (20, targets)
    np.testing.assert_allclose(reference.predict(Z), dense_process(KERNEL, data, Z), atol=1e-10)


def test_blocks_of_predicted_rows(monkeypatch):
    data = standard_rows(*table())
    Z = np.random.default_rng(5).normal(size=(20, 4))
    reference = ExactReference.fit(KERNEL, data)
    whole = reference.predict(Z)
    monkeypatch.setattr("harfe.learning.reference._PREDICT_BLOCK", 7)
    np.testing.assert_allclose(reference.predict(Z), whole, rtol=0, atol=1e-13)
    assert reference.predict(Z[:0]).shape == (0, 1)


def raw_rows(Z, t, weights):
    """Rows as they are, without merging equal ones."""
    data = standard_rows(Z, t)
    return replace(data, Z=Z, t=t, weights=weights)


def test_a_reference_on_weight_two_is_that_on_the_row_twice():
    rng = np.random.default_rng(0)
    Z, t, counts = rng.normal(size=(20, 4)), rng.normal(size=(20, 2)), rng.integers(1, 4, 20)
    twice = np.repeat(np.arange(20), counts)
    weighted = raw_rows(Z, t, counts.astype(float))
    repeated = raw_rows(Z[twice], t[twice], np.ones(len(twice)))
    new = rng.normal(size=(10, 4))
    one, two = (ExactReference.fit(KERNEL, data).predict(new) for data in (weighted, repeated))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-10)


def test_equal_rows_without_noise_do_not_stop_the_exact_reference():
    rng = np.random.default_rng(0)
    Z = np.repeat(rng.normal(size=(10, 4)), 3, axis=0)
    t = np.sin(Z[:, :1])
    reference = ExactReference.fit(replace(KERNEL, noise=0.0), raw_rows(Z, t, np.ones(30)))
    np.testing.assert_allclose(reference.predict(Z), t, rtol=0, atol=1e-6)


def test_a_stacked_reference_is_the_weighted_sum():
    data = standard_rows(*table(targets=2))
    Z = data.Z[:7]
    one = ExactReference.fit(KERNEL, data)
    two = ExactReference.fit(replace(KERNEL, noise=3.0), data)
    stacked = StackedReference((one, two), (0.7, 0.4))
    truth = 0.7 * one.predict(Z) + 0.4 * two.predict(Z)
    np.testing.assert_allclose(stacked.predict(Z), truth, rtol=1e-14)


# --- From a kernel to its law ---


@given(d=st.integers(1, 5), order=st.integers(1, 6), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=40)
def test_the_law_of_a_kernel_has_that_kernel_up_to_its_variance(d, order, seed):
    rng = np.random.default_rng(seed)
    p = np.exp(rng.normal(0, 2, d)) * (rng.random(d) > 0.3)
    p[rng.integers(d)] = 1.0
    eta = np.concatenate([[0.0, 1.0], np.exp(rng.normal(0, 2, order - 1))])
    kernel = KernelSettings(np.exp(rng.normal(0, 1, d)), p, eta, 0.1)
    X, Z = rng.normal(size=(6, d)), rng.normal(size=(4, d))
    law = law_of_kernel(kernel)
    # sine features have the mean square 1/2
    ours = 2 * kernel.variance() * law.kernel(X, Z)
    np.testing.assert_allclose(ours, kernel.kernel(X.T.copy(), Z.T.copy()), rtol=1e-12)
    np.testing.assert_array_equal(law.usage() > 0, p > 0)
    assert max(law.orders) <= np.count_nonzero(p)


@given(
    d=st.integers(1, 5),
    weights=st.sampled_from(["normal", "cauchy", "t3", "t5"]),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=40)
def test_the_law_of_a_joint_kernel_has_that_kernel_up_to_its_variance(d, weights, seed):
    rng = np.random.default_rng(seed)
    used = (rng.random(d) > 0.3).astype(float)
    used[rng.integers(d)] = 1.0
    scales = np.exp(rng.normal(0, 1, d))
    kernel = KernelSettings(scales, used, np.array([rng.uniform(0.1, 3)]), 0.1, weights, full=True)
    X, Z = rng.normal(size=(6, d)), rng.normal(size=(4, d))
    law = law_of_kernel(kernel)
    assert law.orders == (np.count_nonzero(used),)
    assert law.weights == weights
    ours = 2 * kernel.variance() * law.kernel(X, Z)
    np.testing.assert_allclose(ours, kernel.kernel(X.T.copy(), Z.T.copy()), rtol=1e-12)
    np.testing.assert_array_equal(law.usage(), used)


def test_the_law_of_a_kernel_by_hand():
    kernel = KernelSettings(
        np.array([0.5, 1.0, 2.0]), np.array([0.5, 0.0, 2.0]), np.array([0.0, 1.0, 3.0, 9.0]), 0.1
    )
    # e_1 = 2.5 and 3 e_2 = 3; there are no sets of three
    law = law_of_kernel(kernel)
    assert law.orders == (1, 2)
    assert law.scale == (0.5, 1.0, 2.0)
    assert law.variable_weights == (0.25, 0.0, 1.0)
    np.testing.assert_allclose(law.order_weights, [2.5 / 5.5, 3 / 5.5], rtol=1e-14)


# --- Fitting a candidate ---


def friedman(m=120, d=15, seed=0):
    """Friedman 1 on the first five inputs; the others are noise."""
    data = make_function("friedman1", m, random_state=seed)
    rng = np.random.default_rng(seed)
    return np.hstack([data.X, rng.uniform(size=(m, d - 10))]), data.y


def fit(name, X, y, weights=None, **own):
    own = LawSettings(0, **own)
    weights = np.ones(len(X)) if weights is None else weights
    return fit_candidate(CANDIDATES[name], standardise(X, y.reshape(len(y), -1), weights, own), own)


def kernel_of(found):
    """The kernel of a fitted candidate on standardised inputs."""
    law = replace(found.law, tempering=0.0, activation="sin")
    return lambda X, Z: 2 * found.variance * law.kernel(X, Z)


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_fitted_candidate_predicts_as_the_process_with_its_own_law(name):
    X, y = friedman(60, 11)
    new = friedman(20, 11, seed=1)[0]
    weights = np.arange(1, 61) / 30
    found = fit(name, X, y, weights)
    assert found.name == name
    data, k = found.data, kernel_of(found)
    C = k(data.Z, data.Z) + 1 + found.noise * np.diag(1 / data.weights)
    Z = data.standardise(new)
    truth = data.to_targets((k(Z, data.Z) + 1) @ np.linalg.solve(C, data.t))
    np.testing.assert_allclose(found.predict(new), truth, rtol=1e-7)


def test_a_candidate_obeys_its_prior():
    X, y = friedman(60, 11)
    assert fit("additive", X, y).law.orders == (1,)
    assert set(fit("pairs", X, y).law.orders) <= {1, 2}
    assert set(fit("fours", X, y).law.orders) <= {1, 2, 3, 4}
    alike = fit("isotropic", X, y).law
    assert len(set(alike.scale)) == 1
    assert set(alike.variable_weights) == {1.0}
    for name, weights in (("joint", "normal"), ("rough", "cauchy")):
        law = fit(name, X, y).law
        assert law.orders == (np.count_nonzero(law.variable_weights),)
        assert set(law.variable_weights) <= {0.0, 1.0}
        assert (law.weights, law.tempering) == (weights, 0.0)


def test_a_candidate_takes_activation_and_tempering_from_the_settings():
    X, y = friedman(40, 11)
    plain = fit("additive", X, y)
    assert (plain.law.activation, plain.law.tempering) == ("sin", TEMPERING)
    other = fit("additive", X, y, activation="cos", tempering=0.1)
    assert other.law == replace(plain.law, activation="cos", tempering=0.1)


def test_a_constant_input_gets_no_weight():
    X, y = friedman(60, 11)
    X[:, 2] = 4.0
    for name in CANDIDATES:
        assert fit(name, X, y).law.variable_weights[2] == 0


def test_units_of_inputs_and_targets_do_not_matter():
    X, y = friedman(50, 11)
    factor = 2.0 ** np.arange(-5, 6)
    one, two = fit("pairs", X, y), fit("pairs", X * factor, 1024 * y)
    assert one.law == two.law
    assert one.noise == two.noise
    np.testing.assert_array_equal(1024 * one.predict(X), two.predict(X * factor))


def test_only_so_many_rows_are_looked_at_but_all_are_fitted():
    X, y = friedman(60, 11)
    few, all_rows = fit("additive", X, y, max_rows=30), fit("additive", X, y)
    assert few.law != all_rows.law
    assert len(few.reference.beta) == 60


def test_the_first_rows_and_steps_find_the_variables(monkeypatch):
    rounds = [replace(step, rows=60) for step in learning._ROUNDS]
    monkeypatch.setattr(learning, "_ROUNDS", rounds)
    found = fit("pairs", *friedman(120))
    assert set(range(5)) <= set(np.flatnonzero(found.law.usage()).tolist())


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_an_interaction_of_two_of_many_inputs_is_found(seed):
    """It is not in the first 150 rows: with many inputs, there are more of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 32))
    y = np.sin(2 * X[:, 3]) * X[:, 7] + 0.1 * rng.normal(size=600)
    found = fit("fours", X, y)
    assert found.noise < 0.05
    assert set(np.argsort(found.law.usage())[-2:]) == {3, 7}


def test_of_many_rows_the_reference_sees_some():
    X, y = friedman(100, 11)
    whole, part = fit("pairs", X, y), fit("pairs", X, y, reference_rows=60)
    assert part.law == whole.law
    assert part.noise == whole.noise
    assert whole.reference.beta.shape == (100, 1)
    rows = part.data.subset(60, np.random.default_rng(0))
    assert part.reference.rows.shape[1] == 60
    truth = dense_process(part.kernel, rows, part.data.Z)
    np.testing.assert_allclose(
        part.predict(X)[:, 0], part.data.to_targets(truth)[np.argsort(np.lexsort(X.T[::-1])), 0]
    )


# --- Many inputs ---


@pytest.mark.parametrize("name", ["pairs", "additive"])
def test_of_many_inputs_the_true_ones_go_on(monkeypatch, name):
    monkeypatch.setattr(learning, "_MOST_INPUTS", 8)
    X, y = friedman(150, 40, seed=1)
    order = np.random.default_rng(0).permutation(40)
    found = fit(name, X[:, order], y)
    used = order[np.flatnonzero(found.law.usage())]
    assert set(range(5)) <= set(used.tolist())
    assert len(used) <= 8


def test_isotropic_uses_just_the_inputs_that_go_on(monkeypatch):
    monkeypatch.setattr(learning, "_MOST_INPUTS", 8)
    X, y = friedman(150, 30, seed=1)
    used = np.flatnonzero(fit("isotropic", X, y).law.usage())
    assert len(used) == 8
    assert set(range(5)) <= set(used.tolist())


# --- Stacks ---


@pytest.fixture(scope="module")
def fits():
    X, y = friedman(50, 11)
    return [fit(name, X, y) for name in ("additive", "pairs", "fours")]


def test_one_candidate_of_weight_one_is_itself(fits):
    assert stack(fits, [0.0, 1.0, 0.0]) is fits[1]


def test_a_stack_predicts_the_weighted_sum(fits):
    X = friedman(20, 11, seed=1)[0]
    weights = [0.5, 0.0, 0.4]
    stacked = stack(fits, weights)
    assert stacked.name == "additive + fours"
    centre = fits[0].data.centre
    truth = 0.5 * (fits[0].predict(X) - centre) + 0.4 * (fits[2].predict(X) - centre) + centre
    np.testing.assert_allclose(stacked.predict(X), truth, rtol=1e-13)
    assert stacked.law == MixedLaw((fits[0].law, fits[2].law), (0.5 / 0.9, 0.4 / 0.9))
    for field in ("noise", "variance"):
        one, two = getattr(fits[0], field), getattr(fits[2], field)
        assert getattr(stacked, field) == pytest.approx((0.5 * one + 0.4 * two) / 0.9)


def test_a_single_candidate_may_be_shrunk(fits):
    X = friedman(20, 11, seed=1)[0]
    shrunk = stack(fits, [0.0, 0.8, 0.0])
    assert shrunk.name == "pairs"
    assert shrunk.law == fits[1].law
    centre = fits[1].data.centre
    np.testing.assert_allclose(
        shrunk.predict(X), centre + 0.8 * (fits[1].predict(X) - centre), rtol=1e-13
    )


# --- learn_law ---


@pytest.mark.parametrize("name", ["additive", "pairs", "fours"])
def test_the_five_variables_of_friedman_are_found(name):
    X, y = friedman()
    order = np.random.default_rng(3).permutation(15)
    learned = learn_law(X[:, order], y, candidates=[name], cv=2, random_state=0)
    assert learned.candidate == name
    used = learned.law.usage()[np.argsort(order)]
    assert set(np.argsort(used)[-5:].tolist()) == {0, 1, 2, 3, 4}
    assert used[5:].sum() < 0.1 * used.sum()
    assert learned.n_rows == 120
    assert learned.law.n_variables == 15


def test_all_candidates_race_and_the_best_ones_win():
    X, y = friedman()
    learned = learn_law(X, y, cv=2, random_state=0)
    assert isinstance(learned, LearnedLaw)
    assert tuple(learned.errors) == tuple(CANDIDATES)
    best = min(learned.errors, key=learned.errors.get)
    assert best in learned.candidate.split(" + ")
    # the function has a product of two variables, and ten inputs are noise
    assert learned.errors[best] < 0.6 * learned.errors["additive"]
    assert learned.errors[best] < 0.6 * learned.errors["isotropic"]


def test_errors_are_those_of_references_fitted_without_the_fold():
    X, y = friedman(60, 11)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    learned = learn_law(X, y, candidates=["pairs"], cv=folds, random_state=0)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    own = LawSettings(int(seed))
    errors, starts = [], []
    for train, test in folds:
        data = standardise(X[train], y[train, None], np.ones(40), own)
        found = fit_candidate(CANDIDATES["pairs"], data, own)
        starts.append(found.kernel)
        errors.append(np.mean((y[test] - found.predict(X[test])[:, 0]) ** 2))
    assert learned.errors == {"pairs": pytest.approx(np.mean(errors), rel=1e-9)}
    data = standardise(X, y[:, None], np.ones(60), own)
    whole = fit_candidate(CANDIDATES["pairs"], data, own, starts)
    assert learned.law == whole.law
    assert (learned.noise, learned.variance) == (whole.noise, whole.variance)


def test_a_law_is_refitted_from_the_likeliest_start():
    X, y = friedman(150, 11)
    own = LawSettings(0)
    data = standardise(X, y[:, None], np.ones(150), own)
    prior = CANDIDATES["pairs"]
    found = fit_candidate(prior, data, own)
    assert found.kernel.noise == found.noise
    # as fitted to something else, with other inputs
    wrong = replace(found.kernel, inclusion=np.roll(found.kernel.inclusion, 5), noise=1.0)
    again = fit_candidate(prior, data, own, [wrong, found.kernel])
    np.testing.assert_array_equal(again.law.usage() > 0, found.law.usage() > 0)
    np.testing.assert_allclose(again.law.scale, found.law.scale, rtol=0.2)
    assert again.noise == pytest.approx(found.noise, rel=0.2)
    lost = fit_candidate(prior, data, own, [wrong])
    assert lost.noise > 2 * again.noise


def test_equal_seeds_are_equal_results():
    X, y = friedman(60, 11)
    candidates = ["additive", "pairs"]
    one, two, other = (
        learn_law(X, y, candidates=candidates, cv=3, random_state=seed) for seed in (0, 0, 1)
    )
    assert one == two
    assert one.errors != other.errors


def test_a_random_state_of_numpy_is_a_seed_too():
    X, y = friedman(30, 11)
    one, two = (
        learn_law(X, y, candidates=["additive"], random_state=np.random.RandomState(5))
        for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize("name", ["additive", "pairs"])
def test_weights_are_repeats(name):
    X, y = friedman(40, 11)
    counts = np.random.default_rng(1).integers(0, 4, 40)
    twice = np.repeat(np.arange(40), counts)
    weighted = learn_law(X, y, counts, candidates=[name], cv=3, random_state=0)
    repeated = learn_law(X[twice], y[twice], candidates=[name], cv=3, random_state=0)
    assert weighted.n_rows == repeated.n_rows == np.count_nonzero(counts)
    assert weighted.errors[name] == pytest.approx(repeated.errors[name], rel=1e-12)
    # not a bit less: a search would turn rounding into another law
    assert weighted.law == repeated.law
    assert (weighted.noise, weighted.variance) == (repeated.noise, repeated.variance)


def test_two_targets_share_the_law():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = np.column_stack([np.sin(2 * X[:, 1]), 1e6 * X[:, 4] ** 2])
    y += [0.05, 5e4] * rng.normal(size=(60, 2))
    learned = learn_law(X, y, candidates=["additive"], cv=2, random_state=0)
    np.testing.assert_array_equal(np.flatnonzero(learned.law.usage()), [1, 4])


def test_a_column_of_targets_is_one_target():
    X, y = friedman(30, 11)
    one, two = (
        learn_law(X, target, candidates=["additive"], cv=2, random_state=0)
        for target in (y, y[:, None])
    )
    assert one == two


def test_the_summary_speaks_of_the_columns_of_the_frame():
    X, y = friedman(60, 11)
    names = [f"input {k}" for k in "abcdefghijk"]
    frame = pd.DataFrame(X, columns=names)
    learned = learn_law(frame, y, candidates=["additive"], cv=2, random_state=0)
    assert learned.columns == tuple(names)
    first, second, *rest = learned.summary().split("\n")
    error = learned.errors["additive"]
    assert first == (
        f"additive law learned from 60 rows; held-out error by candidate: additive {error:.4g}."
    )
    assert second == f"Noise: {learned.noise:.2g} of the variance of the target."
    assert "\n".join(rest) == learned.law.summary(names)
    assert "input d" in learned.summary()
    assert "not used: " in learned.summary()
    assert learned == replace(
        learn_law(X, y, candidates=["additive"], cv=2, random_state=0), columns=tuple(names)
    )


def test_columns_without_names_are_numbered():
    X, y = friedman(30, 11)
    learned = learn_law(X, y, candidates=["additive"], cv=2, random_state=0)
    assert learned.columns == tuple(f"x{k}" for k in range(11))


def test_a_learned_law_goes_to_an_estimator_and_helps():
    X, y = friedman(120)
    new = make_function("friedman1", 300, noise=0, random_state=9)
    Z = np.hstack([new.X, np.random.default_rng(9).uniform(size=(300, 5))])
    law = learn_law(X, y, candidates=["pairs"], cv=2, random_state=0).law
    own = {"n_components": 500, "n_nonzero_coefs": 25, "alpha": 1e-3, "random_state": 0}
    learned = HARFERegressor(**own, law=law).fit(X, y)
    plain = HARFERegressor(**own).fit(X, y)
    assert learned.law_ == law
    errors = [np.mean((model.predict(Z) - new.y) ** 2) for model in (learned, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_a_stack_of_laws_goes_to_an_estimator():
    X, y = friedman(60, 11)
    laws = tuple(fit(name, X, y).law for name in ("additive", "pairs"))
    law = MixedLaw(laws, (0.4, 0.6))
    model = HARFERegressor(n_components=100, n_nonzero_coefs=10, law=law, random_state=0)
    assert model.fit(X, y).law_ == law


def test_many_inputs_of_learn_law(monkeypatch):
    monkeypatch.setattr(learning, "_MOST_INPUTS", 8)
    X, y = friedman(150, 40, seed=1)
    learned = learn_law(X, y, candidates=["pairs"], cv=2, random_state=0)
    used = np.flatnonzero(learned.law.usage())
    assert set(range(5)) <= set(used.tolist())
    assert len(used) <= 8


def test_progress_is_told_on_standard_error(capsys):
    X, y = friedman(30, 11)
    learn_law(X, y, candidates=["additive"], cv=2, random_state=0, verbose=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "harfe: 2 of 2 fits of laws, 0 s left, best law additive\n"
    learn_law(X, y, candidates=["additive"], cv=2, random_state=0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("n_rows", "sizes"),
    [(500, []), (501, [500]), (4001, [500, 4000]), (25_000, [500, 4000, 6000])],
)
def test_samples_of_rows_are_stated(n_rows, sizes):
    notes = sampling_notes(n_rows)
    assert [int(re.search(r"(\d+) of the (\d+) rows", note)[1]) for note in notes] == sizes
    assert all(f" of the {n_rows} rows" in note for note in notes)


def test_stated_samples_are_those_that_are_drawn():
    X = np.random.default_rng(0).normal(size=(20_001, 1))
    data = standardise(X, np.sin(X), np.ones(20_001), LawSettings(0))
    assert len(data.Z) == 20_000
    assert LawSettings(0).reference_rows == 4000
    flat = SimpleNamespace(predict=lambda Z: np.zeros((len(Z), 1)))
    used, rng = np.array([True]), np.random.default_rng(0)
    assert len(make_points(flat, data.Z, data.weights, used, 0.1, rng).Z) == 6000


def test_samples_are_reported_before_the_work(capsys):
    X, y = friedman(501, 10)
    learn_law(X, y, candidates=["additive"], cv=2, random_state=0, verbose=True)
    first = capsys.readouterr().err.splitlines()[0]
    assert first == "harfe: the likelihood of a law is computed on 500 of the 501 rows"


# --- Data at the edge ---


@pytest.mark.parametrize("seed", [0, 6, 9, 15])
def test_a_law_is_learned_from_pure_noise(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(24, 2)), rng.normal(size=24)
    learned = learn_law(X, y, candidates=["additive", "isotropic"], cv=3, random_state=0)
    assert isinstance(learned.law, FeatureLaw | MixedLaw)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_a_law_is_learned_from_few_rows(m):
    X, y = table(m, 2)
    learned = learn_law(X, y, random_state=0)
    assert learned.n_rows == m


def test_a_law_is_learned_where_an_input_varies_outside_one_fold_only():
    rng = np.random.default_rng(0)
    X = np.zeros((20, 1))
    X[0] = 1.0
    learned = learn_law(X, rng.normal(size=20), random_state=0)
    assert learned.law.usage()[0] == 1


def test_a_constant_target_is_all_right():
    X, _ = table()
    learned = learn_law(X, np.ones(30), candidates=["additive"], cv=2, random_state=0)
    assert learned.errors["additive"] < 1e-20


def test_an_exact_function_has_next_to_no_noise():
    X = np.random.default_rng(0).normal(size=(50, 3))
    learned = learn_law(X, np.sin(X[:, 1]), candidates=["additive"], cv=2, random_state=0)
    assert learned.noise < 1e-4
    assert learned.errors["additive"] < 1e-3
    np.testing.assert_array_equal(np.flatnonzero(learned.law.usage()), [1])


def test_rows_of_weight_zero_do_not_count():
    X, y = friedman(50, 11)
    weights = np.ones(50)
    weights[40:] = 0
    far = y.copy()
    far[40:] = 1e9
    one = learn_law(X, far, weights, candidates=["additive"], cv=2, random_state=0)
    two = learn_law(X[:40], y[:40], candidates=["additive"], cv=2, random_state=0)
    assert one == two


# --- Messages ---


def refused(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def test_complex_targets_are_refused():
    X, y = table()
    with refused("y is complex, and a law is learned from real targets; pass y.real"):
        learn_law(X, y[:, 0] + 1j)


def test_unknown_candidates_are_refused():
    X, y = table()
    with refused(
        "candidates='triples' is not known; choose one of additive, pairs, fours, isotropic, "
        "joint, rough"
    ):
        learn_law(X, y, candidates=["pairs", "triples"])


def test_no_candidates_are_refused():
    X, y = table()
    with refused(
        "candidates=() names none; pass some of ('additive', 'pairs', 'fours', 'isotropic', "
        "'joint', 'rough')"
    ):
        learn_law(X, y, candidates=[])


@pytest.mark.parametrize(
    "X",
    [
        np.full((30, 2), 3.0),
        1e9 + 1e-6 * np.arange(30.0)[:, None],  # rounding alone
    ],
    ids=["constant", "rounding"],
)
def test_inputs_that_do_not_vary_are_refused(X):
    with refused("X has no input that varies; there is nothing to learn a law from"):
        learn_law(X, np.arange(30.0), random_state=0)


def test_inputs_that_vary_in_rows_that_do_not_count_are_refused():
    X, y = table()
    X[1:] = X[1]
    weights = np.ones(30)
    weights[0] = 0
    with refused("X has no input that varies; there is nothing to learn a law from"):
        learn_law(X, y, weights)


@pytest.mark.parametrize("where", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(where, value):
    X, y = table()
    weights = np.ones(30)
    {"X": X, "y": y, "sample_weight": weights}[where].flat[7] = value
    with pytest.raises(ValueError, match=f"{where} contains"):
        learn_law(X, y, weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(29), "expected \\(30,\\)"),
        (-np.ones(30), "negative value -1.0"),
        (np.eye(30)[0], "above zero for 1 rows"),
        (np.ones((30, 2)), "expected \\(30,\\)"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    X, y = table()
    with pytest.raises(ValueError, match=message):
        learn_law(X, y, weights)


def test_targets_of_another_length_are_refused():
    X, y = table()
    with pytest.raises(ValueError, match="X has 30 rows but y has 29"):
        learn_law(X, y[:29])


@pytest.mark.parametrize(
    "wrong", [{"input_scale": "unit"}, {"input_clip": -1}, {"input_clip": "five"}, {"cv": 1}]
)
def test_wrong_settings_are_refused_by_name(wrong):
    X, y = table()
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"^{name}={value!r} "):
        learn_law(X, y, candidates=["additive"], random_state=0, **wrong)
