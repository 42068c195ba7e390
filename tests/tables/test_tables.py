"""Tables: files as found in practice, columns as numbers, models on tables."""

import copy
import gzip
import io
import json
import pickle
import sys
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harfe import HARFERegressor
from harfe.tables import (
    Frame,
    TableEncoder,
    TableError,
    TableModel,
    fingerprint,
    open_table,
    read_table,
    training_rows,
)
from harfe.tables.columns import Hint, as_frame, level, number, numbers
from harfe.tables.readers.csv import CSV_BLOCK


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def plain(frame):
    """Columns as lists, None for missing numbers."""
    return {
        name: list(column)
        if isinstance(column, tuple)
        else [None if np.isnan(v) else v for v in column.tolist()]
        for name, column in zip(frame.names, frame.columns, strict=True)
    }


# ---------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("1.5", ".", 1.5),
        (" -2e3 ", ".", -2000.0),
        ("1,5", ",", 1.5),
        ("1.234,5", ",", 1234.5),
        ("1.234", ",", 1234.0),
        ("1,234", ".", 1234.0),
        ("1,234,567.5", ".", 1234567.5),
        ("12 345", ".", 12345.0),
        ("1\u00a0234,5", ",", 1234.5),
        ("1'234.5", ".", 1234.5),
        ("−3", ".", -3.0),
        ("TRUE", ".", 1.0),
        ("false", ".", 0.0),
        ("1.5", ",", None),
        ("1,5", ".", None),
        ("1,23,456", ".", None),
        ("1_000", ".", None),
        ("12%", ".", None),
        ("abc", ".", None),
    ],
)
def test_texts_are_read_as_people_write_numbers(text, decimal, value):
    assert number(text, decimal) == value
    read, odd = numbers([text, "7"], decimal)
    assert odd == ([0] if value is None else [])
    assert value is None or read.tolist() == [value, 7]


@pytest.mark.parametrize("text", ["", " ", "NA", "n/a", "NaN", "null", "None", "?", "-", "#N/A"])
def test_texts_that_mean_no_value(text):
    assert np.isnan(number(text))
    read, odd = numbers(["1", text])
    assert np.isnan(read[1])
    assert odd == []


def test_further_texts_and_codes_mean_no_value():
    read, odd = numbers(["1", "unknown", "-999", "-999.0"], ".", ("unknown", "-999"))
    assert odd == []
    assert np.isnan(read).tolist() == [False, True, True, True]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_both_kinds_of_decimals_come_back_exactly(values):
    for decimal in ".,":
        texts = [repr(value).replace(".", decimal) for value in values]
        read, odd = numbers(texts, decimal)
        assert odd == []
        assert read.tolist() == values


def test_a_level_has_one_name_in_all_files():
    assert {level(v) for v in ("7", "7.0", " 007", 7.0)} == {"7"}
    assert level("red ") == "red"
    assert level("0.50") == level(0.5) == "0.5"
    assert level("True") == "True"


# ------------------------------------------------------------------------------------------ files

EXPECTED = {"size": [1.5, 2.5, 4.0], "color": ["red", "blue", "red"], "y": [1.0, 2.0, 3.5]}
ROWS = "size,color,y\n1.5,red,1\n2.5,blue,2\n4,red,3.5\n"


@pytest.mark.parametrize(
    "content",
    [
        ROWS,
        "\ufeff" + ROWS,
        ROWS.replace("\n", "\r\n"),
        ROWS.replace("\n", "\r"),
        ROWS.replace(",", "\t"),
        ROWS.replace(",", ";"),
        ROWS.replace(",", "|"),
        ROWS.replace(",", ";").replace(".", ","),
        "sep=;\n" + ROWS.replace(",", ";").replace(".", ","),
        ROWS.rstrip("\n"),
        ROWS.replace("\n", "\n\n"),
        ROWS.replace("red", '"red"'),
        ROWS.replace(",", ", "),
        ROWS.replace("1\n", "1,\n"),
        gzip.compress(ROWS.encode()),
    ],
    ids=[
        *("plain", "bom", "windows", "mac", "tab", "semicolon", "bar", "comma-decimal", "sep"),
        *("no-last-end", "blank-lines", "quotes", "blanks", "extra-delimiter", "gz"),
    ],
)
def test_the_same_table_in_many_forms(write, content):
    assert plain(read_table(write(content))) == EXPECTED


