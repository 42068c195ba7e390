"""Draws against exactly enumerated probabilities, dense twins, relations; and every message."""

import itertools
import math
import pickle
import re
from collections import Counter
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harfe.features.activations import ACTIVATIONS
from harfe.features.law import BIASES, FeatureLaw
from harfe.features.law_parameters import WEIGHT_LAWS

WEIGHTS = tuple(WEIGHT_LAWS)

# Degrees of freedom of Student's t.
FREEDOM = {"cauchy": 1, "t3": 3, "t5": 5}

# Seeds are fixed, so these are not chances of failure: they say what counts as agreement.
AGREE = 1e-3


def draw(law, n=20_000, seed=0):
    return law.draw(n, np.random.default_rng(seed))


def sets_of(pool):
    return [tuple(int(k) for k in row if k >= 0) for row in pool.indices]


def enumerate_law(d, order, p=None, groups=None):
    """P(S) of every allowed index set, by brute force."""
    p = np.ones(d) if p is None else np.asarray(p, dtype=float)
    allowed = set()
    for group in groups or [range(d)]:
        members = sorted(k for k in group if p[k] > 0)
        allowed.update(itertools.combinations(members, min(order, len(members))))
    allowed.discard(())
    mass = {S: math.prod(p[k] for k in S) for S in sorted(allowed)}
    total = sum(mass.values())
    return {S: m / total for S, m in mass.items()}


def agreement(drawn, truth):
    """Chi-square p-value of index sets against their exact probabilities."""
    counts = Counter(drawn)
    assert set(counts) <= set(truth)
    n = len(drawn)
    assert min(truth.values()) * n >= 5, "too few draws for a chi-square test"
    if len(truth) == 1:
        return 1.0
    return stats.chisquare([counts[S] for S in truth], [n * P for P in truth.values()]).pvalue


# --- Index sets ---


@pytest.mark.parametrize(
    ("d", "order"), [(1, 1), (6, 1), (2, 2), (6, 2), (5, 3), (7, 4), (5, 4), (5, 5)]
)
def test_index_sets_are_uniform_over_all_subsets(d, order):
    truth = enumerate_law(d, order)
    assert len(truth) == math.comb(d, order)
    assert agreement(sets_of(draw(FeatureLaw(d, (order,)))), truth) > AGREE


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_variable_weights_multiply(order):
    p = (1.0, 0.5, 0.9, 0.2, 0.7)
    truth = enumerate_law(5, order, p)
    law = FeatureLaw(5, (order,), variable_weights=p)
    assert agreement(sets_of(draw(law, 40_000)), truth) > AGREE


def test_variable_weights_by_hand():
    # sets 01, 02, 12 with masses 2, 3, 6
    law = FeatureLaw(3, (2,), variable_weights=(1.0, 2.0, 3.0))
    counts = Counter(sets_of(draw(law, 22_000)))
    expected = [4000, 6000, 12000]
    observed = [counts[0, 1], counts[0, 2], counts[1, 2]]
    assert stats.chisquare(observed, expected).pvalue > AGREE


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_weight_of_zero_is_never_drawn(order):
    p = (1.0, 0.0, 1.0, 0.5, 0.0)
    pool = draw(FeatureLaw(5, (order,), variable_weights=p), 2000)
    assert set(pool.indices.ravel()) == {0, 2, 3}


@pytest.mark.parametrize("factor", [2.0**-1000, 0.25, 2.0**900])
def test_only_the_ratios_of_variable_weights_count(factor):
    p = np.array([1.0, 0.5, 3.0, 0.2])
    groups = ((0, 1, 2), (3,))
    a, b = (
        draw(FeatureLaw(4, (2,), variable_weights=tuple(q), groups=groups), 500)
        for q in (p, factor * p)
    )
    np.testing.assert_array_equal(a.indices, b.indices)


def test_equal_variable_weights_are_no_weights():
    a = draw(FeatureLaw(6, (3,)), 500)
    b = draw(FeatureLaw(6, (3,), variable_weights=(0.3,) * 6), 500)
    np.testing.assert_array_equal(a.indices, b.indices)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("p", [(1e300, 1e-300), (1.0, 5e-324)])
def test_variable_weights_of_extreme_ratio(order, p):
    pool = draw(FeatureLaw(2, (order,), variable_weights=p), 50)
    assert set(sets_of(pool)) == {(0, 1) if order == 2 else (0,)}


