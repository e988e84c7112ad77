"""The slow end of latencies: compared where this machine can tell, and said where it cannot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tunegate.artifacts.measurements import Interval, Launch, Tail
from tunegate.gate.decision import bounds
from tunegate.gate.histogram import merged, quantile_ms

PERCENTILES = (50.0, 90.0, 99.0)


def tails(launches: Sequence[Launch], margin: float) -> tuple[Tail, ...]:
    """For each percentile its change, with bounds over launches as for the gate's own effect. It is
    resolved where half the interval is no wider than the margin, ln(1 + the allowed slowdown)."""
    pairs = [
        (launch.base_times, launch.head_times)
        for launch in launches
        if launch.base_times is not None and launch.head_times is not None
    ]
    if len(pairs) < 2:  # noqa: PLR2004 -- a spread needs two
        return ()
    found = []
    for percentile in PERCENTILES:
        share = percentile / 100
        effects = [math.log(quantile_ms(h, share) / quantile_ms(b, share)) for b, h in pairs]
        interval = bounds(effects, looks=1, cells=1)
        found.append(
            Tail(
                percentile=percentile,
                base_ms=quantile_ms(merged([base for base, _ in pairs]), share),
                head_ms=quantile_ms(merged([head for _, head in pairs]), share),
                change_percent=Interval(
                    low=100 * math.expm1(interval.low),
                    center=100 * math.expm1(interval.center),
                    high=100 * math.expm1(interval.high),
                ),
                is_resolved=interval.high - interval.low <= 2 * margin,
            )
        )
    return tuple(found)