def test_parquet_gives_the_same_table(write, tmp_path):
    pq.write_table(pa.table(EXPECTED), tmp_path / "data.parquet")
    assert plain(read_table(tmp_path / "data.parquet")) == EXPECTED
    # The content decides, not the name.
    assert plain(read_table((tmp_path / "data.parquet").rename(tmp_path / "x.csv"))) == EXPECTED


def test_parquet_types(tmp_path):
    table = pa.table(
        {
            "int": pa.array([1, None, 3]),
            "bool": pa.array([True, False, None]),
            "decimal": pa.array([1, 2, 3]).cast(pa.decimal128(22, 2)),
            "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
            "nothing": pa.nulls(3),
            "day": pa.array([0, 1, 2], pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    assert plain(read_table(tmp_path / "t.parquet")) == {
        "int": [1, None, 3],
        "bool": [1, 0, None],
        "decimal": [1, 2, 3],
        "dictionary": ["a", "", "b"],
        "nothing": [None] * 3,
        "day": ["1970-01-01", "1970-01-02", "1970-01-03"],
    }


def test_quotes_hold_delimiters_quotes_and_line_ends(write):
    frame = read_table(write('name,y\n"Smith, J.",1\n"a ""b"" c",2\n"two\nlines",3\nx,4\n'))
    assert plain(frame)["name"] == ["Smith, J.", 'a "b" c', "two\nlines", "x"]
    assert frame.lines.tolist() == [2, 3, 5, 6]


def test_names_are_made_where_there_are_none(write):
    assert read_table(write("1,2\n3,4\n")).names == ("column_1", "column_2")
    assert read_table(write("a,b\n3,4\n"), header=False).names == ("column_1", "column_2")
    assert read_table(write(",b\n3,4\n")).names == ("column_1", "b")


def test_numbers_as_names_are_known_by_a_text_beside_them(write):
    assert read_table(write("id,2019,2020\n1,5,6\n2,7,8\n")).names == ("id", "2019", "2020")
    assert read_table(write("1,2\n3,4\n"), header=True).names == ("1", "2")


def test_a_comma_between_fields_and_a_comma_in_numbers(write):
    frame = read_table(write("1,5;2,5\n3,5;4,5\n"))
    assert plain(frame) == {"column_1": [1.5, 3.5], "column_2": [2.5, 4.5]}
    frame = read_table(write('a,y\n"1,234",1\n"5,678",2\n'))
    assert plain(frame)["a"] == [1234, 5678]
    frame = read_table(write('a,y\n"1,5",1\n"2,25",2\n'))
    assert plain(frame)["a"] == [1.5, 2.25]


def test_fields_in_columns_of_blanks(write):
    frame = read_table(write(" 0.5  18.0   2\n 0.25  0.0  7\n"))
    assert plain(frame) == {"column_1": [0.5, 0.25], "column_2": [18, 0], "column_3": [2, 7]}


def test_other_encodings_on_demand(write):
    path = write("größe,y\n1,2\n".encode("latin-1"))
    assert read_table(path, encoding="latin-1").names == ("größe", "y")
    assert (
        read_table(write("größe,y\n1,2\n".encode("utf-16")), encoding="utf-16").names[0] == "größe"
    )


def test_standard_input(write, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ROWS.encode())))
    frame = read_table("-")
    assert plain(frame) == EXPECTED
    assert frame.where(0) == "line 2 of standard input"


def test_blocks_are_the_whole_table_with_its_lines(write):
    count = 2 * CSV_BLOCK + 5
    rows = [f"{i},{'x' if i > CSV_BLOCK else i},{i % 7}" for i in range(count)]
    path = write("i,late,k\n" + "\n".join(rows) + "\n")
    frame = read_table(path)
    assert frame["i"].tolist() == list(range(count))
    # Numbers of the first block are texts again, as the others are.
    assert frame["late"] == tuple(row.split(",")[1] for row in rows)
    assert frame.lines.tolist() == list(range(2, count + 2))
    with open_table(path) as source:
        blocks = list(source.blocks(["k", "i"], {"i"}))
    assert [len(block) for block in blocks] == [CSV_BLOCK, CSV_BLOCK, 5]
    assert blocks[0].names == ("k", "i")
    assert blocks[0]["i"][:2] == ("0", "1")
    assert blocks[-1].where(0) == f"line {2 * CSV_BLOCK + 2} of data.csv"


def workbook():
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        file.writestr("xl/workbook.xml", "")
    return memory.getvalue()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "data.csv is empty"),
        ("\n \n", "data.csv is empty"),
        ("a,b\n", "has column names but no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3 of data.csv has 3 fields, but the first line has 2"),
        ("a,b\n1,2\n\n1\n", "line 4 of data.csv has 1 field, but"),
        ("ä,b\n1,2\n".encode("latin-1"), "not UTF-8 .line 1.*encoding='latin-1'"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16: pass encoding='utf-16'"),
        (b"a,b\n\x00\x01\x02", "is not a text file"),
        (b"\xd0\xcf\x11\xe0more", "is an Excel workbook: save it as 'CSV UTF-8'"),
        (workbook(), "is an Excel workbook"),
        (b"PK\x03\x04 and so on", "is an archive or a harfe model, not a table"),
        (gzip.compress(ROWS.encode() * 50)[:-20], "damaged or incomplete"),
        (b"PAR1 but no more", "damaged Parquet file"),
        ('a,b\n1,"' + "x" * 200_000 + "\n", "quote that is not closed"),
    ],
    ids=[
        *("empty", "blank", "header", "long", "short", "latin", "utf16", "binary", "xls", "xlsx"),
        *("zip", "gz", "parquet", "quote"),
    ],
)
def test_what_is_not_a_table_is_rejected_with_a_reason(write, content, told):
    with pytest.raises(TableError, match=told):
        read_table(write(content))


