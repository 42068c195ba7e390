"""Functions at points with known values, planted index sets, preparation of real datasets."""

import gzip
import hashlib
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets as sklearn_datasets

from harfe import datasets
from harfe.datasets import (
    FUNCTIONS,
    AdditiveFunction,
    list_real,
    load_real,
    make_additive,
    make_function,
)

# --- Functions of the paper ---


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("inverse_norm", [0, 0, 0, 0, 0], 1),
        ("inverse_norm", [1, -1, 1, 0, 0], 1 / 2),
        ("norm", [1, -1, 1, 0, 0], 2),
        ("norm", [2, 2, 0, 0, -4], 5),
        ("ratio", [2, 3, 1, 7, 8], 3),
        ("ratio", [2, -3, -1, 7, 8], -3),
        ("ratio", [1, 1, 2, 0, 0], 1 / 65),
        ("laplace_sum", [0, math.log(2), -math.log(4)], 1.75),
        ("friedman1", [0.5, 1, 0.5, 0, 0, 9], 10),
        ("friedman1", [0, 0, 1, 1, 1, 9], 20),
        ("friedman_g", [0.5, 1 / 3, 0, 0.1, 0.2], 5 + 5 + 1 + 1),
        ("friedman2", [0, 0, 0, 0], 1 / (40 * math.pi)),
        ("friedman2_as_printed", [0, 0, 0, 0], 1 / math.pi),
        ("friedman2", [1, 1, 1, 1], math.hypot(100, 560 * math.pi - 1 / (6160 * math.pi))),
        ("friedman2_as_printed", [0, 1, 0, 1], 1 / (521 * math.pi * 11)),
        ("friedman3", [0, 0, 1, 0], math.pi / 2),
        ("friedman3", [0, 0, 0, 0], -math.pi / 2),
        ("friedman3", [1, 0, (100 + 1 / (40 * math.pi)) / (40 * math.pi), 0], math.pi / 4),
        ("friedman3", [-1, 0, (100 + 1 / (40 * math.pi)) / (40 * math.pi), 0], -math.pi / 4),
    ],
)
def test_function_values_by_hand(name, row, value):
    values = FUNCTIONS[name].evaluate([row, row])
    np.testing.assert_allclose(values, [value, value], rtol=1e-13)


@pytest.mark.parametrize("which", [1, 2, 3])
def test_friedman_functions_are_scikit_learns(which):
    X, y = getattr(sklearn_datasets, f"make_friedman{which}")(50, noise=0.0, random_state=0)
    if which > 1:
        X = (X - [0, 40 * math.pi, 0, 1]) / [100, 520 * math.pi, 1, 10]
    np.testing.assert_allclose(FUNCTIONS[f"friedman{which}"].evaluate(X), y, rtol=1e-9)


def test_the_printed_friedman2_differs_but_little():
    X = make_function("friedman2", 2000, random_state=0).X
    difference = np.abs(datasets.friedman2(X) - datasets.friedman2(X, as_printed=True))
    assert 0 < difference.max() < 0.32


@pytest.mark.parametrize(
    ("name", "active", "d"), [("ratio", 3, 5), ("friedman1", 5, 10), ("friedman_g", 5, 20)]
)
def test_exactly_the_stated_inputs_matter(name, active, d):
    X = make_function(name, 20, random_state=1).X
    assert X.shape[1] == d
    for j in range(d):
        moved = X.copy()
        moved[:, j] = np.roll(moved[:, j], 1)
        same = FUNCTIONS[name].evaluate(moved) == FUNCTIONS[name].evaluate(X)
        assert same.all() if j >= active else not same.any()


