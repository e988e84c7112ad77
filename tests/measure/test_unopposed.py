from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import CELL, make_build, make_context
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tunegate.artifacts.builds import Build, CellCandidates, RuntimeChoice
from tunegate.measure.choose_runtime import choose_runtime, unopposed
from tunegate.measure.election import Launching
from tunegate.system.progress.shown_progress import PlainLog

ONLY = msgspec.structs.replace(make_build("only"), runtime="onnxruntime", title="ONNX Runtime")
REFUSED = msgspec.structs.replace(make_build("tvm"), error="no operator Odd", directory="")


def launching(at: Path, alone_ms: float | None) -> Launching:
    pairs = ScriptedPairs([], alone_ms)
    return Launching(benchmarker=pairs, clock=time, out=at, seconds=1.0)


def test_what_runs_alone_has_its_time_and_can_be_remembered(tmp_path: Path) -> None:
    build = unopposed(ONLY, RuntimeChoice(), launching(tmp_path, 2.0))
    assert build.choice is not None
    assert (build.choice.ms_of("onnxruntime"), build.choice.is_complete) == (2.0, True)


def test_without_a_time_it_ships_and_is_not_remembered(tmp_path: Path) -> None:
    assert unopposed(ONLY, RuntimeChoice(), launching(tmp_path, None)).choice == RuntimeChoice()


class Kept:
    def keep(self, chosen: Path, others: object, at: Path) -> str:
        return ""

    def check(self, at: Path, digest: str) -> None:
        raise AssertionError


@pytest.mark.parametrize("is_crash", [False, True])
def test_of_a_base_and_beside_a_crash_nothing_is_timed(tmp_path: Path, is_crash: bool) -> None:
    """Another run may have the build that crashed; a base's choice is not remembered."""
    refused: Build = msgspec.structs.replace(REFUSED, crashed=is_crash)
    with (tmp_path / "log").open("w") as log:
        (cell,) = choose_runtime(
            [CellCandidates(cell=CELL, base=(REFUSED, ONLY), head=(refused, ONLY))],
            benchmarker=ScriptedPairs([]),
            shipping=Kept(),
            context=make_context(tmp_path, PlainLog(log), time),
            seconds=1.0,
        )
    assert cell.base is not None
    assert cell.head is not None
    assert cell.base.choice is not None
    assert cell.head.choice is not None
    assert not cell.base.choice.times
    assert cell.head.choice.is_complete is not is_crash
    assert bool(cell.head.choice.times) is not is_crash
