"""Merging what several runners measured: all of it once, or no pass."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.measured_cells import make_build, make_builds, make_launches, make_measurement
from tests.support.present import present
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import MeasurementRun, ShardBinding, ShardMeasurements
from tunegate.artifacts.plans import MeasuringShard
from tunegate.config import GateConfig
from tunegate.decide.compare import compare
from tunegate.errors import ArtifactError
from tunegate.measure.merge_shards import HandedShard, MergedShards, merge_shards
from tunegate_cache.format.records import DeviceFingerprint, WorkloadKey

BOUND = ShardBinding(plan="p", rules="r", outcomes="o")
OTHER = DeviceFingerprint(name="another cpu", kind="cpu", units=2, memory_bytes=8)
DEVICE = DeviceFingerprint(name="cpu", kind="cpu", units=2, memory_bytes=8)
SHARDS = (("a.onnx", "d.onnx"), ("b.onnx",), ("c.onnx",))
PLANNED = tuple(
    MeasuringShard(index=number, target="cpu", labels=(), models=models, predicted_seconds=1.0)
    for number, models in enumerate(SHARDS)
)
EFFECTS = {"a.onnx": 0.2, "b.onnx": 0.0, "c.onnx": 0.05, "d.onnx": -0.1}


def run_of(*models: str, device: DeviceFingerprint = DEVICE) -> MeasurementRun:
    cells = [Cell(model=model, target="cpu") for model in models]
    return MeasurementRun(
        device=device,
        builds=tuple(make_builds(make_build("b"), make_build("h"), cell) for cell in cells),
        cells=tuple(
            make_measurement(
                cell=cell,
                launches=make_launches([EFFECTS[cell.model] + 1e-3 * n for n in range(6)]),
                analyses=(4, 6, 9),
            )
            for cell in cells
        ),
        seed=models[0],
    )


def measured(number: int) -> ShardMeasurements:
    return ShardMeasurements(
        shard=number,
        target="cpu",
        bound=BOUND,
        machine=f"machine {number}",
        run=run_of(*SHARDS[number]),
    )


def handed(found: ShardMeasurements, name: str = "") -> HandedShard:
    name = name or f"measurements-{found.shard}.json"
    return HandedShard(name=name, shard=int(name[13]), content=found)


ALL = [handed(measured(number)) for number in range(3)]


def merged(*found: HandedShard) -> MergedShards:
    return merge_shards(PLANNED, found, BOUND)


def test_all_together_are_compared_as_one_run_is() -> None:
    """Holm's correction is over all cells, whichever runner measured them."""
    found = merged(*ALL)
    assert found.unmeasured == ()
    assert found.run is not None
    whole = run_of("a.onnx", "b.onnx", "c.onnx", "d.onnx")
    assert compare(found.run, GateConfig()) == compare(whole, GateConfig())
    key = WorkloadKey("w", "t")
    assert merged(handed(replace(measured(0), unasked=(key,))), *ALL[1:]).unasked == {(key, "cpu")}
    alone = compare(measured(0).run, GateConfig())[0].change_percent
    assert present(compare(found.run, GateConfig())[0].change_percent).low < present(alone).low


Spoiling = Callable[[ShardMeasurements], ShardMeasurements]
SPOILINGS: dict[str, Spoiling] = {
    "of another plan": lambda each: replace(each, bound=replace(BOUND, plan="x")),
    "measured for other rules": lambda each: replace(each, bound=replace(BOUND, rules="x")),
    "built from other tuning outcomes": lambda each: replace(
        each, bound=replace(BOUND, outcomes="x")
    ),
    "holds shard 7 on cpu": lambda each: replace(each, shard=7),
    "holds shard 1 on gpu": lambda each: replace(each, target="gpu"),
    "its measurements are not those": lambda each: replace(each, run=replace(each.run, cells=())),
    "its builds are not those": lambda each: replace(each, run=replace(each.run, builds=())),
    "its measurements are not those of the models": lambda each: replace(
        each, run=replace(each.run, cells=each.run.cells * 2)
    ),
}


