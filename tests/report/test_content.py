"""The summary of a report: its numbers are those of the model, and its warnings come when due."""

import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shared import FORMULAS
from sklearn.linear_model import LinearRegression

import harfe
from harfe import HARFERegressor, HARFERegressorCV
from harfe.datasets import make_function
from harfe.explain.anova import anova
from harfe.features.activations import ACTIVATIONS
from harfe.features.units import Asinh, InputMap, Log, Rank
from harfe.report import render, summarise, write_report
from harfe.report.content.posterior import ComponentPosterior
from harfe.report.content.whatif import _warp
from harfe.report.page.svg import Axis
from harfe.report.page.tables import formula_lines
from harfe.report.page.text import aligned, number, percent
from harfe.tables import TableModel
from harfe.tables.judging import linear_model

SMALL = {"n_components": 300, "n_nonzero_coefs": 15, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_function("friedman1", 260, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return HARFERegressor(**SMALL, residual_cv=3).fit(data.X[:200], data.y[:200])


@pytest.fixture(scope="module")
def summary(model, data):
    return summarise(
        model,
        data.X[:200],
        data.y[:200],
        X_holdout=data.X[200:],
        y_holdout=data.y[200:],
        target_name="strength",
        meta={"source": "table.csv", "created": "today"},
    )


def of(model, X, y, **more):
    return summarise(model, X, y, meta={"created": "today"}, **more)


def kinds(summary):
    return {caution["kind"] for caution in summary["cautions"]}


def warped(x, warp):
    kind = None if warp is None else warp["kind"]
    if kind == "log":
        return math.log(x)
    if kind == "asinh":
        return math.asinh((x - warp["centre"]) / warp["scale"])
    return x if kind is None else float(np.interp(x, warp["knots"], warp["values"]))


def computed(panel, row):
    """What the page computes, in plain Python: the prediction, and what it is the sum of."""
    x = []
    for part in panel["inputs"]:
        low, high = part["clip"]
        value = row[part["column"]]
        value = value if low is None else max(value, low)
        x.append(warped(value if high is None else min(value, high), part["warp"]))
    phi = FORMULAS[panel["activation"]]
    features = []
    for indices, weights, phase, *coef in panel["features"]:
        c = complex(coef[0], -coef[1]) if len(coef) == 2 else coef[0]
        z = phase + sum(w * x[i] for i, w in zip(indices, weights, strict=True))
        features.append((c * phi(z)).real)
    prediction = panel["intercept"] + sum(features)
    adds = panel["adds"]
    parts = np.zeros(len(adds["sets"]))
    if adds["kind"] == "terms":
        for k, places in enumerate(adds["features"]):
            parts[k] = sum(features[j] for j in places) - adds["means"][k]
        return prediction, parts
    turn = {"sin": -1j, "cos": 1, "exp": 1}[panel["activation"]]
    for j, (indices, weights, phase, *coef) in enumerate(panel["features"]):
        c = complex(coef[0], -coef[1]) if len(coef) == 2 else coef[0]
        waves = [np.exp(1j * w * x[i]) for i, w in zip(indices, weights, strict=True)]
        means = [complex(*mean) for mean in adds["means"][j]]
        for subset, owner in enumerate(adds["owners"][j], start=1):
            product = c * turn * np.exp(1j * phase)
            for k, (wave, mean) in enumerate(zip(waves, means, strict=True)):
                product *= wave - mean if subset >> k & 1 else mean
            parts[owner] += product.real
    return prediction, parts


def test_summary_is_plain_data(summary):
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["target"] == "strength"
    assert summary["created"] == "today"
    assert summary["meta"] == {"source": "table.csv"}
    assert summary["settings"]["n_components"] == "300"
    assert summary["versions"]["numpy"] == np.__version__


@pytest.fixture(scope="module", params=["log", "yeo-johnson"])
def linked(request, data):
    """A model of a positive target with a link, and its summary."""
    model = HARFERegressor(**SMALL, link=request.param, residual_cv=3)
    X, y = data.X, np.exp(data.y / 5)
    model.fit(X[:200], y[:200])
    rest = {"X_holdout": X[200:], "y_holdout": y[200:], "target_name": "price"}
    return model, of(model, X[:200], y[:200], **rest), X, y


def test_a_model_with_a_link_says_on_which_scale_it_is_a_sum(linked):
    model, summary, X, y = linked
    scale = f"{model.link}(price)"
    assert summary["data"]["fitted"]
    assert summary["scale"] == scale
    assert summary["from_scale"].startswith("price = ")
    assert scale in summary["from_scale"]
    rmse = np.sqrt(np.mean((y[200:] - model.predict(X[200:])) ** 2))
    lines = [e for e in summary["errors"]["table"] if e["rows"] == "held-out"]
    assert lines[0]["rmse"] == pytest.approx(rmse)
    _, lower, upper = model.predict(X[200:], interval=0.9)
    inside = np.mean((lower <= y[200:]) & (y[200:] <= upper))
    assert summary["errors"]["interval"]["inside"] == inside
    total, parts = computed(summary["what_if"], X[0])
    assert total == pytest.approx(model.expansion_.linear(X[:1])[0, 0])
    assert summary["what_if"]["adds"]["baseline"] + parts.sum() == pytest.approx(total)
    page = render(summary)
    assert page.count(f"the variance of {scale}") == 1
    assert f"What each input adds to {scale} by itself" in page
    fit = of(model, X[:200], y[:200])
    assert fit["path"]["lines"][0]["rmse"][-1] == pytest.approx(
        np.sqrt(np.mean((model.expansion_.link.forward(y) - _linear(model, X))[:200] ** 2)),
        rel=1e-6,
    )


def _linear(model, X):
    return model.expansion_.linear(X)[:, 0]


def test_the_page_maps_sums_to_predictions_as_the_model_does(linked):
    model, summary, X, _ = linked
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on PATH to run the script of the page")
    script = (files("harfe.report.page") / "templates" / "report.js").read_text(encoding="utf-8")
    own = script[script.index("const link = model.link;") : script.index("const evaluate =")]
    far = np.concatenate([_linear(model, X), [-1e9, 1e9]])
    panel = json.dumps({"link": summary["what_if"]["link"]})
    code = (
        f"const model = {panel}; {own} console.log(JSON.stringify({far.tolist()}.map(predicted)))"
    )
    done = subprocess.run([node, "-e", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(done.stdout), model.expansion_.link.mean(far), rtol=1e-12)


def test_errors_are_those_of_the_three_models(summary, model, data):
    train, test = slice(200), slice(200, None)
    linear = linear_model().fit(data.X[train], data.y[train])
    predictions = {
        "this model": model.predict(data.X),
        "linear model": linear.predict(data.X),
        "null model": np.full(len(data.y), data.y[train].mean()),
    }
    assert summary["errors"]["judged_on"] == "held-out"
    for line in summary["errors"]["table"]:
        rows = test if line["rows"] == "held-out" else train
        y = data.y[rows]
        gap = y - predictions[line["model"]][rows]
        assert line["rmse"] == pytest.approx(np.sqrt(np.mean(gap**2)), rel=1e-9)
        assert line["mae"] == pytest.approx(np.mean(np.abs(gap)), rel=1e-9)
        assert line["r2"] == pytest.approx(1 - np.mean(gap**2) / np.var(y), abs=1e-9)
    _, lower, upper = model.predict(data.X[test], interval=0.9)
    inside = (lower <= data.y[test]) & (data.y[test] <= upper)
    assert summary["errors"]["interval"]["inside"] == inside.mean()


def test_without_held_out_rows_the_folds_judge(model, data):
    found = of(model, data.X[:200], data.y[:200])
    mine = next(line for line in found["errors"]["table"] if line["rows"] == "out-of-fold")
    assert found["errors"]["judged_on"] == "out-of-fold"
    assert mine["rmse"] == pytest.approx(np.sqrt(model.uncertainty_.mean_square[0]))
    assert "no held-out rows" not in kinds(found)
    # What was left out must be harder than what was fitted, also for a linear model.
    lines = {(line["rows"], line["model"]): line["rmse"] for line in found["errors"]["table"]}
    assert lines["out-of-fold", "linear model"] > lines["training", "linear model"]


def test_weights_count_as_rows_that_occur_often(data):
    X, y = data.X[:80], data.y[:80]
    weights = np.ones(80)
    weights[:40] = 2
    fitted = HARFERegressor(**SMALL).fit(X, y, sample_weight=weights)
    weighted = of(fitted, X, y, sample_weight=weights)
    again = np.concatenate([np.arange(80), np.arange(40)])
    repeated = of(fitted, X[again], y[again])
    for found in (weighted, repeated):
        assert "no held-out rows" in kinds(found)
        assert "other rows" not in kinds(found)
    fewer, more = of(fitted, X[:60], y[:60]), of(fitted, data.X[:100], data.y[:100])
    assert "other rows" in kinds(fewer) & kinds(more)
    for a, b in zip(weighted["errors"]["table"], repeated["errors"]["table"], strict=True):
        assert a["rmse"] == pytest.approx(b["rmse"], rel=1e-9)


def test_fingerprint_tells_rows_apart(model, data):
    X, y = data.X[:200], data.y[:200]
    first = of(model, X, y)["data"]["fingerprint"]
    assert first == of(model, X.copy(), y)["data"]["fingerprint"]
    y = y.copy()
    y[7] = np.nextafter(y[7], np.inf)
    assert first != of(model, X, y)["data"]["fingerprint"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_panel_predicts_what_the_model_predicts(activation, data):
    X, y = data.X[:120].copy(), data.y[:120]
    X[3, 0] = 1e4  # clipped
    model = HARFERegressor(**SMALL, activation=activation, order=(1, 2, 3)).fit(X, y)
    panel = of(model, X, y)["what_if"]
    rows = np.vstack([X[:5], np.full((1, X.shape[1]), 3.0)])
    local = model.explain_local(rows)
    for row, wanted, components in zip(rows, model.predict(rows), local.components, strict=True):
        prediction, parts = computed(panel, row)
        assert prediction == pytest.approx(wanted, rel=1e-9)
        assert panel["adds"]["baseline"] + parts.sum() == pytest.approx(wanted, rel=1e-7)
        if panel["adds"]["kind"] == "components":
            names = [part["name"] for part in panel["inputs"]]
            sets = [" : ".join(names[i] for i in u) for u in panel["adds"]["sets"]]
            assert sets == list(local.component_names)
            np.testing.assert_allclose(parts, components, atol=1e-7 * np.abs(y).max())
    assert (panel["adds"]["kind"] == "terms") == (activation not in ("sin", "cos", "exp"))


@pytest.mark.parametrize("warp", ["log", "rank"])
def test_panels_pages_and_cautions_of_warped_inputs(warp, data):
    X, y = data.X[:120].copy(), data.y[:120]
    X[:, 0], X[:, 1] = np.exp(4 * X[:, 0]), np.exp(4 * X[:, 1]) - 2
    model = HARFERegressor(**SMALL, input_warp=warp, input_clip=None).fit(X, y)
    found = of(model, X, y)
    kinds_of_warps = ["log", "asinh"] if warp == "log" else ["rank", "rank"]
    for k, kind in enumerate(kinds_of_warps):
        label = model.expansion_.map.label(k, f"x{k}")
        assert found["inputs"][k]["warp"] == label
        assert label.startswith(kind)
    # beyond the range, too
    rows = np.vstack([X[:5], np.full((1, X.shape[1]), 3.0), -X[:1]])
    for row, wanted in zip(rows, model.predict(rows), strict=True):
        prediction, parts = computed(found["what_if"], row)
        assert prediction == pytest.approx(wanted, rel=1e-9)
        assert found["what_if"]["adds"]["baseline"] + parts.sum() == pytest.approx(wanted, rel=1e-7)
    assert "clipped inputs" not in kinds(found)
    text = render(found).replace("<wbr>", "")
    assert model.expansion_.map.label(0, "x0") in text
    assert ("interp(x0" in text) == (warp == "rank")
    for curve in found["drawn"]["curves"]:
        k = model.expansion_.columns.index(curve["component"])
        # on the axis of the user, rounded for the page
        low, high = X[:, k].min(), X[:, k].max()
        assert low - 1e-5 <= min(curve["x"]) < max(curve["x"]) <= high * (1 + 1e-5)


@pytest.mark.parametrize("warp", ["log", "asinh", "rank"])
def test_the_script_of_the_page_warps_like_the_model(warp):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on PATH to run the script of the page")
    own = InputMap(
        np.array([0.01 if warp == "log" else -1.0]),
        np.array([np.inf]),
        (
            {
                "log": Log(),
                "asinh": Asinh(0.3, 0.2),
                "rank": Rank(np.array([-1.0, 0.0, 2.0, 5.0]), np.array([0.1, 0.2, 0.8, 0.9])),
            }[warp],
        ),
    )
    script = (Path(harfe.__file__).parent / "report/page/templates/report.js").read_text("utf-8")
    start, end = script.index("const clipped ="), script.index("const feature =")
    x = np.concatenate([np.linspace(-3, 7, 41), [0.0, 2.0, 5.0]])
    input_data = {"clip": [float(own.lower[0]), None], "warp": _warp(own.warp_of(0))}
    code = (
        f"{script[start:end]} const input = {json.dumps(input_data)}; "
        f"console.log(JSON.stringify({json.dumps(x.tolist())}.map((v) => mapped(v, input))))"
    )
    done = subprocess.run([node, "-e", code], capture_output=True, text=True, check=True)
    truth = own.apply(x[:, None])[:, 0]
    np.testing.assert_allclose(json.loads(done.stdout), truth, rtol=0, atol=1e-14)


def test_curves_are_components_of_one_input(summary, model, data):
    curve = summary["drawn"]["curves"][0]
    k = model.expansion_.columns.index(curve["component"])
    rows = np.repeat(data.X[:1], len(curve["x"]), axis=0)
    rows[:, k] = curve["x"]
    local = model.explain_local(rows)
    wanted = local.components[:, local.component_names.index(curve["component"])]
    np.testing.assert_allclose(curve["y"], wanted, rtol=1e-3, atol=1e-3)
    shares = [c["share"] for c in summary["drawn"]["curves"]]
    assert shares == sorted(shares, reverse=True)


def test_maps_are_components_of_two_inputs(summary, model, data):
    part = summary["drawn"]["maps"][0]
    i, j = (model.expansion_.columns.index(name) for name in part["variables"])
    rows = np.repeat(data.X[:1], 2, axis=0)
    rows[:, i] = [part["x"][0], part["x"][4]]
    rows[:, j] = [part["y"][20], part["y"][7]]
    local = model.explain_local(rows)
    wanted = local.components[:, local.component_names.index(part["component"])]
    np.testing.assert_allclose([part["values"][0][20], part["values"][4][7]], wanted, atol=1e-2)


def test_histogram_counts_every_row_once(summary):
    assert sum(summary["distribution"]["counts"]) == 60
    assert sum(group["n_rows"] for group in summary["scatter"]["groups"]) == 60


def test_path_of_a_single_fit_ends_at_the_fit(summary):
    (line,) = summary["path"]["lines"]
    mine = next(t for t in summary["errors"]["table"] if t["rows"] == "held-out")
    assert line["size"][-1] == 15
    assert line["rmse"][-1] == pytest.approx(mine["rmse"], rel=1e-6)
    assert line["size"] == sorted(line["size"])


def test_path_of_a_search_is_its_own_table(data):
    X, y = data.X[:100], data.y[:100]
    model = HARFERegressorCV(
        200,
        law="grid",
        orders=[1, 2],
        scales=[0.5, 1.0, 2.0],
        n_nonzero_coefs=[4, 10],
        alphas=[1e-4, 1e-2],
        cv=3,
        random_state=0,
    ).fit(X, y)
    path = of(model, X, y)["path"]
    chosen = next(line for line in path["lines"] if line["chosen"])
    pool = model.pools_.index((model.order_, model.scale_))
    wanted = np.sqrt(np.nanmin(model.mse_path_[pool].mean(axis=2), axis=1))
    np.testing.assert_allclose(chosen["rmse"], wanted)
    assert len(path["lines"]) == 2
    assert path["chosen_size"] == model.n_nonzero_coefs_
    assert "best of the other pools" in render(of(model, X, y))


def test_a_learned_law_is_told(data):
    X, y = data.X[:60, :3], data.y[:60]
    model = HARFERegressorCV(
        200, n_nonzero_coefs=[3, 6], alphas=[1e-3], cv=2, refine=False, random_state=0
    ).fit(X, y)
    found = of(model, X, y)
    laws = {law["candidate"]: law for law in found["laws"]}
    assert set(laws) == set(model.learned_law_.errors)
    for name, error in model.learned_law_.errors.items():
        assert laws[name]["rmse"] == pytest.approx(np.sqrt(error))
        assert laws[name]["used"] == (name in model.learned_law_.candidate.split(" + "))
    chosen = next(line for line in found["path"]["lines"] if line["chosen"])
    wanted = np.sqrt(
        np.nanmin(model.mse_path_[model.pools_.index(model.fit_)].mean(axis=2), axis=1)
    )
    np.testing.assert_allclose(chosen["rmse"], wanted)
    page = render(found)
    assert "The law of the features was learned" in page
    assert "held-out folds" in page


def test_few_rows_and_extrapolation(data):
    X, y = data.X[:40], data.y[:40]
    model = HARFERegressor(**SMALL).fit(X, y)
    found = of(model, X, y, X_holdout=data.X[40:] * 2, y_holdout=data.y[40:])
    assert {"few rows", "extrapolation", "overfitting"} <= kinds(found)


def test_noise_is_no_better_than_the_mean(data):
    noise = np.random.default_rng(0).normal(size=260)
    model = HARFERegressor(**SMALL).fit(data.X[:60], noise[:60])
    found = of(model, data.X[:60], noise[:60], X_holdout=data.X[60:], y_holdout=noise[60:])
    assert "no better than the mean" in kinds(found)


def test_a_line_is_no_task_for_waves(data):
    y = data.X @ np.arange(10.0)
    model = HARFERegressor(**SMALL).fit(data.X[:100], y[:100])
    found = of(model, data.X[:100], y[:100], X_holdout=data.X[100:], y_holdout=y[100:])
    assert "no better than a linear model" in kinds(found)


def test_deviation_of_a_component_is_that_of_its_coefficients(summary, model, data):
    """A component is linear in the coefficients: one fit of a unit coefficient at a time."""
    expansion, posterior = model.expansion_, model.uncertainty_.posterior
    gram = posterior.factor @ posterior.factor.T
    covariance = model.uncertainty_.noise[0] / posterior.total_weight * np.linalg.inv(gram)
    covariance /= np.outer(posterior.scale, posterior.scale)
    parts = anova(expansion, model.inputs_.distribution)
    deviations = ComponentPosterior.of(model, parts)
    for u in (parts.sets[0], parts.sets[-1]):
        X_u = data.X[:4, list(u)]
        columns = []
        for one in np.eye(len(expansion.features)):
            alone = anova(replace(expansion, coef=one[None]), model.inputs_.distribution)
            columns.append(alone.component(u, X_u))
        wanted = np.sqrt(np.einsum("jr,jk,kr->r", columns, covariance, columns))
        np.testing.assert_allclose(deviations.deviation(u, X_u), wanted, rtol=1e-8)
    curve = summary["drawn"]["curves"][0]
    k = expansion.columns.index(curve["component"])
    again = deviations.deviation((k,), np.array(curve["x"])[:, None])
    np.testing.assert_allclose(curve["deviation"], again, rtol=1e-3)


def test_components_that_noise_made_are_called_unstable(data):
    rng = np.random.default_rng(0)
    y = 5 * np.sin(3 * data.X[:, 0]) + rng.normal(size=260)
    model = HARFERegressor(**{**SMALL, "n_nonzero_coefs": 40}, residual_cv=3).fit(data.X, y)
    found = of(model, data.X, y)
    assert "unstable components" in kinds(found)
    exact = HARFERegressor(300, 4, order=1, random_state=0, residual_cv=3)
    smooth = 5 * np.sin(3 * data.X[:, 0])
    assert "unstable components" not in kinds(
        of(exact.fit(data.X[:, :1], smooth), data.X[:, :1], smooth)
    )


def test_stability_is_told(model, data):
    X, y = data.X[:200], data.y[:200]
    stability = model.stability(X, y, n_draws=3)
    found = of(model, X, y, stability=stability)
    assert any("3 fits" in caution["text"] for caution in found["cautions"])
    assert "Kept in 3 draws" in render(found)


def test_clipped_inputs_and_unfinished_rounds_are_told(data):
    X = data.X[:100].copy()
    X[0, 3] = 50.0
    with pytest.warns(UserWarning, match="max_iter"):
        model = HARFERegressor(**SMALL, max_iter=1).fit(X, data.y[:100])
    assert {"clipped inputs", "not converged"} <= kinds(of(model, X, data.y[:100]))


def test_rows_that_are_not_those_of_the_fit_are_reported(summary, model, data):
    assert "other rows" not in kinds(summary)
    X, y = data.X[200:], data.y[200:]
    found = of(model, X, y)
    assert {"other rows", "extrapolation"} <= kinds(found)
    assert found["errors"]["judged_on"] == "given"
    lines = {line["model"]: line["rmse"] for line in found["errors"]["table"]}
    assert lines["this model"] == pytest.approx(np.sqrt(np.mean((y - model.predict(X)) ** 2)))
    # The simple models must not have seen the rows either.
    linear = LinearRegression().fit(X, y)
    assert lines["linear model"] > np.sqrt(np.mean((y - linear.predict(X)) ** 2))
    assert "200 rows with 10 inputs" in render(found)


def test_several_targets_have_a_page_each(data):
    Y = np.column_stack([data.y[:100], -2 * data.y[:100]])
    model = HARFERegressor(**SMALL).fit(data.X[:100], Y)
    first, second = (of(model, data.X[:100], Y, target=t) for t in (0, 1))
    assert second["errors"]["table"][0]["rmse"] == pytest.approx(
        2 * first["errors"]["table"][0]["rmse"]
    )
    assert "target 2 of 2" in render(second)


def test_categories_become_choices():
    rng = np.random.default_rng(0)
    table = {
        "size": rng.uniform(0, 10, 90),
        "colour": rng.choice(["red", "green", "blue"], 90),
        "old": rng.choice(["no", "yes"], 90),
    }
    price = table["size"] + 3.0 * (table["colour"] == "red") + 2.0 * (table["old"] == "yes")
    fitted = TableModel.fit({**table, "price": price}, "price", HARFERegressor(**SMALL))
    found = summarise(fitted, table, price)
    assert found["target"] == "price"
    names = {choice["name"]: choice for choice in found["what_if"]["choices"]}
    assert names["colour"]["levels"] == ["blue", "green", "red"]
    assert names["old"]["levels"] == ["no", "yes"]
    assert names["old"]["inputs"][0] is None
    # They start at the most frequent level.
    levels, counts = np.unique(table["colour"], return_counts=True)
    place = names["colour"]["inputs"][int(np.argmax(counts))]
    assert found["what_if"]["inputs"][place]["start"] == 1
    starts = [found["what_if"]["inputs"][i]["start"] for i in names["colour"]["inputs"]]
    assert sum(starts) == 1
    # Without an encoder, names and values tell the same.
    X = fitted.encoder.encode(table)
    model = fitted.model
    again = summarise(model, X, price)["what_if"]["choices"]
    assert [choice["name"] for choice in again] == ["colour"]
    assert levels[int(np.argmax(counts))] in names["colour"]["levels"]


def test_page_of_twenty_inputs_is_small():
    X = np.random.default_rng(0).uniform(size=(400, 20))
    y = np.sin(X @ np.linspace(1, 4, 20)) + X[:, 0] * X[:, 1]
    frame = pd.DataFrame(X, columns=[f"a name of this length {k}" for k in range(20)])
    model = HARFERegressor(2000, 400, order=(1, 2, 3), random_state=0, residual_cv=2)
    model.fit(frame[:300], y[:300])
    page = render(of(model, frame[:300], y[:300], X_holdout=frame[300:], y_holdout=y[300:]))
    assert len(model.expansion_.features) == 400
    assert len(page.encode()) < 500_000


HOSTILE = [
    '</script><script>alert("1")</script>',
    "<b>x</b>",
    "a&b's &lt;",
    "{{ 7*7 }}",
    "{% raw %}{# #}",
    '" onload="alert(1)" x="',
    "${target}`",
]


class Elements(HTMLParser):
    """Elements of a page with the names of their attributes, and its texts and attribute values."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag != "wbr":  # names may be broken after an underscore
            self.elements.append((tag, *(name for name, _ in attrs)))
        self.texts += [value for _, value in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def test_hostile_names_are_text_wherever_they_come(data):
    """The page has the elements of a page with plain names, and shows every name as it is."""

    def page(names, target, meta):
        X = pd.DataFrame(data.X[:80, :7], columns=names)
        model = HARFERegressor(**SMALL, order=(1, 2), residual_cv=3).fit(X, data.y[:80])
        stability = model.stability(X, data.y[:80], n_draws=2)
        found = of(model, X, data.y[:80], target_name=target, stability=stability)
        found["meta"] = meta
        found["cautions"].append({"kind": target, "text": target})
        found["explanation"]["notes"].append(target)
        found["laws"] = [{"candidate": target, "rmse": 1.0, "used": True}]
        found["settings"][target] = target
        for line in found["path"]["lines"]:
            line["name"] = target
        return render(found)

    plain = Elements(page([f"x{k}" for k in range(7)], "y", {"source": "file", "more": ["a"]}))
    bad = "</title><i>{{ 7*7 }}'\""
    text = page(HOSTILE, bad, {"source": bad, bad: [bad]})
    hostile = Elements(text)
    assert hostile.elements == plain.elements
    assert text.count("</script>") == 2
    shown = "".join(filter(None, hostile.texts))
    # Title, heading, fact, labels of axes, caution, note, law, setting, further facts.
    assert shown.count(bad) > 10
    for name in HOSTILE:
        assert shown.count(name) >= 3
    stored = re.search('<script type="application/json" id="data">(.*?)</script>', text, re.S)
    names = [part["name"] for part in json.loads(stored[1])["what_if"]["inputs"]]
    assert set(names) == set(HOSTILE)


@pytest.mark.slow
def test_jinja_is_imported_for_a_page_only(tmp_path):
    code = f"""
import sys
import numpy as np
import harfe, harfe.report
from harfe.cli.main import main
table = {str(tmp_path / "table.csv")!r}
rows = np.random.default_rng(0).normal(size=(40, 3))
np.savetxt(table, rows, delimiter=",", header="a,b,c", comments="")
fit = ["fit", table, "--target", "c", "--fixed", "--force", "-o", {str(tmp_path / "m.harfe")!r}]
assert main(fit) == 0
before = "jinja2" in sys.modules
assert main([*fit, "--report", {str(tmp_path / "page.html")!r}]) == 0
print("jinja2:", before, "jinja2" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "jinja2: False True"


def test_page_asks_for_nothing_outside(summary):
    page = render(summary)
    assert not re.search(r"https?://|src=|@import|url\(", page)
    assert "default-src 'none'" in page


def test_file_is_written_whole_or_not_at_all(tmp_path, model, data, monkeypatch):
    path = tmp_path / "report.html"
    write_report(model, data.X[:200], data.y[:200], path, target_name="y")
    first = path.read_text(encoding="utf-8")
    assert first.startswith("<!DOCTYPE html>")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(model, data.X[:200], data.y[:200], path, target_name="other")
    assert path.read_text(encoding="utf-8") == first
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_reported_is_refused(model, data):
    X, y = data.X[:200], data.y[:200]
    with pytest.raises(ValueError, match="belong together"):
        summarise(model, X, y, X_holdout=X)
    with pytest.raises(ValueError, match="not fitted"):
        summarise(HARFERegressor(), X, y)
    with pytest.raises(ValueError, match="target=1"):
        summarise(model, X, y, target=1)
    with pytest.raises(ValueError, match="2 targets"):
        summarise(model, X, np.column_stack([y, y]))
    complex_model = HARFERegressor(**SMALL, activation="exp").fit(X, y + 1j)
    with pytest.raises(ValueError, match="real targets"):
        summarise(complex_model, X, y + 1j)


def test_a_constant_model_has_a_page(data):
    X = np.zeros((30, 2))
    model = HARFERegressor(20, 3, random_state=0).fit(X, np.arange(30.0))
    found = of(model, X, np.arange(30.0))
    assert json.dumps(found, allow_nan=False)
    assert "Model of y" in render(found)


def test_formula_is_cut_between_its_features():
    text = "1.2 - 3*sin(0.5*`a - b (c` + 2) + 4*cos(-x1 - 1)"
    assert formula_lines(text) == ["1.2", "- 3*sin(0.5*`a - b (c` + 2)", "+ 4*cos(-x1 - 1)"]
    assert formula_lines("-0.5*relu(x)") == ["-0.5*relu(x)"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-1.5, "−1.5"),
        (1234.56, "1235"),
        (123456.0, "123456"),
        (0.00012345, "0.0001234"),
        (1.5e-7, "1.5e−7"),
        (-2.0e9, "−2e9"),
        (750, "750"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_numbers_have_sensible_digits(value, text):
    assert number(value) == text


def test_columns_of_numbers_are_aligned():
    assert aligned([1.127, 2.4, None, 5.0]) == ["1.127", "2.400", "–", "5.000"]
    assert aligned([1e-8, 1.0]) == ["1e−8", "1"]
    assert percent(0.1234) == "12.3\u00a0%"
    assert percent(1e-5).startswith("<")


def test_ticks_are_round_and_inside():
    assert Axis(-0.3, 10.4).ticks() == [0, 2, 4, 6, 8, 10]
    assert Axis(0.8, 300.0, log=True).ticks() == [1, 10, 100]
    assert Axis(2, 200, log=True).ticks() == [2, 5, 10, 20, 50, 100, 200]
    for low, high in [(1e-9, 1.1e-9), (-5e7, 3e7), (0.0, 1.0)]:
        ticks = Axis(low, high).ticks()
        assert 3 <= len(ticks) <= 9
        assert all(low - 1e-12 * high <= tick <= high * (1 + 1e-12) for tick in ticks)
