"""A real S3 server for whoever needs one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.moto_server import CREDENTIALS, moto_server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
