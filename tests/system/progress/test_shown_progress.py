import io
import time
from pathlib import Path

import pytest

from tunegate.artifacts.plans import ExpectedStep
from tunegate.system.progress import shown_progress
from tunegate.system.progress.time_left import TimeLeft, load_words, round_duration, time_left


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_plan_gives_each_step_its_number_and_the_run_a_bar() -> None:
    stream = Tty()
    live = shown_progress.Terminal(stream)
    live.expect(
        [
            ExpectedStep("build", (20.0,), "build 1 model"),
            ExpectedStep("measure", (40.0,), "measure"),
        ]
    )
    live.step("build: 2 builds", "build")
    live.close()
    shown = stream.getvalue()
    assert "plan: build 1 model, measure; about 1 min" in shown
    assert "[1/2] build: 2 builds" in shown
    assert "about 1 min left" in shown
    assert "━" in shown


@pytest.mark.parametrize("text", ["[red]conv[/red]", "matmul[3]", "[/]", "[bold"])
def test_names_from_a_pull_request_are_shown_as_they_are(text: str) -> None:
    stream = Tty()
    live = shown_progress.Terminal(stream)
    live.step(text)
    live.update(text)
    live.warn(text)
    live.close()
    assert stream.getvalue().count(text) >= 3


def test_a_terminal_gets_a_live_line_and_a_log_plain_ones() -> None:
    assert isinstance(shown_progress.progress(Tty()), shown_progress.Terminal)
    plain = shown_progress.progress(io.StringIO())
    assert isinstance(plain, shown_progress.Pulsed)
    plain.close()


class SetClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_log_has_one_line_per_step_with_the_seconds_since_the_start() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = shown_progress.PlainLog(stream, clock)
    lines.step("detect")
    clock.now += 12.34
    lines.step("tune: shard 0")
    lines.warn("the cache is slow")
    assert stream.getvalue().splitlines() == [
        "tunegate     0.0 s  detect",
        "tunegate    12.3 s  tune: shard 0",
        "tunegate    12.3 s  warning: the cache is slow",
    ]


