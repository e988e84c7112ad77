"""The values that a configuration gives, held against the models before anything is built: in a
change the base's are what its models run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from tunegate.artifacts.changes import ModelPath, ModelVersion, Revisions
from tunegate.config import Config, ValuesConfig
from tunegate.edges.inputs.given_values import ABSENT, GivenValues
from tunegate.edges.models.model_inputs import inputs_of_file
from tunegate.errors import ModelError, RevisionError
from tunegate.given_rules import GivenFor
from tunegate.ports import Repository, TreeEntry
from tunegate.selection import profiles_for, shapes_for, values_for


class CommittedFiles(Repository, Protocol):
    """A repository that gives models without their data, and says what is where."""

    def entry(self, revision: str, path: str) -> TreeEntry | None: ...
    def content(self, version: ModelVersion) -> bytes: ...


def value_problems(
    repository: Repository, config: Config, files: Mapping[ModelPath, Path], revision: str
) -> Iterator[str]:
    """Yields a line for each value that a model does not take, except for missing files, which
    `sides/named_files.py` reports. `files` are the models, and those of values are read at
    `revision`."""
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
    """The same of what a change gives otherwise than the base, by its configuration or in a file,
    which nothing of this change is run on. Files on the runner are not among it: nobody merged
    their names. Models that cannot be read have no problem here."""
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
    """The same of all that is given for these models of the head."""
    with TemporaryDirectory(prefix="tunegate-values-") as place:
        giving = {path: each for path, each in models.items() if _has_values(config, path)}
        files = dict(_written(repository, giving, Path(place)))
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


def _written(
    repository: CommittedFiles, models: Mapping[ModelPath, ModelVersion], into: Path
) -> Iterator[tuple[ModelPath, Path]]:
    """The graphs alone: nobody looks at weights."""
    for at, (path, version) in enumerate(models.items()):
        file = into / f"{at}.onnx"
        try:
            file.write_bytes(repository.content(version))
        except (ModelError, RevisionError):
            continue
        yield path, file
