from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.system.progress.test_plain_log import SetClock
from tunegate.artifacts.plans import ExpectedStep
from tunegate.system.progress.shown_progress import Paced, PlainLog, paced_progress, read_paces

TUNE = ExpectedStep("tune", (10.0,), "tune")
BUILD = ExpectedStep("build", (10.0, 10.0), "build 1 model", "m.onnx on cpu")
MEASURE = ExpectedStep("measure", (30.0,), "measure 1 model", "m.onnx on cpu")
OTHER = ExpectedStep("build", (10.0,), "build 1 model", "other.onnx on cpu")


def told(file: Path, *steps: ExpectedStep) -> str:
    """The plan of a run that expects these steps."""
    stream = io.StringIO()
    Paced(PlainLog(stream, SetClock()), file).expect(steps)
    return stream.getvalue().partition("; ")[2].strip()


def ran(file: Path, build_seconds: float, *, is_finished: bool = True) -> None:
    """A run that tunes, builds for so long in two parts, and measures for 30 s."""
    clock = SetClock()
    run = Paced(PlainLog(io.StringIO(), clock), file, clock)
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
        run.finished()


def test_what_a_run_took_is_expected_of_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "state" / "paces.json"
    assert told(file, TUNE, BUILD) == "about 30 s in all"
    ran(file, 80)
    assert told(file, BUILD) == "about 1.5 min in all"
    assert told(file, TUNE, BUILD) == "about 1.5 min in all"  # tuning ends at its cap
    assert told(file, OTHER) == "about 20 s in all"  # another model, so half of it counts
    assert told(file, MEASURE) == "about 30 s in all"


def test_a_busy_machine_is_told_beside_the_plan(tmp_path: Path) -> None:
    stream = io.StringIO()
    run = Paced(PlainLog(stream, SetClock()), tmp_path / "paces.json", busy="the load is 9")
    run.expect([])
    assert "9" not in stream.getvalue()
    run.expect([BUILD])
    assert stream.getvalue().endswith("warning: the load is 9\n")


def test_the_latest_runs_count_most(tmp_path: Path) -> None:
    file = tmp_path / "paces.json"
    for seconds in (80, 20, 20, 20):
        ran(file, seconds)
    assert read_paces(file)["build"] == pytest.approx((4**0.125,))


def test_each_part_of_a_step_has_a_pace_of_its_own(tmp_path: Path) -> None:
    file, clock = tmp_path / "paces.json", SetClock()
    run = Paced(PlainLog(io.StringIO(), clock), file, clock)
    run.expect([BUILD])
    for seconds in (60, 5):
        run.step("build", "build")
        clock.now += seconds
    run.finished()
    assert read_paces(file)["build: m.onnx on cpu"] == (6.0, 0.5)
    again = io.StringIO()
    shown = Paced(PlainLog(again, clock, update_seconds=0), file, clock)
    shown.expect([BUILD])
    shown.step("build", "build")
    clock.now += 60
    shown.step("build", "build")
    shown.update("at it")
    assert "about 5 s left in all" in again.getvalue()


def test_a_run_that_was_cancelled_says_nothing_of_the_next_one(tmp_path: Path) -> None:
    ran(tmp_path / "paces.json", 80, is_finished=False)
    assert not (tmp_path / "paces.json").exists()


def test_a_file_that_cannot_be_read_or_written_costs_an_estimate_only(tmp_path: Path) -> None:
    file = tmp_path / "paces.json"
    for content in (b"[", b'{"build": "x"}', b"\xff"):
        file.write_bytes(content)
        assert told(file, BUILD) == "about 20 s in all"
    file.write_text('{"build": [1e300, 1], "measure": [-5], "choose": []}')
    assert read_paces(file) == {"build": (50.0, 1.0), "measure": (0.02,)}
    file.unlink()
    file.mkdir()
    ran(file, 80)
    assert told(file, BUILD) == "about 20 s in all"


def test_no_more_is_kept_than_a_machine_needs(tmp_path: Path) -> None:
    file = tmp_path / "paces.json"
    file.write_text("{" + ",".join(f'"build: {at}": [1.0]' for at in range(300)) + "}")
    ran(file, 80)
    assert len(read_paces(file)) == 200
    assert read_paces(file)["build"] == pytest.approx((4.0,))


def test_a_run_that_fails_keeps_no_pace(tmp_path: Path) -> None:
    file = tmp_path / "paces.json"

    def measure(ending: Exception | None) -> None:
        with paced_progress(file) as run:
            run.expect([MEASURE])
            run.step("measure", "measure")
            if ending is not None:
                raise ending

    with pytest.raises(ZeroDivisionError):
        measure(ZeroDivisionError())
    assert not file.exists()
    measure(None)
    assert file.exists()
