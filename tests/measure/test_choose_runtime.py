import time
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import CELL, make_build, make_context, make_task
from tests.support.present import present
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tunegate.artifacts.builds import Build, CellBuilds, CellCandidates, RuntimeChoice
from tunegate.measure.choose_runtime import choose_runtime
from tunegate.measure.election import MAX_SIDE_SECONDS, Launching, Race
from tunegate.ports import Clock
from tunegate.system.progress.shown_progress import PlainLog

TASKS = (make_task("conv", 1.0),)


class Moves:
    def __init__(self) -> None:
        self.kept: list[tuple[str, list[str], str]] = []

    def keep(self, chosen: Path, others: Sequence[Path], at: Path) -> str:
        self.kept.append((chosen.name, [other.name for other in others], at.name))
        return f"digest of {chosen.name}"

    def check(self, at: Path, digest: str) -> None:
        raise AssertionError


def both(name: str, tasks: Sequence[object] = TASKS) -> tuple[Build, Build]:
    tvm = make_build(f"{name}-tvm", tasks=tasks)  # type: ignore[arg-type]
    return tvm, candidate(name, "onnxruntime", "ONNX Runtime")


def candidate(name: str, runtime: str, title: str, variant: str = "") -> Build:
    build = make_build(f"{name}-{runtime}{variant}")
    return msgspec.structs.replace(build, runtime=runtime, title=title, variant=variant)


def failed(name: str, reason: str) -> tuple[Build, Build]:
    tvm, onnx = both(name)
    return msgspec.structs.replace(tvm, error=reason, directory=""), onnx


class Elected:
    """The builds that were chosen for both sides, each of which is there."""

    def __init__(self, cell: CellBuilds) -> None:
        self.cell = cell

    @property
    def base(self) -> Build:
        return present(self.cell.base)

    @property
    def head(self) -> Build:
        return present(self.cell.head)

    @property
    def choice(self) -> RuntimeChoice:
        return present(self.head.choice)


def chosen(
    tmp_path: Path,
    effects: Sequence[float | None],
    base: tuple[Build, ...] = (),
    head: tuple[Build, ...] = (),
    seconds: float = 60.0,
    clock: Clock = time,
) -> tuple[Elected, ScriptedPairs, Moves]:
    pairs, moves = ScriptedPairs(effects), Moves()
    with (tmp_path / "log").open("w") as log:
        (cell,) = choose_runtime(
            [CellCandidates(cell=CELL, base=base, head=head)],
            benchmarker=pairs,
            shipping=moves,
            context=make_context(tmp_path, PlainLog(log), clock),
            seconds=seconds,
        )
    return Elected(cell), pairs, moves


def test_a_clear_winner_ships_after_one_launch_and_says_by_how_much(tmp_path: Path) -> None:
    cell, pairs, moves = chosen(tmp_path, [-0.4], head=both("head"))
    assert (cell.head.runtime, pairs.asked) == ("onnxruntime", 1)
    told = [(time.title, time.ms) for time in cell.choice.times]
    assert told == [("TVM", 1.0), ("ONNX Runtime", 0.6)]
    assert moves.kept == [("head-onnxruntime", ["head-tvm"], "head")]
    assert cell.head.digest == "digest of head-onnxruntime"


def test_a_close_race_is_run_three_times(tmp_path: Path) -> None:
    cell, pairs, _ = chosen(tmp_path, [0.05, -0.03, 0.04], head=both("head"))
    assert (cell.head.runtime, pairs.asked) == ("tvm", 3)


def test_within_the_noise_the_head_keeps_the_runtime_of_the_base(tmp_path: Path) -> None:
    other = (make_task("conv", 2.0, rid="changed"),)
    effects = [-0.4, 0.01, 0.012, 0.005]
    cell, _, _ = chosen(tmp_path, effects, base=both("base"), head=both("head", other))
    assert cell.head.runtime == "onnxruntime"


def test_sides_with_the_same_kernels_are_measured_once(tmp_path: Path) -> None:
    parts = msgspec.structs.replace(candidate("head", "own", "Own"), tasks=TASKS)
    for head in (both("head"), (*both("head"), parts)):
        cell, pairs, _ = chosen(tmp_path, [-0.4], base=both("base"), head=head)
        assert pairs.asked == 1
        assert cell.head.runtime == cell.base.runtime == "onnxruntime"
        assert cell.head.choice == cell.base.choice


def test_what_cannot_be_compiled_ships_with_the_other_runtime_and_says_why(tmp_path: Path) -> None:
    cell, pairs, _ = chosen(tmp_path, [], head=failed("head", "operator Odd is not supported."))
    assert (cell.head.runtime, pairs.asked) == ("onnxruntime", 0)
    (refused,) = cell.choice.refused
    assert (refused.candidate, refused.title) == ("tvm", "TVM")
    assert (refused.reason, refused.is_lasting) == ("operator Odd is not supported.", True)


