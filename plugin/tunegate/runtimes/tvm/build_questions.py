"""Requests to a child that has built a model: to check it, and to mend it if it is wrong."""

from __future__ import annotations

from collections.abc import Callable

from tunegate.edges.metaschedule.checks.check_messages import (
    CheckArtifact,
    Checked,
    CheckReply,
    MendBuild,
)
from tunegate.engine.compiler_protocol import BuildModel, Built, CompileReply

MAX_MENDING_SECONDS = 180.0
"""The time in which the kernels that compute other numbers must be found."""


def questions_after_build(
    build: BuildModel,
    *,
    seeds: tuple[int, ...],
    samples: tuple[int, ...] = (),
    cases: str = "",
    limit_seconds: float,
) -> Callable[[CompileReply | CheckReply], CheckArtifact | MendBuild | None]:
    """Returns what makes the next question of a reply. Where there are `samples`, the build is run
    on the inputs of these seeds, to tell its error, in place of the check, and `cases` is where
    what it computes is kept. A child has `limit_seconds` for each: one that mends stops in time to
    say so."""
    checks: list[CheckArtifact] = []

    def ask(reply: CompileReply | CheckReply) -> CheckArtifact | MendBuild | None:
        match reply:
            case Built(reference=reference):
                check = CheckArtifact(
                    directory=build.directory,
                    reference=reference,
                    kind=build.target.kind,
                    seeds=seeds,
                    samples=samples,
                    cases=cases,
                )
                checks.append(check)
                return check
            case Checked(check=found) if found is not None and not found.passed:
                seconds = min(MAX_MENDING_SECONDS, limit_seconds / 2)
                return MendBuild(build=build, check=checks[0], limit_seconds=seconds)
            case _:
                return None

    return ask
