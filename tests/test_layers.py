"""The tree is the architecture: rooms of at most ten modules, imports that point one way."""

import ast
import re
from pathlib import Path

import pytest

import harfe

SOURCE = Path(__file__).resolve().parents[1] / "src" / "harfe"

#: Rooms from the bottom to the top; rooms in one row do not import each other.
LAYERS = [
    ["_core"],
    ["features"],
    ["solvers"],
    ["model"],
    ["explain", "learning"],
    ["selection"],
    ["estimators"],
    ["files"],
    ["tables"],
    ["display", "report", "compare"],
    ["cli"],
]
#: Rooms outside the layers, and what they may import: anything below the command line.
BESIDE = ["datasets", "metrics", "rivals", "theory"]
#: Imports that point up, each inside a function, with the reason.
SANCTIONED = {
    ("estimators/_saving.py", "files"): "model.save() and model.to_onnx() are what users expect",
    ("files/save_load.py", "tables"): "harfe.load opens the file of a TableModel in a new process",
    ("compare/methods.py", "rivals"): "the registry makes a rival when it is asked for one",
}
MODULES = sorted(SOURCE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})


def level(room):
    return next((k for k, rooms in enumerate(LAYERS) if room in rooms), None)


def imports(path):
    """(room, whether at the top of the module) of every import of harfe, lazy ones included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            room = rest.partition(".")[0]
            if package == "harfe" and (SOURCE / room).is_dir() and room:
                yield room, node in tree.body


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    inside = path.relative_to(SOURCE).parts
    room = inside[0]
    for other, at_top in imports(path):
        if other == room or len(inside) == 1:
            continue
        if ("/".join(inside), other) in SANCTIONED:
            assert not at_top, f"{path}: the import of harfe.{other} belongs inside a function"
        elif level(room) is None:
            assert room in BESIDE
            assert level(other) is None or level(other) < level("cli")
        elif other in BESIDE:
            assert other in ("datasets", "metrics"), f"{path} imports harfe.{other}"
        else:
            assert level(other) < level(room), f"{path} imports harfe.{other}, which lies above it"


@pytest.mark.parametrize("room", ["solvers", "model", "explain", "learning"])
def test_the_algorithms_do_not_know_scikit_learn(room):
    for path in (SOURCE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(str(name).partition(".")[0] == "sklearn" for name in names), path


def test_experiments_use_public_names_only():
    root = SOURCE.parents[1]
    rooms = "|".join(harfe._MODULES)
    for path in (root / "experiments").rglob("*.py"):
        for name in re.findall(r"(?:from|import) (harfe[.\w]*)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(rf"harfe(\.({rooms}))?", name), f"{path} imports {name}"


def test_the_tests_mirror_the_rooms():
    tests = Path(__file__).resolve().parent
    found = {path.name for path in tests.iterdir() if any(path.rglob("test_*.py"))}
    rooms = {room for row in LAYERS for room in row} | set(BESIDE) - {"metrics"}
    assert found == rooms | {"experiments"}


def test_every_sanctioned_import_is_there():
    found = {
        ("/".join(path.relative_to(SOURCE).parts), room)
        for path in MODULES
        for room, _ in imports(path)
    }
    assert set(SANCTIONED) <= found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_has_at_most_ten_files_and_says_what_it_is_for(folder):
    inside = [
        entry
        for entry in folder.iterdir()
        if (entry.is_dir() and entry.name != "__pycache__")
        or (entry.suffix == ".py" and entry.name != "__init__.py")
    ]
    if folder == SOURCE:
        known = {room for row in LAYERS for room in row} | set(BESIDE)
        assert {entry.stem for entry in inside} == known
    else:
        assert len(inside) <= 10, sorted(entry.name for entry in inside)
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(tree) or "").partition("\n")[0]
    assert first.endswith((".", ":")), first
