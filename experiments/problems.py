"""Where the data of a problem come from: the sources that a part of a study can name.

A source is a frozen dataclass; its fields are the settings that `[parts.NAME.source_settings]` may
set. `load(problem, seed)` depends on its two arguments only, never on the order of execution.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from experiments.tables import ConfigError

# Each seed draws new noise inputs for these, so even the paper's rows differ.
_WITH_NOISE_INPUTS = ("airfoil", "ccpp")
# First words of the seeds, so that nothing else draws from these streams.
_SPOILING, _SUBSETS, _TEST_ROWS = 2202, 2203, 2204

_UCI = (
    "autos",
    "yacht",
    "autompg",
    "stock",
    "energy",
    "concrete",
    "airfoil",
    "wine",
    "sml",
    "pumadyn32nm",
    "pol",
    "kin40k",
)
_UCI_SPLITS = 10


@dataclass(frozen=True)
class Data:
    """Training and test rows of one repetition."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    y_test_clean: np.ndarray | None = None  # the test target without noise, if known
    paper: Mapping[str, Any] = field(default_factory=dict)  # the paper's settings, if it has any


class Source(Protocol):
    """What a part needs from its source."""

    def names(self) -> tuple[str, ...]:
        """Names of the problems of this source."""

    def varies(self, problem: str) -> bool:
        """Whether the data of the problem differ between seeds."""

    def load(self, problem: str, seed: int) -> Data:
        """Training and test rows of the problem."""


@dataclass(frozen=True)
class PaperRows:
    """The paper's training and test rows of its real data; the seed draws the noise inputs."""

    def names(self) -> tuple[str, ...]:
        """Real datasets for which the paper has rows."""
        from harfe.datasets import list_real

        return tuple(name for name in list_real() if name not in ("telemonitor_sex1", "ccpp_rest"))

    def varies(self, problem: str) -> bool:
        """True for datasets with noise inputs, which are drawn."""
        return problem in _WITH_NOISE_INPUTS

    def load(self, problem: str, seed: int) -> Data:
        """The paper's training and test rows."""
        from harfe.datasets import load_real

        return _real(load_real(problem, noise_seed=seed))


@dataclass(frozen=True)
class RandomSplits:
    """Random splits of real data into as many training and test rows as the paper has."""

    def names(self) -> tuple[str, ...]:
        """All real datasets."""
        from harfe.datasets import list_real

        return list_real()

    def varies(self, problem: str) -> bool:
        """True: every seed gives another split."""
        return True

    def load(self, problem: str, seed: int) -> Data:
        """The split with this seed, and its noise inputs."""
        from harfe.datasets import load_real

        return _real(load_real(problem, split=seed, noise_seed=seed))


@dataclass(frozen=True)
class Functions:
    """A function of the paper with its noise on training and test rows, in its own units.

    `first_seed` is added to the seed of a repetition, so that a study does not report the draws it
    was designed on.
    """

    n_train: int
    n_test: int
    first_seed: int = 0

    def names(self) -> tuple[str, ...]:
        """All functions of the paper's synthetic tables."""
        from harfe.datasets import FUNCTIONS

        return tuple(FUNCTIONS)

    def varies(self, problem: str) -> bool:
        """True: every seed gives another draw."""
        return True

    def load(self, problem: str, seed: int) -> Data:
        """One draw: the first rows for training, the others for testing."""
        from harfe.datasets import make_function

        n = self.n_train + self.n_test
        drawn = make_function(problem, n, random_state=self.first_seed + seed)
        m = self.n_train
        return Data(drawn.X[:m], drawn.y[:m], drawn.X[m:], drawn.y[m:], drawn.y_clean[m:])


