"""Code in the checkout: modules, programs, libraries and settings that a pull request puts beside
its model, where Python, the loader or a library would look for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversary.pull_request import GATED, PullRequest
from tests.support.small_onnx import chain_model, save
from tests.support.workspace import COMPILED, Workspace

pytestmark = pytest.mark.e2e
COMMAND = str(Path(sys.executable).parent / "tunegate")
OURS = ("tunegate", "tunegate_cache", "tunegate_action")
IMPORTED = ("onnxruntime", "onnx", "numpy", "msgspec", "tvm", "pynvml", "cupti", "ray", "scipy")
AT_START = ("sitecustomize", "usercustomize", "json", "runpy", "contextlib", "_bootlocale")
PROGRAMS = ("git", "git-lfs", "gcc", "g++", "ld", "nvcc", "latex", "python3")
LIBRARIES = ("libnvidia-ml.so.1", "libcuda.so.1", "libstdc++.so.6", "libgomp.so.1")


class Planted:
    """A pull request whose code would leave a mark each time that it runs."""

    def __init__(self, directory: Path, config: str = GATED) -> None:
        self.pull_request = PullRequest(directory, config)
        self.root = self.pull_request.root
        self._marks = directory / "marks"
        self._marks.mkdir()

    @property
    def ran(self) -> set[str]:
        return {mark.name for mark in self._marks.iterdir()}

    def modules(self, *names: str) -> None:
        for name in names:
            mark = f"open({str(self._marks / name)!r}, 'w').close()\n"
            self.pull_request.write(f"{name}.py", mark)
            self.pull_request.write(f"{name}/__init__.py", mark)

    def programs(self) -> None:
        for name in PROGRAMS:
            script = f"#!/bin/sh\ntouch '{self._marks / name}'\nexit 1\n"
            self.pull_request.write(name, script).chmod(0o755)

    def libraries(self) -> None:
        source = self._marks.parent / "planted.c"
        source.write_text(
            "#include <stdio.h>\n__attribute__((constructor)) static void run(void) "
            f'{{ fclose(fopen("{self._marks / "library"}", "w")); }}\n'
        )
        for name in LIBRARIES:
            line = ["gcc", "-shared", "-fPIC", "-o", str(self.root / name), str(source)]
            subprocess.run(line, check=True)


def test_a_slow_model_fails_beside_code_that_poses_as_our_libraries(tmp_path: Path) -> None:
    """The command is `python -m tunegate`, which begins with the checkout on its path."""
    planted = Planted(tmp_path)
    planted.pull_request.make_twice_as_slow()
    planted.modules(*IMPORTED, "sitecustomize", "usercustomize")
    (planted.root / "matplotlibrc").write_bytes(b"backend: module://evil\n\xff\n")
    judged = planted.pull_request.judge()
    assert not planted.ran
    assert judged.exit_code == 1, judged.err
    assert judged.status() == "fail"


def test_the_command_imports_nothing_of_the_checkout_under_any_name(tmp_path: Path) -> None:
    planted = Planted(tmp_path, COMPILED)
    planted.modules(*OURS, *IMPORTED, *AT_START)
    done = asked(planted, COMMAND, "doctor", "-v")
    assert not planted.ran
    assert "wrote a database, built a function" in done.stdout


@pytest.mark.parametrize("entries", [".", ":", "{root}", "{root}/models"])
def test_a_path_of_modules_that_names_the_checkout_is_not_followed(
    tmp_path: Path, entries: str
) -> None:
    planted = Planted(tmp_path)
    planted.modules(*IMPORTED)
    for name in IMPORTED:
        (planted.root / f"{name}.py").rename(planted.root / "models" / f"{name}.py")
    path = entries.format(root=planted.root)
    done = asked(planted, COMMAND, "detect", "--base", "main", PYTHONPATH=path)
    assert not planted.ran
    assert done.returncode == 0, done.stderr


def test_a_checkout_that_is_named_is_no_place_to_import_from(tmp_path: Path) -> None:
    """The job works elsewhere, and has the checkout on its path."""
    planted = Planted(tmp_path)
    planted.modules(*IMPORTED, "yaml")
    planted.pull_request.workspace.commit()
    (tmp_path / "elsewhere").mkdir()
    at = ("env", f"--chdir={tmp_path / 'elsewhere'}", COMMAND, "detect", "--base", "main")
    done = asked(planted, *at, "--repository", str(planted.root), PYTHONPATH=f"{planted.root}")
    assert not planted.ran
    assert done.returncode == 0, done.stderr


def test_no_program_and_no_library_of_the_checkout_is_run(tmp_path: Path) -> None:
    """An empty entry is what
    `LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/cuda/lib64` often begins with."""
    planted = Planted(tmp_path, COMPILED)
    planted.pull_request.workspace.commit()
    planted.programs()
    planted.libraries()
    variables = {"PATH": f":{os.environ['PATH']}", "LD_LIBRARY_PATH": "./:/usr/local/cuda/lib64"}
    done = asked(planted, COMMAND, "doctor", "-v", **variables)
    assert planted.ran == set()
    assert "wrote a database" in done.stdout


def test_an_innocent_folder_may_have_the_name_of_a_library(tmp_path: Path) -> None:
    config = "models:\n  - path: onnx/*.onnx\ncache:\n  url: cache\n"
    workspace = Workspace(tmp_path / "w", config)
    for name in ("onnx", "tvm", "numpy"):
        (workspace.root / name).mkdir()
        (workspace.root / name / "__init__.py").write_text(f"'''Our {name} models.'''\n")
    save(chain_model(layers=2, width=16), workspace.root / "onnx" / "m.onnx")
    workspace.commit()
    done = workspace.tunegate("plan", "--base", "HEAD~1")
    assert done.returncode == 0, done.stderr


def asked(planted: Planted, *line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as a job runs it, in the checkout of the pull request."""
    planted.pull_request.workspace.commit()
    with planted.pull_request.workspace.started(*line, **variables) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(line, process.returncode, out, err)
