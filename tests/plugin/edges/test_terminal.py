from __future__ import annotations

import io

import pytest

from tunegate.edges.terminal import PlainLog, Terminal, progress


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class SetClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_gets_a_live_line_and_a_log_plain_ones() -> None:
    assert isinstance(progress(Tty()), Terminal)
    assert isinstance(progress(io.StringIO()), PlainLog)


def test_a_log_has_one_line_per_step_with_the_seconds_since_the_start() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = PlainLog(stream, clock)
    lines.step("detect")
    clock.now += 12.34
    lines.step("tune: shard 0")
    lines.warn("the cache is slow")
    assert stream.getvalue().splitlines() == [
        "tunegate     0.0 s  detect",
        "tunegate    12.3 s  tune: shard 0",
        "tunegate    12.3 s  warning: the cache is slow",
    ]


def test_a_long_step_shows_life_and_does_not_fill_the_log() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = PlainLog(stream, clock)
    lines.step("tune")
    for _ in range(100):
        clock.now += 1.0
        lines.update("still at it")
    assert stream.getvalue().count("still at it") == 3


def test_finished_steps_stay_on_a_terminal_with_their_time() -> None:
    stream = Tty()
    live = Terminal(stream)
    live.step("measure")
    live.step("decide")
    live.close()
    shown = stream.getvalue()
    assert shown.count("✓") == 2
    assert "measure" in shown
    assert "decide" in shown


@pytest.mark.parametrize("text", ["[red]conv[/red]", "matmul[3]", "[/]", "[bold"])
def test_names_from_a_pull_request_are_shown_as_they_are(text: str) -> None:
    stream = Tty()
    live = Terminal(stream)
    live.step(text)
    live.update(text)
    live.warn(text)
    live.close()
    assert stream.getvalue().count(text) >= 3


def test_a_name_from_a_pull_request_begins_no_line_of_a_log() -> None:
    stream = io.StringIO()
    log = PlainLog(stream)
    for say in (log.step, log.warn):
        say("dimension n\n::error::x\r##[error]y\x1b[2K")
    assert len(stream.getvalue().splitlines()) == 2
    assert all(line.startswith("tunegate ") for line in stream.getvalue().splitlines())
    assert "\x1b" not in stream.getvalue()