def test_a_late_letter_in_another_encoding_is_found(write):
    content = b"a,b\n" + b"1,2\n" * 100_000 + "ä,2\n".encode("latin-1")
    with pytest.raises(TableError, match="not UTF-8"):
        read_table(write(content))


def test_names_that_are_not_there(write, tmp_path):
    write(ROWS, "houses.csv")
    with pytest.raises(TableError, match=r"did you mean .*houses.csv"):
        read_table(tmp_path / "house.csv")
    with pytest.raises(TableError, match=r"is a folder: pass a file in it, e.g. .*houses.csv"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="unknown encoding 'utf-88'"):
        read_table(tmp_path / "houses.csv", encoding="utf-88")


# ---------------------------------------------------------------------------------- Python tables


def tables():
    columns = {"a": [1, None, 3], "b": ["x", None, "y"], "c": [True, False, True]}
    return {
        "dict": columns,
        "pandas": pd.DataFrame(columns),
        "nullable": pd.DataFrame(columns).convert_dtypes(),
        "categorical": pd.DataFrame(columns).astype({"b": "category"}),
        "polars": pl.DataFrame(columns),
        "arrow": pa.table(columns),
    }


@pytest.mark.parametrize("kind", list(tables()))
def test_frames_of_all_kinds_are_the_same(kind):
    assert plain(as_frame(tables()[kind])) == {
        "a": [1, None, 3],
        "b": ["x", "", "y"],
        "c": [1, 0, 1],
    }


def test_arrays_take_the_names_that_are_wanted():
    assert plain(as_frame(np.array([[1, 2], [3, 4]]), ["a", "b"])) == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(TableError, match="has 2 columns, but 1 are expected: a"):
        as_frame(np.ones((3, 2)), ["a"])
    with pytest.raises(TableError, match=r"shape \(3,\)"):
        as_frame(np.ones(3))


def test_tables_that_are_none():
    with pytest.raises(TableError, match="different lengths"):
        as_frame({"a": [1], "b": [1, 2]})
    with pytest.raises(TableError, match="several columns named 'a'"):
        as_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TableError, match="a column has shape"):
        as_frame({"a": [[1, 2]]})


