"""Checks a configuration's values against the models before anything is built: a change runs on the
base's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from tunegate.artifacts.changes import ModelPath, ModelVersion, Revisions
from tunegate.artifacts.inputs import GivenFor
from tunegate.config import Config, ValuesConfig
from tunegate.errors import ConfigKey, ModelError, RevisionError, config_error
from tunegate.models.inputs.given_values import ABSENT, GivenValues
from tunegate.models.model_inputs import inputs_of_file
from tunegate.ports import ModelReader, Repository, TreeEntry
from tunegate.review.model_settings import profiles_for, selected, shapes_for, values_for
from tunegate.review.named_files import described_missing, gives_values, missing_files


class CommittedFiles(Repository, Protocol):
    """A repository that gives models without their data, and entries by path."""

    def entry(self, revision: str, path: str) -> TreeEntry | None: ...
    def content(self, version: ModelVersion) -> bytes: ...


def value_problems(
    repository: Repository, config: Config, files: Mapping[ModelPath, Path], revision: str
) -> Iterator[str]:
    """Yields a line for each value that a model rejects, except for missing files, which
    `review/named_files.py` reports. `files` are the models; value files are read at `revision`."""
    with TemporaryDirectory(prefix="tunegate-values-") as place:
        given = GivenValues(repository, Path(place))
        for path, file in files.items():
            for name in profiles_for(config, path):
                if values := values_for(config, name):
                    shapes = shapes_for(config, name, inputs_of_file(file)).shapes
                    wanted = GivenFor(values=values, shapes=shapes, revisions=(revision,))
                    told = given.rules(file, wanted).problems
                    yield from (f"{name}: {each}" for each in told if ABSENT not in each)


def unmerged_value_problems(
    repository: CommittedFiles,
    revisions: Revisions,
    config: Config,
    before: Config | None,
    models: Mapping[ModelPath, ModelVersion],
) -> tuple[str, ...]:
    """Returns such lines for values that a change gives differently from the base, in its
    configuration or in a file; nothing of this change runs on them. Files on the runner are left
    out: nobody merged their names. Unreadable models have no problem here."""
    asking = _Asking(repository, revisions)
    wanted = [
        path
        for path in models
        if any(asking.is_new(config, before, name) for name in profiles_for(config, path))
    ]
    return given_value_problems(
        repository, revisions, config, {path: models[path] for path in wanted}
    )


def given_value_problems(
    repository: CommittedFiles,
    revisions: Revisions,
    config: Config,
    models: Mapping[ModelPath, ModelVersion],
) -> tuple[str, ...]:
    """Returns such lines for all values of these head models."""
    with TemporaryDirectory(prefix="tunegate-values-") as place:
        giving = {path: each for path, each in models.items() if _has_values(config, path)}
        files = dict(_write_graphs(repository, giving, Path(place)))
        return tuple(value_problems(repository, config, files, revisions.head))


def _has_values(config: Config, path: ModelPath) -> bool:
    return any(values_for(config, name) for name in profiles_for(config, path))


class _Asking:
    def __init__(self, repository: CommittedFiles, revisions: Revisions) -> None:
        self._repository, self._revisions = repository, revisions

    def is_new(self, config: Config, before: Config | None, name: ModelPath) -> bool:
        values = values_for(config, name)
        files = {file for each in values.values() for file in each.files}
        if not values or any(Path(file).is_absolute() for file in files):
            return False
        said: dict[str, ValuesConfig] = {} if before is None else values_for(before, name)
        return values != said or any(map(self._is_replaced, files))

    def _is_replaced(self, file: str) -> bool:
        path, judge = file.removeprefix("./"), self._revisions.judged_by
        if judge is None:
            return False
        now = self._repository.entry(self._revisions.head, path)
        return now is not None and now != self._repository.entry(judge, path)


def _write_graphs(
    repository: CommittedFiles, models: Mapping[ModelPath, ModelVersion], into: Path
) -> Iterator[tuple[ModelPath, Path]]:
    """Yields the exported graphs, without weights, which nobody looks at."""
    for at, (path, version) in enumerate(models.items()):
        file = into / f"{at}.onnx"
        try:
            file.write_bytes(repository.content(version))
        except (ModelError, RevisionError):
            continue
        yield path, file


# The files that a configuration names, checked before anything is built.

_Problems = Callable[[Mapping[ModelPath, ModelVersion]], Sequence[str]]


class WholeRepository(CommittedFiles, Protocol):
    """A committed repository that also gives git's id of each directory."""

    def directories(self, revision: str) -> Mapping[str, str]: ...


class FilesOfConfig:
    """Checks the files of a configuration; `name` is its own, for messages."""

    def __init__(self, repository: WholeRepository, reader: ModelReader, name: str) -> None:
        self._repository, self._reader, self._name = repository, reader, name
        self._directories = cache(repository.directories)

    def identity(self, revision: str, path: str) -> str:
        """Returns git's id of a file or directory, '' if there is none."""
        return self._reader.blob(revision, path) or self._directories(revision).get(path, "")

    def check_change(self, config: Config, before: Config | None, revisions: Revisions) -> None:
        """Raises ConfigError for files missing in the head, and for values of the change that its
        models reject. Without a base every model is built, which reports its values."""
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
        """Does the same for every model of the head."""
        self._require(
            config,
            revisions,
            lambda models: given_value_problems(self._repository, revisions, config, models),
        )

    def _require(self, config: Config, revisions: Revisions, problems: _Problems) -> None:
        """Raises ConfigError with all problems at once; a missing file is named once, with its
        likely name."""
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
