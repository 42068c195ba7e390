"""The page: published numbers and claims against measurements. Nothing is fitted here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from experiments.config import MEASURES
from experiments.paper.blocks import Block, Heading, PictureBlock, TableBlock, Text
from experiments.paper.claims import Claim, judge_claim
from experiments.paper.evidence import Evidence
from experiments.paper.figure_numbers import TIMED, growth_exponents
from experiments.paper.figures import Picture
from experiments.paper.verdicts import (
    Judgement,
    PrintedCell,
    SizeCell,
    Verdict,
    judged_sizes,
    spread,
)
from experiments.show import number
from experiments.summary import Cell, table

_RULE = """\
A number is **reproduced** if the median over draws is within 10 % of it, or if it lies between \
the 10 % and the 90 % quantile over at least 20 draws and these are no wider than ±30 %. Otherwise \
our median is **better** (lower) or **worse**. Where the paper leaves a setting open, each reading \
of it is run, and the nearest one counts. Settings are **not comparable**: they were used as \
published. A claim is reproduced if it holds in our runs, worse if it does not, better if even \
more than it says holds."""

_SCALES = """\
Readings of HARFE: in "unit", λ and μ refer to features of unit root-mean-square, as in the \
authors' code; in "raw", to unscaled features with ridge weight mλ, as in the text; "raw_lambda" \
is the same with ridge weight λ."""

_MEASURES_MIXED = """\
The published table mixes two measures. The rows svm, lm, mnet, rForst and ANOVA are quoted, and \
were measured against noisy test rows: no method can be far below the noise variance, {noise}. The \
rows SRFE and HARFE were measured against the function itself: on the second function they are far \
below that variance. Below, each row is first compared in the measure it was published in; then \
all methods are given in both. In equal measures, noise-free, the best quoted method has {best} on \
the second function and HARFE with q = 2 has {own}: a factor of {times:.2f}, where the paper says \
14."""


def make_page(
    evidence: Evidence,
    claims: Sequence[Claim],
    pictures: Mapping[str, Sequence[Picture]],
    command: str,
    remark: str = "",
) -> list[Block]:
    """All blocks of the page, with the summary first."""
    judged = {name: list(evidence.cells(name)) for name in evidence.printed.tables}
    sizes = judged_sizes(evidence.printed.table3, evidence.found_sizes())
    verdicts = [judge_claim(claim, evidence) for claim in claims]
    page: list[Block] = [
        Heading(1, "The paper, run again"),
        Text(
            'Every number and every checkable claim of the numerical sections of "HARFE: '
            'Hard-Ridge Random Feature Expansion" (arXiv:2202.02877), compared with what this '
            f"repository measures. Made by `{command}`; {_state(evidence)} {remark}".strip()
        ),
        Heading(2, "Summary"),
        summary(
            {
                **{name: [cell.judgement for cell in cells] for name, cells in judged.items()},
                "table3": [cell.judgement for cell in sizes],
                "claims": verdicts,
            }
        ),
        Text(_RULE),
        Text("[cells.csv](cells.csv) has every cell with its reading, range and reason."),
    ]
    page += _table1(evidence, judged["table1"])
    page += _table2(evidence, judged["table2"])
    page += _pictures("Figure 2: parity", evidence, "figure2", pictures)
    page += _figure3(evidence, pictures)
    page += _pictures("Figure 4: inputs of g", evidence, "figure4", pictures)
    page += [
        Heading(2, evidence.printed.table3.title),
        Text("Sizes are counted on the data; N, s, mλ and q are settings. Published / found:"),
        _sizes_table(sizes),
    ]
    page += _table4(evidence, judged["table4"])
    page += _pictures("Figure 5: inputs of the real data", evidence, "figure5", pictures)
    page += _claims(claims, verdicts)
    for name, title in (
        ("step", "The step size"),
        ("outliers", "Noise and outliers"),
        ("lottery", "The lottery ticket"),
    ):
        page += _pictures(title, evidence, name, pictures)
    return page


