from __future__ import annotations

from tests.cli.handlers.cache_shell import Shell


def test_what_a_compaction_holds_is_deleted_once_and_a_dry_run_deletes_nothing(
    shell: Shell,
) -> None:
    shell.publish("a", "b", "c")
    assert shell.cache("gc")["groups"][0]["segments"] == 0
    shell.cache("compact")
    would = shell.cache("gc", "--dry-run")
    assert (would["dry_run"], would["groups"][0]["segments"]) == (True, 3)
    assert "would be deleted" in shell.shown("gc", "--dry-run")
    assert shell.cache("gc")["groups"][0]["segments"] == 3
    assert shell.cache("gc")["groups"][0]["segments"] == 0


def test_a_zone_that_is_named_is_the_only_one_collected(shell: Shell) -> None:
    shell.publish("a")
    shell.publish("a", zone="dev/me")
    groups = shell.cache("gc", "--zone", "dev/me")["groups"]
    assert [group["group"]["zone"] for group in groups] == ["dev/me"]
