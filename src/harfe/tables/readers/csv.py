"""Read the rows of a text file block by block, and report what is wrong with them."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.tables.columns import Column, Frame, Hint, TableError, number, numbers, place_of
from harfe.tables.readers.lines import READ_ERRORS, Lines
from harfe.tables.readers.sniffing import Dialect

# Columns of some rows, and the line that each row ends on.
_Block = tuple[list[Column], NDArray[np.int64]]

CSV_BLOCK = 1 << 14
SAVE_AS_CSV = "save it as 'CSV UTF-8' in the program that made it and pass that file"


class CsvSource:
    """Rows of a text file, read by pyarrow where it is installed and agrees with Python."""

    def __init__(
        self, stream: io.RawIOBase, name: str, dialect: Dialect, encoding: str | None
    ) -> None:
        self.source, self.dialect = name, dialect
        self._encoding = encoding
        self._lines = Lines(stream, encoding or "utf-8-sig")
        if dialect.separator_line:
            next(self._lines)
        self._rows = dialect.rows(self._lines)
        first: list[str] = []
        line = 0
        while not first:
            rows, line = self._read(1)
            if not rows:
                break
            first = rows[0]
        # Without a header: the first row and the line number before it.
        self._first = None if dialect.header else (first, line)
        names = first if dialect.header else [""] * len(first)
        self.names = tuple(
            name.strip() or f"column_{place + 1}" for place, name in enumerate(names)
        )

    def __enter__(self) -> CsvSource:
        return self

    def __exit__(self, *exception: object) -> None:
        self._lines.close()

    def blocks(
        self, columns: Sequence[str] | None = None, texts: Collection[str] = ()
    ) -> Iterator[Frame]:
        """Yield rows in order."""
        places = list(range(len(self.names)))
        if columns is not None:
            places = [place_of(name, self.names, self.source) for name in columns]
        names = tuple(self.names[place] for place in places)
        arrow = _arrow_csv(self.dialect.delimiter)
        empty = True
        while True:
            block = self._arrow_block(arrow, places, texts) if arrow and not self._first else None
            if block is None:
                block = self._block(places, texts)
            if block is None:
                break
            read, lines = block
            if not len(lines):
                continue
            empty = False
            yield Frame(names, tuple(read), self.source, lines, self._decimal)
        if empty:
            raise TableError(
                f"{self.source} has column names but no rows: pass a file that has rows"
            )

    @property
    def _decimal(self) -> str:
        return self.dialect.decimal

    def _arrow_block(
        self, arrow: Any, places: Sequence[int], texts: Collection[str]
    ) -> _Block | None:
        """Read the next rows with pyarrow; None where Python must read them."""
        ahead = self._lines.peek(CSV_BLOCK, csv.field_size_limit())
        if ahead is None or not ahead[1]:
            return None
        block, count = ahead
        fields = arrow.read_fields(block, count, self.dialect.delimiter, len(self.names), places)
        if fields is None:
            return None
        start = self._lines.taken
        self._lines.take(len(block), count)
        read: list[Column] = []
        for place, column in zip(places, fields, strict=True):
            values = None
            if self.names[place] not in texts and self._may_be_numbers(column):
                values = arrow.read_numbers(column, self._decimal)
                if values is None:
                    values = self._column(arrow.as_texts(column))
            read.append(arrow.as_texts(column) if values is None else values)
        return read, np.arange(start + 1, start + count + 1)

    def _block(self, places: Sequence[int], texts: Collection[str]) -> _Block | None:
        """Read the next rows with Python; None at the end."""
        rows, lines = self._row_block()
        if rows is None:
            return None
        if not rows:
            return [], lines
        every = list(zip(*rows, strict=True))
        return [
            every[place] if self.names[place] in texts else self._column(every[place])
            for place in places
        ], lines

    def _column(self, texts: tuple[str, ...]) -> Column:
        """Convert texts to numbers if all of them are numbers."""
        if not self._may_be_numbers(texts):
            return texts
        read, odd = numbers(texts, self._decimal)
        return texts if odd else read

    def _may_be_numbers(self, texts: Any) -> bool:
        """Whether the first, middle and last are: a cheap test that rejects most text columns."""
        some = (texts[0], texts[len(texts) // 2], texts[-1])
        return all(number(str(text), self._decimal) is not None for text in some)

    def _read(self, count: int) -> tuple[list[list[str]], int]:
        """Read up to `count` rows; also return the line number before them."""
        start = self._lines.taken
        try:
            return list(islice(self._rows, count)), start
        except UnicodeDecodeError:
            raise not_decoded(self.source, self._lines.taken + 1, self._encoding) from None
        except csv.Error as error:
            raise TableError(
                f"line {self._lines.taken} of {self.source} cannot be read ({error}): look for a "
                "quote that is not closed"
            ) from None
        except READ_ERRORS:
            raise damaged(self.source) from None

    def _row_block(self) -> tuple[list[list[str]] | None, NDArray[np.int64]]:
        """Read the next rows, all of one length; None at the end."""
        rows, start = self._read(CSV_BLOCK - (self._first is not None))
        if self._first is not None:
            first, start = self._first
            rows, self._first = [first, *rows], None
        if not rows:
            return None, np.empty(0, dtype=np.int64)
        end = self._lines.taken
        if set(map(len, rows)) == {len(self.names)} and end - start == len(rows):
            return rows, np.arange(start + 1, end + 1)
        return self._repaired(rows, start)

    def _repaired(
        self, rows: list[list[str]], line: int
    ) -> tuple[list[list[str]], NDArray[np.int64]]:
        """Drop empty lines and a trailing delimiter; reject rows of any other length."""
        kept, lines, width = [], [], len(self.names)
        for row in rows:
            line += 1 + sum(field.count("\n") for field in row)
            if not row or (width > 1 and len(row) == 1 and not row[0].strip()):
                continue
            if len(row) == width + 1 and not row[-1].strip():
                row = row[:-1]
            if len(row) != width:
                raise TableError(
                    f"line {line} of {self.source} has {_fields(len(row))}, but the first line has "
                    f"{width}: correct the line, and make sure that text containing "
                    f"{_called(self.dialect.delimiter)} is in closed quotes"
                )
            kept.append(row)
            lines.append(line)
        return kept, np.array(lines, dtype=np.int64)


def _arrow_csv(delimiter: str) -> Any:
    """Return the module that reads with pyarrow; None where Python must do it."""
    try:
        import harfe.tables.readers.arrow_csv as arrow_csv
    except ImportError:
        return None
    return arrow_csv if arrow_csv.can_split(delimiter) else None


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _called(delimiter: str) -> str:
    known = {
        ",": "a comma",
        ";": "a semicolon",
        "\t": "a tab",
        " ": "a space",
        "|": "a vertical bar",
    }
    return known.get(delimiter, repr(delimiter))


def damaged(name: str) -> TableError:
    """Return the error for a file that ends too early."""
    return TableError(f"{name} is damaged or incomplete: copy or compress it again")


def not_decoded(name: str, line: int, encoding: str | None) -> TableError:
    """Return the error for text in another encoding."""
    if encoding is not None:
        return TableError(
            f"{name} is not in the encoding {encoding!r} (line {line}): pass another encoding"
        )
    return TableError(
        f"{name} is not UTF-8 (line {line}): {SAVE_AS_CSV}, or pass {{encoding}}",
        encoding=Hint("encoding", "latin-1"),
    )
