"""The kinds of files that are read."""

from __future__ import annotations

import pytest

from tunegate_upgrades.lock_files.kinds import lock_kind, read_lock
from tunegate_upgrades.lock_files.lock import LockFileError


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("requirements.txt", "requirements"),
        ("a/requirements/gpu.lock", "requirements"),
        ("sub/uv.lock", "uv"),
        ("pylock.toml", "pylock"),
        ("pylock.gpu.toml", "pylock"),
        ("poetry.lock", "poetry"),
        ("app/pdm.lock", "pdm"),
        ("docker/Dockerfile.gpu", "dockerfile"),
        ("serve.dockerfile", "dockerfile"),
        ("Containerfile", "dockerfile"),
    ],
)
def test_the_name_of_a_file_says_what_it_is(path: str, kind: str) -> None:
    assert lock_kind(path) == kind


@pytest.mark.parametrize("path", ["Pipfile.lock", "pyproject.toml", "setup.py"])
def test_a_file_of_no_kind_that_is_read_says_which_are(path: str) -> None:
    with pytest.raises(LockFileError, match=rf"watch: {path} is of no kind .*uv\.lock"):
        lock_kind(path)


@pytest.mark.parametrize(
    "path", ["pixi.lock", "conda-lock.yml", "environment.yml", "conda-linux-64.lock"]
)
def test_packages_of_conda_are_told_for_what_they_are(path: str) -> None:
    with pytest.raises(LockFileError, match=rf"watch: {path} is not read: packages of conda"):
        lock_kind(path)


def test_each_kind_is_read_by_its_reader() -> None:
    def nothing(path: str) -> str:
        raise AssertionError(path)

    assert set(read_lock("r.txt", "x==1\n", nothing).pins) == {"x"}
    assert read_lock("uv.lock", "version = 1\n", nothing).pins == {}
    assert read_lock("pylock.toml", 'lock-version = "1.0"\n', nothing).pins == {}
