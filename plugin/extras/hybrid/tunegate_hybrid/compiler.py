"""The compiler of the runtime that tunes, also for models that it takes in parts alone."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.tasks import ForeignSchedule, ImportedSchedule, TuningTask
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.ports import NOTHING_LISTED, Builder, BuildJob, Export, ModelJob
from tunegate.runtimes.runtime import ExtendedCompiler, OpenCompiler
from tunegate.runtimes.tvm.compile_requests import (
    CompileChildren,
    CompileRequests,
    OpenedKey,
    memory_for,
    opened_key,
)
from tunegate.runtimes.tvm.finished_build import (
    RISKY_SHARE,
    CompileFailures,
    finished,
    made_again,
    risky_schedules,
)
from tunegate.system.machine.cores import default_threads
from tunegate.system.processes.conversations import Conversation
from tunegate.tune.compiler_protocol import (
    Built,
    CheckArtifact,
    Checked,
    ExportDatabase,
    Exported,
    Imported,
    ImportSchedules,
    Tasks,
)
from tunegate.tune.protocol import Failed
from tunegate_hybrid.messages import BuildParts, NoParts, PartsReply

_CHILD, _RUNTIME = "tunegate_hybrid.child", "hybrid"
_IN_PARTS = "-in-parts"

_Wanted = TypeVar("_Wanted", Exported, Imported)


class PartsCompiler:
    """Asks `whole` about each model, and children of its own about those that it refuses, on these
    targets: `parts` has them. `scratch` is a private directory; builds are run on inputs of
    `seed`."""

    def __init__(
        self,
        whole: OpenCompiler,
        targets: Collection[str],
        scratch: Path,
        *,
        seed: int,
        limit_seconds: float,
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._whole, self._targets = whole, frozenset(targets)
        self.parts = PartsBuilds(scratch, seed, limit_seconds)

    def close(self) -> None:
        self.parts.close()

    @property
    def builder(self) -> Builder:
        return self.parts

    def kernels(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        """Another list of tasks has another digest: that of a model in parts."""
        digests = self._whole.kernels(jobs)
        return [
            digest + _IN_PARTS if digest and self._takes_parts(job) else digest
            for job, digest in zip(jobs, digests, strict=True)
        ]

    def tasks(
        self, jobs: Sequence[ModelJob], known: Mapping[int, Sequence[TuningTask]] = NOTHING_LISTED
    ) -> Sequence[Sequence[TuningTask] | ModelError]:
        answers = list(self._whole.tasks(jobs, known))
        asked = [n for n, each in enumerate(answers) if self._may_have_parts(jobs[n], each)]
        for n, found in zip(asked, self.parts.tasks([jobs[n] for n in asked]), strict=True):
            answers[n] = found
        for n, job in enumerate(jobs):
            if n not in asked and n not in known:
                self.parts.without_parts.add(opened_key(job))
        return answers

    def refused(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        """Models in parts are not tried: their parts are, when they are timed."""
        return self._whole.refused(jobs)

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        builds = self._whole.build(jobs)
        for job, build in zip(jobs, builds, strict=True):
            if not job.settings:  # parts are held against the whole in float32
                at = None if build.error else job.directory
                self.parts.whole_at[opened_key(job.model)] = at
        return builds

    def export(self, jobs: Sequence[BuildJob]) -> Sequence[Export]:
        return [self._exported(job) for job in jobs]

    def import_schedules(
        self, jobs: Sequence[ModelJob], foreign: Sequence[ForeignSchedule]
    ) -> Sequence[ImportedSchedule]:
        found: dict[object, list[ImportedSchedule]] = {}
        for job in jobs:
            of_job: dict[object, list[ImportedSchedule]] = {}
            for each in self._imported(job, foreign):
                of_job.setdefault(each.key, []).append(each)
            found |= of_job
        return [schedule for schedules in found.values() for schedule in schedules]

    def _exported(self, job: BuildJob) -> Export:
        try:
            (found,) = self._whole.export([job])
        except UnsupportedModelError:
            if not self._takes_parts(job.model):
                raise
            found = self.parts.export(job)
        return found

    def _imported(
        self, job: ModelJob, foreign: Sequence[ForeignSchedule]
    ) -> Sequence[ImportedSchedule]:
        try:
            return self._whole.import_schedules([job], foreign)
        except UnsupportedModelError:
            if not self._takes_parts(job):
                raise
            return self.parts.import_schedules(job, foreign)

    def _takes_parts(self, job: ModelJob) -> bool:
        return job.target.name in self._targets

    def _may_have_parts(self, job: ModelJob, answer: object) -> bool:
        return isinstance(answer, UnsupportedModelError) and self._takes_parts(job)


class PartsBuilds:
    """Builds in parts, by children of their own. `whole_at` says where the build of a model lies
    that is compiled whole, None where there is none; what is `without_parts` is compiled whole, or
    not at all."""

    def __init__(self, scratch: Path, seed: int, limit_seconds: float) -> None:
        self._scratch, self._requests = scratch, CompileRequests(scratch, seed)
        self._limit_seconds = limit_seconds
        log = scratch / "compiler.log"
        self._children: CompileChildren[PartsReply] = CompileChildren(
            _CHILD, cast("type[PartsReply]", PartsReply), log, limit_seconds
        )
        self._failures = CompileFailures(log)
        self.whole_at: dict[OpenedKey, Path | None] = {}
        self.without_parts: set[OpenedKey] = set()

    def close(self) -> None:
        self._children.close()

    def tasks(self, jobs: Sequence[ModelJob]) -> list[Sequence[TuningTask] | ModelError]:
        """Returns those of the parts of each model. Its child stays, to build it."""
        talks = self._asked(jobs, [self._requests.tasks(job) for job in jobs], stay=True)
        return [self._listed(job, talk) for job, talk in zip(jobs, talks, strict=True)]

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        """One model after the other: their parts are timed, and what else runs would be measured,
        too."""
        return [self._built(job) for job in jobs]

    def export(self, job: BuildJob) -> Export:
        """Raises ModelError."""
        reply = self._answer(job.model, self._requests.export(job), Exported)
        return Export(written=reply.written, misfits=reply.misfits)

    def import_schedules(
        self, job: ModelJob, foreign: Sequence[ForeignSchedule]
    ) -> Sequence[ImportedSchedule]:
        """Raises ModelError."""
        request = self._requests.import_schedules(job, foreign)
        return self._answer(job, request, Imported).schedules

    def _built(self, job: BuildJob) -> Build:
        """A model that is compiled whole and tuned may have parts that are slower than the others.
        Where no whole build was asked for, parts are what an earlier run has elected."""
        key = opened_key(job.model)
        whole = self.whole_at.get(key) if job.records else None
        elected = bool(job.records) and key not in self.whole_at
        if key in self.without_parts and whole is None and not elected:
            return needless(job)
        (build,) = made_again([job], [self._made(job, whole, elected)], self._made_plainly)
        return build

    def _made_plainly(self, jobs: Sequence[BuildJob]) -> list[Build]:
        return [self._built(job) for job in jobs]

    def _made(self, job: BuildJob, whole: Path | None, elected: bool) -> Build:
        request = self.request(job, whole, elected=elected)
        check = CheckArtifact(
            directory=request.build.directory,
            reference="",
            kind=job.model.target.kind,
            seeds=self._requests.checks(),
        )

        def then(reply: PartsReply) -> CheckArtifact | None:
            if not isinstance(reply, Built):
                return None
            return msgspec.structs.replace(check, reference=reply.reference)

        shares = memory_for([job.model])
        patience = self._limit_seconds * (RISKY_SHARE if risky_schedules(job) else 1.0)
        begin = self._children.begin(job.model, shares.memory)
        talk = Conversation(begin, request, then, patience)
        self._children.converse([job.model], [talk], shares, [job.is_followed])
        return self._finish(job, talk)

    def request(self, job: BuildJob, whole: Path | None, *, elected: bool) -> BuildParts:
        """Returns how this model is built; what is decided of it holds for the run."""
        return BuildParts(
            build=self._requests.build(job),
            runtime=_RUNTIME,
            threads=job.model.target.threads or default_threads(),
            decided=str((self._scratch / "decided").resolve()),
            whole=str(whole.resolve()) if whole is not None else "",
            elected=elected,
        )

    def _asked(
        self, jobs: Sequence[ModelJob], requests: Sequence[msgspec.Struct], *, stay: bool
    ) -> list[Conversation[PartsReply]]:
        shares = memory_for(jobs)
        talks = [
            Conversation(self._children.begin(job, shares.memory), request)
            for job, request in zip(jobs, requests, strict=True)
        ]
        self._children.converse(jobs, talks, shares, [stay] * len(talks))
        return talks

    def _answer(
        self, job: ModelJob, request: ExportDatabase | ImportSchedules, wanted: type[_Wanted]
    ) -> _Wanted:
        (talk,) = self._asked([job], [request], stay=False)
        reply = talk.replies[0] if talk.replies else None
        if not isinstance(reply, wanted):
            raise self._error(job.path, talk)
        return reply

    def _listed(
        self, job: ModelJob, talk: Conversation[PartsReply]
    ) -> Sequence[TuningTask] | ModelError:
        reply = talk.replies[0] if talk.replies else None
        if isinstance(reply, Tasks):
            return reply.tasks
        if isinstance(reply, Failed):
            self.without_parts.add(opened_key(job))
        return self._error(job.path, talk)

    def _finish(self, job: BuildJob, talk: Conversation[PartsReply]) -> Build:
        reply = talk.replies[0] if talk.replies else None
        if isinstance(reply, NoParts):
            return needless(job)
        if not isinstance(reply, Built):
            crashed = talk.died is not None or (isinstance(reply, Failed) and reply.memory)
            return unbuilt(str(self._error(job.model.path, talk)), crashed=crashed)
        later = [each for each in talk.replies[1:] if isinstance(each, Checked | Failed)]
        build = finished(job, reply, [*later, *([talk.died] if talk.died else [])])
        if build.error is not None:
            shutil.rmtree(job.directory, ignore_errors=True)  # a wrong build is never shipped
        return build

    def _error(self, path: str, talk: Conversation[PartsReply]) -> ModelError:
        return self._failures.of(path, talk.died or talk.replies[0])


def needless(job: BuildJob) -> Build:
    """There is nothing to build in parts."""
    reason = f"{job.model.path}: the compiler takes all or nothing of it, not parts."
    return msgspec.structs.replace(unbuilt(reason), is_needless=True)


_: type[ExtendedCompiler] = PartsCompiler
