"""Bytecode that cannot be kept is told, with the command that makes it."""

from __future__ import annotations

import compileall
from pathlib import Path

import pytest

from tunegate.system.machine.packages import bytecode_check

PACKAGE = "tunegate_test_package"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that nobody has imported yet."""
    found = tmp_path / PACKAGE
    found.mkdir()
    (found / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return found


def test_a_package_that_is_not_installed_is_no_matter() -> None:
    assert bytecode_check("tunegate_no_such_package") is None


def test_what_the_first_import_will_keep_is_fine(place: Path) -> None:
    found = bytecode_check(PACKAGE, {})
    assert found is not None
    assert (found.warns, found.detail) == (False, f"kept once {PACKAGE} is imported")


def test_a_variable_that_forbids_it_is_a_warning_until_the_command_was_run(place: Path) -> None:
    forbidding = {"PYTHONDONTWRITEBYTECODE": "1"}
    found = bytecode_check(PACKAGE, forbidding)
    assert found is not None
    assert found.ok
    assert found.warns
    assert found.detail.endswith(f"Run: python -m compileall -q {place}")
    assert compileall.compile_dir(place, quiet=1)
    again = bytecode_check(PACKAGE, forbidding)
    assert again is not None
    assert (again.warns, again.detail) == (False, f"kept for {PACKAGE}")


def test_a_folder_that_nobody_may_write_to_is_one_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    found = bytecode_check(PACKAGE, {})
    assert found is not None
    assert found.warns
