"""What to do next: one sentence for each thing that somebody could change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tunegate.artifacts.builds import Cell, CellBuilds
from tunegate.artifacts.measurements import Comparison, MeasurementRun, TaskDifference
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import Finding, Named, NextStep, Verdict
from tunegate.plurals import plural
from tunegate.tuning import headroom
from tunegate.tuning.budget import pays_nothing
from tunegate.tuning.claims import is_settled
from tunegate.verdict.beyond_tuning import slow_without_kernels, used_by_none_but
from tunegate.verdict.busy_machine import busy_words
from tunegate.wording.latency import milliseconds
from tunegate_cache.format.records import WorkloadKey

NAMED_OPERATORS = 3
NAMED_SHARE = 0.1
LIMIT_KEYS = {
    "seconds": "budget.minutes",
    "usd": "budget.usd",
    "joules": "budget.joules",
    "trials": "budget.trials",
}

_UNMEASURED_ORIGINS = {
    "transfer": "of another shape, which nothing has measured here",
    "claimed": "that only this run's own zone has, and nothing has measured",
    "prior": "that was picked without measuring",
}

_UNSTEADY = ("invalid", "disturbed")


def next_steps(
    verdict: Verdict,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
    plan: TuningPlan | None,
) -> tuple[NextStep, ...]:
    """Advice in order of use: what blocks the merge, then what tuning lacked, then the cache."""
    compared = {(each.cell.model, each.cell.target): each for each in comparisons}
    is_alone = len(verdict.findings) == 1
    steps: list[NextStep] = []
    for finding in verdict.findings:
        its_own = compared.get((finding.model, finding.target))
        steps += _for_finding(finding, its_own, outcomes, run, is_alone=is_alone)
    steps += _for_tuning(outcomes, plan, slow_without_kernels(verdict, run))
    steps += _for_cache(plan.resolution.cache if plan else None)
    return tuple(dict.fromkeys(steps))


def _for_finding(
    finding: Finding,
    compared: Comparison | None,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    *,
    is_alone: bool,
) -> Iterator[NextStep]:
    """`is_alone` where no other cell was checked: which one is meant is clear."""
    match finding.status:
        case "fail":
            yield from _for_slowdown(finding, outcomes, is_alone=is_alone)
        case "inconclusive":
            yield _for_undecided(finding, compared, run)
        case "error":
            yield _for_error(finding, run)
        case "invalid-env":
            yield _for_unfit(finding, compared)
        case "no-baseline":
            yield _on(
                finding,
                " has no base that can be run: its reason says why. Name another "
                "revision with --base, or fetch more history for an older version of it.",
            )
        case "pass" | "new" | "waived":
            return


def _for_unfit(finding: Finding, compared: Comparison | None) -> NextStep:
    """Latency that was told on a steady machine leaves the energy, which no counter told."""
    if compared is None or compared.decision is None or compared.stopped in _UNSTEADY:
        return _on(
            finding,
            " could not be measured on this machine: run it again on a runner with nothing else "
            "on it.",
        )
    return _on(
        finding,
        " cannot be counted on this machine: run it on one whose RAPL or NVML counters can be "
        "read, or remove gate.energy-margin-percent.",
        before="The energy of ",
    )


def _for_slowdown(
    finding: Finding, outcomes: Sequence[TuningOutcome], *, is_alone: bool
) -> Iterator[NextStep]:
    slower = [each for each in finding.differences if each.difference_ms > 0]
    if not slower:
        yield _on(finding, ": no single operator is slower; compare the two graphs.")
        return
    total_ms = sum(each.difference_ms for each in slower)
    slower.sort(key=lambda each: each.difference_ms, reverse=True)
    where = () if is_alone else (" in ", *_where(finding))
    for each in slower[:NAMED_OPERATORS]:
        if each.difference_ms / total_ms >= NAMED_SHARE:
            why = _why_slow(each, _outcome_of(each, finding, outcomes), outcomes)
            said = f": {_how_much(each, total_ms, len(slower))}. It {why}."
            yield NextStep(("Look at ", Named(each.name), *where, said))


def _how_much(difference: TaskDifference, total_ms: float, slower: int) -> str:
    """What the layer lost, and its part of what `slower` layers lost together."""
    is_new = "new in this change, " if difference.base_ms is None else ""
    share = difference.difference_ms / total_ms
    of_all = f"{share * 100:.0f}% of what slower layers lost"
    part = "the only layer that got slower" if slower == 1 else of_all
    return f"{is_new}+{milliseconds(difference.difference_ms)}, {part}"


def _why_slow(
    difference: TaskDifference, tuned: TaskOutcome | None, outcomes: Sequence[TuningOutcome]
) -> str:
    more = f"raise {_limit_key(outcomes)}"
    now_ms = difference.head_ms or 0.0
    match difference.source:
        case "default":
            return f"was never tuned: {more}{_as_the_others(now_ms, outcomes)}"
        case "transfer" | "claimed" | "prior":
            most = milliseconds(headroom.of_transferred(now_ms), 3)
            origin = _UNMEASURED_ORIGINS[difference.source]
            return f"runs a schedule {origin}: {more} to tune it itself, for up to {most}"
        case "search" if tuned is not None and tuned.stopped == "budget":
            back_ms = headroom.of_unfinished(now_ms, tuned)
            return (
                f"had only {plural(tuned.trials, 'trial')} when the budget ended: {more}; "
                f"as many again are expected to save {milliseconds(back_ms, 3)}"
            )
        case "search":
            return f"was tuned to the end: more budget would not help{_itself(difference)}"
        case "library" | "tiles":
            is_library = difference.source == "library"
            runs = f"run by {difference.library}" if is_library else "in lower precision"
            return f"is {runs}: tuning would not help{_itself(difference)}"
        case "exact" | "own-zone":
            return f"already runs the best schedule known{_itself(difference)}"


def _itself(difference: TaskDifference) -> str:
    """Says so where the base has the operator too: a new one is not slower than anything."""
    return "" if difference.base_ms is None else ", the operator itself is slower"


def _as_the_others(now_ms: float, outcomes: Sequence[TuningOutcome]) -> str:
    back_ms = headroom.of_untuned(now_ms, (t for outcome in outcomes for t in outcome.tasks))
    return f"; tuned like the others it would save {milliseconds(back_ms, 3)}" if back_ms else ""


def _for_undecided(
    finding: Finding, compared: Comparison | None, run: MeasurementRun | None
) -> NextStep:
    if compared and compared.stopped == "decided":
        return _on(finding, ": the change is decided, what else is asked is not; see its reason.")
    launches = compared.projected_launches if compared else None
    quieter = busy_words(run.environment if run else {})
    if compared is None or launches is None:
        return _on(finding, f" is undecided: raise gate.seconds, or measure on {quieter}.")
    seconds = _seconds_for(launches, compared.cell, run)
    if compared.stopped == "hopeless" or seconds is None:
        return _on(
            finding,
            f" is undecided: about {launches} launches would be needed, because the change is "
            f"close to the margin or the machine is noisy. Measure on {quieter}, or choose "
            "another gate.margin-percent.",
        )
    return _on(
        finding,
        f" is undecided: about {launches} launches would be needed, {finding.launches} were done. "
        f"Raise gate.seconds to {seconds}.",
    )


def _seconds_for(launches: int, cell: Cell, run: MeasurementRun | None) -> int | None:
    """The measuring time of that many launches, rounded up, from what one cost here."""
    for measured in run.cells if run else ():
        if measured.cell == cell and measured.launches:
            each = measured.seconds / len(measured.launches)
            return math.ceil(launches * each / 10) * 10
    return None


def _for_error(finding: Finding, run: MeasurementRun | None) -> NextStep:
    builds = _builds_of(finding, run)
    for side, build in (("base", builds.base), ("head", builds.head)) if builds else ():
        if build and build.check and not build.check.passed:
            return _on(
                finding,
                f" computes other numbers than ONNX Runtime (relative error "
                f"{build.check.max_relative:.2g}, allowed {build.check.tolerance:.2g}): it was not "
                "measured and must not be shipped.",
                before=f"The {side} build of ",
            )
    if finding.runtimes and not any(each.ships for each in finding.runtimes):
        return _on(
            finding,
            ": do what its reasons ask for, export it differently, or take it out of models: in "
            "tunegate.yaml.",
            before="No runtime runs ",
        )
    return NextStep(("What is in error was not checked: repair it, then run again.",))


def _builds_of(finding: Finding, run: MeasurementRun | None) -> CellBuilds | None:
    wanted = Cell(model=finding.model, target=finding.target)
    return next((each for each in run.builds if each.cell == wanted), None) if run else None


def _for_tuning(
    outcomes: Sequence[TuningOutcome], plan: TuningPlan | None, helpless: frozenset[Cell]
) -> Iterator[NextStep]:
    """`helpless` are cells that no tuning makes faster: what they alone use is not advised on."""
    if plan is not None and pays_nothing(plan.budget):
        return
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    in_vain = used_by_none_but(helpless, plan)
    cut = _unfinished([each for each in tasks if (each.key, each.target) not in in_vain], plan)
    if cut and any(outcome.stopped in LIMIT_KEYS for outcome in outcomes):
        keeps = plan is None or plan.resolution.cache.mode == "rw"
        later = "the next run goes on from the cache; to finish sooner" if keeps else "to finish"
        told = f"Tuning reached its cap with {cut} of {plural(len(tasks), 'task')} unfinished: "
        yield NextStep((f"{told}{later} raise {_limit_key(outcomes)}.",))
    for task in tasks:
        if task.stopped == "failed":
            said = f" worked{_detail(task)}: it keeps the schedule it had."
            yield NextStep(("No candidate of ", Named(task.name), said))


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


def _for_cache(cache: CacheUse | None) -> Iterator[NextStep]:
    if cache is None:
        return
    unreachable = cache.misses.get("store-unavailable", 0)
    if unreachable:
        said = f" was not reachable: {plural(unreachable, 'task')} counted as misses. "
        check = "Check cache.url and the runner's credentials."
        yield NextStep(("The cache at ", Named(cache.location), said + check))
    if cache.mode == "off":
        yield NextStep(("The cache is off, so nothing is reused or shared: set cache.mode to rw.",))


def _limit_key(outcomes: Sequence[TuningOutcome]) -> str:
    """The config key of the cap that ended tuning; time where none did."""
    reached = (LIMIT_KEYS[each.stopped] for each in outcomes if each.stopped in LIMIT_KEYS)
    return next(reached, "budget.minutes")


def _outcome_of(
    difference: TaskDifference, finding: Finding, outcomes: Sequence[TuningOutcome]
) -> TaskOutcome | None:
    tuned = (task for outcome in outcomes for task in outcome.tasks)
    return next(
        (t for t in tuned if t.name == difference.name and t.target == finding.target), None
    )


def _on(finding: Finding, said: str, *, before: str = "") -> NextStep:
    return NextStep((before, *_where(finding), said) if before else (*_where(finding), said))


def _where(finding: Finding) -> tuple[str | Named, ...]:
    return Named(finding.model), " on ", Named(finding.target)
