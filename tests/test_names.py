"""Names that the documents use can be reached after ``import harfe``."""

import inspect
import re
import subprocess
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

import harfe

ROOT = Path(__file__).resolve().parents[1]
#: What users read; decisions may also name modules that are not public.
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
INTERNAL = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / "decisions").glob("*.md")]
#: Files that users have, not names.
FILE_ENDINGS = ("csv", "harfe", "html", "json", "onnx", "parquet", "py", "toml")

#: Prints the names that cannot be reached, each tried as if nothing of harfe were imported yet.
REACH = """
import sys
from functools import reduce
for name in sys.argv[1:]:
    for module in [key for key in sys.modules if key.partition(".")[0] == "harfe"]:
        del sys.modules[module]
    import harfe
    try:
        reduce(getattr, name.split(".")[1:], harfe)
    except AttributeError as error:
        print(name, error)
"""


def names_in(*paths):
    texts = [path.read_text(encoding="utf-8") for path in paths]
    found = {name for text in texts for name in re.findall(r"\bharfe(?:\.[A-Za-z_]\w*)+", text)}
    return sorted(name for name in found if not name.endswith(tuple(f".{e}" for e in FILE_ENDINGS)))


def test_the_documents_name_something():
    assert {"harfe.tables.TableModel.fit", "harfe.report.write_report"} <= set(names_in(*DOCUMENTS))


def test_names_in_documents_are_attributes_of_harfe():
    done = subprocess.run(
        [sys.executable, "-c", REACH, *names_in(*DOCUMENTS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", names_in(*INTERNAL))
def test_names_in_decisions_exist(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        reduce(getattr, parts[cut:], module)
        return
    pytest.fail(f"{name} cannot be imported")


@pytest.mark.parametrize("path", sorted({*DOCUMENTS, *INTERNAL}), ids=lambda path: path.name)
def test_modules_in_documents_exist(path):
    text = path.read_text(encoding="utf-8")
    rooms = "|".join(entry.name for entry in (ROOT / "src" / "harfe").iterdir() if entry.is_dir())
    for named in re.findall(rf"`((?:{rooms})/[\w/]*(?:\.py)?)`", text):
        assert (ROOT / "src" / "harfe" / named).exists(), f"{path.name} names {named}"


def test_the_public_names_are_few_and_documented():
    assert dir(harfe) == sorted(harfe.__all__)
    assert len(harfe.__all__) <= 30
    for name in set(harfe.__all__) - {"__version__"}:
        value = getattr(harfe, name)
        first = inspect.getdoc(value).partition("\n")[0]
        assert first.endswith("."), f"help(harfe.{name}) opens with {first!r}"
