"""Advice on the layers of a slower head: why each is slow, and what can be gained."""

from collections.abc import Iterator, Sequence

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import MeasurementRun, TaskDifference
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import Skipped
from tunegate.artifacts.verdicts import Finding, Named, NextStep, Verdict
from tunegate.tune import headroom
from tunegate.wording import milliseconds
from tunegate_cache.format.records import WorkloadKey


def on_cell(finding: Finding, sentence: str, *, before: str = "") -> NextStep:
    """Returns a sentence that begins with the model and the target. `before` precedes their
    names."""
    where = cell_names(finding)
    return NextStep((before, *where, sentence) if before else (*where, sentence))


def cell_names(finding: Finding) -> tuple[str | Named, ...]:
    """Returns the name of the cell, inside a sentence."""
    return Named(finding.model), " on ", Named(finding.target)


# The layers that got slower, largest possible gain first.

NAMED_OPERATORS = 3
NAMED_SHARE = 0.1

_UNMEASURED_ORIGINS = {
    "transfer": "of another shape, which nothing has measured here",
    "claimed": "that only this run's own zone has, and nothing has measured",
    "older": "of an older toolchain, which nothing has measured since",
    "prior": "that was picked without measuring",
}
_OTHER_COMMANDS: dict[Skipped, str] = {
    "shared": "base and head share it, so tunegate warm tunes it",
    "behind": "tunegate warm --again tunes it",
}


class _Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The cause of a slow layer. `worth` describes what more tuning saves, `saves_ms` is the time;
    both are empty if tuning does not help or its gain is unknown."""

    text: str
    is_tunable: bool = False
    saves_ms: float | None = None
    worth: str = ""


class SlowLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of a slower head. All `slower` layers of the model lost `all_lost_ms` together.
    `skipped` names another command that tunes it. `where` names the cell if several were
    checked."""

    difference: TaskDifference
    all_lost_ms: float
    slower: int
    cause: _Cause
    skipped: Skipped
    where: tuple[str | Named, ...]

    @property
    def wants_budget(self) -> bool:
        """Returns whether a larger budget of this command would tune the layer."""
        return self.cause.is_tunable and not self.skipped

    @property
    def gives_ms(self) -> float:
        """The milliseconds that can be regained: by tuning if it helps, otherwise by undoing the
        change of the layer."""
        saves_ms = self.cause.saves_ms
        return self.difference.difference_ms if saves_ms is None else saves_ms


def slow_layers(
    verdict: Verdict, outcomes: Sequence[TuningOutcome], plan: TuningPlan | None
) -> tuple[SlowLayer, ...]:
    """Returns the layers worth a look in all failed cells, largest gain first."""
    is_alone = len(verdict.findings) == 1
    layers = [
        layer
        for finding in verdict.findings
        if finding.status == "fail"
        for layer in _of_finding(finding, outcomes, plan, is_alone=is_alone)
    ]
    return tuple(sorted(layers, key=lambda layer: -layer.gives_ms))


def slowdown_steps(layers: Sequence[SlowLayer], more_budget: str) -> Iterator[NextStep]:
    """Yields a step for each layer, or for several with the same text. The first layer that a
    larger budget helps asks for it in the words of `more_budget`."""
    first = next((layer for layer in layers if layer.wants_budget), None)
    for alike in _group_by_text(layers):
        layer, *others = alike
        action = more_budget if layer is first else "a larger budget helps here too"
        text = f": {_how_much(alike)}. {'Each' if others else 'It'} {_why(layer, action)}."
        yield NextStep(("Look at ", *_names(alike), *layer.where, text))


def _group_by_text(layers: Sequence[SlowLayer]) -> Iterator[list[SlowLayer]]:
    """Yields groups of layers with the same text. A layer that a larger budget helps stands
    alone."""
    groups: dict[object, list[SlowLayer]] = {}
    for layer in layers:
        key = (layer.where, layer.cause.text, layer.skipped, layer.difference.base_ms is None)
        groups.setdefault(id(layer) if layer.wants_budget else key, []).append(layer)
    yield from groups.values()


def _names(layers: Sequence[SlowLayer]) -> Iterator[str | Named]:
    """Returns the names, such as `a`, `b` and `c`."""
    for at, layer in enumerate(layers):
        if at:
            yield " and " if at == len(layers) - 1 else ", "
        yield Named(layer.difference.name)


def _why(layer: SlowLayer, action: str) -> str:
    cause = layer.cause
    if not cause.is_tunable:
        return cause.text
    return f"{cause.text}: {_OTHER_COMMANDS.get(layer.skipped, action)}{cause.worth}"


def _of_finding(
    finding: Finding,
    outcomes: Sequence[TuningOutcome],
    plan: TuningPlan | None,
    *,
    is_alone: bool,
) -> Iterator[SlowLayer]:
    """Yields the slow layers of a finding. `is_alone` means that no other cell was checked, so the
    cell needs no name."""
    slower = [difference for difference in finding.differences if difference.difference_ms > 0]
    total_ms = sum(each.difference_ms for each in slower)
    slower.sort(key=lambda each: each.difference_ms, reverse=True)
    for each in slower[:NAMED_OPERATORS]:
        if each.difference_ms / total_ms >= NAMED_SHARE:
            outcome = _outcome_of(each, finding, outcomes, plan)
            yield SlowLayer(
                difference=each,
                all_lost_ms=total_ms,
                slower=len(slower),
                cause=_cause(each, outcome, outcomes),
                skipped=_reason_skipped(outcome, plan),
                where=() if is_alone else (" in ", *cell_names(finding)),
            )


