"""`harfe demo`: harfe at work, and a table to try the other commands on."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from harfe.cli.common import add_force, check_output, command, whole_file

_ABOUT = """\
Show harfe at work on data that come with it; or write these data to a file, to
try the other commands on.
"""

_EXAMPLES = """\
  harfe demo
  harfe demo --csv example.csv
  harfe fit example.csv --target y
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "demo", "see harfe at work", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("--csv", metavar="FILE", help="only write an example table")
    parser.add_argument("--rows", type=int, default=300, help="of the example table")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    """Show, or write."""
    if options.csv is None:
        from harfe.cli._demo import main

        main()
        return 0
    check_output(options.csv, options.force, "--csv")
    from harfe.datasets import make_function

    data = make_function("friedman1", max(options.rows, 10), random_state=0)
    with whole_file(options.csv) as file:
        file.write((",".join([*data.feature_names, "y"]) + "\n").encode())
        for x, y in zip(data.X.tolist(), data.y.tolist(), strict=True):
            file.write((",".join(map(repr, [*x, y])) + "\n").encode())
    sys.stdout.write(f"Table    {options.csv}   (next: harfe fit {options.csv} --target y)\n")
    return 0
