"""The repository files that a configuration names: whether they exist, and which of those that
judge a change replaces."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from tunegate.artifacts.changes import ModelPath, PolicyChange, Revisions
from tunegate.config import Config, Inputs, ModelConfig
from tunegate.review.base_rules import METRIC_KEY, metric_of
from tunegate.review.model_settings import values_of
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
    return any(map(values_of, each))


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

    return (each for each in named_files(config) if not is_there(each.path))


def described_missing(missing: NamedFile, paths: Sequence[str]) -> str:
    """Returns the line on a missing file: what, where, what to do. `paths` are those of the
    revision."""
    ending = PurePosixPath(missing.path).suffix
    alike = [path for path in paths if PurePosixPath(path).suffix == ending]
    hint = did_you_mean(missing.path, alike, "")
    told = "commit it, or correct the path."
    return f"{missing.where}: {missing.path}: no such file in this revision: {told} {hint}".rstrip()


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
    for name, values in values_of(inputs).items():
        for file in values.files:
            if _is_inside(file):
                yield NamedFile(f"{key}.{name}", f"{where}.{name}.values", _plain(file))


def _scripts_of_command(entry: ModelConfig) -> Iterator[str]:
    """Returns the words that can only be files: a program by its path, and names that end like a
    script. A command's directory has only the repository files that it names."""
    words = _words(entry)
    for at, word in enumerate(words):
        is_program = at == 0 and "/" in word
        if _is_inside(word) and (is_program or PurePosixPath(word).suffix.lower() in _SCRIPTS):
            yield _plain(word)


def _paths_of_command(entry: ModelConfig) -> Iterator[str]:
    """Returns every word that may be a path, and what follows its `=`."""
    for word in _words(entry):
        for each in (word, word.partition("=")[2]):
            if _is_inside(each):
                yield _plain(each)


def _words(entry: ModelConfig) -> Sequence[str]:
    metric = metric_of(entry.accuracy)
    try:
        return () if metric is None else shlex.split(metric.run)
    except ValueError:
        return ()  # told where it runs


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts


def _plain(path: str) -> str:
    """Returns the path as git writes it."""
    return str(PurePosixPath(path))
