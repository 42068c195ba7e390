"""Whether a target is fitted on the scale of a link: asked of held-out rows, before the search.

The search itself then runs on one scale. A joint law is fitted to a sample of some folds with and
without a link, and predicts their held-out rows in the user's units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import norm

from harfe._core.folds import Fold
from harfe._core.threads import one_blas_thread
from harfe.learning.candidates import CANDIDATES, LawSettings, fit_candidate, standardise
from harfe.selection.rows import Data, sample_fold

# Targets that are less skewed than this are left alone.
_SKEWED = 1.0

# Folds that are asked, and rows of each.
_FOLDS, _ROWS = 3, 500

# A link must lower the mean squared error by this share, and in every fold: on the scale of a link
# errors mean something else, and sums are harder to read.
_GAIN = 0.05


def choose_link(data: Data, folds: Sequence[Fold], settings: LawSettings) -> str:
    """Return the kind of link that predicts held-out rows clearly best, or "none"."""
    y, share = data.y[:, 0], data.weights / data.weights.sum()
    mean = share @ y
    deviation = np.sqrt(share @ (y - mean) ** 2)
    # A constant has no deviation but that of rounding.
    if deviation <= 1e-12 * abs(mean) or abs(share @ ((y - mean) / deviation) ** 3) < _SKEWED:
        return "none"
    kinds = ["none", "log" if y.min() > 0 else "yeo-johnson"]
    settings = replace(settings, joint_rows=_ROWS)
    some = [sample_fold(fold, _ROWS, settings.seed) for fold in folds[:_FOLDS]]
    with one_blas_thread():
        errors = np.array([[_error(kind, data, fold, settings) for fold in some] for kind in kinds])
    plain, linked = errors
    clear = np.all(linked < plain) and linked.mean() < (1 - _GAIN) * plain.mean()
    return kinds[1] if clear else "none"


def _error(kind: str, data: Data, fold: Fold, settings: LawSettings) -> float:
    """Mean squared error on held-out rows of a joint law fitted on the scale of a link."""
    train, test = fold
    rows = standardise(data.X[train], data.y[train], data.weights[train], settings, link=kind)
    fit = fit_candidate(CANDIDATES["rough"], rows, settings)
    if rows.link is not None:
        # The mean of a prediction in the user's units depends on the noise.
        noise = np.sqrt(fit.noise) * rows.unit * norm.ppf((np.arange(15) + 0.5) / 15)
        link = rows.link.with_residuals(noise[:, None], np.ones((15, 1)))
        fit = replace(fit, data=replace(rows, link=link))
    return float(data.errors(fit.predict(data.X[test])[:, None], test)[0])
