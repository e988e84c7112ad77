"""Checks by doing whether a store keeps the protocol's promises: for `tunegate cache probe`, and
for the tests of a store's author."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.stores.object_rules import OBJECT_RULES
from tunegate_cache.stores.pointer_rules import POINTER_RULES
from tunegate_cache.stores.rule import Rule
from tunegate_cache.stores.store import MaintainedStore, StoreUnavailableError

STORE_RULES: tuple[Rule[MaintainedStore], ...] = (*OBJECT_RULES, *POINTER_RULES)


class GuaranteeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one promise. `needed` ones must be ok for the cache to work at all; without
    the others it works, and `detail` has the precautions."""

    name: str
    ok: bool
    needed: bool
    detail: str = ""


def probe(store: MaintainedStore) -> tuple[GuaranteeResult, ...]:
    """Writes under `ms1/probe/` and deletes it again. Raises StoreUnavailableError if the store
    does not answer; odd answers are findings."""
    place = f"{OBJECT_ROOT}/probe/{secrets.token_hex(8)}"
    try:
        return tuple(_findings(store, place))
    finally:
        with suppress(StoreUnavailableError):
            for name in store.names(f"{place}/"):
                store.delete(name)


def _findings(store: MaintainedStore, place: str) -> Iterator[GuaranteeResult]:
    for number, rule in enumerate(STORE_RULES):
        problem = rule.problem(store, f"{place}/{number}")
        parts = (problem, rule.advice) if problem else ()
        yield GuaranteeResult(
            name=rule.name,
            ok=not problem,
            needed=rule.is_needed,
            detail="; ".join(part for part in parts if part),
        )
    for remark in getattr(store, "remarks", ()):
        yield GuaranteeResult(
            name="implements what is asked", ok=False, needed=False, detail=remark
        )
