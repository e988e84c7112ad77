"""Schedules that nobody has compiled and run here: a build that they kill, or slow down too much,
is made again without."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tunegate.artifacts.builds import Build
from tunegate.ports import BuildJob
from tunegate_cache.format.records import WorkloadKey

RISKY_SHARE = 1 / 3
"""The share of a build's time that one with such schedules may take."""
_UNTRIED = ("prior", "transfer")


def risky_schedules(job: BuildJob) -> frozenset[WorkloadKey]:
    """The tasks for which a schedule is picked; the build of the other side has compiled those that
    are settled."""
    return frozenset(k for k, source in job.sources.items() if source in _UNTRIED) - job.settled


def made_again(
    jobs: Sequence[BuildJob],
    builds: Sequence[Build],
    build: Callable[[Sequence[BuildJob]], Sequence[Build]],
) -> list[Build]:
    """Returns the builds, those that died in the making with default schedules for what was
    risky."""
    made = list(builds)
    died = [n for n, each in enumerate(builds) if each.crashed and risky_schedules(jobs[n])]
    if not died:
        return made
    again = build([jobs[n].with_default_schedules(risky_schedules(jobs[n])) for n in died])
    for n, each in zip(died, again, strict=True):
        made[n] = msgspec.structs.replace(each, without_picks=builds[n].error or "")
    return made
