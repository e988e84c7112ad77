"""Turns a compile child's reply into a build: its numbers were checked, or it has none."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec

from tunegate.artifacts.builds import Build, NumericCheck, WrongKernel, unbuilt
from tunegate.artifacts.candidates import LAUNCH
from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError, UnsupportedModelError
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compile_requests import opened_key
from tunegate.runtimes.tvm.health import compiler_failure
from tunegate.system.processes.child import ChildDiedError
from tunegate.tune.compiler_protocol import Built, Checked, CompileReply, Mended
from tunegate.tune.protocol import Failed
from tunegate_cache.format.records import WorkloadKey

_Reply = CompileReply | Checked | Mended | ChildDiedError
_Key = TypeVar("_Key")


def finish_build(job: BuildJob, reply: Built, later: Sequence[_Reply]) -> Build:
    """Returns the finished build, with an error if the check failed and could not be mended."""
    checked, *mended = later
    match mended:
        case [Mended(built=Built() as built, check=check, wrong=wrong)]:
            return _build(job, built, check=check, wrong_kernels=wrong)
        case [Mended(reason=reason, is_late=is_late)]:
            return _wrong_build(job, reply, checked, reason, crashed=is_late)
        case [ChildDiedError() as died]:
            reason = f"the search for the kernel that does {died}"
            return _wrong_build(job, reply, checked, reason, crashed=True)
        case [Failed(reason=reason)]:
            return _wrong_build(job, reply, checked, reason, crashed=False)
        case _:
            return _wrong_build(job, reply, checked, "", crashed=has_died(checked))


def _wrong_build(
    job: BuildJob, reply: Built, checked: _Reply, reason: str, *, crashed: bool
) -> Build:
    check, error = _check_or_error(job.model.path, checked)
    error = f"{error} {reason[0].upper()}{reason[1:]}." if error and reason else error
    sampled = checked.sampled if isinstance(checked, Checked) else None
    build = _build(job, reply, check=check, error=error, crashed=crashed)
    return msgspec.structs.replace(build, sampled=sampled)


def _build(
    job: BuildJob,
    reply: Built,
    *,
    check: NumericCheck | None,
    error: str | None = None,
    wrong_kernels: tuple[WrongKernel, ...] = (),
    crashed: bool = False,
) -> Build:
    return Build(
        key=reply.key,
        directory=job.directory.name,
        tasks=tuple(function.as_task() for function in reply.functions),
        check=check,
        error=error,
        size_bytes=reply.size_bytes,
        seconds=reply.seconds,
        dropped=reply.dropped,
        inputs=reply.inputs,
        wrong_kernels=wrong_kernels,
        crashed=crashed,
        how=reply.how,
    )


def refusal_of_build(build: Build) -> str:
    """Returns why a model is not built, '' if it is, or if only running it failed: the machine that
    tunes it may be another."""
    has_only_not_run = build.crashed and build.key
    return "" if build.error is None or has_only_not_run else build.error


def refused_builds(builds: Mapping[_Key, Build]) -> dict[_Key, Build]:
    """Returns the failed builds as rejections; a build that died stays one that died."""
    return {
        key: unbuilt(reason, crashed=build.crashed)
        for key, build in builds.items()
        if (reason := refusal_of_build(build))
    }


def has_died(reply: _Reply) -> bool:
    """Returns whether the child, or one that it needs, died or ran out of memory: another run may
    have more luck, so nothing that lasts follows from it."""
    if isinstance(reply, Failed):
        return reply.memory or reply.died
    return isinstance(reply, ChildDiedError)


def _check_or_error(path: str, checked: _Reply) -> tuple[NumericCheck | None, str | None]:
    match checked:
        case Checked(check=check):
            wrong = check.detail if check is not None else ""
            problem = f"{path}: the compiled model computes other numbers: {wrong}."
            return check, problem if wrong else None
        case Failed(reason=reason, reference=True):
            problem = "its numbers cannot be checked, ONNX Runtime does not run the model"
            return None, f"{path}: {problem} ({reason})."
        case Failed(reason=reason):
            return None, f"{path}: the compiled model does not run ({reason})."
        case _:
            return None, f"{path}: the compiled model {checked} when it was run."


# The cause of a missing reply: the model, the configuration or the machine.


class CompileFailures:
    """Explains failures of children; `log` is what they wrote."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._is_known_to_work = False

    def of(self, path: str, reply: msgspec.Struct | ChildDiedError) -> ModelError:
        """Returns the model's error. Raises ConfigError or EnvironmentUnfitError if the model is
        not the cause."""
        if isinstance(reply, Failed) and reply.model:
            return (UnsupportedModelError if reply.compiler else ModelError)(reply.reason)
        if isinstance(reply, Failed):
            raise (ConfigError if reply.configuration else EnvironmentUnfitError)(reply.reason)
        self._require_working_compiler()
        return UnsupportedModelError(
            f"{path}: the compiler {reply} on this model (log: {self._log})."
        )

    def _require_working_compiler(self) -> None:
        """Raises unless the compiler works at all: one that dies of every model says nothing about
        this one."""
        failure = "" if self._is_known_to_work else compiler_failure()
        if failure:
            message = (
                f"the compiler does not work on this machine ({failure}). Run tunegate doctor."
            )
            raise EnvironmentUnfitError(message)
        self._is_known_to_work = True


