"""Vectors of channels fill registers, and never cut a group in two where they span several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.compiler.schedules.grouped_convolutions import (
    REGISTER,
    ChannelVectors,
    Groups,
    channel_vectors,
)

GROUPS = st.builds(Groups, st.integers(1, 300), st.integers(1, 130), st.integers(1, 130))


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        (Groups(4, 32, 32), ChannelVectors(16, 0)),
        (Groups(4, 68, 68), ChannelVectors(68, 0)),
        (Groups(32, 4, 4), ChannelVectors(16, 4)),
        (Groups(16, 8, 8), ChannelVectors(16, 2)),
        (Groups(128, 1, 1), ChannelVectors(16, 16)),
        (Groups(24, 1, 1), ChannelVectors(24, 24)),
        (Groups(8, 1, 2), ChannelVectors(16, 8)),
        (Groups(2, 200, 3), None),
    ],
)
def test_vectors_are_parts_of_a_group_or_several_whole_ones(
    groups: Groups, wanted: ChannelVectors | None
) -> None:
    assert channel_vectors(groups) == wanted


@given(GROUPS)
def test_vectors_cover_all_channels(groups: Groups) -> None:
    vectors = channel_vectors(groups)
    if vectors is None:
        return
    assert groups.number * groups.channels_out % vectors.lanes == 0
    if vectors.groups:
        assert groups.number % vectors.groups == 0
        assert vectors.lanes == vectors.groups * groups.channels_out
    else:
        assert groups.channels_out % vectors.lanes == 0


@given(st.integers(1, 200))
def test_pieces_are_powers_of_two_and_meet(lanes: int) -> None:
    pieces = ChannelVectors(lanes, 0).pieces
    assert [piece.first for piece in pieces] == [
        sum(each.lanes for each in pieces[:number]) for number in range(len(pieces))
    ]
    assert sum(piece.lanes for piece in pieces) == lanes
    assert all(p.lanes.bit_count() == 1 and p.lanes <= REGISTER for p in pieces)


def test_every_lane_finds_the_channel_of_its_own_group() -> None:
    vectors, groups = ChannelVectors(6, 2), Groups(4, 2, 3)
    assert vectors.span(groups) == 4
    assert vectors.order(groups, 1) == [1, 1, 1, 3, 3, 3]
