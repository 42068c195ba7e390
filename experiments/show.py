"""Tables and figures of a study from its CSV file; nothing is fitted here."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.config import MEASURES, Study
from experiments.curves import curve_numbers, draw_curves
from experiments.results import Row
from experiments.runner import stale_rows
from experiments.summary import (
    Cell,
    Table,
    best_methods,
    comparable,
    geometric_means,
    learning_curves,
    mean_ranks,
    ratios,
    relative_errors,
    standing,
    table,
)

_SIZES = {
    "n_terms": "size",
    "fit_seconds": "seconds to tune and fit",
    "predict_seconds": "seconds to predict the test rows",
}
_MARKERS = "oD^svP*X<>pdh"


def write_all(study: Study, rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write table.md, and a figure and its numbers for every part and measure with rows."""
    outdated = stale_rows(study, rows)
    rows = [row for row in rows if row not in outdated]
    written = [folder / "table.md"]
    written[0].write_text(markdown(study, rows, len(outdated)), encoding="utf-8")
    for part, entry in study.parts.items():
        for measure in entry.measures:
            cells = comparable(study, part, table(study, part, rows, measure))
            relative = relative_errors(cells)
            if relative:
                first = measure == entry.measures[0]
                stem = part if first else f"{part}_{measure.removeprefix('error_')}"
                numbers, picture = folder / f"{stem}.csv", folder / f"{stem}.png"
                if entry.curves:
                    points = learning_curves(study, part, rows, measure)
                    numbers.write_text(curve_numbers(points), encoding="utf-8")
                    draw_curves(study, part, measure, points, picture)
                else:
                    numbers.write_text(figure_numbers(relative), encoding="utf-8")
                    draw(study, part, measure, relative, picture)
                written += [numbers, picture]
    return written


def markdown(study: Study, rows: Sequence[Row], outdated: int = 0) -> str:
    """The page of tables."""
    total = sum(1 for _ in study.tasks())
    failed = sum(bool(row.failure) for row in rows)
    state = f"{len(rows)} of {total} repetitions are done, {failed} of them failed."
    if outdated:
        state += f" {outdated} rows that no longer match the config are not shown."
    lines = [
        f"# {study.title}",
        f"Made by `python -m experiments show {study.name}` from `results.csv`. {state}",
        *_paragraphs(study.note),
        *_method_notes(study),
    ]
    for part, entry in study.parts.items():
        lines += [f"## {entry.title}", *_paragraphs(entry.note)]
        for measure in entry.measures:
            lines += [
                _error_heading(study, part, measure),
                _error_table(study, part, rows, measure),
            ]
            if entry.compare_to:
                lines += _ratio_table(study, part, rows, measure)
        if any(study.methods[method].reference in entry.references for method in entry.methods):
            lines += [_print_heading(entry.measures[0]), _print_table(study, part, rows)]
        lines += [f"Medians over the repetitions: {' / '.join(_SIZES.values())}:"]
        lines += [_size_table(study, part, rows)]
        failures = [row for row in rows if row.part == part and row.failure]
        if failures:
            lines += ["Failures:", "\n".join(_failure_line(row) for row in failures)]
    return "\n\n".join(lines) + "\n"