def test_variable_weights_of_extreme_ratio_do_not_turn_the_odds():
    # pairs 01 and 02 have mass 1 each, pair 12 has 1e-600
    law = FeatureLaw(3, (2,), variable_weights=(1e300, 1e-300, 1e-300))
    counts = Counter(sets_of(draw(law, 2000)))
    assert set(counts) == {(0, 1), (0, 2)}
    assert stats.chisquare(list(counts.values())).pvalue > AGREE


GROUPINGS = {
    "disjoint": ((0, 1, 2), (3, 4)),
    "overlapping": ((0, 1, 2), (1, 2, 3), (2, 3, 4)),
    "nested": ((0, 1, 2, 3, 4), (1, 2), (3,)),
    "nested, small first": ((1, 2), (0, 1, 2, 3, 4)),
    "smaller than the order": ((0,), (1, 2), (2, 3, 4)),
    "equal after dropping a variable": ((0, 1, 2), (0, 1, 3), (4,)),
}


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("p", [None, (1.0, 0.8, 0.5, 0.9, 0.6), (1.0, 0.7, 0.0, 0.0, 0.8)])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_groups(grouping, p, order):
    groups = GROUPINGS[grouping]
    law = FeatureLaw(5, (order,), variable_weights=p, groups=groups)
    truth = enumerate_law(5, order, p, groups)
    assert agreement(sets_of(draw(law, 6000)), truth) > AGREE


def test_overlapping_groups_by_hand():
    # pairs 01, 02, 12 and 12, 13, 23: five sets, and 12 is not drawn twice as often
    law = FeatureLaw.from_settings(4, order=2, interaction_cst=[{0, 1, 2}, {1, 2, 3}])
    counts = Counter(sets_of(draw(law, 20_000)))
    assert set(counts) == {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)}
    assert stats.chisquare(list(counts.values())).pvalue > AGREE


def test_groups_smaller_than_the_order_are_drawn_whole():
    law = FeatureLaw.from_settings(6, order=3, interaction_cst=[[4], [0, 5]])
    pool = draw(law, 100)
    assert set(sets_of(pool)) == {(4,), (0, 5), (1, 2, 3)}
    np.testing.assert_array_equal(pool.values == 0, pool.indices < 0)


def test_a_common_factor_of_weights_does_not_favour_larger_groups():
    # {0, 1} and {2} both have mass 1 in units of the largest weight
    law = FeatureLaw(3, (2,), variable_weights=(7.0, 7.0, 7.0), groups=((0, 1), (2,)))
    counts = Counter(sets_of(draw(law, 10_000)))
    assert stats.chisquare([counts[0, 1], counts[(2,)]]).pvalue > AGREE


@pytest.mark.parametrize(
    ("constraint", "groups"),
    [
        ([{0, 1}, {2}], ((0, 1), (2,), (3, 4))),
        ([(1, 0), [3, 4, 2]], ((0, 1), (2, 3, 4))),
        ([{0, 1}, {1, 0}, {2, 3, 4}], ((0, 1), (2, 3, 4))),
        ([], ((0, 1, 2, 3, 4),)),
        ([[], [2]], ((2,), (0, 1, 3, 4))),
        (np.array([[0, 1], [2, 3]]), ((0, 1), (2, 3), (4,))),
        ([["a", "c"], ["e", 1]], ((0, 2), (1, 4), (3,))),
        (({k} for k in range(5)), ((0,), (1,), (2,), (3,), (4,))),
    ],
)
def test_constraints_become_groups(constraint, groups):
    law = FeatureLaw.from_settings(5, interaction_cst=constraint, names=list("abcde"))
    assert law.groups == groups


@pytest.mark.parametrize(
    ("order", "constraint", "orders"),
    [
        (3, "pairwise", (2,)),
        (1, "pairwise", (1,)),
        ((1, 2, 3), "pairwise", (1, 2, 2)),
        (3, "no_interactions", (1,)),
        ((3, 1), "no_interactions", (1, 1)),
        ("auto", "no_interactions", (1,)),
        ("auto", "pairwise", (2,)),
        (3, None, (3,)),
    ],
)
def test_words_cap_the_order(order, constraint, orders):
    law = FeatureLaw.from_settings(4, order=order, interaction_cst=constraint)
    assert law.orders == orders
    assert law.groups is None


