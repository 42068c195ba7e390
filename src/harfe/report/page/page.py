"""Render the summary of a model as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from harfe._core.wording import plural
from harfe.features.activations import ACTIVATIONS
from harfe.report.content.errors import THIS, pick
from harfe.report.page import figures, tables
from harfe.report.page.svg import short
from harfe.report.page.text import fixed, number, percent

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(summary: dict[str, Any]) -> str:
    """Return a page made from a summary.

    Parameters
    ----------
    summary : dict
        As returned by `summarise`.

    Returns
    -------
    str
        A whole HTML document. It loads nothing and runs no script but its own.
    """
    drawn = {
        "curves": figures.curves(summary),
        "maps": figures.maps(summary),
        "quality": [
            part(summary) for part in (figures.parity, figures.residuals, figures.distribution)
        ],
        "found": [part for part in (figures.convergence(summary), figures.path(summary)) if part],
    }
    readings = {one.ident: one.drawing.reading for group in drawn.values() for one in group}
    variables = summary["explanation"]["variables"]
    judged = summary["errors"]["judged_on"]
    total, *ranks = summary["formula"].split("\n")
    _, _, right = total.partition(" = ")
    return _environment().get_template("report.html").render(
        **summary,
        figures=drawn,
        map_limit=number(figures.map_limit(summary), 3),
        mine=pick(summary["errors"], judged, THIS),
        judged=tables.ROWS_TEXT[judged],
        inputs_table=tables.inputs(summary),
        components_table=tables.components(summary),
        terms_table=tables.terms(summary),
        errors_table=tables.errors(summary),
        matrix=tables.matrix(summary),
        unused=[v["variable"] for v in variables if not v["count"]],
        notes=_notes(summary),
        formula_lines=tables.formula_lines(right),
        ranks=ranks,
        further=tables.meta(summary),
        page_data={"figures": readings, "what_if": _panel(summary)},
    )  # fmt: skip


@cache
def _environment() -> Environment:
    """Return the templates, which escape all values; created with the first page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def breakable(name: object) -> Markup:
        """Allow a line break after each underscore of a name."""
        return escape(name).replace("_", Markup("_<wbr>"))

    def capitalised(text: str) -> str:
        return text[:1].upper() + text[1:]

    environment = Environment(
        loader=PackageLoader("harfe.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "breakable": breakable,
        "capitalised": capitalised,
        "fixed": fixed,
        "number": number,
        "percent": percent,
        "plural": plural,
        "short": short,
    }
    style = _own_file("report.css")
    script = _own_file("report.js").replace("/* activations */", _functions())
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {
        "style": Markup(style),
        "script": Markup(script),
        "script_digest": digest,
        "map_colours": figures.map_colours(),
    }
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    return environment


def _own_file(name: str) -> str:
    return (files("harfe.report.page") / "templates" / name).read_text(encoding="utf-8")


def _functions() -> str:
    """Return the activations for the script: name, and a·φ(z), or a·Re φ(z) + b·Im φ(z)."""
    sums = {
        name: " + ".join(f"{c} * ({part})" for c, part in zip("ab", row.script, strict=False))
        for name, row in ACTIVATIONS.items()
    }
    return ", ".join(f"{name}: (z, a, b) => {text}" for name, text in sums.items())


def _notes(summary: dict[str, Any]) -> list[str]:
    """Return the notes of the explanation that are not among the caveats."""
    said = {caution["text"].rstrip(".").lower() for caution in summary["cautions"]}
    return [n for n in summary["explanation"]["notes"] if n.rstrip(".").lower() not in said]


def _panel(summary: dict[str, Any]) -> dict[str, Any] | None:
    """Return the model for the what-if panel, its inputs in order of importance."""
    panel = summary["what_if"]
    if panel is None:
        return None
    total = {v["variable"]: v["total"] or 0.0 for v in summary["explanation"]["variables"]}
    shares = [total[part["name"]] for part in panel["inputs"]]
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    interval = summary["errors"]["interval"]
    return {
        **panel,
        "order": order,
        "weak": [i for i in order if shares[i] < tables.VISIBLE],
        "target": summary["target"],
        "scale": summary["scale"],
        "half_width": None if interval is None else interval["half_width_linear"],
    }
