"""Draw the first picture of the README: ``python docs/figures/friedman.py`` (needs harfe[plot]).

The data are 500 noisy rows of Friedman's first function with 20 inputs, of which 5 matter; every
setting is learned or chosen by cross-validation.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from harfe import HARFERegressorCV
from harfe.datasets import make_function
from harfe.metrics import mean_squared_error

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"


def main() -> None:
    """Fit, draw, and print the numbers in the picture."""
    train = make_function("friedman_g", 500, random_state=0)
    test = make_function("friedman_g", 1000, random_state=1)
    model = HARFERegressorCV(random_state=0).fit(train.X, train.y)
    predicted = model.predict(test.X)
    error = mean_squared_error(test.y_clean, predicted)
    null = mean_squared_error(test.y_clean, np.full(len(test.X), train.y.mean()))
    s, N = len(model.support_), model.n_components_

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9, 3.6), width_ratios=[1, 1.45], layout="constrained"
    )
    low, high = test.y_clean.min() - 1, test.y_clean.max() + 1
    left.plot([low, high], [low, high], color=GREY, lw=1, zorder=0)
    left.scatter(test.y_clean, predicted, s=6, color=BLUE, alpha=0.5, linewidths=0)
    left.set(xlabel="true function, unseen rows", ylabel="prediction", aspect="equal")
    left.set(xlim=(low, high), ylim=(low, high))
    kind = "trained sines" if model.fit_ == "refined" else "sines"
    left.set_title(f"{s} {kind}: MSE {error:.2f}, null model {null:.1f}", fontsize=10)

    shares = 100 * model.feature_importances_
    colors = [ORANGE] * 5 + [GREY] * 15
    right.bar(range(1, 21), shares, color=colors)
    right.set(xlabel="input", ylabel="share of the variance (%)", xticks=range(1, 21))
    right.set_title(
        "y = 10 sin(π x₁x₂) + 20 (x₃ - ½)² + 10 x₄ + 5 x₅ + noise; x₆ .. x₂₀ have no effect",
        fontsize=8,
    )
    path = Path(__file__).with_suffix(".png")
    figure.savefig(path, dpi=110)
    print(f"{path.name}: s={s}, N={N}, noise-free test MSE {error:.3f}, null model {null:.2f}")


if __name__ == "__main__":
    main()
