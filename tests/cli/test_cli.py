"""The harfe command: its files, output, messages and exit codes."""

import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import harfe
from harfe import HARFERegressor, HARFERegressorCV
from harfe.cli.main import main, make_parser
from harfe.datasets.download import DownloadError, download_real
from harfe.report import summarise
from harfe.tables import TableModel, read_table

FAST = ["--fixed", "--features", "200", "--size", "12", "--alpha", "1e-6", "--cv", "3"]


def write_csv(path, columns, delimiter=","):
    rows = zip(*columns.values(), strict=True)
    lines = [delimiter.join(columns), *(delimiter.join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def table(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    color = rng.choice(["red", "blue", "green"], rows)
    effect = np.array([{"red": 0.0, "blue": 2.0, "green": -1.0}[c] for c in color])
    size = rng.uniform(0, 4, rows).round(6)
    return {
        "key": [f"k{i:03}" for i in range(rows)],
        "size": size,
        "color": color,
        "price": np.sin(size) + effect,
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with the example as houses.csv."""
    monkeypatch.chdir(tmp_path)
    write_csv("houses.csv", table())
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model written by the command."""
    folder = tmp_path_factory.mktemp("fitted")
    data = write_csv(folder / "houses.csv", table())
    path = folder / "model.harfe"
    given = ["--target", "price", "--drop", "key", "-o", str(path), "--quiet"]
    assert main(["fit", str(data), *given, *FAST]) == 0
    return path


@pytest.fixture
def run(capsys):
    """Run the command: exit code, output, and messages."""

    def run(*words):
        code = main([str(word) for word in words])
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return code, told.out, told.err

    return run


def one_sentence(told):
    """The text of an error on one line."""
    assert told.startswith("harfe: ")
    assert told.count("\n") == 1
    return told


# -------------------------------------------------------------------------------------------- fit


@pytest.mark.usefixtures("fitted")  # compiles, which would be announced
def test_fit_saves_a_model_and_tells_its_held_out_error(here, run):
    code, out, err = run("fit", "houses.csv", "--target", "price", "--drop", "key", *FAST)
    assert code == 0
    assert err == ""
    model = harfe.load("model.harfe")
    assert isinstance(model, TableModel)
    assert model.encoder.columns_out == ("size", "color=blue", "color=green", "color=red")
    # The same model from Python, and its error out of the folds.
    data = {name: column for name, column in table().items() if name != "key"}
    twin = TableModel.fit(
        data, "price", HARFERegressor(200, 12, alpha=1e-6, residual_cv=3, random_state=0)
    )
    np.testing.assert_allclose(model.predict(data), twin.predict(data), rtol=1e-9)
    error = model.meta["error"]
    assert error["kind"] == "out-of-fold"
    assert error == twin.meta["error"]
    mine = error["models"]["this model"]
    assert mine["rmse"] == pytest.approx(np.sqrt(twin.model.uncertainty_.mean_square[0]))
    assert mine["r2"] == pytest.approx(1 - mine["rmse"] ** 2 / np.var(data["price"]))
    linear, null = (error["models"][name]["rmse"] for name in ("linear model", "null model"))
    assert linear < mine["rmse"] < null
    assert "A linear model predicts as well or better here" in out
    assert "each of 3 folds predicted by a model fitted without it" in out
    assert "price from 2 columns (4 inputs), fitted to 60 rows of houses.csv" in out
    assert "12 sines" in out
    assert "color=blue" in out


def test_out_of_fold_error_is_that_of_the_folds(here):
    """With fixed settings the error can be computed by hand."""
    from harfe._core.folds import make_folds

    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    settings = {"n_components": 100, "n_nonzero_coefs": 5, "random_state": 0}
    model = HARFERegressor(**settings, residual_cv=4).fit(X, y)
    squares = [
        (y[out] - HARFERegressor(**settings).fit(X[train], y[train]).predict(X[out])) ** 2
        for train, out in make_folds("cv", 4, X, y, model.seed_)
    ]
    assert model.uncertainty_.mean_square == pytest.approx([np.concatenate(squares).mean()])


def test_fit_with_rows_set_aside(here, run):
    words = ["fit", "houses.csv", "-t", "price", "--drop", "key", *FAST[:-2], "--holdout", "0.25"]
    code, out, _ = run(*words)
    assert code == 0
    assert "on 15 rows set aside, 25 %" in out
    model = harfe.load("model.harfe")
    assert model.meta["rows"] == 45
    # The rows that were set aside are those of the seed, and the fit has not seen them.
    frame = read_table("houses.csv")
    order = np.random.default_rng(0).permutation(60)
    out_rows, in_rows = np.sort(order[:15]), np.sort(order[15:])
    X, y = model.encoder.encode(frame), frame["price"]
    residual = y[out_rows] - model.model.predict(X[out_rows])
    error = model.meta["error"]["models"]
    assert error["this model"]["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    null = np.sqrt(np.mean((y[out_rows] - y[in_rows].mean()) ** 2))
    assert error["null model"]["rmse"] == pytest.approx(null)
    twin = HARFERegressor(200, 12, alpha=1e-6, residual_cv=5, random_state=0)
    twin.fit(X[in_rows], y[in_rows])
    np.testing.assert_allclose(model.model.predict(X), twin.predict(X), rtol=1e-9)


def test_fit_chooses_by_default(here, run, monkeypatch):
    seen = {}

    def fit(self, X, y, sample_weight=None):
        seen.update(self.get_params())
        raise ValueError("seen enough")

    monkeypatch.setattr(HARFERegressorCV, "fit", fit)
    words = ["fit", "houses.csv", "-t", "price", "--drop", "key"]
    code, _, err = run(*words)
    assert (code, one_sentence(err)) == (1, "harfe: seen enough\n")
    default = HARFERegressorCV().get_params()
    assert {k: v for k, v in seen.items() if v != default[k]} == {
        "verbose": True,
        "random_state": 0,
    }
    run(*words, "--size", "7", "--order", "2", "--seed", "3", "--quiet", "--max-time", "9")
    assert {k: v for k, v in seen.items() if v != default[k]} == {
        "n_nonzero_coefs": [7],
        "interaction_cst": "pairwise",
        "random_state": 3,
        "max_time": 9.0,
    }
    run(*words, "--order", "3", "--cv", "4", "--activation", "cos", "--jobs", "2")
    changed = {k: v for k, v in seen.items() if v != default[k] and k != "verbose"}
    assert changed == {
        "law": "grid",
        "orders": [1, 2, 3],
        "cv": 4,
        "activation": "cos",
        "n_jobs": 2,
        "random_state": 0,
    }
    run(*words, "--grid", "--order", "1")
    assert (seen["law"], seen["orders"]) == ("grid", [1])
    run(*words, "--order", "1")
    assert seen["interaction_cst"] == "no_interactions"


def test_a_search_by_the_command_tells_how_it_goes(here, run):
    words = ["fit", "houses.csv", "-t", "price", "--drop", "key", "--grid", "--cv", "2"]
    code, out, err = run(*words, "--order", "1", "--size", "5")
    assert code == 0
    assert re.search(r"harfe: \d+ of \d+ fits, \d+ s left, best MSE .* \(order 1", err)
    assert "each of 2 folds predicted by a model chosen and fitted without it" in out
    model = harfe.load("model.harfe")
    assert isinstance(model.model, HARFERegressorCV)
    assert len(model.support_) == 5


def test_missing_values_and_columns_that_say_nothing(here, run):
    data = table()
    data["size"] = ["" if i in (3, 7) else v for i, v in enumerate(data["size"])]
    write_csv("gaps.csv", {"same": [1] * 60, **data})
    words = ["fit", "gaps.csv", "--target", "price", "--drop", "key", *FAST]
    code, _, err = run(*words)
    assert code == 1
    assert "2 of 60 rows of gaps.csv have missing values, first line 5" in one_sentence(err)
    assert "--missing drop" in err
    code, _, err = run(*words, "--missing", "drop")
    assert code == 0
    assert "note: column 'same' is left out: it is 1 in every row" in err
    assert "note: 2 of 60 rows are left out" in err
    assert harfe.load("model.harfe").meta["rows"] == 58
    assert run(*words, "--missing", "median", "--force", "--quiet") == (0, "", "")
    assert harfe.load("model.harfe").meta["rows"] == 60


def test_weights_and_categories_by_option(here, run):
    data = {**table(), "region": np.arange(60) % 3, "w": np.arange(60) % 2}
    write_csv("more.csv", data)
    words = ["fit", "more.csv", "-t", "price", "--drop", "key, color", *FAST, "--quiet"]
    assert run(*words, "--weight", "w", "--categories", "region")[0] == 0
    model = harfe.load("model.harfe")
    assert model.encoder.columns_out == ("size", "region=0", "region=1", "region=2")
    assert model.meta["weight"] == "w"
    assert model.model.inputs_.total_weight == 30


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing.csv", "-t", "y"], "file 'nothing.csv' not found"),
        (["house.csv", "-t", "y"], "did you mean 'houses.csv'?"),
        (["houses.csv", "-t", "prise"], "the nearest is 'price': pass --target price"),
        (["houses.csv", "-t", "color"], "the target 'color' holds text"),
        (["houses.csv", "-t", "price"], "pass --drop key to leave out"),
        (["houses.csv", "-t", "price", "--drop", "kye"], "the nearest is 'key'"),
        (["houses.csv", "-t", "price", "-o", "no/m.harfe"], "there is no folder 'no'"),
        (
            ["houses.csv", "-t", "price", "-o", "."],
            "'.' is a folder: type -o and the name of a file",
        ),
        (["houses.csv", "-t", "price", "-o", "houses.csv"], "type --force to replace it"),
        (["houses.csv", "-t", "price", "--report", "no/r.html"], "type --report and another"),
        (["houses.csv", "-t", "price", "--report", "model.harfe"], "name the same file"),
        (["houses.csv", "-t", "price", "--drop", "key", "--cv", "50"], "60 rows are too few"),
        (["houses.csv", "-t", "price", "--drop", "key", "--holdout", "0.001"], "sets 0 of 60"),
        (["houses.csv", "-t", "price", "--delimiter", "ab"], "must be a single character"),
        (["houses.csv", "-t", "price", "--drop", "key", "--weight", "x"], "no column 'x'"),
    ],
)
def test_mistakes_about_the_input_get_one_sentence_and_exit_code_1(here, run, words, told):
    code, out, err = run("fit", *words)
    assert (code, out) == (1, "")
    assert told in one_sentence(err)
    assert not Path("model.harfe").exists()


def test_a_constant_target_has_nothing_to_learn(here, run):
    write_csv("same.csv", {"a": [1, 2] * 10, "y": [3] * 20})
    assert "the target 'y' is 3 in every row" in one_sentence(run("fit", "same.csv", "-t", "y")[2])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fit"], "required: data; see harfe fit --help"),
        (["fit", "houses.csv"], "Type --target and one of: key, size, color, price"),
        (["fit", "houses.csv", "--traget", "y"], "did you mean --target?"),
        (["fit", "houses.csv", "more.csv", "-t", "y"], "unexpected argument 'more.csv'"),
        (["fit", "houses.csv", "-t", "y", "--holdout", "3"], "must be between 0 and 1"),
        (["fit", "houses.csv", "-t", "y", "--holdout", "0.2", "--cv", "5"], "not allowed with"),
        (["fit", "houses.csv", "-t", "y", "--cv", "1"], "at least 2"),
        (["fit", "houses.csv", "-t", "y", "--alpha", "few"], "'few' is not a number"),
        (["fit", "houses.csv", "-t", "y", "--alpha", "-1"], "must be above 0"),
        (["fit", "houses.csv", "-t", "y", "--size", "1.5"], "whole number of at least 1"),
        (["predict", "m", "d", "--interval", "9"], "must be between 0 and 1, e.g. 0.9"),
        (["predict", "m", "d", "--interval", "high"], "must be between 0 and 1, e.g. 0.9"),
        (["export", "m", "m.onnx"], "unexpected argument 'm.onnx' (-o names the file to write)"),
        (["predikt"], "invalid choice: 'predikt'"),
        (["--vesion"], "did you mean --version?"),
    ],
)
def test_bad_options_get_one_sentence_and_exit_code_2(here, run, words, told):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert told in one_sentence(err)


def test_help_teaches(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "harfe fit example.csv --target y" in out
    for name in ("fit", "predict", "explain", "report", "compare", "export", "demo", "datasets"):
        assert f"\n    {name} " in out
        code, about, _ = run(name, "--help")
        assert code == 0
        assert f"examples:\n  harfe {name}" in about
    assert run() == (2, out, "")
    assert run("--version")[1] == f"harfe {harfe.__version__}\n"


# ---------------------------------------------------------------------------------------- predict


def read_back(path_or_text):
    if isinstance(path_or_text, str):
        Path("back.csv").write_text(path_or_text)
        path_or_text = "back.csv"
    return read_table(path_or_text)


def test_predict_writes_what_the_model_predicts(here, run, fitted):
    model = harfe.load(fitted)
    code, out, err = run("predict", fitted, "houses.csv")
    assert (code, err) == (0, "")
    frame = read_back(out)
    assert frame.names == ("prediction",)
    expected = model.predict(read_table("houses.csv"))
    np.testing.assert_array_equal(frame["prediction"], expected)
    code, out, err = run(
        "predict", fitted, "houses.csv", "--id", "key,size", "--std", "-o", "o.csv"
    )
    assert (code, out, err) == (0, "", "harfe: wrote predictions for 60 rows to o.csv\n")
    frame = read_table("o.csv")
    assert frame.names == ("key", "size", "prediction", "std")
    assert list(frame["key"]) == table()["key"]
    np.testing.assert_array_equal(frame["size"], table()["size"])
    _, std = model.predict(read_table("houses.csv"), return_std=True)
    np.testing.assert_array_equal(frame["std"], std)


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.parquet"])
def test_predict_writes_by_the_ending(here, run, fitted, name):
    code, _, _ = run(
        "predict", fitted, "houses.csv", "--interval", "0.8", "--id", "key", "-o", name
    )
    assert code == 0
    frame = read_table(name)
    assert frame.names == ("key", "prediction", "lower", "upper")
    prediction, lower, upper = harfe.load(fitted).predict(read_table("houses.csv"), interval=0.8)
    for column, expected in zip(frame.columns[1:], (prediction, lower, upper), strict=True):
        np.testing.assert_array_equal(column, expected)
    assert os.listdir() == ["houses.csv", name] or sorted(os.listdir()) == sorted(
        ["houses.csv", name]
    )


def test_predict_answers_in_the_dialect_of_the_question(here, run, fitted):
    text = "key;size;color\r\na;1,5;red\r\nb;2,25;blue\r\n"
    Path("excel.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    _, out, _ = run("predict", fitted, "excel.csv", "--id", "key")
    lines = out.splitlines()
    assert lines[0] == "key;prediction"
    values = [float(line.split(";")[1].replace(",", ".")) for line in lines[1:]]
    assert "." not in out
    expected = harfe.load(fitted).predict({"size": [1.5, 2.25], "color": ["red", "blue"]})
    np.testing.assert_array_equal(values, expected)


def test_predict_from_standard_input_and_parquet_in_blocks(here, run, fitted, monkeypatch):
    model = harfe.load(fitted)
    data = table(300, seed=1)
    write_csv("big.csv", data)
    expected = model.predict({"size": data["size"], "color": data["color"]})
    pq.write_table(pa.table(data), "big.parquet", row_group_size=70)
    monkeypatch.setattr("harfe.tables.readers.csv.CSV_BLOCK", 64)
    monkeypatch.setattr("harfe.tables.readers.parquet.PARQUET_BLOCK", 64)
    for name in ("big.csv", "big.parquet"):
        _, out, _ = run("predict", fitted, name, "--id", "key")
        frame = read_back(out)
        np.testing.assert_array_equal(frame["prediction"], expected)
        assert list(frame["key"]) == data["key"]
        stdin = io.TextIOWrapper(io.BytesIO(Path(name).read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run("predict", fitted, "-", "--id", "key")[1] == out


def test_predict_with_missing_values_and_new_levels(here, run, fitted):
    write_csv("new.csv", {"size": [1, "", 2], "color": ["red", "red", "pink"]})
    code, out, err = run("predict", fitted, "new.csv", "-o", "o.csv")
    assert (code, out) == (1, "")
    assert "1 of 3 rows of new.csv have missing values, first line 3" in one_sentence(err)
    assert os.listdir().count("o.csv") == 0
    code, out, err = run("predict", fitted, "new.csv", "--missing", "drop")
    assert code == 0
    assert out.splitlines()[2] in ("", '""')
    assert "note: the model has not seen color=pink (1 row)" in err
    assert "note: 1 row with missing values got no prediction" in err
    code, out, _ = run("predict", fitted, "new.csv", "--missing", "median")
    model = harfe.load(fitted)
    fill = model.encoder.columns[0].fill
    assert float(out.splitlines()[2]) == model.predict({"size": [fill], "color": ["red"]})[0]


@pytest.mark.parametrize(
    ("columns", "words", "told"),
    [
        ({"size": [1], "colour": ["red"]}, [], "has no column 'color'; the nearest is 'colour'"),
        ({"a": [1], "b": [2]}, [], "lacks 2 columns that the model needs ('size', 'color'"),
        ({"size": ["big"], "color": ["red"]}, [], "'big' in line 2 of new.csv is not one"),
        ({"size": [1], "color": ["red"]}, ["--id", "kee"], "no column 'kee'"),
        ({"size": [1], "color": ["red"]}, ["-o", "houses.csv"], "--force"),
        ({"size": [1], "color": ["x"], "std": [1]}, ["--id", "std", "--std"], "rename it"),
    ],
)
def test_tables_that_do_not_fit_the_model(here, run, fitted, columns, words, told):
    write_csv("new.csv", columns)
    code, out, err = run("predict", fitted, "new.csv", *words)
    assert (code, out) == (1, "")
    assert told in one_sentence(err)


def test_what_is_no_model(here, run):
    for path, told in [
        ("gone.harfe", "'gone.harfe' does not exist: pass a file written by harfe fit"),
        (".", "is a folder"),
        ("houses.csv", "houses.csv"),
    ]:
        for words in (["predict", path, "houses.csv"], ["explain", path]):
            code, out, err = run(*words)
            assert (code, out) == (1, "")
            assert told in one_sentence(err)
    # The words in the wrong order.
    assert run("predict", "houses.csv", "model.harfe")[0] == 1


def test_a_model_saved_in_python_predicts_too(here, run):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = HARFERegressor(50, 5, random_state=0).fit(X, X[:, 0])
    harfe.save(model, "plain.harfe")
    write_csv("x.csv", {"x1": X[:, 1], "x0": X[:, 0]})
    code, out, _ = run("predict", "plain.harfe", "x.csv")
    assert code == 0
    np.testing.assert_array_equal(read_back(out)["prediction"], model.predict(X))
    code, _, err = run("predict", "plain.harfe", "x.csv", "--std")
    assert code == 1
    assert "has no held-out errors stored" in one_sentence(err)
    assert "Error    not measured" in run("explain", "plain.harfe")[1]


# --------------------------------------------------------------------------------------- the rest


def test_explain_tells_what_matters(fitted, run):
    code, out, err = run("explain", fitted)
    assert (code, err) == (0, "")
    assert "Model    price from 2 columns (4 inputs), fitted to 60 rows of houses.csv" in out
    assert "Error on new rows (each of 3 folds" in out
    # color moves the price more than size.
    lines = out.split("Which inputs matter")[1].splitlines()
    assert lines[1].split()[0].startswith("color=")
    model = harfe.load(fitted)
    _, out, _ = run("explain", fitted, "--formula")
    assert out.startswith("price = ")
    assert out.count("sin(") == len(model.support_)
    assert run("explain", fitted, "--formula", "latex", "--precision", "2")[1].count("\\sin") == 12
    _, out, _ = run("explain", fitted, "--json")
    content = json.loads(out)
    assert content["target"] == "price"
    assert content["explanation"]["sobol"]["variable"] == list(model.expansion_.columns)
    assert content["encoder"] == model.encoder.to_dict()
    assert content["meta"]["error"]["kind"] == "out-of-fold"


def test_a_link_by_option(here, run):
    data = {**table(), "price": np.exp(table()["price"])}
    write_csv("houses.csv", data)
    words = ["fit", "houses.csv", "-t", "price", "--drop", "key", *FAST, "--link", "log"]
    code, out, _ = run(*words, "--report", "page.html")
    assert code == 0
    assert "Scale    log(price)" in out
    model = harfe.load("model.harfe")
    assert model.model.link == "log"
    error = model.meta["error"]["models"]["this model"]["rmse"]
    assert error == pytest.approx(np.sqrt(model.uncertainty_.mean_square[0]))
    _, out, _ = run("explain", "model.harfe")
    assert "Scale    log(price)" in out
    assert "Note: the model is a sum on the scale of its link, log" in out
    assert "*exp(clip(" in run("explain", "model.harfe", "--formula")[1]
    assert "log(price)" in Path("page.html").read_text(encoding="utf-8")
    code, out, _ = run("predict", "model.harfe", "houses.csv", "--interval", "0.5")
    assert code == 0
    numbers = np.genfromtxt(io.StringIO(out), delimiter=",", skip_header=1)[:, -3:]
    expected = np.transpose(model.predict({k: data[k] for k in ("size", "color")}, interval=0.5))
    np.testing.assert_allclose(numbers, expected, rtol=1e-5)
    write_csv("houses.csv", {**data, "price": -data["price"]})
    code, _, err = run(*words, "--force")
    assert code == 1
    assert "link='log' needs positive targets" in one_sentence(err)


def test_commands_and_page_rank_the_inputs_alike(here, run):
    # c repeats b with a little noise: both matter, and a note says that their shares are unsure.
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 80))
    c = b + 0.1 * rng.normal(size=80)
    table = np.column_stack([a, b, c, np.sin(a) + np.sin(b) + np.sin(c)])
    np.savetxt("t.csv", table, delimiter=",", header="a,b,c,y", comments="")
    words = ["fit", "t.csv", "-t", "y", "--fixed", "--size", "10", "--report", "r.html"]
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    model = harfe.load("model.harfe")
    with pytest.warns(UserWarning, match="correlated"):
        told = model.explain()
    shares = dict(zip(told.sobol["variable"], told.sobol["total"], strict=True))
    ranked = sorted(shares, key=lambda name: -shares[name])

    def printed(text):
        lines = text.split("Which inputs matter")[1].splitlines()[1:4]
        return [line.replace("%", " ").split()[:2] for line in lines]

    for text in (out, run("explain", "model.harfe")[1]):
        assert [name for name, _ in printed(text)] == ranked
        assert [float(share) for _, share in printed(text)] == pytest.approx(
            [100 * shares[name] for name in ranked], abs=0.5
        )
    assert sum("correlated" in line for line in out.splitlines()) == 1
    page = Path("r.html").read_text()
    cells = page.split("if inputs vary independently")[1].split("</table>")[0]
    assert sorted(ranked, key=lambda name: cells.index(f">{name}<")) == ranked


def test_commands_of_the_readme_can_be_typed():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in readme.split("```sh\n")[1:]]
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    typed = [words[1:] for words in lines if words[:1] == ["harfe"]]
    parser, commands = make_parser()
    for words in typed:
        assert parser.parse_args(words).command == words[0]
    assert {words[0] for words in typed} == set(commands) - {"datasets"}


def test_report_by_either_command(here, run):
    words = ["fit", "houses.csv", "-t", "price", "--drop", "key", *FAST[:-2], "--holdout", "0.2"]
    code, out, _ = run(*words, "--report", "r.html")
    assert code == 0
    assert out.endswith("Report   r.html\n")
    first = Path("r.html").read_text()
    assert first.startswith("<!DOCTYPE html>")
    code, out, err = run("report", "model.harfe", "houses.csv", "-o", "s.html")
    assert (code, out, err) == (0, "Report   s.html\n", "")
    # The same rows are set aside again: the pages agree but for the time.
    second = Path("s.html").read_text()
    clock = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
    assert clock.sub("", first) == clock.sub("", second)
    write_csv("new.csv", table(40, seed=5))
    code, _, err = run("report", "model.harfe", "new.csv", "-o", "t.html")
    assert code == 0
    assert "is not the table that the model was fitted to" in err
    code, _, err = run("report", "model.harfe", "houses.csv", "-o", "s.html")
    assert code == 1
    assert "--force" in one_sentence(err)


@pytest.mark.parametrize("how", [["--cv", "3"], ["--holdout", "0.25"], ["--weight", "w"]])
def test_fit_prints_the_numbers_of_its_file_and_its_page(here, run, how):
    write_csv("weighted.csv", {**table(), "w": np.arange(60) % 3})
    words = ["fit", "weighted.csv", "-t", "price", "--drop", "key,w", *FAST[:-2], "--seed", "7"]
    code, out, _ = run(*words, *how, "--report", "r.html")
    assert code == 0
    error = harfe.load("model.harfe").meta["error"]
    page = Path("r.html").read_text()
    rows = page.split('<table class="errors">')[1].split("</table>")[0].split("<tr>")
    names = {"this model": "this model", "linear model": "a linear model"}
    for name, printed in {**names, "null model": "always the mean"}.items():
        rmse = error["models"][name]["rmse"]
        assert f"  {printed:18} {rmse:.4g}" in out
        # The first number of its line on the page.
        (line,) = [row for row in rows if f">{name}<" in row]
        shown = float(re.search(r'class="number">([\d.]+)<', line)[1])
        assert shown == pytest.approx(rmse, rel=1e-3)
    summary = summarise(harfe.load("model.harfe"), read_table("weighted.csv"), None)
    judged = summary["errors"]["judged_on"]
    assert judged == error["kind"]
    told = {line["model"]: line for line in summary["errors"]["table"] if line["rows"] == judged}
    for name, numbers in error["models"].items():
        assert told[name] == {"rows": judged, "model": name, **numbers}


def test_compare_prints_a_league_table(here, run):
    words = ["compare", "houses.csv", "-t", "price", "--drop", "key", "--cv", "3"]
    code, out, err = run(*words, "--methods", "mean, linear,harfe-fixed")
    assert code == 0
    ranks = re.findall(r"^ *(\d+)\. (\S+)", out, re.MULTILINE)
    assert [name for _, name in ranks] == ["harfe-fixed", "linear", "mean"]
    assert err.count("fold 3 of 3") == 3
    code, out, err = run(*words, "--methods", "mean", "--json", "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out)["method"] == ["mean"]
    code, out, _ = run(*words, "--methods", "help")
    assert code == 0
    assert "random forest" in out
    code, _, err = run(*words, "--methods", "magic")
    assert code == 1
    assert "methods='magic' is not known; choose one of harfe, " in one_sentence(err)
    code, _, err = run(*words, "--methods", ",")
    assert code == 1
    assert "names no method: type some of harfe, " in one_sentence(err)
    code, out, _ = run("compare", "--methods", "help")
    assert code == 0
    assert "sparse random features, ℓ1 (in the paper: SRFE)" in out
    code, _, err = run("compare")
    assert code == 1
    assert "type harfe compare data.csv --target COLUMN" in one_sentence(err)
    code, _, err = run(*words[:-1], "99")
    assert code == 1
    assert "type a number between 2 and 30" in one_sentence(err)


def test_demo_writes_a_table_to_try(here, run):
    code, out, _ = run("demo", "--csv", "e.csv", "--rows", "20")
    assert code == 0
    assert "harfe fit e.csv --target y" in out
    frame = read_table("e.csv")
    assert frame.names == (*(f"x{j}" for j in range(1, 11)), "y")
    assert len(frame) == 20
    assert run("demo", "--csv", "e.csv")[0] == 1


def test_demo_shows_the_main_job(run, monkeypatch):
    monkeypatch.setattr("harfe.cli.commands.demo.main", lambda: sys.stdout.write("shown\n"))
    assert run("demo") == (0, "shown\n", "")


def test_export_writes_onnx(here, run, fitted):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("harfe.files.onnx", reason="the export is not there yet")
    code, out, _ = run("export", fitted, "-o", "m.onnx")
    assert (code, out) == (0, "ONNX     m.onnx (float64)\n")
    onnx.checker.check_model("m.onnx")
    code, _, err = run("export", fitted, "-o", "m.onnx", "--float32")
    assert code == 1
    assert "--force" in one_sentence(err)


def test_internal_errors_are_reported_without_a_traceback(here, run, fitted, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("odd")

    monkeypatch.setattr("harfe.files.load", broken)
    code, _, err = run("explain", fitted)
    assert code == 1
    assert "this should not happen (ZeroDivisionError: odd)" in one_sentence(err)
    monkeypatch.setenv("HARFE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["explain", str(fitted)])
    monkeypatch.delenv("HARFE_TRACEBACK")

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("harfe.files.load", stopped)
    code, _, err = run("explain", fitted)
    assert (code, err) == (130, "harfe: stopped; nothing was written\n")


def test_a_failed_write_leaves_the_old_file(here, run, fitted, monkeypatch):
    Path("o.csv").write_text("old\n")

    def fails(*_):
        raise ValueError("disk on fire")

    monkeypatch.setattr(TableModel, "predict_encoded", fails)
    code, _, _ = run("predict", fitted, "houses.csv", "-o", "o.csv", "--force")
    assert code == 1
    assert Path("o.csv").read_text() == "old\n"
    assert sorted(os.listdir()) == ["houses.csv", "o.csv"]


def shell(*words, **settings):
    command = [sys.executable, "-m", "harfe.cli.main", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, **settings)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from harfe.cli.main import main; main(['--help']); "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'numba', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.returncode == 0


@pytest.mark.slow
def test_in_a_real_shell(here, fitted):
    with open("houses.csv") as data:
        done = shell("predict", fitted, "-", stdin=data)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 61
    assert shell("fit", "houses.csv", "-t", "none").returncode == 1
    assert shell("fit").returncode == 2
    # A reader may close the pipe early.
    write_csv("long.csv", table(60_000))
    with subprocess.Popen(
        [sys.executable, "-m", "harfe.cli.main", "predict", str(fitted), "long.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout.readline() == b"prediction\n"
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


# --------------------------------------------------------------------------------------- datasets

CONTENT = {
    "airfoil.csv": b"a,y\n" + b"1,2\n" * 5000,
    "housing.csv.gz": gzip.compress(b"a,y\n1,2\n"),
}


@pytest.fixture
def server(tmp_path):
    """Serves a folder on loopback, with ranges; `breaks` cuts an answer short."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    datasets = {
        name.split(".")[0]: {
            "file": name,
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
        }
        for name, content in CONTENT.items()
    }
    (folder / "datasets.json").write_text(json.dumps({"datasets": datasets, "variants": {}}))
    (folder / "splits.json").write_text("{}")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = folder / self.path.lstrip("/")
            asked.append((path.name, self.headers.get("Range")))
            if not path.is_file():
                self.send_error(404)
                return
            content = path.read_bytes()
            start = 0
            if options["ranges"] and self.headers.get("Range"):
                start = int(self.headers["Range"][6:-1])
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = options["breaks"] if path.name == "airfoil.csv" else None
            self.wfile.write(content[start:end])

        def log_message(self, *_):
            pass

    asked, options = [], {"ranges": True, "breaks": None}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        serving.asked, serving.options, serving.folder = asked, options, folder
        serving.address = f"http://127.0.0.1:{serving.server_port}"
        yield serving
        serving.shutdown()
        thread.join()


def test_datasets_are_downloaded_and_checked(here, run, server, monkeypatch):
    words = ["datasets", "download", "airfoil", "housing"]
    code, out, err = run(*words, "--from", server.address, "--to", "data")
    assert code == 0
    assert "set HARFE_DATA=data" in out
    assert "airfoil: airfoil.csv, 20004 bytes" in err
    for name, content in CONTENT.items():
        assert Path("data", name).read_bytes() == content
    assert sorted(os.listdir("data")) == [*sorted([*CONTENT, "datasets.json"]), "splits.json"]
    monkeypatch.setenv("HARFE_DATA_URL", server.address + "/")
    monkeypatch.setenv("HARFE_DATA", "data")
    assert "airfoil.csv already exists" in run(*words)[2]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_broke_off_is_resumed(here, run, server, ranges):
    words = ["datasets", "download", "airfoil", "--from", server.address, "--to", "data"]
    server.options["breaks"] = 7000
    code, _, err = run(*words)
    assert code == 1
    assert "stopped after 7000 of 20004 bytes: type the same command again" in one_sentence(err)
    assert not Path("data/airfoil.csv").exists()
    server.options.update(breaks=None, ranges=ranges)
    code, _, err = run(*words)
    assert code == 0
    assert ("resumed at 7000" in err) == ranges
    assert server.asked[-1] == ("airfoil.csv", "bytes=7000-")
    assert Path("data/airfoil.csv").read_bytes() == CONTENT["airfoil.csv"]
    assert not Path("data/airfoil.csv.part").exists()


def test_a_file_that_is_not_the_manifests_is_not_kept(here, run, server):
    wrong = bytearray(CONTENT["airfoil.csv"])
    wrong[100] ^= 1
    (server.folder / "airfoil.csv").write_bytes(wrong)
    words = ["datasets", "download", "airfoil", "--from", server.address, "--to", "data"]
    code, _, err = run(*words)
    assert code == 1
    assert "its SHA-256 differs" in one_sentence(err)
    assert not any(name.startswith("airfoil") for name in os.listdir("data"))


def test_servers_that_do_not_help(here, run, server):
    words = ["datasets", "download", "airfoil", "--to", "data", "--from"]
    code, _, err = run(*words, server.address + "/nowhere")
    assert code == 1
    assert "the server answered 404" in one_sentence(err)
    # Nothing listens there, as without a network.
    code, _, err = run(*words, "http://127.0.0.1:9")
    assert code == 1
    assert "cannot be reached" in one_sentence(err)
    assert "set HARFE_DATA" in err
    assert "begins with https://" in one_sentence(run(*words, "file:///etc")[2])
    code, _, err = run("datasets", "download", "ccpp", "--to", "data", "--from", server.address)
    assert code == 1
    assert "does not have 'ccpp'; it has airfoil, housing" in one_sentence(err)
    for manifest, told in [
        ("<html>", "is not a manifest"),
        ('{"datasets": {"airfoil": {"file": "../x", "sha256": "", "bytes": 1}}}', "unsafe file"),
    ]:
        (server.folder / "datasets.json").write_text(manifest)
        assert told in one_sentence(run(*words, server.address)[2])
    (server.folder / "datasets.json").write_text("[]")
    with pytest.raises(DownloadError, match="is not a manifest"):
        download_real(["airfoil"], server.address, "data")
    with pytest.raises(ValueError, match="nothing"):
        download_real(["nothing"], server.address, "data")


def test_datasets_without_data(here, run, monkeypatch):
    monkeypatch.delenv("HARFE_DATA", raising=False)
    monkeypatch.delenv("HARFE_DATA_URL", raising=False)
    code, out, err = run("datasets")
    assert code == 0
    assert "airfoil" in out
    assert "UCI, Airfoil Self-Noise" in out
    assert "HARFE_DATA is not set" in err
    assert run("datasets", "list")[1] == out
    code, out, _ = run("datasets", "describe", "airfoil")
    assert code == 0
    assert "do not come with harfe" in out
    code, _, err = run("datasets", "prepare", "airfoil")
    assert code == 1
    assert "do not come with harfe" in one_sentence(err)
    code, _, err = run("datasets", "download")
    assert code == 1
    assert "type --from and the address" in one_sentence(err)
    for action in ("describe", "prepare", "download"):
        code, _, err = run("datasets", action, "airfoyl")
        assert code == 1
        assert "HARFE_DATA_URL" in err or "'airfoyl' is not a dataset" in one_sentence(err)


@pytest.mark.skipif(not os.environ.get("HARFE_DATA"), reason="HARFE_DATA is not set")
def test_datasets_are_prepared_as_the_paper_did(here, run):
    from harfe.datasets import load_real

    code, out, _ = run("datasets", "prepare", "airfoil")
    assert code == 0
    data = load_real("airfoil")
    frame = read_table("airfoil_train.csv")
    np.testing.assert_array_equal(np.column_stack(frame.columns[:-1]), data.X_train)
    np.testing.assert_array_equal(frame.columns[-1], data.y_train)
    assert f"--target {data.target_name}" in out
    assert run("datasets", "prepare", "airfoil", "--split", "x")[0] == 1
    assert "inputs: 41" in run("datasets", "describe", "airfoil")[1]
    assert run("datasets", "describe", "ccpp_rest")[0] == 0
    assert "here" in run("datasets")[1]


def test_a_search_that_was_cut_short_says_so_everywhere(run, tmp_path):
    data, model, page = write_csv(tmp_path / "t.csv", table()), tmp_path / "m", tmp_path / "p.html"
    given = ["--target", "price", "--drop", "key", "-o", model, "--report", page]
    code, out, err = run("fit", data, *given, "--max-time", "1e-9")
    assert code == 0
    assert "Search   cut short" in out
    assert "cut short by max_time=1e-09: the model is fitted to 48 of 60 rows" in err
    assert "price from 2 columns (4 inputs), from 60 rows of t.csv" in out
    assert "(12 rows of a fold predicted by a model chosen and fitted without it)" in out
    assert "The search for settings was stopped early" in page.read_text(encoding="utf-8")
    assert "Search   cut short" in run("explain", model)[1]
    # also if nothing else is told
    quiet = run("fit", data, *given, "--max-time", "1e-9", "--quiet", "--force")
    assert quiet[:2] == (0, "")
    assert "cut short by max_time" in quiet[2]
