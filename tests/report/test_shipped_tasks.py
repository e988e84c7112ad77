from __future__ import annotations

import msgspec

from tests.report.test_model_costs import task
from tests.support import reports
from tunegate.report.history_costs import of_builds, of_elected
from tunegate_cache.format.records import Miss


def test_a_head_ships_the_tasks_that_it_was_built_of() -> None:
    report = reports.slowed()
    assert report.run is not None
    (built,) = report.run.builds
    assert built.head is not None
    assert built.head.tasks
    where = (built.cell.model, built.cell.target)
    assert list(of_builds([built])) == [(where, each.key) for each in built.head.tasks]
    broken = msgspec.structs.replace(built.head, error="no room")
    assert not list(of_builds([msgspec.structs.replace(built, head=broken)]))
    assert not list(of_builds([msgspec.structs.replace(built, head=None)]))


def test_an_elected_head_ships_all_of_its_own_tasks() -> None:
    tasks = [task(0, "ab", Miss("absent")), task(1, "b", Miss("absent"))]
    compiled = {("b", "cpu")}
    keys = [each.task.key for each in tasks]
    assert list(of_elected(tasks, compiled)) == [(("b", "cpu"), key) for key in keys]
    assert not list(of_elected(tasks, {("b", "gpu")}))
