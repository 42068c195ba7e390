"""CSV by pyarrow and by Python: the same values, kinds, texts and messages."""

import csv
import gzip
import io
import random
import struct
import sys
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harfe.tables import TableError, open_table, read_table
from harfe.tables.columns import number
from harfe.tables.readers import arrow_csv
from harfe.tables.readers.lines import Lines
from harfe.tables.writers import CsvWriter


def without_pyarrow():
    return mock.patch.dict(sys.modules, {"harfe.tables.readers.arrow_csv": None})


def blocks_of(path, columns=None, texts=(), **given):
    """Everything that a reader gives, then the message it ends with; floats by their bits."""
    told = []
    try:
        with open_table(path, **given) as source:
            told.append(source.names)
            for block in source.blocks(columns, texts):
                told.append((block.names, block.source, block.decimal, block.lines.tolist()))
                told += [
                    c if isinstance(c, tuple) else ("NaN" if v != v else v.hex() for v in c)
                    for c in block.columns
                ]
    except TableError as error:
        told.append(str(error))
    return [part if isinstance(part, str | tuple) else list(part) for part in told]


def assert_read_alike(path, **given):
    """Both readers agree, in small blocks; returns what they read and the blocks by pyarrow."""
    read = arrow_csv.read_fields
    by_arrow = []

    def counted(*arguments):
        by_arrow.append(read(*arguments))
        return by_arrow[-1]

    with mock.patch("harfe.tables.readers.csv.CSV_BLOCK", 3):
        with mock.patch.object(arrow_csv, "read_fields", counted):
            fast = blocks_of(path, **given)
        with without_pyarrow():
            assert fast == blocks_of(path, **given)
    return fast, sum(fields is not None for fields in by_arrow)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("csv") / "data.csv"


# ---------------------------------------------------------------------------------------- numbers


def decimal_texts(count):
    """Doubles of all sizes in several spellings, long mantissas, and points between two doubles."""
    rng = random.Random(0)
    for _ in range(count):
        bits = rng.getrandbits(64)
        value = struct.unpack("<d", struct.pack("<Q", bits))[0]
        if value != value:
            continue
        yield repr(value)
        yield f"{value:.{rng.randint(0, 25)}e}"
        # Below the smallest normal number, and below the smallest number of all.
        yield f"{rng.random():.17g}e-{rng.randint(305, 330)}"
        yield f"{rng.getrandbits(rng.randint(1, 400))}.{rng.getrandbits(rng.randint(1, 400))}"
        # Halfway between two numbers, exactly or nearly: rounding is decided by the last digit.
        whole = rng.getrandbits(52) | 1 << 52
        yield f"{2 * whole + 1}e0"
        yield f"{whole}.5{'0' * 30}{rng.choice('01')}"


def test_pyarrow_rounds_texts_as_python_does():
    texts = list(decimal_texts(4000))
    read = arrow_csv.read_numbers(pa.array(texts), ".")
    np.testing.assert_array_equal(read.view(np.int64), np.array([*map(float, texts)]).view("i8"))
    assert (np.abs(read[read != 0]) < 1e-308).sum() > 1000
    commas = arrow_csv.read_numbers(pa.array([t.replace(".", ",") for t in texts]), ",")
    np.testing.assert_array_equal(commas.view(np.int64), read.view(np.int64))


ODD = [
    "",
    " ",
    "NA",
    "nan",
    "None",
    "none",
    "NONE",
    "-",
    ".",
    "?",
    "#N/A",
    "<na>",
    "NULL",
    "nan(1)",
]
ODD += ["inf", "-Infinity", "1e400", "-1e-400", "+1", "1.", ".5", "1e5", "0x10", "1_000", "−3", "١"]
ODD += [
    ",",
    "TRUE",
    "false",
    "1,5",
    "1,234",
    "1.234,5",
    "1'234",
    "12 345",
    "007",
    "-0",
    "1\t",
    "\xa01",
]
ODD += ["9007199254740993", "123456789012345678901234567890", "2020-01-02", "10:30", "-nan", "5 %"]


@given(st.lists(st.sampled_from(ODD) | st.floats().map(repr), min_size=1), st.sampled_from(".,"))
@example(["nan(1)"], ".")
@example(["None", "1"], ".")
@example(["none", "1"], ".")
@example([",", "1,5"], ",")
def test_pyarrow_reads_no_number_that_python_does_not(texts, decimal):
    read = arrow_csv.read_numbers(pa.array(texts), decimal)
    if read is not None:
        np.testing.assert_array_equal(read, [number(text, decimal) for text in texts])