@pytest.mark.parametrize(("d", "order"), [(1, (1,)), (2, (2,)), (30, (2,))])
def test_auto_is_two_or_one_for_a_single_input(d, order):
    assert FeatureLaw.from_settings(d).orders == order


@pytest.mark.parametrize("orders", [(1, 2), (3, 1), (2, 2, 1), (1, 2, 3, 4)])
@pytest.mark.parametrize("n", [0, 1, 2, 12, 13])
def test_mixed_orders_take_turns(orders, n):
    pool = draw(FeatureLaw(5, orders), n)
    sizes = [len(S) for S in sets_of(pool)]
    assert sizes == [orders[j % len(orders)] for j in range(n)]
    assert pool.indices.shape == pool.values.shape == (n, max(orders))


def test_each_part_of_a_mixed_pool_is_uniform():
    drawn = sets_of(draw(FeatureLaw(5, (2, 1, 3)), 15_000))
    for part, order in enumerate((2, 1, 3)):
        assert agreement(drawn[part::3], enumerate_law(5, order)) > AGREE


def test_parts_of_equal_order_are_drawn_apart():
    drawn = sets_of(draw(FeatureLaw(6, (2, 2)), 600))
    assert drawn[::2] != drawn[1::2]


@pytest.mark.parametrize("orders", [(1,), (2,), (3,), (1, 3)])
def test_indices_ascend_and_padding_comes_last(orders):
    pool = draw(FeatureLaw(6, orders, groups=((0, 1, 2, 3), (4, 5))), 300)
    for row in pool.indices:
        S = row[row >= 0]
        assert len(S) >= 1
        np.testing.assert_array_equal(row[: len(S)], S)
        assert np.all(np.diff(S) > 0)
    assert np.all(pool.values[pool.indices < 0] == 0)
    assert np.all(pool.values[pool.indices >= 0] != 0)


