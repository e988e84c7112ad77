"""The Action's steps and their first Python hand on no place that depends on the workspace."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.programs import run_program
from tunegate_environment.children import run_child

ROOT = Path(__file__).resolve().parents[2]
BOOTSTRAP = ROOT / "action" / "bootstrap.py"
SHOWS = (
    "import os, sys; "
    "print(os.getcwd(), os.environ.get('LD_LIBRARY_PATH'), file=sys.stderr); exit(1)"
)


def test_what_it_starts_gets_no_place_that_depends_on_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variables = {"PATH": ":/bin:x", "LD_LIBRARY_PATH": ":./;/lib", "PYTHONHOME": ".", "HOME": "/h"}
    with pytest.raises(subprocess.CalledProcessError) as ended:
        run_child([sys.executable, "-I", "-c", SHOWS], variables)
    assert ended.value.stderr == "/ /lib\n"
    ours = runpy.run_path(str(BOOTSTRAP))["our_own"](variables)
    expected = {"PATH": "/bin", "LD_LIBRARY_PATH": "/lib", "HOME": "/h"}
    assert {name: ours[name] for name in ("PATH", "LD_LIBRARY_PATH", "HOME")} == expected
    assert "PYTHONHOME" not in ours


def test_the_steps_forget_such_places_before_they_start_anything(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$PATH $LD_LIBRARY_PATH"\nexit 4\n')
    python.chmod(0o755)
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]:
        (tmp_path / "step.sh").write_text(step["run"])
        done = run_program(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(tmp_path / "step.sh")],
            env={
                "PATH": ":bin:/usr/bin:/bin:",
                "LD_LIBRARY_PATH": "./lib;:/usr/local/lib:",
                "TUNEGATE_PYTHON": str(python),
                "GITHUB_ACTION_PATH": str(ROOT),
            },
        )
        assert done.stdout == "/usr/bin:/bin /usr/local/lib\n"
