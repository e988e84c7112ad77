"""An implementation of `ports.CaseScorer` with commands of the configuration that judges.

A command never sees the checkout, which may be a pull request's. It runs in a directory of its own,
with the files it names as of the judging revision, and without variables that could hold a secret.
"""

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tunegate.errors import MeasurementError, ModelError, RevisionError
from tunegate.ports import CaseScorer, Repository
from tunegate.system.processes.interpreter import child_environment
from tunegate.system.processes.memory_limit import memory_limit
from tunegate.system.processes.user_command import (
    Surroundings,
    command_error,
    output_of,
    printed_number,
)

LIMIT_SECONDS = 120.0


class MetricCommands:
    """Files come from `revision`, never from `checkout`; `scratch` is a private directory. A
    command may take `limit_seconds`, and as much memory as a build."""

    def __init__(
        self,
        repository: Repository,
        revision: str,
        *,
        checkout: Path,
        scratch: Path,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        self._repository, self._revision = repository, revision
        self._checkout, self._scratch = checkout.resolve(), scratch
        self._limit_seconds = limit_seconds
        self._prepared: dict[str, Path] = {}

    def scores(self, command: str, cases: Path) -> tuple[float, ...]:
        names = sorted(file.name for file in cases.glob("*.npz"))
        within = Surroundings(
            directory=self._directory(command),
            variables=child_environment({}),
            limit_seconds=self._limit_seconds,
            memory_bytes=memory_limit().limit_bytes,
        )
        try:
            printed = output_of(command, str(cases.resolve()), within=within)
        finally:
            shutil.rmtree(cases, ignore_errors=True)
        return _numbers(command, printed.split(), names)

    def _directory(self, command: str) -> Path:
        """Returns a directory with the files that the command names. Raises MeasurementError."""
        if command not in self._prepared:
            into = self._scratch / str(len(self._prepared))
            into.mkdir(parents=True)
            self._export(command, into)
            self._prepared[command] = into
        return self._prepared[command]

    def _export(self, command: str, into: Path) -> None:
        try:
            words = shlex.split(command)
            self._refuse_checkout(words)
            export_named_files(self._repository, self._revision, words, into)
        except (ValueError, MeasurementError) as error:
            raise command_error(command, f"cannot be run ({error})") from error

    def _refuse_checkout(self, words: Sequence[str]) -> None:
        """Raises MeasurementError for a path into the checkout: it would run what a pull request
        wrote."""
        for word in words:
            for path in (Path(word), Path(word.partition("=")[2])):
                place = Path(os.path.realpath(path))  # `resolve` raises for links in a circle
                if path.is_absolute() and place.is_relative_to(self._checkout):
                    message = f"{path} lies in the checkout: write its path in the repository"
                    raise MeasurementError(message)


def _numbers(command: str, words: list[str], names: list[str]) -> tuple[float, ...]:
    if len(words) != len(names):
        raise command_error(
            command,
            f"printed {len(words)} words for {len(names)} cases: one number for each, in the order "
            "of their names, and nothing else",
        )
    return tuple(_number(command, word, name) for word, name in zip(words, names, strict=True))


def _number(command: str, word: str, name: str) -> float:
    number = printed_number(word)
    if number is None:
        raise command_error(command, f"printed no finite number for {name}, but `{word}`")
    return number


_: type[CaseScorer] = MetricCommands


# The files that a command line names, from the revision: the checkout may hold a pull request's.

_MOST_BYTES = 256 * 2**20
_MOST_FILES = 1000


def export_named_files(
    repository: Repository, revision: str, words: Sequence[str], into: Path
) -> None:
    """Writes each file, and each directory's files, that a word names by its repository path.
    Raises MeasurementError if that is no plain file, or too much."""
    paths = tuple(path for word in words for path in _paths(word))
    if not paths:
        return
    entries = [entry for entry in repository.files(revision) if _is_below(entry.path, paths)]
    if len(entries) > _MOST_FILES:
        raise MeasurementError(f"the directories that it names have over {_MOST_FILES} files")
    bytes_left = _MOST_BYTES
    for entry in entries:
        try:
            content = repository.data(revision, entry.path, bytes_left)
        except (ModelError, RevisionError) as error:
            raise MeasurementError(str(error).rstrip(".")) from error
        bytes_left -= len(content)
        file = into / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o700)  # it may be the program


def _paths(word: str) -> Iterator[str]:
    """Yields a word, and what follows its `=`, as git writes paths."""
    for each in {word, word.partition("=")[2]}:
        path = PurePosixPath(each)
        if each and not path.is_absolute() and ".." not in path.parts and path.parts:
            yield str(path)


def _is_below(path: str, directories: Sequence[str]) -> bool:
    return any(path == directory or path.startswith(f"{directory}/") for directory in directories)
