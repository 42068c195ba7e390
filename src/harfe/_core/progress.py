"""Progress of long work: one line on standard error, and scikit-learn's callbacks."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable
from threading import Event, Lock, Thread
from typing import Any

from numpy.typing import NDArray

from harfe._core.sklearn_compat import FitProgress

# Seconds between messages: on a rewritten terminal line, and between lines of a log.
_PAUSE_TERMINAL, _PAUSE_LOG = 0.3, 10.0
# Seconds between reports while nothing ends.
_TICK = 0.5
_WIDTH, _BAR = 79, 6
# Work that takes fewer seconds needs no report.
_SHORT = 2.0
# Half of a fit is expected to be done after this many rounds.
_TYPICAL_ROUNDS = 15


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

    def update(
        self,
        done: int,
        planned: int,
        note: Callable[[], str] | None = None,
        left: float | None = None,
    ) -> None:
        """Report what is done and the time left, unless the last report is very recent.

        Without `left`, what remains is expected to take as long as what is done, in proportion.
        """
        now, terminal = time.monotonic(), sys.stderr.isatty()
        self._count = f"{self._name}: {done} of {planned} {self._unit}"
        pause = _PAUSE_TERMINAL if terminal else _PAUSE_LOG
        if done < planned and now - self._written <= pause:
            return
        self._written = now
        elapsed = now - self._started
        if left is None:
            left = elapsed / done * (planned - done)
        text = f"{left:.0f} s left"
        text = text if note is None else f"{text}, {note()}"
        if terminal:
            share = elapsed / (elapsed + left) if elapsed + left > 0 else 1.0
            _rewrite(f"{self._count} {_bar(share)} {text}")
        else:
            self.say(text)

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
    """Reports the progress of a search to callbacks and to the user.

    As a context manager it also reports while a long task runs, from a thread of its own.
    """

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
        self._line = ProgressLine("fits", name) if verbose else None
        self._search = search
        self._is_error = getattr(estimator, "scoring", None) is None
        self._over, self._writing = Event(), Lock()
        self._ticker: Thread | None = None

    def __enter__(self) -> SearchProgress:
        if self._line is not None:
            self._ticker = Thread(target=self._tick, name="harfe progress", daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._line is not None:
            self._line.close(self._best())
        if kind is None:
            self._progress.close()

    def begin(self, notes: Iterable[str]) -> None:
        """Say what the user should know before the search."""
        if self._line is not None:
            for note in notes:
                self._line.say(note)

    def after_task(self, done: int, planned: int) -> bool:
        """Report a finished task; return true if a callback asks to stop."""
        self._report(done, planned)
        return self._progress.end_round(None)

    def _tick(self) -> None:
        while not self._over.wait(_TICK):
            self._report(*self._search.counts)

    def _report(self, done: int, planned: int) -> None:
        if self._line is not None:
            with self._writing:
                self._line.update(done, planned, self._state, self._search.seconds_left())

    def _state(self) -> str:
        trying = self._search.trying
        return ", ".join(text for text in (trying and f"now {trying}", self._best()) if text)

    def _best(self) -> str:
        best = self._search.best_so_far()
        if best is None:
            return ""
        score, whose = best
        kind, value = ("MSE", -score) if self._is_error else ("score", score)
        return f"best {kind} {value:.4g} ({whose})"


def _rewrite(line: str) -> None:
    # A line that wraps cannot be rewritten.
    width = max(shutil.get_terminal_size((_WIDTH + 1, 24)).columns - 1, 20)
    sys.stderr.write(f"\r{line[:width]:<{width}}")
    sys.stderr.flush()


def _bar(share: float) -> str:
    filled = round(_BAR * share)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


class RoundsProgress:
    """Reports the rounds of several fits, one after the other; short work reports nothing."""

    def __init__(self, n_fits: int) -> None:
        self._line = ProgressLine("fits")
        self._n_fits = n_fits
        self._started = time.monotonic()
        self._shown = False

    def after_round(self, fits_done: int, rounds: int) -> None:
        """Report a round of the fit that follows those that are done."""
        elapsed = time.monotonic() - self._started
        if elapsed < _SHORT:
            return
        self._shown = True
        # How many rounds a fit takes is not known before it ends.
        done = fits_done + rounds / (rounds + _TYPICAL_ROUNDS)
        left = elapsed * (self._n_fits / done - 1)
        self._line.update(fits_done, self._n_fits, lambda: f"round {rounds}", left)

    def close(self) -> None:
        """End the line."""
        if self._shown:
            self._line.update(self._n_fits, self._n_fits)
            self._line.close()
