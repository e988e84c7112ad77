"""Check results of one cell, one for each thing that is compared; the worst counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.changes import ModelChange
from tunegate.artifacts.measurements import CellMeasurement, Comparison
from tunegate.artifacts.verdicts import Status
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.decide import objective
from tunegate.decide.assurances import (
    assured,
    slow_starts_clause,
    slower_inside,
    stalls_clause,
    undecided,
)
from tunegate.decide.histogram import merged_histogram, quantile_ms, slower_than, total
from tunegate.wording import milliseconds, plural


class CheckResult(NamedTuple):
    """`remarks` is what the reason says beside the change of the median latency."""

    status: Status
    reason: str
    remarks: str = ""

    def with_remarks(self, *remarks: str) -> CheckResult:
        """The same with more clauses, those that say something."""
        told = tuple(filter(None, remarks))
        return CheckResult(
            self.status,
            "; ".join((self.reason, *told)),
            "; ".join(filter(None, (self.remarks, *told))),
        )


def check_latency(
    change: ModelChange,
    comparison: Comparison | None,
    measured: CellMeasurement | None,
    built: CellBuilds | None,
    gate: GateConfig,
) -> CheckResult:
    """Head against base, by the interval."""
    if comparison is None or measured is None or built is None or built.head is None:
        reason = "no result for this model: it was expected and never measured"
        return CheckResult("error", reason)
    match measured.stopped:
        case "error":
            return CheckResult("error", built.head.error or "; ".join(measured.notes))
        case "invalid" | "disturbed":
            return CheckResult("invalid-env", _unfit(measured))
        case "identical":
            return _identical(change, built)
        case "single":
            return _alone(change, built.base)
        case _:
            result = _by_interval(comparison, gate)
            return result.with_remarks(
                _by_clock(comparison), _ancestry(change), _packages(change, measured)
            )


def check_objective(
    measured: CellMeasurement | None, wanted: ObjectiveConfig | None
) -> CheckResult | None:
    """The latency objective of the head; None where there is none, or nothing was measured."""
    if wanted is None or measured is None:
        return None
    times = [launch.head_times for launch in measured.launches if launch.head_times is not None]
    found = merged_histogram([*times, *([measured.alone] if measured.alone else [])])
    count = total(found)
    if not count:
        return None
    over = slower_than(found, wanted.ms)
    said = f"p{wanted.percentile:g} of {wanted.ms:g} ms"
    seen = f"{over:,} of {plural(count, 'inference')} took longer"
    match objective.decide_objective(over, count, wanted.percentile):
        case "pass":
            return CheckResult("pass", f"{said} is kept: {seen}")
        case "fail":
            tail = milliseconds(quantile_ms(found, wanted.percentile / 100), 3)
            return CheckResult(
                "fail",
                f"{said} is not kept: {seen}, p{wanted.percentile:g} is {tail}",
            )
        case "undecided":
            needed = objective.inferences_needed(wanted.percentile)
            reason = f"{said} is not resolvable here: {seen}, {needed} without one would do"
            return CheckResult("inconclusive", reason)


def check_size(built: CellBuilds | None, margin_percent: float | None) -> CheckResult | None:
    """The artifact on disk."""
    if built is None or not built.base or not built.head:
        return None
    return _more("artifact", [built.base.size_bytes], [built.head.size_bytes], margin_percent)


def check_memory(
    measured: CellMeasurement | None, margin_percent: float | None
) -> CheckResult | None:
    """The peak of the process that runs it."""
    launches = measured.launches if measured else ()
    before = [launch.base_peak_bytes for launch in launches]
    after = [launch.head_peak_bytes for launch in launches]
    return _more("peak memory", before, after, margin_percent)


def check_workspace(
    measured: CellMeasurement | None, margin_percent: float | None
) -> CheckResult | None:
    """Returns the check of the memory that running adds to the loaded artifact."""
    launches = measured.launches if measured else ()
    before = [launch.base_workspace_bytes for launch in launches]
    after = [launch.head_workspace_bytes for launch in launches]
    return _more("workspace", before, after, margin_percent)


def check_metric(measured: CellMeasurement | None, margin: float) -> CheckResult | None:
    """The user's own measure, more is better; None where there is none."""
    found = measured.metric if measured else None
    if found is None:
        return None
    if found.problem or found.head is None:
        return CheckResult("error", f"the metric is not known: {found.problem or 'no head'}")
    if found.base is None:
        return CheckResult("pass", f"metric {found.head:.6g}")
    lost = found.base - found.head
    said = f"metric {found.base:.6g} to {found.head:.6g} ({-lost:+.3g})"
    if lost > margin:
        return CheckResult("fail", f"{said}, over its margin of {margin:g}")
    return CheckResult("pass", said)


