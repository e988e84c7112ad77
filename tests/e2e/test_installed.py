"""The wheel, installed in an environment that lies in a checkout: its
children find it there, too."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.e2e


def test_a_wheel_works_beside_the_models_that_it_checks(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write(".gitignore", ".venv\n")
    save(conv_model(), workspace.root / "models" / "new.onnx")
    workspace.commit()
    environment = workspace.root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # What it depends on is that of these tests; a path alone brings no editable installation.
    (site / "others.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    done = subprocess.run(
        [environment / "bin" / "python", "-m", "tunegate", "plan", "--base", "HEAD~1"],
        cwd=workspace.root,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "3 tasks" in done.stdout  # as its compiler child says
