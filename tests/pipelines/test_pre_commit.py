"""The hook, by pre-commit itself, in a repository that is pushed for real."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.support.git_repository import Checkout, clone
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import NOT_COMPILED, Workspace

pytestmark = [pytest.mark.pipelines, pytest.mark.timeout(600)]

PRE_COMMIT = str(Path(sys.executable).parent / "pre-commit")
CONFIG = """\
repos:
  - repo: {hooks}
    rev: {commit}
    hooks:
      - id: tunegate-detect
"""


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """This project as it is here, at one commit."""
    copy = Checkout(tmp_path_factory.mktemp("hooks"))
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others"]
    names = subprocess.run([*listed, "--exclude-standard"], capture_output=True, check=True)
    copy.git("init", "-q")
    for name in filter(None, names.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy.path / name).parent.mkdir(parents=True, exist_ok=True)
            (copy.path / name).write_bytes((ROOT / name).read_bytes())
    copy.commit({}, "hooks")
    return copy


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of pre-commit, where the environment of the hook is made once."""
    return tmp_path_factory.mktemp("pre-commit")


def pushing(tmp_path: Path, hooks: Checkout) -> Checkout:
    """A clone with the hook, and a second model on a branch of two commits."""
    origin = Checkout(Workspace(tmp_path / "origin", NOT_COMPILED).root)
    origin.git("config", "receive.denyCurrentBranch", "ignore")
    config = CONFIG.format(hooks=hooks.path, commit=hooks.git("rev-parse", "HEAD"))
    origin.commit({".pre-commit-config.yaml": config.encode()})
    here = clone(origin, tmp_path / "here")
    here.git("checkout", "-q", "-b", "topic")
    for seed, name in ((1, "n"), (2, "o")):
        save(conv_model(seed=seed), here.path / "models" / f"{name}.onnx")
        here.commit({})
    return here


def run(here: Checkout, cache: Path, *line: str) -> subprocess.CompletedProcess[str]:
    return run_program(line, cwd=here.path, env={**os.environ, "PRE_COMMIT_HOME": str(cache)})


def test_the_manifest_is_valid() -> None:
    command = [PRE_COMMIT, "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    run_program(command, code=0)


def test_a_push_says_which_models_it_brings_and_leaves_nothing(
    tmp_path: Path, hooks: Checkout, cache: Path
) -> None:
    here = pushing(tmp_path, hooks)
    assert run(here, cache, PRE_COMMIT, "install", "--hook-type", "pre-push").returncode == 0
    before = sorted(path.name for path in here.path.iterdir())
    done = run(here, cache, "git", "push", "-q", "origin", "topic~1:refs/heads/topic")
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    assert "models/n.onnx: added" in shown
    assert "models/o.onnx" not in shown
    second = run(here, cache, "git", "push", "-q", "origin", "topic")
    shown = second.stdout + second.stderr
    assert "models/n.onnx: added" in shown, "a second push does not hide the first"
    assert "models/o.onnx: added" in shown
    onto = run(here, cache, "git", "push", "-q", "origin", "topic:main")
    assert "models/o.onnx: added" in onto.stdout + onto.stderr
    assert sorted(path.name for path in here.path.iterdir()) == before
    assert here.git("status", "--porcelain") == ""


def test_a_wrong_configuration_stops_the_push(tmp_path: Path, hooks: Checkout, cache: Path) -> None:
    here = pushing(tmp_path, hooks)
    here.commit({"tunegate.yaml": b"models: 7\n"})
    run(here, cache, PRE_COMMIT, "install", "--hook-type", "pre-push")
    done = run(here, cache, "git", "push", "-q", "origin", "topic")
    shown = done.stdout + done.stderr
    assert done.returncode == 1, shown
    assert "- exit code: 2" in shown


def test_the_hook_runs_by_hand(tmp_path: Path, hooks: Checkout, cache: Path) -> None:
    here = pushing(tmp_path, hooks)
    line = (PRE_COMMIT, "run", "--hook-stage", "manual", "--all-files")
    done = run(here, cache, *line)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "models/n.onnx: added" in done.stdout
    assert "merge base with origin/main" in done.stdout
