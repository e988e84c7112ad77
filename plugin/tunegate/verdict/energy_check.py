"""The check of the energy of one cell."""

from __future__ import annotations

from tunegate.artifacts.measurements import Comparison
from tunegate.verdict.checks import CheckResult
from tunegate.wording.documentation import page_address


def check_energy(comparison: Comparison | None, margin_percent: float | None) -> CheckResult | None:
    """The joules of one inference, by counters."""
    if margin_percent is None or comparison is None or comparison.change_percent is None:
        return None
    found = comparison.energy
    if found is None:
        reason = (
            "the energy of an inference is not known: no counter of it can be read here. "
            "Make RAPL or NVML readable "
            f"({page_address('how-the-gate-decides')}), or remove gate.energy-margin-percent"
        )
        return CheckResult("invalid-env", reason)
    change = found.change_percent
    said = (
        f"energy {change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%; "
        f"{found.base_joules:.3g} to {found.head_joules:.3g} J by {found.source})"
    )
    margin = f"{margin_percent:g}% margin"
    match found.decision:
        case "pass":
            return CheckResult("pass", f"{said}, within its {margin}")
        case "fail":
            return CheckResult("fail", f"{said}, over its {margin}")
        case _:
            return CheckResult("inconclusive", f"{said} spans its {margin}")
