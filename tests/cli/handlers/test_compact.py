from __future__ import annotations

from tests.cli.handlers.cache_shell import Shell


def test_segments_are_gathered_once(shell: Shell) -> None:
    shell.publish("a", "b", "c")
    (group,) = shell.cache("compact")["groups"]
    assert (group["status"], group["segments"], group["records"]) == ("compacted", 3, 3)
    assert shell.cache("compact")["groups"][0]["status"] == "nothing new"
    assert "nothing" in shell.shown("compact")


def test_a_zone_that_is_named_is_the_only_one_compacted(shell: Shell) -> None:
    shell.publish("a")
    shell.publish("a", zone="dev/me")
    groups = shell.cache("compact", "--zone", "dev/me")["groups"]
    assert [group["group"]["zone"] for group in groups] == ["dev/me"]
