"""The value that a test goes on with, where the code under test may give none."""

from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    assert value is not None
    return value
