import random
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measure.test_choose_runtime import Moves, SlowStart, three
from tests.support.measured_cells import CELL, DEVICE, make_build, make_context
from tests.support.present import present
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tunegate.artifacts.builds import (
    Build,
    CandidateTime,
    CellBuilds,
    CellCandidates,
    RefusedCandidate,
    RuntimeChoice,
)
from tunegate.artifacts.candidates import PRECISION, CandidateBuild, RememberedElection
from tunegate.artifacts.changes import SIDES
from tunegate.measure.choose_runtime import choose_runtime, choose_unopposed
from tunegate.measure.election import (
    CLEAR,
    RUNTIME_NOISE,
    Election,
    Launching,
    election,
    in_turn,
    side_seconds,
)
from tunegate.measure.remembered_elections import (
    as_remembered,
    held_here,
    is_left_out,
    lost_winners,
    remembered_winners,
)
from tunegate.ports import Clock
from tunegate.system.progress.shown_progress import PlainLog

LOGS = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


def elected(
    logs: Mapping[str, float], incumbent: str, noise: float = 0.0, inexact: Collection[str] = ()
) -> tuple[Election, int]:
    """The end of an election between candidates of these ln(time), and its launches."""
    chance, found, launches = random.Random(1), election(tuple(logs), incumbent, inexact), 0
    while (challenger := found.challenger) is not None:
        wrong = chance.uniform(-noise, noise)
        found = found.after(challenger, logs[challenger] - logs[found.leader] + wrong)
        launches += 1
    return found, launches


def logs_of(logs: list[float]) -> dict[str, float]:
    return {f"c{at}": log for at, log in enumerate(logs)}


@given(st.lists(st.sampled_from("abc"), max_size=9))
def test_every_runtime_is_launched_before_any_has_a_second_turn(runtimes: list[str]) -> None:
    of = {f"{runtime}{at}": runtime for at, runtime in enumerate(runtimes)}
    order = in_turn(of)
    assert sorted(order) == sorted(of)
    assert {of[name] for name in order[: len({*runtimes})]} == {*runtimes}
    for runtime in runtimes:
        mine = [name for name in of if of[name] == runtime]
        assert [name for name in order if of[name] == runtime] == mine


@given(LOGS)
def test_nothing_is_faster_than_the_winner_by_more_than_the_noise(logs: list[float]) -> None:
    candidates = logs_of(logs)
    winner = elected(candidates, "c0")[0].winner
    assert candidates[winner] - min(candidates.values()) < RUNTIME_NOISE + 1e-9
    assert winner == "c0" or candidates[winner] <= candidates["c0"] - RUNTIME_NOISE + 1e-9


@given(st.integers(2, 12), st.integers(0, 11), st.floats(0, RUNTIME_NOISE * 0.99))
def test_equals_never_displace_the_incumbent(count: int, place: int, noise: float) -> None:
    incumbent = f"c{place % count}"
    assert elected(logs_of([0.0] * count), incumbent, noise)[0].winner == incumbent


def test_an_election_that_is_cut_short_displaces_only_clearly() -> None:
    close = election(("a", "b"), "a").after("b", -0.05)
    clear = election(("a", "b", "c"), "a").after("b", -2 * CLEAR)
    assert (close.winner, clear.winner) == ("a", "b")


def test_other_numbers_are_no_price_for_a_gain_within_the_noise() -> None:
    logs = {"tvm": 0.0, "bf16": -0.7, "f16": -0.695, "float32": -0.69}
    assert elected(logs, "tvm", inexact=("bf16", "f16"))[0].winner == "float32"
    assert elected(logs, "bf16", inexact=("bf16", "f16"))[0].winner == "bf16"
    assert elected({**logs, "bf16": -0.75}, "tvm", inexact=("bf16", "f16"))[0].winner == "bf16"


@given(LOGS, st.integers(1, 11))
def test_the_winner_in_other_numbers_is_faster_than_all_in_float32(
    logs: list[float], inexact_from: int
) -> None:
    candidates = logs_of(logs)
    inexact = tuple(candidates)[inexact_from:]
    winner = elected(candidates, "c0", inexact=inexact)[0].winner
    if winner in inexact:
        exact = min(log for name, log in candidates.items() if name not in inexact)
        assert candidates[winner] <= exact - RUNTIME_NOISE + 1e-9


@given(LOGS.filter(lambda logs: len(logs) > 1), st.data())
def test_without_challenger_the_best_other_wins(logs: list[float], data: st.DataObject) -> None:
    candidates = logs_of(logs)
    broken = data.draw(st.sampled_from(sorted(candidates.keys() - {"c0"})))
    found = election(tuple(candidates), "c0")
    while (challenger := found.challenger) is not None:
        if challenger == broken:
            found = found.without(challenger)
            continue
        found = found.after(challenger, candidates[challenger] - candidates[found.leader])
    best = min(log for name, log in candidates.items() if name != broken)
    assert found.winner != broken
    assert candidates[found.winner] - best < RUNTIME_NOISE + 1e-9


