from __future__ import annotations

from tests.plugin.commands.cache.cache_shell import Shell


def test_what_the_cache_holds_is_counted_by_zone(shell: Shell) -> None:
    assert shell.cache("stats")["contents"] == []
    shell.publish("a", "b", "c")
    shell.cache("compact")
    shell.cache("gc")
    shell.publish("d", zone="dev/me")
    mine, main = shell.cache("stats")["contents"]
    assert (main["version"], main["segments"], main["archived"]) == (1, 0, 3)
    assert (main["records"], main["workloads"], main["corrupt"]) == (3, 3, 0)
    assert (mine["zone"], mine["segments"], mine["records"]) == ("dev/me", 1, 1)
    assert "dev/me" in shell.shown("stats")