def _how_much(layers: Sequence[SlowLayer]) -> str:
    """Returns the loss of the layers in words, and its share of the loss of all slower ones."""
    one = layers[0]
    lost_ms = sum(layer.difference.difference_ms for layer in layers)
    is_new = "new in this change, " if one.difference.base_ms is None else ""
    together = " together" if len(layers) > 1 else ""
    of_all = f"{lost_ms / one.all_lost_ms * 100:.0f}% of what slower layers lost"
    part = "the only layer that got slower" if one.slower == 1 else of_all
    return f"{is_new}+{milliseconds(lost_ms)}{together}, {part}"


def _cause(
    difference: TaskDifference, outcome: TaskOutcome | None, outcomes: Sequence[TuningOutcome]
) -> _Cause:
    now_ms = difference.head_ms or 0.0
    match difference.source:
        case "default" if outcome is None or not (outcome.trials or _is_answered(outcome)):
            return _never_tuned_cause(now_ms, outcomes)
        case "transfer" | "claimed" | "older" | "prior":
            most_ms = headroom.of_transferred(now_ms)
            return _Cause(
                text=f"runs a schedule {_UNMEASURED_ORIGINS[difference.source]}",
                is_tunable=True,
                saves_ms=most_ms,
                worth=f"; tuned itself it would save up to {milliseconds(most_ms, 3)}",
            )
        case "search" | "default" if outcome is not None and outcome.stopped == "budget":
            is_vain = difference.source == "default"
            return _cut_short(
                now_ms, outcome, ", and none was faster in the model" if is_vain else ""
            )
        case "search":
            return _Cause(
                text=f"was tuned to the end: more budget would not help{_itself_clause(difference)}"
            )
        case "library" | "tiles":
            is_library = difference.source == "library"
            runs = f"run by {difference.library}" if is_library else "in lower precision"
            return _Cause(text=f"is {runs}: tuning would not help{_itself_clause(difference)}")
        case "default" | "exact" | "own-zone":
            return _Cause(text=f"already runs the best schedule known{_itself_clause(difference)}")


def _is_answered(outcome: TaskOutcome) -> bool:
    """Returns whether a search, now or earlier, found nothing faster in the model."""
    is_searched = outcome.trials > 0 and outcome.stopped in {"finished", "converged"}
    return is_searched or outcome.stopped == "exact"


def _never_tuned_cause(now_ms: float, outcomes: Sequence[TuningOutcome]) -> _Cause:
    back_ms = headroom.of_untuned(now_ms, (t for outcome in outcomes for t in outcome.tasks))
    saves = f"; tuned like the others it would save {milliseconds(back_ms, 3)}" if back_ms else ""
    return _Cause(text="was never tuned", is_tunable=True, saves_ms=back_ms or None, worth=saves)


def _cut_short(now_ms: float, outcome: TaskOutcome, result: str) -> _Cause:
    back_ms = headroom.of_unfinished(now_ms, outcome)
    trials = "1 trial" if outcome.trials == 1 else f"{outcome.trials} trials"
    return _Cause(
        text=f"had only {trials} when the budget ended{result}",
        is_tunable=True,
        saves_ms=back_ms,
        worth=f"; as many again are expected to save {milliseconds(back_ms, 3)}",
    )


def _itself_clause(difference: TaskDifference) -> str:
    """Returns a clause if the base has the operator too, '' for a new one."""
    return "" if difference.base_ms is None else ", the operator itself is slower"


def _outcome_of(
    difference: TaskDifference,
    finding: Finding,
    outcomes: Sequence[TuningOutcome],
    plan: TuningPlan | None,
) -> TaskOutcome | None:
    """Returns the tuning outcome of the layer, None without one. Other models, and the base of a
    changed layer, may have a task of the same name; only tasks of this head count."""
    tasks = [
        task
        for outcome in outcomes
        for task in outcome.tasks
        if task.name == difference.name and task.target == finding.target
    ]
    if plan is None:
        return next(iter(tasks), None)
    models = {
        (task.task.key, task.task.target): {
            use.model for use in task.task.uses if use.side == "head"
        }
        for task in plan.resolution.tasks
    }
    tasks_of_models = [task for task in tasks if models.get((task.key, task.target))]
    its_own = (task for task in tasks_of_models if finding.model in models[task.key, task.target])
    return next(its_own, next(iter(tasks_of_models), None))


def _reason_skipped(outcome: TaskOutcome | None, plan: TuningPlan | None) -> Skipped:
    """Returns why this command does not tune the task at any budget."""
    if outcome is None or plan is None:
        return ""
    tasks = (task for task in plan.resolution.tasks if task.task.key == outcome.key)
    return next((task.skipped for task in tasks if task.task.target == outcome.target), "")


# Slowdowns that no tuning removes, and the tasks that only they use.


def slow_without_kernels(verdict: Verdict, run: MeasurementRun | None) -> frozenset[Cell]:
    """Returns the slower heads that ship with a runtime of its own kernels, which tuning cannot
    speed up."""
    slower = {finding.cell for finding in verdict.findings if finding.status == "fail"}
    return frozenset(
        each.cell
        for each in (run.builds if run else ())
        if each.cell in slower
        if each.head is not None and not each.head.error and not each.head.tasks
    )


def used_by_none_but(
    cells: frozenset[Cell], plan: TuningPlan | None
) -> frozenset[tuple[WorkloadKey, str]]:
    """Returns the tasks, each with its target, that no other cell uses."""
    tasks = [task.task for task in plan.resolution.tasks] if plan else []
    return frozenset(
        (task.key, task.target)
        for task in tasks
        if all(Cell(model=use.model, target=task.target) in cells for use in task.uses)
    )
