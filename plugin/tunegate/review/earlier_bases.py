"""The stage that finds the nearest earlier version of a model whose base cannot
be compiled, to take its place.

Chosen before anything is looked up or tuned: a base that is compared with gets the best schedules
that are known for it, like the head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tunegate.artifacts.changes import Ancestor, ChangeSet, ModelChange, ModelPath
from tunegate.artifacts.tasks import TaskSet
from tunegate.ports import ModelReader

MAX_EARLIER_BASES = 3
"""Versions that are tried; further back it is another model."""


def with_working_bases(
    changes: ChangeSet, extracted: Callable[[ChangeSet], TaskSet], reader: ModelReader | None
) -> TaskSet:
    """The tasks, with earlier bases where those that are gated against are broken."""
    tasks = extracted(changes)
    if reader is None:
        return tasks
    for _ in range(MAX_EARLIER_BASES):
        older = with_earlier_bases(tasks.changes, tasks.broken_bases, reader)
        if older == tasks.changes:
            break
        tasks = extracted(older)
    return tasks


def with_earlier_bases(
    changes: ChangeSet, broken: Mapping[ModelPath, str], reader: ModelReader
) -> ChangeSet:
    """Returns the changes, with the base of each of these models one version further back, where
    there is one."""
    models = [
        _earlier(change, broken[change.path], reader) if change.path in broken else change
        for change in changes.models
    ]
    return msgspec.structs.replace(changes, models=tuple(models))


def _earlier(change: ModelChange, reason: str, reader: ModelReader) -> ModelChange:
    found = reader.earlier(change.base) if change.base is not None else None
    if found is None:
        return change
    version, commits = found
    known = change.ancestor or Ancestor(commits=0, reason=reason)
    ancestor = msgspec.structs.replace(known, commits=known.commits + commits)
    return msgspec.structs.replace(change, base=version, change="unknown", ancestor=ancestor)
