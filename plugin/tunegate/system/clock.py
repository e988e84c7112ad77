"""An implementation of `ports.Clock`."""

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
    """Returns the day (UTC) by which waivers expire."""
    return datetime.datetime.fromtimestamp(clock.time(), tz=datetime.UTC).date()


_: type[Clock] = SystemClock


# The seed of everything random in a measurement, new in each run: a model that knew its inputs, or
# the order of launches, could be fast where it is measured and slow elsewhere.

BITS = 64


def new_seed() -> int:
    """Returns a seed from the operating system."""
    return secrets.randbits(BITS)


def derive_seed(seed: int, *purpose: str | int) -> int:
    """Returns the seed of one purpose, which does not reveal another's: a model's inputs must not
    tell it the order of the blocks."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: BITS // 8])
