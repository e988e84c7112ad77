from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import measured_cells
from tests.support import report_parts as parts
from tests.support.measured_cells import make_build, make_builds, make_measurement, make_run
from tests.support.models.squeezenet import TASKS
from tests.support.outcome_parts import outcome
from tests.support.reports import KINDS, make_report, with_finding
from tests.support.tuning_tasks import make_plan, make_task
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.measurements import Comparison, Interval, MeasurementRun, TaskDifference
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Budget, TuningPlan
from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, ScheduleSource
from tunegate.artifacts.verdicts import CandidateOutcome, NextStep, Report, Verdict
from tunegate.decide import advice as tested
from tunegate.decide.gate import Judged
from tunegate.decide.summarize import summarize
from tunegate.tune.claims import waiting_note
from tunegate_cache.format.records import Miss

Source = Literal["exact", "transfer", "search", "default"]

MORE_TIME = (
    "raise --minutes, or the Action's input minutes (budget.minutes counts once it is merged)"
)


def texts(steps: tuple[NextStep, ...]) -> tuple[str, ...]:
    return tuple(each.text for each in steps)


def next_steps(
    verdict: Verdict,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
    plan: TuningPlan | None,
) -> tuple[str, ...]:
    """The advice as plain sentences."""
    return texts(tested.next_steps(verdict, outcomes, run, comparisons, plan))


def advice(difference: TaskDifference, *stopped: str) -> tuple[str, ...]:
    """The advice for one slower operator after shards that ended so."""
    finding = parts.finding("fail", "", differences=(difference,))
    outcomes = [outcome(stopped=each) for each in stopped]
    return next_steps(parts.verdict("fail", 1, finding), outcomes, None, [], None)


def slower(source: Source, name: str = "conv_3") -> TaskDifference:
    return TaskDifference(name=name, base_ms=1.0, head_ms=2.0, source=source)


@pytest.mark.parametrize(
    ("stopped", "key"),
    [("finished", "budget.minutes"), ("usd", "budget.usd"), ("trials", "budget.trials")],
)
def test_an_untuned_operator_asks_for_more_of_the_budget_that_ended(stopped: str, key: str) -> None:
    """The option and the Action's input count in the pull request that gets the advice."""
    (said,) = advice(slower("default"), stopped)
    name = key.removeprefix("budget.")
    assert said == (
        "Look at conv_3: +1.000 ms, the only layer that got slower. It was never tuned: raise "
        f"--{name}, or the Action's input {name} ({key} counts once it is merged)."
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("transfer", f"{MORE_TIME}; tuned itself it would save up to 0.500 ms"),
        ("search", "was tuned to the end: more budget would not help"),
        ("exact", "already runs the best schedule known"),
    ],
)
def test_what_to_do_depends_on_where_the_schedule_is_from(source: Source, said: str) -> None:
    assert said in advice(slower(source))[0]


@pytest.mark.parametrize(
    ("source", "tuned", "said"),
    [
        ("default", {"stopped": "converged"}, "already runs the best schedule known, the operator"),
        ("default", {}, "12 trials when the budget ended, and none was faster in the model: raise"),
        ("search", {"source": "search"}, f"had only 12 trials when the budget ended: {MORE_TIME}"),
        ("search", {"source": "search"}, "as many again are expected to save 45.3 µs."),
    ],
    ids=["nothing beat it", "tried in vain", "cut by the budget", "what more would save"],
)
def test_an_operator_that_was_tuned_is_not_called_untuned(
    source: Source, tuned: dict[str, object], said: str
) -> None:
    row = msgspec.structs.replace(TASKS[0], **{"trials": 12, "stopped": "budget", **tuned})
    finding = parts.finding("fail", "", differences=(slower(source, row.name),))
    ended = outcome((row,), stopped="seconds")
    assert said in next_steps(parts.verdict("fail", 1, finding), [ended], None, [], None)[0]


def test_an_untuned_operator_may_hope_for_what_the_others_gained() -> None:
    row = msgspec.structs.replace(TASKS[0], source="search", trials=12, before_ms=4.0, ms=1.0)
    finding = parts.finding("fail", "", differences=(slower("default"),))
    said = next_steps(parts.verdict("fail", 1, finding), [outcome((row,))], None, [], None)
    assert said[0].endswith(
        f"never tuned: {MORE_TIME}; tuned like the others it would save 1.50 ms."
    )


def test_a_new_operator_is_called_new_and_is_not_slower_than_anything() -> None:
    new = TaskDifference(
        name="conv_9", base_ms=None, head_ms=2.0, source="library", library="ONNX Runtime"
    )
    (said,) = advice(new)
    assert said == (
        "Look at conv_9: new in this change, +2.000 ms, the "
        "only layer that got slower. It is run by ONNX Runtime: tuning would not help."
    )


