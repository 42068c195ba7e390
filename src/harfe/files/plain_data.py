"""Convert plain values, such as parameters and results, to JSON and arrays and back.

JSON has None, booleans, numbers, text, lists and objects with text keys. Everything else is an
object with a single key that starts with "~": ``{"~tuple": [1, 2]}``. Each array goes to the file
under its own name. Values that are not plain data (functions, splitters, frames) raise `NotPlain`.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import MixedLaw
from harfe.files.container import ModelFileError

_NUMBER_KINDS = "biufc"
_MARK = "~"


class NotPlain(TypeError):
    """The value cannot be stored in a model file."""


class Writer:
    """Collects the arrays of a file while values are written.

    Parameters
    ----------
    n_variables : int
        Number of inputs of the model, which laws of the features must match.
    """

    def __init__(self, n_variables: int) -> None:
        self.n_variables = n_variables
        self.arrays: dict[str, NDArray[Any]] = {}

    def put(self, path: str, array: NDArray[Any]) -> str:
        """Store an array under a name made from its path, and return the name."""
        name = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in path)
        name = name[:150]
        while name in self.arrays:
            name += "_"
        self.arrays[name] = array
        return name


class Reader:
    """Hands out the arrays of a file, each once, and tracks the sizes found so far.

    Parameters
    ----------
    arrays : dict of arrays
    sizes : dict of str to int
        Sizes that parts of a model share, by letter: d inputs, s features, t targets.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]], sizes: dict[str, int]) -> None:
        self._left = dict(arrays)
        self.sizes = sizes

    def take(self, name: Any, path: str) -> NDArray[Any]:
        """Return the array with this name, for the value at this path."""
        if not isinstance(name, str) or name not in self._left:
            refuse(path, "does not name an array of the file")
        return self._left.pop(name)

    def size(self, letter: str, found: int, path: str) -> None:
        """Record a size, or compare it with the recorded one."""
        if self.sizes.setdefault(letter, found) != found:
            refuse(path, f"has {found} entries instead of {self.sizes[letter]}")

    def close(self) -> None:
        """Reject arrays that no part of the model has taken."""
        if self._left:
            refuse(min(self._left), "is not part of the model")


def refuse(path: str, reason: str) -> NoReturn:
    """Raise an error that says what is wrong with the value at this path."""
    raise ModelFileError(f"the model file is not valid: {path} {reason}")


def write_plain(value: Any, path: str, writer: Writer) -> Any:
    """Return a value as JSON; arrays go to the writer."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"~float": repr(value)}
    if kind is complex:
        return {"~complex": [write_plain(v, path, writer) for v in (value.real, value.imag)]}
    if kind is range:
        return {"~range": [value.start, value.stop, value.step]}
    if kind in (list, tuple):
        items = [write_plain(v, f"{path}.{k}", writer) for k, v in enumerate(value)]
        return items if kind is list else {"~tuple": items}
    if kind in (set, frozenset):
        items = [write_plain(v, path, writer) for v in sorted(value, key=repr)]
        return {f"~{kind.__name__}": items}
    if kind is dict:
        return _write_dict(value, path, writer)
    if isinstance(value, np.generic) and value.dtype.kind in _NUMBER_KINDS + "U":
        return {"~scalar": writer.put(path, np.asarray(value))}
    if isinstance(value, FeatureLaw | MixedLaw) and value.n_variables == writer.n_variables:
        from harfe.files.model_parts import LAW

        return {"~law": LAW.write(value, path, writer)}
    if kind is np.ndarray:
        return _write_array(value, path, writer)
    raise NotPlain(f"{path}: {kind.__name__} is not plain data")


def _write_dict(value: dict[Any, Any], path: str, writer: Writer) -> Any:
    if all(type(key) is str and not key.startswith(_MARK) for key in value):
        return {key: write_plain(v, f"{path}.{key}", writer) for key, v in value.items()}
    return {"~dict": [write_plain(list(pair), path, writer) for pair in value.items()]}


def _write_array(value: NDArray[Any], path: str, writer: Writer) -> Any:
    if value.dtype.kind == "O":
        items = [write_plain(v, path, writer) for v in value.ravel().tolist()]
        return {"~objects": items, "shape": list(value.shape)}
    if value.dtype.kind not in _NUMBER_KINDS + "U" or value.dtype.itemsize > 2**20:
        raise NotPlain(f"{path}: an array of {value.dtype} is not plain data")
    return {"~array": writer.put(path, value)}


def read_plain(data: Any, path: str, reader: Reader) -> Any:
    """Return the value that `write_plain` wrote."""
    if isinstance(data, list):
        return [read_plain(v, f"{path}.{k}", reader) for k, v in enumerate(data)]
    if not isinstance(data, dict):
        return data
    mark = next(iter(data), "")
    if not mark.startswith(_MARK):
        return {key: read_plain(v, f"{path}.{key}", reader) for key, v in data.items()}
    content = data[mark]
    if mark == "~objects" and len(data) == 2 and isinstance(content, list):
        return _read_objects(content, data.get("shape"), path, reader)
    if len(data) != 1:
        refuse(path, f"has more keys than {mark}")
    if mark == "~array":
        return reader.take(content, path)
    if mark == "~scalar":
        array = reader.take(content, path)
        if array.shape != ():
            refuse(path, "is not a single number")
        return array[()]
    if mark == "~float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if mark == "~law":
        from harfe.files.model_parts import LAW

        return LAW.read(content, path, reader)
    if not isinstance(content, list):
        refuse(path, f"holds {mark}, which this version does not support")
    return _read_collection(mark, content, path, reader)


def _read_collection(mark: str, content: list[Any], path: str, reader: Reader) -> Any:
    items = [read_plain(v, f"{path}.{k}", reader) for k, v in enumerate(content)]
    try:
        if mark == "~tuple":
            return tuple(items)
        if mark == "~set":
            return set(items)
        if mark == "~frozenset":
            return frozenset(items)
        if mark == "~complex":
            real, imaginary = items
            return complex(float(real), float(imaginary))
        if mark == "~range":
            start, stop, step = items
            return range(start, stop, step)
        if mark == "~dict":
            return {key: value for key, value in items}  # noqa: C416 - also checks the pairs
    except (TypeError, ValueError) as error:
        refuse(path, f"is not a valid {mark} ({error})")
    refuse(path, f"holds {mark}, which this version does not support")


def _read_objects(items: list[Any], shape: Any, path: str, reader: Reader) -> NDArray[np.object_]:
    whole = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not whole or len(shape) > 8 or math.prod(shape) != len(items):
        refuse(path, f"has the shape {shape!r} for {len(items)} values")
    flat = np.empty(len(items), dtype=object)
    flat[:] = [read_plain(v, path, reader) for v in items]
    return flat.reshape(shape)
