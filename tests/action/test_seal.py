"""Files that an environment lost, or got, since it was complete."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tunegate_environment.seal import damage, seal


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    directory = tmp_path / "environment"
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "python").symlink_to("/usr/bin/env")
    (directory / "lib").mkdir()
    (directory / "lib64").symlink_to("lib")
    (directory / "lib" / "a.py").write_text("VALUE = 1\n")
    seal(directory)
    return directory


def test_what_was_just_sealed_used_and_moved_is_right(sealed: Path, tmp_path: Path) -> None:
    (sealed / "lib" / "__pycache__").mkdir()
    (sealed / "lib" / "__pycache__" / "a.pyc").touch()
    assert not damage(sealed)
    assert not damage(sealed.rename(tmp_path / "elsewhere"))


def test_a_copy_with_other_times_is_known_by_its_content(sealed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(sealed, copy, symlinks=True)
    for path in copy.rglob("*.py"):
        os.utime(path, (1, 1))
    before = (copy / ".complete").read_text()
    assert not damage(copy)
    assert (copy / ".complete").read_text() != before
    (copy / "lib" / "a.py").write_text("VALUE = 2\n")
    assert damage(copy) == "lib/a.py is not what was installed"


def edited_and_made_to_look_old(directory: Path) -> None:
    path = directory / "lib" / "a.py"
    status = path.stat()
    path.write_text("VALUE = 2\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def led_elsewhere(directory: Path) -> None:
    (directory / "bin" / "python").unlink()
    (directory / "bin" / "python").symlink_to("/usr/bin/yes")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edited_and_made_to_look_old, "lib/a.py is not what was installed"),
        (led_elsewhere, "bin/python is not what was installed"),
        (lambda at: (at / "lib" / "a.py").unlink(), "lib/a.py is missing"),
        (lambda at: (at / "bin" / "python").unlink(), "bin/python is missing"),
        (lambda at: (at / "lib" / "own.pth").touch(), "lib/own.pth was added"),
        (lambda at: (at / ".complete").unlink(), "it is not complete"),
        (lambda at: (at / ".complete").write_text('{"a": 1}'), "it is not complete"),
        (lambda at: (at / ".complete").write_text("[[]]"), "it is not complete"),
        (lambda at: (at / ".complete").write_bytes(b"\xff"), "it is not complete"),
    ],
)
def test_what_changed_is_named(sealed: Path, change: Callable[[Path], object], said: str) -> None:
    change(sealed)
    assert damage(sealed) == said