@given(
    st.lists(
        st.tuples(st.none() | st.floats(0.01, 50), st.none() | st.floats(0.01, 50)), max_size=30
    )
)
def test_few_operators_are_named_and_each_matters(times: list[tuple[float, float]]) -> None:
    differences = tuple(
        TaskDifference(name=f"op{n}", base_ms=base, head_ms=head, source="exact")
        for n, (base, head) in enumerate(times)
    )
    finding = parts.finding("fail", "", differences=differences)
    said = next_steps(parts.verdict("fail", 1, finding), [], None, [], None)
    assert 0 <= len(said) <= 3
    shares = [each for each in said if "Look at" in each and "the only layer" not in each]
    assert all(int(each.split("%")[0].split(", ")[-1]) >= 10 for each in shares)


def test_an_undecided_check_says_how_long_a_decision_would_take() -> None:
    (said,) = texts(make_report("undecided").next_steps)
    assert said == (
        "models/squeezenet.onnx on cpu is undecided: about 28 launches would be needed, "
        "13 were done. To decide, raise --gate-seconds to 220, or the Action's input gate-seconds "
        "(gate.seconds counts once it is merged)."
    )


def test_a_measurement_that_broke_may_get_more_time() -> None:
    compared = parts.comparison(Interval(low=0, center=0, high=0), 4.8, stopped="invalid")
    finding = parts.finding("invalid-env", "3 of 12 probes took longer than gate.seconds allows")
    (said,) = next_steps(parts.verdict("invalid-env", 4, finding), [], None, [compared], None)
    assert "a runner with nothing else on it, or raise --gate-seconds, or the Action's" in said


@pytest.mark.parametrize("stopped", ["hopeless", "budget"])
def test_a_hopeless_check_is_not_told_to_wait_longer(stopped: str) -> None:
    change = Interval(low=1.4, center=2.9, high=4.6)
    compared = parts.comparison(change, 4.8, stopped=stopped, projected_launches=900)
    finding = parts.finding("inconclusive", "", launches=9)
    measurement = msgspec.structs.replace(parts.measurement(compared), seconds=900.0)
    run = parts.measured(measurement)
    said = next_steps(parts.verdict("inconclusive", 3, finding), [], run, [compared], None)
    assert "gate.seconds" not in said[0]
    assert "about 900 launches" in said[0]


def test_what_else_is_undecided_is_not_cured_by_more_launches() -> None:
    change = Interval(low=-1.0, center=0.0, high=1.0)
    compared = parts.comparison(change, 4.8, stopped="decided")
    finding = parts.finding("inconclusive", "", launches=4)
    (said,) = next_steps(parts.verdict("inconclusive", 3, finding), [], None, [compared], None)
    assert "another check is not" in said


def test_an_undecided_check_without_a_projection_still_gets_advice() -> None:
    finding = parts.finding("inconclusive", "")
    (said,) = next_steps(parts.verdict("inconclusive", 3, finding), [], None, [], None)
    assert "raise --gate-seconds, or the Action" in said


def test_a_wrong_build_names_its_side_and_error() -> None:
    (said,) = texts(make_report("wrong-numbers").next_steps)
    assert "The head build of models/squeezenet.onnx on cpu computes other numbers" in said
    assert "relative error 0.41, allowed 0.001" in said


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("the compiler failed (CUDA: cudaErrorIllegalAddress (700))", "no fault of the model. Run"),
        ("the compiler ended by SIGKILL on this model", "Run it again, with more memory"),
        ("operator NonZero is not supported", "try all runtimes: runtime: auto"),
        ("operator NonZero is not supported by either", "export it differently"),
    ],
)
def test_what_to_do_where_no_runtime_runs_it_depends_on_why(reason: str, said: str) -> None:
    candidate = CandidateOutcome(candidate="tvm", title="TVM", ships=False, reason=reason)
    others = (
        (msgspec.structs.replace(candidate, candidate="onnxruntime"),) if "either" in reason else ()
    )
    finding = parts.finding("error", "", runtimes=(candidate, *others))
    (step,) = next_steps(parts.verdict("error", 2, finding), [], None, [], None)
    assert step.startswith("No runtime runs models/squeezenet.onnx on cpu: ")
    assert said in step


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("no-baseline", "Compare with another model or revision"),
        ("unfit", "a runner with nothing else on it"),
        ("budget-spent", "2 of 10 tasks unfinished"),
        ("cache-down", "/tunegate could not be read in full: 10 tasks counted as misses"),
    ],
)
def test_every_trouble_has_its_advice(kind: str, said: str) -> None:
    assert said in "\n".join(texts(make_report(kind).next_steps))


@pytest.mark.parametrize("kind", ["identical", "measured", "new-model", "nothing-changed"])
def test_a_green_report_needs_none(kind: str) -> None:
    assert texts(make_report(kind).next_steps) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_no_advice_is_given_twice_and_each_is_a_sentence(kind: str) -> None:
    steps = texts(make_report(kind).next_steps)
    assert len(steps) == len(set(steps))
    assert all(step.endswith(".") for step in steps)


def test_a_task_without_a_working_candidate_is_named_with_the_causes() -> None:
    row = msgspec.structs.replace(TASKS[0], source="default", trials=8, stopped="failed")
    (said,) = next_steps(parts.verdict("pass", 0), [outcome((row,))], None, [], None)
    assert said == (
        "No candidate of conv1 worked (2 compile, 1 timeout): it keeps the schedule it had."
    )