@pytest.mark.parametrize(
    ("name", "d", "box", "noise"),
    [
        ("inverse_norm", 5, (-1, 1), 0.0),
        ("norm", 5, (-1, 1), 0.0),
        ("ratio", 5, (-1, 1), 0.0),
        ("laplace_sum", 100, (-1, 1), 0.0),
        ("friedman1", 10, (0, 1), 1.0),
        ("friedman2", 4, (0, 1), 125.0),
        ("friedman2_as_printed", 4, (0, 1), 125.0),
        ("friedman3", 4, (0, 1), 0.1),
        ("friedman_g", 20, (0, 1), 1.0),
    ],
)
def test_make_function_follows_the_paper(name, d, box, noise):
    data = make_function(name, 4000, random_state=3)
    assert data.X.shape == (4000, d)
    assert data.feature_names == [f"x{j}" for j in range(1, d + 1)]
    low, high = box
    assert data.X.min() >= low
    assert data.X.max() <= high
    # Mean, spread and both ends of the uniform distribution, in every column
    np.testing.assert_allclose(data.X.mean(axis=0), (low + high) / 2, atol=0.05)
    np.testing.assert_allclose(data.X.std(axis=0), (high - low) / math.sqrt(12), rtol=0.05)
    np.testing.assert_allclose(data.X.min(axis=0), low, atol=0.02)
    np.testing.assert_array_equal(data.y_clean, FUNCTIONS[name].evaluate(data.X))
    errors = data.y - data.y_clean
    assert data.noise == noise
    assert errors.std() == pytest.approx(noise, rel=0.05)
    assert abs(errors.mean()) <= 0.07 * noise
    assert name in data.DESCR
    assert FUNCTIONS[name].formula in data.DESCR


def test_the_tests_above_cover_every_function():
    assert len(FUNCTIONS) == 9


def test_noise_has_its_own_stream():
    noisy = make_function("friedman1", 2000, random_state=5)
    clean = make_function("friedman1", 2000, noise=0, random_state=5)
    louder = make_function("friedman1", 2000, noise=3, random_state=5)
    np.testing.assert_array_equal(noisy.X, clean.X)
    np.testing.assert_array_equal(clean.y, clean.y_clean)
    np.testing.assert_allclose(louder.y - louder.y_clean, 3 * (noisy.y - noisy.y_clean), atol=1e-12)
    correlation = np.corrcoef(np.c_[noisy.y - noisy.y_clean, noisy.X].T)[0, 1:]
    assert np.abs(correlation).max() < 0.1


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from(sorted(FUNCTIONS)))
def test_equal_seeds_give_equal_rows_and_few_rows_are_the_first_of_many(seed, few, name):
    many = make_function(name, 30, random_state=seed)
    start = make_function(name, few, random_state=seed)
    np.testing.assert_array_equal(start.X, many.X[:few])
    np.testing.assert_array_equal(start.y, many.y[:few])


def test_other_seeds_and_a_used_random_state_give_other_rows():
    state = np.random.RandomState(0)
    draws = [make_function("norm", 10, random_state=r).X for r in (0, 1, state, state)]
    assert all((a != b).all() for a, b in itertools.combinations(draws[1:], 2))
    np.testing.assert_array_equal(draws[0], draws[2])


def test_dimension_can_be_chosen():
    data = make_function("norm", 3, n_features=100, random_state=0)
    assert data.X.shape == (3, 100)
    np.testing.assert_allclose(data.y, np.sqrt(1 + (data.X**2).sum(axis=1)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "friedmann1"}, "name='friedmann1' is unknown: type 'friedman1'.*laplace_sum"),
        ({"name": "norm", "n_samples": 0}, "n_samples=0: type a whole number of at least 1"),
        ({"name": "norm", "n_samples": 2.5}, "n_samples=2.5"),
        ({"name": "norm", "n_features": True}, "n_features=True"),
        ({"name": "norm", "noise": -1}, "noise=-1: type a finite number of at least 0"),
        ({"name": "norm", "noise": math.nan}, "noise=nan"),
        ({"name": "norm", "noise": math.inf}, "noise=inf"),
        ({"name": "friedman1", "n_features": 4}, r"friedman1 needs rows of at least 5 columns"),
        ({"name": "friedman3", "n_features": 3}, r"n_features >= 4"),
    ],
)
def test_make_function_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_function(**arguments)


def test_functions_want_rows():
    with pytest.raises(ValueError, match=r"X has shape \(5,\): norm needs rows"):
        datasets.norm(np.zeros(5))