def test_many_variables():
    drawn = draw(FeatureLaw(2000, (2,)), 20_000)
    assert np.all(drawn.indices[:, 0] < drawn.indices[:, 1])
    # marginals are uniform: 40 000 members over 20 bins of 100 variables
    counts = np.bincount(drawn.indices.ravel() // 100, minlength=20)
    assert stats.chisquare(counts).pvalue > AGREE


def test_order_up_to_the_number_of_variables():
    pool = draw(FeatureLaw(300, (300,)), 3)
    np.testing.assert_array_equal(pool.indices, np.tile(np.arange(300), (3, 1)))


def test_order_half_of_two_thousand():
    # C(2000, 1000) is 2e600: the tables must be logarithms
    n = 200
    pool = draw(FeatureLaw(2000, (1000,)), n)
    assert np.all(np.diff(pool.indices, axis=1) > 0)
    assert pool.indices.min() >= 0
    assert pool.indices.max() < 2000
    # members below 1000 are hypergeometric: mean 500, variance 1000 · 1/4 · 1000/1999
    variance = 1000 * 0.25 * 1000 / 1999
    below = np.sum(pool.indices < 1000, axis=1)
    assert abs(below.mean() - 500) < 4 * math.sqrt(variance / n)
    ratio = (n - 1) * below.var(ddof=1) / variance
    assert AGREE < stats.chi2(n - 1).cdf(ratio) < 1 - AGREE


# --- Weights and biases ---


def test_normal_weights():
    values = draw(FeatureLaw(5, (2,), scale=(0.7,)), 10_000).values.ravel()
    assert stats.kstest(values, stats.norm(0, 0.7).cdf).pvalue > AGREE


def test_uniform_weights():
    values = draw(FeatureLaw(5, (2,), weights="uniform", scale=(0.7,)), 10_000).values.ravel()
    assert np.abs(values).max() <= 0.7
    assert stats.kstest(values, stats.uniform(-0.7, 1.4).cdf).pvalue > AGREE


@pytest.mark.parametrize("weights", FREEDOM)
def test_weights_of_students_t(weights):
    values = draw(FeatureLaw(5, (2,), weights=weights, scale=(0.7,)), 10_000).values.ravel()
    for law in FREEDOM:
        agrees = stats.kstest(values, stats.t(FREEDOM[law], scale=0.7).cdf).pvalue > AGREE
        assert agrees == (law == weights)


@pytest.mark.parametrize("weights", ["normal", "uniform"])
def test_moments_of_the_weights(weights):
    values = draw(FeatureLaw(5, (2,), weights=weights, scale=(3.0,)), 20_000).values.ravel()
    n = len(values)
    variance, fourth = {"normal": (9, 3 * 81), "uniform": (3, 81 / 5)}[weights]
    assert abs(values.mean()) < 4 * math.sqrt(variance / n)
    assert abs(np.mean(values**2) - variance) < 4 * math.sqrt((fourth - variance**2) / n)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_scale_of_each_variable_multiplies_its_weights(weights):
    scale = (0.5, 1.0, 4.0, 1e-3)
    one = draw(FeatureLaw(4, (1, 3), weights=weights), 400)
    each = draw(FeatureLaw(4, (1, 3), weights=weights, scale=scale), 400)
    np.testing.assert_array_equal(each.indices, one.indices)
    factors = np.where(one.indices >= 0, np.array(scale)[one.indices], 0)
    np.testing.assert_array_equal(each.values, one.values * factors)


@pytest.mark.parametrize(
    ("bias", "low", "high"), [("phase", 0, 2 * math.pi), ("uniform", -1, 1), ("none", 0, 0)]
)
def test_biases(bias, low, high):
    phases = draw(FeatureLaw(3, bias=bias), 10_000).phases
    assert low <= phases.min()
    assert phases.max() <= high
    if high > low:
        assert stats.kstest(phases, stats.uniform(low, high - low).cdf).pvalue > AGREE


def test_weights_members_and_phases_are_independent():
    pool = draw(FeatureLaw(6, (2,)), 20_000)
    quantities = np.column_stack([pool.values, pool.phases, pool.indices[:, 0], pool.values**2])
    correlation = np.corrcoef(quantities.T)
    related = {(0, 4), (1, 5)}  # a weight and its own square: uncorrelated too, but not independent
    for a, b in itertools.combinations(range(len(correlation)), 2):
        if (a, b) not in related:
            assert abs(correlation[a, b]) < 4 / math.sqrt(20_000), (a, b)


# --- The paper's two constructions ---


def masked_weights(d, N, order, weights, scale, rng):
    """W = W~ ⊙ M, dense: every entry is drawn, and a mask keeps `order` of each column."""
    shape = (d, N)
    if weights in FREEDOM:
        dense = scale * rng.standard_t(FREEDOM[weights], shape)
    elif weights == "normal":
        dense = rng.normal(0, scale, shape)
    else:
        dense = rng.uniform(-scale, scale, shape)
    mask = rng.permuted(np.repeat([[1.0], [0.0]], [order, d - order], axis=0).repeat(N, 1), axis=0)
    return dense * mask


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_embedding_and_mask_have_the_same_law(weights, order):
    d, N, scale = 5, 8000, 1.5
    law = FeatureLaw(d, (order,), weights=weights, scale=(scale,))
    ours = draw(law, N).weights().toarray()
    theirs = masked_weights(d, N, order, weights, scale, np.random.default_rng(100))
    assert ours.shape == theirs.shape
    for W in (ours, theirs):
        assert np.all(np.count_nonzero(W, axis=0) == order)
    # index sets
    counts = [Counter(tuple(np.flatnonzero(w)) for w in W.T) for W in (ours, theirs)]
    every = list(itertools.combinations(range(d), order))
    table = [[c[S] for S in every] for c in counts]
    assert np.sum(table) == 2 * N
    assert stats.chi2_contingency(table).pvalue > AGREE
    # weights of all and of each variable, size of a column, first against last of a column
    assert stats.ks_2samp(ours[ours != 0], theirs[theirs != 0]).pvalue > AGREE
    for a, b in zip(ours, theirs, strict=True):
        assert stats.ks_2samp(a[a != 0], b[b != 0]).pvalue > AGREE
    assert stats.ks_2samp(*(np.linalg.norm(W, axis=0) for W in (ours, theirs))).pvalue > AGREE
    columns = [W.T[W.T != 0].reshape(N, order) for W in (ours, theirs)]
    assert stats.ks_2samp(*(c[:, 0] * c[:, -1] for c in columns)).pvalue > AGREE


def test_the_comparison_of_constructions_can_fail():
    theirs = masked_weights(5, 8000, 2, "normal", 1.0, np.random.default_rng(100))
    other = draw(FeatureLaw(5, (2,), scale=(1.1,)), 8000).values.ravel()
    assert stats.ks_2samp(theirs[theirs != 0], other).pvalue < AGREE


# --- Reproducibility ---


@st.composite
def laws(draw_from):
    d = draw_from(st.integers(1, 7))
    orders = tuple(draw_from(st.lists(st.integers(1, d), min_size=1, max_size=3)))
    positive = st.floats(0.01, 10)
    p = draw_from(st.none() | st.tuples(*[positive] * d))
    scale = draw_from(st.tuples(positive) | st.tuples(*[positive] * d))
    subsets = st.lists(st.sets(st.integers(0, d - 1)), max_size=3)
    return FeatureLaw.from_settings(
        d,
        order=orders,
        weights=draw_from(st.sampled_from(WEIGHTS)),
        scale=scale,
        bias=draw_from(st.sampled_from(BIASES)),
        activation=draw_from(st.sampled_from(list(ACTIVATIONS))),
        variable_weights=p,
        interaction_cst=draw_from(st.none() | subsets),
    )


def assert_equal_pools(a, b):
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.phases, b.phases)
    assert (a.n_variables, a.activation) == (b.n_variables, b.activation)


