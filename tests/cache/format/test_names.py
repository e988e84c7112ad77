"""Object names, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import hexdigest
from tunegate_cache.format.names import (
    is_of_target,
    parse_segment,
    segment_name,
    segment_prefix,
    segments_under,
    zone_problem,
)

ZONES = st.sampled_from(["main", "rel", "team/vision", "pr/o/r/7", "dev/me_2", "a/g/b/seg"])


@given(ZONES, st.integers(0, 10**13 - 1), st.text("0123456789abcdef", min_size=8, max_size=8))
def test_a_segment_name_gives_back_its_parts(zone: str, milliseconds: int, writer: str) -> None:
    name = segment_name(
        zone, hexdigest("t"), milliseconds=milliseconds, writer=writer, digest=hexdigest("b")
    )
    assert parse_segment(name.name) == name
    assert name.name.startswith(segment_prefix(zone, hexdigest("t")))


def test_the_layout_is_what_permissions_are_written_for() -> None:
    name = segment_name("pr/o/r/7", "a" * 64, milliseconds=12, writer="b" * 8, digest="c" * 64)
    assert name.name == (f"ms1/z/pr/o/r/7/g/{'a' * 16}/seg/0000000000012-{'b' * 8}-{'c' * 64}.zst")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ms1/z/main/g/t/HEAD",
        "x/seg/1-2-3.zst",
        f"ms1/z/../g/{'a' * 16}/seg/0000000000012-{'b' * 8}-{'c' * 64}.zst",
        f"ms1/z/main/g/{'a' * 16}/seg/0000000000012-{'b' * 8}-{'c' * 64}.zst\n",
        f"ms1/z/main/g/{'a' * 16}/seg/000000000001٢-{'b' * 8}-{'c' * 64}.zst",
    ],
)
def test_other_objects_are_no_segments(name: str) -> None:
    assert parse_segment(name) is None


@given(st.text(max_size=200))
def test_any_text_is_a_segment_name_or_none(name: str) -> None:
    assert parse_segment(name) is None


@pytest.mark.parametrize("zone", ["main", "rel", "team/vision", "pr/o/r/7", "dev/me_2"])
def test_a_zone_is_words_joined_by_slashes(zone: str) -> None:
    assert zone_problem(zone) is None


@pytest.mark.parametrize(
    "zone", ["", "..", "pr/../main", "/main", "main/", "a b", "pr//7", "ü", "main\n", "x" * 121]
)
def test_anything_else_is_refused_with_the_rule(zone: str) -> None:
    assert "words of letters" in (zone_problem(zone) or "")


def test_a_listing_is_believed_for_the_zone_and_target_asked_for_only() -> None:
    ours, others, elsewhere = (
        segment_name(zone, target, milliseconds=1, writer="b" * 8, digest="c" * 64)
        for zone, target in [("main", "a" * 64), ("main", "d" * 64), ("pr/o/r/7", "a" * 64)]
    )
    inside = segment_name(
        f"main/g/{'a' * 16}/seg/x", "a" * 64, milliseconds=1, writer="b" * 8, digest="c" * 64
    )
    listed = [ours.name, others.name, elsewhere.name, inside.name, "ms1/z/main/HEAD"]
    assert list(segments_under(segment_prefix("main", "a" * 64), listed)) == [ours]
    assert is_of_target(ours, "a" * 64)
    assert not is_of_target(ours, "d" * 64)


def test_a_zone_longer_than_any_that_is_written_is_no_segment() -> None:
    name = segment_name("x" * 121, "a" * 64, milliseconds=1, writer="b" * 8, digest="c" * 64)
    assert parse_segment(name.name) is None
