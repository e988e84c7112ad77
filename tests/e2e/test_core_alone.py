"""The main job without any extra: its imports are whole, and what is missing is one line."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.house.sources import ROOT, SOURCE_ROOTS
from tests.support.workspace import NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e

START = f"""
import sys, sysconfig
sys.path[:0] = {[str(ROOT / root) for root in SOURCE_ROOTS]!r}
sys.path.append({sysconfig.get_paths()["purelib"]!r})
nowhere = dict(sysconfig.get_paths(), purelib="/nowhere", platlib="/nowhere")
sysconfig.get_paths = lambda *_, **__: nowhere
from tunegate.cli.help_pages import is_answered
from tunegate.cli.main import main
code = 0 if is_answered(sys.argv[1:]) else main(sys.argv[1:])
core = {{"tunegate", "tunegate_action", "tunegate_cache"}}
loaded = {{name.partition(".")[0] for name in sys.modules if name.startswith("tunegate")}}
assert loaded <= core, loaded
sys.exit(code)
"""
"""No .pth file is read with `-S`, so that no extra that is installed here can be imported."""


def core(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-P", "-c", START, *arguments],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace(tmp_path_factory.mktemp("core") / "w", NOT_COMPILED)
    made.commit()
    return made


def test_a_run_with_nothing_to_do_passes(workspace: Workspace) -> None:
    done = core("run", "--base", "HEAD~1", cwd=workspace.root)
    assert done.returncode == 0, done.stderr


def test_help_shows_the_commands_of_the_core(workspace: Workspace) -> None:
    done = core("--help", cwd=workspace.root)
    assert done.returncode == 0, done.stderr
    assert "  run " in done.stdout


@pytest.mark.parametrize(
    ("key", "extra"), [("runtime: hybrid", "hybrid"), ("artifact: native", "whole-model")]
)
def test_a_configuration_that_needs_an_extra_says_what_to_install(
    tmp_path: Path, key: str, extra: str
) -> None:
    target = f"targets:\n  - name: cpu\n    {key}\n"
    made = Workspace(tmp_path / "w", NOT_COMPILED.partition("targets:")[0] + target)
    done = core("run", cwd=made.root)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert said.endswith(f'pip install "tunegate[{extra}]"')


def test_a_job_of_a_ci_that_is_not_installed_says_what_to_install(workspace: Workspace) -> None:
    for line, variables in ((("--ci", "azure"), {}), ((), {"TF_BUILD": "True"})):
        done = core("run", *line, cwd=workspace.root, **variables)
        assert done.returncode == 2
        (said,) = done.stderr.splitlines()
        assert said.endswith('pip install "tunegate[ci-hosts]"')
