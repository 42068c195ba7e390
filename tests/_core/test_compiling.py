"""Where compiled code is kept, and when the user is told that it is being compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ONCE = "harfe: compiling, once in this environment: a few seconds\n"

# Two loops are called, so that a message for each would show.
LOOPS = """
import numpy as np
from harfe.features import kernels
block = np.array([[1.0, 3.0]])
mean, squares = np.empty(1), np.empty(1)
kernels.moments(block, np.ones(2), mean, squares)
kernels.standardise(block, mean, np.ones(1), np.ones(2))
print(mean[0], squares[0], *block[0])
"""
ANNOUNCED = "from harfe._core.compiling import announce_compiling; announce_compiling()\n" + LOOPS

# As in folders of another user; the tests may run as root, to whom every folder is writable.
READ_ONLY = """
from numba.core import caching
def refuse(self):
    raise PermissionError("read-only")
caching.{}.ensure_cache_path = refuse
"""


def run(code, home, **environment):
    names = ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "XDG_CACHE_HOME")
    env = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env | {"HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2.0 2.0 -1.0 1.0\n"
    return done.stderr


def stored_below(folder):
    return sorted(path.name.split(".")[1].split("-")[0] for path in Path(folder).rglob("*.nbi"))


def test_compiling_is_announced_once_and_only_if_it_happens(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(ANNOUNCED, tmp_path, **cache) == ONCE
    assert stored_below(tmp_path / "cache") == ["moments", "standardise"]
    assert run(ANNOUNCED, tmp_path, **cache) == ""


def test_nothing_is_said_unless_asked(tmp_path):
    assert run(LOOPS, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="the folder has another name elsewhere")
def test_a_read_only_installation_keeps_its_code_in_the_users_folder(tmp_path):
    code = READ_ONLY.format("InTreeCacheLocator") + ANNOUNCED
    assert run(code, tmp_path) == ONCE
    assert stored_below(tmp_path / ".cache") == ["moments", "standardise"]
    assert run(code, tmp_path) == ""


def test_without_any_writable_folder_the_message_says_what_to_set(tmp_path):
    said = run(READ_ONLY.format("_CacheLocator") + ANNOUNCED, tmp_path)
    assert said.count("\n") == 1
    assert "set NUMBA_CACHE_DIR to a folder that is writable" in said
