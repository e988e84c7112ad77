"""An implementation of `ports.Compiler` over children: a model that crashes one costs a message.

The child that listed a model's tasks has the model open, so it stays and builds it later; the child
that built a model runs it beside ONNX Runtime at once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.foreign_schedules import ForeignSchedule, ImportedSchedule
from tunegate.artifacts.tasks import TuningTask
from tunegate.edges.machine.cores import usable_cores
from tunegate.edges.metaschedule.checks.check_messages import Checked, Mended
from tunegate.edges.processes.child import Child
from tunegate.edges.processes.conversations import Conversation, converse
from tunegate.edges.processes.memory_limit import MemoryLimit, Shares, memory_limit, memory_shares
from tunegate.engine.compiler_protocol import (
    BuildModel,
    Built,
    CompileReply,
    CompileRequest,
    Exported,
    Imported,
    InParts,
    NoParts,
    Tasks,
)
from tunegate.engine.protocol import Failed
from tunegate.errors import ModelError
from tunegate.ports import NOTHING_LISTED, BuildJob, Compiler, Export, ModelJob
from tunegate.runtimes.tvm import compile_requests
from tunegate.runtimes.tvm.build_questions import questions_after_build
from tunegate.runtimes.tvm.child_variables import child_variables
from tunegate.runtimes.tvm.compile_failures import CompileFailures
from tunegate.runtimes.tvm.compile_requests import CompileRequests, OpenedKey, opened_key
from tunegate.runtimes.tvm.dead_builds import DeadBuilds
from tunegate.runtimes.tvm.finished_build import finished, needless, refused_builds
from tunegate.runtimes.tvm.other_layout import in_other_layout, refusal_of_tuning
from tunegate.runtimes.tvm.risky_schedules import RISKY_SHARE, made_again, risky_schedules
from tunegate.runtimes.tvm.shared_listing import KernelDigests, TakenLists, told_once
from tunegate_cache.format.records import WorkloadKey

_CHILD = "tunegate.edges.metaschedule.compile"
_MAX_SECONDS = 900.0
_KEPT_BYTES = 512 * 1024 * 1024
"""The size of all files whose children stay: an open model takes several times its file."""
_BYTES_OF_ONE = 2**30
"""Bytes that such a child may take by itself."""

_Wanted = TypeVar("_Wanted", Exported, Imported)
_Reply = CompileReply | Checked | Mended


class MetaScheduleCompiler:
    """Every model has a child of its own; each request has a time limit. `scratch` is a private
    directory; builds are run on inputs of `seed`. Use as a context manager, or `close` it."""

    def __init__(self, scratch: Path, *, seed: int, limit_seconds: float = _MAX_SECONDS) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch, self._limit_seconds = scratch, limit_seconds
        self._requests = CompileRequests(scratch, seed)
        self._kept: dict[OpenedKey, Child[_Reply]] = {}
        self._kept_bytes = 0
        self._not_whole: dict[OpenedKey, Build] = {}
        self._without_parts: set[OpenedKey] = set()
        self._whole_at: dict[OpenedKey, Path | None] = {}
        self._taken, self._kernels = TakenLists(), KernelDigests()
        self._dead = DeadBuilds(self._kernels)
        self._failures = CompileFailures(self._log)

    def close(self) -> None:
        for child in self._kept.values():
            child.kill()
        self._kept.clear()

    def kernels(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        return [self._kernels(job) for job in jobs]

    def tasks(
        self, jobs: Sequence[ModelJob], known: Mapping[int, Sequence[TuningTask]] = NOTHING_LISTED
    ) -> Sequence[Sequence[TuningTask] | ModelError]:
        for n, listed in known.items():
            self._taken.add(jobs[n], listed, "an earlier run")
        asked = {n: job for n, job in enumerate(jobs) if n not in known}
        talks, taken = told_once(asked, self._kernels, self._listing)
        answers = {**known, **{n: self._listed(job, talks[n]) for n, job in asked.items()}}
        for n in taken:
            self._taken.add(jobs[n], answers[n], "the other side")
        return [answers[n] for n in range(len(jobs))]

    def _listing(self, jobs: Mapping[int, ModelJob]) -> dict[int, Conversation[_Reply]]:
        shares = _shares([*jobs.values()])
        talks = {
            n: Conversation(self._child(job, shares.memory), self._requests.tasks(job))
            for n, job in jobs.items()
        }
        stay = [True] * len(talks)
        self._converse([*jobs.values()], [*talks.values()], shares, stay)
        return talks

    def refused(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        """Builds each with default schedules, and remembers what cannot be. Models that are built
        in parts are not tried: their parts are, when they are timed."""
        wanted = [job for job in jobs if opened_key(job) not in self._not_whole]
        tried = [self._requests.untuned(job) for job in wanted]
        builds = self._built([(job, False) for job in tried])
        built = {opened_key(job): build for job, build in zip(wanted, builds, strict=True)}
        self._not_whole |= refused_builds(built)
        return [refusal_of_tuning(job, built.get(opened_key(job))) for job in jobs]

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        """Builds whole models; those that are known not to be taken, or to end the process that
        builds them, are not tried again."""
        known = [self._not_whole.get(opened_key(job.model)) or self._dead.of(job) for job in jobs]
        wanted = [job for job, build in zip(jobs, known, strict=True) if build is None]
        builds = self._built_whole(wanted)
        for job, build in zip(wanted, builds, strict=True):
            self._dead.add(job, build)
            if not job.settings:  # parts are held against the whole in float32
                self._whole_at[opened_key(job.model)] = None if build.error else job.directory
        built = iter(builds)
        return [build or next(built) for build in known]

    def build_in_parts(self, jobs: Sequence[BuildJob], runtime: RuntimeName) -> Sequence[Build]:
        """Builds one model after the other: their parts are timed, and anything else that runs
        would be measured, too."""
        return [self._built_in_parts(job, runtime) for job in jobs]

    def _built_in_parts(self, job: BuildJob, runtime: RuntimeName) -> Build:
        """Returns the build in parts: what is compiled whole and tuned may have parts that are
        slower than the others. Where no whole build was asked for, parts are what an earlier run
        has elected."""
        key = opened_key(job.model)
        whole = self._whole_at.get(key) if job.records else None
        elected = bool(job.records) and key not in self._whole_at
        if key in self._without_parts and whole is None and not elected:
            return needless(job)
        how = self._requests.in_parts(job, runtime, whole, elected=elected)
        return self._built([(job, False)], how)[0]

    def _built_whole(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        """Builds with CUDA graphs where jobs have them, and without where such a one fails."""
        graphs = [compile_requests.has_graphs(job) for job in jobs]
        builds = self._built(list(zip(jobs, graphs, strict=True)))
        refused = [n for n, build in enumerate(builds) if graphs[n] and build.key and build.error]
        again = self._plain([jobs[n] for n in refused])
        for n, build in zip(refused, again, strict=True):
            builds[n] = msgspec.structs.replace(build, without_graphs=builds[n].error or "")
        return builds

    def _built(
        self, jobs: Sequence[tuple[BuildJob, bool]], in_parts: InParts | None = None
    ) -> list[Build]:
        shares = _shares([job.model for job, _ in jobs])
        talks = [
            self._building(job, self._requests.build(job, cuda_graphs, in_parts), shares.memory)
            for job, cuda_graphs in jobs
        ]
        stay = [job.is_followed for job, _ in jobs]
        self._converse([job.model for job, _ in jobs], talks, shares, stay)
        builds = [self._finish(job, talk) for (job, _), talk in zip(jobs, talks, strict=True)]
        given, has_graphs = [job for job, _ in jobs], any(graphs for _, graphs in jobs)

        def again(those: Sequence[BuildJob]) -> list[Build]:
            graphs = (has_graphs and compile_requests.has_graphs(job) for job in those)
            return self._built(list(zip(those, graphs, strict=True)), in_parts)

        made = made_again(given, builds, again)
        return made if in_parts is not None else in_other_layout(given, made, self._plain)

    def _plain(self, jobs: Sequence[BuildJob], in_parts: InParts | None = None) -> list[Build]:
        return self._built([(job, False) for job in jobs], in_parts)

    def _converse(
        self,
        jobs: Sequence[ModelJob],
        talks: Sequence[Conversation[_Reply]],
        shares: Shares,
        stay: Sequence[bool],
    ) -> None:
        """Holds a conversation about each job. Those children that are to stay for the next do, as
        far as there is room."""
        places = {id(t): job for t, job, stays in zip(talks, jobs, stay, strict=True) if stays}
        most_kept = memory_limit().limit_bytes // _BYTES_OF_ONE // 2

        def ended(talk: Conversation[_Reply]) -> None:
            job = places.get(id(talk))
            if job is None:
                talk.dismiss()
            else:
                self._keep(job, talk, most_kept)

        converse(talks, at_once=shares.at_once, limit_seconds=self._limit_seconds, ended=ended)

    def export(self, jobs: Sequence[BuildJob]) -> Sequence[Export]:
        """Exports each job into the database in its directory, one after the other: several may
        share one. Raises ModelError."""
        return [self._exported(job) for job in jobs]

    def import_schedules(
        self, jobs: Sequence[ModelJob], foreign: Sequence[ForeignSchedule]
    ) -> Sequence[ImportedSchedule]:
        """Returns the schedules that fit a task of one of the models. Raises ModelError."""
        found: dict[WorkloadKey, list[ImportedSchedule]] = {}
        for job in jobs:
            request = self._requests.import_schedules(job, foreign)
            reply = self._asked(job, request, Imported)
            for key in {schedule.key for schedule in reply.schedules}:
                found[key] = [s for s in reply.schedules if s.key == key]
        return [schedule for schedules in found.values() for schedule in schedules]

    def _exported(self, job: BuildJob) -> Export:
        reply = self._asked(job.model, self._requests.export(job), Exported)
        return Export(written=reply.written, misfits=reply.misfits)

    def _asked(self, job: ModelJob, request: CompileRequest, wanted: type[_Wanted]) -> _Wanted:
        shares = _shares([job])
        talk = Conversation(self._child(job, shares.memory), request)
        self._converse([job], [talk], shares, [False])
        reply = talk.replies[0] if talk.replies else None
        if not isinstance(reply, wanted):
            raise self._model_error(job.path, talk)
        return reply

    def _building(
        self, job: BuildJob, request: BuildModel, memory: MemoryLimit
    ) -> Conversation[_Reply]:
        checking = questions_after_build(
            request,
            seeds=self._requests.checks(),
            samples=self._requests.samples(job),
            cases=str(job.cases.resolve()) if job.cases is not None else "",
            limit_seconds=self._limit_seconds,
        )
        is_hasty = job.model.target.kind == "llvm" and bool(risky_schedules(job))
        seconds = self._limit_seconds * (RISKY_SHARE if is_hasty else 1.0)
        return Conversation(self._child(job.model, memory), request, checking, seconds)

    def _child(self, job: ModelJob, memory: MemoryLimit) -> Callable[[], Child[_Reply]]:
        def begin() -> Child[_Reply]:
            kept = self._kept.pop(opened_key(job), None)
            if kept is not None:
                self._kept_bytes -= job.file.stat().st_size
            if kept is not None and kept.is_running:
                return kept
            variables = child_variables(job.target)
            kind = cast("type[_Reply]", _Reply)
            return Child(_CHILD, kind, variables=variables, memory=memory, log=self._log)

        return begin

    def _keep(self, job: ModelJob, talk: Conversation[_Reply], most: int) -> None:
        if talk.child is None or talk.died is not None:
            return
        size = job.file.stat().st_size
        is_room = len(self._kept) < most and self._kept_bytes + size <= _KEPT_BYTES
        if not is_room or not isinstance(talk.replies[0], Tasks | Built):
            talk.dismiss()
            return
        self._kept_bytes += size
        self._kept[opened_key(job)] = talk.child

    def _listed(
        self, job: ModelJob, talk: Conversation[_Reply]
    ) -> Sequence[TuningTask] | ModelError:
        """Returns the answer, and remembers what it says of parts and of a refused model."""
        reply, key = talk.replies[0] if talk.replies else None, opened_key(job)
        if isinstance(reply, Tasks) and reply.not_whole:
            self._not_whole[key] = unbuilt(reply.not_whole)
        elif isinstance(reply, Tasks) or (isinstance(reply, Failed) and job.in_parts):
            self._without_parts.add(key)
        if isinstance(reply, Failed) and reply.compiler and not reply.memory:
            self._not_whole[key], self._whole_at[key] = unbuilt(reply.reason), None
        return reply.tasks if isinstance(reply, Tasks) else self._model_error(job.path, talk)

    def _finish(self, job: BuildJob, talk: Conversation[_Reply]) -> Build:
        reply = talk.replies[0] if talk.replies else None
        if isinstance(reply, NoParts):
            return needless(job)
        if not isinstance(reply, Built):
            crashed = talk.died is not None or (isinstance(reply, Failed) and reply.memory)
            return unbuilt(str(self._model_error(job.model.path, talk)), crashed=crashed)
        later = (*talk.replies[1:], *([talk.died] if talk.died else []))
        build = self._taken.held(job, finished(job, reply, later))
        if build.error is not None:
            shutil.rmtree(job.directory, ignore_errors=True)  # a wrong build is never shipped
        return build

    def _model_error(self, path: str, talk: Conversation[_Reply]) -> ModelError:
        return self._failures.of(path, talk.died or talk.replies[0])

    @property
    def _log(self) -> Path:
        return self._scratch / "compiler.log"


def _shares(jobs: Sequence[ModelJob]) -> Shares:
    is_cuda = any(job.target.kind == "cuda" for job in jobs)
    return memory_shares([job.file for job in jobs], usable_cores(), "cuda" if is_cuda else "llvm")


_: type[Compiler] = MetaScheduleCompiler
