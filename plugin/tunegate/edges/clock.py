"""An implementation of `ports.Clock`."""

from __future__ import annotations

import datetime
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
