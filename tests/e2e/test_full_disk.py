"""A disk that fills up while tunegate runs: one clear error, of the
machine and not of the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.simulated.small_disk import mounted_disk
from tests.support.workspace import Workspace

pytestmark = pytest.mark.e2e


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "small") as place:
        yield place


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
