"""Distributions of the inputs: Gauss rules against moments and closed forms; summaries."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from harfe import HARFERegressor, InputDistribution
from harfe.explain.inputs.distribution import largest_frequencies
from harfe.explain.inputs.quadrature import (
    gauss_of_columns,
    gauss_of_interval,
    gauss_of_points,
    nodes_needed,
    normal_rule,
)
from harfe.explain.inputs.summary import InputSummary
from harfe.features.law import FeatureLaw
from harfe.features.pool import FeaturePool
from harfe.features.units import InputMap
from harfe.model.expansion import Expansion


def expansion_of(activation="sin", *, d=4, s=9, orders=(1, 2, 3), targets=1, seed=0, bounds=None):
    rng = np.random.default_rng(seed)
    pool = FeatureLaw(d, orders=orders, activation=activation).draw(s, rng)
    coef = rng.normal(size=(targets, s))
    return Expansion(
        pool,
        coef,
        rng.normal(size=targets),
        tuple(f"x{j}" for j in range(d)),
        map=bounds,
    )


def mean_wave(x, weights, frequency):
    return np.exp(1j * np.multiply.outer(frequency, x)) @ weights


# --- Gauss rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize("argument", [0, 1e-3, 0.1, 1, 3, 10, 30, 100, 400, 1000, 3000])
def test_as_many_nodes_as_the_bessel_functions_ask_for(argument):
    """e^{iωx} = Σ i^k (2 - δ) J_k(ωh) T_k(x/h): what n nodes do not see is the tail from 2n on."""
    k = 2 * nodes_needed(argument) + np.arange(400)
    assert 2 * np.abs(special.jv(k, argument)).sum() < 1e-14
    assert nodes_needed(argument) <= argument / 2 + 5 * np.cbrt(argument) + 4


COLUMNS = {
    "uniform": lambda rng: rng.random(500),
    "cauchy": lambda rng: rng.standard_cauchy(500),
    "log-normal": lambda rng: np.exp(3 * rng.normal(size=500)),
    "grid": lambda rng: np.arange(40.0),
    "two clusters": lambda rng: np.r_[rng.random(250), 1e6 + rng.random(250)],
    "far from zero": lambda rng: 1e6 + rng.random(500),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_a_gauss_rule_integrates_polynomials_of_degree_2n_minus_1(name, n):
    rng = np.random.default_rng(0)
    x = np.unique(COLUMNS[name](rng))
    w = rng.random(len(x))
    w /= w.sum()
    nodes, weights = gauss_of_points(x, w, n)
    assert len(nodes) == len(weights) == n
    assert np.all(weights > 0)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert x.min() <= nodes.min() <= nodes.max() <= x.max()
    middle, half = (x.max() + x.min()) / 2, np.ptp(x) / 2
    k = np.arange(2 * n)[:, None]
    exact = special.eval_chebyt(k, (x - middle) / half) @ w
    found = special.eval_chebyt(k, np.clip((nodes - middle) / half, -1, 1)) @ weights
    # T_k has slope k² at the ends: rounding of a node counts that much.
    rounding = 4 * np.spacing(np.abs(x).max()) / half * (2 * n) ** 2
    np.testing.assert_allclose(found, exact, rtol=0, atol=rounding)


def test_a_gauss_rule_is_no_better_than_that():
    x, w = np.linspace(-1, 1, 100), np.full(100, 0.01)
    nodes, weights = gauss_of_points(x, w, 3)
    assert weights @ nodes**4 == pytest.approx(w @ x**4, rel=1e-13)
    assert weights @ nodes**6 < 0.9 * (w @ x**6)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("argument", [0.5, 4, 12])
def test_a_gauss_rule_integrates_waves(name, argument):
    rng = np.random.default_rng(1)
    x = np.unique(COLUMNS[name](rng))
    w = rng.random(len(x))
    w /= w.sum()
    half = np.ptp(x) / 2
    nodes, weights = gauss_of_points(x - x[0], w, nodes_needed(argument))
    frequencies = np.linspace(-argument, argument, 41) / half
    np.testing.assert_allclose(
        mean_wave(nodes, weights, frequencies),
        mean_wave(x - x[0], w, frequencies),
        rtol=0,
        atol=2e-14,
    )


def test_a_point_may_meet_the_mean_of_those_before_it():
    """-1 and 1 have the mean 0 exactly: the next point, 0, turns the matrix by nothing at all."""
    x = np.array([-1.0, 1.0, 0.0, 2.0, -3.0, 0.5, 3.0])
    w = np.full(7, 1 / 7)
    nodes, weights = gauss_of_points(x, w, 4)
    for power in range(8):
        assert weights @ nodes**power == pytest.approx(w @ x**power, rel=1e-13, abs=1e-13)


def test_all_the_points_are_their_own_rule():
    x, w = np.array([1.0, 2.0, 5.0]), np.array([0.2, 0.3, 0.5])
    for n in (3, 4, 100):
        nodes, weights = gauss_of_points(x, w, n)
        assert nodes.tolist() == x.tolist()
        assert weights.tolist() == w.tolist()


def test_columns_together_are_as_alone_and_values_may_repeat():
    rng = np.random.default_rng(2)
    X = np.stack(
        [rng.random(300), np.where(rng.random(300) < 0.6, 0, rng.normal(size=300))], axis=1
    )
    w = rng.random(300)
    w /= w.sum()
    together = gauss_of_columns(X, w, [5, 9])
    for column, n, (nodes, weights) in zip(X.T, (5, 9), together, strict=True):
        values, place = np.unique(column, return_inverse=True)
        alone = gauss_of_points(values, np.bincount(place, w), n)
        np.testing.assert_allclose(nodes, alone[0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(weights, alone[1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("unit", [1e-300, 1e300, 1.7e308])
def test_units_do_not_matter_to_a_gauss_rule(unit):
    x = np.linspace(-1, 1, 50) ** 3
    w = np.full(50, 0.02)
    nodes, weights = gauss_of_points(x * unit, w, 6)
    expected = gauss_of_points(x, w, 6)
    np.testing.assert_allclose(nodes / unit, expected[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights, expected[1], rtol=0, atol=1e-12)


def test_rules_of_the_uniform_and_the_normal_distribution():
    nodes, weights = gauss_of_interval(-1.0, 3.0, 4)
    for power, moment in enumerate([1, 1, 7 / 3, 5, 61 / 5]):  # ∫ x^p dx / 4 over [-1, 3]
        assert weights @ nodes**power == pytest.approx(moment, rel=1e-14)
    nodes, weights = normal_rule(2.0, 3.0, 1.0)
    for power, moment in enumerate([1, 2, 13, 62]):
        assert weights @ nodes**power == pytest.approx(moment, rel=1e-13)


# --- InputDistribution ---------------------------------------------------------------------------


def test_empirical_marginals_by_hand():
    X = np.array([[1.0, 5.0], [2.0, 5.0], [1.0, 5.0], [9.0, 5.0]])
    distribution = InputDistribution.empirical(X)
    assert distribution.kind == "independent"
    assert distribution.n_variables == 2
    assert distribution.nodes[0].tolist() == [1, 2, 9]
    assert distribution.weights[0].tolist() == [0.5, 0.25, 0.25]
    assert distribution.nodes[1].tolist() == [5]
    weighted = InputDistribution.empirical(X, np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(weighted.weights[0], [0.4, 0.2, 0.4], rtol=1e-15)
    clipped = InputDistribution.empirical(
        X, map=InputMap(np.array([-np.inf, 6.0]), np.array([1.5, 7.0]))
    )
    assert [nodes.tolist() for nodes in clipped.nodes] == [[1, 1.5], [6]]


@settings(deadline=None, max_examples=40)
@given(
    low=st.floats(-1e3, 1e3),
    width=st.floats(1e-3, 1e3),
    argument=st.floats(1e-3, 60),
    share=st.floats(-1, 1),
)
def test_the_uniform_law_has_its_closed_form(low, width, argument, share):
    """χ(ω) = e^{iωc} sin(ωh)/(ωh) up to twice the largest frequency."""
    largest = argument / (width / 2)
    distribution = InputDistribution.uniform([low], [low + width], [largest])
    frequency = 2 * largest * share
    centre, half = low + width / 2, width / 2
    expected = np.exp(1j * frequency * centre) * np.sinc(frequency * half / np.pi)
    rounding = 1e-15 * abs(frequency) * (abs(centre) + half)
    assert abs(distribution.characteristic(0, frequency) - expected) < 1e-13 + rounding


@settings(deadline=None, max_examples=40)
@given(
    mean=st.floats(-1e3, 1e3),
    deviation=st.floats(1e-3, 1e3),
    argument=st.floats(1e-3, 40),
    share=st.floats(-1, 1),
)
def test_the_normal_law_has_its_closed_form(mean, deviation, argument, share):
    """χ(ω) = e^{iωμ - ω²σ²/2} up to twice the largest frequency."""
    largest = argument / deviation
    distribution = InputDistribution.normal([mean], [deviation], [largest])
    frequency = 2 * largest * share
    expected = np.exp(1j * frequency * mean - (frequency * deviation) ** 2 / 2)
    rounding = 1e-15 * abs(frequency) * (abs(mean) + 9 * deviation)
    assert abs(distribution.characteristic(0, frequency) - expected) < 1e-13 + rounding


def test_inputs_that_do_not_vary_or_play_no_part_have_one_node():
    distribution = InputDistribution.uniform([1, 2, 3], [1, 4, 5], [1, 0, 1])
    assert [len(nodes) for nodes in distribution.nodes[:2]] == [1, 1]
    assert len(distribution.nodes[2]) > 5
    assert [float(nodes[0]) for nodes in distribution.nodes[:2]] == [1, 3]
    distribution = InputDistribution.normal([1, 2, 3], [0, 4, 5], [1, 0, 1])
    assert [nodes.tolist() for nodes in distribution.nodes[:2]] == [[1], [2]]
    assert len(distribution.nodes[2]) > 5
    assert all(len(nodes) == 64 for nodes in InputDistribution.uniform([0, 1], 2).nodes)
    assert all(40 < len(nodes) < 100 for nodes in InputDistribution.normal([0, 1], 2).nodes)


def test_a_reduced_law_has_so_many_nodes_and_the_same_moments():
    rng = np.random.default_rng(0)
    distribution = InputDistribution.empirical(rng.normal(size=(100, 2)))
    few = distribution.reduced([3, 200])
    assert [len(nodes) for nodes in few.nodes] == [3, 100]
    for power in range(6):
        assert few.weights[0] @ few.nodes[0] ** power == pytest.approx(
            distribution.weights[0] @ distribution.nodes[0] ** power, abs=1e-12
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InputDistribution.uniform([0, 5], [1, 2]), "must not be above upper"),
        (lambda: InputDistribution.uniform([0, 5], [1]), "must not be above upper"),
        (lambda: InputDistribution.uniform([0, np.nan], [1, 2]), "lower=.* one finite number"),
        (
            lambda: InputDistribution.uniform([0], [1], [1, 1]),
            r"largest_frequency has shape \(2,\)",
        ),
        (
            lambda: InputDistribution.normal([0], [-1]),
            r"deviation=\[-1.0\] must hold a number >= 0",
        ),
        (
            lambda: InputDistribution.normal(0, 1),
            "mean=0 must hold one finite number for each input",
        ),
    ],
)
def test_bad_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_largest_frequencies_by_hand():
    pool = FeaturePool(
        4,
        np.array([[0, 2], [2, -1], [0, 1]]),
        np.array([[1.0, -3.0], [2.0, 0.0], [-4.0, 0.0]]),
        np.zeros(3),
    )
    assert largest_frequencies(pool).tolist() == [4, 0, 3, 0]


# --- What a fit keeps ----------------------------------------------------------------------------


def test_kept_characteristic_functions_are_those_of_all_rows():
    expansion = expansion_of()
    rng = np.random.default_rng(1)
    X = rng.standard_t(5, size=(2000, 4)) * [1, 0.5, 2, 1]
    w = rng.random(2000)
    kept = InputSummary.of(expansion, X, w)
    full = InputDistribution.empirical(X, w)
    largest = largest_frequencies(expansion.features)
    for k in range(4):
        frequencies = np.linspace(-2, 2, 50) * largest[k]
        np.testing.assert_allclose(
            kept.distribution.characteristic(k, frequencies),
            full.characteristic(k, frequencies),
            rtol=0,
            atol=1e-12,
        )
    assert kept.distribution_error < 1e-12


def test_what_is_kept_does_not_grow_with_the_rows_and_is_not_their_values():
    expansion = expansion_of()
    rng = np.random.default_rng(1)
    X = rng.random((20_000, 4))
    sizes = [len(pickle.dumps(InputSummary.of(expansion, X[:m]))) for m in (500, 20_000)]
    assert sizes[1] < 1.05 * sizes[0]
    kept = InputSummary.of(expansion, X)
    assert all(len(nodes) < 40 for nodes in kept.distribution.nodes)
    assert not any(np.isin(nodes, X).any() for nodes in kept.distribution.nodes)


def test_a_fitted_model_holds_no_column_of_its_rows():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    model = HARFERegressor(n_components=200, n_nonzero_coefs=10, random_state=0)
    model.fit(X, np.sin(4 * X[:, 0]) + X[:, 1])
    for name, value in vars(model.inputs_).items():
        arrays = value.nodes if name == "distribution" else (np.asarray(value),)
        for array in arrays:
            assert np.isin(X, array).sum() <= 33 * 3, name
            assert array.size < 150, name


@pytest.mark.parametrize("weighted", [False, True])
def test_ranges_quantiles_means_and_deviations(weighted):
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(357, 4)), 2) * [1, 10, 100, 1]
    w = rng.integers(1, 5, 357).astype(float) if weighted else np.ones(357)
    kept = InputSummary.of(expansion_of(), X, w)
    rows = np.repeat(X, w.astype(int), axis=0)
    np.testing.assert_array_equal(kept.lower, X.min(axis=0))
    np.testing.assert_array_equal(kept.upper, X.max(axis=0))
    np.testing.assert_array_equal(
        kept.quantiles, np.quantile(rows, np.arange(33) / 32, axis=0, method="inverted_cdf")
    )
    np.testing.assert_allclose(kept.mean, rows.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(kept.deviation, rows.std(axis=0), rtol=1e-13)
    assert kept.total_weight == len(rows)


@pytest.mark.parametrize("activation", ["sin", "cos", "exp"])
def test_joint_means_by_brute_force(activation):
    bounds = InputMap(np.array([-1, -np.inf, -np.inf, 0]), np.array([1.0, 1.0, np.inf, np.inf]))
    expansion = expansion_of(activation, bounds=bounds)
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(3000, 4)), rng.random(3000)
    kept = InputSummary.of(expansion, X, w)
    pool, clipped = expansion.features, bounds.clip(X)
    assert kept.joint.shape == (9, 8)
    for j in range(9):
        for mask in range(8):
            z = np.zeros(len(X))
            for place in range(3):
                if mask >> place & 1 and pool.indices[j, place] >= 0:
                    z += pool.values[j, place] * clipped[:, pool.indices[j, place]]
            expected = w @ np.exp(1j * z) / w.sum()
            assert abs(kept.joint[j, mask] - expected) < 1e-13


def test_mean_variance_and_mean_square_gradient_over_the_rows():
    bounds = InputMap(np.array([-1, -np.inf, -np.inf, 0]), np.array([1.0, 1.0, np.inf, np.inf]))
    expansion = expansion_of(targets=2, bounds=bounds)
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(700, 4)), rng.random(700)
    kept = InputSummary.of(expansion, X, w)
    f = expansion.predict(X)
    mean = np.average(f, axis=0, weights=w)
    np.testing.assert_allclose(kept.mean_prediction, mean, rtol=1e-13)
    np.testing.assert_allclose(
        kept.variance_joint, np.average((f - mean) ** 2, axis=0, weights=w), rtol=1e-13
    )
    step = 1e-6
    for k in range(4):
        up, down = X.copy(), X.copy()
        up[:, k] += step
        down[:, k] -= step
        slope = (expansion.predict(up) - expansion.predict(down)) / (2 * step)
        # The bounds of x0, x1 and x3 do not lie between a value and its neighbours here.
        np.testing.assert_allclose(
            kept.mean_square_gradient[:, k], np.average(slope**2, axis=0, weights=w), rtol=1e-7
        )


def test_ranges_and_quantiles_are_those_before_clipping():
    bounds = InputMap(np.full(4, -0.5), np.full(4, 0.5))
    X = np.random.default_rng(1).normal(size=(100, 4))
    kept, plain = (InputSummary.of(expansion_of(bounds=b), X) for b in (bounds, None))
    for name in ("lower", "upper", "quantiles"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(plain, name))
    np.testing.assert_allclose(kept.mean, np.clip(X, -0.5, 0.5).mean(axis=0), atol=1e-14)


def test_weight_two_is_the_row_twice():
    expansion = expansion_of(targets=2)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    w = rng.integers(1, 4, 300)
    weighted = InputSummary.of(expansion, X, w.astype(float))
    repeated = InputSummary.of(expansion, np.repeat(X, w, axis=0))
    for name in vars(weighted):
        a, b = getattr(weighted, name), getattr(repeated, name)
        if name == "distribution":
            for k in range(4):
                np.testing.assert_allclose(a.nodes[k], b.nodes[k], rtol=0, atol=1e-9)
                np.testing.assert_allclose(a.weights[k], b.weights[k], rtol=0, atol=1e-10)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12, err_msg=name)


def test_a_factor_keeps_its_levels_and_their_shares():
    X = np.random.default_rng(1).integers(0, 5, (200, 4)).astype(float)
    kept = InputSummary.of(expansion_of(), X)
    for k in range(4):
        values, counts = np.unique(X[:, k], return_counts=True)
        np.testing.assert_array_equal(kept.distribution.nodes[k], values)
        np.testing.assert_allclose(kept.distribution.weights[k], counts / 200, rtol=1e-14)


def test_few_rows_keep_half_as_many_nodes_and_say_how_far_off_that_is():
    expansion = expansion_of()
    X = np.random.default_rng(1).normal(size=(12, 4))
    kept = InputSummary.of(expansion, X)
    assert [len(nodes) for nodes in kept.distribution.nodes] == [6] * 4
    assert 1e-10 < kept.distribution_error < 1
    full = InputDistribution.empirical(X)
    twice = 2 * largest_frequencies(expansion.features)
    error = max(
        abs(kept.distribution.characteristic(k, twice[k]) - full.characteristic(k, twice[k]))
        for k in range(4)
    )
    assert kept.distribution_error == pytest.approx(error, rel=1e-6)
    given = InputSummary.of(expansion, X, for_good=False)
    assert [len(nodes) for nodes in given.distribution.nodes] == [12] * 4
    assert given.distribution_error < 1e-13


def test_high_frequencies_keep_no_more_than_256_nodes():
    pool = FeaturePool(1, np.array([[0]]), np.array([[1e5]]), np.zeros(1))
    expansion = Expansion(pool, np.ones((1, 1)), np.zeros(1), ("x",))
    X = np.random.default_rng(0).random((3000, 1))
    kept = InputSummary.of(expansion, X)
    assert len(kept.distribution.nodes[0]) == 256
    assert kept.distribution_error > 1e-3


def test_unused_and_constant_inputs_have_one_node_at_their_mean():
    pool = FeaturePool(3, np.array([[0, 2]]), np.array([[1.0, 2.0]]), np.zeros(1))
    expansion = Expansion(pool, np.ones((1, 1)), np.zeros(1), tuple("abc"))
    X = np.random.default_rng(0).random((100, 3))
    X[:, 2] = 7.0
    kept = InputSummary.of(expansion, X)
    assert kept.distribution.nodes[1] == pytest.approx([X[:, 1].mean()])
    assert kept.distribution.nodes[2].tolist() == [7]
    assert kept.deviation[2] == 0
    assert kept.partner.tolist() == [-1, -1, -1]


def test_partners_are_the_strongest_correlations_between_inputs_in_use():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    X[:, 2] = -3 * X[:, 0] + 0.1 * rng.normal(size=500)
    w = rng.random(500)
    kept = InputSummary.of(expansion_of(s=30), X, w)
    C = np.cov(X.T, aweights=w)
    C = C / np.sqrt(np.outer(np.diag(C), np.diag(C))) - np.eye(4)
    assert kept.partner[[0, 2]].tolist() == [2, 0]
    for k in range(4):
        assert kept.partner[k] == np.abs(C[k]).argmax()
        assert kept.correlation[k] == pytest.approx(C[k, kept.partner[k]], abs=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_activations_that_are_no_waves_keep_nodes_but_no_means(activation):
    kept = InputSummary.of(expansion_of(activation), np.random.default_rng(1).random((500, 4)))
    assert kept.joint is None
    assert kept.distribution_error is None
    assert [len(nodes) for nodes in kept.distribution.nodes] == [64] * 4


def test_too_many_subsets_are_not_kept():
    expansion = expansion_of(d=20, s=20, orders=(16,))
    kept = InputSummary.of(expansion, np.random.default_rng(1).random((50, 20)))
    assert kept.joint is None
    assert kept.distribution_error is not None


def test_uniform_and_normal_laws_are_those_of_the_clipped_rows():
    bounds = InputMap(np.full(4, -np.inf), np.array([0.5, np.inf, np.inf, np.inf]))
    expansion = expansion_of(bounds=bounds)
    X = np.random.default_rng(1).normal(size=(300, 4))
    kept = InputSummary.of(expansion, X)
    uniform = kept.named_distribution("uniform", expansion)
    for k in range(4):
        low, high = X[:, k].min(), min(X[:, k].max(), bounds.upper[k])
        mean = uniform.weights[k] @ uniform.nodes[k]
        assert mean == pytest.approx((low + high) / 2, abs=1e-13)
        square = uniform.weights[k] @ (uniform.nodes[k] - mean) ** 2
        assert square == pytest.approx((high - low) ** 2 / 12, rel=1e-13)
    normal, clipped = kept.named_distribution("normal", expansion), bounds.clip(X)
    for k in range(4):
        mean = normal.weights[k] @ normal.nodes[k]
        assert mean == pytest.approx(clipped[:, k].mean(), abs=1e-13)
        square = normal.weights[k] @ (normal.nodes[k] - mean) ** 2
        assert square == pytest.approx(clipped[:, k].var(), rel=1e-12)
    assert kept.named_distribution("independent", expansion) is kept.distribution