def test_dates_and_objects_become_texts():
    frame = as_frame({"day": np.array(["2020-01-02", "NaT"], "M8[D]"), "mixed": [1, "a"]})
    assert plain(frame) == {"day": ["2020-01-02", ""], "mixed": ["1", "a"]}


# ---------------------------------------------------------------------------------------- encoder

TRAIN = {
    "size": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0],
    "color": ["red", "blue", "green", "red", "blue", "red"],
    "used": ["no", "yes", "no", "yes", "no", "no"],
    "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
}


def test_numbers_stay_and_categories_get_an_input_for_each_level():
    encoder = TableEncoder.learn(TRAIN, "y")
    assert encoder.columns_out == ("size", "color=blue", "color=green", "color=red", "used=yes")
    np.testing.assert_array_equal(
        encoder.encode({"used": ["yes", "no"], "color": ["red", "green"], "size": ["2,000", 3.5]}),
        [[2000, 0, 0, 1, 1], [3.5, 0, 1, 0, 0]],
    )
    assert encoder.columns_in == ("size", "color", "used")
    assert encoder.target == "y"


def test_targets_by_number_and_columns_that_are_dropped():
    encoder = TableEncoder.learn(TRAIN, "-1", drop=["color", "3"])
    assert (encoder.target, encoder.columns_out) == ("y", ("size",))
    assert encoder.left_out == {"color": "dropped on request", "used": "dropped on request"}
    assert TableEncoder.learn(TRAIN, "1", drop="y").target == "size"


def test_codes_can_be_categories():
    table = {"region": [1, 2, 3, 1], "y": [1, 2, 3, 4]}
    encoder = TableEncoder.learn(table, "y", categories=["region"])
    assert encoder.columns_out == ("region=1", "region=2", "region=3")
    np.testing.assert_array_equal(encoder.encode({"region": ["3.0", "1"]}), [[0, 0, 1], [1, 0, 0]])


def test_a_level_that_training_has_not_seen_has_zeros_and_a_warning():
    encoder = TableEncoder.learn(TRAIN, "y")
    table = {"size": [1, 2, 3], "color": ["pink", "pink", "red"], "used": ["yes"] * 3}
    with pytest.warns(UserWarning, match=r"color=pink \(2 rows\)"):
        X = encoder.encode(table)
    np.testing.assert_array_equal(X, [[1, 0, 0, 0, 1], [2, 0, 0, 0, 1], [3, 0, 0, 1, 1]])
    _, unseen = encoder.encode_counting(table)
    assert unseen == {("color", "pink"): 2}


GAPS = {
    "a": [1.0, None, 3.0, 8.0, 5.0, 2.0],
    "b": ["x", "y", "NA", "y", "x", "y"],
    "y": [1, 2, 3, 4, 5, None],
}


def test_missing_values_are_refused_with_how_many_and_where():
    full = {**GAPS, "y": [1, 2, 3, 4, 5, 6]}
    with pytest.raises(TableError) as error:
        TableEncoder.learn(full, "y")
    assert str(error.value) == (
        "2 of 6 rows of the table have missing values, first row 2 of the table, by column: a (1), "
        "b (1); pass missing='drop' to leave these rows out, or missing='median' to fill in the "
        "median of the column"
    )
    assert "pass --missing drop to leave" in error.value.typed()
    with pytest.raises(TableError, match="target 'y' is missing in 1 of 6 rows"):
        TableEncoder.learn(GAPS, "y")


def test_rows_with_missing_values_can_be_left_out():
    encoder = TableEncoder.learn(GAPS, "y", missing="drop")
    rows = training_rows(encoder, GAPS)
    assert rows.kept.tolist() == [0, 3, 4]
    np.testing.assert_array_equal(rows.X, [[1, 0], [8, 1], [5, 0]])
    np.testing.assert_array_equal(rows.y, [1, 4, 5])
    assert "3 of 6 rows are left out because values are missing" in encoder.notes
    assert np.isnan(encoder.encode(GAPS)[1, 0])


