from __future__ import annotations

import pytest

from tunegate_cache.stores.rule import raises

NOTHING: dict[str, str] = {}


def test_only_the_exception_that_is_asked_for_counts() -> None:
    assert raises(KeyError, lambda: NOTHING["a"])
    assert raises(LookupError, lambda: NOTHING["a"])
    assert not raises(KeyError, lambda: None)
    with pytest.raises(KeyError):
        raises(ValueError, lambda: NOTHING["a"])