@given(law=laws(), n=st.integers(0, 40), more=st.integers(0, 60), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=150)
def test_a_larger_pool_extends_a_smaller_one(law, n, more, seed):
    small, large = draw(law, n, seed), draw(law, n + more, seed)
    assert len(small) == n
    assert len(large) == n + more
    assert_equal_pools(small, large.take(slice(0, n)))


@given(law=laws(), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=50)
def test_every_draw_obeys_the_law(law, seed):
    pool = draw(law, 30, seed)
    for j, S in enumerate(sets_of(pool)):
        q = law.orders[j % len(law.orders)]
        groups = law.groups or (tuple(range(law.n_variables)),)
        assert any(set(S) <= set(g) and len(S) == min(q, len(g)) for g in groups)


def test_seeds_decide():
    law = FeatureLaw(5, (2,))
    assert_equal_pools(draw(law, 50, 3), draw(law, 50, 3))
    other = draw(law, 50, 4)
    assert np.all(other.values != draw(law, 50, 3).values)
    assert np.all(other.phases != draw(law, 50, 3).phases)
    assert np.any(other.indices != draw(law, 50, 3).indices)


def test_one_generator_gives_new_features_at_every_draw():
    rng = np.random.default_rng(0)
    law = FeatureLaw(5, (2,))
    assert np.all(law.draw(20, rng).values != law.draw(20, rng).values)


@pytest.mark.parametrize(
    ("change", "keeps"),
    [
        ({"bias": "none"}, ("indices", "values")),
        ({"bias": "uniform"}, ("indices", "values")),
        ({"activation": "relu"}, ("indices", "values", "phases")),
        ({"weights": "uniform"}, ("indices", "phases")),
        ({"weights": "cauchy"}, ("indices", "phases")),
        ({"scale": (3.0,)}, ("indices", "phases")),
        ({"variable_weights": (0.1, 1.0, 1.0, 9.0)}, ("values", "phases")),
        ({"groups": ((0, 1, 2), (2, 3))}, ("values", "phases")),
    ],
)
def test_a_setting_changes_only_what_it_is_about(change, keeps):
    law = FeatureLaw(4, (2,))
    a, b = draw(law, 200), draw(replace(law, **change), 200)
    for name in ("indices", "values", "phases"):
        same = np.array_equal(getattr(a, name), getattr(b, name))
        assert same == (name in keeps), name
    assert b.activation == change.get("activation", "sin")


# --- The law is a value ---

FULL = FeatureLaw(
    4,
    (1, 2),
    "uniform",
    (1.0, 2.0, 3.0, 4.0),
    "none",
    "cos",
    (0.0, 1.0, 1.0, 2.0),
    ((0, 1), (2, 3)),
)


@pytest.mark.parametrize("law", [FeatureLaw(3), FULL])
def test_equal_laws_are_one_key_and_survive_pickling(law):
    copy = pickle.loads(pickle.dumps(law))
    assert copy is not law
    assert copy == law
    assert len({copy, law}) == 1
    assert_equal_pools(draw(copy, 20), draw(law, 20))