def test_medians_and_the_most_frequent_level_stand_for_missing_values():
    encoder = TableEncoder.learn(GAPS, "y", missing="median")
    # Of the rows that have a target: 1, 3, 5, 8; x, y, y, x, the first of equals.
    assert [column.fill for column in encoder.columns] == [4.0, "x"]
    rows = training_rows(encoder, GAPS)
    np.testing.assert_array_equal(rows.X, [[1, 0], [4, 1], [3, 0], [8, 1], [5, 0]])
    X = encoder.encode({"a": [None], "b": ["?"]})
    np.testing.assert_array_equal(X, [[4, 0]])
    with pytest.raises(TableError, match="missing values"):
        encoder.encode({"a": [None], "b": ["?"]}, missing="error")


def test_columns_that_say_nothing_are_left_out_with_a_note():
    table = {"a": [1, 2, 3], "same": [4, 4, 4], "none": ["", "NA", "?"], "one": ["x"] * 3}
    encoder = TableEncoder.learn({**table, "y": [1, 2, 3]}, "y")
    assert encoder.columns_out == ("a",)
    assert encoder.left_out == {
        "same": "it is 4 in every row",
        "none": "it has no values",
        "one": "it is 'x' in every row",
    }
    assert "column 'none' is left out: it has no values" in encoder.notes


def test_a_column_without_values_costs_no_rows_and_a_kept_row_decides_what_is_constant():
    table = {"a": [1, 2, 2], "b": [None, 5, 7], "none": [None] * 3, "y": [1, 2, 3]}
    encoder = TableEncoder.learn(table, "y", missing="drop")
    assert encoder.left_out == {"none": "it has no values", "a": "it is 2 in every row"}
    assert encoder.columns_out == ("b",)


def test_a_column_that_numbers_the_rows_is_noted():
    encoder = TableEncoder.learn({"id": np.arange(1, 13), "y": np.arange(12) ** 2}, "y")
    (counts,) = (note for note in encoder.notes if "'id' numbers the rows" in note)
    assert counts.endswith("leave it out: --drop id, or in Python drop=['id']")


@pytest.mark.parametrize(
    ("columns", "told", "typed"),
    [
        ({"code": ["1a", "1b", "1c", "2d"]}, "text with 4 different values", "--drop code"),
        ({"name": list("abcd")}, "text with 4 different values in 4 rows", "--drop name"),
        ({"n": list("abcd"), "m": list("efgh")}, "columns 'n', 'm' hold", "--drop n --drop m"),
        (
            {"day": ["2020-01-02", "2020-01-03", "3/4/2020", "4.5.2020"]},
            "holds dates",
            "--drop day",
        ),
        ({"p": ["12%", "13 %", "$14", "5 km"]}, "with a symbol or a unit, e.g. '12%'", "--drop p"),
        ({"a": ["1", "2", "oops", "3"]}, "'oops' in row 3 of the table is not one", "--na oops"),
        ({"a": [1, 2, np.inf, 3]}, "is infinite in row 3", "--na inf --na=-inf"),
        ({"a": [1, 1, 1, 1]}, r"no column to predict from \(a: it is 1 in every row\)", None),
    ],
    ids=["codes", "names", "two", "dates", "units", "odd", "infinite", "constant"],
)
def test_errors_about_columns_say_what_to_type(columns, told, typed):
    with pytest.raises(TableError, match=told) as error:
        TableEncoder.learn({**columns, "y": [1, 2, 3, 4]}, "y")
    assert typed is None or typed in error.value.typed()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("sise", "has no column 'sise'; the nearest is 'size': pass target='size'"),
        ("Size", "the nearest is 'size'"),
        ("zzz", "its columns are size, color, used, y"),
        ("9", "has no column '9'"),
        ("color", "the target 'color' holds text, e.g. 'red' in row 1"),
    ],
)
def test_wrong_targets_list_the_nearest_names(target, told):
    with pytest.raises(TableError, match=told):
        TableEncoder.learn(TRAIN, target)


