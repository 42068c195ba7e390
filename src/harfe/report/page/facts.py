"""The plain parts of a report page: the formula, what was fitted on what, the inputs, notes."""

from __future__ import annotations

from typing import Any

from harfe.report.page.text import details, escape, number, plural, table

# Facts that a command passes on, as a reader would call them.
_LABELS = {
    "source": "File",
    "fingerprint": "Fingerprint of the file's table",
    "rows": "Rows of the file",
    "seed": "Seed given",
    "weight": "Column of weights",
}

# Addends of the formula that are shown at once.
_MOST_ADDENDS = 12
# Those beyond nobody reads.
_LAST_ADDEND = 150


def formula(summary: dict[str, Any]) -> str:
    """The function, an addend a line."""
    _, _, right = summary["formula"].partition(" = ")
    lines = addends(right)
    first = f"{summary['target']} =\n  " + "\n  ".join(lines[:_MOST_ADDENDS])
    out = _code(first, "Formula")
    if len(lines) > _MOST_ADDENDS:
        rest = "  " + "\n  ".join(lines[_MOST_ADDENDS:_LAST_ADDEND])
        left = len(lines) - _LAST_ADDEND
        more = f"<p>{plural(left, 'smaller addend')} not shown.</p>" if left > 0 else ""
        title = plural(len(lines) - _MOST_ADDENDS, "more addend")
        out += details(title, _code(rest, "Rest of the formula") + more)
    return out


def _code(text: str, label: str) -> str:
    """Lines as they are; wide ones can be scrolled with the keys."""
    return (
        f'<pre class="formula" tabindex="0" role="group" aria-label="{label}">{escape(text)}</pre>'
    )


def addends(text: str) -> list[str]:
    """A sum cut before every sign that stands in no brackets and in no name."""
    lines, start, depth, quoted = [], 0, 0, False
    for k, character in enumerate(text):
        if character == "`":
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
            if depth == 0 and text[k : k + 3] in (" + ", " - "):
                lines.append(text[start:k])
                start = k + 1
    return [*lines, text[start:]]


def facts(summary: dict[str, Any]) -> str:
    """What was fitted on what, with which versions and settings."""
    model, data = summary["model"], summary["data"]
    lines: list[tuple[str, Any]] = [
        ("Target", summary["target"]),
        ("Rows of the fit" if data["fitted"] else "Rows given", data["n_rows"]),
    ]
    if data["weighted"]:
        lines.append(("Sum of their weights", number(data["total_weight"])))
    lines += [
        ("Inputs", f"{data['n_inputs']}, {model['n_inputs_used']} of them used"),
        ("Fingerprint of these rows", data["fingerprint"]),
    ]
    if data["n_holdout"]:
        lines += [
            ("Held-out rows", data["n_holdout"]),
            ("Fingerprint of the held-out rows", data["fingerprint_holdout"]),
        ]
    lines += [
        (
            "Target, mean and deviation",
            f"{number(data['target_mean'])} and {number(data['target_deviation'])}",
        ),
        ("Target, range", f"{number(data['target_lower'])} to {number(data['target_upper'])}"),
        ("Model", model["class"]),
        ("Features", f"{model['n_features']} kept of {model['n_drawn']} drawn"),
        ("Ridge weight", number(model["alpha"], 3)),
        ("Seed of the features", str(model["seed"])),
        ("Made", summary["created"]),
        *_meta(summary),
    ]
    rows = [[name, "–" if value is None else str(value)] for name, value in lines]
    versions = [[name, text] for name, text in summary["versions"].items()]
    settings = [[name, text] for name, text in summary["settings"].items()]
    out = table(["Fact", "Value"], rows, caption="What was fitted on what", kind="facts")
    out += details("Table: versions", table(["Package", "Version"], versions, kind="facts"))
    if settings:
        out += details(
            "Table: settings other than the defaults",
            table(["Setting", "Value"], settings, kind="facts"),
        )
    return out


def _meta(summary: dict[str, Any]) -> list[tuple[str, Any]]:
    """Further facts; tables of them are for programs."""
    return [
        (
            _LABELS.get(name, name[:1].upper() + name[1:]),
            "; ".join(map(str, value)) if isinstance(value, list) else value,
        )
        for name, value in summary["meta"].items()
        if not isinstance(value, dict) and value != []
    ]


def inputs(summary: dict[str, Any]) -> str:
    """Ranges of the inputs, and where they are clipped."""
    rows = []
    clipped = any(
        line["clip_lower"] is not None or line["clip_upper"] is not None
        for line in summary["inputs"]
    )
    for line in summary["inputs"]:
        keys = ("lower", "median", "upper", "deviation")
        row = [line["input"], "yes" if line["used"] else "no", *(number(line[k]) for k in keys)]
        if clipped:
            row += [number(line["clip_lower"]), number(line["clip_upper"])]
        rows.append(row)
    head = ["Input", "Used", "Smallest", "Median", "Largest", "Deviation"]
    head += ["Clipped below", "Clipped above"] if clipped else []
    title = f"Table: {plural(len(rows), 'input')}"
    return details(title, table(head, rows, caption="Inputs as the fit saw them"))


def notes(summary: dict[str, Any]) -> str:
    """Notes of the explanation that are not among the cautions."""
    said = {caution["text"].rstrip(".").lower() for caution in summary["cautions"]}
    left = [n for n in summary["explanation"]["notes"] if n.rstrip(".").lower() not in said]
    items = "".join(f"<li>{escape(note[:1].upper() + note[1:])}.</li>" for note in left)
    return f"<ul>{items}</ul>" if items else ""