def test_missing_values_are_read_by_pyarrow_too():
    read = arrow_csv.read_numbers(pa.array(["1", " NA ", "", "n/a", "None", " 2.5"]), ".")
    np.testing.assert_array_equal(read, [1, np.nan, np.nan, np.nan, np.nan, 2.5])


# ---------------------------------------------------------------------------------------- reading

FIELDS = st.one_of(
    st.sampled_from(ODD),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-1000, 1000).map(str),
    st.text(st.sampled_from('ab1,; "\n\r\té\0'), max_size=5),
)
QUOTED = {"all": csv.QUOTE_ALL, "some": csv.QUOTE_MINIMAL, "texts": csv.QUOTE_NONNUMERIC}


@st.composite
def files(draw):
    """A table in one of the dialects that are found in practice, with a fault here and there."""
    width = draw(st.integers(1, 4))
    # Columns of one kind are the rule, so that pyarrow has something to do.
    kinds = [draw(st.sampled_from(["number", "text", "any"])) for _ in range(width)]
    of_kind = {
        "number": st.integers(-99, 99).map(str) | st.floats(-1e3, 1e3).map(repr),
        "text": st.sampled_from(["red", "blue", "Smith, J.", "two words", ""]),
        "any": FIELDS,
    }
    rows = draw(st.lists(st.tuples(*(of_kind[kind] for kind in kinds)), max_size=12))
    if draw(st.booleans()):
        rows.insert(0, draw(st.tuples(*[st.sampled_from(["a", "b", "c", "", "size"])] * width)))
    delimiter = draw(st.sampled_from(",;\t| "))
    memory = io.StringIO(newline="")
    style = QUOTED[draw(st.sampled_from(sorted(QUOTED)))]
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    csv.writer(memory, delimiter=delimiter, quoting=style, lineterminator=end).writerows(rows)
    text = memory.getvalue()
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text)))
        fault = draw(st.sampled_from(["\n", "\r", '"', delimiter, " ", ' "', "x", ""]))
        text = text[:place] + fault + text[place + (fault == "") :]
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    content = text.encode(encoding)
    given = {"encoding": encoding} if encoding == "utf-16" else {}
    if draw(st.booleans()):
        given["delimiter"] = delimiter
    if draw(st.booleans()):
        given["header"] = draw(st.booleans())
    if draw(st.booleans()):
        given["decimal"] = draw(st.sampled_from(".,"))
    if draw(st.integers(0, 9)) == 0:
        content += b"\xff,1\n" * 2
    return gzip.compress(content) if draw(st.integers(0, 4)) == 0 else content, given


@settings(max_examples=400)
@given(
    file=files(),
    columns=st.none() | st.lists(st.sampled_from(["a", "b", "column_1"]), min_size=1),
    as_texts=st.sets(st.sampled_from(["a", "b", "column_1"])),
)
def test_both_readers_give_the_same_blocks_and_messages(path, file, columns, as_texts):
    content, given = file
    path.write_bytes(content)
    assert_read_alike(path, columns=columns, texts=as_texts, **given)


@settings(max_examples=400)
@given(text=st.text(st.sampled_from(',"\n\r 1ab'), max_size=40), header=st.booleans())
@example('a,b\n1,"x\n2,3\n', True)
@example('a,b\n1,"x\n', True)
@example('a,b\n1, "x"\n', True)
@example('a,b\n1,"x"y"\n2,z""\n', True)
@example('"a\nb",c\n1,2\n\n3,4\n', True)
@example('"a\nb",c\n1,2\n', False)
@example("a\n1\n \n\n2\n", True)
def test_both_readers_agree_on_any_text(path, text, header):
    path.write_text(text, encoding="utf-8", newline="")
    assert_read_alike(path, delimiter=",", header=header)


