from typing import Literal

import pytest
from msgspec.structs import replace

from tests.decide.test_advice import CUT, MORE_TIME, next_steps, planned, slower
from tests.support import report_parts as parts
from tests.support.measured_cells import make_launches
from tests.support.models.squeezenet import TASKS
from tests.support.outcome_parts import outcome
from tests.support.reports import KINDS, make_report
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.measurements import Interval, Launch, TaskDifference
from tunegate.artifacts.tasks import CacheUse, ResolvedTask
from tunegate.decide.advice import raise_limit, tuning_steps
from tunegate.decide.slow_layers import slow_without_kernels, used_by_none_but
from tunegate.decide.slow_modes import slow_cases
from tunegate.decide.summarize import unlike_medians
from tunegate_cache.format.records import Miss


def test_steps_come_by_what_they_give_and_ask_for_budget_once() -> None:
    cut = replace(TASKS[0], source="search", trials=12, stopped="budget")
    layers = (
        TaskDifference(name=cut.name, base_ms=1.0, head_ms=3.0, source="search"),
        TaskDifference(name="b", base_ms=1.0, head_ms=2.9, source="transfer"),
        TaskDifference(
            name="c", base_ms=1.0, head_ms=2.5, source="library", library="ONNX Runtime"
        ),
    )
    finding = parts.finding("fail", "", differences=layers)
    tuned = outcome((cut,), stopped="seconds")
    steps = next_steps(parts.verdict("fail", 1, finding), [tuned], None, [], None)
    expected = ["Look at c", "Look at b", f"Look at {cut.name}"]
    assert [step.split(":")[0] for step in steps] == expected
    assert f"{MORE_TIME}; tuned itself" in steps[1]
    assert "when the budget ended: a larger budget helps here too; as many again" in steps[2]
    assert sum("raise" in step for step in steps) == 1


def test_layers_of_which_the_same_is_said_are_one_step() -> None:
    layers = tuple(
        TaskDifference(
            name=name, base_ms=None, head_ms=0.3, source="library", library="ONNX Runtime"
        )
        for name in "abcd"
    )
    finding = parts.finding("fail", "", differences=layers)
    steps = next_steps(parts.verdict("fail", 1, finding), [], None, [], None)
    assert steps[0] == (
        "Look at a, b and c: new in this change, +0.9000 ms together, 75% of what slower layers "
        "lost. Each is run by ONNX Runtime: tuning would not help."
    )
    assert not any(step.startswith("Look at") for step in steps[1:])


@pytest.mark.parametrize(
    ("skipped", "said"),
    [("shared", "so tunegate warm tunes it"), ("behind", "tunegate warm --again tunes it")],
)
def test_no_budget_is_asked_for_what_this_command_never_tunes(
    skipped: Literal["shared", "behind"], said: str
) -> None:
    ended = outcome((CUT,), stopped="seconds")
    task = replace(make_task("a"), key=ended.tasks[0].key, target="cpu")
    resolved = ResolvedTask(task, Miss("absent"), skipped=skipped)
    plan = planned(CacheUse(location="", zone="main", mode="rw"), resolved)
    finding = parts.finding("fail", "", differences=(slower("default", CUT.name),))
    steps = next_steps(parts.verdict("fail", 1, finding), [ended], None, [], plan)
    assert said in steps[0]
    assert not any("raise" in step for step in steps)


def test_a_layer_that_was_changed_is_told_by_the_tuning_of_the_head() -> None:
    """The base's task has its name, too, and had other trials."""
    of_base, of_head = make_task("a", sides=("base",)), make_task("b")
    cut = replace(CUT, source="search", stopped="budget")
    rows = (replace(cut, trials=trials) for trials in (900, 7))
    ended = outcome(tuple(rows), stopped="seconds")
    tasks = tuple(
        replace(row, key=task.key)
        for row, task in zip(ended.tasks, (of_base, of_head), strict=True)
    )
    cache = CacheUse(location="", zone="main", mode="rw")
    plan = planned(cache, *(ResolvedTask(task, Miss("absent")) for task in (of_base, of_head)))
    finding = parts.finding("fail", "", differences=(slower("search", CUT.name),))
    tuned = replace(ended, tasks=tasks)
    steps = next_steps(parts.verdict("fail", 1, finding), [tuned], None, [], plan)
    assert "had only 7 trials when the budget ended" in steps[0]


