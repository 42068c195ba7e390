"""`harfe report`: write a page about a model."""

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
Write a report page about a model: one self-contained HTML file.

With the table of the fit, the page shows the error on unseen rows as the fit
measured it; with another table that has the target, the error on that table.
"""

_EXAMPLES = """\
  harfe report model.harfe houses.csv -o report.html
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "report", "write a report page about a model", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("model", help="file written by harfe fit")
    parser.add_argument(
        "data", help="table with the target column: the table of the fit, or another"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="report.html",
        help="page to write (default report.html)",
    )
    add_force(parser)
    add_file_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read the model and the table, and write the page."""
    check_output(options.output, options.force)
    model = load_model(options.model)
    if model.encoder.target is None:
        raise CommandError(
            f"{options.model} does not say which column it predicts: fit it with harfe fit, or "
            "call harfe.report.write_report in Python"
        )
    from harfe.report import write_report
    from harfe.tables import read_table

    frame = read_table(options.data, **file_settings(options))
    if model.rows_of_fit(frame) is None:
        say(
            f"note: {options.data} is not the table that the model was fitted to; its rows are "
            "treated as new"
        )
    write_report(model, frame, None, options.output)
    sys.stdout.write(f"Report   {options.output}\n")
    return 0
