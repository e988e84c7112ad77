"""Requests to the compiler's children, each with a private directory."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.candidates import FLOAT32, LAUNCH, PRECISION
from tunegate.artifacts.tasks import TuningTask
from tunegate.compiler.runtime_alone import BRIEF_WAITS, thread_variables
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.models.kernel_digest import kernel_digest
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.runtime import gpu_variables
from tunegate.system.clock import derive_seed
from tunegate.system.machine.cores import default_threads, usable_cores
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.processes.child import Child
from tunegate.system.processes.conversations import Conversation, converse
from tunegate.system.processes.memory_limit import MemoryLimit, Shares, memory_limit, memory_shares
from tunegate.tune import compiler_protocol
from tunegate.tune.protocol import Failed, ModelFile
from tunegate_cache.format.records import WorkloadKey

OpenedKey = tuple[str, tuple[tuple[str, tuple[int, ...]], ...], TargetConfig]
"""The key of an open model: the file, the shapes and the target."""


_CHECKS = 2


def opened_key(job: ModelJob) -> OpenedKey:
    return str(job.file.resolve()), tuple(sorted(job.shapes.items())), job.target


def has_graphs(job: BuildJob) -> bool:
    """Returns whether CUDA graphs launch the build's kernels; a form launches its own."""
    target = job.model.target
    return target.kind == "cuda" and target.cuda_graphs and LAUNCH not in job.settings


class CompileRequests:
    """Makes requests. `scratch` holds their directories; builds are checked on inputs of `seed`."""

    def __init__(self, scratch: Path, seed: int) -> None:
        self._scratch, self._seed = scratch, seed
        self._count = 0

    def tasks(self, job: ModelJob) -> compiler_protocol.ListTasks:
        return compiler_protocol.ListTasks(
            model=model_file(job), target=job.target, scratch=self._new_directory()
        )

    def trial_job(self, job: ModelJob) -> BuildJob:
        """Returns the job of a build that is only tried."""
        directory = Path(self._new_directory()) / "tried"
        return BuildJob(model=job, records={}, sources={}, directory=directory, is_followed=True)

    def build(self, job: BuildJob, cuda_graphs: bool = False) -> compiler_protocol.BuildModel:
        return compiler_protocol.BuildModel(
            model=model_file(job.model),
            target=job.model.target,
            records={key.workload: tuple(records) for key, records in job.records.items()},
            sources={key.workload: source for key, source in job.sources.items()},
            directory=str(job.directory.resolve()),
            scratch=self._new_directory(),
            cuda_graphs=cuda_graphs,
            seed=derive_seed(self._seed, "in-model"),
            inputs=job.model.inputs,
            settled=tuple(sorted(key.workload for key in job.settled)),
            how=job.how,
            decided=job.decided,
            variant=job.variant,
            precision=job.settings.get(PRECISION, FLOAT32),
            launch=job.settings.get(LAUNCH, ""),
        )

    def checks(self) -> tuple[int, ...]:
        """Returns the seeds of the inputs that a build must compute correctly."""
        return tuple(derive_seed(self._seed, "check", n) for n in range(_CHECKS))

    def _new_directory(self) -> str:
        self._count += 1
        directory = self._scratch / f"compile-{self._count}"
        directory.mkdir(parents=True, exist_ok=True)
        return str(directory.resolve())


def model_file(job: ModelJob) -> ModelFile:
    return ModelFile(file=str(job.file.resolve()), path=job.path, shapes=dict(job.shapes))


# Further requests to a child that built a model: to check it, and to mend it if it is wrong.

MAX_MENDING_SECONDS = 180.0
"""The time limit for finding the wrong kernels."""


