"""Decides where a download may be redirected. The author of an answer must not choose what a runner
connects to: clouds hand out credentials at special addresses."""

from __future__ import annotations

import ipaddress

from tunegate.errors import ConfigError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
"""The metadata services of large clouds that are not link-local."""


def is_loopback_name(host: str) -> bool:
    """Returns whether the host, as written in an address, is this machine."""
    found = _address(host)
    return host.lower() == "localhost" if found is None else found.is_loopback


class PeerRules:
    """The peers of one download, the user's first. If that is public, a redirect must not lead into
    the runner's network."""

    def __init__(self) -> None:
        self._first: _Address | None = None

    def require_allowed(self, host: str) -> None:
        """Raises ConfigError for a forbidden peer. Called before a connection if the host is a
        number, and after it for the peer."""
        found = _address(host)
        if found is None:
            return
        if found.is_link_local or found in _METADATA or found.is_multicast:
            message = f"{found}: an address of cloud metadata, from which no model is taken."
            raise ConfigError(message)
        if self._first is None:
            self._first = found
        into_host = found.is_loopback and not self._first.is_loopback
        into_network = self._first.is_global and not found.is_global
        if into_host or into_network:
            message = f"{found}: a redirect into another network, which is not followed."
            raise ConfigError(message)


def _address(host: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
