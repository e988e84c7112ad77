from __future__ import annotations

from tests.cli.handlers.cache_shell import Shell


def test_a_revoked_repository_is_served_no_more(shell: Shell) -> None:
    shell.publish("a", "b")
    shell.cache("compact")
    shell.cache("revoke", "--since", "2020-01-01")
    assert shell.cache("stats")["contents"][0]["records"] == 0
    assert "what is to be revoked" in shell.shown("revoke", code=2)
    assert "not a date" in shell.shown("revoke", "--since", "soon", code=2)
