"""The choice of a C compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunegate_whole_model.native.c_compiler import c_compiler


def test_the_first_on_the_path_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert c_compiler() is None
    for name in ("cc", "clang"):
        (tmp_path / name).touch(mode=0o755)
        assert c_compiler() == str(tmp_path / name)
