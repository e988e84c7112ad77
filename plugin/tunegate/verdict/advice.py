"""Next steps: one sentence for each thing that somebody could change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tunegate.artifacts.builds import Cell, CellBuilds
from tunegate.artifacts.measurements import Comparison, MeasurementRun
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import Finding, Named, NextStep, Verdict
from tunegate.plurals import plural
from tunegate.verdict.advising.cell_step import on_cell
from tunegate.verdict.advising.slow_layers import slow_layers, slowdown_steps
from tunegate.verdict.advising.tuning_steps import limit_key, tuning_steps
from tunegate.verdict.beyond_tuning import slow_without_kernels
from tunegate.verdict.busy_machine import busy_words

_UNSTEADY = ("invalid", "disturbed")


def next_steps(
    verdict: Verdict,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
    plan: TuningPlan | None,
) -> tuple[NextStep, ...]:
    """Advice in order of use: what could not be checked, the layers that got slower, by what each
    step can give, then what tuning lacked, then the cache. More budget is asked for once."""
    compared = {(each.cell.model, each.cell.target): each for each in comparisons}
    steps: list[NextStep] = []
    for finding in verdict.findings:
        its_own = compared.get((finding.model, finding.target))
        steps += _for_finding(finding, its_own, run)
    slow = slow_layers(verdict, outcomes, plan)
    steps += slowdown_steps(slow, limit_key(outcomes))
    is_asked = any(layer.wants_budget for layer in slow)
    steps += tuning_steps(outcomes, plan, slow_without_kernels(verdict, run), is_asked=is_asked)
    steps += _for_cache(plan.resolution.cache if plan else None)
    return tuple(dict.fromkeys(steps))


def _for_finding(
    finding: Finding, compared: Comparison | None, run: MeasurementRun | None
) -> Iterator[NextStep]:
    match finding.status:
        case "fail" if not any(each.difference_ms > 0 for each in finding.differences):
            is_told = bool(finding.differences) or _has_timed_layers(finding, run)
            said = "no single operator is slower" if is_told else "its layers were not timed"
            yield on_cell(finding, f": {said}; compare the two graphs.")
        case "inconclusive":
            yield _for_undecided(finding, compared, run)
        case "error":
            yield _for_error(finding, run)
        case "invalid-env":
            yield _for_unfit(finding, compared)
        case "no-baseline":
            yield on_cell(
                finding,
                " has no base that can be run: its reason says why. Name another "
                "revision with --base, or fetch more history for an older version of it.",
            )
        case "pass" | "new" | "waived" | "fail":
            return


def _has_timed_layers(finding: Finding, run: MeasurementRun | None) -> bool:
    wanted = Cell(model=finding.model, target=finding.target)
    return any(each.task_ms for each in (run.cells if run else ()) if each.cell == wanted)


def _for_unfit(finding: Finding, compared: Comparison | None) -> NextStep:
    """Returns the step for an unfit machine: with a steady machine only the energy, which no
    counter gave, is left."""
    if compared is None or compared.decision is None or compared.stopped in _UNSTEADY:
        return on_cell(
            finding,
            " could not be measured on this machine: run it again on a runner with nothing else "
            "on it.",
        )
    return on_cell(
        finding,
        " cannot be counted on this machine: run it on one whose RAPL or NVML counters can be "
        "read, or remove gate.energy-margin-percent.",
        before="The energy of ",
    )


def _for_undecided(
    finding: Finding, compared: Comparison | None, run: MeasurementRun | None
) -> NextStep:
    if compared and compared.stopped == "decided":
        return on_cell(
            finding, ": the change is decided, what else is asked is not; see its reason."
        )
    launches = compared.projected_launches if compared else None
    quieter = busy_words(run.environment if run else {})
    if compared is None or launches is None:
        return on_cell(finding, f" is undecided: raise gate.seconds, or measure on {quieter}.")
    seconds = _seconds_for(launches, compared.cell, run)
    if compared.stopped == "hopeless" or seconds is None:
        return on_cell(
            finding,
            f" is undecided: about {launches} launches would be needed, because the change is "
            f"close to the margin or the machine is noisy. Measure on {quieter}, or choose "
            "another gate.margin-percent.",
        )
    return on_cell(
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
            return on_cell(
                finding,
                f" computes other numbers than ONNX Runtime (relative error "
                f"{build.check.max_relative:.2g}, allowed {build.check.tolerance:.2g}): it was not "
                "measured and must not be shipped.",
                before=f"The {side} build of ",
            )
    if finding.runtimes and not any(each.ships for each in finding.runtimes):
        return on_cell(
            finding,
            ": do what its reasons ask for, export it differently, or take it out of models: in "
            "tunegate.yaml.",
            before="No runtime runs ",
        )
    return NextStep(("What is in error was not checked: repair it, then run again.",))


def _builds_of(finding: Finding, run: MeasurementRun | None) -> CellBuilds | None:
    wanted = Cell(model=finding.model, target=finding.target)
    return next((each for each in run.builds if each.cell == wanted), None) if run else None


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
