"""An election that the time of an earlier run has cut short, and that goes on in this one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.measure.test_choose_runtime import Moves, SlowStart, three
from tests.support.measured_cells import CELL, make_context
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tunegate.artifacts.builds import (
    Build,
    CandidateTime,
    CellBuilds,
    CellCandidates,
    RefusedCandidate,
)
from tunegate.measure.choose_runtime import choose_runtime
from tunegate.ports import Clock
from tunegate.system.progress.shown_progress import PlainLog

EARLIER = (CandidateTime(candidate="lost", title="Lost", ms=9.0),)


def continued(
    tmp_path: Path, effects: Sequence[float], cell: CellCandidates, clock: Clock = time
) -> CellBuilds:
    with (tmp_path / "log").open("w") as log:
        (found,) = choose_runtime(
            [cell],
            benchmarker=ScriptedPairs(effects),
            shipping=Moves(),
            context=make_context(tmp_path, PlainLog(log), clock),
            seconds=60.0,
        )
    return found


def head_of(found: CellBuilds) -> Build:
    assert found.head is not None
    return found.head


def test_the_leader_is_displaced_by_nothing_but_a_clear_gain(tmp_path: Path) -> None:
    cell = CellCandidates(cell=CELL, base=(), head=three("head"), first="other", earlier=EARLIER)
    found = head_of(continued(tmp_path, [-0.3, -0.3], cell))
    assert found.runtime == "other"


def test_whoever_lost_earlier_is_told_and_kept_beside_the_new_times(tmp_path: Path) -> None:
    refused = (RefusedCandidate(candidate="no", title="No", reason="errs", is_lasting=True),)
    cell = CellCandidates(cell=CELL, base=(), head=three("head"), first="other", earlier=EARLIER)
    cell = msgspec.structs.replace(cell, refused=refused)
    choice = head_of(continued(tmp_path, [0.3, 0.3], cell)).choice
    assert choice is not None
    assert choice.refused == refused
    assert choice.is_complete
    assert [each.candidate for each in choice.times] == ["tvm", "onnxruntime", "other", "lost"]


def test_a_head_that_its_bases_election_cut_short_goes_on_later(tmp_path: Path) -> None:
    cell = CellCandidates(cell=CELL, base=three("base"), head=three("head"))
    choice = head_of(continued(tmp_path, [-0.4, -0.4], cell, SlowStart())).choice
    assert choice is not None
    assert (choice.is_complete, choice.is_cut_short) == (False, True)


def test_one_that_crashed_is_not_only_late(tmp_path: Path) -> None:
    tvm, onnx, other = three("head")
    crashed = msgspec.structs.replace(other, error="died", directory="", crashed=True)
    cell = CellCandidates(cell=CELL, base=(), head=(tvm, onnx, crashed))
    choice = head_of(continued(tmp_path, [-0.4], cell)).choice
    assert choice is not None
    assert (choice.is_complete, choice.is_cut_short) == (False, False)