PLAIN = "size,color,y\n" + "".join(f"{i}.5,{'red' if i % 2 else 'blue'},{i}\n" for i in range(9))


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        (PLAIN, 3),
        (PLAIN.replace("\n", "\r\n"), 3),
        (PLAIN.replace("red", '"red, or not"'), 3),
        (PLAIN.replace(",", ", "), 3),
        (PLAIN.replace(",", ";").replace(".", ","), 3),
        (PLAIN.replace("4.5", ""), 3),
        (PLAIN.replace("4.5", "4.5%"), 3),
        (PLAIN.rstrip("\n"), 3),
        ("\ufeff" + PLAIN, 3),
        ("sep=,\n" + PLAIN, 3),
        (gzip.compress(PLAIN.encode()), 3),
        # Only the block that needs it is left to Python.
        (PLAIN.replace("4.5,", "\n4.5,"), 3),
        (PLAIN.replace("blue,4", '"bl\nue",4'), 2),
        (PLAIN.replace("blue,4", ' "blue",4'), 2),
        (PLAIN.replace("blue,4", "blue,4,5"), 1),
        # The first row of a table without names is read to count the columns.
        (PLAIN.partition("\n")[2], 2),
        (PLAIN.replace("\n", "\r"), 0),
        (PLAIN.replace(",", " "), 0),
    ],
    ids=[
        *("plain", "windows", "quotes", "blanks", "comma-decimal", "missing", "odd", "no-last-end"),
        *("bom", "sep", "gz", "empty-line", "line-end", "blank-quote", "ragged", "no-names"),
        *("mac", "by-blanks"),
    ],
)
def test_pyarrow_reads_all_blocks_that_it_can(path, content, blocks):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert assert_read_alike(path)[1] == blocks


def test_columns_can_be_selected_and_kept_as_texts(path):
    path.write_text(PLAIN)
    read, blocks = assert_read_alike(path, columns=["y", "color", "y"], texts={"y"})
    assert blocks == 3
    assert read[2:5] == [("0", "1", "2"), ("blue", "red", "blue"), ("0", "1", "2")]


def test_columns_that_are_not_selected_are_split_alike_too(path):
    # To pyarrow, a quote after a blank is a letter, so that the comma would split the field.
    path.write_text('a,b,c\n1,2,3\n "x,y",4\n')
    read, _ = assert_read_alike(path, columns=["c"])
    assert read[-1].startswith("line 3 of data.csv has 2 fields")


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        (
            PLAIN + "1,red\n",
            {},
            "line 11 of data.csv has 2 fields, but the first line has 3: correct the line, and "
            "make sure that text containing a comma is in closed quotes",
        ),
        (
            PLAIN.encode() + b"1,\xe4,3\n",
            {},
            "data.csv is not UTF-8 (line 11): save it as 'CSV UTF-8' in the program that made it "
            "and pass that file, or pass encoding='latin-1'",
        ),
        (
            PLAIN.encode("utf-16") + b"\x00\xd8,\x00",
            {"encoding": "utf-16"},
            "data.csv is not in the encoding 'utf-16' (line 11): pass another encoding",
        ),
        (
            PLAIN + '1,"' + "x\n" * 70_000,
            {},
            "line 65547 of data.csv cannot be read (field larger than field limit (131072)): look "
            "for a quote that is not closed",
        ),
        (
            PLAIN + "x" * 131_073 + ",red,1\n",
            {},
            "line 11 of data.csv cannot be read (field larger than field limit (131072)): look for "
            "a quote that is not closed",
        ),
        (
            gzip.compress(PLAIN.encode() * 300)[:-30],
            {},
            "data.csv is damaged or incomplete: copy or compress it again",
        ),
    ],
    ids=["ragged", "latin", "utf16", "quote", "long", "gz"],
)
def test_bad_rows_have_the_same_message(path, content, given, message):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    # The sniffer must not see it first.
    with mock.patch("harfe.tables.readers.open._HEAD", 40):
        assert assert_read_alike(path, **given)[0][-1] == message


def test_a_wrong_letter_is_reported_with_its_line_in_a_large_file(path):
    path.write_bytes(b"a,b\n" + b"1,2\n" * 100_000 + "ä,2\n".encode("latin-1") + b"1,2\n" * 9)
    for patch in (mock.patch.dict(sys.modules), without_pyarrow()):
        with patch, pytest.raises(TableError, match=r"\(line 100002\)"):
            read_table(path)


class Trickling(io.BytesIO):
    """A stream that gives a few bytes at a time, as pipes may."""

    def __init__(self, content, step):
        super().__init__(content)
        self._step = step

    def read(self, size=-1):
        return super().read(self._step)


@given(
    st.text(st.sampled_from("a\n\ré\u2028\x0b"), max_size=30),
    st.integers(1, 5),
    st.sampled_from(["utf-8", "utf-16"]),
    st.lists(st.integers(0, 4)),
)
def test_lines_end_where_python_ends_them(text, step, encoding, looks):
    content = text.encode(encoding)
    expected = list(io.TextIOWrapper(io.BytesIO(content), encoding, newline=""))
    lines = Lines(Trickling(content, step), encoding)
    taken = []
    for count in looks:
        # Looking ahead changes nothing.
        ahead = lines.peek(count, 100)
        assert ahead is not None
        rest = "".join(expected[len(taken) :]).encode()
        assert rest.startswith(ahead[0])
        assert ahead[1] == min(count, len(io.BytesIO(rest).readlines()))
        taken += [line for line in [next(lines, None)] if line is not None]
    assert taken + list(lines) == expected
    assert lines.taken == len(expected)


