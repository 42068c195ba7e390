"""Draw every figure of harfe.display: ``python docs/figures/explanations.py FOLDER``.

Needs harfe[plot] and pandas. It fits Friedman's first function and his g of 20 inputs, which
come with harfe, and, if HARFE_DATA is set (see `harfe.datasets.load_real`), the four tables of the
paper's Figure 5 with its settings.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

from harfe import HARFERegressor, HARFERegressorCV, display
from harfe.datasets import load_real, make_function

ROOT = Path(__file__).resolve().parents[2]
FIGURE_5 = ("propulsion", "housing", "speech", "telemonitor")


class Folder:
    """The folder that figures are written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def save(self, name: str, drawn: object) -> None:
        """Draw a figure, write it and close it."""
        figure = drawn.plot().figure_
        figure.savefig(self.path / f"{name}.png", dpi=110)
        plt.close(figure)
        print(f"{name}.png")


def draw_model(folder: Folder, name: str, model: object, X: pd.DataFrame, y: object) -> None:
    """Draw every figure that applies to a fitted model; X and y are rows it has not seen."""
    explanation = model.explain()
    leading = explanation.components
    show = display.ComponentDisplay.from_estimator
    folder.save(f"{name}_histogram", display.VariableHistogramDisplay.from_estimator(model))
    importance = display.TermImportanceDisplay.from_explanation(explanation)
    folder.save(f"{name}_importance", importance)
    interactions = display.InteractionDisplay.from_explanation(explanation)
    folder.save(f"{name}_interactions", interactions)
    for order, kind in ((1, "curve"), (2, "map")):
        several = [u for u in leading.columns["variables"] if len(u) == order]
        if several:
            folder.save(f"{name}_{kind}", show(model, several[0]))
    folder.save(f"{name}_components", display.ComponentsDisplay.from_estimator(model))
    folder.save(f"{name}_parity", display.ParityDisplay.from_estimator(model, X, y))
    folder.save(f"{name}_waterfall", display.WaterfallDisplay.from_estimator(model, X))
    if hasattr(model, "mse_path_"):
        folder.save(f"{name}_path", display.SparsityPathDisplay.from_estimator(model))
    if getattr(model, "fit_", "data") == "data":
        folder.save(f"{name}_convergence", display.ConvergenceDisplay.from_estimator(model))


def main() -> None:
    """Fit the models and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="Friedman's first function only")
    given = parser.parse_args()
    folder = Folder(given.folder)
    sys.path.insert(0, str(ROOT))
    from experiments.paper.methods import Harfe

    # The figures already carry a note where inputs of the real tables depend on each other.
    warnings.filterwarnings("ignore", message=".*(depend on each other|strongly correlated)")
    train = make_function("friedman1", 300, random_state=0)
    test = make_function("friedman1", 500, random_state=1)
    X, X_test = (pd.DataFrame(data.X, columns=data.feature_names) for data in (train, test))
    models = {"pursuit": HARFERegressor(random_state=0)}
    if not given.quick:
        models["selected"] = HARFERegressorCV(random_state=0)
        models["grid"] = HARFERegressorCV(law="grid", random_state=0)
    for name, model in models.items():
        draw_model(folder, f"friedman1_{name}", model.fit(X, train.y), X_test, test.y_clean)
    if given.quick:
        return
    g = make_function("friedman_g", 200, random_state=0)
    as_real_data = Harfe("unit", N=10_000, s=200, q=2, lam=0.5, standardise=True)
    model = as_real_data.fit(g.X, g.y, 0, {}).model.regressor_["model"]
    drawn = display.VariableHistogramDisplay.from_estimator(model)
    drawn.variables = tuple(f"x{j}" for j in range(1, 21))  # the paper counts from 1
    folder.save("figure_4", drawn)
    if not os.environ.get("HARFE_DATA"):
        print("HARFE_DATA is not set: figures of the paper's real data are skipped")
        return
    for name in FIGURE_5:
        data = load_real(name)
        X = pd.DataFrame(data.X_train, columns=data.feature_names)
        X_test = pd.DataFrame(data.X_test, columns=data.feature_names)
        model = Harfe("unit").fit(X, data.y_train, 0, data.paper).model
        draw_model(folder, f"figure_5_{name}", model, X_test, data.y_test)


if __name__ == "__main__":
    main()
