"""`harfe predict`: predict the rows of a table, block by block."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO

from harfe._core.atomic_write import atomic_write
from harfe._core.wording import plural
from harfe.cli.common import (
    CommandError,
    add_file_options,
    add_force,
    check_output,
    command,
    file_settings,
    listed,
    load_model,
    say,
)

if TYPE_CHECKING:
    from harfe.tables import Frame, TableModel
    from harfe.tables.readers.open import Source
    from harfe.tables.writers import Writer

_ABOUT = """\
Predict the rows of a table with a model saved by harfe fit.

Rows keep their order; columns that the model does not use, such as the target,
are ignored. Files may be larger than memory. CSV output has the delimiter and
decimal separator of the input.
"""

_EXAMPLES = """\
  harfe predict model.harfe new.csv -o out.csv
  harfe predict model.harfe new.csv --id customer --interval 0.9 -o out.csv
  harfe predict model.harfe big.parquet -o out.parquet
  cat new.csv | harfe predict model.harfe - | head
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "predict", "predict the rows of a table", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("model", help="file written by harfe fit")
    parser.add_argument("data", help="CSV (also .gz) or Parquet file; - for standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="file to write: CSV, or by its extension .csv.gz or .parquet; - for standard output "
        "(default)",
    )
    add_force(parser)
    parser.add_argument(
        "--id",
        metavar="COLUMN",
        action="append",
        default=[],
        help="column to copy to the output; separate several with commas, or repeat the option",
    )
    sure = parser.add_mutually_exclusive_group()
    sure.add_argument(
        "--std", action="store_true", help="add the standard deviation of a new observation"
    )
    sure.add_argument(
        "--interval",
        metavar="LEVEL",
        type=_level,
        help="add bounds that contain a new observation with this probability, e.g. 0.9",
    )
    parser.add_argument(
        "--missing",
        choices=["error", "drop", "median"],
        help="rows with missing values: stop, leave their prediction empty (drop), or fill in "
        "the median of the training rows (default: as in the fit)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not print the number of rows")
    add_file_options(parser)


def _level(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be between 0 and 1, e.g. 0.9")
    return value


def run(options: argparse.Namespace) -> int:
    """Read, predict and write, each block while the next one is read."""
    if options.output != "-":
        check_output(options.output, options.force)
    model = load_model(options.model)
    _check_uncertainty(model, options)
    from harfe.tables import open_table
    from harfe.tables.encoder import unseen_text

    unseen: Counter[tuple[str, str]] = Counter()
    count = empty = 0
    with open_table(options.data, **file_settings(options)) as source:
        ids = _ids(options.id, source.names, options.data)
        _check_columns(model, source.names, _called(options.data))
        answers = _answers(options)
        if set(ids) & set(answers):
            raise CommandError(
                f"--id {ids[0]} has the name of another column of the output: rename it"
            )
        with (
            _writer(options.output, ids, answers, source) as writer,
            contextlib.closing(_ahead(_blocks(model, source, ids))) as blocks,
        ):
            for block in blocks:
                X, new = model.encoder.encode_counting(block, options.missing)
                unseen += new
                values = model.predict_encoded(X, options.std, options.interval)
                columns = values if isinstance(values, tuple) else (values,)
                writer.write([_texts(block[name]) for name in ids], columns)
                count += len(block)
                empty += int((columns[0] != columns[0]).sum())
    if unseen:
        say(f"note: {unseen_text(unseen)}")
    if empty:
        say(f"note: {plural(empty, 'row')} with missing values got no prediction")
    if options.output != "-" and not options.quiet:
        say(f"wrote predictions for {plural(count, 'row')} to {options.output}")
    return 0


def _called(path: str) -> str:
    return "standard input" if path == "-" else path


def _check_uncertainty(model: TableModel, options: argparse.Namespace) -> None:
    if (options.std or options.interval) and model.uncertainty_ is None:
        raise CommandError(
            f"{options.model} has no held-out errors stored, which --std and --interval need: fit "
            "it with harfe fit, or in Python with HARFERegressorCV or residual_cv=5"
        )


def _ids(given: Sequence[str], names: Sequence[str], path: str) -> list[str]:
    from harfe.tables.columns import place_of

    wanted = listed(given, names)
    return list(dict.fromkeys(names[place_of(n, names, _called(path), "id")] for n in wanted))


def _check_columns(model: TableModel, names: Sequence[str], source: str) -> None:
    """Name all missing columns, not just the first."""
    from harfe.tables.columns import unknown_column

    lacking = [name for name in model.encoder.columns_in if name not in names]
    if len(lacking) == 1:
        raise unknown_column(lacking[0], names, source)
    if lacking:
        shown = ", ".join(map(repr, lacking[:5]))
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        has = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise CommandError(
            f"{source} lacks {len(lacking)} columns that the model needs ({shown}{more}; its "
            f"columns are {has}): name them in its first line as in the table of the fit"
        )


def _answers(options: argparse.Namespace) -> list[str]:
    if options.interval is not None:
        return ["prediction", "lower", "upper"]
    return ["prediction", "std"] if options.std else ["prediction"]


def _blocks(model: TableModel, source: Source, ids: Sequence[str]) -> Iterator[Frame]:
    """Yield the needed columns; ids and categories as text."""
    encoder = model.encoder
    categories = [column.name for column in encoder.columns if column.kind == "category"]
    columns = list(dict.fromkeys([*encoder.columns_in, *ids]))
    return source.blocks(columns, {*ids, *categories})


def _ahead(blocks: Iterator[Frame]) -> Generator[Frame]:
    """Yield the same blocks, reading the next one while one is being predicted."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


def _texts(column: Any) -> Sequence[str]:
    from harfe.tables.columns import level

    if isinstance(column, tuple):
        return column
    return ["" if value != value else level(value) for value in column.tolist()]


@contextlib.contextmanager
def _writer(
    path: str, ids: Sequence[str], answers: Sequence[str], source: Source
) -> Iterator[Writer]:
    """Open the writer that fits the file name; the file is written completely or not at all."""
    from harfe.tables.writers import CsvWriter, ParquetWriter

    delimiter, decimal = ",", "."
    if source.dialect is not None:
        delimiter, decimal = source.dialect.delimiter, source.dialect.decimal
    names = [*ids, *answers]
    if path == "-":
        sys.stdout.flush()
        yield CsvWriter(sys.stdout, names, delimiter, decimal)
        return
    with atomic_write(path) as file:
        if path.endswith((".parquet", ".pq")):
            with ParquetWriter(file, ids, answers) as parquet:
                yield parquet
            return
        with contextlib.ExitStack() as stack:
            raw: BinaryIO = file
            if path.endswith(".gz"):
                raw = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))  # type: ignore[assignment]
            text = io.TextIOWrapper(raw, "utf-8", newline="", write_through=False)
            yield CsvWriter(text, names, delimiter, decimal)
            text.flush()
            text.detach()
