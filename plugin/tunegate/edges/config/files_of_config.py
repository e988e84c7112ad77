"""The files of the repository that a configuration names, looked for before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Protocol

from tunegate.artifacts.changes import ModelPath, ModelVersion, Revisions
from tunegate.config import Config
from tunegate.edges.inputs.checked_values import (
    CommittedFiles,
    given_value_problems,
    unmerged_value_problems,
)
from tunegate.errors import ConfigKey, config_error
from tunegate.ports import ModelReader
from tunegate.selection import selected
from tunegate.sides.named_files import described_missing, gives_values, missing_files

_Problems = Callable[[Mapping[ModelPath, ModelVersion]], Sequence[str]]


class WholeRepository(CommittedFiles, Protocol):
    """One that also says what git calls each directory."""

    def directories(self, revision: str) -> Mapping[str, str]: ...


class FilesOfConfig:
    """`name` is the configuration's own, for messages."""

    def __init__(self, repository: WholeRepository, reader: ModelReader, name: str) -> None:
        self._repository, self._reader, self._name = repository, reader, name
        self._directories = cache(repository.directories)

    def identity(self, revision: str, path: str) -> str:
        """Returns git's id of the content of a file or directory; '' where there is none."""
        return self._reader.blob(revision, path) or self._directories(revision).get(path, "")

    def check_change(self, config: Config, before: Config | None, revisions: Revisions) -> None:
        """Raises ConfigError for files that are not in the head, and for values that the change
        gives and its models do not take. Without a base each model is built, which tells."""
        self._require(
            config,
            revisions,
            lambda models: (
                ()
                if revisions.base is None
                else unmerged_value_problems(self._repository, revisions, config, before, models)
            ),
        )

    def check_all(self, config: Config, revisions: Revisions) -> None:
        """The same of every model of the head."""
        self._require(
            config,
            revisions,
            lambda models: given_value_problems(self._repository, revisions, config, models),
        )

    def _require(self, config: Config, revisions: Revisions, problems: _Problems) -> None:
        """All is told at once; a file that is missing once, with its likely name."""
        missing = [*missing_files(config, revisions, self.identity)]
        paths = [entry.path for entry in self._repository.files(revisions.head)] if missing else []
        told = [described_missing(each, paths) for each in missing]
        told += self._unfit(config, revisions, problems)
        if told:
            key = missing[0].key if missing else "models"
            raise config_error(
                [f"{self._name}: {each}" for each in told], ConfigKey(self._name, key)
            )

    def _unfit(self, config: Config, revisions: Revisions, problems: _Problems) -> Sequence[str]:
        if not any(map(gives_values, config.models)):
            return ()
        found = self._reader.models(revisions.head)
        return problems({path: found[path] for path in selected(config, found)})