def cell_lines(evidence: Evidence) -> list[list[str]]:
    """One line for every published number with its measurement, after a header."""
    head = "table row column printed reading median p10 p90 draws verdict reason"
    lines = [head.split()]
    for name in evidence.printed.tables:
        for cell in evidence.cells(name):
            own, values = cell.nearest, cell.nearest.cell.values
            low, high = spread(values) if values else (math.nan, math.nan)
            numbers = [f"{value:.5g}" for value in (own.cell.median, low, high)]
            told = [own.judgement.verdict.value, own.judgement.reason]
            place = [name, cell.row, cell.column, f"{cell.printed:.5g}", own.label]
            lines.append([*place, *numbers, str(len(values)), *told])
    for size in judged_sizes(evidence.printed.table3, evidence.found_sizes()):
        found = "nan" if size.found is None else f"{size.found:g}"
        place = ["table3", size.dataset, size.name, f"{size.printed:g}", ""]
        told = [size.judgement.verdict.value, size.judgement.reason]
        lines.append([*place, found, found, found, "1", *told])
    return lines


_TITLES = {
    "table1": "Table 1, cells",
    "table2": "Table 2, cells",
    "table3": "Table 3, cells",
    "table4": "Table 4, cells",
    "claims": "Claims",
}


def summary(judgements: Mapping[str, Sequence[Judgement]]) -> TableBlock:
    """Number of cells and claims with each verdict."""
    met = {judgement.verdict for found in judgements.values() for judgement in found}
    shown = [verdict for verdict in Verdict if verdict is not Verdict.NOT_RUN or verdict in met]
    body, total = [], Counter[Verdict]()
    for name, title in _TITLES.items():
        counts = Counter(judgement.verdict for judgement in judgements[name])
        total += counts
        body.append([title, *(str(counts[v]) for v in shown), str(counts.total())])
    body.append(["**All**", *(f"**{total[v]}**" for v in shown), f"**{total.total()}**"])
    return TableBlock(["", *(v.value for v in shown), "all"], body)


def _state(evidence: Evidence) -> str:
    done = sum(len(rows) for rows in evidence.rows.values())
    tasks = sum(sum(1 for _ in study.tasks()) for study in evidence.studies.values())
    failed = sum(bool(row.failure) for rows in evidence.rows.values() for row in rows)
    seconds = sum(
        (row.fit_seconds or 0) + (row.predict_seconds or 0)
        for rows in evidence.rows.values()
        for row in rows
    )
    return (
        f"{done} of {tasks} repetitions are done, {failed} of them failed; their fits took "
        f"{seconds / 3600:.1f} hours of processor time."
    )


# --- tables ---


def _table1(evidence: Evidence, cells: Sequence[PrintedCell]) -> Iterator[Block]:
    yield from _opening("table1", evidence)
    yield Text("Published / our median over draws in the nearest reading, and verdict; in percent:")
    yield _print_table(cells, scale=100)
    yield from _readings(evidence, "table1", cells, scale=100)
    yield from _beside(evidence, "table1", "functions", "error_relative", scale=100)


def _table2(evidence: Evidence, cells: Sequence[PrintedCell]) -> Iterator[Block]:
    from harfe.datasets import FUNCTIONS

    yield from _opening("table2", evidence)
    part = "friedman"
    clean = table(evidence.studies["table2"], part, evidence.rows["table2"], "error_clean")
    noise = {p: FUNCTIONS[p].noise ** 2 for p in evidence.problems("table2", part)}
    second = {m: c.median for m, c in clean.get("friedman2", {}).items() if c.values}
    quoted = [second[m] for m in ("svm", "lm", "mnet", "forest", "anova") if m in second]
    own = [value for m, value in second.items() if m.startswith("harfe_q2")]
    if quoted and own:
        yield Text(
            _MEASURES_MIXED.format(
                noise=", ".join(number(value) for value in noise.values()),
                best=number(min(quoted)),
                own=number(min(own)),
                times=min(quoted) / min(own),
            )
        )
    yield Text("Published / our median over draws in the nearest reading, and verdict:")
    yield _print_table(cells)
    yield from _readings(evidence, "table2", cells)
    for measure in ("error", "error_clean"):
        what = MEASURES[measure]
        yield Text(f"All methods, {what}, median over draws (10-90 % range):")
        found = table(evidence.studies["table2"], part, evidence.rows["table2"], measure)
        body = _by_method(evidence, "table2", part, found)
        floor = [number(noise[p]) if measure == "error" else "0" for p in found]
        yield TableBlock(["method", "draws", *found], [*body, ["noise floor", "", *floor]])