def test_importing_the_module_does_not_import_scikit_learn():
    code = "import sys, harfe.datasets; assert 'sklearn' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- Order-q additive functions ---


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(1, 8), st.integers(0, 1000))
def test_index_sets_are_distinct_sorted_and_of_size_q(data, d, seed):
    q = data.draw(st.integers(1, d))
    n_terms = data.draw(st.integers(1, math.comb(d, q)))
    sets = make_additive(2, d, order=q, n_terms=n_terms, random_state=seed).index_sets
    assert len(set(sets)) == n_terms
    assert sets == sorted(sets)
    assert set(sets) <= set(itertools.combinations(range(d), q))


@pytest.mark.parametrize("n_terms", [2, 7])
def test_every_index_set_is_equally_likely(n_terms):
    # C(5, 2) = 10: two terms are drawn by trial, seven by enumeration.
    counts = dict.fromkeys(itertools.combinations(range(5), 2), 0)
    for seed in range(400):
        for index_set in make_additive(
            1, 5, order=2, n_terms=n_terms, random_state=seed
        ).index_sets:
            counts[index_set] += 1
    p = n_terms / 10
    allowed = 4 * math.sqrt(400 * p * (1 - p))
    assert max(abs(count - 400 * p) for count in counts.values()) < allowed


def test_many_variables_cost_no_enumeration():
    data = make_additive(5, 1000, order=3, n_terms=300, random_state=0)
    assert len(set(data.index_sets)) == 300
    assert max(map(max, data.index_sets)) > 900
    assert len(make_additive(1, 1000, order=40, n_terms=3, random_state=0).index_sets) == 3


@pytest.mark.parametrize("complex_valued", [False, True])
def test_the_function_depends_on_the_planted_sets_and_on_nothing_else(complex_valued):
    d, X = 9, make_additive(40, 9, order=1, n_terms=1, random_state=1).X
    f = make_additive(
        2, d, order=2, n_terms=4, complex_valued=complex_valued, random_state=2
    ).function
    step = 0.5 * np.eye(d)
    first = [np.abs(f(X + step[i]) - f(X)).max() for i in range(d)]
    union = set().union(*f.index_sets)
    assert 0 < len(union) < d
    assert {i for i in range(d) if first[i] > 1e-3} == union
    assert all(first[i] == 0 for i in set(range(d)) - union)
    # Mixed differences show which variables interact: exactly the planted pairs.
    interacting = {
        (i, j)
        for i, j in itertools.combinations(range(d), 2)
        if np.abs(f(X + step[i] + step[j]) - f(X + step[i]) - f(X + step[j]) + f(X)).max() > 1e-3
    }
    assert interacting == set(f.index_sets)


@pytest.mark.parametrize("complex_valued", [False, True])
def test_mean_square_of_one_term_is_one(complex_valued):
    rows = np.random.default_rng(0).uniform(-300, 300, size=(4000, 3))
    for seed in range(5):
        f = make_additive(
            1, 3, order=2, n_terms=1, complex_valued=complex_valued, random_state=seed
        ).function
        assert np.mean(np.abs(f(rows)) ** 2) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("complex_valued", [False, True])
def test_additive_function_by_hand(complex_valued):
    f = AdditiveFunction(
        n_features=3,
        index_sets=((0, 2), (1, 2)),
        frequencies=np.array([[[1.0, 2.0], [3.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]]),
        phases=np.array([[0.0, 0.5], [0.25, 0.0]]),
        amplitudes=np.array([[1.0, 10.0], [100.0, 0.0]]),
        complex_valued=complex_valued,
    )
    x1, x2, x3 = 0.3, -0.7, 0.9
    angles = np.array([x1 + 2 * x3, 3 * x1 + 0.5, x2 + x3 + 0.25])
    waves = np.cos(angles) + 1j * np.sin(angles) if complex_valued else np.sin(angles)
    expected = (waves @ [1, 10, 100]) / 2
    np.testing.assert_allclose(f([[x1, x2, x3]]), [expected], rtol=1e-13)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))([[x1, x2, x3]]), f([[x1, x2, x3]]))


