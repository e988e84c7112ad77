from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tunegate.cli import option as values


@given(some.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_a_number_is_read_as_it_is_written(number: float) -> None:
    assert values.not_negative(repr(number)) == number
    if number > 0:
        assert values.positive(repr(number)) == number


@given(some.integers(min_value=0, max_value=2**64 - 1))
def test_a_whole_number_is_read_as_it_is_written(number: int) -> None:
    assert values.whole(str(number)) == values.seed(str(number)) == number


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (values.positive, "0", "not a number above zero"),
        (values.positive, "inf", "not a number above zero"),
        (values.not_negative, "-1", "not zero or a number above it"),
        (values.percentage, "0", "not a number above zero"),
        (values.percentage, "101", "more than 100 percent"),
        (values.not_negative, "3m", "without a unit"),
        (values.whole, "-1", "not a whole number"),
        (values.whole, "1.0", "not a whole number"),
        (values.count, "0", "not 1 or more"),
        (values.seed, str(2**64), "not a number of 64 bits"),
        (values.hours, "-1", "not a number of hours"),
        (values.hours, "nan", "not a number of hours"),
        (values.date, "21.11.2026", "not a date such as 2026-11-21"),
        (values.shape, "x", "not INPUT=1,3,224,224"),
        (values.shape, "x=1,0", "not INPUT=1,3,224,224"),
        (values.shape, "=1", "not INPUT=1,3,224,224"),
    ],
)
def test_what_is_no_value_is_quoted_and_said(
    read: Callable[[str], object], text: str, said: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert str(caught.value).startswith(f'"{text}" is ')
    assert said in str(caught.value)


def test_a_date_is_of_utc() -> None:
    assert values.date("1970-01-02") == 24 * 3600
    assert values.date("1970-01-01T01:30") == 90 * 60


def test_the_name_of_an_input_may_have_an_equals_sign() -> None:
    assert values.shape("a=b=1,3") == ("a=b", (1, 3))
