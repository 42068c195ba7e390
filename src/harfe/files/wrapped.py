"""What files need from a model that encodes tables for an estimator: `harfe.tables.TableModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


class Encoder(Protocol):
    """How a table becomes inputs."""

    target: str | None

    @property
    def columns_in(self) -> tuple[str, ...]:
        """Names of the columns that are read."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""

    def add_to(self, graph: Any) -> tuple[str, str | None]:
        """Add it to an ONNX graph; return the names of the inputs and of a mask of absent rows."""


@runtime_checkable
class Wrapped(Protocol):
    """An estimator behind an encoder."""

    encoder: Encoder
    model: Any
    meta: Mapping[str, Any]
