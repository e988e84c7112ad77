from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import hexdigest
from tunegate_cache.names import parse_segment, segment_name, segment_prefix, zone_problem


@given(st.integers(0, 10**13 - 1), st.text("0123456789abcdef", min_size=8, max_size=8))
def test_a_segment_name_gives_back_its_parts(milliseconds: int, writer: str) -> None:
    name = segment_name(
        "pr/o/r/7", hexdigest("t"), milliseconds=milliseconds, writer=writer, digest=hexdigest("b")
    )
    parsed = parse_segment(name)
    assert parsed is not None
    assert (parsed.milliseconds, parsed.writer, parsed.digest) == (
        milliseconds,
        writer,
        hexdigest("b"),
    )
    assert name.startswith(segment_prefix("pr/o/r/7", hexdigest("t")))


@pytest.mark.parametrize("name", ["ms1/z/main/g/t/HEAD", "x/seg/1-2-3.zst", ""])
def test_other_objects_are_no_segments(name: str) -> None:
    assert parse_segment(name) is None


@pytest.mark.parametrize("zone", ["main", "rel", "team/vision", "pr/o/r/7", "dev/me_2"])
def test_a_zone_is_words_joined_by_slashes(zone: str) -> None:
    assert zone_problem(zone) is None


@pytest.mark.parametrize("zone", ["", "..", "pr/../main", "/main", "main/", "a b", "pr//7", "ü"])
def test_anything_else_is_refused_with_the_rule(zone: str) -> None:
    assert "words of letters" in (zone_problem(zone) or "")
