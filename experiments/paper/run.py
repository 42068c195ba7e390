"""Run the studies of the paper and write the page: the command `paper`."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from experiments.config import Study, load_study
from experiments.paper.blocks import to_html, to_markdown
from experiments.paper.claims import load_claims
from experiments.paper.evidence import Evidence
from experiments.paper.figures import write_figures
from experiments.paper.page import cell_lines, make_page
from experiments.paper.verdicts import current_rows, load_printed
from experiments.results import ResultsFile, Row, csv_text, write_whole
from experiments.runner import Progress, run
from experiments.tables import ConfigError, nearest

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "results"

#: The studies, short ones first, so that a stopped run has completed many of them.
STUDIES = (
    "table3",
    "figure2",
    "figure4",
    "figure5",
    "step",
    "lottery",
    "outliers",
    "table1",
    "figure3",
    "table2",
    "table4",
)
_QUICK = "This is a quick run: few draws and fewer methods, so its verdicts are rough."
_SAME = 1e-6  # relative difference up to which errors count as equal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--only", nargs="+", default=list(STUDIES), metavar="NAME", help=", ".join(STUDIES)
    )
    parser.add_argument(
        "--quick", action="store_true", help="only first draws of fast methods, in a few minutes"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)"
    )
    parser.add_argument(
        "--max-time",
        type=float,
        metavar="S",
        help="start nothing after S seconds; run again to resume",
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="folder of the results (default: results, or results/quick); an empty one starts "
        "afresh",
    )
    parser.add_argument("--redo", action="store_true", help="drop rows whose settings have changed")
    parser.add_argument("--retry", action="store_true", help="rerun failed repetitions")
    parser.add_argument("--show", action="store_true", help="only write the page, run nothing")


def paper(options: argparse.Namespace, report: Callable[[Progress], None]) -> int:
    """Run the selected studies, write the page, and return the exit code."""
    if options.jobs < 1:
        raise ConfigError(f"--jobs {options.jobs}: type 1 or more.")
    for name in options.only:
        if name not in STUDIES:
            raise ConfigError(f"--only {name}: unknown. {nearest(name, STUDIES)}")
    folder = options.to or (RESULTS / "quick" if options.quick else RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    studies = {name: load_study(HERE / f"{name}.toml", options.quick) for name in STUDIES}
    reason = "finished"
    if not options.show:
        reason = _run_all(studies, folder, options, report)
    for path in write_page(studies, folder, options.quick):
        print(path)
    return 130 if reason == "interrupted" else 0


def _run_all(
    studies: Mapping[str, Study],
    folder: Path,
    options: argparse.Namespace,
    report: Callable[[Progress], None],
) -> str:
    """Run the studies in turn and return how the last one ended."""
    start, reason = time.monotonic(), "finished"
    for name in [name for name in STUDIES if name in options.only]:
        left = None
        if options.max_time is not None:
            left = max(options.max_time - (time.monotonic() - start), 0)
        minutes = studies[name].minutes
        _tell(f"{name}: {studies[name].title}; about {minutes:g} min from scratch on two cores")
        try:
            outcome = run(
                studies[name],
                results_of(folder, name),
                jobs=options.jobs,
                max_time=left,
                redo=options.redo,
                retry=options.retry,
                report=_Seldom(report),
            )
        except FileNotFoundError as error:  # the real data do not come with the project
            _tell(f"{name} is skipped: {error}")
            continue
        reason = outcome.reason
        _tell(
            f"{name}: {reason}, {outcome.computed} computed, {outcome.failed} failed, "
            f"{outcome.left} left"
        )
        if reason == "interrupted":
            break
    return reason


def results_of(folder: Path, name: str) -> ResultsFile:
    """The rows of a study."""
    return ResultsFile(folder / f"{name}.csv")


def gather(studies: Mapping[str, Study], folder: Path) -> Evidence:
    """All rows that match the present settings of the studies."""
    rows = {
        name: current_rows(study, results_of(folder, name).read())
        for name, study in studies.items()
    }
    return Evidence(studies, rows, load_printed(HERE / "paper.toml"))


def write_page(studies: Mapping[str, Study], folder: Path, quick: bool = False) -> list[Path]:
    """Write figures, README.md, paper.html and cells.csv from the rows in the folder."""
    evidence = gather(studies, folder)
    pictures = {
        name: write_figures(name, study, evidence.rows[name], folder / "figures")
        for name, study in studies.items()
    }
    command = f"python3 dev.py paper{' --quick' if quick else ''}"
    remarks = [
        _QUICK if quick else "",
        "" if folder == RESULTS else _agreement(evidence.rows),
    ]
    remark = " ".join(filter(None, remarks))
    page = make_page(evidence, load_claims(HERE / "claims.toml"), pictures, command, remark)
    texts = {
        "README.md": to_markdown(page),
        "paper.html": to_html(page),
        "cells.csv": csv_text(cell_lines(evidence)),
    }
    written = [folder / name for name in texts]
    for path, text in zip(written, texts.values(), strict=True):
        write_whole(path, text)
    return written


def _agreement(rows: Mapping[str, Sequence[Row]]) -> str:
    """A sentence on how many rows equal those in the repository; empty if none are shared."""
    same = compared = 0
    for name, own in rows.items():
        known = {row.task: row for row in results_of(RESULTS, name).read()}
        for row in own:
            other = known.get(row.task)
            if other is not None and other.hash == row.hash and row.error and other.error:
                compared += 1
                same += math.isclose(row.error, other.error, rel_tol=_SAME)
    if not compared:
        return ""
    return (
        f"Of these rows {compared} are also in the full results in the repository; {same} of them "
        "have the same error to six digits."
    )


class _Seldom:
    """Forwards the reports of a run, at most one every two seconds."""

    def __init__(self, report: Callable[[Progress], None]):
        self._report, self._last = report, -math.inf

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last >= 2 or progress.done == progress.total or progress.row.failure:
            self._last = now
            self._report(progress)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
