"""Which variables do the kept features use? The numbers behind Figures 4 and 5 of the paper.

With the paper's settings, over several draws of the features (and of the data, for g): the share of
the kept features that use each variable, the same weighted by the size of the coefficients, and the
share in the pool that was drawn, each in percent and averaged over the draws; behind them, in how
many draws the variable was first, and among the leading ones.

    python benchmarks/histograms.py [--only g housing ...] [--draws 20] [--selected]

Of g, Friedman's function of 20 inputs, the paper gives the order 2 and no other setting; λ is said
to be tuned. So there are several readings, all with 200 rows and N, s and the law of the weights of
its first Friedman function: its λ as well, in the column scales of friedman_rows.py; and prepared
as the paper's real data (inputs and target standardised, columns of unit RMS), with several λ of
the size that noisy data have in its table. The real data need HARFE_DATA (see
`harfe.datasets.load_real`). With --selected, g is also fitted by HARFERegressorCV(), on 500 rows,
and its interactions are printed.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from friedman_rows import FEATURES, LAMBDA, ROWS, SETTINGS, SPARSITY, STEP, TEST_ROWS
from paper_rows import paper_model

from harfe import HARFERegressor, HARFERegressorCV
from harfe.datasets import load_real, make_function
from harfe.display import VariableHistogramDisplay
from harfe.metrics import mean_squared_error

#: What the paper's text says of Figure 5, by the numbers that it counts inputs with.
CLAIMS = {
    "propulsion": "3 most; 14 and 15 least",
    "housing": "5 and 12 most",
    "speech": "13 (NTH) most",
    "telemonitor": "several significant",
}
MATTER = 5  # inputs of g that matter, the first ones


#: Readings of the settings of Figure 4: whether data are standardised, column scale, α, step.
READINGS = {
    **{
        label: (False, column_scale, ridge * LAMBDA["friedman1"], step * STEP)
        for label, (column_scale, ridge, step, _) in SETTINGS.items()
    },
    **{
        f"as the real data, mλ = {alpha:g}": (True, "rms", alpha, STEP)
        for alpha in (1e-3, 1e-2, 0.1, 0.5, 1.0, 2.5)
    },
}


def g_model(reading: str, seed: int) -> tuple[HARFERegressor, float]:
    """Fit g with one of READINGS; also the noise-free test error, in units of g."""
    standardised, column_scale, alpha, step = READINGS[reading]
    data = make_function("friedman_g", ROWS, random_state=seed)
    test = make_function("friedman_g", TEST_ROWS, noise=0.0, random_state=10_000 + seed)
    centre, unit, y_centre, y_unit = 0.0, 1.0, 0.0, 1.0
    if standardised:
        centre, unit = data.X.mean(axis=0), data.X.std(axis=0, ddof=1)
        y_centre, y_unit = data.y.mean(), data.y.std(ddof=1)
    model = HARFERegressor(
        FEATURES["friedman1"],
        SPARSITY,
        order=2,
        alpha=alpha,
        weights="uniform",
        bias="uniform",
        step_size=step,
        max_iter=50,
        fit_intercept=False,
        input_scale="none",
        input_clip=None,
        column_scale=column_scale,
        random_state=seed,
    ).fit((data.X - centre) / unit, (data.y - y_centre) / y_unit)
    predicted = y_centre + y_unit * model.predict((test.X - centre) / unit)
    return model, mean_squared_error(test.y_clean, predicted)


def shares(model: HARFERegressor) -> np.ndarray:
    """Share of the kept features, by size of the coefficients, and of the drawn ones: 3 rows."""
    plain = VariableHistogramDisplay.from_estimator(model)
    weighted = VariableHistogramDisplay.from_estimator(model, weighted=True)
    return np.stack([plain.share, weighted.share, plain.pool_share])


def leaders(share: np.ndarray, n: int) -> set[int]:
    """The n variables with the largest shares."""
    return set(np.argsort(-share, kind="stable")[:n].tolist())


def report(title: str, names: list[str], all_shares: np.ndarray, n_leading: int) -> None:
    """Print a table; `all_shares` has the shape (draws, 3, variables)."""
    draws = len(all_shares)
    kept, weighted, drawn = 100 * all_shares.mean(axis=0)
    first = [int(np.argmax(share[0])) for share in all_shares]
    leading = [leaders(share[0], n_leading) for share in all_shares]
    by_weight = [leaders(share[1], n_leading) for share in all_shares]
    print(f"\n{title}, {draws} draws")
    print(f"{'':>3} {'variable':28} {'kept':>6} {'weighted':>8} {'drawn':>6} {'first':>6} ", end="")
    print(f"{'top ' + str(n_leading):>6} {'weighted top ' + str(n_leading):>15}")
    for j in np.argsort(-kept, kind="stable"):
        counts = (sum(j in top for top in tops) for tops in (leading, by_weight))
        print(
            f"{j + 1:3} {names[j]:28} {kept[j]:6.1f} {weighted[j]:8.1f} {drawn[j]:6.1f} "
            f"{first.count(j):6} {next(counts):6} {next(counts):15}"
        )


def five_lead(share: np.ndarray) -> bool:
    """Whether the variables of g that matter have the largest shares."""
    return leaders(share, MATTER) == set(range(MATTER))


def show_g(draws: int) -> None:
    """Figure 4, in each reading of the settings."""
    for reading in READINGS:
        models, errors = zip(*(g_model(reading, seed) for seed in range(draws)), strict=True)
        found = np.array([shares(model) for model in models])
        report(f"g, {reading}", [f"x{j}" for j in range(1, 21)], found, MATTER)
        for which, row in (("kept", 0), ("weighted", 1)):
            hits = sum(five_lead(share[row]) for share in found)
            print(f"the five true variables lead in {hits} of {draws} draws, by share {which}")
        print(f"noise-free test error {np.mean(errors):.3g} in the mean")


def show_real(name: str, draws: int) -> None:
    """One panel of Figure 5."""
    data = load_real(name)
    found = np.array(
        [
            shares(paper_model(data.paper, seed).fit(data.X_train, data.y_train))
            for seed in range(draws)
        ]
    )
    report(f"{name} (the paper: {CLAIMS[name]})", data.feature_names, found, 2)
    kept = found[:, 0]
    if name == "propulsion":
        hits = sum(leaders(-share, 2) == {13, 14} for share in kept)
        print(f"inputs 14 and 15 have the smallest shares in {hits} of {draws} draws")


def show_selected(draws: int) -> None:
    """Interactions of g that the selection with a learned law finds."""
    print("\ng by HARFERegressorCV(), 500 rows: strongest pairs, shares of the variance")
    for seed in range(draws):
        data = make_function("friedman_g", 500, random_state=seed)
        model = HARFERegressorCV(random_state=seed).fit(data.X, data.y)
        pairs = model.explain().interactions
        lead = ", ".join(
            f"{int(a[1:]) + 1}:{int(b[1:]) + 1} {100 * share:.2f} %"
            for (a, b), share in list(zip(pairs.columns["variables"], pairs["total"], strict=True))[
                :3
            ]
        )
        print(f"draw {seed}: {model.fit_}, {model.n_nonzero_coefs_} terms: {lead}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["g", *CLAIMS]
    parser.add_argument("--only", nargs="+", default=names, choices=names)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--selected", action="store_true", help="also g by HARFERegressorCV")
    given = parser.parse_args()
    for name in given.only:
        if name == "g":
            show_g(given.draws)
            if given.selected:
                show_selected(given.draws)
        elif os.environ.get("HARFE_DATA"):
            show_real(name, given.draws)
        else:
            print(f"\n{name}: HARFE_DATA is not set, see harfe.datasets.load_real")


if __name__ == "__main__":
    main()