def _table4(evidence: Evidence, cells: Sequence[PrintedCell]) -> Iterator[Block]:
    yield from _opening("table4", evidence)
    study, rows = evidence.studies["table4"], evidence.rows["table4"]
    yield Text("The paper's rows: published / our median over draws, and verdict:")
    yield _print_table(cells, transpose=True)
    for part, entry in study.parts.items():
        yield Text(f"{entry.title}, all methods. {entry.note.strip()}")
        yield Text("Median over draws (10-90 % range), the best in bold:")
        found = table(study, part, rows, "error")
        yield _by_problem(evidence, "table4", part, found)


def _opening(name: str, evidence: Evidence) -> Iterator[Block]:
    yield Heading(2, evidence.printed.tables[name].title)
    yield Text(evidence.studies[name].note.strip())


def _print_table(
    cells: Sequence[PrintedCell], scale: float = 1, transpose: bool = False
) -> TableBlock:
    """Rows and columns as in the paper, or transposed if there are many columns."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    if transpose:
        rows, columns = columns, rows
    texts = {
        (cell.column, cell.row) if transpose else (cell.row, cell.column): _cell_text(cell, scale)
        for cell in cells
    }
    body = [[row, *(texts.get((row, column), "-") for column in columns)] for row in rows]
    return TableBlock(["", *columns], body)


def _cell_text(cell: PrintedCell, scale: float) -> str:
    printed = number(cell.printed * scale)
    if not cell.nearest.cell.values:
        return f"{printed} / {cell.judgement.verdict}"
    return f"{printed} / {number(cell.nearest.cell.median * scale)} {cell.judgement.verdict}"


def _readings(
    evidence: Evidence, name: str, cells: Sequence[PrintedCell], scale: float = 1
) -> Iterator[Block]:
    """All readings of the rows that have several, and which of them matches the paper."""
    several = [cell for cell in cells if len(cell.readings) > 1]
    if not several:
        return
    counts: dict[str, Counter[Verdict]] = {}
    for cell in several:
        for reading in cell.readings:
            kind = _reading_of(evidence, name, reading.method)
            counts.setdefault(kind, Counter())[reading.judgement.verdict] += 1
    shown = [Verdict.REPRODUCED, Verdict.BETTER, Verdict.WORSE]
    yield Text(_SCALES)
    yield Text("Number of cells with each verdict if only one reading counted:")
    yield TableBlock(
        ["reading", *(v.value for v in shown)],
        [[kind, *(str(found[v]) for v in shown)] for kind, found in counts.items()],
    )
    yield Text(_best_matches(counts))
    columns = list(dict.fromkeys(cell.column for cell in several))
    body: dict[str, list[str]] = {}
    for cell in several:
        for reading in cell.readings:
            line = body.setdefault(reading.label, [reading.label, *("-" for _ in columns)])
            line[1 + columns.index(cell.column)] = _range(reading.cell, scale)
    yield Text("Each reading, median over draws (10-90 % range):")
    yield TableBlock(["", *columns], list(body.values()))


def _best_matches(counts: Mapping[str, Counter[Verdict]]) -> str:
    """A sentence that names the reading that reproduces most cells, for each method."""
    methods: dict[str, dict[str, int]] = {}
    for kind, found in counts.items():
        method, _, reading = kind.rpartition(", ")
        methods.setdefault(method, {})[reading] = found[Verdict.REPRODUCED]
    told = []
    for method, hits in methods.items():
        most = max(hits.values())
        best = " and ".join(f'"{reading}"' for reading, count in hits.items() if count == most)
        told.append(f"{method}, {best} with {most} cells")
    return f"The readings that match the paper in most cells are, for {'; for '.join(told)}."


def _reading_of(evidence: Evidence, name: str, method: str) -> str:
    """What distinguishes the readings of a row: the reading of HARFE, or the kind of SRFE."""
    settings = evidence.studies[name].methods[method].settings
    if "reading" in settings:
        kind = "λ = 0" if settings.get("lam") == 0 else "λ > 0"
        return f"HARFE, {kind}, {settings['reading']}"
    return evidence.studies[name].methods[method].label.replace(f"q = {settings['q']}, ", "")


def _beside(
    evidence: Evidence,
    name: str,
    part: str,
    measure: str,
    scale: float,
) -> Iterator[Block]:
    """Methods that are not in the paper's table."""
    study = evidence.studies[name]
    found = table(study, part, evidence.rows[name], measure)
    others = [m for m in study.parts[part].methods if not study.methods[m].reference]
    if others:
        yield Text("Further methods, median over draws (10-90 % range):")
        body = _by_method(evidence, name, part, found, others, scale)
        yield TableBlock(["method", "draws", *found], body)


