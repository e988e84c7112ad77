"""Both sides without the schedules that their base had to give up."""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.artifacts.builds import Build, Cell
from tunegate.artifacts.changes import Side
from tunegate.ports import Builder, BuildJob
from tunegate_cache.format.records import WorkloadKey

_CellSide = tuple[Cell, Side]


def built_alike(
    builder: Builder, jobs: Mapping[_CellSide, BuildJob], builds: Mapping[_CellSide, Build]
) -> dict[_CellSide, Build]:
    """Returns the builds, heads without the schedules that compute other numbers in their base:
    else a head could hide that it is slower behind a schedule that its base had to give up. Nothing
    of a head takes a schedule from its base."""
    given_up = {
        cell: {kernel.key for kernel in build.wrong_kernels}
        for (cell, side), build in builds.items()
        if side == "base"
    }
    uneven = {
        (cell, side): keys
        for (cell, side), build in builds.items()
        if side == "head" and (keys := _scheduled(build) & given_up.get(cell, set()))
    }
    again = [jobs[which].with_default_schedules(keys) for which, keys in uneven.items()]
    rebuilt = builder.build(again) if again else ()
    return {**builds, **dict(zip(uneven, rebuilt, strict=True))}


def _scheduled(build: Build) -> set[WorkloadKey]:
    return {task.key for task in build.tasks if task.rid and build.error is None}
