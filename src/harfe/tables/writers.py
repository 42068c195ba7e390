"""Write tables to files block by block: text columns first, then columns of numbers."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, BinaryIO, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray


class Writer(Protocol):
    """A file that is written block by block."""

    def write(self, texts: Sequence[Sequence[str]], numbers: Sequence[NDArray[np.float64]]) -> None:
        """Write the columns of some rows."""
        ...


class CsvWriter:
    """Write CSV; a number has the fewest digits that read back as the same number.

    Parameters
    ----------
    file : text file
    names : sequence of str
        Of all columns.
    delimiter : str
    decimal : {".", ","}
    """

    def __init__(self, file: TextIO, names: Sequence[str], delimiter: str, decimal: str) -> None:
        self._file, self._delimiter, self._decimal = file, delimiter, decimal
        self._csv = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        # Written with the first rows, so that a rejected table writes nothing.
        self._names: Sequence[str] = names

    def write(self, texts: Sequence[Sequence[str]], numbers: Sequence[NDArray[np.float64]]) -> None:
        """Write the columns of some rows."""
        if self._names:
            self._csv.writerow(self._names)
            self._names = ()
        lines = _by_arrow(texts, numbers, self._delimiter, self._decimal)
        if lines is not None:
            self._file.write(lines)
            return
        self._csv.writerows(zip(*texts, *map(self._written, numbers), strict=True))

    def _written(self, column: NDArray[np.float64]) -> list[Any]:
        values: list[Any] = column.tolist()
        if (column != column).any():
            values = ["" if value != value else value for value in values]
        if self._decimal == ",":
            values = [repr(value).replace(".", ",") if value != "" else "" for value in values]
        return values


def _by_arrow(
    texts: Sequence[Sequence[str]],
    numbers: Sequence[NDArray[np.float64]],
    delimiter: str,
    decimal: str,
) -> str | None:
    """Format lines with pyarrow; None where Python must do it."""
    try:
        from harfe.tables.readers.arrow_csv import write_rows
    except ImportError:
        return None
    return write_rows(texts, numbers, delimiter, decimal)


class ParquetWriter:
    """Write a Parquet file.

    Parameters
    ----------
    file : binary file
    texts, numbers : sequence of str
        Names of the columns.
    """

    def __init__(self, file: BinaryIO, texts: Sequence[str], numbers: Sequence[str]) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise ImportError(
                'Parquet files need pyarrow: pip install "harfe[parquet]", or type -o out.csv'
            ) from error
        self._arrow, self._names = pa, [*texts, *numbers]
        kinds = [(name, pa.string()) for name in texts]
        kinds += [(name, pa.float64()) for name in numbers]
        self._file = pq.ParquetWriter(file, pa.schema(kinds))

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def write(self, texts: Sequence[Sequence[str]], numbers: Sequence[NDArray[np.float64]]) -> None:
        """Write the columns of some rows."""
        arrays = [*(list(column) for column in texts), *numbers]
        self._file.write_table(self._arrow.table(arrays, names=self._names))
