"""Read Parquet files with pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.tables.columns import Column, Frame, TableError, place_of

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:  # pragma: no cover
    raise ImportError(
        'Parquet files need pyarrow: pip install "harfe[parquet]", or pass the table as CSV'
    ) from error

PARQUET_BLOCK = 1 << 16


class ParquetSource:
    """Rows of a Parquet file."""

    dialect = None

    def __init__(self, file: Any, name: str) -> None:
        self.source = name
        try:
            self._file = pq.ParquetFile(file, pre_buffer=True)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(name) from error
        self.names = tuple(self._file.schema_arrow.names)

    def __enter__(self) -> ParquetSource:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def blocks(
        self, columns: Sequence[str] | None = None, texts: Collection[str] = ()
    ) -> Iterator[Frame]:
        """Yield rows in order."""
        names = self.names if columns is None else tuple(columns)
        for name in names if columns is not None else ():
            place_of(name, self.names, self.source)
        if not self._file.metadata.num_rows:
            raise TableError(f"{self.source} has columns but no rows: pass a file that has rows")
        wanted = None if columns is None else list(dict.fromkeys(names))
        try:
            for batch in self._file.iter_batches(PARQUET_BLOCK, columns=wanted):
                # pyarrow returns selected columns in the order of the file.
                held = batch.schema.names
                places = range(len(held)) if wanted is None else [held.index(n) for n in names]
                yield Frame(
                    names,
                    tuple(
                        _column(batch.column(place), name in texts)
                        for place, name in zip(places, names, strict=True)
                    ),
                    self.source,
                )
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self.source) from error


def _damaged(name: str) -> TableError:
    return TableError(f"{name} is a damaged Parquet file: copy it again")


def _column(array: Any, as_text: bool) -> Column:
    kind = array.type
    if not as_text:
        if pa.types.is_floating(kind) or pa.types.is_integer(kind):
            return _floats(array)
        if pa.types.is_boolean(kind):
            return _floats(array.cast(pa.int8()))
        if pa.types.is_decimal(kind):
            return _floats(array.cast(pa.float64()))
        if pa.types.is_null(kind):
            return np.full(len(array), np.nan)
    return tuple("" if value is None else str(value) for value in array.to_pylist())


def _floats(array: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = array.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)