def test_a_cache_that_is_off_is_pointed_out() -> None:
    off = CacheUse(location="", zone="main", mode="off")
    (said,) = next_steps(parts.verdict("pass", 0), [], None, [], planned(off))
    assert said.endswith(
        "give --cache-mode rw, or set cache.mode to rw, which counts once it is merged."
    )


CUT = msgspec.structs.replace(TASKS[0], source="default", trials=0, stopped="not-started")


@pytest.mark.parametrize(
    ("mode", "skipped", "said"),
    [
        ("rw", "", "or run again: another run of this change continues from the cache. Once it is"),
        ("ro", "", "unfinished: to finish raise --minutes, or the Action's input minutes"),
        ("rw", "shared", ""),
    ],
)
def test_a_later_run_goes_on_only_with_what_it_tunes_and_finds(
    mode: Literal["ro", "rw"], skipped: Literal["", "shared"], said: str
) -> None:
    ended, plan = cut_short("seconds", mode, skipped)
    steps = next_steps(parts.verdict("pass", 0), [ended], None, [], plan)
    assert [said in step for step in steps] == ([True] if said else [])


def test_a_run_that_was_not_asked_to_tune_promises_nothing() -> None:
    ended, plan = cut_short("trials")
    unpaid = msgspec.structs.replace(plan, budget=Budget(seconds=None, trials=0))
    assert next_steps(parts.verdict("pass", 0), [ended], None, [], plan) != ()
    assert next_steps(parts.verdict("pass", 0), [ended], None, [], unpaid) == ()


def cut_short(
    stopped: str, mode: Literal["ro", "rw"] = "rw", skipped: Literal["", "shared"] = ""
) -> tuple[TuningOutcome, TuningPlan]:
    """The end of a run before its only task was begun, and its plan."""
    ended = outcome((CUT,), stopped=stopped)
    task = msgspec.structs.replace(make_task("a", sides=("head",)), key=ended.tasks[0].key)
    resolved = ResolvedTask(task, Miss("absent"), skipped=skipped)
    return ended, planned(CacheUse(location="", zone="main", mode=mode), resolved)


def planned(use: CacheUse, *tasks: ResolvedTask) -> TuningPlan:
    return make_plan(Resolution(tasks=tasks, cache=use), budget=Budget(seconds=1.0, trials=None))


def test_energy_that_no_counter_tells_is_no_matter_of_a_quiet_machine() -> None:
    report = with_finding(make_report("slowed"), status="invalid-env")
    steps = next_steps(report.verdict, (), report.run, report.comparisons, None)
    assert "whose RAPL or NVML counters can be read" in steps[0]


def test_what_got_slower_since_a_release_has_the_command_that_finds_the_commit() -> None:
    verdict = parts.verdict("fail", 1, parts.finding("fail", ""))
    since = msgspec.structs.replace(verdict.revisions, release="v1.2.0")
    verdict = msgspec.structs.replace(verdict, revisions=since)
    model = verdict.findings[0].model
    command = f"tunegate bisect v1.2.0.. --model {model}"
    (said,) = [each for each in next_steps(verdict, (), None, [], None) if command in each]
    assert said == f"Find the commit that made {model} slower: {command}."


# A report holds what the run found.


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
    assert summarized(changes, verdict=verdict).warnings == ("no merge base", "slow disk")


def test_what_waits_for_the_default_branch_is_counted_and_no_warning() -> None:
    changes = parts.changes(parts.change())
    plan = parts.plan(changes, parts.cache())
    plan = msgspec.structs.replace(plan, notes=(waiting_note(2), "2 tasks have no trials planned"))
    tuning = parts.summary(tasks=3, exact=1, miss=2, waiting=2)
    report = summarized(changes, plan, msgspec.structs.replace(VERDICT, tuning=tuning))
    assert report.warnings == ("2 tasks have no trials planned",)


def test_a_report_survives_the_way_through_a_file(tmp_path: Path) -> None:
    changes = parts.changes(parts.change())
    report = summarized(changes, parts.plan(changes, parts.cache()))
    artifact_io.write(tmp_path / "report.json", report)
    assert artifact_io.read(tmp_path / "report.json", Report) == report


def report_of(run: MeasurementRun) -> Report:
    """The report of a run without a plan."""
    return summarize(VERDICT, Judged(changes=parts.changes()), run=run, comparisons=[])


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
    made = (measured_cells.make_task(source, None, source=source) for source in sources)
    tasks = [msgspec.structs.replace(task, verified=False) for task in made]
    run = make_run(make_measurement(), make_builds(make_build("a"), make_build("b", tasks=tasks)))
    transferred, claimed = report_of(run).warnings
    assert "1 of 3 kernels runs a schedule of another shape: it was never measured" in transferred
    assert "1 of 3 kernels runs a schedule of this run's own zone: it was never measured" in claimed