def test_a_plan_is_told_once_and_each_step_with_its_number_and_the_time_left() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = shown_progress.PlainLog(stream, clock)
    lines.expect(
        [
            ExpectedStep("tune", (60.0,), "tune 4 tasks", has_cap=True),
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
        (
            "tunegate    15.0 s    conv: 1 ms; at most 1 min left in all, "
            "less once tuning stops paying"
        ),
        "tunegate    60.0 s  [2/2] measure: m.onnx",
    ]


def test_a_step_that_says_nothing_gives_a_sign_of_life_after_ten_seconds() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = shown_progress.PlainLog(stream, clock)
    lines.step("build: 2 builds")
    for _ in range(25):
        clock.now += 1.0
        lines.pulse()
    expected = ["tunegate    10.0 s    10 s so far", "tunegate    20.0 s    20 s so far"]
    assert stream.getvalue().splitlines()[1:] == expected


def test_a_late_step_that_says_nothing_tells_its_time_once() -> None:
    stream, clock = io.StringIO(), SetClock()
    lines = shown_progress.PlainLog(stream, clock)
    lines.expect([ExpectedStep("build", (20.0,), "build 1 model")])
    lines.step("build: 2 builds", "build")
    for _ in range(6):
        clock.now += 10.0
        lines.pulse()
    shown = [line[20:].strip() for line in stream.getvalue().splitlines()[2:]]
    assert shown[0] == "10 s so far; about 10 s left in all"
    assert shown[-1] == "longer than expected: 1.0 min so far"


def test_a_pulsed_log_needs_nobody_to_say_anything() -> None:
    stream, clock = io.StringIO(), SetClock()
    log = shown_progress.Pulsed(shown_progress.PlainLog(stream, clock), seconds=0.01)
    log.step("build")
    clock.now += 10
    deadline = time.monotonic() + 60
    while "so far" not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    log.close()
    assert stream.getvalue().count("10 s so far") == 1


def test_a_name_from_a_pull_request_begins_no_line_of_a_log() -> None:
    stream = io.StringIO()
    log = shown_progress.PlainLog(stream)
    for say in (log.step, log.warn):
        say("dimension n\n::error::x\r##[error]y\x1b[2K")
    assert len(stream.getvalue().splitlines()) == 2
    assert all(line.startswith("tunegate ") for line in stream.getvalue().splitlines())
    assert "\x1b" not in stream.getvalue()


TUNE = ExpectedStep("tune", (10.0,), "tune")
BUILD = ExpectedStep("build", (10.0, 10.0), "build 1 model", "m.onnx on cpu")
MEASURE = ExpectedStep("measure", (30.0,), "measure 1 model", "m.onnx on cpu")
OTHER = ExpectedStep("build", (10.0,), "build 1 model", "other.onnx on cpu")


def plan(file: Path, *steps: ExpectedStep) -> str:
    """The plan of a run that expects these steps."""
    stream = io.StringIO()
    shown_progress.Paced(shown_progress.PlainLog(stream, SetClock()), file).expect(steps)
    return stream.getvalue().partition("; ")[2].strip()


def ran(file: Path, build_seconds: float, *, is_finished: bool = True) -> None:
    """A run that tunes, builds for so long in two parts, and measures for 30 s."""
    clock = SetClock()
    run = shown_progress.Paced(shown_progress.PlainLog(io.StringIO(), clock), file, clock)
    run.expect([TUNE, BUILD, MEASURE])
    run.step("tune", "tune")
    clock.now += 300
    for _ in BUILD.parts:
        run.step("build", "build")
        clock.now += build_seconds / 2
    run.step("measure", "measure")
    clock.now += 30
    run.step("metric")
    run.close()
    if is_finished:
        run.save_paces()


def test_what_a_run_took_is_expected_of_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "state" / "paces.json"
    assert plan(file, TUNE, BUILD) == "about 30 s in all"
    ran(file, 80)
    assert plan(file, BUILD) == "about 1.5 min in all"
    assert plan(file, TUNE, BUILD) == "about 1.5 min in all"  # tuning ends at its cap
    assert plan(file, OTHER) == "about 20 s in all"  # another model, so half of it counts
    assert plan(file, MEASURE) == "about 30 s in all"


def test_a_busy_machine_is_told_beside_the_plan(tmp_path: Path) -> None:
    stream = io.StringIO()
    run = shown_progress.Paced(
        shown_progress.PlainLog(stream, SetClock()), tmp_path / "paces.json", busy="the load is 9"
    )
    run.expect([])
    assert "9" not in stream.getvalue()
    run.expect([BUILD])
    assert stream.getvalue().endswith("warning: the load is 9\n")


def test_the_latest_runs_count_most(tmp_path: Path) -> None:
    file = tmp_path / "paces.json"
    for seconds in (80, 20, 20, 20):
        ran(file, seconds)
    assert shown_progress.read_paces(file)["build"] == pytest.approx((4**0.125,))


def test_each_part_of_a_step_has_a_pace_of_its_own(tmp_path: Path) -> None:
    file, clock = tmp_path / "paces.json", SetClock()
    run = shown_progress.Paced(shown_progress.PlainLog(io.StringIO(), clock), file, clock)
    run.expect([BUILD])
    for seconds in (60, 5):
        run.step("build", "build")
        clock.now += seconds
    run.save_paces()
    assert shown_progress.read_paces(file)["build: m.onnx on cpu"] == (6.0, 0.5)
    again = io.StringIO()
    shown = shown_progress.Paced(
        shown_progress.PlainLog(again, clock, update_seconds=0), file, clock
    )
    shown.expect([BUILD])
    shown.step("build", "build")
    clock.now += 60
    shown.step("build", "build")
    shown.update("at it")
    assert "about 5 s left in all" in again.getvalue()


def test_a_file_that_cannot_be_read_or_written_costs_an_estimate_only(tmp_path: Path) -> None:
    file = tmp_path / "paces.json"
    for content in (b"[", b'{"build": "x"}', b"\xff"):
        file.write_bytes(content)
        assert plan(file, BUILD) == "about 20 s in all"
    file.write_text('{"build": [1e300, 1], "measure": [-5], "choose": []}')
    assert shown_progress.read_paces(file) == {"build": (50.0, 1.0), "measure": (0.02,)}
    file.unlink()
    file.mkdir()
    ran(file, 80)
    assert plan(file, BUILD) == "about 20 s in all"


def test_a_run_that_fails_keeps_no_pace(tmp_path: Path) -> None:
    file = tmp_path / "paces.json"

    def measure(ending: Exception | None) -> None:
        with shown_progress.paced_progress(file) as run:
            run.expect([MEASURE])
            run.step("measure", "measure")
            if ending is not None:
                raise ending

    with pytest.raises(ZeroDivisionError):
        measure(ZeroDivisionError())
    assert not file.exists()
    measure(None)
    assert file.exists()


WORDS_BUILD = ExpectedStep("build", (20.0, 20.0), "build 1 model")
WORDS_MEASURE = ExpectedStep("measure", (40.0,), "measure 1 model")


def test_a_machine_that_is_far_from_quiet_is_told() -> None:
    assert load_words(3.0, 2) == ""
    assert load_words(9.04, 2).startswith("the load is 9.0 on 2 cores: the plan's times are")


def test_the_time_left_is_no_number_while_a_part_overruns() -> None:
    left = TimeLeft()
    assert time_left(left, 0) == ""
    left.expect([WORDS_BUILD, WORDS_MEASURE])
    left.enter("build", 0)
    assert time_left(left, 10) == "about 1 min left in all"
    left.enter("build", 20)
    left.enter("measure", 40)
    assert time_left(left, 75) == "about 5 s left in all"
    assert time_left(left, 87) == "longer than expected: 47 s so far"
    assert time_left(left, 160) == "longer than expected: 2.0 min so far"


def test_what_has_a_cap_is_said_to_end_by_it_at_the_latest() -> None:
    left = TimeLeft()
    left.expect([ExpectedStep("tune", (600.0,), "tune", has_cap=True), WORDS_MEASURE])
    left.enter("tune", 0)
    left.tell(480, 120)
    assert time_left(left, 120) == "at most 8.5 min left in all, less once tuning stops paying"
    left.enter("measure", 125)
    assert time_left(left, 125) == "about 40 s left in all"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "5 s"), (12, "10 s"), (58, "1 min"), (80, "1.5 min"), (119, "2 min"), (700, "12 min")],
)
def test_a_duration_claims_no_more_than_is_known(seconds: float, text: str) -> None:
    assert round_duration(seconds) == text
