from __future__ import annotations

import pytest

from tunegate.ci.comments import KeptComment
from tunegate.ci.http import RestRefusedError


class Thread:
    """Comments in memory; what is planned happens to the next write."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.planned: list[tuple[RestRefusedError, bool]] = []
        self.written = 0

    def ours(self) -> int | None:
        return next(iter(self.texts), None)

    def write(self, text: str) -> None:
        self.written += 1
        error, is_done = self.planned.pop(0) if self.planned else (None, True)
        if is_done:
            self.texts[len(self.texts)] = text
        if error is not None:
            raise error

    def rewrite(self, known: int, text: str) -> None:
        if known not in self.texts:
            raise RestRefusedError("gone", 404)
        self.texts[known] = text


LOST = RestRefusedError("lost", may_be_done=True)


def test_the_first_one_is_written_and_later_ones_replace_it() -> None:
    thread = Thread()
    for text in ("first", "second"):
        KeptComment(thread).publish(text)
    assert (thread.texts, thread.written) == ({0: "second"}, 1)


@pytest.mark.parametrize("is_done", [True, False])
def test_after_a_lost_answer_there_is_one_comment(is_done: bool) -> None:
    thread = Thread()
    thread.planned = [(LOST, is_done)]
    KeptComment(thread).publish("text")
    assert thread.texts == {0: "text"}
    assert thread.written == (1 if is_done else 2)


def test_a_refusal_is_no_reason_to_write_again() -> None:
    thread = Thread()
    thread.planned = [(RestRefusedError("no", 403), False)]
    with pytest.raises(RestRefusedError, match="no"):
        KeptComment(thread).publish("text")
    assert thread.written == 1


def test_only_a_comment_that_is_gone_is_written_anew() -> None:
    class Refusing(Thread):
        def rewrite(self, known: int, text: str) -> None:
            raise RestRefusedError("no", 403)

    thread = Refusing()
    thread.texts = {0: "old"}
    with pytest.raises(RestRefusedError, match="no"):
        KeptComment(thread).publish("text")
    assert thread.written == 0
