"""Read and write blocks of CSV with pyarrow: same result as Python's `csv` and `float`, but faster.

Where pyarrow's result might differ, functions return None, and the caller uses Python instead.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from harfe.tables.columns import MISSING_TEXTS

_MISSING = pa.array(sorted(MISSING_TEXTS))
_BLANKS = " \t"

# Within these bounds pyarrow and Python write a fraction alike; elsewhere exponents differ.
_LEAST, _MOST = 1e-4, 1e10


def can_split(delimiter: str) -> bool:
    """Whether pyarrow splits lines as Python does, which merges consecutive spaces."""
    return len(delimiter) == 1 and delimiter.isascii() and delimiter not in ' "\r\n\0'


def read_fields(
    block: bytes, n_lines: int, delimiter: str, width: int, places: Sequence[int]
) -> list[Any] | None:
    r"""Read some columns of whole lines as text.

    Parameters
    ----------
    block : bytes
        Lines in UTF-8 that end in \n; the last one may lack it.
    n_lines : int
        Number of lines.
    delimiter : str
    width : int
        Fields per line.
    places : sequence of int
        Columns to return.

    Returns
    -------
    list of pyarrow.Array or None
        None unless every line is one row of `width` fields.
    """
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None
    # For Python, a quote after a space starts a quoted field; not for pyarrow.
    blanks, quotes = b" " in block, b'"' in block
    if blanks and quotes and b' "' in block:
        return None
    names = [str(place) for place in range(width)]
    # Append a row of our own: an unclosed quote before it would swallow it.
    last = delimiter.join("0" * width) + "\n"
    whole = b"".join((block, b"" if block.endswith(b"\n") else b"\n", last.encode()))
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(whole),
            # One block, because pyarrow handles quoted line ends only within a block.
            arrow_csv.ReadOptions(column_names=names, block_size=len(whole) + 1),
            arrow_csv.ParseOptions(delimiter=delimiter),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=[names[place] for place in dict.fromkeys(places)],
            ),
        )
    except (pa.ArrowException, OverflowError):
        return None
    if table.num_rows != n_lines + 1:
        return None
    columns = {name: _single(table[name])[:-1] for name in table.column_names}
    # Python drops spaces before a field, but not inside its quotes.
    if blanks and quotes:
        if any(pc.any(pc.starts_with(column, " ")).as_py() for column in columns.values()):
            return None
    elif blanks:
        columns = {name: pc.utf8_ltrim(column, " ") for name, column in columns.items()}
    return [columns[names[place]] for place in places]


def read_numbers(texts: Any, decimal: str) -> NDArray[np.float64] | None:
    """Convert texts to numbers as `columns.number` does; None if the result might differ."""
    if decimal == "," and pc.any(pc.match_substring(texts, ".")).as_py():
        return None
    values = _cast(texts, decimal)
    if values is None:
        texts = pc.utf8_trim(texts, _BLANKS)
        absent = pc.or_(pc.is_in(pc.ascii_lower(texts), _MISSING), pc.equal(texts, "None"))
        values = _cast(pc.if_else(absent, "nan", texts), decimal)
    return values


def as_texts(texts: Any) -> tuple[str, ...]:
    """Convert to Python strings."""
    return tuple(texts.to_numpy(zero_copy_only=False).tolist())


def write_rows(
    texts: Sequence[Sequence[str]],
    numbers: Sequence[NDArray[np.float64]],
    delimiter: str,
    decimal: str,
) -> str | None:
    """Return columns of texts and of numbers as lines; None if a field needs quotes."""
    if not can_split(delimiter) or (len(texts) + len(numbers) == 1 and np.isnan(numbers).any()):
        return None
    columns = [pa.array(column, pa.string()) for column in texts]
    columns += [_written(column, decimal) for column in numbers]
    memory = io.BytesIO()
    try:
        arrow_csv.write_csv(
            pa.table(columns, [str(place) for place in range(len(columns))]),
            memory,
            arrow_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none"),
        )
    except pa.ArrowInvalid:
        return None
    return memory.getvalue().decode()


def _single(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _cast(texts: Any, decimal: str) -> NDArray[np.float64] | None:
    if decimal == ",":
        texts = pc.replace_substring(texts, ",", ".")
    try:
        numbers = pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return None
    values: NDArray[np.float64] = numbers.to_numpy(zero_copy_only=False)
    # Unlike Python, C reads nan(1) as NaN.
    if np.isnan(values).any() and pc.any(pc.match_substring(texts, "(")).as_py():
        return None
    return values


def _written(values: NDArray[np.float64], decimal: str) -> Any:
    """Format numbers as `repr` does; NaN becomes empty."""
    texts = pc.cast(pa.array(values), pa.string())
    size = np.abs(values)
    alike = (size >= _LEAST) & (size < _MOST) & (values != np.floor(values))
    if not alike.all():
        rest = ["" if value != value else repr(value) for value in values[~alike].tolist()]
        texts = pc.replace_with_mask(texts, pa.array(~alike), pa.array(rest, pa.string()))
    return pc.replace_substring(texts, ".", ",") if decimal == "," else texts
