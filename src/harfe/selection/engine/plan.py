"""What a search runs: tasks in stages, what they are expected to cost, and keys of their results.

Every search of the package is a plan: the race over a grid of laws, the race of learned laws with
the sparse models under the winner, and the choice of a rival's settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Cost:
    """What a task is expected to cost.

    Attributes
    ----------
    kind : str
        Tasks of a kind are slower or faster than expected by the same factor, which is learned.
    seconds : float
        Expected time, up to that factor.
    """

    kind: str = ""
    seconds: float = 1.0


@dataclass(frozen=True)
class Task:
    """A call whose result a plan needs.

    Attributes
    ----------
    name : hashable
        How the plan identifies the result.
    label : str
        Description of the task in messages.
    function, arguments
        The call; it runs in another thread if the search has several.
    key : bytes
        Digest of everything the result depends on; empty for tasks that are never resumed.
    costs : tuple of Cost
        What it is expected to cost: their sum.
    group : hashable
        Tasks of a stage with the same group are useful only together: within a time limit, all of
        them are started or none. None is a group of one.
    memory : float
        Bytes; tasks run side by side only if their sum stays within the budget.
    """

    name: Hashable
    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    key: bytes = b""
    costs: tuple[Cost, ...] = (Cost(),)
    group: Hashable = None
    memory: float = 0.0

    @property
    def together(self) -> Hashable:
        """Its group, or its own name."""
        return self.name if self.group is None else self.group


@dataclass(frozen=True)
class Stage:
    """Tasks that do not depend on each other.

    Attributes
    ----------
    tasks : callable
        Returns the tasks when the stage begins, in the order in which they are started. This is
        where a plan drops candidates.
    needed : bool
        Whether its first group runs in any case, as nothing can be chosen without it.
    reserve : sequence of Cost
        What must still fit into the time after this stage.
    """

    tasks: Callable[[], Sequence[Task]]
    needed: bool = False
    reserve: Sequence[Cost] = ()


class Plan(Protocol):
    """What a search runs, and how it uses the results."""

    @property
    def most_tasks(self) -> int:
        """Maximum number of tasks of the plan."""

    def stages(self) -> Iterator[Stage]:
        """Yield the stages, each once the results of the previous ones are known."""

    def take(self, name: Any, result: Any) -> None:
        """Accept the result of a task; within a stage, results come in the order of the tasks."""

    def later(self) -> Sequence[Cost]:
        """Costs of the tasks expected after the current stage."""

    def best_so_far(self) -> tuple[float, str] | None:
        """Best mean score and the settings that have it; None before the first result."""


class Digest:
    """Incremental digest of everything that results depend on."""

    def __init__(self, *parts: Any) -> None:
        self._hash = hashlib.sha256()
        for part in parts:
            self._add(part)

    def _add(self, part: Any) -> None:
        if isinstance(part, np.ndarray):
            self._hash.update(repr((part.shape, part.dtype)).encode() + part.tobytes())
        else:
            self._hash.update(repr(part).encode())

    def key(self, *parts: Any) -> bytes:
        """Return the digest with these parts added; this object does not change."""
        other = Digest()
        other._hash = self._hash.copy()
        for part in parts:
            other._add(part)
        return other._hash.digest()
