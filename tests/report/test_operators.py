import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.support.plans import plan_of
from tests.support.reports import make_report
from tests.support.tuning_tasks import make_outcome, make_record, make_task
from tunegate.artifacts.measurements import TaskDifference
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import TuningTask
from tunegate.artifacts.verdicts import Named, NextStep, Report
from tunegate.report.comment import step_markdown
from tunegate.report.operators import describe_runner, parts, tuned_rows
from tunegate_cache.format.records import ExactHit, Lookup

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
    rows = tuned_rows(report_of(tasks, [make_outcome(name) for name in ("old", "new", "both")]))
    assert {row.label for row in rows} == {"old (base)", "new (head)", "both"}
    (alone,) = tuned_rows(report_of(tasks[1:2], [make_outcome("new")]))
    assert alone.label == "new"


def test_a_default_schedule_that_is_known_is_called_so_as_in_the_differences() -> None:
    known = msgspec.structs.replace(make_record("a"), template="", decisions=())
    found = make_outcome("a", trials=0, records=(known,), source="exact", stopped="exact")
    (row,) = tuned_rows(report_of([make_task("a")], [found], [ExactHit((known,))]))
    layer = TaskDifference(name="a", base_ms=1, head_ms=2, source="default")
    assert row.source in describe_runner(layer)


def report_of(
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
