"""Shared by the commands: options for tables and columns, models, output files, messages."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from harfe._core.wording import percent

if TYPE_CHECKING:
    from harfe.tables import Frame, TableModel


IMPORTANCE = "Which inputs matter (share of the variance of the prediction, with interactions)"


class CommandError(Exception):
    """The input is wrong; the message is one sentence that says what to type."""


class UsageError(CommandError):
    """The command line is wrong."""


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence and leaves the usage to --help."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with code 2."""
        say(f"{one_sentence(message)}; see {self.prog} --help")
        sys.exit(2)

    def options_known(self) -> list[str]:
        """Return all long options."""
        return re.findall(r"--[a-z][a-z0-9-]*", self.format_help())


def command(commands: Any, name: str, about: str, description: str, examples: str) -> Parser:
    """Add the parser of a command; its help ends with examples."""
    parser: Parser = commands.add_parser(
        name,
        help=about,
        description=description,
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return parser


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the file format; each is detected if not given."""
    group = parser.add_argument_group("file format (detected unless given)")
    group.add_argument("--delimiter", metavar="CHAR", help="between fields, e.g. ';' or tab")
    group.add_argument("--decimal", choices=[".", ","], help="decimal separator")
    names = group.add_mutually_exclusive_group()
    names.add_argument(
        "--header", action="store_true", default=None, help="the first line holds column names"
    )
    names.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        default=None,
        help="the first line is data; columns are called column_1, column_2, ...",
    )
    group.add_argument("--encoding", metavar="NAME", help="e.g. latin-1 (default UTF-8)")


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select columns and say how they are read."""
    group = parser.add_argument_group("columns")
    group.add_argument(
        "--target",
        "-t",
        metavar="COLUMN",
        help="column to predict: its name or number (1 is the first, -1 the last)",
    )
    group.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="column to leave out, e.g. an id; separate several with commas, or repeat the option",
    )
    group.add_argument(
        "--categories",
        metavar="COLUMN",
        action="append",
        default=[],
        help="numeric column whose values are codes, e.g. of regions (text columns are always "
        "categories)",
    )
    group.add_argument(
        "--missing",
        choices=["error", "drop", "median"],
        default="error",
        help="rows with missing values: stop (default), leave the rows out, or fill in the "
        "median of the column (for categories, the most frequent)",
    )
    group.add_argument(
        "--na",
        metavar="TEXT",
        action="append",
        default=[],
        help="another text for a missing value, e.g. -999, in addition to empty, NA, NaN, null, "
        "? and -",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that allows files to be replaced."""
    parser.add_argument("--force", action="store_true", help="replace existing files")


def file_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the file options as arguments of `read_table`."""
    delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(options.delimiter, options.delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise CommandError(
            f"--delimiter {shlex.quote(delimiter)} must be a single character: type e.g. "
            "--delimiter ';' or --delimiter tab"
        )
    return {
        "delimiter": delimiter,
        "decimal": options.decimal,
        "header": options.header,
        "encoding": options.encoding,
    }


def listed(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Split values at commas into column names, except values that are names themselves."""
    found: list[str] = []
    for text in given:
        found += [text] if text in names else [part.strip() for part in text.split(",")]
    return [name for name in found if name]


def column_settings(options: argparse.Namespace, frame: Frame) -> dict[str, Any]:
    """Return the column options as arguments of `TableEncoder.learn`."""
    if options.target is None:
        names = ", ".join(frame.names[:20]) + (", ..." if len(frame.names) > 20 else "")
        raise UsageError(f"which column should be predicted? Type --target and one of: {names}")
    return {
        "target": options.target,
        "drop": listed(options.drop, frame.names),
        "categories": listed(options.categories, frame.names),
        "missing": options.missing,
        "na": [part.strip() for text in options.na for part in text.split(",")],
    }


def load_model(path: str) -> TableModel:
    """Load a model as one that predicts from tables, even if it was fitted to an array."""
    from harfe.files import load
    from harfe.tables import InputColumn, TableEncoder, TableModel

    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "does not exist"
        raise CommandError(
            f"the model {path!r} {what}: pass a file written by harfe fit, e.g. model.harfe"
        )
    model = load(path)
    if isinstance(model, TableModel):
        return model
    columns = tuple(InputColumn(name, "number") for name in model.expansion_.columns)
    return TableModel(TableEncoder(columns), model, {})


def check_output(path: str, force: bool, option: str = "-o") -> None:
    """Refuse a path that cannot be written to, before any work is done."""
    target = Path(path)
    if target.is_dir():
        raise CommandError(f"{path!r} is a folder: type {option} and the name of a file in it")
    if not target.parent.is_dir():
        raise CommandError(
            f"there is no folder {str(target.parent)!r}: create it, or type {option} and another "
            "name"
        )
    if target.exists() and not force:
        raise CommandError(
            f"{path!r} already exists: type --force to replace it, or {option} and another name"
        )
    if not os.access(target.parent, os.W_OK):
        raise CommandError(
            f"the folder {str(target.parent)!r} is not writable: type {option} and another name"
        )


def say(text: str) -> None:
    """Print a message for the user to standard error."""
    sys.stderr.write(f"harfe: {text}\n")


def bars(names: Sequence[str], shares: Sequence[float], most: int = 12) -> list[str]:
    """Return lines with bars for the shares of at least 0.05 %, in the given order."""
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    shown = [k for k in range(len(names)) if shares[k] >= 0.0005][:most]
    if not shown:
        return ["  none"]
    width = max(len(names[k]) for k in shown)
    largest = max(shares[k] for k in shown)
    lines = [
        f"  {names[k]:{width}}  {percent(shares[k]):>7} "
        + block * max(round(30 * shares[k] / largest), 1)
        for k in shown
    ]
    left = sum(share >= 0.0005 for share in shares) - len(shown)
    return [*lines, *([f"  and {left} more"] if left else [])]


def one_sentence(text: str) -> str:
    """Return a message on one line."""
    return re.sub(r"\s+", " ", text).strip()
