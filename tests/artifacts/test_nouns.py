import json

import msgspec
import pytest

from tests.support.measured_cells import make_build, make_measurement
from tunegate.artifacts import changes
from tunegate.artifacts.builds import CandidateTime, Cell, RuntimeChoice
from tunegate.artifacts.measurements import CellMeasurement, TaskDifference, UnmeasuredShard


def test_a_build_is_told_from_the_others_of_its_side_by_runtime_and_variant() -> None:
    build = msgspec.structs.replace(make_build(), runtime="tvm", variant="nhwc")
    assert build.candidate == "tvm-nhwc"


def test_a_choice_knows_the_time_of_each_candidate_that_was_measured() -> None:
    times = (
        CandidateTime(candidate="tvm", title="TVM", ms=2.0),
        CandidateTime(candidate="onnxruntime", title="ONNX Runtime", ms=3.0),
    )
    choice = RuntimeChoice(times=times)
    assert choice.ms_of("onnxruntime") == 3.0
    assert choice.ms_of("openvino") is None


def test_the_base_judges_where_nothing_newer_does() -> None:
    assert changes.Revisions(base="b", head="h").judged_by == "b"
    assert changes.Revisions(base="b", head="h", policy="p").judged_by == "p"
    assert changes.Revisions(base=None, head="h").judged_by is None


def test_rules_since_the_base_are_the_heads_own_only_where_the_base_judges() -> None:
    assert changes.Revisions(base="b", head="h", policy="p").forked_at == "b"
    assert changes.Revisions(base="b", head="h").forked_at is None
    assert changes.Revisions(base="b", head="h", policy="p", release="v1").forked_at is None


@pytest.mark.parametrize(
    ("effect", "weakens"), [("tightened", False), ("loosened", True), ("changed", True)]
)
def test_all_not_stricter_than_before_weakens(effect: changes.Effect, weakens: bool) -> None:
    change = changes.PolicyChange(key="gate.seconds", old="1", new="2", effect=effect, counts="now")
    assert change.weakens == weakens


def difference_ms(base_ms: float | None, head_ms: float | None) -> float:
    return TaskDifference(
        name="conv", base_ms=base_ms, head_ms=head_ms, source="search"
    ).difference_ms


def test_an_operator_that_one_side_does_not_have_takes_no_time_there() -> None:
    assert difference_ms(1.0, 3.0) == 2.0
    assert difference_ms(None, 3.0) == 3.0
    assert difference_ms(1.0, None) == -1.0


@pytest.mark.parametrize("path", ["m.onnx", "a@b/m@1.onnx", "M.ONNX"])
@pytest.mark.parametrize("profile", ["", "long", "v1.2"])
def test_a_name_has_its_path_and_its_profile(path: str, profile: str) -> None:
    name = changes.gated_name(path, profile)
    assert (changes.path_of(name), changes.profile_of(name)) == (path, profile)


@pytest.mark.parametrize("name", ["some command", "me@host", "a.onnx@b.onnx", "directory"])
def test_what_is_no_model_with_a_profile_is_a_path(name: str) -> None:
    assert (changes.path_of(name), changes.profile_of(name)) == (name, "")


LOST = UnmeasuredShard(
    shard=2, target="cpu", models=("a.onnx",), status="invalid-env", problem="nothing came"
)


def test_a_shard_says_what_is_wrong_and_what_to_run_again() -> None:
    assert LOST.reason == (
        "measuring shard 2 on cpu: nothing came. "
        "Run tunegate measure --shard 2 again, then tunegate verdict."
    )


def test_it_has_its_own_models_on_its_own_target() -> None:
    assert LOST.has(Cell(model="a.onnx", target="cpu"))
    assert not LOST.has(Cell(model="a.onnx", target="gpu"))
    assert not LOST.has(Cell(model="b.onnx", target="cpu"))


@pytest.mark.parametrize(
    ("key", "odd"),
    [
        *(("effect", odd) for odd in (101, -1e308, None)),
        *(("mean_effect", odd) for odd in (710.0, float("nan"))),
        *(("base_ms", odd) for odd in (0, -1.0, 1e308)),
        ("head_ms", 1e308),
        ("first_ms", [0.0, 1.0]),
        ("head_times", {"first": 10**9, "counts": [1]}),
        ("head_times", {"first": 0, "counts": [-1, 2]}),
        ("clocks", {"base_mhz": -1, "head_mhz": 900, "dropped": 0, "is_mediated": True}),
    ],
)
def test_a_file_with_numbers_that_no_clock_gives_is_refused(key: str, odd: object) -> None:
    found = json.loads(msgspec.json.encode(make_measurement((0.1,) * 4)))
    assert len(msgspec.json.decode(json.dumps(found), type=CellMeasurement).launches) == 4
    found["launches"][1][key] = odd
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(json.dumps(found), type=CellMeasurement)
