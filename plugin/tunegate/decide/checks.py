"""Check results of one cell, one per compared quantity. The worst one counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tunegate.artifacts import measurements
from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.changes import ModelChange
from tunegate.artifacts.histogram import merged_histogram
from tunegate.artifacts.verdicts import Status
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.decide import distributions, slow_modes, stalls
from tunegate.wording import milliseconds, plural


class CheckResult(NamedTuple):
    """`remarks` are the parts of the reason beside the change of the median latency."""

    status: Status
    reason: str
    remarks: str = ""

    def with_remarks(self, *remarks: str) -> CheckResult:
        """Returns this result with more clauses, empty ones left out."""
        texts = tuple(filter(None, remarks))
        return CheckResult(
            self.status,
            "; ".join((self.reason, *texts)),
            "; ".join(filter(None, (self.remarks, *texts))),
        )


def check_latency(
    change: ModelChange,
    comparison: measurements.Comparison | None,
    measurement: measurements.CellMeasurement | None,
    builds: CellBuilds | None,
    gate: GateConfig,
) -> CheckResult:
    """Returns the check of the latency of head against base, by its interval."""
    if comparison is None or measurement is None or builds is None or builds.head is None:
        reason = "no result for this model: it was expected and never measured"
        return CheckResult("error", reason)
    match measurement.stopped:
        case "error":
            return CheckResult("error", builds.head.error or "; ".join(measurement.notes))
        case "invalid" | "disturbed":
            return CheckResult("invalid-env", _reason_unfit(measurement))
        case "identical":
            return _identical(change, builds)
        case "single":
            return _alone(change, builds.base)
        case _:
            result = _by_interval(comparison, gate)
            return result.with_remarks(
                _by_clock(comparison, gate.margin_percent),
                _ancestry(change),
                _packages(change, measurement),
            )


def check_objective(
    measurement: measurements.CellMeasurement | None, objective: ObjectiveConfig | None
) -> CheckResult | None:
    """Returns the check of the head's latency objective, None without an objective or a
    measurement."""
    if objective is None or measurement is None:
        return None
    times = [launch.head_times for launch in measurement.launches]
    times_of_head = merged_histogram([*times, measurement.alone])
    count = times_of_head.total
    if not count:
        return None
    over = times_of_head.slower_than(objective.ms)
    wanted_text = f"p{objective.percentile:g} of {objective.ms:g} ms"
    over_text = f"{over:,} of {plural(count, 'inference')} took longer"
    match distributions.decide_objective(over, count, objective.percentile):
        case "pass":
            return CheckResult("pass", f"{wanted_text} is met: {over_text}")
        case "fail":
            tail = milliseconds(times_of_head.quantile_ms(objective.percentile / 100), 3)
            return CheckResult(
                "fail",
                f"{wanted_text} is not met: {over_text}, p{objective.percentile:g} is {tail}",
            )
        case "undecided":
            inferences = distributions.inferences_needed(objective.percentile)
            problem = f"{wanted_text} is not resolvable here: {over_text}"
            reason = f"{problem}, {inferences} without a longer one would decide"
            return CheckResult("inconclusive", reason)


def check_size(builds: CellBuilds | None, margin_percent: float | None) -> CheckResult | None:
    """Returns the check of the artifact's size on disk."""
    if builds is None or not builds.base or not builds.head:
        return None
    return _check_growth(
        "artifact", [builds.base.size_bytes], [builds.head.size_bytes], margin_percent
    )


def check_memory(
    measurement: measurements.CellMeasurement | None, margin_percent: float | None
) -> CheckResult | None:
    """Returns the check of the peak memory of the process that runs the model."""
    launches = measurement.launches if measurement else ()
    before = [launch.base_peak_bytes for launch in launches]
    after = [launch.head_peak_bytes for launch in launches]
    return _check_growth("peak memory", before, after, margin_percent)


def check_workspace(
    measurement: measurements.CellMeasurement | None, margin_percent: float | None
) -> CheckResult | None:
    """Returns the check of the memory that running adds to the loaded artifact."""
    launches = measurement.launches if measurement else ()
    before = [launch.base_workspace_bytes for launch in launches]
    after = [launch.head_workspace_bytes for launch in launches]
    return _check_growth("workspace", before, after, margin_percent)


