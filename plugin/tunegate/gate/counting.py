"""The launches of a cell that count."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tunegate.artifacts.measurements import Launch
from tunegate.gate.clocks import MAX_DROPPED
from tunegate.gate.guards import undisturbed


def counted(launches: Sequence[Launch], margin: float) -> list[Launch]:
    """Those that nothing disturbed. `margin` is ln(1 + the allowed slowdown)."""
    kept = undisturbed([noise_of(launch) for launch in launches], margin)
    return [launch for launch, keep in zip(launches, kept, strict=True) if keep]


def left_out(launches: Sequence[Launch], margin: float) -> list[Launch]:
    """The others. They are no noise where the head is slow in them."""
    kept = undisturbed([noise_of(launch) for launch in launches], margin)
    return [launch for launch, keep in zip(launches, kept, strict=True) if not keep]


def noise_of(launch: Launch) -> float:
    """Infinite where the clocks of the device left too little of it."""
    dropped = launch.clocks.dropped if launch.clocks else 0
    return math.inf if dropped > MAX_DROPPED * launch.pairs else launch.noise
