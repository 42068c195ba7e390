"""Compile the inner loops: keep the result on disk where possible, and say when it takes time.

numba keeps compiled code next to the source, or in the user's cache folder if that is read-only, or
where NUMBA_CACHE_DIR says. It is imported only when the first loop is, because the command line
asks for messages before it knows whether anything will be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_ONCE = "harfe: compiling, once in this environment: a few seconds\n"
_ALWAYS = (
    "harfe: compiling, in every run because the result cannot be stored: set NUMBA_CACHE_DIR to a "
    "folder that is writable\n"
)

_announces = False
_stored = True
_listening = False


def announce_compiling() -> None:
    """Say once on standard error that loops are being compiled, if any are in this process."""
    global _announces
    _announces = True


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba when it is first called; its code is stored if possible.

    Parameters
    ----------
    **options
        Those of :func:`numba.njit`, apart from `cache`.
    """

    def decorate(function: Function) -> Function:
        import numba

        global _stored
        _listen()
        try:
            loop = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no folder for the code
            _stored = False
            loop = numba.njit(**options)(function)
        result: Function = loop
        return result

    return decorate


def _listen() -> None:
    """Learn from numba when it compiles, which it does not if it finds stored code."""
    global _listening
    if _listening:
        return
    _listening = True
    from numba.core import event

    class Announcement(event.Listener):
        def on_start(self, event: Any) -> None:
            global _announces
            if _announces and event.data["dispatcher"].py_func.__module__.startswith("harfe."):
                _announces = False
                sys.stderr.write(_ONCE if _stored else _ALWAYS)
                sys.stderr.flush()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcement())
