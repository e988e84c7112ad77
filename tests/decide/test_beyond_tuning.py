from __future__ import annotations

import msgspec
import pytest

from tests.support import report_parts as parts
from tests.support.reports import make_report
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.decide.slow_layers import slow_without_kernels, used_by_none_but
from tunegate_cache.format.records import Miss


@pytest.mark.parametrize(("compiled", "found"), [(True, 0), (False, 1)])
def test_a_slower_head_without_kernels_is_beyond_tuning(compiled: bool, found: int) -> None:
    report = make_report("slowed")
    assert report.run is not None
    (cell,) = report.run.builds
    assert cell.head is not None
    head = cell.head if compiled else msgspec.structs.replace(cell.head, tasks=())
    run = msgspec.structs.replace(report.run, builds=(msgspec.structs.replace(cell, head=head),))
    assert len(slow_without_kernels(report.verdict, run)) == found
    assert slow_without_kernels(parts.verdict("pass", 0), run) == frozenset()


def test_a_task_that_another_model_uses_is_not_in_vain() -> None:
    plan = make_report("slowed").plan
    assert plan is not None
    task = make_task("a", sides=("head",))
    resolution = msgspec.structs.replace(
        plan.resolution, tasks=(ResolvedTask(task, Miss("absent")),)
    )
    plan = msgspec.structs.replace(plan, resolution=resolution)
    mine = frozenset(parts.cell(use.model, task.target) for use in task.uses)
    assert used_by_none_but(mine, plan) == {(task.key, task.target)}
    assert used_by_none_but(frozenset(), plan) == frozenset()
    assert used_by_none_but(mine, None) == frozenset()
