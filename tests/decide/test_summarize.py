from pathlib import Path

import msgspec
import pytest

from tests.support import report_parts as parts
from tests.support.measured_cells import make_build, make_builds, make_measurement, make_run
from tests.support.models.squeezenet import TASKS
from tests.support.outcome_parts import outcome
from tunegate.artifacts import artifact_io
from tunegate.artifacts.builds import BuiltTask
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.artifacts.verdicts import Report, Verdict
from tunegate.decide.gate import Judged
from tunegate.decide.summarize import summarize
from tunegate.tune.claims import waiting_note

VERDICT = parts.verdict("pass", 0, parts.finding("pass", "identical build, not measured"))


def summarized(
    changes: ChangeSet, plan: TuningPlan | None = None, verdict: Verdict = VERDICT
) -> Report:
    return summarize(
        verdict, Judged(changes=changes, plan=plan, outcomes=(outcome(),)), run=None, comparisons=[]
    )


def test_a_report_holds_what_the_run_found() -> None:
    changes = parts.changes(parts.change())
    report = summarized(changes, parts.plan(changes, parts.cache(zone="main")))
    assert report.verdict == VERDICT
    assert report.changes == changes
    assert [task.name for task in report.outcomes[0].tasks] == [row.name for row in TASKS]
    assert report.cache == parts.cache(zone="main")


def test_a_run_without_a_plan_has_no_cache() -> None:
    assert summarized(parts.changes()).cache is None


def test_notes_and_warnings_are_told_once() -> None:
    changes = parts.changes(notes=("no merge base",))
    verdict = msgspec.structs.replace(VERDICT, notes=("slow disk", "no merge base"))
    report = summarized(changes, verdict=verdict)
    assert report.warnings == ("no merge base", "slow disk")


def test_what_waits_for_the_default_branch_is_counted_and_no_warning() -> None:
    changes = parts.changes(parts.change())
    plan = parts.plan(changes, parts.cache())
    plan = msgspec.structs.replace(plan, notes=(waiting_note(2), "2 tasks have no trials planned"))
    tuning = parts.summary(tasks=3, exact=1, miss=2, waiting=2)
    report = summarized(changes, plan, msgspec.structs.replace(VERDICT, tuning=tuning))
    assert report.warnings == ("2 tasks have no trials planned",)


def test_a_green_run_needs_no_advice() -> None:
    changes = parts.changes(parts.change())
    assert summarized(changes, parts.plan(changes, parts.cache())).next_steps == ()


def test_a_report_survives_the_way_through_a_file(tmp_path: Path) -> None:
    changes = parts.changes(parts.change())
    report = summarized(changes, parts.plan(changes, parts.cache()))
    artifact_io.write(tmp_path / "report.json", report)
    assert artifact_io.read(tmp_path / "report.json", Report) == report


def report_of(run: MeasurementRun) -> Report:
    """The report of a run without a plan."""
    changes = parts.changes()
    return summarize(VERDICT, Judged(changes=changes), run=run, comparisons=[])


@pytest.mark.parametrize(
    ("base", "head", "begins", "ends"),
    [
        ({}, {"without_graphs": "failed"}, ": built without CUDA graphs", ", with them: failed"),
        ({}, {"dropped": ("v2", "v2", "v8")}, "", "made the model slower: v2 (2 kernels), v8"),
        (
            {"without_picks": "did not finish in 300 s"},
            {},
            " (base): built with default schedules where",
            "with picked ones: did not finish in 300 s",
        ),
        (
            {},
            {"without_channels_last": "models/m.onnx: off."},
            " (head): built with channels first, ",
            "with channels last: off.",
        ),
    ],
)
def test_what_a_side_was_built_without_is_told_once(
    base: dict[str, object], head: dict[str, object], begins: str, ends: str
) -> None:
    one = msgspec.structs.replace(make_build("a"), **base)
    other = msgspec.structs.replace(make_build("b"), **head)
    (warning,) = report_of(make_run(make_measurement(), make_builds(one, other))).warnings
    assert warning.startswith(f"models/m.onnx on cpu{begins}")
    assert warning.endswith(ends)


def test_schedules_that_nobody_measured_are_told_by_where_they_are_from() -> None:
    sources: tuple[ScheduleSource, ...] = ("transfer", "prior", "claimed")
    tasks = [
        BuiltTask(
            key=TASKS[n].key,
            name=f"t{n}",
            weight=1,
            source=source,
            rid="r",
            ms=None,
            verified=False,
        )
        for n, source in enumerate(sources)
    ]
    run = make_run(make_measurement(), make_builds(make_build("a"), make_build("b", tasks=tasks)))
    report = report_of(run)
    transferred, claimed = report.warnings
    assert "1 of 3 kernels runs a schedule of another shape: it was never measured" in transferred
    assert "1 of 3 kernels runs a schedule of this run's own zone: it was never measured" in claimed
