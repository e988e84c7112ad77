"""The next steps of a report: one sentence for each thing that the reader can change."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from tunegate.artifacts.builds import Cell, CellBuilds
from tunegate.artifacts.candidates import REFERENCE
from tunegate.artifacts.changes import path_of
from tunegate.artifacts.measurements import Comparison, MeasurementRun
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import Finding, Named, NextStep, Verdict
from tunegate.decide.slow_layers import (
    on_cell,
    slow_layers,
    slow_without_kernels,
    slowdown_steps,
    used_by_none_but,
)
from tunegate.system.nvidia.device_errors import is_device_lost
from tunegate.wording import RUN_DOCTOR, busy_load, plural, raise_key

_UNSTEADY = ("invalid", "disturbed")


def next_steps(
    verdict: Verdict,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
    plan: TuningPlan | None,
) -> tuple[NextStep, ...]:
    """Returns advice in order of use: what could not be checked, the layers that got slower
    (largest gain first), what tuning lacked, the cache. More budget is asked for at most once."""
    comparison_of = {comparison.cell: comparison for comparison in comparisons}
    steps: list[NextStep] = []
    for finding in verdict.findings:
        steps += _for_finding(finding, comparison_of.get(finding.cell), run)
    slow = slow_layers(verdict, outcomes, plan)
    steps += slowdown_steps(slow, raise_limit(outcomes))
    steps += _to_find_commits(verdict)
    is_asked = any(layer.wants_budget for layer in slow)
    steps += tuning_steps(outcomes, plan, slow_without_kernels(verdict, run), is_asked=is_asked)
    steps += _for_cache(plan.resolution.cache if plan else None)
    return tuple(dict.fromkeys(steps))


def _to_find_commits(verdict: Verdict) -> Iterator[NextStep]:
    """Yields the command that finds the commit, for each model that got slower since a release."""
    release = verdict.revisions.release
    slower = (
        [finding.model for finding in verdict.findings if finding.status == "fail"]
        if release
        else []
    )
    for model in dict.fromkeys(map(path_of, slower)):
        command = f"tunegate bisect {release}.. --model {shlex.quote(model)}"
        yield NextStep(
            ("Find the commit that made ", Named(model), " slower: ", Named(command), ".")
        )


def _for_finding(
    finding: Finding, comparison: Comparison | None, run: MeasurementRun | None
) -> Iterator[NextStep]:
    match finding.status:
        case "fail" if not any(difference.difference_ms > 0 for difference in finding.differences):
            if finding.differences or _has_timed_layers(finding, run):
                yield on_cell(finding, ": no single operator is slower; compare the two graphs.")
        case "inconclusive":
            yield _for_undecided(finding, comparison, run)
        case "error":
            yield _for_error(finding, run)
        case "invalid-env" if RUN_DOCTOR not in finding.reason:
            yield _for_unfit(finding, comparison)
        case "no-baseline":
            yield on_cell(
                finding,
                " has no base that can be run: its reason says why. Compare with another model or "
                "revision; in a shallow checkout, fetch more history for an older one.",
            )
        case "pass" | "new" | "waived" | "fail" | "invalid-env":
            return


def _has_timed_layers(finding: Finding, run: MeasurementRun | None) -> bool:
    cells = run.cells if run else ()
    return any(any(each.task_ms.values()) for each in cells if each.cell == finding.cell)


def _for_unfit(finding: Finding, comparison: Comparison | None) -> NextStep:
    """Returns the step for an unfit machine. If the machine was steady, only the missing energy
    counter is left."""
    if comparison is None or comparison.decision is None or comparison.stopped in _UNSTEADY:
        longer = ""
        if comparison is not None and comparison.stopped == "invalid":
            longer = f", or {raise_key('gate.seconds', 'gate-seconds')}"
        return on_cell(
            finding,
            " could not be measured on this machine: run it again on a runner with nothing else "
            f"on it{longer}.",
        )
    return on_cell(
        finding,
        " cannot be counted on this machine: run it on one whose RAPL or NVML counters can be "
        "read, or remove gate.energy-margin-percent, which counts once it is merged.",
        before="The energy of ",
    )


_MOST_SECONDS = 3600
"""No more seconds than these are advised for the launches of one model."""


def _for_undecided(
    finding: Finding, comparison: Comparison | None, run: MeasurementRun | None
) -> NextStep:
    if comparison and comparison.stopped == "decided":
        return on_cell(
            finding, ": the median is decided, but another check is not. Its reason says which."
        )
    launches = comparison.projected_launches if comparison else None
    quieter = busy_words(run.environment if run else {})
    if comparison is None or launches is None or launches <= finding.launches:
        more = raise_key("gate.seconds", "gate-seconds")
        return on_cell(finding, f" is undecided: measure on {quieter}, or {more}.")
    seconds = _seconds_for(launches, comparison.cell, run)
    if comparison.stopped == "hopeless" or seconds is None or seconds > _MOST_SECONDS:
        return on_cell(
            finding,
            f" is undecided: about {launches} launches would be needed, because the change is "
            f"close to the margin or the machine is noisy. Measure on {quieter}, or choose "
            "another gate.margin-percent, which counts once it is merged.",
        )
    return on_cell(
        finding,
        f" is undecided: about {launches} launches would be needed, {finding.launches} were done. "
        f"To decide, {raise_key('gate.seconds', 'gate-seconds', to=seconds)}.",
    )


def _seconds_for(launches: int, cell: Cell, run: MeasurementRun | None) -> int | None:
    """Returns the measuring time of `launches` launches, rounded up, from their cost so far."""
    for cell_run in run.cells if run else ():
        if cell_run.cell == cell and cell_run.launches:
            launch_seconds = cell_run.seconds / len(cell_run.launches)
            return math.ceil(launches * launch_seconds / 10) * 10
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
    if finding.runtimes and not any(runtime.ships for runtime in finding.runtimes):
        sentence = _OTHER_MODEL
        if any(is_device_lost(runtime.reason) for runtime in finding.runtimes):
            sentence = _AFTER_DEVICE_ERROR
        elif any("SIGKILL" in runtime.reason for runtime in finding.runtimes):
            sentence = _AFTER_KILL
        elif len(finding.runtimes) == 1 and finding.runtimes[0].candidate != REFERENCE:
            sentence = _OTHER_RUNTIME
        return on_cell(finding, sentence, before="No runtime runs ")
    return NextStep(("Models in error were not checked. Repair them, then run again.",))


_OTHER_MODEL = (
    ": do what its reasons ask for, export it differently, or take it out of models: in "
    "tunegate.yaml, which counts once it is merged."
)
_OTHER_RUNTIME = (
    ": do what its reasons ask for, or try all runtimes: runtime: auto under the target in "
    "tunegate.yaml, which counts once it is merged."
)
_AFTER_KILL = (
    ": something outside killed a build, most often for want of memory. Run it again, with more "
    "memory or with nothing else on the machine."
)
_AFTER_DEVICE_ERROR = (
    f": the device ended a build with an error, which is no fault of the model. {RUN_DOCTOR}. If "
    "that finds the device sound, a kernel is at fault: report it."
)


def _builds_of(finding: Finding, run: MeasurementRun | None) -> CellBuilds | None:
    return next((each for each in run.builds if each.cell == finding.cell), None) if run else None


_ASK_THE_CACHE = "Run tunegate cache doctor with the runner's credentials."


def _for_cache(cache: CacheUse | None) -> Iterator[NextStep]:
    if cache is None:
        return
    unread = cache.misses.get("store-unavailable", 0)
    if unread:
        text = f" could not be read in full: {plural(unread, 'task')} counted as misses. "
        yield NextStep(("The cache at ", Named(cache.location), text + _ASK_THE_CACHE))
    if cache.mode == "off":
        off = "The cache is off, so nothing is reused or shared: give --cache-mode rw, or set "
        yield NextStep((f"{off}cache.mode to rw, which counts once it is merged.",))


# Steps for what tuning lacked: budget for the rest, or a candidate that works.

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
    """Yields steps for incomplete tuning. Tasks used only by `helpless` cells, which tuning cannot
    speed up, are skipped. `is_asked` means that another step asks for more budget already."""
    if plan is not None and plan.budget.pays_nothing:
        return
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    in_vain = used_by_none_but(helpless, plan)
    cut = _count_unfinished(
        [each for each in tasks if (each.key, each.target) not in in_vain], plan
    )
    if cut and not is_asked and any(outcome.stopped in LIMIT_KEYS for outcome in outcomes):
        cap = f"Tuning reached its cap with {cut} of {plural(len(tasks), 'task')} unfinished"
        yield NextStep((f"{cap}: {_to_finish(outcomes, plan, cut)}.",))
    for task in tasks:
        if task.stopped == "failed":
            detail = f" worked{_detail(task)}: it keeps the schedule it had."
            yield NextStep(("No candidate of ", Named(task.name), detail))


def raise_limit(outcomes: Sequence[TuningOutcome]) -> str:
    """Returns the advice to raise the cap that ended tuning, or the time if none did."""
    keys = (LIMIT_KEYS[outcome.stopped] for outcome in outcomes if outcome.stopped in LIMIT_KEYS)
    key = next(keys, "budget.minutes")
    return raise_key(key, key.removeprefix("budget."))


def _to_finish(outcomes: Sequence[TuningOutcome], plan: TuningPlan | None, cut: int) -> str:
    """Returns the advice to finish tasks in later runs: a task of the current change is a task of
    both sides of the next one."""
    more = raise_limit(outcomes)
    if plan is not None and plan.resolution.cache.mode != "rw":
        return f"to finish {more}"
    them = "it" if cut == 1 else "them"
    again = "another run of this change continues from the cache"
    return f"to finish {more}, or run again: {again}. Once it is merged, tunegate warm does {them}"


def _count_unfinished(tasks: Sequence[TaskOutcome], plan: TuningPlan | None) -> int:
    # Only a task that a run like this one tunes to the end is worth another run.
    known_tasks = plan.resolution.tasks if plan else ()
    keys = {each.task.key for each in known_tasks if not each.is_settled}
    return sum(
        task.stopped == "budget" or (task.stopped == "not-started" and task.key in keys)
        for task in tasks
    )


def _detail(task: TaskOutcome) -> str:
    causes = ", ".join(f"{count} {cause}" for cause, count in sorted(task.failures.items()))
    return f" ({causes})" if causes else ""


def busy_words(environment: Mapping[str, str]) -> str:
    """Returns words such as `a quieter runner (the load was 13.7 on 2 cores)` if the load was too
    high."""
    load = busy_load(environment)
    return f"a quieter runner ({load})" if load else "a quieter runner"
