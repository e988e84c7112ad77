"""The environment that uv gets of this machine, and its complaints."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from tunegate.errors import ConfigError
from tunegate_upgrades.environments.uv import Uv, UvError


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in uv's place."""
    file = tmp_path / "bin" / "uv"
    file.parent.mkdir()
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(file.parent))
    return file


def stands_in(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_uv_that_is_not_installed_says_how_to_install_it(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere:.")
    with pytest.raises(ConfigError, match="pip install uv"):
        Uv((), program.parent)


def test_no_secret_and_no_setting_of_a_job_reaches_uv(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET_TOKEN", "UV_CONSTRAINT", "UV_PRERELEASE", "UV_INDEX", "PYTHONPATH"):
        monkeypatch.setenv(name, "set-by-the-job")
    stands_in(program, f"env > {tmp_path}/seen; pwd >> {tmp_path}/seen; echo $@ >> {tmp_path}/seen")
    Uv(("https://a.example/simple", "https://b.example"), tmp_path / "c").resolve({"a": "1"}, {})
    seen = (tmp_path / "seen").read_text()
    assert "set-by-the-job" not in seen
    assert "\n/\n" in seen
    for word in ("--no-config", "--only-binary :all:", "--default-index https://a.example/simple"):
        assert word in seen


def test_without_indexes_the_place_of_packages_is_this_machine_s(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    stands_in(program, f"env > {tmp_path}/seen")
    Uv((), tmp_path / "c").resolve({"a": "1"}, {})
    assert "UV_DEFAULT_INDEX=https://mirror.example/simple" in (tmp_path / "seen").read_text()


def test_a_complaint_is_one_line_without_a_password(program: Path, tmp_path: Path) -> None:
    stands_in(
        program, "echo '  × No solution' >&2; echo '  ╰─▶ https://u:pw@e.example/x' >&2; exit 1"
    )
    with pytest.raises(UvError) as caught:
        Uv((), tmp_path / "c").resolve({"a": "1"}, {})
    assert str(caught.value) == "No solution https://***@e.example/x"


def test_a_program_that_cannot_start_is_told(program: Path, tmp_path: Path) -> None:
    program.write_bytes(os.urandom(64))
    program.chmod(0o755)
    with pytest.raises(UvError, match="cannot be run"):
        Uv((), tmp_path / "c").resolve({"a": "1"}, {})
