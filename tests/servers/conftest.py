"""The server and the credentials of the cache's own tests."""

from __future__ import annotations

from tests.cache.conftest import credentials, s3_url

__all__ = ["credentials", "s3_url"]
