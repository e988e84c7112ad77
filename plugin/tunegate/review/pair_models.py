"""Pairs each model of the head with a model of the base.

A model with the same path is itself. One that is gone is looked for among the new files: by bytes,
then by graph, name and parts. Nothing that the base covers disappears unseen.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import PurePosixPath

import msgspec

from tunegate.artifacts.changes import (
    Ancestor,
    ChangeSet,
    ModelChange,
    ModelOutline,
    ModelPath,
    ModelVersion,
)
from tunegate.artifacts.tasks import TaskSet
from tunegate.ports import ModelReader
from tunegate.review.globs import NumberedFor, earlier_versions, highest_versions

ALIKE = 0.5
"""Models with this share of equal parts are versions of one."""
MAX_OF_ONE_NAME = 20
LOOKED_INTO = 400
"""The most pairs compared by content. With more, only names are compared."""
_SAME_NAME, _SAME_GRAPH = 1.0, 2.0

_Found = Mapping[ModelPath, ModelVersion]


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """`before` maps models of the head to the base's version. `moved` maps those with another path
    and other bytes to that path. `blocked` are covered models of the base with something else in
    their place; `lost` are those that are gone. `earlier` maps versions of a model, new ones and
    the one that a server falls back to, to the version that each is compared with; `highest` are
    the highest ones of the base."""

    before: dict[ModelPath, ModelVersion]
    moved: dict[ModelPath, ModelPath]
    blocked: dict[ModelPath, str]
    lost: tuple[ModelPath, ...]
    earlier: dict[ModelPath, ModelPath] = {}
    highest: frozenset[ModelPath] = frozenset()


def pair_models(
    reader: ModelReader,
    base: _Found,
    head: _Found,
    covered_paths: Collection[ModelPath],
    revision: str,
    *,
    version_of: NumberedFor = lambda _: None,
) -> Pairs:
    """Pairs the models. `covered_paths` are the base's under its policy, which also gives
    `version_of`: a new version of a covered model is paired with it. `revision` is the head's."""
    before = {path: base[path] for path in head if path in base}
    missing = {path: base[path] for path in sorted(covered_paths) if path not in head}
    obstacles = {path: what for path in missing if (what := reader.obstacle(revision, path))}
    missing = {path: version for path, version in missing.items() if path not in obstacles}
    new = {
        path: head[path]
        for path in sorted(head)
        if _may_be_another(path, base, head, covered_paths)
    }
    new_paths = {path for path in new if path not in base}
    earlier = earlier_versions(new_paths, covered_paths, head, version_of)
    # A version that is gone may also be a new file of another name, if no new version has its place
    old_versions = {was for path, was in earlier.items() if path in new_paths}
    missing, new = _without(missing, old_versions), _without(new, earlier)
    same = _same_bytes(missing, new)
    is_other = partial(
        _is_other, version_of, {n.family for path in head if (n := version_of(path))}
    )
    rest = _without(missing, same.values()), _without(new, same)
    moves = _pair_moved(reader, *rest, base, is_other)
    partners = {*same.values(), *moves.values(), *earlier.values()}
    return Pairs(
        before=before | {path: base[was] for path, was in (same | moves | earlier).items()},
        moved=moves,
        blocked=obstacles,
        lost=tuple(path for path in missing if path not in partners),
        earlier=earlier,
        highest=frozenset(highest_versions(covered_paths, version_of)),
    )


def _is_other(
    version_of: NumberedFor, families: Collection[str], path: ModelPath, was: ModelPath
) -> bool:
    """Returns whether a file is a version of one model, and `was` one of another that the head
    still has: nothing but an equal graph says that the one replaces the other."""
    now, before = version_of(path), version_of(was)
    if now is None or before is None:
        return False
    return now.family != before.family and before.family in families


def _may_be_another(
    path: ModelPath, base: _Found, head: _Found, covered_paths: Collection[ModelPath]
) -> bool:
    """Returns whether this may be another model: a new file, or one that was not gated and has
    other bytes now."""
    if path not in base:
        return True
    return path not in covered_paths and head[path].content_digest != base[path].content_digest


def _without(versions: _Found, paths: Collection[ModelPath]) -> dict[ModelPath, ModelVersion]:
    return {path: version for path, version in versions.items() if path not in paths}


def _same_bytes(old: _Found, new: _Found) -> dict[ModelPath, ModelPath]:
    """Returns old paths by new paths, each used once."""
    paths_by_digest: dict[str, list[ModelPath]] = {}
    for was, version in reversed(list(old.items())):
        paths_by_digest.setdefault(version.content_digest, []).append(was)
    return {
        path: same.pop()
        for path, version in new.items()
        if (same := paths_by_digest.get(version.content_digest))
    }


