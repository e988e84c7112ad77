"""The loop of a collection: layers are drawn, compiled and measured, a few at a time, until the
budget is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from research.experience.layers.drawing import DrawnLayer
from research.experience.layers.layer_files import written_layer
from research.experience.measured_tasks import MIN_ROWS, TaskIdentity
from tunegate.artifacts.changes import Side
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import ResolvedTask, TaskUse, TuningTask
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.ports import ModelJob
from tunegate.tools import Tools
from tunegate.tune.tune_shard import tune
from tunegate.wording import plural
from tunegate_cache.format.records import Miss, TuningRecord

MOST_AT_ONCE = 8
"""Layers that one process of the search holds."""
_SECONDS_OF_A_TRIAL = 1.0
"""A guess, until something is measured."""
_HEAD: Final[Side] = "head"


class DrawnLayers:
    """The layers whose files lie in `directory`, by the path that messages have for them."""

    def __init__(self, directory: Path, threads: int) -> None:
        self._directory, self._threads = directory, threads
        self._drawn: dict[str, DrawnLayer] = {}

    def write_layer(self, drawn: DrawnLayer) -> tuple[str, ShapedModel] | None:
        """The name and the file of the layer."""
        file = written_layer(drawn, self._directory)
        if file is None:
            return None
        self._drawn[file.name] = drawn
        return file.name, ShapedModel(file, {})

    def identify(self, task: TuningTask) -> TaskIdentity:
        """Returns the words of a line about the task of one of them."""
        drawn = self._drawn[task.uses[0].model]
        layer = drawn.layer
        return TaskIdentity(layer.name, layer.kind, layer.digest, drawn.models, self._threads)


class LayerCollection:
    """One collection of one target. `budget` is for all of it, with the trials of each task."""

    def __init__(
        self, tools: Tools, target: TargetConfig, layers: DrawnLayers, budget: Budget
    ) -> None:
        self._tools, self._target, self._layers, self._budget = tools, target, layers, budget
        self._started = tools.context.clock.monotonic()
        self._trials = 0
        self._seconds_of_a_trial = _SECONDS_OF_A_TRIAL
        self._workloads: set[str] = set()

    def outcomes(self, drawn: Iterator[DrawnLayer], most: int | None) -> Iterator[TuningOutcome]:
        """One for each few layers, of `most` in all."""
        while most is None or most > 0:
            left = self._budget_left()
            chosen = list(islice(drawn, self._at_once(left, most)))
            if not chosen:
                return
            models = dict(filter(None, map(self._layers.write_layer, chosen)))
            tasks = self._extract(models)
            if most is not None:
                most -= len(tasks)
            if tasks:
                yield self._tune(tasks, models)

    @property
    def seconds(self) -> float:
        """Those since it began, compilation included."""
        return max(0.0, self._tools.context.clock.monotonic() - self._started)

    @property
    def trials(self) -> int:
        return self._trials

    def _budget_left(self) -> Budget:
        budget = self._budget
        return msgspec.structs.replace(
            budget,
            seconds=None if budget.seconds is None else max(0.0, budget.seconds - self.seconds),
            trials=None if budget.trials is None else max(0, budget.trials - self._trials),
        )

    def _at_once(self, left: Budget, most: int | None) -> int:
        """The layers that what is left pays for; none where it is too little for one."""
        per_task = self._budget.trials_per_task or MIN_ROWS
        trials = [] if left.trials is None else [left.trials]
        if left.seconds is not None:
            trials.append(int(left.seconds / self._seconds_of_a_trial))
        if min(trials, default=per_task) < min(MIN_ROWS, per_task):
            return 0
        paid = max(1, min(trials, default=per_task * MOST_AT_ONCE) // per_task)
        return min(MOST_AT_ONCE, paid, *(() if most is None else (most,)))

    def _extract(self, models: Mapping[str, ShapedModel]) -> list[TuningTask]:
        """The largest task of each layer; none of a layer that does not compile, or whose task was
        measured already."""
        context = self._tools.context
        context.progress.step(f"collect: {plural(len(models), 'layer')}")
        jobs = [
            ModelJob(file=model.file, path=name, shapes=model.shapes, target=self._target)
            for name, model in models.items()
        ]
        found: list[TuningTask] = []
        for name, answer in zip(models, self._tools.compiler.tasks(jobs), strict=True):
            if isinstance(answer, ModelError) or not answer:
                continue
            task = max(answer, key=lambda each: each.flops)
            if task.key.workload not in self._workloads:
                self._workloads.add(task.key.workload)
                use = TaskUse(model=name, side=_HEAD, weight=1, name=task.operator)
                found.append(msgspec.structs.replace(task, uses=(use,)))
        return found

    def _tune(
        self, tasks: Sequence[TuningTask], models: Mapping[str, ShapedModel]
    ) -> TuningOutcome:
        left = self._budget_left()
        trials = self._budget.trials_per_task or 0
        shard = Shard(
            index=0,
            target=self._target.name,
            labels=(),
            tasks=tuple(
                PlannedTask(resolved=ResolvedTask(task, Miss("off")), trials=trials, gain_ms=0.0)
                for task in tasks
            ),
            budget=left,
            predicted_seconds=0.0,
        )
        files = {(name, _HEAD): model for name, model in models.items()}
        outcome = tune(
            shard,
            files,
            tuner=self._tools.tuner,
            index=NOT_PUBLISHED,
            context=self._tools.context,
        )
        self._count(outcome)
        return outcome

    def _count(self, outcome: TuningOutcome) -> None:
        trials = sum(task.trials for task in outcome.tasks)
        self._trials += trials
        if trials:
            self._seconds_of_a_trial = outcome.spent.seconds / trials


class _NotPublished:
    """The schedules of drawn layers are nobody's records: only their times are kept."""

    def enqueue(self, records: Sequence[TuningRecord]) -> bool:
        return True

    def flush(self, seconds: float) -> int:
        return 0


NOT_PUBLISHED = _NotPublished()
