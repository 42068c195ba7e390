"""Tables of a report page as text: errors, inputs, components, terms, interactions, facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harfe._core.wording import plural
from harfe.report.content.errors import (
    GIVEN,
    HELD_OUT,
    LINEAR,
    NULL,
    OUT_OF_FOLD,
    THIS,
    TRAINING,
    pick,
)
from harfe.report.page.text import MISSING, aligned, fixed, percent

ROWS_TEXT = {
    HELD_OUT: "held-out rows",
    GIVEN: "rows given",
    OUT_OF_FOLD: "out-of-fold predictions",
    TRAINING: "training rows",
}

# Smaller shares round to less than 0.1 %.
VISIBLE = 0.0005
# Maximum number of rows in the rest of a long table.
_MOST_ROWS = 60

# Labels of facts about the fit.
_META_LABELS = {
    "source": "File",
    "fingerprint": "File fingerprint",
    "rows": "Rows of the fit",
    "table_rows": "Rows in the file",
    "holdout": "Share held out",
    "seed": "Seed passed to the fit",
    "weight": "Weight column",
}


@dataclass(frozen=True)
class Table:
    """Cells of text; the first names the row, and in kind "bars" the second holds bar widths."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str
    kind: str = "numbers"


@dataclass(frozen=True)
class Listing:
    """A table whose weaker rows are shown on demand under a title, or omitted and counted."""

    table: Table | None
    title: str = ""
    rest: Table | None = None
    n_left: int = 0


def _listing(table: Table, most: int, title: str, most_rest: int | None = None) -> Listing:
    """Show the first `most` rows of a table and put the others under a title."""
    first = replace(table, rows=table.rows[:most]) if most else None
    rest = table.rows[most:]
    if not rest:
        return Listing(first)
    shown = rest if most_rest is None else rest[:most_rest]
    return Listing(first, title, replace(table, rows=shown), len(rest) - len(shown))


def inputs_used(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the inputs that the model uses, the largest total share first."""
    used = (v for v in summary["explanation"]["variables"] if v["count"])
    return sorted(used, key=lambda v: -v["total"])


def inputs(summary: dict[str, Any], most: int = 20) -> Listing:
    """List the share of each input, the largest first."""
    found = inputs_used(summary)
    # Totals of interacting inputs sum to more than 1, so the longest bar fills the cell.
    longest = max((v["total"] for v in found), default=1.0) or 1.0
    rows = [
        (
            v["variable"],
            (v["first_order"] / longest, (v["total"] - v["first_order"]) / longest),
            percent(v["total"]),
            percent(v["first_order"]),
            percent(v["shapley"]),
            str(v["count"]),
        )
        for v in found
    ]
    head = ["Input", "Alone and in interactions", "Total", "Alone", "Shapley", "Features"]
    table = Table(head, rows, "Share of the variance of the prediction by input", "bars")
    most = min(most, max(sum(v["total"] >= VISIBLE for v in found), 1))
    return _listing(table, most, plural(len(rows) - most, "more input"))


def components(summary: dict[str, Any], most: int = 15) -> Listing:
    """List the share of each component, the largest first."""
    found = [c for c in summary["explanation"]["components"] if c["share"] > 0]
    longest = max((c["share"] for c in found), default=1.0)
    rows = [(c["component"], (c["share"] / longest,), percent(c["share"])) for c in found]
    head, caption = ["Component", "Share", "of the variance"], "Share of the variance by component"
    # Shares that round to zero are shown on demand.
    most = min(most, max(sum(c["share"] >= VISIBLE for c in found), 1))
    rest = percent(sum(c["share"] for c in found[most:]))
    title = f"{plural(len(rows) - most, 'more component')}, {rest} of the variance"
    return _listing(Table(head, rows, caption, "bars"), most, title, _MOST_ROWS)


def terms(summary: dict[str, Any]) -> Listing:
    """List the terms as fitted."""
    stability = summary["stability"]
    head = ["Term", "Features", "Share of features", "Share of the pool", "Share by coefficient"]
    selected = {}
    if stability is not None:
        found = stability["terms"]
        selected = dict(zip(found["term"], found["selected"], strict=True))
        head.append(f"Kept in {stability['n_draws']} draws")
    rows = [
        (
            term["term"],
            str(term["count"]),
            *(percent(term[key]) for key in ("share", "pool_share", "weighted_share")),
            *([] if stability is None else [percent(selected.get(term["term"], 0.0))]),
        )
        for term in sorted(summary["explanation"]["terms"], key=lambda t: -t["weighted_share"])
    ]
    title = f"Table: {plural(len(rows), 'term')} as fitted"
    return _listing(Table(head, rows, "Terms as fitted"), 0, title, _MOST_ROWS)


def matrix(summary: dict[str, Any], most: int = 20) -> dict[str, Any] | None:
    """Return the share of every pair of inputs, and of inputs alone; None without interactions."""
    pairs = {frozenset(p["variables"]): p["total"] for p in summary["explanation"]["interactions"]}
    if not pairs:
        return None
    found = inputs_used(summary)
    names = [v["variable"] for v in found[:most] if v["total"] >= VISIBLE]
    shares = pairs | {frozenset([v["variable"]]): v["first_order"] for v in found}
    largest = max(shares.values()) or 1.0
    rows = [
        (
            row,
            [_matrix_cell(shares.get(frozenset([row, column]), 0.0), largest) for column in names],
        )
        for row in names
    ]
    return {"names": names, "rows": rows, "n_left": len(found) - len(names)}


def _matrix_cell(share: float, largest: float) -> dict[str, Any]:
    text = f"{100 * share:.1f}" if share >= VISIBLE else ("0" if share == 0 else "<0.1")
    # Raise small values, which would otherwise be hard to see.
    return {"text": text, "strength": round(0.55 * (share / largest) ** 0.6, 3)}


def errors(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the errors of three models, with a group of columns for each set of rows."""
    lines = summary["errors"]["table"]
    parts = list(dict.fromkeys(line["rows"] for line in lines))
    sizes = [line[measure] for line in lines for measure in ("rmse", "mae")]
    texts = dict(zip(sizes, aligned(sizes), strict=True)) | {None: MISSING}
    rows = []
    for name in (THIS, LINEAR, NULL):
        found = [pick(summary["errors"], part, name) or {} for part in parts]
        cells = [(texts[f.get("rmse")], texts[f.get("mae")], fixed(f.get("r2"))) for f in found]
        rows.append((name, [text for group in cells for text in group]))
    return {"parts": [ROWS_TEXT[part] for part in parts], "rows": rows}


def meta(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return further facts, without nested ones, which are for programs."""
    return [
        (
            _META_LABELS.get(name, name[:1].upper() + name[1:]),
            "; ".join(map(str, value if isinstance(value, list) else [value])),
        )
        for name, value in summary["meta"].items()
        if not isinstance(value, dict) and value not in (None, [])
    ]


def formula_lines(formula: str) -> list[str]:
    """Split a sum before every sign that is outside brackets and names."""
    lines, start, depth, quoted = [], 0, 0, False
    for k, character in enumerate(formula):
        if character == "`":
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
            if depth == 0 and formula[k : k + 3] in (" + ", " - "):
                lines.append(formula[start:k])
                start = k + 1
    return [*lines, formula[start:]]
