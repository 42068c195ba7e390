"""Tables as values."""

import json
import math
import pickle

import numpy as np
import pytest

from harfe._core.table import Table, jsonable


def make():
    return Table(
        {
            "term": ["age", "age : bmi"],
            "variables": [("age",), ("age", "bmi")],
            "count": np.array([3, 10]),
            "share": np.array([0.25, math.nan]),
        }
    )


def test_columns_and_rows():
    table = make()
    assert len(table) == 2
    np.testing.assert_array_equal(table["count"], [3, 10])
    assert list(table["variables"]) == [("age",), ("age", "bmi")]
    assert next(table.rows()) == {
        "term": "age",
        "variables": ("age",),
        "count": 3,
        "share": 0.25,
    }
    assert len(Table({})) == 0


def test_columns_of_equal_tuples_stay_one_dimensional():
    assert Table({"pair": [(0, 1), (1, 2)]})["pair"].shape == (2,)


def test_it_is_frozen_and_keeps_its_own_copy():
    values = [1.0, 2.0]
    table = Table({"a": values})
    values[0] = 5.0
    assert table.columns["a"] == (1.0, 2.0)
    with pytest.raises(AttributeError):
        table.columns = {}
    assert pickle.loads(pickle.dumps(table)) == table


def test_json():
    text = json.dumps(make().to_dict(), allow_nan=False)
    assert json.loads(text) == {
        "term": ["age", "age : bmi"],
        "variables": [["age"], ["age", "bmi"]],
        "count": [3, 10],
        "share": [0.25, None],
    }
    assert jsonable(np.complex128(1 + 2j)) == [1.0, 2.0]
    assert jsonable(np.array([1, 2])) == [1, 2]
    assert jsonable(np.float64(np.inf)) is None


def test_frame():
    frame = make().to_frame()
    assert list(frame.columns) == ["term", "variables", "count", "share"]
    assert frame["count"].sum() == 13
    assert frame["share"].isna().tolist() == [False, True]


def test_frame_without_pandas_says_what_to_do(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        make().to_frame()


def test_text():
    table = Table({"term": ["age", "b"], "share": [0.123456, 10.0], "note": [None, "x"]})
    assert str(table) == "term   share  note\nage   0.1235\nb         10  x"


def test_unequal_lengths_and_unknown_columns_are_refused():
    with pytest.raises(ValueError, match=r"different lengths, {'a': 1, 'b': 2}"):
        Table({"a": [1], "b": [1, 2]})
    with pytest.raises(KeyError, match="'c' is not a column; choose one of term, variables"):
        make()["c"]
