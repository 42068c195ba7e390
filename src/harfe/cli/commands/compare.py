"""`harfe compare`: compare methods on the user's own data."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

from harfe.cli.common import (
    CommandError,
    add_column_options,
    add_file_options,
    column_settings,
    command,
    file_settings,
    say,
)

_ABOUT = """\
Compare harfe with other methods on a table.

Each method predicts each fold after being tuned and fitted on the other folds
alone. The error is the root mean square over the rows of a fold; its mean and
spread over the folds are shown. The size counts features, coefficients, leaves
or support vectors.
"""

_EXAMPLES = """\
  harfe compare houses.csv --target price
  harfe compare houses.csv --target price --methods harfe,linear,forest --cv 3
  harfe compare houses.csv --target price --methods paper    # methods of the paper's tables
  harfe compare --methods help                               # list all methods
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "compare", "compare methods on a table", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument(
        "data", nargs="?", help="CSV (also .gz) or Parquet file; - for standard input"
    )
    add_column_options(parser)
    parser.add_argument(
        "--methods",
        metavar="NAMES",
        help="names separated by commas, or default, paper or all; --methods help lists them",
    )
    parser.add_argument(
        "--cv", metavar="FOLDS", type=int, default=5, help="number of folds (default 5)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the folds and methods (default 0)"
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    add_file_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, fit every method, print."""
    from harfe.compare.methods import METHODS, named

    if options.methods == "help":
        _list(METHODS)
        return 0
    if options.data is None:
        raise CommandError(
            "no table given: type harfe compare data.csv --target COLUMN, or "
            "harfe compare --methods help for a list of methods"
        )
    asked = [name.strip() for name in (options.methods or "default").split(",") if name.strip()]
    try:
        methods = named(asked)
    except ValueError as error:
        raise CommandError(f"--methods {options.methods!r}: {error}") from None
    if not methods:
        raise CommandError(
            f"--methods {options.methods!r} names no method: type some of {', '.join(METHODS)}, "
            "separated by commas"
        )
    from harfe.compare.league import compare_methods
    from harfe.tables import TableEncoder, read_table, training_rows

    frame = read_table(options.data, **file_settings(options))
    encoder = TableEncoder.learn(frame, **column_settings(options, frame))
    rows = training_rows(encoder, frame)
    if not 2 <= options.cv <= len(rows.y) // 2:
        raise CommandError(
            f"--cv {options.cv} does not work with {len(rows.y)} rows: type a number between 2 and "
            f"{max(len(rows.y) // 2, 2)}"
        )
    for note in () if options.quiet else encoder.notes:
        say(f"note: {note}")

    def report_fold(name: str, number: int, error: float) -> None:
        say(f"{name}: fold {number + 1} of {options.cv}, error {error:.4g}")

    result = compare_methods(
        rows.X, rows.y, methods, options.cv, options.seed, None if options.quiet else report_fold
    )
    if options.json:
        sys.stdout.write(json.dumps(result.to_dict(), indent=1) + "\n")
    else:
        sys.stdout.write(_league(result, encoder.target or "y", len(rows.y), options.cv) + "\n")
    return 0


def _list(methods: Any) -> None:
    """List the methods: name, description, name in the paper, and how to install it."""
    width = max(map(len, methods))
    for name, method in methods.items():
        notes = [f"in the paper: {method.paper}"] if method.paper else []
        if not method.is_installed:
            notes.append("not installed: pip install 'harfe[rivals]'")
        note = f" ({'; '.join(notes)})" if notes else ""
        sys.stdout.write(f"{name:{width}}  {method.about}{note}\n")


def _league(result: Any, target: str, rows: int, folds: int) -> str:
    lines = [
        f"Error of {target} on held-out rows, {rows} rows, {folds} folds",
        "",
        f"{'':3} {'method':12} {'error':>10} {'spread':>9} {'R²':>7} {'size':>7} {'fit s':>8} "
        f"{'predict µs/row':>15}",
    ]
    for place, row in enumerate(result.rows(), 1):
        if math.isnan(row["rmse"]):
            lines.append(f"{'':3} {row['method']:12} failed: {row['failure']}")
            continue
        size = "" if row["size"] is None else str(row["size"])
        lines.append(
            f"{place:2}. {row['method']:12} {row['rmse']:10.4g} {row['spread']:9.2g} "
            f"{row['r2']:7.3f} {size:>7} {row['fit_seconds']:8.2g} "
            f"{row['predict_microseconds']:15.3g}"
        )
    best = next(iter(result.rows()))
    within = [
        row["method"]
        for row in result.rows()
        if not math.isnan(row["rmse"])
        and row["rmse"] <= best["rmse"] + best["spread"] / math.sqrt(folds)
    ]
    if len(within) > 1:
        lines += ["", f"Within one standard error of the best: {', '.join(within)}"]
    return "\n".join(lines)
