"""`harfe demo`: an example fit, and a table to try the other commands on.

``python -m harfe.cli.commands.demo`` runs the same example where `harfe` is not installed.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from harfe._core.atomic_write import atomic_write
from harfe.cli.common import IMPORTANCE, add_force, bars, check_output, command

_ABOUT = """\
Fit a model to data that come with harfe, or write these data to a file to try
the other commands on.
"""

_EXAMPLES = """\
  harfe demo
  harfe demo --csv example.csv
  harfe fit example.csv --target y
"""

_NEXT = """\
To fit your own table (numbers only, names in the first line, the column to predict last),
save this as mine.py and run it with {python} mine.py:

    import numpy as np
    from harfe import HARFERegressorCV

    table = np.loadtxt("data.csv", delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    model = HARFERegressorCV(random_state=0, verbose=True).fit(X, y)
    print("which columns matter:", model.feature_importances_.round(3))
    print("first predictions:", model.predict(X[:3]), "observed:", y[:3])"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "demo", "run an example", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("--csv", metavar="FILE", help="only write an example table")
    parser.add_argument("--rows", type=int, default=300, help="rows of that table (default 300)")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    """Run the example, or write its table."""
    if options.csv is None:
        main()
        return 0
    check_output(options.csv, options.force, "--csv")
    from harfe.datasets import make_function

    data = make_function("friedman1", max(options.rows, 10), random_state=0)
    with atomic_write(options.csv) as file:
        file.write((",".join([*data.feature_names, "y"]) + "\n").encode())
        for x, y in zip(data.X.tolist(), data.y.tolist(), strict=True):
            file.write((",".join(map(repr, [*x, y])) + "\n").encode())
    sys.stdout.write(f"Table    {options.csv}   (next: harfe fit {options.csv} --target y)\n")
    return 0


def main() -> None:
    """Fit Friedman's first function and print a summary."""
    from harfe import HARFERegressorCV
    from harfe.datasets import make_function

    train = make_function("friedman1", 300, random_state=0)
    test = make_function("friedman1", 1000, random_state=1)
    model = HARFERegressorCV(random_state=0, verbose=True).fit(train.X, train.y)
    print(_account(model, train, test))
    print(_NEXT.format(python=_short(sys.executable)))


def _account(model: Any, train: Any, test: Any) -> str:
    """Summarise the fit."""
    import numpy as np

    from harfe import __version__
    from harfe._core.wording import percent
    from harfe.metrics import mean_squared_error

    error = {
        "train": mean_squared_error(train.y, model.predict(train.X)),
        "test": mean_squared_error(test.y, model.predict(test.X)),
        "always mean": mean_squared_error(test.y, np.full(len(test.y), train.y.mean())),
        "noise alone": train.noise**2,
    }
    learned = ", ".join(train.feature_names[j] for j in np.flatnonzero(model.law_.usage()))
    trained = {"data": "", "matched": "", "refined": ", then trained"}[model.fit_]
    _, lower, upper = model.predict(test.X, interval=0.9)
    inside = np.mean((lower <= test.y) & (test.y <= upper))
    ranked = np.argsort(-model.feature_importances_, kind="stable")
    lines = [
        f"harfe {__version__} on Friedman's first function, with noise",
        "    10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5;  x6 .. x10 have no effect",
        "",
        f"rows      {len(train.y)} to train, {len(test.y)} to test",
        f"inputs    {train.X.shape[1]}",
        f"law       learned from the data: features of {learned}",
        f"features  N = {model.n_components_} drawn from it, s = {len(model.support_)} kept"
        f"{trained}",
        "",
        "Mean squared error",
        *(f"  {name:12} {value:7.2f}" for name, value in error.items()),
        f"90 % intervals cover {percent(inside, places=0)} of the test rows",
        "",
        IMPORTANCE,
        *bars(
            [train.feature_names[j] for j in ranked], model.feature_importances_[ranked].tolist()
        ),
        "",
    ]
    return "\n".join(lines)


def _short(path: str) -> str:
    """Return the path relative to the current folder if it lies below it."""
    here = os.path.relpath(path)
    return path if here.startswith("..") else here


if __name__ == "__main__":
    main()
