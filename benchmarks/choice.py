"""How well each rule for choosing a model under a learned law does (decision 24).

    python benchmarks/choice.py [--splits 2] [--jobs 2] [--only friedman2 housing ...]

For every problem and split of `benchmarks/law.py`, the search runs once; then several rules choose
from its table, and each choice is fitted on all rows and scored on unseen rows (without noise for
the Friedman functions; parts of the paper's training rows for the real data). Printed: the
geometric mean of error / error of the dense reference, over the splits of each problem.
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
from harfe.learning.candidates import CANDIDATES, LawSettings
from harfe.selection.choosing import Choice, fewest_features
from harfe.selection.engine.search import Search
from harfe.selection.grid_values import candidate_sizes
from harfe.selection.law_search import LawSearch
from harfe.selection.learn_law import LawRace
from harfe.selection.rows import Data
from harfe.selection.sparse_models import KINDS, SparseSettings, fit_sparse

_EQUAL = 0.005


def by_error(search: LawSearch, kinds: tuple[str, ...] = KINDS) -> Choice:
    """The smallest model of these kinds within 0.5 % of the lowest held-out error."""
    scores = search.cells.table(range(len(search.race.folds)))[1]
    left_out = [k for k, kind in enumerate(search.settings.kinds) if kind not in kinds]
    merit = scores.copy()
    merit[left_out] = np.nan
    return fewest_features(scores, merit, search.settings.sizes, _EQUAL)


RULES: dict[str, Callable[[LawSearch], Choice]] = {
    "as it is": lambda search: search.choose("best"),
    "held-out error alone": by_error,
    "never on the data": lambda search: by_error(search, KINDS[1:]),
    "always on the data": lambda search: by_error(search, KINDS[:1]),
    "weights as drawn": lambda search: by_error(search, KINDS[1:2]),
}


def one(name: str, split: int) -> dict[str, float]:
    """Error of every rule's choice over that of the reference."""
    X, y, X_new, y_new = load(name, split)
    settings = SparseSettings(KINDS, tuple(candidate_sizes(20, N, N)), ALPHAS)
    data = Data(X, y[:, None], np.ones(len(X)))
    folds = make_folds("cv", 5, X, y, split)
    template = template_for(X, split)
    law_settings = LawSettings(
        template.seed, template.framing.input_scale, template.framing.input_clip
    )
    race = LawRace(list(CANDIDATES.values()), law_settings, data, folds)
    search = LawSearch(race, template, settings)
    Search(search).run()

    def error(prediction: np.ndarray) -> float:
        return float(np.mean((prediction[:, 0] - y_new) ** 2))

    law = race.fit_all(search.weights)
    dense = error(law.predict(X_new))
    ratios, seen = {}, {}
    for label, rule in RULES.items():
        choice = rule(search)
        if choice not in seen:
            with one_blas_thread():
                fit = fit_sparse(template, law, settings, choice, data)
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
