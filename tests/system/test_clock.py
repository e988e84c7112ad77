from __future__ import annotations

import datetime

from tests.support.simulated.hand_clock import HandClock
from tunegate.system.clock import SystemClock, today


def test_waivers_expire_by_the_day_in_utc_wherever_the_machine_is() -> None:
    clock = HandClock()
    clock.now = datetime.datetime(2026, 7, 31, 23, 59, 59, tzinfo=datetime.UTC).timestamp()
    assert today(clock) == datetime.date(2026, 7, 31)
    clock.now += 1
    assert today(clock) == datetime.date(2026, 8, 1)


def test_the_system_clock_goes_on_and_knows_the_year() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    assert clock.monotonic() >= before
    assert today(clock).year >= 2026
    assert abs(clock.time() - datetime.datetime.now(tz=datetime.UTC).timestamp()) < 60
