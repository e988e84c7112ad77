"""Which models have the same tasks, so that one of them is opened to list them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.tasks import TuningTask
from tunegate.edges.models.kernel_digest import kernel_digest
from tunegate.edges.processes.conversations import Conversation
from tunegate.engine.protocol import Tasks
from tunegate.errors import ModelError
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compile_requests import OpenedKey, opened_key

_Reply = TypeVar("_Reply")


def is_listed(talk: Conversation[_Reply]) -> bool:
    """Whether a child has told the tasks."""
    return bool(talk.replies) and isinstance(talk.replies[0], Tasks)


def with_same_kernels(jobs: Sequence[ModelJob]) -> dict[int, int]:
    """Returns the place of the first job that has the kernels of each later one, as base and head
    have that differ in weights alone."""
    first: dict[object, int] = {}
    found: dict[int, int] = {}
    versions = Counter(job.path for job in jobs)
    for place, job in enumerate(jobs):
        digest = kernel_digest(job.file) if versions[job.path] > 1 else None
        if digest is not None:
            at = first.setdefault((digest, opened_key(job)[1:], job.in_parts), place)
            found |= {place: at} if at != place else {}
    return found


class TakenLists:
    """The tasks that models were said to have since others have them. A build that has others could
    have no schedule for these, where its other side has one: it is none."""

    def __init__(self) -> None:
        self._workloads: dict[OpenedKey, frozenset[str]] = {}

    def add(self, job: ModelJob, tasks: Sequence[TuningTask] | ModelError) -> None:
        if isinstance(tasks, ModelError):
            return
        self._workloads[opened_key(job)] = frozenset(task.key.workload for task in tasks)

    def held(self, job: BuildJob, build: Build) -> Build:
        known = self._workloads.get(opened_key(job.model))
        if known is None or build.error is not None:
            return build
        others = [task.name for task in build.tasks if task.key.workload not in known]
        if not others:
            return build
        reason = f"{job.model.path}: its kernels are not those of the other side ({others[0]})."
        return msgspec.structs.replace(unbuilt(reason), crashed=True)
