"""Code in the checkout: modules, programs, libraries and settings that a pull request puts beside
its model, where Python, the loader or a library would look for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversary.pull_request import GATED, MODEL, PullRequest
from tests.support.git_repository import Checkout
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
    judged = planted.pull_request.judge()
    assert not planted.ran
    assert judged.exit_code == 1, judged.err
    assert judged.status() == "fail"


def test_the_command_imports_nothing_of_the_checkout_under_any_name(tmp_path: Path) -> None:
    planted = Planted(tmp_path, COMPILED)
    planted.modules(*OURS, *IMPORTED, *AT_START)
    done = run_job(planted, COMMAND, "doctor", "-v")
    assert not planted.ran
    assert "wrote a database, built a function" in done.stdout


@pytest.mark.parametrize("entries", [".", ":", "{root}", "{root}/models"])
def test_a_module_path_into_the_checkout_is_not_followed(tmp_path: Path, entries: str) -> None:
    planted = Planted(tmp_path)
    planted.modules(*IMPORTED)
    for name in IMPORTED:
        (planted.root / f"{name}.py").rename(planted.root / "models" / f"{name}.py")
    path = entries.format(root=planted.root)
    done = run_job(planted, COMMAND, "detect", "--base", "main", PYTHONPATH=path)
    assert not planted.ran
    assert done.returncode == 0, done.stderr


def test_a_checkout_that_is_named_is_no_place_to_import_from(tmp_path: Path) -> None:
    """The job works elsewhere, and has the checkout on its path."""
    planted = Planted(tmp_path)
    planted.modules(*IMPORTED, "yaml")
    planted.pull_request.workspace.commit()
    (tmp_path / "elsewhere").mkdir()
    at = ("env", f"--chdir={tmp_path / 'elsewhere'}", COMMAND, "detect", "--base", "main")
    done = run_job(planted, *at, "--repository", str(planted.root), PYTHONPATH=f"{planted.root}")
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
    done = run_job(planted, COMMAND, "doctor", "-v", **variables)
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
    workspace.tunegate("plan", "--base", "HEAD~1", code=0)


def run_job(planted: Planted, *line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as a job runs it, in the checkout of the pull request."""
    planted.pull_request.workspace.commit()
    with planted.pull_request.workspace.started(*line, **variables) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(line, process.returncode, out, err)


# Attacks by a cache that comes with the checkout.


def test_records_that_a_pull_request_commits_are_no_cache(pull_request: PullRequest) -> None:
    pull_request.write("cache/ms1/z/main/claims", "the fastest of all")
    pull_request.workspace.git("add", "-f", "cache")
    pull_request.make_twice_as_slow()
    assert "cache.url: cache: git tracks files in it" in pull_request.judge(code=2).err


