from __future__ import annotations

from email.utils import formatdate

import pytest

from tunegate.ci.http import is_limited, is_server_error, wait_seconds

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("status", "headers", "limited"),
    [
        (429, {}, True),
        (403, {}, False),
        (403, {"retry-after": "7"}, True),
        (403, {"x-ratelimit-remaining": "0"}, True),
        (403, {"x-ratelimit-remaining": "4999"}, False),
        (403, {"ratelimit-remaining": "0"}, True),
        (404, {"retry-after": "7"}, False),
        (200, {}, False),
    ],
)
def test_a_limit_is_told_from_a_refusal(
    status: int, headers: dict[str, str], limited: bool
) -> None:
    assert is_limited(status, headers) is limited


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 2.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": formatdate(NOW + 9, usegmt=True)}, 9.0),
        ({"retry-after": formatdate(NOW - 9, usegmt=True)}, 0.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 30)}, 31.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": str(int(NOW) + 30)}, 31.0),
        ({"x-ratelimit-remaining": "12", "x-ratelimit-reset": str(int(NOW) + 30)}, 2.0),
        ({"retry-after": "5", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, 5.0),
        ({"retry-after": "soon"}, 2.0),
        ({"retry-after": "-1"}, 2.0),
        ({"retry-after": "9" * 400}, 2.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "nan"}, 2.0),
    ],
)
def test_the_wait_is_what_the_headers_say(headers: dict[str, str], seconds: float) -> None:
    assert wait_seconds(headers, 2.0, NOW) == seconds


def test_the_clock_of_the_server_counts() -> None:
    headers = {
        "date": formatdate(NOW + 1000, usegmt=True),
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(int(NOW) + 1020),
    }
    assert wait_seconds(headers, 2.0, NOW) == 21.0


def test_a_server_error_is_one() -> None:
    assert [is_server_error(status) for status in (0, 404, 500, 503)] == [False, False, True, True]