def test_inputs_are_uniform_and_the_clean_target_is_the_function():
    data = make_additive(3000, 6, order=2, n_terms=3, random_state=0)
    assert data.X.shape == (3000, 6)
    assert np.abs(data.X).max() <= 1
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(data.X.std(axis=0), 1 / math.sqrt(3), rtol=0.05)
    np.testing.assert_array_equal(data.function(data.X), data.y_clean)
    np.testing.assert_array_equal(data.y, data.y_clean)
    assert data.feature_names == ["x1", "x2", "x3", "x4", "x5", "x6"]
    assert data.noise == 0.0
    assert "Order-2 additive real function with 3 terms" in data.DESCR


def additive_errors(**options):
    data = make_additive(20_000, 4, order=2, n_terms=2, noise=0.4, random_state=7, **options)
    return data.y - data.y_clean


def test_real_gaussian_noise():
    errors = additive_errors()
    assert errors.dtype == np.float64
    assert errors.std() == pytest.approx(0.4, rel=0.03)
    assert np.mean(errors**4) / np.mean(errors**2) ** 2 == pytest.approx(3, rel=0.1)


def test_complex_gaussian_noise_splits_its_variance():
    errors = additive_errors(complex_valued=True)
    assert np.mean(np.abs(errors) ** 2) == pytest.approx(0.16, rel=0.03)
    assert errors.real.std() == pytest.approx(errors.imag.std(), rel=0.03)
    assert abs(np.corrcoef(errors.real, errors.imag)[0, 1]) < 0.03


def test_real_bounded_noise_fills_its_interval():
    errors = additive_errors(noise_kind="bounded")
    assert 0.399 < np.abs(errors).max() <= 0.4 + 1e-12
    assert errors.std() == pytest.approx(0.4 / math.sqrt(3), rel=0.03)
    assert abs(errors.mean()) < 0.01


def test_complex_bounded_noise_fills_its_disc():
    errors = additive_errors(noise_kind="bounded", complex_valued=True)
    assert 0.399 < np.abs(errors).max() <= 0.4 + 1e-12
    assert np.mean(np.abs(errors) ** 2) == pytest.approx(0.16 / 2, rel=0.03)
    assert abs(errors.mean()) < 0.01
    assert np.mean(errors.real > 0) == pytest.approx(0.5, abs=0.02)


def test_function_depends_on_the_seed_alone():
    options = {"order": 2, "n_terms": 3}
    one = make_additive(10, 8, random_state=4, **options)
    two = make_additive(25, 8, noise=1.0, noise_kind="bounded", random_state=4, **options)
    other = make_additive(10, 8, random_state=5, **options)
    assert one.index_sets == two.index_sets
    np.testing.assert_array_equal(one.X, two.X[:10])
    np.testing.assert_array_equal(one.function(two.X), two.y_clean)
    assert (two.y != two.y_clean).all()
    assert (other.function(two.X) != two.y_clean).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": 5}, "order=5 exceeds n_features=4: type an order from 1 to 4"),
        ({"order": 0}, "order=0: type a whole number"),
        ({"n_terms": 7}, "n_terms=7 exceeds the 6 sets of order=2.*from 1 to 6"),
        ({"n_terms": 0}, "n_terms=0"),
        ({"n_features": 0}, "n_features=0"),
        ({"n_samples": -1}, "n_samples=-1"),
        ({"noise": -0.1}, "noise=-0.1"),
        ({"noise_kind": "uniform"}, "noise_kind='uniform': type 'gaussian' or 'bounded'"),
    ],
)
def test_make_additive_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        make_additive(**{"n_samples": 5, "n_features": 4, "order": 2, "n_terms": 2, **change})


@pytest.mark.parametrize("columns", [3, 5])
def test_additive_function_wants_its_own_dimension(columns):
    function = make_additive(1, 4, order=2, n_terms=1, random_state=0).function
    with pytest.raises(ValueError, match=f"X has .*{columns}.*4"):
        function(np.zeros((2, columns)))


