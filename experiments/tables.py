"""Tables of a TOML file as dataclasses: unknown, missing and ill-typed keys are errors."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class ConfigError(ValueError):
    """A config file is invalid; the message names file and key."""


def build(kind: type[T], table: Any, where: str) -> T:
    """Build a dataclass from a table, checking every key and type.

    Parameters
    ----------
    kind : type
        The dataclass. Fields without a default are required.
    table : dict
        The table as `tomllib` read it.
    where : str
        File and path of the table, for messages.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: must be a table, but is {table!r}.")
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {key!r}. {nearest(key, fields)}")
    required = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    for name in required:
        if name not in table:
            raise ConfigError(f"{where}: the key {name!r} is missing. Add {name} = ...")
    return kind(**{key: _typed(hints[key], table[key], f"{where}.{key}") for key in table})


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the known word nearest to an unknown one."""
    words = sorted(known)
    close = difflib.get_close_matches(name, words, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Choose from: {', '.join(words)}." if words else "There are none to choose from."


def _typed(hint: Any, value: Any, where: str) -> Any:
    """The value converted to its type, e.g. a list to a tuple; another type is an error."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (types.UnionType, typing.Union):  # only X | None occurs
        return _typed(next(kind for kind in inner if kind is not type(None)), value, where)
    if origin is tuple and isinstance(value, list):
        if not value:
            raise ConfigError(f"{where}: the list is empty. Give at least one value.")
        return tuple(_typed(inner[0], one, f"{where}[{i}]") for i, one in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {key: _typed(inner[1], one, f"{where}.{key}") for key, one in value.items()}
    if dataclasses.is_dataclass(hint):
        return build(hint, value, where)  # type: ignore[arg-type]
    # In Python True is an int, and in TOML 3 may stand for a float: `isinstance` is wrong for both.
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        wanted = "a list" if origin is tuple else "a table" if origin is dict else hint.__name__
        raise ConfigError(f"{where}: must be {wanted}, but is {value!r}.")
    return value
