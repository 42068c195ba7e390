"""The `harfe` command: exit code 0 on success, 1 for bad input, 2 for bad usage.

Commands live in `harfe.cli.commands`; here each of their errors becomes one sentence.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from harfe import __version__
from harfe._core.compiling import announce_compiling
from harfe.cli.commands import compare, datasets, demo, explain, export, fit, predict, report
from harfe.cli.common import CommandError, Parser, UsageError, one_sentence, say

_ABOUT = """\
Regression models that are accurate, small and readable: a few sines, each of a
few columns of your table.

Getting started:
  harfe demo --csv example.csv               write an example table
  harfe fit example.csv --target y           fit a model and save it as model.harfe
  harfe explain model.harfe                  show which inputs matter
  harfe predict model.harfe example.csv      print predictions
"""

_MORE = """\
harfe COMMAND --help describes a command, with examples. The exit code is 0 on
success, 1 if the input is wrong and 2 if the options are wrong.
"""


def make_parser() -> tuple[Parser, Mapping[str, Parser]]:
    """Describe all commands without importing anything heavy."""
    parser = Parser(
        "harfe",
        description=_ABOUT,
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"harfe {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in (fit, predict, explain, report, compare, export, demo, datasets):
        module.add(commands)
    return parser, commands.choices


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser, commands = make_parser()
    try:
        options, unknown = parser.parse_known_args(argv)
        if unknown:
            _refuse(unknown[0], commands.get(options.command, parser))
    except SystemExit as stopped:
        return int(stopped.code or 0)
    if options.command is None:
        parser.print_help()
        return 2
    if not getattr(options, "quiet", False):
        announce_compiling()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _show_warning
        return _run(options)


def _refuse(word: str, parser: Parser) -> None:
    """Report an unknown word, with the nearest option."""
    if not word.startswith("-"):
        output = " (-o names the file to write)" if "--output" in parser.options_known() else ""
        parser.error(f"unexpected argument {word!r}{output}")
    near = get_close_matches(word.split("=")[0], parser.options_known(), 1)
    parser.error(f"unknown option {word}" + (f" (did you mean {near[0]}?)" if near else ""))


def _run(options: argparse.Namespace) -> int:
    if os.environ.get("HARFE_TRACEBACK"):
        return int(options.run(options))
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        say("stopped; nothing was written")
        return 130
    except BrokenPipeError:
        # The reader of our output, such as head or less, has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        say(str(error))
        return 2
    except (CommandError, ValueError, OSError, ImportError, MemoryError) as error:
        say(_message(error))
        return 1
    except Exception as error:
        say(
            f"this should not happen ({type(error).__name__}: {one_sentence(str(error))}): set "
            "HARFE_TRACEBACK=1, run the command again and report the output"
        )
        return 1


def _message(error: BaseException) -> str:
    """Return one sentence about an error."""
    typed: Any = getattr(error, "typed", None)
    if typed is not None:
        return one_sentence(typed())
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer rows or columns"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return one_sentence(str(error)) or type(error).__name__


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    say(f"note: {one_sentence(str(message))}")


if __name__ == "__main__":
    sys.exit(main())