@pytest.mark.parametrize("is_asked", [True, False])
def test_what_another_step_asks_for_is_not_asked_again(is_asked: bool) -> None:
    report = make_report("budget-spent")
    steps = list(tuning_steps(report.outcomes, report.plan, frozenset(), is_asked=is_asked))
    said = (
        "Tuning reached its cap with 2 of 10 tasks unfinished: to finish raise --usd, or the "
        "Action's input usd (budget.usd counts once it is merged), or run "
        "again: another run of this change continues from the cache. Once it is merged, tunegate "
        "warm does them."
    )
    assert [step.text for step in steps] == ([] if is_asked else [said])


def test_the_cap_that_ended_tuning_is_the_one_to_raise() -> None:
    """A pull request that edits the file has no more budget by it; what it starts the run with
    counts."""
    assert raise_limit(make_report("budget-spent").outcomes).startswith(
        "raise --usd, or the Action"
    )
    assert raise_limit(()) == MORE_TIME


CHANGE = Interval(low=25.4, center=29.5, high=31.7)


@pytest.mark.parametrize(("head_ms", "is_told"), [(2.59, False), (2.65, False), (3.37, True)])
def test_medians_apart_by_another_share_are_explained(head_ms: float, is_told: bool) -> None:
    found = parts.comparison(CHANGE, 2.0, decision="fail")
    found = replace(found, base_ms=2.0, head_ms=head_ms)
    notes = list(unlike_medians([found]))
    assert bool(notes) == is_told
    if is_told:
        assert "lie +68.5% apart. The change of +29.5% compares inferences in turn" in notes[0]


def test_what_was_not_compared_is_not_explained() -> None:
    found = parts.comparison(CHANGE, 9.0, decision="fail")
    assert list(unlike_medians([replace(found, change_percent=None)])) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_ordinary_report_has_no_such_note(kind: str) -> None:
    assert list(unlike_medians(make_report(kind).comparisons)) == []


@pytest.mark.parametrize(("compiled", "found"), [(True, 0), (False, 1)])
def test_a_slower_head_without_kernels_is_beyond_tuning(compiled: bool, found: int) -> None:
    report = make_report("slowed")
    assert report.run is not None
    (cell,) = report.run.builds
    assert cell.head is not None
    head = cell.head if compiled else replace(cell.head, tasks=())
    run = replace(report.run, builds=(replace(cell, head=head),))
    assert len(slow_without_kernels(report.verdict, run)) == found
    assert slow_without_kernels(parts.verdict("pass", 0), run) == frozenset()


def test_a_task_that_another_model_uses_is_not_in_vain() -> None:
    plan = make_report("slowed").plan
    assert plan is not None
    task = make_task("a", sides=("head",))
    resolution = replace(plan.resolution, tasks=(ResolvedTask(task, Miss("absent")),))
    plan = replace(plan, resolution=resolution)
    mine = frozenset(parts.cell(use.model, task.target) for use in task.uses)
    assert used_by_none_but(mine, plan) == {(task.key, task.target)}
    assert used_by_none_but(frozenset(), plan) == frozenset()
    assert used_by_none_but(mine, None) == frozenset()


SLOW_CASES_CUT = 0.1


def starts(*cases_and_effects: tuple[int, float]) -> list[Launch]:
    made = make_launches([effect for _, effect in cases_and_effects])
    return [
        replace(each, case=case) for each, (case, _) in zip(made, cases_and_effects, strict=True)
    ]


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (((3, 0.2), (1, 0.0), (2, 0.01), (3, 0.3)), (3,)),
        (((3, 0.2), (1, 0.2), (2, 0.01)), (1, 3)),
        (((1, 0.0), (2, 0.0)), ()),
    ],
)
def test_cases_that_are_slow_at_each_start_are_named(
    seen: tuple[tuple[int, float], ...], found: tuple[int, ...]
) -> None:
    assert slow_cases(starts(*seen), SLOW_CASES_CUT) == found


@pytest.mark.parametrize(
    "seen",
    [((1, 0.2), (2, 0.2)), ((1, 0.2), (2, 0.2), (2, 0.0), (3, 0.0)), ((0, 0.2), (0, 0.0))],
    ids=["all are slow", "a quick case was slow once", "there are no cases"],
)
def test_what_no_case_explains_is_chance(seen: tuple[tuple[int, float], ...]) -> None:
    assert slow_cases(starts(*seen), SLOW_CASES_CUT) == ()


def test_a_case_whose_mean_alone_is_slow_is_slow() -> None:
    slow, quick = starts((2, 0.0), (1, 0.0))
    slow = replace(slow, mean_effect=0.2)
    assert slow_cases([slow, quick], SLOW_CASES_CUT) == (2,)
