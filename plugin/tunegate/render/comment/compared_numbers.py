"""How numbers of the comment that a reader may divide or add go together."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.verdicts import Finding
from tunegate.render.operators import Part
from tunegate.render.units import difference_ms, percent

_TOLD_FROM = 1.0
"""The percentage points from which somebody who divides would wonder."""
_APART = 0.2
"""The share from which layers and model would be added up in vain."""


def change_and_quotient(findings: Sequence[Finding]) -> str:
    """A sentence where head / base gives another percentage than the change beside it; empty where
    a reader finds the same."""
    apart = [(each, quotient) for each in findings if (quotient := _quotient(each)) is not None]
    if not apart:
        return ""
    told = "Change is the mean of paired launches, base and head in turn"
    (_, quotient), *more = apart
    gives = "other numbers" if more else percent(quotient)
    return f"{told}; dividing the two medians gives {gives}."


def layer_total(finding: Finding, slower: Sequence[Part]) -> str:
    """What the shares of the layers are of, beside what the whole model lost."""
    if not slower:
        return ""
    total_ms = sum(part.difference_ms for part in slower)
    shares = f"Shares are of {difference_ms(total_ms)}, the sum of these layers. "
    told = shares if len(slower) > 1 else ""
    if finding.base_ms is not None and finding.head_ms is not None:
        whole_ms = finding.head_ms - finding.base_ms
        is_apart = abs(total_ms - whole_ms) > _APART * abs(whole_ms)
        why = "; layers were timed apart from it, in a profile" if is_apart else ""
        told += f"The whole model: {difference_ms(whole_ms)}{why}."
    return told.strip()


def _quotient(finding: Finding) -> float | None:
    """Head / base in percent, where it is visibly another number than the change."""
    if finding.change_percent is None or not finding.base_ms or finding.head_ms is None:
        return None
    quotient = 100 * (finding.head_ms / finding.base_ms - 1)
    return quotient if abs(quotient - finding.change_percent.center) >= _TOLD_FROM else None