def test_a_link_in_place_of_the_cache_is_unused(pull_request: PullRequest, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (pull_request.root / "cache").symlink_to(precious)
    pull_request.workspace.git("add", "-f", "cache")
    pull_request.make_twice_as_slow()
    assert "cache is a symbolic link of the checkout" in pull_request.judge(code=2).err
    assert list(precious.iterdir()) == []


def test_a_name_with_a_line_end_is_no_command_of_the_ci(pull_request: PullRequest) -> None:
    pull_request.write("models/a\n::error::told.onnx", "no model")
    pull_request.workspace.commit()
    said = pull_request.workspace.tunegate("detect", "--base", "main")
    assert not [line for line in (said.stdout + said.stderr).splitlines() if line.startswith("::")]
    assert "models/a ::error::told.onnx: unreadable" in said.stdout


# Git's own settings in the checkout: what a pull request commits, or what the repository's real
# settings run on files of the checkout.

POINTER = "version https://git-lfs.github.com/spec/v1\n"
COMMIT = f"""\
tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
parent {"f" * 40}
author A <a@example.invalid> 1700000000 +0000
committer A <a@example.invalid> 1700000000 +0000

x
"""


class Attack:
    """A pull request beside a program that leaves a mark, whatever starts it."""

    def __init__(self, directory: Path) -> None:
        self.pull_request = PullRequest(directory)
        self.root = self.pull_request.root
        self._mark = directory / "mark"
        self.program = directory / "marking"
        self.program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{self._mark}'\nexit 1\n")
        self.program.chmod(0o755)

    @property
    def ran(self) -> str:
        return self._mark.read_text() if self._mark.exists() else ""

    def plant_repository(self, name: str) -> Path:
        """Makes a bare repository whose head has a parent that must be fetched."""
        place = self.root / name
        bare = Checkout(self.root)
        bare.git("init", "-q", "--bare", str(place))
        body = self.root.parent / "commit"
        body.write_text(COMMIT)
        stored = bare.git("--git-dir", str(place), "hash-object", "-t", "commit", "-w", str(body))
        (place / "refs" / "heads" / "main").write_text(f"{stored}\n")
        (place / "HEAD").write_text("ref: refs/heads/main\n")
        settings = {
            "remote.origin.url": f"ext::{self.program} %S",
            "protocol.ext.allow": "always",
            "core.fsmonitor": str(self.program),
            "core.bare": "false",
            "core.worktree": str(self.root),
        }
        for key, value in settings.items():
            bare.git("--git-dir", str(place), "config", key, value)
        return place

    def commit(self) -> None:
        self.pull_request.workspace.commit()


@pytest.mark.parametrize("command", ["doctor", "detect"])
def test_a_directory_shaped_like_a_repository_runs_nothing(tmp_path: Path, command: str) -> None:
    """Named with --repository, as a matrix of packages does it: it is
    a directory of the checkout."""
    attack = Attack(tmp_path)
    place = attack.plant_repository("package")
    attack.commit()
    done = attack.pull_request.workspace.tunegate(command, "--repository", str(place))
    assert attack.ran == ""
    if command == "detect":
        assert "1 unchanged" in done.stdout, done.stderr


def test_the_command_in_such_a_directory_runs_nothing(tmp_path: Path) -> None:
    attack = Attack(tmp_path)
    place = attack.plant_repository("package")
    attack.commit()
    line = ("env", f"--chdir={place}", sys.executable, "-m", "tunegate", "detect")
    with attack.pull_request.workspace.started(*line) as process:
        out, err = process.communicate()
    assert attack.ran == ""
    assert "1 unchanged" in out, err


def test_what_is_configured_for_files_of_a_kind_runs_on_none_of_them(tmp_path: Path) -> None:
    """The settings are those of `git lfs install`, nbstripout and husky: which files are of the
    kind, and what is in the folder of hooks, the checkout says."""
    attack = Attack(tmp_path)
    attack.pull_request.write(".gitattributes", "* filter=planted diff=planted merge=planted\n")
    hooks = attack.root / ".husky"
    hooks.mkdir()
    for hook in ("reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (hooks / hook).symlink_to(attack.program)
    attack.commit()
    attack.pull_request.write("README.md", "not committed")
    settings = {
        "core.hooksPath": ".husky",
        "core.fsmonitor": ".husky/fsmonitor-watchman",
        "filter.planted.clean": str(attack.program),
        "filter.planted.process": str(attack.program),
        "diff.planted.textconv": str(attack.program),
        "diff.external": str(attack.program),
    }
    for key, value in settings.items():
        attack.pull_request.workspace.git("config", key, value)
    done = attack.pull_request.workspace.tunegate("doctor")
    assert attack.ran == ""
    assert "1 uncommitted" in " ".join(done.stdout.replace("│", " ").split())
    done = attack.pull_request.workspace.tunegate("detect", "--base", "main")
    assert attack.ran == ""
    assert "1 unchanged" in done.stdout, done.stderr


def test_a_replaced_model_is_judged_as_it_was_committed(tmp_path: Path) -> None:
    attack = Attack(tmp_path)
    attack.pull_request.make_twice_as_slow()
    attack.commit()
    attack.pull_request.workspace.git("replace", f"HEAD:{MODEL}", f"main:{MODEL}")
    done = attack.pull_request.workspace.tunegate("detect", "--base", "main")
    assert f"{MODEL}: modified, structural" in done.stdout, done.stdout + done.stderr


def test_the_checkout_does_not_say_which_server_gets_the_credentials(tmp_path: Path) -> None:
    """The attack is a git-lfs that would leave a mark."""
    attack = Attack(tmp_path)
    attack.pull_request.write(".lfsconfig", "[lfs]\n\turl = https://elsewhere.invalid/\n")
    attack.pull_request.write(MODEL, f"{POINTER}oid sha256:{'0' * 64}\nsize 9\n")
    attack.commit()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git-lfs").symlink_to(attack.program)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = attack.pull_request.workspace.tunegate("detect", "--base", "main", PATH=path)
    assert attack.ran == ""
    assert "git lfs fetch" in done.stdout + done.stderr
