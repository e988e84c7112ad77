from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.models.reference.error_samples import TellingElements, agreement


def floats(*numbers: float) -> Any:
    return np.array([numbers], dtype="float32")


@pytest.mark.parametrize(
    ("reference", "tells"),
    [
        (floats(0, 1, 0), False),
        (floats(0, 1, 0.5), True),
        (floats(np.nan, np.inf), False),
        (floats(), False),
    ],
)
def test_elements_at_0_or_1_and_those_that_are_no_number_tell_nothing(
    reference: Any, tells: bool
) -> None:
    assert TellingElements().tell(reference, reference) is tells


def test_a_bound_that_only_one_side_has_tells_an_error() -> None:
    assert TellingElements().tell(floats(0, 0.9), floats(0, 1))
    assert not TellingElements().tell(floats(0, 1), floats(0, 1))


def test_the_bound_of_a_clip_is_known_from_the_input_before() -> None:
    elements = TellingElements()
    assert elements.tell(floats(-3, 6, 2), floats(-3, 6, 2))
    assert not elements.tell(floats(6, -3, -3), floats(6, -3, -3))
    assert elements.varies
    assert (elements.elements, elements.at_bounds) == (6, 3)


def test_what_is_always_the_same_does_not_vary_be_it_nan() -> None:
    elements = TellingElements()
    for _ in range(3):
        elements.tell(floats(np.nan, 2), floats(np.nan, 2))
    assert not elements.varies


@given(st.lists(st.floats(2, 100, width=16), min_size=3, max_size=9, unique=True))
def test_numbers_apart_from_every_bound_always_tell(numbers: list[float]) -> None:
    elements = TellingElements()
    for factor in (1.0, 1.5, 0.75):
        row = floats(*numbers) * np.float32(factor)
        assert elements.tell(row, row)


@pytest.mark.parametrize(
    ("got", "reference", "agrees"),
    [
        (floats(0.1, 0.9), floats(0.2, 0.8), True),
        (floats(0.9, 0.1), floats(0.2, 0.8), False),
        (floats(0.9, 0.1), floats(0.5, 0.5), None),
        (floats(0, 1), floats(0, 1), None),
        (floats(0, 0), floats(0, 0), None),
        (floats(np.nan, 1), floats(np.nan, 1), None),
        (floats(1, 2, 3), floats(1, 2), False),
        (floats(1), floats(1), None),
    ],
)
def test_a_row_without_one_largest_value_has_no_place_to_agree_on(
    got: Any, reference: Any, agrees: bool | None
) -> None:
    assert agreement(got, reference) is agrees


def test_of_several_rows_those_count_that_tell() -> None:
    reference = np.concatenate([floats(0, 0), floats(0.2, 0.8)])
    assert agreement(np.concatenate([floats(0, 9), floats(0.1, 0.9)]), reference) is True
    assert agreement(np.concatenate([floats(0, 0), floats(0.9, 0.1)]), reference) is False
