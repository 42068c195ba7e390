"""`harfe datasets`: the real datasets of the paper."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from harfe._core.atomic_write import atomic_write
from harfe.cli.common import (
    CommandError,
    add_force,
    check_output,
    command,
    say,
)

_ABOUT = """\
List, describe, prepare or download the real datasets of the paper.

The data do not come with harfe. They are read from the folder named by the
environment variable HARFE_DATA, and downloaded from the server named by --from
or HARFE_DATA_URL.
"""

_EXAMPLES = """\
  harfe datasets
  harfe datasets describe airfoil
  harfe datasets download airfoil housing --from https://server/folder --to mydata
  HARFE_DATA=mydata harfe datasets prepare airfoil
  harfe fit airfoil_train.csv --target -1
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(
        commands, "datasets", "list, describe, prepare, download data", _ABOUT, _EXAMPLES
    )
    parser.set_defaults(run=list_all)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="list the datasets (default)").set_defaults(run=list_all)
    about = actions.add_parser("describe", help="describe a dataset")
    about.add_argument("name")
    about.set_defaults(run=describe)
    prepare_ = actions.add_parser(
        "prepare", help="write NAME_train.csv and NAME_test.csv as the paper prepared them"
    )
    prepare_.add_argument("name")
    prepare_.add_argument("--to", metavar="FOLDER", default=".", help="default: the current folder")
    prepare_.add_argument(
        "--split",
        default="paper",
        help="paper for the paper's rows (default), or a seed for a random split",
    )
    add_force(prepare_)
    prepare_.set_defaults(run=prepare)
    fetch = actions.add_parser("download", help="download datasets from a server that has them")
    fetch.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    fetch.add_argument(
        "--from", dest="source", metavar="URL", help="address of the folder; or set HARFE_DATA_URL"
    )
    fetch.add_argument(
        "--to", metavar="FOLDER", help="default: HARFE_DATA if set, else ./harfe-data"
    )
    fetch.set_defaults(run=download)


def list_all(options: argparse.Namespace) -> int:
    """List the datasets and mark those in HARFE_DATA."""
    from harfe.datasets.real import ORIGINS

    home = os.environ.get("HARFE_DATA")
    width = max(map(len, ORIGINS))
    for name, origin in ORIGINS.items():
        here = bool(home) and any(Path(str(home)).expanduser().glob(f"{name}.csv*"))
        sys.stdout.write(f"{name:{width}}  {'here ' if here else '     '} {origin}\n")
    if not home:
        say("HARFE_DATA is not set: see harfe datasets --help")
    return 0


def describe(options: argparse.Namespace) -> int:
    """Describe a dataset; if its data are missing, say where they come from."""
    name = _known(options.name)
    from harfe.datasets import load_real

    try:
        try:
            data = load_real(name)
        except ValueError:
            # Two variants have no rows in the paper.
            data = load_real(name, split=0)
    except FileNotFoundError as error:
        sys.stdout.write(f"{name}: {error}\n")
        return 0
    sys.stdout.write(f"{data.DESCR}\n")
    sys.stdout.write(
        f"Rows: {len(data.y_train)} to train, {len(data.y_test)} to test; inputs: "
        f"{data.X_train.shape[1]}\n"
    )
    if data.paper_mse.get("HARFE") is not None:
        sys.stdout.write(f"Test error of HARFE in the paper: {data.paper_mse['HARFE']:g}\n")
    return 0


def prepare(options: argparse.Namespace) -> int:
    """Write training and test rows as CSV."""
    name = _known(options.name)
    if options.split != "paper" and not options.split.isdecimal():
        raise CommandError(
            f"--split {options.split!r} is neither paper nor a seed: type e.g. --split 0"
        )
    folder = Path(options.to)
    paths = {part: str(folder / f"{name}_{part}.csv") for part in ("train", "test")}
    for path in paths.values():
        check_output(path, options.force, "--to")
    from harfe.datasets import load_real

    split: Any = "paper" if options.split == "paper" else int(options.split)
    data = load_real(name, split=split)
    target = data.target_name
    for part, path in paths.items():
        X, y = data[f"X_{part}"], data[f"y_{part}"]
        with atomic_write(path) as file:
            file.write((",".join([*data.feature_names, target]) + "\n").encode())
            for x, value in zip(X.tolist(), y.tolist(), strict=True):
                file.write((",".join(map(repr, [*x, value])) + "\n").encode())
        sys.stdout.write(f"{path}: {len(y)} rows\n")
    sys.stdout.write(f"Next: harfe fit {paths['train']} --target {target}\n")
    return 0


def download(options: argparse.Namespace) -> int:
    """Download, check, and print the folder."""
    from harfe.datasets import list_real
    from harfe.datasets.download import SOURCE_VARIABLE, download_real

    source = options.source or os.environ.get(SOURCE_VARIABLE)
    if not source:
        raise CommandError(
            "no source given: the data have no default address; type --from and the address of a "
            f"folder that has them, or set {SOURCE_VARIABLE}"
        )
    home = options.to or os.environ.get("HARFE_DATA") or "harfe-data"
    names = [_known(name) for name in options.names] or list(list_real())
    folder = download_real(names, source, home, say)
    sys.stdout.write(f"Data in {folder}; set HARFE_DATA={folder} to use them\n")
    return 0


def _known(name: str) -> str:
    from harfe.datasets import list_real

    if name not in list_real():
        raise CommandError(f"{name!r} is not a dataset: type one of {', '.join(list_real())}")
    return name