@pytest.mark.parametrize("said", SPOILINGS)
def test_one_that_is_not_of_this_verdict_is_an_error_of_its_own_models(said: str) -> None:
    spoiled = handed(SPOILINGS[said](measured(1)), "measurements-1.json")
    found = merged(ALL[0], spoiled, ALL[2])
    (refused,) = found.unmeasured
    assert (refused.shard, refused.status, refused.models) == (1, "error", ("b.onnx",))
    assert f"measurements-1.json: {said}" in refused.reason
    assert "Run tunegate measure --shard 1 again, then tunegate verdict." in refused.reason
    assert models_of(found) == ["a.onnx", "c.onnx", "d.onnx"]


def models_of(found: MergedShards) -> list[str]:
    return [each.cell.model for each in found.run.cells] if found.run else []


@given(st.sets(st.integers(0, 2)), st.randoms(use_true_random=False))
def test_what_is_lost_costs_its_own_models_and_no_others(lost: set[int], random: Random) -> None:
    left = [each for each in ALL if each.shard not in lost]
    random.shuffle(left)
    found = merged(*left)
    assert {each.shard for each in found.unmeasured} == lost
    assert {each.status for each in found.unmeasured} <= {"invalid-env"}
    assert {*models_of(found), *(m for each in found.unmeasured for m in each.models)} == {*EFFECTS}
    assert (found.run is None) == (lost == {0, 1, 2})


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([*SPOILINGS, ""])), max_size=6))
def test_a_model_is_measured_if_its_shard_came_once_and_whole(came: list[tuple[int, str]]) -> None:
    """Whatever comes: each model is either measured as it was, or unmeasured, never both."""
    files = []
    for place, (number, said) in enumerate(came):
        content = SPOILINGS[said](measured(number)) if said else measured(number)
        is_whole = content == measured(number)
        files.append((number, is_whole, handed(content, f"measurements-{number}-{place}.json")))
    found = merged(*(each for _, _, each in files))
    for shard in PLANNED:
        mine = [is_whole for number, is_whole, _ in files if number == shard.index]
        is_measured = {*shard.models} <= {*models_of(found)}
        assert is_measured == (mine == [True])
        assert is_measured != any(each.shard == shard.index for each in found.unmeasured)


def test_one_that_came_twice_counts_neither_time() -> None:
    (twice,) = merged(*ALL, handed(measured(0), "measurements-0-again.json")).unmeasured
    assert (twice.shard, twice.status) == (0, "error")
    assert "came 2 times (measurements-0-again.json, measurements-0.json)" in twice.reason


def test_one_that_cannot_be_read_says_why() -> None:
    damaged = HandedShard(name="measurements-1.json", shard=1, problem="m: cut short. Again.")
    (refused,) = merged(ALL[0], damaged, ALL[2]).unmeasured
    assert refused.reason.startswith("measuring shard 1 on cpu: m: cut short. Again. Run ")


@pytest.mark.parametrize("shard", [7, None])
def test_a_file_of_no_shard_of_the_plan_is_refused(shard: int | None) -> None:
    foreign = HandedShard(name="measurements-7.json", shard=shard, content=measured(0))
    with pytest.raises(ArtifactError, match=r"measurements-7\.json: not of a measuring shard"):
        merged(*ALL, foreign)


def test_one_target_on_machines_of_two_kinds_is_not_judged() -> None:
    other = replace(measured(1), run=run_of("b.onnx", device=OTHER))
    found = merged(ALL[0], handed(other), ALL[2])
    assert found.run is None
    assert [each.status for each in found.unmeasured] == ["invalid-env"] * 3
    assert "0, 2 on cpu (cpu, 2 units); 1 on another cpu" in found.unmeasured[0].reason


def test_two_targets_may_be_measured_on_machines_of_two_kinds() -> None:
    planned = (*PLANNED[:1], replace(PLANNED[1], target="gpu"))
    run = run_of("b.onnx", device=OTHER)
    run = msgspec.convert(
        msgspec.json.decode(msgspec.json.encode(run).replace(b'"target":"cpu"', b'"target":"gpu"')),
        MeasurementRun,
    )
    other = replace(measured(1), target="gpu", run=run)
    found = merge_shards(planned, [ALL[0], handed(other)], BOUND)
    assert found.unmeasured == ()
    assert found.run is not None
    assert [each.device.name for each in found.run.shards] == ["cpu", "another cpu"]
    assert found.run.seed == ""
