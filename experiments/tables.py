"""Tables of a TOML file to dataclasses: unknown, missing and ill-typed keys are refused."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class ConfigError(ValueError):
    """A config file says something that it may not say; the message names file and key."""


def build(kind: type[T], table: Any, where: str) -> T:
    """Make a dataclass from a table, checking every key and type.

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
    """A sentence that names the known word nearest to an unknown one."""
    words = sorted(known)
    close = difflib.get_close_matches(name, words, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known are: {', '.join(words)}." if words else "None is known here."


def _typed(hint: Any, value: Any, where: str) -> Any:
    """The value as its type asks, e.g. a list as a tuple; refused if it is of another type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (types.UnionType, typing.Union):  # only X | None is in use
        return _typed(next(kind for kind in inner if kind is not type(None)), value, where)
    if origin is tuple and isinstance(value, list):
        if not value:
            raise ConfigError(f"{where}: the list is empty. Give at least one value.")
        return tuple(_typed(inner[0], one, f"{where}[{i}]") for i, one in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {key: _typed(inner[1], one, f"{where}.{key}") for key, one in value.items()}
    if dataclasses.is_dataclass(hint):
        return build(hint, value, where)  # type: ignore[arg-type]
    # bool is an int in Python, and 3 is a fine float in TOML: neither is what `isinstance` says.
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        wanted = "a list" if origin is tuple else "a table" if origin is dict else hint.__name__
        raise ConfigError(f"{where}: must be {wanted}, but is {value!r}.")
    return value
