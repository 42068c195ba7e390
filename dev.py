#!/usr/bin/env python3
"""Run harfe from a fresh clone: its demo, its tests, its checks.

It needs only Python 3.11 or newer with pip (or uv). The first run creates an
environment in .venv and installs the package there in editable form: changes in
src take effect at once. Later runs start immediately. Nothing is installed elsewhere,
and .venv can be deleted at any time; it is rebuilt when pyproject.toml changes.
"""

# Keep the syntax of this file plain: an old Python 3 must reach check_python().

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "harfe-dev.json"

# Coverage cannot see into compiled loops: their tests run a second time as plain Python.
TEST_STEPS = [
    "coverage run -m pytest",
    "NUMBA_DISABLE_JIT=1 coverage run --append -m pytest -m compiled tests",
    "coverage report --fail-under=95",
]
# The pytest arguments of `test --quick`.
QUICK = ["--quiet", "-m", "not slow"]
STUDIES = ["experiments list"]
# For each command: its line in --help, the extras of pyproject.toml it needs, and its steps, which
# `python -m` runs in turn until one fails (a leading NAME=value sets an environment variable).
COMMANDS = {
    "demo": ("run harfe on a small example", [], ["harfe.cli.commands.demo"]),
    "test": (
        "run all tests; --quick skips slow ones; ARGS go to pytest",
        ["test"],
        TEST_STEPS,
    ),
    "study": (
        "our studies; ARGS: list, run accuracy, show accuracy",
        ["benchmark", "plot", "rivals"],
        STUDIES,
    ),
    "paper": (
        "the paper's tables and figures; ARGS: --quick, --only table2",
        ["paper", "plot", "rivals"],
        ["experiments paper"],
    ),
    "lint": ("check style and types", ["lint"], ["ruff check", "ruff format --check", "mypy"]),
}
# The step that receives the user's arguments; it is then the only one to run.
STEP_WITH_ARGUMENTS = {"test": "pytest", "study": "experiments", "paper": "experiments paper"}


def check_python():
    """Stop with a clear message if this Python is too old."""
    if sys.version_info[:2] < OLDEST:
        oldest = "{}.{}".format(*OLDEST)
        sys.exit(
            f"harfe needs Python {oldest} or newer, but this is {platform.python_version()}. "
            f"Run dev.py with a newer one, for example: python{oldest} dev.py demo"
        )


def fingerprint(extras):
    """Return a hash of everything that determines the result of an install."""
    facts = [platform.python_version(), str(ROOT), sorted(extras)]
    project = (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(json.dumps(facts).encode() + project).hexdigest()


def installed():
    """Return the extras in .venv, or None if its install is missing, unfinished or outdated."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        current = PYTHON.exists() and stamp["fingerprint"] == fingerprint(stamp["extras"])
        return set(stamp["extras"]) if current else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_quietly(command):
    """Run an installer's command; if it fails, show the end of its output and exit."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
    )
    if done.returncode != 0:
        tail = "\n".join("    " + line for line in done.stdout.splitlines()[-20:])
        ran = shlex.join(command)
        sys.exit(f"{tail}\nInstallation failed; above is the end of the output of:\n    {ran}")


def install(extras, anew):
    """Install the package with these extras into .venv, after rebuilding it if `anew`."""
    uv = shutil.which("uv")
    # If the Python in .venv runs this, build with its base interpreter, which has pip.
    base = sys._base_executable if Path(sys.prefix).resolve() == VENV else sys.executable
    if not uv and subprocess.run([base, "-m", "pip", "--version"], capture_output=True).returncode:
        sys.exit(f"{base} has no pip. Install it (Debian, Ubuntu: apt install python3-pip) or uv.")
    stamp = {"fingerprint": fingerprint(extras), "extras": extras}
    STAMP.unlink(missing_ok=True)
    if anew:
        if VENV.exists():
            shutil.rmtree(VENV)
        if uv:
            run_quietly([uv, "venv", "--python", base, str(VENV)])
        else:
            venv.create(VENV, symlinks=os.name != "nt", with_pip=False)
    package = ".[{}]".format(",".join(extras)) if extras else "."
    if uv:
        run_quietly([uv, "pip", "install", "--python", str(PYTHON), "--editable", package])
    else:
        run_quietly([base, "-m", "pip", "--python", str(PYTHON), "install", "--editable", package])
    # Written last, so that an unfinished install is repeated.
    STAMP.write_text(json.dumps(stamp), encoding="utf-8")


def ensure(extras):
    """Make sure that .venv has the package and these extras; keep the extras already there."""
    have = installed()
    if have is not None and have.issuperset(extras):
        return
    if have is None:
        print("Creating the environment in .venv (once, about a minute) ...", flush=True)
    else:
        print("Adding the packages this command needs to .venv (once) ...", flush=True)
    with open(__file__, "rb") as this_file:
        if fcntl:
            with contextlib.suppress(OSError):  # a network drive may have no locks
                fcntl.flock(this_file, fcntl.LOCK_EX)  # one at a time: a second dev.py waits here
        have = installed()  # another dev.py may have installed it meanwhile
        if have is None or not have.issuperset(extras):
            install(sorted({*extras, *(have or ())}), anew=have is None)


def run_step(step, arguments=()):
    """Run a step with the Python of .venv and return its exit code."""
    words = step.split()
    environment = dict(os.environ)
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        environment[name] = value
    command = [str(PYTHON), "-m", *words, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def main(argv):
    """Run the command line and return the exit code."""
    check_python()
    parser = argparse.ArgumentParser(
        "dev.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (about, _, _) in COMMANDS.items():
        subparsers.add_parser(name, help=about, description=about, allow_abbrev=False)
    options, arguments = parser.parse_known_args(argv)
    if options.command is None:
        parser.print_help()
        return 2
    if arguments and options.command not in STEP_WITH_ARGUMENTS:
        parser.error(f"{options.command} takes no arguments, but got: {shlex.join(arguments)}")
    _, extras, steps = COMMANDS[options.command]
    ensure(extras)
    if options.command == "test" and "--quick" in arguments:
        place = arguments.index("--quick")
        arguments[place : place + 1] = QUICK
    if arguments:
        return run_step(STEP_WITH_ARGUMENTS[options.command], arguments)
    for step in steps:
        if len(steps) > 1:
            print(f"> {step}", flush=True)
        code = run_step(step)
        if code != 0:
            print(f"Failed: {step}", file=sys.stderr)
            return code
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