@pytest.mark.parametrize(
    "change",
    [
        {"n_variables": 5, "scale": (1.0,), "variable_weights": None},
        {"orders": (2, 1)},
        {"weights": "normal"},
        {"scale": (1.0,)},
        {"bias": "phase"},
        {"activation": "sin"},
        {"variable_weights": None},
        {"groups": None},
    ],
)
def test_any_difference_makes_another_law(change):
    assert replace(FULL, **change) != FULL


def test_settings_and_fields_agree():
    law = FeatureLaw.from_settings(
        4,
        order=[1, 2],
        weights="uniform",
        scale=np.array([1, 2, 3, 4]),
        bias="none",
        activation="cos",
        variable_weights=[0, 1, 1, 2],
        interaction_cst=[[0, 1]],
    )
    assert law == FULL
    assert hash(law) == hash(FULL)


def test_the_law_is_frozen():
    with pytest.raises(FrozenInstanceError):
        FeatureLaw(3).orders = (1,)


# --- Messages ---

MESSAGES = [
    (
        {"activation": "sine"},
        "activation='sine' is not known; choose one of " + ", ".join(ACTIVATIONS),
    ),
    ({"activation": None}, "activation=None is not known; choose one of " + ", ".join(ACTIVATIONS)),
    (
        {"weights": "laplace"},
        "weights='laplace' is not known; choose one of normal, uniform, cauchy, t3, t5",
    ),
    ({"bias": "yes"}, "bias='yes' is not known; choose one of phase, uniform, none"),
    ({"bias": None}, "bias=None is not known; choose one of phase, uniform, none"),
    ({"order": 0}, "order=0 must be a whole number of at least 1, e.g. order=2"),
    ({"order": -2}, "order=-2 must be a whole number of at least 1, e.g. order=2"),
    ({"order": 1.5}, "order=1.5 must be a whole number of at least 1, e.g. order=2"),
    ({"order": True}, "order=True must be a whole number of at least 1, e.g. order=2"),
    ({"order": None}, "order=None must be a whole number of at least 1, e.g. order=2"),
    ({"order": (1, "2")}, "order='2' must be a whole number of at least 1, e.g. order=2"),
    ({"order": (1, 0)}, "order=0 must be a whole number of at least 1, e.g. order=2"),
    ({"order": "all"}, "order='all' is not known; choose one of auto"),
    ({"order": 4}, "order=4 is larger than the number of inputs, 3; pass order=3 or less"),
    ({"order": (1, 9)}, "order=9 is larger than the number of inputs, 3; pass order=3 or less"),
    ({"order": ()}, "order=() is empty; pass e.g. order=2 or order=(1, 2)"),
    *(
        (
            {"scale": scale},
            f"scale={shown} must be one positive number or one for each of the 3 inputs, "
            "e.g. scale=1.0",
        )
        for scale, shown in [
            (0, "0.0"),
            (-1.5, "-1.5"),
            (math.inf, "inf"),
            (math.nan, "nan"),
            ((1.0, 2.0), "[1.0, 2.0]"),
            ((1.0, 0.0, 1.0), "[1.0, 0.0, 1.0]"),
            ([1] * 7, "[1.0, 1.0, 1.0, 1.0, 1.0, ...]"),
            ((), "[]"),
        ]
    ),
    ({"scale": "wide"}, "scale='wide' must be a number or a list of numbers"),
    ({"scale": [[1], [2, 3]]}, "scale=[[1], [2, 3]] must be a number or a list of numbers"),
    ({"scale": 1j}, "scale=1j must be a number or a list of numbers"),
    *(
        (
            {"variable_weights": p},
            f"variable_weights={shown} must hold one finite number >= 0 for each of the 3 inputs; "
            "pass None to draw all equally often",
        )
        for p, shown in [
            ((1, -1, 1), "[1.0, -1.0, 1.0]"),
            ((1, 1), "[1.0, 1.0]"),
            (1.0, "1.0"),
            ((1, 1, math.nan), "[1.0, 1.0, nan]"),
            ((1, 1, math.inf), "[1.0, 1.0, inf]"),
            (range(9), "[0.0, 1.0, 2.0, 3.0, 4.0, ...]"),
        ]
    ),
    (
        {"variable_weights": "age"},
        "variable_weights='age' must be a number or a list of numbers",
    ),
    (
        {"variable_weights": (0, 0, 0), "order": 1},
        "variable_weights=[0.0, 0.0, 0.0] leaves 0 inputs to draw from, but order=1 needs as many; "
        "lower the order or raise some weights",
    ),
    (
        {"variable_weights": (0, 1, 0), "order": (1, 2)},
        "variable_weights=[0.0, 1.0, 0.0] leaves 1 inputs to draw from, but order=2 needs as many; "
        "lower the order or raise some weights",
    ),
    (
        {"interaction_cst": "pairs"},
        "interaction_cst='pairs' is not known; choose one of no_interactions, pairwise",
    ),
    *(
        (
            {"interaction_cst": constraint},
            f"interaction_cst={constraint!r} must be 'pairwise', 'no_interactions' or a list of "
            "sets, e.g. [{0, 1}, {2}]",
        )
        for constraint in [5, [0, 1], 2.5]
    ),
    *(
        (
            {"interaction_cst": [{0}, {member}]},
            f"interaction_cst names the input {member!r}; use column names or indices from 0 to 2",
        )
        for member in [3, -1, 1.5, None]
    ),
    (
        {"interaction_cst": [["age", "height"]], "names": ["age", "bmi", "sex"]},
        "interaction_cst names the column 'height', which X does not have; its columns are age, "
        "bmi, sex",
    ),
    (
        {"interaction_cst": [["age"]]},
        "interaction_cst names the column 'age', which X does not have; its columns are none: X "
        "has no column names",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), MESSAGES, ids=lambda value: str(value)[:60])
