"""The rules of an object store. Subclass a contract, supply `store`, and every rule is checked."""

import pytest

from tunegate_cache.stores.conformance import OBJECT_RULES, POINTER_RULES, Rule
from tunegate_cache.stores.store import MaintainedStore, ObjectStore


class StoreContract:
    @pytest.mark.parametrize("rule", OBJECT_RULES, ids=lambda rule: rule.name)
    def test_a_rule_for_objects_is_kept(self, store: ObjectStore, rule: Rule[ObjectStore]) -> None:
        assert rule.problem(store, "contract") == ""


class MaintainedStoreContract(StoreContract):
    @pytest.mark.parametrize("rule", POINTER_RULES, ids=lambda rule: rule.name)
    def test_a_rule_for_pointers_is_kept(
        self, store: MaintainedStore, rule: Rule[MaintainedStore]
    ) -> None:
        assert rule.problem(store, "contract") == ""
