"""Progress of a search, reported to scikit-learn's callbacks and on the terminal."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

from numpy.typing import NDArray

from harfe._core.sklearn_compat import FitProgress

# Seconds between messages: on a rewritten terminal line, and between lines of a log.
_PAUSE_TERMINAL, _PAUSE_LOG = 0.3, 10.0
_WIDTH, _BAR = 79, 6


class SearchProgress:
    """Reports the progress of a search to callbacks and to the user."""

    def __init__(
        self,
        estimator: Any,
        search: Any,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        verbose: bool,
        name: str = "harfe",
    ) -> None:
        planned = max(search.most_tasks, 1)
        self._progress = FitProgress(estimator, X, y, sample_weight, max_rounds=planned)
        self._verbose = verbose
        self._search = search
        self._name = name
        self._is_error = getattr(estimator, "scoring", None) is None
        self._started = self._told = time.monotonic()
        self._count = ""

    def after_task(self, done: int, planned: int) -> bool:
        """Report a finished task; return true if a callback asks to stop."""
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        self._count = f"{self._name}: {done} of {planned} folds"
        pause = _PAUSE_TERMINAL if terminal else _PAUSE_LOG
        if self._verbose and (done == planned or now - self._told > pause):
            self._told = now
            left = f"{(now - self._started) / done * (planned - done):.0f} s left"
            if self._search.trying:
                left += f", now {self._search.trying}"
            if terminal:
                _rewrite(f"{self._count} {_bar(done / planned)} {left}, {self._best()}")
            else:
                sys.stderr.write(f"{self._count}, {self._best()}, {left}\n")
                sys.stderr.flush()
        return self._progress.end_round(None)

    def after_search(self) -> None:
        """On a terminal, announce the fit of all rows that follows the last fold."""
        if self._rewrites():
            _rewrite(f"{self._count} {_bar(1.0)} fitting all rows ..., {self._best()}")

    def _rewrites(self) -> bool:
        # A search resumed from a finished one has no tasks to count.
        return self._verbose and sys.stderr.isatty() and bool(self._count)

    def _best(self) -> str:
        score, whose = self._search.best_so_far()
        kind, value = ("MSE", -score) if self._is_error else ("score", score)
        return f"best {kind} {value:.4g} ({whose})"

    def close(self) -> None:
        """End the terminal line and the callbacks' fit."""
        if self._rewrites():
            _rewrite(f"{self._count}, {self._best()}, {time.monotonic() - self._started:.0f} s")
            sys.stderr.write("\n")
        self._progress.close()


def _rewrite(line: str) -> None:
    # A line that wraps cannot be rewritten.
    width = max(shutil.get_terminal_size((_WIDTH + 1, 24)).columns - 1, 20)
    sys.stderr.write(f"\r{line[:width]:<{width}}")
    sys.stderr.flush()


def _bar(share: float) -> str:
    filled = round(_BAR * share)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"
