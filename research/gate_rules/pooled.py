"""The results of several series together: each series counts the same for rules that look at every
window of it, each gate for our own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from research.gate_rules.power import Alarms, Coverage, Verdicts


def pooled_alarms(found: Sequence[Alarms]) -> Alarms:
    """The alarms of one rule on several series."""
    shares = np.mean([each.shares for each in found], axis=0)
    return Alarms(found[0].name, tuple(float(share) for share in shares))


def pooled_verdicts(found: Sequence[Verdicts]) -> Verdicts:
    """The verdicts of one margin and one slowdown on several series."""
    return Verdicts(
        margin_percent=found[0].margin_percent,
        slowdown=found[0].slowdown,
        outcomes=tuple(itertools.chain.from_iterable(each.outcomes for each in found)),
        seconds=tuple(itertools.chain.from_iterable(each.seconds for each in found)),
    )


def pooled_coverage(found: Sequence[Coverage]) -> Coverage:
    """The coverage of one number of launches on several series."""
    return Coverage(
        found[0].launches,
        low=float(np.mean([each.low for each in found])),
        high=float(np.mean([each.high for each in found])),
    )
