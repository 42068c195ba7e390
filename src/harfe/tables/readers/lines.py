"""Lines of a text file, taken one by one or inspected in bulk first."""

from __future__ import annotations

import codecs
import io
import zlib
from collections import deque

import numpy as np
from numpy.typing import NDArray

READ_ERRORS = (OSError, EOFError, zlib.error)

_CHUNK = 1 << 18


class Lines:
    r"""Iterate over the lines of a stream in any encoding.

    As with Python's universal newlines, a line ends in \n, \r or \r\n, which stays part of it. An
    error in the stream or its encoding is raised when the line that contains it is requested.

    Parameters
    ----------
    stream : binary stream
    encoding : str

    Attributes
    ----------
    taken : int
        Lines taken so far.
    """

    def __init__(self, stream: io.RawIOBase, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        # Whole lines and the rest after them, in UTF-8 whatever the encoding of the stream.
        self._ready: deque[bytearray] = deque()
        self._rest = bytearray()
        self._ended = False
        self._error: Exception | None = None
        self.taken = 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        while not self._ready:
            lines = self._rest.splitlines(keepends=True)
            # A \r at the very end may be the first half of \r\n.
            whole = self._ended or not lines or lines[-1].endswith(b"\n")
            self._rest = bytearray() if whole else lines.pop()
            self._ready.extend(lines)
            if not lines:
                if self._ended:
                    raise StopIteration
                while (part := self._read()) and b"\n" not in part and b"\r" not in part:
                    pass
        self.taken += 1
        return self._ready.popleft().decode()

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def peek(self, count: int, longest: int) -> tuple[bytes, int] | None:
        r"""Look at the next lines without taking them.

        Parameters
        ----------
        count : int
            Number of lines; fewer are returned only at the end.
        longest : int
            Maximum number of bytes per line.

        Returns
        -------
        tuple of bytes and int or None
            Lines that end in \n, and their number; None if one is too long or cannot be read.
        """
        if self._ready:
            self._rest = bytearray().join((*self._ready, self._rest))
            self._ready.clear()
        found = len(_line_ends(self._rest))
        unended = len(self._rest) - self._rest.rfind(b"\n") - 1
        while found < count and unended <= longest:
            try:
                part = self._read()
            except (UnicodeDecodeError, *READ_ERRORS):
                return None
            if not part:
                break
            found += len(_line_ends(part))
            last = part.rfind(b"\n")
            unended = len(part) - last - 1 if last >= 0 else unended + len(part)
        ends = _line_ends(self._rest)[:count] + 1
        if self._ended and found < count and unended:
            ends = np.append(ends, len(self._rest))
        if np.diff(ends, prepend=0).max(initial=0) > longest or (found < count and not self._ended):
            return None
        size = int(ends[-1]) if len(ends) else 0
        return bytes(memoryview(self._rest)[:size]), len(ends)

    def take(self, size: int, count: int) -> None:
        """Take `count` lines of `size` bytes in total, after `peek`."""
        del self._rest[:size]
        self.taken += count

    def _read(self) -> bytes:
        """Append a chunk of the stream to the rest and return it; empty at the end."""
        if self._error is not None:
            raise self._error
        text = ""
        while not text and not self._ended:
            state = self._decoder.getstate()
            try:
                part = self._stream.read(_CHUNK) or b""
                text = self._decoder.decode(part, final=not part)
                self._ended = not part
            except UnicodeDecodeError as error:
                self._error = error
                self._decoder.setstate(state)
                text = self._before_error(part)
                if not text:
                    raise
            except READ_ERRORS as error:
                self._error = error
                raise
        read = text.encode()
        self._rest += read
        return read

    def _before_error(self, part: bytes) -> str:
        """Decode the part before the bytes that cannot be decoded."""
        letters = []
        try:
            for place in range(len(part)):
                letters.append(self._decoder.decode(part[place : place + 1]))
        except UnicodeDecodeError:
            pass
        return "".join(letters)


def _line_ends(text: bytes | bytearray) -> NDArray[np.intp]:
    return np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
