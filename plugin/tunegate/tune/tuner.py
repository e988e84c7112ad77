"""`ports.Tuner` over child processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol, cast

import msgspec

from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Shard
from tunegate.artifacts.tasks import RecordOrigin
from tunegate.config import LOCAL, Config, TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.known_extras import GROUPS
from tunegate.ports import Clock, Programs, Publish, Tuner
from tunegate.system.clock import derive_seed
from tunegate.system.nvidia.nvml import busy_meter
from tunegate.system.nvidia.session import gpus_of, held_together, prepare_devices
from tunegate.tune.batches import BudgetMeter
from tunegate.tune.protocol import ModelFile, OpenModels
from tunegate.tune.searchers import Describe, SearchProgram, ignore
from tunegate.tune.task_history import TaskHistory
from tunegate.tune.tuning_run import TuningRun
from tunegate.tune.workers import Executor, LocalExecutor
from tunegate_cache.format.records import DeviceFingerprint, WorkloadKey
from tunegate_cache.installed_plugins import PluginError, load_plugin, plugin_named


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the search: `seed` draws candidates; without `filters` none of them is picked, for
    comparison and for experience that has bad candidates in it, too. `describe` receives the
    templates of each task."""

    seed: int = 1
    filters: bool = True
    describe: Describe = ignore


USUAL_SEARCH = SearchOptions()


