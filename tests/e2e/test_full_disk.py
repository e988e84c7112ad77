"""A disk that fills up while tunegate runs: one clear error, of the machine and not of the model."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workspace import Workspace

pytestmark = pytest.mark.e2e


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("free_bytes", [0, 8 * 1024, 24 * 1024])
def test_a_run_without_room_blames_the_disk(
    tmp_path: Path, small_disk: Path, free_bytes: int
) -> None:
    repository = Workspace(tmp_path / "repository")
    usage = os.statvfs(small_disk)
    (small_disk / "other").write_bytes(bytes(usage.f_bavail * usage.f_frsize - free_bytes))
    done = repository.tunegate("run", "--out", str(small_disk / "out"))
    assert done.returncode == 4, done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("tunegate: error:")]
    assert f"a disk is full, that of {small_disk / 'out'}" in error
    assert "Traceback" not in done.stderr