def test_messages_name_argument_value_and_remedy(wrong, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        FeatureLaw.from_settings(3, **wrong)


@pytest.mark.parametrize(
    "fields",
    [
        {"scale": (True,)},
        {"scale": ("1",)},
        {"variable_weights": (1.0, True, 1.0)},
        {"variable_weights": (1.0, None, 1.0)},
    ],
)
def test_fields_must_be_numbers(fields):
    (name,) = fields
    with pytest.raises(ValueError, match=f"^{name}="):
        FeatureLaw(3, **fields)


@pytest.mark.parametrize("order", [2.5, None, ("2",), 7.0])
@pytest.mark.parametrize("constraint", ["pairwise", "no_interactions"])
def test_a_cap_does_not_hide_a_bad_order(order, constraint):
    shown = order[0] if isinstance(order, tuple) else order
    message = f"order={shown!r} must be a whole number of at least 1, e.g. order=2"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        FeatureLaw.from_settings(3, order=order, interaction_cst=constraint)


@pytest.mark.parametrize("name", ["scale", "variable_weights"])
@pytest.mark.parametrize("value", [True, "2", [1.0, "2", 1.0]])
def test_truth_values_and_text_are_not_numbers(name, value):
    with pytest.raises(ValueError, match=f"^{name}="):
        FeatureLaw.from_settings(3, **{name: value})


def test_the_message_on_no_scale_shows_what_was_passed():
    with pytest.raises(ValueError, match=r"^scale=None "):
        FeatureLaw.from_settings(3, scale=None)


@pytest.mark.parametrize("groups", [((7, 8),), ((0, True),), ((-1,),)])
def test_groups_hold_indices_of_inputs(groups):
    with pytest.raises(ValueError, match=r"^groups=.* from 0 to 2$"):
        FeatureLaw(3, groups=groups)


def test_groups_leave_something_to_draw():
    with pytest.raises(ValueError, match="leaves no input to draw"):
        FeatureLaw(3, (1,), variable_weights=(0.0, 1.0, 1.0), groups=((0,),))


@pytest.mark.parametrize("constraint", [["age", "bmi"], [{0}, "bmi"], 5])
def test_a_flat_list_is_not_a_list_of_sets(constraint):
    with pytest.raises(ValueError, match=r"must be 'pairwise'.* \[\{0, 1\}, \{2\}\]"):
        FeatureLaw.from_settings(2, interaction_cst=constraint, names=["age", "bmi"])


def test_a_truth_value_is_no_index():
    with pytest.raises(ValueError, match="names the input True"):
        FeatureLaw.from_settings(2, interaction_cst=[{True}])


def test_an_order_in_an_array_of_no_axes_is_refused():
    with pytest.raises(ValueError, match=r"^order=array\(2\) must be a whole number"):
        FeatureLaw.from_settings(3, order=np.array(2))
