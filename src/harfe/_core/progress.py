"""Progress of long work: one line on standard error, and scikit-learn's callbacks."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import NDArray

from harfe._core.sklearn_compat import FitProgress

# Seconds between messages: on a rewritten terminal line, and between lines of a log.
_PAUSE_TERMINAL, _PAUSE_LOG = 0.3, 10.0
_WIDTH, _BAR = 79, 6


class ProgressLine:
    """A line on standard error: rewritten on a terminal, written now and then to a log.

    Parameters
    ----------
    unit : str
        What is counted, in the plural.
    name : str, default="harfe"
        How the line begins.
    """

    def __init__(self, unit: str, name: str = "harfe") -> None:
        self._unit = unit
        self._name = name
        self._started = self._written = time.monotonic()
        self._count = ""

    def update(self, done: int, planned: int, note: Callable[[], str] | None = None) -> None:
        """Report what is done and the time left, unless the last report is very recent."""
        now, terminal = time.monotonic(), sys.stderr.isatty()
        self._count = f"{self._name}: {done} of {planned} {self._unit}"
        pause = _PAUSE_TERMINAL if terminal else _PAUSE_LOG
        if done < planned and now - self._written <= pause:
            return
        self._written = now
        left = f"{(now - self._started) / done * (planned - done):.0f} s left"
        text = left if note is None else f"{left}, {note()}"
        if terminal:
            _rewrite(f"{self._count} {_bar(done / planned)} {text}")
        else:
            self.say(text)

    def announce(self, text: str) -> None:
        """On a terminal, say what follows the last count."""
        if self._rewrites():
            _rewrite(f"{self._count} {_bar(1.0)} {text}")

    def say(self, text: str) -> None:
        """Write a line that stays."""
        begin = self._count or self._name
        sys.stderr.write(f"{begin}{', ' if self._count else ': '}{text}\n")
        sys.stderr.flush()

    def close(self, note: str = "") -> None:
        """End the line on a terminal, with the time that everything took."""
        if self._rewrites():
            seconds = f"{time.monotonic() - self._started:.0f} s"
            _rewrite(f"{self._count}, {note + ', ' if note else ''}{seconds}")
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _rewrites(self) -> bool:
        # Work resumed from a finished search has nothing to count.
        return sys.stderr.isatty() and bool(self._count)


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
        self._line = ProgressLine("folds", name) if verbose else None
        self._search = search
        self._is_error = getattr(estimator, "scoring", None) is None

    def begin(self, notes: Iterable[str]) -> None:
        """Say what the user should know before the search."""
        if self._line is not None:
            for note in notes:
                self._line.say(note)

    def after_task(self, done: int, planned: int) -> bool:
        """Report a finished task; return true if a callback asks to stop."""
        if self._line is not None:
            self._line.update(done, planned, self._state)
        return self._progress.end_round(None)

    def after_search(self) -> None:
        """On a terminal, announce the fit of all rows that follows the last fold."""
        if self._line is not None:
            self._line.announce(f"fitting all rows ..., {self._best()}")

    def _state(self) -> str:
        trying = f"now {self._search.trying}, " if self._search.trying else ""
        return trying + self._best()

    def _best(self) -> str:
        score, whose = self._search.best_so_far()
        kind, value = ("MSE", -score) if self._is_error else ("score", score)
        return f"best {kind} {value:.4g} ({whose})"

    def close(self) -> None:
        """End the terminal line and the callbacks' fit."""
        if self._line is not None:
            self._line.close(self._best())
        self._progress.close()


def _rewrite(line: str) -> None:
    # A line that wraps cannot be rewritten.
    width = max(shutil.get_terminal_size((_WIDTH + 1, 24)).columns - 1, 20)
    sys.stderr.write(f"\r{line[:width]:<{width}}")
    sys.stderr.flush()


def _bar(share: float) -> str:
    filled = round(_BAR * share)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"
