from __future__ import annotations

from pathlib import Path

from tests.cli.handlers.cache_shell import Shell


def test_a_copy_in_a_directory_is_a_cache_and_comes_back(shell: Shell, tmp_path: Path) -> None:
    shell.publish("a")
    shell.cache("compact")
    shell.publish("b")
    copy = tmp_path / "copy"
    assert shell.cache("pull", str(copy))["copied"]["problems"] == []
    original = shell.url
    shell.url = str(copy)
    shell.configure("")
    assert shell.cache("stats")["contents"][0]["records"] == 2
    shell.publish("c")
    shell.url = original
    shell.configure("")
    assert shell.cache("push", str(copy))["copied"]["records"] == 3
    assert shell.cache("stats")["contents"][0]["records"] == 3
    assert "no such directory" in shell.shown("push", str(tmp_path / "none"), code=2)
