import datetime

from tests.support.simulated.hand_clock import HandClock
from tunegate.system.clock import BITS, SystemClock, derive_seed, new_seed, today


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


def test_a_new_seed_is_nobodys_guess() -> None:
    seeds = {new_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**BITS for seed in seeds)
    assert max(seeds) >= 2 ** (BITS - 4)


def test_a_purpose_has_a_seed_of_its_own() -> None:
    purposes = [("launch", 1), ("launch", 2), ("pair", 1), ("launch", 1, 2), ("alone",)]
    assert len({derive_seed(1, *purpose) for purpose in purposes}) == len(purposes)
    assert derive_seed(1, "alone") == derive_seed(1, "alone") != derive_seed(2, "alone")
