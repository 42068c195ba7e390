"""What a model file holds, part by part: names, types and sizes, stated once for both ways.

A spec knows how to write a value and how to read it back. Reading trusts nothing: types, shapes and
ranges are checked before a value is made, above all those that compiled loops rely on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from harfe.expansion import Expansion
from harfe.input_law import InputLaw
from harfe.kept_inputs import KeptInputs
from harfe.law import ACTIVATIONS, FeatureLaw
from harfe.learning import LearnedLaw
from harfe.mixed_law import MixedLaw
from harfe.plain_data import Reader, Writer, read_plain, refuse, write_plain
from harfe.pool import FeaturePool
from harfe.pool_origin import PoolOrigin
from harfe.pursuit import StopReason
from harfe.uncertainty import Posterior, Uncertainty
from harfe.units import InputBounds, InputUnits

_TYPES = {"b": np.bool_, "i": np.intp, "f": np.float64, "c": np.complex128}

# As many features as anyone draws; keeps a forged number from taking memory later.
_MOST = 2**31 - 1


class Spec(Protocol):
    """How values of one kind are written and read."""

    def write(self, value: Any, path: str, writer: Writer) -> Any:
        """As JSON; arrays go to the writer."""

    def read(self, data: Any, path: str, reader: Reader) -> Any:
        """The value, or `ModelFileError`."""


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
    """A tuple of d arrays of numbers, each with a length of its own; `letter` is their sum."""

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
            refuse(path, "has lengths that are not those of its numbers")
        return tuple(part.copy() for part in np.split(numbers, np.cumsum(lengths)[:-1]))


@dataclass(frozen=True)
class Number:
    """A float, also nan or infinite; or a whole one where it was given so."""

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        if isinstance(value, int | np.integer):
            return int(value)
        return write_plain(float(value), path, writer)

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        value = read_plain(data, path, reader) if isinstance(data, dict) else data
        if type(value) not in (int, float):
            refuse(path, "is no number")
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
            refuse(path, f"is no whole number from {self.low} to {self.high}")
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
            refuse(path, f"is {data!r}, none of {', '.join(self.choices) or 'the texts'}")
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
            refuse(path, "is no list")
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
            refuse(path, "is no table of names")
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
    """A value with named fields; `check` looks at it as a whole and says what is wrong."""

    make: Callable[..., Any]
    fields: dict[str, Spec]
    check: Callable[[Any], str | None] | None = None

    def write(self, value: Any, path: str, writer: Writer) -> Any:  # noqa: D102
        return {
            name: spec.write(getattr(value, name), f"{path}.{name}", writer)
            for name, spec in self.fields.items()
        }

    def read(self, data: Any, path: str, reader: Reader) -> Any:  # noqa: D102
        if not isinstance(data, dict) or set(data) != set(self.fields):
            refuse(path, f"has not the fields {', '.join(self.fields)}")
        values = {
            name: spec.read(data[name], f"{path}.{name}", reader)
            for name, spec in self.fields.items()
        }
        try:
            value = self.make(**values)
        except (TypeError, ValueError, OverflowError) as error:
            refuse(path, f"is not possible ({error})")
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
            refuse(path, f"is none of {', '.join(self.parts)}")
        return self.parts[name].read(data[name], path, reader)


def _pool_is_wrong(pool: FeaturePool) -> str | None:
    """Loops look up inputs by these indices without a further check."""
    if pool.indices.size and (pool.indices.min() < -1 or pool.indices.max() >= pool.n_variables):
        return f"looks at inputs beyond the {pool.n_variables} that there are"
    contiguous = all(a.flags.c_contiguous for a in (pool.indices, pool.values, pool.phases))
    return None if contiguous else "is not laid out by rows"


def _expansion_is_wrong(expansion: Expansion) -> str | None:
    if expansion.complex_output or expansion.features.is_complex:
        return None
    return "is complex without need" if expansion.coef.dtype.kind == "c" else None


def _input_law_is_wrong(law: InputLaw) -> str | None:
    same = all(len(n) == len(w) for n, w in zip(law.nodes, law.weights, strict=True))
    return None if same else "has not a weight for every node"


def _kept_is_wrong(kept: KeptInputs) -> str | None:
    if kept.partner.min() < -1 or kept.partner.max() >= len(kept.lower):
        return "names partners that are no inputs"
    columns = 1 if kept.joint is None else kept.joint.shape[1]
    return None if math.log2(max(columns, 1)).is_integer() else "has no mean for every subset"


def _origin_is_wrong(origin: PoolOrigin) -> str | None:
    places = origin.places
    if len(places) and (places.min() < 0 or np.any(np.diff(places) <= 0)):
        return "has places that do not rise"
    return None


def _features(s: str, q: str) -> Part:
    fields: dict[str, Spec] = {
        "n_variables": Whole(letter="d"),
        "indices": Array("i", (s, q)),
        "values": Array("f", (s, q)),
        "phases": Array("f", (s,)),
        "activation": Text(ACTIVATIONS),
    }
    return Part(FeaturePool, fields, _pool_is_wrong)


_PER_INPUT = Array("f", ("d",))
_UNITS = Part(InputUnits, {"centre": _PER_INPUT, "spread": _PER_INPUT})
_BOUNDS = Part(InputBounds, {"lower": _PER_INPUT, "upper": _PER_INPUT})

EXPANSION = Part(
    Expansion,
    {
        "features": _features("s", "q"),
        "coef": Array("fc", ("t", "s")),
        "intercept": Array("fc", ("t",)),
        "columns": Many(Text(), "d"),
        "complex_output": Flag(),
        "bounds": Maybe(_BOUNDS),
    },
    _expansion_is_wrong,
)

_FEATURE_LAW = Part(
    FeatureLaw,
    {
        "n_variables": Whole(letter="d"),
        "orders": Many(Whole(1)),
        "weights": Text(),
        "scale": Many(Number()),
        "bias": Text(),
        "activation": Text(),
        "variable_weights": Maybe(Many(Number())),
        "groups": Maybe(Many(Many(Whole()))),
        "order_weights": Maybe(Many(Number())),
        "tempering": Number(),
    },
)
_MIXED_LAW = Part(MixedLaw, {"parts": Many(_FEATURE_LAW), "shares": Many(Number())})
LAW = OneOf({"FeatureLaw": _FEATURE_LAW, "MixedLaw": _MIXED_LAW})

_LEARNED_LAW = Part(
    LearnedLaw,
    {
        "law": LAW,
        "candidate": Text(),
        "errors": ByName(Number()),
        "noise": Number(),
        "variance": Number(),
        "n_rows": Whole(),
        "columns": Many(Text(), "d"),
    },
)

_INPUT_LAW = Part(
    InputLaw,
    {"kind": Text(), "nodes": Ragged("nodes"), "weights": Ragged("nodes")},
    _input_law_is_wrong,
)

_KEPT_INPUTS = Part(
    KeptInputs,
    {
        "law": _INPUT_LAW,
        "lower": _PER_INPUT,
        "upper": _PER_INPUT,
        "quantiles": Array("f", (None, "d")),
        "mean": _PER_INPUT,
        "deviation": _PER_INPUT,
        "partner": Array("i", ("d",)),
        "correlation": _PER_INPUT,
        "joint": Maybe(Array("c", ("s", None))),
        "mean_prediction": Array("fc", ("t",)),
        "variance_joint": Array("f", ("t",)),
        "mean_square_gradient": Array("f", ("t", "d")),
        "total_weight": Number(),
        "law_error": Maybe(Number()),
    },
    _kept_is_wrong,
)


def _unbound_posterior(**fields: Any) -> Posterior:
    """Without its expansion, which is that of the model and stands in the file once."""
    return Posterior(None, **fields)  # type: ignore[arg-type]


_POSTERIOR = Part(
    _unbound_posterior,
    {
        "mean": Array("fc", ("s",)),
        "scale": Array("f", ("s",)),
        "factor": Array("fc", ("s", "s")),
        "total_weight": Number(),
        "fit_intercept": Flag(),
    },
)
_UNCERTAINTY = Part(
    Uncertainty,
    {
        "posterior": _POSTERIOR,
        "noise": Array("f", ("t",)),
        "scores": Array("f", ("residuals", "t")),
        "weights": Array("f", ("residuals", "t")),
        "mean_square": Maybe(Array("f", ("t",))),
    },
)

_ORIGIN = Part(
    PoolOrigin,
    {
        "units": _UNITS,
        "places": Array("i", ("trained",)),
        "features": _features("trained", "trained order"),
        "index_digest": Text(),
        "totals": Array("f", (None,)),
    },
    _origin_is_wrong,
)

# In the order in which they are read: the first ones say how many of everything there are.
ATTRIBUTES: dict[str, Spec] = {
    "n_features_in_": Whole(letter="d"),
    "feature_names_in_": Maybe(Many(Text(), "d")),
    "expansion_": EXPANSION,
    "_y_ndim": Whole(1, 2),
    "law_": LAW,
    "seed_": Whole(),
    "n_components_": Whole(1),
    "support_": Array("i", ("s",)),
    "n_nonzero_coefs_": Whole(),
    "n_iter_": Whole(),
    "history_": ByName(Array("f", (None,))),
    "_stop_reason": Text(tuple(StopReason.__members__)),
    "feature_importances_": _PER_INPUT,
    "inputs_": _KEPT_INPUTS,
    "uncertainty_": Maybe(_UNCERTAINTY),
    "_pool_origin": _ORIGIN,
}
SEARCH_ATTRIBUTES: dict[str, Spec] = {
    "learned_law_": Maybe(_LEARNED_LAW),
    "fit_": Text(),
    "alpha_": Number(),
    "order_": Plain(),
    "scale_": Plain(),
    "best_params_": Plain(),
    "best_score_": Number(),
    "cv_results_": Plain(),
    "mse_path_": Array("f", (None, None, None, None)),
    "pools_": Plain(),
    "alphas_": Array("f", (None,)),
    "sizes_": Array("i", (None,)),
    "n_splits_": Whole(),
    "search_complete_": Flag(),
    "_learns": Flag(),
}