def _pair_moved(
    reader: ModelReader,
    old: _Found,
    new: _Found,
    base: _Found,
    is_other: Callable[[ModelPath, ModelPath], bool],
) -> dict[ModelPath, ModelPath]:
    """Returns the old path of each moved model: most alike first; at last the only two left, if the
    new one is a new file."""
    if not old or not new:
        return {}
    is_small = len(old) * len(new) <= LOOKED_INTO
    outline = reader.outline if is_small else lambda _: None
    likenesses = {
        (path, was): likeness(path, outline(new[path]), was, outline(old[was]))
        for path, was in _candidates(new, old, by_name_only=not is_small)
    }
    pairs: dict[ModelPath, ModelPath] = {}
    paired_paths: set[ModelPath] = set()
    for path, was in sorted(likenesses, key=lambda pair: (-likenesses[pair], *pair)):
        least = _SAME_GRAPH if is_other(path, was) else ALIKE
        if likenesses[path, was] >= least and path not in pairs and was not in paired_paths:
            pairs[path] = was
            paired_paths.add(was)
    new = _without(_without(new, pairs), base)
    old = _without(old, pairs.values())
    only_two = zip(new, old, strict=True) if len(new) == len(old) == 1 else ()
    return pairs | {path: was for path, was in only_two if not is_other(path, was)}


def _candidates(
    new: _Found, old: _Found, *, by_name_only: bool
) -> Iterator[tuple[ModelPath, ModelPath]]:
    if not by_name_only:
        yield from product(new, old)
        return
    paths_by_name: dict[str, list[ModelPath]] = {}
    for path in new:
        paths_by_name.setdefault(_name(path), []).append(path)
    for was in old:
        for path in paths_by_name.get(_name(was), ())[:MAX_OF_ONE_NAME]:
            yield path, was


def likeness(
    path: ModelPath, now: ModelOutline | None, was_path: ModelPath, was: ModelOutline | None
) -> float:
    """Returns the likeness of two models. An equal graph outweighs an equal name, and both outweigh
    any share of equal parts."""
    name = _SAME_NAME if _name(path) == _name(was_path) else 0.0
    if now is None or was is None:
        return name
    graph = _SAME_GRAPH if now.graph_digest == was.graph_digest else 0.0
    return name + graph + _overlap(now.parts, was.parts)


def _name(path: ModelPath) -> str:
    return PurePosixPath(path).stem.casefold()


def _overlap(first: Mapping[str, int], other: Mapping[str, int]) -> float:
    kinds = {*first, *other}
    both = sum(min(first.get(kind, 0), other.get(kind, 0)) for kind in kinds)
    either = sum(max(first.get(kind, 0), other.get(kind, 0)) for kind in kinds)
    return both / either if either else 0.0


# Replaces a base that cannot be compiled by the nearest earlier version of its model. This happens
# before anything is looked up or tuned: every base that is compared gets its best known schedules,
# like the head.

MAX_EARLIER_BASES = 3
"""The most versions tried. Further back it is another model."""


def with_working_bases(
    changes: ChangeSet, extract: Callable[[ChangeSet], TaskSet], reader: ModelReader | None
) -> TaskSet:
    """Returns the tasks, with earlier bases where a base is broken."""
    tasks = extract(changes)
    if reader is None:
        return tasks
    for _ in range(MAX_EARLIER_BASES):
        older = with_earlier_bases(tasks.changes, tasks.broken_bases, reader)
        if older == tasks.changes:
            break
        tasks = extract(older)
    return tasks


def with_earlier_bases(
    changes: ChangeSet, broken: Mapping[ModelPath, str], reader: ModelReader
) -> ChangeSet:
    """Returns the changes, with the base of each of these models one version further back if there
    is one."""
    models = [
        _earlier(change, broken[change.path], reader) if change.path in broken else change
        for change in changes.models
    ]
    return msgspec.structs.replace(changes, models=tuple(models))


def _earlier(change: ModelChange, reason: str, reader: ModelReader) -> ModelChange:
    earlier = reader.earlier(change.base) if change.base is not None else None
    if earlier is None:
        return change
    version, commits = earlier
    ancestor_so_far = change.ancestor or Ancestor(commits=0, reason=reason)
    ancestor = msgspec.structs.replace(ancestor_so_far, commits=ancestor_so_far.commits + commits)
    return msgspec.structs.replace(change, base=version, change="unknown", ancestor=ancestor)
