"""The energy of an inference and the time to load, head against base: separate Student's t tests
over launches. They do not share the error of the latency tests, as their margins ask other
questions."""

import math
import statistics
from collections.abc import Sequence

from tunegate.artifacts.measurements import Comparison, EnergyChange, Interval, Launch, LoadChange
from tunegate.decide.checks import CheckResult
from tunegate.decide.decision import bounds, decide_cell, percent_interval
from tunegate.wording import page_address

_FAIL_ERROR = 0.01
"""The error of a fail by either, over all cells and analyses."""


def energy_change(
    launches: Sequence[Launch], margin_percent: float | None, *, analyses: int, cells: int
) -> EnergyChange | None:
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
    return EnergyChange(
        base_joules=math.fsum(base for base, _ in joules) / len(joules),
        head_joules=math.fsum(head for _, head in joules) / len(joules),
        source=source,
        change_percent=percent_interval(interval),
        decision=None if margin is None else decide_cell(interval, margin),
    )


def load_change(
    launches: Sequence[Launch], margin_percent: float | None, *, analyses: int, cells: int
) -> LoadChange | None:
    """Returns the change of the time to load, None without a margin, or a launch without a time."""
    times = [launch.load_ms for launch in launches if launch.load_ms and all(launch.load_ms)]
    if margin_percent is None or len(times) < max(2, len(launches)):
        return None
    effects = [math.log(head / base) for base, head in times]
    interval = bounds(effects, analyses=analyses, cells=cells, fail_error=_FAIL_ERROR)
    return LoadChange(
        base_ms=statistics.median(base for base, _ in times),
        head_ms=statistics.median(head for _, head in times),
        change_percent=percent_interval(interval),
        decision=decide_cell(interval, math.log1p(margin_percent / 100)),
    )


# The checks of one cell.


def check_energy(comparison: Comparison | None, margin_percent: float | None) -> CheckResult | None:
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


def check_load(comparison: Comparison | None, margin_percent: float | None) -> CheckResult | None:
    """Returns the check of the time to load."""
    if margin_percent is None or comparison is None or comparison.change_percent is None:
        return None
    load = comparison.load
    if load is None:
        reason = "the time to load was not measured: these launches are of commands, or older"
        return CheckResult("inconclusive", reason)
    values = f"{load.base_ms:.3g} to {load.head_ms:.3g} ms of the processor"
    return _result("loading", load.change_percent, values, load.decision, margin_percent)


def _result(
    what: str, change: Interval, values: str, decision: str | None, margin_percent: float
) -> CheckResult:
    found = f"{what} {change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%; {values})"
    margin = f"{margin_percent:g}% margin"
    match decision:
        case "pass":
            return CheckResult("pass", f"{found}, within its {margin}")
        case "fail":
            return CheckResult("fail", f"{found}, over its {margin}")
        case _:
            return CheckResult("inconclusive", f"{found} spans its {margin}")
