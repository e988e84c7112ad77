"""REST calls to a CI's API.

Answers are not trusted: their size and the total time are limited, no redirect is followed with the
token, and no text of an answer is shown.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPException, RemoteDisconnected
from typing import Any
from urllib.parse import urlsplit

from tunegate.ci.protocol import HostRefusedError
from tunegate_cache.certificates import untrusted_reason

_TOKEN = {401: " (the token is not valid)", 403: " (the token has no right to it)"}
FIRST_WAIT_SECONDS = 1.0
"""Doubled for each further wait, if an answer does not say how long."""
_MAX_REPEATS = 4
_STALLED_SECONDS = 10
LAST_TRY_SECONDS = 4.5
_TOTAL_SECONDS = 60
_MAX_BYTES = 16 * 2**20
_REPEATABLE = frozenset({"GET", "PUT", "PATCH", "DELETE"})


class RestRefusedError(HostRefusedError):
    """`status` is the answer's, 0 without one. `may_be_done` means that a request which must not be
    made twice may have been carried out."""

    def __init__(self, text: str, status: int = 0, *, may_be_done: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.may_be_done = may_be_done


class Patience:
    """The time that one job gives a hanging API. After a request without an answer there is one
    more short try, and then none: a job must not wait for each request. An answer resets it."""

    def __init__(self) -> None:
        self._lost = 0

    def limit(self, seconds: float) -> float:
        """Returns the most seconds for the next requests."""
        return 0.0 if self._lost > 1 else min(seconds, LAST_TRY_SECONDS) if self._lost else seconds

    def note(self, *, is_lost: bool) -> None:
        self._lost = self._lost + 1 if is_lost else 0


class RestApi:
    """Sends and receives JSON at one address, for up to a minute. `headers` may hold the token,
    `name` is the CI's for messages.

    A rate-limited request (429, or 403 with a limit) is repeated when the answer says; one that
    ended in a server error or a lost connection is repeated if it is repeatable.
    """

    def __init__(
        self,
        name: str,
        address: str,
        headers: Mapping[str, str],
        *,
        limit_seconds: float = _TOTAL_SECONDS,
        patience: Patience | None = None,
    ) -> None:
        """Raises HostRefusedError for an invalid address, and if the patience with it is
        exhausted."""
        self._name = name
        self._address = address.rstrip("/")
        self._headers = {**headers, "Content-Type": "application/json"}
        self._patience = patience or Patience()
        limit_seconds = self._patience.limit(limit_seconds)
        self._end = time.monotonic() + limit_seconds
        self._opener = urllib.request.build_opener(_NoRedirects)
        if not _is_web_address(self._address):
            raise HostRefusedError(f"{name} has no address that can be asked")
        if not limit_seconds:
            raise HostRefusedError(f"{name} did not answer twice, and is not asked again")

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        is_repeatable: bool | None = None,
    ) -> Any:  # noqa: ANN401 -- JSON
        """Returns the answer. Raises RestRefusedError, with the status and without the query.
        `is_repeatable` says that asking twice does no harm; by default the method decides."""
        request = f"{method} {path.partition('?')[0]}"
        repeatable = method in _REPEATABLE if is_repeatable is None else is_repeatable
        answer = self._send(method, path, body)
        for repeat in range(_MAX_REPEATS):
            wait = self._wait_before_repeat(answer, repeat, is_repeatable=repeatable)
            if wait is None:
                break
            time.sleep(wait)
            answer = self._send(method, path, body)
        return self._parse_answer(answer, request, is_repeatable=repeatable)

    def _send(self, method: str, path: str, body: object) -> _Answer:
        request = urllib.request.Request(  # noqa: S310 -- the scheme has been checked
            self._address + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers=self._headers,
        )
        answer = _Answer(self._opener, request)
        seconds_left = max(0.0, self._end - time.monotonic())
        answer.join(self._patience.limit(seconds_left))
        self._patience.note(is_lost=answer.is_alive() or answer.has_stalled)
        return answer

    def _wait_before_repeat(
        self, answer: _Answer, repeat: int, *, is_repeatable: bool
    ) -> float | None:
        """Returns the seconds to wait, None if a repeat would do harm or no time is left."""
        if answer.is_alive():
            return None
        is_worth_it = is_limited(answer.status, answer.headers) or (
            is_repeatable and (is_server_error(answer.status) or answer.was_lost)
        )
        if not is_worth_it:
            return None
        wait = wait_seconds(answer.headers, FIRST_WAIT_SECONDS * 2**repeat, time.time())
        return wait if time.monotonic() + wait < self._end else None

    def _parse_answer(self, answer: _Answer, request: str, *, is_repeatable: bool) -> Any:  # noqa: ANN401 -- JSON
        is_lost = answer.is_alive() or is_server_error(answer.status) or answer.was_lost
        unsure = is_lost and not is_repeatable
        refusal = self._refusal(answer, request)
        if refusal:
            raise RestRefusedError(refusal, answer.status, may_be_done=unsure)
        try:
            return json.loads(answer.body or b"null")
        except (ValueError, RecursionError):
            message = f"{self._name} answered {request} with no JSON"
            raise RestRefusedError(message, may_be_done=not is_repeatable) from None

    def _refusal(self, answer: _Answer, request: str) -> str:
        if answer.is_alive():
            return f"{self._name} did not answer {request} in time"
        if answer.status:
            why = "" if is_limited(answer.status, answer.headers) else _TOKEN.get(answer.status, "")
            return f"{self._name} answered {answer.status} to {request}{why}"
        if answer.problem:
            return f"{self._name} could not be asked ({answer.problem})"
        if len(answer.body) > _MAX_BYTES:
            return f"{self._name} answered {request} with more than is read"
        return ""


def _is_web_address(address: str) -> bool:
    try:
        return urlsplit(address).scheme in {"http", "https"}
    except ValueError:  # such as "http://["
        return False


class _Answer(threading.Thread):
    """An answer, read in its own thread: a server can send a byte now and then for ever."""

    def __init__(
        self, opener: urllib.request.OpenerDirector, request: urllib.request.Request
    ) -> None:
        super().__init__(daemon=True)
        self._opener, self._request = opener, request
        self.body = b""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.problem = ""
        self.was_lost = False
        self.has_stalled = False
        self.start()

    def run(self) -> None:
        try:
            with self._opener.open(self._request, timeout=_STALLED_SECONDS) as answer:
                self.body = answer.read(_MAX_BYTES + 1)
        except urllib.error.HTTPError as error:
            error.close()
            self.headers = {name.lower(): value for name, value in error.headers.items()}
            self.status = error.code
        except (OSError, ValueError, HTTPException) as error:
            self.was_lost = _is_of_answer(error)
            self.has_stalled = isinstance(getattr(error, "reason", error), TimeoutError)
            untrusted = untrusted_reason(error)
            self.problem = (
                f"its certificate is not trusted: {untrusted}; set SSL_CERT_FILE"
                if untrusted
                else type(error).__name__
            )


def _is_of_answer(error: Exception) -> bool:
    """Returns whether the request may have arrived: a host that does not answer never got it."""
    if isinstance(error, urllib.error.URLError):
        return isinstance(error.reason, ConnectionResetError | RemoteDisconnected | TimeoutError)
    return isinstance(error, OSError | HTTPException)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would take the token to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


# Waiting times between requests, as the answers demand. Pure. Limits come by `Retry-After`, or by
# the number of remaining requests and when it resets.

TOO_MANY = 429
FORBIDDEN = 403
_FIRST_SERVER_ERROR = 500
_PREFIXES = ("x-ratelimit-", "ratelimit-")


def is_limited(status: int, headers: Mapping[str, str]) -> bool:
    """Returns whether the answer says "not now" rather than "no". Such a request was not carried
    out."""
    if status == FORBIDDEN:
        return "retry-after" in headers or _is_used_up(headers)
    return status == TOO_MANY


def is_server_error(status: int) -> bool:
    return status >= _FIRST_SERVER_ERROR


def wait_seconds(headers: Mapping[str, str], backoff_seconds: float, now: float) -> float:
    """Returns the seconds that the answer demands, else `backoff_seconds`. `now` (seconds since
    1970) counts if the answer has no date. Header names are in lower case."""
    delay = _retry_after(headers.get("retry-after", ""), _date(headers, now))
    if delay is None and _is_used_up(headers):
        delay = _reset(headers, _date(headers, now))
    return backoff_seconds if delay is None else max(0.0, delay)


def _is_used_up(headers: Mapping[str, str]) -> bool:
    return any(headers.get(f"{prefix}remaining", "").strip() == "0" for prefix in _PREFIXES)


def _retry_after(text: str, now: float) -> float | None:
    """Parses seconds or a date."""
    seconds = _number(text)
    return seconds if seconds is not None else _since(text, now)


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    resets = (_number(headers.get(f"{prefix}reset", "")) for prefix in _PREFIXES)
    reset = next((each for each in resets if each is not None), None)
    return None if reset is None else reset - now + 1  # it is cut to whole seconds


def _date(headers: Mapping[str, str], now: float) -> float:
    """Returns the server's own time: the runner's clock may differ."""
    since = _since(headers.get("date", ""), now)
    return now if since is None else now + since


def _since(text: str, now: float) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    plain = text.strip()
    return float(plain) if plain.isascii() and plain.isdigit() and len(plain) < 12 else None  # noqa: PLR2004
