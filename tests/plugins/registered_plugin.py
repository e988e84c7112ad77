"""A package that registers an entry point, as an installer leaves it in an environment."""

import sys
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


def nothing_installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the core alone: `place` is empty, and no extra's sources are on the path."""
    install_into(place, monkeypatch)
    paths = {**sysconfig.get_paths(), "purelib": str(place), "platlib": str(place)}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    # A path that was replaced would not come back where a test prepends to it besides: pytest then
    # keeps what it finds at the first call, and puts that into the list that was there before.
    monkeypatch.syspath_prepend(str(place))
    sys.path[:] = [entry for entry in sys.path if Path(entry).parent.name != "extras"]
