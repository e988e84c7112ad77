from __future__ import annotations

from pathlib import Path

from tests.cli.handlers.cache_shell import Shell
from tunegate_cache.stores.files import FileStore


def test_damage_is_found_and_repaired(shell: Shell) -> None:
    shell.publish("a", "b")
    shell.cache("compact")
    shell.cache("gc")
    assert shell.cache("fsck")["found"] == []
    store = FileStore(Path(shell.url))
    index = next(name for name in store.names("") if "/idx/" in name)
    store.delete(index)
    shell.publish("c")
    segment = next(name for name in store.names("") if "/seg/" in name)
    (Path(shell.url) / segment).write_bytes(b"garbage")
    kinds = [flaw["kind"] for flaw in shell.cache("fsck", code=4)["found"]]
    assert kinds == ["snapshot", "segment"]
    assert "--repair" in shell.shown("fsck", code=4)
    assert shell.cache("fsck", "--repair")["left"] == []
    assert shell.cache("stats")["contents"][0]["records"] == 2
