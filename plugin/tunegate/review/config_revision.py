"""The configuration of a revision, and the file's place in the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tunegate.artifacts.changes import PolicyChange
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.review import config_file
from tunegate.system.git.repository import GitRepository


class FoundConfig(msgspec.Struct, frozen=True):
    """`config` is None without a file, or if `problem` says what is wrong with it."""

    config: Config | None = None
    problem: str = ""


def config_at(repository: GitRepository, revision: str, path: str) -> FoundConfig:
    """Returns the configuration of a revision. Raises RevisionError if its content cannot be
    fetched."""
    entry = repository.entry(revision, path)
    where = f"{path} at {revision[:12]}"
    if entry is None:
        above = repository.submodule_above(revision, path)
        return FoundConfig(problem=f"{where}: {above} is a submodule" if above else "")
    if entry.kind != "file":
        return FoundConfig(problem=f"{where}: it is no file but a {entry.kind}")
    try:
        text = repository.read(revision, path).decode()
        return FoundConfig(config_file.parse_config(text, where))
    except UnicodeDecodeError as error:
        return FoundConfig(problem=f"{where}: not UTF-8 ({error})")
    except ConfigError as error:
        return FoundConfig(problem=str(error))


def whole_changes(
    path: str | None, own: Config | None, before: FoundConfig
) -> tuple[PolicyChange, ...]:
    """Returns a policy change if the head has no configuration any more, or if the base's cannot be
    read."""
    if before.problem:
        return (_whole(path, before.problem, "the head's, which judges", counts_now=True),)
    if own is None and before.config is not None:
        return (_whole(path, "a configuration", "deleted", counts_now=False),)
    return ()


def _whole(path: str | None, old: str, new: str, *, counts_now: bool) -> PolicyChange:
    return PolicyChange(
        key=path or config_file.CONFIG_FILE,
        old=old,
        new=new,
        effect="changed" if counts_now else "loosened",
        counts="now" if counts_now else "once merged",
    )


def path_inside(root: Path, path: Path) -> str | None:
    """Returns the file's path in the repository, None outside of it. Raises ConfigError for a
    symbolic link on the way to a file inside: the checkout could then choose which file judges
    it."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow links
    for top in (root, root.resolve()):
        if absolute.is_relative_to(top):
            inside = absolute.relative_to(top)
            _check_links(top, inside, path)
            return inside.as_posix()
    resolved = absolute.parent.resolve() / absolute.name
    if resolved.is_relative_to(root.resolve()):
        return path_inside(root, resolved)
    return None


def _check_links(top: Path, inside: Path, path: Path) -> None:
    for each in (inside, *inside.parents):
        if (top / each).is_symlink() and each != Path():
            message = (
                f"{path}: {each} is a symbolic link, which is not followed. Write a file there."
            )
            raise ConfigError(message)
