"""An implementation of `ports.Builder` for ONNX Runtime: a child process for each model."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

from tunegate.artifacts.builds import Build
from tunegate.edges.machine.cores import default_threads, usable_cores
from tunegate.edges.processes.child import Child
from tunegate.edges.processes.conversations import Conversation, converse
from tunegate.edges.processes.memory_limit import MemoryLimit, memory_shares
from tunegate.edges.run_seed import derived
from tunegate.ports import Builder, BuildJob
from tunegate.runtimes.build_messages import Refused, WriteArtifact, WriteReply, Written

_CHILD = "tunegate.runtimes.build_child"
MAX_SECONDS = 300.0


class OnnxRuntimeBuilder:
    """`scratch` is a private directory; models are run on inputs of `seed`. A model that takes
    longer than `limit_seconds` is an error."""

    def __init__(self, scratch: Path, *, seed: int, limit_seconds: float = MAX_SECONDS) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch, self._seed = scratch, seed
        self._limit_seconds = min(limit_seconds, MAX_SECONDS)
        self._count = 0

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        shares = memory_shares([job.model.file for job in jobs], usable_cores())
        begin = partial(self._child, shares.memory)
        talks = [Conversation(begin, self._request(job)) for job in jobs]
        converse(
            talks,
            at_once=shares.at_once,
            limit_seconds=self._limit_seconds,
            ended=lambda talk: talk.dismiss(),
        )
        return [self._finish(job, talk) for job, talk in zip(jobs, talks, strict=True)]

    def _child(self, memory: MemoryLimit) -> Child[WriteReply]:
        kind = cast("type[WriteReply]", WriteReply)
        log = self._scratch / "builder.log"
        return Child(_CHILD, kind, variables={}, memory=memory, log=log)

    def _request(self, job: BuildJob) -> WriteArtifact:
        self._count += 1
        return WriteArtifact(
            file=str(job.model.file.resolve()),
            path=job.model.path,
            shapes=dict(job.model.shapes),
            threads=job.model.target.threads or default_threads(),
            directory=str(job.directory.resolve()),
            scratch=str((self._scratch / f"model-{self._count}").resolve()),
            seed=derived(self._seed, "check", 0),
        )

    def _finish(self, job: BuildJob, talk: Conversation[WriteReply]) -> Build:
        reply = talk.replies[0] if talk.replies else None
        match reply:
            case Written():
                return Build(
                    key=reply.key,
                    directory=job.directory.name,
                    tasks=(),
                    check=None,
                    error=None,
                    size_bytes=reply.size_bytes,
                    seconds=reply.seconds,
                    runtime="onnxruntime",
                )
            case Refused(reason=reason):
                error = reason
            case _:
                error = (
                    f"{job.model.path}: ONNX Runtime {talk.died} on this model "
                    f"(log: {self._scratch / 'builder.log'}). Fix the export."
                )
        shutil.rmtree(job.directory, ignore_errors=True)
        return Build(
            key="",
            directory="",
            tasks=(),
            check=None,
            error=error,
            size_bytes=0,
            seconds=0.0,
            runtime="onnxruntime",
            crashed=talk.died is not None,
        )


_: type[Builder] = OnnxRuntimeBuilder
