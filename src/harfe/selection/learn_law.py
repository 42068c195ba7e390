"""learn_law: the law of the features alone, for use with any estimator that takes one."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from harfe._core.arguments import check_choice, check_clip
from harfe._core.folds import make_folds
from harfe._core.validation import check_inputs, check_targets, check_weights
from harfe.features.law import FeatureLaw
from harfe.features.transformer import SparseRandomFeatures, seed_of
from harfe.features.units import INPUT_SCALES, varies
from harfe.learning.candidates import CANDIDATES, LearnedLaw
from harfe.selection.law_search import Clock, LawSearch
from harfe.selection.race import Data
from harfe.selection.recipe import Recipe
from harfe.selection.sparse_models import SparseSettings


def learn_law(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    candidates: Sequence[str] = tuple(CANDIDATES),
    cv: Any = 5,
    input_scale: str = "standard",
    input_clip: float | None = 5.0,
    verbose: bool = False,
    random_state: Any = None,
) -> LearnedLaw:
    """Learn from data which variables features should look at, how many at once, at which scales.

    Minimises -log N(y; 0, K + 1 + noise) + penalties over the parameters of the law, K being the
    kernel of its features (see :mod:`harfe.learning.likelihood`), for each candidate. Of those, the one wins
    whose Gaussian process, fitted anew without each fold, predicts its rows best.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        NumPy array, or pandas or polars frame with column names.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Real. Several targets share the law.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts: weight 2 is the row twice.
    candidates : sequence of str, default=("additive", "pairs", "fours", "isotropic")
        Priors to try: one variable a feature; one or two, scales held together; one to four, scales
        free; one or two, all variables alike.
    cv : int, splitter or iterable, default=5
        Folds. All candidates run on two, the best two on the others.
    input_scale, input_clip
        Units in which the law draws, as in :class:`HARFERegressor`.
    verbose : bool, default=False
        Show progress on standard error.
    random_state : int, RandomState instance or None, default=None
        Of the folds and of the rows that are looked at.

    Returns
    -------
    LearnedLaw
        Its ``law`` goes to ``HARFERegressor(law=...)`` or ``SparseRandomFeatures(law=...)``.

    Notes
    -----
    The likelihood sees at most 500 distinct rows, drawn at random (300 in its first steps, which
    find the variables). Of more than 100 inputs, those 100 go on for which the likelihood rises
    fastest with their weight, where all inputs are alike. Variables without which the likelihood
    falls by little are left out.

    Examples
    --------
    >>> from harfe import HARFERegressor, learn_law
    >>> from harfe.datasets import make_function
    >>> data = make_function("friedman1", 200, random_state=0)
    >>> learned = learn_law(data.X, data.y, candidates=["pairs"], random_state=0)
    >>> sorted(int(j) for j in learned.law.usage().argsort()[-5:])
    [0, 1, 2, 3, 4]
    >>> model = HARFERegressor(law=learned.law, random_state=0).fit(data.X, data.y)
    """
    frame = SparseRandomFeatures()
    X = check_inputs(frame, X, reset=True, min_rows=2)
    y = check_targets(y, len(X))
    if y.dtype.kind == "c":
        raise ValueError("y is complex, and a law is learned from real targets; pass y.real")
    weights = check_weights(sample_weight, X)
    if isinstance(candidates, str):
        candidates = [candidates]
    for name in candidates:
        check_choice("candidates", name, tuple(CANDIDATES))
    if not len(candidates):
        raise ValueError(f"candidates=() names none; pass some of {tuple(CANDIDATES)}")
    counted = weights > 0
    check_choice("input_scale", input_scale, INPUT_SCALES)
    check_clip(input_clip)
    if not varies(X[counted], weights[counted]):
        raise ValueError("X has no input that varies; there is nothing to learn a law from")
    seed = seed_of(random_state)
    folds = make_folds("cv", cv, X, y, seed, counted=counted)
    names = getattr(frame, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
    recipe = Recipe(
        law=FeatureLaw(X.shape[1], (1,)),
        seed=seed,
        n_components=1,
        n_nonzero_coefs=1,
        alpha=0.0,
        columns=tuple(str(name) for name in names),
        memory_budget=np.inf,
        input_scale=input_scale,
        input_clip=input_clip,
    )
    data = Data(X[counted], y[counted].reshape(int(counted.sum()), -1), weights[counted])
    search = LawSearch(
        recipe,
        [CANDIDATES[name] for name in candidates],
        SparseSettings((), (), ()),
        data,
        folds,
    )
    started = time.monotonic()

    def tell(done: int, planned: int) -> bool:
        if verbose:
            seconds = time.monotonic() - started
            sys.stderr.write(f"harfe: {done} of {planned} laws, {seconds:.0f} s\n")
        return False

    search.race_laws(1, Clock(search.n_law_tasks, np.inf, tell))
    return search.learned()
