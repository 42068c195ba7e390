"""What every rival must do: scikit-learn's contract, bad input, one package, one registry."""

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shared import estimator_checks
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import harfe
from harfe import rivals
from harfe.compare.methods import METHODS
from harfe.datasets import make_function

#: Settings with which a fit takes a fraction of a second and still has a choice to make.
FEATURES = {"n_components": 60, "order": 1, "scale": 1.0, "cv": 2}
RIDGE = {"alpha": [1e-1, 1e-4], "cv": 2}
SMALL = {
    "ANOVARegressor": {"superposition": 1, "threshold": 0.01, "bandwidth": 6, **RIDGE},
    "ARDProcessRegressor": {"max_iter": 20},
    "COSSORegressor": {"interactions": False, "penalty": [0.1, 1e-4], "cv": 2},
    "KAMRegressor": {"bandwidth": 2.0, **RIDGE},
    "PyGAMRegressor": {"smoothing": [10.0, 1000.0]},
    "RFRRRegressor": {**FEATURES, **RIDGE},
    "SALSARegressor": {"bandwidth": 2.0, **RIDGE},
    "SHRIMPRegressor": {**FEATURES, "alpha": 1e-1},
    "SRFERegressor": {**FEATURES, "noise_level": [0.5, 0.2]},
    "SSAMRegressor": {"order": 1, "bandwidth": 1.0, "alpha": [0.3, 0.01], "cv": 2},
    "SpAMRegressor": {"alpha": [0.3, 0.01], "cv": 2},
    "YenRegressor": {**FEATURES, "n_rounds": 2, "alpha": [1e-1, 1e-2]},
}
#: Noise-free error on Friedman 1 (200 rows, noise 1) that only broken code exceeds.
LIMITS = {
    "SRFERegressor": 6,
    "SHRIMPRegressor": 6,
    "SSAMRegressor": 6,
    "ANOVARegressor": 6,
    "SALSARegressor": 5,
    "KAMRegressor": 5,
    "SpAMRegressor": 5,
    "COSSORegressor": 5,
    "RFRRRegressor": 8,
    "YenRegressor": 8,
}

every_rival = pytest.mark.parametrize("name", rivals.__all__)


def small(name, **settings):
    """A rival with settings that fit quickly."""
    model = getattr(rivals, name)(**{**SMALL[name], **settings})
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


@pytest.fixture(scope="module")
def friedman():
    return make_function("friedman1", 60, random_state=0)


