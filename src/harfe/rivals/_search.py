"""Choosing a rival's settings: families of settings that share work, scored fold by fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harfe._core.folds import Fold
from harfe.features.units import varies
from harfe.selection.engine.plan import Cost, Stage, Task
from harfe.selection.results import results_of


class Function(Protocol):
    """A fitted function of the inputs, in the user's units."""

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        """Values at the rows of X."""


class Fits(Protocol):
    """The fits of a family on the rows it was prepared for."""

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Predictions at rows `out` from fits on rows `train`, (settings, rows out)."""

    def fit(self, which: int) -> Function:
        """The fit on all rows with one of the settings."""


@dataclass(frozen=True)
class OnlyFit:
    """The fit of a family with a single candidate, which needs no cross-validation."""

    make: Callable[[], Function]

    def held_out(self, train: NDArray[np.intp], out: NDArray[np.intp]) -> NDArray[Any]:
        """Never called: a single candidate is not cross-validated."""
        raise AssertionError("a single candidate has no folds")

    def fit(self, which: int) -> Function:
        """The fit on all rows."""
        return self.make()


@dataclass(frozen=True)
class Family:
    """Settings that share work, e.g. all ridge weights of one kernel.

    Attributes
    ----------
    label : str
        What they share, as text for progress messages: "order 2".
    settings : sequence of dict
        The simplest first: ties go to the first.
    prepare : callable
        Does the shared work; called once, when the family's turn comes. Its result is dropped
        unless it contains the best settings so far.
    """

    label: str
    settings: Sequence[dict[str, Any]]
    prepare: Callable[[], Fits]


class FamilySearch:
    """Find the settings with the smallest mean squared error on held-out rows; a search plan.

    Parameters
    ----------
    families : sequence of Family
    folds : sequence of pairs of rows
    X, y : arrays
        The rows that `folds` index.
    enough : callable, optional
        Given the smallest error of every family so far, whether to skip the others.
    """

    def __init__(
        self,
        families: Sequence[Family],
        folds: Sequence[Fold],
        X: NDArray[np.float64],
        y: NDArray[Any],
        enough: Callable[[Sequence[float]], bool] | None = None,
    ) -> None:
        self._families, self._folds, self._X, self._y = families, folds, X, y
        self._enough = enough or (lambda errors: False)
        self._errors: list[NDArray[np.float64]] = []
        self._best = (np.inf, 0, 0)
        self._fits: Fits | None = None
        self._later = 0
        self._columns: list[NDArray[np.float64]] = []

    @property
    def most_tasks(self) -> int:
        """Number of tasks if every family is tried on every fold."""
        return len(self._families) * len(self._folds)

    def stages(self) -> Iterator[Stage]:
        """One family after the other, each on all folds, until no better one is expected."""
        for number in range(len(self._families)):
            self._later = (len(self._families) - number - 1) * len(self._folds)
            yield Stage(partial(self._tasks, number), needed=number == 0)
            if not self._later:
                return

    def _tasks(self, number: int) -> list[Task]:
        family = self._families[number]
        fits = family.prepare()
        # A family is scored on all folds or not at all.
        return [
            Task(
                (number, place, fits),
                family.label,
                self._judge,
                (family, fits, train, out),
                costs=(Cost("family"),),
                group=number,
            )
            for place, (train, out) in enumerate(self._folds)
        ]

    def take(self, name: tuple[int, int, Fits], result: NDArray[np.float64]) -> None:
        """Store the errors of a family on a fold."""
        number, place, fits = name
        self._columns.append(result)
        if place == len(self._folds) - 1:
            self._adopt(number, np.stack(self._columns, axis=1), fits)
            self._columns = []
            if self._enough([float(e.mean(axis=1).min()) for e in self._errors]):
                self._later = 0

    def later(self) -> list[Cost]:
        """Costs of the tasks expected after the current family."""
        return [Cost("family")] * self._later

    def _judge(
        self, family: Family, fits: Fits, train: NDArray[np.intp], out: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        y = self._y
        if not varies(self._X[train], np.ones(len(train))) or not np.any(y[train] != y[train[0]]):
            # Nothing to learn from: every setting predicts the mean.
            predicted = np.full((len(family.settings), len(out)), y[train].mean())
        else:
            predicted = fits.held_out(train, out)
        with np.errstate(over="ignore", invalid="ignore"):
            errors = np.mean(np.abs(predicted - y[out]) ** 2, axis=1)
        return np.where(np.isfinite(errors), errors, np.inf)

    def _adopt(self, number: int, errors: NDArray[np.float64], fits: Fits) -> None:
        self._errors.append(errors)
        mean = errors.mean(axis=1)
        which = int(np.argmin(mean))
        if self._fits is None or mean[which] < self._best[0]:
            self._best, self._fits = (float(mean[which]), number, which), fits

    def best_so_far(self) -> tuple[float, str] | None:
        """Score of the best settings (minus their error) and their description."""
        error, number, which = self._best
        if self._fits is None:
            return None
        settings = self._families[number].settings[which]
        return -error, ", ".join(f"{name} {brief(value)}" for name, value in settings.items())

    def choose(self) -> tuple[dict[str, Any], Function]:
        """The best settings, and the fit on all rows with them."""
        if self._fits is None:  # a single candidate: nothing was compared
            self._fits = self._families[0].prepare()
        _, number, which = self._best
        return dict(self._families[number].settings[which]), self._fits.fit(which)

    def results(self) -> dict[str, Any] | None:
        """Results of all candidates, as in scikit-learn; None if nothing was compared."""
        if not self._errors:
            return None
        tried = self._families[: len(self._errors)]
        params = [dict(settings) for family in tried for settings in family.settings]
        return results_of(params, -np.concatenate(self._errors))


def brief(value: Any) -> str:
    """A setting's value as short text."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
