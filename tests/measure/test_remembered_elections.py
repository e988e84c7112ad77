from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.measure.test_choose_runtime import Moves, SlowStart, three
from tests.support.measured_cells import CELL, DEVICE, make_build, make_context
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tunegate.artifacts.builds import (
    Build,
    CandidateTime,
    CellBuilds,
    CellCandidates,
    RefusedCandidate,
)
from tunegate.artifacts.candidates import PRECISION, CandidateBuild, RememberedElection
from tunegate.artifacts.changes import SIDES
from tunegate.measure.choose_runtime import choose_runtime
from tunegate.measure.remembered_elections import (
    as_remembered,
    held_here,
    is_left_out,
    lost_winners,
    remembered_winners,
)
from tunegate.ports import Clock
from tunegate.system.progress.shown_progress import PlainLog

ELECTION = RememberedElection(
    model=CELL.model,
    target=CELL.target,
    winner="tvm",
    milliseconds={"tvm": 1.0, "onnxruntime": 2.0},
    elected_at=1_790_000_000,
    device=DEVICE.name,
    units=DEVICE.units,
)
CANDIDATES = {
    CELL.target: (
        CandidateBuild(runtime="tvm", title="TVM"),
        CandidateBuild(runtime="onnxruntime", title="ONNX Runtime"),
    )
}
CUT = msgspec.structs.replace(ELECTION, is_cut_short=True)
WINNERS = remembered_winners([ELECTION])
BUILD = make_build()
BROKEN = make_build(error="no")


def lost(base: Build | None, head: Build | None) -> bool:
    built = zip(SIDES, (base, head), strict=True)
    found = {(CELL, side, "tvm"): build for side, build in built if build is not None}
    return bool(lost_winners(WINNERS, [(CELL, side) for side in SIDES], found))


def test_an_election_of_another_kind_of_device_does_not_count_here() -> None:
    assert held_here([ELECTION], DEVICE) == (ELECTION,)
    assert held_here([ELECTION], msgspec.structs.replace(DEVICE, units=64)) == ()
    assert held_here([ELECTION], msgspec.structs.replace(DEVICE, name="another")) == ()


def test_a_winner_is_lost_where_one_side_has_no_build_of_it() -> None:
    assert not lost(BUILD, BUILD)
    assert lost(BROKEN, BUILD)
    assert lost(BUILD, BROKEN)
    assert lost(BUILD, None)


def test_an_election_that_was_cut_short_goes_on_with_whoever_was_not_measured() -> None:
    names = ("tvm", "onnxruntime", "other")
    assert [is_left_out([ELECTION])(CELL, each) for each in names] == [False, True, True]
    assert [is_left_out([CUT])(CELL, each) for each in names] == [False, True, False]
    assert not is_left_out([])(CELL, "tvm")


def test_it_begins_with_its_leader_and_keeps_the_times_of_who_lost() -> None:
    other = msgspec.structs.replace(BUILD, runtime="other")
    cell = CellCandidates(cell=CELL, base=(BUILD, other), head=(other, BUILD))
    (found,) = as_remembered([cell], [CUT], CANDIDATES)
    assert found.first == "tvm"
    assert [(each.candidate, each.ms) for each in found.earlier] == [("onnxruntime", 2.0)]
    assert [each.choice for each in found.head] == [None, None]


def test_it_keeps_who_cannot_ship_for_the_next_run_to_know() -> None:
    cut = msgspec.structs.replace(CUT, milliseconds={"tvm": 1.0}, refused=("onnxruntime",))
    assert is_left_out([cut])(CELL, "onnxruntime")
    other = msgspec.structs.replace(BUILD, runtime="other")
    cell = CellCandidates(cell=CELL, base=(BUILD, other), head=(BUILD, other))
    (found,) = as_remembered([cell], [cut], CANDIDATES)
    (refused,) = found.refused
    assert (refused.candidate, refused.is_lasting) == ("onnxruntime", True)
    assert refused.reason == "refused in the run of 2026-09-21, which this election goes on from"


def test_one_whose_leader_is_lost_begins_anew() -> None:
    """Times of those who lost to it say nothing any more."""
    loser = msgspec.structs.replace(BUILD, runtime="onnxruntime")
    cell = CellCandidates(cell=CELL, base=(BROKEN, loser), head=(BUILD, loser))
    (found,) = as_remembered([cell], [CUT], CANDIDATES)
    assert (found.first, found.earlier) == ("", ())


def told(head: tuple[Build, ...]) -> Build:
    cell = CellCandidates(cell=CELL, base=(BUILD,), head=head)
    (found,) = as_remembered([cell], [ELECTION], CANDIDATES)
    return found.head[0]


def test_a_remembered_build_says_what_was_elected_and_when() -> None:
    choice = told((BUILD,)).choice
    assert choice is not None
    assert [(time.title, time.ms) for time in choice.times] == [("TVM", 1.0), ("ONNX Runtime", 2.0)]
    assert choice.reason == "remembered from 2026-09-21"
    assert choice.is_remembered


def test_nothing_tells_the_errors_of_remembered_candidates_in_other_numbers() -> None:
    narrow = msgspec.structs.replace(CANDIDATES[CELL.target][1], settings={PRECISION: "bfloat16"})
    candidates = {CELL.target: (CANDIDATES[CELL.target][0], narrow)}
    cell = CellCandidates(cell=CELL, base=(BUILD,), head=(BUILD,))
    (found,) = as_remembered([cell], [ELECTION], candidates)
    choice = found.head[0].choice
    assert choice is not None
    assert [time.has_unknown_error for time in choice.times] == [False, True]


def test_a_cell_that_is_elected_anew_remembers_nothing() -> None:
    other = msgspec.structs.replace(BUILD, runtime="onnxruntime")
    assert told((BUILD, other)).choice is None
    assert told((other,)).choice is None
    assert told((BROKEN,)).choice is None


# An election that the time of an earlier run has cut short, and that goes on in this one.

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
