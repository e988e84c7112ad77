"""The watched lock files of a change, for the core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from tunegate.artifacts.changes import (
    ChangeSet,
    ModelChange,
    ModelPath,
    ModelVersion,
    PolicyChange,
    Revisions,
)
from tunegate.config import Config, WatchConfig
from tunegate.ports import Repository
from tunegate.tools import ModelSource
from tunegate.upgrades import LockFileWatcher, Upgrades, WatchedLocks
from tunegate_upgrades.locked_runtimes import LockedRuntime, locked_runtimes
from tunegate_upgrades.upgraded_locks import WatchedChanges, watched_changes
from tunegate_upgrades.upgraded_models import unmeasured_moves, unmeasured_upgrades, upgraded_models
from tunegate_upgrades.upgraded_sides import opened_upgrades


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Implements upgrades.WatchedLocks: the changes in the watched files, and the runtimes that
    they may pin."""

    changes: WatchedChanges = WatchedChanges()
    runtimes: tuple[LockedRuntime, ...] = ()

    @property
    def loosened_rules(self) -> tuple[PolicyChange, ...]:
        """Returns the watched files that were deleted, and the packages that others move without
        being measured."""
        moved = unmeasured_moves(self.changes.locks, self.runtimes)
        return (*self.changes.policy_changes, *moved)

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns lines on what is not measured."""
        return (*self.changes.notes, *unmeasured_upgrades(self.changes.locks, self.runtimes))

    def models(
        self, config: Config, heads: Mapping[ModelPath, ModelVersion]
    ) -> Iterator[ModelChange]:
        """Yields each model of the head once per lock file and runtime that it pins. Raises
        LockFileError."""
        return upgraded_models(config, heads, self.changes.locks, self.runtimes)

    def open_environments(
        self, changes: ChangeSet, source: ModelSource, out: Path
    ) -> AbstractContextManager[Upgrades]:
        """Makes the environments, which stay until the end. Raises ConfigError."""
        return opened_upgrades(self.changes.locks, self.runtimes, changes, source, out)


class Watcher:
    """Implements upgrades.LockFileWatcher."""

    def compare_watched_files(
        self, repository: Repository, revisions: Revisions, watch: WatchConfig
    ) -> Watched:
        """Compares the files of base and head. Runtimes are imported only if one changed."""
        changes = watched_changes(repository, revisions, watch)
        return Watched(changes=changes, runtimes=locked_runtimes() if changes.locks else ())


WATCHER = Watcher()
_watcher: LockFileWatcher = WATCHER
_watched: type[WatchedLocks] = Watched
