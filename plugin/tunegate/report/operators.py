"""The operators of a report as rows: the cost of each, the source of its schedule, and its gain."""

from collections.abc import Mapping, Sequence

import msgspec

from tunegate.artifacts.changes import Side
from tunegate.artifacts.measurements import TaskDifference
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import TuningTask
from tunegate.artifacts.verdicts import Report
from tunegate.tune.outcomes import TaskPartition, partition_of


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One operator's part in a difference; `share` is of everything that got slower (negative:
    faster). It `is_alone` if no profile inside the model timed it."""

    name: str
    base_ms: float | None
    head_ms: float | None
    difference_ms: float
    share: float
    run_by: str
    is_alone: bool


class TunedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One tuned task; times are per call, `gain_percent` is the saved share of `before_ms`. It has
    a `side` if the other one lacks it."""

    name: str
    side: Side | None
    target: str
    source: str
    weight: int | None
    trials: int
    before_ms: float | None
    best_ms: float | None
    gain_percent: float | None
    seconds: float
    stopped: str
    failures: str

    @property
    def label(self) -> str:
        """Its name, with its side: a changed layer is two tasks of one name."""
        return f"{self.name} ({self.side})" if self.side else self.name


def parts(differences: Sequence[TaskDifference]) -> tuple[Part, ...]:
    """Returns the operators by size of their difference, the largest first, without unchanged
    ones."""
    slower_ms = sum(max(0.0, difference.difference_ms) for difference in differences)
    faster_ms = sum(max(0.0, -difference.difference_ms) for difference in differences)
    changed = [difference for difference in differences if difference.difference_ms]
    changed.sort(key=lambda each: (-abs(each.difference_ms), each.name))
    return tuple(
        Part(
            name=each.name,
            base_ms=each.base_ms,
            head_ms=each.head_ms,
            difference_ms=each.difference_ms,
            share=each.difference_ms / (slower_ms if each.difference_ms > 0 else faster_ms),
            run_by=describe_runner(each),
            is_alone=each.is_alone,
        )
        for each in changed
    )


def tuned_rows(report: Report) -> tuple[TunedRow, ...]:
    """Returns every task of the outcomes, the one that saved most per inference first."""
    resolved = report.plan.resolution.tasks if report.plan else ()
    by_identity = {(each.task.key.workload, each.task.target): each.task for each in resolved}
    weights = {identity: task.calls_on("head") for identity, task in by_identity.items()}
    sides = _only_sides(by_identity)
    parts_of = partition_of(resolved, report.outcomes)
    tasks = [task for outcome in report.outcomes for task in outcome.tasks]
    tasks.sort(key=lambda task: (-_saved_ms(task) * weights.get(_identity(task), 1), task.name))
    return tuple(
        TunedRow(
            name=task.name,
            side=sides.get(_identity(task)),
            target=task.target,
            source=_schedule(task, parts_of),
            weight=weights.get(_identity(task)),
            trials=task.trials,
            before_ms=task.before_ms,
            best_ms=task.best_ms,
            gain_percent=_gain_percent(task),
            seconds=task.seconds,
            stopped=task.stopped,
            failures=", ".join(f"{n} {cause}" for cause, n in sorted(task.failures.items())),
        )
        for task in tasks
    )


def _only_sides(
    tasks: Mapping[tuple[str, str], TuningTask],
) -> dict[tuple[str, str], Side]:
    """Returns the side of each task that only one side has; nothing if all tasks have one side."""
    sides_of_tasks = {identity: {use.side for use in task.uses} for identity, task in tasks.items()}
    is_compared = len(set().union(*sides_of_tasks.values())) > 1
    return {
        identity: min(sides)
        for identity, sides in sides_of_tasks.items()
        if is_compared and len(sides) == 1
    }


def _schedule(task: TaskOutcome, parts_of: TaskPartition) -> str:
    """Returns the count that the task belongs to, else the source of its schedule."""
    identity = (task.key, task.target)
    if identity in parts_of.now:
        return SOURCE_WORDS["search"]
    if identity in parts_of.begun:
        return "begun"
    has_default = task.source == "exact" and task.records and not task.records[0].template
    return SOURCE_WORDS["default" if has_default else task.source]


def _identity(task: TaskOutcome) -> tuple[str, str]:
    return task.key.workload, task.target


def _saved_ms(task: TaskOutcome) -> float:
    if task.before_ms is None or task.best_ms is None:
        return 0.0
    return task.before_ms - task.best_ms


def _gain_percent(task: TaskOutcome) -> float | None:
    return 100 * _saved_ms(task) / task.before_ms if task.before_ms and task.best_ms else None


# The words for what runs a layer, and where its schedule comes from.

SOURCE_WORDS = {
    "exact": "tuned before",
    "transfer": "untuned, of another shape",
    "search": "tuned now",
    "default": "default schedule",
    "library": "ONNX Runtime",
    "own-zone": "own zone, measured now",
    "prior": "picked by the prior",
    "tiles": "lower precision",
    "claimed": "own zone, unverified",
    "older": "of an older toolchain, unverified",
}


def describe_runner(difference: TaskDifference) -> str:
    """Returns the runtime of the layer, and the source of its schedule if it has one."""
    if difference.source == "library":
        return difference.library
    return f"TVM, {SOURCE_WORDS[difference.source]}"
