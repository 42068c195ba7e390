"""`harfe export`: write a model for other programs."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from harfe.cli.common import add_force, check_output, command, load_model

_ABOUT = """\
Write a model as ONNX, which other programs and languages can run. Columns,
categories and medians are included. Needs pip install "harfe[onnx]".
"""

_EXAMPLES = """\
  harfe export model.harfe -o model.onnx
  harfe export model.harfe -o model.onnx --float32
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "export", "write a model as ONNX", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("model", help="file written by harfe fit")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="model.onnx",
        help="file to write (default model.onnx)",
    )
    add_force(parser)
    parser.add_argument("--float32", action="store_true", help="single precision")
    parser.add_argument(
        "--terms", action="store_true", help="also output the contribution of each term"
    )


def run(options: argparse.Namespace) -> int:
    """Load and write."""
    check_output(options.output, options.force)
    model = load_model(options.model)
    from harfe.files.onnx import to_onnx

    dtype = "float32" if options.float32 else "float64"
    to_onnx(model, options.output, dtype=dtype, terms=options.terms)
    sys.stdout.write(f"ONNX     {options.output} ({dtype})\n")
    return 0
