"""`harfe explain`: describe a model as text, as a formula or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from harfe.cli.common import command, load_model

_ABOUT = """\
Explain a model: its error, which inputs matter and which pairs of inputs
interact. No data are needed.
"""

_EXAMPLES = """\
  harfe explain model.harfe
  harfe explain model.harfe --formula
  harfe explain model.harfe --formula latex --precision 4
  harfe explain model.harfe --json > model.json
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "explain", "show which inputs and pairs matter", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("model", help="file written by harfe fit")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--formula",
        nargs="?",
        const="text",
        choices=["text", "latex"],
        help="print the fitted function",
    )
    form.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--precision",
        metavar="DIGITS",
        type=int,
        choices=range(1, 18),
        default=None,
        help="significant digits of the formula (default 3; 17 reproduce the predictions)",
    )
    parser.add_argument(
        "--top", metavar="N", type=int, default=12, help="lines of each list (default 12)"
    )


def run(options: argparse.Namespace) -> int:
    """Load and explain a model."""
    model = load_model(options.model)
    if options.formula:
        kind, digits = options.formula, options.precision or 3
        sys.stdout.write(_named(model, model.formula(digits, kind), kind) + "\n")
        return 0
    from harfe.cli.accounts import explain_account, explanation_of

    explanation = explanation_of(model)
    if options.json:
        content = {
            "target": model.encoder.target,
            "meta": dict(model.meta),
            "encoder": model.encoder.to_dict(),
            "intercept": _plain(model.intercept_),
            "terms": list(model.model.term_names_),
            "formula": model.formula(options.precision or 17),
            "explanation": explanation.to_dict(),
        }
        sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return 0
    sys.stdout.write(explain_account(model, explanation, max(options.top, 1)) + "\n")
    return 0


def _named(model: Any, formula: str, kind: str) -> str:
    """Replace the y of a text formula by the name of the target."""
    target = model.encoder.target
    if target and kind == "text" and formula.startswith("y = "):
        return f"{target} = {formula[4:]}"
    return formula


def _plain(value: Any) -> Any:
    return (
        value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else list(value)
    )
