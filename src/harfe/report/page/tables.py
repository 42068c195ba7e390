"""Tables of a report page that say what matters: inputs, components, terms, pairs of inputs."""

from __future__ import annotations

from typing import Any

from harfe.report.page.text import Markup, breakable, details, percent, plural, table

# Shares that are less than 0.1 % when rounded.
VISIBLE = 0.0005
# Rows of a table that nobody reads to its end.
MOST_ROWS = 60


def bar(*shares: float) -> Markup:
    """Bars one after the other, as parts of a full width of 1."""
    parts = "".join(
        f'<i class="b{k + 1}" style="width:{100 * max(min(share, 1.0), 0.0):.2f}%"></i>'
        for k, share in enumerate(shares)
    )
    return Markup(f'<span class="bar" aria-hidden="true">{parts}</span>')


def variables_table(summary: dict[str, Any], most: int = 20) -> str:
    """Share of each input, the largest first."""
    rows = [v for v in summary["explanation"]["variables"] if v["count"]]
    rows.sort(key=lambda v: -v["total"])
    head = ["Input", "Alone, and with others", "In all", "Alone", "Shapley", "In features"]
    # Totals of interacting inputs sum to more than one; the longest bar fills the cell.
    longest = max((v["total"] for v in rows), default=1.0) or 1.0
    lines = [
        [
            breakable(v["variable"]),
            bar(v["first_order"] / longest, (v["total"] - v["first_order"]) / longest),
            percent(v["total"]),
            percent(v["first_order"]),
            percent(v["shapley"]),
            str(v["count"]),
        ]
        for v in rows
    ]
    caption = "Share of the variance of the prediction that each input has a part in"
    most = min(most, max(sum(v["total"] >= VISIBLE for v in rows), 1))
    out = table(head, lines[:most], caption=caption, kind="bars")
    if len(lines) > most:
        title = plural(len(lines) - most, "more input")
        out += details(title, table(head, lines[most:], caption=caption, kind="bars"))
    return out


def components_table(summary: dict[str, Any], most: int = 15) -> str:
    """Share of each component, the largest first."""
    rows = [c for c in summary["explanation"]["components"] if c["share"] > 0]
    longest = max((c["share"] for c in rows), default=1.0)
    lines = [
        [breakable(c["component"]), bar(c["share"] / longest), percent(c["share"])] for c in rows
    ]
    # What rounds to nothing is listed on demand.
    most = min(most, max(sum(c["share"] >= VISIBLE for c in rows), 1))
    head, caption = ["Component", "Share", "of the variance"], "Share of the variance by component"
    out = table(head, lines[:most], caption=caption, kind="bars")
    if len(lines) > most:
        rest = sum(c["share"] for c in rows[most:])
        title = f"{plural(len(lines) - most, 'more component')}, {percent(rest)} of the variance"
        out += _longer(title, head, lines[most:], caption)
    return out


def _longer(title: str, head: list[str], lines: list[list[Any]], caption: str) -> str:
    """A table on demand, of the first rows if they are very many."""
    left = len(lines) - MOST_ROWS
    more = f"<p>{left} weaker ones are left out here.</p>" if left > 0 else ""
    kind = "bars" if any(isinstance(line[1], Markup) for line in lines) else ""
    return details(title, table(head, lines[:MOST_ROWS], caption=caption, kind=kind) + more)


def terms_table(summary: dict[str, Any]) -> str:
    """Features grouped by their inputs, as they were fitted."""
    stability = summary["stability"]
    selected = {}
    if stability is not None:
        selected = dict(
            zip(stability["terms"]["term"], stability["terms"]["selected"], strict=True)
        )
    head = ["Term", "Features", "Share of features", "Share of the pool", "Share by coefficient"]
    rows = []
    for term in sorted(summary["explanation"]["terms"], key=lambda t: -t["weighted_share"]):
        cells = [percent(term[key]) for key in ("share", "pool_share", "weighted_share")]
        row = [breakable(term["term"]), str(term["count"]), *cells]
        rows.append([*row, percent(selected.get(term["term"], 0.0))] if selected else row)
    if selected:
        head.append(f"Kept in {stability['n_draws']} draws")
    title = f"Table: {plural(len(rows), 'term')} as fitted"
    return _longer(title, head, rows, "Terms as fitted")


def interaction_matrix(summary: dict[str, Any], most: int = 20) -> str:
    """Strength of every pair of inputs, as a table of coloured cells."""
    pairs = {tuple(p["variables"]): p["total"] for p in summary["explanation"]["interactions"]}
    if not pairs:
        return "<p>No two inputs meet in a feature: the model has no interactions.</p>"
    variables = [v for v in summary["explanation"]["variables"] if v["count"]]
    variables.sort(key=lambda v: -v["total"])
    names = [v["variable"] for v in variables[:most] if v["total"] >= VISIBLE]
    alone = {v["variable"]: v["first_order"] for v in variables}
    largest = max([*pairs.values(), *alone.values()]) or 1.0
    head = "".join(f'<th scope="col"><span>{breakable(name)}</span></th>' for name in names)
    body = []
    for row in names:
        cells = [f'<th scope="row">{breakable(row)}</th>']
        for column in names:
            value = alone[row] if row == column else _pair(pairs, row, column)
            cells.append(_matrix_cell(value, largest, row == column))
        body.append(f"<tr>{''.join(cells)}</tr>")
    left = len(variables) - len(names)
    more = f"<p>{plural(left, 'more input')}, of less weight, not shown.</p>" if left > 0 else ""
    return (
        '<div class="scroll"><table class="matrix"><caption class="hidden">Interaction of every '
        "pair of inputs, in percent of the variance; on the diagonal each input alone</caption>"
        f'<thead><tr><td class="corner"></td>{head}</tr></thead><tbody>{"".join(body)}</tbody>'
        f"</table></div>{more}"
    )


def _pair(pairs: dict[tuple[str, ...], float], first: str, second: str) -> float:
    return pairs.get((first, second), pairs.get((second, first), 0.0))


def _matrix_cell(share: float, largest: float, diagonal: bool) -> str:
    text = f"{100 * share:.1f}" if share >= VISIBLE else ("0" if share == 0 else "&lt;0.1")
    kind = "alone" if diagonal else "zero" if share == 0 else ""
    # The eye reads areas of colour better if small values are lifted.
    strength = round(0.55 * (share / largest) ** 0.6, 3)
    return f'<td class="{kind}" style="--a:{strength}">{text}</td>'