def _by_method(
    evidence: Evidence,
    name: str,
    part: str,
    found: Mapping[str, Mapping[str, Cell]],
    methods: Sequence[str] | None = None,
    scale: float = 1,
) -> list[list[str]]:
    """A line per method with its label, number of draws and cells."""
    study = evidence.studies[name]
    lines = []
    for method in study.parts[part].methods if methods is None else methods:
        cells = [by_method[method] for by_method in found.values()]
        draws = str(max(len(cell.values) for cell in cells))
        lines.append([study.methods[method].label, draws, *(_range(c, scale) for c in cells)])
    return lines


def _by_problem(
    evidence: Evidence, name: str, part: str, found: Mapping[str, Mapping[str, Cell]]
) -> TableBlock:
    """A line per problem; cells with several but not all repetitions give their number."""
    study = evidence.studies[name]
    body = []
    for problem, cells in found.items():
        medians = {method: cell.median for method, cell in cells.items() if cell.values}
        best = min(medians.values(), default=0.0)
        line = [problem]
        for method, cell in cells.items():
            text = _range(cell)
            if 1 < len(cell.values) != study.parts[part].repetitions:
                text += f", {len(cell.values)} draws"
            line.append(f"**{text}**" if medians.get(method) == best else text)
        body.append(line)
    labels = [study.methods[method].label for method in study.parts[part].methods]
    return TableBlock(["", *labels], body)


def _range(cell: Cell, scale: float = 1) -> str:
    if not cell.values:
        return "failed" if cell.failed else "-"
    text = number(cell.median * scale)
    if len(cell.values) >= 5:  # with fewer, a tenth means nothing
        low, high = spread(cell.values)
        text += f" ({number(low * scale)} - {number(high * scale)})"
    return text


def _sizes_table(cells: Sequence[SizeCell]) -> TableBlock:
    names = list(dict.fromkeys(cell.name for cell in cells))
    body: dict[str, list[str]] = {}
    for cell in cells:
        line = body.setdefault(cell.dataset, [cell.dataset, *("-" for _ in names)])
        text = f"{cell.printed:g} / {'-' if cell.found is None else f'{cell.found:g}'}"
        if cell.judgement.verdict is not Verdict.NOT_COMPARABLE:
            text += f" {cell.judgement.verdict}"
        line[1 + names.index(cell.name)] = text
    return TableBlock(["", *names], list(body.values()))


# --- figures and claims ---


def _pictures(
    title: str, evidence: Evidence, name: str, pictures: Mapping[str, Sequence[Picture]]
) -> Iterator[Block]:
    if pictures.get(name):
        yield Heading(2, title)
        yield Text(evidence.studies[name].note.strip())
        for picture in pictures[name]:
            place = f"{picture.path.parent.name}/{picture.path.stem}"
            yield PictureBlock(f"{place}.png", picture.caption, f"{place}.csv")


def _figure3(evidence: Evidence, pictures: Mapping[str, Sequence[Picture]]) -> Iterator[Block]:
    yield from _pictures("Figure 3: run time", evidence, "figure3", pictures)
    rows = evidence.rows["figure3"]
    if rows:
        grown = growth_exponents(evidence.studies["figure3"], rows).rows
        methods = list(dict.fromkeys(method for _, method, _ in grown))
        parts = list(dict.fromkeys(part for part, _, _ in grown))
        found = {(part, method): exponent for part, method, exponent in grown}
        titles = evidence.studies["figure3"].parts
        yield Text("Growth of the time, as the exponent of N:")
        yield TableBlock(
            ["", *(TIMED[method] for method in methods)],
            [
                [
                    titles[part].title,
                    *(f"{found[part, m]:.2f}" if (part, m) in found else "-" for m in methods),
                ]
                for part in parts
            ],
        )


def _claims(claims: Sequence[Claim], verdicts: Sequence[Judgement]) -> Iterator[Block]:
    yield Heading(2, "The paper's claims")
    yield TableBlock(
        ["The paper says", "where", "verdict", "measured"],
        [
            [claim.says, claim.where, judgement.verdict.value, judgement.reason]
            for claim, judgement in zip(claims, verdicts, strict=True)
        ],
    )
