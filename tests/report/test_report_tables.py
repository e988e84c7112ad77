import msgspec

from tests.report.test_model_costs import task as model_costs_task
from tests.support import report_parts as support_parts
from tests.support import reports
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.builds import BuiltTask
from tunegate.artifacts.measurements import EnergyChange, Interval, LoadChange, TaskDifference
from tunegate.artifacts.plans import Cost
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.artifacts.verdicts import Report
from tunegate.report.cost_table import Saving
from tunegate.report.environment import kernel_coverage
from tunegate.report.history import of_builds, of_elected
from tunegate.report.operators import parts, tuned_rows
from tunegate.report.report_tables import models_table, operators_table, savings_table, tasks_table
from tunegate_cache.format.records import Miss, WorkloadKey

REPORT = make_report("slowed")


def test_a_layer_of_one_side_alone_is_new_or_gone() -> None:
    new = TaskDifference(
        name="conv_9", base_ms=None, head_ms=2.0, source="library", library="ONNX Runtime"
    )
    gone = TaskDifference(
        name="conv_8", base_ms=1.0, head_ms=None, source="library", library="ONNX Runtime"
    )
    first, second = operators_table(parts((new, gone))).cells()
    assert first[1:3] == ["new", "2.000 ms"]
    assert second[1:3] == ["1.000 ms", "gone"]


def test_a_task_tells_how_it_ended_and_what_failed() -> None:
    (first, *_) = tuned_rows(REPORT)
    failing = msgspec.structs.replace(first, failures="2 run-timeout")
    assert str(tasks_table([failing]).cells()[0][-1]).endswith("; failed: 2 run-timeout")


def test_joules_of_an_inference_have_a_column_where_something_tells_them() -> None:
    (finding,) = REPORT.verdict.findings
    change = Interval(low=1.0, center=2.0, high=3.0)
    told = EnergyChange(
        base_joules=0.1, head_joules=0.102, source="rapl", change_percent=change, decision=None
    )
    rows = [msgspec.structs.replace(finding, energy=each) for each in (told, None)]
    table = models_table(rows)
    at = [column.title for column in table.columns].index("Energy")
    assert [cells[at] for cells in table.cells()] == ["102 mJ (+2.0%)", "–"]
    assert "Energy" not in [column.title for column in models_table(rows[1:]).columns]


def test_the_time_to_load_has_a_column_where_it_is_judged() -> None:
    (finding,) = REPORT.verdict.findings
    change = Interval(low=1.0, center=5.0, high=9.0)
    told = LoadChange(base_ms=80.0, head_ms=84.0, change_percent=change, decision="pass")
    rows = [msgspec.structs.replace(finding, load=each) for each in (told, None)]
    table = models_table(rows)
    at = [column.title for column in table.columns].index("Loading")
    assert [cells[at] for cells in table.cells()] == ["84.00 ms (+5.0%)", "–"]
    assert "Loading" not in [column.title for column in models_table(rows[1:]).columns]


def test_what_was_saved_is_told_by_whom() -> None:
    cost = Cost(seconds=90.0, joules=4500.0, energy_source="rapl")
    (cells,) = savings_table([Saving(by="cache", cost=cost)]).cells()
    assert str(cells[0]).startswith("exact hits in the cache, at least")
    assert cells[1:] == ["1 min 30 s", "–", "4.5 kJ"]


def task(source: ScheduleSource, ms: float | None, weight: int = 1) -> BuiltTask:
    key = WorkloadKey("0" * 64, "1" * 64)
    return BuiltTask(key=key, name="conv", weight=weight, source=source, rid="", ms=ms)


def report_of(*tasks: BuiltTask, error: str | None = None) -> Report:
    made = KINDS["measured"]()
    assert made.run is not None
    head = msgspec.structs.replace(support_parts.built("d", error=error), tasks=tasks)
    (first, *_) = made.run.builds
    run = msgspec.structs.replace(made.run, builds=(msgspec.structs.replace(first, head=head),))
    return msgspec.structs.replace(made, run=run)


def words(*tasks: BuiltTask) -> str:
    ((_, said),) = kernel_coverage(report_of(*tasks))
    return said


def test_what_was_not_measured_has_no_share() -> None:
    said = words(task("transfer", None), task("default", 1.0))
    assert said == "100% of the time default schedule; not timed alone: untuned, of another shape"


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
    tasks = [model_costs_task(0, "ab", Miss("absent")), model_costs_task(1, "b", Miss("absent"))]
    compiled = {("b", "cpu")}
    keys = [each.task.key for each in tasks]
    assert list(of_elected(tasks, compiled)) == [(("b", "cpu"), key) for key in keys]
    assert not list(of_elected(tasks, {("b", "gpu")}))
