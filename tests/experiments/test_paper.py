"""The paper's settings against numbers that other programs had: prototypes, transcriptions, print.

What the paper's experiments give as a whole is in tests/test_paper_tables.py.
"""

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from harfe import hard_ridge_pursuit
from harfe.compare.methods import METHODS
from harfe.datasets import load_real, make_function
from harfe.metrics import mean_squared_error

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

BENCHMARKS = ROOT / "benchmarks"
#: Medians of two throw-away programs, before this package existed.
PROTOTYPES = {"forestfire": (0.291, 0.293), "housing": (0.279, 0.280), "insulin": (1.011, 1.02)}


def script(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not os.environ.get("HARFE_DATA"), reason="HARFE_DATA is not set")
@pytest.mark.parametrize("name", ["forestfire", "housing", "insulin"])
def test_algorithm_1_reproduces_the_real_data_table(name):
    """Two programs that share no code, and two prototypes before them, have about one median."""
    textbook = script("textbook")
    data = load_real(name)
    medians = [
        np.median([error(data, seed) for seed in range(5)])
        for error in (textbook.harfe_error, textbook.textbook_error)
    ]
    low, high = PROTOTYPES[name]
    assert 0.9 * low <= min(medians)
    assert max(medians) <= 1.1 * high


@pytest.mark.parametrize(("reading", "prototype"), [("unit", 0.0143), ("raw_lambda", 0.0109)])
def test_algorithm_1_reproduces_friedman_3_in_both_column_scales(reading, prototype):
    from experiments.paper.methods import Harfe

    algorithm = Harfe(reading, N=2000, s=200, q=2, lam=1e-5)
    errors = []
    for seed in range(20):
        train = make_function("friedman3", 200, random_state=2 * seed)
        test = make_function("friedman3", 1000, noise=0.0, random_state=2 * seed + 1)
        predicted = algorithm.fit(train.X, train.y, seed, {}).model.predict(test.X)
        errors.append(mean_squared_error(test.y_clean, predicted))
    # The two settings differ by a third; twenty seeds leave a standard error of 6 %.
    assert np.mean(errors) == pytest.approx(prototype, rel=0.12)


@pytest.mark.parametrize(
    ("name", "limit"), [("ratio", 0.9), ("friedman1", 0.5), ("friedman3", 0.8)]
)
def test_the_graded_start_is_below_algorithm_1(name, limit):
    objective = script("objective")
    X, y = objective.instances()[name]
    ratios = []
    for centred in (True, False):
        problem, _ = objective.pose(X, y, centred)
        for alpha in (1e-2, 1e-4):
            plain = hard_ridge_pursuit(problem, 20, alpha).lowest
            ratios.append(hard_ridge_pursuit(problem, 20, alpha, init="graded").lowest / plain)
    assert max(ratios) <= 1
    # About what the whole standard set has at s = 20 for each of these; the set's mean is lower.
    assert (
        np.exp(np.mean(np.log(ratios))) < {"ratio": 0.9, "friedman1": 0.5, "friedman3": 0.8}[name]
    )


#: The paper's Table 4 where the rows of the data are known to be those of the print.
PRINTED = {
    ("lasso", "galaxy"): 0.0239,
    ("lasso", "airfoil"): 0.5199,
    ("lasso", "housing"): 0.4452,
    ("lasso", "music"): 0.6349,
    ("lasso", "speech"): 0.0730,
    ("lasso", "telemonitor"): 0.0863,
    ("lasso", "ccpp"): 0.07395,
    ("salsa", "insulin"): 1.0206,
}


@pytest.mark.skipif(not os.environ.get("HARFE_DATA"), reason="HARFE_DATA is not set")
# Telemonitor has inputs that are multiples of others: the lasso's path creeps along them.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("method", "name"), PRINTED)
def test_rivals_that_choose_as_the_original_did_reproduce_its_numbers(method, name):
    data = load_real(name)
    model = METHODS[method].make(1000, len(data.y_train)).fit(data.X_train, data.y_train)
    error = mean_squared_error(data.y_test, model.predict(data.X_test))
    assert error == pytest.approx(PRINTED[method, name], rel=0.02)
