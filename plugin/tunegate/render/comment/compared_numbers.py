"""Notes on how numbers of the comment go together, for a reader who divides or adds them."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.verdicts import Finding
from tunegate.gate.decision import FAIL_ERROR, PASS_ERROR
from tunegate.render.operators import Part
from tunegate.render.units import difference_ms

_APART = 0.2
"""The share from which layers and model would be added up in vain."""


CHANGE_SAID = "Change compares paired launches, so it is not Head / Base"


def change_said(findings: Sequence[Finding], *, with_bounds: bool = True) -> str:
    """Returns what the change beside two medians is, and the confidence of its bounds; empty where
    no row has the three."""
    if not any(each.change_percent and each.base_ms and each.head_ms for each in findings):
        return ""
    low, high = (f"{100 * (1 - error):g}%" for error in (FAIL_ERROR, PASS_ERROR))
    below = (
        f". Below it are its bounds: the lower one with {low} confidence, the upper one with {high}"
    )
    return f"{CHANGE_SAID}{below if with_bounds else ''}."


def layer_total(finding: Finding, slower: Sequence[Part]) -> str:
    """Returns the total that the shares of the layers refer to, beside the loss of the whole
    model."""
    if not slower:
        return ""
    total_ms = sum(part.difference_ms for part in slower)
    shares = f"Shares are of {difference_ms(total_ms)}, the sum of these layers. "
    told = shares if len(slower) > 1 else ""
    if finding.base_ms is not None and finding.head_ms is not None:
        whole_ms = finding.head_ms - finding.base_ms
        is_apart = abs(total_ms - whole_ms) > _APART * abs(whole_ms)
        means = "each alone, by tuning" if any(part.is_alone for part in slower) else "in a profile"
        why = f"; layers were timed apart from it, {means}" if is_apart else ""
        told += f"The whole model: {difference_ms(whole_ms)}{why}."
    return told.strip()
