from __future__ import annotations

from tunegate.ci.protocol import Secret


def test_a_token_never_shows_itself() -> None:
    token = Secret("ghs_secret")
    assert "ghs_secret" not in f"{token} {token!r} {[token]}"
    assert token.reveal() == "ghs_secret"
    assert token
    assert not Secret("")
