"""What a compile child answered, as a build: its numbers were checked, or it has none."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.builds import Build, BuiltTask, NumericCheck, unbuilt
from tunegate.edges.metaschedule.checks.check_messages import Checked
from tunegate.edges.processes.child import ChildDiedError
from tunegate.engine.protocol import Built, CompileReply, Failed
from tunegate.ports import BuildJob


def finished(
    job: BuildJob, reply: Built, checked: CompileReply | Checked | ChildDiedError, *, crashed: bool
) -> Build:
    """The finished build, with an error where the check found one."""
    check, error = _judged(job.model.path, checked)
    return Build(
        key=reply.key,
        directory=job.directory.name,
        tasks=tuple(
            BuiltTask(
                key=f.key,
                name=f.name,
                weight=f.weight,
                source=f.source,
                rid=f.rid,
                ms=f.ms,
                verified=f.verified,
            )
            for f in reply.functions
        ),
        check=check,
        error=error,
        size_bytes=reply.size_bytes,
        seconds=reply.seconds,
        dropped=reply.dropped,
        inputs=reply.inputs,
        crashed=crashed,
    )


def needless(job: BuildJob) -> Build:
    """There is nothing to build in parts."""
    reason = f"{job.model.path}: the compiler takes all or nothing of it, not parts."
    return msgspec.structs.replace(unbuilt(reason), is_needless=True)


def _judged(
    path: str, checked: CompileReply | Checked | ChildDiedError
) -> tuple[NumericCheck | None, str | None]:
    match checked:
        case Checked(check=check):
            wrong = check.detail if check is not None else ""
            said = f"{path}: the compiled model computes other numbers: {wrong}."
            return check, said if wrong else None
        case Failed(reason=reason):
            return None, f"{path}: the compiled model does not run ({reason})."
        case _:
            return None, f"{path}: the compiled model {checked} when it was run."