class EngineTuner:
    """Tunes shards with the compiler that `programs` start, on this machine or on a cluster, as
    `config` says. Candidates run on inputs of `seed`."""

    def __init__(
        self,
        *,
        config: Config,
        origin: RecordOrigin,
        clock: Clock,
        scratch: Path,
        programs: Programs,
        seed: int,
        search: SearchOptions = USUAL_SEARCH,
    ) -> None:
        self._config, self._origin, self.search = config, origin, search
        self._clock, self._scratch, self._programs = clock, scratch, programs
        self._seed = derive_seed(seed, "candidates")
        self.notes: tuple[str, ...] = ()

    def tune(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], ShapedModel], publish: Publish
    ) -> Generator[TaskOutcome, None, None]:
        """Yields outcomes as they come. Schedules of an older toolchain are re-elected before
        anything is searched. Raises ModelError and EnvironmentUnfitError."""
        histories = self._histories(shard, self._origin)
        if shard.budget.pays_nothing or all(history.before.is_served for history in histories):
            yield from (
                history.before.outcome()
                if history.before.is_served
                else history.outcome("not-started")
                for history in histories
            )
            return
        older_histories = tuple(history for history in histories if history.before.is_outdated)
        if older_histories:
            yield from (each.before.outcome() for each in older_histories)
            shard = yield from self._reelect(shard, older_histories, models, publish)
            yield from self.tune(shard, models, publish)
            return
        with self._run(shard, models, publish) as run:
            yield from run.outcomes()

    def _reelect(
        self,
        shard: Shard,
        older_histories: Sequence[TaskHistory],
        models: Mapping[tuple[ModelPath, Side], ShapedModel],
        publish: Publish,
    ) -> Generator[TaskOutcome, None, Shard]:
        """Yields the outcomes of these tasks. Returns the shard of the others, with the rest of the
        budget."""
        began = self._clock.monotonic()
        trials: dict[WorkloadKey, int] = {}
        tasks = {each.planned.resolved.task.key: each.planned for each in older_histories}
        older_shard = msgspec.structs.replace(shard, tasks=tuple(tasks.values()))
        with self._run(older_shard, models, publish) as run:
            for outcome in run.reelections():
                trials[outcome.key] = outcome.trials
                yield outcome
        rest = shard.budget.remaining_after(self._clock.monotonic() - began, sum(trials.values()))
        others = tuple(task for task in shard.tasks if task.resolved.task.key not in tasks)
        return msgspec.structs.replace(shard, tasks=others, budget=rest)

    def recheck(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], ShapedModel]
    ) -> Iterator[TaskOutcome]:
        """Measures the cached schedules of each task, without a search. Raises ModelError and
        EnvironmentUnfitError."""
        with self._run(shard, models, lambda _: True) as run:
            yield from run.rechecks()

    @contextmanager
    def _run(
        self,
        shard: Shard,
        models: Mapping[tuple[ModelPath, Side], ShapedModel],
        publish: Publish,
    ) -> Iterator[TuningRun]:
        began = self._clock.monotonic()
        self._scratch.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="tune-", dir=self._scratch.absolute()))
        target = next(each for each in self._config.targets if each.name == shard.target)
        with self._open_executor(target, directory) as (executor, origin):
            histories = self._histories(shard, origin)
            request = OpenModels(
                models=self._files(histories, models),
                target=target,
                directory=str(directory),
                seed=self.search.seed,
                filters=self.search.filters,
            )
            run = TuningRun(
                request,
                histories,
                spending=BudgetMeter(
                    shard.budget,
                    self._clock,
                    began=began,
                    crowding=os.getloadavg()[0] / (os.cpu_count() or 1),
                ),
                publish=publish,
                executor=executor,
                seed=self._seed,
                searcher=SearchProgram(
                    self._programs.searcher,
                    self.search.describe,
                    self._programs.gpu_variables() if target.kind == "cuda" else {},
                ),
            )
            try:
                yield run
            finally:
                run.close()
                self.notes = (*self.notes, *run.notes)

    @contextmanager
    def _open_executor(
        self, target: TargetConfig, directory: Path
    ) -> Iterator[tuple[Executor, RecordOrigin]]:
        """Returns the executor, with the device as it is while something is measured there."""
        if self._config.executor != LOCAL:
            worker = self._programs.worker
            with closing(open_cluster(self._config.executor, target, worker)) as cluster:
                yield cluster, msgspec.structs.replace(self._origin, device=cluster.device())
            return
        if target.kind != "cuda":
            yield LocalExecutor(target.kind, (), directory, self._programs.worker), self._origin
            return
        gpus = gpus_of(target)
        with prepare_devices(gpus, target) as (clocks, notes):
            self.notes = notes
            device = msgspec.structs.replace(self._origin.device, clocks=clocks)
            uuids = [each.gpu.uuid for each in gpus]
            with held_together(gpus) as are_held, busy_meter(uuids) as busy:
                executor = LocalExecutor(
                    target.kind,
                    gpus,
                    directory,
                    self._programs.worker,
                    are_held=are_held,
                    busy=busy,
                )
                yield executor, msgspec.structs.replace(self._origin, device=device)

    def _histories(self, shard: Shard, origin: RecordOrigin) -> list[TaskHistory]:
        return [
            TaskHistory(
                task,
                device=origin.device,
                toolchain=origin.toolchain,
                source=origin.source,
                most_trials=shard.budget.trials_per_task,
            )
            for task in shard.tasks
        ]

    def _files(
        self, tasks: Sequence[TaskHistory], models: Mapping[tuple[ModelPath, Side], ShapedModel]
    ) -> tuple[ModelFile, ...]:
        """Returns the models of the open tasks. A model whose tasks are all served by the cache is
        not opened."""
        names = {
            (use.model, use.side)
            for history in tasks
            if not history.before.is_served
            for use in history.task.uses
        }
        return tuple(
            ModelFile(
                file=str(models[key].file.resolve()),
                path=key[0],
                shapes=dict(models[key].shapes),
            )
            for key in sorted(names)
        )


_: type[Tuner] = EngineTuner


# Workers on other machines: a cluster, found by the entry-point group `tunegate.workers`. The
# configuration's `executor` names the entry point, whose value is a function that opens the cluster
# for one target.


class Cluster(Executor, Protocol):
    """An executor whose devices are on other machines."""

    def device(self) -> DeviceFingerprint:
        """The device that records name. Raises EnvironmentUnfitError if no worker starts."""
        ...

    def close(self) -> None: ...


OpenCluster = Callable[[TargetConfig, str], Cluster]
"""Opens the cluster for a target. Its workers run the named module."""


def open_cluster(name: str, target: TargetConfig, program: str) -> Cluster:
    """Opens the cluster. Raises EnvironmentUnfitError if it is not installed or not reachable."""
    plugin = plugin_named(GROUPS["executor"], name)
    if plugin is None:
        raise EnvironmentUnfitError(f"executor: {name} is not installed.")
    try:
        opening = cast(OpenCluster, load_plugin(plugin))
    except PluginError as error:
        raise EnvironmentUnfitError(f"executor: {error}. Install it again.") from error
    return opening(target, program)