def questions_after_build(
    build: compiler_protocol.BuildModel,
    *,
    seeds: tuple[int, ...],
    samples: tuple[int, ...] = (),
    cases: str = "",
    limit_seconds: float,
) -> Callable[
    [compiler_protocol.CompileReply | compiler_protocol.CheckReply],
    compiler_protocol.CheckArtifact | compiler_protocol.MendBuild | None,
]:
    """Returns a function that makes the next request from a reply. With `samples` the build runs on
    the inputs of these seeds to measure its error, instead of the check, and its results are saved
    in `cases`. A child has `limit_seconds` per request; one that mends stops early enough to
    reply."""
    checks: list[compiler_protocol.CheckArtifact] = []

    def ask(
        reply: compiler_protocol.CompileReply | compiler_protocol.CheckReply,
    ) -> compiler_protocol.CheckArtifact | compiler_protocol.MendBuild | None:
        match reply:
            case compiler_protocol.Built(reference=reference):
                check = compiler_protocol.CheckArtifact(
                    directory=build.directory,
                    reference=reference,
                    kind=build.target.kind,
                    seeds=seeds,
                    samples=samples,
                    cases=cases,
                )
                checks.append(check)
                return check
            case compiler_protocol.Checked(check=found) if found is not None and not found.passed:
                seconds = min(MAX_MENDING_SECONDS, limit_seconds / 2)
                return compiler_protocol.MendBuild(
                    build=build, check=checks[0], limit_seconds=seconds
                )
            case _:
                return None

    return ask


# The variables of a process that builds for a target, and times its builds.


def child_variables(target: TargetConfig) -> Mapping[str, str]:
    """Returns the variables that give kernels the target's threads, unbound and without long
    spinning. TVM's defaults are half of the machine's cores, bound from the first one on. Kernels
    are timed in turn with ONNX Runtime, so they must not spin while it computes."""
    return {
        **({**cuda_variables(), **gpu_variables()} if target.kind == "cuda" else {}),
        **thread_variables(target.threads or default_threads()),
        **BRIEF_WAITS,
    }


# A compiler's children, each with an open model: those that are needed again stay.

_KEPT_BYTES = 512 * 1024 * 1024
"""The total size of files whose children stay: an open model takes several times its file."""
_BYTES_OF_ONE = 2**30
"""The memory that such a child takes by itself."""

_Reply = TypeVar("_Reply")
_Way = tuple[tuple[tuple[str, str], ...], MemoryLimit]


class CompileChildren(Generic[_Reply]):
    """Children that run `module`. Each request has the time limit; their output goes to `log`.
    `close` ends the remaining ones."""

    def __init__(self, module: str, replies: type[_Reply], log: Path, limit_seconds: float) -> None:
        self._module, self._replies = module, replies
        self._log, self._limit_seconds = log, limit_seconds
        self._kept: dict[OpenedKey, Child[_Reply]] = {}
        self._kept_bytes = 0
        self._spare: dict[_Way, list[Child[_Reply]]] = {}

    def close(self) -> None:
        for child in self._kept.values():
            child.kill()
        self._kept.clear()

    def begin(self, job: ModelJob, memory: MemoryLimit) -> Callable[[], Child[_Reply]]:
        """Returns a function that gives the child with this model open, a child that has refused
        another one, or a new one."""

        def begin() -> Child[_Reply]:
            child = self._kept.pop(opened_key(job), None)
            if child is not None:
                self._kept_bytes -= job.file.stat().st_size
            if child is not None and child.is_running:
                return child
            spares = self._spare.get(_way(job, memory))
            if spares:
                return spares.pop()
            variables = child_variables(job.target)
            return Child(
                self._module, self._replies, variables=variables, memory=memory, log=self._log
            )

        return begin

    def converse(
        self,
        jobs: Sequence[ModelJob],
        talks: Sequence[Conversation[_Reply]],
        shares: Shares,
        stay: Sequence[bool],
    ) -> None:
        """Holds a conversation about each job. Children marked in `stay` stay open for the next
        one, as far as there is room."""
        places = {id(t): job for t, job, stays in zip(talks, jobs, stay, strict=True) if stays}
        most_kept = memory_limit().limit_bytes // _BYTES_OF_ONE // 2

        def release(talk: Conversation[_Reply]) -> None:
            job = places.get(id(talk))
            if job is None:
                talk.dismiss()
            elif talk.child is not None and _has_refused(talk):
                self._spare.setdefault(_way(job, shares.memory), []).append(talk.child)
            else:
                self._keep(job, talk, most_kept)

        try:
            converse(
                talks, at_once=shares.at_once, limit_seconds=self._limit_seconds, on_end=release
            )
        finally:
            for child in [each for spares in self._spare.values() for each in spares]:
                child.kill()
            self._spare.clear()

    def _keep(self, job: ModelJob, talk: Conversation[_Reply], most: int) -> None:
        if talk.child is None or talk.died is not None:
            return
        size = job.file.stat().st_size
        is_room = len(self._kept) < most and self._kept_bytes + size <= _KEPT_BYTES
        if not is_room or not isinstance(
            talk.replies[0], compiler_protocol.Tasks | compiler_protocol.Built
        ):
            talk.dismiss()
            return
        self._kept_bytes += size
        self._kept[opened_key(job)] = talk.child


