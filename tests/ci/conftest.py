"""Requests of these tests are tried again at once."""

import pytest

from tunegate.ci import http


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT_SECONDS", 0.001)