@dataclass(frozen=True)
class SpoiltFunctions(Functions):
    """A function of the paper with another dimension, more noise, or outliers in training rows.

    `noise` is a share of the standard deviation of f over the training rows, in addition to the
    function's own noise. In a share `outliers` of the training rows, `outlier_size` such deviations
    are added or subtracted. The clean target stays the paper's function.
    """

    n_features: int | None = None
    noise: float = 0.0
    outliers: float = 0.0
    outlier_size: float = 10.0

    def load(self, problem: str, seed: int) -> Data:
        """Draw the function, then corrupt it with a separate random stream."""
        from harfe.datasets import make_function

        n, m = self.n_train + self.n_test, self.n_train
        drawn = make_function(
            problem, n, n_features=self.n_features, random_state=self.first_seed + seed
        )
        stream = np.random.default_rng([_SPOILING, self.first_seed + seed])
        deviation = drawn.y_clean[:m].std()
        y = drawn.y + self.noise * deviation * stream.standard_normal(n)
        # The same rows and signs at every share: more outliers include the fewer ones.
        rows, signs = stream.permutation(m), stream.choice([-1.0, 1.0], m)
        hit = rows[: round(self.outliers * m)]
        y[hit] += signs[hit] * self.outlier_size * deviation
        return Data(drawn.X[:m], y[:m], drawn.X[m:], y[m:], drawn.y_clean[m:])


@dataclass(frozen=True)
class UCI:
    """Tables of the folder `uci` in HARFE_DATA; the seed is the number of a published split."""

    def names(self) -> tuple[str, ...]:
        """All tables."""
        return _UCI

    def varies(self, problem: str) -> bool:
        """True: every seed is another split."""
        return True

    def load(self, problem: str, seed: int) -> Data:
        """The rows of the split, in the units of the table."""
        if seed >= _UCI_SPLITS:
            raise ConfigError(
                f"{problem}: there is no split {seed}. Set repetitions = {_UCI_SPLITS} or fewer."
            )
        table, masks = _stored(f"{problem}.csv.gz"), _stored(f"{problem}.mask.csv.gz")
        out = masks[:, seed] > 0
        X, y = table[:, :-1], table[:, -1]
        return Data(X[~out], y[~out], X[out], y[out])


@dataclass(frozen=True)
class Rows:
    """More and more training rows of one problem, named PROBLEM/ROWS or TABLE/all.

    A problem is a function of the paper, judged on other rows without noise, or a table of `UCI`,
    judged on its first split. Fewer rows are among the more of the same seed.
    """

    n_test: int  # of a function
    first_seed: int = 0  # of a function, as in `Functions`

    #: Numbers of rows that a study can name.
    LADDER = (300, 1000, 3000, 10_000, 30_000)

    def names(self) -> tuple[str, ...]:
        """Every function and table with every number of rows."""
        ladder = [str(count) for count in self.LADDER]
        functions = [f"{name}/{count}" for name in Functions(1, 1).names() for count in ladder]
        return (*functions, *(f"{name}/{count}" for name in _UCI for count in [*ladder, "all"]))

    def varies(self, problem: str) -> bool:
        """True unless all rows are used."""
        return not problem.endswith("/all")

    def load(self, problem: str, seed: int) -> Data:
        """So many rows for training."""
        from harfe.datasets import make_function

        name, _, count = problem.partition("/")
        if name not in _UCI:
            seed += self.first_seed
            train = make_function(name, int(count), random_state=seed)
            stream = np.random.RandomState([_TEST_ROWS, seed])
            test = make_function(name, self.n_test, noise=0.0, random_state=stream)
            return Data(train.X, train.y, test.X, test.y)
        data = UCI().load(name, 0)
        m = len(data.y_train)
        if count == "all":
            return data
        if int(count) > m:
            raise ConfigError(f"{problem}: there are only {m} training rows. Type {name}/all.")
        rows = np.random.default_rng([_SUBSETS, seed]).permutation(m)[: int(count)]
        return Data(data.X_train[rows], data.y_train[rows], data.X_test, data.y_test)


def _stored(name: str) -> np.ndarray:
    """A table of numbers without a header in the folder `uci`."""
    if not os.environ.get("HARFE_DATA"):
        raise FileNotFoundError(
            f"{name}: HARFE_DATA is not set. Set it to the folder that contains `uci`."
        )
    with gzip.open(Path(os.environ["HARFE_DATA"]).expanduser() / "uci" / name) as file:
        return np.loadtxt(file, delimiter=",")


def _real(bunch: Any) -> Data:
    return Data(bunch.X_train, bunch.y_train, bunch.X_test, bunch.y_test, paper=bunch.paper)


SOURCES: dict[str, type] = {
    "paper_rows": PaperRows,
    "random_splits": RandomSplits,
    "functions": Functions,
    "spoilt_functions": SpoiltFunctions,
    "uci": UCI,
    "rows": Rows,
}