# --- Real tables: a small folder whose numbers can be checked by hand ---


def write_table(home, name, columns, rows, **entry):
    file = entry.pop("file", f"{name}.csv")
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
    raw = ("\n".join(lines) + "\n").encode()
    (home / file).write_bytes(gzip.compress(raw) if file.endswith(".gz") else raw)
    return name, {
        "file": file,
        "sha256": hashlib.sha256((home / file).read_bytes()).hexdigest(),
        "rows": len(rows),
        "input_columns": columns[:-1],
        "target_column": columns[-1],
        **entry,
    }


@pytest.fixture
def small_home(tmp_path):
    paper = {"remarks": ["a remark"], "origin": "nowhere", "normalise": True, "extra_noise_dims": 0}
    e = math.e
    propulsion = [(1.0, 0.998, 1.0), (2.0, 0.998, e), (3.0, 0.998, e**2), (7.0, 0.5, e**6)]
    galaxy = [(0.1, 1.0), (0.2, 1.0), (0.3, 3.0), (0.4, 3.0)]
    forest = [(e**k - 1, float(k)) for k in (4, 1, 2, 3)]
    air = [(float(k), float(k % 3)) for k in range(420)]
    rest = [(float(k), float(k * k)) for k in range(7)]
    tables = dict(
        [
            write_table(
                tmp_path,
                "propulsion",
                ["a", "P1", "speed"],
                propulsion,
                file="propulsion.csv.gz",
                **paper,
                paper={"N": 30, "s": 3, "m_lambda": 0.5, "q": 2},
                paper_mse={"HARFE": 0.25, "SSAM": None},
            ),
            write_table(tmp_path, "galaxy", ["u", "t"], galaxy, **{**paper, "normalise": False}),
            write_table(tmp_path, "forestfire", ["area", "temp"], forest, **paper),
            write_table(tmp_path, "airfoil", ["f", "p"], air, **{**paper, "extra_noise_dims": 3}),
        ]
    )
    variants = dict([write_table(tmp_path, "ccpp_rest", ["AT", "PE"], rest, note="left out")])
    manifest = {"datasets": tables, "variants": variants}
    (tmp_path / "datasets.json").write_text(json.dumps(manifest))
    splits = {
        "propulsion": {"train": [2, 0, 1], "test": [3]},
        "galaxy": {"train": [0, 1], "test": [2, 3]},
        "forestfire": {"train": [1, 3, 2], "test": [0]},
        "airfoil": {"train": list(range(200)), "test": list(range(200, 400))},
    }
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    return tmp_path


def test_logarithm_rows_and_standardisation_by_hand(small_home):
    data = load_real("propulsion", data_home=small_home)
    # Train rows 2, 0, 1: log speed 2, 0, 1 has mean 1 and deviation 1 (ddof 1); so has column a
    np.testing.assert_allclose(data.y_train, [1, -1, 0], atol=1e-15)
    np.testing.assert_allclose(data.y_test, [5])
    np.testing.assert_allclose(data.X_train[:, 0], [1, -1, 0])
    np.testing.assert_allclose(data.X_test[:, 0], [5])
    # Constant on the training rows: 0 in both parts, though the test row differs
    assert (data.X_train[:, 1] == 0).all()
    assert (data.X_test[:, 1] == 0).all()
    assert data.feature_names == ["a", "P1"]
    assert data.target_name == "speed"
    assert data.paper == {"N": 30, "s": 3, "m_lambda": 0.5, "q": 2}
    assert data.paper_mse == {"HARFE": 0.25, "SSAM": None}
    assert all(part in data.DESCR for part in ("nowhere", "a remark", "4 rows", "'paper'"))


def test_galaxy_is_scaled_by_all_rows_and_not_centred(small_home):
    data = load_real("galaxy", data_home=small_home)
    deviation = math.sqrt(4 / 3)
    np.testing.assert_allclose(data.y_train, [1 / deviation, 1 / deviation])
    np.testing.assert_allclose(data.y_test, [3 / deviation, 3 / deviation])
    np.testing.assert_array_equal(data.X_train, [[0.1], [0.2]])
    np.testing.assert_array_equal(data.X_test, [[0.3], [0.4]])


