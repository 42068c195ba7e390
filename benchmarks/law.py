"""The effect of each ingredient of a learned law, left out or replaced one at a time.

For every problem and split: candidates are fitted and stacked by cross-validation on the training
part; then sparse models of 32 and 128 features are made in several ways and scored on the rest. The
table gives geometric means of error / error of the dense reference (the stack), with standard
errors of the mean of its logarithm over problems and splits. Friedman 1-3: 200 rows, scored without
noise. Real data (with HARFE_DATA): only the paper's training rows, 80 % of them for learning.

    python benchmarks/law.py [--splits 2] [--jobs 2] [--only friedman1 ...]

"in hindsight" marks variants whose ridge weight was chosen on the rows that score them.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed

from harfe._core.folds import make_folds
from harfe._core.threads import one_blas_thread
from harfe.datasets import load_real, make_function
from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import MixedLaw
from harfe.features.pool import FeaturePool
from harfe.learning.candidates import CANDIDATES, LawFit, LawSettings
from harfe.learning.matching import Points, make_points, match
from harfe.learning.refining import refine
from harfe.selection.engine.search import Search
from harfe.selection.learn_law import LawRace, fit_law
from harfe.selection.race import errors_on_fold
from harfe.selection.recipe import Framing, Template
from harfe.selection.rows import Data
from harfe.solvers.homes import make_problem
from harfe.solvers.path import sparsity_path
from harfe.solvers.swaps import exchange

FUNCTIONS = ("friedman1", "friedman2", "friedman3")
REAL = (
    "propulsion",
    "galaxy",
    "skillcraft",
    "airfoil",
    "forestfire",
    "housing",
    "music",
    "insulin",
    "speech",
    "telemonitor",
    "ccpp",
)
SIZES = (32, 128)
N = 4000
ALPHAS = tuple(np.geomspace(1e-12, 10, 14))


def load(name: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows for learning and rows for scoring."""
    if name in FUNCTIONS:
        data = make_function(name, 1200, random_state=7000 + split)
        return data.X[:200], data.y[:200], data.X[200:], data.y_clean[200:]
    data = load_real(name, noise_seed=7000 + split)
    rows = np.random.default_rng(7000 + split).permutation(len(data.X_train))
    cut = int(0.8 * len(rows))
    X, y = data.X_train[rows], data.y_train[rows]
    return X[:cut], y[:cut], X[cut:], y[cut:]


def template_for(X: np.ndarray, seed: int) -> Template:
    """The settings of HARFERegressorCV."""
    columns = tuple(f"x{j}" for j in range(X.shape[1]))
    return Template(seed, N, Framing(columns, 2e9, input_clip=5.0), max_iter=100, tol=1e-6)


def with_tempering(law: FeatureLaw | MixedLaw, share: float) -> FeatureLaw | MixedLaw:
    """The law with another share of tempered features."""
    if isinstance(law, MixedLaw):
        return replace(law, parts=tuple(replace(part, tempering=share) for part in law.parts))
    return replace(law, tempering=share)


def with_partners(pool: FeaturePool) -> FeaturePool:
    """Every feature and its quarter-turn partner: sine and cosine of the same weights."""
    return pool.join(replace(pool, phases=pool.phases + np.pi / 2))


def around(pool: FeaturePool, kept: FeaturePool, rng: np.random.Generator) -> FeaturePool:
    """The kept features, and draws near them, as many as the pool has features."""
    near = kept.take(rng.integers(len(kept), size=len(pool)))
    values = near.values * (1 + 0.2 * rng.standard_normal(near.values.shape))
    phases = near.phases + 0.3 * rng.standard_normal(len(near))
    return kept.join(replace(near, values=values, phases=phases))


def one(name: str, split: int) -> dict[str, float]:
    """Error of every variant over that of the reference."""
    X, y, X_new, y_new = load(name, split)
    everything = np.arange(len(X))
    data = Data(
        np.vstack([X, X_new]), np.concatenate([y, y_new])[:, None], np.ones(len(X) + len(X_new))
    )
    train = Data(X, y[:, None], np.ones(len(X)))
    template = template_for(X, split)
    folds = make_folds("cv", 5, X, y, split)
    settings = LawSettings(template.seed, template.framing.input_scale, template.framing.input_clip)
    race = LawRace(list(CANDIDATES.values()), settings, train, folds)
    Search(race).run()
    full = race.fit_all(race.stacked())

    def error(prediction: np.ndarray) -> float:
        return float(np.mean((prediction[:, 0] - y_new) ** 2))

    dense = error(full.predict(X_new))
    errors = {"dense: stack": dense}
    alone = race.best_so_far()[1].removeprefix("law ")
    fits = {
        name: fit_law(CANDIDATES[name], settings, train, everything)
        for name in {alone, "isotropic"}
    }
    errors["dense: the best candidate alone"] = error(fits[alone].predict(X_new))
    errors["dense: isotropic law"] = error(fits["isotropic"].predict(X_new))
    fold = (everything, np.arange(len(X), len(data.X)))
    with one_blas_thread():
        variants(full, template, data, fold, X_new, error, errors)
        isotropic = sparse_models(fits["isotropic"], fits["isotropic"].law, template)
        for s, model in isotropic.items():
            errors[f"{s} features: isotropic law, matched"] = error(
                full.data.to_targets(model.predict(full.data.standardise(X_new)))
            )
    return {variant: value / dense for variant, value in errors.items()}


