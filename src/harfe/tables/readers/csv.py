"""Rows of a text file, block after block, and what may be wrong with them."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from harfe.tables.columns import Column, Frame, Hint, TableError, number, numbers, place_of
from harfe.tables.readers.sniffing import Dialect

CSV_BLOCK = 1 << 14
SAVE_AS_CSV = "save it as 'CSV UTF-8' in the program that made it, and pass that file"


class CsvSource:
    """Rows of a text file."""

    def __init__(
        self, stream: io.RawIOBase, name: str, dialect: Dialect, encoding: str | None
    ) -> None:
        self.source, self.dialect = name, dialect
        buffered = io.BufferedReader(stream, 1 << 18)
        self._encoding = encoding
        self._text = io.TextIOWrapper(buffered, encoding or "utf-8-sig", newline="")
        self._skipped = 0
        if dialect.separator_line:
            self._text.readline()
            self._skipped = 1
        self._rows = dialect.rows(self._text)
        first: list[str] = []
        while not first:
            rows, _ = self._read(1)
            if not rows:
                break
            first = rows[0]
        self._first = [] if dialect.header else [first]
        names = first if dialect.header else [""] * len(first)
        self.names = tuple(
            name.strip() or f"column_{place + 1}" for place, name in enumerate(names)
        )

    def __enter__(self) -> CsvSource:
        return self

    def __exit__(self, *exception: object) -> None:
        self._text.close()

    def blocks(
        self, columns: Sequence[str] | None = None, texts: Collection[str] = ()
    ) -> Iterator[Frame]:
        """Rows in their order."""
        places = list(range(len(self.names)))
        if columns is not None:
            places = [place_of(name, self.names, self.source) for name in columns]
        names = tuple(self.names[place] for place in places)
        empty = True
        while True:
            rows, lines = self._block()
            if rows is None:
                break
            if not rows:
                continue
            empty = False
            every = list(zip(*rows, strict=True))
            yield Frame(
                names,
                tuple(
                    every[place] if name in texts else self._column(every[place])
                    for place, name in zip(places, names, strict=True)
                ),
                self.source,
                lines,
                self._decimal,
            )
        if empty:
            raise TableError(f"{self.source} has a line of names but no rows: pass one with rows")

    @property
    def _decimal(self) -> str:
        return self.dialect.decimal

    def _column(self, texts: tuple[str, ...]) -> Column:
        """Numbers if all of them are; three of them tell most texts."""
        some = (texts[0], texts[len(texts) // 2], texts[-1])
        if any(number(text, self._decimal) is None for text in some):
            return texts
        read, odd = numbers(texts, self._decimal)
        return texts if odd else read

    def _read(self, count: int) -> tuple[list[list[str]], int]:
        """So many rows, and the line before them."""
        start = self._rows.line_num + self._skipped
        try:
            return list(islice(self._rows, count)), start
        except UnicodeDecodeError:
            raise not_decoded(self.source, self._line(), self._encoding) from None
        except csv.Error as error:
            raise TableError(
                f"line {self._line()} of {self.source} cannot be read ({error}): look for a quote "
                "that is not closed"
            ) from None
        except (OSError, EOFError, zlib.error):
            raise damaged(self.source) from None

    def _line(self) -> int:
        return int(self._rows.line_num) + self._skipped + 1

    def _block(self) -> tuple[list[list[str]] | None, NDArray[np.int64]]:
        """The next rows, all of one length; None at the end."""
        rows, start = self._read(CSV_BLOCK - len(self._first))
        if self._first:
            rows, self._first, start = self._first + rows, [], start - 1
        if not rows:
            return None, np.empty(0, dtype=np.int64)
        end = self._rows.line_num + self._skipped
        if set(map(len, rows)) == {len(self.names)} and end - start == len(rows):
            return rows, np.arange(start + 1, end + 1)
        return self._mended(rows, start)

    def _mended(
        self, rows: list[list[str]], line: int
    ) -> tuple[list[list[str]], NDArray[np.int64]]:
        """Without empty lines and a delimiter too many at the end; other lengths are refused."""
        kept, lines, width = [], [], len(self.names)
        for row in rows:
            line += 1 + sum(field.count("\n") for field in row)
            if not row or (width > 1 and len(row) == 1 and not row[0].strip()):
                continue
            if len(row) == width + 1 and not row[-1].strip():
                row = row[:-1]
            if len(row) != width:
                raise TableError(
                    f"line {line} of {self.source} has {len(row)} fields, but the first line has "
                    f"{width}: correct it, and see that texts which hold "
                    f"{_called(self.dialect.delimiter)} stand in quotes that are closed"
                )
            kept.append(row)
            lines.append(line)
        return kept, np.array(lines, dtype=np.int64)


def _called(delimiter: str) -> str:
    known = {",": "a comma", ";": "a semicolon", "\t": "a tab", " ": "a blank", "|": "a bar"}
    return known.get(delimiter, repr(delimiter))


def damaged(name: str) -> TableError:
    """Error about a file that ends too early."""
    return TableError(f"{name} is damaged or cut short: copy or compress it again")


def not_decoded(name: str, line: int, encoding: str | None) -> TableError:
    """Error about a text in another encoding."""
    if encoding is not None:
        return TableError(f"{name} is not in {encoding}, see line {line}: pass another encoding")
    return TableError(
        f"{name} is not in UTF-8, see line {line}: {SAVE_AS_CSV}, or pass {{encoding}}",
        encoding=Hint("encoding", "latin-1"),
    )
