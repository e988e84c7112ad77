"""The store in memory keeps the contract."""

from __future__ import annotations

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import ObjectStore


class TestMemoryStore(MaintainedStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()
