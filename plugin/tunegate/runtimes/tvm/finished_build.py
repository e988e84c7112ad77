"""The answer of a compile child as a build: its numbers were checked, or it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from tunegate.artifacts.builds import Build, NumericCheck, WrongKernel, unbuilt
from tunegate.edges.metaschedule.checks.check_messages import Checked, Mended
from tunegate.edges.processes.child import ChildDiedError
from tunegate.engine.compiler_protocol import Built, CompileReply
from tunegate.engine.protocol import Failed
from tunegate.ports import BuildJob

_Reply = CompileReply | Checked | Mended | ChildDiedError
_Key = TypeVar("_Key")


def finished(job: BuildJob, reply: Built, later: Sequence[_Reply]) -> Build:
    """The finished build, with an error where the check found one that could not be mended."""
    checked, *mended = later
    match mended:
        case [Mended(built=Built() as built, check=check, wrong=wrong)]:
            return _build(job, built, check=check, wrong_kernels=wrong)
        case [Mended(reason=reason, is_late=is_late)]:
            return _wrong(job, reply, checked, reason, crashed=is_late)
        case [ChildDiedError() as died]:
            reason = f"the search for the kernel that does {died}"
            return _wrong(job, reply, checked, reason, crashed=True)
        case [Failed(reason=reason)]:
            return _wrong(job, reply, checked, reason, crashed=False)
        case _:
            return _wrong(job, reply, checked, "", crashed=_has_died(checked))


def _wrong(job: BuildJob, reply: Built, checked: _Reply, reason: str, *, crashed: bool) -> Build:
    check, error = _judged(job.model.path, checked)
    error = f"{error} {reason[0].upper()}{reason[1:]}." if error and reason else error
    sampled = checked.sampled if isinstance(checked, Checked) else None
    found = _build(job, reply, check=check, error=error, crashed=crashed)
    return msgspec.structs.replace(found, sampled=sampled)


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
    """Returns why a model is not built; '' where it is, or where only running it failed: the
    machine that tunes it may be another."""
    has_only_not_run = build.crashed and build.key
    return "" if build.error is None or has_only_not_run else build.error


def refused_builds(tried: Mapping[_Key, Build]) -> dict[_Key, Build]:
    """Returns the failed builds as refusals: one that died is still one that died."""
    return {
        key: unbuilt(reason, crashed=build.crashed)
        for key, build in tried.items()
        if (reason := refusal_of_build(build))
    }


def _has_died(checked: _Reply) -> bool:
    """Returns whether the child ended, or lacked memory, while it checked."""
    return isinstance(checked, ChildDiedError) or (isinstance(checked, Failed) and checked.memory)


def _judged(path: str, checked: _Reply) -> tuple[NumericCheck | None, str | None]:
    match checked:
        case Checked(check=check):
            wrong = check.detail if check is not None else ""
            said = f"{path}: the compiled model computes other numbers: {wrong}."
            return check, said if wrong else None
        case Failed(reason=reason):
            return None, f"{path}: the compiled model does not run ({reason})."
        case _:
            return None, f"{path}: the compiled model {checked} when it was run."
