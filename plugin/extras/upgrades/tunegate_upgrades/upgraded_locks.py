"""The watched lock files that differ between base and head, and their pins on both sides."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tunegate.artifacts.changes import PolicyChange, Revisions
from tunegate.config import WatchConfig
from tunegate.errors import ModelError, RevisionError
from tunegate.ports import Repository, TreeEntry
from tunegate.review.globs import matches
from tunegate_upgrades.lock_files.dockerfile import (
    ImageRecipe,
    change,
    installed_compilers,
    read_recipe,
    unread,
)
from tunegate_upgrades.lock_files.kinds import lock_kind, read_lock
from tunegate_upgrades.lock_files.lock import LockFile, LockFileError

_MAX_BYTES = 16 * 2**20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""PowerShell's `pip freeze >` writes this mark. pip and uv read such files."""
_MOST_NAMED = 6


class UpgradedLock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock file with other pins in the head. Without a `base` there is nothing to compare with;
    `reason` says why."""

    head: LockFile
    base: LockFile | None = None
    reason: str = ""


class WatchedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in the watched files."""

    locks: tuple[UpgradedLock, ...] = ()
    notes: tuple[str, ...] = ()
    policy_changes: tuple[PolicyChange, ...] = ()


def watched_changes(
    repository: Repository, revisions: Revisions, watch: WatchConfig
) -> WatchedChanges:
    """Returns the changes. Unreadable files of the head raise ConfigError; unreadable ones of the
    base are no base, so that they do not block their repair."""
    if revisions.base is None or not watch.files:
        return WatchedChanges()
    reading = _Reading(repository, watch)
    before, after = reading.entries(revisions.base), reading.entries(revisions.head)
    former = _former(before, after)
    locks: list[UpgradedLock] = []
    notes: list[str] = []
    moved: list[PolicyChange] = []
    for path in sorted(after):
        was = former.get(path, "")
        if lock_kind(path) == "dockerfile":
            recipes = reading.recipes(revisions, path, was)
            notes += _image_notes(path, *recipes, after)
            moved += _image_moves(path, *recipes)
        elif (found := reading.lock(revisions, path, was)) is not None:
            locks.append(found)
    gone = sorted(before.keys() - former.values())
    notes += reading.notes
    notes += _unmatched_globs(watch, [*before, *after])
    return WatchedChanges(
        locks=tuple(locks), notes=tuple(notes), policy_changes=(*map(_deleted_file, gone), *moved)
    )


def _unmatched_globs(watch: WatchConfig, paths: Sequence[str]) -> Iterator[str]:
    """Yields a line for each glob that matches none of the paths."""
    for glob in watch.files:
        if not any(matches(glob, path) for path in paths):
            yield f"watch.files: {glob} matches no committed file, so it watches nothing"


class _Reading:
    """Reads files of both revisions."""

    def __init__(self, repository: Repository, watch: WatchConfig) -> None:
        self._repository, self._watch = repository, watch
        self.notes: list[str] = []

    def entries(self, revision: str) -> Mapping[str, TreeEntry]:
        """Returns the watched files of a revision."""
        return {
            entry.path: entry
            for entry in self._repository.files(revision)
            if any(matches(glob, entry.path) for glob in self._watch.files)
        }

    def recipes(
        self, revisions: Revisions, path: str, former: str
    ) -> tuple[ImageRecipe | None, ImageRecipe]:
        """Returns the recipe at base (None if missing or unreadable), and at head."""
        try:
            base = read_recipe(self._text(revisions.base or "", former)) if former else None
        except LockFileError:
            base = None
        return base, read_recipe(self._text(revisions.head, path))

    def lock(self, revisions: Revisions, path: str, former: str) -> UpgradedLock | None:
        """Returns the change of a lock file, None if its pins here are the same. Those for others,
        and whatever else was written, are a note."""
        head, head_lines = self._lock(revisions.head, path)
        if not former:
            return UpgradedLock(head=head, reason=f"{path} is new")
        try:
            base, base_lines = self._lock(revisions.base or "", former)
        except LockFileError as error:
            return UpgradedLock(head=head, reason=f"at the base, {error}")
        for_others = sorted({name for name, _ in base.for_others ^ head.for_others})
        if for_others:
            names = ", ".join(for_others[:_MOST_NAMED]) + ", …" * (len(for_others) > _MOST_NAMED)
            self.notes.append(
                f"{path}: {names} changed for another Python or platform than this one, so that is "
                "not measured here"
            )
        if base.decides() != head.decides():
            return UpgradedLock(head=head, base=base)
        if base_lines != head_lines:
            self.notes.append(f"{path}: changed, and pins the same here, so nothing is measured")
        return None

    def _lock(self, revision: str, path: str) -> tuple[LockFile, list[str]]:
        """Returns the lock, and the lines of the file and of those that it includes, without
        comments and blanks."""
        texts: list[str] = []

        def read(file: str) -> str:
            texts.append(self._text(revision, file))
            return texts[-1]

        lock = read_lock(path, read(path), read)
        lines = ("".join(line.split()) for text in texts for line in text.splitlines())
        return lock, [line for line in lines if line and not line.startswith("#")]

    def _text(self, revision: str, path: str) -> str:
        try:
            body = self._repository.data(revision, path, _MAX_BYTES)
            return body.decode("utf-16" if body.startswith(_UTF16) else "utf-8-sig")
        except (RevisionError, ModelError) as error:
            raise LockFileError(str(error)) from error
        except UnicodeDecodeError as error:
            raise LockFileError(f"{path}: is not text ({error.reason}).") from error


def _former(before: Mapping[str, TreeEntry], after: Mapping[str, TreeEntry]) -> dict[str, str]:
    """Returns the path at the base by the path in the head. The only deleted file is the only new
    one."""
    same = {path: path for path in after if path in before}
    new, gone = after.keys() - before.keys(), before.keys() - after.keys()
    return same | (dict(zip(new, gone, strict=True)) if len(new) == len(gone) == 1 else {})


def _image_notes(
    path: str, base: ImageRecipe | None, head: ImageRecipe, watched: Mapping[str, TreeEntry]
) -> Iterator[str]:
    """Yields the changes in a Dockerfile, and every time the parts that are not read."""
    if base and (line := change(path, base, head)):
        yield line
    yield from unread(path, head, watched)


def _image_moves(path: str, base: ImageRecipe | None, head: ImageRecipe) -> Iterator[PolicyChange]:
    """Yields the compilers that a Dockerfile with a base installs in another version."""
    before, after = installed_compilers(base or head), installed_compilers(head)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield unmeasured_move(path, name, before.get(name, "none"), after.get(name, "none"))


def unmeasured_move(path: str, name: str, old: str, new: str) -> PolicyChange:
    """Returns the move of a package in a watched file that no run measures."""
    key = f"{path}: {name}"
    return PolicyChange(key=key, old=old, new=new, effect="changed", counts="once merged")


def _deleted_file(path: str) -> PolicyChange:
    return PolicyChange(key="watch.files", old=path, new="deleted", effect="loosened", counts="now")
