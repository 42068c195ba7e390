"""Specs: how values of one kind are written to a model file and read back.

Reading trusts nothing: types, shapes and ranges are checked before a value is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from harfe.files.plain_data import Reader, Writer, read_plain, refuse, write_plain

_TYPES = {"b": np.bool_, "i": np.intp, "f": np.float64, "c": np.complex128}

# More features than anyone draws; keeps a forged number from taking too much memory later.
_MOST = 2**31 - 1


class Spec(Protocol):
    """How values of one kind are written and read."""

    def write(self, value: Any, path: str, writer: Writer) -> Any:
        """Return the value as JSON; arrays go to the writer."""

    def read(self, data: Any, path: str, reader: Reader) -> Any:
        """Return the value, or raise `ModelFileError`."""


@dataclass(frozen=True)
class Array:
    """An array of one of these kinds; sizes are letters shared with other parts, or None."""

    kinds: str
    sizes: tuple[str | None, ...]

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        array = np.asarray(value)
        kind = array.dtype.kind
        return writer.put(path, array.astype(_TYPES[kind], copy=False))

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        array = reader.take(data, path)
        if array.dtype not in [_TYPES[kind] for kind in self.kinds]:
            refuse(path, f"is an array of {array.dtype}")
        if array.ndim != len(self.sizes):
            refuse(path, f"is an array of shape {array.shape}")
        for letter, found in zip(self.sizes, array.shape, strict=True):
            if letter is not None:
                reader.size(letter, found, path)
        return array


@dataclass(frozen=True)
class Ragged:
    """A tuple of d arrays of numbers, each with its own length; `letter` is the sum of lengths."""

    letter: str

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        numbers = np.concatenate([np.asarray(part, dtype=float) for part in value])
        lengths = np.array([len(part) for part in value], dtype=np.intp)
        return [writer.put(path, numbers), writer.put(f"{path}.lengths", lengths)]

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if not isinstance(data, list) or len(data) != 2:
            refuse(path, "does not name its numbers and lengths")
        numbers = Array("f", (self.letter,)).read(data[0], path, reader)
        lengths = Array("i", ("d",)).read(data[1], path, reader)
        if np.any(lengths < 1) or np.any(lengths > len(numbers)) or lengths.sum() != len(numbers):
            refuse(path, "has lengths that do not match its numbers")
        return tuple(part.copy() for part in np.split(numbers, np.cumsum(lengths)[:-1]))


@dataclass(frozen=True)
class Number:
    """A float, including NaN and infinities, or an int if it was given as one."""

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        if isinstance(value, int | np.integer):
            return int(value)
        return write_plain(float(value), path, writer)

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        value = read_plain(data, path, reader) if isinstance(data, dict) else data
        if type(value) not in (int, float):
            refuse(path, "is not a number")
        return value


@dataclass(frozen=True)
class Whole:
    """A whole number in a range, or equal to a shared size."""

    low: int = 0
    high: int = _MOST
    letter: str | None = None

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return int(value)

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if type(data) is not int or not self.low <= data <= self.high:
            refuse(path, f"is not a whole number from {self.low} to {self.high}")
        if self.letter is not None:
            reader.size(self.letter, data, path)
        return data


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return bool(value)

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if type(data) is not bool:
            refuse(path, "is neither true nor false")
        return data


@dataclass(frozen=True)
class Text:
    """A text, one of `choices` if there are any."""

    choices: tuple[str, ...] = ()

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return str(value)

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if not isinstance(data, str) or (self.choices and data not in self.choices):
            known = f"one of {', '.join(self.choices)}" if self.choices else "text"
            refuse(path, f"is {data!r}, not {known}")
        return data


@dataclass(frozen=True)
class Many:
    """A tuple of values of one kind."""

    item: Spec
    letter: str | None = None

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return [self.item.write(v, f"{path}.{k}", writer) for k, v in enumerate(value)]

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if not isinstance(data, list):
            refuse(path, "is not a list")
        if self.letter is not None:
            reader.size(self.letter, len(data), path)
        return tuple(self.item.read(v, f"{path}.{k}", reader) for k, v in enumerate(data))


@dataclass(frozen=True)
class ByName:
    """A dict of values of one kind."""

    item: Spec

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return {name: self.item.write(v, f"{path}.{name}", writer) for name, v in value.items()}

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if not isinstance(data, dict):
            refuse(path, "is not a JSON object")
        return {name: self.item.read(v, f"{path}.{name}", reader) for name, v in data.items()}


@dataclass(frozen=True)
class Maybe:
    """A value or None."""

    item: Spec

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return None if value is None else self.item.write(value, path, writer)

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        return None if data is None else self.item.read(data, path, reader)


@dataclass(frozen=True)
class Plain:
    """Any plain data."""

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return write_plain(value, path, writer)

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        return read_plain(data, path, reader)


@dataclass(frozen=True)
class Part:
    """A value with named fields; `check` examines it as a whole and returns what is wrong.

    `attributes` maps names in the file to attributes that have another name. Fields named in
    `added` are not in older files; they are left out where they are None, their default.
    """

    make: Callable[..., Any]
    fields: dict[str, Spec]
    check: Callable[[Any], str | None] | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    added: frozenset[str] = frozenset()

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        values = {name: getattr(value, self.attributes.get(name, name)) for name in self.fields}
        return {
            name: spec.write(values[name], f"{path}.{name}", writer)
            for name, spec in self.fields.items()
            if name not in self.added or values[name] is not None
        }

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if not isinstance(data, dict) or set(data) | self.added != set(self.fields):
            refuse(path, f"does not have the fields {', '.join(self.fields)}")
        values = {
            self.attributes.get(name, name): spec.read(data[name], f"{path}.{name}", reader)
            for name, spec in self.fields.items()
            if name in data
        }
        try:
            value = self.make(**values)
        except (TypeError, ValueError, OverflowError) as error:
            refuse(path, f"is not valid ({error})")
        wrong = None if self.check is None else self.check(value)
        if wrong:
            refuse(path, wrong)
        return value


@dataclass(frozen=True)
class OneOf:
    """A value of one of several classes, by the name of the class."""

    parts: dict[str, Part]

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        name = type(value).__name__
        return {name: self.parts[name].write(value, path, writer)}

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        name = next(iter(data), None) if isinstance(data, dict) and len(data) == 1 else None
        if name not in self.parts:
            refuse(path, f"is not one of {', '.join(self.parts)}")
        return self.parts[name].read(data[name], path, reader)
