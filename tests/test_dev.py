"""dev.py, which makes the environment and runs the commands, and .ci/run, which calls it."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
if (ROOT / "PKG-INFO").exists():
    pytest.skip("dev.py is in the repository, not in the source archive", allow_module_level=True)

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="needs bash and executable scripts")


class Runner:
    """Stands in for subprocess.run: keeps the commands and answers as told."""

    def __init__(self):
        self.commands = []
        self.environments = []
        self.fail_if = lambda command: False
        self.output = ""

    def __call__(self, command, **options):
        self.commands.append(command)
        self.environments.append(options.get("env"))
        if command[1] == "venv":  # uv
            python = Path(command[-1]) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
            python.parent.mkdir(parents=True)
            python.touch()
        return SimpleNamespace(returncode=3 if self.fail_if(command) else 0, stdout=self.output)

    def take(self):
        commands, self.commands = self.commands, []
        return commands


@pytest.fixture
def load(tmp_path):
    """Load a copy of dev.py from a folder of its own, so that .venv is made there."""

    def load_from(name):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        shutil.copy(ROOT / "dev.py", folder)
        shutil.copy(ROOT / "pyproject.toml", folder)
        spec = importlib.util.spec_from_file_location("dev", folder / "dev.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load_from


@pytest.fixture
def dev(load):
    return load("clone")


@pytest.fixture
def runner(monkeypatch):
    """Replace subprocess.run; there is no uv."""
    runner = Runner()
    monkeypatch.setattr(subprocess, "run", runner)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    return runner


@pytest.fixture
def uv(runner, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "/tools/uv" if name == "uv" else None)
    return runner


def pip_install(dev, package):
    python = str(dev.PYTHON)
    return [sys.executable, "-m", "pip", "--python", python, "install", "--editable", package]


PIP_CHECK = [sys.executable, "-m", "pip", "--version"]


def edit_pyproject(dev):
    with open(dev.ROOT / "pyproject.toml", "a", encoding="utf-8") as file:
        file.write("# edited\n")


# --- the fingerprint and the stamp ---


def test_fingerprint_changes_with_all_that_matters_and_nothing_else(dev, load, monkeypatch):
    first = dev.fingerprint(["lint", "test"])
    assert dev.fingerprint(["test", "lint"]) == first
    assert dev.fingerprint(["test"]) != first
    assert load("elsewhere").fingerprint(["lint", "test"]) != first
    with monkeypatch.context() as patch:
        patch.setattr(dev.platform, "python_version", lambda: "3.99.0")
        assert dev.fingerprint(["lint", "test"]) != first
    assert dev.fingerprint(["lint", "test"]) == first
    edit_pyproject(dev)
    assert dev.fingerprint(["lint", "test"]) != first


def test_nothing_is_installed_in_a_fresh_clone(dev):
    assert dev.installed() is None


@pytest.mark.parametrize("text", ["", "{", "3", "{}", '{"extras": 3, "fingerprint": "x"}'])
def test_a_damaged_stamp_counts_as_none(dev, uv, text):
    dev.ensure([])
    assert dev.installed() == set()
    dev.STAMP.write_text(text, encoding="utf-8")
    assert dev.installed() is None


def test_an_install_without_its_python_counts_as_none(dev, uv):
    dev.ensure(["test"])
    assert dev.installed() == {"test"}
    dev.PYTHON.unlink()
    assert dev.installed() is None


def test_a_moved_folder_is_installed_anew(dev, uv, load):
    dev.ensure(["test"])
    dev.ROOT.rename(dev.ROOT.parent / "moved")
    moved = load("moved")
    assert moved.PYTHON.exists()
    assert moved.installed() is None
    uv.take()
    moved.ensure([])
    assert [command[1] for command in uv.take()] == ["venv", "pip"]


# --- what is installed, and when ---


def test_pip_installs_into_an_environment_made_without_pip(dev, runner, capsys):
    dev.ensure([])
    assert runner.take() == [PIP_CHECK, pip_install(dev, ".")]
    assert "home" in (dev.VENV / "pyvenv.cfg").read_text(encoding="utf-8")
    assert dev.PYTHON.exists()
    assert not list(dev.VENV.rglob("site-packages/pip"))
    assert (
        capsys.readouterr().out == "Creating the environment in .venv (once, about a minute) ...\n"
    )


def test_uv_is_used_if_it_is_there(dev, uv):
    dev.ensure(["test"])
    python = str(dev.PYTHON)
    assert uv.take() == [
        ["/tools/uv", "venv", "--python", sys.executable, str(dev.VENV)],
        ["/tools/uv", "pip", "install", "--python", python, "--editable", ".[test]"],
    ]


def test_the_second_run_starts_at_once(dev, runner, capsys):
    dev.ensure(["test"])
    runner.take()
    capsys.readouterr()
    dev.ensure(["test"])
    dev.ensure([])
    assert runner.take() == []
    assert capsys.readouterr().out == ""


def test_extras_grow_within_the_same_environment(dev, runner, capsys):
    dev.ensure(["test"])
    kept = dev.VENV / "kept"
    kept.touch()
    runner.take()
    capsys.readouterr()
    dev.ensure(["lint"])
    assert runner.take() == [PIP_CHECK, pip_install(dev, ".[lint,test]")]
    assert capsys.readouterr().out == "Adding the packages this command needs to .venv (once) ...\n"
    assert kept.exists()
    assert dev.installed() == {"lint", "test"}
    dev.ensure(["test"])
    assert runner.take() == []


def test_a_changed_pyproject_makes_the_environment_anew(dev, runner):
    dev.ensure(["test"])
    left_over = dev.VENV / "left_over"
    left_over.touch()
    runner.take()
    edit_pyproject(dev)
    dev.ensure(["lint"])
    assert runner.take() == [PIP_CHECK, pip_install(dev, ".[lint]")]
    assert not left_over.exists()


def test_a_pyproject_changed_while_installing_is_noticed(dev, runner):
    runner.fail_if = lambda command: edit_pyproject(dev)  # None: it does not fail
    dev.ensure([])
    assert dev.STAMP.exists()
    assert dev.installed() is None


@pytest.mark.parametrize("before", [None, []], ids=["first", "growing"])
def test_an_interrupted_install_is_repeated(dev, runner, before):
    if before is not None:
        dev.ensure(before)

    def interrupt(command):
        if "install" in command:
            raise KeyboardInterrupt
        return False

    runner.fail_if = interrupt
    with pytest.raises(KeyboardInterrupt):
        dev.ensure(["test"])
    assert dev.installed() is None
    runner.fail_if = lambda command: False
    runner.take()
    dev.ensure(["test"])
    assert pip_install(dev, ".[test]") in runner.take()
    assert dev.installed() == {"test"}


@pytest.mark.skipif(os.name == "nt", reason="Windows goes without the lock")
def test_a_second_dev_waits_and_then_has_nothing_to_do(dev, runner):
    begun, go_on = threading.Event(), threading.Event()

    def slow(command):
        begun.set()
        go_on.wait(5)
        return False

    runner.fail_if = slow
    both = [threading.Thread(target=dev.ensure, args=(["test"],)) for _ in range(2)]
    both[0].start()
    assert begun.wait(5)
    both[1].start()
    both[1].join(0.05)
    waits = both[1].is_alive() and runner.commands == [PIP_CHECK]
    go_on.set()
    for thread in both:
        thread.join(5)
    assert waits
    assert runner.take() == [PIP_CHECK, pip_install(dev, ".[test]")]


def test_inside_the_environment_the_python_behind_it_installs(dev, runner, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(dev.VENV))
    monkeypatch.setattr(sys, "_base_executable", "/behind/python3")
    monkeypatch.setattr(dev.venv, "create", lambda folder, **options: folder.mkdir())
    dev.ensure([])
    assert {command[0] for command in runner.take()} == {"/behind/python3"}


# --- what goes wrong ---


def test_a_failed_install_shows_the_end_of_the_output_and_the_command(dev, runner):
    runner.fail_if = lambda command: "install" in command
    runner.output = "\n".join(f"line {number}" for number in range(1, 101))
    with pytest.raises(SystemExit) as stop:
        dev.ensure(["test"])
    message = stop.value.code  # a text: Python prints it and exits with 1
    shown = [line.strip() for line in message.splitlines() if line.startswith("    line")]
    assert shown == [f"line {number}" for number in range(81, 101)]
    assert "Installation failed" in message
    assert message.endswith("install --editable '.[test]'")
    assert dev.installed() is None


def test_a_missing_pip_is_named_before_anything_is_made(dev, runner):
    runner.fail_if = lambda command: command == PIP_CHECK
    with pytest.raises(SystemExit, match=r"apt install python3-pip\) or uv"):
        dev.ensure([])
    assert not dev.VENV.exists()


def test_an_old_python_gets_a_message(dev, runner, monkeypatch):
    monkeypatch.setattr(dev.platform, "python_version", lambda: "3.10.13")
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer, but this is 3\.10\.13"):
        dev.main(["demo"])
    assert runner.take() == []
    monkeypatch.setattr(sys, "version_info", (3, 11, 0, "final", 0))
    dev.check_python()


def test_an_old_python_can_read_the_file():
    tree = ast.parse((ROOT / "dev.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    for node in ast.walk(tree):  # annotations of today would fail when evaluated by an old Python
        assert getattr(node, "annotation", None) is None
        assert getattr(node, "returns", None) is None


# --- the commands ---


def test_help_names_every_command(dev):
    command = [sys.executable, str(ROOT / "dev.py"), "--help"]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert {"demo", "test", "lint"} <= set(dev.COMMANDS)
    for name, (about, _, _) in dev.COMMANDS.items():
        assert f"    {name:<10}{about}\n" in done.stdout


def test_no_command_shows_the_help(dev, runner, capsys):
    assert dev.main([]) == 2
    assert "commands:" in capsys.readouterr().out
    assert runner.take() == []


def test_every_extra_exists(dev):
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {extra for _, extras, _ in dev.COMMANDS.values() for extra in extras}
    assert needed <= set(project["optional-dependencies"])


@pytest.fixture
def ready(dev, runner, monkeypatch):
    """Make a dev.py whose environment is taken for made: `ready.extras` is what was asked for."""
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(dev, "ensure", lambda extras: setattr(dev, "extras", extras))
    return dev


def test_demo(ready, runner, capsys):
    assert ready.main(["demo"]) == 0
    assert ready.extras == []
    assert runner.take() == [[str(ready.PYTHON), "-m", "harfe.cli.commands.demo"]]
    assert capsys.readouterr().out == ""


def test_all_tests(ready, runner):
    assert ready.main(["test"]) == 0
    assert ready.extras == ["test"]
    start = [str(ready.PYTHON), "-m", "coverage"]
    assert runner.take() == [
        [*start, "run", "-m", "pytest"],
        [*start, "run", "--append", "-m", "pytest", "-m", "compiled", "tests"],
        [*start, "report", "--fail-under=95"],
    ]
    assert [e.get("NUMBA_DISABLE_JIT") for e in runner.environments] == [None, "1", None]
    assert all(e["PATH"] == os.environ["PATH"] for e in runner.environments)


def test_some_tests(ready, runner):
    arguments = ["-k", "not kernels", "tests/test_dev.py", "-x", "--co=a"]
    assert ready.main(["test", *arguments]) == 0
    assert ready.extras == ["test"]
    assert runner.take() == [[str(ready.PYTHON), "-m", "pytest", *arguments]]
    runner.fail_if = lambda command: True
    assert ready.main(["test", *arguments]) == 3


def test_lint(ready, runner):
    assert ready.main(["lint"]) == 0
    assert ready.extras == ["lint"]
    assert [command[2:] for command in runner.take()] == [
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["mypy"],
    ]


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_the_first_failing_step_ends_the_command(ready, runner, failing, capsys):
    runner.fail_if = lambda command: len(runner.commands) == failing
    assert ready.main(["test"]) == 3
    assert len(runner.take()) == failing
    assert capsys.readouterr().err == f"Failed: {ready.TEST_STEPS[failing - 1]}\n"


def test_arguments_that_nothing_takes_are_refused(ready, runner, capsys):
    with pytest.raises(SystemExit, match="2"):
        ready.main(["lint", "src"])
    assert "lint takes no arguments, but got: src" in capsys.readouterr().err
    assert runner.take() == []


def test_quick_leaves_out_the_slow_tests(ready, runner):
    assert ready.main(["test", "--quick", "tests/model"]) == 0
    python = [str(ready.PYTHON), "-m", "pytest"]
    assert runner.take() == [[*python, "--quiet", "-m", "not slow", "tests/model"]]


# --- .ci/run ---


@POSIX_ONLY
@pytest.mark.parametrize(
    ("there", "given", "expected"),
    [(True, None, "{data}"), (True, "/mine", "/mine"), (False, None, "none")],
    ids=["found", "given", "absent"],
)
def test_ci_runs_test_then_lint_and_finds_the_data(tmp_path, there, given, expected):
    repository = tmp_path / "repo"
    (repository / ".ci").mkdir(parents=True)
    script = shutil.copy(ROOT / ".ci" / "run", repository / ".ci")
    data = tmp_path / "shared" / "datasets"
    if there:
        data.mkdir(parents=True)
    tools = tmp_path / "tools"
    tools.mkdir()
    python = tools / "python3"
    python.write_text('#!/bin/sh\necho "$PWD $* ${HARFE_DATA-none}"\n', encoding="utf-8")
    python.chmod(0o755)
    # The real script, but whatever it would install is only written down.
    installer = tools / "apt-get"
    installer.write_text(f'#!/bin/sh\necho "$*" >> "{tmp_path}/installed"\n', encoding="utf-8")
    installer.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "HARFE_DATA")}
    environment["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    if given is not None:
        environment["HARFE_DATA"] = given
    options = {"cwd": tools, "env": environment, "text": True}
    out = subprocess.run([script], capture_output=True, check=True, **options).stdout
    value = expected.format(data=data)
    assert out == f"{repository} dev.py test {value}\n{repository} dev.py lint {value}\n"
    assert not (tmp_path / "installed").exists()

    python.write_text('#!/bin/sh\necho "$2"\n[ "$2" != test ]\n', encoding="utf-8")
    failed = subprocess.run([script], capture_output=True, **options)
    assert (failed.returncode, failed.stdout) == (1, "test\n")
