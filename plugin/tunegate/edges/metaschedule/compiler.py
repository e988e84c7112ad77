"""ports.Compiler over child processes: a model that crashes the compiler costs one message."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tunegate.artifacts.builds import Build, BuiltTask, NumericCheck
from tunegate.artifacts.tasks import TuningTask
from tunegate.edges.ask_all import ask_all
from tunegate.edges.child import ChildDiedError
from tunegate.edges.cores import usable_cores
from tunegate.edges.metaschedule.check_messages import CheckArtifact, Checked, CheckReply
from tunegate.edges.metaschedule.messages import (
    BuildModel,
    Built,
    CompileReply,
    CompileRequest,
    Failed,
    ListTasks,
    ModelFile,
    Tasks,
)
from tunegate.errors import EnvironmentUnfitError, ModelError
from tunegate.ports import BuildJob, Compiler, ModelJob

_COMPILE = "tunegate.edges.metaschedule.compile"
_CHECK = "tunegate.edges.metaschedule.check"
_LIMIT_SECONDS = 900.0


class MetaScheduleCompiler:
    """Every job runs in a fresh child with a time limit; `scratch` is a private directory."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch = scratch
        self._count = 0

    def tasks(self, jobs: Sequence[ModelJob]) -> Sequence[Sequence[TuningTask] | ModelError]:
        requests = [
            ListTasks(model=_file(job), target=job.target, scratch=self._fresh()) for job in jobs
        ]
        answers = self._compile(requests)
        return [
            reply.tasks if isinstance(reply, Tasks) else self._model_error(job.path, reply)
            for job, reply in zip(jobs, answers, strict=True)
        ]

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        requests = [self._request(job) for job in jobs]
        answers = self._compile(requests)
        built = [index for index, reply in enumerate(answers) if isinstance(reply, Built)]
        checks = [
            CheckArtifact(
                directory=requests[index].directory,
                reference=str(Path(requests[index].scratch) / "fixed.onnx"),
                kind=jobs[index].model.target.kind,
            )
            for index in built
        ]
        checked = dict(zip(built, self._check(checks), strict=True))
        return [
            self._finish(job, reply, checked.get(index))
            for index, (job, reply) in enumerate(zip(jobs, answers, strict=True))
        ]

    def _request(self, job: BuildJob) -> BuildModel:
        return BuildModel(
            model=_file(job.model),
            target=job.model.target,
            records={key.workload: tuple(found) for key, found in job.records.items()},
            sources={key.workload: source for key, source in job.sources.items()},
            directory=str(job.directory.resolve()),
            scratch=self._fresh(),
        )

    def _compile(self, requests: Sequence[CompileRequest]) -> list[CompileReply | ChildDiedError]:
        return ask_all(
            _COMPILE,
            cast("type[CompileReply]", CompileReply),
            requests,
            at_once=usable_cores(),
            limit_seconds=_LIMIT_SECONDS,
            log=self._log,
        )

    def _check(self, requests: Sequence[CheckArtifact]) -> list[CheckReply | ChildDiedError]:
        return ask_all(
            _CHECK,
            cast("type[CheckReply]", CheckReply),
            requests,
            at_once=usable_cores(),
            limit_seconds=_LIMIT_SECONDS,
            log=self._log,
        )

    def _finish(
        self,
        job: BuildJob,
        reply: CompileReply | ChildDiedError,
        checked: CheckReply | ChildDiedError | None,
    ) -> Build:
        if not isinstance(reply, Built):
            return _failed(str(self._model_error(job.model.path, reply)))
        check, error = _judge(job.model.path, checked)
        if error is not None:
            shutil.rmtree(job.directory, ignore_errors=True)  # a wrong build is never shipped
        return Build(
            key=reply.key,
            directory=job.directory.name,
            tasks=tuple(
                BuiltTask(
                    key=f.key, name=f.name, weight=f.weight, source=f.source, rid=f.rid, ms=f.ms
                )
                for f in reply.functions
            ),
            check=check,
            error=error,
            size_bytes=reply.size_bytes,
            seconds=reply.seconds,
        )

    def _model_error(self, path: str, reply: CompileReply | ChildDiedError) -> ModelError:
        if isinstance(reply, Failed) and reply.model:
            return ModelError(reply.reason)
        if isinstance(reply, Failed):
            raise EnvironmentUnfitError(reply.reason)
        return ModelError(
            f"{path}: the compiler {reply} on this model (log: {self._log}). "
            f"Take it out of models: in tunegate.yaml, and report it."
        )

    def _fresh(self) -> str:
        self._count += 1
        directory = self._scratch / f"compile-{self._count}"
        directory.mkdir(parents=True, exist_ok=True)
        return str(directory.resolve())

    @property
    def _log(self) -> Path:
        return self._scratch / "compiler.log"


def _file(job: ModelJob) -> ModelFile:
    return ModelFile(file=str(job.file.resolve()), path=job.path, shapes=dict(job.shapes))


def _failed(reason: str) -> Build:
    return Build(
        key="", directory="", tasks=(), check=None, error=reason, size_bytes=0, seconds=0.0
    )


def _judge(
    path: str, checked: CheckReply | ChildDiedError | None
) -> tuple[NumericCheck | None, str | None]:
    match checked:
        case Checked(ran=False):
            return None, None
        case Checked():
            check = NumericCheck(
                passed=not checked.detail,
                max_absolute=checked.max_absolute,
                max_relative=checked.max_relative,
                tolerance=checked.tolerance,
                detail=checked.detail,
            )
            wrong = f"{path}: the compiled model computes other numbers: {checked.detail}."
            return check, wrong if checked.detail else None
        case Failed(reason=reason):
            return None, f"{path}: the compiled model does not run ({reason})."
        case _:
            return None, f"{path}: the compiled model {checked} when it was run."


_: type[Compiler] = MetaScheduleCompiler