def test_a_base_that_lost_a_build_which_the_head_has_is_no_baseline(tmp_path: Path) -> None:
    """A slower head would pass beside the slower runtime of such a base."""
    tvm, onnx = failed("base", "the compiler was killed by SIGKILL on this model")
    crashed = (msgspec.structs.replace(tvm, crashed=True), onnx)
    cell, _, _ = chosen(tmp_path, [0.4], base=crashed, head=both("head"))
    assert (cell.base.error, cell.base.directory) == (tvm.error, "")
    refused, _, _ = chosen(tmp_path, [0.4], base=(tvm, onnx), head=both("head"))
    assert (refused.base.runtime, refused.base.error) == ("onnxruntime", None)
    alike, _, _ = chosen(tmp_path, [], base=crashed, head=failed("head", "killed"))
    assert (alike.base.runtime, alike.base.error) == ("onnxruntime", None)


def test_a_base_whose_runtime_cannot_be_measured_is_no_baseline(tmp_path: Path) -> None:
    cell, _, _ = chosen(tmp_path, [None, -0.4], base=both("base"), head=both("head", ()))
    assert "which runtime the base ships with could not be measured: no answer" in str(
        cell.base.error
    )


def test_a_head_whose_runtime_cannot_be_measured_has_that_of_the_base(tmp_path: Path) -> None:
    cell, _, _ = chosen(tmp_path, [-0.4, None], base=both("base"), head=both("head", ()))
    assert cell.head.runtime == "onnxruntime"
    assert cell.choice.reason.startswith("not measured: no answer")


def test_a_race_that_breaks_leaves_the_default_and_says_so(tmp_path: Path) -> None:
    cell, _, _ = chosen(tmp_path, [None], head=both("head"))
    assert cell.head.runtime == "tvm"
    assert "no answer" in cell.choice.reason


def three(name: str) -> tuple[Build, ...]:
    return (*both(name), candidate(name, "other", "Other"))


def test_of_three_the_fastest_ships_and_all_are_told(tmp_path: Path) -> None:
    cell, pairs, moves = chosen(tmp_path, [-0.4, -0.6], head=three("head"))
    assert (cell.head.runtime, pairs.asked) == ("other", 2)
    assert [time.candidate for time in cell.choice.times] == ["tvm", "onnxruntime", "other"]
    assert moves.kept == [("head-other", ["head-tvm", "head-onnxruntime"], "head")]


def test_a_third_candidate_displaces_nothing_within_the_noise(tmp_path: Path) -> None:
    without, _, _ = chosen(tmp_path, [-0.4], head=both("head"))
    cell, _, _ = chosen(tmp_path, [-0.4, -0.39, 0.01, 0.0, 0.015], head=three("head"))
    assert cell.head.runtime == without.head.runtime == "onnxruntime"


def test_a_base_that_cannot_measure_what_the_head_has_is_no_baseline(tmp_path: Path) -> None:
    """A slower head would pass beside what is left of such a base."""
    cell, _, _ = chosen(tmp_path, [-0.4, None, -0.4, -0.3], base=three("base"), head=three("head"))
    assert "which runtime the base ships with could not be measured" in str(cell.base.error)
    fewer, _, _ = chosen(tmp_path, [-0.4, None, -0.4], base=three("base"), head=both("head", ()))
    assert (fewer.base.runtime, fewer.base.error) == ("onnxruntime", None)


class SlowClock:
    """Time that passes between two looks at it."""

    def __init__(self, step_seconds: float) -> None:
        self._step_seconds, self._now = step_seconds, 0.0

    def monotonic(self) -> float:
        self._now += self._step_seconds
        return self._now

    time = monotonic


def test_variants_of_one_runtime_are_candidates_of_their_own(tmp_path: Path) -> None:
    variants = (candidate("head", "fast", "Fast"), candidate("head", "fast", "Fast (half)", "half"))
    cell, _, _ = chosen(tmp_path, [-0.4], head=variants)
    assert cell.head.candidate == "fast-half"
    assert cell.choice.ms_of("fast") == 1.0