# Schedules that were never compiled and run here: a build that they kill, or slow down too much, is
# repeated without them.

RISKY_SHARE = 1 / 3
"""The share of the time limit that a build with such schedules may take."""
_UNTRIED = ("prior", "transfer")
NOBODY_BLAMED: Mapping[int, str] = MappingProxyType({})


def risky_schedules(job: BuildJob) -> frozenset[WorkloadKey]:
    """Returns the tasks with a picked schedule; settled ones were compiled in the other side's
    build."""
    return frozenset(k for k, source in job.sources.items() if source in _UNTRIED) - job.settled


def made_again(
    jobs: Sequence[BuildJob],
    builds: Sequence[Build],
    build: Callable[[Sequence[BuildJob]], Sequence[Build]],
    blamed: Mapping[int, str] = NOBODY_BLAMED,
) -> list[Build]:
    """Returns the builds; those that died are rebuilt with default schedules for risky tasks.
    `blamed` has the workload that ran when a build died, by index: then only that one is replaced,
    and `build` may find the next bad one."""
    rebuilt = list(builds)
    died = [n for n, each in enumerate(builds) if each.crashed and risky_schedules(jobs[n])]
    if not died:
        return rebuilt
    again = build(
        [jobs[n].with_default_schedules(_schedules_to_drop(jobs[n], blamed.get(n))) for n in died]
    )
    for n, each in zip(died, again, strict=True):
        rebuilt[n] = msgspec.structs.replace(each, without_picks=builds[n].error or "")
    return rebuilt


def _schedules_to_drop(job: BuildJob, blamed: str | None) -> frozenset[WorkloadKey]:
    """Returns the risky schedules to leave out of a rebuild: the blamed one, or all."""
    risky = risky_schedules(job)
    return frozenset(key for key in risky if key.workload == blamed) or risky


# A build that computes other numbers with channels last is repeated with channels first, before its
# model is given up.


def in_other_layout(
    jobs: Sequence[BuildJob],
    builds: Sequence[Build],
    build: Callable[[Sequence[BuildJob]], Sequence[Build]],
) -> list[Build]:
    """Returns the builds; those that were linked but are wrong are replaced by the other layout if
    that is right. A build that died says nothing about its layout: the other side might not have
    died."""
    rebuilt = list(builds)
    wrong = [n for n, each in enumerate(builds) if _is_wrong(each) and _has_other(jobs[n].model)]
    if not wrong:
        return rebuilt
    again = build([_channels_first(jobs[n]) for n in wrong])
    for n, each in zip(wrong, again, strict=True):
        if each.error is None:
            rebuilt[n] = msgspec.structs.replace(each, without_channels_last=builds[n].error or "")
    return rebuilt


def refusal_of_tuning(job: ModelJob, build: Build | None) -> str:
    """Returns why a model is not tuned, from a build that tried it; '' if it is. Its tasks are
    those of the preferred layout."""
    if build is None or not build.without_channels_last:
        return "" if build is None else refusal_of_build(build)
    return (
        f"{job.path}: it is right with channels first alone, and was opened with channels "
        "last. targets[].layout: nchw has it tuned, once that is merged."
    )


def _is_wrong(build: Build) -> bool:
    return build.error is not None and bool(build.key) and not build.crashed


def _has_other(job: ModelJob) -> bool:
    return job.target.kind == "llvm" and job.target.layout == "auto"


def _channels_first(job: BuildJob) -> BuildJob:
    target = msgspec.structs.replace(job.model.target, layout="nchw")
    model = msgspec.structs.replace(job.model, target=target)
    return msgspec.structs.replace(job, model=model, is_followed=False)


# Builds whose process died, or that were rejected after long work: a run does not pay twice for the
# same end.


class DeadBuilds:
    """Failed builds of a run. `kernels` gives the digest of a model's kernels, '' if there is none:
    base and head share it if they differ only in weights."""

    def __init__(self, kernels: Callable[[ModelJob], str]) -> None:
        self._kernels = kernels
        self._builds: dict[Hashable, Build] = {}

    def add(self, job: BuildJob, build: Build) -> None:
        """Remembers a build that died before anything was linked, and a rejected one-launch build,
        which times every kernel. A failure at run time may depend on the inputs of one side."""
        is_costly = build.crashed or LAUNCH in job.settings
        if build.error is not None and is_costly and not build.key:
            self._builds[self._equal_job_key(job)] = build

    def of(self, job: BuildJob) -> Build | None:
        """Returns the dead build of a job with the same kernels, schedules and settings."""
        return self._builds.get(self._equal_job_key(job)) if self._builds else None

    def _equal_job_key(self, job: BuildJob) -> Hashable:
        file, shapes, target = opened_key(job.model)
        return (
            (job.model.path, self._kernels(job.model) or file, shapes, target),
            tuple(sorted(job.settings.items())),
            frozenset((key, tuple(records)) for key, records in job.records.items()),
            frozenset(job.sources.items()),
        )