@pytest.mark.slow
@every_rival
def test_every_estimator_check_passes_with_warnings_as_errors(name):
    results = estimator_checks(f"rivals.{small(name)!r}".replace("\n", " "))
    assert len(results) >= 50
    assert [result for result in results if result[1] != "passed"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_default_settings_learn_friedman_1(name):
    data = make_function("friedman1", 1200, random_state=1)
    model = getattr(rivals, name)(random_state=0).fit(data.X[:200], data.y[:200])
    error = np.mean((model.predict(data.X[200:]) - data.y_clean[200:]) ** 2)
    assert error <= LIMITS[name]
    assert model.size_ >= 1


@every_rival
def test_equal_seeds_give_equal_bits_on_any_number_of_threads(name, friedman, on_threads):
    def predict():
        return small(name).fit(friedman.X, friedman.y).predict(friedman.X)

    np.testing.assert_array_equal(on_threads(1, predict), on_threads(2, predict))


@every_rival
def test_clones_and_pickles_predict_the_same(name, friedman):
    model = small(name).fit(friedman.X, friedman.y)
    expected = model.predict(friedman.X)
    np.testing.assert_array_equal(
        clone(model).fit(friedman.X, friedman.y).predict(friedman.X), expected
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(friedman.X), expected)


@every_rival
def test_units_of_inputs_and_target_do_not_matter(name, friedman):
    X, y = friedman.X, friedman.y
    expected = small(name).fit(X, y).predict(X)
    scaled = small(name).fit(X * 1024.0 + 2.0**20, y * 2.0**30).predict(X * 1024.0 + 2.0**20)
    # pyGAM and the Gaussian process stop at tolerances of their own.
    tolerance = 1e-3 if name in ("PyGAMRegressor", "ARDProcessRegressor") else 1e-5
    np.testing.assert_allclose(scaled / 2.0**30, expected, rtol=tolerance, atol=tolerance)


@every_rival
def test_constant_and_double_columns_are_borne(name, friedman):
    X, y = friedman.X[:, :4], friedman.y
    more = np.hstack([X, np.full((len(X), 1), 0.998), X[:, :1]])
    model = small(name).fit(more, y)
    assert np.all(np.isfinite(model.predict(more)))
    # pyGAM itself may fail on two equal columns.
    assert name == "PyGAMRegressor" or model.score(more, y) > 0.2


@every_rival
def test_where_nothing_can_be_learned_the_mean_is_predicted(name):
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.arange(20.0)
    for rows, target in ((X, np.full(20, 7.0)), (np.ones((20, 3)), y)):
        model = small(name).fit(rows, target)
        np.testing.assert_allclose(model.predict(rows), np.full(20, target.mean()), rtol=1e-12)
        assert model.size_ == 1
        if type(model).takes_complex:
            with pytest.raises(AttributeError, match="the model is the mean of y"):
                _ = model.expansion_


@every_rival
def test_huge_numbers_and_few_rows_are_borne(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = small(name).fit(X * 1e200, y * 1e200)
    assert np.all(np.isfinite(model.predict(X * 1e200)))
    assert np.all(np.isfinite(model.predict(X * 1e205)))
    if type(model).takes_complex:
        np.testing.assert_allclose(
            model.expansion_.predict(X * 1e200)[:, 0], model.predict(X * 1e200), rtol=1e-6
        )
    assert np.all(np.isfinite(small(name).fit(X[:2], y[:2]).predict(X)))


@every_rival
def test_more_inputs_than_rows_are_borne(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 40))
    y = X[:, 0] + 0.1 * rng.normal(size=20)
    assert np.all(np.isfinite(small(name).fit(X, y).predict(X)))


@every_rival
def test_bad_input_is_refused_with_a_sentence(name, friedman):
    X, y = friedman.X, friedman.y
    hole = X.copy()
    hole[3, 1] = np.nan
    endless = y.copy()
    endless[2] = np.inf
    for rows, target, message in (
        (hole, y, "NaN"),
        (X, endless, "infinity"),
        (X[:1], y[:1], "minimum of 2 is required"),
        (X, y[:-1], "X has 60 rows but y has 59"),
        (X[:, 0], y, "1D array"),
        (X, np.column_stack([y, y]), "fits one target; fit each column separately"),
        (np.full((60, 2), "a"), y, "X holds text in column 0, e.g. 'a'"),
        (X, ["a"] * 60, "y holds text"),
    ):
        with pytest.raises(ValueError, match=message):
            small(name).fit(rows, target)
    with pytest.raises(NotFittedError):
        small(name).predict(X)
    with pytest.raises(ValueError, match="10 features"):
        small(name).fit(X, y).predict(X[:, :3])


@pytest.mark.parametrize("name", [n for n in rivals.__all__ if n not in ("RFRRRegressor",)])
def test_complex_targets_are_taken_or_refused_with_what_to_do(name, friedman):
    model = small(name)
    y = friedman.y * (1 + 1j)
    if type(model).takes_complex:
        assert model.fit(friedman.X, y).predict(friedman.X).dtype.kind == "c"
        assert model.score(friedman.X, y) > 0
    else:
        with pytest.raises(ValueError, match=r"y is complex.*fit y.real and y.imag separately"):
            model.fit(friedman.X, y)


@every_rival
def test_names_of_columns_are_remembered(name, friedman):
    frame = pd.DataFrame(friedman.X, columns=list("abcdefghij"))
    model = small(name).fit(frame, friedman.y)
    assert list(model.feature_names_in_) == list("abcdefghij")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("name", LIMITS)
def test_the_choice_is_told(name, friedman):
    model = small(name).fit(friedman.X, friedman.y)
    results = model.cv_results_
    best = int(np.argmax(results["mean_test_score"]))
    assert model.best_params_ == results["params"][best]
    for setting, value in model.best_params_.items():
        assert getattr(model, f"{setting}_") == value


@pytest.mark.parametrize("name", LIMITS)
def test_progress_is_told_to_people_who_ask(name, friedman, capsys):
    small(name, verbose=True).fit(friedman.X, friedman.y)
    printed = capsys.readouterr().err
    assert printed.startswith(f"{name}: ")
    assert "best MSE" in printed
    small(name).fit(friedman.X, friedman.y)
    assert capsys.readouterr().err == ""


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = rivals.nothing_of_that_name
    assert dir(rivals) == sorted(rivals.__all__)


def test_the_registry_names_every_rival():
    made = {type(METHODS[name].make(0, 50)).__name__ for name in METHODS if name != "ebm"}
    assert set(rivals.__all__) <= made


@pytest.mark.slow
def test_nothing_else_imports_the_rivals():
    """Only the registry names them, and only when one is made."""
    source = Path(harfe.__file__).parent
    for path in source.rglob("*.py"):
        if "rivals" in path.relative_to(source).parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = [
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
            if name and name.startswith("harfe.rivals")
        ]
        assert not imported or path.name == "methods.py", path
    code = "import sys, harfe.compare; assert 'harfe.rivals' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
