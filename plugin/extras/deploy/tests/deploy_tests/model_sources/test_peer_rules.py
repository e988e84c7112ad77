from __future__ import annotations

import pytest

from tunegate.errors import ConfigError
from tunegate_deploy.model_sources.peer_rules import PeerRules, is_loopback_name

METADATA = ("169.254.169.254", "[fe80::1]", "::ffff:169.254.169.254", "fd00:ec2::254")


@pytest.mark.parametrize("host", METADATA)
def test_metadata_is_never_asked(host: str) -> None:
    with pytest.raises(ConfigError, match="cloud metadata"):
        PeerRules().require_allowed(host)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("8.8.8.8", "10.0.0.1"),
        ("8.8.8.8", "127.0.0.1"),
        ("10.0.0.1", "::1"),
        ("8.8.8.8", "fd12::1"),
    ],
)
def test_a_redirect_leads_into_no_other_network(first: str, then: str) -> None:
    rules = PeerRules()
    rules.require_allowed(first)
    with pytest.raises(ConfigError, match="redirect into another network"):
        rules.require_allowed(then)


@pytest.mark.parametrize(
    ("first", "then"), [("8.8.8.8", "9.9.9.9"), ("10.0.0.1", "10.9.0.1"), ("127.0.0.1", "::1")]
)
def test_other_redirects_are_followed(first: str, then: str) -> None:
    rules = PeerRules()
    rules.require_allowed(first)
    rules.require_allowed(then)


def test_this_machine_is_known_by_its_names() -> None:
    names = ("localhost", "127.0.0.1", "127.8.9.1", "::1", "example.com", "10.0.0.1")
    assert [is_loopback_name(name) for name in names] == [True, True, True, True, False, False]
