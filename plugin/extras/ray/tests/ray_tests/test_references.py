from __future__ import annotations

from tests.tune.test_workers import request

from tunegate_ray.door import Ray
from tunegate_ray.references import References


class Shelf(Ray):
    """Stores nothing anywhere."""

    def __init__(self) -> None:
        self.stored_count = 0

    def put(self, value: bytes) -> object:
        self.stored_count += 1
        return ("stored", value)


def test_a_reference_is_known_to_all_requests_of_its_task() -> None:
    references = References(Shelf())
    assert references.of(request(1, "")) == b""
    references.keep(request(1, ""), b"numbers")
    assert references.of(request(2, "")) == ("stored", b"numbers")
