from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.verdicts import Waiver
from tunegate.review.waivers import file_problems, waiver_problems

VALID = {
    "model": "m.onnx",
    "target": "cpu",
    "ceiling-percent": 8,
    "expires": "2026-07-31",
    "issue": "i",
    "reason": "r",
}
VALUES = st.none() | st.integers() | st.text(max_size=3) | st.floats() | st.lists(st.integers())


@given(st.dictionaries(st.sampled_from([*VALID, "ceiling", "zzz"]), VALUES))
def test_what_has_no_problem_is_a_waiver_and_what_has_one_is_none(
    changes: dict[str, object],
) -> None:
    entry = VALID | changes
    problems = waiver_problems(entry)
    assert all(each.endswith((".", "?")) for each in problems)
    try:
        msgspec.convert(entry, Waiver)
    except msgspec.ValidationError:
        assert problems
    else:
        assert not problems


@pytest.mark.parametrize("key", VALID)
def test_a_key_that_is_missing_is_named(key: str) -> None:
    entry = {name: value for name, value in VALID.items() if name != key}
    first, form = file_problems({"waivers": [VALID, entry]})
    assert first == f"waivers[1].{key} is missing. Add it."
    assert form == "A waiver has model, target, ceiling-percent, expires, issue, reason."
