from __future__ import annotations

import pytest

from tunegate_cache.maintenance.request_prices import usd_of
from tunegate_cache.stores.s3 import S3

PRICES = S3.usd_per_1000_requests or {}


def test_writing_and_listing_cost_more_than_reading() -> None:
    assert usd_of({"get": 1000}, PRICES) == pytest.approx(0.0004)
    assert usd_of({"put": 1000, "list": 1000}, PRICES) == pytest.approx(0.01)
    assert usd_of({}, PRICES) == 0


def test_deleting_is_free() -> None:
    assert usd_of({"delete": 10**6}, PRICES) == 0
