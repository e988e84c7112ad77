import struct
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.worker_requests import make_candidate, measure_request
from tunegate.system.processes.child import Child
from tunegate.system.processes.conversations import Conversation, converse
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.system.processes.run_child import MAX_FRAME_BYTES, FrameBuffer, FrameError, frame_body
from tunegate.tune.protocol import Measure, Measured, TensorArgument

PLENTY = MemoryLimit(8 * 2**30)


def question(number: int, does: str) -> Measure:
    arguments = (TensorArgument((1,), "float32"),)
    return measure_request(make_candidate(number, module=does, arguments=arguments))


def begin(log: Path) -> Callable[[], Child[Measured]]:
    return lambda: Child(
        "tests.support.simulated.odd_worker", Measured, variables={}, memory=PLENTY, log=log
    )


def test_each_child_is_asked_on_until_nothing_follows(tmp_path: Path) -> None:
    def then(reply: Measured) -> msgspec.Struct | None:
        return question(reply.number + 10, "answer") if reply.number < 20 else None

    talks = [
        Conversation(begin(tmp_path / "log"), question(number, "answer"), then)
        for number in (1, 2, 3)
    ]
    converse(talks, at_once=2, limit_seconds=120)
    expected = [[1, 11, 21], [2, 12, 22], [3, 13, 23]]
    assert [[reply.number for reply in talk.replies] for talk in talks] == expected
    for talk in talks:
        assert talk.child is not None
        assert talk.child.is_running
        talk.child.kill()


def test_a_child_that_dies_or_hangs_costs_its_own_conversation_only(tmp_path: Path) -> None:
    limits = {"exit": 120.0, "hang": 3.0, "answer": 120.0}
    talks = [
        Conversation(begin(tmp_path / "log"), question(1, does), patience_seconds=limit)
        for does, limit in limits.items()
    ]
    converse(talks, at_once=3, limit_seconds=120)
    ended = [str(talk.died) if talk.died else "answered" for talk in talks]
    assert ended == ["exited with 1", "did not finish in 3 s", "answered"]
    assert all(talk.child is None or not talk.child.is_running for talk in talks[:2])
    converse([], at_once=1, limit_seconds=1)
    if talks[2].child is not None:
        talks[2].child.kill()


def test_no_conversation_has_more_time_than_all_may_have(tmp_path: Path) -> None:
    short = Conversation(begin(tmp_path / "log"), question(1, "hang"))
    converse([short], at_once=1, limit_seconds=1)
    assert str(short.died) == "did not finish in 1 s"


# Bodies behind their lengths, in whatever pieces they come.


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(1, 20))
def test_bodies_come_back_in_whatever_pieces_they_came(bodies: list[bytes], piece: int) -> None:
    sent = b"".join(map(frame_body, bodies))
    buffer = FrameBuffer()
    pieces = [sent[place : place + piece] for place in range(0, len(sent), piece)]
    assert [body for part in pieces for body in buffer.feed(part)] == bodies


def test_a_body_that_is_announced_to_be_huge_is_not_waited_for() -> None:
    with pytest.raises(FrameError, match="announced an answer of 536,870,913 bytes"):
        FrameBuffer().feed(struct.pack("<I", MAX_FRAME_BYTES + 1))
