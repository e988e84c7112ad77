"""Models with the same tasks: one of them is opened to list them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.tasks import TuningTask
from tunegate.errors import ModelError
from tunegate.models.kernel_digest import kernel_digest
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compile_requests import OpenedKey, opened_key
from tunegate.system.processes.conversations import Conversation
from tunegate.tune.compiler_protocol import Tasks
from tunegate_cache.format.records import WorkloadKey

_Reply = TypeVar("_Reply")


class KernelDigests:
    """Those of the files of a run, each of which is read once."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def __call__(self, job: ModelJob) -> str:
        if job.file not in self._known:
            self._known[job.file] = kernel_digest(job.file) or ""
        return self._known[job.file]


def with_same_kernels(
    jobs: Mapping[int, ModelJob], kernels: Callable[[ModelJob], str]
) -> dict[int, int]:
    """Returns the place of the first job that has the kernels of each later one, as base and head
    have that differ in weights alone."""
    first: dict[object, int] = {}
    found: dict[int, int] = {}
    versions = Counter(job.path for job in jobs.values())
    for place, job in jobs.items():
        digest = kernels(job) if versions[job.path] > 1 else ""
        if digest:
            at = first.setdefault((digest, opened_key(job)[1:]), place)
            found |= {place: at} if at != place else {}
    return found


def told_once(
    jobs: Mapping[int, ModelJob],
    kernels: Callable[[ModelJob], str],
    asking: Callable[[Mapping[int, ModelJob]], dict[int, Conversation[_Reply]]],
) -> tuple[dict[int, Conversation[_Reply]], Collection[int]]:
    """Returns the answer for each job, and the places whose answer is another job's: only one of
    those with the same kernels is asked about, unless it has no tasks."""
    same = with_same_kernels(jobs, kernels)
    talks = asking({n: job for n, job in jobs.items() if n not in same})
    taken = {n: talks[at] for n, at in same.items() if _is_listed(talks[at])}
    talks |= asking({n: jobs[n] for n in same if n not in taken}) | taken
    return talks, taken.keys()


def _is_listed(talk: Conversation[_Reply]) -> bool:
    """Returns whether a child has listed the tasks."""
    return bool(talk.replies) and isinstance(talk.replies[0], Tasks)


class TakenLists:
    """The tasks that models were said to have since others have them: the other side, or the same
    model in an earlier run. A build that has others could have no schedule for these, where its
    other side has one: it is none."""

    def __init__(self) -> None:
        self._lists: dict[OpenedKey, tuple[str, frozenset[WorkloadKey]]] = {}

    def add(self, job: ModelJob, tasks: Sequence[TuningTask] | ModelError, whose: str) -> None:
        """`whose` they are, for messages."""
        if isinstance(tasks, ModelError):
            return
        self._lists[opened_key(job)] = whose, frozenset(task.key for task in tasks)

    def held(self, job: BuildJob, build: Build) -> Build:
        taken = self._lists.get(opened_key(job.model))
        if taken is None or build.error is not None:
            return build
        whose, known = taken
        others = [task.name for task in build.tasks if task.key not in known]
        if not others:
            return build
        reason = f"{job.model.path}: its kernels are not those of {whose} ({others[0]})."
        return msgspec.structs.replace(unbuilt(reason), crashed=True)
