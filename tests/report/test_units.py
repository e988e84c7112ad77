from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.measurements import Interval
from tunegate.report import units
from tunegate.wording import milliseconds


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (12.44, "+12.4%"), (-3.0, "−3.0%"), (0.0, "0.0%"), (-0.04, "0.0%")],
)
def test_a_change_has_a_sign_unless_nothing_is_left_of_it(value: float | None, text: str) -> None:
    assert units.percent(value) == text


def test_an_interval_names_its_unit_once() -> None:
    change = Interval(low=-1.2, center=0.3, high=1.1)
    assert units.interval(change) == "−1.2 to +1.1%"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.31, "0.3 s"),
        (59.6, "1 min"),
        (112.4, "1 min 52 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_a_duration_is_read_without_counting(seconds: float | None, text: str) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "–"),
        (0, "0.00 USD"),
        (2e-5, "under 0.0001 USD"),
        (0.01, "0.0100 USD"),
        (12.5, "12.50 USD"),
    ],
)
def test_money_shows_less_than_a_cent(usd: float | None, text: str) -> None:
    assert units.money(usd) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (48_200, "48 kB"), (5_120_000, "5.1 MB")]
)
def test_a_size_is_in_decimal_units(size: int, text: str) -> None:
    assert units.size(size) == text


@given(st.floats(min_value=1e-4, max_value=1e7))
def test_a_time_is_rounded_by_less_than_a_thousandth_or_a_nanosecond(value: float) -> None:
    number, unit = milliseconds(value).split()
    back = float(number) * {"µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]
    assert back == pytest.approx(value, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (None, "–"),
        (0.0, "0 J"),
        (0.000_041_2, "41.2 µJ"),
        (0.25, "250 mJ"),
        (999.0, "999 J"),
        (36_000.0, "36 kJ"),
        (5.25e6, "5.25 MJ"),
        (7.0e9, "7000 MJ"),
    ],
)
def test_energy_is_in_joules(joules: float | None, text: str) -> None:
    assert units.energy(joules) == text
