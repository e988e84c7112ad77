from __future__ import annotations

import io
import time

from tunegate.artifacts.plans import ExpectedStep
from tunegate.system.progress.shown_progress import PlainLog, Pulsed


class SetClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


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
    assert stream.getvalue().count("still at it") == 10


def test_a_plan_is_told_once_and_each_step_with_its_number_and_the_time_left() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = PlainLog(stream, clock)
    lines.expect(
        [
            ExpectedStep("tune", (60.0,), "tune 4 tasks"),
            ExpectedStep("measure", (30.0,), "measure 1 model"),
        ]
    )
    lines.step("tune: shard 0", "tune")
    clock.now += 15
    lines.update("conv: 1 ms", 45)
    clock.now += 45
    lines.step("measure: m.onnx", "measure")
    assert stream.getvalue().splitlines() == [
        (
            "tunegate     0.0 s  plan: tune 4 tasks, then, beyond that cap, measure 1 model; "
            "about 1.5 min in all"
        ),
        "tunegate     0.0 s  [1/2] tune: shard 0",
        "tunegate    15.0 s    conv: 1 ms; about 1 min left in all",
        "tunegate    60.0 s  [2/2] measure: m.onnx",
    ]


def test_a_step_that_says_nothing_gives_a_sign_of_life_after_ten_seconds() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = PlainLog(stream, clock)
    lines.step("build: 2 builds")
    for _ in range(25):
        clock.now += 1.0
        lines.pulse()
    assert stream.getvalue().splitlines()[1:] == [
        "tunegate    10.0 s    10 s so far",
        "tunegate    20.0 s    20 s so far",
    ]


def test_a_pulsed_log_needs_nobody_to_say_anything() -> None:
    stream, clock = io.StringIO(), SetClock()
    log = Pulsed(PlainLog(stream, clock), seconds=0.01)
    log.step("build")
    clock.now += 10
    deadline = time.monotonic() + 60
    while "so far" not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    log.close()
    assert stream.getvalue().count("10 s so far") == 1


def test_a_name_from_a_pull_request_begins_no_line_of_a_log() -> None:
    stream = io.StringIO()
    log = PlainLog(stream)
    for say in (log.step, log.warn):
        say("dimension n\n::error::x\r##[error]y\x1b[2K")
    assert len(stream.getvalue().splitlines()) == 2
    assert all(line.startswith("tunegate ") for line in stream.getvalue().splitlines())
    assert "\x1b" not in stream.getvalue()
