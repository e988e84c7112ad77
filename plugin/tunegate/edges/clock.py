"""ports.Clock."""

from __future__ import annotations

import time

from tunegate.ports import Clock


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()


_: type[Clock] = SystemClock