def check_metric(
    measurement: measurements.CellMeasurement | None, margin: float
) -> CheckResult | None:
    """Returns the check of the user's own metric, None without one. Larger is better."""
    metric = measurement.metric if measurement else None
    if metric is None:
        return None
    if metric.problem or metric.head is None:
        return CheckResult("error", f"the metric is not known: {metric.problem or 'no head'}")
    if metric.base is None:
        return CheckResult("pass", f"metric {metric.head:.6g}")
    loss = metric.base - metric.head
    text = f"metric {metric.base:.6g} to {metric.head:.6g} ({-loss:+.3g})"
    if loss > margin:
        return CheckResult("fail", f"{text}, over its margin of {margin:g}")
    return CheckResult("pass", text)


def _check_growth(
    name: str, before: Sequence[int], after: Sequence[int], margin_percent: float | None
) -> CheckResult | None:
    """Compares the smallest values of both sides. One artifact may take a few huge pages more in
    one process than in the next, so a fail must also exceed the margin of the base's largest
    value."""
    if margin_percent is None or not all((*before, *after)) or not before:
        return None
    least, now = min(before), min(after)
    percent = 100 * (now / least - 1)
    growth = f"{name} {percent:+.1f}% ({least / 1e6:.1f} to {now / 1e6:.1f} MB)"
    if percent <= margin_percent:
        return CheckResult("pass", growth)
    growth = f"{growth}, over its {margin_percent:g}% margin"
    most = max(before)
    if now <= most * (1 + margin_percent / 100):
        return CheckResult(
            "inconclusive", f"{growth}, but the base itself took {most / 1e6:.1f} MB"
        )
    return CheckResult("fail", growth)