def test_each_side_has_half_of_a_part_of_the_time_of_the_gate() -> None:
    assert [side_seconds(s, 0.25) for s in (240.0, 24.0, 3600.0)] == [30.0, 3.0, 30.0]
    assert [side_seconds(240.0, share) for share in (0.0, 0.1, 1.0)] == [0.0, 12.0, 30.0]


ONLY = msgspec.structs.replace(make_build("only"), runtime="onnxruntime", title="ONNX Runtime")
REFUSED = msgspec.structs.replace(make_build("tvm"), error="no operator Odd", directory="")


def launching(at: Path, alone_ms: float | None) -> Launching:
    return Launching(benchmarker=ScriptedPairs([], alone_ms), clock=time, out=at, seconds=1.0)


def test_what_runs_alone_has_its_time_and_can_be_remembered(tmp_path: Path) -> None:
    build = choose_unopposed(ONLY, RuntimeChoice(), launching(tmp_path, 2.0))
    assert build.choice is not None
    assert (build.choice.ms_of("onnxruntime"), build.choice.is_complete) == (2.0, True)


def test_without_a_time_it_ships_and_is_not_remembered(tmp_path: Path) -> None:
    assert (
        choose_unopposed(ONLY, RuntimeChoice(), launching(tmp_path, None)).choice == RuntimeChoice()
    )


@pytest.mark.parametrize("is_crash", [False, True])
def test_of_a_base_and_beside_a_crash_nothing_is_timed(tmp_path: Path, is_crash: bool) -> None:
    """Another run may have the build that crashed; a base's choice is not remembered."""
    refused: Build = msgspec.structs.replace(REFUSED, crashed=is_crash)
    candidates = CellCandidates(cell=CELL, base=(REFUSED, ONLY), head=(refused, ONLY))
    cell = continued(tmp_path, [], candidates)
    choice = present(head_of(cell).choice)
    assert not present(present(cell.base).choice).times
    assert choice.is_complete is not is_crash
    assert bool(choice.times) is not is_crash


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
    assert held_here([ELECTION], msgspec.structs.replace(DEVICE, driver="of tomorrow")) == ()


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
    choice = present(told((BUILD,)).choice)
    assert [(time.title, time.ms) for time in choice.times] == [("TVM", 1.0), ("ONNX Runtime", 2.0)]
    assert choice.reason == "remembered from 2026-09-21"
    assert choice.is_remembered


def test_nothing_tells_the_errors_of_remembered_candidates_in_other_numbers() -> None:
    narrow = msgspec.structs.replace(CANDIDATES[CELL.target][1], settings={PRECISION: "bfloat16"})
    candidates = {CELL.target: (CANDIDATES[CELL.target][0], narrow)}
    cell = CellCandidates(cell=CELL, base=(BUILD,), head=(BUILD,))
    (found,) = as_remembered([cell], [ELECTION], candidates)
    assert [time.has_unknown_error for time in present(found.head[0].choice).times] == [False, True]


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
    return present(found.head)


def test_the_leader_is_displaced_by_nothing_but_a_clear_gain(tmp_path: Path) -> None:
    cell = CellCandidates(cell=CELL, base=(), head=three("head"), first="other", earlier=EARLIER)
    assert head_of(continued(tmp_path, [-0.3, -0.3], cell)).runtime == "other"


def test_whoever_lost_earlier_is_told_and_kept_beside_the_new_times(tmp_path: Path) -> None:
    refused = (RefusedCandidate(candidate="no", title="No", reason="errs", is_lasting=True),)
    cell = CellCandidates(cell=CELL, base=(), head=three("head"), first="other", earlier=EARLIER)
    cell = msgspec.structs.replace(cell, refused=refused)
    choice = present(head_of(continued(tmp_path, [0.3, 0.3], cell)).choice)
    assert choice.refused == refused
    assert choice.is_complete
    assert [each.candidate for each in choice.times] == ["tvm", "onnxruntime", "other", "lost"]


def test_a_head_that_its_bases_election_cut_short_goes_on_later(tmp_path: Path) -> None:
    cell = CellCandidates(cell=CELL, base=three("base"), head=three("head"))
    choice = present(head_of(continued(tmp_path, [-0.4, -0.4], cell, SlowStart())).choice)
    assert (choice.is_complete, choice.is_cut_short) == (False, True)


def test_one_that_crashed_is_not_only_late(tmp_path: Path) -> None:
    tvm, onnx, other = three("head")
    crashed = msgspec.structs.replace(other, error="died", directory="", crashed=True)
    cell = CellCandidates(cell=CELL, base=(), head=(tvm, onnx, crashed))
    choice = present(head_of(continued(tmp_path, [-0.4], cell)).choice)
    assert (choice.is_complete, choice.is_cut_short) == (False, False)
