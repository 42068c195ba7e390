"""What several commands share: options about tables, models, output files, notes."""

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


IMPORTANCE = "Which inputs matter (share of the variance of the prediction, interactions counted)"


class CommandError(Exception):
    """Something about the input is wrong: one sentence that says what to type."""


class UsageError(CommandError):
    """Something about what was typed is wrong."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one sentence; the whole usage is what --help is for."""

    def error(self, message: str) -> NoReturn:
        """Complain and stop."""
        say(f"{one_sentence(message)}; see {self.prog} --help")
        sys.exit(2)

    def options_known(self) -> list[str]:
        """All long options."""
        return re.findall(r"--[a-z][a-z0-9-]*", self.format_help())


def command(commands: Any, name: str, about: str, description: str, examples: str) -> Parser:
    """Make the parser of a command; its help ends with examples."""
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
    """Offer what says how a file is written; all of it is found out otherwise."""
    group = parser.add_argument_group("how the file is written (found out unless given)")
    group.add_argument("--delimiter", metavar="SIGN", help="between fields, e.g. ';' or tab")
    group.add_argument("--decimal", choices=[".", ","], help="decimal sign")
    names = group.add_mutually_exclusive_group()
    names.add_argument(
        "--header", action="store_true", default=None, help="the first line holds names"
    )
    names.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        default=None,
        help="it does not: columns are called column_1, column_2, ...",
    )
    group.add_argument("--encoding", metavar="NAME", help="UTF-8 unless given, e.g. latin-1")


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """Offer what says which columns are inputs, and how they are taken."""
    group = parser.add_argument_group("columns")
    group.add_argument(
        "--target",
        "-t",
        metavar="COLUMN",
        help="what to predict: name or number of a column (1 is the first, -1 the last)",
    )
    group.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="no input, e.g. an id; several with commas, or the option again",
    )
    group.add_argument(
        "--categories",
        metavar="COLUMN",
        action="append",
        default=[],
        help="numbers that are codes, e.g. of regions (texts are categories anyway)",
    )
    group.add_argument(
        "--missing",
        choices=["error", "drop", "median"],
        default="error",
        help="rows with missing values: stop (default), leave them out, or put in the median "
        "of the column (of categories the most frequent)",
    )
    group.add_argument(
        "--na",
        metavar="TEXT",
        action="append",
        default=[],
        help="also means a missing value, e.g. -999; empty, NA, NaN, null, ? and - do anyway",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """Offer to replace files."""
    parser.add_argument("--force", action="store_true", help="replace files that are there")


def file_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Options about a file as `read_table` takes them."""
    delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(options.delimiter, options.delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise CommandError(
            f"--delimiter {shlex.quote(delimiter)} must be a single sign: type e.g. --delimiter "
            "';' or --delimiter tab"
        )
    return {
        "delimiter": delimiter,
        "decimal": options.decimal,
        "header": options.header,
        "encoding": options.encoding,
    }


def listed(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Columns of options that may hold several with commas; a name may hold commas itself."""
    found: list[str] = []
    for text in given:
        found += [text] if text in names else [part.strip() for part in text.split(",")]
    return [name for name in found if name]


def column_settings(options: argparse.Namespace, frame: Frame) -> dict[str, Any]:
    """Options about columns as `TableEncoder.learn` takes them."""
    if options.target is None:
        names = ", ".join(frame.names[:20]) + (", ..." if len(frame.names) > 20 else "")
        raise UsageError(f"which column is to be predicted? Type --target and one of: {names}")
    return {
        "target": options.target,
        "drop": listed(options.drop, frame.names),
        "categories": listed(options.categories, frame.names),
        "missing": options.missing,
        "na": [part.strip() for text in options.na for part in text.split(",")],
    }


def load_model(path: str) -> TableModel:
    """A model that predicts from tables, whatever it was fitted on."""
    from harfe.files import load
    from harfe.tables import InputColumn, TableEncoder, TableModel

    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "is not there"
        raise CommandError(
            f"the model {path!r} {what}: pass a file that harfe fit has written, e.g. model.harfe"
        )
    model = load(path)
    if isinstance(model, TableModel):
        return model
    columns = tuple(InputColumn(name, "number") for name in model.expansion_.columns)
    return TableModel(TableEncoder(columns), model, {})


def check_output(path: str, force: bool, option: str = "-o") -> None:
    """Refuse a place that cannot be written to, before any work is done."""
    target = Path(path)
    if target.is_dir():
        raise CommandError(f"{path!r} is a folder: type {option} and a file name in it")
    if not target.parent.is_dir():
        raise CommandError(
            f"there is no folder {str(target.parent)!r}: make it, or type {option} and another name"
        )
    if target.exists() and not force:
        raise CommandError(
            f"{path!r} is already there: type --force to replace it, or {option} and another name"
        )
    if not os.access(target.parent, os.W_OK):
        raise CommandError(f"the folder {str(target.parent)!r} cannot be written to")


def say(text: str) -> None:
    """Write a line for the person on standard error."""
    sys.stderr.write(f"harfe: {text}\n")


def bars(names: Sequence[str], shares: Sequence[float], most: int = 12) -> list[str]:
    """Shares as lines with bars, as many as matter."""
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
    """A message of the library for one line."""
    return re.sub(r"\s+", " ", text).strip()