def _reason_unfit(measurement: measurements.CellMeasurement) -> str:
    if measurement.stopped == "invalid":
        return "; ".join(measurement.notes) or "the measurement broke"
    controls = ", ".join(f"{100 * effect:+.1f}%" for effect in measurement.controls)
    return (
        "this machine is too noisy: too many launches were disturbed, or the base "
        f"differed from itself ({controls})"
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


def _identical(change: ModelChange, builds: CellBuilds) -> CheckResult:
    if builds.base is None or builds.head is None or builds.base.key != builds.head.key:
        return CheckResult("error", "never measured, though the builds differ")
    if change.kind == "upgraded":
        return CheckResult("pass", "the packages that it needs are the same, not measured")
    return CheckResult("pass", "identical build, not measured")


def _packages(change: ModelChange, measurement: measurements.CellMeasurement) -> str:
    """Returns the packages of an upgraded model: the measured ones, else those of the lock file."""
    return measurement.packages or change.reason if change.kind == "upgraded" else ""


def _alone(change: ModelChange, base: Build | None) -> CheckResult:
    if change.base is None:
        why = "new model, nothing to compare with"
        return CheckResult("new", change.reason if change.kind == "upgraded" else why)
    reason = base.error if base is not None else None
    if change.kind == "upgraded" and base is not None and not base.crashed:
        # A change that repairs a broken lock file must not be blocked by it.
        return CheckResult("new", f"nothing to compare with: {reason}")
    detail = f": {reason}" if reason else ""
    return CheckResult("no-baseline", f"the base of this model cannot be measured{detail}")


def _by_interval(comparison: measurements.Comparison, gate: GateConfig) -> CheckResult:
    change = comparison.change_percent
    if change is None:
        return CheckResult("error", "measured, but there is no interval")
    text = f"{change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%)"
    margin = f"{gate.margin_percent:g}% margin"
    if comparison.decision == "pass":
        return _pass_check(comparison, change.low, text, gate)
    if comparison.decision == "fail" and comparison.median == "fail":
        return CheckResult("fail", f"slower by {text}, over the {gate.margin_percent:g}% margin")
    if comparison.decision == "fail":
        reason = slower_inside(comparison, gate)
        return CheckResult("fail", f"{reason}; the median by {text}", reason)
    if comparison.median == "pass":
        reason = reason_undecided(comparison, gate)
        return CheckResult("inconclusive", f"{reason}; the median {text}", reason)
    if change.low > gate.margin_percent:
        reason, launches = f"slower by {text} in seconds, not in clock cycles", ""
    else:
        reason, launches = f"{text} spans the {margin}", _launches_to_decide(comparison)
    clauses = (*slow_starts_clause(comparison), *stalls_clause(comparison))
    return CheckResult("inconclusive", reason).with_remarks(launches, *clauses)


def _pass_check(
    comparison: measurements.Comparison, low: float, text: str, gate: GateConfig
) -> CheckResult:
    margin = f"{gate.margin_percent:g}% margin"
    if low > gate.margin_percent:
        floor = f"the absolute floor of {gate.absolute_floor_us:.10g} µs"
        detail = f"over the {margin}, but under {floor}"
        return CheckResult("pass", f"slower by {text}, {detail}", detail)
    within = CheckResult("pass", f"{text}, within the {margin}")
    return within.with_remarks(*assurances(comparison))


def _by_clock(comparison: measurements.Comparison, margin_percent: float) -> str:
    """Returns the remark on a change that comes from the GPU's clock, empty if it does not: one
    that comes with the head counts, for whoever ships it gets that clock too."""
    clocks, change = comparison.clocks, comparison.change_percent
    if clocks is None or change is None or not clocks.base_mhz or not clocks.head_mhz:
        return ""
    cycles = 100 * ((1 + change.center / 100) * clocks.head_mhz / clocks.base_mhz - 1)
    is_in_seconds_alone = change.low > margin_percent >= cycles
    if not clocks.is_mediated and not is_in_seconds_alone:
        return ""
    is_open = is_in_seconds_alone and comparison.median == "undecided"
    cause = "the clock moved by itself, not with the head" if is_open else "clock-mediated"
    limits = f", held back by: {', '.join(clocks.throttled)}" if clocks.throttled else ""
    return (
        f"{cause}: the GPU ran at {clocks.base_mhz:.0f} MHz for the base and at "
        f"{clocks.head_mhz:.0f} MHz for the head{limits}; in cycles the change is {cycles:+.1f}%"
    )


def _launches_to_decide(comparison: measurements.Comparison) -> str:
    if comparison.projected_launches is None:
        return "the change lies on the margin itself"
    total = max(comparison.projected_launches, comparison.launches + 1)  # these did not
    return f"about {plural(total, 'launch', 'launches')} would decide, {comparison.launches} made"


# The assurances of a verdict on latency beside the median, in words. They claim no more than was
# shown.

TEST_NAMES = {
    "mean": "the mean",
    "mean-of-all": "the mean of all inferences",
    "first-block": "the first block",
    "p90": "p90",
    "p99": "p99",
}


def assurances(comparison: measurements.Comparison) -> tuple[str, ...]:
    """Returns what a pass excludes: how slow the mean and the tail can be, and which slow
    launches."""
    clauses = [
        _inside(comparison.inside),
        _stalls(comparison.inside),
        _launches(comparison.excluded),
        _inferences(comparison.excluded),
    ]
    return tuple(filter(None, clauses))


def slower_inside(comparison: measurements.Comparison, gate: GateConfig) -> str:
    """Returns the tests inside a launch that failed, in words."""
    failing_tests = [each for each in comparison.inside if each.decision == "fail"]
    text, margin = f"slower in {_tests(failing_tests)}", gate.tail_margin_percent
    if all(each.change_percent.low <= margin for each in failing_tests):
        return text  # by its stalls, which have no margin
    margins = f"the {margin:g}% margin of the mean and the tail (gate.tail-margin-percent)"
    return f"{text}, over {margins}"


def reason_undecided(comparison: measurements.Comparison, gate: GateConfig) -> str:
    """Returns why the cell does not pass although its median does."""
    open_tests = [each for each in comparison.inside if each.decision == "undecided"]
    spanning = [x for x in open_tests if x.change_percent.high >= gate.tail_margin_percent]
    if open_tests and not spanning:
        stalling = "inferences that stall may come with the head"
        return "; ".join((stalling, *stalls_clause(comparison), *slow_starts_clause(comparison)))
    if spanning:
        open_names = ", ".join(
            f"{TEST_NAMES[each.what]} by {change_of(each.change_percent)}" for each in spanning
        )
        margin = f"the {gate.tail_margin_percent:g}% margin (gate.tail-margin-percent)"
        return "; ".join(
            (f"possibly slower in {open_names}: it spans {margin}", *slow_starts_clause(comparison))
        )
    modes = comparison.excluded
    if modes is None:
        return "slow launches were not looked for"
    share = modes.asked_percent / 100
    starts = slow_modes.starts_needed(share) if share else 0
    if modes.slow:
        why = _slow_share_text(modes)
    elif modes.starts < starts:
        why = f"only {modes.starts} of {starts} starts fit into the time"
    else:
        why = "the starts of this machine scatter too much"
    return (
        f"{why}: {modes.asked_percent:g}% of launches or more may be slow, which makes the mean "
        f"over {modes.mean_percent:+.0f}%"
    )


def slow_starts_clause(comparison: measurements.Comparison) -> tuple[str, ...]:
    """Returns a clause on the slow starts that were seen, none without them."""
    modes = comparison.excluded
    return (_slow_share_text(modes),) if modes is not None and modes.slow else ()


def stalls_clause(comparison: measurements.Comparison) -> tuple[str, ...]:
    """Returns a clause on stalls that seem to come with the head, for a median that is
    undecided."""
    sizes = next((each.stalls for each in comparison.inside if each.stalls), ())
    clearest = stalls.clearest(sizes)
    if clearest is None or stalls.chance_of(clearest) > stalls.SUSPICION:
        return ()
    return (_stalls_of_head(clearest),)


def _stalls_of_head(stalls: measurements.Stalls) -> str:
    text = f"{plural(stalls.head, 'stall')} of {stalls.times:g}x, where the base has {stalls.base}"
    turns = f" (the head has more in {stalls.head_worse} turns, the base in {stalls.base_worse})"
    return text + turns if stalls.base else text


def _slow_share_text(modes: measurements.Excluded) -> str:
    cut_off = f"{modes.cut_off_percent:+.0f}%"
    were = "was" if modes.slow == 1 else "were"
    text = f"{modes.slow} of {modes.starts} starts of the head {were} over {cut_off}"
    return f"{text}, {_case_words(modes.slow_cases)}" if modes.slow_cases else text


def _case_words(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    cases = f"cases {', '.join(others)} and {last}" if others else f"case {last}"
    return f"all with {cases} of inputs"


def _inside(tests: Sequence[measurements.Inside]) -> str:
    tests = [test for test in tests if test.what not in {"mean-of-all", "first-block"}]
    conclusive = [test for test in tests if test.what == "mean" or test.is_resolved]
    clauses = [
        f"{TEST_NAMES[each.what]} is {_bound_text(each.change_percent.high)}" for each in conclusive
    ]
    hidden_names = [TEST_NAMES[test.what] for test in tests if test not in conclusive]
    if hidden_names:
        verb = "is" if len(hidden_names) == 1 else "are"
        clauses.append(f"{' and '.join(hidden_names)} {verb} not resolvable here")
    return ", ".join(clauses)


def _stalls(tests: Sequence[measurements.Inside]) -> str:
    """Returns the stall rates that were excluded: for the smallest size, and for the largest if the
    machine's own small stalls hide more. The rates include the machine's stalls."""
    stall_sizes = next((test.stalls for test in tests if test.stalls), ())
    if not stall_sizes or not stall_sizes[0].inferences:
        return ""
    smallest, largest = stall_sizes[0], stall_sizes[-1]
    text = f"stalls of {smallest.times:g}x in fewer than one of {stalls.one_in(smallest):,}"
    if smallest.head > largest.head:
        text = f"{text}, of {largest.times:g}x in fewer than one of {stalls.one_in(largest):,}"
    return f"{text} inferences"


def _bound_text(high_percent: float) -> str:
    if high_percent < 0:
        return f"at least {-high_percent:.0f}% faster"
    return f"at most {high_percent:.0f}% slower"


def _launches(modes: measurements.Excluded | None) -> str:
    if modes is None:
        return ""
    if modes.share_percent is None:
        text = "how many launches are slow is not known"
    else:
        text = (
            f"fewer than {math.ceil(modes.share_percent)}% of launches are slow, with "
            f"{modes.confidence_percent:g}% confidence"
        )
    return text if modes.asked_percent else f"{text} (gate.rare-launches is 0)"


def _inferences(modes: measurements.Excluded | None) -> str:
    count = modes.inferences if modes is not None else 0
    return f"no process ran longer than {plural(count, 'inference')}" if count else ""


def _tests(tests: Sequence[measurements.Inside]) -> str:
    return ", ".join(f"{TEST_NAMES[test.what]} by {_change(test)}" for test in tests)


def _change(test: measurements.Inside) -> str:
    """Returns the change, with the stalls if they come with the head."""
    change = change_of(test.change_percent)
    clearest = stalls.clearest(test.stalls)
    if clearest is None or stalls.chance_of(clearest) > stalls.SUSPICION:
        return change
    return f"{change} with {_stalls_of_head(clearest)}"


def change_of(change: measurements.Interval) -> str:
    """Returns a change and its interval, in whole percent."""
    return f"{change.center:+.0f}% ({change.low:+.0f} to {change.high:+.0f}%)"
