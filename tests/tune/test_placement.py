from __future__ import annotations

from tunegate.system.machine.device_lock import Claim
from tunegate.tune.protocol import Placement, Slot


def test_the_device_of_a_place_is_that_of_its_first_slot() -> None:
    slots = tuple(
        Slot(claim=Claim(uuid=uuid, directory="/d", wait_seconds=1.0)) for uuid in ("a", "b")
    )
    assert Placement(slots=slots, limit_seconds=1.0).device == slots[0].claim
