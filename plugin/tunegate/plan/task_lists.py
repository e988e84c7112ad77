"""The task lists of models, as records of the cache: a model with unchanged kernels is opened in
the compiler only to be built.

A list is believed only if both sides of a model share it: it then favours neither side, and nothing
of it is tuned, because both sides have all of it. A build with other kernels than listed is
refused, so a false list costs a build. `tunegate warm` believes no list, and corrects wrong ones.
"""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.errors import ModelError
from tunegate.measure.remembered_elections import election_target
from tunegate.ports import ModelJob
from tunegate.tools import Tools
from tunegate_cache.format.records import Miss, WorkloadKey
from tunegate_cache.format.task_list import ListedTask, TaskList, list_of, list_records

_Tasks = Sequence[TuningTask]


class KnownLists:
    """Looks up lists if they `are_believed`, and publishes new ones."""

    def __init__(self, tools: Tools, *, are_believed: bool) -> None:
        self._tools, self._are_believed = tools, are_believed
        self._now = int(tools.context.clock.time())

    def list_tasks(self, jobs: Sequence[ModelJob]) -> Sequence[_Tasks | ModelError]:
        """Returns the tasks of each job, by the cache or by the compiler."""
        compiler = self._tools.compiler
        keys = self._keys(jobs, compiler.kernels(jobs))
        lists = self._read_lists(keys)
        tasks_by_place = {
            place: _tasks(lists[key], jobs[place])
            for place, key in _shared_keys(jobs, keys).items()
            if self._are_believed and key in lists
        }
        answers = compiler.tasks(jobs, tasks_by_place)
        new_answers = (
            (key, answers[place]) for place, key in keys.items() if place not in tasks_by_place
        )
        new_lists = {key: x for key, x in new_answers if not isinstance(x, ModelError)}
        self._publish_new(new_lists, lists)
        return answers

    def _keys(self, jobs: Sequence[ModelJob], kernels: Sequence[str]) -> dict[int, WorkloadKey]:
        """Returns the key of each job's list, by its place. Equal keys mean equal lists."""
        return {
            place: WorkloadKey(self._digest(job, digest), election_target(job.target))
            for place, (job, digest) in enumerate(zip(jobs, kernels, strict=True))
            if digest
        }

    def _digest(self, job: ModelJob, kernels: str) -> str:
        content = [
            "tasks",
            self._tools.origin.installed,
            kernels,
            sorted(job.shapes.items()),
            job.target.threads or self._tools.threads,
        ]
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()

    def _read_lists(self, keys: Mapping[int, WorkloadKey]) -> dict[WorkloadKey, TaskList]:
        origin, unique_keys = self._tools.origin, [*dict.fromkeys(keys.values())]
        standings = self._tools.index.standings(unique_keys)
        lists = {
            key: list_of(
                key,
                getattr(standings.get(key, Miss("absent")), "records", ()),
                device=origin.device,
                toolchain=origin.toolchain,
                now=self._now,
            )
            for key in unique_keys
        }
        return {key: each for key, each in lists.items() if each is not None}

    def _publish_new(
        self, lists_by_key: Mapping[WorkloadKey, _Tasks], in_cache: Mapping[WorkloadKey, TaskList]
    ) -> None:
        lists = [_list(key, tasks, self._now) for key, tasks in lists_by_key.items() if tasks]
        origin = self._tools.origin
        self._tools.index.publish(
            [
                record
                for each in lists
                if each.key not in in_cache or in_cache[each.key].tasks != each.tasks
                for record in list_records(
                    each, device=origin.device, toolchain=origin.toolchain, source=origin.source
                )
            ]
        )


def _shared_keys(
    jobs: Sequence[ModelJob], keys: Mapping[int, WorkloadKey]
) -> dict[int, WorkloadKey]:
    """Returns the jobs of models of which several versions are asked for, all with one key."""
    versions: dict[tuple[str, str], list[WorkloadKey | None]] = {}
    for place, job in enumerate(jobs):
        versions.setdefault((job.path, job.target.name), []).append(keys.get(place))
    shared = {model for model, its in versions.items() if len(its) > 1 and len(set(its)) == 1}
    return {n: key for n, key in keys.items() if (jobs[n].path, jobs[n].target.name) in shared}


def _tasks(task_list: TaskList, job: ModelJob) -> _Tasks:
    return [
        TuningTask(
            key=WorkloadKey(task.workload, task_list.target),
            shape=task.shape,
            target=job.target.name,
            operator=task.operator,
            dtype=task.dtype,
            flops=float(task.flops),
            bytes_moved=float(task.bytes_moved),
            uses=(TaskUse(model=job.path, side="head", weight=task.weight, name=task.name),),
        )
        for task in task_list.tasks
    ]


def _list(key: WorkloadKey, tasks: _Tasks, now: int) -> TaskList:
    entries = tuple(
        ListedTask(
            workload=task.key.workload,
            shape=task.shape,
            operator=task.operator,
            dtype=task.dtype,
            name=task.uses[0].name,
            weight=task.uses[0].weight,
            flops=round(task.flops),
            bytes_moved=round(task.bytes_moved),
        )
        for task in tasks
    )
    return TaskList(key=key, target=tasks[0].key.target, tasks=entries, listed_at=now)
