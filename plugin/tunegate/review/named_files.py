"""The files and values that a configuration names: whether they exist and fit the models, and which
files that judge a change replaces."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from tunegate.artifacts.changes import ModelPath, ModelVersion, PolicyChange, Revisions
from tunegate.artifacts.inputs import ABSENT, GivenFor
from tunegate.config import Config, Inputs, ModelConfig, ValuesConfig
from tunegate.errors import ConfigKey, ModelError, RevisionError, config_error
from tunegate.ports import InputReaders, ModelReader, Repository, TreeEntry
from tunegate.review import model_settings
from tunegate.review.base_rules import METRIC_KEY, metric_of
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate.wording import did_you_mean

IdentityAt = Callable[[str, str], str]
"""Looks up git's id of a path in a revision, '' if it has nothing there."""

_SCRIPTS = frozenset({".py", ".sh", ".bash", ".pl", ".rb", ".js", ".mjs", ".jl", ".r", ".lua"})
_DIGITS = 12


class NamedFile(NamedTuple):
    """`key` leads to the line that names the file, `where` describes that place."""

    key: str
    where: str
    path: str


class JudgingFile(NamedTuple):
    """A file whose content judges `model`, or all models if that is ''. `key` is the setting that
    names it."""

    key: str
    path: str
    model: ModelPath


def named_files(config: Config) -> Iterator[NamedFile]:
    """Yields each repository file that must exist, in the order of the configuration. Files on the
    runner are left out: another machine may have them."""
    for at, entry in enumerate(config.models):
        yield from _of_entry(f"models[{at}]", entry)


def gives_values(entry: ModelConfig) -> bool:
    """Returns whether an entry gives values for an input of its models."""
    each = (entry.inputs, *(profile.inputs for profile in entry.profiles.values()))
    return any(map(model_settings.values_of, each))


def missing_files(
    config: Config, revisions: Revisions, identity: IdentityAt
) -> Iterator[NamedFile]:
    """Returns the named files that are missing once the change is merged. A file that the base got
    after the branch began is there."""
    fork, judge = revisions.forked_at, revisions.judged_by

    def is_there(path: str) -> bool:
        if identity(revisions.head, path):
            return True
        return bool(fork and judge and identity(judge, path) and not identity(fork, path))

    return (named_file for named_file in named_files(config) if not is_there(named_file.path))


def described_missing(missing: NamedFile, paths: Sequence[str]) -> str:
    """Returns the line on a missing file: what, where, what to do. `paths` are those of the
    revision."""
    ending = PurePosixPath(missing.path).suffix
    alike = [path for path in paths if PurePosixPath(path).suffix == ending]
    hint = did_you_mean(missing.path, alike, "")
    advice = "commit it, or correct the path."
    return f"{missing.where}: {missing.path}: {ABSENT}: {advice} {hint}".rstrip()


def replaced_files(
    config: Config, revisions: Revisions, identity: IdentityAt
) -> Iterator[PolicyChange]:
    """Yields a policy change for each replaced file of the user's metric. `config` is the judging
    one: it names what the base has, and the base's files count."""
    return replacements(dict.fromkeys(_judging_files(config)), revisions, identity)


def replacements(
    files: Iterable[JudgingFile], revisions: Revisions, identity: IdentityAt
) -> Iterator[PolicyChange]:
    """Yields a policy change for each file whose content the change replaces. A file that the base
    lacks is new. A file that the branch never touched is changed by the base alone."""
    judge, fork = revisions.judged_by, revisions.forked_at
    if judge is None:
        return
    for key, path, model in files:
        old, new = identity(judge, path), identity(revisions.head, path)
        is_untouched = fork is not None and identity(fork, path) == new
        if old and old != new and not is_untouched:
            yield PolicyChange(
                key=key,
                old=f"{path} {old[:_DIGITS]}",
                new=f"{path} {new[:_DIGITS]}" if new else "deleted",
                effect="changed",
                counts="once merged",
                model=model,
            )


def _judging_files(config: Config) -> Iterator[JudgingFile]:
    for entry in config.models:
        for path in _paths_of_command(entry):
            yield JudgingFile(METRIC_KEY, path, entry.path)


def _of_entry(key: str, entry: ModelConfig) -> Iterator[NamedFile]:
    where = f"models: {entry.path}"
    yield from _of_values(entry.inputs, f"{key}.inputs", f"{where}: inputs")
    for name, profile in entry.profiles.items():
        inside = f"profiles.{name}.inputs"
        yield from _of_values(profile.inputs, f"{key}.{inside}", f"{where}: {inside}")
    for path in _scripts_of_command(entry):
        at = "accuracy.metric-command"
        yield NamedFile(f"{key}.{at}", f"{where}: {at}", path)


def _of_values(inputs: Inputs, key: str, where: str) -> Iterator[NamedFile]:
    for name, values in model_settings.values_of(inputs).items():
        for file in values.files:
            if _is_inside(file):
                yield NamedFile(f"{key}.{name}", f"{where}.{name}.values", _git_path(file))


def _scripts_of_command(entry: ModelConfig) -> Iterator[str]:
    """Returns the words that can only be files: a program by its path, and names that end like a
    script. A command's directory has only the repository files that it names."""
    words = _words(entry)
    for at, word in enumerate(words):
        is_program = at == 0 and "/" in word
        if _is_inside(word) and (is_program or PurePosixPath(word).suffix.lower() in _SCRIPTS):
            yield _git_path(word)