def test_names_that_stand_twice(write):
    frame = read_table(write("a,b,a,y\n1,2,3,4\n5,7,6,8\n"))
    with pytest.raises(TableError, match=r"several columns named 'a' \(columns 1 and 3\)") as error:
        TableEncoder.learn(frame, "y")
    assert "--drop a" in error.value.typed()
    with pytest.raises(TableError, match="rename all but one"):
        TableEncoder.learn(frame, "a")
    assert TableEncoder.learn(frame, "y", drop=["a"]).columns_out == ("b",)
    # Columns that are not needed may occur more than once.
    encoder = TableEncoder.learn({"b": [1, 2], "y": [1, 2]}, "y")
    assert encoder.encode(frame).tolist() == [[2], [7]]


def test_new_tables_that_do_not_fit():
    encoder = TableEncoder.learn(TRAIN, "y")
    with pytest.raises(TableError, match="has no column 'color'; the nearest is 'colour'"):
        encoder.encode({"size": [1], "colour": ["red"], "used": ["no"]})
    with pytest.raises(TableError, match="'big' in row 1 of the table is not one") as error:
        encoder.encode({"size": ["big"], "color": ["red"], "used": ["no"]})
    assert "--na big" in error.value.typed()
    with pytest.raises(TableError, match="column 'size' is infinite in row 2"):
        encoder.encode({"size": [1, -np.inf], "color": ["red"] * 2, "used": ["no"] * 2})
    with pytest.raises(ValueError, match="missing='zero' is not known"):
        encoder.encode(TRAIN, missing="zero")
    with pytest.raises(TableError, match="no target"):
        TableEncoder.learn({"a": [1, 2]}).targets({"a": [1]})


def test_encoders_are_plain_data():
    encoder = TableEncoder.learn(GAPS, "y", missing="median", na=["-1"])
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    np.testing.assert_array_equal(again.encode(GAPS), encoder.encode(GAPS))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [{"name": "a"}]},
        {"columns": [{"name": "a", "kind": "picture", "levels": [], "fill": 0.0}]},
        {"columns": [{"name": "a", "kind": "category", "levels": ["x", "z"], "fill": "y"}]},
        {"columns": [{"name": 3, "kind": "number", "levels": [], "fill": 0.0}]},
        {"columns": 7},
        {"missing": "never"},
        {"na": 5},
        {"target": 5},
        {"left_out": [1]},
    ],
)
def test_what_is_not_an_encoder_is_rejected(change):
    content = TableEncoder.learn(GAPS, "y", missing="median").to_dict()
    with pytest.raises(TableError, match="does not describe a table encoder"):
        TableEncoder.from_dict({**content, **change})


def test_hints_speak_python_and_shell():
    assert str(Hint("drop", ["a b"])) == "drop=['a b']"
    assert Hint("drop", ["a b", "-x"]).typed() == "--drop 'a b' --drop=-x"
    error = TableError("column '{x}' {drop}", drop=Hint("drop", ["x"]))
    assert str(error) == "column '{x}' drop=['x']"


# ------------------------------------------------------------------------------------------ models


@pytest.fixture(scope="module")
def houses():
    rng = np.random.default_rng(0)
    size, color = rng.uniform(0, 4, 60), rng.choice(["red", "blue", "green"], 60)
    effect = np.array([{"red": 0.0, "blue": 2.0, "green": -1.0}[c] for c in color])
    return {"size": size, "color": color, "price": np.sin(size) + effect}


@pytest.fixture(scope="module")
def model(houses):
    estimator = HARFERegressor(300, 30, alpha=1e-6, residual_cv=3, random_state=0)
    return TableModel.fit(houses, "price", estimator)


def test_a_model_of_a_table_predicts_what_its_estimator_does(model, houses):
    X = model.encoder.encode(houses)
    np.testing.assert_array_equal(model.predict(houses), model.model.predict(X))
    assert model.score(houses) > 0.99
    _, std = model.predict(houses, return_std=True)
    assert std.shape == (60,)
    prediction, lower, upper = model.predict(houses, interval=0.8)
    assert np.all((lower < prediction) & (prediction < upper))
    # Columns in another order, further ones, another kind of table.
    frame = pd.DataFrame(houses)[["price", "color", "size"]].assign(more="x")
    np.testing.assert_array_equal(model.predict(frame), model.predict(houses))


