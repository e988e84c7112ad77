"""Say which configured models a change touches, and how. When unsure, check more, and say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelPath, ModelVersion, Revisions
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.ports import ModelReader
from tunegate.selection import matches, needs_of, selected, targets_for

Change = Literal["weights-only", "structural", "config", "unknown"]
Found = Mapping[ModelPath, ModelVersion]


def detect(
    reader: ModelReader,
    revisions: Revisions,
    config: Config,
    base_config: Config | None,
    *,
    config_name: str = "tunegate.yaml",
) -> ChangeSet:
    """Only models whose stored bytes differ, or what may be their data, are opened.

    `base_config` None: unreadable or absent. Raises ConfigError, naming the configuration, for a
    glob that matches nothing on either side.
    """
    head = reader.models(revisions.head)
    base = {} if revisions.base is None else reader.models(revisions.base)
    _check_globs(config, config_name, [*head, *base])
    old_config = base_config or config
    head_paths = set(selected(config, head))
    base_paths = set(selected(old_config, base))
    renamed = _renames(
        {p: base[p] for p in base_paths - head_paths if p not in head},
        {p: head[p] for p in head_paths - base_paths if p not in base},
    )
    changes, unchanged = [], []
    for path in sorted(head_paths):
        before = renamed.get(path) or base.get(path)
        change = _change(reader, config, old_config, path, before, head[path])
        if change is None:
            unchanged.append(path)
        else:
            changes.append(change)
    gone = base_paths - head_paths - {version.path for version in renamed.values()}
    changes += [_deleted(base[path], old_config) for path in sorted(gone) if path not in head]
    return ChangeSet(
        revisions=revisions,
        models=tuple(changes),
        unchanged=tuple(unchanged),
        notes=_notes(revisions, base_config),
    )


def _change(
    reader: ModelReader,
    config: Config,
    old_config: Config,
    path: ModelPath,
    before: ModelVersion | None,
    after: ModelVersion,
) -> ModelChange | None:
    targets = targets_for(config, path)
    if before is None:
        return ModelChange(
            path=path,
            kind="added",
            change=None,
            base=None,
            head=reader.opened(after)[0],
            targets=targets,
            reason="new in the head",
        )
    old, new, problem = _looked_into(reader, before, after)
    if _identity(old) != _identity(new):
        change, reason = _compare(old, new, problem)
        return _modified(path, change, old, new, targets, reason)
    if needs_of(config, path) != needs_of(old_config, before.path):
        reason = "its inputs or targets changed in the configuration"
        return _modified(path, "config", old, new, targets, reason)
    if before.path == path:
        return None
    return ModelChange(
        path=path,
        kind="renamed",
        change=None,
        base=old,
        head=new,
        targets=targets,
        reason=f"renamed from {before.path}, same content",
    )


def _looked_into(
    reader: ModelReader, before: ModelVersion, after: ModelVersion
) -> tuple[ModelVersion, ModelVersion, str]:
    """Both opened, and what is wrong with them, where they may differ. Once opened, they may turn
    out to be the same: what changed beside them was not their data."""
    if _identity(before) == _identity(after):
        return before, after, ""
    old, old_problem = reader.opened(before)
    new, new_problem = reader.opened(after)
    return old, new, old_problem or new_problem


def _compare(old: ModelVersion, new: ModelVersion, problem: str) -> tuple[Change, str]:
    if old.graph_digest is None or new.graph_digest is None:
        return "unknown", f"treated as a change of structure: {problem}"
    if old.graph_digest == new.graph_digest:
        return "weights-only", "the graph is the same, its tensor data is not"
    return "structural", "the graph changed"


def _modified(
    path: ModelPath,
    change: Change,
    base: ModelVersion,
    head: ModelVersion,
    targets: tuple[str, ...],
    reason: str,
) -> ModelChange:
    return ModelChange(
        path=path,
        kind="modified",
        change=change,
        base=base,
        head=head,
        targets=targets,
        reason=reason,
    )


def _deleted(version: ModelVersion, old_config: Config) -> ModelChange:
    return ModelChange(
        path=version.path,
        kind="deleted",
        change=None,
        base=version,
        head=None,
        targets=targets_for(old_config, version.path),
        reason="not in the head",
    )


def _renames(gone: Found, new: Found) -> dict[ModelPath, ModelVersion]:
    """New path -> the vanished model with the same bytes; each vanished one is found once."""
    left = [gone[path] for path in sorted(gone)]
    renamed: dict[ModelPath, ModelVersion] = {}
    for path, version in sorted(new.items()):
        same = [old for old in left if old.content_digest == version.content_digest]
        if same:
            renamed[path] = same[0]
            left.remove(same[0])
    return renamed


def _identity(version: ModelVersion) -> tuple[str, ...]:
    return (version.content_digest, *(file.digest for file in version.external))


def _check_globs(config: Config, config_name: str, paths: Sequence[ModelPath]) -> None:
    for entry in config.models:
        if not any(matches(entry.path, path) for path in paths):
            message = (
                f"{config_name}: models: path {entry.path} matches no ONNX file of the revision. "
                f"Correct the glob, or commit the model (also when it is stored by LFS or DVC)."
            )
            raise ConfigError(message)


def _notes(revisions: Revisions, base_config: Config | None) -> tuple[str, ...]:
    if revisions.base is None:
        return (f"no base to compare with ({revisions.reason}): every model counts as added",)
    if base_config is None:
        return ("the base has no readable configuration: the head's is used for both",)
    return ()