def test_area_of_the_fires_is_taken_as_logarithm(small_home):
    data = load_real("forestfire", data_home=small_home)
    np.testing.assert_allclose(data.X_train[:, 0], [-1, 1, 0], atol=1e-14)
    np.testing.assert_allclose(data.X_test, [[2]])


def test_noise_inputs(small_home):
    data = load_real("airfoil", data_home=small_home)
    again = load_real("airfoil", noise_seed=0, data_home=small_home)
    other = load_real("airfoil", noise_seed=1, data_home=small_home)
    shuffled = load_real("airfoil", split=0, data_home=small_home)
    assert data.feature_names == ["f", "noise_1", "noise_2", "noise_3"]
    assert data.X_train.shape == data.X_test.shape == (200, 4)
    train, test = data.X_train[:, 1:], data.X_test[:, 1:]
    for part in (train, test):
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=0.25)
        np.testing.assert_allclose(part.std(axis=0), 1, atol=0.15)
    # Drawn after the standardisation, which would have made these exactly 0 and 1
    assert np.abs(train.mean(axis=0)).min() > 1e-6
    everything = np.hstack([train, test, other.X_train[:, 1:], other.X_test[:, 1:]])
    assert np.abs(np.corrcoef(everything.T) - np.eye(12)).max() < 0.3
    np.testing.assert_array_equal(again.X_train, data.X_train)
    np.testing.assert_array_equal(again.X_test, data.X_test)
    np.testing.assert_array_equal(other.X_train[:, :1], data.X_train[:, :1])
    np.testing.assert_array_equal(shuffled.X_train[:, 1:], train)


def test_random_split_is_the_documented_one(small_home):
    # 200 + 200 of the 420 rows: the last 20 of the permutation belong to neither part.
    order = np.random.default_rng(11).permutation(420)
    data = load_real("airfoil", split=11, data_home=small_home)
    np.testing.assert_array_equal(data.train_rows, order[:200])
    np.testing.assert_array_equal(data.test_rows, order[200:400])
    # Column f is the row number, so that the prepared rows tell where they come from.
    expected = (order[:400] - order[:200].mean()) / order[:200].std(ddof=1)
    np.testing.assert_allclose(np.r_[data.X_train[:, 0], data.X_test[:, 0]], expected, rtol=1e-12)


def test_variant_without_rows_in_the_paper_is_halved(small_home):
    data = load_real("ccpp_rest", split=0, data_home=small_home)
    assert (len(data.y_train), len(data.y_test)) == (3, 4)
    assert sorted([*data.train_rows, *data.test_rows]) == list(range(7))
    assert data.paper == {}
    assert data.paper_mse == {}
    assert "left out" in data.DESCR
    with pytest.raises(ValueError, match=r"split='paper'.*'ccpp_rest'.*split=0"):
        load_real("ccpp_rest", data_home=small_home)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "air_foil"}, "name='air_foil' is unknown: type 'airfoil'.*ccpp_rest"),
        ({"name": "galaxy", "split": "papers"}, "split='papers'.*at least 0 or 'paper'"),
        ({"name": "galaxy", "split": -1}, "split=-1"),
        ({"name": "galaxy", "split": True}, "split=True"),
        ({"name": "galaxy", "noise_seed": 0.5}, "noise_seed=0.5"),
    ],
)
def test_load_real_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_real(**arguments)


def test_environment_variable_names_the_folder(small_home, monkeypatch):
    monkeypatch.setenv("HARFE_DATA", str(small_home))
    assert len(load_real("galaxy").y_train) == 2
    monkeypatch.setenv("HARFE_DATA", str(small_home / "elsewhere"))
    assert len(load_real("galaxy", data_home=small_home).y_train) == 2
    with pytest.raises(FileNotFoundError, match=r"no folder .*elsewhere"):
        load_real("galaxy")


