"""One S3 server for all tests of the cache."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.moto_server import BUCKET, CREDENTIALS, moto_server
from tunegate_cache.s3 import S3Store

_prefixes = itertools.count()


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(s3_url: str, credentials: None) -> S3Store:
    """An empty prefix of a bucket on a real server."""
    prefix = f"test-{next(_prefixes)}"
    return S3Store(BUCKET, prefix, endpoint_url=s3_url, region="us-east-1")
