"""An implementation of `ports.Tuner` over child processes."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Shard
from tunegate.config import TargetConfig
from tunegate.edges.nvidia.session import gpus_of, held_together, prepared
from tunegate.edges.run_seed import derived
from tunegate.engine.programs import Programs
from tunegate.engine.protocol import ModelFile, OpenModels
from tunegate.engine.task_history import TaskHistory
from tunegate.engine.tuning_run import TuningRun
from tunegate.engine.workers.executor import Executor, LocalExecutor
from tunegate.engine.workers.ray_cluster.cluster import RayCluster
from tunegate.engine.workers.ray_cluster.door import Ray
from tunegate.ports import Clock, Publish, Shapes, Tuner
from tunegate_cache.format.records import DeviceFingerprint, Provenance, Toolchain


class EngineTuner:
    """Tunes shards with the compiler whose `programs` it starts, on this machine or `on_ray` on a
    cluster; `source` goes on every record, and candidates are run on inputs of `seed`. Without
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
        programs: Programs,
        seed: int,
        search_seed: int = 1,
        filters: bool = True,
        on_ray: bool = False,
    ) -> None:
        self._targets, self._shapes = targets, shapes
        self._device, self._toolchain, self._source = device, toolchain, source
        self._clock, self._scratch, self._programs = clock, scratch, programs
        self._seed, self._search_seed = derived(seed, "candidates"), search_seed
        self._filters, self._on_ray = filters, on_ray
        self.notes: tuple[str, ...] = ()

    def tune(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], Path], publish: Publish
    ) -> Generator[TaskOutcome, None, None]:
        """Outcomes as they come. Raises ModelError and EnvironmentUnfitError."""
        histories = self._histories(shard, self._device)
        is_nothing_paid = shard.budget.seconds == 0 or shard.budget.trials == 0
        if is_nothing_paid or all(history.before.is_served for history in histories):
            yield from (
                history.before.outcome()
                if history.before.is_served
                else history.outcome("not-started")
                for history in histories
            )
            return
        with self._run(shard, models, publish) as run:
            yield from run.outcomes()

    def recheck(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], Path]
    ) -> Iterator[TaskOutcome]:
        """Measures the schedules that the cache has for each task, and searches nothing. Raises
        ModelError and EnvironmentUnfitError."""
        with self._run(shard, models, lambda _: True) as run:
            yield from run.rechecks()

    @contextmanager
    def _run(
        self,
        shard: Shard,
        models: Mapping[tuple[ModelPath, Side], Path],
        publish: Publish,
    ) -> Iterator[TuningRun]:
        self._scratch.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="tune-", dir=self._scratch.absolute()))
        target = self._targets[shard.target]
        with self._measured_on(target, directory) as (executor, device):
            histories = self._histories(shard, device)
            request = OpenModels(
                models=self._files(histories, models),
                target=target,
                directory=str(directory),
                seed=self._search_seed,
                filters=self._filters,
            )
            run = TuningRun(
                request,
                histories,
                shard.budget,
                self._clock,
                publish,
                executor,
                self._seed,
                searcher=self._programs.searcher,
            )
            try:
                yield run
            finally:
                run.close()
                self.notes = (*self.notes, *run.notes)

    @contextmanager
    def _measured_on(
        self, target: TargetConfig, directory: Path
    ) -> Iterator[tuple[Executor, DeviceFingerprint]]:
        """The executor with the device as it is while something is measured there."""
        if self._on_ray:
            with closing(RayCluster(Ray(), target, self._programs.worker)) as cluster:
                yield cluster, cluster.device()
            return
        if target.kind != "cuda":
            yield LocalExecutor(target.kind, (), directory, self._programs.worker), self._device
            return
        gpus = gpus_of(target)
        with prepared(gpus, target) as (clocks, notes):
            self.notes = notes
            device = msgspec.structs.replace(self._device, clocks=clocks)
            with held_together(gpus) as are_held:
                worker = self._programs.worker
                executor = LocalExecutor(target.kind, gpus, directory, worker, are_held=are_held)
                yield executor, device

    def _histories(self, shard: Shard, device: DeviceFingerprint) -> list[TaskHistory]:
        return [
            TaskHistory(planned, device=device, toolchain=self._toolchain, source=self._source)
            for planned in shard.tasks
        ]

    def _files(
        self, tasks: Sequence[TaskHistory], models: Mapping[tuple[ModelPath, Side], Path]
    ) -> tuple[ModelFile, ...]:
        """The models the open tasks occur in; those that only the cache serves stay shut."""
        used = {
            (use.model, use.side)
            for history in tasks
            if not history.before.is_served
            for use in history.task.uses
        }
        return tuple(
            ModelFile(
                file=str(models[key].resolve()), path=key[0], shapes=dict(self._shapes[key[0]])
            )
            for key in sorted(used)
        )


_: type[Tuner] = EngineTuner