def points_of(law: LawFit, template: Template) -> tuple[Points, np.random.Generator]:
    """The points at which the reference is matched."""
    rng = np.random.default_rng(template.seed)
    used = law.law.usage() > 0
    return make_points(law.reference, law.data.Z, law.data.weights, used, law.noise, rng), rng


def sparse_models(law: LawFit, drawn_from: FeatureLaw | MixedLaw, template: Template) -> dict:
    """Matched models of all sizes, with a pool drawn from the given law."""
    points, _ = points_of(law, template)
    pool = template.sampling(drawn_from).draw()
    return dict(zip(SIZES, match(pool, points, SIZES), strict=True))


def variants(full, template, data, fold, X_new, error, errors) -> None:  # type: ignore[no-untyped-def]
    """Add the error of every sparse variant to `errors`."""
    Z_new = full.data.standardise(X_new)

    def judge(label: str, model) -> None:  # type: ignore[no-untyped-def]
        errors[label] = error(full.data.to_targets(model.predict(Z_new)))

    points, rng = points_of(full, template)
    pool = template.sampling(full.law).draw()
    plain = dict(zip(SIZES, match(pool, points, SIZES), strict=True))
    for s, model in plain.items():
        judge(f"{s} features: matched", model)
    for model in refine([plain[max(SIZES)]], points, SIZES):
        judge(f"{len(model.support)} features: refined", model)
    for share, label in ((0.0, "no tempering"), (1.0, "tempered only")):
        for s, model in sparse_models(full, with_tempering(full.law, share), template).items():
            judge(f"{s} features: matched, {label}", model)
    half = pool.take(np.arange(N // 2))
    for s, model in zip(SIZES, match(with_partners(half), points, SIZES), strict=True):
        judge(f"{s} features: matched, sines with their cosines", model)
    for s in SIZES:
        near = around(pool, plain[s].features, rng)
        judge(f"{s} features: matched, drawn again around the kept", match(near, points, [s])[0])
    table = errors_on_fold(template.framing, pool, SIZES, ALPHAS, data, fold, None)[0]
    for s, row in zip(SIZES, table, strict=True):
        errors[f"{s} features: on the data (alpha in hindsight)"] = float(row.min())
    problem = make_problem(
        pool, points.Z, points.values, points.weights, largest_support=3000, memory_budget=2e9
    )
    levels = {
        len(v.support): v for v in sparsity_path(problem, alpha=1e-6, n_nonzero_coefs=SIZES).levels
    }
    for s in SIZES:
        supports = {
            "matched, pruned by size instead": levels[s].support,
            "matched, then swaps": exchange(problem, plain[s].support, levels_core(levels), 1e-6),
        }
        for label, S in supports.items():
            judge(f"{s} features: {label}", match(pool.take(S), points, [s])[0])


def levels_core(levels: dict) -> np.ndarray:  # type: ignore[type-arg]
    """The support of about 600 features on the path, to swap with."""
    size = min((s for s in levels if s >= 500), default=max(levels))
    return levels[size].support


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    names = given.only or [*FUNCTIONS, *(REAL if os.environ.get("HARFE_DATA") else ())]
    calls = [(name, split) for split in range(given.splits) for name in names]
    results = Parallel(n_jobs=given.jobs, verbose=5)(delayed(one)(*call) for call in calls)
    columns = defaultdict(list)
    for result in results:
        for variant, value in result.items():
            columns[variant].append(np.log(value))
    print("| variant | error / dense reference | standard error | wins over the default |")
    print("|---|---|---|---|")
    for variant, logs in columns.items():
        base = columns[variant.split(":")[0] + (": stack" if "dense" in variant else ": matched")]
        wins = sum(a < b - 1e-9 for a, b in zip(logs, base, strict=True))
        spread = np.std(logs, ddof=1) / np.sqrt(len(logs)) if len(logs) > 1 else np.nan
        print(f"| {variant} | {np.exp(np.mean(logs)):.3g} | {spread:.2g} | {wins} of {len(logs)} |")


if __name__ == "__main__":
    main()
