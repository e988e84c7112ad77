"""The command that makes the developers' environment, with a real uv and a real index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.servers.package_index import locked, serving_packages, small_wheel, uv_wheel

ACTION = Path(__file__).resolve().parents[2] / "action"


def made(lock: Path, index: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tunegate_environment", str(lock), str(lock.parent / "made")],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(lock.parent),
            "PYTHONPATH": str(ACTION),
            "PIP_INDEX_URL": index,
        },
        capture_output=True,
        text=True,
        cwd=lock.parent,
        check=False,
    )


def test_an_environment_has_what_its_lock_says(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    packed_uv = uv_wheel(tmp_path)
    (wheels / packed_uv.name).symlink_to(packed_uv)
    (tmp_path / "installer.lock").write_text(locked(packed_uv))
    (tmp_path / "tiny.lock").write_text(locked(small_wheel(wheels)))
    with serving_packages(wheels) as index:
        done = made(tmp_path / "tiny.lock", index.address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tunegate: tiny.lock is installed in " in done.stdout
    python = tmp_path / "made" / "bin" / "python"
    subprocess.run([python, "-c", "import tinydep"], check=True)


def test_an_environment_that_cannot_be_made_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "installer.lock").write_text(f"uv==0 --hash=sha256:{'0' * 64}\n")
    (tmp_path / "tiny.lock").write_text(f"tinydep==0 --hash=sha256:{'0' * 64}\n")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with serving_packages(wheels) as index:
        done = made(tmp_path / "tiny.lock", index.address)
    assert done.returncode == 4
    assert done.stderr.startswith("tunegate: tiny.lock could not be installed: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "made" / "lib").exists()
