from __future__ import annotations

import pytest

from tunegate_cache.stores.store_kind import StoreAddress


def test_an_address_has_the_parts_of_its_url() -> None:
    parts = StoreAddress(url="s3://bucket/a/prefix").parts
    assert (parts.scheme, parts.netloc, parts.path) == ("s3", "bucket", "/a/prefix")


def test_an_address_that_is_no_url_has_no_parts() -> None:
    with pytest.raises(ValueError, match="IPv6"):
        _ = StoreAddress(url="s3://[bucket").parts
