from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import report_parts as parts
from tunegate.artifacts.plans import MeasuringShard, TuningPlan
from tunegate.plan.allocation import balanced
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


# Balanced shards.

loads = st.lists(st.floats(0, 1000), max_size=30)


@given(loads, st.integers(1, 8))
def test_every_load_is_in_exactly_one_bin(sizes: list[float], bins: int) -> None:
    groups = balanced(sizes, bins)
    assert len(groups) == bins
    assert sorted(index for group in groups for index in group) == list(range(len(sizes)))


@given(st.lists(st.integers(1, 20), min_size=1, max_size=7), st.integers(1, 3))
def test_the_fullest_bin_is_within_four_thirds_of_the_best(sizes: list[int], bins: int) -> None:
    fullest = max(sum(sizes[i] for i in group) for group in balanced(sizes, bins))
    best = min(
        max(
            sum(s for s, chosen in zip(sizes, where, strict=True) if chosen == b)
            for b in range(bins)
        )
        for where in product(range(bins), repeat=len(sizes))
    )
    assert fullest <= (4 / 3 - 1 / (3 * bins)) * best + 1e-9
