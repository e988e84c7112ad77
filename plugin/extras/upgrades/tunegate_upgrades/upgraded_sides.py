"""The environments of a change's lock files, and the models that run under them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Cell, CellBuilds, unbuilt
from tunegate.artifacts.changes import SIDES, ChangeSet, ModelChange, upgraded_name, without_upgrade
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.cli.handlers.compare_environments import (
    NoEnvironment,
    SideEnvironment,
    built_under,
    with_relative_directory,
)
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.measure.bench_messages import Sides
from tunegate.measure.build_sides import build_directory
from tunegate.models.export_models import export_models
from tunegate.ports import ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import runtime_named
from tunegate.system.cache.shared_cache import cache_home
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate.system.processes.runtime_environment import RuntimeEnvironment
from tunegate.tools import GateTools, ModelSource, RunContext
from tunegate_upgrades.culprits import Culprits
from tunegate_upgrades.environments.kept_environments import KeptEnvironments
from tunegate_upgrades.environments.locked_packages import needed_pins
from tunegate_upgrades.environments.uv import Uv, UvError
from tunegate_upgrades.lock_files.lock import LockFile, LockFileError, PinnedPackage
from tunegate_upgrades.locked_runtimes import LockedRuntime
from tunegate_upgrades.locked_sides import LockedSides
from tunegate_upgrades.upgraded_locks import UpgradedLock


class UpgradedSides:
    """Implements upgrades.Upgrades: the head's models, with the packages of base and head."""

    def __init__(
        self,
        source: ModelSource,
        out: Path,
        environments: Mapping[str, Sides[SideEnvironment]],
        runtimes: Mapping[str, str],
        search: Culprits | None = None,
    ) -> None:
        """Environments and runtimes are by the names of the models that they run."""
        self._source, self._out = source, out
        self._environments, self._runtimes = environments, runtimes
        self._search = search

    def pythons(self, changes: ChangeSet) -> dict[Path, Path]:
        """Returns the Python that runs each artifact."""
        return {
            self._out / build_directory(Cell(model=each.path, target=target), side): found.python
            for each in upgraded_changes(changes)
            for target in each.targets
            for side in SIDES
            if isinstance(found := self._environments[each.path].of(side), RuntimeEnvironment)
        }

    def builds(self, changes: ChangeSet, context: RunContext) -> Sequence[CellBuilds]:
        """Returns a build for each side of every upgraded model among these changes."""
        targets = {target.name: target for target in self._source.config.targets}
        return [
            self._build(each, targets[name], changes, context)
            for each in upgraded_changes(changes)
            for name in each.targets
            if name in targets
        ]

    def with_culprits(self, run: MeasurementRun, tools: GateTools) -> MeasurementRun:
        """Returns the measurements, with the package that makes each upgraded model slower."""
        return self._search.with_culprits(run, tools) if self._search is not None else run

    def _build(
        self, change: ModelChange, target: TargetConfig, changes: ChangeSet, context: RunContext
    ) -> CellBuilds:
        cell = Cell(model=change.path, target=target.name)
        runtime = runtime_named(self._runtimes[change.path])
        scratch = self._source.workdir / "save" / "upgraded" / target.name
        places = Sides(*(self._out / build_directory(cell, side) for side in SIDES))
        context.progress.step(f"build: {change.path} on {target.name}")
        try:
            model = self._model(change, target, changes)
        except ModelError as error:
            return CellBuilds(cell=cell, base=None, head=unbuilt(str(error)))
        base, head = built_under(
            runtime,
            model,
            places,
            self._environments[change.path],
            SavingBuilder(
                runtime,
                scratch,
                seed=context.seed,
                libraries=self._source.config.custom_operators,
            ),
        ).map(lambda build: with_relative_directory(build, self._out))
        return CellBuilds(cell=cell, base=base, head=head)

    def _model(self, change: ModelChange, target: TargetConfig, changes: ChangeSet) -> ModelJob:
        """Returns the head's model, as a new one would run. Raises ModelError."""
        name = without_upgrade(change.path)
        alone = msgspec.structs.replace(change, path=name, kind="added", base=None)
        only = msgspec.structs.replace(changes, models=(alone,))
        return export_models(only, self._source).job(name, "head", target)


