"""What was found out of a kernel's schedules holds for what was given then, and for the same
schedule alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.compiler.opening import KnownSchedules

NAMES, SCHEDULES = "ab", "st"


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 1)), max_size=8))
def test_what_is_given_again_is_not_chosen_again(asked: list[tuple[str, int]]) -> None:
    known, last = KnownSchedules[object](), dict[str, tuple[int, object]]()
    for name, records in asked:
        choice = known.chosen(name, records, object)
        if name in last and last[name][0] == records:
            assert choice is last[name][1]
        else:
            assert all(choice is not other for _, other in last.values())
        last[name] = records, choice


@given(
    st.dictionaries(st.tuples(st.sampled_from(NAMES), st.sampled_from(SCHEDULES)), st.booleans())
)
def test_a_schedule_that_was_tried_keeps_its_verdict_and_no_other_has_it(
    tried: dict[tuple[str, str], bool],
) -> None:
    known = KnownSchedules[object]()
    for (name, schedule), slower in tried.items():
        known.tried(name, schedule, slower=slower)
    for name in NAMES:
        for schedule in SCHEDULES:
            assert known.is_slower(name, schedule) == tried.get((name, schedule))
    known.forgive(NAMES[:1])
    for (name, schedule), slower in tried.items():
        assert known.is_slower(name, schedule) == (slower and name not in NAMES[:1])
