"""How well each rule for choosing a model under a learned law does (decision 24).

    python benchmarks/choice.py [--splits 2] [--jobs 2] [--only friedman2 housing ...]

For every problem and split of `benchmarks/law.py`, the laws are raced and all kinds of models run
on all folds; then several rules choose from the table, and each choice is fitted on all rows and
scored on unseen rows (without noise for the Friedman functions; parts of the paper's training rows
for the real data). Printed: the geometric mean of error / error of the dense reference, over the
splits of each problem.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from law import ALPHAS, FUNCTIONS, REAL, N, load, template_for

from harfe._core.folds import make_folds
from harfe._core.threads import one_blas_thread
from harfe.estimators._grid_values import candidate_sizes
from harfe.learning.candidates import CANDIDATES, LawSettings
from harfe.selection.choosing import CellTable, Choice, fewest_features
from harfe.selection.engine.search import Search
from harfe.selection.learn_law import LawRace
from harfe.selection.rows import Data
from harfe.selection.sparse_models import (
    KINDS,
    SparseSettings,
    close_model,
    fit_data,
    matched_fit,
    sparse_on_fold,
    sparse_paths,
)

_EQUAL = 0.005


def by_error(cells: CellTable, kinds: tuple[str, ...] = KINDS) -> Choice:
    """The smallest model of these kinds within 0.5 % of the lowest held-out error."""
    scores = cells.table(cells.folds("data"))[1]
    merit = scores.copy()
    merit[[kind not in kinds for kind in KINDS]] = np.nan
    return fewest_features(scores, merit, cells.sizes, _EQUAL)


RULES: dict[str, Callable[[CellTable], Choice]] = {
    "as it is": lambda cells: cells.choose(cells.folds("data"), "best"),
    "held-out error alone": by_error,
    "never on the data": lambda cells: by_error(cells, KINDS[1:]),
    "always on the data": lambda cells: by_error(cells, KINDS[:1]),
    "weights as drawn": lambda cells: by_error(cells, KINDS[1:2]),
    "always trained": lambda cells: by_error(cells, KINDS[3:]),
}


def one(name: str, split: int) -> dict[str, float]:
    """Error of every rule's choice over that of the reference."""
    X, y, X_new, y_new = load(name, split)
    data = Data(X, y[:, None], np.ones(len(X)))
    folds = make_folds("cv", 5, X, y, split)
    template = template_for(X, split)
    law_settings = LawSettings(
        template.seed, template.framing.input_scale, template.framing.input_clip
    )
    race = LawRace(list(CANDIDATES.values()), law_settings, data, folds)
    Search(race).run()
    weights, sizes = race.stacked(), tuple(candidate_sizes(20, N, N))
    settings = SparseSettings(KINDS, sizes, ALPHAS, race.held_out_error())
    cells = CellTable(KINDS, sizes, ALPHAS)
    for f, fold in enumerate(folds):
        law = race.fit_without(f, weights)
        cells.add(f, KINDS, sparse_on_fold(template, law, settings, data, fold, None)[0])

    def error(prediction: np.ndarray) -> float:
        return float(np.mean((prediction[:, 0] - y_new) ** 2))

    law = race.fit_all(weights)
    dense = error(law.predict(X_new))
    paths = sparse_paths(template, law, settings, data)
    ratios, seen = {}, {}
    for label, rule in RULES.items():
        choice = rule(cells)
        if choice not in seen:
            with one_blas_thread():
                if KINDS[choice.pool] == "data":
                    fit = fit_data(template, law, settings, choice, data)
                else:
                    model = close_model(paths[KINDS[choice.pool]], sizes[choice.size], np.inf, 0.0)
                    assert model is not None
                    fit = matched_fit(template, law, model, data)
                seen[choice] = error(fit.expansion.predict(X_new))
        ratios[label] = seen[choice] / dense
    return ratios


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    names = given.only or [*FUNCTIONS, *(REAL if os.environ.get("HARFE_DATA") else ())]
    calls = [(name, split) for name in names for split in range(given.splits)]
    results = Parallel(n_jobs=given.jobs, verbose=5)(delayed(one)(*call) for call in calls)
    print("| problem | " + " | ".join(RULES) + " |")
    print("|---" * (len(RULES) + 1) + "|")
    for name in names:
        own = [r for (n, _), r in zip(calls, results, strict=True) if n == name]
        means = [np.exp(np.mean([np.log(r[label]) for r in own])) for label in RULES]
        print(f"| {name} | " + " | ".join(f"{mean:.3g}" for mean in means) + " |", flush=True)


if __name__ == "__main__":
    main()
