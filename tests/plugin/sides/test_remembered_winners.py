from __future__ import annotations

import msgspec

from tests.support.measured_cells import CELL, DEVICE, make_build
from tunegate.artifacts.builds import Build, CellCandidates
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.remembered_elections import RememberedElection
from tunegate.sides.remembered_winners import (
    as_remembered,
    held_here,
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


def test_a_cell_that_is_elected_anew_remembers_nothing() -> None:
    other = msgspec.structs.replace(BUILD, runtime="onnxruntime")
    assert told((BUILD, other)).choice is None
    assert told((other,)).choice is None
    assert told((BROKEN,)).choice is None
