"""The store keeps every rule that tunegate's cache leans on."""

from pathlib import Path

import pytest
from sqlite_store import SqliteStore

from tunegate_cache.stores.conformance import STORE_RULES, Rule
from tunegate_cache.stores.store import MaintainedStore


@pytest.mark.parametrize("rule", STORE_RULES, ids=lambda rule: rule.name)
def test_the_store_keeps_the_rule(tmp_path: Path, rule: Rule[MaintainedStore]) -> None:
    assert rule.problem(SqliteStore(tmp_path / "cache.db"), "test") == ""
