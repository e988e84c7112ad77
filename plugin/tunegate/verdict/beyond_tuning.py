"""Slowdowns that no tuning takes away, and the tasks of nothing else."""

from __future__ import annotations

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Verdict
from tunegate_cache.format.records import WorkloadKey


def slow_without_kernels(verdict: Verdict, run: MeasurementRun | None) -> frozenset[Cell]:
    """The slower heads that ship with a runtime of their own kernels: tuning makes none faster."""
    slower = {(each.model, each.target) for each in verdict.findings if each.status == "fail"}
    return frozenset(
        each.cell
        for each in (run.builds if run else ())
        if (each.cell.model, each.cell.target) in slower
        if each.head is not None and not each.head.error and not each.head.tasks
    )


def used_by_none_but(
    cells: frozenset[Cell], plan: TuningPlan | None
) -> frozenset[tuple[WorkloadKey, str]]:
    """The tasks, each with its target, that no other cell uses."""
    tasks = [each.task for each in plan.resolution.tasks] if plan else []
    return frozenset(
        (task.key, task.target)
        for task in tasks
        if all(Cell(model=use.model, target=task.target) in cells for use in task.uses)
    )
