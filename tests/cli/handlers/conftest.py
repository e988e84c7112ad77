"""The cache that the commands of this folder are typed at."""

from pathlib import Path

import pytest

from tests.cli.handlers.cache_shell import Shell


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TUNEGATE_SIGNING_KEY", raising=False)
    return Shell(tmp_path / "w", capsys, str(tmp_path / "cache"))
