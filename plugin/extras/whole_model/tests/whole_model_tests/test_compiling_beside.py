"""Texts are compiled beside each other, and each says itself why it does not compile."""

from __future__ import annotations

import os
import threading

import pytest

from tunegate.errors import NotOfferedError
from tunegate_whole_model.persistent.compiling_beside import CompilingBeside
from tunegate_whole_model.persistent.nvrtc import CompiledKernels


def compiled(text: str) -> CompiledKernels:
    return CompiledKernels(text.encode(), {})


def test_what_was_begun_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits until the other is being compiled, too."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    both = threading.Barrier(2, timeout=60)

    def waits(text: str) -> CompiledKernels:
        both.wait()
        return compiled(text)

    with CompilingBeside(waits) as beside:
        beside.begin("a")
        beside.begin("b")
        assert [beside("a").cubin, beside("b").cubin] == [b"a", b"b"]


def test_what_was_begun_is_compiled_once() -> None:
    asked: list[str] = []

    def counts(text: str) -> CompiledKernels:
        asked.append(text)
        return compiled(text)

    with CompilingBeside(counts) as beside:
        beside.begin("a")
        assert beside("a").cubin == beside("a").cubin == b"a"
    assert asked == ["a"]


def test_what_nobody_began_is_compiled_when_asked_for() -> None:
    with CompilingBeside(compiled) as beside:
        assert beside("a").cubin == b"a"


def test_the_one_that_does_not_compile_is_refused_where_it_is_asked_for() -> None:
    def refuses(text: str) -> CompiledKernels:
        raise NotOfferedError(f"{text} does not compile")

    with CompilingBeside(refuses) as beside:
        beside.begin("a")
        with pytest.raises(NotOfferedError, match="a does not compile"):
            beside("a")
