"""The model sources' only use of HTTP: bounded, with checked hosts, and never sending credentials
where an answer redirects."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Timeout, proxy_from_url
from urllib3.exceptions import HTTPError

from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate_cache.certificates import untrusted_reason
from tunegate_deploy.model_sources.addressed_model import PAGE
from tunegate_deploy.model_sources.checked_connections import checked_pool
from tunegate_deploy.model_sources.peer_rules import PeerRules, is_loopback_name

_CONNECT_SECONDS, _STALLED_SECONDS = 10.0, 30.0
_ATTEMPTS, _FIRST_PAUSE_SECONDS = 3, 0.5
_MAX_REDIRECTS = 5
_PIECE_BYTES = 2**18
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BUSY = frozenset({429, 500, 502, 503, 504})
_REFUSED = frozenset({401, 403})
_ABSENT = frozenset({404, 410})
_DONE = frozenset({200, 201, 202})
_HOST = re.compile(r"[\w.:%-]+")


class WebRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to an address whose query may be secret."""

    url: str
    headers: Mapping[str, str] = {}
    method: str = "GET"
    body: bytes | None = None


class WebAnswer:
    """A server's answer. `headers` are by lower-case name."""

    def __init__(self, answer: BaseHTTPResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.headers.items()}

    def pieces(self) -> Iterator[bytes]:
        """Yields the body as sent: compressed content stays so, and cannot grow."""
        while piece := self._answer.read1(_PIECE_BYTES, decode_content=False):
            yield piece

    def body(self, most_bytes: int) -> bytes:
        """Returns the whole body. Raises EnvironmentUnfitError if it is longer."""
        found = bytearray()
        for piece in self.pieces():
            found += piece
            if len(found) > most_bytes:
                message = f"an answer of more than {most_bytes:,} bytes"
                raise EnvironmentUnfitError(message)
        return bytes(found)


@contextmanager
def web_answer(request: WebRequest) -> Iterator[WebAnswer]:
    """Yields the answer to one request, whatever its status; redirects of a GET or HEAD are
    followed. The `Authorization` header goes only to the request's own host. Raises ConfigError for
    a forbidden address, EnvironmentUnfitError for a server that does not answer in time."""
    try:
        with _follow_redirects(request, PeerRules()) as answer:
            yield WebAnswer(answer)
    except (HTTPError, OSError) as error:
        shown = shown_url(request.url)
        message = f"{shown}: no whole answer ({type(error).__name__}). Try again."
        raise EnvironmentUnfitError(untrusted_server(error, shown) or message) from None


def untrusted_server(error: BaseException, shown: str, variable: str = "SSL_CERT_FILE") -> str:
    """Returns the message for a server whose certificate is not trusted, '' for other errors. The
    client reads `variable`."""
    reason = untrusted_reason(error)
    if reason is None:
        return ""
    return (
        f"{shown}: the server's certificate is not trusted ({reason}). Set {variable} to a file "
        "with the certificate authority that signed it."
    )


def require_success(answer: WebAnswer, address: str) -> None:
    """Raises ConfigError for what the user can change, EnvironmentUnfitError for other failures."""
    if answer.status in _REFUSED:
        message = f"{address}: refused ({answer.status}). Give credentials: {PAGE}"
        raise ConfigError(message)
    if answer.status in _ABSENT:
        message = f"{address}: not there ({answer.status})."
        raise ConfigError(message)
    if answer.status not in _DONE:
        raise EnvironmentUnfitError(f"{address}: the server answered {answer.status}. Try again.")


def shown_url(url: str) -> str:
    """Returns the address without a user and without its query, which may be a signature."""
    parts = _parts(url)
    return SplitResult(parts.scheme, _host_of(parts), parts.path, "", "").geturl()


def require_web_address(url: str) -> SplitResult:
    """Raises ConfigError for an address with credentials in it, or unencrypted over a network."""
    parts = _parts(url)
    if "@" in parts.netloc:
        message = (
            f"{shown_url(url)}: credentials in an address show in logs. "
            f"Put them into ~/.netrc ({PAGE})."
        )
        raise ConfigError(message)
    host = parts.hostname or ""
    if not _HOST.fullmatch(host):
        message = f"{shown_url(url)}: an address without a host that can be asked."
        raise ConfigError(message)
    is_plain = parts.scheme == "http" and is_loopback_name(host)
    if parts.scheme != "https" and not is_plain:
        message = f"{shown_url(url)}: not encrypted. Write https://."
        raise ConfigError(message)
    return parts


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        message = "an address that is none: its host or port cannot be read."
        raise ConfigError(message) from None
    return parts


def _host_of(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


@contextmanager
def _follow_redirects(request: WebRequest, peers: PeerRules) -> Iterator[BaseHTTPResponse]:
    for _ in range(_MAX_REDIRECTS + 1):
        parts = require_web_address(request.url)
        with (
            closing(_pool(parts, peers)) as pool,
            closing(_send_with_retries(pool, request, parts)) as answer,
        ):
            target = _redirect_of(answer, request)
            if target is None:
                yield answer
                return
        request = _redirected_request(urljoin(request.url, target), request)
    message = f"{shown_url(request.url)}: more than {_MAX_REDIRECTS} redirects."
    raise EnvironmentUnfitError(message)


def _redirect_of(answer: BaseHTTPResponse, request: WebRequest) -> str | None:
    if request.method in {"GET", "HEAD"} and answer.status in _REDIRECTS:
        return answer.headers.get("location")
    return None


def _redirected_request(url: str, request: WebRequest) -> WebRequest:
    """Returns the request to a redirect's destination: without credentials if the host is
    another."""
    headers = request.headers
    if _parts(url)[:2] != _parts(request.url)[:2]:
        headers = {name: value for name, value in headers.items() if name != "Authorization"}
    return msgspec.structs.replace(request, url=url, headers=headers)


def _send_with_retries(
    pool: HTTPConnectionPool, request: WebRequest, parts: SplitResult
) -> BaseHTTPResponse:
    """Repeats a request if a server is busy or unreachable."""
    for attempt in range(1, _ATTEMPTS):
        try:
            answer = _send(pool, request, parts)
        except (HTTPError, OSError):
            answer = None
        if answer is not None:
            if answer.status not in _BUSY:
                return answer
            answer.close()
        time.sleep(_FIRST_PAUSE_SECONDS * attempt)
    return _send(pool, request, parts)


def _send(pool: HTTPConnectionPool, request: WebRequest, parts: SplitResult) -> BaseHTTPResponse:
    path = parts.path or "/"
    return pool.urlopen(
        request.method,
        f"{path}?{parts.query}" if parts.query else path,
        body=request.body,
        headers={"Accept-Encoding": "identity", "User-Agent": "tunegate", **request.headers},
        redirect=False,
        retries=False,
        preload_content=False,
        decode_content=False,
    )


def _pool(parts: SplitResult, peers: PeerRules) -> HTTPConnectionPool:
    host, timeout = parts.hostname or "", Timeout(connect=_CONNECT_SECONDS, read=_STALLED_SECONDS)
    peers.require_allowed(host)
    proxy = _proxy_for(parts)
    if proxy:
        manager = proxy_from_url(proxy, timeout=timeout)
        return manager.connection_from_host(host, parts.port, parts.scheme)
    return checked_pool(parts.scheme, host, parts.port, timeout, peers)


def _proxy_for(parts: SplitResult) -> str | None:
    """Returns the proxy of the usual variables (HTTPS_PROXY, NO_PROXY) for this host, if any."""
    host = parts.hostname or ""
    if is_loopback_name(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)
