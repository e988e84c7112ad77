"""The files of a revision that a command line names: a checkout has what a pull request wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tunegate.errors import MeasurementError, ModelError, RevisionError
from tunegate.ports import Repository

_MOST_BYTES = 256 * 2**20
_MOST_FILES = 1000


def export_named_files(
    repository: Repository, revision: str, words: Sequence[str], into: Path
) -> None:
    """Writes each file, and all files of each directory, that a word names by its path in the
    repository. Raises MeasurementError for what is no plain file, or too much."""
    named = tuple(path for word in words for path in _paths(word))
    if not named:
        return
    wanted = [entry for entry in repository.files(revision) if _is_below(entry.path, named)]
    if len(wanted) > _MOST_FILES:
        raise MeasurementError(f"the directories that it names have over {_MOST_FILES} files")
    left = _MOST_BYTES
    for entry in wanted:
        try:
            content = repository.data(revision, entry.path, left)
        except (ModelError, RevisionError) as error:
            raise MeasurementError(str(error).rstrip(".")) from error
        left -= len(content)
        file = into / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o700)  # it may be the program


def _paths(word: str) -> Iterator[str]:
    """A word, and what stands behind its `=`, as git writes paths."""
    for each in {word, word.partition("=")[2]}:
        path = PurePosixPath(each)
        if each and not path.is_absolute() and ".." not in path.parts and path.parts:
            yield str(path)


def _is_below(path: str, named: Sequence[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in named)
