from __future__ import annotations

from msgspec.structs import replace

from tests.support import report_parts as parts
from tunegate.artifacts.plans import MeasuringShard, TuningPlan
from tunegate.plan.shards import compared_elsewhere, of_shard

CHANGES = parts.changes(
    parts.change("a.onnx", targets=("cpu", "gpu")),
    parts.change("b.onnx"),
    parts.change("c.onnx", kind="added", base=None),
)


def shard(index: int, target: str, *models: str) -> MeasuringShard:
    return MeasuringShard(
        index=index, target=target, labels=(), models=models, predicted_seconds=1.0
    )


SHARDS = (shard(0, "cpu", "a.onnx"), shard(1, "cpu", "b.onnx", "c.onnx"), shard(2, "gpu", "a.onnx"))
PLAN: TuningPlan = replace(parts.plan(CHANGES, parts.cache()), measuring=SHARDS)


def test_a_shard_has_its_own_models_on_its_own_target() -> None:
    found = of_shard(PLAN, SHARDS[2]).changes.models
    assert [(change.path, change.targets) for change in found] == [("a.onnx", ("gpu",))]


def test_the_others_share_the_error_unless_they_have_nothing_to_compare_with() -> None:
    assert [compared_elsewhere(PLAN, each) for each in SHARDS] == [2, 2, 2]