def _more(
    what: str, before: Sequence[int], after: Sequence[int], margin_percent: float | None
) -> CheckResult | None:
    """Compares the least of either side. One artifact may take a few huge pages more in one process
    than in the next: what fails is over the margin of the most that the base has taken."""
    if margin_percent is None or not all((*before, *after)) or not before:
        return None
    least, now = min(before), min(after)
    percent = 100 * (now / least - 1)
    said = f"{what} {percent:+.1f}% ({least / 1e6:.1f} to {now / 1e6:.1f} MB)"
    if percent <= margin_percent:
        return CheckResult("pass", said)
    said = f"{said}, over its {margin_percent:g}% margin"
    most = max(before)
    if now <= most * (1 + margin_percent / 100):
        return CheckResult("inconclusive", f"{said}, but the base itself took {most / 1e6:.1f} MB")
    return CheckResult("fail", said)


def _unfit(measured: CellMeasurement) -> str:
    if measured.stopped == "invalid":
        return "; ".join(measured.notes) or "the measurement broke"
    controls = ", ".join(f"{100 * effect:+.1f}%" for effect in measured.controls)
    return (
        "this machine cannot hold still: too many launches were disturbed, or the base against "
        f"itself differed ({controls})"
    )


def _ancestry(change: ModelChange) -> str:
    """Returns the remark on a base that is older than it should be."""
    if change.ancestor is None or change.base is None:
        return ""
    back = "1 commit" if change.ancestor.commits == 1 else f"{change.ancestor.commits} commits"
    return (
        f"against {change.base.revision[:12]}, {back} before the base, which cannot be compiled "
        f"({change.ancestor.reason})"
    )


def _identical(change: ModelChange, built: CellBuilds) -> CheckResult:
    if built.base is None or built.head is None or built.base.key != built.head.key:
        return CheckResult("error", "never measured, though the builds differ")
    if change.kind == "upgraded":
        return CheckResult("pass", "the packages that it needs are the same, not measured")
    return CheckResult("pass", "identical build, not measured")


def _packages(change: ModelChange, measured: CellMeasurement) -> str:
    """Returns the packages of an upgraded model: the measured ones, else those of the lock file."""
    return measured.packages or change.reason if change.kind == "upgraded" else ""


def _alone(change: ModelChange, base: Build | None) -> CheckResult:
    if change.base is None:
        why = "new model, nothing to compare with"
        return CheckResult("new", change.reason if change.kind == "upgraded" else why)
    reason = base.error if base is not None else None
    if change.kind == "upgraded" and base is not None and not base.crashed:
        # Who repairs a lock file that could not be used must not be blocked by it.
        return CheckResult("new", f"nothing to compare with: {reason}")
    return CheckResult("no-baseline", reason or "the base of this model could not be built")


def _by_interval(comparison: Comparison, gate: GateConfig) -> CheckResult:
    change = comparison.change_percent
    if change is None:
        return CheckResult("error", "measured, but there is no interval")
    text = f"{change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%)"
    margin = f"{gate.margin_percent:g}% margin"
    if comparison.decision == "pass":
        return _passed(comparison, change.low, text, gate)
    if comparison.decision == "fail" and comparison.median == "fail":
        return CheckResult("fail", f"slower by {text}, over the {margin}")
    if comparison.decision == "fail":
        told = slower_inside(comparison, gate)
        return CheckResult("fail", f"{told}; the median by {text}", told)
    if comparison.median == "pass":
        told = undecided(comparison, gate)
        return CheckResult("inconclusive", f"{told}; the median {text}", told)
    spans = CheckResult("inconclusive", f"{text} spans the {margin}")
    seen = (*slow_starts_clause(comparison), *stalls_clause(comparison))
    return spans.with_remarks(_wanted(comparison), *seen)


def _passed(comparison: Comparison, low: float, text: str, gate: GateConfig) -> CheckResult:
    margin = f"{gate.margin_percent:g}% margin"
    if low > gate.margin_percent:
        floor = f"the absolute floor of {gate.absolute_floor_us:.10g} µs"
        told = f"over the {margin}, but under {floor}"
        return CheckResult("pass", f"slower by {text}, {told}", told)
    within = CheckResult("pass", f"{text}, within the {margin}")
    return within.with_remarks(*assured(comparison))


def _by_clock(comparison: Comparison) -> str:
    """A change that comes from the clock is one for whoever ships it,
    but another kernel cures it."""
    clocks, change = comparison.clocks, comparison.change_percent
    if clocks is None or change is None or not clocks.is_mediated:
        return ""
    if not clocks.base_mhz or not clocks.head_mhz:
        return ""
    cycles = 100 * ((1 + change.center / 100) * clocks.head_mhz / clocks.base_mhz - 1)
    held = f", held back by: {', '.join(clocks.throttled)}" if clocks.throttled else ""
    return (
        f"clock-mediated: the GPU ran at {clocks.base_mhz:.0f} MHz for the base and at "
        f"{clocks.head_mhz:.0f} MHz for the head{held}; in cycles the change is {cycles:+.1f}%"
    )


def _wanted(comparison: Comparison) -> str:
    if comparison.projected_launches is None:
        return "the change lies on the margin itself"
    wanted = comparison.projected_launches
    return f"about {plural(wanted, 'launch', 'launches')} would decide, {comparison.launches} made"
