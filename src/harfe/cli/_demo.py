"""The main job on embedded data, as a short readable account: ``python -m harfe.cli._demo``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import numpy as np

from harfe import HARFERegressorCV, __version__
from harfe.datasets import make_function
from harfe.metrics import mean_squared_error

_NEXT = """\
With your own table, numbers only, a line of names on top, the column to predict at the end,
save this as mine.py and run it with {python} mine.py:

    import numpy as np
    from harfe import HARFERegressorCV

    table = np.loadtxt("data.csv", delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    model = HARFERegressorCV(random_state=0, verbose=True).fit(X, y)
    print("which columns matter:", model.feature_importances_.round(3))
    print("first predictions:", model.predict(X[:3]), "and what is there:", y[:3])"""


def main() -> None:
    """Fit Friedman's first function and say what came out."""
    train = make_function("friedman1", 300, random_state=0)
    test = make_function("friedman1", 1000, random_state=1)
    model = HARFERegressorCV(random_state=0, verbose=True).fit(train.X, train.y)
    print(account(model, train, test))
    print(_NEXT.format(python=_short(sys.executable)))


def _short(path: str) -> str:
    """Path as one would type it from here."""
    here = os.path.relpath(path)
    return path if here.startswith("..") else here


def account(model: HARFERegressorCV, train: object, test: object) -> str:
    """The fit in a dozen lines."""
    X, y = train.X, train.y  # type: ignore[attr-defined]
    X_test, y_test = test.X, test.y  # type: ignore[attr-defined]
    error = {
        "train": mean_squared_error(y, model.predict(X)),
        "test": mean_squared_error(y_test, model.predict(X_test)),
        "null model": mean_squared_error(y_test, np.full(len(y_test), y.mean())),
        "noise alone": train.noise**2,  # type: ignore[attr-defined]
    }
    used = np.flatnonzero(model.law_.usage())
    learned = ", ".join(train.feature_names[j] for j in used)  # type: ignore[attr-defined]
    trained = {"data": "", "matched": "", "refined": ", then trained"}[model.fit_]
    _, lower, upper = model.predict(X_test, interval=0.9)
    inside = np.mean((lower <= y_test) & (y_test <= upper))
    lines = [
        f"harfe {__version__} on Friedman's first function, with noise",
        "    10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5;  x6 .. x10 play no part",
        "",
        f"rows      {len(X)} to train, {len(X_test)} to test",
        f"inputs    {X.shape[1]}",
        f"law       learned from the data: features of {learned}",
        f"features  N = {model.n_components_} drawn from it, s = {len(model.support_)} kept"
        f"{trained}",
        "",
        "Mean squared error",
        *(f"  {name:12} {value:7.2f}" for name, value in error.items()),
        f"Intervals of 90 % hold {inside:.0%} of the test rows",
        "",
        "Which inputs matter (share of the variance of the prediction, interactions included)",
        *_bars(model.feature_importances_, train.feature_names),  # type: ignore[attr-defined]
        "",
    ]
    return "\n".join(lines)


def _bars(shares: np.ndarray, names: Sequence[str], width: int = 40) -> list[str]:
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    lines = []
    for j in np.argsort(-shares, kind="stable"):
        bar = block * round(width * shares[j] / shares.max())
        lines.append(f"  {names[j]:4} {shares[j]:5.1%} {bar}")
    return lines


if __name__ == "__main__":
    main()
