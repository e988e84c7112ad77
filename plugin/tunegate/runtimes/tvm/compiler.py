"""An implementation of `ports.Compiler` over children: a model that crashes one costs a message.

The child that listed a model's tasks has the model open, so it stays and builds it later. The child
that built a model compares it with ONNX Runtime at once.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.tasks import TuningTask
from tunegate.errors import ModelError
from tunegate.models.seeded_inputs import error_seeds
from tunegate.ports import NOTHING_LISTED, BuildJob, Compiler, ModelJob
from tunegate.runtimes.tvm import compile_requests, finished_build
from tunegate.system.output.directory import require_room
from tunegate.system.processes.conversations import Conversation
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.tune import compiler_protocol
from tunegate.tune.protocol import Failed

_CHILD = "tunegate.compiler.compile"
_MAX_SECONDS = 900.0
_MOST_DEATHS = 3
"""The schedules that are dropped one by one before all are."""

_Reply = compiler_protocol.CompileReply | compiler_protocol.Checked | compiler_protocol.Mended


class MetaScheduleCompiler:
    """Compiles each model in its own child; each request has a time limit. `scratch` is a private
    directory; builds run on inputs of `seed`. Use it as a context manager, or `close` it."""

    def __init__(self, scratch: Path, *, seed: int, limit_seconds: float = _MAX_SECONDS) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch, self._limit_seconds = scratch, limit_seconds
        self._requests = compile_requests.CompileRequests(scratch, seed)
        self._children: compile_requests.CompileChildren[_Reply] = compile_requests.CompileChildren(
            _CHILD, cast("type[_Reply]", _Reply), self._log, limit_seconds
        )
        self._refused: dict[compile_requests.OpenedKey, Build] = {}
        self._taken, self._kernels = compile_requests.TakenLists(), compile_requests.KernelDigests()
        self._dead = finished_build.DeadBuilds(self._kernels)
        self._failures = finished_build.CompileFailures(self._log)

    def close(self) -> None:
        self._children.close()

    def kernels(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        return [self._kernels(job) for job in jobs]

    def tasks(
        self,
        jobs: Sequence[ModelJob],
        known_tasks: Mapping[int, Sequence[TuningTask]] = NOTHING_LISTED,
    ) -> Sequence[Sequence[TuningTask] | ModelError]:
        for n, tasks in known_tasks.items():
            self._taken.add(jobs[n], tasks, "an earlier run")
        open_jobs = {n: job for n, job in enumerate(jobs) if n not in known_tasks}
        talks, copies = compile_requests.ask_each_once(open_jobs, self._kernels, self._list_tasks)
        answers = {
            **known_tasks,
            **{n: self._read_tasks(job, talks[n]) for n, job in open_jobs.items()},
        }
        for n in copies:
            self._taken.add(jobs[n], answers[n], "the other side")
        return [answers[n] for n in range(len(jobs))]

    def _list_tasks(self, jobs: Mapping[int, ModelJob]) -> dict[int, Conversation[_Reply]]:
        shares = compile_requests.memory_for([*jobs.values()])
        talks = {
            n: Conversation(self._children.begin(job, shares.memory), self._requests.tasks(job))
            for n, job in jobs.items()
        }
        stay = [True] * len(talks)
        self._children.converse([*jobs.values()], [*talks.values()], shares, stay)
        return talks

    def refusals(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        """Builds each model with default schedules, and remembers which fail. Returns the
        reasons."""
        open_jobs = [job for job in jobs if compile_requests.opened_key(job) not in self._refused]
        trial_jobs = [self._requests.trial_job(job) for job in open_jobs]
        builds = self._build_all([(job, False) for job in trial_jobs])
        build_of = {
            compile_requests.opened_key(job): build
            for job, build in zip(open_jobs, builds, strict=True)
        }
        self._refused |= finished_build.refused_builds(build_of)
        return [
            finished_build.refusal_of_tuning(job, build_of.get(compile_requests.opened_key(job)))
            for job in jobs
        ]

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        """Builds each job. Models that are known to be rejected, or to kill their process, are not
        tried again."""
        known_builds = [
            self._refused.get(compile_requests.opened_key(job.model)) or self._dead.of(job)
            for job in jobs
        ]
        open_jobs = [job for job, build in zip(jobs, known_builds, strict=True) if build is None]
        builds = self._build_with_graphs(open_jobs)
        for job, build in zip(open_jobs, builds, strict=True):
            self._dead.add(job, build)
        new_builds = iter(builds)
        return [build or next(new_builds) for build in known_builds]

    def _build_with_graphs(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        """Builds with CUDA graphs the jobs that want them, and again without if that fails."""
        graphs = [compile_requests.has_graphs(job) for job in jobs]
        builds = self._build_all(list(zip(jobs, graphs, strict=True)))
        failures = [n for n, build in enumerate(builds) if graphs[n] and build.key and build.error]
        again = self._build_plain([jobs[n] for n in failures])
        for n, build in zip(failures, again, strict=True):
            builds[n] = msgspec.structs.replace(build, without_graphs=builds[n].error or "")
        return builds

    def _build_all(self, jobs: Sequence[tuple[BuildJob, bool]], deaths: int = 0) -> list[Build]:
        """Builds each job. One that dies of an untried schedule is rebuilt without that schedule,
        up to so many `deaths`, and then without any untried one."""
        shares = compile_requests.memory_for([job.model for job, _ in jobs])
        requests = [self._requests.build(job, cuda_graphs=graphs) for job, graphs in jobs]
        talks = [
            self._build_conversation(job, request, shares.memory)
            for (job, _), request in zip(jobs, requests, strict=True)
        ]
        stay = [job.is_followed for job, _ in jobs]
        self._children.converse([job.model for job, _ in jobs], talks, shares, stay)
        builds = [self._finish(job, talk) for (job, _), talk in zip(jobs, talks, strict=True)]
        all_jobs, has_graphs = [job for job, _ in jobs], any(graphs for _, graphs in jobs)

        def again(those: Sequence[BuildJob]) -> list[Build]:
            graphs = (has_graphs and compile_requests.has_graphs(job) for job in those)
            return self._build_all(list(zip(those, graphs, strict=True)), deaths + 1)

        blamed = {
            n: compiler_protocol.running_kernel(Path(request.scratch))
            for n, (request, talk) in enumerate(zip(requests, talks, strict=True))
            if talk.died is not None and deaths < _MOST_DEATHS
        }
        return finished_build.in_other_layout(
            all_jobs, finished_build.made_again(all_jobs, builds, again, blamed), self._build_plain
        )

    def _build_plain(self, jobs: Sequence[BuildJob]) -> list[Build]:
        return self._build_all([(job, False) for job in jobs])

    def _build_conversation(
        self, job: BuildJob, request: compiler_protocol.BuildModel, memory: MemoryLimit
    ) -> Conversation[_Reply]:
        checking = compile_requests.questions_after_build(
            request,
            seeds=self._requests.checks(),
            samples=error_seeds(job.samples),
            cases=str(job.cases.resolve()) if job.cases is not None else "",
            limit_seconds=self._limit_seconds,
        )
        is_hasty = job.model.target.kind == "llvm" and bool(finished_build.risky_schedules(job))
        seconds = self._limit_seconds * (finished_build.RISKY_SHARE if is_hasty else 1.0)
        return Conversation(self._children.begin(job.model, memory), request, checking, seconds)

    def _read_tasks(
        self, job: ModelJob, talk: Conversation[_Reply]
    ) -> Sequence[TuningTask] | ModelError:
        """Returns the listed tasks or the error; a rejected model is remembered."""
        reply = talk.replies[0] if talk.replies else None
        if isinstance(reply, Failed) and reply.compiler and not reply.memory:
            self._refused[compile_requests.opened_key(job)] = unbuilt(reply.reason)
        return (
            reply.tasks
            if isinstance(reply, compiler_protocol.Tasks)
            else self._model_error(job.path, talk)
        )

    def _finish(self, job: BuildJob, talk: Conversation[_Reply]) -> Build:
        reply = talk.replies[0] if talk.replies else None
        if not isinstance(reply, compiler_protocol.Built):
            has_died = finished_build.has_died(talk.died or talk.replies[0])
            return unbuilt(str(self._model_error(job.model.path, talk)), crashed=has_died)
        later = (*talk.replies[1:], *([talk.died] if talk.died else []))
        build = self._taken.require_same_tasks(job, finished_build.finish_build(job, reply, later))
        if build.error is not None:
            shutil.rmtree(job.directory, ignore_errors=True)  # a wrong build is never shipped
        return build

    def _model_error(self, path: str, talk: Conversation[_Reply]) -> ModelError:
        failure = talk.died or talk.replies[0]
        error = self._failures.of(path, failure)
        has_lacked = isinstance(failure, Failed) and failure.room
        require_room(self._scratch, str(error), has_lacked=has_lacked)
        return error

    @property
    def _log(self) -> Path:
        return self._scratch / "compiler.log"


_: type[Compiler] = MetaScheduleCompiler
