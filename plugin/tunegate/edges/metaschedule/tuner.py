"""ports.Tuner over child processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Shard
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.ledger import TaskLedger
from tunegate.edges.metaschedule.messages import ModelFile, OpenModels
from tunegate.edges.metaschedule.tuning_run import TuningRun
from tunegate.edges.nvidia.session import MeasuredGpu, gpus_of, prepared
from tunegate.ports import Clock, Publish, Shapes, Tuner
from tunegate_cache.records import DeviceFingerprint, Provenance, Toolchain


class MetaScheduleTuner:
    """Tunes shards with MetaSchedule on this machine; `source` goes on every record. Without
    `filters` nothing is picked: for comparison."""

    def __init__(
        self,
        *,
        targets: Mapping[str, TargetConfig],
        shapes: Mapping[ModelPath, Shapes],
        device: DeviceFingerprint,
        toolchain: Toolchain,
        source: Provenance,
        clock: Clock,
        scratch: Path,
        seed: int = 1,
        filters: bool = True,
    ) -> None:
        self._targets, self._shapes = targets, shapes
        self._device, self._toolchain, self._source = device, toolchain, source
        self._clock, self._scratch, self._seed = clock, scratch, seed
        self._filters = filters
        self.notes: tuple[str, ...] = ()

    def tune(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], Path], publish: Publish
    ) -> Iterator[TaskOutcome]:
        """Outcomes as they come. Raises ModelError and EnvironmentUnfitError."""
        ledgers = self._ledgers(shard)
        yield from (ledger.served_outcome() for ledger in ledgers if ledger.is_served)
        open_tasks = [ledger for ledger in ledgers if not ledger.is_served]
        if not open_tasks or shard.budget.seconds == 0 or shard.budget.trials == 0:
            yield from (ledger.outcome("not-started") for ledger in open_tasks)
            return
        with self._devices(shard) as gpus:
            ledgers = self._ledgers(shard)  # records say how the clocks are
            run = self._run(shard, ledgers, models, publish, gpus)
            try:
                yield from run.outcomes()
            finally:
                run.close()
                self.notes = (*self.notes, *run.notes)

    def recheck(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], Path]
    ) -> Iterator[TaskOutcome]:
        """Measures the schedules that the cache has for each task, and searches nothing. Raises
        ModelError and EnvironmentUnfitError."""
        with self._devices(shard) as gpus:
            run = self._run(shard, self._ledgers(shard), models, lambda _: True, gpus)
            try:
                yield from run.rechecks()
            finally:
                run.close()

    @contextmanager
    def _devices(self, shard: Shard) -> Iterator[tuple[MeasuredGpu, ...]]:
        """None for a target of the CPU."""
        target = self._targets[shard.target]
        if target.kind != "cuda":
            yield ()
            return
        gpus = gpus_of(target)
        with prepared(gpus, target) as (clocks, notes):
            self._device = msgspec.structs.replace(self._device, clocks=clocks)
            self.notes = notes
            yield gpus

    def _run(
        self,
        shard: Shard,
        tasks: Sequence[TaskLedger],
        models: Mapping[tuple[ModelPath, Side], Path],
        publish: Publish,
        gpus: Sequence[MeasuredGpu],
    ) -> TuningRun:
        self._scratch.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="tune-", dir=self._scratch))
        request = OpenModels(
            models=self._files(tasks, models),
            target=self._targets[shard.target],
            directory=str(directory),
            seed=self._seed,
            filters=self._filters,
        )
        return TuningRun(request, tasks, shard.budget, self._clock, publish, gpus)

    def _ledgers(self, shard: Shard) -> list[TaskLedger]:
        return [
            TaskLedger(planned, device=self._device, toolchain=self._toolchain, source=self._source)
            for planned in shard.tasks
        ]

    def _files(
        self, tasks: Sequence[TaskLedger], models: Mapping[tuple[ModelPath, Side], Path]
    ) -> tuple[ModelFile, ...]:
        """The models the open tasks occur in; those that only the cache serves stay shut."""
        used = {
            (use.model, use.side)
            for ledger in tasks
            if not ledger.is_served
            for use in ledger.task.uses
        }
        return tuple(
            ModelFile(
                file=str(models[key].resolve()), path=key[0], shapes=dict(self._shapes[key[0]])
            )
            for key in sorted(used)
        )


_: type[Tuner] = MetaScheduleTuner