# ---------------------------------------------------------------------------------------- writing


@given(st.lists(st.floats(), min_size=1))
@example(
    [
        1e10,
        9999999999.5,
        10000000000.5,
        1e15,
        1e16,
        1e-4,
        9.999e-5,
        -0.0,
        1.0,
        5e-324,
        123456789012345.6,
        0.1 + 0.2,
    ]
)
def test_pyarrow_writes_numbers_as_python_does(values):
    lines = arrow_csv.write_rows([["x"] * len(values)], [np.array(values)], ",", ".")
    assert lines.splitlines() == [f"x,{'' if v != v else repr(v)}" for v in values]


def test_pyarrow_writes_a_hundred_thousand_numbers_as_python_does():
    rng = np.random.default_rng(0)
    values = rng.normal(size=100_000) * 10 ** rng.uniform(-6, 17, 100_000)
    assert arrow_csv.write_rows([], [values], ",", ".") == "".join(
        f"{v!r}\n" for v in values.tolist()
    )


@settings(max_examples=200)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(FIELDS | st.sampled_from(["k1", "k2"]), st.floats(), st.floats())),
    st.sampled_from([",", ";", "\t", "|", " ", "§"]),
    st.sampled_from(".,"),
)
def test_both_writers_write_the_same_which_reads_back(path, width, rows, delimiter, decimal):
    # From the right, so that a single column is one of numbers.
    names = ["key", "prediction", "std"][3 - width :]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    texts = [columns[0]] if width == 3 else []
    numbers = [np.array(column, dtype=float) for column in columns[1:]][-width:]

    def written():
        file = io.StringIO(newline="")
        writer = CsvWriter(file, names, delimiter, decimal)
        for part in (slice(0, 2), slice(2, None)):
            writer.write([text[part] for text in texts], [column[part] for column in numbers])
        return file.getvalue()

    text = written()
    with without_pyarrow():
        assert text == written()
    # A file with a NUL is taken for a binary one; Python before 3.13 puts no quotes around a \r.
    if rows and delimiter != " " and not set("\0\r") & set(text):
        path.write_text(text, encoding="utf-8", newline="")
        frame = read_table(path, delimiter=delimiter, decimal=decimal, header=True)
        assert frame.names == tuple(names)
        for name, column in zip(names[-len(numbers) :], numbers, strict=True):
            np.testing.assert_array_equal(frame[name], column)
        with open_table(path, delimiter=delimiter, decimal=decimal, header=True) as source:
            for text in texts:
                keys = [k for block in source.blocks(["key"], {"key"}) for k in block["key"]]
                # Blanks before a field belong to the delimiter.
                assert keys == [
                    k if '"' in csv_field(k, delimiter) else k.lstrip(" ") for k in text
                ]


def csv_field(text, delimiter):
    memory = io.StringIO(newline="")
    csv.writer(memory, delimiter=delimiter, lineterminator="\n").writerow([text, ""])
    return memory.getvalue()


def test_python_does_it_all_where_pyarrow_is_missing(path):
    path.write_text(PLAIN)
    gone = {name: None for name in sys.modules if name.partition(".")[0] == "pyarrow"}
    with mock.patch.dict(sys.modules, gone):
        del sys.modules["harfe.tables.readers.arrow_csv"]
        assert read_table(path)["size"].tolist() == [i + 0.5 for i in range(9)]
        file = io.StringIO()
        CsvWriter(file, ["y"], ",", ".").write([], [np.array([1.0, 2.5])])
        assert file.getvalue() == "y\n1.0\n2.5\n"
        assert "harfe.tables.arrow_csv" not in sys.modules


def test_a_gzipped_file_is_closed(path):
    path.write_bytes(gzip.compress(PLAIN.encode()))
    opened = []
    with mock.patch(
        "harfe.tables.readers.open._opened", lambda p: opened.append(open(p, "rb")) or opened[-1]
    ):
        with open_table(path):
            assert not opened[0].closed
        path.write_bytes(gzip.compress(PLAIN.encode())[:-20])
        with pytest.raises(TableError, match="damaged"):
            open_table(path)
    assert [file.closed for file in opened] == [True, True]
