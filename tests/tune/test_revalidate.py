from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.tuning_tasks import make_outcome, make_record, make_task
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import ExpectedStep, Shard, StepKind
from tunegate.models.export_models import ModelFiles
from tunegate.ports import Publish
from tunegate.tune.revalidation import Challenge, revalidate

MODELS: ModelFiles = {("m.onnx", "head"): ShapedModel(Path("/m.onnx"), {})}


class Rechecking:
    """Measures every schedule at the time that it claims."""

    notes = ()

    def __init__(self) -> None:
        self.shards: list[Shard] = []

    def tune(self, shard: Shard, models: ModelFiles, publish: Publish) -> Iterator[TaskOutcome]:
        raise NotImplementedError

    def recheck(self, shard: Shard, models: ModelFiles) -> Iterator[TaskOutcome]:
        assert models == MODELS
        self.shards.append(shard)
        for planned in shard.tasks:
            task, lookup = planned.resolved.task, planned.resolved.lookup
            records = lookup.records  # type: ignore[union-attr]  # what stands is a start
            yield msgspec.structs.replace(
                make_outcome(records=records, before_ms=10.0), key=task.key, target=task.target
            )


class Lines:
    def __init__(self) -> None:
        self.steps: list[str] = []

    def expect(self, steps: Sequence[ExpectedStep]) -> None: ...
    def step(self, text: str, kind: StepKind | None = None) -> None:
        self.steps.append(text)

    def update(self, text: str, seconds_left: float | None = None) -> None: ...
    def warn(self, text: str) -> None: ...


def standing(name: str, target: str) -> Challenge:
    theirs = make_record(name, milliseconds=1.0, target=target)
    theirs = msgspec.structs.replace(theirs, decisions=((3, (1, 1)),))
    ours = make_record(name, milliseconds=2.0, target=target)
    return Challenge(task=make_task(name, target=target), challengers=(theirs,), incumbent=ours)


def test_every_target_is_measured_once_and_every_candidacy_is_decided_in_its_order() -> None:
    every = [standing("a", "cpu"), standing("b", "gpu"), standing("c", "cpu")]
    tuner, said = Rechecking(), Lines()
    found = revalidate(every, MODELS, tuner, None, said)
    assert [(shard.target, len(shard.tasks)) for shard in tuner.shards] == [("cpu", 2), ("gpu", 1)]
    assert said.steps == ["measure: 2 tasks on cpu", "measure: 1 task on gpu"]
    assert [record for _, record in found] == [one.challengers[0] for one in every]


@pytest.mark.parametrize(("minutes", "seconds"), [(None, None), (1.5, 90.0)])
def test_the_budget_of_a_target_is_in_seconds(minutes: float | None, seconds: float | None) -> None:
    tuner = Rechecking()
    revalidate([standing("a", "cpu")], MODELS, tuner, minutes, Lines())
    assert tuner.shards[0].budget.seconds == seconds


def test_where_nothing_stands_nothing_is_measured() -> None:
    tuner = Rechecking()
    assert revalidate([], MODELS, tuner, 1.0, Lines()) == ()
    assert tuner.shards == []
