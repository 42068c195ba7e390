"""Command line of the experiments: list, run, show, paper."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from experiments.config import Study, load_study
from experiments.paper.run import add_arguments, paper
from experiments.results import ResultsError, ResultsFile
from experiments.runner import Progress, run, select
from experiments.show import write_all
from experiments.tables import ConfigError, nearest

HERE = Path(__file__).resolve().parent


def main(argv: list[str] | None = None, home: Path = HERE) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="list the studies and their progress")
    runs = commands.add_parser("run", help="run what has no result yet; can be stopped at any time")
    runs.add_argument("study")
    runs.add_argument("--jobs", type=int, default=1, help="worker processes (default 1)")
    runs.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="FIELD=NAME",
        help="restrict to part=..., problem=..., method=..., repetition=...",
    )
    runs.add_argument("--max-time", type=float, metavar="S", help="start nothing after S seconds")
    runs.add_argument("--redo", action="store_true", help="drop rows whose settings have changed")
    runs.add_argument("--retry", action="store_true", help="rerun failed repetitions")
    shows = commands.add_parser("show", help="write table.md and the figures from results.csv")
    shows.add_argument("study")
    papers = commands.add_parser("paper", help="run the paper's tables and figures, write the page")
    add_arguments(papers)
    options = parser.parse_args(argv)
    try:
        if options.command == "paper":
            return paper(options, _tell)
        if options.command == "list":
            for path in sorted(home.glob("*/config.toml")):
                print(_state(load_study(path)))
            return 0
        study = _study(home, options.study)
        if options.command == "show":
            rows = _results(study).read()
            for path in write_all(study, rows, study.path.parent):
                print(path.relative_to(home.parent).as_posix())
            return 0
        return _run(study, options)
    except (ConfigError, ResultsError, FileNotFoundError, ImportError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _run(study: Study, options: argparse.Namespace) -> int:
    if options.jobs < 1:
        raise ConfigError(f"--jobs {options.jobs}: type 1 or more.")
    outcome = run(
        study,
        _results(study),
        jobs=options.jobs,
        only=_selection(options.only),
        max_time=options.max_time,
        redo=options.redo,
        retry=options.retry,
        report=_tell,
    )
    for name in outcome.skipped:
        package = study.methods[name].needs
        print(f"skipped: {name}, which needs {package}. Install {package}.", file=sys.stderr)
    print(
        f"{outcome.reason}: {outcome.computed} computed, {outcome.failed} of them failed, "
        f"{outcome.left} left",
        file=sys.stderr,
    )
    return 130 if outcome.reason == "interrupted" else 0


def _tell(progress: Progress) -> None:
    """Print one line about a finished task to stderr."""
    row = progress.row
    if row.failure:
        result = row.failure
    else:
        result = f"{row.error:.4g} in {(row.fit_seconds or 0) + (row.predict_seconds or 0):.1f} s"
    at_work = ", ".join(f"{task.method} on {task.problem}" for task in progress.at_work)
    line = f"[{progress.done}/{progress.total}] {row.part} {row.repetition}: "
    line += f"{row.method} on {row.problem}: {result}"
    if at_work:
        line += f"; running: {at_work}"
    if progress.seconds_left is not None:
        line += f"; about {_duration(progress.seconds_left)} left"
    print(line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _selection(words: list[str]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = defaultdict(list)
    for word in words:
        field, equals, name = word.partition("=")
        if not equals:
            raise ConfigError(f"--only {word}: type FIELD=NAME, e.g. method={word}.")
        chosen[field].append(name)
    return dict(chosen)


def _study(home: Path, name: str) -> Study:
    path = home / name / "config.toml"
    if not path.is_file():
        known = [found.parent.name for found in home.glob("*/config.toml")]
        raise ConfigError(f"There is no study {name!r}. {nearest(name, known)}")
    return load_study(path)


def _results(study: Study) -> ResultsFile:
    return ResultsFile(study.path.parent / "results.csv")


def _state(study: Study) -> str:
    done = len(_results(study).read())
    total = len(select(study.tasks(), None))
    return f"{study.name}: {study.title} ({done} of {total} repetitions done)"


if __name__ == "__main__":
    sys.exit(main())
