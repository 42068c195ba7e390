"""A study as its config.toml defines it, and its tasks."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from experiments.methods import ADAPTERS, Adapter
from experiments.problems import SOURCES, Source
from experiments.tables import ConfigError, build, nearest

MEASURES = {
    "error": "test MSE",
    "rmse": "test RMSE",
    "error_clean": "test MSE against the noise-free function",
    "error_relative": "relative test error",
    "fit_seconds": "seconds of processor time",
}


class Task(NamedTuple):
    """One repetition of a method on a problem; the key of a row of results."""

    part: str
    problem: str
    method: str
    repetition: int


@dataclass(frozen=True)
class Quick:
    """The subset of a part that a quick run uses; an empty list means all."""

    repetitions: int = 1
    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """Problems of one kind, and the methods compared on them."""

    title: str
    source: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    repetitions: int
    measures: tuple[str, ...] = ("error",)
    quick: Quick = Quick()
    keep_predictions: bool = False  # whether rows store predictions, for a figure
    show_spread: bool = False  # whether tables give the standard deviation with the mean
    compare_to: str = ""  # the method whose errors a further table divides the others by
    curves: bool = False  # whether the figure shows the error against the rows; see `Rows`
    note: str = ""
    source_settings: dict[str, Any] = field(default_factory=dict)
    #: Upper limits for problems that are too slow for all repetitions.
    repetitions_on: dict[str, int] = field(default_factory=dict)
    #: Published numbers by name and problem, shown with ours but not ranked.
    references: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method as the study uses it."""

    label: str
    adapter: str  # a name of `methods.ADAPTERS`, or "module:Class" of one elsewhere
    draws: bool  # whether different seeds on equal data may give different models
    note: str = ""
    needs: str = ""  # the package to install; without it the method is skipped
    variant_of: str = ""  # the method that this is a variant of; variants are not ranked
    reference: str = ""  # the entry of a part's references to compare with
    repetitions: int | None = None  # upper limit, for methods too slow for all of a part's
    not_on: tuple[str, ...] = ()  # problems that it skips, for a reason given in the note
    revision: int = 1  # raise it when the code changes: old rows become outdated
    settings: dict[str, Any] = field(default_factory=dict)
    by_problem: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Settings with several values: one method for each combination; label, note and reference may
    #: name the settings in braces.
    over: dict[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _File:
    title: str
    parts: dict[str, Part]
    methods: dict[str, Method]
    note: str = ""
    minutes: float | None = None  # estimate for two cores
    quick_minutes: float | None = None


@dataclass(frozen=True)
class Study:
    """A checked config with its adapters and sources."""

    path: Path
    title: str
    note: str
    parts: Mapping[str, Part]
    methods: Mapping[str, Method]
    sources: Mapping[str, Source]  # by part
    adapters: Mapping[tuple[str, str], Adapter]  # by method and problem
    minutes: float | None = None  # estimated run time on two cores

    @property
    def name(self) -> str:
        """Name of the study on the command line."""
        return study_name(self.path)

    def repetitions(self, part: str, problem: str, method: str) -> int:
        """Number of runs of a method: one if neither the data nor the method varies."""
        if problem in self.methods[method].not_on:
            return 0
        if not (self.methods[method].draws or self.sources[part].varies(problem)):
            return 1
        most, limits = self.parts[part].repetitions, self.parts[part].repetitions_on
        own = self.methods[method].repetitions
        return min(most, limits.get(problem, most), most if own is None else own)

    def tasks(self) -> Iterator[Task]:
        """All tasks, early repetitions first, so that a stopped run has those complete."""
        most = max(part.repetitions for part in self.parts.values())
        for repetition in range(most):
            for name, part in self.parts.items():
                for problem in part.problems:
                    for method in part.methods:
                        if repetition < self.repetitions(name, problem, method):
                            yield Task(name, problem, method, repetition)

    def fingerprint(self, task: Task) -> str:
        """Short hash of all settings that determine a row, without labels, titles and notes.

        The number of repetitions is not included either: adding some leaves the others valid.
        """
        part, method = self.parts[task.part], self.methods[task.method]
        facts = {
            "source": part.source,
            "source_settings": asdict(self.sources[task.part]),  # type: ignore[call-overload]
            "problem": task.problem,
            "adapter": method.adapter,
            "revision": method.revision,
            "settings": _facts(self.adapters[task.method, task.problem]),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


def _facts(adapter: Any) -> dict[str, Any]:
    """Settings of an adapter; one whose fields have changed tells those of its earlier rows."""
    return adapter.facts() if hasattr(adapter, "facts") else asdict(adapter)


def study_name(path: Path) -> str:
    """Name of the study: that of its file, or of its folder if the file is config.toml."""
    return path.parent.name if path.name == "config.toml" else path.stem


def load_study(path: Path, quick: bool = False) -> Study:
    """Read and check a config file.

    Parameters
    ----------
    path : Path
        The file.
    quick : bool
        Whether to use only the parts' `quick` repetitions, problems and methods. Their results are
        those of the full study.

    Raises
    ------
    ConfigError
        If a key is unknown, missing or of the wrong type, or a name is not defined. The message
        names the file (study/config.toml) and the key.
    """
    where = f"{path.parent.name}/{path.name}"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: {error}.") from error
    file = build(_File, table, where)
    file = _expanded(file)
    sources: dict[str, Source] = {}
    adapters: dict[tuple[str, str], Adapter] = {}
    for name, part in file.parts.items():
        here = f"{where}.parts.{name}"
        sources[name] = _source(part, here)
        for used in part.methods:
            _known(used, file.methods, f"{here}.methods", "method")
        for measure in part.measures:
            _known(measure, MEASURES, f"{here}.measures", "measure")
        if part.compare_to:
            _known(part.compare_to, part.methods, f"{here}.compare_to", "method")
        counts = {"repetitions": part.repetitions, "quick.repetitions": part.quick.repetitions}
        for problem, count in part.repetitions_on.items():
            _known(problem, part.problems, f"{here}.repetitions_on", "problem")
            counts[f"repetitions_on.{problem}"] = count
        for key, count in counts.items():
            if count < 1:
                raise ConfigError(f"{here}.{key}: must be at least 1, not {count}.")
        for used in part.quick.methods:
            _known(used, part.methods, f"{here}.quick.methods", "method")
        for problem in part.quick.problems:
            _known(problem, part.problems, f"{here}.quick.problems", "problem")
    all_problems = {problem for part in file.parts.values() for problem in part.problems}
    if quick:
        narrowed = {name: _quick(part) for name, part in file.parts.items()}
        file = dataclasses.replace(file, parts=narrowed, minutes=file.quick_minutes)
    problems = {problem for part in file.parts.values() for problem in part.problems}
    for name, method in file.methods.items():
        here = f"{where}.methods.{name}"
        for problem in method.by_problem:
            _known(problem, all_problems, f"{here}.by_problem", "problem")
        if method.repetitions is not None and method.repetitions < 1:
            raise ConfigError(f"{here}.repetitions: must be at least 1, not {method.repetitions}.")
        for problem in method.not_on:
            _known(problem, all_problems, f"{here}.not_on", "problem")
        if method.variant_of:
            _known(method.variant_of, file.methods, f"{here}.variant_of", "method")
        kind = _adapter(method.adapter, here)
        met = {p for part in file.parts.values() if name in part.methods for p in part.problems}
        for problem in sorted(met or problems):
            own = method.by_problem.get(problem, {})
            place = f"{here}.by_problem.{problem}" if own else f"{here}.settings"
            adapters[name, problem] = build(kind, {**method.settings, **own}, place)
    return Study(
        path, file.title, file.note, file.parts, file.methods, sources, adapters, file.minutes
    )


def _expanded(file: _File) -> _File:
    """The file with every method that has `over` replaced by one method per combination."""
    names: dict[str, list[str]] = {}
    methods: dict[str, Method] = {}
    for name, method in file.methods.items():
        names[name] = []
        for values in itertools.product(*method.over.values()):
            chosen = dict(zip(method.over, values, strict=True))
            own = ",".join([f"{name}", *(f"{key}={value}" for key, value in chosen.items())])
            names[name].append(own)
            methods[own] = dataclasses.replace(
                method,
                settings={**method.settings, **chosen},
                over={},
                **{
                    text: getattr(method, text).format(**chosen)
                    for text in ("label", "note", "reference")
                },
            )
    parts = {
        name: dataclasses.replace(
            part,
            methods=_replaced(part.methods, names),
            quick=dataclasses.replace(part.quick, methods=_replaced(part.quick.methods, names)),
        )
        for name, part in file.parts.items()
    }
    return dataclasses.replace(file, parts=parts, methods=methods)


def _replaced(methods: tuple[str, ...], names: Mapping[str, list[str]]) -> tuple[str, ...]:
    return tuple(own for method in methods for own in names.get(method, [method]))


def _quick(part: Part) -> Part:
    """The part as a quick run uses it."""
    return dataclasses.replace(
        part,
        repetitions=min(part.repetitions, part.quick.repetitions),
        problems=part.quick.problems or part.problems,
        methods=part.quick.methods or part.methods,
    )


def _source(part: Part, where: str) -> Source:
    _known(part.source, SOURCES, f"{where}.source", "source")
    source: Source = build(SOURCES[part.source], part.source_settings, f"{where}.source_settings")
    for problem in part.problems:
        _known(problem, source.names(), f"{where}.problems", "problem")
    return source


def _adapter(name: str, where: str) -> type:
    module, colon, attribute = name.partition(":")
    if colon:
        try:
            found: type = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"{where}.adapter: {name!r} cannot be imported: {error}.") from error
        return found
    _known(name, ADAPTERS, f"{where}.adapter", "adapter")
    return ADAPTERS[name]


def _known(name: str, known: Any, where: str, what: str) -> None:
    if name not in known:
        raise ConfigError(f"{where}: unknown {what} {name!r}. {nearest(name, known)}")
