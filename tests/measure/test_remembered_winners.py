from __future__ import annotations

import msgspec

from tests.support.measured_cells import CELL, DEVICE, make_build
from tunegate.artifacts.builds import Build, CellCandidates
from tunegate.artifacts.candidates import PRECISION, CandidateBuild, RememberedElection
from tunegate.artifacts.changes import SIDES
from tunegate.measure.remembered_elections import (
    as_remembered,
    held_here,
    is_left_out,
    lost_winners,
    remembered_winners,
)

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
