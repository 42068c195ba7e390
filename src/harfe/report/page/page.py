"""The summary of a model as one HTML page: no network, no library, one file."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from string import Template
from typing import Any

from harfe.features.activations import ACTIVATIONS
from harfe.report.content.errors import GIVEN, HELD_OUT, LINEAR, NULL, OUT_OF_FOLD, THIS, pick
from harfe.report.page.facts import facts, formula, inputs, notes
from harfe.report.page.figures import ROWS_TEXT, Figures
from harfe.report.page.tables import (
    VISIBLE,
    components_table,
    interaction_matrix,
    terms_table,
    variables_table,
)
from harfe.report.page.text import (
    MISSING,
    aligned,
    details,
    escape,
    fixed,
    listed,
    number,
    percent,
    plural,
    table,
)


def render(summary: dict[str, Any]) -> str:
    """Write a page from what `summarise` returned.

    Parameters
    ----------
    summary : dict

    Returns
    -------
    str
        A whole HTML document. It loads nothing; its script is the only one that may run.
    """
    figures = Figures(summary)
    style = _template("report.css")
    script = _template("report.js").replace("/* activations */", _functions())
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    slots = {
        "target": escape(summary["target"]),
        "lead": _lead(summary),
        "tiles": _tiles(summary),
        "cautions": _cautions(summary),
        "errors": _errors(summary),
        "what_if": _what_if(summary),
        "variables": variables_table(summary),
        "unused": _unused(summary),
        "components": components_table(summary),
        "terms": terms_table(summary),
        "matrix": interaction_matrix(summary),
        "curves": _curves(summary, figures),
        "maps": _maps(summary, figures),
        "quality": figures.parity() + figures.residuals() + figures.distribution(),
        "found": _found(summary, figures),
        "formula": formula(summary),
        "facts": facts(summary),
        "inputs": inputs(summary),
        "notes": notes(summary),
        "style": style,
        "script": script,
        "digest": digest,
    }
    slots["data"] = _json({"figures": figures.readings, "what_if": _panel(summary)})
    return Template(_template("report.html")).substitute(slots)


def _template(name: str) -> str:
    return (files("harfe.report.page") / "templates" / name).read_text(encoding="utf-8")


def _functions() -> str:
    """Activations in the script: name, and a·φ(z), or a·Re φ(z) + b·Im φ(z)."""
    sums = {
        name: " + ".join(f"{c} * ({part})" for c, part in zip("ab", row.script, strict=False))
        for name, row in ACTIVATIONS.items()
    }
    return ", ".join(f"{name}: (z, a, b) => {text}" for name, text in sums.items())


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _lead(summary: dict[str, Any]) -> str:
    model, data = summary["model"], summary["data"]
    rows = data["n_rows"] if data["fitted"] else round(data["n_fitted"])
    orders = model["orders"]
    most = max(orders, default=0)
    few = f"{most}" if orders == [most] else f"at most {most}"
    waves = model["waves"] if model["n_features"] != 1 else model["waves"].removesuffix("s")
    target = ""
    if model["n_targets"] > 1:
        target = f" This page is about target {model['target'] + 1} of {model['n_targets']}."
    if not most:
        return f"A constant, fitted to {plural(rows, 'row')}: no input is of use.{target}"
    return (
        f"A sum of {model['n_features']} {escape(waves)} of {few} "
        f"{'input' if most == 1 else 'inputs'} each, fitted to {plural(rows, 'row')} of "
        f"{plural(data['n_inputs'], 'input')}. {model['n_inputs_used']} of them "
        f"{'is' if model['n_inputs_used'] == 1 else 'are'} used.{target}"
    )


def _tiles(summary: dict[str, Any]) -> str:
    errors, model, data = summary["errors"], summary["model"], summary["data"]
    judged = errors["judged_on"]
    mine = pick(errors, judged, THIS) or {}
    where = {
        HELD_OUT: "on held-out rows",
        OUT_OF_FOLD: "out of fold",
        GIVEN: "on the rows given",
    }.get(judged, "on the rows of the fit")
    against = ""
    if errors["share_of_null"] is not None and errors["share_of_linear"] is not None:
        against = (
            f"{percent(errors['share_of_null'])} of the null model's error, "
            f"{percent(errors['share_of_linear'])} of a linear model's"
        )
    held = f"{data['n_holdout']} more held out" if data["n_holdout"] else "none held out"
    rows = "Rows of the fit" if data["fitted"] else "Rows given"
    tiles = [
        (f"Error (RMSE) {where}", number(mine.get("rmse")), against),
        (f"R² {where}", fixed(mine.get("r2")), "1 is perfect, 0 is the mean"),
        (
            "Size of the model",
            plural(model["n_terms"], "term"),
            f"{plural(model['n_features'], 'feature')} kept of {model['n_drawn']} drawn",
        ),
        (rows, str(data["n_rows"]), held),
    ]
    interval = errors["interval"]
    if interval is not None:
        tiles.append(
            (
                f"{100 * interval['level']:.0f} % interval",
                f"±\u00a0{number(interval['half_width'], 3)}",
                f"holds {percent(interval['inside'])} of the {ROWS_TEXT[judged]}",
            )
        )
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b><small>{escape(more)}</small></dd>"
        "</div>"
        for name, value, more in tiles
    )


def _cautions(summary: dict[str, Any]) -> str:
    found = summary["cautions"]
    if not found:
        return "<p>None of the checks of this page found anything to warn of.</p>"
    items = "".join(
        f"<li><strong>{escape(c['kind'][:1].upper() + c['kind'][1:])}.</strong> "
        f"{escape(c['text'])}</li>"
        for c in found
    )
    return f'<ul class="cautions">{items}</ul>'


def _errors(summary: dict[str, Any]) -> str:
    """Errors of three models, the rows they are judged on side by side."""
    lines = summary["errors"]["table"]
    names = {THIS: "this model", LINEAR: "linear model", NULL: "null model"}
    parts = list(dict.fromkeys(line["rows"] for line in lines))
    sizes = [line[measure] for line in lines for measure in ("rmse", "mae")]
    texts = dict(zip(sizes, aligned(sizes), strict=True)) | {None: MISSING}
    groups = "".join(f'<th scope="colgroup" colspan="3">{ROWS_TEXT[part]}</th>' for part in parts)
    titles = "".join(f'<th scope="col" class="number">{m}</th>' for m in ("RMSE", "MAE", "R²"))
    body = []
    for name, text in names.items():
        cells = []
        for part in parts:
            line = pick(summary["errors"], part, name) or {}
            cells += [texts[line.get("rmse")], texts[line.get("mae")], fixed(line.get("r2"))]
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        body.append(f'<tr><th scope="row">{text}</th>{numbers}</tr>')
    return (
        '<div class="scroll"><table class="errors"><caption class="hidden">Errors of this model '
        f'and of two simple ones</caption><thead><tr><th scope="col" rowspan="2">Model</th>{groups}'
        f"</tr><tr>{titles * len(parts)}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _what_if(summary: dict[str, Any]) -> str:
    if summary["what_if"] is None:
        return (
            "<p>This model has too many features to compute it in a page; use "
            "<code>predict</code>.</p>"
        )
    return (
        '<div id="what-if"><noscript><p>The panel needs JavaScript, which is switched off.</p>'
        "</noscript></div>"
    )


def _panel(summary: dict[str, Any]) -> dict[str, Any] | None:
    """The model for the page, its inputs in order of importance."""
    panel = summary["what_if"]
    if panel is None:
        return None
    total = {v["variable"]: v["total"] for v in summary["explanation"]["variables"]}
    order = sorted(
        range(len(panel["inputs"])), key=lambda i: -(total[panel["inputs"][i]["name"]] or 0.0)
    )
    weak = [i for i in order if (total[panel["inputs"][i]["name"]] or 0.0) < VISIBLE]
    interval = summary["errors"]["interval"]
    half = None if interval is None else interval["half_width"]
    return {**panel, "order": order, "weak": weak, "target": summary["target"], "half_width": half}


def _unused(summary: dict[str, Any]) -> str:
    names = [v["variable"] for v in summary["explanation"]["variables"] if not v["count"]]
    return f"<p>Not used: {listed(names)}.</p>" if names else ""


def _curves(summary: dict[str, Any], figures: Figures) -> str:
    if not summary["drawn"]["curves"]:
        return "<p>No input explains a part of the variance by itself.</p>"
    band = ""
    if any(curve["deviation"] is not None for curve in summary["drawn"]["curves"]):
        band = (
            "<p>Bands are two posterior deviations, with the features taken as given; how they "
            "were chosen adds to that.</p>"
        )
    return f'{band}<div class="small">{figures.curves()}</div>'


def _maps(summary: dict[str, Any], figures: Figures) -> str:
    drawn = summary["drawn"]
    left = drawn["not_drawn"]
    out = ""
    if drawn["maps"]:
        out = (
            "<p>What two inputs add together beyond their curves; blue is less, orange is more, "
            "the same colours in all maps. Dots are rows of the fit: where there are none, the map "
            f'is a guess.</p>{figures.scale()}<div class="small">{figures.maps()}</div>'
        )
    rest = [
        plural(left[kind], *words)
        for kind, words in (
            ("curves", ("more curve", "more curves")),
            ("maps", ("more map", "more maps")),
            ("higher", ("component of three or more inputs", "components of three or more inputs")),
        )
        if left[kind]
    ]
    if rest:
        higher = ""
        if left["higher"]:
            higher = f"; three or more make {percent(left['higher_share'])} of the variance"
        out += f"<p>Not drawn: {', '.join(rest)}{higher}. The table of components lists them.</p>"
    return out


def _found(summary: dict[str, Any], figures: Figures) -> str:
    model = summary["model"]
    out = ""
    if summary["laws"]:
        rows = [
            [law["candidate"], number(law["rmse"]), "yes" if law["used"] else "no"]
            for law in summary["laws"]
        ]
        out += (
            f"<p>The law that features are drawn from was learned; features were then "
            f"{escape(model['fit'])}. Noise makes {percent(model['noise_share'])} of the variance "
            "of the target, by the likelihood.</p>"
            + details(
                "Table: laws that were tried",
                table(["Law", "RMSE, held-out folds", "Used"], rows, caption="Laws tried"),
            )
        )
    convergence, path = figures.convergence(), figures.path()
    if not convergence.startswith("<figure"):
        convergence = f"<div>{out}{convergence}</div>"
        out = ""
    return f'{out}<div class="pair">{convergence}{path}</div>'
