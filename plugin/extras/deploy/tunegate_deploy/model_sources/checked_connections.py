"""Connections that check their peer before they send anything: a name may lead anywhere."""

from __future__ import annotations

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection

from tunegate_deploy.model_sources.peer_rules import PeerRules


def checked_pool(
    scheme: str, host: str, port: int | None, timeout: Timeout, peers: PeerRules
) -> HTTPConnectionPool:
    """Returns a pool for one host, whose connections raise ConfigError for a forbidden peer."""
    if scheme == "http":
        plain = HTTPConnectionPool(host, port, timeout=timeout)
        plain.ConnectionCls = _checked_http(peers)
        return plain
    pool = HTTPSConnectionPool(host, port, timeout=timeout)
    pool.ConnectionCls = _checked_https(peers)
    return pool


def _checked_http(peers: PeerRules) -> type[HTTPConnection]:
    class Checked(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            peers.require_allowed(self.sock.getpeername()[0])

    return Checked


def _checked_https(peers: PeerRules) -> type[HTTPSConnection]:
    class Checked(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            peers.require_allowed(self.sock.getpeername()[0])

    return Checked
