"""An installation that is not whole, an interpreter or a machine that lacks something: never exit
code 1, which would be read as a regression."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.workspace import NOT_COMPILED, Workspace

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.e2e

Damage = Callable[[Path], object]


def lost(name: str) -> Damage:
    return lambda sources: (sources / name).unlink()


def overwritten(name: str, text: str) -> Damage:
    return lambda sources: (sources / name).write_text(text)


def beforehand(program: str) -> Damage:
    """What a machine lacks, or does, before our first line runs."""
    return overwritten("../sitecustomize.py", program)


DAMAGES: dict[str, tuple[Damage, int]] = {
    "a module of ours is missing": (lost("cli/main.py"), 4),
    "the exit codes are missing": (lost("errors.py"), 4),
    "the list of machines is missing": (lost("cli/supported_machine.py"), 4),
    "a module that one command imports is missing": (lost("cli/handlers/steps.py"), 4),
    "a module is cut off": (overwritten("cli/parse.py", "def parse("), 4),
    "a module is binary": (overwritten("config.py", "\0\0"), 4),
    "a module ends the process": (overwritten("cli/command_tree.py", "raise SystemExit(1)"), 70),
    "a module is interrupted": (overwritten("cli/command_tree.py", "raise KeyboardInterrupt"), 130),
    "a module recurses": (overwritten("cli/command_tree.py", "def f(): f()\nf()"), 70),
    "a dependency is missing": (beforehand("import sys; sys.modules['msgspec'] = None"), 4),
    "fcntl is missing": (beforehand("import sys; sys.modules['fcntl'] = None"), 4),
    "memory is out": (overwritten("cli/command_tree.py", "raise MemoryError"), 4),
    "the excepthook breaks too": (
        beforehand("import sys; sys.excepthook = lambda *_: 1 / 0; sys.modules['yaml'] = None"),
        4,
    ),
    "macOS": (beforehand("import platform; platform.system = lambda: 'Darwin'"), 4),
    "musl": (beforehand("import platform; platform.libc_ver = lambda *_: ('', '')"), 4),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("damaged") / "workspace", NOT_COMPILED)


@pytest.mark.parametrize(("damage", "code"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_installation_is_one_line_and_no_regression(
    tmp_path: Path, workspace: Workspace, damage: Damage, code: int
) -> None:
    sources = tmp_path / "sources" / "tunegate"
    shutil.copytree(
        ROOT / "plugin" / "tunegate", sources, ignore=shutil.ignore_patterns("__pycache__")
    )
    damage(sources)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tunegate", "detect", "--out", str(tmp_path / "out")],
        cwd=workspace.root,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "sources"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("tunegate: error: ")
    assert done.stderr.count("\n") == 1


def test_a_working_directory_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    leaves = f'cd "{gone}" && rmdir "{gone}" && exec "{sys.executable}" -P -m tunegate detect'
    done = subprocess.run(
        ["bash", "-c", leaves], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith("tunegate: error: ")


def test_without_git_that_is_said(tmp_path: Path, workspace: Workspace) -> None:
    done = workspace.tunegate("detect", "--out", str(tmp_path / "out"), PATH="/nowhere")
    assert (done.returncode, done.stderr) == (
        4,
        "tunegate: error: git: not found on the PATH. Install git.\n",
    )


def test_the_actions_own_damage_is_an_annotation(tmp_path: Path) -> None:
    for name in ("action", "plugin", "cache"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "plugin" / "tunegate" / "cli" / "entry.py").unlink()
    for module in (
        "action/tunegate_action/main.py",
        "plugin/tunegate/cli/main.py",
        "action/tunegate_action/entry.py",
    ):
        (tmp_path / module).unlink()
        done = subprocess.run(
            [sys.executable, "-P", str(tmp_path / "action" / "bootstrap.py"), "act"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{tmp_path}/action:{tmp_path}/plugin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (4, "")
        assert done.stdout.startswith("::error title=tunegate::")
