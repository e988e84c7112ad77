"""What becomes of requests that are late, fail, or find nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.tuning_records import TARGET
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.protocol.read_trouble import ReadTrouble
from tunegate_cache.protocol.target_requests import StaleListingError, TargetRequests
from tunegate_cache.stores.store import ObjectNotFoundError, StoreUnavailableError


def requests(trouble: ReadTrouble, monotonic: Callable[[], float] = lambda: 0.0) -> TargetRequests:
    return TargetRequests(
        target=TARGET, deadline=5.0, monotonic=monotonic, trouble=trouble.of(TARGET)
    )


def missing() -> bytes:
    raise ObjectNotFoundError("gone")


def failing() -> bytes:
    raise StoreUnavailableError("no answer")


@pytest.fixture
def trouble() -> ReadTrouble:
    return ReadTrouble(CacheStatistics())


@pytest.mark.parametrize("request_of", [missing, failing])
def test_what_cannot_be_had_costs_only_itself(
    trouble: ReadTrouble, request_of: Callable[[], bytes]
) -> None:
    answers = requests(trouble).answers({"a": request_of, "b": lambda: b"x"})
    assert list(answers) == [("b", b"x")]
    assert trouble.miss_reason("w", TARGET) == "store-unavailable"


def test_a_missing_object_is_no_trouble_where_it_can_be_listed_again(trouble: ReadTrouble) -> None:
    with pytest.raises(StaleListingError):
        list(requests(trouble).repeatable().answers({"a": missing}))
    assert trouble.miss_reason("w", TARGET) == "absent"


def test_answers_that_come_after_the_deadline_are_left(trouble: ReadTrouble) -> None:
    late = requests(trouble, lambda: 6.0)
    assert late.is_over()
    assert list(late.answers({"a": lambda: b"x"})) == []
    assert trouble.miss_reason("w", TARGET) == "store-unavailable"


def test_trouble_with_one_target_is_none_with_another(trouble: ReadTrouble) -> None:
    trouble.of(TARGET).corrupt("a segment", "it is short")
    assert trouble.miss_reason("w", TARGET) == "corrupt"
    assert trouble.miss_reason("w", "another") == "absent"
