"""Read tables from CSV and Parquet files, whole or block by block.

with open_table("data.csv") as source:
    for block in source.blocks():
        ...
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import numpy as np

from harfe.tables.columns import Column, Frame, Hint, TableError, level
from harfe.tables.readers.csv import SAVE_AS_CSV, CsvSource, damaged, not_decoded
from harfe.tables.readers.sniffing import Dialect, sniff

# Bytes from which the format of a file is detected.
_HEAD = 1 << 17

_OLD_EXCEL = b"\xd0\xcf\x11\xe0"


class Source(Protocol):
    """A table that is read block by block."""

    names: tuple[str, ...]

    @property
    def dialect(self) -> Dialect | None:
        """Format of a CSV file; None for other files."""
        ...

    def blocks(
        self, columns: Sequence[str] | None = None, texts: Collection[str] = ()
    ) -> Iterator[Frame]:
        """Yield rows in order, only these columns; those in `texts` as unchanged text."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
) -> Frame:
    """Read a whole table.

    Parameters
    ----------
    path : path
        A CSV file (also .gz) or a Parquet file, recognised by its content; "-" for standard
        input.
    delimiter : str, default=None
        Between fields; None detects comma, semicolon, tab, vertical bar or spaces.
    decimal : {".", ","}, default=None
        Decimal separator; None detects it.
    header : bool, default=None
        Whether the first line holds column names; None detects it. Without them, columns are
        named column_1, column_2, ...
    encoding : str, default=None
        Of a CSV file; None is UTF-8, with or without a byte order mark.

    Returns
    -------
    Frame

    Raises
    ------
    TableError
        If the file cannot be read; the message says what is wrong, where, and what to do.
    """
    with open_table(
        path, delimiter=delimiter, decimal=decimal, header=header, encoding=encoding
    ) as source:
        blocks = list(source.blocks())
    if len(blocks) == 1:
        return blocks[0]
    columns = tuple(
        _joined([block.columns[j] for block in blocks], blocks[0].decimal)
        for j in range(len(blocks[0].names))
    )
    lines = None
    if blocks[0].lines is not None:
        lines = np.concatenate([block.lines for block in blocks if block.lines is not None])
    return Frame(blocks[0].names, columns, blocks[0].source, lines, blocks[0].decimal)


def open_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
) -> Source:
    """Open a table to read it block by block, with the parameters of `read_table`."""
    name = "standard input" if str(path) == "-" else Path(path).name
    stream = _opened(path)
    try:
        head = _read_head(stream, name)
        if head.startswith(b"\x1f\x8b"):
            stream = _Unzipped(_Rewound(head, stream))  # type: ignore[assignment]
            head = _read_head(stream, name)
        if head.startswith(b"PAR1"):
            from harfe.tables.readers.parquet import ParquetSource

            whole: Any = path
            if str(path) == "-" or isinstance(stream, gzip.GzipFile):
                whole = io.BytesIO(head + stream.read())
            stream.close()
            return ParquetSource(whole, name)
        _check_head(head, path, name, encoding)
        return CsvSource(
            _Rewound(head, stream),
            name,
            _dialect(head, name, delimiter, decimal, header, encoding),
            encoding,
        )
    except BaseException:
        stream.close()
        raise


def _dialect(
    head: bytes,
    name: str,
    delimiter: str | None,
    decimal: str | None,
    header: bool | None,
    encoding: str | None,
) -> Dialect:
    whole = len(head) < _HEAD
    try:
        decoder = codecs.getincrementaldecoder(encoding or "utf-8-sig")()
        text = decoder.decode(head, final=whole)
    except UnicodeDecodeError as error:
        raise not_decoded(name, head[: error.start].count(b"\n") + 1, encoding) from None
    except LookupError:
        raise TableError(
            f"unknown encoding {encoding!r}: pass, for example, {{encoding}}",
            encoding=Hint("encoding", "latin-1"),
        ) from None
    if not text.strip():
        raise TableError(
            f"{name} is empty: pass a file with column names in its first line and rows below"
        )
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    return sniff(text, delimiter=delimiter, decimal=decimal, header=header)


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    if str(path) == "-":
        # Closing the table must not close standard input.
        return io.FileIO(os.dup(0)) if _is_real_stdin() else io.BytesIO(sys.stdin.buffer.read())
    try:
        return open(path, "rb")
    except FileNotFoundError:
        folder = Path(path).parent
        there = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        near = get_close_matches(Path(path).name, there, 1)
        hint = f"did you mean {str(folder / near[0])!r}?" if near else "check its name and folder"
        raise TableError(f"file {str(path)!r} not found: {hint}") from None
    except IsADirectoryError:
        inside = sorted(entry.name for entry in Path(path).iterdir() if entry.is_file())
        hint = f", e.g. {str(Path(path) / inside[0])!r}" if inside else ""
        raise TableError(f"{str(path)!r} is a folder: pass a file in it{hint}") from None
    except OSError as error:
        raise TableError(f"{str(path)!r} cannot be read: {error.strerror}") from None


def _is_real_stdin() -> bool:
    try:
        return sys.stdin.fileno() == 0
    except (OSError, ValueError, AttributeError):
        return False


def _read_head(stream: BinaryIO, name: str) -> bytes:
    parts, size = [], 0
    try:
        while size < _HEAD and (part := stream.read(_HEAD - size)):
            parts.append(part)
            size += len(part)
    except (OSError, EOFError, zlib.error):
        raise damaged(name) from None
    return b"".join(parts)


def _check_head(head: bytes, path: str | os.PathLike[str], name: str, encoding: str | None) -> None:
    """Reject files that are not text, and say what they are."""
    if not head:
        raise TableError(
            f"{name} is empty: pass a file with column names in its first line and rows below"
        )
    if head.startswith(b"PK\x03\x04"):
        if _is_workbook(path):
            raise TableError(f"{name} is an Excel workbook: {SAVE_AS_CSV}")
        raise TableError(
            f"{name} is an archive or a harfe model, not a table: pass a CSV or Parquet file"
        )
    if head.startswith(_OLD_EXCEL):
        raise TableError(f"{name} is an Excel workbook: {SAVE_AS_CSV}")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and encoding is None:
        raise TableError(
            f"{name} is encoded in UTF-16: pass {{encoding}}", encoding=Hint("encoding", "utf-16")
        )
    if b"\0" in head and encoding is None:
        raise TableError(f"{name} is not a text file: pass a CSV or Parquet file")


def _is_workbook(path: str | os.PathLike[str]) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(entry.startswith(("xl/", "content.xml")) for entry in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


class _Rewound(io.RawIOBase):
    """A stream with the part already read put back in front."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if len(self._head):
            size = min(len(buffer), len(self._head))
            buffer[:size], self._head = self._head[:size], self._head[size:]
            return size
        part = self._rest.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._rest.close()
        super().close()


class _Unzipped(gzip.GzipFile):
    """A gzip stream that closes the file it reads."""

    def __init__(self, packed: _Rewound) -> None:
        super().__init__(fileobj=packed)
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()


def _joined(parts: Sequence[Column], decimal: str) -> Column:
    """Join the blocks of a column; numbers become text again if another block has text."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    texts: list[str] = []
    for part in parts:
        if isinstance(part, np.ndarray):
            written = ("" if np.isnan(value) else level(value) for value in part.tolist())
            texts.extend(written if decimal == "." else (t.replace(".", ",") for t in written))
        else:
            texts.extend(part)
    return tuple(texts)
