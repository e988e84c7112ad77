"""The place of one worker: the slots of its device, and its limits."""

from __future__ import annotations

import msgspec

from tunegate.edges.machine.device_claim import Claim


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that is held while timing. Where several are used at once, each has cores of its
    own."""

    claim: Claim
    cores: tuple[int, ...] = ()


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The place of one worker: the slots of its device, and variables for its process.
    `measuring_seconds` is how long building, and measuring once the device is ours, may each take;
    `limit_seconds` all of it. With `has_kernel_clock` the device says itself how long kernels
    took."""

    slots: tuple[Slot, ...]
    variables: dict[str, str] = {}
    measuring_seconds: float | None = None
    limit_seconds: float
    has_kernel_clock: bool = False

    @property
    def device(self) -> Claim:
        """Returns the claim that tells the device from another one."""
        return self.slots[0].claim
