"""What is read where it stands in a working tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tunegate.edges.regular_file import opened_inside


def test_a_file_is_read_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(b"x")
    found = opened_inside(tmp_path, "a/b/f")
    assert found is not None
    with found:
        assert found.read() == b"x"


@pytest.mark.parametrize("path", ["link", "directory/f", "to/the/outside", "a", "pipe", "nothing"])
def test_what_is_no_file_or_lies_behind_a_link_is_none(tmp_path: Path, path: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    (outside / "the").mkdir(parents=True)
    for file in (root / "a" / "f", outside / "the" / "outside"):
        file.write_bytes(b"x")
    (root / "link").symlink_to("a/f")
    (root / "directory").symlink_to("a")
    (root / "to").symlink_to(outside)
    os.mkfifo(root / "pipe")
    assert opened_inside(root, path) is None


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"x")
    (tmp_path / "root").symlink_to("real")
    found = opened_inside(tmp_path / "root", "f")
    assert found is not None
    found.close()