def test_what_a_third_candidate_lacks_is_told_beside_the_times(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(three("head")[2], error="no kernel for Odd", directory="")
    cell, pairs, _ = chosen(tmp_path, [-0.4], head=(*both("head"), broken))
    assert (cell.head.runtime, pairs.asked) == ("onnxruntime", 1)
    assert [each.reason for each in cell.choice.refused] == ["no kernel for Odd"]


def refusals(*reasons: str) -> tuple[Build, ...]:
    return tuple(
        msgspec.structs.replace(build, error=f"{CELL.model}: {reason}", directory="")
        for build, reason in zip(both("head"), reasons, strict=True)
    )


def test_what_no_candidate_runs_has_the_reasons_of_all(tmp_path: Path) -> None:
    cell, pairs, moves = chosen(tmp_path, [], head=refusals("no LSTM", "Invalid indices."))
    assert cell.head.error == "TVM: no LSTM. ONNX Runtime: Invalid indices."
    assert [each.reason for each in cell.choice.refused] == ["no LSTM", "Invalid indices."]
    assert (pairs.asked, moves.kept) == (0, [])


class SlowStart:
    """No time for more than one launch of the first election, and all of it for the next."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return MAX_SIDE_SECONDS * min(self._looks, 3)

    time = monotonic


def test_the_head_is_elected_without_what_its_base_had_no_time_for(tmp_path: Path) -> None:
    """A head that is slower than its base under `other` would pass beside the base's runtime."""
    cell, pairs, moves = chosen(
        tmp_path,
        [-0.4, -0.4],
        base=three("base"),
        head=(*both("head", ()), three("head")[2]),
        clock=SlowStart(),
    )
    assert (cell.base.runtime, cell.head.runtime) == ("onnxruntime", "onnxruntime")
    assert [(each.title, each.reason) for each in cell.choice.refused] == [
        ("Other", "not measured: the election of the base had no time for it")
    ]
    assert moves.kept[-1] == ("head-onnxruntime", ["head-tvm", "head-other"], "head")
    assert pairs.effects == []
    assert not cell.choice.is_complete


def test_a_base_with_no_time_for_all_that_the_head_ships_is_no_baseline(tmp_path: Path) -> None:
    tvm, onnx, other = three("head")
    lost = tuple(msgspec.structs.replace(each, error="no", directory="") for each in (tvm, onnx))
    cell, _, _ = chosen(
        tmp_path, [-0.4], base=three("base"), head=(*lost, other), clock=SlowStart()
    )
    assert "had no time for what the head ships" in str(cell.base.error)
    assert (cell.head.runtime, cell.head.error) == ("other", None)


def candidate_of(runtime: str) -> Build:
    return msgspec.structs.replace(make_build(runtime), runtime=runtime, title=runtime.upper())


def raced(
    effects: Sequence[float | None],
    *,
    seconds: float = 60.0,
    clock: Clock = time,
    needed: Collection[str] = (),
    names: str = "abc",
) -> tuple[Build, RuntimeChoice, int]:
    """The winner of a, which leads, b and c, its choice, and the number of launches."""
    builds = {name: candidate_of(name) for name in names}
    pairs = ScriptedPairs(effects)
    launching = Launching(benchmarker=pairs, clock=clock, out=Path(), seconds=seconds)
    won = Race(builds, builds["a"], launching, needed).winner(RuntimeChoice())
    return won, present(won.choice), pairs.asked


def test_each_is_launched_and_has_its_median_time() -> None:
    won, choice, launches = raced([-0.4, -0.6])
    assert (won.runtime, launches) == ("c", 2)
    expected = [("a", 1.0), ("b", 0.6), ("c", 0.4)]
    assert [(each.candidate, each.ms) for each in choice.times] == expected


def test_a_gate_elects_nothing_that_the_time_does_not_suffice_for() -> None:
    won, choice, launches = raced([-0.4], clock=SlowClock(MAX_SIDE_SECONDS))
    assert (won.runtime, launches) == ("b", 1)
    assert [(each.title, each.reason) for each in choice.refused] == [
        ("C", "not measured: the time of the election was over")
    ]
    assert (choice.is_complete, choice.is_cut_short) == (False, True)


def test_where_one_broke_the_time_is_not_all_that_was_missing() -> None:
    clock = SlowClock(MAX_SIDE_SECONDS / 3)
    _, choice, launches = raced([-0.4, None], clock=clock, names="abcd")
    assert (launches, len(choice.refused)) == (2, 2)
    assert (choice.is_complete, choice.is_cut_short) == (False, False)


@pytest.mark.parametrize(
    ("effects", "winner", "broken"), [([None, -0.4], "c", "B"), ([-0.4, None], "b", "C")]
)
def test_a_challenger_that_cannot_be_measured_is_refused_by_name(
    effects: list[float | None], winner: str, broken: str
) -> None:
    won, choice, launches = raced(effects)
    assert (won.runtime, won.error, launches) == (winner, None, 2)
    assert [(each.title, each.reason) for each in choice.refused] == [
        (broken, "not measured: no answer in 120 s")
    ]
    assert broken not in [each.title for each in choice.times]


def test_a_challenger_that_breaks_later_is_refused_too() -> None:
    won, choice, _ = raced([0.01, 0.02, None, 0.01, 0.01])
    assert won.runtime == "a"
    assert [each.title for each in choice.refused] == ["B"]
