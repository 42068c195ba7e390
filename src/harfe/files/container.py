"""The container of a model file: named arrays and a JSON header, with a fingerprint.

A model file is an npz file, i.e. a zip file of npy files, so that NumPy alone can read its arrays:
``np.load(path)["expansion_.coef"]``. Besides the arrays it holds ``header.json``. Its last 64
bytes, the comment of the zip file, are the SHA-256 of all bytes before them, in hexadecimal digits:
no change of a bit goes unnoticed. That protects against accidents. Against malice, limits are
checked before memory is allocated, and nothing in the file is ever executed: no pickles, no names
of modules, no evaluation of text.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from harfe._core.atomic_write import atomic_write

HEADER = "header.json"

_FIRST_BYTES = b"PK\x03\x04"
_END, _END_OF_LARGE = b"PK\x05\x06", b"PK\x06\x07"
_END_BYTES, _LARGE_BYTES, _DIGEST = 22, 20, 64
_NAME_OFFSET = 30

# Largest list of members in bytes; a model has about sixty members.
_LARGEST_LIST = 2**18

# Most memory that content takes while it is read, as a multiple of its length: an array also exists
# as bytes, and JSON of nested empty lists takes 88 times its length as objects.
ARRAY_FACTOR, JSON_FACTOR = 2, 100

_CHUNK = 2**20

_MEMBER = re.compile(r"[A-Za-z0-9_.\-]{1,200}\.npy")
# Numbers and text in little-endian order, as NumPy writes their types.
_TYPE = re.compile(r"[<|](b1|[iu][1248]|f[248]|c8|c16|U[1-9][0-9]{0,5})")
_MOST_DIMENSIONS = 8


class ModelFileError(ValueError):
    """The file is not a model, or not a complete one; the message says what to do."""


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write header and arrays, completely or not at all; equal content gives equal files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        text = json.dumps(header, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        _add(file, HEADER, text.encode())
        for name, array in arrays.items():
            _add(file, f"{name}.npy", _npy_bytes(array))
        file.comment = b"0" * _DIGEST
    content = buffer.getvalue()[:-_DIGEST]
    with atomic_write(path) as target:
        target.write(content + hashlib.sha256(content).hexdigest().encode())


def read(
    path: str | os.PathLike[str], max_bytes: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read header and arrays of a file, and check all of it before use.

    Parameters
    ----------
    path : str or path
    max_bytes : int
        Memory that this may take: the file, `ARRAY_FACTOR` times its arrays and `JSON_FACTOR` times
        its header. The sizes that the file declares are checked before memory is allocated.
    """
    raw = _whole_file(path, max_bytes)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            members = _members(path, file.infolist(), max_bytes - len(raw))
            header = json.loads(_content(file, members.pop(HEADER)), parse_constant=_no_constant)
            arrays = {
                name.removesuffix(".npy"): _array(_content(file, info))
                for name, info in members.items()
            }
    except ModelFileError:
        raise
    except Exception as error:
        # A forged file can raise anything in zlib, zipfile or json: report it as one error.
        _refuse(path, f"cannot be read ({error})")
    if not isinstance(header, dict):
        _refuse(path, "has a header that is not a JSON object")
    return header, arrays


def _add(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.create_system = 3
    member.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(member, content)


def _npy_bytes(array: NDArray[Any]) -> bytes:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _whole_file(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Read all bytes of a file and check its fingerprint."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        _refuse(path, "is not a file")
    if status.st_size > max_bytes:
        _refuse_size(path, status.st_size, max_bytes)
    with open(path, "rb") as file:
        raw = file.read(status.st_size + 1)
    own = raw[:4] == _FIRST_BYTES and raw[_NAME_OFFSET:].startswith(HEADER.encode())
    if not own:
        _refuse(path, "is not a harfe model file; pass one written by model.save or harfe.save")
    end = raw[-_END_BYTES - _DIGEST : -_DIGEST]
    digest = hashlib.sha256(memoryview(raw)[:-_DIGEST]).hexdigest().encode()
    if digest != raw[-_DIGEST:] or end[:4] != _END:
        _refuse(
            path, "is damaged or incomplete: its fingerprint does not match its content; copy it "
            "again, or save the model again"
        )  # fmt: skip
    list_bytes, comment = struct.unpack("<8x4xL4xH", end)
    large = raw[-_END_BYTES - _DIGEST - _LARGE_BYTES :][:4] == _END_OF_LARGE
    if large or list_bytes > _LARGEST_LIST or comment != _DIGEST:
        _refuse(path, "lists more parts than a model has")
    return raw


def _members(
    path: str | os.PathLike[str], infos: list[zipfile.ZipInfo], room: int
) -> dict[str, zipfile.ZipInfo]:
    """Members by name: only of known kinds, and no more than fit into `room` bytes."""
    members = {info.filename: info for info in infos}
    if len(members) < len(infos):
        _refuse(path, "contains several parts with the same name")
    if HEADER not in members:
        _refuse(path, f"has no {HEADER}")
    for name, info in members.items():
        if name != HEADER and not _MEMBER.fullmatch(name):
            _refuse(path, f"contains {name!r}, which is not part of a model")
        known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if not known or info.flag_bits & 1:
            _refuse(path, f"contains {name!r} in a compression or encryption that models never use")
    declared = sum(
        info.file_size * (JSON_FACTOR if name == HEADER else ARRAY_FACTOR)
        for name, info in members.items()
    )
    if declared > room:
        _refuse_size(path, declared, room)
    return members


def _content(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytearray:
    """Unpack a member; zipfile stops at its declared size and verifies its checksum."""
    content = bytearray(info.file_size)
    place = 0
    with file.open(info) as member:
        while part := member.read(_CHUNK):
            content[place : place + len(part)] = part
            place += len(part)
    if place != info.file_size:
        raise ValueError(f"{info.filename} is not as long as declared")
    return content


def _array(content: bytearray) -> NDArray[Any]:
    """Parse an npy file of numbers or text; its shape must match the number of bytes."""
    start = 10 + int.from_bytes(content[8:10], "little")
    header = io.BytesIO(content[:start])
    try:
        version = np.lib.format.read_magic(header)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(header)
    except ValueError as error:
        raise ValueError(f"an array does not have an npy header: {error}") from error
    if version != (1, 0):
        raise ValueError("an array has a header of another version")
    if not _TYPE.fullmatch(dtype.str):
        raise ValueError(f"an array has the type {dtype}, which models do not have")
    fits = math.prod(shape) * dtype.itemsize == len(content) - start
    if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0 or not fits:
        raise ValueError(f"an array of shape {shape} does not match its bytes")
    flat = np.frombuffer(content, dtype, offset=start).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if fortran else "C")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not valid JSON")


def _refuse(path: str | os.PathLike[str], reason: str) -> NoReturn:
    raise ModelFileError(f"{os.fspath(path)} {reason}")


def _refuse_size(path: str | os.PathLike[str], size: int, limit: int) -> NoReturn:
    _refuse(
        path,
        f"needs {size} bytes of memory, but only {limit} are allowed; if you trust the file, pass "
        "a larger max_bytes",
    )
