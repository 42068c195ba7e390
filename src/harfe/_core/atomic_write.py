"""Writing files atomically."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file so that at any time the old or the new one exists, never part of one.

    The content goes to a hidden file in the same folder, which is renamed when the block ends; if
    the block raises, the hidden file is removed and the old file stays.

    Parameters
    ----------
    path : path
        An existing file is replaced; a link stays a link.

    Yields
    ------
    binary file
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{uuid4().hex[:12]}")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
