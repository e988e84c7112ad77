"""Tasks that ship compiled: only what tuning took off those makes anything faster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tunegate.artifacts.builds import CellBuilds
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.tuning.standing.model_keys import ModelOnTarget
from tunegate_cache.format.records import WorkloadKey

ShippedTask = tuple[ModelOnTarget, WorkloadKey]
Shipped = Collection[ShippedTask]


def of_builds(builds: Iterable[CellBuilds]) -> Iterator[ShippedTask]:
    """Yields the tasks of the heads that were built; one that ships with another runtime has
    none."""
    for built in builds:
        if built.head is not None and built.head.error is None:
            for task in built.head.tasks:
                yield (built.cell.model, built.cell.target), task.key


def of_elected(
    resolved: Iterable[ResolvedTask], compiled: Collection[ModelOnTarget]
) -> Iterator[ShippedTask]:
    """All of the heads that were elected to be compiled, where nothing was built."""
    for task in (each.task for each in resolved):
        for use in task.uses:
            where = (use.model, task.target)
            if use.side == "head" and where in compiled:
                yield where, task.key
