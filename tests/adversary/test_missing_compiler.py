"""A compiler that is missing, of another version, or broken: a run that was asked to compile
never goes on with what is left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.workspace import CONFIG, NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e
AUTO = CONFIG + "targets:\n  - name: cpu\n    threads: 1\n"
ANOTHER_VERSION = """\
import importlib.metadata as m
found = m.version
m.version = lambda name: "0.1.15" if name == "apache-tvm-ffi" else found(name)
"""


def beforehand(directory: Path, name: str, program: str) -> str:
    """What Python finds before what is installed."""
    file = directory / "first" / name
    file.parent.mkdir(parents=True)
    file.write_text(program)
    return str(directory / "first")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.modules['tvm'] = None", "the module tvm is missing"),
        (ANOTHER_VERSION, "apache-tvm-ffi is 0.1.15, and only"),
    ],
    ids=["missing", "another version"],
)
def test_a_run_that_compiles_says_what_to_install(tmp_path: Path, program: str, said: str) -> None:
    first = beforehand(tmp_path, "sitecustomize.py", program)
    workspace = Workspace(tmp_path / "w", AUTO)
    done = workspace.tunegate("run", PYTHONPATH=first)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "python -m pip install 'tunegate[tvm]'" in done.stderr
    assert not (workspace.root / ".tunegate" / "verdict.json").exists()


def test_a_run_that_does_not_compile_needs_no_compiler(tmp_path: Path) -> None:
    first = beforehand(tmp_path, "sitecustomize.py", "import sys; sys.modules['tvm'] = None")
    done = Workspace(tmp_path / "w", NOT_COMPILED).tunegate("plan", PYTHONPATH=first)
    assert done.returncode == 0, done.stderr


def test_a_compiler_that_dies_of_everything_is_the_machines_fault_not_the_models(
    tmp_path: Path,
) -> None:
    first = beforehand(tmp_path, "tvm/__init__.py", "import os; os._exit(1)")
    done = Workspace(tmp_path / "w", AUTO).tunegate("plan", PYTHONPATH=first)
    assert done.returncode == 4, done.stderr
    assert "the compiler does not work on this machine" in done.stderr


def test_without_a_linker_nothing_is_compiled(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "bash", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    done = Workspace(tmp_path / "w", AUTO).tunegate("run", PATH=str(programs))
    assert done.returncode == 4, done.stderr
    assert "to link with" in done.stderr
