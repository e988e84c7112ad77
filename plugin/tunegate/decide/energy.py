"""The energy of an inference, head against base: a separate Student's t test over launches. It does
not share the error of the latency tests, because its margin asks a second question."""

import math
from collections.abc import Sequence

from tunegate.artifacts.measurements import Comparison, EnergyChange, Launch
from tunegate.decide.checks import CheckResult
from tunegate.decide.decision import bounds, decide_cell, percent_interval
from tunegate.wording import page_address

ENERGY_FAIL_ERROR = 0.01
"""The error of a fail by energy, over all cells and analyses."""


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
    interval = bounds(effects, analyses=analyses, cells=cells, fail_error=ENERGY_FAIL_ERROR)
    margin = None if margin_percent is None else math.log1p(margin_percent / 100)
    return EnergyChange(
        base_joules=math.fsum(base for base, _ in joules) / len(joules),
        head_joules=math.fsum(head for _, head in joules) / len(joules),
        source=source,
        change_percent=percent_interval(interval),
        decision=None if margin is None else decide_cell(interval, margin),
    )


# The check of the energy of one cell.


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
    change = energy.change_percent
    energy_text = (
        f"energy {change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%; "
        f"{energy.base_joules:.3g} to {energy.head_joules:.3g} J by {energy.source})"
    )
    margin = f"{margin_percent:g}% margin"
    match energy.decision:
        case "pass":
            return CheckResult("pass", f"{energy_text}, within its {margin}")
        case "fail":
            return CheckResult("fail", f"{energy_text}, over its {margin}")
        case _:
            return CheckResult("inconclusive", f"{energy_text} spans its {margin}")