def test_tilde_stands_for_the_home_folder(small_home, monkeypatch):
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(small_home.parent))
    assert len(load_real("galaxy", data_home=f"~/{small_home.name}").y_train) == 2


@pytest.mark.parametrize("value", [None, ""])
def test_without_data_the_error_says_how_to_get_them(monkeypatch, value):
    monkeypatch.delenv("HARFE_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("HARFE_DATA", value)
    with pytest.raises(FileNotFoundError) as caught:
        load_real("airfoil")
    for part in ("HARFE_DATA is not set", "datasets.json", "splits.json", "CSV", "data_home"):
        assert part in str(caught.value)
    assert "UCI, Airfoil Self-Noise" in str(caught.value)


@pytest.mark.parametrize("file", ["datasets.json", "splits.json", "galaxy.csv"])
def test_missing_file_is_named(small_home, file):
    (small_home / file).unlink()
    with pytest.raises(FileNotFoundError, match=f"no file .*{file}.*HARFE_DATA"):
        load_real("galaxy", data_home=small_home)


def test_table_that_the_manifest_leaves_out(small_home):
    with pytest.raises(FileNotFoundError, match=r"manifest in .* does not describe 'music'"):
        load_real("music", data_home=small_home)


@pytest.mark.parametrize("file", ["galaxy.csv", "datasets.json", "splits.json"])
def test_damaged_file_is_named(small_home, file):
    content = (small_home / file).read_text()
    (small_home / file).write_text(content.replace("0.3", "0.4") if "csv" in file else content[:-9])
    with pytest.raises(ValueError, match=rf"{file}' is damaged.*Copy"):
        load_real("galaxy", data_home=small_home)


# --- Real tables: the facts that come with the data ---


@pytest.fixture(scope="module")
def real():
    home = os.environ.get("HARFE_DATA")
    if not home:
        pytest.skip("HARFE_DATA is not set: it names the folder of the paper's real data")
    loaded = {}

    def load(name, split="paper"):
        if (name, split) not in loaded:
            loaded[name, split] = load_real(name, split)
        return loaded[name, split]

    load.manifest = json.loads((Path(home) / "datasets.json").read_text())
    return load


PAPER_TABLES = list_real()[:11]


def test_names_are_those_of_the_manifest(real):
    assert list_real() == (*real.manifest["datasets"], *real.manifest["variants"])


def null_test_mse(data):
    return np.mean((data.y_test - data.y_train.mean()) ** 2)


@pytest.mark.parametrize("name", PAPER_TABLES)
def test_table_is_prepared_as_the_manifest_says(real, name):
    data, entry = real(name), real.manifest["datasets"][name]
    assert null_test_mse(data) == pytest.approx(
        entry["sanity"]["null_test_mse_canonical"], rel=1e-9
    )
    assert data.X_train.shape == (entry["m_train"], entry["dim_total"])
    assert data.X_test.shape == (entry["m_test"], entry["dim_total"])
    assert data.y_train.shape == (entry["paper"]["train"],)
    assert data.y_test.shape == (entry["paper"]["val"],)
    assert len(data.feature_names) == entry["dim_total"]
    assert data.paper == entry["paper"]
    assert data.paper_mse == entry["paper_mse"]
    assert entry["origin"] in data.DESCR
    assert not set(data.train_rows) & set(data.test_rows)


@pytest.mark.parametrize("name", [n for n in list_real() if n not in ("galaxy", "ccpp_rest")])
def test_training_rows_have_mean_0_and_deviation_1(real, name):
    data = real(name)
    known = [j for j, column in enumerate(data.feature_names) if not column.startswith("noise_")]
    varying = [j for j in known if data.feature_names[j] != "P1"]
    table = np.c_[data.X_train[:, varying], data.y_train]
    np.testing.assert_allclose(table.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(table.std(axis=0, ddof=1), 1, rtol=1e-12)


@pytest.mark.parametrize("name", ["propulsion", "galaxy", "forestfire", "housing", "insulin"])
def test_seeded_splits_are_those_of_the_manifest(real, name):
    expected = real.manifest["datasets"][name]["sanity"]["null_test_mse_seeds"]
    found = [null_test_mse(real(name, seed)) for seed in (0, 1)]
    np.testing.assert_allclose(found, expected[:2], rtol=1e-9)


@pytest.mark.parametrize("name", ["galaxy", "forestfire", "ccpp_rest"])
def test_seeded_splits_are_disjoint_and_repeatable(real, name):
    first, second = real(name, 0), load_real(name, 0)
    for part in ("X_train", "y_train", "X_test", "y_test"):
        np.testing.assert_array_equal(first[part], second[part])
    assert not set(first.train_rows) & set(first.test_rows)
    assert len(set(first.train_rows)) == len(first.y_train)
    assert set(first.train_rows) != set(real(name, 1).train_rows)
    assert list(first.train_rows) != sorted(first.train_rows)


def test_constant_and_doubled_inputs_of_propulsion(real):
    data = real("propulsion")
    column = {name: data.X_train[:, j] for j, name in enumerate(data.feature_names)}
    assert (column["P1"] == 0).all()
    assert (data.X_test[:, data.feature_names.index("P1")] == 0).all()
    np.testing.assert_array_equal(column["Ts"], column["Tp"])
    assert len(np.unique(data.y_train)) == 9


@pytest.mark.parametrize(
    ("name", "whole", "third"),
    [
        ("speech", "jitter_ddp", "jitter_rap"),
        ("speech", "shimmer_dda", "shimmer_apq3"),
        ("telemonitor", "Jitter_DDP", "Jitter_RAP"),
    ],
)
def test_threefold_inputs_agree_once_standardised(real, name, whole, third):
    # DDP = 3 RAP up to the digits that were stored, so that both standardise to one column.
    data = real(name)
    columns = [data.feature_names.index(c) for c in (whole, third)]
    np.testing.assert_allclose(*data.X_train[:, columns].T, atol=0.02)


def test_typing_error_of_skillcraft_is_in_the_test_part(real):
    data = real("skillcraft")
    hours = data.feature_names.index("TotalHours")
    assert data.X_test[:, hours].max() == pytest.approx(1131, abs=1)


def test_galaxy_keeps_its_offset_and_its_inputs(real):
    data = real("galaxy")
    assert data.y_train.mean() == pytest.approx(-1.54, abs=0.005)
    assert np.r_[data.y_train, data.y_test].std(ddof=1) == pytest.approx(1, rel=1e-12)
    assert 0 <= data.X_train.min() < 0.01
    assert 0.99 < data.X_train.max() <= 1
    np.testing.assert_array_equal(data.train_rows, np.arange(2000))


def test_variants(real):
    other_sex = real("telemonitor_sex1")
    assert null_test_mse(other_sex) == pytest.approx(1.0074, abs=5e-5)
    assert (other_sex.X_train.shape, len(other_sex.y_test)) == ((1000, 19), 867)
    assert other_sex.feature_names == real("telemonitor").feature_names
    rest = real("ccpp_rest", 0)
    assert (rest.X_train.shape, rest.X_test.shape) == ((1284, 4), (1284, 4))
    np.testing.assert_allclose(rest.y_train.std(ddof=1), 1)
    with pytest.raises(ValueError, match="'ccpp_rest'"):
        load_real("ccpp_rest")


def test_tampered_copy_is_refused(real, tmp_path):
    home = Path(os.environ["HARFE_DATA"])
    for file in ("datasets.json", "splits.json", "housing.csv"):
        (tmp_path / file).write_bytes((home / file).read_bytes())
    assert load_real("housing", data_home=tmp_path).X_train.shape == (256, 12)
    raw = bytearray((tmp_path / "housing.csv").read_bytes())
    raw[-2] ^= 1
    (tmp_path / "housing.csv").write_bytes(raw)
    with pytest.raises(ValueError, match=r"housing\.csv' is damaged: its SHA-256"):
        load_real("housing", data_home=tmp_path)