def upgraded_changes(changes: ChangeSet) -> list[ModelChange]:
    """Returns the changes that are gated for a lock file."""
    return [each for each in changes.models if each.kind == "upgraded"]


@contextmanager
def opened_upgrades(
    locks: Sequence[UpgradedLock],
    runtimes: Sequence[LockedRuntime],
    changes: ChangeSet,
    source: ModelSource,
    out: Path,
) -> Iterator[UpgradedSides]:
    """Makes the environments, which stay until the end. Raises ConfigError for a lock file of the
    head with a rejected package, and if uv is not installed."""
    wanted = upgraded_changes(changes)
    if not wanted:
        yield UpgradedSides(source, out, {}, {})
        return
    place = cache_home() / "environments"
    indexes = source.config.watch.indexes
    with TemporaryFolder() as scratch:
        uv = Uv(indexes, Path(scratch))
        with KeptEnvironments(place, uv, indexes) as kept:
            making = _Making(indexes, uv, kept)
            environments, names, locked = {}, {}, {}
            for lock, runtime in _pairs(locks, runtimes, wanted):
                sides = making.sides(lock, runtime)
                for change in wanted:
                    model = without_upgrade(change.path)
                    if change.path == upgraded_name(model, runtime.name, lock.head.path):
                        environments[change.path] = sides
                        names[change.path] = runtime.name
                        if both := making.locked_sides(lock, runtime):
                            locked[change.path] = both
            libraries = source.config.custom_operators
            search = Culprits(locked, kept.environment, source.workdir / "culprits", libraries)
            yield UpgradedSides(source, out, environments, names, search)


class _Making:
    """Makes environments from lock files."""

    def __init__(self, indexes: Sequence[str], uv: Uv, environments: KeptEnvironments) -> None:
        self._indexes, self._uv, self._kept = indexes, uv, environments
        self._pins: dict[tuple[frozenset[tuple[object, ...]], str], dict[str, PinnedPackage]] = {}

    def sides(self, lock: UpgradedLock, runtime: LockedRuntime) -> Sides[SideEnvironment]:
        """Returns both environments. Raises LockFileError if the head's is rejected."""
        head: SideEnvironment = self._make_environment(lock.head, runtime)
        base: SideEnvironment = None
        if lock.base is not None:
            try:
                base = self._make_environment(lock.base, runtime)
            except LockFileError as error:
                base = NoEnvironment(reason=f"at the base, {error}")
        return Sides(base, head)

    def locked_sides(self, lock: UpgradedLock, runtime: LockedRuntime) -> LockedSides | None:
        """Returns the packages of both sides, if both have an environment."""
        if lock.base is None:
            return None
        files = (lock.base, lock.head)
        base, head = (self._pins.get((each.decides(), runtime.name)) for each in files)
        if base is None or head is None:
            return None
        return LockedSides(pins=Sides(base, head), roots=runtime.packages)

    def _make_environment(
        self, lock: LockFile, runtime: LockedRuntime
    ) -> RuntimeEnvironment | NoEnvironment:
        roots = runtime.packages
        try:
            pins = needed_pins(lock, roots, self._uv, self._indexes)
            directory = self._kept.environment(pins)
        except (UvError, OSError) as error:
            return NoEnvironment(reason=f"{lock.path} cannot be installed: {error}", broken=True)
        self._pins[lock.decides(), runtime.name] = {pin.name: pin for pin in pins}
        versions = {pin.name: pin.version for pin in pins}
        return RuntimeEnvironment(
            directory=directory,
            python=directory / "bin" / "python",
            version=versions[roots[0]],
            packages=versions,
            others={},
        )


def _pairs(
    locks: Sequence[UpgradedLock], runtimes: Sequence[LockedRuntime], changes: Sequence[ModelChange]
) -> Iterator[tuple[UpgradedLock, LockedRuntime]]:
    """Yields lock files with the runtimes that some model runs under them."""
    for lock, runtime in product(locks, runtimes):
        ending = upgraded_name("", runtime.name, lock.head.path)
        if any(change.path.endswith(ending) for change in changes):
            yield lock, runtime
