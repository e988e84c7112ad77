import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.report.test_model_costs import task as model_costs_task
from tests.support import report_parts, reports
from tests.support.plans import plan_of
from tests.support.reports import KINDS, make_report
from tests.support.tuning_tasks import make_outcome, make_record, make_task
from tunegate.artifacts.builds import BuiltTask
from tunegate.artifacts.measurements import EnergyChange, Interval, LoadChange, TaskDifference
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Cost
from tunegate.artifacts.tasks import ScheduleSource, TuningTask
from tunegate.artifacts.verdicts import Named, NextStep, Report
from tunegate.report.comment import step_markdown
from tunegate.report.cost_table import Saving
from tunegate.report.environment import kernel_coverage
from tunegate.report.history import of_builds, of_elected
from tunegate.report.operators import describe_runner, parts, tuned_rows
from tunegate.report.report_tables import models_table, operators_table, savings_table, tasks_table
from tunegate_cache.format.records import ExactHit, Lookup, Miss, WorkloadKey

REPORT = make_report("slowed")


def test_a_layer_of_one_side_alone_is_new_or_gone() -> None:
    new, gone = (
        TaskDifference(
            name="conv", base_ms=base_ms, head_ms=head_ms, source="library", library="ONNX Runtime"
        )
        for base_ms, head_ms in ((None, 2.0), (1.0, None))
    )
    first, second = operators_table(parts((new, gone))).cells()
    assert first[1:3] == ["new", "2.000 ms"]
    assert second[1:3] == ["1.000 ms", "gone"]


def test_a_task_tells_how_it_ended_and_what_failed() -> None:
    (first, *_) = tuned_rows(REPORT)
    failing = msgspec.structs.replace(first, failures="2 run-timeout")
    assert str(tasks_table([failing]).cells()[0][-1]).endswith("; failed: 2 run-timeout")


CHANGE = Interval(low=1.0, center=2.0, high=3.0)
ENERGY = EnergyChange(
    base_joules=0.1, head_joules=0.102, source="rapl", change_percent=CHANGE, decision=None
)
LOAD = LoadChange(base_ms=80.0, head_ms=84.0, change_percent=CHANGE, decision="pass")


@pytest.mark.parametrize(
    ("told", "title", "cell"),
    [
        ({"energy": ENERGY}, "Energy", "102 mJ (+2.0%)"),
        ({"load": LOAD}, "Loading", "84.00 ms (+2.0%)"),
    ],
)
def test_joules_and_the_time_to_load_have_a_column_where_something_tells_them(
    told: dict[str, object], title: str, cell: str
) -> None:
    (finding,) = REPORT.verdict.findings
    rows = [msgspec.structs.replace(finding, **each) for each in (told, dict.fromkeys(told))]
    table = models_table(rows)
    at = [column.title for column in table.columns].index(title)
    assert [cells[at] for cells in table.cells()] == [cell, "–"]
    assert title not in [column.title for column in models_table(rows[1:]).columns]


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
    head = msgspec.structs.replace(report_parts.built("d", error=error), tasks=tasks)
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


# The shares that layers have in what got slower.


TIMES = st.none() | st.floats(min_value=0.001, max_value=100)
DIFFERENCES = st.lists(
    st.builds(
        TaskDifference,
        name=st.text(min_size=1, max_size=5),
        base_ms=TIMES,
        head_ms=TIMES,
        source=st.sampled_from(["exact", "transfer", "search", "default"]),
    ),
    max_size=12,
)


@given(DIFFERENCES)
def test_the_shares_of_what_got_slower_add_up_to_one(differences: list[TaskDifference]) -> None:
    slower = [part.share for part in parts(differences) if part.difference_ms > 0]
    assert not slower or sum(slower) == pytest.approx(1)


@given(DIFFERENCES)
def test_the_parts_add_up_to_the_whole_difference(differences: list[TaskDifference]) -> None:
    whole = sum(each.difference_ms for each in differences)
    assert sum(part.difference_ms for part in parts(differences)) == pytest.approx(whole, abs=1e-9)


def test_a_layer_that_was_changed_says_whose_each_of_its_rows_is() -> None:
    """The tasks of base and head have one name, and one of both sides needs none."""
    tasks = [
        make_task("old", sides=("base",)),
        make_task("new"),
        make_task("both", sides=("base", "head")),
    ]
    rows = tuned_rows(
        report_of_tasks(tasks, [make_outcome(name) for name in ("old", "new", "both")])
    )
    assert {row.label for row in rows} == {"old (base)", "new (head)", "both"}
    (alone,) = tuned_rows(report_of_tasks(tasks[1:2], [make_outcome("new")]))
    assert alone.label == "new"


def test_a_default_schedule_that_is_known_is_called_so_as_in_the_differences() -> None:
    known = msgspec.structs.replace(make_record("a"), template="", decisions=())
    found = make_outcome("a", trials=0, records=(known,), source="exact", stopped="exact")
    (row,) = tuned_rows(report_of_tasks([make_task("a")], [found], [ExactHit((known,))]))
    layer = TaskDifference(name="a", base_ms=1, head_ms=2, source="default")
    assert row.source in describe_runner(layer)


def report_of_tasks(
    tasks: list[TuningTask], outcomes: list[TaskOutcome], found: list[Lookup] | None = None
) -> Report:
    made = make_report("slowed")
    plan = plan_of(tasks, found)
    outcome = msgspec.structs.replace(made.outcomes[0], tasks=tuple(outcomes))
    return msgspec.structs.replace(made, plan=plan, outcomes=(outcome,))


@given(st.text(max_size=20))
def test_no_name_and_no_word_adds_structure(hostile: str) -> None:
    text = step_markdown(NextStep((f"Look {hostile} at ", Named(hostile), f" {hostile}.")))
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"1. {text}")
    tags = {part.split(">")[0].split(" ")[0].strip("/") for part in page.split("<")[1:]}
    assert tags <= {"ol", "li", "code"}