def _paths_of_command(entry: ModelConfig) -> Iterator[str]:
    """Returns every word that may be a path, and what follows its `=`."""
    for word in _words(entry):
        for each in (word, word.partition("=")[2]):
            if _is_inside(each):
                yield _git_path(each)


def _words(entry: ModelConfig) -> Sequence[str]:
    metric = metric_of(entry.accuracy)
    try:
        return () if metric is None else shlex.split(metric.run)
    except ValueError:
        return ()  # reported where it runs


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts


def _git_path(path: str) -> str:
    """Returns the path as git writes it."""
    return str(PurePosixPath(path))


# The values that a configuration gives, checked against the models before anything is built: a
# change runs on the base's values.


class CommittedFiles(Repository, Protocol):
    """A repository that gives models without their data, and entries by path."""

    def entry(self, revision: str, path: str) -> TreeEntry | None: ...
    def content(self, version: ModelVersion) -> bytes: ...


class WholeRepository(CommittedFiles, Protocol):
    """A committed repository that also gives git's id of each directory."""

    def directories(self, revision: str) -> Mapping[str, str]: ...


def value_problems(
    readers: InputReaders, config: Config, files: Mapping[ModelPath, Path], revision: str
) -> Iterator[str]:
    """Yields a line for each value that a model rejects, except for missing files, which
    `missing_files` finds. `files` are the models; value files are read at `revision`."""
    with TemporaryFolder() as place:
        read_values = readers.values_into(Path(place))
        for path, file in files.items():
            for name in model_settings.profiles_for(config, path):
                if values := model_settings.values_for(config, name):
                    shapes = model_settings.shapes_for(config, name, readers.inputs(file)).shapes
                    request = GivenFor(values=values, shapes=shapes, revisions=(revision,))
                    problems = read_values(file, request).problems
                    yield from (f"{name}: {line}" for line in problems if ABSENT not in line)


def unmerged_value_problems(
    repository: CommittedFiles,
    readers: InputReaders,
    revisions: Revisions,
    models: Mapping[ModelPath, ModelVersion],
    *,
    config: Config,
    before: Config | None,
) -> tuple[str, ...]:
    """Returns such lines for values that a change gives differently from the base, in its
    configuration or in a file; nothing of this change runs on them. Files on the runner are left
    out: nobody merged their names. Unreadable models have no problem here."""
    asking = _Asking(repository, revisions)
    paths = [
        path
        for path in models
        if any(
            asking.is_new(config, before, name)
            for name in model_settings.profiles_for(config, path)
        )
    ]
    return given_value_problems(
        repository, readers, revisions, config, {path: models[path] for path in paths}
    )


def given_value_problems(
    repository: CommittedFiles,
    readers: InputReaders,
    revisions: Revisions,
    config: Config,
    models: Mapping[ModelPath, ModelVersion],
) -> tuple[str, ...]:
    """Returns such lines for all values of these head models."""
    with TemporaryFolder() as place:
        giving = {path: each for path, each in models.items() if _has_values(config, path)}
        files = dict(_write_graphs(repository, giving, Path(place)))
        return tuple(value_problems(readers, config, files, revisions.head))


def _has_values(config: Config, path: ModelPath) -> bool:
    return any(
        model_settings.values_for(config, name)
        for name in model_settings.profiles_for(config, path)
    )


class _Asking:
    def __init__(self, repository: CommittedFiles, revisions: Revisions) -> None:
        self._repository, self._revisions = repository, revisions

    def is_new(self, config: Config, before: Config | None, name: ModelPath) -> bool:
        values = model_settings.values_for(config, name)
        files = {file for value in values.values() for file in value.files}
        if not values or any(Path(file).is_absolute() for file in files):
            return False
        values_before: dict[str, ValuesConfig] = (
            {} if before is None else model_settings.values_for(before, name)
        )
        return values != values_before or any(map(self._is_replaced, files))

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


class FilesOfConfig:
    """Checks the files of a configuration; `name` is its own, for messages."""

    def __init__(
        self, repository: WholeRepository, reader: ModelReader, readers: InputReaders, name: str
    ) -> None:
        self._repository, self._reader, self._name = repository, reader, name
        self._readers = readers
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
                else unmerged_value_problems(
                    self._repository, self._readers, revisions, models, config=config, before=before
                )
            ),
        )

    def check_all(self, config: Config, revisions: Revisions) -> None:
        """Does the same for every model of the head."""
        self._require(
            config,
            revisions,
            lambda models: given_value_problems(
                self._repository, self._readers, revisions, config, models
            ),
        )

    def _require(self, config: Config, revisions: Revisions, problems: _Problems) -> None:
        """Raises ConfigError with all problems at once; a missing file is named once, with its
        likely name."""
        missing = [*missing_files(config, revisions, self.identity)]
        paths = [entry.path for entry in self._repository.files(revisions.head)] if missing else []
        lines = [described_missing(each, paths) for each in missing]
        lines += self._unfit_problems(config, revisions, problems)
        if lines:
            key = missing[0].key if missing else "models"
            raise config_error(
                [f"{self._name}: {line}" for line in lines], ConfigKey(self._name, key)
            )

    def _unfit_problems(
        self, config: Config, revisions: Revisions, problems: _Problems
    ) -> Sequence[str]:
        if not any(map(gives_values, config.models)):
            return ()
        models = self._reader.models(revisions.head)
        return problems(
            {path: models[path] for path in model_settings.matching_paths(config, models)}
        )
