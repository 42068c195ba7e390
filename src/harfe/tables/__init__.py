"""Tables as found in practice, and models that predict from them.

    model = TableModel.fit(read_table("houses.csv"), target="price")
    model.predict(read_table("new.csv"))

`harfe.tables.readers.open` reads files and `harfe.tables.encoder` converts columns to numbers; a
`TableModel` keeps the encoder, so that new tables are treated like the training table. Data frames
of pandas and polars, tables of pyarrow and dictionaries of columns work as well as files.
"""

from __future__ import annotations

from harfe.tables.checks import places_of
from harfe.tables.columns import Frame, TableError, as_frame
from harfe.tables.encoder import InputColumn, TableEncoder
from harfe.tables.model import TableModel, name_inputs
from harfe.tables.readers.open import open_table, read_table
from harfe.tables.rows import TrainingRows, fingerprint, training_rows

__all__ = [
    "Frame",
    "InputColumn",
    "TableEncoder",
    "TableError",
    "TableModel",
    "TrainingRows",
    "as_frame",
    "fingerprint",
    "name_inputs",
    "open_table",
    "places_of",
    "read_table",
    "training_rows",
]