def _way(job: ModelJob, memory: MemoryLimit) -> _Way:
    """Returns what decides how the child of a job begins."""
    return tuple(sorted(child_variables(job.target).items())), memory


def _has_refused(talk: Conversation[_Reply]) -> bool:
    """Returns whether the child has refused its model and took little memory for it. It then takes
    the next one: many broken files would cost a second each for the start of a compiler."""
    first = talk.replies[0] if talk.replies else None
    if talk.died is not None or talk.child is None or not isinstance(first, Failed):
        return False
    is_refusal = first.compiler and not first.memory
    return is_refusal and talk.child.resident_bytes() < _BYTES_OF_ONE


def memory_for(jobs: Sequence[ModelJob]) -> Shares:
    """Returns how many children may have these models open at once, and how much memory each may
    take."""
    is_cuda = any(job.target.kind == "cuda" for job in jobs)
    return memory_shares([job.file for job in jobs], usable_cores(), "cuda" if is_cuda else "llvm")


# Models with equal tasks: only one of them is opened to list them.


class KernelDigests:
    """Kernel digests of a run's files, each read once."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def __call__(self, job: ModelJob) -> str:
        if job.file not in self._known:
            self._known[job.file] = kernel_digest(job.file) or ""
        return self._known[job.file]


def with_same_kernels(
    jobs: Mapping[int, ModelJob], kernels: Callable[[ModelJob], str]
) -> dict[int, int]:
    """Returns, for each later job, the index of the first job with the same kernels, as base and
    head have that differ only in weights."""
    first: dict[object, int] = {}
    places: dict[int, int] = {}
    versions = Counter(job.path for job in jobs.values())
    for place, job in jobs.items():
        digest = kernels(job) if versions[job.path] > 1 else ""
        if digest:
            at = first.setdefault((digest, opened_key(job)[1:]), place)
            places |= {place: at} if at != place else {}
    return places


def ask_each_once(
    jobs: Mapping[int, ModelJob],
    kernels: Callable[[ModelJob], str],
    asking: Callable[[Mapping[int, ModelJob]], dict[int, Conversation[_Reply]]],
) -> tuple[dict[int, Conversation[_Reply]], Collection[int]]:
    """Returns the reply for each job, and the indices whose reply is another job's: of jobs with
    the same kernels only one is asked, unless it has no tasks."""
    same = with_same_kernels(jobs, kernels)
    talks = asking({n: job for n, job in jobs.items() if n not in same})
    shared_talks = {n: talks[at] for n, at in same.items() if _is_listed(talks[at])}
    talks |= asking({n: jobs[n] for n in same if n not in shared_talks}) | shared_talks
    return talks, shared_talks.keys()


def _is_listed(talk: Conversation[_Reply]) -> bool:
    """Returns whether a child listed the tasks."""
    return bool(talk.replies) and isinstance(talk.replies[0], compiler_protocol.Tasks)


class TakenLists:
    """Task lists copied from another model: the other side, or the same model in an earlier run. A
    build that finds other tasks is rejected: they could have no schedule on this side while the
    other side has one."""

    def __init__(self) -> None:
        self._lists: dict[OpenedKey, tuple[str, frozenset[WorkloadKey]]] = {}

    def add(self, job: ModelJob, tasks: Sequence[TuningTask] | ModelError, whose: str) -> None:
        """Stores copied tasks; `whose` names their origin in messages."""
        if isinstance(tasks, ModelError):
            return
        self._lists[opened_key(job)] = whose, frozenset(task.key for task in tasks)

    def require_same_tasks(self, job: BuildJob, build: Build) -> Build:
        """Returns the build, or why it is refused: its tasks are not those that were taken."""
        known_tasks = self._lists.get(opened_key(job.model))
        if known_tasks is None or build.error is not None:
            return build
        whose, keys = known_tasks
        others = [task.name for task in build.tasks if task.key not in keys]
        if not others:
            return build
        reason = f"{job.model.path}: its kernels are not those of {whose} ({others[0]})."
        return msgspec.structs.replace(unbuilt(reason), crashed=True)
