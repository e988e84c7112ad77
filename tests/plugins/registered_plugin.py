"""A package that registers an entry point, as an installer leaves it in an environment."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest


def register(place: Path, package: str, group: str, name: str, value: str) -> None:
    """`package` is as in the folder's name, such as "a_store-1.2"."""
    folder = place / f"{package}.dist-info"
    folder.mkdir(parents=True)
    listed = f"[console_scripts]\nx = y:z\n[{group}]\n{name}={value}\n"
    (folder / "entry_points.txt").write_text(listed)


def install_into(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this interpreter install into `place` from now on."""
    paths = {**sysconfig.get_paths(), "purelib": str(place)}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
