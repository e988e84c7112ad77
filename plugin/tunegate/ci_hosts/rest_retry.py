"""Waiting times between requests to an API, as its answers demand. Pure.

Limits are said by `Retry-After`, or by how many requests are left and when there are new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

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
    """Returns the seconds that the answer demands, else `backoff_seconds`. `now` is in seconds
    since 1970, and counts where the answer has no date of its own. The names of headers are in
    lower case."""
    asked = _retry_after(headers.get("retry-after", ""), _date(headers, now))
    if asked is None and _is_used_up(headers):
        asked = _reset(headers, _date(headers, now))
    return backoff_seconds if asked is None else max(0.0, asked)


def _is_used_up(headers: Mapping[str, str]) -> bool:
    return any(headers.get(f"{prefix}remaining", "").strip() == "0" for prefix in _PREFIXES)


def _retry_after(text: str, now: float) -> float | None:
    """Seconds, or a date."""
    seconds = _number(text)
    return seconds if seconds is not None else _since(text, now)


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    found = (_number(headers.get(f"{prefix}reset", "")) for prefix in _PREFIXES)
    reset = next((each for each in found if each is not None), None)
    return None if reset is None else reset - now + 1  # it is cut to whole seconds


def _date(headers: Mapping[str, str], now: float) -> float:
    """The server's own clock: the one of the runner may differ."""
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
