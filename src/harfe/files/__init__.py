"""Fitted models as files: data that is checked when it is read, never code.

A file holds the kept features, the law and the seed that all features were drawn with, what
explanations and the uncertainty need, the results of a search, and the parameters. For its format
see `harfe.files.container`, for its parts `harfe.files.model_parts`, for the reasons
docs/decisions/0025.

Names are imported on first use: parts of this package do not need the estimators.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harfe.files.container import ModelFileError
    from harfe.files.save_load import MAX_BYTES, describe, load, save

__all__ = ["MAX_BYTES", "ModelFileError", "describe", "load", "save"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'harfe.files' has no attribute {name!r}")
    home = "container" if name == "ModelFileError" else "save_load"
    return getattr(import_module(f"harfe.files.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
