"""Steps for what tuning lacked: budget for the rest, or a candidate that works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Named, NextStep
from tunegate.plurals import plural
from tunegate.tuning.budget import pays_nothing
from tunegate.tuning.claims import is_settled
from tunegate.verdict.beyond_tuning import used_by_none_but
from tunegate_cache.format.records import WorkloadKey

LIMIT_KEYS = {
    "seconds": "budget.minutes",
    "usd": "budget.usd",
    "trials": "budget.trials",
}


def tuning_steps(
    outcomes: Sequence[TuningOutcome],
    plan: TuningPlan | None,
    helpless: frozenset[Cell],
    *,
    is_asked: bool,
) -> Iterator[NextStep]:
    """`helpless` are cells that no tuning makes faster: what they alone use is not advised on.
    `is_asked` where another step asks for more budget."""
    if plan is not None and pays_nothing(plan.budget):
        return
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    in_vain = used_by_none_but(helpless, plan)
    cut = _unfinished([each for each in tasks if (each.key, each.target) not in in_vain], plan)
    if cut and not is_asked and any(outcome.stopped in LIMIT_KEYS for outcome in outcomes):
        told = f"Tuning reached its cap with {cut} of {plural(len(tasks), 'task')} unfinished"
        yield NextStep((f"{told}: {_to_finish(outcomes, plan, cut)}.",))
    for task in tasks:
        if task.stopped == "failed":
            said = f" worked{_detail(task)}: it keeps the schedule it had."
            yield NextStep(("No candidate of ", Named(task.name), said))


def limit_key(outcomes: Sequence[TuningOutcome]) -> str:
    """The config key of the cap that ended tuning; time where none did."""
    reached = (LIMIT_KEYS[each.stopped] for each in outcomes if each.stopped in LIMIT_KEYS)
    return next(reached, "budget.minutes")


def _to_finish(outcomes: Sequence[TuningOutcome], plan: TuningPlan | None, cut: int) -> str:
    """Runs go on with what their own change brought: both sides of a later one have it."""
    more = f"raise {limit_key(outcomes)}"
    if plan is not None and plan.resolution.cache.mode != "rw":
        return f"to finish {more}"
    them = "it" if cut == 1 else "them"
    again = "another run of this change goes on from the cache"
    return f"to finish {more}, or run again: {again}. Once it is merged, tunegate warm does {them}"


def _unfinished(tasks: Sequence[TaskOutcome], plan: TuningPlan | None) -> int:
    wanted = _wanted(plan)
    return sum(
        task.stopped == "budget" or (task.stopped == "not-started" and task.key in wanted)
        for task in tasks
    )


def _wanted(plan: TuningPlan | None) -> frozenset[WorkloadKey]:
    """The tasks that a run like this one tunes until they are finished, and no others."""
    resolved = plan.resolution.tasks if plan else ()
    return frozenset(each.task.key for each in resolved if not is_settled(each))


def _detail(task: TaskOutcome) -> str:
    causes = ", ".join(f"{count} {cause}" for cause, count in sorted(task.failures.items()))
    return f" ({causes})" if causes else ""
