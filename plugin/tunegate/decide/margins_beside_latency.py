"""The energy of an inference, the time to load and the layers that differ, head against base:
separate Student's t tests over launches. They do not share the error of the latency tests, as their
margins ask other questions.

The layers that differ are timed inside both models, in one process. A slowdown of the model that
comes from them is larger in them by their share, and what else the process does befalls both sides.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from tunegate.artifacts import measurements
from tunegate.decide.checks import CheckResult
from tunegate.decide.decision import bounds, decide_cell, percent_interval
from tunegate.decide.sequential import last_analysis
from tunegate.wording import page_address

_FAIL_ERROR = 0.01
"""The error of a fail by any of them, over all cells and analyses."""
_FEWEST = 2
"""A spread needs two launches."""


def energy_change(
    launches: Sequence[measurements.Launch],
    margin_percent: float | None,
    *,
    analyses: int,
    cells: int,
) -> measurements.EnergyChange | None:
    """Returns the change of energy, None unless the same counters covered all launches. Without a
    margin it decides nothing."""
    joules = [
        (launch.base_joules, launch.head_joules)
        for launch in launches
        if launch.base_joules and launch.head_joules
    ]
    sources = {launch.energy_source for launch in launches}
    source = sources.pop() if len(sources) == 1 else None
    if source is None or len(joules) < max(2, len(launches)):
        return None
    effects = [math.log(head / base) for base, head in joules]
    interval = bounds(effects, analyses=analyses, cells=cells, fail_error=_FAIL_ERROR)
    margin = None if margin_percent is None else math.log1p(margin_percent / 100)
    return measurements.EnergyChange(
        base_joules=math.fsum(base for base, _ in joules) / len(joules),
        head_joules=math.fsum(head for _, head in joules) / len(joules),
        source=source,
        change_percent=percent_interval(interval),
        decision=None if margin is None else decide_cell(interval, margin),
    )


def load_change(
    launches: Sequence[measurements.Launch],
    margin_percent: float | None,
    *,
    analyses: int,
    cells: int,
) -> measurements.LoadChange | None:
    """Returns the change of the time to load, None without a margin, or a launch without a time."""
    times = [launch.load_ms for launch in launches if launch.load_ms and all(launch.load_ms)]
    if margin_percent is None or len(times) < max(2, len(launches)):
        return None
    effects = [math.log(head / base) for base, head in times]
    interval = bounds(effects, analyses=analyses, cells=cells, fail_error=_FAIL_ERROR)
    return measurements.LoadChange(
        base_ms=statistics.median(base for base, _ in times),
        head_ms=statistics.median(head for _, head in times),
        change_percent=percent_interval(interval),
        decision=decide_cell(interval, math.log1p(margin_percent / 100)),
    )


def layers_change(
    timing: measurements.DifferingLayers | None, margin_percent: float | None, *, cells: int
) -> measurements.LayersChange | None:
    """Returns the change of the model by the layers that differ, None without a margin or with too
    few launches. Without a layer that differs the change is zero."""
    if margin_percent is None or timing is None or not timing.launches:
        return None
    count = last_analysis(len(timing.launches), timing.analyses)
    launches = timing.launches[:count]
    if not any(launch.base_ms or launch.head_ms for launch in launches):
        return _no_layer_changed(launches)
    if len(launches) < _FEWEST:
        return None
    effects = [
        math.log((launch.whole_ms - launch.base_ms + launch.head_ms) / launch.whole_ms)
        for launch in launches
    ]
    interval = bounds(effects, analyses=len(timing.analyses), cells=cells, fail_error=_FAIL_ERROR)
    slowest, slower_ms = _slowest_layer(launches)
    whole_ms = statistics.fmean(launch.whole_ms for launch in launches)
    return measurements.LayersChange(
        whole_ms=whole_ms,
        base_ms=statistics.fmean(launch.base_ms for launch in launches),
        head_ms=statistics.fmean(launch.head_ms for launch in launches),
        change_percent=percent_interval(interval),
        decision=decide_cell(interval, math.log1p(margin_percent / 100)),
        launches=len(launches),
        slowest=slowest,
        slowest_percent=100 * slower_ms / whole_ms,
    )


def _no_layer_changed(launches: Sequence[measurements.LayersLaunch]) -> measurements.LayersChange:
    return measurements.LayersChange(
        whole_ms=statistics.fmean(launch.whole_ms for launch in launches),
        base_ms=0.0,
        head_ms=0.0,
        change_percent=measurements.Interval(low=0.0, center=0.0, high=0.0),
        decision="pass",
        launches=len(launches),
    )


def _slowest_layer(launches: Sequence[measurements.LayersLaunch]) -> tuple[str, float]:
    """Returns the layer that costs the head most on average, and the milliseconds; '' if none got
    slower."""
    total: dict[str, float] = defaultdict(float)
    for launch in launches:
        for name, difference_ms in launch.largest.items():
            total[name] += difference_ms / len(launches)
    name = max(total, key=total.__getitem__, default="")
    return (name, total[name]) if name and total[name] > 0 else ("", 0.0)


# The checks of one cell.


def check_energy(
    comparison: measurements.Comparison | None, margin_percent: float | None
) -> CheckResult | None:
    """Returns the check of the joules of one inference, by counters."""
    if margin_percent is None or comparison is None or comparison.change_percent is None:
        return None
    energy = comparison.energy
    if energy is None:
        reason = (
            "the energy of an inference is not known: no counter of it can be read here. "
            "Make RAPL or NVML readable "
            f"({page_address('how-the-gate-decides')}), or remove gate.energy-margin-percent, "
            "which counts once it is merged"
        )
        return CheckResult("invalid-env", reason)
    values = f"{energy.base_joules:.3g} to {energy.head_joules:.3g} J by {energy.source}"
    return _result("energy", energy.change_percent, values, energy.decision, margin_percent)


def check_load(
    comparison: measurements.Comparison | None, margin_percent: float | None
) -> CheckResult | None:
    """Returns the check of the time to load."""
    if margin_percent is None or comparison is None or comparison.change_percent is None:
        return None
    load = comparison.load
    if load is None:
        reason = "the time to load was not measured: these launches are of commands, or older"
        return CheckResult("inconclusive", reason)
    values = f"{load.base_ms:.3g} to {load.head_ms:.3g} ms of the processor"
    return _result("loading", load.change_percent, values, load.decision, margin_percent)


def check_layers(
    comparison: measurements.Comparison | None,
    measurement: measurements.CellMeasurement | None,
    margin_percent: float | None,
    ceiling_percent: float | None = None,
) -> CheckResult | None:
    """Returns the check of the layers that differ. It can fail beside the whole model's, and takes
    no fail away. A fail does not stand if the whole model surely keeps the margin: then other
    layers regained it. A waiver of the model covers it up to its ceiling."""
    if margin_percent is None or comparison is None or comparison.change_percent is None:
        return None
    layers = comparison.layers
    if layers is None:
        timing = measurement.layers if measurement else None
        why = (timing and timing.problem) or "these launches are of commands, or older"
        return CheckResult("inconclusive", f"the layers that differ were not timed: {why}")
    if not layers.base_ms and not layers.head_ms:
        return CheckResult("pass", "no layer differs in more than its weights")
    by = f"{layers.base_ms:.3g} to {layers.head_ms:.3g} ms"
    if layers.slowest:
        by = f"{by}, {layers.slowest_percent:+.2g}% by {layers.slowest}"
    result = _result(
        "the layers that differ", layers.change_percent, by, layers.decision, margin_percent
    )
    if result.status == "pass":
        return result
    return _unless_covered(
        result, layers, comparison.change_percent, margin_percent, ceiling_percent
    )


def _unless_covered(
    result: CheckResult,
    layers: measurements.LayersChange,
    whole: measurements.Interval,
    margin_percent: float,
    ceiling_percent: float | None,
) -> CheckResult:
    """Returns the result, a pass if the whole model surely keeps the margin that the layers exceed,
    or `waived` below a waiver's ceiling."""
    if result.status == "fail" and whole.high < margin_percent:
        remark = f"but the whole model changes by {whole.high:+.1f}% at most"
        return CheckResult("pass", f"{result.reason}, {remark}")
    if ceiling_percent is not None and layers.change_percent.high <= ceiling_percent:
        return CheckResult("waived", f"{result.reason}, waived up to +{ceiling_percent:g}%")
    return result


def _result(
    what: str,
    change: measurements.Interval,
    values: str,
    decision: str | None,
    margin_percent: float,
) -> CheckResult:
    text = f"{what} {change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%; {values})"
    margin = f"{margin_percent:g}% margin"
    match decision:
        case "pass":
            return CheckResult("pass", f"{text}, within its {margin}")
        case "fail":
            return CheckResult("fail", f"{text}, over its {margin}")
        case _:
            return CheckResult("inconclusive", f"{text} spans its {margin}")
