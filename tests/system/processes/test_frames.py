"""Bodies behind their lengths, in whatever pieces they come."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.system.processes.frames import MAX_FRAME_BYTES, FrameBuffer, FrameError, framed


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(1, 20))
def test_bodies_come_back_in_whatever_pieces_they_came(bodies: list[bytes], piece: int) -> None:
    sent = b"".join(map(framed, bodies))
    buffer = FrameBuffer()
    pieces = [sent[place : place + piece] for place in range(0, len(sent), piece)]
    assert [body for part in pieces for body in buffer.feed(part)] == bodies


def test_a_body_that_is_announced_to_be_huge_is_not_waited_for() -> None:
    with pytest.raises(FrameError, match="announced an answer of 536,870,913 bytes"):
        FrameBuffer().feed(struct.pack("<I", MAX_FRAME_BYTES + 1))
