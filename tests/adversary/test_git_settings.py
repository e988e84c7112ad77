"""Git's own settings in the checkout: what a pull request commits, or what the repository's real
settings run on files of the checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.adversary.pull_request import MODEL, PullRequest
from tests.support.git_repository import Checkout

POINTER = "version https://git-lfs.github.com/spec/v1\n"
COMMIT = f"""\
tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
parent {"f" * 40}
author A <a@example.invalid> 1700000000 +0000
committer A <a@example.invalid> 1700000000 +0000

x
"""
pytestmark = pytest.mark.e2e


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
def test_a_directory_with_the_shape_of_a_repository_runs_nothing(
    tmp_path: Path, command: str
) -> None:
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
