"""An implementation of `ports.Clock`."""

from __future__ import annotations

import datetime
import hashlib
import secrets
import time

from tunegate.ports import Clock


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()


def today(clock: Clock) -> datetime.date:
    """The day by which waivers expire, in UTC."""
    return datetime.datetime.fromtimestamp(clock.time(), tz=datetime.UTC).date()


_: type[Clock] = SystemClock


# The number that everything random in a measurement comes from. It is new in each run: a model
# that knew its inputs, or the order of the launches, could be fast where it is measured and slow
# elsewhere.

BITS = 64


def new_seed() -> int:
    """A seed from the operating system."""
    return secrets.randbits(BITS)


def derived(seed: int, *purpose: str | int) -> int:
    """The seed of one purpose. It says nothing of another's: what a model sees of its inputs does
    not tell it the order of the blocks."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: BITS // 8])
