"""A store that cannot be had says why, whatever it is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tunegate_cache.stores.store import MaintainedStore, StoreUnavailableError
from tunegate_cache.stores.store_kind import StoreAddress
from tunegate_cache.stores.unusable import unusable_kind


@pytest.mark.parametrize(
    "request_of",
    [
        lambda store: store.read("a"),
        lambda store: store.read_part("a", 0, 1),
        lambda store: store.read_pointer("a"),
        lambda store: store.names("a"),
        lambda store: store.write("a", b""),
        lambda store: store.move_pointer("a", b"", None),
        lambda store: store.delete("a"),
    ],
)
def test_every_request_fails_with_the_reason(
    request_of: Callable[[MaintainedStore], object],
) -> None:
    address = StoreAddress(url="x:y")
    kind = unusable_kind("the plugin is broken")
    assert kind.accepts(address)
    with pytest.raises(StoreUnavailableError, match=r"^the plugin is broken$"):
        request_of(kind.open(address))
