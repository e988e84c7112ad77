from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from tests.support.measured_cells import make_context
from tests.support.simulated.hand_clock import HandClock
from tests.support.tuning_tasks import make_task
from tests.tune.test_tune_shard import Lines

from research.experience.layer_collection import MOST_AT_ONCE, DrawnLayers, LayerCollection
from research.experience.layers.drawing import DrawnLayer
from research.experience.layers.layer import ModelLayer, Scale, scaled
from research.tests.experience.layers.test_layer import CONVOLUTION, GROUPED, LAYERS, PRODUCT
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Budget, Shard
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.models.export_models import ModelFiles
from tunegate.ports import ModelJob, Publish
from tunegate.tools import Tools

TARGET = TargetConfig(name="cpu", threads=1)


class OneTaskEach:
    """A compiler that finds a transpose and a product in each layer; it refuses those named."""

    def __init__(self, refused: str = "") -> None:
        self.refused = refused

    def tasks(self, jobs: Sequence[ModelJob]) -> list[list[TuningTask] | ModelError]:
        return [
            ModelError("no")
            if job.path.startswith(self.refused or "?")
            else [make_task("transpose", flops=0.0), make_task(job.path)]
            for job in jobs
        ]


class SecondsPerTrial:
    """A tuner that gives each task its trials, a second each."""

    notes = ()

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self.shards: list[Shard] = []

    def tune(self, shard: Shard, models: ModelFiles, publish: Publish) -> Iterator[TaskOutcome]:
        self.shards.append(shard)
        for planned in shard.tasks:
            self._clock.now += planned.trials
            task = planned.resolved.task
            yield TaskOutcome(
                key=task.key,
                target="cpu",
                name=task.operator,
                source="search",
                records=(),
                trials=planned.trials,
                before_ms=1.0,
                best_ms=1.0,
                seconds=1.0,
                stopped="finished",
            )


class Bench:
    def __init__(self, directory: Path, budget: Budget, refused: str = "") -> None:
        clock = HandClock()
        self.tuner = SecondsPerTrial(clock)
        context = make_context(directory, Lines(), clock)
        parts = {"compiler": OneTaskEach(refused), "tuner": self.tuner, "context": context}
        tools = cast("Tools", SimpleNamespace(**parts))
        self.layers = DrawnLayers(directory / "layers", threads=1)
        self.collection = LayerCollection(tools, TARGET, self.layers, budget)

    def outcomes(
        self, layers: Sequence[ModelLayer], most: int | None = None
    ) -> list[TuningOutcome]:
        drawn = (DrawnLayer(layer, ("m",)) for layer in layers)
        return list(self.collection.outcomes(drawn, most))

    @property
    def sizes(self) -> list[int]:
        return [len(shard.tasks) for shard in self.tuner.shards]


def budget(**limits: float) -> Budget:
    none = Budget(seconds=None, trials=None, trials_per_task=20)
    return msgspec.structs.replace(none, **limits)


MANY = [scaled(CONVOLUTION, Scale(channels=1 + n / 8)) for n in range(20)]


def test_a_few_layers_are_searched_at_once_until_none_is_left(tmp_path: Path) -> None:
    bench = Bench(tmp_path, budget())
    bench.outcomes(MANY)
    assert bench.sizes == [MOST_AT_ONCE, MOST_AT_ONCE, 4]
    assert bench.collection.trials == 20 * 20
    assert bench.collection.seconds == 20 * 20


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        ({"seconds": 0.0}, []),
        ({"seconds": 10.0}, []),
        ({"seconds": 45.0}, [2]),
        ({"trials": 60}, [3]),
        ({"trials": 210}, [8, 2]),
        ({"trials": 0}, []),
    ],
)
def test_no_more_are_begun_than_what_is_left_pays_for(
    tmp_path: Path, limits: dict[str, float], sizes: list[int]
) -> None:
    bench = Bench(tmp_path, budget(**limits))
    bench.outcomes(MANY)
    assert bench.sizes == sizes


def test_no_more_are_measured_than_asked_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, budget())
    bench.outcomes(MANY, most=9)
    assert bench.sizes == [8, 1]


def test_each_shard_has_what_is_left_of_the_cap_and_every_task_its_trials(tmp_path: Path) -> None:
    bench = Bench(tmp_path, budget(seconds=1000.0))
    bench.outcomes(MANY[:12])
    assert [shard.budget.seconds for shard in bench.tuner.shards] == [1000.0, 840.0]
    assert {task.trials for shard in bench.tuner.shards for task in shard.tasks} == {20}


def test_a_layer_that_does_not_compile_is_left_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path, budget(), refused=GROUPED.digest)
    bench.outcomes([GROUPED, PRODUCT])
    assert bench.sizes == [1]


def test_a_task_says_the_layer_that_it_is_of(tmp_path: Path) -> None:
    bench = Bench(tmp_path, budget())
    bench.outcomes(LAYERS)
    (shard,) = bench.tuner.shards
    task = shard.tasks[LAYERS.index(GROUPED)].resolved.task
    found = bench.layers.identify(task)
    assert found == (GROUPED.name, "grouped", GROUPED.digest, ("m",), 1)


def test_the_same_workload_is_measured_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, budget())
    bench.outcomes([PRODUCT, PRODUCT])
    assert bench.sizes == [1]