def test_names_of_columns_reach_the_formula_and_the_explanation(model, houses):
    assert model.expansion_.columns == ("size", "color=blue", "color=green", "color=red")
    assert "color=" in model.formula()
    assert list(model.explain().sobol["variable"]) == list(model.expansion_.columns)
    local = model.explain_local(houses)
    np.testing.assert_allclose(local.prediction, model.predict(houses), atol=1e-9)
    dependence = model.partial_dependence("size", houses, grid=[1.0, 2.0])
    other = [model.predict({**houses, "size": np.full(60, value)}).mean() for value in (1.0, 2.0)]
    np.testing.assert_allclose(np.ravel(dependence.average), other)


def test_rows_with_missing_values_have_no_prediction_or_that_of_the_median(model, houses):
    gaps = {"size": [1.0, None, 2.0], "color": ["red", "red", ""]}
    with pytest.raises(TableError, match="2 of 3 rows"):
        model.predict(gaps)
    prediction, std = model.predict(gaps, return_std=True, missing="drop")
    assert np.isnan(prediction).tolist() == np.isnan(std).tolist() == [False, True, True]
    assert prediction[0] == model.predict({"size": [1.0], "color": ["red"]})[0]
    fill = [column.fill for column in model.encoder.columns]
    np.testing.assert_array_equal(
        model.predict(gaps, missing="median"),
        model.predict({"size": [1.0, fill[0], 2.0], "color": ["red", "red", fill[1]]}),
    )
    assert np.isnan(model.predict({"size": [None], "color": ["red"]}, missing="drop")).all()


def test_weights_of_rows_are_a_column(houses):
    weighted = {**houses, "w": np.where(np.arange(60) < 40, 1, 0)}
    estimator = HARFERegressor(100, 10, random_state=0)
    one = TableModel.fit(weighted, "price", estimator, weight="w")
    assert one.encoder.columns_in == ("size", "color")
    first = {name: column[:40] for name, column in houses.items()}
    other = TableModel.fit(first, "price", HARFERegressor(100, 10, random_state=0))
    np.testing.assert_allclose(one.predict(houses), other.predict(houses), rtol=1e-9)
    with pytest.raises(TableError, match="'w' holds the weights, but is negative"):
        TableModel.fit({**houses, "w": -np.ones(60)}, "price", estimator, weight="w")


def test_too_few_rows_are_refused():
    encoder = TableEncoder.learn(TRAIN, "y")
    one = {name: column[:1] for name, column in TRAIN.items()}
    with pytest.raises(TableError, match="has 1 complete row:"):
        training_rows(encoder, one)
    with pytest.raises(TableError, match="no row of the table has a value in every column"):
        TableEncoder.learn(
            {"a": [1, 2, None, None], "b": [None, None, 1, 2], "y": [1, 2, 3, 4]},
            "y",
            missing="drop",
        )


def test_models_of_tables_copy_and_pickle(model, houses):
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(houses), model.predict(houses))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = model.nothing


def test_a_saved_model_of_a_table_is_one_again(model, houses, tmp_path):
    from harfe import load

    model.save(tmp_path / "m.harfe")
    again = load(tmp_path / "m.harfe")
    assert isinstance(again, TableModel)
    assert again.encoder == model.encoder
    assert again.meta == model.meta
    np.testing.assert_array_equal(again.predict(houses), model.predict(houses))


def test_the_fingerprint_is_that_of_the_content(write, tmp_path):
    frame = read_table(write(ROWS))
    pq.write_table(pa.table(EXPECTED), tmp_path / "t.parquet")
    assert fingerprint(frame) == fingerprint(read_table(tmp_path / "t.parquet"))
    assert fingerprint(frame) == fingerprint(read_table(write(ROWS.replace(",", ";"))))
    for other in (ROWS.replace("2.5", "2.4"), ROWS.replace("red", "rot"), ROWS.replace("y", "z")):
        assert fingerprint(read_table(write(other))) != fingerprint(frame)
    negative, positive = Frame(("a",), (np.array([-0.0]),)), Frame(("a",), (np.array([0.0]),))
    assert fingerprint(negative) == fingerprint(positive)
