"""Download the paper's real datasets from a server that has them.

The data do not come with harfe and have no default address: the user names a server. It serves a
folder in the form that `load_real` reads: datasets.json (the manifest, with the SHA-256 of every
file), splits.json and the files. An interrupted download leaves NAME.part, and the next one resumes
there. A file gets its final name only if its SHA-256 is that of the manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harfe.datasets._shared import unknown_name
from harfe.datasets.real import list_real

#: Environment variable that names the server.
SOURCE_VARIABLE = "HARFE_DATA_URL"

_LISTS = ("datasets.json", "splits.json")
_LARGEST_LIST = 64 * 2**20
_TIMEOUT = 30
_CHUNK = 1 << 16
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class DownloadError(OSError):
    """A file could not be downloaded; the message says what to do."""


def download_real(
    names: Sequence[str],
    source: str,
    data_home: str | os.PathLike[str],
    tell: Callable[[str], None] = lambda text: None,
) -> Path:
    """Download datasets, and the lists that `load_real` needs.

    Parameters
    ----------
    names : sequence of str
        Some of `list_real()`.
    source : str
        Address of the folder, http:// or https://.
    data_home : path
        Folder to write to; created if missing. Complete files are not downloaded again.
    tell : callable, optional
        Called with a line about each file.

    Returns
    -------
    Path
        The folder, for ``HARFE_DATA`` or ``load_real(..., data_home=...)``.

    Raises
    ------
    DownloadError
        If the server or a file cannot be reached, or a file does not match the manifest.
    """
    for name in names:
        if name not in list_real():
            raise unknown_name(name, list_real())
    if urllib.parse.urlsplit(source).scheme not in ("http", "https"):
        raise DownloadError(
            f"{source!r} is not an address to download from: type one that begins with https:// "
            "or http://"
        )
    base = source if source.endswith("/") else f"{source}/"
    home = Path(data_home).expanduser()
    home.mkdir(parents=True, exist_ok=True)
    lists = {name: _fetch_small(base + name) for name in _LISTS}
    entries = _entries(lists["datasets.json"], base)
    for name, content in lists.items():
        _put(home / name, content)
    for name in names:
        if name not in entries:
            raise DownloadError(
                f"{base} does not have {name!r}; it has {', '.join(entries) or 'nothing'}"
            )
        file, sha256, size = entries[name]
        tell(f"{name}: {_fetch_file(base + file, home / file, sha256, size)}")
    return home


def _entries(content: bytes, base: str) -> dict[str, tuple[str, str, int]]:
    """Return file, SHA-256 and size of every dataset in the manifest."""
    try:
        manifest = json.loads(content)
        tables: Mapping[str, Any] = {**manifest["datasets"], **manifest.get("variants", {})}
        entries = {
            str(name): (str(entry["file"]), str(entry["sha256"]), int(entry["bytes"]))
            for name, entry in tables.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DownloadError(
            f"{base}datasets.json is not a manifest of harfe's data: check the address"
        ) from error
    for file, _, _ in entries.values():
        # A name such as ../x would be written outside the folder.
        if not _PLAIN_NAME.fullmatch(file):
            raise DownloadError(
                f"{base}datasets.json names the unsafe file {file!r}: type another address"
            )
    return entries


def _fetch_small(address: str) -> bytes:
    with _opened(address) as answer:
        content: bytes = _read(answer, address, _LARGEST_LIST + 1)
    if len(content) > _LARGEST_LIST:
        raise DownloadError(f"{address} is larger than a list should be: check the address")
    return content


def _fetch_file(address: str, path: Path, sha256: str, size: int) -> str:
    """Download one file, resuming an earlier attempt, and return a line about it."""
    if path.is_file() and _sha256(path) == sha256:
        return f"{path.name} already exists"
    part = path.with_name(path.name + ".part")
    start = part.stat().st_size if part.is_file() else 0
    if start > size:
        part.unlink()
        start = 0
    if start < size:
        start = _append(address, part, start, size)
    if part.stat().st_size < size:
        raise DownloadError(
            f"{address} stopped after {part.stat().st_size} of {size} bytes: type the same "
            "command again to resume"
        )
    if _sha256(part) != sha256:
        part.unlink()
        raise DownloadError(
            f"{address} is not the file that the manifest describes (its SHA-256 differs) and was "
            "deleted: try again, or ask the operator of the server"
        )
    os.replace(part, path)
    return f"{path.name}, {size} bytes" + (f", resumed at {start}" if start else "")


def _append(address: str, part: Path, start: int, size: int) -> int:
    """Append what is missing to the part; return where the download began."""
    with _opened(address, start) as answer:
        if start and answer.status != 206:
            # The server does not support ranges: start from the beginning.
            start = 0
        with open(part, "ab" if start else "wb") as file:
            left = size - start
            with contextlib.suppress(TimeoutError, ConnectionError):
                while left > 0 and (chunk := _read(answer, address, min(_CHUNK, left))):
                    file.write(chunk)
                    left -= len(chunk)
    return start


def _opened(address: str, start: int = 0) -> Any:
    headers = {"User-Agent": "harfe", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        request = urllib.request.Request(address, headers=headers)
        return urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        raise DownloadError(
            f"{address} cannot be downloaded (the server answered {error.code} {error.reason}): "
            "check the address"
        ) from error
    except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise DownloadError(
            f"{address} cannot be reached ({reason}): check the network and the address, or copy "
            "the files some other way and set HARFE_DATA to their folder"
        ) from error


def _read(answer: Any, address: str, count: int) -> bytes:
    import http.client

    try:
        content: bytes = answer.read(count)
    except http.client.IncompleteRead as error:
        return error.partial
    return content


def _put(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
