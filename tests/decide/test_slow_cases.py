from __future__ import annotations

import msgspec
import pytest

from tests.support.measured_cells import make_launches
from tunegate.artifacts.measurements import Launch
from tunegate.decide.slow_modes import slow_cases

CUT = 0.1


def starts(*cases_and_effects: tuple[int, float]) -> list[Launch]:
    made = make_launches([effect for _, effect in cases_and_effects])
    return [
        msgspec.structs.replace(each, case=case)
        for each, (case, _) in zip(made, cases_and_effects, strict=True)
    ]


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (((3, 0.2), (1, 0.0), (2, 0.01), (3, 0.3)), (3,)),
        (((3, 0.2), (1, 0.2), (2, 0.01)), (1, 3)),
        (((1, 0.0), (2, 0.0)), ()),
    ],
)
def test_cases_that_are_slow_at_each_start_are_named(
    seen: tuple[tuple[int, float], ...], found: tuple[int, ...]
) -> None:
    assert slow_cases(starts(*seen), CUT) == found


@pytest.mark.parametrize(
    "seen",
    [
        ((1, 0.2), (2, 0.2)),
        ((1, 0.2), (2, 0.2), (2, 0.0), (3, 0.0)),
        ((0, 0.2), (0, 0.0)),
    ],
    ids=["all are slow", "a quick case was slow once", "there are no cases"],
)
def test_what_no_case_explains_is_chance(seen: tuple[tuple[int, float], ...]) -> None:
    assert slow_cases(starts(*seen), CUT) == ()


def test_a_case_whose_mean_alone_is_slow_is_slow() -> None:
    slow, quick = starts((2, 0.0), (1, 0.0))
    slow = msgspec.structs.replace(slow, mean_effect=0.2)
    assert slow_cases([slow, quick], CUT) == (2,)
