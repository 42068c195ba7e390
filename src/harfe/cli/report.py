"""`harfe report`: a page about a model."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from harfe.cli.common import (
    CommandError,
    add_file_options,
    add_force,
    check_output,
    command,
    file_settings,
    load_model,
    say,
)

_ABOUT = """\
Write a report page about a model: one HTML file that needs nothing else.

With the table of the fit it shows the error on held-out rows as the fit
measured it; with another table that has the target, the error on that one.
"""

_EXAMPLES = """\
  harfe report model.harfe houses.csv -o report.html
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "report", "write a report page about a model", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("model", help="file that harfe fit has written")
    parser.add_argument("data", help="table with the target: that of the fit, or another one")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="report.html", help="default: report.html"
    )
    add_force(parser)
    add_file_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, compare with what was fitted, write."""
    check_output(options.output, options.force)
    model = load_model(options.model)
    if model.encoder.target is None:
        raise CommandError(
            f"{options.model} does not say what it predicts: fit it with harfe fit, or call "
            "harfe.report.write_report in Python"
        )
    from harfe.cli.fit import split, write_page
    from harfe.tables import fingerprint, read_table, training_rows

    frame = read_table(options.data, **file_settings(options))
    same = model.meta.get("fingerprint") == fingerprint(frame)
    rows = training_rows(model.encoder, frame, model.meta.get("weight") if same else None)
    if same:
        error = model.meta.get("error") or {}
        fitted, held_out = split(rows, error.get("share"), model.meta.get("seed", 0))
        write_page(model, fitted, held_out, options.output)
    else:
        say(
            f"note: {options.data} is not the table that the model was fitted to; its rows are "
            "taken as new ones"
        )
        write_page(model, rows, rows, options.output)
    sys.stdout.write(f"Report   {options.output}\n")
    return 0
