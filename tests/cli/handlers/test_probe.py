from __future__ import annotations

from tests.cli.handlers.cache_shell import Shell


def test_a_directory_keeps_every_promise_that_is_needed(shell: Shell) -> None:
    found = shell.cache("probe")
    assert found["location"] == shell.url
    needed = [finding for finding in found["findings"] if finding["needed"]]
    assert needed
    assert all(finding["ok"] for finding in needed)
    assert "yes" in shell.shown("probe")
