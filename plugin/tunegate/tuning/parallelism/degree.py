"""The number of candidates that one device measures at once: DOPpler's control law.

Source: DOPpler (Borowiec et al., IEEE TPDS 34(7), 2023), equations 6 and 7, with the constants of
the authors' code. It is the congestion control of BIC-TCP on a degree of parallelism in place of a
window: half way up to the last degree that was too much, then beyond it; down at once when the
measurements of a batch disturbed each other.
"""

from __future__ import annotations

import msgspec


class DegreePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`tolerance` is both the mean relative error and the share of failures that are still taken;
    `decrease` is the share a degree loses; `least_step` and `most_step` bound how much it grows."""

    tolerance: float = 0.05
    decrease: float = 0.2
    least_step: int = 2
    most_step: int = 7


PUBLISHED = DegreePolicy()
FIRST_CEILING = 128


class Degree(msgspec.Struct, frozen=True, kw_only=True):
    """`now` candidates at once; `ceiling` is what was too many the last time."""

    now: int = 1
    ceiling: int = FIRST_CEILING


def adjusted(
    degree: Degree, *, error: float, failures: int, most: int, policy: DegreePolicy = PUBLISHED
) -> Degree:
    """The degree for the next batch, 1 to `most`, after one whose times were off by `error` (mean,
    relative) and in which `failures` candidates failed only because others ran beside them.

    Two things are not in the source. The published step down, floor(0.8 (n + 1)), gives n again for
    2 to 4; here a degree that is too much always falls by at least one. And a device has an end.
    """
    tried = degree.now + 1
    if error > policy.tolerance or failures > int(degree.now * policy.tolerance):
        ceiling = int(tried * (2 - policy.decrease) / 2) if tried < degree.ceiling else tried
        fallen = min(int(tried * (1 - policy.decrease)), degree.now - 1)
        return Degree(now=max(1, fallen), ceiling=max(1, ceiling))
    way = (degree.ceiling - tried) / 2 if tried < degree.ceiling else tried - degree.ceiling
    step = min(max(way, policy.least_step), policy.most_step)
    return Degree(now=min(int(tried + step), max(1, most)), ceiling=degree.ceiling)
