"""REST calls to the API of a CI. The only HTTP of the product besides the cache's.

What answers is not trusted: there is a limit to the size of an answer and to the time of all of
them, no redirect is followed with the token, and no text of an answer is shown.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from tunegate.ci_hosts.protocol import HostRefusedError

_STALLED_SECONDS = 10
_TOTAL_SECONDS = 60
_MAX_BYTES = 16 * 2**20


class RestApi:
    """JSON to and from one address, for a minute. `headers` may hold the token,
    `name` is the CI's for messages."""

    def __init__(
        self,
        name: str,
        address: str,
        headers: Mapping[str, str],
        *,
        limit_seconds: float = _TOTAL_SECONDS,
    ) -> None:
        """Raises HostRefusedError for an address that is none."""
        self._name = name
        self._address = address.rstrip("/")
        self._headers = {**headers, "Content-Type": "application/json"}
        self._end = time.monotonic() + limit_seconds
        self._opener = urllib.request.build_opener(_NoRedirects)
        if not _is_web_address(self._address):
            raise HostRefusedError(f"{name} has no address that can be asked")

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 -- JSON
        """The answer. Raises HostRefusedError, with the status and without the query."""
        request = urllib.request.Request(  # noqa: S310 -- the scheme has been checked
            self._address + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers=self._headers,
        )
        answer = _Answer(self._opener, request)
        answer.join(max(0.0, self._end - time.monotonic()))
        return self._read(answer, f"{method} {path.partition('?')[0]}")

    def _read(self, answer: _Answer, asked: str) -> Any:  # noqa: ANN401 -- JSON
        if answer.is_alive():
            raise HostRefusedError(f"{self._name} did not answer {asked} in time")
        if answer.status:
            raise HostRefusedError(f"{self._name} answered {answer.status} to {asked}")
        if answer.problem:
            raise HostRefusedError(f"{self._name} could not be asked ({answer.problem})")
        if len(answer.body) > _MAX_BYTES:
            raise HostRefusedError(f"{self._name} answered {asked} with more than is read")
        try:
            return json.loads(answer.body or b"null")
        except (ValueError, RecursionError):
            raise HostRefusedError(f"{self._name} answered {asked} with no JSON") from None


def _is_web_address(address: str) -> bool:
    try:
        return urlsplit(address).scheme in {"http", "https"}
    except ValueError:  # such as "http://["
        return False


class _Answer(threading.Thread):
    """One answer, read beside who waits for it: a server can send a byte now and then for ever."""

    def __init__(
        self, opener: urllib.request.OpenerDirector, request: urllib.request.Request
    ) -> None:
        super().__init__(daemon=True)
        self._opener, self._request = opener, request
        self.body = b""
        self.status = 0
        self.problem = ""
        self.start()

    def run(self) -> None:
        try:
            with self._opener.open(self._request, timeout=_STALLED_SECONDS) as answer:
                self.body = answer.read(_MAX_BYTES + 1)
        except urllib.error.HTTPError as error:
            error.close()
            self.status = error.code
        except (OSError, ValueError, HTTPException) as error:
            self.problem = type(error).__name__


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token to another host."""

    def redirect_request(self, *_: object) -> None:
        return None