def figure_numbers(relative: Iterable[tuple[str, str, float]]) -> str:
    """The numbers of a figure as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["problem", "method", "relative_error"])
    writer.writerows([problem, method, f"{ratio:.5g}"] for problem, method, ratio in relative)
    return text.getvalue()


def draw(
    study: Study,
    part: str,
    measure: str,
    relative: Sequence[tuple[str, str, float]],
    path: Path,
) -> None:
    """Dot plot of the relative errors on a log scale: a line per problem, a mark per method."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    entry = study.parts[part]
    problems = [name for name in entry.problems if any(name == found[0] for found in relative)]
    means = geometric_means(relative, entry.methods)
    figure = Figure(figsize=(8.6, 1.7 + 0.36 * (len(problems) + 1)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    for number, method in enumerate(entry.methods):
        # Marks on a line are shifted, so that equal errors stay apart.
        shift = 0.5 * (number / max(len(entry.methods) - 1, 1) - 0.5)
        places = {problem: ratio for problem, name, ratio in relative if name == method}
        own = [name for name in problems if name in places]
        if not own:
            continue  # no entry in the legend either
        x = [places[name] for name in own]
        y = [problems.index(name) + shift for name in own]
        if len(problems) > 1 and method in means:
            x, y = [*x, means[method]], [*y, len(problems) + shift]
        style = {"marker": _MARKERS[number % len(_MARKERS)], "color": f"C{number % 10}"}
        label = study.methods[method].label
        axes.plot(x, y, linestyle="none", markersize=6, label=label, alpha=0.9, **style)
    names = [*problems, "geometric mean"] if len(problems) > 1 else problems
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    for edge in range(1, len(names)):
        axes.axhline(edge - 0.5, color="0.9", linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    plain = FuncFormatter(lambda value, position: f"{value:g}")
    axes.xaxis.set_major_formatter(plain)
    if max(ratio for _, _, ratio in relative) < 300:  # otherwise labels at powers of ten are enough
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color="0.6", linewidth=0.8, zorder=0)
    axes.set_xlabel(f"{MEASURES[measure]} / smallest on the problem")
    axes.set_title(entry.title, fontsize="medium")
    figure.legend(loc="outside lower center", ncols=4, fontsize="small", frameon=False)
    # Without the version of matplotlib, equal numbers are more likely to give equal files.
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _error_heading(study: Study, part: str, measure: str) -> str:
    spread = " ± standard deviation" if study.parts[part].show_spread else ""
    what = MEASURES[measure]
    return f"{what[0].upper()}{what[1:]}, mean{spread} over the repetitions; the best in bold:"


def _error_table(study: Study, part: str, rows: Sequence[Row], measure: str) -> str:
    entry, cells = study.parts[part], table(study, part, rows, measure)
    ranked = comparable(study, part, cells)
    # Published numbers are of the first measure, and only shown with it.
    others = entry.references if measure == entry.measures[0] else {}
    head = ["problem", *(study.methods[method].label for method in entry.methods), *others]
    body = []
    for problem, by_method in cells.items():
        best = best_methods(ranked[problem])
        line = [problem]
        for method, cell in by_method.items():
            text = _error_text(cell, entry.show_spread)
            line.append(f"**{text}**" if method in best else text)
        body.append([*line, *(number(found.get(problem)) for found in others.values())])
    ranks, count = mean_ranks(_without_variants(study, ranked))
    means = geometric_means(relative_errors(ranked), entry.methods)
    blank = ["" for _ in others]
    rank_texts = [f"{ranks[method]:.2f}" if method in ranks else "-" for method in entry.methods]
    body.append([f"mean rank ({count} problems)", *rank_texts, *blank])
    ratios = [number(means.get(method)) for method in entry.methods]
    body.append(["geometric mean of error / best", *ratios, *blank])
    body.append(["failures", *(str(_failed(cells, method)) for method in entry.methods), *blank])
    return _pipe_table(head, body)


def _ratio_table(study: Study, part: str, rows: Sequence[Row], measure: str) -> list[str]:
    """Heading and table of the errors over those of `compare_to`; nothing without its rows."""
    entry, found = study.parts[part], ratios(study, part, rows, measure)
    if not found:
        return []
    other = study.methods[entry.compare_to].label
    heading = (
        f"{MEASURES[measure]} / that of {other}, geometric mean over the repetitions; a win is the "
        "smallest mean error on a problem:"
    )
    body = [
        [problem, *(_ratio(by_method.get(method)) for method in entry.methods)]
        for problem, by_method in found.items()
    ]
    cells = comparable(study, part, table(study, part, rows, measure))
    best = [method for by_method in cells.values() for method in best_methods(by_method)]
    means, largest = ["geometric mean ± standard error"], ["largest"]
    for method in entry.methods:
        own = standing(found, method)
        means.append(f"{own.mean:.3f} ± {own.error:.3f}" if own else "-")
        largest.append(f"{own.largest:.2f} ({own.where})" if own else "-")
    wins = ["wins", *(str(best.count(method)) for method in entry.methods)]
    head = ["problem", *(study.methods[method].label for method in entry.methods)]
    return [heading[0].upper() + heading[1:], _pipe_table(head, [*body, means, largest, wins])]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _print_heading(measure: str) -> str:
    return f"Against published values: {MEASURES[measure]} here / published = ratio:"


def _print_table(study: Study, part: str, rows: Sequence[Row]) -> str:
    """Our errors and the published ones of the same method."""
    entry = study.parts[part]
    cells = table(study, part, rows, entry.measures[0])
    compared = [name for name in entry.methods if study.methods[name].reference in entry.references]
    body = []
    for problem, by_method in cells.items():
        line = [problem]
        for name in compared:
            printed = entry.references[study.methods[name].reference].get(problem)
            mean = by_method[name].mean
            if printed is None or math.isnan(mean):
                line.append(f"{number(mean)} / -")
            else:
                line.append(f"{number(mean)} / {number(printed)} = {_size(mean / printed)}")
        body.append(line)
    return _pipe_table(["problem", *(study.methods[name].label for name in compared)], body)


def _without_variants(study: Study, cells: Table) -> Table:
    """The methods that are ranked: a variant would displace the others."""
    return {
        problem: {name: c for name, c in by_method.items() if not study.methods[name].variant_of}
        for problem, by_method in cells.items()
    }


def _error_text(cell: Cell, spread: bool) -> str:
    if not cell.values:
        return f"failed ({cell.failed} of {cell.expected})" if cell.failed else "-"
    text = number(cell.mean)
    if spread and len(cell.values) > 1:
        text += f" ± {_size(cell.spread)}"
    if cell.failed:
        text += f" (failed: {cell.failed} of {cell.expected})"
    elif not cell.complete:
        text += f" ({cell.done} of {cell.expected})"
    return text


def _size_table(study: Study, part: str, rows: Sequence[Row]) -> str:
    entry = study.parts[part]
    head = ["problem", *(study.methods[method].label for method in entry.methods)]
    body = []
    tables = {column: table(study, part, rows, column) for column in _SIZES}
    for problem in entry.problems:
        line = [problem]
        for method in entry.methods:
            found = [tables[column][problem][method].median for column in _SIZES]
            line.append("-" if math.isnan(found[0]) else " / ".join(map(_size, found)))
        body.append(line)
    return _pipe_table(head, body)


def _failed(cells: Table, method: str) -> int:
    return sum(by_method[method].failed for by_method in cells.values())


def _failure_line(row: Row) -> str:
    return f"- {row.method} on {row.problem}, repetition {row.repetition}: {row.failure}"


def _method_notes(study: Study) -> list[str]:
    used = {method for part in study.parts.values() for method in part.methods}
    lines = [
        f"- {m.label}: {m.note}" for name, m in study.methods.items() if name in used and m.note
    ]
    return ["\n".join(lines)] if lines else []


def _paragraphs(text: str) -> list[str]:
    return [text.strip()] if text.strip() else []


def number(value: float | None) -> str:
    """Three digits; in exponent notation only where there would be many zeros."""
    if value is None or math.isnan(value):
        return "-"
    if 1000 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".")


def _size(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _pipe_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
