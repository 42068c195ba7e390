"""How a search is going: for scikit-learn's callbacks, and for a person at a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._compat import FitProgress
from harfe.race import Race

# Seconds between two messages: a line that is rewritten, or lines of a log.
_PAUSE_TERMINAL, _PAUSE_LOG = 0.3, 10.0
_WIDTH = 79


class SearchProgress:
    """Tells callbacks and the user how the search is going."""

    def __init__(
        self, estimator: Any, race: Race, X: Any, y: NDArray[Any], sample_weight: Any, verbose: bool
    ) -> None:
        planned = len(race.recipes) * len(race.folds)
        self._progress = FitProgress(estimator, X, y, sample_weight, max_rounds=max(planned, 1))
        self._verbose = verbose
        self._started = self._told = time.monotonic()
        self._pools = estimator.pools_

    def after_task(self, done: int, planned: int, race: Race) -> bool:
        """Tell of a finished task; true if a callback asks to stop."""
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        pause = _PAUSE_TERMINAL if terminal else _PAUSE_LOG
        if self._verbose and (done == planned or now - self._told > pause):
            self._told = now
            left = (now - self._started) / done * (planned - done)
            line = f"harfe: {done} of {planned} folds, {self._best(race)}, {left:.0f} s left"
            sys.stderr.write(f"\r{line:<{_WIDTH}}" if terminal else line + "\n")
            sys.stderr.flush()
        return self._progress.end_round(None)

    def _best(self, race: Race) -> str:
        scores = {p: np.nanmax(race.mean_scores(p)) for p in {p for p, _ in race.errors}}
        best = max(scores, key=lambda p: scores[p])
        order, scale = self._pools[best]
        kind, value = ("score", scores[best])
        if race.scoring is None:
            kind, value = "error", -value
        return f"best {kind} {value:.4g} (order {order}, scale {scale:.2g})"

    def close(self) -> None:
        """End the line and the fit."""
        if self._verbose and sys.stderr.isatty():
            sys.stderr.write("\n")
        self._progress.close()
