"""A clock that goes on when a test says so."""


class HandClock:
    """`ports.Clock`; add to `now`."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now
