"""The port that gates models under the packages of watched lock files.

The implementation is the entry point `watch.files` of the group `tunegate.upgrades`, a
`LockFileWatcher`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol, cast

from tunegate.artifacts.builds import CellBuilds
from tunegate.artifacts.changes import (
    ChangeSet,
    ModelChange,
    ModelPath,
    ModelVersion,
    PolicyChange,
    Revisions,
)
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.config import Config, WatchConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.known_extras import missing
from tunegate.ports import Repository
from tunegate.tools import GateTools, ModelSource, RunContext
from tunegate_cache.installed_plugins import PluginError, load_plugin, plugin_named

UPGRADES_GROUP = "tunegate.upgrades"
_KEY = "watch.files"


class Upgrades(Protocol):
    """Environments with the packages of the changed lock files, and the models that run there."""

    def pythons(self, changes: ChangeSet) -> Mapping[Path, Path]:
        """Returns the Python that runs each artifact of the upgraded models, by the artifact's
        directory."""
        ...

    def builds(self, changes: ChangeSet, context: RunContext) -> Sequence[CellBuilds]:
        """Returns the builds of both sides of each upgraded model among these changes."""
        ...

    def with_culprits(self, run: MeasurementRun, tools: GateTools) -> MeasurementRun:
        """Returns the measurements, with the package that makes each upgraded model slower."""
        ...


class WatchedLocks(Protocol):
    """The watched lock files that a change touches."""

    @property
    def loosened_rules(self) -> tuple[PolicyChange, ...]:
        """The changes that someone must agree to: watched files that are gone, and what the others
        change without a measurement."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines on watched files that are not measured."""
        ...

    def models(
        self, config: Config, heads: Mapping[ModelPath, ModelVersion]
    ) -> Iterator[ModelChange]:
        """Yields a change of kind `upgraded` for each model of the head, lock file and runtime that
        the file pins. Raises ConfigError for a lock file that cannot be gated."""
        ...

    def open_environments(
        self, changes: ChangeSet, source: ModelSource, out: Path
    ) -> AbstractContextManager[Upgrades]:
        """Makes the environments that the upgraded models among these changes need; they stay until
        it is closed. `out` holds the builds. Raises ConfigError for a package that is refused."""
        ...


class LockFileWatcher(Protocol):
    """Reads lock files; the extra `upgrades` has one."""

    def compare_watched_files(
        self, repository: Repository, revisions: Revisions, watch: WatchConfig
    ) -> WatchedLocks:
        """Returns the comparison of the watched files of base and head. Raises ConfigError for an
        unreadable file of the head."""
        ...


class _NoUpgrades:
    def pythons(self, _: ChangeSet) -> Mapping[Path, Path]:
        return {}

    def builds(self, _changes: ChangeSet, _context: RunContext) -> Sequence[CellBuilds]:
        return ()

    def with_culprits(self, run: MeasurementRun, _: GateTools) -> MeasurementRun:
        return run


class _NothingWatched:
    loosened_rules: tuple[PolicyChange, ...] = ()
    notes: tuple[str, ...] = ()

    def models(
        self, _config: Config, _heads: Mapping[ModelPath, ModelVersion]
    ) -> Iterator[ModelChange]:
        return iter(())

    def open_environments(
        self, _changes: ChangeSet, _source: ModelSource, _out: Path
    ) -> AbstractContextManager[Upgrades]:
        return nullcontext(_NoUpgrades())


NOTHING_WATCHED: WatchedLocks = cast(WatchedLocks, _NothingWatched())


def watched_locks(repository: Repository, revisions: Revisions, watch: WatchConfig) -> WatchedLocks:
    """Returns the watched lock files that differ. Raises as `installed_watcher` does if files are
    watched, and ConfigError for an unreadable file of the head."""
    if not watch.files:
        return NOTHING_WATCHED
    return installed_watcher().compare_watched_files(repository, revisions, watch)


def installed_watcher() -> LockFileWatcher:
    """Returns the installed reader of lock files. Raises ConfigError without one, and
    EnvironmentUnfitError for a package that cannot be used."""
    plugin = plugin_named(UPGRADES_GROUP, _KEY)
    if plugin is None:
        raise ConfigError(missing("key", _KEY))
    try:
        return cast(LockFileWatcher, load_plugin(plugin))
    except PluginError as error:
        raise EnvironmentUnfitError(f"{error}. Install it again, or remove it.") from error
