"""A small, real slice of the reproduction: the paper's settings on the paper's rows.

The full tables are printed by benchmarks/paper_rows.py and benchmarks/friedman_rows.py; these tests
run the same functions on the fast rows.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from harfe import hard_ridge_pursuit
from harfe.datasets import load_real
from harfe.methods import METHODS
from harfe.metrics import mean_squared_error

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def script(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not os.environ.get("HARFE_DATA"), reason="HARFE_DATA is not set")
@pytest.mark.parametrize("name", ["forestfire", "housing", "insulin"])
def test_algorithm_1_reproduces_the_real_data_table(name):
    paper_rows = script("paper_rows")
    data = load_real(name)
    errors = [
        mean_squared_error(
            data.y_test,
            paper_rows.paper_model(data.paper, seed)
            .fit(data.X_train, data.y_train)
            .predict(data.X_test),
        )
        for seed in range(5)
    ]
    low, high = paper_rows.PROTOTYPES[name]
    assert 0.9 * low <= np.median(errors) <= 1.1 * high


@pytest.mark.parametrize("label", ["unit RMS columns", "raw, ridge weight λ"])
def test_algorithm_1_reproduces_friedman_3_in_both_column_scales(label):
    friedman_rows = script("friedman_rows")
    column_scale, ridge, step, prototype = friedman_rows.SETTINGS[label]
    errors = [
        friedman_rows.error(
            "friedman3",
            column_scale,
            ridge * friedman_rows.LAMBDA["friedman3"],
            step * friedman_rows.STEP,
            seed,
        )
        for seed in range(20)
    ]
    # The two settings differ by a third; twenty seeds leave a standard error of 6 %.
    assert np.mean(errors) == pytest.approx(prototype[2], rel=0.12)


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
